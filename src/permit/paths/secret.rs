//! Paths of keys, tokens and other people's data ([`tiller_protocol::secret_paths`]), and other places whose content no tool
//! reads without a question: what is known of a running process.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use tiller_protocol::secret_paths::{OF_SYSTEM, OWN_KEYS, at_home};

use super::Resolve;
use crate::protected::{fold, fold_path};

/// Folded, with the text of the list.
static FOLDED: LazyLock<HashMap<PathBuf, &'static str>> =
    LazyLock::new(|| at_home().map(|text| (fold_path(Path::new(text)), text)).collect());

/// Of each, the name below the home folder.
static FIRST: LazyLock<HashSet<PathBuf>> = LazyLock::new(|| {
    FOLDED.keys().filter_map(|path| Some(path.components().next()?.as_os_str().into())).collect()
});

/// The secret paths of one home folder.
#[derive(Clone, Debug, Default)]
pub(super) struct SecretPaths {
    /// The home folder as it is named, and as its links lead.
    homes: Vec<PathBuf>,
    /// Secret paths that are links, as they lead, with the text of the list.
    led: Vec<(PathBuf, &'static str)>,
    /// The files of Tiller's keys.
    own: Vec<PathBuf>,
    /// Where variables move secret paths, links resolved too.
    moved: Vec<PathBuf>,
}

impl SecretPaths {
    /// Resolves the links of each path of the list, once.
    pub(super) fn new(home: Option<&Path>, own: &[PathBuf], resolve: &Resolve) -> Self {
        let mut homes: Vec<PathBuf> = home.iter().map(|home| (*home).to_owned()).collect();
        homes.extend(home.map(|home| resolve(home)));
        homes.dedup();
        let real = homes.last().cloned();
        let mut led = Vec::new();
        for text in at_home() {
            let Some(path) = real.as_ref().map(|home| home.join(text)) else { continue };
            let to = resolve(&path);
            if to != path {
                led.push((to, text));
            }
        }
        let own = own.iter().map(|folder| folder.join(OWN_KEYS));
        let own = own.flat_map(|path| [resolve(&path), path]).collect();
        Self { homes, led, own, moved: Vec::new() }
    }

    /// The same with paths to which variables move entries of the list.
    pub(super) fn with_moved(mut self, paths: Vec<PathBuf>, resolve: &Resolve) -> Self {
        let known: Vec<PathBuf> = paths.into_iter().filter(|path| self.holds(path).is_none()).collect();
        self.moved = known.iter().flat_map(|path| [path.clone(), resolve(path)]).collect();
        self.moved.sort();
        self.moved.dedup();
        self
    }

    /// Every path of the list.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let home = self.homes.last();
        let list = home.iter().flat_map(|home| at_home().map(|text| home.join(text)));
        let led = self.led.iter().map(|(to, _)| to.clone());
        list.chain(led)
            .chain(self.moved.iter().cloned())
            .chain(self.own.iter().cloned())
            .chain(OF_SYSTEM.iter().map(PathBuf::from))
            .collect()
    }

    /// The entry of the list that holds `path` (absolute, without `..`), for people. Follows no links.
    pub(super) fn holds(&self, path: &Path) -> Option<String> {
        if let Some(text) = self.homes.iter().find_map(|home| in_home(path.strip_prefix(home).ok()?)) {
            return Some(format!("~/{text}"));
        }
        if let Some((_, text)) = self.led.iter().find(|(to, _)| path.starts_with(to)) {
            return Some(format!("~/{text}"));
        }
        let own = self.own.iter().find(|own| path == **own);
        if let Some(known) = own.or_else(|| self.moved.iter().find(|moved| path.starts_with(moved))) {
            return Some(known.display().to_string());
        }
        if let Some(text) = OF_SYSTEM.iter().find(|text| path.starts_with(text)) {
            return Some((*text).to_owned());
        }
        of_process(path).then(|| "/proc".to_owned())
    }

    /// The entry of the list that lies below `folder` or holds it, and exists by `exists`.
    pub(super) fn below(&self, folder: &Path, exists: impl Fn(&Path) -> bool) -> Option<String> {
        let found = self.homes.iter().find_map(|home| {
            let near = home.starts_with(folder) || folder.starts_with(home);
            let mut all = at_home().filter(|_| near).map(|text| (text, home.join(text)));
            all.find(|(_, path)| path.starts_with(folder) && exists(path))
                .map(|(text, _)| format!("~/{text}"))
        });
        let moved = || self.moved.iter().find(|path| path.starts_with(folder) && exists(path));
        found.or_else(|| Some(moved()?.display().to_string())).or_else(|| self.holds(folder))
    }
}

/// The entry of the list that holds a path below the home folder.
fn in_home(rest: &Path) -> Option<&'static str> {
    let first = rest.components().next()?.as_os_str().to_str()?;
    let first = fold(first);
    if !FIRST.contains(Path::new(first.as_str())) {
        return None;
    }
    fold_path(rest).ancestors().find_map(|path| FOLDED.get(path).copied())
}

/// Whether the path belongs to a running process: its environment holds keys, its memory anything.
fn of_process(path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix("/proc") else { return false };
    let Some(Component::Normal(first)) = rest.components().next() else { return false };
    let first = first.to_string_lossy();
    matches!(first.as_ref(), "self" | "thread-self" | "kcore") || first.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::paths::normal;

    fn secrets() -> SecretPaths {
        let resolve: Resolve = Arc::new(|path| {
            let path = normal(path);
            match path.strip_prefix("/home/u/.aws") {
                Ok(rest) => Path::new("/data/aws").components().chain(rest.components()).collect(),
                Err(_) => match path.strip_prefix("/home/u") {
                    Ok(rest) => Path::new("/home/u").join(rest),
                    Err(_) => path,
                },
            }
        });
        SecretPaths::new(Some(Path::new("/home/u")), &[PathBuf::from("/etc/t")], &resolve)
    }

    #[test]
    fn each_entry_is_known_with_all_below_it_in_any_case() {
        let secrets = secrets();
        for entry in at_home() {
            for path in [format!("/home/u/{entry}"), format!("/home/u/{entry}/x/y")] {
                assert_eq!(secrets.holds(Path::new(&path)), Some(format!("~/{entry}")), "{path}");
                let upper = format!("/home/u/{}", path["/home/u/".len()..].to_uppercase());
                assert!(secrets.holds(Path::new(&upper)).is_some(), "{upper}");
            }
            let near = format!("/home/u/{entry}-2");
            assert_eq!(secrets.holds(Path::new(&near)), None, "{near}");
            assert_eq!(secrets.holds(Path::new(&format!("/home/v/{entry}"))), None);
            let project = format!("/home/u/code/app/{entry}");
            assert_eq!(secrets.holds(Path::new(&project)), None, "a project's own file");
        }
    }

    #[test]
    fn links_own_keys_and_running_processes_are_known() {
        let secrets = secrets();
        assert_eq!(secrets.holds(Path::new("/data/aws/credentials")).as_deref(), Some("~/.aws"));
        assert!(secrets.holds(Path::new("/etc/t/credentials.toml")).is_some());
        assert!(secrets.holds(Path::new("/etc/t/config.toml")).is_none());
        for (path, secret) in [
            ("/proc/1/environ", true),
            ("/proc/self/mem", true),
            ("/proc/thread-self/root/x", true),
            ("/proc/kcore", true),
            ("/proc/cpuinfo", false),
            ("/proc/sys/kernel/osrelease", false),
            ("/proc", false),
            ("/etc/shadow", true),
            ("/etc/passwd", false),
            ("/home/u", false),
            ("/", false),
        ] {
            assert_eq!(secrets.holds(Path::new(path)).is_some(), secret, "{path}");
        }
    }

    #[test]
    fn a_folder_with_a_secret_path_below_it_is_known() {
        let secrets = secrets();
        let there = |path: &Path| path.ends_with(".config/gh");
        for (folder, entry) in [
            ("/home/u", Some("~/.config/gh")),
            ("/", Some("~/.config/gh")),
            ("/home/u/.config", Some("~/.config/gh")),
            ("/home/u/.config/gh", Some("~/.config/gh")),
            ("/home/u/.config/gh/x", Some("~/.config/gh")),
            ("/home/u/code", None),
            ("/srv", None),
        ] {
            assert_eq!(secrets.below(Path::new(folder), there).as_deref(), entry, "{folder}");
        }
    }
}
