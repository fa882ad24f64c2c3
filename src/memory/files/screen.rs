//! What may become an entry of memory. Every write passes [`screen`], whatever makes it.

use tiller_protocol::Taint;

use crate::screen::{FindSecret, Finding, FindingKind, find};

/// Longest entry, in characters.
pub(crate) const LONGEST: usize = 1_000;
/// Most lines of an entry.
pub(crate) const LINES: usize = 12;

/// Checks a text before it is written.
///
/// # Errors
/// What is wrong with it, and what to do: a sentence without a full stop.
pub fn screen(text: &str, taint: Taint, secret: &FindSecret) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the entry is empty".into());
    }
    if !text.lines().next().is_some_and(|first| first.chars().any(char::is_alphanumeric)) {
        return Err("the first line of the entry has no word".into());
    }
    let (length, lines) = (text.chars().count(), text.lines().count());
    if length > LONGEST || lines > LINES {
        return Err(format!(
            "the entry has {length} characters in {lines} lines; at most {LONGEST} in {LINES} are kept. Shorten it to what is \
             needed in later sessions"
        ));
    }
    let mut refused = vec![FindingKind::Hidden, FindingKind::Secret];
    if taint != Taint::Person {
        refused.push(FindingKind::Comment);
    }
    if taint.is_untrusted() {
        refused.push(FindingKind::Instruction);
    }
    let Some(found) = find(text, &refused, secret) else { return Ok(()) };
    Err(match found {
        Finding::Hidden(_) => format!("the entry {found}. Write it again without it"),
        Finding::Secret(_) => format!(
            "the entry {found}; secrets are never kept in memory. Name the variable or file that holds it"
        ),
        Finding::Comment => format!("the entry {found}. Write plain text"),
        Finding::Instruction => format!(
            "the entry {found}, and this turn has read text of others ({}). State the fact itself; a rule is written by the \
             user, with # in the composer",
            taint.label()
        ),
    })
}

#[cfg(test)]
#[path = "tests/screen.rs"]
mod tests;
