//! The differences between two versions of a pack.

use std::path::Path;
use std::time::Duration;

use tiller_tool::text::is_binary;

use super::contents::{content, first_line, is_script, pin};
use super::lock::PinnedFile;

/// Bytes of a file that is compared line by line. Scripts are compared whatever their size.
const LARGEST: usize = 256 << 10;
/// How long two files are compared for their smallest difference; then a larger one is taken.
const SEARCH: Duration = Duration::from_secs(2);

/// How a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Changed,
    Removed,
}

impl ChangeKind {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub kind: ChangeKind,
    /// It may be run as a program, in the version that has it.
    pub executable: bool,
    /// It is a program or a script, in either version.
    pub script: bool,
    /// Lines with `+`, `-` or a blank before them, all of them. Empty where only the mode differs, or where it is unshown.
    pub diff: String,
    /// Its lines are not compared: it is not text, or too large, or [`Self::gone`].
    pub unshown: bool,
    /// Its earlier content is not there any more.
    pub gone: bool,
}

/// What differs between two folders, by path.
///
/// # Errors
/// A sentence, when a file cannot be read.
pub fn changes(before: &Path, after: &Path) -> Result<Vec<Change>, String> {
    let (old, new) = (pin(before)?, pin(after)?);
    let of = |folder: &Path, file: &PinnedFile| Some(content(folder, &file.path));
    let (earlier, later) = (|file: &PinnedFile| of(before, file), |file: &PinnedFile| of(after, file));
    Ok(compare(&old, &earlier, &new, &later))
}

/// Gives the content of a file; `None`: it is not there any more.
type Content<'a> = &'a dyn Fn(&PinnedFile) -> Option<Vec<u8>>;

/// What differs between two sets of files, by path.
pub(super) fn compare(
    old: &[PinnedFile],
    before: Content<'_>,
    new: &[PinnedFile],
    after: Content<'_>,
) -> Vec<Change> {
    let mut all = Vec::new();
    for path in super::home::differing(old, new) {
        let was = old.iter().find(|file| file.path == path);
        let is = new.iter().find(|file| file.path == path);
        let kind = match (was, is) {
            (Some(_), Some(_)) => ChangeKind::Changed,
            (None, _) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
        };
        let earlier = was.map_or_else(|| Some(Vec::new()), before);
        let later = is.map_or_else(|| Some(Vec::new()), after);
        let gone = earlier.is_none() || later.is_none();
        let sides = [earlier.unwrap_or_default(), later.unwrap_or_default()];
        let script = [was, is].iter().zip(&sides).any(|(file, bytes)| {
            file.is_some_and(|file| is_script(&path, file.executable, &first_line(bytes)))
        });
        let diff = diff(&sides, script).filter(|_| !gone);
        all.push(Change {
            executable: is.or(was).is_some_and(|file| file.executable),
            script,
            path,
            kind,
            gone,
            unshown: diff.is_none(),
            diff: diff.unwrap_or_default(),
        });
    }
    all.dedup_by(|a, b| a.path == b.path);
    all
}

/// The difference of two files; `None`: it is not text, or too large.
fn diff(sides: &[Vec<u8>; 2], script: bool) -> Option<String> {
    if sides.iter().any(|bytes| is_binary(bytes) || (!script && bytes.len() > LARGEST)) {
        return None;
    }
    let [old, new] = sides;
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let mut config = similar::TextDiff::configure();
    config.timeout(SEARCH);
    let diff = config.diff_lines(&*old, &*new);
    Some(diff.unified_diff().context_radius(2).to_string())
}
