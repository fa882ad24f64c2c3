//! Reading files of secrets.

use tiller_protocol::secret_paths::at_home;

use super::location::Location;
use tiller_shell::{Part, Word, base_name};

/// Places that hold secrets.
pub(super) fn reads_secret(part: &Part, location: Location<'_>) -> Option<String> {
    let quiet = matches!(part.base().as_str(), "ls" | "echo" | "printf" | "test" | "[" | "stat");
    if quiet {
        return None;
    }
    let secret = |w: &Word| {
        let t = w.text.to_lowercase();
        let name = base_name(&t);
        t.contains('/') && at_home().any(|place| names(&t, place)) && !projects(w, location)
            || t.contains(".docker/config")
            || matches!(
                name.as_str(),
                ".netrc"
                    | "_netrc"
                    | ".git-credentials"
                    | ".pgpass"
                    | ".bash_history"
                    | ".zsh_history"
                    | ".npmrc"
                    | ".pypirc"
                    | "id_rsa"
                    | "id_ed25519"
                    | "id_ecdsa"
                    | "shadow"
                    | "gshadow"
                    | "sudoers"
                    | ".my.cnf"
                    | "credentials.json"
            ) && (w.tilde
                || t.contains('/')
                || name.starts_with("id_")
                || name.starts_with(".git-")
                || name.contains("history")
                || name == ".netrc")
            || (t.starts_with("/proc/") && (t.ends_with("/environ") || t.ends_with("/mem")))
    };
    // As it leads: `cd ~/.aws; cat credentials`, `cat ~/.s?h/id_rsa`. The workspace's own folder is no news.
    let leads = |w: &Word| {
        let at_home = |path: &std::path::Path| {
            let rest = location.roots.home.as_ref().and_then(|h| path.strip_prefix(h).ok())?;
            Some(Word { tilde: true, ..Word::fixed(format!("/{}", rest.display())) })
        };
        let paths = location.paths(w);
        if !w.glob
            && paths.iter().any(|path| location.roots.secret(path).is_some_and(|entry| entry != "/proc"))
        {
            return true;
        }
        paths.iter().filter(|p| !location.roots.inside(p)).any(|path| {
            if w.glob {
                return hits(path);
            }
            secret(&Word::fixed(path.display().to_string())) || at_home(path).is_some_and(|w| secret(&w))
        })
    };
    let redirected = part.redirects.iter().map(|r| &r.target);
    let git = part.base() == "git";
    part.args()
        .iter()
        .chain(redirected)
        // Words of git are mostly names of its own; a place at home is one.
        .filter(|w| !git || w.tilde || w.text.starts_with('/'))
        .find(|w| secret(w) || leads(w))
        .map(|_| "it reads keys, passwords or the shell's history".to_owned())
}

/// Returns true for a path that is known and lies in the workspace: there, a name of the list is a project's own.
fn projects(word: &Word, location: Location<'_>) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    !word.tilde && !word.glob && word.text.chars().all(plain) && location.inside(word)
}

/// Whether a text in lower case has the names of a secret path among its own: `$HOME/.ssh/id_rsa`, `--file=~/.aws`.
/// Names that begin with no dot may be a project's.
fn names(text: &str, place: &str) -> bool {
    let place = place.to_lowercase();
    place.starts_with('.')
        && text.match_indices(&place).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            match text[at + place.len()..].chars().next() {
                Some('/') => before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '_')),
                // A file or folder of this name in the project, or an option's word.
                None => before == Some('/'),
                _ => false,
            }
        })
}

/// Whether a pattern of names may stand for a place that holds secrets.
fn hits(pattern: &std::path::Path) -> bool {
    const FOLDERS: &[&str] =
        &[".ssh", ".gnupg", ".aws", ".kube", ".password-store", ".docker", ".mozilla", "keyrings"];
    const FILES: &[&str] = &[
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        ".netrc",
        ".git-credentials",
        ".pgpass",
        ".npmrc",
        ".pypirc",
        "shadow",
        "gshadow",
        "sudoers",
        ".bash_history",
        ".zsh_history",
        ".my.cnf",
        "environ",
    ];
    let names: Vec<String> =
        pattern.components().map(|c| c.as_os_str().to_string_lossy().to_lowercase()).collect();
    let pattern = |text: &str| {
        // `*` alone stands for everything, and so says nothing.
        let names = text.contains(['*', '?', '[']) && text.chars().any(|c| c.is_alphanumeric() || c == '.');
        names.then(|| globset::Glob::new(text).ok()).flatten().map(|glob| glob.compile_matcher())
    };
    let last = names.last().and_then(|name| pattern(name));
    last.is_some_and(|last| FILES.iter().any(|file| last.is_match(file)))
        || names.iter().any(|name| {
            let pattern = pattern(name);
            FOLDERS
                .iter()
                .any(|folder| name == folder || pattern.as_ref().is_some_and(|p| p.is_match(folder)))
        })
}
