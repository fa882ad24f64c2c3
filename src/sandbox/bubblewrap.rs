//! The arguments of `bwrap`. Later mounts lie over earlier ones, so their order matters.

use std::path::{Path, PathBuf};

use tiller_tool::shell::Launch;

use crate::policy::{Network, Policy};

/// Commands have a private folder in its place.
const TMP: &str = "/tmp";

/// Folders below `/tmp` without which a command cannot work: its home folder, its program, and the programs of its `PATH`.
/// An installation is given whole, since what lies in its `bin` needs what lies beside that. Real paths.
pub(crate) fn needed(launch: &Launch) -> Vec<PathBuf> {
    let value = |name: &str| launch.env.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value);
    let installation = |bin: PathBuf| match bin.file_name().and_then(|name| name.to_str()) {
        Some("bin" | ".bin" | "sbin") => bin.parent().map(Path::to_owned).unwrap_or(bin),
        _ => bin,
    };
    // The program may be a link.
    let program = [launch.program.clone()].into_iter().chain(launch.program.canonicalize());
    let programs = program.filter_map(|path| path.parent().map(Path::to_owned));
    let programs = programs.chain(std::env::split_paths(value("PATH"))).map(installation);
    let all = programs.chain([PathBuf::from(value("HOME"))]);
    below_tmp(all.collect())
}

/// What the arguments of a program name below `/tmp`: its script with the folder of that, or a folder. Only for what the settings
/// start with their own words: in the arguments of all else are words of a model. What lies in `/tmp` itself is not among it: its
/// mount would leave an empty file of that name in the session's folder.
pub(crate) fn named(launch: &Launch) -> Vec<PathBuf> {
    let paths = launch.args.iter().map(|arg| match arg.split_once('=') {
        Some((name, value)) if name.starts_with('-') => value,
        _ => arg,
    });
    let found = paths.map(PathBuf::from).filter(|path| path.is_absolute()).flat_map(|path| {
        let real = path.canonicalize().ok();
        [Some(path), real].into_iter().flatten()
    });
    let of_script = |path: PathBuf| match path.parent() {
        Some(parent) if !path.is_dir() => parent.to_owned(),
        _ => path,
    };
    below_tmp(found.map(of_script).collect())
}

/// Those of the paths that exist below `/tmp`, by their real paths.
fn below_tmp(all: Vec<PathBuf>) -> Vec<PathBuf> {
    let all = all.into_iter().filter(|path| path.is_absolute());
    let mut all: Vec<PathBuf> = all.filter_map(|path| path.canonicalize().ok()).collect();
    all.retain(|path| path.starts_with(TMP) && path != Path::new(TMP));
    all.sort();
    all.dedup();
    all
}

/// Why these arguments cannot mount what they name in the session's `/tmp`: a command has put a link or a file there, and a
/// mount would follow it. `None`: there is no such reason.
pub(crate) fn obstacle(policy: &Policy, args: &[String]) -> Option<String> {
    let tmp = policy.tmp.as_deref()?;
    let mut words = args.iter().map(String::as_str).take_while(|word| *word != "--");
    let mut mounted: Vec<&Path> = Vec::new();
    while let Some(word) = words.next() {
        let (from, to) = match word {
            "--bind" | "--ro-bind" => (words.next()?, words.next()?),
            "--tmpfs" | "--dir" => ("/", words.next()?),
            _ => continue,
        };
        let to = Path::new(to);
        let Some(below) = to.strip_prefix(TMP).ok().filter(|below| !below.as_os_str().is_empty()) else {
            continue;
        };
        // What lies in a mount does not lie in the session's folder.
        if mounted.iter().any(|mount| to.starts_with(mount)) {
            continue;
        }
        mounted.push(to);
        let (mut at, whole) = (tmp.to_owned(), tmp.join(below));
        for part in below.components() {
            at.push(part);
            let Ok(found) = at.symlink_metadata() else { break };
            if !(found.is_dir() || at == whole && found.is_file() && !Path::new(from).is_dir()) {
                return Some(format!(
                    "the sandbox cannot be set up: {} lies in the way of {} in this session's /tmp; move it away",
                    at.display(),
                    to.display()
                ));
            }
        }
    }
    None
}

/// The mount of `/tmp`: the session's folder, or one of the command alone.
fn tmp_mount(args: &mut Vec<String>, policy: &Policy) {
    match &policy.tmp {
        Some(folder) => args.extend(["--bind".to_owned(), folder.display().to_string(), TMP.to_owned()]),
        None => args.extend(["--tmpfs", TMP].map(str::to_owned)),
    }
}

/// Everything up to the program, `--` included. `visible`: what must be visible inside, as the launcher.
pub(crate) fn arguments(policy: &Policy, folder: &Path, visible: &[&Path]) -> Vec<String> {
    let mut args: Vec<String> =
        ["--unshare-all", "--new-session", "--cap-drop", "ALL"].map(str::to_owned).into();
    if policy.network == Network::All {
        args.push("--share-net".into());
    }
    let mut mount = |kind: &str, from: &Path, to: &Path| {
        args.extend([kind.to_owned(), from.display().to_string(), to.display().to_string()]);
    };
    let root = Path::new("/");
    mount("--ro-bind", root, root);
    args.extend(["--dev", "/dev", "--proc", "/proc"].map(str::to_owned));
    tmp_mount(&mut args, policy);
    let mut mount = |kind: &str, from: &Path, to: &Path| {
        args.extend([kind.to_owned(), from.display().to_string(), to.display().to_string()]);
    };
    let tmp = Path::new(TMP);
    let writable = policy.writable_folders();
    // What lies in the folder that the private one hides is shown again, read-only.
    let proxy = policy.proxy_socket().and_then(Path::parent);
    let needed = policy.needed.iter().map(PathBuf::as_path);
    // Git compares all files of a repository with what it has of them, also from a part of it.
    let repository = policy.repository();
    let needed = needed.chain(repository.iter().map(|git| git.top.as_path()));
    let shown = needed.chain([folder, &policy.workspace]).chain(visible.iter().copied()).chain(proxy);
    for path in shown {
        if path.starts_with(tmp) && path != tmp && !writable.iter().any(|w| path.starts_with(w)) {
            mount("--ro-bind", path, path);
        }
    }
    kernel(&mut args);
    layers(&mut args, policy, &writable);
    let mut mount = |kind: &str, from: &Path, to: &Path| {
        args.extend([kind.to_owned(), from.display().to_string(), to.display().to_string()]);
    };
    let protected = policy.protected_paths();
    let hidden = policy.hidden_paths();
    // A mount point cannot be renamed: otherwise a folder above could be moved away with it, and a new one put there, or
    // what is hidden could be read at its new place by the next command.
    let inside = |path: &&Path| writable.iter().any(|w| path.starts_with(w) && path != w);
    let mut parents: Vec<&Path> = protected
        .iter()
        .filter(|path| path.exists())
        .chain(&hidden)
        .flat_map(|path| path.ancestors().skip(1).take_while(inside))
        .collect();
    parents.sort();
    parents.dedup();
    for parent in parents {
        mount("--bind", parent, parent);
    }
    for path in protected.iter().filter(|path| path.exists()) {
        mount("--ro-bind", path, path);
    }
    for path in policy.own_folders() {
        mount("--ro-bind", &path, &path);
    }
    for (copy, path) in policy.copies.iter().filter(|(_, path)| path.exists()) {
        mount("--ro-bind", copy, path);
    }
    for path in hidden {
        let shown = writable.iter().chain(&policy.needed).chain([&policy.workspace]);
        let mut shown = shown.chain(repository.iter().map(|git| &git.top));
        let shown = shown.any(|folder| path.starts_with(folder));
        if path.starts_with(tmp) && !shown {
            continue;
        }
        hide(&mut args, &path);
    }
    args.extend(["--chdir".to_owned(), folder.display().to_string(), "--".to_owned()]);
    args
}

/// The arguments for what only reads, `--` included: a root of its own, with what is seen. `visible`: as [`arguments`].
pub(crate) fn reading(policy: &Policy, folder: &Path, visible: &[&Path]) -> Vec<String> {
    let mut args: Vec<String> =
        ["--unshare-all", "--new-session", "--cap-drop", "ALL"].map(str::to_owned).into();
    tmp_mount(&mut args, policy);
    let sight = policy.sight();
    let writable = policy.writable_folders();
    layers(&mut args, policy, &writable);
    let mut mount = |kind: &str, from: &Path, to: &Path| {
        args.extend([kind.to_owned(), from.display().to_string(), to.display().to_string()]);
    };
    let proxy = policy.proxy_socket().and_then(Path::parent);
    for path in visible.iter().copied().chain(proxy).filter(|path| !sight.sees(path)) {
        mount("--ro-bind", path, path);
    }
    // A link in the session's folder would stay there.
    let stays = |link: &Path| policy.tmp.is_some() && link.starts_with(TMP);
    for (link, to) in sight.links.iter().filter(|(link, _)| !stays(link)) {
        mount("--symlink", to, link);
    }
    args.extend(["--dev", "/dev", "--proc", "/proc"].map(str::to_owned));
    kernel(&mut args);
    for path in policy.hidden_paths() {
        if sight.sees(&path) || !stays(&path) {
            hide(&mut args, &path);
        }
    }
    if !sight.sees(folder) {
        // The shell may stand in a folder that it does not see.
        args.extend(["--dir".to_owned(), folder.display().to_string()]);
    }
    if policy.tmp.is_some() {
        args.extend(["--remount-ro", TMP].map(str::to_owned));
    }
    args.extend(["--remount-ro", "/", "--chdir"].map(str::to_owned));
    args.extend([folder.display().to_string(), "--".to_owned()]);
    args
}

/// What is seen and written, and what is closed in that, from the outside to the inside.
fn layers(args: &mut Vec<String>, policy: &Policy, writable: &[PathBuf]) {
    let sight = policy.sight();
    let whole = Path::new("/");
    let own = ["/proc", "/dev"].map(Path::new);
    let read = sight.open.iter().filter(|path| path.as_path() != whole && !own.contains(&path.as_path()));
    let mut all: Vec<(&Path, &str)> = read.map(|path| (path.as_path(), "--ro-bind")).collect();
    all.extend(sight.closed.iter().map(|path| (path.as_path(), "--tmpfs")));
    all.retain(|(path, _)| !writable.iter().any(|folder| folder == path));
    all.extend(writable.iter().map(|path| (path.as_path(), "--bind")));
    all.sort();
    for (path, kind) in all {
        args.push(kind.to_owned());
        let times = if kind == "--tmpfs" { 1 } else { 2 };
        args.extend(std::iter::repeat_n(path.display().to_string(), times));
    }
}

/// As the root user, files of the kernel's settings belong to the command.
fn kernel(args: &mut Vec<String>) {
    for path in ["/proc/sys", "/proc/irq", "/proc/bus", "/proc/sysrq-trigger"] {
        if Path::new(path).exists() {
            args.extend(["--ro-bind", path, path].map(str::to_owned));
        }
    }
}

fn hide(args: &mut Vec<String>, path: &Path) {
    match path.is_dir() {
        true => args.extend(["--tmpfs".to_owned(), path.display().to_string()]),
        false => args.extend(["--ro-bind".to_owned(), "/dev/null".to_owned(), path.display().to_string()]),
    }
}

/// The arguments of the profile `floor`, `--` included: the whole system as it is, with what is protected read-only.
pub(crate) fn floor(policy: &Policy, folder: &Path) -> Vec<String> {
    // As the root user it could undo the mounts.
    let mut args: Vec<String> = ["--cap-drop", "CAP_SYS_ADMIN"].map(str::to_owned).into();
    let mut mount = |kind: &str, path: &Path| {
        args.extend([kind.to_owned(), path.display().to_string(), path.display().to_string()]);
    };
    mount("--dev-bind", Path::new("/"));
    let mut protected: Vec<PathBuf> =
        policy.protected_paths().into_iter().filter(|path| path.exists()).collect();
    let judged = policy.judged_paths();
    protected.retain(|path| !judged.contains(path));
    let compared = policy.git_configurations(&protected);
    // A mount point cannot be renamed: otherwise its parent could be moved away with it.
    let mut parents: Vec<PathBuf> =
        protected.iter().filter_map(|path| path.parent().map(Path::to_owned)).collect();
    parents.retain(|parent| parent.parent().is_some());
    parents.sort();
    parents.dedup();
    protected.retain(|path| !compared.contains(path));
    for parent in &parents {
        mount("--bind", parent);
    }
    let own = policy.own_folders();
    for path in &own {
        mount("--ro-bind", path);
    }
    // An agent's folder may lie in one of Tiller's.
    if own.iter().any(|own| policy.workspace.starts_with(own)) {
        mount(if policy.only_reads_workspace { "--ro-bind" } else { "--bind" }, &policy.workspace);
        for parent in parents.iter().filter(|parent| parent.starts_with(&policy.workspace)) {
            mount("--bind", parent);
        }
    }
    for path in &protected {
        mount("--ro-bind", path);
    }
    args.extend(["--chdir".to_owned(), folder.display().to_string(), "--".to_owned()]);
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Profile;

    #[test]
    fn protected_paths_lie_over_the_workspace_and_hidden_ones_over_everything() {
        let tmp = tempfile::tempdir_in("/var/tmp").unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["work/.git/hooks", "scratch", "home/.ssh"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        let work = top.join("work");
        let policy = Policy::new(Profile::Workspace, &work, &top.join("scratch"), Some(&top.join("home")));
        let args = arguments(&policy, &work, &[Path::new("/usr/bin/tiller")]);
        let at = |kind: &str, path: &str| {
            let path = top.join(path).display().to_string();
            let hit = args.windows(2).position(|two| two[0] == kind && two[1] == path);
            hit.unwrap_or_else(|| panic!("{kind} {path} is missing in {args:?}"))
        };
        assert!(at("--bind", "work") < at("--bind", "work/.git"));
        assert!(at("--bind", "work/.git") < at("--ro-bind", "work/.git/hooks"));
        assert!(at("--ro-bind", "work/.git/hooks") < at("--tmpfs", "home/.ssh"));
        assert!(!args.contains(&"--share-net".to_owned()));
        assert_eq!(args.last().map(String::as_str), Some("--"));
    }

    #[test]
    fn home_and_programs_below_the_private_folder_are_needed() {
        let tmp = tempfile::tempdir_in(TMP).unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["home", "venv/bin", "tools", "other/bin"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../../other/bin/run", top.join("venv/bin/run")).unwrap();
        std::fs::write(top.join("other/bin/run"), "").unwrap();
        let at = |path: &str| top.join(path).display().to_string();
        let env =
            [("HOME", at("home")), ("PATH", format!("/usr/bin:{}:{}:/tmp:rel", at("tools"), at("missing")))];
        let launch = Launch {
            program: top.join("venv/bin/run"),
            args: Vec::new(),
            env: env.map(|(name, value)| (name.to_owned(), value)).into(),
            folder: top.clone(),
        };
        let expected = ["home", "other", "tools", "venv"].map(|name| top.join(name));
        assert_eq!(needed(&launch), expected);
    }
}
