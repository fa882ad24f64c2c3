//! Files that git tracks although its ignore rules match them: snapshots cover them, since the index decides.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::names;
use crate::scan::disk::Stamp;
use crate::scan::index;
use crate::scan::model::{Dir, Node};
use crate::scan::rules::{self, Rules};

/// Maximum number of such files; further ones are not covered, since each is scanned separately.
const MOST: usize = 10_000;

/// The indexes of a workspace as of the last scan.
#[derive(Debug, Default)]
pub(crate) struct TrackedIndexes {
    /// By the repository's path in the workspace; empty for the one around it.
    indexes: HashMap<Vec<u8>, Index>,
    ignored: BTreeSet<Vec<u8>>,
}

#[derive(Debug)]
struct Index {
    stamp: Option<Stamp>,
    /// Relative to the workspace.
    paths: Vec<Vec<u8>>,
}

/// The sources of the rules.
pub(crate) struct RuleSources<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) outer: &'a Arc<Rules>,
    pub(crate) person: &'a Arc<Rules>,
}

/// A folder on the way to a tracked path.
struct PathStep<'a> {
    path: Vec<u8>,
    dir: Option<&'a Dir>,
    rules: Arc<Rules>,
    ignored: bool,
}

impl TrackedIndexes {
    /// Tracked paths that the rules match, whether they exist or not. `fresh`: the rules may have changed since the
    /// last call.
    pub(crate) fn look(&mut self, ground: &RuleSources<'_>, model: &Dir, fresh: bool) -> &BTreeSet<Vec<u8>> {
        let mut repositories = vec![Vec::new()];
        nested(model, &[], &mut repositories);
        let mut changed = fresh || self.indexes.len() != repositories.len();
        for at in &repositories {
            changed |= self.read(ground.workspace, at);
        }
        self.indexes.retain(|at, _| repositories.contains(at));
        if changed {
            self.ignored.clear();
            for at in &repositories {
                self.judge(ground, model, at);
            }
        }
        &self.ignored
    }

    /// Reads the index of one repository if it changed; returns whether it did.
    fn read(&mut self, workspace: &Path, at: &[u8]) -> bool {
        let here = rules::absolute(workspace, at);
        let top = if at.is_empty() {
            workspace.ancestors().find(|a| a.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
        } else {
            Some(here)
        };
        let found = top.map(|top| (index::folders(&top, &top.join(".git")), top));
        let stamp = found.as_ref().and_then(|((git, _), _)| index::stamp(git));
        // An index that was just written may change without altering its stamp.
        let settled = stamp.is_none_or(|s| s.settled(crate::scan::disk::now()));
        if settled && self.indexes.get(at).is_some_and(|known| known.stamp == stamp) {
            return false;
        }
        let all = found.map(|((git, common), top)| (index::paths(&git, &common), top));
        let paths = all.map(|(paths, top)| relative(paths, workspace, at, &top)).unwrap_or_default();
        let same = self.indexes.get(at).is_some_and(|known| known.paths == paths);
        self.indexes.insert(at.to_vec(), Index { stamp, paths });
        !same
    }

    /// Finds the tracked paths of one repository that the rules match.
    fn judge(&mut self, ground: &RuleSources<'_>, model: &Dir, at: &[u8]) {
        let Some(index) = self.indexes.get(at).filter(|i| !i.paths.is_empty()) else { return };
        let here = rules::absolute(ground.workspace, at);
        let rules = if at.is_empty() {
            ground.outer.clone()
        } else {
            rules::excluded(ground.person, &here, &here.join(".git"))
        };
        let dir = find(model, at);
        let rules = with_own(&rules, dir, &here);
        let mut way = vec![PathStep { path: at.to_vec(), dir, rules, ignored: false }];
        for path in &index.paths {
            let (folder, _) = names::split(path);
            while way.len() > 1 && way.last().is_some_and(|s| !names::within(folder, &s.path)) {
                way.pop();
            }
            while let Some(next) = way.last().and_then(|s| step(ground.workspace, s, folder)) {
                way.push(next);
            }
            let Some(last) = way.last() else { return };
            let full = rules::absolute(ground.workspace, path);
            if (last.ignored || last.rules.ignores(&full, false)) && self.ignored.len() < MOST {
                self.ignored.insert(path.clone());
            }
        }
    }
}

/// The next folder on the way to `folder`; `None`: it is reached.
fn step<'a>(workspace: &Path, at: &PathStep<'a>, folder: &[u8]) -> Option<PathStep<'a>> {
    let rest = names::parts(folder).nth(names::parts(&at.path).count())?;
    let path = names::join(&at.path, rest);
    let here: PathBuf = rules::absolute(workspace, &path);
    let dir = at.dir.and_then(|d| child(d, rest));
    let ignored = at.ignored || at.rules.ignores(&here, true);
    let rules = if ignored { at.rules.clone() } else { with_own(&at.rules, dir, &here) };
    Some(PathStep { path, dir, rules, ignored })
}

fn with_own(rules: &Arc<Rules>, dir: Option<&Dir>, here: &Path) -> Arc<Rules> {
    match dir.and_then(|d| d.ignore.as_ref()) {
        Some((_, _, text)) if !text.is_empty() => rules.and(here, text.clone()),
        _ => rules.clone(),
    }
}

fn child<'a>(dir: &'a Dir, name: &[u8]) -> Option<&'a Dir> {
    match dir.at(name).ok().map(|i| &dir.nodes[i].1) {
        Some(Node::Dir(inner)) => Some(inner.as_ref()),
        _ => None,
    }
}

fn find<'a>(model: &'a Dir, path: &[u8]) -> Option<&'a Dir> {
    names::parts(path).try_fold(model, child)
}

/// The repositories in the workspace.
fn nested(dir: &Dir, path: &[u8], found: &mut Vec<Vec<u8>>) {
    for (name, node) in &dir.nodes {
        if let Node::Dir(inner) = node {
            let here = names::join(path, name);
            nested(inner, &here, found);
            if inner.repository {
                found.push(here);
            }
        }
    }
}

/// Converts paths of a repository to paths of the workspace, which may be a folder in it.
fn relative(paths: Vec<Vec<u8>>, workspace: &Path, at: &[u8], top: &Path) -> Vec<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    if !at.is_empty() {
        return paths.into_iter().map(|p| names::join(at, &p)).collect();
    }
    let Ok(inner) = workspace.strip_prefix(top) else { return Vec::new() };
    let mut prefix = inner.as_os_str().as_bytes().to_vec();
    if prefix.is_empty() {
        return paths;
    }
    prefix.push(b'/');
    paths.into_iter().filter_map(|p| Some(p.strip_prefix(prefix.as_slice())?.to_vec())).collect()
}
