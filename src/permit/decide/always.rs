//! The patterns that "always" would allow, one for each part of a command that is not allowed yet. They are offered
//! only when they cover no more than they say.

use crate::decide::describe::networked;
use crate::rules::pattern::escape;
use tiller_shell::{Analysis, Part, Role};

/// Longest text that is offered: the person must be able to read it.
const MAX: usize = 300;
/// Most patterns at once.
const MOST: usize = 5;
/// Between two patterns.
const AND: &str = ") && ";

/// `terminal(...)` for each part of a plain command that is not allowed yet, joined by ` && `.
///
/// # Errors
/// Why there is none, as the end of a sentence.
pub(crate) fn pattern(analysis: &Analysis, open: &[&Part]) -> Result<String, &'static str> {
    if analysis.all_redirects().any(tiller_shell::Redirect::writes) {
        return Err("it writes a file by a redirection");
    }
    if !analysis.is_plain() || analysis.parts.iter().any(|p| p.role == Role::Guess) {
        return Err("it is more than plain commands");
    }
    let mut out: Vec<String> = Vec::new();
    for part in open {
        let pattern = one(part)?;
        if !out.contains(&pattern) {
            out.push(pattern);
        }
    }
    let text = joined(&out);
    match (out.is_empty(), out.len() <= MOST && text.len() <= MAX) {
        (true, _) => Err("its parts are allowed already, and it may do more"),
        (false, false) => Err("it is too long to be read as a rule"),
        (false, true) => Ok(text),
    }
}

/// Several patterns as one text.
pub(crate) fn joined(patterns: &[String]) -> String {
    patterns.join(" && ")
}

/// The patterns of a text that [`pattern`] or a person wrote.
pub fn split(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(AND) {
        out.push(&rest[..=at]);
        rest = &rest[at + AND.len()..];
    }
    out.push(rest);
    out
}

fn one(part: &Part) -> Result<String, &'static str> {
    if part.argv.iter().any(|w| w.dynamic || w.glob) {
        return Err("the shell makes some of its words when it runs");
    }
    if part.role != Role::Command || part.stdin.is_some() {
        return Err("it is more than plain commands");
    }
    let program = part.program();
    if program.starts_with(['/', '~']) || program.split('/').any(|name| name == "..") {
        return Err("its program is named by a path that is not below this folder");
    }
    let text = part.text();
    if text.contains(['\n', '\t']) || text.contains(AND) || text.len() > MAX {
        return Err("it is too long, or has lines, to be read as a rule");
    }
    Ok(format!("terminal({})", general(part).unwrap_or_else(|| escape(&text))))
}

/// Programs with the first words that say what they do; any arguments may follow those.
const FAMILIES: &[(&str, &[&str])] = &[
    ("cargo", &["test", "build", "check", "clippy", "fmt", "doc", "bench", "run", "nextest run", "tree"]),
    ("go", &["test", "build", "vet", "fmt"]),
    ("npm", &["test", "run <script>"]),
    ("pnpm", &["test", "run <script>"]),
    ("yarn", &["test", "run <script>"]),
    ("bun", &["test", "run <script>"]),
    ("python", &["-m pytest", "-m unittest", "-m mypy"]),
    ("python3", &["-m pytest", "-m unittest", "-m mypy"]),
    ("pytest", &[""]),
    ("mypy", &[""]),
    ("ruff", &["check", "format"]),
    ("eslint", &[""]),
    ("tsc", &[""]),
    ("jest", &[""]),
    ("vitest", &["", "run"]),
    ("dotnet", &["test", "build"]),
    ("mvn", &["test", "compile"]),
    ("gradle", &["test", "build"]),
    ("git", &["add", "commit"]),
];

/// The useful prefix of a command of a known family, or one with a name that may change. `<name>` is one word that
/// cannot be an option, a path upwards or a refspec.
fn general(part: &Part) -> Option<String> {
    let words: Vec<&str> = part.argv.iter().map(|w| w.text.as_str()).collect();
    if !part.env.is_empty() {
        return None;
    }
    // `.venv/bin/python` runs what `python` runs there. Other characters would be read as a pattern.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let base = Some(part.base()).filter(|_| part.program().chars().all(plain));
    let family = FAMILIES.iter().find(|(program, _)| base.as_deref() == Some(*program));
    // The longest first: `vitest run` before `vitest`.
    let mut starts: Vec<&str> = family.map(|(_, starts)| starts.to_vec()).unwrap_or_default();
    starts.sort_by_key(|s| std::cmp::Reverse(s.len()));
    for start in starts {
        let wanted: Vec<&str> = start.split_whitespace().collect();
        let given = words.get(1..=wanted.len()).unwrap_or_default();
        let fits = given.len() == wanted.len()
            && given.iter().zip(&wanted).all(|(g, w)| g == w || w.starts_with('<') && name(g));
        if fits {
            let prefix: Vec<&str> = std::iter::once(&words[0]).chain(given).copied().collect();
            return Some(format!("{}*", prefix.join(" ")));
        }
    }
    if words.iter().skip(1).any(|w| !name(w)) {
        return None;
    }
    match words.as_slice() {
        ["git", "push", remote, _] if networked(part) => Some(format!("git push {remote} <branch>")),
        ["git", "switch", _] => Some("git switch <branch>".into()),
        ["git", "merge", _] => Some("git merge <branch>".into()),
        ["git", "fetch", remote, _] => Some(format!("git fetch {remote} <branch>")),
        ["rustfmt" | "prettier" | "black" | "gofmt", _] => Some(format!("{} <file>", words[0])),
        _ => None,
    }
}

/// What `<name>` matches.
fn name(word: &str) -> bool {
    !word.is_empty()
        && word
            .split(['.', '@', '/', '-'])
            .all(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}
