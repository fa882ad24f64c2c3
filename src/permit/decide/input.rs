//! Judging what is typed into a process that runs: like the command that it becomes there.

use std::path::{Path, PathBuf};

use tiller_protocol::{AskReason, Profile, Risk};

use crate::danger;
use crate::decide::command::{asked, by_path, denying, perhaps};
use crate::decide::{Need, Policy, Request, folders, instructions, read_only};
use crate::rules::{Certainty, Rule, Subject};
use tiller_shell::{Analysis, analyse, analyse_with_input, is_shell};

/// What is typed, and into what.
pub(crate) struct ProcessInput<'a> {
    pub(crate) process: &'a str,
    /// What the process was started as.
    pub(crate) command: &'a str,
    /// What was typed earlier.
    pub(crate) before: &'a str,
    pub(crate) text: &'a str,
    pub(crate) folder: &'a Path,
}

/// The tool whose rules hold for what a shell runs.
const RUNS: &str = "terminal";

/// What is typed, as it is read: with what was typed earlier, and as a part of its line.
struct Typed {
    before: String,
    /// All that was typed.
    whole: String,
    /// Where the present line begins in it.
    begin: usize,
    /// As the input of what runs: the line, and all lines; the line by itself.
    views: [Analysis; 3],
    /// What was typed earlier, as the input of what runs.
    earlier: Analysis,
}

impl Typed {
    fn of(typed: &ProcessInput<'_>) -> Self {
        // Return ends a line as well.
        let before = typed.before.replace('\r', "\n");
        let whole = format!("{before}{}", typed.text.replace('\r', "\n"));
        // An interrupt drops what was begun.
        let begin = before.rfind(['\n', '\u{3}']).map_or(0, |at| at + 1);
        let plain: String =
            whole[begin..].chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        let given = analyse_with_input(typed.command, &plain);
        let all = analyse_with_input(typed.command, &whole);
        let views = [given.with_raw(&plain), all.with_raw(&whole), analyse(&plain)];
        let earlier = analyse_with_input(typed.command, &before);
        Self { before, whole, begin, views, earlier }
    }
}

/// Judges it.
pub(crate) fn judge(policy: &Policy, request: &Request<'_>, typed: &ProcessInput<'_>) -> Need {
    let read = Typed::of(typed);
    let need = by_words(policy, request, typed, &read);
    let written = |view: &Analysis| {
        instructions::written_by(policy, request, view, &places(policy, view, typed.folder))
    };
    instructions::beside(need, || {
        let [given, all, alone] = &read.views;
        // The user has answered for what was written earlier.
        let earlier = written(&read.earlier);
        let news = written(all).into_iter().filter(|file| !earlier.contains(file));
        let mut files: Vec<PathBuf> = Vec::new();
        for file in written(given).into_iter().chain(written(alone)).chain(news) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        instructions::question(policy, &files)
    })
}

/// A line that is written in pieces is judged as the line that it becomes with each piece; what
/// a rule or the danger list says of the whole so far counts as well, for variables, functions and open
/// quotes reach from one line into the next.
fn by_words(policy: &Policy, request: &Request<'_>, typed: &ProcessInput<'_>, read: &Typed) -> Need {
    let Typed { before, whole, views, earlier, .. } = read;
    let (text, line) = (&whole[before.len()..], &whole[read.begin..]);
    let keys = line.chars().any(|c| c.is_control() && !matches!(c, '\n'));
    // A key alone (an interrupt, the end of the input) runs nothing.
    let interrupts = !text.is_empty() && text.chars().all(|c| matches!(c, '\u{3}' | '\u{1c}'));
    let only_keys = interrupts
        || text.chars().all(|c| matches!(c, '\u{3}' | '\u{4}' | '\u{1c}' | '\n'))
            && (before.is_empty() || before.ends_with(['\n', '\u{3}']));

    let start = analyse(typed.command);
    let mut perhaps_denied: Option<&Rule> = None;
    for view in views {
        let places = places(policy, view, typed.folder);
        if let Some(reason) = policy.protected.check_command(&policy.roots, view, typed.folder) {
            return Need::No { rule: "protected name".into(), reason };
        }
        match denying(policy, request.agent, RUNS, view, &places) {
            Some((rule, Certainty::Sure)) => {
                let reason = format!("denied by the rule {}", rule.words());
                return Need::No { rule: rule.words(), reason };
            }
            Some((rule, _)) => perhaps_denied = Some(rule),
            None => {}
        }
        if let (Some(no), _) = by_path(policy, request.agent, view, &places) {
            return no;
        }
    }
    // Rules for the tool that types hold as well.
    let what = format!("write to {}: {}", typed.process, typed.text);
    let said = policy.rules.matching(request.agent, request.tool, &Subject::Other(&what), &policy.roots);
    if let Some(rule) = said.deny {
        return Need::No { rule: rule.words(), reason: format!("denied by the rule {}", rule.words()) };
    }
    if request.profile.only_looks() {
        return read_only(request.profile);
    }
    let mut effects = vec![format!("types into a running process: {}", typed.command)];
    let ask = |rule: AskReason, effects: Vec<String>, risk| Need::Ask { rule, risk, effects, always: None };

    let dangers = |analysis: &Analysis| {
        danger::dangers(analysis, &policy.roots, &places(policy, analysis, typed.folder), false)
    };
    let known = dangers(&start);
    let before = dangers(earlier);
    let mut dangerous: Vec<String> = dangers(&views[0]).into_iter().chain(dangers(&views[2])).collect();
    dangerous.extend(dangers(&views[1]).into_iter().filter(|d| !before.contains(d)));
    dangerous.retain(|d| !known.contains(d));
    dangerous.dedup();
    if !dangerous.is_empty() {
        effects.extend(dangerous.clone());
        return ask(format!("dangerous: {}", dangerous.join("; ")).into(), effects, Risk::High);
    }
    if shell(&start) && !only_keys {
        let unclear = if keys {
            Some("keys that edit the line or recall an earlier one".to_owned())
        } else if recalls(line) || whole.contains("histchars") {
            Some("it recalls an earlier line of the shell's history".to_owned())
        } else {
            let news = |a: &Analysis, b: &Analysis| a.unclear.clone().filter(|_| b.unclear.is_none());
            views[2].unclear.clone().or_else(|| news(&views[1], earlier))
        };
        if let Some(why) = unclear {
            effects.push(format!("cannot be analysed with certainty: {why}"));
            return ask(format!("not certain: {why}").into(), effects, Risk::High);
        }
    }
    for view in views {
        let places = places(policy, view, typed.folder);
        if let Some(rule) = asked(policy, request.agent, RUNS, view, &places) {
            return ask(rule.words().into(), effects, Risk::High);
        }
        if let (_, Some(rule)) = by_path(policy, request.agent, view, &places) {
            return ask(rule.into(), effects, Risk::High);
        }
    }
    if let Some(rule) = perhaps_denied {
        return ask(perhaps(rule).into(), effects, Risk::High);
    }
    match (said.ask, said.allow) {
        (Some(rule), _) => ask(rule.words().into(), effects, Risk::Low),
        (None, _) if request.profile == Profile::Full => Need::Ok("full mode".into()),
        (None, Some(rule)) => Need::Ok(rule.words()),
        (None, None) => ask(AskReason::NoRule, effects, Risk::Low),
    }
}

/// Whether a line recalls an earlier one, whole or changed: `!!`, `!rm`, `^old^new`. Each line is looked at by itself,
/// so a text in quotes that goes over several lines is looked at as well.
fn recalls(text: &str) -> bool {
    text.split(['\n', '\u{3}']).any(|line| line.starts_with('^') || event(line))
}

/// A `!` that the shell takes for an event of its history. Single quotes and a backslash keep it from that.
fn event(line: &str) -> bool {
    // `$'\''` ends its quotes by rules of its own.
    let quotes = !line.contains("$'");
    let (mut single, mut double) = (false, false);
    let mut before = ['\0', '\0'];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match c {
            '\'' if !double && quotes => single = !single,
            '"' if !single => double = !double,
            '\\' if !single => {
                chars.next();
            }
            '!' if !single => {
                let rest = || chars.clone().collect::<String>();
                let none = next.is_none_or(|n| n.is_whitespace() || matches!(n, '=' | '('))
                    || double && next == Some('"');
                // The last job, an indirection, and a pattern that negates.
                let other = before[1] == '$'
                    || before == ['$', '{'] && rest().contains('}')
                    || before[1] == '[' && rest().contains(']');
                if !none && !other {
                    return true;
                }
            }
            _ => {}
        }
        before = [before[1], c];
    }
    false
}

/// Folders in which it may run: where the process works, and the workspace.
fn places(policy: &Policy, analysis: &Analysis, folder: &Path) -> Vec<PathBuf> {
    let mut places = folders(&policy.roots, analysis, folder);
    if !places.is_empty() && !places.contains(&policy.roots.workspace) {
        places.push(policy.roots.workspace.clone());
    }
    places
}

/// Whether what is typed may be a shell's line: a shell is named somewhere, or what runs is not known to be
/// a program that is given code of its own language.
fn shell(start: &Analysis) -> bool {
    let hosts = |base: &str| {
        is_shell(base)
            || matches!(
                base,
                "ssh"
                    | "mosh"
                    | "su"
                    | "sudo"
                    | "doas"
                    | "docker"
                    | "podman"
                    | "nerdctl"
                    | "kubectl"
                    | "lxc"
                    | "incus"
                    | "tmux"
                    | "screen"
                    | "script"
                    | "chroot"
                    | "nsenter"
                    | "unshare"
                    | "toolbox"
                    | "distrobox"
                    | "nix-shell"
                    | "nix"
                    | "machinectl"
                    | "vagrant"
                    | "wsl"
                    | "adb"
                    | "telnet"
                    | "nc"
                    | "ncat"
                    | "socat"
                    | "eval"
                    | "expect"
                    | "xonsh"
                    | "busybox"
                    | "poetry"
                    | "pipenv"
                    | "conda"
                    | "direnv"
                    | "zellij"
                    | "dtach"
                    | "abduco"
                    | "newgrp"
            )
    };
    start.unclear.is_some() || start.parts.iter().any(|p| hosts(&p.base()))
}
