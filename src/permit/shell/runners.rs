//! Shells, `find`, `git`, and options by which other programs run something.

use super::spell::code_pieces;
use super::wrap::{Inner, Unwrapped, joined};
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

pub(super) fn is_shell(base: &str) -> bool {
    SHELLS.contains(&base) || OTHER_SHELLS.contains(&base)
}

/// `sh`, `bash -lc text`, `bash file`, `... | sh`.
pub(super) fn shell(base: &str, part: &Part) -> Unwrapped {
    let args = part.args();
    let mut text = false;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        if word.dynamic || word.glob {
            return Unwrapped {
                also: crude_pieces(&word.text),
                ..Unwrapped::unclear(format!("{base} gets words that are only known when it runs"))
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
            at += usize::from(t.ends_with('o') || t.ends_with('O'));
        }
    }
    let operands = args.get(at..).unwrap_or_default();
    let other = OTHER_SHELLS.contains(&base);
    if text {
        let Some(script) = operands.first() else {
            return Unwrapped::loose(format!("{base} without a text"));
        };
        if !script.plain() {
            let mut out = Unwrapped::unclear(format!("{base} gets a text that is only known when it runs"));
            out.also = crude_pieces(&script.text);
            return out;
        }
        let mut out = Unwrapped { transparent: !other, ..Unwrapped::default() };
        out.runs.push(Inner::Script(script.text.clone()));
        if other {
            out.unclear = Some(format!("{base} has a grammar of its own"));
        }
        if operands.len() > 1 {
            out.loose = Some("a text for a shell with words of its own".into());
        }
        return out;
    }
    if operands.first().is_some_and(|w| !reads_itself(w)) {
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
            let mut out = Unwrapped::unclear(format!("{base} gets a text that is only known when it runs"));
            out.also = crude_pieces(&stdin.text);
            out
        }
        None if part.piped_from.is_some() => Unwrapped::unclear(format!("{base} runs what it is given")),
        None => Unwrapped::loose(format!("{base} without a text")),
    }
}

/// A script that a shell is given is run as well as if it stood alone: what forbids it forbids this.
fn script_file(words: &[Word]) -> Unwrapped {
    Unwrapped {
        runs: vec![Inner::Command { argv: words.to_vec(), env: vec![], guess: true }],
        ..Unwrapped::default()
    }
}

/// A name under which a program finds its own input.
fn reads_itself(word: &Word) -> bool {
    matches!(word.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// True for a program that runs what it reads.
pub(crate) fn takes_code(base: &str) -> bool {
    is_shell(base)
        || CODE.contains(&base)
        || matches!(base, "at" | "batch" | "crontab" | "ssh" | "source" | ".")
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
            out.loose = Some("fd adds names that are only known when it runs".into());
            return out;
        }
        let fd = is_fd && (FD.contains(&word.text.as_str()) || ends_in_exec(&word.text));
        if !fd && !RUN.contains(&word.text.as_str()) {
            if word.dynamic && (word.splits || word.text.starts_with([HOLE, '-'])) {
                out.unclear = Some("find gets words that are only known when it runs".into());
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
        out.loose = Some("find adds names that are only known when it runs".into());
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

/// `git` runs aliases, and has subcommands that run a text.
pub(super) fn git(args: &[Word]) -> Unwrapped {
    let mut out = Unwrapped::default();
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
        if crate::danger::git_key_runs(key) {
            out.also.extend(crude_pieces(value));
        }
        if key.to_lowercase().starts_with("alias.") {
            match value.strip_prefix('!') {
                Some(script) => out.runs.push(Inner::Script(script.to_owned())),
                None => out.runs.push(Inner::Script(format!("git {value}"))),
            }
            out.loose = Some("git gets an alias".into());
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

/// Builtins that take a variable's name, in which an index is evaluated.
const NAMES: &[&str] = &[
    "read",
    "unset",
    "printf",
    "test",
    "[",
    "declare",
    "local",
    "export",
    "readonly",
    "typeset",
    "mapfile",
    "readarray",
    "getopts",
    "wait",
    "let",
];
/// Programs whose argument is code that can run commands.
const CODE: &[&str] = &[
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "gsed",
    "perl",
    "python",
    "python2",
    "python3",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "expect",
    "vim",
    "nvim",
    "vi",
    "ex",
    "ed",
    "emacs",
    "osascript",
    "R",
    "rscript",
    "julia",
    "ghci",
    "irb",
    "groovy",
    "scala",
    "make",
    "gmake",
    "just",
    "tar",
    "rsync",
    "rg",
    "man",
    "sort",
    "gdb",
    "zip",
    "split",
    "sqlite3",
    "psql",
    "mysql",
    "mariadb",
    "less",
    "more",
    "scp",
    "sftp",
    "telnet",
    "ftp",
    "bc",
    "dc",
];

/// Everything else that needs a word: builtins that change the shell, and code in arguments.
pub(super) fn other(base: &str, part: &Part) -> Unwrapped {
    let args = part.args();
    if NAMES.contains(&base)
        && args
            .iter()
            .any(|w| w.text.contains('[') && (w.dynamic || w.text.contains(['$', '`'])) && w.text != "[")
    {
        return Unwrapped::unclear("an array index that may run commands");
    }
    match base {
        "eval" => joined(without_dashes(args), true),
        "source" | "." => match args.first() {
            Some(file) if reads_itself(file) && part.stdin.as_ref().is_some_and(Word::plain) => Unwrapped {
                runs: part.stdin.iter().map(|w| Inner::Script(w.text.clone())).collect(),
                ..Unwrapped::loose("it reads commands from its input")
            },
            Some(file) if file.plain() => {
                Unwrapped { loose: Some("it reads commands from a file".into()), ..script_file(args) }
            }
            _ => Unwrapped::unclear("it reads commands from somewhere only known when it runs"),
        },
        "at" | "batch" | "crontab" => Unwrapped {
            also: part.stdin.iter().flat_map(|w| crude_pieces(&w.text)).collect(),
            ..Unwrapped::default()
        },
        "fc" if !args.iter().any(|w| w.text.starts_with("-l")) => {
            Unwrapped::unclear("it runs commands of the shell's history")
        }
        "trap" => match without_dashes(args).first() {
            Some(text) if text.plain() && !text.text.starts_with('-') && !text.text.is_empty() => Unwrapped {
                runs: vec![Inner::Script(text.text.clone())],
                loose: Some("it sets a trap".into()),
                ..Unwrapped::default()
            },
            Some(text) if !text.plain() => Unwrapped::unclear("a trap that is only known when it runs"),
            _ => Unwrapped::default(),
        },
        "alias" if args.iter().any(|w| w.text.contains('=') || w.dynamic) => Unwrapped {
            unclear: Some("it defines an alias, which changes what other commands mean".into()),
            also: args
                .iter()
                .filter_map(|w| w.text.split_once('='))
                .flat_map(|(_, v)| crude_pieces(v))
                .collect(),
            ..Unwrapped::default()
        },
        "hash" | "enable" | "bind" | "complete" | "compgen" if !args.is_empty() => Unwrapped {
            also: args.iter().flat_map(|w| code_pieces(&w.text)).collect(),
            ..Unwrapped::unclear(format!("{base} may change what other commands mean"))
        },
        "shopt" if args.iter().any(|w| w.text == "expand_aliases" || w.dynamic) => {
            Unwrapped::unclear("it lets aliases change what other commands mean")
        }
        "mapfile" | "readarray" if args.iter().any(|w| w.text.starts_with("-C")) => Unwrapped {
            also: args.iter().flat_map(|w| crude_pieces(w.text.trim_start_matches("-C"))).collect(),
            ..Unwrapped::unclear("it runs a command for each line")
        },
        "let" => Unwrapped::loose("arithmetic over variables"),
        "noglob" | "nocorrect" | "repeat" | "foreach" | "zmodload" | "emulate" | "autoload" | "zcompile"
        | "sched" | "ztcp" | "zpty" | "sysopen" | "syswrite" | "zf_rm" | "zf_mv" | "zf_ln" => {
            Unwrapped::unclear(format!("'{base}' means something else in another shell"))
        }
        "cd" | "pushd" | "popd" | "chdir" => folder(args),
        "set" if args.iter().any(|w| w.text.contains('k') && w.text.starts_with('-')) => {
            Unwrapped::loose("it changes how the shell reads commands")
        }
        _ if CODE.contains(&base) => Unwrapped {
            also: args
                .iter()
                .chain(&part.stdin)
                .filter(|w| w.text.contains([' ', '(', '=', '\t', '\n']))
                .flat_map(|w| {
                    let value = w.text.rsplit('=').next().unwrap_or_default();
                    code_pieces(&w.text).into_iter().chain(crude_pieces(value))
                })
                .collect(),
            ..Unwrapped::default()
        },
        _ => Unwrapped::default(),
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
fn folder(args: &[Word]) -> Unwrapped {
    let target =
        args.iter().find(|w| !(w.plain() && matches!(w.text.as_str(), "-P" | "-L" | "-e" | "--" | "-n")));
    let known = match target {
        None => Some("~".to_owned()),
        Some(w) if w.tilde && !w.dynamic && !w.glob => Some(format!("~{}", w.text)),
        Some(w) if w.plain() && !w.text.starts_with(['-', '+']) => Some(w.text.clone()),
        Some(_) => None,
    };
    Unwrapped { folders: vec![known], ..Unwrapped::default() }
}
