//! Shells: the code that they are given by `-c`, as a file, or on their input.

use super::effects::{Effects, Inner};
use crate::command::{Part, RedirectKind, Word};
use crate::programs::has_other_grammar;
use crate::spelling::crude_pieces;

/// `sh`, `bash -lc text`, `bash file`, `... | sh`.
pub(super) fn shell(base: &str, part: &Part) -> Effects {
    let args = part.args();
    let mut text = false;
    // With `-s` the code comes from the input, and operands are its arguments.
    let mut input = false;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        if word.dynamic || word.glob {
            return Effects {
                also: crude_pieces(&word.text),
                ..Effects::unclear(format!("{base} gets arguments that are known only at run time"))
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
    let other = has_other_grammar(base);
    if text {
        let Some(script) = operands.first() else {
            return Effects::loose(format!("{base} without code"));
        };
        if !script.plain() {
            let mut out = Effects::unclear(format!("{base} gets code that is known only at run time"));
            out.also = crude_pieces(&script.text);
            return out;
        }
        let mut out = Effects { transparent: !other, ..Effects::default() };
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
    if part.redirects.iter().any(|r| r.kind != RedirectKind::Write && r.kind != RedirectKind::Append) {
        return Effects::unclear(format!("{base} runs a file that is not shown"));
    }
    match &part.stdin {
        Some(stdin) if stdin.plain() && !other => {
            Effects { runs: vec![Inner::Script(stdin.text.clone())], transparent: true, ..Effects::default() }
        }
        Some(stdin) => {
            let mut out = Effects::unclear(format!("{base} gets code that is known only at run time"));
            out.also = crude_pieces(&stdin.text);
            out
        }
        None if part.piped_from.is_some() => Effects::unclear(format!("{base} runs its input as code")),
        None => Effects::loose(format!("{base} without code")),
    }
}

/// A script that a shell is given is run as well as if it stood alone: what forbids it forbids this.
pub(super) fn script_file(words: &[Word]) -> Effects {
    Effects {
        runs: vec![Inner::Command { argv: words.to_vec(), env: vec![], guess: true }],
        ..Effects::default()
    }
}

/// A name under which a program finds its own input.
pub(crate) fn reads_itself(word: &Word) -> bool {
    matches!(word.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}
