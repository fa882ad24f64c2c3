//! One tool call on a task of its own: permission check, question to the user, execution.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tiller_permit::CallReach;
use tiller_protocol::ask::CommandSource;
use tiller_protocol::view::AuditRow;
use tiller_protocol::{
    Access, AgentId, Entry, EntryId, Part, Profile, Provenance, SessionId, Taint, ToolOutcome, ToolVerb,
    Touch,
};
use tiller_tool::shell::{PathBefore, blocked_words};
use tiller_tool::{Tool, ToolCx, ToolOutput, run_guarded};
use tokio::sync::mpsc;

use crate::bus::{Bus, EventScope};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::Services;
use crate::decision::{self, HookedCall, Refusal};
use crate::files::record;
use crate::memory::origin::{self, Reading, of_person};
use crate::questions::heard::EntrySource;
use crate::questions::permission::{Permit, Question};
use crate::turn::CallResult;
use crate::turn::msg::CallDone;
use crate::undo::before::{self, Reviews};
use crate::watching::Writes;

pub(crate) mod calls;
mod cover;
mod decide;
mod hooked;
pub(crate) mod inner;
mod outside;
mod script;
mod share;
pub(crate) mod words;

pub(crate) use words::{AUDIT_TEXT, cut, failed, text_of, what};

/// Time after the tool's own grace period until a call that does not end is abandoned.
const LEFT_BEHIND: Duration = Duration::from_millis(1500);
/// Longest command of the user's that is reported to the model, in bytes.
const CHANGED: usize = 10_000;

/// One tool call, from the permission check to its result.
pub(crate) struct CallTask {
    pub(crate) services: Arc<Services>,
    pub(crate) bus: Arc<Bus>,
    /// Reports to the engine's loop.
    pub(crate) tx: mpsc::Sender<Msg>,
    pub(crate) tool: &'static dyn Tool,
    pub(crate) args: Value,
    pub(crate) cx: ToolCx,
    pub(crate) origin: CallOrigin,
    pub(crate) files: CallFiles,
    pub(crate) permit: Permit,
    pub(crate) profile: Profile,
    /// Whether the user was asked: a call that seems to be read-only may then do more.
    pub(crate) asked: bool,
    /// The command that the user wrote in place of the model's.
    pub(crate) changed: Option<String>,
    /// What hooks said about the call.
    pub(crate) hooked: HookedCall,
    /// What the call comes to, as it was found before it ran.
    pub(crate) reach: Option<CallReach>,
    /// Of a call that a script makes.
    pub(crate) inner: Option<inner::InnerPart>,
}

/// Where a call comes from.
pub(crate) struct CallOrigin {
    /// Session, agent and command of its events.
    pub(crate) scope: EventScope,
    /// The main agent's session: what is allowed there is allowed to all its agents.
    pub(crate) root: SessionId,
    /// The user's message that the turn answers.
    pub(crate) prompt: Option<EntryId>,
    /// The own command whose text has the call; `None`: a model made it.
    pub(crate) command: Option<CommandSource>,
    /// The reply that made the call, and its branch.
    pub(crate) reply: Option<EntryId>,
    pub(crate) branch: String,
    /// The turn answers `/init`, or works for one that does: AGENTS.md is written when the user has seen the difference, whatever the mode.
    pub(crate) init: bool,
    /// The conversation, for a call that may send something or begins agents, which may; else empty.
    pub(crate) path: Vec<Arc<Entry>>,
}

/// The message of `/init`.
const INIT: &str = include_str!("../../../assets/prompts/init.md");
/// The file that it writes.
const INSTRUCTIONS: &str = "AGENTS.md";

impl CallOrigin {
    /// Whether the agent's turn answers `/init`, or it works for such a turn.
    pub(crate) fn in_init(core: &Core) -> bool {
        let answers = |prompt: &str| prompt.trim_start().starts_with(INIT.trim());
        let delegated = core.identity.child().is_some_and(|child| child.assignment.init);
        delegated || core.turn.live.as_ref().is_some_and(|live| answers(&live.prompt))
    }

    /// The origin of what happens while the call runs.
    pub(crate) fn of_call(&self, agent: &AgentId, session: SessionId) -> Provenance {
        Provenance {
            session: Some(session),
            entry: self.reply,
            branch: self.branch.clone(),
            agent: agent.clone(),
            taint: Taint::ToolOutput,
        }
    }

    /// The mode in which a call with these arguments is judged.
    pub(crate) fn mode(&self, profile: Profile, touch: Touch, args: &Value) -> Profile {
        // A command or script that names the file may write it.
        let writes = self.init && touch != Touch::Read && args.to_string().contains(INSTRUCTIONS);
        if writes { profile.min(Profile::Ask) } else { profile }
    }
}

/// The files that a call touches, and what records them.
pub(crate) struct CallFiles {
    pub(crate) reviews: Arc<Mutex<Reviews>>,
    pub(crate) writes: Writes,
    pub(crate) watched: crate::files::SessionFiles,
    /// Paths that the call declared to write.
    pub(crate) written: Vec<PathBuf>,
    /// Paths that it declared to read or write.
    pub(crate) touched: Vec<PathBuf>,
}

impl CallTask {
    /// A question about this call that no state of a shell bears on.
    fn question<'q>(&'q self, verb: &'q ToolVerb, target: &'q str, access: &'q [Access]) -> Question<'q> {
        Question {
            agent: &self.cx.agent,
            tool: self.tool.name(),
            verb,
            target,
            touch: self.tool.touch(),
            args: &self.args,
            access,
            profile: self.profile,
            shell: None,
            terminal: self.cx.workspace.terminal().map(|t| t.place()),
        }
    }

    /// The call for the audit, with the terminal elsewhere where it ran.
    fn audited(&self) -> String {
        let mut args = self.args.clone();
        let there = self.cx.workspace.terminal().filter(|_| self.tool.touch() == Touch::Execute);
        if let (Some(terminal), Some(fields)) = (there, args.as_object_mut()) {
            fields.insert("terminal".into(), terminal.name().into());
        }
        what(&self.services.redaction.redact, &args)
    }

    /// What decided about the call, and what the sandbox refused to it.
    fn with_refused(&self, by: String) -> String {
        let refused = blocked_words(&self.cx.run.refused.all());
        let refused = (!refused.is_empty()).then(|| format!("the sandbox blocked {refused}"));
        let more: Vec<String> = self.cx.run.notes().into_iter().chain(refused).collect();
        if more.is_empty() {
            return by;
        }
        cut(&(self.services.redaction.redact)(&format!("{by}; {}", more.join("; "))), AUDIT_TEXT)
    }

    pub(crate) async fn run(mut self) -> CallDone {
        self.carry_out().await
    }

    /// Decides about it, and runs it.
    async fn carry_out(&mut self) -> CallDone {
        let began = self.services.clock.mono();
        let time = self.services.clock.now();
        let mut step = None;
        self.hear().await;
        let (decided, mut result) = match decision::decide(self).await {
            Ok(mut decided) => {
                // The call may change where its links lead, and the folder of its shell.
                self.reach = self.reach_for_rules();
                let start = self.services.clock.mono();
                let mut executed = self.execute().await;
                // A yes to the calls of a script is given once; a decision for a profile that allows more, twice at most.
                while self.blocked() || self.cx.run.script.waits() {
                    if self.cx.run.script.waits()
                        && let Ok((result, _)) = &mut executed
                    {
                        let shown = result.display.take();
                        match self.decide_script(shown).await {
                            Ok(again) => {
                                decided = again;
                                executed = self.execute().await;
                                continue;
                            }
                            Err(refused) => {
                                executed = Err(refused);
                                break;
                            }
                        }
                    }
                    match self.decide_again().await {
                        Ok(again) => {
                            decided = again;
                            executed = self.execute().await;
                        }
                        Err(note) => {
                            if let Ok((result, _)) = &mut executed {
                                result.content.extend(note);
                            }
                            break;
                        }
                    }
                }
                match executed {
                    Ok((mut result, kept)) => {
                        step = kept;
                        result.seconds = self.services.since(start);
                        if let Some(by) = self.hooks_after(&mut result).await {
                            decided.by = format!("{}; {by}", decided.by);
                        }
                        (decided, result)
                    }
                    Err(refused) => {
                        let (decided, mut result) = *refused;
                        result.seconds = self.services.since(start);
                        (decided, result)
                    }
                }
            }
            Err(refused) => {
                let (decided, mut result) = *refused;
                result.seconds = self.services.since(began);
                (decided, result)
            }
        };
        let audit = AuditRow {
            time,
            session: self.cx.session,
            agent: self.cx.agent.0.clone(),
            tool: self.tool.name().to_owned(),
            what: self.audited(),
            decision: decided.decision,
            by: self.with_refused(decided.by),
            seconds: result.seconds,
            outcome: result.outcome.into(),
        };
        if let Some(text) = &self.changed {
            let what = if self.tool.touch() == Touch::Execute { "command" } else { "text" };
            let text = format!("[The user changed the {what} to: {}]", cut(text, CHANGED));
            result.put_before(text);
        }
        self.hooked_words(&mut result);
        let note = self.attach(&mut result).await;
        let replaced = self.changed.take().is_some() || !self.hooked.changed_by.is_empty();
        let args = replaced.then(|| std::mem::take(&mut self.args));
        self.files.writes.look(&self.cx.agent, &self.cx.workspace).await;
        let wrote = if result.outcome.ok() { std::mem::take(&mut self.files.written) } else { Vec::new() };
        self.cx.workspace.forget(&self.cx.call_id);
        CallDone { result, step, audit, args, wrote, note }
    }

    /// Takes in what was said and read before a call that may send something.
    async fn hear(&mut self) {
        let path = std::mem::take(&mut self.origin.path);
        if path.is_empty() {
            return;
        }
        let (permit, services, session) = (self.permit.clone(), Arc::clone(&self.services), self.cx.session);
        let work = move || {
            let (catalog, imported) =
                (services.tools.all.catalog(), origin::imported(&services.store, &path));
            let memory = services.user.memory.as_deref();
            let reading = Reading { catalog: &catalog, memory, imported: &imported };
            permit.hear(session, &path, |entry| EntrySource {
                user: of_person(entry) && !imported.contains(&entry.id),
                taint: reading.of(entry),
            });
        };
        if tokio::task::spawn_blocking(work).await.is_err() {
            self.permit.heard_unknown();
        }
    }

    /// Runs it. A tool that ignores cancellation is detached after the grace period.
    ///
    /// # Errors
    /// When the files could not be kept before it, and the user denied the call for that.
    async fn execute(&self) -> Result<(CallResult, Option<crate::files::PendingStep>), Refusal> {
        let mut args = self.args.clone();
        if args.is_null() {
            args = Value::Object(serde_json::Map::new());
        }
        self.keep_before().await;
        let running = self.before_unconfined_program().await;
        if self.tool.touch() == Touch::Execute && !self.is_covered() {
            self.cx.witness.begin(SystemTime::now());
        }
        // The first snapshot of a large folder takes seconds: an interrupt does not wait for it.
        let before = tokio::select! {
            before = self.files_before() => before.transpose(),
            () = self.cx.cancel.cancelled() => Ok(None),
        };
        let cover::CallBackup { before, copies } = match before {
            Ok(covered) => covered.unwrap_or_default(),
            Err(error) => {
                self.unkept(error).await?;
                cover::CallBackup::default()
            }
        };
        let runs = self.tool.touch() == Touch::Execute;
        let what = if runs { self.tool.target(&self.args) } else { String::new() };
        if runs {
            self.files.writes.command(&self.cx.agent, &what, Some(&self.cx.witness), true);
        }
        // No supervisor sees what the tool of an inner call itself writes.
        let inner = self.files.written.iter().filter(|_| self.is_covered());
        let was: Vec<PathBefore> = inner.map(|path| PathBefore::of(path)).collect();
        let mut result = self.run_until_late(args).await;
        self.after_unconfined_program(running).await;
        for old in &copies {
            result.content.push(Part::Text { text: old.sentence() });
        }
        if runs && self.cx.workspace.terminal().is_some() {
            self.cx.witness.goes_blind();
        }
        was.iter().for_each(|path| self.cx.witness.wrote(path));
        self.cx.witness.end();
        let step = before
            .and_then(|before| Some(record::after(self.services.snapshots.workspace.as_ref()?, before)));
        if runs {
            self.files.writes.command(&self.cx.agent, &what, Some(&self.cx.witness), false);
        }
        self.files.writes.known(&self.cx.workspace, &self.files.touched);
        Ok((result, step))
    }

    /// Keeps files before the call writes them, for the review of the turn.
    async fn keep_before(&self) {
        let Some(turn) = self.origin.prompt.filter(|_| !self.files.written.is_empty()) else { return };
        let (reviews, root) = (Arc::clone(&self.files.reviews), self.cx.workspace.root.clone());
        let paths = self.files.written.clone();
        let kept = tokio::task::spawn_blocking(move || {
            for path in paths {
                before::keep(&reviews, turn, &root, &path);
            }
        });
        // After a panic there the review of the turn is less exact.
        let _ = kept.await;
    }

    async fn run_until_late(&self, args: Value) -> CallResult {
        let late = async {
            self.cx.cancel.cancelled().await;
            let grace = self.cx.limits.grace;
            tokio::select! {
                () = tokio::time::sleep(grace + LEFT_BEHIND) => {}
                () = async {
                    self.cx.hard.cancelled().await;
                    tokio::time::sleep(LEFT_BEHIND).await;
                } => {}
            }
        };
        tokio::select! {
            done = run_guarded(self.tool, args, &self.cx) => match done {
                Ok(ToolOutput { content, display, outcome }) => {
                    let unanswered = self.cx.run.is_unanswered();
                    CallResult { content, display, unanswered, ..CallResult::text(outcome, "") }
                }
                Err(e) => failed(e),
            },
            () = late => CallResult::text(
                ToolOutcome::Interrupted,
                "Interrupted by the user. The process did not end when asked to and was left running.",
            ),
        }
    }
}
