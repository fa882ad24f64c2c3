//! Questions as lines of text, for a person at a terminal without a screen. Anything other than a clear yes is a no.

use std::io::Write as _;

use tiller_protocol::ask::{OutsideAnswer, budget_words};
use tiller_protocol::{AgentId, AskBody, AskReply, Decision};
use tiller_text::clean::plain;

use crate::commands::sessions::one_line;

/// Shows a question on standard error.
pub(crate) fn put(body: &AskBody, agent: &AgentId) {
    let mut text = String::new();
    let mut line = |t: &str| {
        text.push_str(t);
        text.push('\n');
    };
    match body {
        AskBody::Permission(p) => {
            line(&format!("? {agent} wants to {}:", p.wants()));
            for l in p.shown.lines().chain(p.diff.iter().flat_map(|d| d.lines())) {
                line(&format!("    {}", plain(l)));
            }
            line(match p.outside {
                OutsideAnswer::No => "  yes, once: y    no: n    no, with a comment: type it",
                OutsideAnswer::Offered => {
                    "  yes, once: y    yes, outside the sandbox: o    no: n    no, with a comment: type it"
                }
                OutsideAnswer::Only => {
                    "  yes, outside the sandbox: o    no: n    no, with a comment: type it"
                }
            });
        }
        AskBody::Clarify { question, choices, allow_freetext, default, .. } => {
            line(&format!("? {}", plain(question)));
            for (i, c) in choices.iter().enumerate() {
                let usual = if *default == Some(i) { "  (enter)" } else { "" };
                line(&format!("  {}. {}{usual}", i + 1, plain(c)));
            }
            if *allow_freetext {
                line("  or type your answer");
            }
        }
        AskBody::Plan { file, plan } => {
            line(&format!("? {agent} has a plan:"));
            plan.lines().for_each(|l| line(&format!("    {}", plain(l))));
            line(&format!("  The plan is in {}; you can edit it there first.", plain(file)));
            line("  approve: y    no: n    change it: type what to change");
        }
        other => {
            line(&format!("? {}", describe(other)));
            line("  yes: y    no: n");
        }
    }
    // Standard error may be closed; then the answer is no.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The reply for a line. An empty line also represents the end of the input.
pub(crate) fn reply(body: &AskBody, answer: &str) -> AskReply {
    let answer = answer.trim();
    let yes = matches!(answer, "y" | "yes");
    match body {
        AskBody::Permission(p) => {
            let comment = (!matches!(answer, "" | "n" | "no")).then(|| answer.to_owned());
            let decision = match (answer, p.outside) {
                ("o", OutsideAnswer::Offered | OutsideAnswer::Only) => Decision::Outside,
                (_, OutsideAnswer::No | OutsideAnswer::Offered) if yes => Decision::Once,
                // Only its own letter leads out of the sandbox.
                (_, OutsideAnswer::Only) if yes => Decision::Deny { comment: None },
                _ => Decision::Deny { comment },
            };
            AskReply::Permission { decision, hash: p.hash.clone() }
        }
        AskBody::Clarify { choices, allow_freetext, default, .. } => {
            let number =
                || answer.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?)).cloned();
            let usual = || default.filter(|_| answer.is_empty()).and_then(|d| choices.get(d)).cloned();
            let chosen = number()
                .or_else(|| choices.iter().find(|c| *c == answer).cloned())
                .or_else(|| (*allow_freetext && !answer.is_empty()).then(|| answer.to_owned()))
                .or_else(usual);
            chosen.map_or(AskReply::Declined, |c| AskReply::Choice { answers: vec![c] })
        }
        AskBody::Plan { .. } if !yes && !matches!(answer, "" | "n" | "no") => {
            AskReply::Choice { answers: vec![answer.to_owned()] }
        }
        AskBody::SessionBusy { .. } if yes => AskReply::Branch,
        AskBody::SessionBusy { .. } => AskReply::ReadOnly,
        _ if yes => AskReply::Yes { value: None },
        _ => AskReply::Declined,
    }
}

/// A question with yes and no, in a line. Empty for other questions.
pub(crate) fn describe(body: &AskBody) -> String {
    match body {
        AskBody::Trust { folder, brings, .. } => format!(
            "{} contains {} file(s) that could run programs, loosen rules or instruct agents. Trust it?",
            one_line(folder),
            brings.len()
        ),
        AskBody::Budget { what, spent, limit, next } => {
            let state = budget_words(spent, limit, next.as_deref());
            format!("{what}: {state}. Raise the limit by the same amount and continue?")
        }
        AskBody::DeepTier { model, why } => {
            format!("Use the expensive model {}? {}", one_line(model), one_line(why))
        }
        AskBody::Repeats { calls, rounds } => {
            format!(
                "The agent made the same calls with the same results {rounds} times ({}). Continue?",
                one_line(calls)
            )
        }
        AskBody::Unpriced { model, why } => {
            format!("Use {} without a known price? {}", one_line(model), one_line(why))
        }
        AskBody::SessionBusy { holder } => {
            format!("The session is open in {}. Continue on a branch of the session?", one_line(holder))
        }
        AskBody::NotSaving { why } => {
            format!("The session cannot be saved: {}. Continue without saving?", one_line(why))
        }
        AskBody::Permission(_) | AskBody::Clarify { .. } | AskBody::Plan { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::ask::{AskReason, PermissionAsk, Risk};

    use super::*;

    fn permission() -> AskBody {
        AskBody::Permission(PermissionAsk {
            tool: "terminal".into(),
            verb: "shell".into(),
            shown: "ls".into(),
            hash: "h".into(),
            diff: None,
            folder: String::new(),
            why: String::new(),
            rule: AskReason::NoRule,
            effects: Vec::new(),
            risk: Risk::High,
            always: None,
            editable: false,
            outside: OutsideAnswer::No,
            calls: Vec::new(),
            draft: None,
            source: None,
        })
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let body = permission();
        let deny = |c: Option<&str>| Decision::Deny { comment: c.map(str::to_owned) };
        for (line, want) in [
            ("y\n", Decision::Once),
            ("yes", Decision::Once),
            ("", deny(None)),
            ("n", deny(None)),
            ("Y", deny(Some("Y"))),
            ("yes please", deny(Some("yes please"))),
        ] {
            let got = reply(&body, line);
            assert_eq!(got, AskReply::Permission { decision: want, hash: "h".into() }, "{line:?}");
        }
        let busy = AskBody::SessionBusy { holder: "7".into() };
        assert_eq!((reply(&busy, "y"), reply(&busy, "")), (AskReply::Branch, AskReply::ReadOnly));
        let deep = AskBody::DeepTier { model: "m".into(), why: String::new() };
        assert_eq!(
            (reply(&deep, "y"), reply(&deep, "")),
            (AskReply::Yes { value: None }, AskReply::Declined)
        );
    }

    #[test]
    fn a_choice_is_made_by_number_by_text_or_by_default() {
        let clarify = |free: bool, default: Option<usize>| AskBody::Clarify {
            question: "which?".into(),
            choices: vec!["red".into(), "blue".into()],
            allow_freetext: free,
            multiple: false,
            default,
            decides: Vec::new(),
        };
        let choice = |c: &str| AskReply::Choice { answers: vec![c.into()] };
        assert_eq!(reply(&clarify(false, None), "2"), choice("blue"));
        assert_eq!(reply(&clarify(false, None), "red"), choice("red"));
        assert_eq!(reply(&clarify(false, None), "3"), AskReply::Declined);
        assert_eq!(reply(&clarify(false, None), "0"), AskReply::Declined);
        assert_eq!(reply(&clarify(true, None), "green"), choice("green"));
        assert_eq!(reply(&clarify(true, Some(1)), ""), choice("blue"));
        assert_eq!(reply(&clarify(true, None), ""), AskReply::Declined);
    }
}
