//! Calls that did not run for want of an approval, or because the mode or a rule forbids them: said once, at the end,
//! with what allows them.

use tiller_protocol::event::AskEvent;
use tiller_protocol::{EventBody, Notice, NoticeKind, PermissionOutcome};

/// The refusals of a run, of all its agents.
#[derive(Default)]
pub(super) struct Refusals {
    unanswered: usize,
    /// Rules that would have allowed the unanswered ones, each once.
    allow: Vec<String>,
    /// What forbade the others, each once.
    by: Vec<String>,
}

impl Refusals {
    /// Counts a refusal.
    pub(super) fn note(&mut self, body: &EventBody) {
        let EventBody::Ask(AskEvent::PermissionDecided { decision, by, allow, .. }) = body else { return };
        let add = |all: &mut Vec<String>, text: &str| {
            if !all.iter().any(|known| known == text) {
                all.push(text.to_owned());
            }
        };
        match decision {
            PermissionOutcome::Nobody => {
                self.unanswered += 1;
                for pattern in allow.iter().flat_map(|patterns| tiller_permit::split_patterns(patterns)) {
                    add(&mut self.allow, pattern);
                }
            }
            PermissionOutcome::Denied => add(&mut self.by, by),
            _ => {}
        }
    }

    /// The end of a run that was refused something; `None`: nothing is known of it.
    pub(super) fn notice(&self) -> Option<Notice> {
        let calls = match self.unanswered {
            1 => "1 call needed an approval".to_owned(),
            n => format!("{n} calls needed an approval"),
        };
        let by = self.by.join("; ");
        let (text, hint) = match (self.unanswered, self.by.is_empty()) {
            (0, true) => return None,
            (0, false) => (format!("Calls were refused: {by}."), Some(MODES.to_owned())),
            (_, true) => (format!("{calls}, and nobody could be asked."), self.flags()),
            (_, false) => {
                (format!("{calls}, and nobody could be asked; others were refused: {by}."), self.flags())
            }
        };
        let notice = Notice::new(NoticeKind::Denied, text);
        Some(match hint {
            Some(hint) => notice.hint(hint),
            None => notice.hint(MODES),
        })
    }

    /// The options that allow the unanswered calls.
    fn flags(&self) -> Option<String> {
        if self.allow.is_empty() {
            return None;
        }
        let flag = |pattern: &String| format!("--allow '{}'", pattern.replace('\'', r"'\''"));
        let all: Vec<String> = self.allow.iter().map(flag).collect();
        Some(format!("To allow them: {}", all.join(" ")))
    }
}

/// What a mode allows, where no rule can be named.
const MODES: &str = "`--profile auto-edit` allows edits in the workspace, `--profile full` commands too; `--allow RULE` allows one kind of call.";

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(decision: PermissionOutcome, by: &str, allow: Option<&str>) -> EventBody {
        EventBody::Ask(AskEvent::PermissionDecided {
            id: None,
            tool: "terminal".into(),
            what: "x".into(),
            decision,
            by: by.into(),
            allow: allow.map(str::to_owned),
        })
    }

    #[test]
    fn what_allows_the_calls_is_said_once() {
        let said = |all: &[EventBody]| {
            let mut refusals = Refusals::default();
            all.iter().for_each(|body| refusals.note(body));
            refusals.notice().map(|n| format!("{} {}", n.message, n.hints.join(" ")))
        };
        let nobody = |allow| decided(PermissionOutcome::Nobody, "no one is available to answer", allow);
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[decided(PermissionOutcome::Allowed, "full mode", None)]), None);
        let twice = [nobody(Some("terminal(make *)")), nobody(Some("terminal(make *) && terminal(it's)"))];
        let text = said(&twice).unwrap();
        assert_eq!(
            text,
            r"2 calls needed an approval, and nobody could be asked. To allow them: --allow 'terminal(make *)' --allow 'terminal(it'\''s)'"
        );
        let text = said(&[nobody(None)]).unwrap();
        assert!(
            text.starts_with("1 call needed an approval") && text.contains("--profile auto-edit"),
            "{text}"
        );
        let mode = || decided(PermissionOutcome::Denied, "read-only mode", None);
        let text = said(&[mode(), mode()]).unwrap();
        assert!(text.starts_with("Calls were refused: read-only mode. `--profile auto-edit`"), "{text}");
    }
}
