//! Programs that run code of another language, and what such code may run.

use super::shells::is_shell;
use crate::spelling::crude_pieces;

/// Programs whose argument is code that can run commands.
pub(crate) const CODE: &[&str] = &[
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
    "r",
    "rscript",
    "julia",
    "swift",
    "kotlin",
    "kotlinc",
    "scala-cli",
    "clojure",
    "clj",
    "bb",
    "ecl",
    "crystal",
    "perl6",
    "maxima",
    "gnuplot",
    "mlr",
    "m4",
    "lldb",
    "duckdb",
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

/// Whether a program runs what it reads.
pub fn takes_code(base: &str) -> bool {
    is_shell(base)
        || CODE.contains(&base)
        || matches!(base, "at" | "batch" | "crontab" | "ssh" | "source" | ".")
}

/// Returns true for a program that runs what it reads, or gives it to a shell.
pub(crate) fn reads_code(base: &str) -> bool {
    takes_code(base) || READERS.contains(&base)
}

/// Programs besides those of [`takes_code`] that may run commands which they read.
const READERS: &[&str] = &[
    "parallel",
    "sem",
    "sudo",
    "doas",
    "su",
    "runuser",
    "sg",
    "newgrp",
    "chroot",
    "unshare",
    "nsenter",
    "setpriv",
    "script",
    "bwrap",
    "fakeroot",
    "proot",
    "machinectl",
    "toolbox",
    "distrobox",
    "nix-shell",
    "xe",
    "rush",
];

/// Commands that code of another language may run: pieces of the code, of its quoted texts, and of its quoted words
/// joined (`['rm', 'x']`). For `ask` and `deny` rules only.
pub fn code_pieces(code: &str) -> Vec<String> {
    most_code_pieces(code, 400).0
}

/// As [`code_pieces`], up to `most` of each kind; true: there are more.
pub fn most_code_pieces(code: &str, most: usize) -> (Vec<String>, bool) {
    const WORDS: usize = 24;
    let mut all = Pieces { out: Vec::new(), more: false, most };
    all.add(crude_pieces(code).into_iter());
    let split: Vec<&str> = code.split(['\'', '"', '`']).collect();
    let quoted = |from: usize| split.iter().copied().skip(from).step_by(2);
    all.add(quoted(1).flat_map(crude_pieces));
    // `['rm', 'x']`, also behind other quoted words. Behind an apostrophe, as in `don't`, the others are the quoted ones.
    for from in [1, 0] {
        let words: Vec<&str> = quoted(from).collect();
        let rests = (0..words.len()).map(|at| {
            let rest: Vec<&str> = words[at..].iter().copied().take(WORDS).collect();
            rest.join(" ")
        });
        all.add(rests.flat_map(|text| crude_pieces(&text)));
    }
    // A command may stand behind words of the language: `system "rm x"`, `%w[rm x]`, `1e rm x`, `:!rm x`.
    let behind = code.split(['\n', ';']).flat_map(|line| {
        let words: Vec<&str> = line
            .split(|c: char| c.is_whitespace() || c == '[')
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric() && !"/.-_~$".contains(c)))
            .filter(|w| !w.is_empty())
            .take(WORDS)
            .collect();
        (0..words.len()).map(|from| words[from..].join(" ")).collect::<Vec<_>>()
    });
    all.add(behind);
    (all.out, all.more)
}

/// Pieces of code. Many of one kind leave room for the others.
struct Pieces {
    out: Vec<String>,
    /// There are more.
    more: bool,
    /// Of each kind.
    most: usize,
}

impl Pieces {
    fn add(&mut self, mut kind: impl Iterator<Item = String>) {
        self.out.extend(kind.by_ref().take(self.most));
        self.more |= kind.next().is_some();
    }
}

/// Whether a text that this program runs as code may read files that it does not name.
pub fn code_reads(base: &str, text: &str) -> bool {
    const READS: &[&str] = &[
        "open",
        "read",
        "glob",
        "walk",
        "listdir",
        "scandir",
        "iterdir",
        "File",
        "IO.",
        "Dir",
        "fs.",
        "require",
        "exec",
        "eval",
        "system",
        "popen",
        "spawn",
        "subprocess",
        "import os",
        "getline",
        "`",
        "<",
        "shutil",
        "Path",
        "include",
        "file(",
        "slurp",
    ];
    let is_code = text.contains([' ', '(', '\n', '`', ';']) && !is_shell(base) && interpreter(base);
    is_code && READS.iter().any(|w| text.contains(w))
}

/// Programs of [`CODE`] that run a whole language.
pub fn interpreter(base: &str) -> bool {
    matches!(
        base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'),
        "perl"
            | "python"
            | "ruby"
            | "node"
            | "nodejs"
            | "deno"
            | "bun"
            | "php"
            | "lua"
            | "luajit"
            | "tclsh"
            | "expect"
            | "osascript"
            | "r"
            | "kotlin"
            | "kotlinc"
            | "scala-cli"
            | "clojure"
            | "clj"
            | "bb"
            | "ecl"
            | "perl6"
            | "rscript"
            | "Rscript"
            | "julia"
            | "ghci"
            | "ghc"
            | "irb"
            | "groovy"
            | "scala"
            | "pypy"
            | "ipython"
            | "jshell"
            | "elixir"
            | "iex"
            | "erl"
            | "guile"
            | "racket"
            | "sbcl"
            | "clisp"
            | "gjs"
            | "qjs"
            | "ts-node"
            | "tsx"
            | "raku"
            | "swipl"
            | "ocaml"
            | "wish"
            | "pwsh"
            | "octave"
    )
}
