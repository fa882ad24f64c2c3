//! Builtins that change the shell, and programs that are given code.

use super::effects::{Effects, Inner, joined};
use super::shell::{reads_itself, script_file};
use crate::command::{Part, Word};
use crate::programs::{CODE, code_pieces};
use crate::spelling::crude_pieces;

/// Builtins that set the variable whose name they are given.
pub const SETTERS: &[&str] =
    &["read", "unset", "printf", "declare", "local", "typeset", "mapfile", "readarray", "getopts"];

/// More builtins that take a variable's name.
const NAMES: &[&str] = &["test", "[", "export", "readonly", "wait", "let"];

/// Everything else that needs a word: builtins that change the shell, and code in arguments.
pub(super) fn other(base: &str, part: &Part) -> Effects {
    let args = part.args();
    // An index in the name is evaluated.
    if (SETTERS.contains(&base) || NAMES.contains(&base))
        && args
            .iter()
            .any(|w| w.text.contains('[') && (w.dynamic || w.text.contains(['$', '`'])) && w.text != "[")
    {
        return Effects::unclear("an array index that may run commands");
    }
    match base {
        "eval" => joined(without_dashes(args), true),
        "source" | "." => match args.first() {
            Some(file) if reads_itself(file) && part.stdin.as_ref().is_some_and(Word::plain) => Effects {
                runs: part.stdin.iter().map(|w| Inner::Script(w.text.clone())).collect(),
                ..Effects::loose("it reads commands from its input")
            },
            Some(file) if file.plain() => {
                Effects { loose: Some("it reads commands from a file".into()), ..script_file(args) }
            }
            _ => Effects::unclear("it reads commands from a source that is known only at run time"),
        },
        "at" | "batch" | "crontab" => Effects {
            also: part.stdin.iter().flat_map(|w| crude_pieces(&w.text)).collect(),
            ..Effects::default()
        },
        "fc" if !args.iter().any(|w| w.text.starts_with("-l")) => {
            Effects::unclear("it runs commands from the shell's history")
        }
        "trap" => match without_dashes(args).first() {
            Some(text) if text.plain() && !text.text.starts_with('-') && !text.text.is_empty() => Effects {
                runs: vec![Inner::Script(text.text.clone())],
                loose: Some("it sets a trap".into()),
                ..Effects::default()
            },
            Some(text) if !text.plain() => Effects::unclear("a trap that is known only at run time"),
            _ => Effects::default(),
        },
        "alias" if args.iter().any(|w| w.text.contains('=') || w.dynamic) => Effects {
            unclear: Some("it defines an alias, which changes what other commands mean".into()),
            also: args
                .iter()
                .filter_map(|w| w.text.split_once('='))
                .flat_map(|(_, v)| crude_pieces(v))
                .collect(),
            ..Effects::default()
        },
        "hash" | "enable" | "bind" | "complete" | "compgen" if !args.is_empty() => Effects {
            also: args.iter().flat_map(|w| code_pieces(&w.text)).collect(),
            ..Effects::unclear(format!("{base} may change what other commands mean"))
        },
        "shopt" if args.iter().any(|w| w.text == "expand_aliases" || w.dynamic) => {
            Effects::unclear("it lets aliases change what other commands mean")
        }
        "mapfile" | "readarray" if args.iter().any(|w| w.text.starts_with("-C")) => Effects {
            also: args.iter().flat_map(|w| crude_pieces(w.text.trim_start_matches("-C"))).collect(),
            ..Effects::unclear("it runs a command for each line")
        },
        "let" => Effects::loose("arithmetic over variables"),
        "noglob" | "nocorrect" | "repeat" | "foreach" | "zmodload" | "emulate" | "autoload" | "zcompile"
        | "sched" | "ztcp" | "zpty" | "sysopen" | "syswrite" | "zf_rm" | "zf_mv" | "zf_ln" => {
            Effects::unclear(format!("'{base}' means something else in another shell"))
        }
        "popd" => Effects { folders: vec![None], ..Effects::default() },
        "pushd" if args.is_empty() => Effects { folders: vec![None], ..Effects::default() },
        "cd" | "pushd" | "chdir" => folder(args),
        "set" if args.iter().any(|w| w.text.contains('k') && w.text.starts_with('-')) => {
            Effects::loose("it changes how the shell reads commands")
        }
        _ if CODE.contains(&base) => Effects {
            also: args
                .iter()
                .chain(&part.stdin)
                .filter(|w| w.text.contains([' ', '(', '=', '\t', '\n']))
                .flat_map(|w| {
                    let value = w.text.rsplit('=').next().unwrap_or_default();
                    code_pieces(&w.text).into_iter().chain(crude_pieces(value))
                })
                .collect(),
            ..Effects::default()
        },
        _ => Effects::default(),
    }
}

/// `--` ends the options of a builtin.
fn without_dashes(args: &[Word]) -> &[Word] {
    match args.split_first() {
        Some((first, rest)) if first.text == "--" => rest,
        _ => args,
    }
}

/// A change of folder: later relative paths mean something else.
fn folder(args: &[Word]) -> Effects {
    let target =
        args.iter().find(|w| !(w.plain() && matches!(w.text.as_str(), "-P" | "-L" | "-e" | "--" | "-n")));
    let known = match target {
        None => Some("~".to_owned()),
        Some(w) if w.tilde && !w.dynamic && !w.glob => Some(format!("~{}", w.text)),
        Some(w) if w.plain() && !w.text.starts_with(['-', '+']) => Some(w.text.clone()),
        Some(_) => None,
    };
    Effects { folders: vec![known], ..Effects::default() }
}
