//! What a browser reported of a tab.

use std::collections::{BTreeMap, HashSet};

/// Notes that are kept for the next result.
const NOTES: usize = 20;
/// Bytes of a page's text in a note.
const QUOTED: usize = 300;

/// How a dialog of the page is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DialogAnswer {
    pub(crate) accept: bool,
    /// What is typed into a prompt.
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
    /// Whether the main frame loads.
    pub(crate) loading: bool,
    /// Whether a frame of the tab was asked to go elsewhere and has not yet begun to.
    pub(crate) leaving: bool,
    pub(crate) crashed: bool,
    /// Requests without a reply.
    pub(crate) open: HashSet<String>,
    /// Tabs that the page opened, which no call has taken over yet.
    pub(crate) opened: Vec<OpenedTab>,
    /// Frames of other processes: session by frame.
    pub(crate) frames: BTreeMap<String, String>,
    /// Downloads: suggested name by id.
    pub(crate) downloads: BTreeMap<String, String>,
    pub(crate) dialog: Option<DialogAnswer>,
    /// Why the request of the main frame's document was refused.
    pub(crate) refused: Option<String>,
    /// What happened since the last result, each in one line.
    pub(crate) notes: Vec<String>,
}

/// A tab that a page opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenedTab {
    pub(crate) session: String,
    pub(crate) target: String,
}

impl PageState {
    /// True if this is the address of its document.
    pub(crate) fn is_at(&self, address: &str) -> bool {
        self.url == address
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
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = &line[..line.floor_char_boundary(QUOTED)];
    format!("{cut:?}{}", if cut.len() < line.len() { "..." } else { "" })
}
