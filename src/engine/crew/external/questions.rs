//! Questions of an external program: rules answer where they can, else the user.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tiller_protocol::ToolVerb;

use serde_json::{Value, json};
use tiller_external::{Answer, Ask, Choice, ChoiceKind, FileDiff, Question, ToolUse};
use tiller_permit::Verdict;
use tiller_protocol::ask::Risk;
use tiller_protocol::view::{AuditOutcome, AuditRow};
use tiller_protocol::{Access, AskBody, AskReply, Decision, PermissionOutcome, ToolOutcome, Touch};
use tiller_tool::Registry;
use tokio::sync::oneshot;

use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::crew::driver::ExternalDriver;
use crate::crew::external::command_texts;
use crate::questions::msg::QuestionMsg;
use crate::questions::permission::{self, permission_ask, rule_not_saved};

/// Most choices of a dialog that are shown.
const CHOICES: usize = 6;

impl ExternalDriver<'_> {
    /// A question of the program. Hooks come first, as for Tiller's own calls.
    pub(crate) fn question(&mut self, ask: Ask) {
        if let Some(ask) = self.run_hooks(ask) {
            self.judge(ask, None);
        }
    }

    /// Rules answer where they can, else the user.
    pub(crate) fn judge(&mut self, mut ask: Ask, hooks_ask: Option<String>) {
        let (reply, answer) = oneshot::channel();
        let permit = self.core.services.permit.clone();
        match ask.what {
            Question::Permission { tool, shown, diffs, by_screen, .. } => {
                self.mark_asked(ask.call.as_deref());
                let unkept = self.changes_cannot_be_undone();
                let (name, touch, access) = access_of(
                    &self.core.services.workspace.root,
                    &tool,
                    &diffs,
                    &self.core.services.tools.all,
                );
                let args = args_of(&name, &tool, &shown);
                let question = permission::Question {
                    agent: &self.core.identity.id,
                    tool: &name,
                    verb: &tool.verb,
                    target: &tool.target,
                    touch,
                    args: &args,
                    access: &access,
                    profile: self.core.session.profile,
                    // The program's own shell runs it, in which Tiller can set nothing.
                    shell: None,
                    terminal: None,
                };
                let mut verdict = permit.judge(&question);
                let mut stricter = |other: Verdict| {
                    if other.strictness() > verdict.strictness() {
                        verdict = other;
                    }
                };
                // A screen may show less than what runs: it can make the verdict stricter, never laxer.
                if by_screen && !access.is_empty() {
                    let (name, access) = (&tool.name, &[]);
                    stricter(permit.judge(&permission::Question {
                        tool: name,
                        touch: Touch::Execute,
                        access,
                        ..question
                    }));
                }
                // The same holds for a command that it reports as reading, and for text that may be one.
                let root = &self.core.services.workspace.root;
                if let Some(run) = run_beside(root, &tool, &access) {
                    stricter(permit.judge(&permission::Question {
                        tool: "terminal",
                        touch: Touch::Execute,
                        access: &[run],
                        ..question
                    }));
                }
                if access.is_empty() {
                    let words = command_texts::of(&tool, &shown);
                    words
                        .iter()
                        .filter_map(|text| permit.suspected(&question, text, root))
                        .for_each(&mut stricter);
                }
                if touch != Touch::Read && unkept {
                    verdict = not_undone(verdict);
                }
                if let Some(why) = &hooks_ask {
                    verdict = verdict.at_least_asks(why);
                }
                let mut audit = AuditRow {
                    time: self.core.services.clock.now(),
                    session: self.core.session.id,
                    agent: self.core.identity.id.0.clone(),
                    tool: name.clone(),
                    what: crate::tool_call::what(&self.core.services.redaction.redact, &args),
                    decision: PermissionOutcome::Undecided,
                    by: String::new(),
                    seconds: 0.0,
                    outcome: AuditOutcome::None,
                };
                let by_rule = match &verdict {
                    Verdict::Allow { rule, .. } => {
                        Some((ChoiceKind::AllowOnce, PermissionOutcome::Allowed, rule))
                    }
                    Verdict::Deny { rule, .. } => {
                        Some((ChoiceKind::RejectOnce, PermissionOutcome::Denied, rule))
                    }
                    Verdict::Ask { .. } => None,
                };
                if let Some((kind, decision, rule)) = by_rule {
                    (audit.decision, audit.by) = (decision, rule.clone());
                    self.audit_decided(audit);
                    // The asking program may have ended.
                    let _ = ask.reply.send(Answer::Kind(kind));
                    return;
                }
                let root = &self.core.services.workspace.root;
                let all: Vec<String> =
                    diffs.iter().map(|d| crate::crew::external::calls::diff_of(d, root).diff).collect();
                let diff = (!all.is_empty()).then(|| all.concat());
                let Some(mut body) = permission_ask(&question, verdict, diff) else {
                    let _ = ask.reply.send(Answer::Kind(ChoiceKind::RejectOnce));
                    return;
                };
                // The program runs its own command: an edited one cannot replace it.
                body.editable = false;
                self.core.child_driver().ask_user(ask.call, AskBody::Permission(body), reply);
                let tx = self.core.tx.clone();
                let (bus, scope) = (Arc::clone(&self.core.bus), self.core.scope());
                self.core.spawn(async move {
                    let person = || "you".to_owned();
                    let answer = tokio::select! {
                        answer = answer => answer,
                        // The program no longer waits: the question is withdrawn.
                        () = ask.reply.closed() => {
                            audit.decision = PermissionOutcome::Undecided;
                            audit.by = "it ended before an answer".into();
                            let _ = tx.send(Msg::Question(QuestionMsg::Settled(Box::new(audit)))).await;
                            return;
                        }
                    };
                    let (kind, decision, by) = match answer {
                        Ok(Ok(AskReply::Permission { decision, .. })) => match decision {
                            // The program runs its own command, which Tiller does not confine.
                            Decision::Once | Decision::Outside => {
                                (ChoiceKind::AllowOnce, PermissionOutcome::Once, person())
                            }
                            Decision::Session { pattern } => {
                                let _ = permit.allow_session(&pattern);
                                (ChoiceKind::AllowOnce, PermissionOutcome::Session, person())
                            }
                            Decision::Always { pattern } => {
                                if let Err(why) = permit.allow_always(&pattern).await {
                                    bus.publish(&scope, rule_not_saved(&why));
                                }
                                (ChoiceKind::AllowOnce, PermissionOutcome::Always, person())
                            }
                            // The program runs its own command: an edited one cannot replace it.
                            Decision::Edit { .. } | Decision::Deny { .. } => {
                                (ChoiceKind::RejectOnce, PermissionOutcome::Refused, person())
                            }
                        },
                        Ok(Ok(_)) => (ChoiceKind::RejectOnce, PermissionOutcome::Refused, person()),
                        Ok(Err(why)) => (ChoiceKind::RejectOnce, PermissionOutcome::Nobody, why),
                        Err(_) => (
                            ChoiceKind::RejectOnce,
                            PermissionOutcome::Undecided,
                            "it ended before an answer".into(),
                        ),
                    };
                    (audit.decision, audit.by) = (decision, by);
                    // The audit first: the engine may end after the answer.
                    let _ = tx.send(Msg::Question(QuestionMsg::Settled(Box::new(audit)))).await;
                    let _ = ask.reply.send(Answer::Kind(kind));
                });
            }
            Question::Choose { text, options, free_text } => {
                let choices: Vec<String> =
                    options.iter().take(CHOICES).map(|o| self.core.redact(&o.name)).collect();
                let says_yes =
                    |i: &usize| matches!(options[*i].kind, ChoiceKind::AllowOnce | ChoiceKind::AllowAlways);
                let (decides, rest): (Vec<usize>, Vec<usize>) = (0..choices.len()).partition(says_yes);
                let body = AskBody::Clarify {
                    question: self.core.redact(&text),
                    choices: choices.clone(),
                    allow_freetext: free_text,
                    multiple: false,
                    default: rest.first().copied().filter(|_| !decides.is_empty()),
                    decides,
                };
                self.core.child_driver().ask_user(ask.call, body, reply);
                self.core.spawn(async move {
                    let answer = tokio::select! {
                        answer = answer => answer,
                        () = ask.reply.closed() => return,
                    };
                    let chosen = match answer {
                        Ok(Ok(AskReply::Choice { answers })) => {
                            chosen(&answers, &choices, &options, free_text)
                        }
                        _ => Answer::Cancel,
                    };
                    let _ = ask.reply.send(chosen);
                });
            }
        }
    }

    /// Whether the state of the files could not be stored and the settings demand a question then.
    pub(crate) fn changes_cannot_be_undone(&mut self) -> bool {
        let asks = self.core.services.snapshots.workspace.as_ref().is_some_and(crate::files::Keeper::asks);
        asks && self
            .core
            .identity
            .external_mut()
            .is_some_and(|o| o.calls.state_not_stored.load(Ordering::Relaxed))
    }

    /// Marks a call that is asked about: the answer writes its row of the audit.
    pub(crate) fn mark_asked(&mut self, call: Option<&str>) {
        if let Some(open) = call.and_then(|id| self.core.identity.external_mut()?.open_call(id)) {
            open.asked = true;
        }
    }

    /// Writes an audit row for a call that the program's own rules permitted.
    pub(crate) fn audit_unasked(&mut self, tool: &ToolUse, outcome: ToolOutcome, seconds: f64) {
        let name = self.core.identity.external_mut().map(|o| o.adapter.title.clone()).unwrap_or_default();
        let args = if tool.target.is_empty() { tool.args.clone() } else { json!({"what": tool.target}) };
        let audit = AuditRow {
            time: self.core.services.clock.now(),
            session: self.core.session.id,
            agent: self.core.identity.id.0.clone(),
            tool: self.core.redact(&tool.name),
            what: crate::tool_call::what(&self.core.services.redaction.redact, &args),
            decision: PermissionOutcome::External,
            by: format!("{name} did not ask"),
            seconds,
            outcome: outcome.into(),
        };
        let ticket = self.core.services.store.audit().record(audit);
        self.core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }

    /// Writes the audit row of a decision. Whether a permitted call was made is unknown.
    pub(crate) fn audit_decided(&mut self, mut audit: AuditRow) {
        if audit.decision == PermissionOutcome::Nobody
            && let Some(o) = self.core.identity.external_mut()
        {
            o.refused = true;
            self.core.child_driver().record_refusal();
        }
        let no = audit.decision.denies() || audit.decision == PermissionOutcome::Undecided;
        audit.outcome = if no { AuditOutcome::Denied } else { AuditOutcome::Allowed };
        let ticket = self.core.services.store.audit().record(audit);
        self.core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }
}

/// Turns a permission into a question when the changes of the call cannot be undone, in every profile.
fn not_undone(verdict: Verdict) -> Verdict {
    let effect = "the changes of this call cannot be undone: no snapshot was taken".to_owned();
    match verdict {
        Verdict::Deny { .. } => verdict,
        Verdict::Ask { rule, risk, mut effects, .. } => {
            effects.push(effect);
            Verdict::Ask { rule, risk, effects, always: None }
        }
        Verdict::Allow { .. } => Verdict::Ask {
            rule: "no snapshot could be taken before this call".into(),
            risk: Risk::High,
            effects: vec![effect],
            always: None,
        },
    }
}

/// The tool, kind and access of a program's call in Tiller's terms. They are taken from
/// fields with that meaning: a command, paths, changes; never from titles and descriptions. A call without such
/// fields has no known access, and the user is asked.
pub(super) fn access_of(
    root: &Path,
    tool: &ToolUse,
    diffs: &[FileDiff],
    tools: &Registry,
) -> (String, Touch, Vec<Access>) {
    let mut paths: Vec<&str> = tool.paths.iter().map(String::as_str).collect();
    paths.extend(diffs.iter().map(|d| d.path.as_str()).filter(|p| !p.is_empty()));
    paths.dedup();
    let place = |path: &str| {
        let inside = root.join(path).starts_with(root) && !path.split('/').any(|p| p == "..");
        (root.join(path).display().to_string(), inside)
    };
    let unknown = || (tool.name.clone(), Touch::Execute, Vec::new());
    match &tool.verb {
        ToolVerb::Shell => {
            let Some(command) = command_of(tool) else { return unknown() };
            let folder = root.display().to_string();
            ("terminal".into(), Touch::Execute, vec![Access::Run { command, folder, background: false }])
        }
        // With changes it counts as a write, whatever its kind.
        verb if !paths.is_empty() && (*verb == ToolVerb::Edit || !diffs.is_empty()) => {
            let write = |path: &&str| {
                let (path, inside) = place(path);
                Access::Write { path, inside }
            };
            ("edit_file".into(), Touch::Write, paths.iter().map(write).collect())
        }
        // A search is judged by its own tool name, so that a folder counts with all below it.
        ToolVerb::Search if !paths.is_empty() => {
            let read = |path: &&str| {
                let (path, inside) = place(path);
                Access::Read { path, inside }
            };
            // It must not have the name of a Tiller tool: those skip files that may not be read.
            let ours = tools.find(&tool.name).is_some();
            let name = if ours { format!("{} of a program", tool.name) } else { tool.name.clone() };
            // Its further effects are unknown, so the user is asked.
            let rest = Access::Process { what: format!("run {name}") };
            (name, Touch::Read, paths.iter().map(read).chain([rest]).collect())
        }
        ToolVerb::Read if !paths.is_empty() => {
            let read = |path: &&str| {
                let (path, inside) = place(path);
                Access::Read { path, inside }
            };
            ("read_file".into(), Touch::Read, paths.iter().map(read).collect())
        }
        _ => unknown(),
    }
}

/// The command of a call that is reported as reading.
pub(super) fn run_beside(root: &Path, tool: &ToolUse, access: &[Access]) -> Option<Access> {
    let reads = matches!(tool.verb, ToolVerb::Read | ToolVerb::Search) && !access.is_empty();
    let command = reads.then(|| command_of(tool)).flatten()?;
    Some(Access::Run { command, folder: root.display().to_string(), background: false })
}

/// The whole command line: one line, or a list of words.
fn command_of(tool: &ToolUse) -> Option<String> {
    let told = tool.args.get("command").or_else(|| tool.args.get("cmd"))?;
    let words: Vec<&str> = match told {
        Value::String(line) => return Some(line.clone()).filter(|l| !l.trim().is_empty()),
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    match words.as_slice() {
        [] => None,
        ["bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh" | "/bin/zsh", "-c" | "-lc", line] => {
            Some((*line).to_owned())
        }
        // Each word is quoted.
        words => Some(
            words.iter().map(|w| format!("'{}'", w.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "),
        ),
    }
}

pub(super) fn args_of(name: &str, tool: &ToolUse, shown: &str) -> Value {
    match name {
        "terminal" => json!({"command": command_of(tool).unwrap_or_default()}),
        "edit_file" | "read_file" => json!({"path": tool.target}),
        _ => json!({"what": shown}),
    }
}

fn chosen(answers: &[String], shown: &[String], options: &[Choice], free_text: bool) -> Answer {
    let Some(first) = answers.first() else { return Answer::Cancel };
    match shown.iter().position(|s| s == first).and_then(|at| options.get(at)) {
        Some(option) => Answer::Option(option.id.clone()),
        None if free_text => Answer::Text(first.clone()),
        None => Answer::Cancel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, verb: &str, args: Value, paths: &[&str]) -> ToolUse {
        let paths = paths.iter().map(|p| (*p).to_owned()).collect();
        ToolUse { id: "1".into(), name: name.into(), verb: verb.into(), args, paths, ..ToolUse::default() }
    }

    fn write(path: &str, inside: bool) -> Access {
        Access::Write { path: path.into(), inside }
    }

    #[test]
    fn what_is_touched_is_taken_from_fields_and_never_from_words() {
        let root = Path::new("/w");
        let of = |tool: &ToolUse, diffs: &[FileDiff]| access_of(root, tool, diffs, &Registry::built_in()).2;
        let run = |args: Value| of(&tool("Bash", "shell", args, &[]), &[]);
        let line = |command: &str| {
            let (command, folder) = (command.to_owned(), "/w".to_owned());
            vec![Access::Run { command, folder, background: false }]
        };
        assert_eq!(run(json!({"command": "ls", "description": "x"})), line("ls"));
        assert_eq!(run(json!({"cmd": ["bash", "-lc", "ls; rm x"]})), line("ls; rm x"));
        assert_eq!(run(json!({"command": ["ls", "a; rm b"]})), line("'ls' 'a; rm b'"));
        let long = format!("true {}; rm -rf x", "a".repeat(5000));
        assert_eq!(run(json!({"command": ["sh", "-c", long]})), line(&long));
        // A description that looks like a command is none.
        for args in
            [json!({"script": "rm -rf x", "description": "ls"}), json!({"command": ["ls", 1]}), json!({})]
        {
            assert_eq!(run(args), []);
        }
        // Each file that it says it changes, and not only the first; a title is no path.
        let change = |path: &str| FileDiff { path: path.into(), old: None, new: Some("x".into()) };
        let edit = tool("Edit", "edit", json!({}), &["/w/a"]);
        let all = [write("/w/a", true), write("/etc/b", false), write("/w/../c", false)];
        assert_eq!(of(&edit, &[change("/etc/b"), change("../c")]), all);
        let titled = ToolUse { target: "a.txt: old => new".into(), ..tool("edit", "edit", json!({}), &[]) };
        assert_eq!(of(&titled, &[]), []);
        // A call that is named a read and shows changes writes.
        assert_eq!(of(&tool("Read", "read", json!({}), &[]), &[change("/w/a")]), [write("/w/a", true)]);
        assert_eq!(of(&tool("create_thread", "tool", json!({"path": "x"}), &["x"]), &[]), []);
    }
}
