//! Names of files that control Tiller, git, shells, editors and package managers: writing them runs code later, with the
//! person's rights. File tools write none of them, and what a sandboxed command writes under one is judged. Both take them
//! from here.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Folders of which everything counts, and they themselves, at any depth.
pub const FOLDERS: &[&str] = &[
    ".tiller",
    ".git",
    "git~1",
    ".ssh",
    ".gnupg",
    ".idea",
    ".vim",
    ".nvim",
    ".emacs.d",
    ".husky",
    ".githooks",
    ".codex",
    ".windsurf",
    ".continue",
    ".opencode",
    ".roo",
    ".kilocode",
    ".kiro",
    ".trae",
    ".junie",
    ".augment",
    ".amazonq",
    ".qwen",
    ".factory",
    ".goose",
    ".hermes",
    ".pi",
    ".openhands",
    ".zed",
    ".fleet",
    ".helix",
    ".devcontainer",
    ".ipython",
    ".direnv",
    ".aws",
    ".password-store",
    // Folders of several parts.
    ".claude/hooks",
    ".claude/agents",
    ".claude/commands",
    ".claude/skills",
    ".claude/plugins",
    ".agents/skills",
    ".amp/skills",
    ".github/instructions",
    ".github/prompts",
    ".github/agents",
    ".github/hooks",
    ".yarn/releases",
    ".yarn/plugins",
    ".cursor/rules",
    ".cursor/hooks",
    ".gemini/commands",
    ".gemini/extensions",
    ".config/fish",
    ".config/nushell",
    ".config/nvim",
    ".config/git",
    ".config/gh",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".config/zsh",
    ".config/emacs",
    ".config/helix",
    ".config/gcloud",
    ".config/direnv",
    ".config/pip",
    ".config/plasma-workspace/env",
    ".config/Code/User",
    ".config/containers",
    ".local/share/systemd",
    ".local/share/keyrings",
    ".local/share/dbus-1",
    "Library/LaunchAgents",
    "Library/LaunchDaemons",
    ".oh-my-zsh",
    ".bash_completion.d",
    ".bashrc.d",
    ".zshrc.d",
    ".zfunc",
    ".bash_it",
    ".mozilla",
    ".docker/cli-plugins",
    ".kube",
    ".azure",
];

/// Files at any depth.
pub const FILES: &[&str] = &[
    ".mcp.json",
    ".gitmodules",
    ".gitconfig",
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".pypirc",
    ".bunfig.toml",
    ".git-credentials",
    ".gitattributes_global",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".bash_completion",
    ".bash_history",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".zsh_history",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".xserverrc",
    ".xbindkeysrc",
    ".pam_environment",
    ".exrc",
    ".vimrc",
    ".gvimrc",
    ".nvimrc",
    ".nvim.lua",
    ".nvim-local.lua",
    ".lvimrc",
    ".emacs",
    ".emacs.el",
    ".dir-locals.el",
    ".tmux.conf",
    ".screenrc",
    ".gdbinit",
    ".lldbinit",
    ".irbrc",
    ".pryrc",
    ".rprofile",
    ".pythonrc",
    ".pythonrc.py",
    ".perltidyrc",
    ".wgetrc",
    ".curlrc",
    ".hgrc",
    ".lfsconfig",
    ".lazy.lua",
    ".pdbrc",
    ".pdbrc.py",
    ".renviron",
    ".ocamlinit",
    ".iex.exs",
    ".erlang",
    ".terraformrc",
    ".devcontainer.json",
    ".ycm_extra_conf.py",
    "ipython_config.py",
    "jupyter_lab_config.py",
    "jupyter_notebook_config.py",
    "jupyter_server_config.py",
    ".subversion",
    ".claude.json",
    ".aider.conf.yml",
    ".aider.model.settings.yml",
    ".crush.json",
    "crush.json",
    "opencode.json",
    "opencode.jsonc",
    ".crontab",
    ".forward",
    ".procmailrc",
    ".rhosts",
    ".shosts",
    ".hushlogin",
    ".k5login",
    ".selected_editor",
    ".direnvrc",
    ".ideavimrc",
    ".lesskey",
    ".lessfilter",
    ".mailcap",
    ".mailrc",
    ".muttrc",
    ".ghci",
    ".psqlrc",
    ".sqliterc",
    ".my.cnf",
    // Files in folders of which the rest is free.
    ".hg/hgrc",
    ".amp/settings.json",
    ".config/mise/config.toml",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".cargo/env",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/extensions.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/mcp.json",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".cursor/environment.json",
    ".gemini/settings.json",
    ".gemini/.env",
    ".docker/config.json",
    ".gradle/init.gradle",
    ".gradle/init.gradle.kts",
    ".gradle/gradle.properties",
    ".m2/settings.xml",
    ".gem/credentials",
    ".bundle/config",
    ".pip/pip.conf",
    ".config/mimeapps.list",
    ".config/user-dirs.dirs",
    ".config/starship.toml",
    ".config/hub",
    ".config/rclone/rclone.conf",
];

/// Files that agents read as instructions, at any depth, in lower case: what is written there counts as the person's words in
/// later sessions. File tools write one after the person has agreed to it; what a sandboxed command writes of one is judged as
/// a protected name is.
pub const INSTRUCTIONS: &[&str] = &[
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "skill.md",
    "soul.md",
    "heartbeat.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".goosehints",
    "agent.md",
    "qwen.md",
    "crush.md",
    "warp.md",
    ".rules",
    ".roorules",
    ".roomodes",
    ".continuerules",
    ".augment-guidelines",
];

/// Files that name programs for git to run at each commit, at any depth, in lower case. They are treated as instructions are.
pub const COMMITS: &[&str] = &[
    ".pre-commit-config.yaml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".overcommit.yml",
    "lefthook-local.yml",
    "lefthook.yaml",
    "lefthook.yml",
];

/// Folders that hold packages of others and what is built of them. What lies in one is run by all who use the package, and a
/// name in it is obeyed only by someone who works inside of that folder; packages bring many of them.
pub const PACKAGES: &[&str] =
    &["node_modules", "bower_components", "site-packages", "dist-packages", "_deps", "vendor", "target"];

/// A name of the lists, by its parts in lower case.
#[derive(Debug)]
struct Name {
    name: &'static str,
    parts: Vec<String>,
    folder: bool,
}

/// The names by their first part.
static NAMES: LazyLock<HashMap<String, Vec<Name>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<Name>> = HashMap::new();
    for (list, folder) in [(FOLDERS, true), (FILES, false)] {
        for name in list {
            let parts: Vec<String> = name.split('/').map(str::to_ascii_lowercase).collect();
            let first = parts.first().cloned().unwrap_or_default();
            all.entry(first).or_default().push(Name { name, parts, folder });
        }
    }
    all
});

/// A protected name on the way of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub name: &'static str,
    /// Index of the part of the path with which it begins.
    pub at: usize,
}

/// Returns the protected name that a path goes through, if any. `parts`: of the path, folded to lower case.
pub fn find(parts: &[String]) -> Option<Found> {
    parts.iter().enumerate().find_map(|(at, part)| {
        let here = &parts[at..];
        // A file of one part protects below it too: it may become a folder.
        let goes_through = |name: &&Name| {
            let to_end = !name.folder && name.parts.len() > 1;
            here.starts_with(&name.parts) && (!to_end || here.len() == name.parts.len())
        };
        let name = NAMES.get(part)?.iter().find(goes_through)?;
        Some(Found { name: name.name, at })
    })
}

/// The names of files that only the person's yes lets tools write: [`INSTRUCTIONS`] and [`COMMITS`].
pub fn by_consent() -> impl Iterator<Item = &'static str> {
    INSTRUCTIONS.iter().chain(COMMITS).copied()
}

/// Returns the name of a file of [`by_consent`] that a path goes through, if any. `parts`: of the path, folded to lower case.
pub fn find_instructions(parts: &[String]) -> Option<Found> {
    // Below it too: it may become a folder.
    parts.iter().enumerate().find_map(|(at, part)| {
        let name = by_consent().find(|name| *name == part)?;
        Some(Found { name, at })
    })
}

/// Returns where a protected name of several parts begins that a path ends in the middle of: a link there would lead to the
/// rest of it. Only names that begin with a dot, since others are names of ordinary folders too.
pub fn find_begun(parts: &[String]) -> Option<usize> {
    let begins = |at: usize| {
        let here = &parts[at..];
        let begun = |name: &Name| here.len() < name.parts.len() && name.parts.starts_with(here);
        here[0].starts_with('.') && NAMES.get(&here[0]).is_some_and(|names| names.iter().any(begun))
    };
    (0..parts.len()).find(|at| begins(*at))
}

/// Returns true if a path goes through a folder of packages. `parts`: of the path, folded to lower case.
pub fn is_package(parts: &[String]) -> bool {
    parts.iter().any(|part| PACKAGES.contains(&part.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Vec<String> {
        path.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn names_are_found_at_any_depth() {
        for (path, expected) in [
            (".npmrc", Some((".npmrc", 0))),
            ("a/b/.npmrc", Some((".npmrc", 2))),
            ("a/.npmrc/x", Some((".npmrc", 1))),
            ("a/.idea/x/y", Some((".idea", 1))),
            ("a/.vscode/tasks.json", Some((".vscode/tasks.json", 1))),
            ("a/.vscode/tasks.json/x", None),
            (".vscode/x/tasks.json", None),
            ("library/launchagents/x", Some(("Library/LaunchAgents", 0))),
            (".github/workflows/ci.yml", None),
            ("src/main.rs", None),
        ] {
            let found = find(&parts(path)).map(|found| (found.name, found.at));
            assert_eq!(found, expected, "{path}");
        }
        for (path, expected) in [
            (".vscode", Some(0)),
            ("a/.config", Some(1)),
            ("a/.config/pip", None),
            (".config/plasma-workspace", Some(0)),
            ("library", None),
            (".vscode/x", None),
            ("a", None),
        ] {
            assert_eq!(find_begun(&parts(path)), expected, "{path}");
        }
        for (path, expected) in [
            ("a/agents.md", Some(("agents.md", 1))),
            ("skill.md/x", Some(("skill.md", 0))),
            ("my-agents.md", None),
        ] {
            let found = find_instructions(&parts(path)).map(|found| (found.name, found.at));
            assert_eq!(found, expected, "{path}");
        }
        assert!(is_package(&parts("a/node_modules/b/.npmrc")) && !is_package(&parts("node_modules2/.npmrc")));
    }

    #[test]
    fn each_name_finds_itself_and_is_listed_once() {
        let mut all: Vec<String> =
            FOLDERS.iter().chain(FILES).map(|name| name.to_ascii_lowercase()).collect();
        for name in &all {
            assert!(find(&parts(name)).is_some() && name.is_ascii(), "{name}");
        }
        for name in by_consent() {
            assert!(find(&parts(name)).is_none() && name == name.to_ascii_lowercase(), "{name}");
        }
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
