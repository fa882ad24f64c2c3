//! Calls that did not run for want of an approval, or because the mode or a rule forbids them: said once, at the end,
//! with what allows them.

use tiller_protocol::event::AskEvent;
use tiller_protocol::{EventBody, Notice, NoticeKind, PermissionOutcome};

/// The refusals of a run, of all its agents.
#[derive(Default)]
pub(super) struct Refusals {
    unanswered: usize,
    /// Unanswered ones that no rule can name.
    nameless: usize,
    /// Rules that would have allowed the others, each once.
    allow: Vec<String>,
    /// Modes and rules that refused a change, each once.
    by: Vec<String>,
}

impl Refusals {
    /// Counts a refusal.
    pub(super) fn note(&mut self, body: &EventBody) {
        let EventBody::Ask(AskEvent::PermissionDecided { decision, by, allow, change, .. }) = body else {
            return;
        };
        let add = |all: &mut Vec<String>, text: &str| {
            if !all.iter().any(|known| known == text) {
                all.push(text.to_owned());
            }
        };
        match decision {
            PermissionOutcome::Nobody => {
                self.unanswered += 1;
                self.nameless += usize::from(allow.is_none());
                for pattern in allow.iter().flat_map(|patterns| tiller_permit::split_patterns(patterns)) {
                    add(&mut self.allow, pattern);
                }
            }
            PermissionOutcome::Denied if *change => add(&mut self.by, by),
            _ => {}
        }
    }

    /// True once a change was refused.
    pub(super) fn any_change(&self) -> bool {
        !self.by.is_empty()
    }

    /// The refusals, and the options that allow such calls; `None`: there were none.
    pub(super) fn notice(&self) -> Option<Notice> {
        let calls = match self.unanswered {
            1 => "1 call needed an approval, and no one could be asked".to_owned(),
            n => format!("{n} calls needed an approval, and no one could be asked"),
        };
        let by = format!("changes were refused: {}", self.by.join("; "));
        let text = match (self.unanswered, self.any_change()) {
            (0, false) => return None,
            (0, true) => format!("C{}", &by[1..]),
            (_, false) => calls,
            (_, true) => format!("{calls}; {by}"),
        };
        let mut notice = Notice::new(NoticeKind::Denied, format!("{text}."));
        if !self.allow.is_empty() {
            let flag = |pattern: &String| format!("--allow '{}'", pattern.replace('\'', r"'\''"));
            let all: Vec<String> = self.allow.iter().map(flag).collect();
            let rest = if self.nameless == 0 { "allows them" } else { "allows those that a rule can name" };
            notice = notice.hint(format!("{} {rest}", all.join(" ")));
        }
        if self.nameless > 0 || self.by.iter().any(|by| by.ends_with(" mode")) {
            notice = notice.hint(MODES);
        }
        Some(notice)
    }
}

/// The modes that allow more, for calls that no rule names.
const MODES: &str = "`--profile auto-edit` allows edits in the workspace, `--profile full` commands too.";

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(decision: PermissionOutcome, by: &str, allow: Option<&str>) -> EventBody {
        let decision_is_denied = decision == PermissionOutcome::Denied;
        EventBody::Ask(AskEvent::PermissionDecided {
            id: None,
            tool: "terminal".into(),
            what: "x".into(),
            decision,
            by: by.into(),
            allow: allow.map(str::to_owned),
            change: decision_is_denied,
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
        assert_eq!(
            said(&twice).unwrap(),
            r"2 calls needed an approval, and no one could be asked. --allow 'terminal(make *)' --allow 'terminal(it'\''s)' allows them"
        );
        let text = said(&[nobody(Some("terminal(make)")), nobody(None)]).unwrap();
        assert!(text.contains("allows those that a rule can name `--profile auto-edit`"), "{text}");
        let text = said(&[nobody(None)]).unwrap();
        assert!(
            text.starts_with("1 call needed an approval") && text.contains("--profile auto-edit"),
            "{text}"
        );
        let mode = || decided(PermissionOutcome::Denied, "read-only mode", None);
        let text = said(&[mode(), mode()]).unwrap();
        assert!(text.starts_with("Changes were refused: read-only mode. `--profile auto-edit`"), "{text}");
        let rule = decided(PermissionOutcome::Denied, "yours: deny write_file(src/**)", None);
        assert_eq!(
            said(&[rule]).unwrap().trim_end(),
            "Changes were refused: yours: deny write_file(src/**)."
        );
    }
}
