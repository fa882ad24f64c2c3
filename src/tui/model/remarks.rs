//! Remarks that were not sent yet. They are kept like drafts: one set for the view and the dialog, whatever turn is
//! shown, and a file for each window of the session, so that two windows never overwrite each other. While a window is
//! open it holds the lock beside its file; files without a window are taken over by the next one.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiller_protocol::SessionId;

use crate::app::saver::{Saver, own_lock, write};

/// Windows of one session that keep their remarks at the same time.
const WINDOWS: usize = 64;

/// A remark: its place, and its words. Kept by the line's text as well, so that it survives a reload.
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
pub(crate) type CommentAnchor = (String, u32, String);

impl Comment {
    pub(crate) fn on(spot: &CommentAnchor, text: String) -> Self {
        Self { path: spot.0.clone(), line: spot.1, quote: spot.2.clone(), text }
    }

    pub(crate) fn is_on(&self, spot: &CommentAnchor) -> bool {
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

impl crate::app::saver::Persistent for Remarks {}

impl Remarks {
    /// Returns what a new remark on `spot` starts with: what was begun there, else the remark that is there.
    pub(crate) fn text_on(&self, spot: &CommentAnchor) -> String {
        let mut both = self.begun.iter().chain(&self.done);
        both.find(|c| c.is_on(spot)).map(|c| c.text.clone()).unwrap_or_default()
    }

    /// Adds, changes or (with an empty text) removes the comment on `spot`.
    pub(crate) fn finish(&mut self, spot: &CommentAnchor, text: String) {
        self.begun.retain(|c| !c.is_on(spot));
        self.done.retain(|c| !c.is_on(spot));
        if !text.trim().is_empty() {
            self.done.push(Comment::on(spot, text));
        }
    }

    /// Keeps what is being written on `spot` without sending it.
    pub(crate) fn begin(&mut self, spot: &CommentAnchor, text: &str) {
        self.begun.retain(|c| !c.is_on(spot));
        let same = self.done.iter().any(|c| c.is_on(spot) && c.text == text);
        if !same && !text.trim().is_empty() {
            self.begun.push(Comment::on(spot, text.to_owned()));
        }
    }

    /// Takes in what another window left. Of two remarks on one place both texts stay.
    fn take_in(&mut self, other: Self) {
        for (mine, theirs) in [(&mut self.done, other.done), (&mut self.begun, other.begun)] {
            for c in theirs {
                let same = |m: &&mut Comment| m.path == c.path && m.line == c.line && m.quote == c.quote;
                match mine.iter_mut().find(same) {
                    Some(there) if there.text == c.text => {}
                    Some(there) => there.text = format!("{}\n\n{}", there.text, c.text),
                    None => mine.push(c),
                }
            }
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
    open: RefCell<OpenRemarks>,
}

#[derive(Default)]
struct OpenRemarks {
    session: Option<SessionId>,
    remarks: Remarks,
    /// Grows with each change.
    revision: u64,
    own: Option<RemarkFile>,
}

/// The file that keeps the comments of this window.
struct RemarkFile {
    path: PathBuf,
    /// Begun with the first change.
    saver: Option<Saver<Remarks>>,
    /// Held while this window shows the session.
    _lock: File,
}

impl Drop for RemarkFile {
    fn drop(&mut self) {
        // What was changed last is on disk first.
        drop(self.saver.take());
        if !self.path.exists() {
            let _ = std::fs::remove_file(self.path.with_extension("lock"));
        }
    }
}

impl RemarkFile {
    /// The first file of `session` that no living window has, with all that such files hold. A file that cannot be
    /// read stays where it is.
    fn open(folder: &Path, session: SessionId) -> Option<(Self, Remarks)> {
        let mut own: Option<Self> = None;
        let (mut remarks, mut left) = (Remarks::default(), Vec::new());
        for n in 0..WINDOWS {
            let name = if n == 0 { format!("{}.json", session.0) } else { format!("{}.{n}.json", session.0) };
            let path = folder.join(name);
            if own.is_some() && !path.exists() {
                continue;
            }
            let Some(lock) = own_lock(&path) else { continue };
            // Looked at under the lock: another window may have taken it over just now.
            match std::fs::read(&path).map(|bytes| serde_json::from_slice(&bytes)) {
                Ok(Ok(kept)) => remarks.take_in(kept),
                Ok(Err(error)) => {
                    tracing::warn!(%error, path = %path.display(), "unsent remarks cannot be read");
                    continue;
                }
                Err(_) => {}
            }
            match own {
                None => own = Some(Self { path, saver: None, _lock: lock }),
                Some(_) => left.push((path, lock)),
            }
        }
        let own = own?;
        // Only when it is all in one file, the others go.
        if !left.is_empty() {
            match write(&own.path, &remarks) {
                Ok(()) => left.iter().for_each(|(path, _)| {
                    let _ = std::fs::remove_file(path);
                    let _ = std::fs::remove_file(path.with_extension("lock"));
                }),
                Err(error) => tracing::warn!(%error, "unsent remarks of several windows could not be merged"),
            }
        }
        Some((own, remarks))
    }
}

impl RemarkBook {
    /// The remarks of `session`, and their revision. `folder`: of the workspace's drafts; without one nothing is kept
    /// beyond this process.
    pub(crate) fn read(&self, folder: Option<&Path>, session: SessionId) -> (Remarks, u64) {
        let mut open = self.open.borrow_mut();
        if open.session != Some(session) {
            // What was changed last is on disk before another file is read.
            drop(open.own.take());
            let kept = folder.and_then(|f| RemarkFile::open(&f.join("remarks"), session));
            (open.own, open.remarks) = kept.map(|(own, remarks)| (Some(own), remarks)).unwrap_or_default();
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
            if let Some(own) = &mut open.own {
                own.saver.get_or_insert_with(|| Saver::new(own.path.clone())).save(remarks.clone());
            }
        }
        open.revision
    }
}
