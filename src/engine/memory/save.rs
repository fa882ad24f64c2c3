//! The agent's chance to save: one request with only the tool `memory`, before a compaction and after a session was left. It is
//! beside the conversation: neither its prefix nor its entries change.
//!
//! A session that is quit gets its chance at the next start in the same folder (see `late`), so that quitting never waits for a
//! model.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiller_config::schema::MemoryApproval;
use tiller_memory::Memory;
use tiller_memory::files::{Edit, Route};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentId, Clock, Entry, EntryBody, EntryId, EventBody, MemoryFile, MemoryRights, MemoryScope,
    MemoryTarget, ModelRef, Notice, NoticeKind, Provenance, SessionId, Taint, Time, ToolCall, ToolCatalog,
    ToolSpec,
};
use tiller_store::Store;
use tiller_tool::Tool;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, EventScope};
use crate::context::compaction::{self, compact};
use crate::context::side_call::{self, SideCall};
use crate::context::tokens;
use crate::core::Core;
use crate::core::services::Redact;
use crate::memory::claim::{self, Claim};
use crate::memory::msg::LateChance;
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
    /// Whether a path is worth the request, without what the store says that an earlier chance has seen.
    is_worth: fn(&[Arc<Entry>]) -> bool,
    /// What the store has of the last chance of a session that ended; of the open one it is read.
    stored: Option<Option<String>>,
    clock: Arc<dyn Clock>,
    /// Ends the request before its answer; the session keeps its chance.
    cancel: CancellationToken,
    bus: Arc<Bus>,
    scope: EventScope,
}

/// The chance before a compaction of the open session; `None`: there is none, or nothing happened since the last one.
pub(crate) fn before_compaction(core: &mut Core) -> Option<MemorySave> {
    let path = since(&core.session.history.path, core.context.saved);
    if !is_worthwhile_midway(&path) {
        return None;
    }
    let own = core.session.model.clone();
    prepare(core, &own, path, is_worthwhile_midway)
}

/// The chance of the open session, which is left for another one. Does not wait for it.
pub(crate) fn at_end(core: &mut Core) {
    let path = since(&core.session.history.path, core.context.saved);
    let own = core.session.model.clone();
    let save = prepare(core, &own, path, is_worthwhile).filter(|save| is_worthwhile(&save.path));
    core.context.saved = None;
    if let Some(save) = save {
        core.spawn(async move { save.run().await });
    }
}

/// A session that ended without its chance.
pub(super) struct Ended {
    session: SessionId,
    branch: String,
    /// What no chance has seen.
    path: Vec<Arc<Entry>>,
    /// What the store has of its last chance.
    stored: Option<String>,
}

/// A session that ended, when it is worth a request, had none, and is open nowhere. `now`: the clock's time. Blocks.
pub(super) fn ended(store: &Store, session: SessionId, now: Time) -> Option<Ended> {
    let row = store.sessions().get(session).ok()?;
    if row.summary.open_in.is_some() || row.trashed.is_some() {
        return None;
    }
    let branch = row.head;
    let path = session::path_of(store.paths().context(session, &branch).ok()?);
    let stored = store.meta(&claim::key(session)).ok()?;
    let path = unseen(&path, stored.as_deref(), now);
    is_worthwhile(&path).then_some(Ended { session, branch, path, stored })
}

/// What was said after an entry.
fn since(path: &[Arc<Entry>], saved: Option<EntryId>) -> Vec<Arc<Entry>> {
    let from = saved.and_then(|id| path.iter().position(|e| e.id == id)).map_or(0, |at| at + 1);
    path[from..].to_vec()
}

/// What no chance has seen, by what the store has of the last one.
fn unseen(path: &[Arc<Entry>], stored: Option<&str>, now: Time) -> Vec<Arc<Entry>> {
    let saved = stored.and_then(|value| claim::seen(value, now));
    let saved = saved.and_then(|id| path.iter().find(|e| e.id.to_string() == id)).map(|e| e.id);
    since(path, saved)
}

fn prompts(path: &[Arc<Entry>]) -> usize {
    let typed = |e: &&Arc<Entry>| matches!(&e.body, EntryBody::User { origin, .. } if !origin.is_of_tiller());
    path.iter().filter(typed).count()
}

/// Whether a path is worth a request before a compaction.
fn is_worthwhile_midway(path: &[Arc<Entry>]) -> bool {
    path.iter().any(|e| matches!(e.body, EntryBody::ToolResult { .. })) || prompts(path) >= 2
}

/// Whether a path is worth a request at the end of its session.
pub(super) fn is_worthwhile(path: &[Arc<Entry>]) -> bool {
    let said = path.iter().filter(|e| !matches!(e.body, EntryBody::Prefix { .. }));
    prompts(path) >= PROMPTS || said.map(|e| tokens::of_entry(e)).sum::<u64>() >= TOKENS
}

/// Whether sessions get a chance to save: memory is on, and this engine may write it.
pub(super) fn is_on(core: &Core) -> bool {
    let config = core.services.config();
    core.services.user.memory.is_some()
        && config.memory.save
        && config.memory.approve != MemoryApproval::Never
        && core.services.user.memory_rights == MemoryRights::Write
        && core.identity.owns_session()
        && !core.session.read_only
}

/// The request about what of `path` is to be kept, which is made if `is_worth` says so of what no chance has seen. `own`: the model
/// that its session was led with. `None`: memory is off, or that model cannot be asked.
pub(super) fn prepare(
    core: &mut Core,
    own: &ModelRef,
    path: Vec<Arc<Entry>>,
    is_worth: fn(&[Arc<Entry>]) -> bool,
) -> Option<MemorySave> {
    let memory = core.services.user.memory.clone().filter(|_| is_on(core))?;
    let tool: &dyn Tool = core.services.tool("memory")?;
    let spec = tool.spec();
    let asked = compaction::summariser_of(core, own);
    if model::is_demo(core, own) || model::is_demo(core, &asked) || money::may_ask(core, &asked).is_err() {
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
        is_worth,
        stored: None,
        clock: Arc::clone(&core.services.clock),
        cancel: CancellationToken::new(),
        bus: Arc::clone(&core.bus),
        scope: core.scope(),
    };
    if let Some(last) = save.path.last() {
        core.context.saved = Some(last.id);
    }
    Some(save)
}

impl MemorySave {
    /// The database of the session.
    pub(super) fn store(&self) -> Store {
        self.store.clone()
    }

    /// The clock's time.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Ends the request before its answer; the session keeps its chance.
    pub(super) fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// The request about a session that ended.
    pub(super) fn of(self, ended: Ended) -> Self {
        let Ended { session, branch, path, stored } = ended;
        Self { session, branch, path, stored: Some(stored), ..self }
    }

    /// Asks once, and shows the user a notice about what is kept.
    pub(crate) async fn run(self) {
        let (bus, scope) = (Arc::clone(&self.bus), self.scope.clone());
        if let LateChance::Asked(kept) = self.ask().await
            && let Some(notice) = notice(&kept)
        {
            bus.publish(&scope, EventBody::State(StateEvent::Notice { notice }));
        }
    }

    /// Asks once, unless nothing is worth it that no chance has seen, or another process asks. A model that fails is no concern of
    /// the user's and is logged.
    pub(super) async fn ask(mut self) -> LateChance {
        let (kept, stored) = self.known().await;
        let now = self.clock.now();
        self.path = unseen(&self.path, stored.as_deref(), now);
        let Some(last) = self.path.last().map(|e| e.id).filter(|_| (self.is_worth)(&self.path)) else {
            return LateChance::Skipped;
        };
        // Another process must not ask meanwhile.
        let Some(claim) = Claim::take(&self.store, self.session, last, stored, now).await else {
            return LateChance::Skipped;
        };
        let text = format!(
            "Already kept:\n{kept}\n\nThe conversation:\n{}",
            compact::transcript(&self.path, None, SEEN)
        );
        let text = (self.redact)(&text);
        let asked = self.side.ask_tool(PROMPT, text, self.spec.clone(), ROOM);
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                claim.give_back().await;
                return LateChance::Cancelled;
            }
            answer = tokio::time::timeout(TIME, asked) => answer,
        };
        let answer = match answer {
            Ok(Ok(calls)) => Ok(calls),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it took too long".to_owned()),
        };
        match answer {
            Ok(calls) => {
                let kept = self.keep_all(&calls, last).await;
                claim.used().await;
                LateChance::Asked(kept)
            }
            Err(error) => {
                // A chance that no model answered is given again at the next start.
                tracing::warn!(%error, "the model could not be asked what to keep");
                claim.give_back().await;
                LateChance::Failed
            }
        }
    }

    /// What is kept already, and what the store has of the last chance of the session.
    async fn known(&self) -> (String, Option<String>) {
        let (memory, store, key) = (Arc::clone(&self.memory), self.store.clone(), claim::key(self.session));
        let stored = self.stored.clone();
        let known = tokio::task::spawn_blocking(move || {
            let files = [MemoryFile::User, MemoryFile::Memory].into_iter().flat_map(|file| memory.live(file));
            let kept = files.map(|(_, text)| text).collect::<Vec<_>>().join("\n");
            (kept, stored.unwrap_or_else(|| store.meta(&key).ok().flatten()))
        });
        known.await.unwrap_or_default()
    }

    /// Keeps the entries that the calls ask for. Returns what was kept, in sentences. `last`: the last entry that the model saw.
    async fn keep_all(&self, calls: &[ToolCall], last: EntryId) -> Vec<String> {
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
        words
    }
}

/// The notice about what was kept, from sentences; `None`: nothing was.
pub(super) fn notice(kept: &[String]) -> Option<Notice> {
    let first = kept.first()?;
    let more = if kept.len() > 1 { format!(", and {} more", kept.len() - 1) } else { String::new() };
    Some(Notice::new(NoticeKind::Info, format!("{first}{more}")).hint("/memory lists and undoes it"))
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
