//! Removal of text that has the shape of a secret, for recordings.

/// Beginnings of keys, and how many characters must follow.
const SHAPES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("xai-", 16),
    ("gsk_", 16),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("npm_", 20),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("hf_", 20),
    ("Bearer ", 16),
    ("eyJ", 40),
];
/// Stands for a secret.
const MARK: &str = "[secret removed]";

fn is_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '=' | '/' | '+')
}

/// `text` without secrets; `None`: there is none in it.
pub(crate) fn redact(text: &str) -> Option<String> {
    if !SHAPES.iter().any(|(start, _)| text.contains(start)) && !text.contains("PRIVATE KEY-----") {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    'text: while let Some(c) = rest.chars().next() {
        // In the middle of a word nothing begins.
        let fresh = !out.chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric());
        if fresh {
            for (start, least) in SHAPES {
                let Some(body) = rest.strip_prefix(start) else { continue };
                let length = body.find(|c| !is_key(c)).unwrap_or(body.len());
                if length >= *least {
                    out.push_str(MARK);
                    rest = &body[length..];
                    found = true;
                    continue 'text;
                }
            }
            if rest.starts_with("-----BEGIN ")
                && let Some(end) = rest.find("PRIVATE KEY-----").and_then(|at| {
                    let after = &rest[at + 16..];
                    after.find("PRIVATE KEY-----").map(|end| at + 16 + end + 16)
                })
            {
                out.push_str(MARK);
                rest = &rest[end..];
                found = true;
                continue;
            }
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_secrets_go() {
        let a40 = "a1B2".repeat(10);
        for (text, want) in [
            (format!("key sk-ant-api03-{a40}, ok"), Some(format!("key {MARK}, ok"))),
            (format!("export X='AIza{a40}'"), Some(format!("export X='{MARK}'"))),
            (format!("Authorization: Bearer {a40}\nnext"), Some(format!("Authorization: {MARK}\nnext"))),
            ("task-list and risk-free sk-short".into(), None),
            (
                format!("-----BEGIN RSA PRIVATE KEY-----\n{a40}\n-----END RSA PRIVATE KEY-----\nafter"),
                Some(format!("{MARK}\nafter")),
            ),
            ("plain füße".into(), None),
        ] {
            assert_eq!(redact(&text), want, "{text}");
        }
    }
}
