//! Memory and learnings follow the session to another place of its tree.

use tiller_memory::{Learnings, Memory, MemoryError};
use tiller_protocol::{EntryId, SessionId};

use crate::context::msg::ContextMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::memory::msg::MemoryMsg;

/// Takes what the session wrote on the branch that it left out of the memory files, sets aside what it learned there, and brings
/// back what belongs to the branch that is open now.
pub(crate) fn follow(core: &mut Core) {
    if !core.identity.owns_session() {
        return;
    }
    let (memory, learnings) = (core.services.user.memory.clone(), core.services.user.learnings.clone());
    let (session, head) = (core.session.id, core.session.head.id);
    if let Some(learnings) = &learnings {
        learnings.forget(session);
    }
    let (tx, saves) = (core.tx.clone(), core.saves.barrier());
    core.spawn(async move {
        // The entries of the branch may still be being written.
        saves.await;
        let moved = tokio::task::spawn_blocking(move || {
            moved(memory.as_deref(), learnings.as_deref(), session, head)
        });
        if let Ok(moved) = moved.await {
            let _ = tx.send(Msg::Context(ContextMsg::Memory(MemoryMsg::Moved(moved)))).await;
        }
    });
}

/// What moved, in sentences.
fn moved(
    memory: Option<&Memory>,
    learnings: Option<&Learnings>,
    session: SessionId,
    head: Option<EntryId>,
) -> Result<Vec<String>, MemoryError> {
    let entries = memory.map(|memory| memory.head_moved(session, head)).transpose()?.unwrap_or_default();
    let learned = learnings.map(|learnings| learnings.head_moved(session, head)).transpose()?;
    let words = [entries.words(), learned.unwrap_or_default().words()];
    Ok(words.into_iter().filter(|words| !words.is_empty()).collect())
}

/// What a restore of the conversation to `entry` would do to both, in sentences. Blocks.
pub(crate) fn would_move(
    memory: Option<&Memory>,
    learnings: Option<&Learnings>,
    session: SessionId,
    entry: EntryId,
) -> Vec<String> {
    let entries = memory.and_then(|memory| memory.would_move(session, Some(entry)).ok()).unwrap_or_default();
    let learned = learnings.and_then(|learnings| learnings.would_move(session, Some(entry)).ok());
    let learned = learned.unwrap_or_default();
    let count =
        |n: usize, one: &str, more: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {more}") };
    let memory = |what: &str, texts: &[String]| {
        let shown: Vec<String> = texts.iter().take(3).map(|text| format!("\"{text}\"")).collect();
        let entries = count(texts.len(), "memory entry", "memory entries");
        (!texts.is_empty()).then(|| format!("{what} {entries}: {}", shown.join(", ")))
    };
    let learnings =
        |n: usize, what: &str| (n > 0).then(|| format!("{what} {}", count(n, "learning", "learnings")));
    let notes = [
        memory("Takes out", &entries.aside),
        memory("Brings back", &entries.back),
        learnings(learned.aside, "Sets aside"),
        learnings(learned.back, "Brings back"),
    ];
    notes.into_iter().flatten().collect()
}
