//! One tool call on its own task: judged, asked about, run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tiller_permit::Verdict;
use tiller_protocol::tool::Display;
use tiller_protocol::view::AuditRow;
use tiller_protocol::{
    Access, AskBody, AskReply, Decision, Entry, EntryBody, EntryId, EventBody, Part, Profile, SessionId,
    ToolOutcome, Touch,
};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput, run_guarded};
use tokio::sync::mpsc;

use crate::before::{self, Reviews};
use crate::bus::{Bus, Place};
use crate::files::record;
use crate::judge::{Permit, Question, permission_ask};
use crate::msg::Msg;
use crate::turn::CallResult;
use crate::watching::Writes;
use crate::world::{Redact, World};

/// Beyond the tool's own grace, until a call that does not end is left behind.
const LEFT_BEHIND: Duration = Duration::from_millis(1500);
/// Longest text of an act in the audit.
pub(crate) const WHAT: usize = 2_000;
/// Longest command of the person's that the model is told.
const CHANGED: usize = 10_000;

/// How a call ended, with its row for the audit.
pub(crate) struct CallDone {
    pub(crate) result: CallResult,
    /// What it did to the files, once that is known.
    pub(crate) step: Option<crate::files::Waiting>,
    pub(crate) audit: AuditRow,
    /// What it ran with, where the person changed that.
    pub(crate) args: Option<Value>,
    /// Files that it declared to write, and did not fail to.
    pub(crate) wrote: Vec<PathBuf>,
}

/// A decision in words.
struct Decided {
    decision: &'static str,
    by: String,
}

pub(crate) struct Job {
    pub(crate) w: Arc<World>,
    pub(crate) bus: Arc<Bus>,
    pub(crate) place: Place,
    pub(crate) tool: &'static dyn Tool,
    pub(crate) args: Value,
    pub(crate) cx: ToolCx,
    pub(crate) permit: Permit,
    pub(crate) profile: Profile,
    pub(crate) tx: mpsc::Sender<Msg>,
    pub(crate) session: SessionId,
    /// The main agent's: what is allowed there is allowed to all.
    pub(crate) root: SessionId,
    pub(crate) turn: Option<EntryId>,
    pub(crate) reviews: Arc<Mutex<Reviews>>,
    pub(crate) writes: Writes,
    pub(crate) watched: crate::files::Watched,
    /// Paths that the call declared to write.
    pub(crate) paths: Vec<PathBuf>,
    /// And those that it declared to read or write.
    pub(crate) known: Vec<PathBuf>,
    /// The command that the person wrote in the place of the model's.
    pub(crate) changed: Option<String>,
}

impl Job {
    pub(crate) async fn run(mut self) -> CallDone {
        let began = self.w.clock.mono();
        let time = self.w.clock.now();
        let mut step = None;
        let (decided, mut result) = match self.decide().await {
            Ok(decided) => {
                let start = self.w.clock.mono();
                let (mut result, kept) = self.execute().await;
                step = kept;
                result.seconds = self.w.since(start);
                (decided, result)
            }
            Err((decided, mut result)) => {
                result.seconds = self.w.since(began);
                (decided, result)
            }
        };
        let audit = AuditRow {
            time,
            session: self.session,
            agent: self.cx.agent.0.clone(),
            tool: self.tool.name().to_owned(),
            what: what(&self.w.redact, &self.args),
            decision: decided.decision.into(),
            by: decided.by,
            seconds: result.seconds,
            outcome: outcome_word(result.outcome).into(),
        };
        if let Some(text) = &self.changed {
            let text = format!("[The person changed the command to: {}]", cut(text, CHANGED));
            result.content.insert(0, Part::Text { text });
        }
        let args = self.changed.take().map(|_| std::mem::take(&mut self.args));
        self.writes.look(&self.cx.agent, &self.cx.workspace).await;
        let wrote = if result.outcome.ok() { std::mem::take(&mut self.paths) } else { Vec::new() };
        CallDone { result, step, audit, args, wrote }
    }

    /// May it run? Asks the person where the rules say so; text that the person changed is judged anew.
    async fn decide(&mut self) -> Result<Decided, (Decided, CallResult)> {
        for notice in self.permit.refresh() {
            let event = tiller_protocol::event::StateEvent::Notice { notice };
            self.bus.publish(&self.place, EventBody::State(event));
        }
        // A bound on the way round: each needs a person's keystrokes.
        for _ in 0..20 {
            let access = match self.tool.access(&self.args, &self.cx) {
                Ok(access) => access,
                Err(e) => {
                    let decided = Decided { decision: "none", by: "the tool".into() };
                    return Err((decided, failed(e)));
                }
            };
            self.paths.clear();
            self.known.clear();
            for a in &access {
                if let Access::Write { path, .. } | Access::Read { path, .. } = a {
                    self.known.push(PathBuf::from(path));
                }
                if let Access::Write { path, .. } = a {
                    self.paths.push(PathBuf::from(path));
                }
            }
            let agent = self.cx.agent.clone();
            let target = self.tool.target(&self.args);
            let args = self.args.clone();
            let question = Question {
                agent: &agent,
                tool: self.tool.name(),
                verb: self.tool.verb(),
                target: &target,
                touch: self.tool.touch(),
                args: &args,
                access: &access,
                profile: self.profile,
            };
            let verdict = self.permit.judge(&question);
            let verdict = match verdict {
                Verdict::Allow { rule } => return Ok(Decided { decision: "allow", by: rule }),
                Verdict::Deny { rule, reason } => {
                    let result = CallResult::text(ToolOutcome::Denied, format!("Denied: {reason}."));
                    self.tell("deny", &rule);
                    return Err((Decided { decision: "deny", by: rule }, result));
                }
                ask @ Verdict::Ask { .. } => ask,
            };
            if let Err(e) = self.tool.ready(&self.args, &self.cx, self.readable(&access)).await {
                let decided = Decided { decision: "none", by: "the tool, before anybody was asked".into() };
                return Err((decided, failed(e)));
            }
            let diff = self.tool.preview(&self.args, &self.cx).await;
            let Some(ask) = permission_ask(&question, verdict, diff) else { continue };
            let rule = ask.rule.clone();
            let answer = tokio::select! {
                answer = self.cx.ports.ask(&agent, AskBody::Permission(ask)) => answer,
                () = self.cx.cancel.cancelled() => {
                    let decided = Decided { decision: "none", by: "stopped before an answer".into() };
                    return Err((decided, CallResult::interrupted()));
                }
            };
            match self.answered(answer, &rule) {
                Some(outcome) => return outcome,
                None => continue,
            }
        }
        let decided = Decided { decision: "deny", by: "changed too often".into() };
        Err((decided, CallResult::text(ToolOutcome::Denied, "Denied: the command was changed too often.")))
    }

    /// Whether the agent could read, unasked, what it declared to write.
    fn readable(&self, access: &[Access]) -> bool {
        access.iter().all(|a| {
            let Access::Write { path, inside } = a else { return true };
            let read = [Access::Read { path: path.clone(), inside: *inside }];
            let question = Question {
                agent: &self.cx.agent,
                tool: "read_file",
                verb: "read",
                target: path,
                touch: Touch::Read,
                args: &Value::Null,
                access: &read,
                profile: self.profile,
            };
            matches!(self.permit.judge(&question), Verdict::Allow { .. })
        })
    }

    /// What an answer means; `None`: the text was changed and is to be judged.
    fn answered(
        &mut self,
        answer: Result<AskReply, String>,
        rule: &str,
    ) -> Option<Result<Decided, (Decided, CallResult)>> {
        let by = if self.changed.is_some() { "the person, who changed it" } else { "the person" };
        let person = |decision| Decided { decision, by: by.into() };
        let no = |decision: &'static str, by: String, text: String, nobody: bool| {
            let result = CallResult { nobody, ..CallResult::text(ToolOutcome::Denied, text) };
            Some(Err((Decided { decision, by }, result)))
        };
        match answer {
            Err(why) => {
                self.tell("nobody", &why);
                let text = format!("Denied: this needs a person's yes, and {why} (rule: {rule}).");
                no("nobody", why, text, true)
            }
            Ok(AskReply::Permission { decision, .. }) => match decision {
                Decision::Once => Some(Ok(person("ask:once"))),
                Decision::Session { pattern } => {
                    self.remember(&pattern, false);
                    Some(Ok(person("ask:session")))
                }
                Decision::Always { pattern } => {
                    self.remember(&pattern, true);
                    Some(Ok(person("ask:always")))
                }
                Decision::Edit { text } => {
                    match self.args.get_mut("command") {
                        Some(command) if command.as_str() == Some(text.as_str()) => {}
                        Some(command) => {
                            *command = Value::String(text.clone());
                            self.changed = Some(text);
                        }
                        None => {
                            return no(
                                "deny",
                                "engine".into(),
                                "Denied: it cannot be changed.".into(),
                                false,
                            );
                        }
                    }
                    None
                }
                Decision::Deny { comment } => {
                    let text = match comment.filter(|c| !c.trim().is_empty()) {
                        Some(c) => format!("Denied by the person, who says: {c}"),
                        None => "Denied by the person.".into(),
                    };
                    no("ask:deny", by.into(), text, false)
                }
            },
            Ok(_) => no("ask:deny", "the person".into(), "Denied by the person.".into(), false),
        }
    }

    fn remember(&self, pattern: &str, always: bool) {
        let done = if always {
            self.permit.allow_always(pattern)
        } else {
            self.permit.allow_session(pattern).map(|()| {
                // The rule holds at once; that it survives a restart is second.
                drop(self.w.store.add_rule(self.root, pattern));
            })
        };
        if let Err(why) = done {
            let notice = tiller_protocol::Notice::new(
                tiller_protocol::NoticeKind::Config,
                format!("the rule could not be kept: {why}"),
            )
            .hint("this call runs once");
            self.bus.publish(
                &self.place,
                EventBody::State(tiller_protocol::event::StateEvent::Notice { notice }),
            );
        }
    }

    fn tell(&self, decision: &str, by: &str) {
        // The engine may have ended, or be behind: the audit has it all the same.
        let _ = self.tx.try_send(Msg::Decided {
            tool: self.tool.name().to_owned(),
            what: (self.w.redact)(&self.tool.target(&self.args)),
            decision: decision.to_owned(),
            by: by.to_owned(),
        });
    }

    /// Runs it. A tool that does not end after it was told to is left behind.
    async fn execute(&self) -> (CallResult, Option<crate::files::Waiting>) {
        let mut args = self.args.clone();
        if args.is_null() {
            args = Value::Object(serde_json::Map::new());
        }
        self.keep_before().await;
        let runs = self.tool.touch() == Touch::Execute;
        let what = if runs { self.tool.target(&self.args) } else { String::new() };
        if runs {
            self.writes.command(&self.cx.agent, &what, true);
        }
        // The first look at a large folder takes seconds: a stop does not wait for it.
        let before = tokio::select! {
            before = self.files_before() => before,
            () = self.cx.cancel.cancelled() => None,
        };
        let result = self.run_until_late(args).await;
        let step = before.and_then(|before| Some(record::after(self.w.files.as_ref()?, before)));
        if runs {
            self.writes.command(&self.cx.agent, &what, false);
        }
        self.writes.known(&self.cx.workspace, &self.known);
        (result, step)
    }

    /// Keeps the files as they are before the call changes them.
    async fn files_before(&self) -> Option<record::Before> {
        let what = match (self.tool.touch(), self.paths.is_empty()) {
            (Touch::Execute, _) if self.only_looks() => return None,
            (Touch::Execute, _) => record::What::All,
            (_, false) => record::What::Paths(self.paths.clone()),
            (_, true) => return None,
        };
        record::before(self.w.files.as_ref()?, what, self.watched.clone(), self.cx.call_id.clone()).await
    }

    /// Whether it is a command that leaves nothing to keep. Were that wrong, the next message keeps it all the same.
    fn only_looks(&self) -> bool {
        self.tool.access(&self.args, &self.cx).is_ok_and(|access| self.permit.only_looks(&access))
    }

    /// Files as they are before the call writes them, for the review of the turn.
    async fn keep_before(&self) {
        let Some(turn) = self.turn.filter(|_| !self.paths.is_empty()) else { return };
        let (reviews, root) = (Arc::clone(&self.reviews), self.cx.workspace.root.clone());
        let paths = self.paths.clone();
        let kept = tokio::task::spawn_blocking(move || {
            for path in paths {
                before::keep(&reviews, turn, &root, &path);
            }
        });
        // A panic there costs the review its exactness, nothing else.
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
                    CallResult { outcome, content, display, seconds: 0.0, nobody: false }
                }
                Err(e) => failed(e),
            },
            () = late => CallResult::text(
                ToolOutcome::Interrupted,
                "Interrupted by the person. It did not end when it was told to, and was left behind.",
            ),
        }
    }
}

/// A failed call, for the model.
pub(crate) fn failed(e: ToolError) -> CallResult {
    let partial = |head: &str, rest: String| {
        if rest.trim().is_empty() { head.to_owned() } else { format!("{rest}\n{head}") }
    };
    match e {
        ToolError::Tell(text) => CallResult::text(ToolOutcome::Error, text),
        ToolError::Interrupted(so_far) => CallResult::text(
            ToolOutcome::Interrupted,
            partial("[Interrupted by the person before it finished.]", so_far),
        ),
        ToolError::TimedOut(so_far) => {
            CallResult::text(ToolOutcome::TimedOut, partial("[It took too long and was stopped.]", so_far))
        }
        ToolError::Declined(text) => {
            let nobody = text.contains("nobody");
            CallResult { nobody, ..CallResult::text(ToolOutcome::Denied, text) }
        }
    }
}

pub(crate) fn outcome_word(o: ToolOutcome) -> &'static str {
    match o {
        ToolOutcome::Ok => "ok",
        ToolOutcome::Error => "error",
        ToolOutcome::Denied => "denied",
        ToolOutcome::Interrupted => "interrupted",
        ToolOutcome::TimedOut => "timed out",
    }
}

/// Arguments for the audit, without secrets, bounded. Each text is looked at as it is: written as JSON its
/// line ends would hide where words begin.
pub(crate) fn what(redact: &Redact, args: &Value) -> String {
    let mut args = shortened(args);
    crate::clean::value(redact, &mut args);
    cut(&redact(&args.to_string()), WHAT)
}

/// A copy whose texts are no longer than what could be kept.
fn shortened(args: &Value) -> Value {
    match args {
        Value::String(s) => s[..s.floor_char_boundary(2 * WHAT)].into(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(k, v)| (k.clone(), shortened(v))).collect())
        }
        other => other.clone(),
    }
}

/// The beginning of a long text.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

/// Output and display of a result, as its entry has them: what is shown is what is stored, without secrets.
pub(crate) fn told(entry: &Entry) -> (String, Option<Display>) {
    match &entry.body {
        EntryBody::ToolResult { content, display, .. } => (text_of(content), display.clone()),
        _ => (String::new(), None),
    }
}

pub(crate) fn text_of(content: &[Part]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|p| if let Part::Text { text } = p { Some(text.as_str()) } else { None })
        .collect();
    texts.join("\n")
}
