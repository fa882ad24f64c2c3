//! Secrets that are recognised by the structure around them: values below a name, elements and attributes of XML, lines of
//! files in which other programs keep secrets, files of variables.

use std::ops::Range;
use std::sync::LazyLock;

use crate::redact::hint::Words;
use crate::redact::named::{count, line_before, quoted};
use crate::redact::names::{Class, plural, said};
use crate::redact::pattern::{Ahead, Span};
use crate::redact::shapes::RULES;
use crate::redact::values::{NamedValue, is_random, is_value, placeholder, strong};

/// Lines and bytes below a name that belong to it.
const LINES: usize = 60;
pub(crate) const BYTES: usize = 8 << 10;

/// Names of children that say who, where or how.
const OTHERS: &[&str] = &[
    "user",
    "username",
    "id",
    "email",
    "host",
    "hostname",
    "server",
    "scope",
    "scopes",
    "expires_at",
    "created_at",
    "updated_at",
    "description",
    "image",
    "algorithm",
    "audience",
    "issuer",
];

/// Words at which a structure may begin.
static MARKS: LazyLock<Words> = LazyLock::new(|| {
    let marks =
        ["\"d\"", "\"p\"", "\"q\"", "\"k\"", "\"dp\"", "\"dq\"", "\"qi\"", "kind:", "\"kind\"", ".env"];
    Words::new(marks.into_iter().enumerate().map(|(n, mark)| (mark, if n < 7 { 0 } else { n })), false)
});

/// Whether something begins whose structure says that what follows is secret.
pub(crate) fn marks(text: &str) -> bool {
    MARKS.any(text.as_bytes()) || text.contains("Private-Lines:")
}

/// Adds what the structure of the text says.
pub(crate) fn structured(text: &str, found: &mut Vec<Span>) {
    let (mut manifest, mut variables) = (false, false);
    MARKS.each(text.as_bytes(), |mark, n| match n {
        0 => web_key(text, mark.end, found),
        9 => variables = true,
        _ => manifest = true,
    });
    if manifest {
        manifests(text, found);
    }
    if variables {
        super::variables::sections(text, found);
    }
    if text.contains("</") || text.contains("/>") {
        elements(text, found);
    }
    passwords_of_databases(text, found);
}

/// A number of a key of the web (RFC 7518, section 6): `"d": "..."`.
fn web_key(text: &str, at: usize, found: &mut Vec<Span>) {
    /// Characters of 128 bits.
    const LEAST: usize = 22;
    let bytes = text.as_bytes();
    let blank = |at: usize| count(&bytes[at..], 3, |b| b.is_ascii_whitespace());
    let colon = at + blank(at);
    if bytes.get(colon) != Some(&b':') {
        return;
    }
    let Some(span) = quoted(text, colon + 1 + blank(colon + 1)) else { return };
    let value = &text[span.clone()];
    let sign = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'=');
    if value.len() >= LEAST && value.bytes().all(sign) && strong(value) {
        found.push((span, "private key"));
    }
}

/// Whether a value below the name of a secret is one. `name`: its own, or empty.
fn is_child(of: Class, name: &str, value: &str) -> bool {
    let own = name.to_ascii_lowercase();
    if OTHERS.contains(&own.as_str())
        || own.ends_with("url")
        || own.ends_with("name")
        || own.ends_with("type")
    {
        return false;
    }
    let password = of == Class::Password;
    let it = NamedValue { value, quoted: true, password, tight: false, colon: false, after: "" };
    match of {
        Class::Password => {
            value.len() >= 6
                && is_value(value)
                && it.is_secret()
                && (is_random(value) || value.contains(['!', '@', '#', '$', '%', '^', '&', '*', '?']))
        }
        Class::Secret => is_random(value) && it.is_secret(),
        Class::Short => value.len() >= 10 && !value.contains(':') && is_random(value) && !it.is_code(),
        Class::Key => strong(value),
        Class::Vendor(rule) => RULES.is_value(rule, value),
    }
}

/// Adds the values below a name that says that they are secret: lines that are further in, or what stands in brackets. `name`
/// is where the name stands, `at` what is behind its separator. Returns how many bytes were looked at, `most` at the utmost.
pub(crate) fn children(
    text: &str,
    name: Range<usize>,
    at: usize,
    most: usize,
    found: &mut Vec<Span>,
) -> usize {
    let word = &text[name.clone()];
    let Some(of) = plural(word).or_else(|| said(word, &text[..name.start])) else { return 0 };
    // Nothing behind this is looked at.
    let text = &text[..text.floor_char_boundary((at + most).min(text.len()))];
    let bytes = text.as_bytes();
    let open = at + count(&bytes[at..], 40, |b| b.is_ascii_whitespace());
    if let Some(b'[' | b'{' | b'(') = bytes.get(open) {
        return in_brackets(text, open, of, found) - at;
    }
    let line_end = at + count(&bytes[at..], 20, |b| matches!(b, b' ' | b'\r' | b'|' | b'>' | b'-' | b'+'));
    if bytes.get(line_end) != Some(&b'\n') {
        return 0;
    }
    let text_block = text[at..line_end].contains(['|', '>']);
    let line = line_before(text, name.start);
    let indent = |line: &str| {
        let numbered =
            line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '|' | '\t' | ' '));
        line.len() - numbered.len()
    };
    let own = indent(line);
    let mut start = line_end + 1;
    for _ in 0..LINES {
        let end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        let here = &text[start..end];
        if !here.trim().is_empty() {
            let inner = indent(here);
            let item = here[inner..].starts_with("- ");
            if inner < own || inner == own && !item {
                break;
            }
            let begin = start + inner + if item { 2 } else { 0 };
            scalar(text, begin..end, of, text_block, found);
        }
        start = (end + 1).min(text.len());
        if start == text.len() {
            break;
        }
    }
    start - at
}

/// Adds the value of a line of YAML.
fn scalar(text: &str, line: Range<usize>, of: Class, text_block: bool, found: &mut Vec<Span>) {
    let here = &text[line.clone()];
    let here = here.trim_end();
    let (name, from) = match here.split_once(": ") {
        Some((name, rest)) if !text_block => {
            (name.trim_matches(['"', '\'']), here.len() - rest.trim_start().len())
        }
        _ => ("", 0),
    };
    let from = line.start + from;
    let string = quoted(text, from).filter(|s| s.end <= line.end);
    let code = string.is_none() && here.contains(['(', ')', '{', '}', '<', '>', '[', ']', ';', ',']);
    let mut span = string.unwrap_or(from..line.start + here.len());
    if span.start == from
        && let Some(note) = text[span.clone()].find(" #")
    {
        span.end = from + note;
    }
    let value = &text[span.clone()];
    if !code && !value.contains(' ') && is_child(of, name, value) {
        found.push((span, of.mask()));
    }
}

/// Adds the strings between a bracket and the one that closes it. Returns where it stopped.
fn in_brackets(text: &str, open: usize, of: Class, found: &mut Vec<Span>) -> usize {
    let bytes = text.as_bytes();
    let end = text.len();
    let (mut depth, mut at, mut lines) = (0, open, 0);
    // The last string, which may be the name of the next one.
    let mut name: Range<usize> = 0..0;
    while at < end {
        match bytes[at] {
            b'[' | b'{' | b'(' => depth += 1,
            b']' | b'}' | b')' => depth -= 1,
            b'\n' => lines += 1,
            b'"' | b'\'' | b'`' => {
                let quote = bytes[at];
                let inner = at + 1;
                let len = count(&bytes[inner..], BYTES, |b| b != quote && b != b'\n');
                if bytes.get(inner + len) != Some(&quote) {
                    return inner + len;
                }
                let span = inner..inner + len;
                at = inner + len + 1;
                let behind = text[at..].trim_start_matches([' ', '\t']);
                if behind.starts_with([':', '=']) {
                    name = span;
                } else {
                    if is_child(of, &text[name.clone()], &text[span.clone()]) {
                        found.push((span, of.mask()));
                    }
                    name = 0..0;
                }
                continue;
            }
            // The name of a field without quotes.
            b if b.is_ascii_alphanumeric() || b == b'_' => {
                let len = count(&bytes[at..], 64, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
                let word =
                    count(&bytes[at..], BYTES, |b| b.is_ascii_alphanumeric() || b"+/=_-.~".contains(&b));
                if text[at + len..].trim_start().starts_with([':', '=']) {
                    name = at..at + len;
                } else if matches!(bytes[open], b'[') && strong(&text[at..at + word]) {
                    found.push((at..at + word, "secret"));
                }
                at += word.max(len);
                continue;
            }
            _ => {}
        }
        if depth == 0 || lines > LINES {
            return at;
        }
        at = super::shapes::next(text, at);
    }
    at
}

/// Adds the values of secrets of Kubernetes: `kind: Secret`, and `data` or `stringData` in the same document.
fn manifests(text: &str, found: &mut Vec<Span>) {
    let mut start = 0;
    for document in text.split("\n---") {
        let kind = [
            "kind: Secret\n",
            "kind: Secret\r",
            "kind: \"Secret\"",
            "\"kind\": \"Secret\"",
            "\"kind\":\"Secret\"",
        ];
        if kind.iter().any(|k| document.contains(k)) || document.ends_with("kind: Secret") {
            for field in ["data:", "stringData:", "\"data\":", "\"stringData\":"] {
                // What was added is not added again by what stands in it.
                let (mut braces, mut lines) = (0, 0);
                for (at, _) in document.match_indices(field) {
                    if document[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-') {
                        continue;
                    }
                    let (name, at) = (start + at, start + at + field.len());
                    let open = at + count(&text.as_bytes()[at..], 40, |b| b.is_ascii_whitespace());
                    if text.as_bytes().get(open) == Some(&b'{') {
                        if open >= braces {
                            braces = all_in_braces(text, open, found);
                        }
                    } else if name >= lines {
                        lines = all_below(text, name, at, found);
                    }
                }
            }
        }
        start += document.len() + 4;
    }
}

/// Whether a value of such a secret is given.
fn is_given(value: &str) -> bool {
    !placeholder(value) && !matches!(value, "|" | ">" | "|-" | ">-" | "\"\"" | "''")
}

/// Adds every value in the braces at `open`. Returns where they end.
fn all_in_braces(text: &str, open: usize, found: &mut Vec<Span>) -> usize {
    let bytes = text.as_bytes();
    let end = text[open..].find('}').map_or(text.len(), |n| open + n);
    for (colon, _) in text[open..end].match_indices(':') {
        let from = open + colon + 1;
        let value = quoted(text, from + count(&bytes[from..], 20, |b| b.is_ascii_whitespace()));
        found.extend(value.filter(|v| is_given(&text[v.clone()])).map(|v| (v, "secret")));
    }
    end
}

/// Adds every value on the lines below a name. Returns where they end.
fn all_below(text: &str, name: usize, at: usize, found: &mut Vec<Span>) -> usize {
    let bytes = text.as_bytes();
    let Some(first) = text[at..].find('\n') else { return text.len() };
    let line = text[..name].rfind('\n').map_or(0, |i| i + 1);
    let own = name - line;
    let mut start = at + first + 1;
    while start < text.len() {
        let end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        let here = text[start..end].trim_end();
        let inner = here.len() - here.trim_start().len();
        if !here.trim().is_empty() && inner <= own {
            break;
        }
        let from = here.find(": ").map_or(inner, |colon| colon + 2);
        let from = start + from + count(&bytes[start + from..end], 20, |b| b == b' ');
        let whole = from..start + here.len();
        let value = quoted(text, from).filter(|s| s.end <= end).unwrap_or(whole);
        let shown = text.get(value.clone()).unwrap_or_default();
        if !shown.is_empty() && !shown.ends_with(':') && is_given(shown) {
            found.push((value, "secret"));
        }
        start = end + 1;
    }
    start
}

/// Adds what XML names a secret: `<password>x</password>`, `<add key="ApiToken" value="x"/>`, `<key>Token</key>` and the
/// element behind it.
fn elements(text: &str, found: &mut Vec<Span>) {
    /// Bytes of the longest tag, and of the longest content.
    const TAG: usize = 1 << 10;
    const CONTENT: usize = 4 << 10;
    /// Signs `<` in a tag, which may stand in its attributes.
    const INNER: usize = 4;
    const CDATA: &str = "<![CDATA[";
    let bytes = text.as_bytes();
    let mut closes = Ahead::new(bytes, |rest| rest.iter().position(|b| *b == b'>'));
    let mut ends = Ahead::new(bytes, |rest| rest.windows(3).position(|w| w == b"]]>"));
    let mut above: Option<Class> = None;
    for (at, _) in text.match_indices('<') {
        let name_len = count(&bytes[at + 1..], 64, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':')
        });
        if name_len == 0 {
            continue;
        }
        let end = closes.next(at);
        if end == bytes.len() || end - at > TAG || text[at..end].matches('<').nth(INNER).is_some() {
            continue;
        }
        let name = &text[at + 1..at + 1 + name_len];
        let tag = &text[at..end];
        let attribute = |names: &[&str]| {
            names.iter().find_map(|name| {
                let (found, _) = tag.match_indices(name).find(|(i, n)| {
                    tag[..*i].ends_with(|c: char| c.is_whitespace() || c == ':')
                        && tag[i + n.len()..].trim_start().starts_with('=')
                })?;
                let equals = at + found + tag[found..].find('=')? + 1;
                quoted_any(text, equals + count(&bytes[equals..], 3, |b| b.is_ascii_whitespace())..end)
            })
        };
        let called =
            attribute(&["name", "key", "Name", "Key", "id", "property", "n"]).map(|span| &text[span]);
        let of = called.and_then(|c| said(c, "")).or_else(|| said(name, ""));
        if let Some(of) = of
            && let Some(value) = attribute(&["value", "Value", "val", "content", "default", "defaultValue"])
            && is_child(of, "", &text[value.clone()])
        {
            found.push((value, of.mask()));
        }
        let content = end + 1;
        let len = count(&bytes[content..], CONTENT, |b| b != b'<');
        let mut inner = trimmed(text, content..text.floor_char_boundary(content + len));
        if bytes[content + len..].starts_with(CDATA.as_bytes()) && inner.is_empty() {
            let from = content + len + CDATA.len();
            let to = ends.next(from);
            let whole = to < bytes.len() && to - from <= CONTENT && !text[from..to].contains(CDATA);
            inner = from..if whole { to } else { from };
        }
        let value = &text[inner.clone()];
        if tag.ends_with('/') || value.is_empty() {
            // `<property name="password"><value>`
            above = called.and(of).filter(|_| !tag.ends_with('/'));
            continue;
        }
        let is_name = matches!(name, "key" | "name" | "Key" | "Name" | "n" | "string-name");
        if let Some(of) = of.filter(|_| !is_name).or(above)
            && !value.contains(char::is_whitespace)
            && is_child(of, "", value)
        {
            found.push((inner.clone(), of.mask()));
        }
        above = is_name.then(|| said(value, "")).flatten();
    }
}

/// The text in quotes at the beginning of a part, however short.
fn quoted_any(text: &str, part: Range<usize>) -> Option<Range<usize>> {
    let quote = *text.as_bytes().get(part.start).filter(|b| matches!(b, b'"' | b'\''))?;
    let from = part.start + 1;
    let len = text.get(from..part.end)?.find(char::from(quote))?;
    Some(from..from + len)
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let inner = &text[span.clone()];
    let left = inner.len() - inner.trim_start().len();
    span.start + left..span.start + left + inner.trim().len()
}

/// Adds passwords in lines of `.pgpass`: `host:port:database:user:password`.
fn passwords_of_databases(text: &str, found: &mut Vec<Span>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let here = line.trim_end().trim_start_matches(['+', '-', ' ', '\t']);
        let from = start + line.len() - line.trim_start_matches(['+', '-', ' ', '\t']).len();
        start += line.len();
        let mut colons = here.bytes().enumerate().filter(|(_, b)| *b == b':').map(|(i, _)| i);
        let [Some(a), Some(b), Some(c), Some(d)] = [(); 4].map(|()| colons.next()) else { continue };
        let port = &here[a + 1..b];
        let known =
            port == "*" || port.len() >= 4 && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
        let words = [&here[..a], &here[b + 1..c], &here[c + 1..d]];
        let word = |w: &&str| {
            !w.is_empty()
                && w.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'*' | b'/'))
        };
        let password = &here[d + 1..];
        let numbers = words[1].bytes().all(|b| b.is_ascii_digit());
        if known
            && words.iter().all(word)
            && !numbers
            && password.len() >= 5
            && !password.contains(char::is_whitespace)
            && !placeholder(password)
            && (port == "*" || words[2] == "*" || is_value(password))
        {
            found.push((from + d + 1..from + here.len(), "password"));
        }
    }
}
