//! The pattern that "always" would allow. It is offered only when it covers no more than it says.

use crate::describe::networked;
use crate::pattern::escape;
use crate::shell::{Analysis, Part, Role};

/// Longest pattern that is offered: the person must be able to read it.
const MAX: usize = 300;

/// `terminal(...)` for the one part of a plain command that is not allowed yet.
pub(crate) fn pattern(analysis: &Analysis, open: &[&Part]) -> Option<String> {
    let [part] = open else { return None };
    if !analysis.is_plain()
        || part.role != Role::Command
        || part.argv.iter().any(|w| w.dynamic || w.glob)
        || part.stdin.is_some()
    {
        return None;
    }
    if analysis.all_redirects().any(crate::shell::Redirect::writes)
        || analysis.parts.iter().any(|p| p.role == Role::Guess)
    {
        return None;
    }
    let text = part.text();
    if text.contains(['\n', '\t'])
        || text.len() > MAX
        || part.program().contains('/') && !part.program().starts_with("./")
    {
        return None;
    }
    Some(format!("terminal({})", general(part).unwrap_or_else(|| escape(&text))))
}

/// Known families in which one plain name may change. `<name>` is one word that cannot be an option,
/// a path upwards or a refspec.
fn general(part: &Part) -> Option<String> {
    let words: Vec<&str> = part.argv.iter().map(|w| w.text.as_str()).collect();
    if !part.env.is_empty() || words.iter().skip(1).any(|w| !name(w)) {
        return None;
    }
    match words.as_slice() {
        ["git", "push", remote, _] if networked(part) => Some(format!("git push {remote} <branch>")),
        ["git", "switch", _] => Some("git switch <branch>".into()),
        ["git", "merge", _] => Some("git merge <branch>".into()),
        ["git", "fetch", remote, _] => Some(format!("git fetch {remote} <branch>")),
        ["cargo", sub @ ("test" | "bench"), _] => Some(format!("cargo {sub} <name>")),
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
