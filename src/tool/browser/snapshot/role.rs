//! Roles of elements, as far as they are treated in a way of their own.

use std::borrow::Cow;

/// The kind of an element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// A text, no element.
    #[default]
    Text,
    /// An element without a role that reacts to a click.
    Clickable,
    /// A shape of a drawing that does not react to a click itself.
    Shape,
    /// A heading and its level, from 1.
    Heading(Option<u64>),
    ListItem,
    Row,
    /// A cell of a table or a grid.
    Cell,
    /// An option of a list.
    Choice,
    /// Any other, by the browser's word.
    Other(String),
}

impl Role {
    /// Reads the browser's word.
    pub(super) fn parse(word: &str, level: Option<u64>) -> Self {
        match word {
            "StaticText" => Self::Text,
            "heading" => Self::Heading(level),
            "listitem" => Self::ListItem,
            "row" => Self::Row,
            "cell" | "gridcell" => Self::Cell,
            "option" => Self::Choice,
            "SvgRoot" => Self::Other("image".to_owned()),
            "InputTime" => Self::Other("Time".to_owned()),
            other => Self::Other(other.to_owned()),
        }
    }

    /// As snapshots show it, and as Playwright names it but for a heading's level.
    pub(crate) fn word(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Text => "",
            Self::Clickable => "clickable",
            Self::Shape => "shape",
            Self::Heading(Some(level)) => return Cow::Owned(format!("heading {level}")),
            Self::Heading(None) => "heading",
            Self::ListItem => "listitem",
            Self::Row => "row",
            Self::Cell => "cell",
            Self::Choice => "option",
            Self::Other(word) => word,
        })
    }
}
