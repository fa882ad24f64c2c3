//! What `git` runs: aliases, texts of its subcommands and options, programs in addresses.

use super::effects::{Effects, Inner, joined};
use crate::command::Word;
use crate::programs::git_key_runs_program;
use crate::spelling::crude_pieces;

/// `git` runs aliases, and has subcommands that run a text.
pub(super) fn git(args: &[Word]) -> Effects {
    let mut out = Effects::default();
    let text = |i: usize| args.get(i).map_or("", |w| w.text.as_str());
    for i in 0..args.len() {
        let value = match text(i) {
            "-c" => text(i + 1),
            "-x" | "--exec" | "--extcmd"
                if args.iter().any(|w| matches!(w.text.as_str(), "rebase" | "difftool")) =>
            {
                out.runs.push(Inner::Script(text(i + 1).to_owned()));
                continue;
            }
            t if t.starts_with("--exec=") && args.iter().any(|w| w.text == "rebase") => {
                out.runs.push(Inner::Script(t["--exec=".len()..].to_owned()));
                continue;
            }
            _ => continue,
        };
        let Some((key, value)) = value.split_once('=') else { continue };
        if git_key_runs_program(key) {
            out.also.extend(crude_pieces(value));
        }
        if key.to_lowercase().starts_with("alias.") {
            match value.strip_prefix('!') {
                Some(script) => out.runs.push(Inner::Script(script.to_owned())),
                None => out.runs.push(Inner::Script(format!("git {value}"))),
            }
            out.loose = Some("it defines a git alias".into());
        }
    }
    let find = |a: &str, b: &str| {
        (0..args.len())
            .find(|i| text(*i) == a && args[*i..].iter().any(|w| w.text == b))
            .and_then(|i| args.iter().skip(i).position(|w| w.text == b).map(|j| i + j + 1))
    };
    if let Some(at) = find("submodule", "foreach").or_else(|| find("bisect", "run")) {
        let mut rest = &args[at.min(args.len())..];
        while rest.first().is_some_and(|w| w.text.starts_with('-')) {
            rest = &rest[1..];
        }
        let inner = joined(rest, false);
        out.runs.extend(inner.runs);
        out.unclear = out.unclear.or(inner.unclear);
        // Several words are a command and its arguments.
        if rest.len() > 1 {
            out.runs.push(Inner::Command { argv: rest.to_vec(), env: vec![], guess: false });
        }
    }
    out.also.extend(git_texts(args));
    if args.iter().any(|w| w.text == "filter-branch") {
        for w in args.iter().filter(|w| w.text.contains(' ')) {
            out.runs.push(Inner::Script(w.text.clone()));
        }
    }
    out
}

/// Texts that options and addresses of git may run: `--upload-pack='rm x'`, `ext::rm x`.
fn git_texts(args: &[Word]) -> Vec<String> {
    const SUBS: &[&str] = &[
        "rebase",
        "difftool",
        "mergetool",
        "grep",
        "filter-branch",
        "clone",
        "fetch",
        "pull",
        "push",
        "ls-remote",
        "archive",
        "submodule",
        "remote",
    ];
    if !args.iter().any(|w| SUBS.contains(&w.text.as_str())) {
        return vec![];
    }
    args.iter()
        .filter(|w| w.text.contains(char::is_whitespace))
        .flat_map(|w| {
            let t = w.text.as_str();
            let value = match t.strip_prefix("--") {
                Some(long) => long.split_once('=').map_or("", |(_, v)| v),
                None if t.starts_with('-') => t.get(2..).unwrap_or_default(),
                None => t.rsplit("::").next().unwrap_or_default(),
            };
            crude_pieces(value)
        })
        .collect()
}
