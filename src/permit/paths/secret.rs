//! Paths of keys, tokens and other people's data ([`tiller_protocol::secret_paths`]), and other places whose content no tool
//! reads without a question: what is known of a running process.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use tiller_protocol::secret_paths::{AT_HOME, OF_SYSTEM, OWN_KEYS};

use super::Resolve;
use crate::protected::{fold, fold_path};

/// Folded, with the text of the list.
static FOLDED: LazyLock<Vec<(&'static str, PathBuf)>> =
    LazyLock::new(|| AT_HOME.iter().map(|text| (*text, fold_path(Path::new(text)))).collect());

/// The secret paths of one home folder.
#[derive(Clone, Debug, Default)]
pub(super) struct SecretPaths {
    /// The home folder as it is named, and as its links lead.
    homes: Vec<PathBuf>,
    /// Secret paths that are links, as they lead, with the text of the list.
    led: Vec<(PathBuf, &'static str)>,
    /// The files of Tiller's keys.
    own: Vec<PathBuf>,
}

impl SecretPaths {
    /// Resolves the links of each path of the list, once.
    pub(super) fn new(home: Option<&Path>, own: &[PathBuf], resolve: &Resolve) -> Self {
        let mut homes: Vec<PathBuf> = home.iter().map(|home| (*home).to_owned()).collect();
        homes.extend(home.map(|home| resolve(home)));
        homes.dedup();
        let real = homes.last().cloned();
        let mut led = Vec::new();
        for text in AT_HOME {
            let Some(path) = real.as_ref().map(|home| home.join(text)) else { continue };
            let to = resolve(&path);
            if to != path {
                led.push((to, *text));
            }
        }
        let own = own.iter().map(|folder| folder.join(OWN_KEYS));
        let own = own.flat_map(|path| [resolve(&path), path]).collect();
        Self { homes, led, own }
    }

    /// Every path of the list.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let home = self.homes.last();
        let at_home = home.iter().flat_map(|home| AT_HOME.iter().map(|text| home.join(text)));
        let led = self.led.iter().map(|(to, _)| to.clone());
        at_home
            .chain(led)
            .chain(self.own.iter().cloned())
            .chain(OF_SYSTEM.iter().map(PathBuf::from))
            .collect()
    }

    /// The entry of the list that holds `path` (absolute, without `..`), for people. Follows no links.
    pub(super) fn holds(&self, path: &Path) -> Option<String> {
        let at_home = self.homes.iter().find_map(|home| in_home(path.strip_prefix(home).ok()?));
        if let Some(text) = at_home {
            return Some(format!("~/{text}"));
        }
        if let Some((_, text)) = self.led.iter().find(|(to, _)| path.starts_with(to)) {
            return Some(format!("~/{text}"));
        }
        if let Some(own) = self.own.iter().find(|own| path == **own) {
            return Some(own.display().to_string());
        }
        if let Some(text) = OF_SYSTEM.iter().find(|text| path.starts_with(text)) {
            return Some((*text).to_owned());
        }
        of_process(path).then(|| "/proc".to_owned())
    }

    /// The entry of the list that lies below `folder` or holds it, and exists by `exists`.
    pub(super) fn below(&self, folder: &Path, exists: impl Fn(&Path) -> bool) -> Option<String> {
        let at_home = self.homes.iter().find_map(|home| {
            let near = home.starts_with(folder) || folder.starts_with(home);
            let mut all = AT_HOME.iter().filter(|_| near).map(|text| (text, home.join(text)));
            all.find(|(_, path)| path.starts_with(folder) && exists(path)).map(|(text, _)| text)
        });
        at_home.map(|text| format!("~/{text}")).or_else(|| self.holds(folder))
    }
}

/// The entry of the list that holds a path below the home folder.
fn in_home(rest: &Path) -> Option<&'static str> {
    let first = rest.components().next()?.as_os_str().to_str()?;
    let first = fold(first);
    let may = |path: &Path| path.components().next().is_some_and(|c| c.as_os_str() == first.as_str());
    if !FOLDED.iter().any(|(_, path)| may(path)) {
        return None;
    }
    let rest = fold_path(rest);
    FOLDED.iter().find(|(_, path)| rest.starts_with(path)).map(|(text, _)| *text)
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
        for entry in AT_HOME {
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
