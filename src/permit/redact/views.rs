//! Texts that are written in a text: in strings of JSON and attributes of XML, in addresses, as base64, and in pieces on
//! several lines. Each is looked at as it reads, and what is found there is masked where it stands.

use std::ops::Range;

use crate::redact::pattern::Span;
use crate::redact::values::placeholder;

/// A text as it reads.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub text: String,
    /// Where each of its bytes, and its end, stands in the text around it.
    from: Vec<usize>,
    /// Only what holds one of these bytes was not to be seen before.
    joints: Vec<usize>,
    /// What is found in it is masked as a whole.
    whole: Option<Range<usize>>,
    /// It is a secret by its form.
    secret: bool,
}

impl View {
    fn push(&mut self, piece: &str, at: Range<usize>) {
        // A piece that was spelt is all of its spelling.
        let plain = piece.len() == at.len();
        self.from.extend((0..piece.len()).map(|i| if plain { at.start + i } else { at.start }));
        self.text.push_str(piece);
    }

    fn close(mut self, end: usize) -> Self {
        self.from.push(end);
        self
    }

    /// Adds what was found in it, as places of the text around it.
    pub(crate) fn spans(&self, found: &[Span], to: &mut Vec<Span>) {
        if let Some(whole) = &self.whole {
            if let Some((_, name)) = found.first() {
                to.push((whole.clone(), name));
            } else if self.secret {
                to.push((whole.clone(), "password"));
            }
            return;
        }
        for (span, name) in found {
            let joint = self.joints.partition_point(|j| *j <= span.start);
            if self.joints.is_empty() || self.joints.get(joint).is_some_and(|j| *j < span.end) {
                to.push((self.from[span.start]..self.from[span.end], name));
            }
        }
    }
}

/// Calls `look` with each text that is written in this one.
pub(crate) fn each(text: &str, mut look: impl FnMut(&View)) {
    escaped(text, &mut look);
    percent(text, &mut look);
    base64(text, &mut look);
    joined(text, &mut look);
}

/// Entities of XML that stand for quotes and line ends.
const ENTITIES: &[(&str, &str)] = &[
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#x22;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&amp;", "&"),
    ("&#10;", "\n"),
    ("&#xA;", "\n"),
];

/// Lines with strings of JSON, or of the like, in which quotes and line ends are spelt.
fn escaped(text: &str, look: &mut impl FnMut(&View)) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let has =
            |sign: u8, next: &[u8]| line.as_bytes().windows(2).any(|w| w[0] == sign && next.contains(&w[1]));
        if has(b'\\', b"nrt\"'/u") || line.contains("&quot;") || has(b'&', b"#a") && line.contains(';') {
            look(&unescaped(line, start));
        }
        start = end;
    }
}

fn unescaped(line: &str, start: usize) -> View {
    let mut view = View::default();
    let mut at = 0;
    while let Some(len) = line[at..].find(['\\', '&']) {
        view.push(&line[at..at + len], start + at..start + at + len);
        at += len;
        let rest = &line[at..];
        let one = |piece: &str, len: usize| (piece.to_owned(), len);
        let (piece, len) = match rest.as_bytes() {
            [b'\\', b'n', ..] => one("\n", 2),
            [b'\\', b'r', ..] => one("\r", 2),
            [b'\\', b't', ..] => one("\t", 2),
            [b'\\', b'"' | b'\'' | b'\\' | b'/', ..] => one(&rest[1..2], 2),
            [b'\\', b'u', ..] => {
                let code =
                    rest.get(2..6).and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
                code.map_or_else(|| one(&rest[..1], 1), |c| (c.to_string(), 6))
            }
            _ => {
                let entity = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity));
                entity.map_or_else(|| one(&rest[..1], 1), |(entity, sign)| one(sign, entity.len()))
            }
        };
        view.push(&piece, start + at..start + at + len);
        at += len;
    }
    view.push(&line[at..], start + at..start + line.len());
    view.close(start + line.len())
}

/// Words in which signs are spelt as in addresses.
fn percent(text: &str, look: &mut impl FnMut(&View)) {
    let bytes = text.as_bytes();
    let hex = |at: usize| {
        let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        Some(digit(at)? * 16 + digit(at + 1)?).and_then(|b| u8::try_from(b).ok())
    };
    let mut end = 0;
    for (at, _) in text.match_indices('%') {
        // Signs that separate names and values.
        if at < end || !hex(at + 1).is_some_and(|b| b"=:\" \n&@'/{,".contains(&b)) {
            continue;
        }
        let word = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'<' | b'>');
        let from = at - bytes[..at].iter().rev().take(4 << 10).take_while(|b| word(b)).count();
        end = at + bytes[at..].iter().take(16 << 10).take_while(|b| word(b)).count();
        let mut view = View::default();
        let mut i = from;
        while i < end {
            match hex(i + 1).filter(|b| bytes[i] == b'%' && b.is_ascii() && i + 2 < end) {
                Some(b) => {
                    view.push(&char::from(b).to_string(), i..i + 3);
                    i += 3;
                }
                None => {
                    view.push(&text[i..i + 1], i..i + 1);
                    i += 1;
                }
            }
        }
        look(&view.close(end));
    }
}

/// Bytes of the shortest and longest text of base64.
const SHORT: usize = 16;
const LONG: usize = 64 << 10;
/// Signs on a line of base64 that goes on below.
const LINE: usize = 60;
/// Bytes of its beginning that say whether it is a text.
const BEGINNING: usize = 9;

fn in_base64(b: u8) -> Option<u8> {
    Some(match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// Whether a text of base64 consists of it.
pub(crate) fn is_base64(c: char) -> bool {
    u8::try_from(c).is_ok_and(|b| in_base64(b).is_some())
}

/// Whether a run of base64 may be a text, as far as it is there.
pub(crate) fn may_be_text(run: &str) -> bool {
    let kinds =
        [u8::is_ascii_lowercase, u8::is_ascii_uppercase].iter().all(|kind| run.bytes().any(|b| kind(&b)));
    kinds && run.len() >= BEGINNING / 3 * 4 && printable(&decode(&run.as_bytes()[..BEGINNING / 3 * 4]))
}

fn base64(text: &str, look: &mut impl FnMut(&View)) {
    let bytes = text.as_bytes();
    let run = |at: usize| bytes[at..].iter().take(LONG).take_while(|b| in_base64(**b).is_some()).count();
    let mut at = 0;
    while at < bytes.len() {
        let len = run(at);
        if len < 10 {
            at += len + 1;
            continue;
        }
        let start = at;
        let mut signs: Vec<u8> = Vec::new();
        if !printable(&decode(&bytes[at..at + len.min(BEGINNING / 3 * 4)])) {
            at += len;
            continue;
        }
        signs.extend(&bytes[at..at + len]);
        at += len;
        let padded = |at: usize| bytes[at..].iter().take(2).take_while(|b| **b == b'=').count();
        // Lines of it, each as wide as the first but the last.
        let mut last = len;
        while len >= LINE && len % 4 == 0 && last == len && signs.len() < LONG {
            let blank = bytes[at..].iter().take(40).take_while(|b| b.is_ascii_whitespace()).count();
            last = run(at + blank);
            if blank == 0 || last == 0 || last > len || (last + padded(at + blank + last)) % 4 > 0 {
                break;
            }
            signs.extend(&bytes[at + blank..at + blank + last]);
            at += blank + last;
        }
        let padding = padded(at);
        at += padding;
        if signs.len() + padding < SHORT && padding == 0 || signs.len() % 4 == 1 {
            continue;
        }
        let Some(inner) = String::from_utf8(decode(&signs)).ok().filter(|t| printable(t.as_bytes())) else {
            continue;
        };
        let kinds =
            [u8::is_ascii_lowercase, u8::is_ascii_uppercase].iter().all(|kind| signs.iter().any(kind));
        let digit = padding > 0 || signs.iter().any(u8::is_ascii_digit);
        let secret = kinds && digit && user_and_password(&inner);
        look(&View { text: inner, whole: Some(start..at), secret, ..View::default() });
    }
}

fn decode(signs: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(signs.len() / 4 * 3 + 2);
    for chunk in signs.chunks(4) {
        let n = chunk.iter().fold(0_u32, |n, b| n << 6 | u32::from(in_base64(*b).unwrap_or(0)));
        let n = n << (6 * (4 - chunk.len()));
        let three = [n >> 16, n >> 8, n].map(|b| u8::try_from(b & 0xff).unwrap_or(0));
        out.extend(&three[..chunk.len().saturating_sub(1)]);
    }
    out
}

fn printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace() || !b.is_ascii())
}

/// `user:password`, as in the head of a request.
fn user_and_password(text: &str) -> bool {
    let Some((user, password)) = text.trim_end().split_once(':') else { return false };
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '@' | '+' | '-');
    let other =
        ["http", "https", "sha1", "sha256", "sha384", "sha512", "data", "file", "urn", "mailto", "blob"];
    (1..=64).contains(&user.len())
        && user.chars().all(name)
        && user.chars().any(|c| c.is_ascii_alphabetic())
        && !other.contains(&user.to_ascii_lowercase().as_str())
        && password.len() >= 4
        && password.bytes().all(|b| b.is_ascii_graphic())
        && !password.starts_with('/')
        && !placeholder(password)
}

/// Bytes between two joints of the same text, and before the first one.
const APART: usize = 1 << 10;

/// Where two pieces of a string meet: from the end of the first to the beginning of the second.
fn joint(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let blank =
        |at: usize| bytes[at..].iter().take(80).take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
    // What stands before a line in a diff or a listing.
    let fresh = |at: usize| {
        let mark =
            |b: &&u8| matches!(**b, b' ' | b'\t' | b'+' | b'-' | b'|' | b'>' | b':') || b.is_ascii_digit();
        bytes[at..].iter().take(80).take_while(mark).count()
    };
    match bytes[at] {
        b'\\' | b'`' if matches!(bytes.get(at + 1..at + 3), Some([b'\n', _] | [b'\r', b'\n'])) => {
            let line = at + 2 + usize::from(bytes[at + 1] == b'\r');
            let begin = line + blank(line);
            let begin = begin + usize::from(bytes.get(begin) == Some(&b'+'));
            // Behind a blank it parts words, and one blank is left.
            let word = at > 0 && !bytes[at - 1].is_ascii_whitespace();
            Some(if word || begin == line { at..begin } else { at..begin - 1 })
        }
        quote @ (b'"' | b'\'' | b'`') if at > 0 && bytes[at - 1] != b'\\' => {
            let mut next = at + 1 + blank(at + 1);
            let signs: [&[u8]; 9] = [b"..", b"++", b"<>", b"||", b"+", b".", b"&", b"~", b"\\"];
            let sign = signs.into_iter().find(|sign| bytes[next..].starts_with(sign));
            next += sign.map_or(0, <[u8]>::len);
            next += blank(next);
            if bytes.get(next) == Some(&b'_') {
                next += 1 + blank(next + 1);
            }
            let line = bytes.get(next) == Some(&b'\n');
            if line {
                next += 1;
                next += fresh(next);
                // A sign at the beginning of the next line.
                let sign = signs.into_iter().find(|sign| bytes[next..].starts_with(sign));
                next += sign.map_or(0, <[u8]>::len);
                next += blank(next);
            }
            if !line && sign.is_none() || next == at + 1 {
                return None;
            }
            next +=
                bytes[next..].iter().take(2).take_while(|b| b.is_ascii_alphabetic() || **b == b'@').count();
            (bytes.get(next) == Some(&quote)).then(|| at..next + 1)
        }
        _ => None,
    }
}

/// Strings in pieces, and lines that go on below.
fn joined(text: &str, look: &mut impl FnMut(&View)) {
    let bytes = text.as_bytes();
    let mut joints: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut flush = |joints: &mut Vec<Range<usize>>| {
        let (Some(first), Some(last)) = (joints.first(), joints.last()) else { return };
        let floor = text.ceil_char_boundary(first.start.saturating_sub(APART));
        let mut from = first.start;
        for _ in 0..3 {
            from = text[floor..from].rfind('\n').map_or(floor, |n| floor + n);
        }
        let to = text.floor_char_boundary((last.end + APART).min(text.len()));
        let to = text[last.end..to].find('\n').map_or(to, |n| last.end + n);
        let mut view = View::default();
        let mut at = from;
        for joint in joints.drain(..) {
            view.push(&text[at..joint.start], at..joint.start);
            view.joints.push(view.text.len());
            at = joint.end;
        }
        view.push(&text[at..to], at..to);
        look(&view.close(to));
    };
    while at < bytes.len() {
        let found = matches!(bytes[at], b'\\' | b'"' | b'\'' | b'`').then(|| joint(bytes, at)).flatten();
        match found {
            Some(found) => {
                if joints.last().is_some_and(|last| found.start - last.end > APART) {
                    flush(&mut joints);
                }
                at = found.end;
                joints.push(found);
            }
            None => at += 1,
        }
    }
    flush(&mut joints);
}
