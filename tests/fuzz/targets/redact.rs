//! Secrets out of texts, whole and in pieces.

use std::sync::LazyLock;

use tiller_permit::{RedactStream, Redactor};

use super::texts;
use crate::outline::text_cuts;
use crate::{Outline, Target};

pub(super) const TARGET: Target = Target { name: "redact", words: &[WORDS], seeds, run };

/// A value that is known from the environment.
const KNOWN: &str = "correct-horse-battery";

const WORDS: &[&str] = &[
    KNOWN,
    "correct-horse",
    "-battery",
    "\n",
    "\n",
    " ",
    "=",
    " = ",
    ": ",
    ":",
    "\"",
    "'",
    ",",
    ";",
    "{",
    "}",
    "password",
    "PASSWORD=",
    "api_key",
    "API_KEY: ",
    "token=",
    "secret",
    "Authorization: Bearer ",
    "Bearer ",
    "Basic ",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_0123456789abcdef0123456789abcdef0123",
    "sk-ant-api03-",
    "xoxb-1-2-",
    "0123456789abcdef0123456789abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "-----END RSA PRIVATE KEY-----\n",
    "-----BEGIN",
    "MIIEpAIBAAKCAQEA\n",
    "postgres://u:p4ssw0rd@h/db",
    "https://user:hunter22@x.y/",
    "://",
    "@",
    "machine x login y password ",
    "--password ",
    "-p",
    "curl -u a:b ",
    "export X=",
    "a",
    "word ",
    "é",
    "日本",
    "\u{1f}",
    "<secret>",
    "1234567890",
    "f00dbabe",
    "\\",
    "\\n",
    "%20",
    "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "password = correct-horse-battery\n",
        "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----\nb\n",
        "Authorization: Bearer ghp_0123456789abcdef0123456789abcdef0123\n{\"api_key\": \"0123456789abcdef\"}\n",
    ])
}

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([KNOWN.to_owned()]));

fn run(data: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(data);
    let secrets = REDACTOR.secrets(&text);
    let mut at = 0;
    for secret in &secrets {
        assert!(
            secret.range.start >= at && secret.range.end > secret.range.start,
            "in order, without overlap"
        );
        assert!(text.is_char_boundary(secret.range.start) && text.is_char_boundary(secret.range.end));
        at = secret.range.end;
    }
    let masked = REDACTOR.redact(&text);
    assert!(!masked.contains(KNOWN), "{masked:?}");
    assert_eq!(REDACTOR.finds(&text), !secrets.is_empty());
    // What lies around the secrets stays.
    let mut rest = &*masked;
    let mut from = 0;
    for secret in &secrets {
        let between = &text[from..secret.range.start];
        assert!(rest.starts_with(between), "{between:?} is missing");
        rest = &rest[between.len()..];
        rest = rest.strip_prefix(tiller_protocol::mask::mask(secret.name).as_str()).unwrap_or_default();
        from = secret.range.end;
    }
    assert_eq!(rest, &text[from..]);
    // In pieces a known value is found as well.
    let mut stream = RedactStream::new(REDACTOR.clone());
    let mut streamed = String::new();
    let mut from = 0;
    for cut in text_cuts(&text, 6).into_iter().chain([text.len()]) {
        streamed.push_str(&stream.push(&text[from..cut]));
        from = cut;
    }
    streamed.push_str(&stream.finish());
    let long = text.lines().any(|l| l.len() > 2_000);
    assert!(long || !streamed.contains(KNOWN), "{streamed:?}");
    let mut outline = Outline::default();
    outline.size(secrets.len());
    secrets.iter().take(4).for_each(|s| outline.add((s.name, s.range.len().min(64) / 8)));
    outline.add(streamed == masked);
    outline.end()
}
