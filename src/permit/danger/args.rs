//! A look at options and operands.

use tiller_shell::Word;

/// Options and operands of a command, for a look at them.
pub(super) struct Args<'a> {
    pub(super) words: &'a [Word],
}

impl Args<'_> {
    /// A letter in any short group, or a long option by its whole name or the start of it.
    pub(super) fn has(&self, short: char, long: &str) -> bool {
        self.words.iter().take_while(|w| w.text != "--").any(|w| {
            let t = w.text.as_str();
            match t.strip_prefix("--") {
                Some(name) => {
                    let name = name.split('=').next().unwrap_or(name);
                    !long.is_empty() && name.len() >= 3 && long.starts_with(name)
                }
                None => short != '\0' && t.starts_with('-') && t[1..].chars().any(|c| c == short),
            }
        })
    }

    pub(super) fn text(&self, text: &str) -> bool {
        self.words.iter().any(|w| w.text == text)
    }

    pub(super) fn any(&self, f: impl Fn(&str) -> bool) -> bool {
        self.words.iter().any(|w| f(&w.text))
    }

    pub(super) fn operands(&self) -> impl Iterator<Item = &Word> {
        self.words.iter().filter(|w| !w.text.starts_with('-') || w.text == "-")
    }
}

/// A place of which everything below would go.
pub(super) fn broad(word: &Word) -> bool {
    if word.tilde {
        return word.text.trim_matches('/').is_empty()
            || word.text.starts_with("/*")
            || word.text.starts_with("/.");
    }
    let text = word.text.trim_end_matches('/');
    if word.dynamic && word.text.starts_with(tiller_shell::HOLE) {
        return true;
    }
    let trimmed = text.trim_end_matches("/*").trim_end_matches("/.").trim_end_matches('/');
    // What is left when `..` has taken back what it can.
    let mut left: Vec<&str> = Vec::new();
    for c in trimmed.split('/') {
        match c {
            "." | "*" | "" => {}
            ".." if left.last().is_some_and(|l| *l != "..") => {
                left.pop();
            }
            c => left.push(c),
        }
    }
    matches!(trimmed, "" | "." | ".." | "*" | ".*" | "./*" | "./.*" | "{}")
        || left.iter().all(|c| *c == "..")
        || (trimmed.starts_with('/') && trimmed.matches('/').count() <= 2)
        || trimmed == ".git"
        || trimmed.ends_with("/.git")
}
