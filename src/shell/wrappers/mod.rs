//! Programs that run another program: which one, and with what.

mod builtins;
mod effects;
mod find;
mod git;
mod options;
mod shell;
mod table;

use options::Spec;
use table::{JOINS, OPAQUE, WRAPPERS, Wrapper, wrapper};

use crate::analysis::XARGS;
use crate::command::{HOLE, Part, Word};
use crate::programs::{code_pieces, is_shell};
use crate::spelling::quote;

pub use builtins::SETTERS;
use effects::joined;
pub(crate) use effects::{Effects, Inner};
pub(crate) use shell::reads_itself;
pub(crate) use table::is_wrapper;

/// What `part` runs, changes or leaves in doubt beyond its own program.
pub(crate) fn effects(part: &Part) -> Effects {
    let base = part.base();
    let args = part.args();
    if let Some(known) = WRAPPERS.iter().find(|w| w.name == base) {
        return known_wrapper(known, args);
    }
    match base.as_str() {
        "env" => match args.split_first() {
            // A lone `-` is `-i`.
            Some((dash, rest)) if dash.text == "-" => env(rest),
            _ => env(args),
        },
        "jobs" if args.first().is_some_and(|w| w.text == "-x") => Effects {
            runs: vec![Inner::Command { argv: args[1..].to_vec(), env: vec![], guess: false }],
            ..Effects::loose("jobs runs a command")
        },
        "npm" if args.iter().any(|w| matches!(w.text.as_str(), "exec" | "x")) => opaque(&base, args),
        "cargo" if args.first().is_some_and(|w| w.text == "watch") => opaque(&base, args),
        "command" => command(args),
        "watch" => watch(args),
        "find" | "gfind" | "fd" | "fdfind" => find::find(&base, args),
        "git" => git::git(args),
        "sudoedit" | "sudo-rs" | "su" if args.is_empty() => {
            Effects::loose("it opens a shell for another user")
        }
        _ if is_shell(&base) => shell::shell(&base, part),
        _ if OPAQUE.contains(&base.as_str()) => with_stdin(opaque(&base, args), &base, part),
        _ => builtins::other(&base, part),
    }
}

fn known_wrapper(known: &Wrapper, args: &[Word]) -> Effects {
    let first = match known.spec.first_operand(args) {
        Ok(first) => first + known.skip,
        Err(why) => {
            let mut out = opaque(known.name, args);
            out.unclear = Some(format!("{} has {why}", known.name));
            return out;
        }
    };
    let mut rest = args.get(first..).unwrap_or_default().to_vec();
    let mut env = vec![];
    if known.name == "sudo" || known.name == "doas" {
        env = take_assignments(&mut rest);
    }
    let mut out = Effects { transparent: known.transparent, ..Effects::default() };
    if rest.is_empty() {
        out.transparent = false;
        if matches!(known.name, "sudo" | "doas" | "chroot" | "busybox" | "toybox") {
            out.loose = Some(format!("{} without a command", known.name));
        }
        return out;
    }
    if known.name == "xargs" {
        match replaced(&args[..first.min(args.len())]) {
            None => rest.push(Word { splits: true, added: true, ..Word::unknown() }),
            Some(mark) => {
                for word in rest.iter_mut().filter(|w| w.text.contains(&mark)) {
                    *word = Word {
                        text: word.text.replace(&mark, &HOLE.to_string()),
                        added: !word.dynamic,
                        dynamic: true,
                        ..word.clone()
                    };
                }
            }
        }
        out.loose = Some(XARGS.into());
    }
    if known.name == "exec" {
        out.loose = Some("exec replaces the shell".into());
    }
    out.runs.push(Inner::Command { argv: rest, env, guess: false });
    out
}

/// The text that `xargs -I` puts its input in the place of.
fn replaced(options: &[Word]) -> Option<String> {
    options.iter().enumerate().find_map(|(i, w)| match w.text.as_str() {
        "-I" => options.get(i + 1).map(|w| w.text.clone()),
        "-i" | "--replace" => Some("{}".into()),
        t => t
            .strip_prefix("-I")
            .or_else(|| t.strip_prefix("-i"))
            .or_else(|| t.strip_prefix("--replace="))
            .map(str::to_owned),
    })
}

/// What a program like `ssh` or `expect` reads from a here-document may run as well.
fn with_stdin(mut out: Effects, base: &str, part: &Part) -> Effects {
    let Some(stdin) = &part.stdin else { return out };
    out.also.extend(code_pieces(&stdin.text));
    if base == "ssh" && part.args().iter().filter(|w| !w.text.starts_with('-')).count() == 1 && stdin.plain()
    {
        out.runs.push(Inner::Script(stdin.text.clone()));
    }
    out
}

/// `env`, whose words may be assignments, and whose `-S` splits a text.
fn env(args: &[Word]) -> Effects {
    const ENV: Spec = Spec {
        short: "i0v",
        short_arg: "uC",
        long: &["ignore-environment", "null", "debug"],
        long_arg: &["unset", "chdir"],
    };
    if let Some((at, text)) = split_string(args) {
        let Some(text) = text else { return Effects::unclear("env -S with text that is not fixed") };
        let more: Vec<String> = args.get(at..).unwrap_or_default().iter().map(|w| quote(&w.text)).collect();
        if text.contains(['$', '\\', '#']) || args.get(at..).unwrap_or_default().iter().any(|w| !w.plain()) {
            return Effects::unclear("env -S with text that is not fixed");
        }
        return Effects {
            runs: vec![Inner::Script(format!("env {text} {}", more.join(" ")))],
            transparent: true,
            ..Effects::default()
        };
    }
    let first = match ENV.first_operand(args) {
        Ok(first) => first,
        Err(why) => {
            let mut out = opaque("env", args);
            out.unclear = Some(format!("env has {why}"));
            return out;
        }
    };
    let mut folders = vec![];
    for (i, word) in args[..first.min(args.len())].iter().enumerate() {
        let text = word.text.as_str();
        let next = || args.get(i + 1).and_then(folder_of);
        if text.len() > 2 && "--chdir".starts_with(text) {
            folders.push(next());
        } else if let Some((_, value)) =
            text.split_once('=').filter(|(o, _)| o.len() > 2 && "--chdir".starts_with(o))
        {
            folders.push(Some(value.to_owned()).filter(|_| word.plain()));
        } else if let Some(letters) = text.strip_prefix('-').filter(|t| !t.starts_with('-')) {
            // `-iC dir`, `-iCdir`; what stands behind `-u` is a name.
            if let Some(at) = letters.find(['C', 'u']).filter(|at| letters[*at..].starts_with('C')) {
                let joined = &letters[at + 1..];
                folders.push(if joined.is_empty() {
                    next()
                } else {
                    Some(joined.to_owned()).filter(|_| word.plain())
                });
            }
        }
    }
    let mut rest = args[first.min(args.len())..].to_vec();
    let env = take_assignments(&mut rest);
    if rest.is_empty() {
        // It prints the environment, or nothing.
        return Effects { folders, ..Effects::default() };
    }
    Effects {
        runs: vec![Inner::Command { argv: rest, env, guess: false }],
        transparent: true,
        folders,
        ..Effects::default()
    }
}

/// The folder that a word names, when it is known.
fn folder_of(word: &Word) -> Option<String> {
    match (word.dynamic || word.glob, word.tilde) {
        (true, _) => None,
        (false, true) => Some(format!("~{}", word.text)),
        (false, false) => Some(word.text.clone()),
    }
}

/// Text of `-S`, and where the words after it begin.
fn split_string(args: &[Word]) -> Option<(usize, Option<String>)> {
    for (i, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            return None;
        }
        if let Some(rest) = text.strip_prefix("--split-string") {
            return Some(match rest.strip_prefix('=') {
                Some(joined) => (i + 1, word.plain().then(|| joined.to_owned())),
                None => (i + 2, args.get(i + 1).filter(|w| w.plain()).map(|w| w.text.clone())),
            });
        }
        if !text.starts_with("--")
            && let Some(at) = text.find('S')
        {
            let joined = &text[at + 1..];
            return Some(if joined.is_empty() {
                (i + 2, args.get(i + 1).filter(|w| w.plain()).map(|w| w.text.clone()))
            } else {
                (i + 1, word.plain().then(|| joined.to_owned()))
            });
        }
    }
    None
}

fn take_assignments(rest: &mut Vec<Word>) -> Vec<(String, Word)> {
    let mut env = vec![];
    while let Some((name, value)) = rest.first().and_then(|w| {
        let (name, value) = w.text.split_once('=')?;
        Some((name.to_owned(), Word { text: value.to_owned(), ..w.clone() }))
    }) {
        env.push((name, value));
        rest.remove(0);
    }
    env
}

/// `command -v x` only prints; any other form runs its program.
fn command(args: &[Word]) -> Effects {
    let query =
        args.first().is_some_and(|w| w.plain() && matches!(w.text.as_str(), "-v" | "-V" | "-pv" | "-pV"));
    if query {
        return Effects::default();
    }
    const COMMAND: Wrapper = wrapper("command", true, "p", "", 0);
    known_wrapper(&COMMAND, args)
}

/// `watch` gives its words to `sh -c`.
fn watch(args: &[Word]) -> Effects {
    const WATCH: Spec = Spec {
        short: "bcdegptwxrC",
        short_arg: "nq",
        long: &[
            "beep",
            "color",
            "errexit",
            "chgexit",
            "precise",
            "no-title",
            "no-wrap",
            "exec",
            "differences",
            "no-rerun",
        ],
        long_arg: &["interval", "equexit"],
    };
    match WATCH.first_operand(args) {
        Ok(first) if first < args.len() => joined(&args[first..], true),
        Ok(_) => Effects::default(),
        Err(why) => {
            let mut out = opaque("watch", args);
            out.unclear = Some(format!("watch has {why}"));
            out
        }
    }
}

/// Every rest of the line that begins with a plain word may be what runs.
fn opaque(base: &str, args: &[Word]) -> Effects {
    const MOST: usize = 12;
    let mut out = Effects::default();
    // `--command='rm x'`, `-c'rm x'`, `-oProxyCommand=rm x`
    for word in args.iter().filter(|w| w.text.contains(char::is_whitespace)) {
        if let Some(joined) = word.text.strip_prefix('-') {
            out.also.extend(code_pieces(
                joined.split_once('=').map_or(joined.get(1..).unwrap_or_default(), |(_, v)| v),
            ));
        }
        if let Some((_, value)) = word.text.split_once(['=', ':']) {
            out.also.extend(code_pieces(value));
        }
    }
    for i in (0..args.len()).filter(|i| !args[*i].text.starts_with('-')).take(MOST) {
        let word = &args[i];
        if word.plain() && word.text.contains(char::is_whitespace) {
            if JOINS.contains(&base) {
                out.runs.push(Inner::Script(word.text.clone()));
            } else {
                out.also.extend(code_pieces(&word.text));
            }
        } else if word.plain() && !word.text.is_empty() {
            let mut rest = args[i..].to_vec();
            let env = take_assignments(&mut rest);
            if !rest.is_empty() && rest[0].plain() && !rest[0].text.is_empty() {
                if matches!(base, "parallel" | "sem") {
                    rest.push(Word { splits: true, ..Word::unknown() });
                }
                out.runs.push(Inner::Command { argv: rest, env, guess: true });
            }
        }
    }
    if out.runs.is_empty() && args.iter().any(|w| w.dynamic) {
        out.loose = Some(format!("{base} may run a command that is known only at run time"));
    }
    out
}
