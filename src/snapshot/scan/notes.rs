//! The notes of a snapshot: what it covers. Lines of the commit's message.

use std::collections::BTreeMap;

use tiller_protocol::Time;

use crate::names;
use crate::objects::id::Id;
use crate::report::{CostReason, Mode, Reason, Snapshot, Uncovered};

/// Maximum number of uncovered paths that are listed; further ones are only counted.
const LISTED: usize = 10_000;
/// Maximum number of deleted ignored paths that are listed.
const VANISHED: usize = 1_000;

/// Ignored files, and files that are not covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Whether some ignored files outside of `folders` are not looked at, as in snapshots of an earlier version.
    pub(crate) over: bool,
    /// Ignored folders that are scanned.
    pub(crate) folders: Vec<Vec<u8>>,
    /// The stamps of regular files that are not covered.
    pub(crate) stamps: BTreeMap<Vec<u8>, String>,
    /// Mount points below which only some files have a stamp.
    pub(crate) partly: Vec<Vec<u8>>,
}

impl Watched {
    /// That of an earlier version, where nothing more is known.
    fn unknown() -> Self {
        Self { over: true, ..Self::default() }
    }
}

/// Everything that is known of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotNotes {
    pub(crate) snapshot: Snapshot,
    /// Paths that are covered by name: ignored files, or in [`Mode::Named`] all covered files.
    pub(crate) named: Vec<Vec<u8>>,
    /// The object with the attributes of its files; see [`crate::scan::beside`].
    pub(crate) attributes: Option<Id>,
    /// Ignored paths that were deleted since the snapshot before it.
    pub(crate) vanished: Vec<Vec<u8>>,
    pub(crate) watched: Watched,
    /// Whether its modes have sticky and set-ID bits. Those of an earlier version have none.
    pub(crate) special: bool,
}

impl SnapshotNotes {
    /// Whether this is the same state as an earlier one with the same coverage, and no ignored path was deleted since
    /// then.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let (a, b) = (&self.snapshot, &other.snapshot);
        (a.tree, a.mode, a.more) == (b.tree, b.mode, b.more)
            && a.uncovered == b.uncovered
            && self.named == other.named
            && self.attributes == other.attributes
            && self.watched == other.watched
            && self.special == other.special
            && self.vanished.is_empty()
    }
}

/// The notes of a snapshot.
pub(crate) fn write(
    mode: Mode,
    uncovered: &mut [(Vec<u8>, Reason)],
    named: &[Vec<u8>],
    attributes: Option<Id>,
    vanished: &[Vec<u8>],
    watched: &Watched,
) -> String {
    let mut out = match mode {
        Mode::Full => "mode full\n".to_owned(),
        Mode::Named(CostReason::Files(n)) => format!("mode named files {n}\n"),
        Mode::Named(CostReason::Bytes(n)) => format!("mode named bytes {n}\n"),
        Mode::Named(CostReason::Slow(n)) => format!("mode named slow {n}\n"),
        Mode::Named(CostReason::Home) => "mode named home 0\n".to_owned(),
    };
    out.push_str("special\n");
    uncovered.sort();
    // Repositories are needed to reconstruct the rules, so all are listed.
    let listed =
        |(i, (_, reason)): &(usize, &(Vec<u8>, Reason))| *i < LISTED || *reason == Reason::Repository;
    let mut more = 0;
    for item in uncovered.iter().enumerate() {
        if listed(&item) {
            out.push_str(&format!("uncovered {} {}\n", item.1.1.word(), names::escape(&item.1.0)));
        } else {
            more += 1;
        }
    }
    if more > 0 {
        out.push_str(&format!("more {more}\n"));
    }
    for path in named {
        out.push_str(&format!("named {}\n", names::escape(path)));
    }
    if let Some(id) = attributes {
        out.push_str(&format!("attributes {id}\n"));
    }
    for path in vanished.iter().take(VANISHED) {
        out.push_str(&format!("vanished {}\n", names::escape(path)));
    }
    write_watched(watched, &mut out);
    out
}

fn write_watched(watched: &Watched, out: &mut String) {
    // In an older snapshot ignored files are not covered.
    if !watched.over {
        out.push_str("ignored\n");
    }
    for path in &watched.folders {
        out.push_str(&format!("scanned {}\n", names::escape(path)));
    }
    for (path, stamp) in &watched.stamps {
        out.push_str(&format!("stamp {stamp} {}\n", names::escape(path)));
    }
    for path in &watched.partly {
        out.push_str(&format!("partly {}\n", names::escape(path)));
    }
}

/// Parses notes. Unknown lines are skipped: a later version may add some.
pub(crate) fn read(id: Id, tree: Id, millis: i64, notes: &str) -> SnapshotNotes {
    let mut snapshot =
        Snapshot { id, tree, time: Time(millis), mode: Mode::Full, uncovered: Vec::new(), more: 0 };
    let mut named = Vec::new();
    let (mut attributes, mut vanished) = (None, Vec::new());
    let (mut watched, mut special) = (Watched::unknown(), false);
    for line in notes.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["mode", "named", why, n] => {
                let n = n.parse::<u64>().unwrap_or(0);
                snapshot.mode = Mode::Named(match *why {
                    "files" => CostReason::Files(usize::try_from(n).unwrap_or(usize::MAX)),
                    "bytes" => CostReason::Bytes(n),
                    "slow" => CostReason::Slow(n),
                    _ => CostReason::Home,
                });
            }
            ["uncovered", word, path] => {
                let reason = Reason::ALL.iter().find(|(_, w)| w == word).map(|(r, _)| *r);
                if let (Some(reason), Some(path)) = (reason, names::unescape(path)) {
                    snapshot.uncovered.push(Uncovered { path: names::path(&path), reason });
                }
            }
            ["more", n] => snapshot.more = n.parse().unwrap_or(0),
            ["attributes", object] => attributes = object.parse().ok(),
            ["vanished", path] => vanished.extend(names::unescape(path)),
            ["named", path] => named.extend(names::unescape(path)),
            ["special"] => special = true,
            ["ignored"] => watched.over = false,
            ["scanned", path] => watched.folders.extend(names::unescape(path)),
            ["stamp", stamp, path] => {
                watched.stamps.extend(names::unescape(path).map(|path| (path, (*stamp).to_owned())));
            }
            ["partly", path] => watched.partly.extend(names::unescape(path)),
            _ => {}
        }
    }
    SnapshotNotes { snapshot, named, attributes, vanished, watched, special }
}
