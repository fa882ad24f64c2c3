//! Names of tools, prompts and arguments. One that could be mistaken for a pattern of a rule, or that a vendor refuses, is
//! known to models and rules by a safe name; the server is asked by its own.

use std::collections::{BTreeMap, BTreeSet};

use tiller_tool::text::visible;

/// Maximum length of a name that is used as it is, in bytes.
const PLAIN: usize = 128;
/// Maximum length of an own name, in bytes.
const OWN: usize = 1024;
/// Maximum length of the readable part of a safe name, in bytes.
const READABLE: usize = 40;
/// Characters of an own name that are shown.
const SHOWN: usize = 80;

/// Returns true if models and rules may know a tool by this name. Others could be mistaken for patterns of rules, or for
/// another tool.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    !name.is_empty() && name.len() <= PLAIN && name.chars().all(plain)
}

/// Why an own name cannot be used at all; `None`: it can.
pub(crate) fn unusable(own: &str) -> Option<String> {
    match own.len() {
        0 => Some("it has no name".into()),
        n if n > OWN => Some(format!("its name is longer than {OWN} bytes")),
        _ => None,
    }
}

/// The name that stands for each own name: itself where it is plain. The others get a readable part and a hash, which is
/// longer where it would be the name of another one.
pub(crate) fn safe<'a>(own: impl Iterator<Item = &'a str> + Clone) -> BTreeMap<&'a str, String> {
    let mut names: BTreeMap<&str, String> =
        own.clone().filter(|name| is_name(name)).map(|name| (name, name.to_owned())).collect();
    let mut taken: BTreeSet<String> = names.values().cloned().collect();
    let odd: BTreeSet<&str> = own.filter(|name| !is_name(name) && unusable(name).is_none()).collect();
    for name in odd {
        let free = [6, 12, 24, 48]
            .into_iter()
            .map(|n| made(name, n, READABLE))
            .find(|made| taken.insert(made.clone()));
        names.extend(free.map(|free| (name, free)));
    }
    names
}

/// A name of letters, digits, `_` and `-`, with `digits` digits of a hash of `own` at its end, and at most `readable`
/// bytes before them.
pub(crate) fn made(own: &str, digits: usize, readable: usize) -> String {
    let mut base = String::new();
    for c in own.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' => base.push(c),
            _ if !base.ends_with('_') => base.push('_'),
            _ => {}
        }
        if base.len() >= readable {
            break;
        }
    }
    let base = base.trim_matches(['_', '-']);
    let base = if base.is_empty() { "tool" } else { base };
    let hash = blake3::hash(own.as_bytes()).to_hex();
    format!("{base}_{}", &hash[..digits.min(hash.len())])
}

/// An own name for people and models, in quotes: one line, without what could act on a terminal or hide words.
pub(crate) fn shown(own: &str) -> String {
    let one = crate::read::words::line(own, SHOWN);
    format!("\"{}\"", visible(&one))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of hostile servers, and of those that write in their own language.
    fn odd() -> Vec<String> {
        let mut all: Vec<String> = [
            "a b",
            "größe lesen",
            "天気",
            "погода",
            "*",
            "mcp:x:*",
            "\u{1b}[2J",
            "x\u{202e}y",
            "x\u{200b}y",
            "a\nb",
            "(",
            ")",
            "a,b",
            "\"",
            "'",
            "\\",
            "\0",
            "..\u{2028}..",
            "😀",
            " ",
            "\t",
            "a b ",
            "a  b",
        ]
        .map(str::to_owned)
        .into();
        all.push("x".repeat(129));
        all.push("x".repeat(130));
        all.push("é".repeat(512));
        all
    }

    #[test]
    fn every_usable_name_has_a_safe_one_of_its_own_that_stays() {
        let mut all = odd();
        // A server that gives tools the names which the safe ones would have.
        all.extend(odd().iter().flat_map(|name| [6, 12].map(|n| made(name, n, READABLE))));
        let names = safe(all.iter().map(String::as_str));
        let unique: BTreeSet<&String> = names.values().collect();
        let own: BTreeSet<&String> = all.iter().collect();
        assert_eq!((names.len(), unique.len()), (own.len(), own.len()), "none is lost, none is shared");
        for (own, name) in &names {
            assert!(is_name(name) && name.len() <= 100, "{own:?}: {name:?}");
            assert!(is_name(own) == (own == name), "a plain name stays as it is: {own:?} {name:?}");
            let shown = shown(own);
            assert!(
                shown.chars().all(|c| !c.is_control() && !"\u{202e}\u{200b}\u{2028}".contains(c)),
                "{shown:?}"
            );
            assert!(shown.chars().count() <= SHOWN + 4, "{shown}");
        }
        // In another order, and beside others, each has the same one.
        let mut turned = all.clone();
        turned.reverse();
        turned.push("more".into());
        let again = safe(turned.iter().map(String::as_str));
        assert!(names.iter().all(|(own, name)| again.get(own) == Some(name)));
    }

    #[test]
    fn a_name_that_cannot_be_used_says_why() {
        assert_eq!(unusable(""), Some("it has no name".into()));
        assert!(unusable(&"x".repeat(1025)).is_some_and(|why| why.contains("1024")));
        assert!(odd().iter().all(|name| unusable(name).is_none()));
        assert!(made("größe lesen", 6, READABLE).starts_with("gr_e_lesen_"));
        assert!(made("天気", 6, READABLE).starts_with("tool_"));
    }
}
