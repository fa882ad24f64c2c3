//! Learnings: what failed, and what worked instead. The room `memory` makes and finds them.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::{EntryId, SessionId};
use crate::base::word::word_enum;
use crate::knowledge::memory::{Taint, cited};

word_enum! {
    /// Whether a learning is used.
    pub enum LearningState {
        /// It waits for the person's yes.
        Proposed = "proposed",
        /// It is attached to calls that it concerns.
        Active = "active",
        /// It is kept, and no longer used.
        Retired = "retired",
        /// It was made on a branch that was left, and comes back with it.
        Aside = "aside",
    }
}

/// Where a learning comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The last entry of the session when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The head of the session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch: String,
    pub taint: Taint,
}

impl LearningSource {
    /// The place in the sessions that it is from, `session ID, entry ID`; `None`: it is of no session.
    pub fn cited(&self) -> Option<String> {
        cited(self.session, self.entry)
    }
}

/// What is compared with later calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureKind {
    pub tool: String,
    /// Of a command its program and subcommand (`git push`), of other tools a path or a host; empty: any.
    pub subject: String,
    /// The line of the error, with paths, numbers and hashes replaced.
    #[serde(default)]
    pub error_type: String,
    /// Names in the error that tell causes apart, such as that of a missing module.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// What failed, and what worked instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learning {
    /// Its number; 0 before it is stored.
    pub id: i64,
    pub kind: FailureKind,
    /// What was tried.
    pub pattern: String,
    /// The line of the error as it was printed, for people; empty: it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// What to do instead.
    pub fix: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub state: LearningState,
    pub created_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Time>,
    #[serde(default)]
    pub times_used: u32,
    pub source: LearningSource,
}

/// What the person can make of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromotionKind {
    /// Permission rules that deny what the rule forbids.
    #[default]
    Permission,
    /// A hook: it denies with the text of the rule as its reason, or runs the command that the rule names.
    Hook,
}

/// What a rule can become, or has become.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulePromotion {
    pub kind: PromotionKind,
    /// The file that it is written to.
    pub file: String,
    /// What is written, word for word.
    pub text: String,
}

/// A rule that is shown with the calls that it concerns, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleView {
    /// The text of the rule without its matchers.
    pub text: String,
    /// Calls that it is shown with, each as a pattern of a permission rule.
    pub when: Vec<String>,
    /// Calls that it forbids, in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<String>,
    /// The file that it stands in.
    pub origin: String,
    #[serde(default)]
    pub receipts: RuleReceipts,
    /// What the person can make of it, the first choice first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<RulePromotion>,
    /// What the person made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted: Option<RulePromotion>,
}

/// How often a rule was shown, followed and violated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReceipts {
    /// Attached to the result of a call, or shown with its approval.
    pub shown: u32,
    /// A later call that it concerns, and that it does not forbid.
    pub followed: u32,
    /// A later call that it forbids.
    pub violated: u32,
}

/// Violations from which a rule may become a permission rule or a hook.
pub const VIOLATED: u32 = 2;

/// Between the patterns of one rule, in the text that is shown and stored. A pattern has one line.
pub const NEXT_PATTERN: &str = "\n";
/// Between them in texts that earlier versions stored. It may also be a part of a command.
const OLD_NEXT_PATTERN: &str = " && ";

impl PromotionKind {
    /// What is written, for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Permission => "Permission rule",
            Self::Hook => "Hook",
        }
    }

    /// The patterns in the text of an offer; the text of a hook is one part.
    pub fn parts(self, text: &str) -> Vec<&str> {
        match self {
            Self::Permission if text.contains(NEXT_PATTERN) => text.split(NEXT_PATTERN).collect(),
            Self::Permission => {
                let parts: Vec<&str> = text.split(OLD_NEXT_PATTERN).collect();
                let whole = |part: &&str| part.contains('(') == part.ends_with(')');
                if parts.iter().all(whole) { parts } else { vec![text] }
            }
            Self::Hook => vec![text],
        }
    }
}

impl RulePromotion {
    /// The text for people: `deny PATTERN` for each pattern, one a line, or the tables of a hook.
    pub fn shown(&self) -> String {
        match self.kind {
            PromotionKind::Permission => {
                let patterns = self.kind.parts(&self.text);
                patterns.iter().map(|pattern| format!("deny {pattern}")).collect::<Vec<_>>().join("\n")
            }
            PromotionKind::Hook => self.text.clone(),
        }
    }
}

impl RuleView {
    /// Why this cannot be made of the rule now; `None`: it can.
    pub fn refusal(&self, kind: PromotionKind) -> Option<&'static str> {
        match self.promoted.as_ref().map(|made| made.kind) {
            Some(PromotionKind::Permission) => return Some("This is a permission rule already"),
            Some(PromotionKind::Hook) => return Some("This is a hook already"),
            None => {}
        }
        if !self.offers.iter().any(|offer| offer.kind == kind) {
            return Some(match kind {
                PromotionKind::Permission => "The rule forbids nothing: add [never: ...] to it",
                PromotionKind::Hook => {
                    "The rule forbids nothing: add [never: ...], or name one command in backquotes"
                }
            });
        }
        match (self.may_be_promoted(), self.never.is_empty()) {
            (true, _) => None,
            (false, true) => Some("The rule was not shown twice yet"),
            (false, false) => Some("The rule was not violated twice yet"),
        }
    }

    /// Whether it may become a permission rule or a hook: it was violated twice, or shown twice where it forbids nothing and
    /// asks for a command.
    pub fn may_be_promoted(&self) -> bool {
        let enough = if self.never.is_empty() { self.receipts.shown } else { self.receipts.violated };
        self.promoted.is_none() && !self.offers.is_empty() && enough >= VIOLATED
    }
}

impl Learning {
    /// A proposed learning without texts, which is not stored yet.
    pub fn proposed(kind: FailureKind, source: LearningSource, created_at: Time) -> Self {
        Self {
            id: 0,
            kind,
            pattern: String::new(),
            error: String::new(),
            fix: String::new(),
            context: String::new(),
            tags: Vec::new(),
            state: LearningState::Proposed,
            created_at,
            last_used_at: None,
            times_used: 0,
            source,
        }
    }

    /// Every text that others may have written, for changes that concern all of it, such as masking secrets.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { kind, pattern, error, fix, context, tags, source, .. } = self;
        let FailureKind { tool, subject, error_type, details } = kind;
        let single = [pattern, error, fix, context, tool, subject, error_type];
        let source = [&mut source.agent, &mut source.branch];
        single.into_iter().chain(details).chain(tags).chain(source)
    }

    /// What is searched of it: tool, subject, error, what was tried, what to do instead, context and tags.
    pub fn search_text(&self) -> String {
        let (kind, tags) = (&self.kind, self.tags.join(" "));
        [&kind.tool, &kind.subject, &kind.error_type, &self.pattern, &self.fix, &self.context, &tags]
            .map(String::as_str)
            .join(" ")
    }

    /// The error for people: as it was printed, else its form without paths and numbers.
    pub fn shown_error(&self) -> &str {
        if self.error.is_empty() { &self.kind.error_type } else { &self.error }
    }
}

impl RuleReceipts {
    /// It was never shown.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What of a learning the person may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningText {
    pub pattern: String,
    pub fix: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
}

/// The person's decisions about learnings and rules. Each is answered by `done_reply` or `error_reply`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LearningCommand {
    /// Use it, or retire it.
    Decide {
        id: i64,
        state: LearningState,
    },
    Edit {
        id: i64,
        text: LearningText,
    },
    /// Bring back what the last change of it replaced.
    Undo {
        id: i64,
    },
    /// Make a permission rule or a hook of a rule; `text`: as it was shown to the person.
    Promote {
        rule: String,
        #[serde(default)]
        kind: PromotionKind,
        text: String,
    },
    /// Take back the last promotion of this rule.
    Demote {
        rule: String,
    },
}

/// Which learnings are asked for, answered by `learnings_reply`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningsQuery {
    /// Words that must occur.
    #[serde(default)]
    pub filter: String,
    /// `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<LearningState>,
    pub limit: u32,
}

/// Learnings, newest use first, and the rules of memory files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningsReply {
    pub learnings: Vec<Learning>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleView>,
}

/// Something happened to learnings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningNews {
    /// Learnings that were attached to a result or a message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<Learning>,
    /// The call whose result they were attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Rules that were shown with the call, by their text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// How many learnings wait for the person.
    pub pending: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_what_it_can_become_and_why_not() {
        let offer = |kind, text: &str| RulePromotion { kind, file: "f".into(), text: text.into() };
        let (permission, hook) = (PromotionKind::Permission, PromotionKind::Hook);
        let mut rule = RuleView { text: "No pushes.".into(), ..RuleView::default() };
        for kind in [permission, hook] {
            assert!(rule.refusal(kind).unwrap().contains("forbids nothing"));
        }
        rule.offers = vec![offer(hook, "[[hooks.after-tool-call]]")];
        rule.receipts.shown = 1;
        assert!(rule.refusal(hook).unwrap().contains("not shown twice"));
        rule.receipts.shown = 2;
        assert_eq!(rule.refusal(hook), None);
        assert!(rule.refusal(permission).unwrap().contains("forbids nothing"));
        rule.never = vec!["terminal(a*)".into()];
        rule.offers.push(offer(permission, "terminal(a*)"));
        assert!(rule.refusal(permission).unwrap().contains("not violated twice"));
        rule.receipts.violated = 2;
        assert_eq!((rule.refusal(permission), rule.refusal(hook)), (None, None));
        rule.promoted = Some(offer(hook, "x"));
        assert!(rule.refusal(permission).unwrap().contains("a hook already"));
        rule.promoted = Some(offer(permission, "x"));
        assert!(rule.refusal(hook).unwrap().contains("a permission rule already"));
    }

    #[test]
    fn a_learning_is_searched_by_each_of_its_texts() {
        let learning: Learning = serde_json::from_value(serde_json::json!({
            "id": 1, "kind": {"tool": "t", "subject": "s", "error_type": "e"}, "pattern": "p", "fix": "f",
            "context": "c", "tags": ["g", "h"], "state": "active", "created_at": "2026-01-01T00:00:00Z",
            "source": {"taint": "agent"},
        }))
        .unwrap();
        assert_eq!(learning.search_text(), "t s e p f c g h");
    }

    #[test]
    fn each_pattern_of_a_permission_rule_is_shown_with_what_it_does() {
        let shown = |kind, text: &str| RulePromotion { kind, file: "f".into(), text: text.into() }.shown();
        assert_eq!(
            shown(PromotionKind::Permission, "terminal(a*)\nterminal(b && c)"),
            "deny terminal(a*)\ndeny terminal(b && c)"
        );
        // As earlier versions stored it.
        assert_eq!(
            shown(PromotionKind::Permission, "terminal(a*) && terminal(b*)"),
            "deny terminal(a*)\ndeny terminal(b*)"
        );
        let hook = "[[hooks.after-tool-call]]\ncommand = \"a && b\"";
        assert_eq!(shown(PromotionKind::Hook, hook), hook);
    }

    #[test]
    fn every_text_of_a_learning_is_visited() {
        let text = || "the-secret".to_owned();
        let kind =
            FailureKind { tool: text(), subject: text(), error_type: text(), details: vec![text(), text()] };
        let source =
            LearningSource { session: None, entry: None, agent: text(), branch: text(), taint: Taint::Web };
        let mut learning = Learning {
            id: 1,
            kind,
            pattern: text(),
            error: text(),
            fix: text(),
            context: text(),
            tags: vec![text(), text()],
            state: LearningState::Proposed,
            created_at: Time(0),
            last_used_at: None,
            times_used: 0,
            source,
        };
        learning.texts_mut().for_each(String::clear);
        let json = serde_json::to_string(&learning).unwrap();
        assert!(!json.contains("the-secret"), "{json}");
    }
}
