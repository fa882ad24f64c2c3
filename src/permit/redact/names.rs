//! Which names say that their value is a secret: words of a name are looked at, wherever they stand in it.

use std::sync::LazyLock;

use crate::redact::hint::Words;
use crate::redact::shapes::RULES;

/// How a name says that its value is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Chosen by people.
    Password,
    /// Made by a machine.
    Secret,
    /// `DB_PASS`, `pw`: short words, by which other things are called, too.
    Short,
    /// `STRIPE_KEY`, `sessionkey`: mostly something else.
    Key,
    /// It names a vendor, whose rule has this number.
    Vendor(usize),
}

impl Class {
    /// The name in the mask of such a value.
    pub(crate) fn mask(self) -> &'static str {
        match self {
            Self::Password | Self::Short => "password",
            Self::Secret | Self::Key | Self::Vendor(_) => "secret",
        }
    }
}

/// With one of these, in any case, the name of a secret is found.
const FOUND: &[&str] = &[
    "pass", "pwd", "psk", "pw=", "pw:", "pw\"", "pw'", "pw ", "pw_", "pw\\", "secret", "token", "cred",
    "key", "auth", "jwt", "dsn", "pin=", "kennwort", "salt", "bearer",
];

/// Those, and the words of vendors.
pub(crate) static NAMES: LazyLock<Words> = LazyLock::new(|| {
    let vendors = RULES.vendors.iter().map(|(word, _)| (*word, 1));
    Words::new(FOUND.iter().map(|word| (*word, 0)).chain(vendors), true)
});

const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "passwort",
    "kennwort",
    "masterpass",
    "userpass",
];

const SECRETS: &[&str] = &[
    "secret",
    "secrets",
    "token",
    "apikey",
    "apisecret",
    "apitoken",
    "accesskey",
    "accesstoken",
    "secretkey",
    "secretkeybase",
    "privatekey",
    "authkey",
    "authtoken",
    "clientsecret",
    "appkey",
    "appsecret",
    "masterkey",
    "jwt",
    "credential",
    "credentials",
    "creds",
    "cred",
    "signingkey",
    "encryptionkey",
    "accountkey",
    "sharedkey",
    "sharedsecret",
    "servicekey",
    "sastoken",
    "bearer",
    "bearertoken",
    "refreshtoken",
    "sessiontoken",
    "usertoken",
    "bottoken",
    "webhooksecret",
    "tokensecret",
    "licensekey",
    "hmackey",
    "clientkey",
];

const SHORTS: &[&str] = &["pass", "pw", "psk", "auth", "authorization", "pin", "salt", "dsn", "masterauth"];

/// Words before `key` in the name of a secret.
const KEYS: &[&str] = &[
    "api",
    "access",
    "private",
    "signing",
    "encryption",
    "account",
    "auth",
    "client",
    "app",
    "master",
    "hmac",
    "shared",
    "secret",
    "service",
    "deploy",
    "license",
    "webhook",
    "admin",
    "root",
    "ssh",
    "jwt",
    "storage",
    "subscription",
    "server",
    "write",
    "read",
    "ingest",
    "instrumentation",
    "function",
    "functions",
    "integration",
    "project",
    "team",
    "user",
    "db",
    "database",
    "aes",
    "rsa",
    "hs256",
    "crypto",
    "cipher",
    "vault",
    "session",
];

/// Words that make another thing of `key`.
const PLAIN: &[&str] = &[
    "public",
    "pub",
    "primary",
    "foreign",
    "cache",
    "sort",
    "partition",
    "index",
    "map",
    "row",
    "idempotency",
    "group",
    "object",
    "routing",
    "translation",
    "unique",
    "lookup",
    "press",
    "down",
    "up",
    "code",
    "event",
    "binding",
    "host",
    "known",
    "store",
    "board",
    "frame",
    "word",
    "keyword",
    "hot",
    "registry",
    "verifying",
    "verification",
    "verify",
    "fingerprint",
    "hash",
    "digest",
    "checksum",
    "sha",
    "etag",
    "dedup",
    "order",
    "site",
    "id",
    "ids",
    "prefix",
    "suffix",
    "column",
    "field",
    "property",
    "attribute",
    "join",
    "block",
    "node",
    "tree",
];

/// What may follow such a word without a sign between them.
const GLUED: &[&str] =
    &["key", "base", "keybase", "value", "token", "secret", "string", "data", "hash", "file"];

/// Last words of names that are about a secret and do not hold one: `passwordPrompt`, `token_url`.
const ABOUT: &[&str] = &[
    "algorithm",
    "algo",
    "alg",
    "class",
    "color",
    "count",
    "dir",
    "endpoint",
    "env",
    "error",
    "expires",
    "expiry",
    "field",
    "file",
    "format",
    "header",
    "hint",
    "input",
    "kind",
    "label",
    "len",
    "length",
    "message",
    "name",
    "names",
    "param",
    "path",
    "pattern",
    "placeholder",
    "policy",
    "prompt",
    "provider",
    "regex",
    "size",
    "style",
    "text",
    "title",
    "ttl",
    "type",
    "uri",
    "url",
    "var",
    "version",
];

/// Words of a name, in lower case, without its digits and versions.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let signs: Vec<char> = name.chars().collect();
    let mut fresh = true;
    for (i, c) in signs.iter().enumerate() {
        let version = matches!(c, 'v' | 'V') && signs.get(i + 1).is_some_and(char::is_ascii_digit);
        if !c.is_ascii_alphabetic() || version {
            fresh = true;
            continue;
        }
        let before = i.checked_sub(1).map(|b| signs[b]);
        let camel = c.is_ascii_uppercase()
            && (before.is_some_and(|b| b.is_ascii_lowercase())
                || before.is_some_and(|b| b.is_ascii_uppercase())
                    && signs.get(i + 1..i + 3).is_some_and(|s| s.iter().all(char::is_ascii_lowercase)));
        if fresh || camel {
            all.push(String::new());
        }
        fresh = false;
        if let Some(word) = all.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    all
}

/// The rule of a vendor that the name holds.
pub(crate) fn vendor(name: &str) -> Option<usize> {
    let holds =
        |word: &str| name.as_bytes().windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()));
    RULES.vendors.iter().find(|(word, _)| holds(word)).map(|(_, rule)| *rule)
}

/// What the name says of its value, with the vendors; `None`: nothing.
pub(crate) fn said(name: &str, before: &str) -> Option<Class> {
    class(name, before).or_else(|| vendor(name).map(Class::Vendor))
}

/// What the name says of its value by its words; `None`: nothing. `before`: what stands before the name.
pub(crate) fn class(name: &str, before: &str) -> Option<Class> {
    let words = words(name);
    let last = words.last()?;
    if ABOUT.contains(&last.as_str()) {
        return None;
    }
    let any = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    let ends = |list: &[&str]| words.iter().any(|w| list.iter().any(|l| w.ends_with(l)));
    let begins = |list: &[&str]| {
        words.iter().any(|w| list.iter().any(|l| w.strip_prefix(l).is_some_and(|rest| GLUED.contains(&rest))))
    };
    if any(PASSWORDS) || ends(&["password", "passwd", "passphrase", "pwd"]) {
        return Some(Class::Password);
    }
    // `Secret key: ...`
    let above = before.strip_suffix(' ').and_then(|b| b.rsplit(|c: char| !c.is_ascii_alphabetic()).next());
    let above = above.unwrap_or_default().to_ascii_lowercase();
    let with_key = |i: usize| {
        let word = if i == 0 { above.as_str() } else { &words[i - 1] };
        KEYS.contains(&word)
    };
    let key = |i: &usize| matches!(words[*i].as_str(), "key" | "keys");
    let plain = any(PLAIN);
    if any(SECRETS)
        || ends(&["secret", "token", "apikey", "secretkey", "accesskey", "privatekey"])
        || begins(&["secret", "token", "password"])
        || (0..words.len()).filter(key).any(with_key) && !plain
    {
        return Some(Class::Secret);
    }
    let other = |w: &String| OTHERS.iter().any(|o| w.contains(o));
    if any(SHORTS) || words.iter().any(|w| (w.ends_with("pass") || w.ends_with("pw")) && !other(w)) {
        return Some(Class::Short);
    }
    let glued = ["key", "pass", "pwd", "secret", "token", "pw"];
    let part = |w: &String| glued.iter().any(|g| w.contains(g)) && !OTHERS.iter().any(|o| w.contains(o));
    (words.iter().any(part) && !plain).then_some(Class::Key)
}

/// What a name of several secrets says, which stand below it.
pub(crate) fn plural(name: &str) -> Option<Class> {
    let words = words(name);
    Some(match words.last()?.as_str() {
        "passwords" | "passphrases" => Class::Password,
        "tokens" | "apikeys" | "secrets" => Class::Secret,
        "keys" => Class::Key,
        _ => return None,
    })
}

/// Words that hold one of the above by chance.
const OTHERS: &[&str] = &[
    "compass",
    "lowpass",
    "highpass",
    "bandpass",
    "subpass",
    "renderpass",
    "bypass",
    "passage",
    "passenger",
    "passive",
    "passion",
    "passing",
    "passed",
    "passes",
    "passthrough",
    "surpass",
    "encompass",
    "trespass",
    "monkey",
    "turkey",
    "hotkey",
    "keyboard",
    "keyframe",
    "keyword",
    "keymap",
    "keyed",
    "jockey",
    "donkey",
    "whiskey",
    "hockey",
    "tokenizer",
    "tokenize",
    "tokens",
    "secretary",
    "keychain",
    "keyring",
    "keystroke",
    "keypress",
    "keydown",
    "keyup",
    "keycode",
    "keystone",
    "pubkey",
    "publickey",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_by_their_words() {
        assert_eq!(words("spring.dataSource-API_KEYv2"), ["spring", "data", "source", "api", "key"]);
        assert_eq!(words("HTTPToken2x"), ["http", "token", "x"]);
        for (name, want) in [
            ("PASSWORD_DB", Some(Class::Password)),
            ("dbpassword2", Some(Class::Password)),
            ("SECRET_STRIPE_V2", Some(Class::Secret)),
            ("ghToken", Some(Class::Secret)),
            ("secretkeybase", Some(Class::Secret)),
            ("PASS_DB", Some(Class::Short)),
            ("dbPass", Some(Class::Short)),
            ("KEY_STRIPE", Some(Class::Key)),
            ("DBPASS", Some(Class::Short)),
            ("compass", None),
            ("tokenizer", None),
            ("max_tokens", None),
            ("public_key", None),
            ("token_url", None),
            ("passwordPrompt", None),
            ("keyboard", None),
        ] {
            assert_eq!(class(name, ""), want, "{name}");
        }
        assert_eq!(class("key", "the Secret "), Some(Class::Secret));
    }
}
