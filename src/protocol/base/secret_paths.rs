//! Paths of keys, tokens and other people's data. No tool reads them without a question, and the sandbox hides them from
//! commands. Both take them from here; `secret_paths.txt` has those of the home folder, with their sources and their date.

use std::path::{Path, PathBuf};

const LIST: &str = include_str!("secret_paths.txt");

/// Stands before a file of settings that programs need.
const SETTINGS: &str = "? ";

fn lines() -> impl Iterator<Item = &'static str> + Clone {
    LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Files and folders below the home folder; a folder stands for everything in it. None lies in another.
pub fn at_home() -> impl Iterator<Item = &'static str> + Clone {
    lines().map(|line| line.strip_prefix(SETTINGS).unwrap_or(line))
}

/// Those of [`at_home`] that programs need as their settings: of these, commands are kept from those only that hold a secret.
pub fn settings_at_home() -> impl Iterator<Item = &'static str> + Clone {
    lines().filter_map(|line| line.strip_prefix(SETTINGS))
}

/// Folders and files below the home folder that a variable moves, by the documentation of each program (2026-11-29).
const MOVED: &[(&str, &str)] = &[
    (".config", "XDG_CONFIG_HOME"),
    (".local/share", "XDG_DATA_HOME"),
    (".local/state", "XDG_STATE_HOME"),
    (".cache", "XDG_CACHE_HOME"),
    (".cargo", "CARGO_HOME"),
    (".gradle", "GRADLE_USER_HOME"),
    (".gnupg", "GNUPGHOME"),
    (".password-store", "PASSWORD_STORE_DIR"),
    (".docker", "DOCKER_CONFIG"),
    (".azure", "AZURE_CONFIG_DIR"),
    (".config/gcloud", "CLOUDSDK_CONFIG"),
    (".config/gh", "GH_CONFIG_DIR"),
    (".claude", "CLAUDE_CONFIG_DIR"),
    (".codex", "CODEX_HOME"),
    (".aws/config", "AWS_CONFIG_FILE"),
    (".aws/credentials", "AWS_SHARED_CREDENTIALS_FILE"),
    (".config/gcloud/application_default_credentials.json", "GOOGLE_APPLICATION_CREDENTIALS"),
    (".kube/config", "KUBECONFIG"),
    (".netrc", "NETRC"),
    (".npmrc", "NPM_CONFIG_USERCONFIG"),
    (".pgpass", "PGPASSFILE"),
    (".bash_history", "HISTFILE"),
    (".python_history", "PYTHON_HISTORY"),
    (".node_repl_history", "NODE_REPL_HISTORY"),
    (".psql_history", "PSQL_HISTORY"),
    (".mysql_history", "MYSQL_HISTFILE"),
    (".lesshst", "LESSHISTFILE"),
];

/// The paths of the list where variables move them, and true for those of [`settings_at_home`]. What lies in `project` is the
/// project's own, and no secret.
pub fn moved(variable: &dyn Fn(&str) -> Option<String>, project: &Path) -> Vec<(PathBuf, bool)> {
    let mut all = Vec::new();
    for (place, name) in MOVED {
        let value = variable(name).unwrap_or_default();
        for folder in std::env::split_paths(&value).filter(|path| path.is_absolute()) {
            for line in lines() {
                let (entry, is_settings) =
                    line.strip_prefix(SETTINGS).map_or((line, false), |entry| (entry, true));
                let entry = Path::new(entry);
                match (entry.strip_prefix(place), Path::new(place).starts_with(entry)) {
                    (Ok(rest), _) => all.push((folder.join(rest), is_settings)),
                    (_, true) => all.push((folder.clone(), is_settings)),
                    _ => {}
                }
            }
        }
    }
    let is_own = |path: &Path| path.starts_with(project) || project.starts_with(path);
    all.retain(|(path, _)| !path.starts_with("/dev/null") && !is_own(path));
    all
}

/// Files and folders of the system.
pub const OF_SYSTEM: &[&str] = &["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d"];

/// The file of keys in Tiller's configuration folder, wherever that lies.
pub const OWN_KEYS: &str = "credentials.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_of_the_list_lies_in_another_or_stands_twice() {
        for (n, entry) in at_home().enumerate() {
            assert!(Path::new(entry).is_relative() && !entry.ends_with('/'), "{entry}");
            let others = at_home().enumerate().filter(|(m, _)| *m != n);
            let around = others.map(|(_, other)| other).find(|other| Path::new(entry).starts_with(other));
            assert_eq!(around, None, "{entry}");
        }
    }

    #[test]
    fn paths_that_variables_move_are_known() {
        let of = |name: &str, value: &str| {
            let (name, value) = (name.to_owned(), value.to_owned());
            let all = moved(&move |asked| (asked == name).then(|| value.clone()), Path::new("/home/u/app"));
            all.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
        };
        for (name, value, path) in [
            ("XDG_CONFIG_HOME", "/c", "/c/gh"),
            ("XDG_DATA_HOME", "/d", "/d/keyrings"),
            ("CARGO_HOME", "/c", "/c/credentials.toml"),
            ("GNUPGHOME", "/g", "/g"),
            ("GNUPGHOME", "/dev/shm/gpg", "/dev/shm/gpg"),
            ("KUBECONFIG", "/a/one:/b/two", "/b/two"),
            ("HISTFILE", "/h/typed", "/h/typed"),
        ] {
            assert!(of(name, value).contains(&PathBuf::from(path)), "{name}");
        }
        for (name, value) in [
            ("HISTFILE", "/dev/null"),
            ("KUBECONFIG", "relative"),
            ("KUBECONFIG", ""),
            ("KUBECONFIG", "/home/u/app/kube.yaml"),
            ("GNUPGHOME", "/home/u"),
            ("GNUPGHOME", "/"),
        ] {
            assert_eq!(of(name, value), Vec::<PathBuf>::new(), "{name}={value}");
        }
    }
}
