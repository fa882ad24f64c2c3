//! A program of another vendor asks for something: our rules answer where they can, the person where not.

use std::path::Path;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tiller_external::{Answer, Ask, Choice, ChoiceKind, FileDiff, Question, ToolUse};
use tiller_permit::Verdict;
use tiller_protocol::ask::Risk;
use tiller_protocol::view::AuditRow;
use tiller_protocol::{Access, AskBody, AskReply, Decision, ToolOutcome, Touch};
use tokio::sync::oneshot;

use super::outside_words;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::questions::msg::QuestionMsg;
use crate::questions::permission::{self, permission_ask};

/// Choices of a dialog that are shown.
const CHOICES: usize = 6;

impl Core {
    pub(super) fn outside_ask(&mut self, mut ask: Ask) {
        let (reply, answer) = oneshot::channel();
        let permit = self.services.permit.clone();
        match ask.what {
            Question::Permission { tool, shown, diffs, by_screen, .. } => {
                self.outside_asked(ask.call.as_deref());
                let unkept = self.unkept();
                let (name, touch, access) = access_of(&self.services.workspace.root, &tool, &diffs);
                let args = args_of(&name, &tool, &shown);
                let question = permission::Question {
                    agent: &self.identity.id,
                    tool: &name,
                    verb: &tool.verb,
                    target: &tool.target,
                    touch,
                    args: &args,
                    access: &access,
                    profile: self.session.profile,
                    // Its own shell runs it, in which nothing can be set.
                    shell: None,
                };
                let mut verdict = permit.judge(&question);
                let mut stricter = |other: Verdict| {
                    if other.strictness() > verdict.strictness() {
                        verdict = other;
                    }
                };
                // What a screen shows may be less than what runs: it makes the answer stricter, never laxer.
                if by_screen && !access.is_empty() {
                    let (name, access) = (&tool.name, &[]);
                    stricter(permit.judge(&permission::Question {
                        tool: name,
                        touch: Touch::Execute,
                        access,
                        ..question
                    }));
                }
                // The same holds for a command that it calls reading, and for words that may be one.
                let root = &self.services.workspace.root;
                if let Some(run) = run_beside(root, &tool, &access) {
                    stricter(permit.judge(&permission::Question {
                        tool: "terminal",
                        touch: Touch::Execute,
                        access: &[run],
                        ..question
                    }));
                }
                if access.is_empty() {
                    let words = outside_words::of(&tool, &shown);
                    words
                        .iter()
                        .filter_map(|text| permit.suspected(&question, text, root))
                        .for_each(&mut stricter);
                }
                if touch != Touch::Read && unkept {
                    verdict = not_undone(verdict);
                }
                let mut audit = AuditRow {
                    time: self.services.clock.now(),
                    session: self.session.id,
                    agent: self.identity.id.0.clone(),
                    tool: name.clone(),
                    what: crate::job::what(&self.services.redact, &args),
                    decision: String::new(),
                    by: String::new(),
                    seconds: 0.0,
                    outcome: String::new(),
                };
                let by_rule = match &verdict {
                    Verdict::Allow { rule, .. } => Some((ChoiceKind::AllowOnce, "allow", rule)),
                    Verdict::Deny { rule, .. } => Some((ChoiceKind::RejectOnce, "deny", rule)),
                    Verdict::Ask { .. } => None,
                };
                if let Some((kind, decision, rule)) = by_rule {
                    (audit.decision, audit.by) = (decision.into(), rule.clone());
                    self.outside_decided(audit);
                    // The asking program may have ended.
                    let _ = ask.reply.send(Answer::Kind(kind));
                    return;
                }
                let root = &self.services.workspace.root;
                let all: Vec<String> = diffs.iter().map(|d| super::outside::diff_of(d, root).diff).collect();
                let diff = (!all.is_empty()).then(|| all.concat());
                let Some(mut body) = permission_ask(&question, verdict, diff) else {
                    let _ = ask.reply.send(Answer::Kind(ChoiceKind::RejectOnce));
                    return;
                };
                // What it runs is its own: our text cannot take its place.
                body.editable = false;
                self.ask_main(ask.call, AskBody::Permission(body), reply);
                let tx = self.tx.clone();
                self.spawn(async move {
                    let person = || "the user".to_owned();
                    let answer = tokio::select! {
                        answer = answer => answer,
                        // It waits no more, or is gone: the question goes, too.
                        () = ask.reply.closed() => {
                            audit.decision = "none".into();
                            audit.by = "it ended before an answer".into();
                            let _ = tx.send(Msg::Question(QuestionMsg::Settled(Box::new(audit)))).await;
                            return;
                        }
                    };
                    let (kind, decision, by) = match answer {
                        Ok(Ok(AskReply::Permission { decision, .. })) => match decision {
                            Decision::Once => (ChoiceKind::AllowOnce, "ask:once", person()),
                            Decision::Session { pattern } => {
                                let _ = permit.allow_session(&pattern);
                                (ChoiceKind::AllowOnce, "ask:session", person())
                            }
                            Decision::Always { pattern } => {
                                let _ = permit.allow_always(&pattern);
                                (ChoiceKind::AllowOnce, "ask:always", person())
                            }
                            // What it runs is its own: our text cannot take its place.
                            Decision::Edit { .. } | Decision::Deny { .. } => {
                                (ChoiceKind::RejectOnce, "ask:deny", person())
                            }
                        },
                        Ok(Ok(_)) => (ChoiceKind::RejectOnce, "ask:deny", person()),
                        Ok(Err(why)) => (ChoiceKind::RejectOnce, "nobody", why),
                        Err(_) => (ChoiceKind::RejectOnce, "none", "it ended before an answer".into()),
                    };
                    (audit.decision, audit.by) = (decision.into(), by);
                    // Written down first: the engine may end with the answer.
                    let _ = tx.send(Msg::Question(QuestionMsg::Settled(Box::new(audit)))).await;
                    let _ = ask.reply.send(Answer::Kind(kind));
                });
            }
            Question::Choose { text, options, free_text } => {
                let choices: Vec<String> =
                    options.iter().take(CHOICES).map(|o| self.redact(&o.name)).collect();
                let says_yes =
                    |i: &usize| matches!(options[*i].kind, ChoiceKind::AllowOnce | ChoiceKind::AllowAlways);
                let (decides, rest): (Vec<usize>, Vec<usize>) = (0..choices.len()).partition(says_yes);
                let body = AskBody::Clarify {
                    question: self.redact(&text),
                    choices: choices.clone(),
                    allow_freetext: free_text,
                    multiple: false,
                    default: rest.first().copied().filter(|_| !decides.is_empty()),
                    decides,
                };
                self.ask_main(ask.call, body, reply);
                self.spawn(async move {
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

    /// Whether the files before what the program does are not kept, and the person wants to be asked then.
    fn unkept(&mut self) -> bool {
        let asks = self.services.files.as_ref().is_some_and(crate::files::Keeper::asks);
        asks && self.outside().is_some_and(|o| o.unkept.load(Ordering::Relaxed))
    }

    /// A call that is asked about has its line in the audit by the answer.
    fn outside_asked(&mut self, call: Option<&str>) {
        if let Some(open) = call.and_then(|id| self.outside()?.open_call(id)) {
            open.asked = true;
        }
    }

    /// A call that nobody was asked about: its own rules let it. It stands in the audit all the same.
    pub(super) fn outside_unasked(&mut self, tool: &ToolUse, outcome: ToolOutcome, seconds: f64) {
        let name = self.outside().map(|o| o.adapter.title.clone()).unwrap_or_default();
        let args = if tool.target.is_empty() { tool.args.clone() } else { json!({"what": tool.target}) };
        let audit = AuditRow {
            time: self.services.clock.now(),
            session: self.session.id,
            agent: self.identity.id.0.clone(),
            tool: self.redact(&tool.name),
            what: crate::job::what(&self.services.redact, &args),
            decision: "its own".into(),
            by: format!("{name} did not ask"),
            seconds,
            outcome: crate::job::outcome_word(outcome).into(),
        };
        let ticket = self.services.store.audit().record(audit);
        self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }

    /// Into the audit. What it then did is its own affair, so only a refusal is known to have held.
    pub(crate) fn outside_decided(&mut self, mut audit: AuditRow) {
        if audit.decision == "nobody"
            && let Some(o) = self.outside()
        {
            o.refused = true;
            self.child_refused();
        }
        let no = matches!(audit.decision.as_str(), "deny" | "ask:deny" | "nobody" | "none");
        audit.outcome = if no { "denied" } else { "allowed" }.into();
        let ticket = self.services.store.audit().record(audit);
        self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }
}

/// What cannot be undone is asked about, in every profile.
fn not_undone(verdict: Verdict) -> Verdict {
    let effect = "the changes of this call cannot be undone: no copy of the files was made".to_owned();
    match verdict {
        Verdict::Deny { .. } => verdict,
        Verdict::Ask { rule, risk, mut effects, .. } => {
            effects.push(effect);
            Verdict::Ask { rule, risk, effects, always: None }
        }
        Verdict::Allow { .. } => Verdict::Ask {
            rule: "the file states before this call could not be saved".into(),
            risk: Risk::High,
            effects: vec![effect],
            always: None,
        },
    }
}

/// What a tool of theirs comes to in our words: tool, kind, and what it touches. That is judged by what it says in
/// fields that mean just that: a command, paths, changes. Titles and descriptions are words for people. What says
/// nothing of the kind touches nothing that is known, and so is asked about.
fn access_of(root: &Path, tool: &ToolUse, diffs: &[FileDiff]) -> (String, Touch, Vec<Access>) {
    let mut paths: Vec<&str> = tool.paths.iter().map(String::as_str).collect();
    paths.extend(diffs.iter().map(|d| d.path.as_str()).filter(|p| !p.is_empty()));
    paths.dedup();
    let place = |path: &str| {
        let inside = root.join(path).starts_with(root) && !path.split('/').any(|p| p == "..");
        (root.join(path).display().to_string(), inside)
    };
    let unknown = || (tool.name.clone(), Touch::Execute, Vec::new());
    match tool.verb.as_str() {
        "shell" => {
            let Some(command) = command_of(tool) else { return unknown() };
            let folder = root.display().to_string();
            ("terminal".into(), Touch::Execute, vec![Access::Run { command, folder, background: false }])
        }
        // Whatever it calls itself, it would change files.
        verb if !paths.is_empty() && (verb == "edit" || !diffs.is_empty()) => {
            let write = |path: &&str| {
                let (path, inside) = place(path);
                Access::Write { path, inside }
            };
            ("edit_file".into(), Touch::Write, paths.iter().map(write).collect())
        }
        // It shows what lies there: judged as the name that it has, so that a folder counts with all below.
        "search" if !paths.is_empty() => {
            let read = |path: &&str| {
                let (path, inside) = place(path);
                Access::Read { path, inside }
            };
            // A name of its own, whatever it calls itself: it does not pass over what it may not read, as ours do.
            let ours = tiller_permit::rules::names::TOOLS.contains(&tool.name.as_str());
            let name = if ours { format!("{} of a program", tool.name) } else { tool.name.clone() };
            // What else it does is not known, so it is asked about as before.
            let rest = Access::Process { what: format!("run {name}") };
            (name, Touch::Read, paths.iter().map(read).chain([rest]).collect())
        }
        "read" if !paths.is_empty() => {
            let read = |path: &&str| {
                let (path, inside) = place(path);
                Access::Read { path, inside }
            };
            ("read_file".into(), Touch::Read, paths.iter().map(read).collect())
        }
        _ => unknown(),
    }
}

/// The command that it would run though it says that it only reads.
fn run_beside(root: &Path, tool: &ToolUse, access: &[Access]) -> Option<Access> {
    let reads = matches!(tool.verb.as_str(), "read" | "search") && !access.is_empty();
    let command = reads.then(|| command_of(tool)).flatten()?;
    Some(Access::Run { command, folder: root.display().to_string(), background: false })
}

/// The command line that it would run, all of it: one line, or words for the system.
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
        // Each is one word, whatever is in it.
        words => Some(
            words.iter().map(|w| format!("'{}'", w.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "),
        ),
    }
}

fn args_of(name: &str, tool: &ToolUse, shown: &str) -> Value {
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
        let of = |tool: &ToolUse, diffs: &[FileDiff]| access_of(root, tool, diffs).2;
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
        // One that calls itself reading and shows changes writes.
        assert_eq!(of(&tool("Read", "read", json!({}), &[]), &[change("/w/a")]), [write("/w/a", true)]);
        assert_eq!(of(&tool("create_thread", "tool", json!({"path": "x"}), &["x"]), &[]), []);
    }
}
