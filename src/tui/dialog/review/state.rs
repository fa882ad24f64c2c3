//! The things under review: files, hunks, the line that is chosen, comments. No drawing, no keys.

use tiller_protocol::EntryId;
use tiller_protocol::review::{Reject, Review};
use tiller_protocol::tool::FileDiff;

use crate::model::remarks::{Comment, CommentAnchor, Remarks};
use crate::text::diff::{DiffLine, Hunk, LineKind, Patch};

/// A changed file.
pub(super) struct ReviewFile {
    pub diff: FileDiff,
    pub hunks: Vec<Hunk>,
    /// The person has accepted the file as it is.
    pub accepted: bool,
    /// A hunk could not be reverted: the file has changed since.
    pub conflict: bool,
}

/// How differences are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiffOptions {
    /// Lines of context around changes, 0 to 3.
    pub context: usize,
    /// Lines that differ in white space only are shown as context.
    pub ignore_blanks: bool,
    /// Side by side: `None` decides by width.
    pub side: Option<bool>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { context: 3, ignore_blanks: false, side: None }
    }
}

/// The state of a review.
#[derive(Default)]
pub(super) struct ReviewState {
    pub turn: Option<EntryId>,
    pub title: String,
    pub files: Vec<ReviewFile>,
    pub file: usize,
    /// The chosen line: hunk and index in it.
    pub hunk: usize,
    pub line: usize,
    /// Where a selection of lines began.
    pub mark: Option<usize>,
    /// Unsent remarks of the session: also those on lines that are not shown.
    pub remarks: Remarks,
    pub show: DiffOptions,
    /// Hunks that were reverted in this review.
    pub rejected: u32,
}

impl ReviewState {
    /// Takes the engine's review. The selection stays if its file is still there; else it is the first file with lines to show.
    pub(super) fn load(&mut self, review: Review) {
        let path = self.files.get(self.file).map(|f| f.diff.path.clone());
        let keep: Vec<(String, bool, bool)> =
            self.files.iter().map(|f| (f.diff.path.clone(), f.accepted, f.conflict)).collect();
        let same = self.turn == Some(review.turn);
        if !same {
            self.rejected = 0;
        }
        self.turn = Some(review.turn);
        self.title = review.title;
        self.files = review
            .files
            .into_iter()
            .map(|diff| {
                let known = keep.iter().find(|k| same && k.0 == diff.path);
                let hunks = Patch::read(&diff.diff).hunks;
                ReviewFile {
                    diff,
                    hunks,
                    accepted: known.is_some_and(|k| k.1),
                    conflict: known.is_some_and(|k| k.2),
                }
            })
            .collect();
        let kept = path.and_then(|p| self.files.iter().position(|f| f.diff.path == p));
        let with_lines = || self.files.iter().position(|f| !f.hunks.is_empty());
        self.file = kept.or_else(with_lines).unwrap_or(0);
        self.mark = None;
        let hunks = self.current().map_or(0, |f| f.hunks.len());
        if self.hunk >= hunks || !same {
            self.go_hunk(self.hunk.min(hunks.saturating_sub(1)));
        } else {
            self.line = self.line.min(self.hunk().map_or(0, |h| h.lines.len().saturating_sub(1)));
        }
    }

    pub(super) fn current(&self) -> Option<&ReviewFile> {
        self.files.get(self.file)
    }

    pub(super) fn hunk(&self) -> Option<&Hunk> {
        self.current()?.hunks.get(self.hunk)
    }

    /// Number of the current hunk among all, and how many there are.
    pub(super) fn count(&self) -> (usize, usize) {
        let before: usize = self.files.iter().take(self.file).map(|f| f.hunks.len()).sum();
        let all = self.files.iter().map(|f| f.hunks.len()).sum();
        ((before + self.hunk + 1).min(all), all)
    }

    /// To the first change of a hunk of this file.
    pub(super) fn go_hunk(&mut self, n: usize) {
        self.hunk = n;
        self.mark = None;
        self.line =
            self.hunk().and_then(|h| h.lines.iter().position(|l| l.kind != LineKind::Context)).unwrap_or(0);
    }

    /// The next hunk, over the files' ends.
    pub(super) fn step_hunk(&mut self, down: bool) {
        if down {
            if self.hunk + 1 < self.current().map_or(0, |f| f.hunks.len()) {
                self.go_hunk(self.hunk + 1);
            } else if self.file + 1 < self.files.len() {
                self.go_file(self.file + 1);
            }
        } else if self.hunk > 0 {
            self.go_hunk(self.hunk - 1);
        } else if self.file > 0 {
            self.go_file(self.file - 1);
            self.go_hunk(self.current().map_or(0, |f| f.hunks.len().saturating_sub(1)));
        }
    }

    pub(super) fn go_file(&mut self, n: usize) {
        self.file = n.min(self.files.len().saturating_sub(1));
        self.go_hunk(0);
    }

    /// The next line that is shown, over the hunks' ends.
    pub(super) fn step_line(&mut self, down: bool) {
        let Some(hunk) = self.hunk() else { return };
        let shown: Vec<usize> = shown(hunk, self.show).iter().map(|(n, _)| *n).collect();
        let at = shown.iter().position(|n| *n >= self.line).unwrap_or(shown.len().saturating_sub(1));
        let next = if down { shown.get(at + 1) } else { at.checked_sub(1).and_then(|n| shown.get(n)) };
        match next {
            Some(n) => self.line = *n,
            None if self.mark.is_some() => {}
            None if down && self.hunk + 1 < self.current().map_or(0, |f| f.hunks.len()) => {
                self.hunk += 1;
                self.line = 0;
            }
            None if down => {}
            None if self.hunk > 0 => {
                self.hunk -= 1;
                self.line = self.hunk().map_or(0, |h| h.lines.len().saturating_sub(1));
            }
            None => {}
        }
    }

    /// Lines that are chosen: the selection, or the one.
    pub(super) fn chosen(&self) -> (usize, usize) {
        let mark = self.mark.unwrap_or(self.line);
        (mark.min(self.line), mark.max(self.line))
    }

    /// The patch that `r` reverts: the hunk, or the selected lines of it.
    pub(super) fn reject_hunk(&self) -> Option<Vec<Reject>> {
        let file = self.current()?;
        if file.hunks.is_empty() {
            return self.reject_file();
        }
        let hunk = self.hunk()?;
        let (path, kind) = (file.diff.path.clone(), file.diff.kind);
        let hunk = match self.mark {
            Some(_) => {
                let (from, to) = self.chosen();
                hunk.lines
                    .get(from..=to)?
                    .iter()
                    .find(|l| matches!(l.kind, LineKind::Added | LineKind::Removed))?;
                hunk.part(&path, kind, from, to)
            }
            None => hunk.to_patch(&path, kind),
        };
        Some(vec![Reject { path, hunk }])
    }

    /// Returns what `R` reverts: every hunk of the file, or a binary file as a whole.
    pub(super) fn reject_file(&self) -> Option<Vec<Reject>> {
        let file = self.current()?;
        let (path, kind) = (&file.diff.path, file.diff.kind);
        if file.hunks.is_empty() {
            return Some(vec![Reject { path: path.clone(), hunk: String::new() }]);
        }
        let all: Vec<Reject> =
            file.hunks.iter().map(|h| Reject { path: path.clone(), hunk: h.to_patch(path, kind) }).collect();
        Some(all)
    }

    /// Where a comment would go.
    pub(super) fn place(&self) -> Option<CommentAnchor> {
        let line = self.hunk()?.lines.get(self.line)?;
        Some((self.current()?.diff.path.clone(), line.new.or(line.old)?, line.text.clone()))
    }

    /// Comments on a line; `true`: the comment is unfinished.
    pub(super) fn comments_on<'a>(
        &'a self,
        path: &'a str,
        line: &'a DiffLine,
    ) -> impl Iterator<Item = (&'a Comment, bool)> {
        let number = line.new.or(line.old);
        let here = move |c: &&Comment| c.path == path && Some(c.line) == number && c.quote == line.text;
        let done = self.remarks.done.iter().filter(here).map(|c| (c, false));
        done.chain(self.remarks.begun.iter().filter(here).map(|c| (c, true)))
    }

    /// Comments of the current file that belong to no line of it; at the first file also the comments on files that are
    /// not shown.
    pub(super) fn strays(&self) -> Vec<&Comment> {
        let Some(file) = self.current() else { return Vec::new() };
        let known = |c: &Comment| self.files.iter().any(|f| f.diff.path == c.path);
        let at = |c: &Comment| {
            let here = |l: &DiffLine| l.new.or(l.old) == Some(c.line) && l.text == c.quote;
            file.hunks.iter().any(|h| h.lines.iter().any(here))
        };
        let stray = |c: &&Comment| match c.path == file.diff.path {
            true => !at(c),
            false => self.file == 0 && !known(c),
        };
        self.remarks.done.iter().chain(&self.remarks.begun).filter(stray).collect()
    }

    /// True when a comment is about a file that is shown.
    pub(super) fn remarked(&self) -> bool {
        let mut all = self.remarks.done.iter().chain(&self.remarks.begun);
        all.any(|c| self.files.iter().any(|f| f.diff.path == c.path))
    }
}

/// The lines of a hunk that are shown, with their indices: less context, and changes of blanks only as
/// context, where that is wanted.
pub(super) fn shown(hunk: &Hunk, show: DiffOptions) -> Vec<(usize, DiffLine)> {
    let mut lines: Vec<(usize, DiffLine)> = hunk.lines.iter().cloned().enumerate().collect();
    if show.ignore_blanks {
        lines = without_blanks(lines);
    }
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, (_, l))| l.kind != LineKind::Context).map(|(k, _)| k).collect();
    let near = |k: usize| changed.iter().any(|c| c.abs_diff(k) <= show.context);
    if changed.is_empty() {
        return lines;
    }
    lines.into_iter().enumerate().filter(|(k, _)| near(*k)).map(|(_, l)| l).collect()
}

fn without_blanks(lines: Vec<(usize, DiffLine)>) -> Vec<(usize, DiffLine)> {
    let bare = |l: &DiffLine| l.text.split_whitespace().collect::<String>();
    let mut out: Vec<(usize, DiffLine)> = Vec::new();
    let mut n = 0;
    while n < lines.len() {
        let removed = lines[n..].iter().take_while(|l| l.1.kind == LineKind::Removed).count();
        let added = lines[n + removed..].iter().take_while(|l| l.1.kind == LineKind::Added).count();
        if removed == 0 && added == 0 {
            out.push(lines[n].clone());
            n += 1;
            continue;
        }
        let (old, new) = (&lines[n..n + removed], &lines[n + removed..n + removed + added]);
        let same = removed == added && old.iter().zip(new).all(|(a, b)| bare(&a.1) == bare(&b.1));
        if same {
            out.extend(new.iter().map(|(k, l)| (*k, DiffLine { kind: LineKind::Context, ..l.clone() })));
        } else {
            out.extend_from_slice(&lines[n..n + removed + added]);
        }
        n += removed + added;
    }
    out
}
