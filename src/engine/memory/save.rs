//! The agent's chance to save: one request with only the tool `memory`, before a compaction and after a session was left. It is
//! beside the conversation: neither its prefix nor its entries change.
//!
//! A session that is quit gets its chance when the next one begins in the same folder, so that quitting never waits for a model.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiller_config::schema::MemoryApproval;
use tiller_memory::Memory;
use tiller_memory::files::{Edit, Route};
use tiller_protocol::{
    AgentId, Entry, EntryBody, EntryId, MemoryFile, MemoryScope, MemoryTarget, Notice, NoticeKind,
    Provenance, SessionId, Taint, ToolCatalog, ToolSpec,
};
use tiller_store::{MadeBy, Store};
use tiller_tool::Tool;

use crate::bus::{Bus, EventScope};
use crate::context::compaction::{self, compact};
use crate::context::side_call::{self, SideCall};
use crate::context::tokens;
use crate::core::Core;
use crate::core::services::Redact;
use crate::memory::origin::{Reading, imported};
use crate::session::model;
use crate::{money, session};

const PROMPT: &str = include_str!("../../../assets/prompts/memory.md");
/// Entries of one chance, at most.
const ENTRIES: usize = 3;
/// Longest time that a compaction waits for it.
const TIME: Duration = Duration::from_secs(45);
/// Tokens of the answer.
const ROOM: u64 = 1_000;
/// Characters of the conversation that the model sees.
const SEEN: usize = 60_000;
/// Fewest prompts, or tokens, of a session that is worth a request at its end.
const PROMPTS: usize = 6;
const TOKENS: u64 = 8_000;

/// A request to a model that was not made yet: what of a conversation is to be kept in memory.
pub(crate) struct MemorySave {
    memory: Arc<Memory>,
    side: SideCall,
    spec: ToolSpec,
    catalog: ToolCatalog,
    store: Store,
    redact: Redact,
    /// Of the session that is left.
    session: SessionId,
    branch: String,
    path: Vec<Arc<Entry>>,
    bus: Arc<Bus>,
    scope: EventScope,
}

/// The chance before a compaction of the open session; `None`: there is none, or nothing happened since the last one.
pub(crate) fn before_compaction(core: &mut Core) -> Option<MemorySave> {
    let path = since(&core.session.history.path, core.context.saved);
    if !path.iter().any(|e| matches!(e.body, EntryBody::ToolResult { .. })) && prompts(&path) < 2 {
        return None;
    }
    prepare(core, path)
}

/// The chance of the open session, which is left for another one. Does not wait for it.
pub(crate) fn at_end(core: &mut Core) {
    let path = since(&core.session.history.path, core.context.saved);
    let save = prepare(core, path).filter(|save| is_worthwhile(&save.path));
    core.context.saved = None;
    if let Some(save) = save {
        core.spawn(async move { save.run().await });
    }
}

/// The chance of the last session of this folder, which was quit. Does not wait for it.
pub(crate) fn of_previous_session(core: &mut Core) {
    let Some(mut save) = prepare(core, Vec::new()).filter(|_| core.services.made_by == MadeBy::Person) else {
        return;
    };
    let project = tiller_protocol::names::written(&core.services.workspace.root);
    let open = core.session.id;
    core.spawn(async move {
        let store = save.store.clone();
        let found = tokio::task::spawn_blocking(move || last(&store, &project, open)).await;
        let Ok(Some((session, branch, path))) = found else { return };
        (save.session, save.branch, save.path) = (session, branch, path);
        save.run().await;
    });
}

/// The last session of a folder with its path, when it is worth a request and had none.
fn last(store: &Store, project: &str, open: SessionId) -> Option<(SessionId, String, Vec<Arc<Entry>>)> {
    let summary = store.sessions().last_own(project).ok()??;
    if summary.id == open || summary.open_in.is_some() || summary.exec {
        return None;
    }
    let head = store.sessions().get(summary.id).ok()?.head;
    let path = session::path_of(store.paths().context(summary.id, &head).ok()?);
    let saved = store.meta(&key(summary.id)).ok()?;
    let saved = saved.as_deref().and_then(|id| path.iter().find(|e| e.id.to_string() == id)).map(|e| e.id);
    let path = since(&path, saved);
    is_worthwhile(&path).then_some((summary.id, head, path))
}

/// Where the store keeps the last entry that a chance has seen.
fn key(session: SessionId) -> String {
    format!("memory saved {session}")
}

/// What was said after an entry.
fn since(path: &[Arc<Entry>], saved: Option<EntryId>) -> Vec<Arc<Entry>> {
    let from = saved.and_then(|id| path.iter().position(|e| e.id == id)).map_or(0, |at| at + 1);
    path[from..].to_vec()
}

fn prompts(path: &[Arc<Entry>]) -> usize {
    let typed = |e: &&Arc<Entry>| matches!(&e.body, EntryBody::User { origin, .. } if !origin.is_of_tiller());
    path.iter().filter(typed).count()
}

fn is_worthwhile(path: &[Arc<Entry>]) -> bool {
    let said = path.iter().filter(|e| !matches!(e.body, EntryBody::Prefix { .. }));
    prompts(path) >= PROMPTS || said.map(|e| tokens::of_entry(e)).sum::<u64>() >= TOKENS
}

fn prepare(core: &mut Core, path: Vec<Arc<Entry>>) -> Option<MemorySave> {
    let config = core.services.config();
    let memory = core.services.user.memory.clone()?;
    let may = config.memory.save && config.memory.approve != MemoryApproval::Never;
    if !may || !core.identity.owns_session() || core.session.read_only {
        return None;
    }
    let tool: &dyn Tool = core.services.tool("memory")?;
    let spec = tool.spec();
    let asked = compaction::summariser(core);
    if model::is_demo(core, &asked) || money::may_ask(core, &asked).is_err() {
        return None;
    }
    let provider = model::provider(core, &asked).ok()?;
    let save = MemorySave {
        memory,
        side: side_call::side_call(core, provider, &asked),
        spec,
        catalog: core.services.tools.all.catalog(),
        store: core.services.store.clone(),
        redact: Arc::clone(&core.services.redaction.redact),
        session: core.session.id,
        branch: core.session.head.name.clone(),
        path,
        bus: Arc::clone(&core.bus),
        scope: core.scope(),
    };
    if let Some(last) = save.path.last() {
        core.context.saved = Some(last.id);
    }
    Some(save)
}

impl MemorySave {
    /// Asks once. A failure is no concern of the user's: it is logged.
    pub(crate) async fn run(self) {
        let Some(last) = self.path.last().map(|e| e.id) else { return };
        let (memory, store, key) = (Arc::clone(&self.memory), self.store.clone(), key(self.session));
        let known = key.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let files = [MemoryFile::User, MemoryFile::Memory].into_iter().flat_map(|file| memory.live(file));
            let kept = files.map(|(_, text)| text).collect::<Vec<_>>().join("\n");
            (kept, store.meta(&known).ok().flatten())
        });
        let (kept, before) = kept.await.unwrap_or_default();
        let text = format!(
            "Already kept:\n{kept}\n\nThe conversation:\n{}",
            compact::transcript(&self.path, None, SEEN)
        );
        let text = (self.redact)(&text);
        let asked = self.side.ask_tool(PROMPT, text, self.spec.clone(), ROOM);
        // Another process must not ask meanwhile. Not awaited: a chance that is not stored is given again.
        drop(self.store.set_meta(&key, Some(last.to_string())));
        let answer = match tokio::time::timeout(TIME, asked).await {
            Ok(Ok(calls)) => Ok(calls),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it took too long".to_owned()),
        };
        let calls = match answer {
            Ok(calls) => calls,
            Err(error) => {
                // A chance that no model answered is given again at the next start.
                drop(self.store.set_meta(&key, before));
                return tracing::warn!(%error, "the model could not be asked what to keep");
            }
        };
        let texts: Vec<_> =
            calls.iter().filter_map(|call| entry(&call.name, &call.arguments)).take(ENTRIES).collect();
        let mut words = Vec::new();
        for (target, text) in texts {
            let from = Provenance {
                session: Some(self.session),
                entry: Some(last),
                branch: self.branch.clone(),
                agent: AgentId::main(),
                taint: Taint::Agent,
            };
            let (memory, path, catalog) = (Arc::clone(&self.memory), self.path.clone(), self.catalog.clone());
            let store = self.store.clone();
            let work = move || {
                let imported = imported(&store, &path);
                let reading = Reading { catalog: &catalog, memory: Some(&memory), imported: &imported };
                let taint = reading.of_all(&path, &text);
                keep(&memory, target, text, Provenance { taint, ..from })
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok(said)) => words.push(said),
                // It is there already, or is refused.
                Ok(Err(error)) => tracing::info!(%error, "an entry was not kept"),
                Err(_) => {}
            }
        }
        if let Some(first) = words.first() {
            let more =
                if words.len() > 1 { format!(", and {} more", words.len() - 1) } else { String::new() };
            let notice =
                Notice::new(NoticeKind::Info, format!("{first}{more}")).hint("/memory lists and undoes it");
            let event = tiller_protocol::event::StateEvent::Notice { notice };
            self.bus.publish(&self.scope, tiller_protocol::EventBody::State(event));
        }
    }
}

/// The entry that a call asks for.
fn entry(name: &str, arguments: &Value) -> Option<(MemoryTarget, String)> {
    let word = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    if name != "memory" || !matches!(word("action"), "append" | "add") {
        return None;
    }
    let file = if word("file") == "user" { MemoryFile::User } else { MemoryFile::Memory };
    let scope = if word("scope") == "project" { MemoryScope::Project } else { MemoryScope::User };
    Some((MemoryTarget { file, scope }, word("text").to_owned()))
}

/// Writes an entry, or keeps it for the user, who is not asked in a dialog that nothing waits for.
fn keep(
    memory: &Memory,
    target: MemoryTarget,
    text: String,
    from: Provenance,
) -> Result<String, tiller_memory::MemoryError> {
    let words = text.clone();
    let planned = memory.plan(target, &Edit::Append(text), from)?;
    match memory.route_of(&planned) {
        Route::Write => {
            memory.carry_out(&planned)?;
            Ok(format!("kept in {}: {words}", target.label()))
        }
        Route::Ask | Route::Pend => {
            memory.pend(&planned)?;
            Ok(format!("an entry of memory waits for you: {words}"))
        }
        Route::Never => Ok(String::new()),
    }
}
