//! Remarks that were not sent yet. They are kept like drafts: in a file of the session, and one set for the view and
//! the dialog, whatever turn is shown.

use std::cell::RefCell;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tiller_protocol::SessionId;

use crate::app::saver::Saver;

/// What a remark is about, and what it says. Kept by the line's text as well, so that it survives a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Comment {
    pub path: String,
    /// Line in the new file, or in the old one for a removed line.
    pub line: u32,
    /// The line's text.
    pub quote: String,
    pub text: String,
}

/// A place that a remark can be about: path, line, the line's text.
pub(crate) type Spot = (String, u32, String);

impl Comment {
    pub(crate) fn on(spot: &Spot, text: String) -> Self {
        Self { path: spot.0.clone(), line: spot.1, quote: spot.2.clone(), text }
    }

    pub(crate) fn is_on(&self, spot: &Spot) -> bool {
        self.path == spot.0 && self.line == spot.1 && self.quote == spot.2
    }
}

/// The unsent remarks of one session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Remarks {
    /// Finished with Enter: they go out with the next message.
    pub(crate) done: Vec<Comment>,
    /// Begun and left: they come back when the line is remarked on again.
    pub(crate) begun: Vec<Comment>,
}

impl crate::app::saver::Kept for Remarks {}

impl Remarks {
    /// What a new remark on `spot` starts with: what was begun there, else the remark that is there.
    pub(crate) fn text_on(&self, spot: &Spot) -> String {
        let mut both = self.begun.iter().chain(&self.done);
        both.find(|c| c.is_on(spot)).map(|c| c.text.clone()).unwrap_or_default()
    }

    /// Adds, changes or (with an empty text) removes the remark on `spot`.
    pub(crate) fn finish(&mut self, spot: &Spot, text: String) {
        self.begun.retain(|c| !c.is_on(spot));
        self.done.retain(|c| !c.is_on(spot));
        if !text.trim().is_empty() {
            self.done.push(Comment::on(spot, text));
        }
    }

    /// Keeps what is being written on `spot` without sending it.
    pub(crate) fn begin(&mut self, spot: &Spot, text: &str) {
        self.begun.retain(|c| !c.is_on(spot));
        let same = self.done.iter().any(|c| c.is_on(spot) && c.text == text);
        if !same && !text.trim().is_empty() {
            self.begun.push(Comment::on(spot, text.to_owned()));
        }
    }

    /// Takes the finished ones out, as one message to the agent; `None`: there are none.
    pub(crate) fn take_message(&mut self) -> Option<String> {
        let done = std::mem::take(&mut self.done);
        (!done.is_empty()).then(|| said(&done))
    }
}

/// Remarks as one message.
pub(crate) fn said(all: &[Comment]) -> String {
    let mut out = String::from("My review of your changes:\n");
    for c in all {
        out.push_str(&format!("\n{}:{}\n> {}\n{}\n", c.path, c.line, c.quote.trim(), c.text.trim()));
    }
    out
}

/// The set of remarks that all reviews of a window share, with the file that keeps it.
#[derive(Default)]
pub struct RemarkBook {
    open: RefCell<Open>,
}

#[derive(Default)]
struct Open {
    session: Option<SessionId>,
    remarks: Remarks,
    /// Grows with each change.
    revision: u64,
    saver: Option<Saver<Remarks>>,
}

impl RemarkBook {
    /// The remarks of `session`, and their revision. `folder`: of the workspace's drafts; without one nothing is kept
    /// beyond this process.
    pub(crate) fn read(&self, folder: Option<&Path>, session: SessionId) -> (Remarks, u64) {
        let mut open = self.open.borrow_mut();
        if open.session != Some(session) {
            // What was changed last is on disk before another file is read.
            drop(open.saver.take());
            let path = folder.map(|f| f.join("remarks").join(format!("{}.json", session.0)));
            let kept = path.as_ref().and_then(|p| std::fs::read(p).ok());
            open.remarks = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            open.saver = path.map(Saver::new);
            open.session = Some(session);
            open.revision += 1;
        }
        (open.remarks.clone(), open.revision)
    }

    /// Keeps `remarks` for `session`, when they are others than before; gives their revision.
    pub(crate) fn write(&self, session: SessionId, remarks: &Remarks) -> u64 {
        let mut open = self.open.borrow_mut();
        if open.session == Some(session) && open.remarks != *remarks {
            open.remarks.clone_from(remarks);
            open.revision += 1;
            if let Some(saver) = &mut open.saver {
                saver.save(remarks.clone());
            }
        }
        open.revision
    }
}
