//! The common way of all edits: read what is there, check that the agent knows it, commit, report.

pub(crate) mod commit;
pub(crate) mod diff;
pub(crate) mod ledger;
pub(crate) mod nearest;
pub(crate) mod publish;
pub(crate) mod replace;
pub(crate) mod revert;

use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};

use tiller_protocol::ChangeKind;
use tiller_protocol::tool::{Display, FileDiff};

use crate::files::change::commit::{Change, CommitOptions, Fault, Old};
use crate::files::content::encoding::{NotText, Text};
use crate::files::content::ends;
use crate::files::masks::pictures::Shown;
use crate::files::path::beneath::{self, MadeFolder, Slot};
use crate::files::path::{Place, tell};
use crate::{ToolCx, ToolError, ToolOutput};

/// An existing file, whole.
#[derive(Debug)]
pub(crate) struct Current {
    pub bytes: Vec<u8>,
    /// Text that can be edited without loss.
    pub text: Result<Text, NotText>,
    pub old: Old,
}

/// Reads the file at `place`.
pub(crate) fn current(place: &Place, cx: &ToolCx) -> Result<Current, ToolError> {
    let mut opened = beneath::open_file(place, cx)?;
    let bytes = beneath::read_whole(&mut opened, &place.name, &cx.cancel)?;
    // It may have grown or shrunk while it was read; the content is what counts.
    opened.stat.st_size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let attributes = tiller_fs::attributes::read(&opened.file);
    let old = Old { stat: opened.stat, hash: *blake3::hash(&bytes).as_bytes(), attributes };
    Ok(Current { text: ledger::decode(&cx.workspace, &place.path, &bytes), bytes, old })
}

impl Current {
    /// The text, or why there is none.
    pub(crate) fn text(&self, name: &str) -> Result<&Text, ToolError> {
        self.text.as_ref().or_else(|why| {
            tell(format!(
                "{name} is not text: {why}. It cannot be edited by lines; nothing was changed. Change it with a program \
                 that knows its format, or replace it as a whole with write_file"
            ))
        })
    }
}

/// One planned change.
#[derive(Debug)]
pub(crate) struct Edit {
    pub place: Place,
    pub change: Change,
    /// For the screen; `None` for the half of a move that its other half reports.
    pub diff: Option<diff::ShownDiff>,
}

/// Whose change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The agent's: the watcher attributes it to the agent, and the agent's ledger has the result.
    Agent,
    /// The person's, by way of us: for the agent it is news.
    Person,
}

impl Edit {
    /// A new file.
    pub(crate) fn create(place: Place, content: &str) -> Self {
        let diff = Some(diff::file(&place.name, ChangeKind::Added, "", content));
        Self { place, change: Change::Create { bytes: content.into(), like: None }, diff }
    }

    /// A file that becomes `after`.
    pub(crate) fn replace(place: Place, current: Current, after: &str) -> Result<Self, ToolError> {
        let text = current.text(&place.name)?;
        let bytes = encode(text, after, &place.name)?;
        let diff = Some(diff::file(&place.name, ChangeKind::Modified, &text.text, after));
        Ok(Self { place, change: Change::Replace { old: current.old, bytes }, diff })
    }

    /// A file that is no text and becomes one.
    pub(crate) fn replace_binary(place: Place, current: Current, after: &str) -> Self {
        let diff = Some(diff::file(&place.name, ChangeKind::Modified, "", after));
        Self { place, change: Change::Replace { old: current.old, bytes: after.into() }, diff }
    }

    /// A file that goes.
    pub(crate) fn remove(place: Place, current: &Current) -> Self {
        // Only what its text gives again can be taken back by the difference.
        let before = current.text.clone().ok().and_then(Text::utf8).unwrap_or_default();
        let diff = Some(diff::file(&place.name, ChangeKind::Deleted, &before, ""));
        Self { place, change: Change::Remove { old: current.old.clone() }, diff }
    }
}

/// Bytes of a file of text `after` in the encoding of `text`.
pub(crate) fn encode(text: &Text, after: &str, name: &str) -> Result<Vec<u8>, ToolError> {
    text.encode_file(after).or_else(|c| {
        tell(format!(
            "{name} is {}, which cannot encode '{c}' (U+{:04X}); nothing was changed. Write it with characters of that \
             encoding, or convert the file to UTF-8 first if everything that reads it takes UTF-8",
            text.label(),
            u32::from(c)
        ))
    })
}

/// Content for a whole file with the line ends that it had, unless the content has its own.
pub(crate) fn adopt_line_ends(content: &str, text: &Text) -> String {
    if text.cr {
        return content.replace("\r\n", "\n").replace('\r', "\n");
    }
    if content.contains('\r') || !text.text.contains('\n') {
        return content.to_owned();
    }
    ends::adopt(content, &Shown::of(&text.text).text, ends::line_end(&text.text))
}

/// Makes all changes or none, tells the watcher, and remembers what the agent now knows.
pub(crate) fn apply(edits: Vec<Edit>, cx: &ToolCx, who: Who) -> Result<Vec<FileDiff>, ToolError> {
    if cx.cancel.is_cancelled() {
        return Err(ToolError::Interrupted(String::new()));
    }
    let mut made = Vec::new();
    let result = apply_inner(&edits, cx, who, &mut made);
    let Err(error) = result else {
        for edit in edits.iter().filter(|_| who == Who::Agent) {
            match &edit.change {
                Change::Create { bytes, .. } | Change::Replace { bytes, .. } => {
                    ledger::note(&cx.workspace, &edit.place.path, bytes);
                }
                Change::Remove { .. } => ledger::forget(cx, &edit.place.path),
            }
        }
        return Ok(edits.into_iter().filter_map(|e| e.diff).map(|d| d.file).collect());
    };
    beneath::unmake_dirs(&made);
    Err(error)
}

fn apply_inner(edits: &[Edit], cx: &ToolCx, who: Who, made: &mut Vec<MadeFolder>) -> Result<(), ToolError> {
    let folders = missing_folders(edits);
    let mut changes: Vec<(Slot, Change)> = Vec::with_capacity(edits.len());
    for edit in edits {
        changes.push((beneath::slot(&edit.place, cx, made)?, edit.change.clone()));
    }
    let paths: Vec<PathBuf> = edits.iter().map(|e| e.place.path.clone()).collect();
    if who == Who::Agent {
        cx.ports.writing(&cx.agent, &paths);
    }
    let token = format!("{:016x}", std::hash::RandomState::new().build_hasher().finish());
    let hold = || !cx.cancel.is_cancelled();
    let how = CommitOptions { token: &token, hold: &hold, plain: false, at: &|_| {} };
    let result = match write_down(edits, &changes, &folders, &token, cx) {
        Ok(written) => commit::commit(&changes, how, written),
        Err(e) => Err(Fault::Unwritten(e)),
    };
    // Also after a failure: names were exchanged to and fro.
    if who == Who::Agent {
        cx.ports.wrote(&cx.agent, &paths);
    }
    result.map_err(|fault| explain(fault, edits, cx))
}

/// Folders on the way to new files that do not exist yet, outermost first.
fn missing_folders(edits: &[Edit]) -> Vec<PathBuf> {
    let mut missing = Vec::new();
    for edit in edits.iter().filter(|e| !e.place.exists) {
        let above = edit.place.path.ancestors().skip(1);
        let new: Vec<_> = above.take_while(|a| a.symlink_metadata().is_err()).collect();
        missing.extend(new.into_iter().rev().map(Path::to_owned));
    }
    missing.dedup();
    missing
}

/// Several changes are only begun when the next start can take them back. A single one is whole in any case; without
/// a record only its temporary file would stay.
fn write_down(
    edits: &[Edit],
    changes: &[(Slot, Change)],
    folders: &[PathBuf],
    token: &str,
    cx: &ToolCx,
) -> std::io::Result<Option<publish::Open>> {
    let Some(publishes) = &cx.workspace.publishes else { return Ok(None) };
    let paths: Vec<&Path> = edits.iter().map(|e| e.place.path.as_path()).collect();
    match publishes.begin(token, changes, &paths, folders) {
        Ok(open) => Ok(Some(open)),
        Err(error) if changes.len() == 1 => {
            tracing::warn!(%error, "a file change could not be recorded");
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

fn explain(fault: Fault, edits: &[Edit], cx: &ToolCx) -> ToolError {
    match fault {
        Fault::Io(_, e) if e.kind() == std::io::ErrorKind::Interrupted && cx.cancel.is_cancelled() => {
            ToolError::Interrupted("interrupted; nothing was changed".into())
        }
        Fault::Unwritten(e) => ToolError::Tell(format!(
            "nothing was changed: a change to several files is recorded first so that it can be reverted after a \
             crash, and recording it failed ({e})"
        )),
        Fault::Io(n, e) => ToolError::Tell(format!("{}: {e}; nothing was changed", edits[n].place.name)),
        Fault::Torn(text) => {
            ToolError::Tell(format!("the change failed and could not be reverted completely: {text}"))
        }
        Fault::Conflict(n) => {
            let place = &edits[n].place;
            // What is new; it also brings the ledger up to date, so that a second try can go through.
            let seen = current(place, cx)
                .and_then(|now| ledger::check(cx, &place.path, &place.name, &now.bytes))
                .err()
                .map(|e| format!("\n{e}"))
                .unwrap_or_default();
            ToolError::Tell(format!(
                "{} was changed by another program at the same time; that version is kept, and yours was not written.{seen}",
                place.name
            ))
        }
    }
}

/// The result of an edit: short for the model, the whole difference for the screen.
pub(crate) fn report(said: String, files: Vec<FileDiff>) -> ToolOutput {
    ToolOutput::text(said).show(Display::Diff { files })
}

/// `+3 -1`.
pub(crate) fn counts(diff: &FileDiff) -> String {
    format!("+{} -{}", diff.added, diff.removed)
}

/// What the person should know of a file that is replaced by renaming.
pub(crate) fn notes(current: &Current) -> String {
    let mut notes = String::new();
    #[allow(clippy::useless_conversion, reason = "its width differs by platform")]
    let links = u64::from(current.old.stat.st_nlink);
    if links > 1 {
        notes.push_str(&format!(" Note: it had {links} hard links; the other names keep the old content."));
    }
    notes
}
