//! Where the files really lie that a call names: commands have a `/tmp` of their own, and what a script would write lies
//! over what is there.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::ToolCx;
use crate::files::drafts::Drafted;
use crate::shell::SeenTmp;

/// The files as the commands of an agent see them, for one call.
pub(super) struct View<'a> {
    cx: &'a ToolCx,
    tmp: OnceCell<Option<SeenTmp>>,
}

/// Where a path lies (absolute, its links resolved).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Same,
    At(PathBuf),
    /// It is a folder, whatever is there.
    Folder,
    Gone,
}

impl<'a> View<'a> {
    pub(super) fn new(cx: &'a ToolCx) -> Self {
        Self { cx, tmp: OnceCell::new() }
    }

    /// The session's `/tmp` matters for this path: the workspace is seen as it is.
    fn concerns(&self, path: &Path) -> bool {
        SeenTmp::concerns(path) && !path.starts_with(&self.cx.workspace.root)
    }

    fn tmp(&self) -> Option<&SeenTmp> {
        self.tmp.get_or_init(|| self.cx.workspace.seen_tmp(self.cx)).as_ref()
    }

    /// Where `path` lies.
    pub(super) fn seen(&self, path: &Path) -> Seen {
        match self.cx.run.drafts.as_ref().map_or(Drafted::Same, |drafts| drafts.seen(path)) {
            Drafted::File(at) => return Seen::At(at),
            Drafted::Folder => return Seen::Folder,
            Drafted::Gone => return Seen::Gone,
            Drafted::Same => {}
        }
        if !self.concerns(path) {
            return Seen::Same;
        }
        let Some(tmp) = self.tmp() else { return Seen::Same };
        match tmp.lies(path) {
            Some(at) if tmp.is_above_shown(path) && at.symlink_metadata().is_err() => Seen::Folder,
            Some(at) => Seen::At(at),
            None => Seen::Same,
        }
    }

    /// Where `path` lies, whatever a script would write.
    pub(super) fn lies(&self, path: &Path) -> PathBuf {
        let tmp = if self.concerns(path) { self.tmp() } else { None };
        tmp.and_then(|tmp| tmp.lies(path)).unwrap_or_else(|| path.to_owned())
    }

    /// Whether a script would have made or removed something at or below `path`.
    pub(super) fn drafts(&self, path: &Path) -> bool {
        self.cx.run.drafts.as_ref().is_some_and(|drafts| drafts.seen(path) != Drafted::Same)
    }

    /// The session's folder, where `path` exists in the machine's own `/tmp` only.
    pub(super) fn hides(&self, path: &Path) -> Option<PathBuf> {
        let tmp = if self.concerns(path) { self.tmp()? } else { return None };
        let hidden = tmp.lies(path).is_some() && path.symlink_metadata().is_ok();
        hidden.then(|| tmp.folder.clone())
    }
}
