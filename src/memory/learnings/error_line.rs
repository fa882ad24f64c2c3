//! The line of an output that says why a call failed, and its form without what differs from time to time.

use super::words::one_line;

/// Lines of an output that are looked at, from its end.
const LINES: usize = 400;
/// Bytes of a line that are looked at.
const LINE: usize = 400;
/// Bytes of an error type.
const TYPE: usize = 160;
/// Most details, and bytes of one.
const DETAILS: usize = 6;
const DETAIL: usize = 80;

/// Words that begin a line which says why.
const STRONG: &[&str] =
    &["error", "fatal", "err!", "e:", "panic", "denied", "abort", "critical", "npm err!", "!!!", "failed:"];
/// Words that occur in a line which says why.
const WEAK: &[&str] = &[
    "error",
    "fatal",
    "failed",
    "failure",
    "exception",
    "cannot",
    "can't",
    "could not",
    "not found",
    "denied",
    "refused",
    "no such",
    "undefined",
    "unknown",
    "invalid",
    "missing",
    "unexpected",
    "panicked",
    "unable",
    "timed out",
    "not a ",
    "not permitted",
    "unsupported",
    "already",
    "conflict",
    "rejected",
    "unrecognized",
    "unresolved",
    "must ",
    "no module",
    "expired",
    "mismatch",
    "too many",
    "too long",
    "in use",
    "usage:",
    "required",
    "out of",
    "exceed",
    "does not",
];

/// The line of `output` that says why the call failed, without colours; empty: there is none.
pub(super) fn error_line(output: &str) -> String {
    let lines: Vec<String> = output
        .lines()
        .rev()
        .take(LINES)
        .map(|line| plain(&line[..line.floor_char_boundary(4 * LINE)]))
        .filter(|line| !line.is_empty() && !is_note(line))
        .collect();
    // From here the last line comes first.
    if lines.iter().any(|l| l.starts_with("Traceback "))
        && let Some(raised) = lines.iter().find(|l| is_exception(l))
    {
        return cut(raised);
    }
    let score = |line: &str| -> u32 {
        let low = line.to_lowercase();
        let begins = low.trim_start_matches(['-', '*', '>', ' ', '[', '(']);
        // After the name of a program or a file: `git: error`, `src/a.c:3:4: error: ...`.
        let after = low.split(": ").skip(1).any(|rest| STRONG.iter().any(|s| rest.starts_with(s)));
        let weak = WEAK.iter().filter(|w| low.contains(*w)).count();
        let summary = low.starts_with("error: could not compile")
            || low.starts_with("error: process completed")
            || low.contains("aborting due to")
            || low.starts_with("failed with exit")
            || low.contains("errors generated")
            || low.contains("lifecycle script");
        if summary {
            return 1;
        }
        let strong = STRONG.iter().any(|s| begins.starts_with(s)) || after || is_exception(line);
        u32::from(strong) * 10 + u32::try_from(weak.min(3)).unwrap_or(3)
    };
    // The first of the best lines: later ones are often consequences.
    let best = lines.iter().map(|l| score(l)).max().unwrap_or(0);
    let found = match best {
        0 => lines.first(),
        // The first strong line, also where a later one has more words.
        10.. => lines.iter().rev().find(|l| score(l) >= 10),
        best => lines.iter().rev().find(|l| score(l) == best),
    };
    found.map(|l| cut(l)).unwrap_or_default()
}

/// Notes that tools of this program add to an output.
fn is_note(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']')
        || line.starts_with("To address this")
        || line.starts_with("hint:")
        || line.starts_with("note:")
        || line.starts_with("warning:")
}

/// `ModuleNotFoundError: ...`, `java.lang.NullPointerException: ...`
fn is_exception(line: &str) -> bool {
    let head = line.split([':', ' ']).next().unwrap_or_default();
    (head.ends_with("Error") || head.ends_with("Exception")) && head.len() > 5
}

/// Without escape sequences and with single spaces.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            if chars.next_if_eq(&'[').is_some() {
                while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
            }
            continue;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(line: &str) -> String {
    one_line(line, LINE)
}

/// The line with paths, numbers, hashes and quoted names replaced, and the names.
pub(super) fn normalised(line: &str) -> (String, Vec<String>) {
    let mut details = Vec::new();
    let unquoted = without_quotes(line, &mut details);
    let mut words = Vec::new();
    for word in unquoted.split_whitespace() {
        words.push(normal_word(word));
    }
    words.dedup();
    let mut text = words.join(" ");
    text.truncate(text.floor_char_boundary(TYPE));
    details.retain(|d| !d.is_empty());
    details.dedup();
    details.truncate(DETAILS);
    (text, details)
}

/// Replaces quoted pieces by `<name>`; pieces that are no path and no number are details.
fn without_quotes(line: &str, details: &mut Vec<String>) -> String {
    let chars: Vec<char> = line.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let close = match c {
            '\'' | '"' | '`' => c,
            '\u{2018}' => '\u{2019}',
            '\u{201c}' => '\u{201d}',
            _ => {
                out.push(c);
                at += 1;
                continue;
            }
        };
        // An apostrophe inside a word quotes nothing.
        let inside = at > 0 && chars.get(at - 1).is_some_and(|b| b.is_alphanumeric());
        let end = chars.get(at + 1..).and_then(|rest| rest.iter().take(200).position(|x| *x == close));
        match end.filter(|_| !inside) {
            Some(length) => {
                let inner: String = chars[at + 1..at + 1 + length].iter().collect();
                let low = one_line(&inner, DETAIL).to_lowercase();
                if !normal_word(&low).starts_with('<') {
                    details.push(low);
                }
                out.push_str("<name>");
                at += length + 2;
            }
            None => {
                out.push(c);
                at += 1;
            }
        }
    }
    out
}

/// A word with what differs replaced.
fn normal_word(word: &str) -> String {
    let core =
        word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '<' | '>' | '.' | '~' | '_'));
    let core = core.trim_end_matches('.');
    if core.starts_with('<') || core.is_empty() {
        return core.to_owned();
    }
    if core.contains("://") {
        return "<url>".into();
    }
    let digits = core.chars().filter(char::is_ascii_digit).count();
    // `E0432`, `TS2345`, `PGRST116`, `[1045]`: the code tells errors apart.
    let letters = core.chars().take_while(char::is_ascii_alphabetic).count();
    if letters > 0
        && letters <= 8
        && digits > 0
        && letters + digits == core.len()
        && core.chars().take(letters).all(|c| c.is_ascii_uppercase())
    {
        return core.to_lowercase();
    }
    // `error[E0432]`
    if let Some((head, code)) = core.split_once('[')
        && !head.is_empty()
        && code.trim_end_matches(']').chars().all(|c| c.is_ascii_alphanumeric())
    {
        return format!("{} {}", head.to_lowercase(), code.trim_end_matches(']').to_lowercase());
    }
    let path = core.contains('/') || core.starts_with('~') || has_extension(core);
    if path {
        return "<path>".into();
    }
    let hex = core.len() >= 7 && core.chars().all(|c| c.is_ascii_hexdigit() || c == '-') && digits > 0;
    if hex {
        return "<hash>".into();
    }
    if digits > 0 && digits * 2 >= core.len() {
        return "<number>".into();
    }
    core.to_lowercase()
}

/// `main.rs`, `a.test.js:3:4`
fn has_extension(word: &str) -> bool {
    let word = word.split(':').next().unwrap_or_default();
    word.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty()
            && (1..=5).contains(&end.len())
            && end.chars().all(|c| c.is_ascii_alphanumeric())
            && end.chars().any(|c| c.is_ascii_lowercase())
            && !stem.ends_with("Error")
            && !stem.chars().any(char::is_uppercase)
    })
}
