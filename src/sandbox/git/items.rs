//! What of a repository decides which programs git runs in it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::tree::{Tree, is_repository_name};
use crate::policy::git_files::Named;
use crate::quarantine::make_accessible;

/// How an item is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file of configuration.
    Settings,
    /// Git runs it, or it is a link in the place of something that git obeys.
    Program,
    /// A file that leads git to other folders.
    Pointer,
}

/// Something that git obeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    /// The folder of its repository; of a pointer, the folder that it lies in.
    pub(super) repository: PathBuf,
    /// Of a pointer: the folders that it leads to, without links.
    pub(super) leads: Vec<PathBuf>,
}

impl Found {
    fn of(repository: &Path, kind: Kind) -> Self {
        Self { kind, repository: repository.to_owned(), leads: Vec::new() }
    }
}

/// Everything in these repositories, and in those that they lead to below `tops`.
pub(super) fn all(tree: &Tree, tops: &[PathBuf]) -> BTreeMap<PathBuf, Found> {
    let mut found = BTreeMap::new();
    for path in tree.pointers() {
        let folder = path.parent().unwrap_or(&path).to_owned();
        let item = pointer_or_link(&path, folder);
        found.insert(path, item);
    }
    let pointers: Vec<Found> = found.values().cloned().collect();
    let mut known: BTreeSet<PathBuf> = tree.repositories().map(Path::to_owned).collect();
    let inside = |to: &PathBuf| tops.iter().any(|top| to.starts_with(top));
    let led = |found: &Found| found.leads.clone().into_iter().filter(inside);
    known.extend(found.values().flat_map(led));
    let mut waiting: Vec<PathBuf> = known.iter().cloned().collect();
    while let Some(git) = waiting.pop() {
        for (path, item) in of(&git) {
            // The folders of objects hold no settings.
            let common = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("commondir"));
            for to in led(&item).filter(|_| common) {
                if known.insert(to.clone()) {
                    waiting.push(to);
                }
            }
            found.insert(path, item);
        }
        for (path, item) in named(&git, &pointers) {
            if inside(&path) {
                found.entry(path).or_insert(item);
            }
        }
    }
    found
}

/// Returns the files that the settings of this repository name. `pointers`: files that may lead to it, from folders in which hooks run.
fn named(git: &Path, pointers: &[Found]) -> Vec<(PathBuf, Found)> {
    let named = Named::in_repository(git);
    let leads = |pointer: &&Found| pointer.leads.iter().any(|to| to.starts_with(git));
    let worktrees = pointers.iter().filter(leads).map(|pointer| pointer.repository.as_path());
    let mut all = Vec::new();
    for hooks in named.hooks_in(git, worktrees) {
        add_hooks(&plain(&hooks), git, &mut all);
    }
    for file in named.files.iter().map(|file| plain(file)).filter(|path| exists(path)) {
        all.push((file, Found::of(git, Kind::Settings)));
    }
    all
}

/// What this folder of a repository has of it.
fn of(git: &Path) -> Vec<(PathBuf, Found)> {
    let mut all = Vec::new();
    for path in
        ["config", "config.worktree"].map(|name| git.join(name)).into_iter().filter(|path| exists(path))
    {
        all.push((path, Found::of(git, Kind::Settings)));
    }
    add_hooks(&git.join("hooks"), git, &mut all);
    for path in ["commondir", "objects/info/alternates"]
        .map(|name| git.join(name))
        .into_iter()
        .filter(|path| exists(path))
    {
        let item = pointer_or_link(&path, git.to_owned());
        all.push((path, item));
    }
    all
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The programs in a folder of hooks, or what is there in its place.
fn add_hooks(hooks: &Path, git: &Path, all: &mut Vec<(PathBuf, Found)>) {
    let programs = match hooks.symlink_metadata() {
        Ok(meta) if meta.is_dir() => programs(hooks).unwrap_or_else(|_| vec![hooks.to_owned()]),
        Ok(_) => vec![hooks.to_owned()],
        Err(_) => Vec::new(),
    };
    all.extend(programs.into_iter().map(|path| (path, Found::of(git, Kind::Program))));
}

/// The hooks of a folder, without samples.
fn programs(hooks: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(hooks).or_else(|_| {
        make_accessible(hooks)?;
        std::fs::read_dir(hooks)
    })?;
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        let runs = match entry.metadata() {
            Ok(meta) => meta.is_symlink() || meta.is_file() && meta.permissions().mode() & 0o111 != 0,
            Err(_) => false,
        };
        if runs && !entry.file_name().as_encoded_bytes().ends_with(b".sample") {
            all.push(entry.path());
        }
    }
    Ok(all)
}

fn pointer_or_link(path: &Path, repository: PathBuf) -> Found {
    let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    let (kind, leads) = match is_file {
        true => (Kind::Pointer, leads(path)),
        false => (Kind::Program, Vec::new()),
    };
    Found { kind, repository, leads }
}

/// Where this file leads git. What cannot be read leads to the top of the system, and so out of every workspace.
fn leads(path: &Path) -> Vec<PathBuf> {
    /// Longer ones lead to more folders than a person looks at.
    const BYTES: u64 = 64 << 10;
    let outside = || vec![PathBuf::from("/")];
    let base = match path.ancestors().nth(3) {
        // Its lines are relative to the folder of objects.
        Some(git) if path.ends_with("objects/info/alternates") => git.join("objects"),
        _ => path.parent().unwrap_or(Path::new("/")).to_owned(),
    };
    let small = path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= BYTES);
    let Some(text) = small.then(|| std::fs::read_to_string(path).ok()).flatten() else { return outside() };
    let end = |text: &str| text.trim_end_matches(['\n', '\r']).to_owned();
    let lines = if path.ends_with("objects/info/alternates") {
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    } else if path.file_name().is_some_and(is_repository_name) {
        // Git refuses a file that begins otherwise.
        text.strip_prefix("gitdir: ").map(end).into_iter().collect()
    } else {
        vec![end(&text)]
    };
    // A quoted line is another path than it seems.
    let lead = |line: String| real_if_plain(&base.join(&line)).filter(|_| !line.starts_with('"'));
    lines.into_iter().map(|line| lead(line).unwrap_or_else(|| "/".into())).collect()
}

/// The path without `..`, if it goes through no link: that could lead elsewhere tomorrow.
fn real_if_plain(path: &Path) -> Option<PathBuf> {
    let plain = plain(path);
    (crate::policy::real(&plain) == plain).then_some(plain)
}

/// The path without `..`.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
