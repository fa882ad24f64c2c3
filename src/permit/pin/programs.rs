//! Programs, by what they run of a folder.

use tiller_shell::{Part, Word, interpreter, is_shell, utility};

/// Code that a program runs beside its own.
pub(super) enum Runs<'a> {
    /// Nothing of the folder.
    Nothing,
    /// A script in the language of a shell.
    Shell,
    /// A script in another language.
    Language,
    /// Any file of the folder; why.
    Open(String),
    /// Packages that lie in the folder, or come from elsewhere.
    Package(&'a Word),
    Unknown,
}

/// Programs that run nothing of a folder, beside [`utility`].
const PLAIN: &[&str] = &[
    "jq",
    "yq",
    "tee",
    "cp",
    "mv",
    "ln",
    "sort",
    "uniq",
    "comm",
    "paste",
    "join",
    "diff",
    "cmp",
    "patch",
    "fold",
    "fmt",
    "expand",
    "tac",
    "shuf",
    "split",
    "mktemp",
    "install",
    "truncate",
    "ps",
    "id",
    "whoami",
    "groups",
    "uname",
    "hostname",
    "nproc",
    "arch",
    "tty",
    "stty",
    "tput",
    "clear",
    "reset",
    "date",
    "cal",
    "df",
    "free",
    "uptime",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "md5sum",
    "b3sum",
    "cksum",
    "base64",
    "xxd",
    "od",
    "hexdump",
    "strings",
    "iconv",
    "gzip",
    "gunzip",
    "zcat",
    "bzip2",
    "xz",
    "zstd",
    "column",
    "rg",
    "curl",
    "wget",
    "logger",
    "notify-send",
    "say",
    "osascript",
    "terminal-notifier",
    "pgrep",
    "printenv",
    "getopts",
    "getopt",
    "umask",
    "ulimit",
    "hash",
    "let",
    "times",
    "return",
    "continue",
    "break",
    "typeset",
    "readonly",
    "mapfile",
    "readarray",
    "disown",
    "jobs",
    "bg",
    "fg",
    "flock",
    "sync",
    "mkfifo",
    "lsof",
    "pkill",
    "killall",
    "yes",
    "factor",
    "numfmt",
    "tree",
    "sed",
    "find",
    "xargs",
    "env",
    "time",
    "timeout",
    "nice",
    "ionice",
    "nohup",
    "stdbuf",
    "setsid",
    "command",
    "builtin",
    "exec",
    "sudo",
    "doas",
    "caffeinate",
    "chronic",
    "trap",
    "[[",
    "((",
    "eval",
    "rustfmt",
    "gofmt",
    "goimports",
    "gofumpt",
    "black",
    "isort",
    "ruff",
    "clang-format",
    "shfmt",
    "shellcheck",
    "taplo",
    "dprint",
    "stylua",
    "zig-fmt",
    "typos",
    "codespell",
    "gitleaks",
    "docker",
    "podman",
    "uvx",
    "pipx",
    "gh",
];
/// Subcommands of git that run no hook and no program of the working tree.
const GIT: &[&str] = &[
    "status",
    "diff",
    "log",
    "show",
    "rev-parse",
    "ls-files",
    "branch",
    "rev-list",
    "describe",
    "config",
    "blame",
    "cat-file",
    "symbolic-ref",
    "remote",
    "add",
    "for-each-ref",
    "merge-base",
    "grep",
    "tag",
    "check-ignore",
    "var",
    "ls-tree",
    "name-rev",
    "shortlog",
    "hash-object",
    "diff-index",
    "diff-tree",
    "diff-files",
];

/// Tells what a command runs.
pub(super) fn of(part: &Part) -> Runs<'_> {
    let base = part.base();
    let args = part.args();
    let operand = args.iter().find(|word| !word.text.starts_with('-'));
    let first = operand.map_or("", |word| word.text.as_str());
    if is_shell(&base) || matches!(base.as_str(), "." | "source") {
        return Runs::Shell;
    }
    if interpreter(&base) && base != "osascript" {
        return language(&base, args);
    }
    match base.as_str() {
        "git" if GIT.contains(&first) => Runs::Nothing,
        "cargo" | "zig" | "deno" | "go" | "dart" | "terraform" if first == "fmt" => Runs::Nothing,
        "npx" | "bunx" | "pnpx" => match operand {
            Some(word) if !fetches_runner(args) && !chooses_package(args) => Runs::Package(word),
            _ => chosen(&base),
        },
        "awk" | "gawk" | "mawk" | "nawk" if args.iter().any(|word| runs_in_awk(&word.text)) => {
            Runs::Open(format!("it runs {base} with code that runs commands"))
        }
        "awk" | "gawk" | "mawk" | "nawk" => Runs::Nothing,
        "sed" if args.iter().any(|word| is_file_of_sed(&word.text)) => {
            Runs::Open("it runs sed with code of a file".into())
        }
        "docker" | "podman" if args.iter().any(|word| shares_folder(&word.text)) => chosen(&base),
        "uvx" | "pipx" if fetches_runner(args) => chosen(&base),
        "uv" if first == "tool" && !fetches_runner(args) => Runs::Nothing,
        "pnpm" | "yarn" if first == "dlx" && !fetches_runner(args) => Runs::Nothing,
        _ if RUNNERS.contains(&base.as_str()) => chosen(&base),
        _ if utility(&base).is_some() || PLAIN.contains(&base.as_str()) => Runs::Nothing,
        _ => Runs::Unknown,
    }
}

/// Programs that run what files of the folder tell them.
const RUNNERS: &[&str] = &[
    "make",
    "gmake",
    "bmake",
    "nmake",
    "just",
    "task",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "corepack",
    "deno",
    "cargo",
    "go",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "ant",
    "sbt",
    "lein",
    "mill",
    "bazel",
    "buck2",
    "pants",
    "tox",
    "nox",
    "pytest",
    "py.test",
    "rake",
    "bundle",
    "rspec",
    "composer",
    "phpunit",
    "artisan",
    "pre-commit",
    "prek",
    "lefthook",
    "husky",
    "lint-staged",
    "eslint",
    "prettier",
    "biome",
    "stylelint",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "playwright",
    "cypress",
    "tsc",
    "tsx",
    "ts-node",
    "esbuild",
    "vite",
    "webpack",
    "rollup",
    "parcel",
    "gulp",
    "grunt",
    "turbo",
    "nx",
    "lerna",
    "rush",
    "cmake",
    "ctest",
    "ninja",
    "meson",
    "scons",
    "waf",
    "nix",
    "nix-shell",
    "devenv",
    "direnv",
    "mise",
    "asdf",
    "poetry",
    "uv",
    "pipenv",
    "hatch",
    "pdm",
    "rye",
    "pip",
    "pip3",
    "invoke",
    "inv",
    "fab",
    "mix",
    "iex",
    "stack",
    "cabal",
    "dotnet",
    "msbuild",
    "swift",
    "xcodebuild",
    "fastlane",
    "pod",
    "flutter",
    "dart",
    "zig",
    "dune",
    "opam",
    "julia",
    "rscript",
    "docker-compose",
    "ansible",
    "ansible-playbook",
    "terraform",
    "pulumi",
    "helm",
    "skaffold",
    "earthly",
    "dagger",
    "act",
    "watchexec",
    "entr",
    "run-parts",
    "mypy",
    "pylint",
    "flake8",
    "pyright",
    "sphinx-build",
    "mkdocs",
    "jupyter",
    "vim",
    "nvim",
    "emacs",
    "ed",
    "ex",
    "gdb",
    "lldb",
    "m4",
    "tclsh",
    "expect",
    "uvicorn",
    "gunicorn",
    "fastmcp",
    "mcp",
    "flask",
    "conda",
    "mamba",
    "micromamba",
    "nodemon",
];

/// True for a program that builds nothing that it runs, but for what [`compiles`] says. It may run scripts and plugins of the
/// folder.
pub(super) fn only_checks(part: &Part) -> bool {
    let first = subcommand(part);
    match part.base().as_str() {
        "cargo" => compiles(part) || matches!(first, "metadata" | "tree" | "deny" | "audit"),
        "go" => matches!(first, "vet" | "build" | "list" | "mod"),
        "eslint" | "prettier" | "biome" | "stylelint" | "tsc" | "mypy" | "pylint" | "flake8" | "pyright"
        | "mkdocs" | "sphinx-build" => true,
        _ => false,
    }
}

/// True for a program that compiles the sources of a folder, and builds and runs those of its build scripts and macros.
pub(super) fn compiles(part: &Part) -> bool {
    part.base() == "cargo" && matches!(subcommand(part), "check" | "clippy" | "build" | "doc")
}

fn subcommand(part: &Part) -> &str {
    let operand = part.args().iter().find(|word| !word.text.starts_with(['-', '+']));
    operand.map_or("", |word| word.text.as_str())
}

fn chosen(base: &str) -> Runs<'static> {
    Runs::Open(format!("it runs {base}, which chooses what it runs"))
}

/// The name of a package without its version.
pub(super) fn package(text: &str) -> &str {
    let version = text.char_indices().skip(1).find(|(_, c)| matches!(c, '@' | '=' | '<' | '>' | '[' | '~'));
    version.map_or(text, |(at, _)| &text[..at])
}

/// True where a package that is fetched and run chooses itself what it runs, or lies in a folder. The words behind its name are
/// its own.
fn fetches_runner(args: &[Word]) -> bool {
    let is_subcommand = |word: &&Word| matches!(word.text.as_str(), "tool" | "run" | "dlx");
    let mut may_be_package = true;
    for word in args.iter().skip_while(is_subcommand) {
        let is_option = word.text.starts_with('-');
        if !is_option && !may_be_package {
            return false;
        }
        let value = word.text.split_once('=').filter(|_| is_option).map_or(word.text.as_str(), |(_, v)| v);
        let is_local = value.starts_with(['.', '/']) || value.contains("..") || value.ends_with(".py");
        let is_unknown = word.dynamic || word.tilde || word.glob;
        if is_local || is_unknown || value.contains("file:") || RUNNERS.contains(&package(value)) {
            return true;
        }
        may_be_package = is_option;
    }
    false
}

/// True where options of `npx` name the package apart from the program, or a command line.
fn chooses_package(args: &[Word]) -> bool {
    let mut options = args.iter().map(|word| word.text.as_str()).take_while(|text| text.starts_with('-'));
    options.any(|text| matches!(text.split('=').next(), Some("-p" | "-c" | "--package" | "--call")))
}

/// A word of `docker` by which it works on files of the folder.
fn shares_folder(text: &str) -> bool {
    let is_short = text.starts_with('-') && !text.starts_with("--");
    matches!(text, "compose" | "build" | "buildx" | "bake")
        || text.starts_with("--mount")
        || text.starts_with("--volume")
        || is_short && text.contains('v')
}

fn is_file_of_sed(text: &str) -> bool {
    let short = text.strip_prefix('-').map(|rest| rest.trim_start_matches(['n', 'E', 'r', 's', 'u', 'z']));
    text.starts_with("--fi") || short.is_some_and(|rest| rest.starts_with('f'))
}

fn runs_in_awk(text: &str) -> bool {
    ["-f", "-E", "-i", "--fi", "--ex", "--inc"].iter().any(|option| text.starts_with(option))
        || ["system", "|", "getline", "@"].iter().any(|sign| text.contains(sign))
}

/// An interpreter of another language: with code in its words, a module, or a script.
fn language<'a>(base: &str, args: &[Word]) -> Runs<'a> {
    let is_code = |word: &Word| {
        let text = word.text.as_str();
        let (long, short) = (text.starts_with("--"), text.starts_with('-'));
        let loads = ["--eval", "--print", "--require", "--import", "--loader", "--experimental-loader"];
        long && loads.iter().any(|name| text.split('=').next() == Some(name))
            || short && !long && text.chars().skip(1).any(|c| "cempriI".contains(c))
    };
    // Behind the script stand its own arguments.
    match args.iter().take_while(|word| word.text.starts_with('-')).find(|word| is_code(word)) {
        Some(word) => Runs::Open(format!("it runs {base} {}", word.text)),
        None => Runs::Language,
    }
}
