//! Keys of the configuration of git by which git runs programs.

/// Starts of keys whose value git runs, or that name further configuration.
const KEYS: &[&str] = &[
    "alias.",
    "filter.",
    "diff.external",
    "difftool.",
    "mergetool.",
    "credential.",
    "include.",
    "includeif.",
    "hook.",
    "gpg.",
    "pager.",
    "url.",
    "protocol.",
    "browser.",
    "man.",
    "web.",
    "instaweb.",
    "sendemail.",
    "remote.",
    "submodule.",
    "http.proxy",
    "https.proxy",
    "uploadpack.",
    "receive.",
    "tar.",
    "guitool.",
    "imap.",
    "ssh.",
    "trailer.",
    "interactive.difffilter",
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.hookspath",
    "core.askpass",
    "core.gitproxy",
    "core.worktree",
    "core.attributesfile",
    "core.alternaterefscommand",
    "sequence.editor",
    "merge.",
    "init.templatedir",
    "commit.template",
    "safe.",
    "extensions.",
    "diff.tool",
    "fsmonitor.",
    "maintenance.",
    "user.signingkey",
    "gc.recentobjectshook",
    "lfs.",
    "annex.",
    "svn.",
];

/// Whether git runs the value of this key, or is led to other configuration by it.
pub fn git_key_runs_program(key: &str) -> bool {
    let key = key.to_lowercase();
    KEYS.iter().any(|s| key.starts_with(s))
        || (key.starts_with("diff.") && (key.ends_with(".command") || key.ends_with(".textconv")))
}

/// Whether git runs a program by this setting, or is led by it to another server or other configuration. The key has its
/// section and its name in lower case. Of the sections in the list above, what git's own commands write does not count.
pub(super) fn git_setting_runs_program(key: &str, value: &str) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    let last = key.rsplit('.').next().unwrap_or_default();
    match (section, last) {
        ("remote", "url" | "pushurl" | "pushdefault") | ("branch", "remote" | "pushremote") => {
            !is_plain_address(value)
        }
        ("submodule", "url") => !is_plain_address(value),
        ("submodule", "update") => value.starts_with('!'),
        ("branch", "mergeoptions") | ("fetch", "bundleuri") => true,
        ("http", "proxy" | "sslverify" | "sslcainfo" | "sslcapath" | "curloptresolve") => true,
        ("merge", "driver" | "tool" | "guitool") => true,
        ("user", "signingkey") => value.starts_with('-'),
        ("merge" | "extensions", _)
        | (
            "remote",
            "fetch" | "push" | "tagopt" | "prune" | "prunetags" | "skipdefaultupdate" | "skipfetchall"
            | "promisor" | "partialclonefilter" | "gh-resolved" | "followremotehead",
        )
        | ("submodule", "active" | "branch" | "ignore" | "fetchrecursesubmodules" | "recurse")
        | ("lfs", "repositoryformatversion" | "access" | "locksverify")
        | ("maintenance", "auto" | "strategy")
        | ("protocol", "version")
        | ("gpg", "format") => false,
        _ => git_key_runs_program(key),
    }
}

/// A path, a URL or the name of a remote. `NAME::ADDRESS` is for a program, and so is an option.
fn is_plain_address(value: &str) -> bool {
    let helper = value
        .split_once("::")
        .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    !helper && !value.trim_start().starts_with('-')
}

/// Whether a section (`alias`, `core`, ...) has such a key.
pub fn git_section_runs_program(section: &str) -> bool {
    KEYS.iter().any(|key| key.split('.').next() == Some(section)) || section == "diff"
}
