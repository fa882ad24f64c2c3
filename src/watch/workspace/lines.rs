//! Turns changes into lines of the feed, notices and diffs.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use similar::TextDiff;
use tiller_protocol::{ChangeKind, FileChange, Notice, NoticeKind, Time, Who};
use tiller_tool::files::decoded;

use super::outside;
use super::tree::{Diff, Meta};
use crate::git::Repository;

/// More changes than this at once become one line for each author.
pub(crate) const SINGLE: usize = 50;
/// Maximum bytes of all known texts.
const TEXTS: usize = 8 << 20;

/// A change with its author.
#[derive(Debug)]
pub(crate) struct Change {
    pub diff: Diff,
    pub who: Who,
    pub lines: Option<(u32, u32)>,
    /// The agent's command that ran at the time.
    pub during: Option<Arc<str>>,
}

/// Turns the changes of one moment into lines. A few changes become a line each, many one line for each author.
pub(crate) fn word(root: &Path, time: Time, changes: Vec<Change>) -> Vec<FileChange> {
    let (changes, kinds) = renames(changes);
    if changes.len() <= SINGLE {
        return changes
            .into_iter()
            .zip(kinds)
            .map(|(c, kind)| FileChange {
                time,
                kind,
                path: relative(root, &c.diff.path),
                who: c.who,
                count: 1,
                lines: c.lines,
                during: c.during.map(|d| d.to_string()),
            })
            .collect();
    }
    /// The author, the common folder, the number of files, and the command that ran.
    type Group = (Who, PathBuf, u64, Option<Arc<str>>);
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for c in &changes {
        let folder = c.diff.path.parent().unwrap_or(root);
        groups
            .entry(format!("{:?} {:?}", c.who, c.during))
            .and_modify(|(_, common, n, _)| {
                while !folder.starts_with(&*common) {
                    common.pop();
                }
                *n += 1;
            })
            .or_insert((c.who.clone(), folder.to_owned(), 1, c.during.clone()));
    }
    groups
        .into_values()
        .map(|(who, folder, count, during)| {
            let path = relative(root, &folder);
            let path = if path.is_empty() { ".".into() } else { path };
            let during = during.map(|d| d.to_string());
            FileChange { time, kind: ChangeKind::Storm, path, who, count, lines: None, during }
        })
        .collect()
}

/// Pairs a removed file with an added one of the same content: renamed.
fn renames(mut changes: Vec<Change>) -> (Vec<Change>, Vec<ChangeKind>) {
    let same = |m: Meta| (m.inode, m.size, m.modified);
    let mut gone: HashMap<(u64, u64, i64), usize> = HashMap::new();
    for (n, c) in changes.iter().enumerate() {
        if let (Some(before), None) = (c.diff.before, c.diff.now) {
            gone.insert(same(before), n);
        }
    }
    let mut moved = vec![false; changes.len()];
    let mut kinds: Vec<ChangeKind> = changes
        .iter()
        .map(|c| match (c.diff.before, c.diff.now) {
            (None, Some(now)) => match gone.remove(&same(now)) {
                Some(from) => {
                    moved[from] = true;
                    ChangeKind::Renamed
                }
                None => ChangeKind::Added,
            },
            (_, None) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        })
        .collect();
    // In place, since for a storm a second list would double the memory.
    let stays = || moved.iter().map(|m| !m);
    let (mut of_changes, mut of_kinds) = (stays(), stays());
    changes.retain(|_| of_changes.next().unwrap_or(true));
    kinds.retain(|_| of_kinds.next().unwrap_or(true));
    (changes, kinds)
}

/// A path as the feed shows it: relative, bytes that are not UTF-8 as `\xNN`, a backslash doubled.
pub(crate) fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    let mut out = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02X}"));
        }
    }
    out
}

/// The reverse of [`relative`].
pub(crate) fn unescape(path: &str) -> PathBuf {
    let mut out = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |t: &[u8]| u8::from_str_radix(std::str::from_utf8(t.get(1..3)?).ok()?, 16).ok();
        (out, rest) = match (*first, tail) {
            (b'\\', [b'\\', after @ ..]) => ([out, vec![b'\\']].concat(), after),
            (b'\\', [b'x', ..]) if let Some(byte) = hex(tail) => ([out, vec![byte]].concat(), &tail[3..]),
            (byte, _) => ([out, vec![byte]].concat(), tail),
        };
    }
    PathBuf::from(OsString::from_vec(out))
}

/// Texts of files: the newest for counting lines, the first for diffs. The oldest are dropped first.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    by_path: HashMap<PathBuf, (Arc<str>, Arc<str>)>,
    order: VecDeque<PathBuf>,
    bytes: usize,
}

impl Texts {
    pub(crate) fn put(&mut self, path: &Path, text: Arc<str>) {
        if text.len() as u64 > outside::TEXT {
            return;
        }
        self.bytes += text.len();
        match self.by_path.get_mut(path) {
            Some((_, newest)) => {
                self.bytes -= newest.len();
                *newest = text;
            }
            None => {
                self.bytes += text.len();
                self.by_path.insert(path.to_owned(), (text.clone(), text));
                self.order.push_back(path.to_owned());
            }
        }
        while self.bytes > TEXTS {
            let Some((first, newest)) = self.order.pop_front().and_then(|p| self.by_path.remove(&p)) else {
                break;
            };
            self.bytes -= first.len() + newest.len();
        }
    }

    /// Records that the file is new, so that all its lines count as added.
    pub(crate) fn born(&mut self, path: &Path) {
        if let Some((first, newest)) = self.by_path.get_mut(path)
            && first == newest
        {
            self.bytes -= first.len();
            *first = "".into();
        }
    }

    pub(crate) fn newest(&self, path: &Path) -> Option<Arc<str>> {
        self.by_path.get(path).map(|(_, newest)| newest.clone())
    }

    pub(crate) fn first(&self, path: &Path) -> Option<Arc<str>> {
        self.by_path.get(path).map(|(first, _)| first.clone())
    }
}

/// The content of a file, if it is text and not too large.
pub(crate) fn text(path: &Path) -> Option<Arc<str>> {
    let bytes = tiller_fs::beneath::read(path, outside::TEXT + 1).ok()?;
    decoded(&bytes).filter(|_| bytes.len() as u64 <= outside::TEXT).map(Into::into)
}

/// Unified diff against the committed text, else against `first`; empty when there is no difference. `None`: there is
/// nothing to compare with.
pub(crate) fn diff(
    repo: Option<&Repository>,
    full: &Path,
    shown: &str,
    first: Option<&str>,
) -> Option<String> {
    let committed = repo.and_then(|repo| {
        let inside = full.strip_prefix(&repo.work).ok()?.to_str()?;
        let blob = repo.run(&["cat-file", "blob", &format!("HEAD:{inside}")], Duration::from_secs(5)).ok()?;
        decoded(&blob)
    });
    let old = committed.as_deref().or(first);
    let new = text(full);
    if old.is_none() && new.is_none() {
        return None;
    }
    let (old, new) = (old.unwrap_or_default(), new.as_deref().unwrap_or_default());
    if old == new {
        // A new empty file has an empty diff.
        return (committed.is_none() && first == Some("")).then(String::new);
    }
    let diff = TextDiff::configure().timeout(Duration::from_millis(500)).diff_lines(old, new);
    Some(
        diff.unified_diff()
            .context_radius(3)
            .header(&format!("a/{shown}"), &format!("b/{shown}"))
            .to_string(),
    )
}

pub(crate) fn no_watching(e: &std::io::Error) -> Notice {
    Notice::new(NoticeKind::Info, "File changes cannot be watched here.")
        .hint("Start a new session after closing programs that watch many files.")
        .detail(e.to_string())
}

/// Why changed files are looked for at intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollingReason {
    Remote,
    Setting,
    /// The system watches no more folders.
    WatchLimit,
}

/// Tells that changed files are looked for at intervals.
pub(crate) fn polling(why: PollingReason, every: Duration) -> Notice {
    let reason = match why {
        PollingReason::Remote => "This folder is on a network or foreign file system",
        PollingReason::Setting => "Polling is turned on",
        PollingReason::WatchLimit => "The system's limit of watched folders was reached",
    };
    let message = format!("{reason}, so Tiller checks for changed files every {} s.", every.as_secs().max(1));
    let notice = Notice::new(NoticeKind::Info, message);
    if why == PollingReason::WatchLimit {
        notice.hint("Raise fs.inotify.max_user_watches, or ignore large folders with watch.ignore.")
    } else {
        notice
    }
}

pub(crate) fn root_gone(root: &Path) -> Notice {
    Notice::new(NoticeKind::User, format!("The workspace {} was moved or deleted.", root.display()))
        .hint("Move it back, or open the new location in a new session.")
}

pub(crate) fn root_back(root: &Path) -> Notice {
    Notice::new(NoticeKind::Info, format!("The workspace {} is available again.", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(inode: u64) -> Option<Meta> {
        Some(Meta { size: 1, modified: 2, inode })
    }

    fn change(path: &str, before: Option<Meta>, now: Option<Meta>) -> Change {
        Change { diff: Diff { path: path.into(), before, now }, who: Who::You, lines: None, during: None }
    }

    #[test]
    fn few_changes_are_lines_and_many_are_one() {
        let root = Path::new("/w");
        let told = word(
            root,
            Time(1),
            vec![
                change("/w/old", meta(7), None),
                change("/w/s/new", None, meta(7)),
                change("/w/a", meta(1), meta(2)),
                change("/w/b", None, meta(3)),
                change("/w/c", meta(4), None),
            ],
        );
        let lines: Vec<(ChangeKind, &str)> = told.iter().map(|c| (c.kind, c.path.as_str())).collect();
        use ChangeKind::{Added, Deleted, Modified, Renamed};
        assert_eq!(lines, [(Renamed, "s/new"), (Modified, "a"), (Added, "b"), (Deleted, "c")]);
        let many = (0..2000).map(|n| change(&format!("/w/x/{}/{n}", n % 3), None, meta(n))).collect();
        let told = word(root, Time(1), many);
        assert_eq!(
            (told.len(), told[0].kind, told[0].path.as_str(), told[0].count),
            (1, ChangeKind::Storm, "x", 2000)
        );
    }

    #[test]
    fn a_moved_folder_of_100_000_files_counts_each_once() {
        let files = 0..100_000;
        let went = files.clone().map(|n| change(&format!("/w/old/{n}"), meta(n), None));
        let came = files.map(|n| change(&format!("/w/new/{n}"), None, meta(n)));
        let told = word(Path::new("/w"), Time(1), went.chain(came).collect());
        assert_eq!((told.len(), told[0].path.as_str(), told[0].count), (1, "new", 100_000));
    }

    #[test]
    fn any_path_can_be_shown_and_found_again() {
        for bytes in
            [&b"src/main.rs"[..], b"a\\b", b"\xff\xfe/x\\x41", "ü/漢".as_bytes(), b"\\xZZ", b"\\", b"\\x"]
        {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            let shown = relative(Path::new("/w"), &Path::new("/w").join(&path));
            assert_eq!(unescape(&shown), path, "{shown}");
        }
    }

    #[test]
    fn texts_keep_to_their_total() {
        let mut texts = Texts::default();
        let text: Arc<str> = "x".repeat(100_000).into();
        for n in 0..200 {
            texts.put(&PathBuf::from(format!("/{n}")), text.clone());
            texts.put(&PathBuf::from(format!("/{n}")), "new".into());
            assert!(texts.bytes <= TEXTS);
        }
        assert_eq!(texts.newest(Path::new("/0")), None);
        assert_eq!(texts.newest(Path::new("/199")).as_deref(), Some("new"));
        assert_eq!(texts.first(Path::new("/199")).unwrap().len(), 100_000);
    }

    #[test]
    fn x20_a_folder_that_is_swapped_with_a_link_is_not_read() {
        let tmp = tempfile::tempdir().unwrap();
        let swaps = tiller_fs::testing::swap::Swaps::new(tmp.path(), "d", &["f"]);
        let path = swaps.root().join("d/f");
        swaps.check("texts of changed files", || text(&path).unwrap_or_default().to_string());
    }
}
