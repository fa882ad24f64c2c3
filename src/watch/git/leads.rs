//! Whether the files that git reads for a repository are all its own. Git prints lines of its files in errors and
//! answers, so a link or a setting that leads elsewhere turns a read-only command into a way to read any file.

use std::path::{Path, PathBuf};

use crate::git::Repository;

/// Maximum number of entries of the git folder that are examined.
const ENTRIES: usize = 20_000;
/// Folders in it whose links are not examined: git names objects and references by hashes, and commands that need no
/// approval run no hooks.
const PASSED: &[&str] = &["hooks", "refs", "modules", "lfs"];

/// Why the git folder leads out of the repository; `None`: it does not.
pub(super) fn out_of(folder: &Path, repository: Option<&Repository>) -> Option<String> {
    let nearest = folder.ancestors().find(|f| f.join(".git").symlink_metadata().is_ok())?;
    let entry = nearest.join(".git");
    let is_link = entry.symlink_metadata().is_ok_and(|m| m.is_symlink());
    let Some(repository) = repository.filter(|r| r.work == nearest && !is_link) else {
        return Some(format!("{} is a link or cannot be read", entry.display()));
    };
    if !belongs(repository) {
        return Some(format!("{} points to a repository elsewhere", entry.display()));
    }
    let alternates = repository.common.join("objects/info/alternates");
    if alternates.symlink_metadata().is_ok() {
        return Some(format!("{} refers to objects elsewhere", alternates.display()));
    }
    let mut left = ENTRIES;
    links(&repository.dir, repository, 0, &mut left)
        .or_else(|| links(&repository.common, repository, 0, &mut left))
}

/// Whether the git folder is below the work tree, or names this work tree as its own.
fn belongs(repository: &Repository) -> bool {
    let Repository { work, dir, common } = repository;
    let (Ok(work), Ok(dir), Ok(common)) = (work.canonicalize(), dir.canonicalize(), common.canonicalize())
    else {
        return false;
    };
    let of_common = dir == common || dir.parent().and_then(Path::parent) == Some(common.as_path());
    let below_parent = || {
        let git = |f: &Path| f.join(".git/modules").canonicalize().is_ok_and(|m| dir.starts_with(m));
        work.ancestors().skip(1).any(git)
    };
    let points_back = || {
        let back = std::fs::read_to_string(dir.join("gitdir")).unwrap_or_default();
        dir.join(back.trim()).canonicalize().is_ok_and(|b| b == work.join(".git"))
    };
    of_common && (dir.starts_with(&work) || below_parent() || points_back())
}

/// The first link in the git folder that leads out.
fn links(folder: &Path, repository: &Repository, depth: usize, left: &mut usize) -> Option<String> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        if *left == 0 {
            return Some("the .git folder contains more files than can be checked".into());
        }
        *left -= 1;
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        if kind.is_symlink() && !stays(&path, repository) {
            return Some(format!("{} is a link that points elsewhere", path.display()));
        }
        // Below `objects` only folder names and the contents of `info` and `pack` are examined.
        let of_objects = folder.file_name().is_some_and(|n| n == "objects") && name.len() == 2;
        let passed = depth == 0 && PASSED.iter().any(|p| name == *p);
        if kind.is_dir() && !passed && !of_objects {
            let found = links(&path, repository, depth + 1, left);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// Whether a path, with its links resolved, is within the repository.
fn stays(path: &Path, repository: &Repository) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    [&repository.work, &repository.dir, &repository.common]
        .iter()
        .any(|f| f.canonicalize().is_ok_and(|f| real.starts_with(f)))
}

/// Whether a setting from the repository's own files makes git read a file elsewhere.
pub(super) fn names_outside(key: &str, value: &str, repository: &Repository) -> bool {
    let (section, last) =
        (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
    let includes = matches!((section, last), ("include" | "includeif", "path"));
    let reads = matches!(
        key,
        "blame.ignorerevsfile"
            | "mailmap.file"
            | "core.excludesfile"
            | "core.attributesfile"
            | "diff.orderfile"
            | "gpg.ssh.allowedsignersfile"
            | "gpg.ssh.revocationfile"
    );
    if !(includes || reads) || value.is_empty() {
        return false;
    }
    // An include path is relative to the including file, which need not be git's `config`: at most one step upwards is
    // resolved with certainty.
    if value.starts_with(['~', '%'])
        || value.split('/').filter(|c| *c == "..").count() > usize::from(includes)
    {
        return true;
    }
    let bases: &[&PathBuf] =
        if includes { &[&repository.dir, &repository.common, &repository.work] } else { &[&repository.work] };
    bases.iter().map(|b| b.join(value)).any(|p| p.symlink_metadata().is_ok() && !stays(&p, repository))
}

/// Why a setting from the repository's own files makes git apply a file of the work tree.
pub(super) fn includes_project(key: &str, value: &str, repository: &Repository) -> Option<String> {
    let (section, last) = (key.split('.').next()?, key.rsplit('.').next()?);
    if !matches!((section, last), ("include" | "includeif", "path")) {
        return None;
    }
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    let (work, own) = (real(&repository.work), [real(&repository.dir), real(&repository.common)]);
    // Relative to the including file.
    let bases = [&repository.dir, &repository.common];
    let inside = |p: PathBuf| {
        // A file that does not exist yet can be created later.
        let p = match (p.parent(), p.file_name()) {
            (Some(folder), Some(name)) if p.symlink_metadata().is_err() => real(folder).join(name),
            _ => real(&p),
        };
        p.starts_with(&work) && !own.iter().any(|o| p.starts_with(o))
    };
    bases
        .iter()
        .any(|b| inside(b.join(value)))
        .then(|| format!("{key} of git's configuration reads a file of the project"))
}
