//! The approval of a whole script: one question about all calls that wait.

use std::sync::Arc;

use serde_json::json;
use tiller_permit::decide::approval::Call;
use tiller_protocol::ask::{AskReason, AskedCall, PermissionAsk, Risk};
use tiller_protocol::tool::Display;
use tiller_protocol::{AskBody, ToolOutcome, ToolVerb};

use super::CallTask;
use super::decide::allowed_by;
use crate::decision::{CallDecision, Refusal};
use crate::turn::CallResult;

/// Effects of the calls that the question names.
const EFFECTS: usize = 4;

impl CallTask {
    /// Asks about the calls of a script that wait. After a yes the script is to run again.
    ///
    /// # Errors
    /// When the user denies them, or no user can answer. `shown`: what the screen shows of the first run.
    pub(super) async fn decide_script(&mut self, shown: Option<Display>) -> Result<CallDecision, Refusal> {
        let script = Arc::clone(&self.cx.run.script);
        let waiting = script.waiting();
        let why = self.args.get("why").and_then(|why| why.as_str()).unwrap_or_default();
        let mut ask = script_ask(&waiting, why);
        if script.made_up() {
            ask.effects.push(
                "once the calls have real results the script may make others; you are asked again at the first one that is \
                 not listed"
                    .into(),
            );
        }
        if script.was_approved() {
            ask.effects.push("the calls of this script that you allowed before were made".into());
        }
        let (rule, pattern) = (ask.rule.clone(), ask.always.clone());
        let ports = Arc::clone(&self.cx.ports);
        let Some(scripts) = ports.scripts() else {
            let result = CallResult::text(ToolOutcome::Denied, "Denied: no one can be asked.");
            return Err(CallDecision::undecided("engine", result));
        };
        let answer = tokio::select! {
            answer = scripts.ask(&self.cx.agent, AskBody::Permission(ask)) => answer,
            () = self.cx.cancel.cancelled() => {
                let result = CallResult { display: shown, ..CallResult::interrupted() };
                return Err(CallDecision::undecided("stopped before an answer", result));
            }
        };
        match self.consent(answer, rule.text(), pattern.as_deref()).await {
            Ok(decided) => {
                script.approve();
                self.asked = true;
                Ok(decided)
            }
            Err(mut refusal) => {
                let text = match (script.was_approved(), script.wrote()) {
                    (true, _) => {
                        "[The calls of the script that were approved before, and those that needed no approval, were made; those of this question were not.]"
                    }
                    (false, false) => {
                        "[The script ran to collect its calls; none of those that change something was made.]"
                    }
                    (false, true) => {
                        "[The calls that needed no approval, up to the first one that did, were made.]"
                    }
                };
                refusal.1.content.push(tiller_protocol::Part::Text { text: text.into() });
                if refusal.1.unanswered {
                    refusal.1.content.extend(pattern.as_deref().and_then(allowed_by));
                }
                refusal.1.display = shown.map(denied);
                Err(refusal)
            }
        }
    }
}

/// The calls that waited, as denied.
fn denied(mut display: Display) -> Display {
    if let Display::Calls { calls, .. } = &mut display {
        for call in calls.iter_mut().filter(|call| call.waits) {
            call.waits = false;
            call.outcome = Some(ToolOutcome::Denied);
        }
    }
    display
}

/// The question about these calls. Shown is the list of them; each has its exact text, or its difference.
fn script_ask(waiting: &[(PermissionAsk, bool)], why: &str) -> PermissionAsk {
    let shown: Vec<String> = (1..)
        .zip(waiting)
        .map(|(n, (ask, _))| format!("{n}. {} {}", ask.wants(), ask.shown.replace('\n', "\n   ")))
        .collect();
    let asked: Vec<&PermissionAsk> =
        waiting.iter().filter(|(_, allowed)| !allowed).map(|(ask, _)| ask).collect();
    let mut effects = vec![summary(waiting)];
    let mut more = 0;
    for effect in asked.iter().flat_map(|ask| &ask.effects) {
        if effects.contains(effect) || effect.starts_with("writes ") {
            continue;
        }
        if effects.len() <= EFFECTS { effects.push(effect.clone()) } else { more += 1 }
    }
    if more > 0 {
        effects.push(format!("and {more} more effects"));
    }
    let mut patterns: Vec<&str> = Vec::new();
    for pattern in asked.iter().filter_map(|ask| ask.always.as_deref()) {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let reason = asked.first().map_or(AskReason::NoRule, |ask| ask.rule.clone());
    let risk = asked.iter().map(|ask| ask.risk).max().unwrap_or(Risk::Low);
    let hashes: Vec<&str> = waiting.iter().map(|(ask, _)| ask.hash.as_str()).collect();
    let call = Call {
        tool: "execute_code",
        verb: &ToolVerb::Script,
        shown: &shown.join("\n"),
        arguments: &json!({ "calls": hashes }),
        folder: "",
        diff: None,
        why,
        editable: false,
    };
    let calls = waiting
        .iter()
        .map(|(ask, allowed)| AskedCall {
            title: format!("{} {}", ask.wants(), ask.shown.lines().next().unwrap_or_default()),
            detail: ask.diff.clone().unwrap_or_else(|| ask.shown.clone()),
            diff: ask.diff.is_some(),
            allowed: *allowed,
        })
        .collect();
    let diffs: Vec<String> = waiting.iter().filter_map(|(ask, _)| ask.diff.clone()).map(with_end).collect();
    PermissionAsk {
        tool: call.tool.into(),
        verb: ToolVerb::Script,
        shown: call.shown.to_owned(),
        hash: call.hash(),
        diff: (!diffs.is_empty()).then(|| diffs.concat()),
        folder: String::new(),
        why: why.to_owned(),
        rule: reason,
        effects,
        risk,
        always: (!patterns.is_empty()).then(|| patterns.join(" && ")),
        editable: false,
        outside: tiller_protocol::ask::OutsideAnswer::No,
        calls,
        draft: None,
        source: None,
    }
}

/// With a line end.
fn with_end(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// How many calls of which kind: `12 calls: 9 x write src/**, 3 x run cargo`.
fn summary(waiting: &[(PermissionAsk, bool)]) -> String {
    let mut groups: Vec<(String, u32)> = Vec::new();
    for (ask, _) in waiting {
        let group = kind(ask);
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, count)) => *count += 1,
            None => groups.push((group, 1)),
        }
    }
    groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> = groups.iter().take(6).map(|(name, count)| format!("{count} x {name}")).collect();
    let more = groups.len().saturating_sub(6);
    let more = if more > 0 { format!(", and {more} more kinds") } else { String::new() };
    let calls = if waiting.len() == 1 { "call" } else { "calls" };
    format!("{} {calls}: {}{more}", waiting.len(), words.join(", "))
}

/// The kind of a call: its verb, and the folder or the program.
fn kind(ask: &PermissionAsk) -> String {
    let first = ask.shown.lines().next().unwrap_or_default();
    if ask.verb == ToolVerb::Shell {
        return format!("run {}", first.split_whitespace().next().unwrap_or_default());
    }
    match first.rsplit_once('/') {
        Some((folder, _)) if !first.contains("://") => format!("{} {folder}/**", ask.wants()),
        _ => format!("{} {first}", ask.wants()),
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::ask::OutsideAnswer;

    use super::*;

    fn ask(verb: ToolVerb, shown: &str) -> (PermissionAsk, bool) {
        let ask = PermissionAsk {
            tool: "t".into(),
            verb,
            shown: shown.into(),
            hash: shown.into(),
            diff: None,
            folder: String::new(),
            why: String::new(),
            rule: AskReason::NoRule,
            effects: vec![format!("writes {shown}"), "starts cargo".into()],
            risk: Risk::Low,
            always: Some("write_file(src/**)".into()),
            editable: false,
            outside: OutsideAnswer::No,
            calls: Vec::new(),
            draft: None,
            source: None,
        };
        (ask, false)
    }

    #[test]
    fn the_calls_are_counted_by_kind_and_listed_in_their_order() {
        let mut all: Vec<_> = (0..9).map(|n| ask(ToolVerb::Write, &format!("src/{n}.rs"))).collect();
        all.insert(1, ask(ToolVerb::Shell, "cargo test\nx"));
        all.push(ask(ToolVerb::Shell, "cargo build"));
        let asked = script_ask(&all, "tidy up");
        assert_eq!(asked.effects, ["11 calls: 9 x write src/**, 2 x run cargo", "starts cargo"]);
        let lines: Vec<&str> = asked.shown.lines().collect();
        assert_eq!(lines[..4], ["1. write src/0.rs", "2. run cargo test", "   x", "3. write src/1.rs"]);
        assert_eq!(asked.always.as_deref(), Some("write_file(src/**)"));
        assert_eq!((asked.calls.len(), asked.calls[1].title.as_str()), (11, "run cargo test"));
        assert_eq!(asked.calls[1].detail, "cargo test\nx");
        let other = script_ask(&all[1..], "");
        assert_ne!(asked.hash, other.hash, "an answer is bound to these calls");
    }
}
