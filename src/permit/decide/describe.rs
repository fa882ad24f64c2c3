//! What a call would do, in plain words, and how risky it is.

use std::path::{Component, PathBuf};

use tiller_protocol::{Access, Risk};

use crate::decide::sending::is_public;
use crate::paths::{Roots, touched};
use crate::read_only::inside;
use crate::rules::PathUse;
use crate::targets::written;
use tiller_shell::{Analysis, Part, Role};

/// Programs that reach the network.
const NETWORKED: &[&str] = &[
    "curl",
    "wget",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "ftp",
    "telnet",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "ping",
    "dig",
    "nslookup",
    "host",
    "traceroute",
    "mosh",
    "gh",
    "glab",
    "hub",
    "aws",
    "gcloud",
    "az",
    "kubectl",
    "helm",
    "heroku",
    "flyctl",
    "fly",
    "vercel",
    "netlify",
    "npx",
    "bunx",
    "uvx",
    "pip",
    "pip3",
    "pipx",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "pacman",
    "brew",
    "snap",
    "flatpak",
    "apk",
    "nix",
    "nix-shell",
    "w3m",
    "lynx",
    "links",
    "aria2c",
    "yt-dlp",
    "nmap",
    "whois",
    "rclone",
    "twine",
    "gem",
    "http",
    "https",
    "xh",
    "websocat",
    "mail",
    "sendmail",
    "mutt",
    "svn",
    "hg",
];

/// `(program, subcommands)` that reach the network.
const NETWORKED_SUBS: &[(&str, &[&str])] = &[
    ("git", &["push", "pull", "fetch", "clone", "ls-remote", "remote", "submodule", "archive"]),
    ("cargo", &["install", "publish", "search", "fetch", "update", "add", "login", "owner", "yank"]),
    (
        "npm",
        &[
            "install", "i", "ci", "publish", "update", "add", "login", "view", "audit", "exec", "create",
            "init",
        ],
    ),
    ("pnpm", &["install", "i", "add", "publish", "update", "dlx"]),
    ("yarn", &["install", "add", "publish", "upgrade", "dlx"]),
    ("bun", &["install", "add", "x", "publish"]),
    ("uv", &["pip", "sync", "add", "tool", "publish", "run"]),
    ("poetry", &["install", "add", "update", "publish"]),
    ("go", &["get", "install", "mod"]),
    ("docker", &["pull", "push", "login", "run", "build"]),
    ("podman", &["pull", "push", "login", "run", "build"]),
    ("bundle", &["install", "update"]),
    ("composer", &["install", "update", "require"]),
    ("rustup", &["update", "install", "toolchain", "component", "target"]),
];

/// Paths that are named.
const READS: usize = 5;

/// True when the command is known to reach the network.
pub fn networked(part: &Part) -> bool {
    let base = part.base();
    NETWORKED.contains(&base.as_str())
        || NETWORKED_SUBS.iter().any(|(name, subs)| {
            *name == base && part.args().iter().take(6).any(|w| subs.contains(&w.text.as_str()))
        })
}

/// Deletes, moves or overwrites.
fn destructive(part: &Part) -> bool {
    matches!(
        part.base().as_str(),
        "rm" | "rmdir" | "unlink" | "mv" | "shred" | "truncate" | "dd" | "kill" | "pkill" | "killall"
    ) || (part.base() == "git"
        && part.args().iter().any(|w| {
            matches!(
                w.text.as_str(),
                "reset"
                    | "clean"
                    | "rm"
                    | "checkout"
                    | "restore"
                    | "rebase"
                    | "merge"
                    | "pull"
                    | "stash"
                    | "branch"
                    | "tag"
            )
        }))
}

/// Words and risk of a command.
pub(crate) fn command(
    analysis: &Analysis,
    dangers: &[String],
    roots: &Roots,
    folders: &[PathBuf],
    background: bool,
) -> (Vec<String>, Risk) {
    let mut effects: Vec<String> = Vec::new();
    let mut risk = Risk::Low;
    let mut say = |text: String, high: bool| {
        if high {
            risk = Risk::High;
        }
        if !effects.contains(&text) {
            effects.push(text);
        }
    };
    for danger in dangers {
        say(danger.clone(), true);
    }
    if let Some(why) = &analysis.unclear {
        say(format!("cannot be analysed with certainty: {why}"), true);
    }
    for part in analysis.parts.iter().filter(|p| p.role != Role::Guess) {
        if networked(part) {
            let to = part.args().iter().map(|w| w.text.as_str()).find(|t| t.contains("://"));
            say(
                to.map_or_else(
                    || format!("{} uses the network", part.base()),
                    |t| format!("{} uses the network ({t})", part.base()),
                ),
                true,
            );
        }
        if part.base() == "git" && part.args().iter().any(|w| w.text == "push") {
            let remote = part
                .args()
                .iter()
                .skip_while(|w| w.text != "push")
                .skip(1)
                .find(|w| !w.text.starts_with('-'));
            let to = remote.map_or_else(
                || "writes to the default remote".to_owned(),
                |r| format!("writes to remote \"{}\"", r.text),
            );
            say(format!("{to}; cannot be undone by a checkpoint"), true);
        }
        if destructive(part) {
            say(format!("{} may delete or replace", part.base()), true);
        }
        for target in written(part) {
            if !inside(&target, roots, folders) && known_writer(part) {
                say(format!("writes outside the workspace: {}", shown(&target)), true);
            }
        }
    }
    for redirect in analysis.all_redirects().filter(|r| r.writes()) {
        let out = !inside(&redirect.target, roots, folders);
        say(
            format!("writes {}{}", shown(&redirect.target), if out { ", outside the workspace" } else { "" }),
            out,
        );
    }
    for path in read_outside(analysis, roots, folders) {
        say(reads(&path.display().to_string()), true);
    }
    if let Some(why) = &analysis.loose {
        say(why.clone(), false);
    }
    if background {
        say("keeps running in the background".into(), false);
    }
    if folders.is_empty() || !folders.iter().all(|f| roots.inside(f)) {
        say("runs outside the workspace or in an unknown folder".into(), true);
    }
    (effects, risk)
}

/// The words for reading a path outside the workspace, by a tool or a command.
fn reads(path: &str) -> String {
    format!("reads outside the workspace: {path}")
}

/// The paths outside the workspace that a command names to read, as they are spelled; devices are none. Programs that it starts
/// by their paths are no reads.
fn read_outside(analysis: &Analysis, roots: &Roots, folders: &[PathBuf]) -> Vec<PathBuf> {
    let named = touched::as_spelled(roots, analysis, folders).into_iter();
    let reads = named.filter(|(how, path)| *how == PathUse::Read && !roots.inside(path));
    // Of a pattern of names the folder counts.
    let plain = |path: PathBuf| -> PathBuf {
        let wild = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        path.components().take_while(|part| !wild(part)).collect()
    };
    // What does not exist, and `/`, is an option or a text more often than a file; a folder of the system is one of a `PATH`.
    let file = |path: &PathBuf| {
        let real = roots.real(path);
        let folder = is_public(path) && real.is_dir();
        path.parent().is_some() && !path.starts_with("/dev") && real.exists() && !folder
    };
    reads.map(|(_, path)| plain(path)).filter(file).take(READS).collect()
}

/// For programs that are not known every operand counts as written; that is no news for a person.
fn known_writer(part: &Part) -> bool {
    matches!(
        part.base().as_str(),
        "tee"
            | "touch"
            | "mkdir"
            | "rm"
            | "rmdir"
            | "mv"
            | "cp"
            | "ln"
            | "install"
            | "chmod"
            | "chown"
            | "dd"
            | "truncate"
            | "rsync"
            | "sed"
            | "curl"
            | "wget"
            | "tar"
    )
}

fn shown(word: &tiller_shell::Word) -> String {
    let text = word.text.replace(tiller_shell::HOLE, "…");
    if word.tilde { format!("~{text}") } else { text }
}

/// Words and risk of what is no command.
pub(crate) fn access(access: &Access) -> Option<(String, Risk)> {
    match access {
        Access::Read { path, inside: false } => Some((reads(path), Risk::High)),
        Access::Read { .. } | Access::Free | Access::Run { .. } => None,
        Access::Script { .. } => {
            Some(("runs a Python script that may write in the workspace".into(), Risk::High))
        }
        Access::Store { what, .. } => Some((what.clone(), Risk::High)),
        Access::Write { path, inside: true } => Some((format!("writes {path}"), Risk::Low)),
        Access::Write { path, .. } => Some((format!("writes outside the workspace: {path}"), Risk::High)),
        Access::Input { process, .. } => {
            Some((format!("types into the running process {process}"), Risk::Low))
        }
        Access::Process { what } => Some((format!("controls a running process: {what}"), Risk::Low)),
        Access::Net { host, .. } => Some((format!("fetches from {host}"), Risk::High)),
        Access::Mcp { server, tool, .. } => Some((
            format!("calls {tool} of the MCP server {server}, which may change anything it reaches"),
            Risk::High,
        )),
    }
}
