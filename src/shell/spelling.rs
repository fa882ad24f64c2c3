//! Spellings of a part: one canonical text for `allow`, several more for `ask` and `deny`.

use std::collections::HashSet;

use crate::command::{HOLE, Part, Word};
use crate::programs::{base_name, changes_programs, is_cosmetic};
use crate::wrappers::is_wrapper;

/// Quotes a word when the shell would not take it as it stands.
pub fn quote(text: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || "_@%+=:,./-~^*?{}[]!#".contains(c) || c == HOLE;
    if !text.is_empty() && text.chars().all(safe) {
        return text.to_owned();
    }
    in_quotes(text)
}

fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn word(w: &Word) -> String {
    let text = if w.tilde { format!("~{}", w.text) } else { w.text.clone() };
    quote(&text)
}

/// The name of a program as a shell reads it: without quotes, one with `=` would be an assignment. A wrapper can run such
/// a program (`timeout 1 a=b`).
fn program(w: &Word) -> String {
    let text = word(w);
    if w.text.contains('=') && !text.starts_with('\'') { in_quotes(&text) } else { text }
}

pub(crate) fn canonical(part: &Part) -> String {
    let mut out: Vec<String> = part
        .env
        .iter()
        .filter(|(name, _)| part.argv.is_empty() || !is_cosmetic(name))
        .map(|(name, value)| format!("{name}={}", word(value)))
        .collect();
    out.extend(part.argv.first().map(program));
    out.extend(part.argv.iter().skip(1).map(word));
    out.join(" ")
}

pub(crate) fn spellings(part: &Part) -> Vec<String> {
    let mut out = vec![canonical(part)];
    let mut seen: HashSet<String> = out.iter().cloned().collect();
    let mut add = |text: String| {
        if !text.is_empty() && seen.insert(text.clone()) {
            out.push(text);
        }
    };
    let raw: Vec<&str> = part.argv.iter().map(|w| w.text.as_str()).collect();
    add(raw.join(" "));
    let quoted: Vec<String> = part.argv.iter().map(word).collect();
    add(quoted.join(" "));
    if let Some((first, rest)) = raw.split_first() {
        let base = base_name(first);
        add(std::iter::once(base.as_str()).chain(rest.iter().copied()).collect::<Vec<_>>().join(" "));
        let base_quoted: Vec<String> =
            std::iter::once(base.clone()).chain(quoted.iter().skip(1).cloned()).collect();
        add(base_quoted.join(" "));
        if base == "git" {
            add(git_without_globals(rest));
        }
    }
    for text in &part.also {
        add(text.clone());
    }
    // `GIT_EDITOR='vi x' git commit` runs the variable.
    for (_, value) in part.env.iter().filter(|(name, _)| changes_programs(name)) {
        for piece in crude_pieces(&value.text) {
            add(piece);
        }
    }
    out
}

/// The words of a part as the program gets them; those of git without the options before its subcommand.
pub(crate) fn worded(part: &Part) -> Vec<String> {
    let own: Vec<&str> = part.argv.iter().map(|w| w.text.as_str()).collect();
    match own.split_first() {
        Some((first, rest)) if base_name(first) == "git" => {
            std::iter::once("git").chain(without_globals(rest)).map(str::to_owned).collect()
        }
        _ => own.into_iter().map(str::to_owned).collect(),
    }
}

/// `git -C dir -c x=y push` is `git push` to a rule that forbids it.
fn git_without_globals(rest: &[&str]) -> String {
    let args = without_globals(rest);
    std::iter::once("git").chain(args).collect::<Vec<_>>().join(" ")
}

fn without_globals<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    let mut args = rest.iter().copied().peekable();
    while let Some(arg) = args.peek() {
        match *arg {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" | "--config-env"
            | "--super-prefix" | "--attr-source" => {
                args.next();
                args.next();
            }
            a if a.starts_with('-') => {
                args.next();
            }
            _ => break,
        }
    }
    args.collect()
}

/// Pieces of text between separators, quotes ignored: what deny rules see of a line that no parser
/// could take. Also without the leading words of wrappers.
pub fn crude_pieces(text: &str) -> Vec<String> {
    // Of more leading words only the first, the last and one of each program are spelled: each spelling has all of the rest.
    const MOST: usize = 64;
    let mut out = Vec::new();
    for piece in text.split([';', '&', '|', '\n', '(', ')', '`', '{', '}']) {
        let words: Vec<String> = piece
            .split_whitespace()
            .map(|w| w.replace(['\'', '"', '\\'], ""))
            .filter(|w| !w.is_empty())
            .collect();
        let is_before = |word: &String| {
            let base = base_name(word);
            base.contains('=')
                || base.starts_with('-')
                || matches!(base.as_str(), "!" | "do" | "then" | "else" | "if" | "while" | "until" | "$")
                || is_wrapper(&base)
        };
        let before = words.iter().take_while(|word| is_before(word)).count();
        let mut programs = HashSet::new();
        for (from, first) in words.iter().enumerate().take(before + 1) {
            let base = base_name(first);
            let is_new = is_wrapper(&base) && programs.insert(base.clone());
            if from >= MOST / 2 && from + MOST / 2 <= before && !is_new {
                continue;
            }
            let mut spelled = words[from..].to_vec();
            out.push(spelled.join(" "));
            if base != *first {
                spelled[0] = base;
                out.push(spelled.join(" "));
            }
        }
    }
    out
}
