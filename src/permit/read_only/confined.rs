//! Commands that only look, but run what the project brings while they do (a wrapper of the compiler, a plugin, a module
//! in the folder) or show other processes. They ask, unless what runs unasked runs in the sandbox, which lets nothing of
//! that write or send.

use std::path::PathBuf;

use super::{inside, safe_value};
use crate::paths::Roots;
use tiller_shell::Word;

/// A program with the words that must follow it.
struct Row {
    name: &'static str,
    words: &'static [&'static str],
    /// Options; those that end in `=` have a value, in the same word or in the next one.
    options: &'static [&'static str],
    /// Operands that may follow: plain words that are no paths outside.
    operands: usize,
}

const fn row(
    name: &'static str,
    words: &'static [&'static str],
    options: &'static [&'static str],
    operands: usize,
) -> Row {
    Row { name, words, options, operands }
}

const CARGO: &[&str] = &[
    "-d",
    "--duplicates",
    "--depth=",
    "-e=",
    "--edges=",
    "-i=",
    "--invert=",
    "-p=",
    "--package=",
    "--workspace",
    "--all-features",
    "--no-default-features",
    "--features=",
    "--no-deps",
    "--format-version=",
    "--offline",
    "--locked",
    "--frozen",
    "-q",
    "--quiet",
];

const ROWS: &[Row] = &[
    row("cargo", &["tree"], CARGO, 0),
    row("cargo", &["metadata"], CARGO, 0),
    row("cargo", &["pkgid"], CARGO, 1),
    row("cargo", &["locate-project"], CARGO, 0),
    row("cargo", &["--list"], &[], 0),
    row("rustup", &["show"], &[], 0),
    row("rustup", &["toolchain", "list"], &["-v"], 0),
    row("rustup", &["target", "list"], &["--installed"], 0),
    row("rustup", &["component", "list"], &["--installed"], 0),
    row("npm", &["ls"], &["--depth=", "--all", "--json", "--long", "-a", "-l"], 1),
    row("npm", &["list"], &["--depth=", "--all", "--json", "--long", "-a", "-l"], 1),
    row("go", &["list"], &["-m", "-json", "-deps"], 1),
    row("go", &["env"], &["-json"], 1),
    row("pip", &["list"], &["--format="], 0),
    row("pip", &["show"], &["-f"], 3),
    row("pip", &["freeze"], &[], 0),
    row("pip3", &["list"], &["--format="], 0),
    row("pip3", &["show"], &["-f"], 3),
    row("pip", &["--version"], &[], 0),
    row("pip3", &["--version"], &[], 0),
    row("python3", &["-m", "json.tool"], &["--indent=", "--sort-keys", "--compact"], 1),
    row("ps", &["aux"], &[], 0),
    row("ps", &["auxf"], &[], 0),
    row("ps", &[], &["-e", "-f", "-ef", "-A", "-o=", "-p="], 0),
    row("pgrep", &[], &["-l", "-a", "-f", "-fl", "-af"], 1),
    row("make", &["-n"], &[], 1),
    row("docker", &["--version"], &[], 0),
    // Without a terminal they print.
    row("less", &[], &["-N", "-R", "-S", "-F", "-X", "-r", "-FRX", "-RFX", "-FX", "-NR"], 9),
    row("more", &[], &["-d", "-s"], 9),
    row("man", &[], &["-k", "-f", "-a"], 2),
];

/// Whether the arguments of a program are those of such a command.
pub(super) fn reads(name: &str, args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    args.iter().all(Word::plain)
        && ROWS.iter().any(|row| {
            row.name == name
                && args.len() >= row.words.len()
                && args.iter().zip(row.words).all(|(arg, word)| arg.text == *word)
                && rest_fits(row, args.get(row.words.len()..).unwrap_or_default(), roots, folders)
        })
}

fn rest_fits(row: &Row, args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let mut operands = 0;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let t = word.text.as_str();
        if !t.starts_with('-') {
            operands += 1;
            if !inside(word, roots, folders) {
                return false;
            }
            continue;
        }
        let (option, value) = t.split_once('=').map_or((t, None), |(o, v)| (o, Some(v)));
        if value.is_none() && row.options.contains(&option) {
            continue;
        }
        if !row.options.iter().any(|o| o.strip_suffix('=') == Some(option)) || !safe_value(t) {
            return false;
        }
        if value.is_none() && !rest.next().is_some_and(|w| inside(w, roots, folders)) {
            return false;
        }
    }
    operands <= row.operands
}
