//! Shells and `find`: what they run.

use super::wrap::{Inner, Unwrapped};
use super::{HOLE, Part, Word, crude_pieces};

/// Shells whose grammar is ours.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "rbash"];
/// Shells with another grammar.
const OTHER_SHELLS: &[&str] = &[
    "zsh",
    "fish",
    "csh",
    "tcsh",
    "nu",
    "elvish",
    "xonsh",
    "pwsh",
    "powershell",
    "rc",
    "ion",
    "oil",
    "osh",
    "ysh",
];

pub fn is_shell(base: &str) -> bool {
    SHELLS.contains(&base) || OTHER_SHELLS.contains(&base)
}

/// `sh`, `bash -lc text`, `bash file`, `... | sh`.
pub(super) fn shell(base: &str, part: &Part) -> Unwrapped {
    let args = part.args();
    let mut text = false;
    // With `-s` the code comes from the input, and operands are its arguments.
    let mut input = false;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        if word.dynamic || word.glob {
            return Unwrapped {
                also: crude_pieces(&word.text),
                ..Unwrapped::unclear(format!("{base} gets arguments that are known only at run time"))
            };
        }
        let t = word.text.as_str();
        if t == "--" || t == "-" {
            at += 1;
            break;
        }
        if !(t.starts_with('-') || t.starts_with('+')) {
            break;
        }
        at += 1;
        if matches!(t, "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O") {
            at += 1;
        } else if !t.starts_with("--") && t.starts_with('-') {
            text |= t.contains('c');
            input |= t.contains('s');
            at += usize::from(t.ends_with('o') || t.ends_with('O'));
        }
    }
    let operands = args.get(at..).unwrap_or_default();
    let other = OTHER_SHELLS.contains(&base);
    if text {
        let Some(script) = operands.first() else {
            return Unwrapped::loose(format!("{base} without code"));
        };
        if !script.plain() {
            let mut out = Unwrapped::unclear(format!("{base} gets code that is known only at run time"));
            out.also = crude_pieces(&script.text);
            return out;
        }
        let mut out = Unwrapped { transparent: !other, ..Unwrapped::default() };
        out.runs.push(Inner::Script(script.text.clone()));
        if other {
            out.unclear = Some(format!("{base} has its own command syntax"));
        }
        if operands.len() > 1 {
            out.loose = Some("code for a shell with extra arguments".into());
        }
        return out;
    }
    if !input && operands.first().is_some_and(|w| !reads_itself(w)) {
        return script_file(operands);
    }
    if part
        .redirects
        .iter()
        .any(|r| r.kind != super::RedirectKind::Write && r.kind != super::RedirectKind::Append)
    {
        return Unwrapped::unclear(format!("{base} runs a file that is not shown"));
    }
    match &part.stdin {
        Some(stdin) if stdin.plain() && !other => Unwrapped {
            runs: vec![Inner::Script(stdin.text.clone())],
            transparent: true,
            ..Unwrapped::default()
        },
        Some(stdin) => {
            let mut out = Unwrapped::unclear(format!("{base} gets code that is known only at run time"));
            out.also = crude_pieces(&stdin.text);
            out
        }
        None if part.piped_from.is_some() => Unwrapped::unclear(format!("{base} runs its input as code")),
        None => Unwrapped::loose(format!("{base} without code")),
    }
}

/// A script that a shell is given is run as well as if it stood alone: what forbids it forbids this.
pub(super) fn script_file(words: &[Word]) -> Unwrapped {
    Unwrapped {
        runs: vec![Inner::Command { argv: words.to_vec(), env: vec![], guess: true }],
        ..Unwrapped::default()
    }
}

/// A name under which a program finds its own input.
pub(super) fn reads_itself(word: &Word) -> bool {
    matches!(word.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// `find -exec cmd {} ;` and `fd -x cmd`.
pub(super) fn find(base: &str, args: &[Word]) -> Unwrapped {
    const RUN: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    const FD: &[&str] = &["-x", "-X", "--exec", "--exec-batch"];
    let mut out = Unwrapped::default();
    let mut at = 0;
    let is_fd = base.starts_with("fd");
    while let Some(word) = args.get(at) {
        at += 1;
        if let Some(joined) = joined_exec(word).filter(|_| is_fd) {
            let mut argv = vec![Word { text: joined.to_owned(), ..word.clone() }];
            argv.extend_from_slice(&args[at..]);
            out.runs.push(Inner::Command { argv, env: vec![], guess: false });
            out.loose = Some("fd adds names that are known only at run time".into());
            return out;
        }
        let fd = is_fd && (FD.contains(&word.text.as_str()) || ends_in_exec(&word.text));
        if !fd && !RUN.contains(&word.text.as_str()) {
            if word.dynamic && (word.splits || word.text.starts_with([HOLE, '-'])) {
                out.unclear = Some("find gets arguments that are known only at run time".into());
            }
            continue;
        }
        let rest = &args[at..];
        let end = rest.iter().position(|w| w.text == ";" || (w.text == "+" && !fd)).unwrap_or(rest.len());
        let mut argv: Vec<Word> = rest[..end].to_vec();
        for w in &mut argv {
            if w.text.contains("{}") || (fd && w.text.contains('{')) {
                if w.text != "{}" && w.text.contains(char::is_whitespace) {
                    out.unclear = Some("a file's name becomes part of a command".into());
                }
                *w = Word { text: w.text.replace("{}", &HOLE.to_string()), dynamic: true, ..w.clone() };
            }
        }
        if fd && !argv.iter().any(|w| w.dynamic) {
            argv.push(Word { splits: true, ..Word::unknown() });
        }
        if argv.is_empty() {
            out.unclear = Some("find -exec without a command".into());
        } else {
            out.runs.push(Inner::Command { argv, env: vec![], guess: false });
        }
        out.loose = Some("find adds names that are known only at run time".into());
        at += end;
    }
    out
}

/// The program in `--exec=cmd` and `-xcmd` of fd.
fn joined_exec(word: &Word) -> Option<&str> {
    let t = word.text.as_str();
    let joined = ["--exec=", "--exec-batch=", "-x", "-X"].iter().find_map(|o| t.strip_prefix(o))?;
    (!joined.is_empty()).then_some(joined)
}

/// `-Hx`: letters of fd that end in the one that runs a program.
fn ends_in_exec(text: &str) -> bool {
    text.len() > 2 && text.starts_with('-') && !text.starts_with("--") && text.ends_with(['x', 'X'])
}
