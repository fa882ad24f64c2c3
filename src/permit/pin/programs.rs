//! Programs, by what they run of a folder.

use tiller_shell::{Part, Word, interpreter, is_shell, utility};

/// What a program runs beside itself.
pub(super) enum Runs<'a> {
    /// Nothing of the folder.
    Nothing,
    /// A script in the language of a shell.
    Shell,
    /// A script in another language.
    Language,
    /// What cannot be told from its words; why.
    Open(String),
    /// Packages that lie in the folder, or come from elsewhere.
    Package(&'a Word),
    Unknown,
}

/// Programs that run nothing of a folder, beside [`utility`].
const PLAIN: &[&str] = &[
    "jq", "yq", "tee", "cp", "mv", "ln", "sort", "uniq", "comm", "paste", "join", "diff", "cmp", "patch", "fold",
    "fmt", "expand", "tac", "shuf", "split", "mktemp", "install", "truncate", "ps", "id", "whoami", "groups",
    "uname", "hostname", "nproc", "arch", "tty", "stty", "tput", "clear", "reset", "date", "cal", "df", "free",
    "uptime", "sha1sum", "sha256sum", "sha512sum", "md5sum", "b3sum", "cksum", "base64", "xxd", "od", "hexdump",
    "strings", "iconv", "gzip", "gunzip", "zcat", "bzip2", "xz", "zstd", "column", "rg", "curl", "wget", "logger",
    "notify-send", "say", "osascript", "terminal-notifier", "pgrep", "printenv", "getopts", "getopt", "umask",
    "ulimit", "hash", "let", "times", "return", "continue", "break", "typeset", "readonly", "mapfile", "readarray",
    "disown", "jobs", "bg", "fg", "flock", "sync", "mkfifo", "lsof", "pkill", "killall", "yes", "factor", "numfmt",
    "tree", "sed", "find", "xargs", "env", "time", "timeout", "nice", "ionice", "nohup", "stdbuf", "setsid",
    "command", "builtin", "exec", "sudo", "doas", "caffeinate", "chronic", "trap", "[[", "((", "eval", "rustfmt",
    "gofmt", "goimports", "gofumpt", "black", "isort", "ruff", "clang-format", "shfmt", "shellcheck", "taplo",
    "dprint", "stylua", "zig-fmt", "typos", "codespell", "gitleaks", "docker", "podman", "uvx", "pipx", "gh",
];
/// Subcommands of git that run no hook and no program of the working tree.
const GIT: &[&str] = &[
    "status", "diff", "log", "show", "rev-parse", "ls-files", "branch", "rev-list", "describe", "config", "blame",
    "cat-file", "symbolic-ref", "remote", "add", "for-each-ref", "merge-base", "grep", "tag", "check-ignore",
    "var", "ls-tree", "name-rev", "shortlog", "hash-object", "diff-index", "diff-tree", "diff-files",
];

/// What a command runs.
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
        "npx" | "bunx" | "pnpx" => operand.map_or(Runs::Unknown, Runs::Package),
        "awk" | "gawk" | "mawk" | "nawk" => match args.iter().any(|word| runs_in_awk(&word.text)) {
            true => Runs::Open(format!("it runs {base} with code that runs commands")),
            false => Runs::Nothing,
        },
        "uv" if first == "tool" => Runs::Nothing,
        "pnpm" | "yarn" if first == "dlx" => Runs::Nothing,
        _ if RUNNERS.contains(&base.as_str()) => Runs::Open(format!("it runs {base}, which chooses what it runs")),
        _ if utility(&base).is_some() || PLAIN.contains(&base.as_str()) => Runs::Nothing,
        _ => Runs::Unknown,
    }
}

/// Programs that run what files of the folder tell them.
const RUNNERS: &[&str] = &[
    "make", "gmake", "bmake", "nmake", "just", "task", "npm", "pnpm", "yarn", "bun", "corepack", "deno", "cargo",
    "go", "gradle", "gradlew", "mvn", "mvnw", "ant", "sbt", "lein", "mill", "bazel", "buck2", "pants", "tox", "nox",
    "pytest", "py.test", "rake", "bundle", "rspec", "composer", "phpunit", "artisan", "pre-commit", "prek",
    "lefthook", "husky", "lint-staged", "eslint", "prettier", "biome", "stylelint", "jest", "vitest", "mocha",
    "ava", "tap", "playwright", "cypress", "tsc", "tsx", "ts-node", "esbuild", "vite", "webpack", "rollup",
    "parcel", "gulp", "grunt", "turbo", "nx", "lerna", "rush", "cmake", "ctest", "ninja", "meson", "scons", "waf",
    "nix", "nix-shell", "devenv", "direnv", "mise", "asdf", "poetry", "uv", "pipenv", "hatch", "pdm", "rye", "pip",
    "pip3", "invoke", "inv", "fab", "mix", "iex", "stack", "cabal", "dotnet", "msbuild", "swift", "xcodebuild",
    "fastlane", "pod", "flutter", "dart", "zig", "dune", "opam", "julia", "rscript", "docker-compose", "ansible",
    "ansible-playbook", "terraform", "pulumi", "helm", "skaffold", "earthly", "dagger", "act", "watchexec", "entr",
    "run-parts", "mypy", "pylint", "flake8", "pyright", "sphinx-build", "mkdocs", "jupyter", "vim", "nvim", "emacs",
    "ed", "ex", "gdb", "lldb", "m4", "tclsh", "expect",
];

fn runs_in_awk(text: &str) -> bool {
    ["system", "|", "getline", "@"].iter().any(|sign| text.contains(sign))
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
