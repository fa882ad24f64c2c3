//! Private keys as text (PEM): whole ones, and those that are cut at either end. Only a marker with a body is a key:
//! source code speaks of markers, too.

use std::ops::Range;

use crate::redact::pattern::{Ahead, Span};

const NAME: &str = "private key";
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// Before the lines of a private key of PuTTY.
const LINES: &str = "Private-Lines:";
/// Bytes of the longest label in a marker.
const LABEL: usize = 40;
/// Characters of a line that cannot be anything but a body.
const LONG: usize = 16;
/// Header lines in a body, and bytes of the longest of them.
const HEADERS: usize = 16;
const HEADER: usize = 1 << 10;
/// Bytes of the longest key.
const KEY: usize = 32 << 10;

/// With these the body of an unencrypted key begins: RSA, DSA, EC, Ed25519, OpenSSH.
const BODIES: &[&str] = &[
    "MIIEvQIBADAN",
    "MIIEvgIBADAN",
    "MIIEvAIBADAN",
    "MIIJQgIBADAN",
    "MIIJQwIBADAN",
    "MIIEowIBAAKC",
    "MIIEpAIBAAKC",
    "MIIEogIBAAKC",
    "MIIEpQIBAAKC",
    "MIIJKAIBAAKC",
    "MIIJKQIBAAKC",
    "MIIJKgIBAAKC",
    "MIICXAIBAAKB",
    "MIICXQIBAAKB",
    "MIICdgIBADAN",
    "MIICdwIBADAN",
    "MHcCAQEEI",
    "MIGHAgEAMBMGByqGSM49",
    "MIGkAgEBBDD",
    "MC4CAQAwBQYDK2VwBCIEI",
    "b3BlbnNzaC1rZXktdjEA",
];

/// Where the label of a marker of a private key ends, and the marker itself.
fn marker(text: &str, start: &str) -> Option<usize> {
    let label = text.strip_prefix(start)?;
    let len = label
        .bytes()
        .take(LABEL)
        .take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b' ')
        .count();
    let private = label[..len].ends_with("PRIVATE KEY") || label[..len].ends_with("PRIVATE KEY BLOCK");
    (private && label[len..].starts_with("-----")).then_some(start.len() + len + 5)
}

/// What was read of a body.
struct Body {
    /// Where it ends; 0: there is none.
    end: usize,
    /// It goes up to the end of the text, or may.
    open: bool,
}

/// Reads lines of a body: with line numbers, in quotes, in a diff, with line ends as JSON spells them.
fn body(text: &str) -> Body {
    let bytes = text.as_bytes();
    let (mut at, mut end, mut headers) = (0, 0, 0);
    loop {
        let start = at;
        at += between(&bytes[at..]);
        let run = bytes[at..].iter().take_while(|b| in_body(**b)).count();
        let here = &text[at..at + run];
        at += run;
        let last = at >= bytes.len();
        if run == 0 {
            if !last && at > start && headers < HEADERS && header(&text[at..]).is_some() {
                at += header(&text[at..]).unwrap_or(0);
                headers += 1;
                continue;
            }
            return Body { end, open: last };
        }
        let random = here.bytes().any(|b| b.is_ascii_digit() || matches!(b, b'+' | b'/' | b'='))
            && here.bytes().any(|b| b.is_ascii_alphabetic())
            || !crate::redact::values::of_words(here);
        if run >= LONG && random {
            end = at;
        } else if let Some(n) = header(&text[at - run..]).filter(|_| headers < HEADERS) {
            at = at - run + n;
            headers += 1;
        } else {
            // The last line of a body is short.
            let alone = matches!(bytes.get(at), None | Some(b'\n' | b'\r' | b'\\' | b'"' | b'\''));
            if end > 0 && alone && run % 4 == 0 {
                end = at;
            }
            return Body { end, open: last };
        }
    }
}

fn in_body(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

/// Length of a header line (`Proc-Type: 4,ENCRYPTED`).
fn header(text: &str) -> Option<usize> {
    let name = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:"]
        .into_iter()
        .find(|h| text.starts_with(h) || h.starts_with(text))?;
    let text = &text[..text.floor_char_boundary(HEADER.min(text.len()))];
    let real = text.find('\n').unwrap_or(text.len());
    let line = text.find("\\n").map_or(real, |spelt| spelt.min(real));
    if !matches!(name, "Proc-Type:" | "DEK-Info:") {
        return Some(line);
    }
    // One word, also where line ends became blanks.
    let value = text[..line].get(name.len()..).unwrap_or_default();
    let blanks = value.len() - value.trim_start().len();
    let word = value[blanks..].find(char::is_whitespace).unwrap_or(value.len() - blanks);
    Some((name.len() + blanks + word).min(line))
}

/// Length of what may stand between two lines: blanks, quotes, signs of a diff, numbers of lines.
fn between(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let digits = rest.iter().take(8).take_while(|b| b.is_ascii_digit()).count();
        let fresh = at == 0 || matches!(text[at - 1], b'\n' | b'\r');
        at += match rest {
            [b'\\', b'n' | b'r' | b't', ..] => 2,
            [b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'\\' | b',' | b'|' | b'>' | b'-', ..] => 1,
            [b'+', ..] if fresh => 1,
            _ if fresh && digits > 0 && matches!(rest.get(digits), Some(b'\t' | b':' | b'-' | b'|')) => {
                digits + 1
            }
            _ => return at,
        };
        // A marker ends it.
        if text[at..].starts_with(b"-----") {
            return at;
        }
    }
}

/// Adds private keys.
pub(crate) fn keys(text: &str, found: &mut Vec<Span>) {
    let mut at = 0;
    let mut whole: Vec<Range<usize>> = Vec::new();
    let mut ends = Ahead::new(text.as_bytes(), |rest| find(rest, END));
    let mut begins = Ahead::new(text.as_bytes(), |rest| find(rest, BEGIN));
    while let Some(begin) = text[at..].find(BEGIN).map(|i| at + i) {
        at = begin + BEGIN.len();
        let Some(after) = marker(&text[begin..], BEGIN).map(|n| begin + n) else { continue };
        let read = body(&text[after..]);
        if read.end == 0 {
            continue;
        }
        at = match closed(text, after, ends.next(after), begins.next(after)) {
            Some(end) => end,
            None => after + read.end,
        };
        whole.push(begin..at);
    }
    cut_at_the_beginning(text, &mut whole);
    found.extend(whole.into_iter().map(|span| (span, NAME)));
    for (begin, _) in text.match_indices(LINES) {
        let after = number_of_lines(text, begin);
        let read = body(&text[after..]);
        if read.end > 0 {
            found.push((after + between(&text.as_bytes()[after..])..after + read.end, NAME));
        }
    }
    for sign in BODIES {
        let mut done = 0;
        for (begin, _) in text.match_indices(sign) {
            let before = text[..begin].chars().next_back();
            let inner = before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/'))
                && !text[..begin].ends_with("\\n");
            if inner || begin < done {
                continue;
            }
            let read = body(&text[begin..]);
            if read.end > 0 {
                done = begin + read.end;
                found.push((begin..done, NAME));
            }
        }
    }
}

/// Where a marker begins.
fn find(text: &[u8], start: &str) -> Option<usize> {
    text.windows(start.len()).position(|w| w == start.as_bytes())
}

/// Where the marker at the end of a key ends. `end` and `begin`: where the next markers of both kinds are.
fn closed(text: &str, after: usize, end: usize, begin: usize) -> Option<usize> {
    if end - after > KEY || begin < end {
        return None;
    }
    marker(&text[end..], END).map(|n| end + n)
}

/// The end of a key whose beginning is not there. `whole`: other keys, in order.
fn cut_at_the_beginning(text: &str, whole: &mut Vec<Range<usize>>) {
    let keys = whole.len();
    let (mut line, mut seen) = (0, 0);
    for (end, _) in text.match_indices(END) {
        line = text[seen..end].rfind('\n').map_or(line, |i| seen + i + 1);
        seen = end;
        let Some(after) = marker(&text[end..], END).map(|n| end + n) else { continue };
        let before = whole[..keys].partition_point(|key| key.end <= end);
        if whole[..keys].get(before).is_some_and(|key| key.contains(&end)) {
            continue;
        }
        // Lines upwards, as long as they are of a body. Before the marker there may be a number of a line.
        let mut begin = if between(&text.as_bytes()[line..end]) == end - line { line } else { end };
        while let Some(above) = text[..begin].strip_suffix('\n') {
            let start = above.rfind('\n').map_or(0, |i| i + 1);
            let line = &text[start..begin];
            let skipped = between(format!("\n{line}").as_bytes()).saturating_sub(1);
            let words = line
                .get(skipped..)
                .unwrap_or_default()
                .trim_end_matches(['\r', '\n', '"', '\'', ',', '\\', ' ']);
            if words.is_empty() || !words.bytes().all(in_body) {
                break;
            }
            begin = start;
        }
        if body(&text[begin..end]).end > 0 {
            whole.push(begin..after);
        }
    }
}

/// Where the end of a text begins that may yet become a part of a key: to be held back until that is known.
pub fn undecided(text: &str) -> Option<usize> {
    in_marks(text).or_else(|| in_lines(text))
}

/// Where the lines of a key of PuTTY end so far, when more may follow.
fn in_lines(text: &str) -> Option<usize> {
    let begin = text.rfind(LINES)?;
    let after = number_of_lines(text, begin);
    let read = body(&text[after..]);
    read.open.then_some(if read.end == 0 { begin } else { after + read.end })
}

/// Where the number of lines ends whose name stands at `begin`.
fn number_of_lines(text: &str, begin: usize) -> usize {
    let behind = begin + LINES.len();
    behind + text[behind..].bytes().take(6).take_while(|b| *b == b' ' || b.is_ascii_digit()).count()
}

/// The same for a key between two marks.
fn in_marks(text: &str) -> Option<usize> {
    let begin = text.rfind(BEGIN)?;
    let rest = &text[begin..];
    let Some(after) = marker(rest, BEGIN) else {
        // The marker itself is not whole yet.
        return (rest.len() < BEGIN.len() + LABEL + 5 && !rest.contains('\n')).then_some(begin);
    };
    let next = |start: &str| rest[after..].find(start).map_or(rest.len(), |n| after + n);
    if closed(rest, after, next(END), next(BEGIN)).is_some() {
        return None;
    }
    let read = body(&rest[after..]);
    if read.end == 0 {
        return read.open.then_some(begin);
    }
    // More lines, or the marker at the end.
    let behind = after + read.end;
    let ending = rest[behind..].trim_start();
    let mark = ending.starts_with('-') && ending.len() < END.len() + LABEL + 5;
    (read.open || ending.is_empty() || mark).then_some(begin + behind)
}

#[cfg(test)]
#[path = "tests/pem_tests.rs"]
mod tests;
