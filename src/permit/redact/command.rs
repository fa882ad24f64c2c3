//! Secrets on command lines, and in files where other programs keep secrets.

use std::ops::Range;

use crate::redact::pattern::{LazyPattern, Span, group, regex};
use crate::redact::values::{is_random, is_value, placeholder};

/// How certain it is that the text is a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// Always a secret.
    Yes,
    /// A secret, or its name in a help text.
    Likely,
    /// Only when it is random: in code it is a word or a name.
    Random,
}

/// A word, with or without quotes. No part of these patterns counts to hundreds: each count is a copy of what it repeats,
/// and together they took four megabytes. [`parts`] bounds where they look.
const WORD: &str = r#"(?:"(?P<d>[^"\n]{3,})"|'(?P<s>[^'\n]{3,})'|(?P<b>[^\s"'|;<>]{4,}))"#;

/// The name of a variable whose value is a secret.
const NAME: &str =
    r"[A-Za-z0-9_.-]{0,40}(?i:TOKEN|SECRET|API[_-]?KEY|ACCESS[_-]?KEY|APP[_-]?KEY|PRIVATE[_-]?KEY)[0-9]{0,3}";
const PASSWORD: &str = r"[A-Za-z0-9_.-]{0,40}(?i:PASSWORD|PASSWD|PASSPHRASE|_PASS)";

/// Before a word; in a text of JSON a line end is spelt.
const START: &str = r"(?:\b|\\[nrt])";

/// The value is in the group `v`, or in [`WORD`], for which `WORD` stands.
const GIVEN: &[(&str, Certainty, &str)] = &[
    ("password", Certainty::Likely, r"--[a-z-]{0,30}(?:password|passwd|passphrase|pass)[ \t]{1,3}WORD"),
    ("secret", Certainty::Likely, r"--[a-z-]{0,30}(?:token|secret|api-?key)[ \t]{1,3}WORD"),
    (
        "password",
        Certainty::Yes,
        r#"START(?:curl|wget)\b(?:[^\n|;]|\\\n)*?[ \t](?:-[a-zA-Z]{0,8}[uU]|--user|--proxy-user)[ =]{0,2}\\{0,7}["']?[^\s:'"\\]*:(?P<v>[^\s'"\\]{3,})"#,
    ),
    (
        "password",
        Certainty::Likely,
        r"START(?:mysql[a-z]{0,10}|mariadb[a-z-]{0,10})\b(?:[^\n|;]|\\\n)*?[ \t]-pWORD",
    ),
    ("password", Certainty::Yes, r"STARTsshpass[ \t](?:-[a-oq-z][ \t]){0,3}-p[ \t]{0,3}WORD"),
    ("password", Certainty::Likely, r"STARTredis-cli\b[^\n|;]*?[ \t](?:-a|--pass)[ \t]{1,3}WORD"),
    ("password", Certainty::Likely, r"STARTlogin\b[^\n|;]*?[ \t]-p[ \t]{1,3}WORD"),
    ("password", Certainty::Yes, r"-pass(?:in|out)?[ \t]{1,3}pass:(?P<v>[^\s'\x22]{4,})"),
    (
        "registry token",
        Certainty::Likely,
        r#"(?:^|[\s:/"'])_auth["']?\s{0,3}[=:]\s{0,3}["']?(?P<v>[A-Za-z0-9+/=_-]{8,})"#,
    ),
    (
        "registry token",
        Certainty::Likely,
        r#"\\{0,7}"auth\\{0,7}"\s{0,3}:\s{0,3}\\{0,7}"(?P<v>[A-Za-z0-9+/=_-]{12,})"#,
    ),
    (
        "password",
        Certainty::Yes,
        r#"STARTmachine\s{1,9}\S+\s{1,9}(?:(?:login|account)\s{1,9}\S+\s{1,9}){0,2}password\s{1,9}(?P<v>[^\s\\"]{3,})"#,
    ),
    (
        "password",
        Certainty::Yes,
        r#"STARTdefault\s{1,9}(?:(?:login|account)\s{1,9}\S+\s{1,9}){1,2}password\s{1,9}(?P<v>[^\s\\"]{3,})"#,
    ),
    (
        "password",
        Certainty::Random,
        r"START(?:7z[ar]?|zip|unzip|rar|unrar)\b[^\n|;]*?[ \t]-[pP][ \t]{0,3}WORD",
    ),
    ("password", Certainty::Random, r"START(?:ldap[a-z]{3,8}|openssl)\b[^\n|;]*?[ \t]-[wk][ \t]{1,3}WORD"),
    (
        "password",
        Certainty::Random,
        r"STARThtpasswd\b[^\n|;]*?[ \t]-[a-zA-Z]{0,4}b[a-zA-Z]{0,4}[ \t][^\n|;]*?[ \t]WORD[ \t]{0,3}$",
    ),
    ("password", Certainty::Random, r"[ \t]-U[ \t]{0,3}[^\s%]{1,60}%(?P<v>[^\s'\x22]{4,})"),
    (
        "password",
        Certainty::Random,
        r"(?:echo|printf)[ \t]{1,3}(?:-[ne][ \t]{1,3})?WORD[ \t]{0,3}\|[ \t]{0,3}(?:sudo[ \t][^\n|;]{0,20}-S|[^\n|;]{0,80}-stdin|passwd|chpasswd|su\b)",
    ),
    ("password", Certainty::Likely, r"STARTrequirepass[ \t]{1,3}WORD"),
    // Files of variables in other forms: `ENV NAME value`, `- name: NAME` and `value: value` below.
    ("password", Certainty::Likely, r"START(?:ENV|setx|SETX)[ \t]{1,3}PASSWORD[ \t]{1,3}WORD"),
    ("secret", Certainty::Random, r"START(?:ENV|setx|SETX)[ \t]{1,3}NAME[ \t]{1,3}WORD"),
    (
        "password",
        Certainty::Random,
        r#"#define[ \t]{1,9}PASSWORD[ \t]{1,20}\\{0,7}"(?P<v>[^"\s\\]{6,})\\{0,7}""#,
    ),
    ("secret", Certainty::Random, r#"#define[ \t]{1,9}NAME[ \t]{1,20}\\{0,7}"(?P<v>[^"\s\\]{8,})\\{0,7}""#),
    (
        "password",
        Certainty::Likely,
        r#"name\\{0,7}["']?[:=]\s{0,3}\\{0,7}["']?PASSWORD\\{0,7}["']?,?(?:[\s+\-|>\d]|\\[nrt]){1,20}\\{0,7}["']?value\\{0,7}["']?[:=][ \t]{0,3}\\{0,7}["']?(?P<v>[^\s"'\\,}<>]{6,})"#,
    ),
    (
        "secret",
        Certainty::Random,
        r#"(?:name|key)\\{0,7}["']?[:=]\s{0,3}\\{0,7}["']?NAME\\{0,7}["']?,?(?:[\s+\-|>\d]|\\[nrt]){1,20}\\{0,7}["']?value\\{0,7}["']?[:=][ \t]{0,3}\\{0,7}["']?(?P<v>[^\s"'\\,}<>]{8,})"#,
    ),
    ("password", Certainty::Random, r"(?i:password|passwd|passphrase|secret|token)>(?P<v>[^\s<>&]{6,})</"),
    (
        "password",
        Certainty::Random,
        r"(?i:identified by|with password|for \S+ = password\()[ \t]{0,3}['\x22](?P<v>[^'\x22\n]{6,})['\x22]",
    ),
    (
        "password",
        Certainty::Random,
        r#"(?:auth=|BasicAuth)\(\s?["'][^"'\s]+["']\s?,\s?["'](?P<v>[^"'\n]{6,})["']"#,
    ),
    ("secret", Certainty::Random, r#"[Aa]uthorization["']\s?[:=]\s?["'](?P<v>[A-Za-z0-9._~+/=-]{16,})["']"#),
];

static PATTERN: LazyPattern = LazyPattern::new(|| regex(&pattern()));

/// All of [`GIVEN`] as one.
fn pattern() -> String {
    let all: Vec<String> = GIVEN
        .iter()
        .enumerate()
        .map(|(n, (_, _, pattern))| {
            // `PASSWORD` holds `WORD`.
            let mut pattern = pattern.replace("PASSWORD", "\0").replace("WORD", WORD).replace('\0', PASSWORD);
            pattern = pattern.replace("NAME", NAME).replace("START", START);
            // A name may be there once.
            for group in ["d", "s", "b", "v"] {
                pattern = pattern.replace(&format!("(?P<{group}>"), &format!("(?P<{group}{n}>"));
            }
            format!("(?:{pattern})")
        })
        .collect();
    format!("(?m){}", all.join("|"))
}

/// With one of these such a place begins.
pub(crate) const SIGNS: &[&str] = &[
    "curl",
    "wget",
    "mysql",
    "mariadb",
    "sshpass",
    "redis-cli",
    "login",
    "pass:",
    "_auth",
    "\"auth",
    "machine",
    "requirepass",
    "7z",
    "zip ",
    "rar ",
    "ldap",
    "openssl",
    "htpasswd",
    "smbclient",
    "rpcclient",
    "-stdin",
    "sudo ",
    "chpasswd",
    "identified by",
    "IDENTIFIED BY",
    "assword>",
    "asswd>",
    "assphrase>",
    "ecret>",
    "oken>",
    "ASSWORD>",
    "auth=(",
    "BasicAuth(",
    "uthorization'",
    "uthorization\"",
];

/// With one of these, when the name of a secret follows at once.
const NAMED: &[&str] =
    &["ENV ", "setx ", "SETX ", "#define", "name", "key\"", "WITH PASSWORD", "= PASSWORD(", "with password"];

/// And with this, when such a word follows.
const OPTIONS: &[&str] = &["pass", "token", "secret", "key"];

/// Bytes before and behind such a word that belong to its place.
const BEFORE: usize = 64;
const BEHIND: usize = 1024;
/// Bytes in which that name follows.
const NEAR: usize = 64;
/// Bytes of places that are looked at together.
const TOGETHER: usize = 4 << 10;

/// Parts of a text that may hold such a place: the pattern begins with anything, and is slow on what cannot match.
fn parts(text: &str) -> Vec<Range<usize>> {
    let option = |at: &usize| {
        let name = text.as_bytes()[at + 2..]
            .iter()
            .take(40)
            .take_while(|b| b.is_ascii_lowercase() || **b == b'-')
            .count();
        let name = &text[at + 2..at + 2 + name];
        OPTIONS.iter().any(|o| name.contains(o))
    };
    let mut starts: Vec<usize> = text.match_indices("--").map(|(at, _)| at).filter(option).collect();
    for sign in SIGNS {
        starts.extend(text.match_indices(sign).map(|(at, _)| at));
    }
    // What is printed for a program that asks for a password.
    let asks = |at: &usize| {
        let behind = text[at + 1..].bytes().skip_while(|b| matches!(b, b' ' | b'\t')).take(7);
        let word: Vec<u8> = behind.take_while(u8::is_ascii_lowercase).collect();
        word == b"su" || word.starts_with(b"passwd")
    };
    starts.extend(text.match_indices('|').map(|(at, _)| at).filter(asks));
    for sign in NAMED {
        let names = |at: &usize| {
            let end = text.floor_char_boundary((at + NEAR).min(text.len()));
            let near = text[*at..end].to_ascii_lowercase();
            OPTIONS.iter().any(|o| near.contains(o))
                && (*sign != "name" || near.contains("value") || near.contains('\n'))
        };
        starts.extend(text.match_indices(sign).map(|(at, _)| at).filter(names));
    }
    starts.sort_unstable();
    let mut parts: Vec<Range<usize>> = Vec::new();
    for at in starts {
        let from = text.floor_char_boundary(at.saturating_sub(BEFORE));
        let to = text.ceil_char_boundary((at + BEHIND).min(text.len()));
        match parts.last_mut() {
            Some(last) if from <= last.end && last.len() < TOGETHER => last.end = to,
            _ => parts.push(from..to),
        }
    }
    parts
}

/// Adds what is given to programs.
pub(crate) fn given(text: &str, found: &mut Vec<Span>) {
    for part in parts(text) {
        let Some(pattern) = PATTERN.get() else { return };
        let here = &text[part.clone()];
        for c in pattern.captures_iter(here.as_bytes()) {
            let hit = GIVEN.iter().enumerate().find_map(|(n, (name, sure, _))| {
                let of = |g: &str| group(here, &c, &format!("{g}{n}"));
                of("v")
                    .or_else(|| of("d"))
                    .or_else(|| of("s"))
                    .or_else(|| of("b"))
                    .map(|hit| (hit, *name, *sure))
            });
            let Some(((span, value), name, sure)) = hit else { continue };
            let secret = match sure {
                Certainty::Yes => !placeholder(value),
                Certainty::Likely => is_value(value),
                Certainty::Random => is_random(value),
            };
            if secret {
                found.push((part.start + span.start..part.start + span.end, name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that the compiled pattern may take.
    const SIZE: usize = 256 << 10;

    #[test]
    fn k_the_pattern_takes_little_memory() {
        // It is kept twice, for both directions, and what a search needs once more for each thread.
        let limited =
            regex::bytes::RegexBuilder::new(&format!("(?-u){}", pattern())).size_limit(SIZE).build();
        assert!(limited.is_ok(), "{:?}", limited.err());
    }

    /// Values of several hundred characters are masked to their end.
    #[test]
    fn a_long_value_is_masked_as_a_whole() {
        let value = "aB3xK9mQ2pL7wR5tY8uZ".repeat(30);
        for line in [
            format!("deploy --token {value} --yes"),
            format!("deploy --api-key '{value}'"),
            format!("curl -u me:{value} x"),
        ] {
            let shown = crate::redact::Redactor::default().redact(&line);
            assert!(!shown.contains("aB3x"), "{shown}");
            assert!(shown.starts_with(line.split_once("aB3x").unwrap().0), "{shown}");
        }
    }

    #[test]
    fn what_is_printed_for_a_program_that_asks_for_a_password_is_masked() {
        for behind in
            ["| passwd me", "|passwd", "| su - me", "|  su", "|su -c id", "| chpasswd", "| sudo -S id"]
        {
            let shown = crate::redact::Redactor::default()
                .redact(&format!("echo aB3xK9mQ2p {behind}\n"))
                .into_owned();
            assert_eq!(shown, format!("echo [redacted password] {behind}\n"));
        }
        let sums = "printf aB3xK9mQ2p | sum\n| summary | a |\n";
        assert_eq!(crate::redact::Redactor::default().redact(sums), sums);
    }
}
