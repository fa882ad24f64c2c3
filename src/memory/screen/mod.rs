//! What is found in a text that is to be kept: in memory, in a learning, in a skill. What is refused, is for each of them to
//! say.

mod hidden;
mod instructions;

use std::sync::Arc;

/// Names the kind of a secret in a text; `None`: there is none.
pub type FindSecret = Arc<dyn Fn(&str) -> Option<&'static str> + Send + Sync>;

/// Something in a text that may be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A character that is not seen on a screen, or that changes the order of others.
    Hidden(char),
    /// A secret of this kind.
    Secret(&'static str),
    /// An HTML comment, which readers of Markdown do not see.
    Comment,
    /// It speaks to an agent: it replaces instructions, loosens rules, hides something, or runs what the network sends.
    Instruction,
}

/// The kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    Hidden,
    Secret,
    Comment,
    Instruction,
}

impl std::fmt::Display for Finding {
    /// As the end of a sentence about the text: `it contains a secret (api key)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hidden(c) => {
                write!(f, "contains an invisible character (U+{:04X}), which can hide text", u32::from(*c))
            }
            Self::Secret(kind) => write!(f, "contains a secret ({kind})"),
            Self::Comment => f.write_str("contains an HTML comment, which readers of the file do not see"),
            Self::Instruction => f.write_str("reads like an instruction to an agent"),
        }
    }
}

/// Whether a text reads like an instruction to an agent: [`Finding::Instruction`].
pub(crate) fn instructs(text: &str) -> bool {
    instructions::instructs(text)
}

/// A text as it is compared with others, in one line: small letters, look-alikes as the ASCII letters that they resemble, accents
/// and emphasis away, one blank between words.
pub(crate) fn comparable(text: &str) -> String {
    instructions::plain(text).trim().to_owned()
}

/// The first thing in a text that is of a kind in `refused`, in its order.
pub fn find(text: &str, refused: &[FindingKind], secret: &FindSecret) -> Option<Finding> {
    refused.iter().find_map(|kind| match kind {
        FindingKind::Hidden => hidden::hidden(text).map(Finding::Hidden),
        FindingKind::Secret => secret(text).map(Finding::Secret),
        FindingKind::Comment => text.contains("<!--").then_some(Finding::Comment),
        FindingKind::Instruction => instructions::instructs(text).then_some(Finding::Instruction),
    })
}

/// Finds no secret: for texts in which secrets were replaced already.
pub fn no_secret() -> FindSecret {
    Arc::new(|_| None)
}
