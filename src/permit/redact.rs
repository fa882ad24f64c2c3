//! Secrets out of everything that is written: by known values, and by shapes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Captures, Regex};

use crate::redact_hint::{may_be_assigned, may_have_shape};
pub use crate::redact_stream::RedactStream;

/// Shorter known values would mangle ordinary text.
const MIN_KNOWN: usize = 6;

/// Finds secrets and masks them. Made once, at start; holds the known values in memory only.
#[derive(Clone, Default)]
pub struct Redactor {
    pub(crate) known: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} known values)", self.known.len())
    }
}

/// Shapes that stand for themselves, with the name that takes their place. No look-around: what comes
/// before is checked in code.
const SHAPES: &[(&str, &str)] = &[
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("api key", r"sk-(?:ant|proj|or|svcacct|admin|live|test|lf)-[A-Za-z0-9_-]{16,}"),
    ("api key", r"sk-[A-Za-z0-9]{20,}"),
    ("api key", r"AIza[0-9A-Za-z_-]{30,}"),
    ("api key", r"(?:gsk|hf|r8|fw|pplx|nvapi|xai|tvly|csk|jina|voyage|pa|cohere)[_-][A-Za-z0-9_-]{24,}"),
    ("github token", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github token", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab token", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[A-Za-z0-9_.-]{18,}"),
    ("slack token", r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("slack token", r"xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("slack hook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    ("discord hook", r"discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{20,}"),
    ("aws key", r"(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA)[0-9A-Z]{16}"),
    ("token", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("token", r"eyJ[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{14,}"),
    ("stripe key", r"(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{14,}"),
    ("webhook secret", r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("npm token", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi token", r"pypi-[A-Za-z0-9_-]{40,}"),
    ("sendgrid key", r"SG\.[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{14,}"),
    ("google token", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("google secret", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("digitalocean token", r"do[oprt]_v1_[a-f0-9]{40,}"),
    ("shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{28,}"),
    (
        "token",
        r"(?:dckr_pat|glsa|lin_api|figd|sbp|rubygems|ATATT3|ATCTT3|NRAK|tskey|hvs|hvb|pscale_tkn|PMAK|EZAK|dapi|sntrys|sgp|cio[a-z]{0,3}_?|ntn|secret|pul|api_org|dop|eas|vercel|sq0atp|sq0csp|EAAA)[_.-][A-Za-z0-9_.=-]{24,}",
    ),
    ("mailgun key", r"key-[0-9a-f]{32}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("telegram token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("discord token", r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("azure key", r"(?i:AccountKey|SharedAccessKey|SharedAccessSignature)=[A-Za-z0-9+/%=&-]{20,}"),
    ("signature", r"(?:X-Amz-Signature|X-Goog-Signature|[?&]sig)=[A-Za-z0-9%/+=-]{20,}"),
    (
        "bearer",
        r"(?i:bearer|authorization:\s{0,3}(?:basic|token)|x-api-key:|api-key:|x-auth-token:|x-goog-api-key:)\s{1,3}[A-Za-z0-9._~+/=-]{12,}",
    ),
    (
        "cookie",
        r"(?i:set-cookie|cookie):\s?[A-Za-z0-9_.-]{0,40}(?i:sess|sid|auth|token)[A-Za-z0-9_.-]{0,40}=[^;\s]{16,}",
    ),
];

static SHAPE: Late = Late::new(|| {
    let all: Vec<String> = SHAPES.iter().enumerate().map(|(i, (_, r))| format!("(?P<s{i}>{r})")).collect();
    regex(&all.join("|"))
});

/// Compiled when a text comes that it may find something in.
struct Late {
    compiled: OnceLock<Option<Regex>>,
    compile: fn() -> Option<Regex>,
}

impl Late {
    const fn new(compile: fn() -> Option<Regex>) -> Self {
        Self { compiled: OnceLock::new(), compile }
    }

    /// `None`: it finds nothing. Once it is compiled it is the faster one to ask.
    fn for_text(&self, text: &str, may: fn(&str) -> bool) -> Option<&Regex> {
        if self.compiled.get().is_none() && !may(text) {
            return None;
        }
        self.compiled.get_or_init(self.compile).as_ref()
    }
}

/// On bytes: with the tables of Unicode these take megabytes, and milliseconds at each start.
fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("(?-u){pattern}")).ok()
}

/// Where a match lies, to the end of its last character.
fn range(text: &str, m: regex::bytes::Match<'_>) -> Range<usize> {
    let end = (m.end()..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
    m.start()..end
}

/// What a group of a match holds.
fn group<'t>(text: &'t str, c: &Captures<'t>, name: &str) -> Option<(Range<usize>, &'t str)> {
    let range = range(text, c.name(name)?);
    Some((range.clone(), text.get(range)?))
}

/// `scheme://name:secret@`.
static URL: Late = Late::new(|| regex(r"://[^\s/:@'\x22]{0,100}:(?P<secret>[^\s/@'\x22]{3,200})@"));

/// `password = value`, from the word on.
const ASSIGNED: &str = concat!(
    r"(?i:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|",
    r"encryption[_-]?key|account[_-]?key|auth[_-]?key|credentials?|client[_-]?key)",
    // Behind backslashes: JSON as a text of JSON.
    r#"(?P<rest>[A-Za-z0-9_.-]{0,30})(?:\\{0,7}["'\]]){0,2}\s{0,3}(?:=>|:=|=|:)\s{0,3}(?:[a-z]?"(?P<d>[^"\n]{6,400})"|'(?P<s>[^'\n]{6,400})'|\\{1,7}"(?P<e>[^"\\\n]{6,400})|(?P<b>[^\s"',;&<>(){}\[\]]{8,400}))"#,
);

static ASSIGN: Late = Late::new(|| regex(ASSIGNED));

impl Redactor {
    /// `known`: values that must never be written, such as keys from the environment.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for value in known {
            let value = value.trim().to_owned();
            if value.len() < MIN_KNOWN {
                continue;
            }
            // The forms in which it may be written.
            let json = serde_json::Value::from(value.as_str()).to_string();
            all.push(json.trim_matches('"').to_owned());
            all.push(percent(&value));
            all.push(base64(value.as_bytes()));
            all.push(value);
        }
        // Longest first, so that one inside another is not what is found.
        all.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        all.dedup();
        Self { known: all }
    }

    /// True when there is something to mask.
    pub fn finds(&self, text: &str) -> bool {
        !self.spans(text).is_empty()
    }

    /// The text with secrets masked; borrowed when there is none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (span, name) in spans {
            out.push_str(&text[at..span.start]);
            out.push_str("[redacted ");
            out.push_str(name);
            out.push(']');
            at = span.end;
        }
        out.push_str(&text[at..]);
        Cow::Owned(out)
    }

    /// Masks every text in a JSON value (keys are kept).
    pub fn redact_json(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(|v| self.redact_json(v)),
            serde_json::Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    match value {
                        // The name makes a secret of its value: look at both together.
                        serde_json::Value::String(text) => {
                            let joined = format!("{key}: {text:?}");
                            if let Cow::Owned(clean) = self.redact(text) {
                                *text = clean;
                            } else if self.spans(&joined).iter().any(|(s, _)| s.end > key.len() + 2) {
                                *text = "[redacted secret]".into();
                            }
                        }
                        other => self.redact_json(other),
                    }
                }
            }
            _ => {}
        }
    }

    /// Places of secrets, in order, without overlap.
    fn spans(&self, text: &str) -> Vec<(Range<usize>, &'static str)> {
        let mut found: Vec<(Range<usize>, &'static str)> = Vec::new();
        for value in &self.known {
            found.extend(text.match_indices(value.as_str()).map(|(i, v)| (i..i + v.len(), "known key")));
        }
        shapes(text, &mut found);
        if let Some(url) = URL.for_text(text, |text| text.contains("://")) {
            for c in url.captures_iter(text.as_bytes()) {
                if let Some((range, secret)) = group(text, &c, "secret")
                    && !placeholder(secret)
                {
                    found.push((range, "password"));
                }
            }
        }
        assigned(text, &mut found);
        if found.is_empty() {
            return found;
        }
        found.sort_by(|a, b| a.0.start.cmp(&b.0.start).then(b.0.end.cmp(&a.0.end)));
        let mut out: Vec<(Range<usize>, &'static str)> = Vec::with_capacity(found.len());
        for (span, name) in found {
            match out.last_mut() {
                Some((last, _)) if span.start < last.end => last.end = last.end.max(span.end),
                _ => out.push((span, name)),
            }
        }
        out
    }
}

fn shapes(text: &str, found: &mut Vec<(Range<usize>, &'static str)>) {
    let Some(shape) = SHAPE.for_text(text, may_have_shape) else { return };
    let mut at = 0;
    while let Some(m) = shape.find_at(text.as_bytes(), at) {
        let span = range(text, m);
        let Some(word) = text.get(span.clone()) else { return };
        let before = text[..span.start].chars().next_back();
        // Part of a longer word: a hash, an identifier, base64.
        let inner = before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+'))
            && !word.starts_with(['?', '&', '-'])
            && !word_begins(&text[..span.start]);
        // `/` before it is a path or base64.
        let path = before == Some('/') && !word.contains('.') && !word.starts_with("hooks");
        if inner || (path && !random(word)) || !random(word) {
            at = next(text, span.start);
            continue;
        }
        let name = shape
            .captures_at(text.as_bytes(), span.start)
            .and_then(|c| {
                SHAPES
                    .iter()
                    .enumerate()
                    .find(|(i, _)| c.name(&format!("s{i}")).is_some())
                    .map(|(_, (n, _))| *n)
            })
            .unwrap_or("secret");
        at = span.end.max(next(text, span.start));
        found.push((span, name));
    }
}

/// What stands at the end of `before` belongs to no word: the sign of an added line in a diff, or a line end
/// or tab as JSON spells it.
pub(crate) fn word_begins(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or(before);
    line == "+" || ["\\n", "\\r", "\\t", "\\n+"].iter().any(|e| before.ends_with(e))
}

/// The start of the next character.
pub(crate) fn next(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(text.len(), |c| at + c.len_utf8())
}

/// Not a name made of words: it has a digit and letters, or is long and mixed.
fn random(text: &str) -> bool {
    text.starts_with("-----BEGIN")
        || (text.chars().any(|c| c.is_ascii_digit()) && text.chars().any(|c| c.is_ascii_alphabetic()))
        || (text.chars().any(char::is_uppercase)
            && text.chars().any(char::is_lowercase)
            && entropy(text) > 3.5)
}

fn assigned(text: &str, found: &mut Vec<(Range<usize>, &'static str)>) {
    let Some(assign) = ASSIGN.for_text(text, may_be_assigned) else { return };
    for c in assign.captures_iter(text.as_bytes()) {
        let rest = group(text, &c, "rest").map_or("", |(_, rest)| rest);
        // `tokenizer`, `tokens`, `secretary`: another word.
        if rest.starts_with(|c: char| c.is_ascii_lowercase()) && !rest.starts_with("_") {
            continue;
        }
        let quoted = ["d", "s", "e"].into_iter().find_map(|name| group(text, &c, name));
        let is_quoted = quoted.is_some();
        let Some((span, value)) = quoted.or_else(|| group(text, &c, "b")) else { continue };
        let whole = c.get(0).and_then(|m| text.get(range(text, m))).unwrap_or_default().to_lowercase();
        let password =
            whole.starts_with("passw") || whole.starts_with("passphrase") || whole.starts_with("pwd");
        if secret_value(value, is_quoted, password) {
            found.push((span, if password { "password" } else { "secret" }));
        }
    }
}

/// Whether what stands behind `token =` is a secret and not code.
fn secret_value(value: &str, quoted: bool, password: bool) -> bool {
    if placeholder(value) || value.contains("[redacted") || value.contains("://") {
        return false;
    }
    // Code: calls, paths of names, references.
    let code =
        ["::", "->", "()", "process.env", "os.environ", "env.", "self.", "this.", "config.", "args.", "..."];
    if code.iter().any(|c| value.contains(c)) || (quoted && value.contains(' ') && !password) {
        return false;
    }
    if quoted && value.split(' ').count() > 3 {
        return false;
    }
    let kinds = [
        value.chars().any(|c| c.is_ascii_lowercase()),
        value.chars().any(|c| c.is_ascii_uppercase()),
        value.chars().any(|c| c.is_ascii_digit()),
        value.chars().any(|c| !c.is_alphanumeric()),
    ];
    let mixed = kinds.iter().filter(|k| **k).count();
    let digit = kinds[2];
    if password {
        return mixed >= 2 && (digit || kinds[3] || restless(value));
    }
    // A name such as `API_TOKEN_V2` or `user-token-2`.
    let words = value.split(['_', '-', '.']).all(|w| {
        w.is_empty()
            || w.chars().all(|c| c.is_ascii_alphabetic())
            || w.chars().all(|c| c.is_ascii_digit())
            || (w.len() <= 3)
    });
    mixed >= 2 && digit && !words && value.len() >= 8 && entropy(value) >= 2.8
}

/// Upper and lower case alternate more than in a name made of words.
fn restless(value: &str) -> bool {
    let letters: Vec<bool> = value.chars().map(char::is_uppercase).collect();
    let turns = letters.windows(2).filter(|w| w[0] != w[1]).count();
    turns * 3 > value.len()
}

/// `${TOKEN}`, `<your key>`, `****`, `changeme`.
fn placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    value.starts_with(['$', '<', '{', '%', '*', '#'])
        || value.contains("${")
        || value.contains("{{")
        || value.chars().all(|c| c == value.chars().next().unwrap_or(c))
        || [
            "xxxx",
            "****",
            "....",
            "example",
            "your-",
            "your_",
            "placeholder",
            "redacted",
            "changeme",
            "dummy",
        ]
        .iter()
        .any(|p| lower.contains(p))
}

/// Bits for each character (Shannon).
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for b in text.bytes() {
        counts[usize::from(b)] += 1;
    }
    let all = text.len() as f64;
    counts.iter().filter(|c| **c > 0).map(|c| f64::from(*c) / all).map(|p| -p * p.log2()).sum()
}

fn percent(value: &str) -> String {
    value
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// Without padding, so that it is found in the middle of a longer text that begins with it.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks_exact(3) {
        let n = (u32::from(chunk[0]) << 16) | (u32::from(chunk[1]) << 8) | u32::from(chunk[2]);
        for shift in [18, 12, 6, 0] {
            out.push(char::from(SIGNS[(n >> shift) as usize & 63]));
        }
    }
    out
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
