//! What the result of an agent depends on, as far as it is known. An earlier result is used again only where that is unchanged.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tiller_protocol::names;

/// Bytes of a file that are hashed at most; of a larger one it is not known whether it changed.
const LARGEST: u64 = 64 << 20;
/// Files of a folder that a stamp covers at most.
const MOST: usize = 50_000;

/// The files that an agent has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// Files that it read or wrote with tools for files: the absolute path, and the hash of the content that it saw.
    pub(crate) files: BTreeMap<String, String>,
    /// It may have seen more: it searched, ran commands or scripts, or started agents.
    pub(crate) more: bool,
    /// It changed files.
    pub(crate) changed: bool,
}

impl Inputs {
    /// Whether all files that the agent has seen are as it knew them. `folder`: the folder that it worked in; `before`: the
    /// [`stamp`] of that folder when it began. Blocks.
    pub fn hold(&self, folder: &Path, before: Option<&str>) -> bool {
        let same = |(path, hash): (&String, &String)| hash_of(&names::path(path)).as_ref() == Some(hash);
        // What it changed itself is not told from what others changed since it began.
        let around = !self.more || !self.changed && before.is_some() && stamp(folder).as_deref() == before;
        around && self.files.iter().all(same)
    }
}

/// `None`: there is no such file, or it is too large.
fn hash_of(path: &Path) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    Some(blake3::hash(&std::fs::read(path).ok()?).to_hex().to_string())
}

/// A hash of the names, sizes and times of all files of a folder, those that git ignores left out. `None`: there are too many,
/// or not all can be seen. Blocks.
pub fn stamp(folder: &Path) -> Option<String> {
    let mut walk = ignore::WalkBuilder::new(folder);
    walk.hidden(false).require_git(false).filter_entry(|entry| entry.file_name() != ".git");
    let mut all = Vec::new();
    for entry in walk.build() {
        let entry = entry.ok()?;
        let meta = entry.path().symlink_metadata().ok()?;
        if meta.is_dir() {
            continue;
        }
        if all.len() == MOST {
            return None;
        }
        let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
        all.push((names::written(entry.path()), meta.ino(), meta.len(), times));
    }
    all.sort();
    Some(blake3::hash(format!("{all:?}").as_bytes()).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(path: &Path) -> (String, String) {
        (names::written(path), hash_of(path).unwrap())
    }

    #[test]
    fn a_result_holds_while_the_files_that_were_read_are_the_same() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::write(at("a"), "one").unwrap();
        std::fs::write(at("b"), "two").unwrap();
        let inputs = Inputs { files: [known(&at("a"))].into(), ..Inputs::default() };
        assert!(inputs.hold(tmp.path(), None));
        std::fs::write(at("b"), "changed").unwrap();
        assert!(inputs.hold(tmp.path(), None), "it did not read that one");
        std::fs::write(at("a"), "changed").unwrap();
        assert!(!inputs.hold(tmp.path(), None));
        std::fs::write(at("a"), "one").unwrap();
        assert!(inputs.hold(tmp.path(), None), "the content counts");
        std::fs::remove_file(at("a")).unwrap();
        assert!(!inputs.hold(tmp.path(), None));
        assert!(Inputs::default().hold(tmp.path(), None), "an agent that read nothing");
    }

    #[test]
    fn an_agent_that_looked_around_has_seen_every_file() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/a"), "one").unwrap();
        std::fs::write(at(".gitignore"), "out\n").unwrap();
        let before = stamp(tmp.path());
        let inputs = Inputs { more: true, ..Inputs::default() };
        assert!(inputs.hold(tmp.path(), before.as_deref()));
        assert!(!inputs.hold(tmp.path(), None), "nothing is known of then");
        std::fs::write(at("out"), "ignored").unwrap();
        assert!(inputs.hold(tmp.path(), before.as_deref()));
        let changes: [&dyn Fn(); 2] = [&|| std::fs::write(at("new"), "x").unwrap(), &|| {
            std::fs::remove_file(at("d/a")).unwrap();
        }];
        for change in changes {
            let before = stamp(tmp.path());
            change();
            assert!(!inputs.hold(tmp.path(), before.as_deref()));
        }
        let own = Inputs { changed: true, ..inputs };
        assert!(!own.hold(tmp.path(), stamp(tmp.path()).as_deref()));
    }
}
