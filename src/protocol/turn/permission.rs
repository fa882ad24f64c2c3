//! The outcome of a permission check.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::turn::ask::Decision;

/// The result of a call that the person denied, as the model reads it: followed by a full stop, or by `: ` and the
/// person's words.
pub const DENIED_BY_USER: &str = "The user denied this call";

/// The result of a denied call as the person reads it: their own denial is addressed to them.
pub fn denied_for_person(result: &str) -> std::borrow::Cow<'_, str> {
    match result.strip_prefix(DENIED_BY_USER) {
        Some(rest) if rest.starts_with(['.', ':']) => format!("You denied this{rest}").into(),
        _ => result.into(),
    }
}

/// How the permission for one call was decided.
///
/// It is written in two ways. The audit names the person's answers `ask:once`, so that they differ from the decisions of
/// rules ([`Self::audit_word`], which is also its form in JSON); an event names them `once` ([`Self::event_word`], for
/// fields with `#[serde(with = "permission::event")]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionOutcome {
    /// A rule allowed it, or the call was the person's own.
    Allowed,
    /// A rule or the engine denied it.
    Denied,
    /// The person allowed this call.
    Once,
    /// The person allowed this call outside the sandbox.
    Outside,
    /// The person allowed it for the rest of the session.
    Session,
    /// The person allowed it for good.
    Always,
    /// The person changed the text; rules decide about the new one.
    Edited,
    /// The person denied it.
    Refused,
    /// It needed an approval, and no one could answer.
    Nobody,
    /// Nothing was decided: the call failed or ended before.
    Undecided,
    /// An external program permitted it by its own rules, and did not ask.
    External,
    /// A word that this version does not know, as it was written.
    Other(String),
}

impl PermissionOutcome {
    /// The word in the audit.
    pub fn audit_word(&self) -> &str {
        match self {
            Self::Allowed => "allow",
            Self::Denied => "deny",
            Self::Once => "ask:once",
            Self::Outside => "ask:outside",
            Self::Session => "ask:session",
            Self::Always => "ask:always",
            Self::Edited => "ask:edit",
            Self::Refused => "ask:deny",
            Self::Nobody => "nobody",
            Self::Undecided => "none",
            Self::External => "its own",
            Self::Other(word) => word,
        }
    }

    /// The word in an event. A person's denial and a rule's are the same word here.
    pub fn event_word(&self) -> &str {
        match self {
            Self::Once => "once",
            Self::Outside => "outside",
            Self::Session => "session",
            Self::Always => "always",
            Self::Edited => "edit",
            Self::Refused => "deny",
            other => other.audit_word(),
        }
    }

    /// The word that a person reads: that of the button which was pressed, or what else decided.
    pub fn label(&self) -> &str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied | Self::Refused => "denied",
            Self::Once => "once",
            Self::Outside => "outside the sandbox",
            Self::Session => "session",
            Self::Always => "always",
            Self::Edited => "edited",
            Self::Nobody => "unanswered",
            Self::Undecided => "undecided",
            Self::External => "own rules",
            Self::Other(word) => word,
        }
    }

    /// From a word of the audit.
    pub fn from_audit_word(word: &str) -> Self {
        match word {
            "allow" => Self::Allowed,
            "deny" => Self::Denied,
            "ask:once" => Self::Once,
            "ask:outside" => Self::Outside,
            "ask:session" => Self::Session,
            "ask:always" => Self::Always,
            "ask:edit" => Self::Edited,
            "ask:deny" => Self::Refused,
            "nobody" => Self::Nobody,
            "none" => Self::Undecided,
            "its own" => Self::External,
            other => Self::Other(other.to_owned()),
        }
    }

    /// From a word of an event.
    pub fn from_event_word(word: &str) -> Self {
        match word {
            "once" => Self::Once,
            "outside" => Self::Outside,
            "session" => Self::Session,
            "always" => Self::Always,
            "edit" => Self::Edited,
            word if word.starts_with("ask:") => Self::Other(word.to_owned()),
            word => Self::from_audit_word(word),
        }
    }

    /// The call was denied by a rule or by the person, or no one could answer.
    pub fn denies(&self) -> bool {
        matches!(self, Self::Denied | Self::Refused | Self::Nobody)
    }

    /// The person answered, and did not deny it.
    pub fn consents(&self) -> bool {
        matches!(self, Self::Once | Self::Outside | Self::Session | Self::Always | Self::Edited)
    }
}

impl From<&Decision> for PermissionOutcome {
    fn from(decision: &Decision) -> Self {
        match decision {
            Decision::Once => Self::Once,
            Decision::Outside => Self::Outside,
            Decision::Session { .. } => Self::Session,
            Decision::Always { .. } => Self::Always,
            Decision::Edit { .. } => Self::Edited,
            Decision::Deny { .. } => Self::Refused,
        }
    }
}

impl Serialize for PermissionOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.audit_word())
    }
}

impl<'de> Deserialize<'de> for PermissionOutcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_audit_word(&String::deserialize(deserializer)?))
    }
}

/// The form in events, for `#[serde(with = "permission::event")]`.
pub(crate) mod event {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        outcome: &PermissionOutcome,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(outcome.event_word())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PermissionOutcome, D::Error> {
        Ok(PermissionOutcome::from_event_word(&String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_as_they_were_written() {
        use PermissionOutcome as P;
        let all = [
            P::Allowed,
            P::Denied,
            P::Once,
            P::Outside,
            P::Session,
            P::Always,
            P::Edited,
            P::Refused,
            P::Nobody,
            P::Undecided,
            P::External,
            P::Other("later".into()),
        ];
        for one in all {
            assert_eq!(P::from_audit_word(one.audit_word()), one);
            let event = P::from_event_word(one.event_word());
            assert_eq!(event.event_word(), one.event_word());
            assert!(!one.label().contains([':', '_']), "{one:?}: {}", one.label());
            assert_eq!((event.denies(), event.consents()), (one.denies(), one.consents()), "{one:?}");
        }
        // The audit's form in an event, as none ever had it, is kept as it is.
        assert_eq!(P::from_event_word("ask:once").event_word(), "ask:once");
    }
}
