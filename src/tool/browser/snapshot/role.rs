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

    /// The word of ARIA, or that of the browser where it has one of its own.
    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Text => "",
            Self::Clickable => "clickable",
            Self::Shape => "shape",
            Self::Heading(_) => "heading",
            Self::ListItem => "listitem",
            Self::Row => "row",
            Self::Cell => "cell",
            Self::Choice => "option",
            Self::Other(word) => word,
        }
    }

    /// As snapshots show it: the name of the HTML element where that is shorter.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Heading(Some(level)) => return Cow::Owned(format!("h{level}")),
            _ => match self.word() {
                "navigation" => "nav",
                "banner" => "header",
                "contentinfo" => "footer",
                "complementary" => "aside",
                other => other,
            },
        })
    }

    /// The role that the items of a menu, a list of tabs or the like have, unless they name another one.
    pub(super) fn usual_item(&self) -> Option<&'static str> {
        Some(match self.word() {
            "menu" | "menubar" => "menuitem",
            "tablist" => "tab",
            "listbox" | "combobox" => "option",
            "tree" => "treeitem",
            "radiogroup" => "radio",
            "navigation" => "link",
            _ => return None,
        })
    }
}
