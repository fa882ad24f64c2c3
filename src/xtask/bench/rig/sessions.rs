//! Long sessions, written directly into the store.

use std::path::Path;

use anyhow::Result;
use tiller_protocol::{
    AgentId, Block, Clock, Entry, EntryBody, EntryId, IdSource, Message, ModelRef, Origin, Part, Profile,
    RandomIds, SessionId, StopReason, SystemClock, Usage,
};
use tiller_store::{Append, NewSession, Options, Store};

use crate::bench::rig::model::markdown;

/// Entries in one commit.
const AT_ONCE: usize = 5_000;

/// Text of the last entry, so that a screen shows when it is loaded.
pub(crate) const LAST: &str = "DONE-made";

/// Creates a session of `count` entries in `project`: alternating questions and answers, and a compaction near the end
/// where the text would exceed any model's window.
pub(crate) fn make(database: &Path, project: &Path, count: usize) -> Result<()> {
    make_of(database, project, count, 300)
}

/// As [`make`], with answers of this many lines.
pub(crate) fn make_of(database: &Path, project: &Path, count: usize, lines: usize) -> Result<()> {
    let store = Store::open(database, Options::default())?;
    let clock = SystemClock::default();
    let session = SessionId(RandomIds.next(clock.now()));
    let model = ModelRef("anthropic/mock".into());
    let new = NewSession {
        id: session,
        project: project.display().to_string(),
        title: format!("{count} entries"),
        model: model.clone(),
        profile: Profile::Full,
        spawned_by: None,
        made_by: tiller_store::MadeBy::Person,
    };
    store.sessions().create(new).wait()?;
    let answer = markdown(lines);
    let mut parent = None;
    let mut n = 0;
    while n < count {
        let mut entries = Vec::new();
        while n < count && entries.len() < AT_ONCE {
            n += 1;
            let text = match n {
                _ if n + 1 >= count => LAST.to_owned(),
                _ if n % 2 == 1 => format!("Question {n}: what does the parser do with an empty buffer?"),
                _ => format!("Answer {n}.\n\n{answer}"),
            };
            let body = if n + 10 == count && count > AT_ONCE {
                EntryBody::Compaction {
                    summary: "What was said before, in short.".into(),
                    focus: None,
                    kept_from: None,
                    tokens_before: 100_000,
                    tokens_after: 20,
                }
            } else if n % 2 == 1 {
                EntryBody::User {
                    message: Message::text(text.clone()),
                    origin: Origin::Prompt,
                    content: vec![Part::Text { text }],
                }
            } else {
                EntryBody::Assistant {
                    blocks: vec![Block::Text { text }],
                    stop: StopReason::EndTurn,
                    model: model.clone(),
                    usage: Usage::default(),
                    cost: None,
                }
            };
            let id = EntryId(RandomIds.next(clock.now()));
            let agent = AgentId::main();
            entries.push(Entry { id, parent, session, agent, time: clock.now(), body, snapshot: None });
            parent = Some(id);
        }
        store.entries().append(Append::new(session, "main").entries(entries)).wait()?;
    }
    Ok(())
}
