//! Commands that ask even where everything else runs.
//!
//! The list helps against accidents and simple injections; it is not a security boundary.

mod args;
mod code;
mod code_words;
mod environment;
mod escapes;
mod git;
mod git_names;
mod location;
mod moves;
mod own_program;
mod programs;
mod secrets;
mod uploads;

use std::path::PathBuf;

use crate::paths::Roots;
use crate::targets::written;
use tiller_shell::{Analysis, Part, runs_other};

pub(crate) use git::{config_is_read_only, git_folders, git_subcommand, renames_to_what_runs};
use location::Location;

use environment::environment;
use programs::command;

/// Why a command asks in every profile. Empty when it need not.
///
/// `places` are the folders in which its parts may run; what a word names is judged by where it leads. `confined`: it runs in the
/// sandbox without an open network, which holds what its code does and keeps its servers on loopback: then neither is a reason.
pub fn dangers(analysis: &Analysis, roots: &Roots, places: &[PathBuf], confined: bool) -> Vec<String> {
    let location = Location { roots, places };
    let mut out = Vec::new();
    let mut say = |why: Option<String>| {
        if let Some(why) = why
            && !out.contains(&why)
        {
            out.push(why);
        }
    };
    let loads = Loads::of(analysis);
    say(analysis.multiplies.then(|| "it starts copies of itself without limit".to_owned()));
    for part in &analysis.parts {
        say(environment(part));
        if part.argv.is_empty() {
            continue;
        }
        say(command(part, location));
        say(own_program::own_program(part));
        say((!confined).then(|| code::code(part, location).or_else(|| uploads::hands_out(part))).flatten());
        say(escapes::escapes(part));
        say(uploads::upload(analysis, part, location));
        say(piped(analysis, part, confined));
        say(loads.as_ref().and_then(|loads| loads.run_by(part)));
        let other = runs_other(part).filter(|_| !confined);
        say(other.map(|o| format!("{} may run another program through {o}", part.base())));
    }
    for redirect in analysis.all_redirects().filter(|r| r.writes()) {
        let target = redirect.target.text.as_str();
        if device(target) || location.paths(&redirect.target).iter().any(|p| p.to_str().is_some_and(device)) {
            say(Some(format!("it writes to the device {target}")));
        }
    }
    out
}

/// Code that comes from a network or from a decoder and is run at once.
fn piped(analysis: &Analysis, part: &Part, confined: bool) -> Option<String> {
    let base = part.base();
    let runs = runs_code(&base)
        && !part.args().iter().any(|w| w.plain() && !w.text.starts_with('-') && w.text.contains('.'));
    if !runs {
        return None;
    }
    let (from, to) = part.piped_from?;
    let sources = analysis.parts.get(from..to).unwrap_or_default();
    let loader = sources
        .iter()
        .map(Part::base)
        .find(|b| matches!(b.as_str(), "curl" | "wget" | "fetch" | "nc" | "ncat"));
    if confined && loader.is_none() {
        return None;
    }
    let from = loader.or_else(|| {
        sources.iter().map(Part::base).find(|b| {
            matches!(b.as_str(), "base64" | "xxd" | "openssl" | "gunzip" | "zcat" | "rev" | "tr" | "gpg")
        })
    });
    let shell = matches!(
        base.as_str(),
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "ash" | "source" | "." | "eval" | "xargs"
    );
    match from {
        Some(from) => Some(format!("{base} runs the output of {from}")),
        None if shell && base != "xargs" && part.args().iter().all(|w| w.text.starts_with('-')) => {
            Some(format!("{base} runs its input as code"))
        }
        None => None,
    }
}

/// The files that a line loads from a network.
struct Loads(Vec<String>);

impl Loads {
    /// `None`: the line loads nothing.
    fn of(analysis: &Analysis) -> Option<Self> {
        let loader = |p: &&Part| matches!(p.base().as_str(), "curl" | "wget" | "fetch" | "aria2c");
        let mut loaders = analysis.parts.iter().filter(loader).peekable();
        loaders.peek()?;
        let files = loaders.flat_map(|p| {
            written(p).into_iter().chain(p.redirects.iter().filter(|r| r.writes()).map(|r| r.target.clone()))
        });
        Some(Self(files.map(|w| plain_name(&w.text).to_owned()).collect()))
    }

    /// A program or script of these that the same line runs: `curl -o x url; sh x`.
    fn run_by(&self, part: &Part) -> Option<String> {
        let base = part.base();
        if runs_code(&base) && part.args().iter().any(|w| w.dynamic) {
            return Some(format!("{base} may run downloaded code"));
        }
        let runs =
            part.args().iter().filter(|_| runs_code(&base) || base == "chmod").chain(part.argv.first());
        runs.map(|w| plain_name(&w.text))
            .find(|name| self.0.iter().any(|f| f == name))
            .map(|name| format!("it runs {name}, which is downloaded"))
    }
}

fn plain_name(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn runs_code(base: &str) -> bool {
    matches!(
        base,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "fish"
            | "ash"
            | "python"
            | "python2"
            | "python3"
            | "perl"
            | "ruby"
            | "node"
            | "php"
            | "lua"
            | "deno"
            | "bun"
            | "tclsh"
            | "source"
            | "."
            | "eval"
            | "pwsh"
    )
}

fn device(path: &str) -> bool {
    path.starts_with("/dev/")
        && !matches!(
            path,
            "/dev/null"
                | "/dev/stdout"
                | "/dev/stderr"
                | "/dev/stdin"
                | "/dev/tty"
                | "/dev/zero"
                | "/dev/full"
        )
        && !path.starts_with("/dev/fd/")
        && !path.starts_with("/dev/shm/")
}
