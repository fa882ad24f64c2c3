//! Commands that a program may run which no table knows: any rest of its words.
//!
//! Rules that deny or ask are compared with them, and a match is a perhaps: what is launched depends on the program.

use tiller_shell::{Part, base_name, crude_pieces, takes_code, utility};

/// Most rests of one command, and most words of one.
const MOST: usize = 256;

/// Programs that run no command which their words name, apart from those whose options are modelled.
const PLAIN: &[&str] = &[
    // The shell, and common tools.
    "alias",
    "bg",
    "break",
    "case",
    "declare",
    "disown",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "jobs",
    "let",
    "local",
    "logout",
    "readonly",
    "return",
    "select",
    "shopt",
    "time",
    "times",
    "trap",
    "ulimit",
    "umask",
    "unalias",
    "ack",
    "ag",
    "base64",
    "bat",
    "bunzip2",
    "bzip2",
    "cal",
    "cmp",
    "column",
    "comm",
    "cp",
    "csplit",
    "curl",
    "dd",
    "df",
    "diff",
    "dig",
    "dos2unix",
    "eza",
    "exa",
    "fold",
    "fmt",
    "free",
    "git",
    "git-lfs",
    "gpg",
    "groups",
    "gunzip",
    "gzip",
    "hexdump",
    "hg",
    "host",
    "hostname",
    "iconv",
    "id",
    "install",
    "ip",
    "join",
    "jq",
    "killall",
    "ln",
    "locate",
    "lsof",
    "md5sum",
    "mkfifo",
    "mktemp",
    "mount",
    "mv",
    "nm",
    "nslookup",
    "objdump",
    "od",
    "openssl",
    "paste",
    "patch",
    "pgrep",
    "ping",
    "pkill",
    "ps",
    "readelf",
    "rename",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shasum",
    "shred",
    "shuf",
    "strings",
    "sum",
    "svn",
    "sync",
    "tac",
    "tee",
    "top",
    "tree",
    "truncate",
    "tsort",
    "uname",
    "uniq",
    "unlink",
    "unxz",
    "unzip",
    "uptime",
    "uuidgen",
    "wget",
    "whatis",
    "whereis",
    "who",
    "whoami",
    "xxd",
    "xz",
    "yq",
    "zcat",
    "zgrep",
    "zstd",
    // Compilers, checks and formatters.
    "as",
    "cc",
    "c++",
    "clang",
    "clang-format",
    "cmake",
    "eslint",
    "g++",
    "gcc",
    "gofmt",
    "javac",
    "ld",
    "mypy",
    "prettier",
    "pylint",
    "pytest",
    "ruff",
    "rustc",
    "rustfmt",
    "shellcheck",
    "tsc",
    // Services.
    "aws",
    "az",
    "fly",
    "flyctl",
    "gcloud",
    "gh",
    "glab",
    "gsutil",
    "heroku",
    "journalctl",
    "netlify",
    "systemctl",
    "terraform",
    "tofu",
    "vercel",
    "redis-cli",
    "pg_dump",
    "sqlite3",
];

/// Programs that build, install and run packages: only what stands behind one of [`BEHIND`] may be run.
const MANAGERS: &[&str] = &[
    "apk", "apt", "apt-get", "brew", "bun", "bundle", "cabal", "cargo", "composer", "deno", "dnf", "dotnet",
    "gem", "go", "gradle", "mix", "mvn", "npm", "opkg", "pacman", "pip", "pip3", "pipx", "pkg", "pnpm",
    "port", "rustup", "snap", "stack", "swift", "yarn", "yum", "zypper",
];
/// Words before a command of a package.
const BEHIND: [&str; 4] = ["--", "exec", "x", "dlx"];
/// The same of one program.
const BEHIND_OF: &[(&str, &str)] =
    &[("rustup", "run"), ("mix", "cmd"), ("just", "--command"), ("just", "-c"), ("snap", "run")];
/// Interpreters, which run a script by its path: `node node_modules/.bin/npm publish`.
const INTERPRETERS: &[&str] =
    &["node", "nodejs", "python", "python3", "pypy", "pypy3", "ruby", "perl", "php", "lua"];
/// Options of some of them that take a value, so that the script may stand behind it.
const VALUED: &[&str] =
    &["-W", "-X", "-r", "-I", "-C", "-d", "--require", "--import", "--loader", "--conditions"];

/// The commands that a program may run.
#[derive(Debug, Default)]
pub(crate) struct Launched {
    /// The rests, each as words.
    pub(crate) rests: Vec<Vec<String>>,
    /// There are more than are listed.
    pub(crate) more: bool,
}

/// The rests of a command that may be commands.
pub(crate) fn launched(part: &Part) -> Launched {
    let base = base_name(part.program());
    let args: Vec<&str> = part.args().iter().map(|word| word.text.as_str()).collect();
    if INTERPRETERS.contains(&base.as_str()) {
        return script(&args);
    }
    if base == "cargo-watch" {
        return watched(&args);
    }
    // `cargo +nightly -q watch`
    let sub = args.iter().position(|arg| !arg.starts_with(['-', '+']));
    if let Some(at) = sub.filter(|at| base == "cargo" && args[*at] == "watch") {
        return watched(&args[at + 1..]);
    }
    let behind = |word: &str| BEHIND_OF.iter().any(|(program, before)| *program == base && *before == word);
    let own = args.iter().position(|word| behind(word)).map(|at| at + 1);
    let is_known = utility(&base).is_some() || takes_code(&base) || PLAIN.contains(&base.as_str());
    let from = match (own, MANAGERS.contains(&base.as_str())) {
        (Some(own), _) => own,
        (None, false) if !is_known => 0,
        (None, true) => match args.iter().position(|word| BEHIND.contains(word)) {
            Some(at) => at + 1,
            None => return Launched::default(),
        },
        _ => return Launched::default(),
    };
    rests(&args[from..])
}

/// Each rest that begins with a word that is no option, or with the value that is a part of an option.
fn rests(args: &[&str]) -> Launched {
    let mut all = Launched::default();
    for (at, arg) in args.iter().enumerate() {
        let glued = || arg.get(2..).filter(|value| value.contains(char::is_whitespace));
        let first = match arg.starts_with('-') {
            false => Some(*arg),
            true => arg.split_once('=').map(|(_, value)| value).or_else(glued),
        };
        let Some(first) = first.filter(|first| !first.is_empty()) else { continue };
        if all.rests.len() >= MOST {
            all.more = true;
            return all;
        }
        // A command in one word.
        if first.contains(char::is_whitespace) {
            all.rests.extend(crude_pieces(first).iter().map(|piece| words_of(piece)));
        }
        let after = args[at + 1..].iter().take(MOST).map(|word| (*word).to_owned());
        all.rests.push(std::iter::once(first.to_owned()).chain(after).collect());
    }
    all
}

/// The script of an interpreter, with its arguments, under the name of the program that it stands for.
fn script(args: &[&str]) -> Launched {
    let mut all = Launched::default();
    for (at, arg) in args.iter().enumerate().filter(|(_, arg)| !arg.starts_with('-')) {
        if all.rests.len() >= MOST {
            all.more = true;
            break;
        }
        let name = base_name(arg);
        let name = name.strip_suffix(".js").or_else(|| name.strip_suffix(".cjs")).unwrap_or(&name);
        let name = name.strip_suffix("-cli").unwrap_or(name).to_owned();
        let after = args[at + 1..].iter().take(MOST).map(|word| (*word).to_owned());
        all.rests.push(std::iter::once(name).chain(after).collect());
        if at == 0 || !VALUED.contains(&args[at - 1]) {
            break;
        }
    }
    all
}

/// The commands of `cargo watch`: those of cargo behind `-x`, others behind `-s` and `--`.
fn watched(args: &[&str]) -> Launched {
    let mut all = rests(args);
    for (at, arg) in args.iter().enumerate() {
        // Also behind other letters: `-cx test`.
        let letters = arg.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let short = letters.and_then(|letters| letters.split_once('x')).map(|(_, value)| value);
        let value = match *arg {
            "--exec" => Some(""),
            _ => arg.strip_prefix("--exec=").or(short),
        };
        let value = match value {
            Some("") => args.get(at + 1).copied(),
            value => value.map(|value| value.trim_start_matches('=')),
        };
        if let Some(value) = value {
            all.rests.push(std::iter::once("cargo".to_owned()).chain(words_of(value)).collect());
        }
    }
    all
}

fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
