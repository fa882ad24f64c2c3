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
];

/// Whether git runs the value of this key, or is led to other configuration by it.
pub fn git_key_runs_program(key: &str) -> bool {
    let key = key.to_lowercase();
    KEYS.iter().any(|s| key.starts_with(s))
        || (key.starts_with("diff.") && (key.ends_with(".command") || key.ends_with(".textconv")))
}

/// Whether a section (`alias`, `core`, ...) has such a key.
pub fn git_section_runs_program(section: &str) -> bool {
    KEYS.iter().any(|key| key.split('.').next() == Some(section)) || section == "diff"
}
