//! Reading what nobody but the person should.

use crate::shell::{Part, Word, base_name};

/// Places that hold secrets.
pub(super) fn reads_secret(part: &Part) -> Option<String> {
    let quiet = matches!(part.base().as_str(), "ls" | "echo" | "printf" | "test" | "[" | "stat" | "git");
    if quiet {
        return None;
    }
    let secret = |w: &Word| {
        let t = w.text.to_lowercase();
        let name = base_name(&t);
        let in_home = [
            ".ssh/",
            ".gnupg/",
            ".aws/",
            ".kube/",
            ".docker/config",
            ".config/gh/",
            ".config/gcloud",
            ".password-store",
            ".mozilla/",
            ".local/share/keyrings",
            ".config/google-chrome",
            ".cargo/credentials",
            "library/keychains",
        ];
        in_home.iter().any(|s| t.contains(s))
            || t.ends_with("/.ssh")
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
    let redirected = part.redirects.iter().map(|r| &r.target);
    part.args()
        .iter()
        .chain(redirected)
        .find(|w| secret(w))
        .map(|_| "it reads keys, passwords or the shell's history".to_owned())
}
