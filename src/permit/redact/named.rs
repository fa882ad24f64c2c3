//! Secrets that are recognised by the name before them: `password = value`, `"token": "value"`, `scheme://name:value@host`.

use std::ops::Range;

use crate::redact::names::{Class, NAMES, said, vendor};
use crate::redact::pattern::{Ahead, LazyPattern, Span, group, regex};
use crate::redact::shapes::RULES;
use crate::redact::structure;
use crate::redact::values::{NamedValue, beginning, is_random, is_value, of_words, placeholder, strong};

/// `scheme://name:secret@host`.
static URL: LazyPattern = LazyPattern::new(|| {
    regex(r"://[^\s/:@'\x22]{0,100}:(?P<secret>[^\s/@'\x22]{3,200})@(?P<host>[A-Za-z0-9.-]{0,200})")
});

/// `scheme://secret@host`.
static USER: LazyPattern = LazyPattern::new(|| regex(r"://(?P<secret>[A-Za-z0-9_-]{20,200})@"));

/// Values that stand for a secret in examples.
const EXAMPLES: &[&str] =
    &["bar", "foo", "pass", "passwd", "password", "pw", "pwd", "secret", "test", "token", "user"];

/// Adds passwords in addresses.
pub(crate) fn in_addresses(text: &str, found: &mut Vec<Span>) {
    if !text.contains("://") {
        return;
    }
    let Some(url) = URL.get() else { return };
    for c in url.captures_iter(text.as_bytes()) {
        let Some((range, secret)) = group(text, &c, "secret") else { continue };
        let host = group(text, &c, "host").map_or("", |(_, host)| host);
        // Names that are kept free for examples (RFC 2606).
        let example = ["example.com", "example.net", "example.org"].iter().any(|e| host.ends_with(e));
        if !placeholder(secret) && !example && !EXAMPLES.contains(&secret.to_lowercase().as_str()) {
            found.push((range, "password"));
        }
    }
    let Some(user) = USER.get() else { return };
    for c in user.captures_iter(text.as_bytes()) {
        let Some((range, secret)) = group(text, &c, "secret") else { continue };
        if strong(secret) {
            found.push((range, "password"));
        }
    }
}

/// Bytes of the longest name, and of the longest value.
const NAME: usize = 64;
const VALUE: usize = 4 << 10;
/// Bytes of the shortest value, in quotes and without, and of the shortest password in a variable.
const QUOTED: usize = 6;
const BARE: usize = 8;
const SHORT: usize = 4;

/// What is given to a name.
struct Given {
    /// The name is an argument, and the value the next one.
    listed: bool,
    /// A word stands for the separator, or nothing does.
    spoken: bool,
    span: Range<usize>,
    quoted: bool,
    /// It is an argument of a call.
    wrapped: bool,
    tight: bool,
    colon: bool,
}

fn of_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')
}

/// The name that the byte at `at` belongs to.
pub(crate) fn name_at(bytes: &[u8], at: usize) -> Range<usize> {
    let left = bytes[..at].iter().rev().take(NAME).take_while(|b| of_name(**b)).count();
    let right = bytes[at..].iter().take(NAME).take_while(|b| of_name(**b)).count();
    at - left..at + right
}

/// Ends a value without quotes.
fn ends(b: u8) -> bool {
    b.is_ascii_whitespace() || b == 0x0b || b"\"'`,;&<>(){}[]".contains(&b)
}

/// What may yet be looked at in a text, for names may stand in the values of others: bytes below names, and bytes of values. It
/// is spent by hostile texts only, and of each name a little is looked at even then.
struct Budget {
    below: usize,
    values: usize,
}

impl Budget {
    fn of(text: &str) -> Self {
        Self { below: text.len().saturating_mul(8), values: text.len().saturating_mul(4) }
    }

    /// Bytes that may be looked at below a name.
    fn below(&self) -> usize {
        self.below.clamp(256, structure::BYTES)
    }

    /// The part of a value by which it is judged.
    fn value<'t>(&mut self, value: &'t str) -> &'t str {
        let value = beginning(value);
        let part = &value[..value.floor_char_boundary(self.values.max(64).min(value.len()))];
        self.values = self.values.saturating_sub(part.len());
        part
    }
}

/// Adds values whose name says that they are secret.
pub(crate) fn assigned(text: &str, found: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut done = 0;
    let mut budget = Budget::of(text);
    let mut ahead = Ahead::new(bytes, |rest| rest.iter().position(|b| ends(*b)));
    NAMES.each(bytes, |hit, _| {
        if hit.start < done {
            return;
        }
        let mut name = name_at(bytes, hit.start);
        done = name.end;
        // In JSON the end of a line is spelt.
        if text[..name.start].ends_with('\\') && text[name.clone()].starts_with(['n', 'r', 't']) {
            name.start += 1;
        }
        // Base64 and the like, in which such a word stands by chance.
        if strong(&text[name.clone()]) && !of_words(&text[name.clone()]) {
            return;
        }
        if let Some(span) = paired(text, &name, &mut ahead, &mut budget) {
            found.push(span);
        }
        if let Some(at) = parent(text, name.end) {
            let looked = structure::children(text, name.clone(), at, budget.below(), found);
            budget.below = budget.below.saturating_sub(looked);
        }
        let Some(given) = given(text, name.clone(), &mut ahead) else { return };
        let said = said(&text[name.clone()], &text[..name.start]);
        if let Some(span) = secret(text, &name, &given, said, &mut budget) {
            found.push(span);
        }
    });
}

/// The value of a pair of which the name is the first part: `{"key": "TOKEN", "value": "..."}`, `name: TOKEN` and `value:` below it.
fn paired(text: &str, name: &Range<usize>, ahead: &mut Ahead<'_>, budget: &mut Budget) -> Option<Span> {
    let before = line_before(text, name.start).trim_end_matches(['"', '\'', '\\']);
    let colon = before.trim_end_matches([' ', '\t']);
    let field = colon
        .strip_suffix([':', '='])
        .map(|b| b.trim_end_matches([' ', '"', '\'', '\\']))
        .unwrap_or(before.trim_end());
    let last = field.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?.to_ascii_lowercase();
    if !["name", "key", "variable", "id", "property", "field", "param", "env"].contains(&last.as_str()) {
        return None;
    }
    let said = said(&text[name.clone()], "")?;
    let to = text.floor_char_boundary((name.end + BEFORE).min(text.len()));
    let behind = &text[name.end..to];
    let lower = behind.to_ascii_lowercase();
    let at = ["value", "val", "default", "content"].iter().filter_map(|word| {
        let fresh = |at: usize| !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let (at, _) = lower.match_indices(word).find(|(at, _)| fresh(*at))?;
        Some(name.end + at..name.end + at + word.len())
    });
    let at = at.min_by_key(|at| (at.start, usize::MAX - at.end))?;
    // Another pair begins before it.
    if lower[..at.start - name.end].contains(['=', '}'])
        || lower[..at.start - name.end].matches('\n').count() > 2
    {
        return None;
    }
    let given = given(text, at, ahead)?;
    let value = budget.value(&text[given.span.clone()]);
    let yes = match said {
        Class::Vendor(rule) => RULES.is_value(rule, value),
        Class::Password => is_random(value) || is_value(value) && given.quoted,
        _ => is_random(value),
    };
    yes.then(|| (given.span, said.mask()))
}

/// Where what a name holds begins, when other names may stand in it: behind its separator.
fn parent(text: &str, end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = end + count(&bytes[end..], 3, |b| matches!(b, b'"' | b'\'' | b']' | b'\\'));
    at += count(&bytes[at..], 3, |b| b == b' ');
    let separator = count(&bytes[at..], 2, |b| matches!(b, b':' | b'=' | b'>'));
    at += separator;
    let mut space = count(&bytes[at..], 3, |b| b == b' ');
    // Pieces that are put together.
    let joins = ["\"\".join(", "''.join(", "concat!(", "String.Concat(", "String.join(\"\", "];
    if let Some(join) = joins.iter().find(|join| text[at + space..].starts_with(**join)) {
        at += space + join.len() - 1;
        space = 0;
    }
    let opens = matches!(bytes.get(at + space)?, b'\n' | b'\r' | b'[' | b'{' | b'(' | b'|' | b'>');
    (separator > 0 && opens).then_some(at)
}

/// Whether what is given to a name is a secret.
fn secret(
    text: &str,
    name: &Range<usize>,
    given: &Given,
    said: Option<Class>,
    budget: &mut Budget,
) -> Option<Span> {
    let Given { quoted, tight, colon, .. } = *given;
    let mut span = given.span.clone();
    let value = budget.value(&text[span.clone()]);
    let is_argument = || text[..name.start].ends_with(['"', '\'', '`']) && !value.contains(['"', '\\', '/']);
    if given.listed && !is_argument() {
        return None;
    }
    let vendor = || {
        let rule = vendor(&text[name.clone()])?;
        RULES.is_value(rule, value).then(|| (given.span.clone(), RULES.rules[rule].name))
    };
    let said = said?;
    let password = said == Class::Password;
    let it = NamedValue { value, quoted, password, tight, colon, after: &text[span.end..] };
    // `NAME=value` at the beginning of a line, as in a file of variables.
    let variable = tight && !quoted && begins_line(&text[..name.start]) && {
        text[name.clone()].bytes().all(|b| !b.is_ascii_lowercase())
    };
    let least = if quoted { QUOTED } else { BARE };
    let long = value.len() >= least || variable && password && value.len() >= SHORT;
    let code = it.is_code() && !quoted;
    let yes = long && match said {
            Class::Password | Class::Secret => it.is_secret(),
            Class::Short => is_random(value) && !code,
            Class::Vendor(_) => false,
            Class::Key => !code && (strong(value) || variable && value.len() >= 16 && is_random(value)),
        } && (!(given.wrapped || given.listed || given.spoken) || is_random(value))
        // Names of code, and ends of sentences.
        && !(given.spoken && said == Class::Key && value.contains('.'));
    if !yes {
        return vendor();
    }
    if variable {
        let rest = &text.as_bytes()[span.end..];
        span.end += count(rest, VALUE, |b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\''));
    }
    Some((span, said.mask()))
}

/// Bytes of a line that are looked at before a name.
const BEFORE: usize = 200;

/// The part of its line, or the end of it, that stands before a place.
pub(crate) fn line_before(text: &str, at: usize) -> &str {
    let from = text.floor_char_boundary(at.saturating_sub(BEFORE));
    let before = &text[from..at];
    before.rsplit('\n').next().unwrap_or(before)
}

/// Whether a line begins behind `before`, or a command that sets variables.
fn begins_line(before: &str) -> bool {
    let line = line_before(before, before.len()).trim_start_matches(['+', '-', ' ', '\t']);
    let line = line.rsplit("\\n").next().unwrap_or(line);
    ["", "export ", "declare -x ", "set ", "ENV ", "ARG "].contains(&line)
}

/// Whether a command before a name sets it to the next word.
fn sets(before: &str) -> bool {
    let setters = [
        "setenv ",
        "set -gx ",
        "set -x ",
        "set -Ux ",
        "set -xg ",
        "set -xU ",
        "configure set ",
        "config set ",
        "secret set ",
        "config:set ",
        "ENV ",
        "setx ",
        "SETX ",
        "--build-arg ",
        "secrets put ",
        "config --global ",
        "kv put ",
    ];
    setters.iter().any(|s| before.ends_with(s))
}

/// Whether a name is defined, as in Lisp: `(def token "value")`, `{:token "value"}`.
fn defines(before: &str) -> bool {
    [":", "(def ", "(setq ", "(setf ", "(define ", "(defvar ", "(defconst ", "(defparameter "]
        .iter()
        .any(|d| before.ends_with(d))
}

/// Whether a name begins its line, and the word at `at` ends it: `password value`.
fn is_alone(text: &str, start: usize, at: usize) -> bool {
    let line = &text.as_bytes()[at..];
    if !line_before(text, start).trim().is_empty() {
        return false;
    }
    let word = count(line, VALUE, |b| b.is_ascii_graphic());
    word > 0 && matches!(line.get(word), None | Some(b'\n' | b'\r'))
}

/// What stands behind a name: quotes, a type, a separator, the value.
fn given(text: &str, name: Range<usize>, ahead: &mut Ahead<'_>) -> Option<Given> {
    let bytes = text.as_bytes();
    let Range { start, end } = name;
    let mut at = end;
    let mut closed = false;
    for _ in 0..2 {
        let slashes = count(&bytes[at..], 7, |b| b == b'\\');
        if !matches!(bytes.get(at + slashes), Some(b'"' | b'\'' | b'`' | b']')) {
            break;
        }
        at += slashes + 1;
        closed = true;
    }
    // The length of an array, and a word of a compiler.
    if bytes.get(at) == Some(&b'[') {
        let digits = count(&bytes[at + 1..], 6, |b| b.is_ascii_digit());
        at += if bytes.get(at + 1 + digits) == Some(&b']') { digits + 2 } else { 0 };
    }
    at += if text[at..].starts_with(" PROGMEM") { " PROGMEM".len() } else { 0 };
    let named = at;
    at += type_of(&text[at..]);
    at += count(&bytes[at..], 3, |b| b.is_ascii_whitespace());
    let rest = &bytes[at..];
    let signs: [&[u8]; 13] =
        [b"<-", b"=>", b":=", b"?=", b"+=", b":-", b"||=", b"->", b"is:", b"is ", b"=", b":", b","];
    let set = || {
        at > named && !closed && {
            sets(&text[..start])
                || is_alone(text, start, at)
                || defines(&text[..start]) && bytes.get(at) == Some(&b'"')
        }
    };
    let sign = signs.into_iter().find(|sign| rest.starts_with(sign)).or_else(|| set().then_some(&b""[..]))?;
    // `Token::new`, `==`, a list of words that are no names.
    if sign == b"," && !closed || rest.starts_with(b"::") || sign == b"=" && rest.starts_with(b"==") {
        return None;
    }
    let tight = sign == b"=" && at == named;
    let colon = sign == b":";
    // Words of a sentence, and what a function returns.
    let spoken = sign.is_empty() || sign.starts_with(b"is") || sign == b"->" || sign == b"<-";
    at += sign.len();
    let behind = at;
    at += count(&bytes[at..], 3, |b| b.is_ascii_whitespace());
    // A tag of YAML, a text of YAML that begins on the next line.
    if bytes.get(at) == Some(&b'!') {
        let tag = count(&bytes[at..], 20, |b| b.is_ascii_alphanumeric() || b == b'!');
        at += tag + count(&bytes[at + tag..], 3, |b| b == b' ');
    }
    // An anchor.
    if bytes.get(at) == Some(&b'&') && colon {
        let anchor = 1 + count(&bytes[at + 1..], 20, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        at += if bytes.get(at + anchor) == Some(&b' ') { anchor + 1 } else { 0 };
    }
    if let Some(b'|' | b'>') = bytes.get(at) {
        let mark = 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let mut blank = at + mark;
        while blank < at + mark + 16 {
            match &bytes[blank..] {
                [b' ' | b'\n' | b'\r' | b'\t', ..] => blank += 1,
                [b'\\', b'n' | b'r' | b't', ..] => blank += 2,
                _ => break,
            }
        }
        if blank > at + mark {
            at = blank;
        }
    }
    let open = |at: usize| Given {
        span: at..at,
        quoted: false,
        wrapped: false,
        tight: tight && at == behind,
        colon,
        listed: sign == b",",
        spoken,
    };
    if let Some(span) = quoted(text, at) {
        return Some(Given { span, quoted: true, ..open(at) });
    }
    if sign == b"," {
        return None;
    }
    let call = count(&bytes[at..], 40, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'!' | b' ')
    });
    if bytes.get(at + call) == Some(&b'(') {
        let inner = at + call + 1;
        let inner = inner + count(&bytes[inner..], 20, |b| b.is_ascii_whitespace());
        if let Some(span) = quoted(text, inner) {
            return Some(Given { span, quoted: true, wrapped: true, ..open(at) });
        }
    }
    // `process.env.TOKEN || "value"`
    let line = &text[at..at + count(&bytes[at..], 120, |b| b != b'\n' && b.is_ascii())];
    let other = ["||", "??", " or ", "?:"].iter().find_map(|or| Some(line.find(or)? + or.len()));
    if let Some(other) = other {
        let inner = at + other + count(&bytes[at + other..], 3, |b| b == b' ');
        if let Some(span) = quoted(text, inner) {
            return Some(Given { span, quoted: true, wrapped: true, ..open(at) });
        }
    }
    let len = (ahead.next(at) - at).min(VALUE);
    let to = text.ceil_char_boundary(at + len);
    (len >= SHORT).then(|| Given { span: at..to, ..open(at) })
}

/// How many bytes `which` says yes to, at most `most`.
pub(crate) fn count(bytes: &[u8], most: usize, which: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take(most).take_while(|b| which(**b)).count()
}

/// Bytes of the type of a constant or argument.
fn type_of(rest: &str) -> usize {
    let blanks = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let first = blanks(rest);
    let colon = usize::from(rest[first..].starts_with(':'));
    let second = first + colon + blanks(&rest[first + colon..]);
    if second > 4 {
        return 0;
    }
    let types = [
        "String",
        "string",
        "&'static str",
        "&str",
        "str",
        "any",
        "bytes",
        "[]byte",
        "const char*",
        "SecretStr",
    ];
    let Some(kind) = types.iter().find(|t| rest[second..].starts_with(**t)) else { return 0 };
    let end = second + kind.len();
    let after = end + blanks(&rest[end..]);
    if rest[after..].starts_with(['=', ':']) { after } else { 0 }
}

/// The text in quotes that begins at `at`, with the letters that may stand before them.
pub(crate) fn quoted(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut from = at + count(&bytes[at..], 3, |b| b.is_ascii_alphanumeric() || matches!(b, b'@' | b'$'));
    from += count(&bytes[from..], 3, |b| b == b'#');
    let slashes = count(&bytes[from..], 7, |b| b == b'\\');
    from += slashes;
    let quote = *bytes.get(from).filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
    let triple = bytes[from..].starts_with(&[quote; 3]);
    from += if triple { 3 } else { 1 };
    let mut end = from;
    loop {
        match bytes.get(end)? {
            b'\n' if !triple => return None,
            b'\\' if slashes > 0 => break,
            b'\\' => end += 1,
            b if *b == quote => break,
            _ => {}
        }
        end += 1;
        if end - from > VALUE {
            return None;
        }
    }
    // A text that ends behind its backslash.
    let end = text.floor_char_boundary(end.min(text.len()));
    (end >= from + QUOTED).then_some(from..end)
}
