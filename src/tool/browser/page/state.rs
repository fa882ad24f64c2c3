//! The reports of a browser on a tab.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::EMPTY;

/// Notes that are kept for the next result.
const NOTES: usize = 20;
/// Bytes of a page's text in a note.
const QUOTED: usize = 300;

/// How a dialog of the page is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DialogAnswer {
    pub(crate) accept: bool,
    /// The text that is typed into a prompt.
    pub(crate) text: Option<String>,
}

/// The state of a tab.
#[derive(Debug, Default)]
pub(crate) struct PageState {
    /// Address of the main frame; empty before the first one.
    pub(crate) url: String,
    /// The address that the agent asked for last, which the permission rules allowed.
    pub(crate) asked: Option<String>,
    /// Number of documents that the main frame has had.
    pub(crate) documents: u64,
    /// HTTP status of the document; `None`: not known yet.
    pub(crate) status: Option<u16>,
    /// The main frame loads.
    pub(crate) loading: bool,
    /// A frame of the tab was asked to go elsewhere and has not yet begun to.
    pub(crate) leaving: bool,
    /// Why the tab is gone; `None`: it is there.
    pub(crate) gone: Option<Gone>,
    /// The data that the browser would drag, since drags are taken over.
    pub(crate) dragged: Option<Value>,
    /// Address of the page that opened the tab, until the tab has a document of its own.
    pub(crate) opener: Option<String>,
    /// Requests without a reply.
    pub(crate) open: HashSet<String>,
    /// Frames of other processes: session by frame.
    pub(crate) frames: BTreeMap<String, String>,
    pub(crate) dialog: Option<DialogAnswer>,
    /// Address of the main frame's document whose request was refused, and why.
    pub(crate) refused: Option<(String, String)>,
    /// The field that asked for files last, if it got none.
    pub(crate) chooser: Option<Chooser>,
    /// Notes since the last result, each in one line.
    pub(crate) notes: Vec<String>,
}

/// A field that asks for files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chooser {
    /// Session of its frame.
    pub(crate) session: String,
    pub(crate) node: i64,
}

/// Why a tab is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Its page or the browser closed it.
    Closed,
    Crashed,
}

impl PageState {
    /// True if this is the address of its document.
    pub(crate) fn is_at(&self, address: &str) -> bool {
        self.url == address
    }

    /// True while no document of an address has been shown.
    pub(crate) fn is_blank(&self) -> bool {
        self.url.is_empty() || self.is_at(EMPTY)
    }

    /// Starts a navigation by a call.
    pub(crate) fn begin(&mut self, url: &str) {
        self.loading = true;
        self.refused = None;
        self.status = None;
        self.asked = Some(url.to_owned());
    }

    /// Adds a note; once the list is full the oldest goes.
    pub(crate) fn note(&mut self, note: String) {
        if self.notes.last() == Some(&note) {
            return;
        }
        if self.notes.len() == NOTES {
            self.notes.remove(0);
        }
        self.notes.push(note);
    }
}

/// Text of a page within a note: one line, bounded, quoted.
pub(crate) fn quoted(text: &str) -> String {
    let line = crate::text::one_line(text);
    let cut = &line[..line.floor_char_boundary(QUOTED)];
    format!("{cut:?}{}", if cut.len() < line.len() { "..." } else { "" })
}
