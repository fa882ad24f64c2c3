//! Commands that a program may run which no table knows: any rest of its words.
//!
//! Rules that deny or ask are compared with them, and a match is a perhaps: what is launched depends on the program.

use tiller_shell::{Part, base_name, crude_pieces, takes_code, utility};

/// Most rests of one command.
const MOST: usize = 12;

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

/// The rests, each as words.
pub(crate) fn launched(part: &Part) -> Vec<Vec<String>> {
    let base = base_name(part.program());
    if part.argv.len() < 2 || utility(&base).is_some() || takes_code(&base) || PLAIN.contains(&base.as_str())
    {
        return Vec::new();
    }
    let args = part.args();
    let from = match MANAGERS.contains(&base.as_str()) {
        false => 0,
        true => match args.iter().position(|word| BEHIND.contains(&word.text.as_str())) {
            Some(at) => at + 1,
            None => return Vec::new(),
        },
    };
    let rests = (from..args.len()).filter(|at| !args[*at].text.starts_with('-')).take(MOST);
    rests
        .flat_map(|at| {
            let whole = vec![args[at..].iter().map(|word| word.text.clone()).collect()];
            // A command in one word.
            let text = args[at].text.as_str();
            let pieces = if text.contains(char::is_whitespace) { crude_pieces(text) } else { Vec::new() };
            let pieces =
                pieces.into_iter().map(|piece| piece.split_whitespace().map(str::to_owned).collect());
            pieces.chain(whole)
        })
        .collect()
}
