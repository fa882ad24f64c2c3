//! Notices for agents: files that an agent has read and that have changed since.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use similar::{ChangeTag, TextDiff};
use tiller_protocol::{AgentId, Who};
use tiller_tool::cx::SeenFile;

/// Maximum number of remembered paths. When more change, everything that an agent has read is compared.
const MAX: usize = 20_000;
/// Maximum number of files that one notice names.
const NAMED: usize = 20;
/// Larger files are compared by hash only.
pub(crate) const TEXT: u64 = 256 << 10;

/// Larger files are not read: their change is reported without a comparison.
const READ: u64 = 32 << 20;

/// A file that changed after an agent read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideChange {
    /// Absolute.
    pub path: PathBuf,
    pub who: Who,
    /// The agent's command that ran at that time. The change may come from it or from another program.
    pub during: Option<Arc<str>>,
    pub deleted: bool,
    /// Lines added and removed against the text that the agent read, when that is known.
    pub lines: Option<(u32, u32)>,
}

/// The files of one notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsideChanges {
    pub files: Vec<OutsideChange>,
    /// Number of further files.
    pub more: usize,
}

/// The sequence number of a path's last change, its author, and the command that ran.
type LoggedChange = (u64, Who, Option<Arc<str>>);

/// A path that changed, the author of the change, and the command that ran.
pub(crate) type New = (PathBuf, Who, Option<Arc<str>>);

/// Log of changed paths.
#[derive(Debug, Default)]
pub(crate) struct Log {
    last: u64,
    changed: HashMap<PathBuf, LoggedChange>,
    /// Changes up to this number may have been dropped.
    lost: u64,
    asked: HashMap<AgentId, u64>,
}

impl Log {
    pub(crate) fn note(&mut self, path: &Path, who: &Who, during: Option<Arc<str>>) {
        self.last += 1;
        if self.changed.len() >= MAX && !self.changed.contains_key(path) {
            self.changed.clear();
            self.lost = self.last;
        }
        self.changed.insert(path.to_owned(), (self.last, who.clone(), during));
    }

    /// Whether there are changes since the last request of `agent`.
    pub(crate) fn stirred(&self, agent: &AgentId) -> bool {
        self.asked.get(agent).copied().unwrap_or(0) != self.last
    }

    /// Changes since the last request of `agent`, without those of its own edits.
    pub(crate) fn since(&mut self, agent: &AgentId, seen: &HashMap<PathBuf, SeenFile>) -> Vec<New> {
        let from = self.asked.insert(agent.clone(), self.last).unwrap_or(0);
        if from == self.last {
            return Vec::new();
        }
        let own = Who::Agent { agent: agent.clone() };
        let mut new: Vec<New> = seen
            .keys()
            .filter_map(|path| match self.changed.get(path) {
                Some((n, who, during)) if *n > from && *who != own => {
                    Some((path.clone(), who.clone(), during.clone()))
                }
                None if from < self.lost => Some((path.clone(), Who::You, None)),
                _ => None,
            })
            .collect();
        new.sort_by(|a, b| a.0.cmp(&b.0));
        new
    }
}

/// Compares with what the agent read; files with equal content are left out. Reads files.
pub(crate) fn compare(new: Vec<New>, seen: &HashMap<PathBuf, SeenFile>) -> OutsideChanges {
    let mut out = OutsideChanges::default();
    for (path, who, during) in new {
        let Some(known) = seen.get(&path) else { continue };
        if out.files.len() == NAMED {
            out.more += 1;
            continue;
        }
        let bytes = match tiller_fs::beneath::read(&path, READ + 1) {
            Ok(bytes) if bytes.len() as u64 <= READ => bytes,
            read => {
                let deleted =
                    read.is_err_and(|e| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory));
                out.files.push(OutsideChange { path, who, during, deleted, lines: None });
                continue;
            }
        };
        if *blake3::hash(&bytes).as_bytes() == known.hash {
            continue;
        }
        let lines = match (&known.text, tiller_tool::files::decoded(&bytes)) {
            (Some(old), Some(new)) if new.len() as u64 <= TEXT => Some(count(old, &new)),
            _ => None,
        };
        out.files.push(OutsideChange { path, who, during, deleted: false, lines });
    }
    out
}

/// Lines added and removed.
pub(crate) fn count(old: &str, new: &str) -> (u32, u32) {
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(100)).diff_lines(old, new);
    diff.iter_all_changes().fold((0, 0), |(added, removed), c| match c.tag() {
        ChangeTag::Insert => (added + 1, removed),
        ChangeTag::Delete => (added, removed + 1),
        ChangeTag::Equal => (added, removed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> SeenFile {
        SeenFile { hash: *blake3::hash(text.as_bytes()).as_bytes(), text: Some(text.into()) }
    }

    #[test]
    fn an_agent_hears_once_of_what_others_did_to_what_it_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |n: &str| dir.path().join(n);
        std::fs::write(path("a"), "1\n2\nx\n").unwrap();
        std::fs::write(path("same"), "s\n").unwrap();
        let (main, other) = (AgentId::main(), AgentId("main/a1".into()));
        let known = HashMap::from([
            (path("a"), seen("1\n2\n3\n")),
            (path("same"), seen("s\n")),
            (path("gone"), seen("")),
        ]);
        let mut log = Log::default();
        for name in ["a", "same", "gone", "unread"] {
            log.note(&path(name), &Who::You, (name == "a").then(|| "make".into()));
        }
        log.note(&path("gone"), &Who::Agent { agent: other.clone() }, None);
        assert!(log.stirred(&main) && log.stirred(&other));
        let told = compare(log.since(&main, &known), &known);
        assert_eq!(
            told.files,
            [
                OutsideChange {
                    path: path("a"),
                    who: Who::You,
                    during: Some("make".into()),
                    deleted: false,
                    lines: Some((1, 1)),
                },
                OutsideChange {
                    path: path("gone"),
                    who: Who::Agent { agent: other.clone() },
                    during: None,
                    deleted: true,
                    lines: None
                },
            ]
        );
        assert_eq!(log.since(&main, &known), []);
        assert!(!log.stirred(&main));
        assert_eq!(log.since(&other, &known).len(), 2, "not its own");
    }

    #[test]
    fn many_are_capped_and_none_is_missed_when_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let known: HashMap<PathBuf, SeenFile> =
            (0..50).map(|n| (dir.path().join(n.to_string()), seen("x"))).collect();
        let mut log = Log::default();
        known.keys().for_each(|p| log.note(p, &Who::You, None));
        for n in 0..MAX {
            log.note(&dir.path().join(format!("other{n}")), &Who::You, None);
        }
        assert!(log.changed.len() <= MAX);
        let told = compare(log.since(&AgentId::main(), &known), &known);
        assert_eq!((told.files.len(), told.more), (NAMED, 30));
    }
}
