//! Signs of scripts of other languages than a shell's, by which they load or start more than what lies beside them.

/// A language that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Language {
    Shell,
    Python,
    JavaScript,
    /// Any other.
    Other,
}

impl Language {
    /// By the name of an interpreter.
    pub(super) fn of_program(base: &str) -> Self {
        let bare = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        match bare {
            _ if tiller_shell::is_shell(base) => Self::Shell,
            "python" | "pypy" => Self::Python,
            "node" | "nodejs" | "bun" | "deno" | "tsx" => Self::JavaScript,
            _ => Self::Other,
        }
    }

    /// By the first line of a text that begins with `#!`.
    pub(super) fn of_first_line(text: &str) -> Option<Self> {
        let line = text.strip_prefix("#!")?.lines().next().unwrap_or_default();
        let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        let program = words.find(|word| *word != "env" && !word.starts_with('-') && !word.contains('='));
        Some(program.map_or(Self::Other, Self::of_program))
    }

    /// By the ending of a file.
    pub(super) fn of_ending(ending: &str) -> Option<Self> {
        match ending {
            "sh" | "bash" | "zsh" | "ksh" | "fish" => Some(Self::Shell),
            "py" | "pyw" => Some(Self::Python),
            "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" => Some(Self::JavaScript),
            "rb" | "pl" | "pm" | "php" | "lua" | "tcl" | "r" | "jl" | "ps1" => Some(Self::Other),
            _ => None,
        }
    }

    /// Why what a script loads or starts lies not only beside it; `None`: it does.
    pub(super) fn reaches_out(self, text: &str) -> Option<String> {
        let found = match self {
            Self::Shell => None,
            Self::Python => PYTHON.iter().find(|sign| text.contains(**sign)).map(|sign| (*sign).to_owned()),
            Self::JavaScript => {
                let sign =
                    JAVASCRIPT.iter().find(|sign| text.contains(**sign)).map(|sign| (*sign).to_owned());
                sign.or_else(|| foreign_module(text))
            }
            Self::Other => Some("another language".into()),
        };
        found.map(|sign| sign.trim_matches([' ', '(']).to_owned())
    }
}

/// Signs of Python code that starts programs, or loads what does not lie beside the script.
const PYTHON: &[&str] = &[
    "subprocess",
    "os.system",
    "os.popen",
    "os.exec",
    "spawn",
    "from os",
    "pty",
    "importlib",
    "runpy",
    "__import__",
    "exec(",
    "eval(",
    "compile(",
    "sys.path",
    "site.",
    "ctypes",
    "cffi",
    "multiprocessing",
    "chdir",
    "pickle",
    "marshal",
    "shelve",
    "../",
    "getattr(",
    "globals(",
    "__builtins__",
    "asyncio",
    "zipimport",
    "pkgutil",
    "execfile",
    "create_subprocess",
];
/// The same of JavaScript.
const JAVASCRIPT: &[&str] = &[
    "child_process",
    "eval(",
    "Function(",
    "import(",
    "\"vm\"",
    "'vm'",
    "node:vm",
    "dlopen",
    "createRequire",
    "worker_threads",
    "cluster",
    "../",
    "Bun.",
    "Deno.",
    "process.binding",
    "globalThis",
    "require.main",
    "Module.",
];
/// Modules that come with Node.
const NODE: &[&str] = &[
    "fs",
    "fs/promises",
    "path",
    "os",
    "util",
    "process",
    "readline",
    "readline/promises",
    "url",
    "crypto",
    "assert",
    "events",
    "stream",
    "stream/promises",
    "buffer",
    "http",
    "https",
    "net",
    "tty",
    "string_decoder",
    "querystring",
    "timers",
    "timers/promises",
    "zlib",
    "perf_hooks",
];

/// The first module that is neither Node's own nor beside the script.
fn foreign_module(text: &str) -> Option<String> {
    for sign in ["require", "from", "import"] {
        for (at, _) in text.match_indices(sign) {
            let rest = text[at + sign.len()..].trim_start();
            let rest = rest.strip_prefix('(').map_or(rest, str::trim_start);
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else {
                // `require(name)` may be anything.
                if sign == "require" && text[at + sign.len()..].trim_start().starts_with('(') {
                    return Some("require".into());
                }
                continue;
            };
            let name = rest[1..].split(quote).next().unwrap_or_default();
            let own = name.strip_prefix("node:").unwrap_or(name);
            if !name.starts_with("./") && !NODE.contains(&own) {
                return Some(name.to_owned());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_reads_its_input_stays_beside_itself_and_one_that_starts_programs_does_not() {
        for (language, text, beside) in [
            (Language::Python, "import json, sys\ncall = json.load(sys.stdin)\nimport lib\n", true),
            (Language::Python, "import subprocess\n", false),
            (Language::Python, "__import__('x')\n", false),
            (Language::Python, "import sys; sys.path.insert(0, '../x')\n", false),
            (Language::JavaScript, "const fs = require('fs'); require(\"./lib\");\n", true),
            (Language::JavaScript, "import { readFileSync } from 'node:fs';\nimport './a.js'\n", true),
            (Language::JavaScript, "const x = require('../lib');\n", false),
            (Language::JavaScript, "require(name)\n", false),
            (Language::JavaScript, "import lodash from 'lodash'\n", false),
            (Language::Other, "puts 1\n", false),
        ] {
            assert_eq!(language.reaches_out(text).is_none(), beside, "{text}");
        }
        assert_eq!(Language::of_first_line("#!/usr/bin/env -S python3 -u\n"), Some(Language::Python));
        assert_eq!(Language::of_first_line("#!/bin/sh -e\n"), Some(Language::Shell));
        assert_eq!(Language::of_first_line("echo\n"), None);
    }
}
