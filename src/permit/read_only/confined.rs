//! Commands that only look, but run what the project brings while they do (a wrapper of the compiler, a plugin, a module
//! in the folder), show other processes, or have options that are not all known here. They ask, unless what runs unasked runs in
//! the sandbox, which lets nothing of that write or send.

use std::path::PathBuf;

use super::{glob, inside, is_own_variable, safe_value};
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
    row("npm", &["config", "get"], &[], 1),
    row("npm", &["config", "list"], &[], 0),
    row("yarn", &["list"], &["--depth="], 0),
    row("pnpm", &["ls"], &["--depth="], 1),
    row("poetry", &["show"], &["--tree"], 1),
    row("uv", &["pip", "list"], &[], 0),
    row("uv", &["tree"], &[], 0),
    row("pip", &["check"], &[], 0),
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

/// A program that only looks whatever its options are, but for these.
struct Looker {
    names: &'static [&'static str],
    /// The first word is one of these. Empty: any.
    first: &'static [&'static str],
    /// Options that write a file, change a setting or run a program, or the beginnings of such options. One of a single
    /// letter also counts within a group of letters, and one without a dash is a whole word.
    refused: &'static [&'static str],
    /// The words behind the first one that it may have.
    rest: fn(&Word) -> bool,
}

const fn looker(
    names: &'static [&'static str],
    first: &'static [&'static str],
    refused: &'static [&'static str],
) -> Looker {
    looker_with(names, first, refused, any)
}

const fn looker_with(
    names: &'static [&'static str],
    first: &'static [&'static str],
    refused: &'static [&'static str],
    rest: fn(&Word) -> bool,
) -> Looker {
    Looker { names, first, refused, rest }
}

const PS: &[&str] =
    &["-e", "-f", "-ef", "-A", "-eo", "-axo", "-o", "-p", "-C", "-u", "-ww", "aux", "auxww", "ax", "axf"];

/// Options that say when a script ends and if it shows its commands.
const SET: &[&str] =
    &["-e", "-u", "-x", "-eu", "-ex", "-eux", "-o", "-eo", "-euo", "-euxo", "+e", "+u", "+x"];

const LOOKERS: &[Looker] = &[
    // Text.
    looker(&["egrep", "fgrep", "zgrep", "zegrep", "zfgrep", "bzgrep", "xzgrep"], &[], &[]),
    looker(&["ag", "ack"], &[], &["--pager", "--create-ackrc"]),
    looker(&["fd", "fdfind"], &[], &["-x", "-X", "--exec"]),
    looker(&["bat", "batcat"], &[], &["--pager"]),
    looker(
        &["join", "tsort", "expand", "unexpand", "fmt", "pr", "ptx", "od", "diff3", "diffstat", "colordiff"],
        &[],
        &[],
    ),
    looker(&["shuf", "iconv", "sdiff"], &[], &["-o", "--output"]),
    looker(&["expr", "bc", "factor", "numfmt", "yes", "cal", "ncal", "tput"], &[], &[]),
    looker(&["cloc", "tokei", "scc"], &[], &["-o", "--out", "--report-file", "--sql-append"]),
    looker(&["xmllint"], &[], &["-o", "--output", "--shell"]),
    looker(&["yq"], &[], &["-i", "--in-place", "--inplace", "-s", "--split-exp"]),
    looker(&["csvlook", "csvcut", "csvstat", "csvgrep", "csvsort"], &[], &[]),
    looker(&["sqlite3"], &["-readonly"], &["-cmd", "-init"]),
    // Archives and programs in files.
    looker(&["bzcat", "xzcat", "lzcat", "zstdcat"], &[], &[]),
    looker(&["gunzip", "bunzip2", "unxz", "unzstd"], &["-c", "--stdout"], &["-o", "--output-dir"]),
    looker(&["gzip", "xz", "bzip2", "zstd"], &["-l", "--list", "-dc", "-cd"], &["-o", "--output-dir"]),
    looker(&["unzip"], &["-p"], &[]),
    looker(&["7z", "7za", "7zr"], &["l"], &["-o"]),
    looker(&["nm", "objdump", "readelf", "size", "ldd"], &[], &[]),
    // The system.
    looker(&["w", "who", "locale", "getconf", "whereis", "vmstat", "lsblk", "lscpu"], &[], &[]),
    looker_with(&["ps"], PS, &[], shows_no_environments),
    looker(&["lsof", "ss", "netstat"], &[], &["-K", "--kill"]),
    looker(&["top"], &["-b", "-bn1", "-bn"], &[]),
    looker_with(
        &["ip"],
        &["a", "addr", "address", "r", "route", "l", "link"],
        &["add", "del", "set", "flush", "replace"],
        shows_links,
    ),
    looker(&["ifconfig", "mount", "hostnamectl", "timedatectl"], &[""], &[]),
    looker(&["jobs", "dirs", "history", "umask"], &[""], &[]),
    looker(&["break", "continue"], &["", "1", "2"], &[]),
    looker(&["help"], &[], &[]),
    looker_with(&["set"], SET, &["+o"], is_setting),
    looker_with(&["ulimit"], &["-a", "-n", "-u", "-s", "-c", "-v", "-m"], &[], none),
    looker(&["sysctl"], &["-a", "-n"], &["-w", "--write", "-p", "--load", "--system"]),
    looker(
        &["systemctl"],
        &["status", "list-units", "list-unit-files", "is-active", "is-enabled", "show", "cat"],
        &[],
    ),
    looker(&["dpkg"], &["-l", "-L", "-s", "-S", "--list", "--listfiles", "--status", "--search"], &[]),
    looker(&["dpkg-query", "apt-cache"], &[], &[]),
    looker(&["apt"], &["list", "show", "policy"], &[]),
    looker(&["rpm"], &["-q", "-qa", "-qi", "-ql", "-qf"], &["-e", "-U"]),
    // Tools of languages.
    looker(&["rustc"], &["-vV"], &["-o", "--emit"]),
    looker(&["java"], &["-version", "--version"], &[]),
    looker_with(&["ruby", "php", "perl", "mvn", "tsc", "deno", "bun"], &["-v", "-version"], &[], none),
    looker(&["openssl"], &["version"], &[]),
    looker(&["rg"], &["--type-list"], &[]),
    looker(&["npm"], &["root", "prefix", "bin"], &["-g"]),
];

/// Whether the arguments of a program are those of such a command.
pub(super) fn reads(name: &str, args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let by_row = |row: &Row| {
        row.name == name
            && args.len() >= row.words.len()
            && args.iter().zip(row.words).all(|(arg, word)| arg.text == *word)
            && rest_fits(row, args.get(row.words.len()..).unwrap_or_default(), roots, folders)
    };
    args.iter().all(Word::plain) && ROWS.iter().any(by_row)
        || says_its_version(name, args)
        || sets_its_own(name, args)
        || LOOKERS.iter().any(|looker| looker.names.contains(&name) && looks(looker, args, roots, folders))
}

/// `NAME --version`, of any program but those of the shell.
fn says_its_version(name: &str, args: &[Word]) -> bool {
    let asks = |w: &Word| w.plain() && matches!(w.text.as_str(), "--version" | "--help" | "-V");
    let runs_files = matches!(name, "." | "source" | "exec" | "eval" | "command" | "builtin" | "trap");
    !runs_files && matches!(args, [word] if asks(word))
}

/// `read a b`, `mapfile -t lines`: a builtin that sets variables of the script.
fn sets_its_own(name: &str, args: &[Word]) -> bool {
    let options: &[&str] = match name {
        "read" => &["-a", "-ra"],
        "mapfile" | "readarray" => &["-t"],
        _ => return false,
    };
    let names = match args {
        [first, rest @ ..] if first.plain() && options.contains(&first.text.as_str()) => rest,
        all => all,
    };
    !names.is_empty() && names.iter().all(|w| w.plain() && is_own_variable(&w.text))
}

fn looks(looker: &Looker, args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let first = args.first().map_or("", |w| w.text.as_str());
    let begins = looker.first.is_empty()
        || args.first().is_none_or(Word::plain)
            && looker.first.contains(&first)
            && (args.is_empty() || !first.is_empty());
    begins
        && args.iter().skip(1).all(looker.rest)
        && args.iter().all(|word| is_harmless(word, looker, roots, folders))
}

fn any(_: &Word) -> bool {
    true
}

fn none(_: &Word) -> bool {
    false
}

/// The options of a shell that `set -o` names.
fn is_setting(word: &Word) -> bool {
    matches!(word.text.as_str(), "pipefail" | "errexit" | "nounset" | "xtrace")
}

/// Words behind the object of `ip` that only show.
fn shows_links(word: &Word) -> bool {
    let t = word.text.as_str();
    // The name of a device stands behind `dev` or `show`; none is a shortened verb.
    matches!(t, "show" | "list" | "ls" | "dev" | "lo")
        || t.len() > 3 && t.bytes().any(|b| b.is_ascii_digit()) && !t.contains(['/', '.', ':'])
}

/// Not `ps ax e`: there a word without a dash, with an `e` among its letters, shows environments.
fn shows_no_environments(word: &Word) -> bool {
    let t = word.text.as_str();
    !(t.contains('e') && t.len() <= 5 && t.bytes().all(|b| b.is_ascii_lowercase()))
}

fn is_harmless(word: &Word, looker: &Looker, roots: &Roots, folders: &[PathBuf]) -> bool {
    let t = word.text.as_str();
    let letters = t.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let refused = looker.refused.iter().any(|no| match (no.strip_prefix('-'), letters) {
        (Some(letter), Some(letters)) if letter.len() == 1 => letters.contains(letter),
        (None, _) => t == *no,
        _ => t.starts_with(no),
    });
    // `nm @file`: a file of options.
    if refused || word.dynamic || word.tilde || t.starts_with('@') {
        return false;
    }
    if !t.starts_with('-') {
        return word.pipe || inside(word, roots, folders) || word.glob && glob::inside(word, roots, folders);
    }
    // The value of a letter stands behind it: `-f/etc/shadow`.
    let value = letters.and_then(|rest| rest.get(1..)).unwrap_or_default();
    word.plain() && safe_value(t) && !value.contains(['/', '~']) && value != ".."
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
