use super::*;
use crate::redact::stream::MAX_HELD;

/// The figure of row X8.
const SEEDED: usize = 200;

/// A small generator with a seed (xorshift), so that a failure can be repeated.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn text(&mut self, signs: &str, len: usize) -> String {
        let signs: Vec<char> = signs.chars().collect();
        (0..len).map(|_| signs[self.next() as usize % signs.len()]).collect()
    }
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A secret of shape `kind`: what must not be left, and the text around it.
fn seed(kind: usize, r: &mut Rng) -> (String, String) {
    let one = |s: String| (s.clone(), s);
    let around = |s: String, before: &str, after: &str| (s.clone(), format!("{before}{s}{after}"));
    match kind {
        0 => one(format!("sk-ant-api03-{}", r.text(ALNUM, 80))),
        1 => one(format!("sk-proj-{}", r.text(ALNUM, 48))),
        2 => one(format!("sk-{}", r.text(ALNUM, 48))),
        3 => one(format!("AIza{}", r.text(ALNUM, 35))),
        4 => one(format!("ghp_{}", r.text(ALNUM, 36))),
        5 => one(format!("github_pat_{}", r.text(ALNUM, 70))),
        6 => one(format!("xoxb-{}-{}", r.text("0123456789", 12), r.text(ALNUM, 24))),
        7 => one(format!("AKIA{}", r.text(UPPER, 16))),
        8 => one(format!("eyJ{}.eyJ{}.{}", r.text(ALNUM, 30), r.text(ALNUM, 60), r.text(ALNUM, 43))),
        9 => {
            let body = r.text(ALNUM, 64);
            let key = format!(
                "-----BEGIN RSA PRIVATE KEY-----\n{body}\n{}\n-----END RSA PRIVATE KEY-----",
                r.text(ALNUM, 64)
            );
            (body, key)
        }
        10 => around(r.text(ALNUM, 40), "Authorization: Bearer ", "\n"),
        11 => around(r.text(ALNUM, 16), "postgres://admin:", "@db.internal:5432/app"),
        12 => around(r.text(ALNUM, 16), "password=", " "),
        13 => around(r.text(ALNUM, 24), "\"api_key\": \"", "\","),
        14 => around(r.text(ALNUM, 32), "token: ", "\n"),
        15 => around(r.text(ALNUM, 20), "export DB_PASSWORD='", "'\n"),
        16 => around(r.text(ALNUM, 40), "aws_secret_access_key = ", "\n"),
        17 => one(format!("sk_live_{}", r.text(ALNUM, 24))),
        18 => one(format!("npm_{}", r.text(ALNUM, 36))),
        19 => one(format!("glpat-{}", r.text(ALNUM, 20))),
        20 => one(format!("hf_{}", r.text(ALNUM, 34))),
        21 => one(format!("SG.{}.{}", r.text(ALNUM, 22), r.text(ALNUM, 43))),
        22 => one(format!("pypi-AgEIcHlwaS5vcmc{}", r.text(ALNUM, 60))),
        23 => one(format!("gsk_{}", r.text(ALNUM, 52))),
        24 => one(format!("xai-{}", r.text(ALNUM, 80))),
        25 => around(r.text(HEX, 40), "client_secret: '", "'"),
        26 => around(r.text(ALNUM, 32), "x-api-key: ", "\r\n"),
        27 => one(format!("dop_v1_{}", r.text(HEX, 64))),
        28 => one(format!("shpat_{}", r.text(HEX, 32))),
        29 => around(r.text(ALNUM, 30), "SECRET_KEY := \"", "\""),
        30 => around(r.text(ALNUM, 24), "{\"accessKey\":\"", "\"}"),
        31 => one(format!("ya29.{}", r.text(ALNUM, 60))),
        32 => one(format!("AGE-SECRET-KEY-1{}", r.text(UPPER, 58))),
        33 => one(format!("{}:AA{}", r.text("123456789", 10), r.text(ALNUM, 33))),
        34 => around(r.text(ALNUM, 88), "AccountKey=", "==;EndpointSuffix=x"),
        35 => one(format!("xoxp-{}-{}", r.text("0123456789", 11), r.text(ALNUM, 32))),
        36 => around(r.text(ALNUM, 27), "Cookie: session_id=", "; theme=dark"),
        37 => around(r.text(ALNUM, 18), "mysql --password=", " -u root"),
        38 => around(r.text(ALNUM, 22), "https://x-access-token:", "@github.com/o/r.git"),
        _ => around(format!("{}!{}#9a", r.text(ALNUM, 6), r.text(ALNUM, 6)), "PASSWORD=\"", "\""),
    }
}

const KINDS: usize = 40;
const PROSE: [&str; 4] = [
    "The build took 12.3 s and wrote target/debug/app. ",
    "fn main() { let token = next_token(); println!(\"{token}\"); }\n",
    "commit 5f2c1a7be0d94c1b8f6a3e2d1c0b9a8f7e6d5c4b\n",
    "see https://docs.rs/serde/1.0.229/serde/#features ",
];

#[test]
fn x8_no_seeded_secret_is_left() {
    let mut rng = Rng(0x5EED_0001);
    let redactor = Redactor::new([]);
    let mut all = String::new();
    let mut secrets = Vec::new();
    for i in 0..SEEDED {
        let (secret, text) = seed(i % KINDS, &mut rng);
        all.push_str(PROSE[i % PROSE.len()]);
        all.push_str(&text);
        all.push(' ');
        // Each alone as well: neighbours must not be what helps.
        let alone = redactor.redact(&text).into_owned();
        assert!(!alone.contains(&secret), "kind {}: {alone}", i % KINDS);
        secrets.push(secret);
    }
    let clean = redactor.redact(&all).into_owned();
    let left: Vec<&String> = secrets.iter().filter(|s| clean.contains(s.as_str())).collect();
    assert!(left.is_empty(), "{left:?}");
    // What was masked is not masked again, and the prose is still there.
    assert_eq!(redactor.redact(&clean), clean);
    assert!(clean.contains("fn main() { let token = next_token(); println!(\"{token}\"); }"));
    assert!(clean.contains("commit 5f2c1a7be0d94c1b8f6a3e2d1c0b9a8f7e6d5c4b"));
}

#[test]
fn x8_two_hundred_secrets_of_all_kinds_are_found_alone_and_in_the_middle_of_things() {
    let redactor = Redactor::default();
    let mut left = Vec::new();
    for s in tiller_testkit::seeded(SEEDED, 0x5EED_0013) {
        let json = serde_json::json!({ "content": format!("one\n{}\nthree", s.line) }).to_string();
        for text in [
            s.line.clone(),
            format!("so:\n{}\nend\n", s.line),
            format!("+{}\n", s.line),
            format!("12\t{}\n", s.line),
            json,
        ] {
            let masked = redactor.redact(&text);
            if masked.contains(&s.secret) {
                left.push(text.clone());
            }
            assert_eq!(redactor.redact(&masked), masked, "what is masked is not masked again");
        }
    }
    assert!(left.is_empty(), "{} are left:\n{}", left.len(), left.join("\n"));
}

#[test]
fn x8_streams_and_growing_words_hide_what_the_whole_hides() {
    let redactor = Redactor::default();
    let mut wrong = Vec::new();
    for s in tiller_testkit::seeded(SEEDED, 0x5EED_0014) {
        let text = format!("see\n{}\nend\n", s.line);
        let begin = text.find(&s.secret).unwrap();
        for end in (begin + 1..begin + s.secret.len()).filter(|e| text.is_char_boundary(*e)) {
            let shown = &text[..end];
            // The first words of a password of words are words.
            let word = shown.rfind(char::is_whitespace).map_or(0, |i| i + 1);
            let hidden = || !redactor.redact(shown).ends_with(&text[begin.max(word)..end]);
            if !(shown.ends_with(' ') || redactor.may_grow(shown) || hidden()) {
                wrong.push(format!("shown: {shown}"));
            }
        }
        for cut in (0..text.len()).filter(|i| text.is_char_boundary(*i)) {
            let mut stream = RedactStream::new(redactor.clone());
            let out = stream.push(&text[..cut]) + &stream.push(&text[cut..]) + &stream.finish();
            if out.contains(&s.secret) || !out.starts_with("see\n") || !out.ends_with("\nend\n") {
                wrong.push(format!("cut at {cut}: {out}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn x8_no_part_of_a_secret_is_shown_while_it_comes() {
    let mut rng = Rng(0x5EED_0004);
    for i in 0..SEEDED {
        let (secret, text) = seed(i % KINDS, &mut rng);
        let redactor = Redactor::new((i % 3 == 0).then(|| secret.clone()));
        for before in ["", "so: ", "+", "(", "line\n", "\"", "a/b/"] {
            let text = format!("{before}{text}");
            let begin = text.find(&secret).unwrap();
            // Where the path before it hides nothing, nothing is lost by showing it as it grows.
            for end in begin + 1..begin + secret.len() {
                let shown = &text[..end];
                let hidden = || !redactor.redact(shown).ends_with(&text[begin..end]);
                let never = || redactor.redact(&text).contains(&secret);
                assert!(redactor.may_grow(shown) || hidden() || never(), "kind {}: {shown}", i % KINDS);
            }
        }
    }
}

#[test]
fn x8_an_added_line_of_a_diff_and_a_text_in_json_hide_nothing() {
    let mut rng = Rng(0x5EED_0003);
    let redactor = Redactor::new([]);
    for kind in 0..KINDS {
        let (secret, text) = seed(kind, &mut rng);
        let diff: String = text.lines().map(|l| format!("+{l}\n")).collect();
        let diff = redactor.redact(&format!("@@ -0,0 +1,2 @@\n{diff}")).into_owned();
        assert!(!diff.contains(&secret), "kind {kind}: {diff}");
        let json = serde_json::json!({"content": format!("one\n{text}\nthree")}).to_string();
        let masked = redactor.redact(&json).into_owned();
        assert!(!masked.contains(&secret), "kind {kind}: {masked}");
        // And once more: a text of JSON in a text of JSON.
        let json = serde_json::json!({ "arguments": json }).to_string();
        let masked = redactor.redact(&json).into_owned();
        assert!(!masked.contains(&secret), "kind {kind}: {masked}");
    }
}

/// A name and its value on two lines: each has a sign of its own in a diff, a number in a listing.
#[test]
fn x8_a_value_below_its_name_is_masked_in_a_diff_and_a_listing() {
    for text in [
        "+- name: DB_PASSWORD\n+  value: \"9qUqkSolG8mIUG\"\n",
        "-- name: DB_PASSWORD\n-  value: 9qUqkSolG8mIUG\n",
        "  12|- name: DB_PASSWORD\n  13|  value: \"9qUqkSolG8mIUG\"\n",
    ] {
        let clean = Redactor::default().redact(text).into_owned();
        assert!(!clean.contains("9qUqkSolG8mIUG"), "{clean}");
    }
}

#[test]
fn x8_a_stream_cut_anywhere_leaves_none() {
    let mut rng = Rng(0x5EED_0002);
    for kind in 0..KINDS {
        let (secret, text) = seed(kind, &mut rng);
        let whole = format!("before\n{text}\nafter\n");
        for cut in (0..whole.len()).filter(|i| whole.is_char_boundary(*i)) {
            let mut stream = RedactStream::new(Redactor::new([]));
            let mut out = stream.push(&whole[..cut]);
            out.push_str(&stream.push(&whole[cut..]));
            out.push_str(&stream.finish());
            assert!(!out.contains(&secret), "kind {kind}, cut at {cut}: {out}");
            assert!(out.starts_with("before\n") && out.ends_with("after\n"), "{out}");
        }
    }
}

#[test]
fn known_values_are_masked_in_every_form() {
    let key = "correct horse/battery+staple".to_owned();
    let redactor = Redactor::new([key.clone(), "ab".into()]);
    let encoded = base64(key.as_bytes());
    for text in [
        format!("key={key}"),
        format!("?k={}", percent(&key)),
        format!("data {encoded}"),
        serde_json::json!({ "k": key }).to_string(),
    ] {
        let clean = redactor.redact(&text).into_owned();
        assert!(clean.contains("[redacted known key]"), "{clean}");
        assert!(!clean.contains(&key) && !clean.contains(&encoded), "{clean}");
    }
    // Too short to be told from text.
    assert_eq!(redactor.redact("about"), "about");
    assert!(!format!("{redactor:?}").contains("horse"));
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let redactor = Redactor::new([]);
    for text in [
        "commit 5f2c1a7be0d94c1b8f6a3e2d1c0b9a8f7e6d5c4b",
        "id 0192f0c1-7b5a-7c3e-9d2f-4a5b6c7d8e9f",
        "checksum = \"c4c6fb2cc1b1b1c0e9c0a3f5d4f3b2a1c4c6fb2cc1b1b1c0e9c0a3f5d4f3b2a1\"",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "integrity sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",
        "let token = self.next_token()?;",
        "const MAX_TOKENS: usize = 128_000;",
        "input_tokens: 123456789, output_tokens: 42",
        "tokenizer = \"cl100k_base_v2x\"",
        "pub fn secret_value(value: &str) -> bool {",
        "password: String,",
        "password = \"your-password-here\"",
        "api_key = os.environ[\"OPENAI_API_KEY\"]",
        "api_key_env = \"ANTHROPIC_API_KEY\"",
        "token = ${GITHUB_TOKEN}",
        "Authorization: Bearer <token>",
        "https://example.org/a/b?page=2",
        "sk-learn and sk-fading-circle are names",
        "npm_config_registry=https://registry.example",
        "xoxo and AKIA are words",
        "git@github.com:owner/repo.git",
        "http://localhost:8080/path",
        "class=\"sk-button-primary-large\"",
        "key-value-store-of-the-project",
        "the secret of success: patience",
        "pwd = os.getcwd()",
        "passwd = getpass('Password: ')",
        "password = parsed.password",
        "user, password = get_auth_from_url(proxy)",
        "signingKey: Uint8Array",
        "pub const ERROR_WRONG_PASSWORD: WIN32_ERROR = 1323u32;",
        "pub static kPPPAuthPassword: CFStringRef;",
        "pub Token: D3DKMT_PRESENTHISTORYTOKEN_0,",
        "let options = PasswordOptions::new_generic_password(service, account);",
        "private_key: ed25519.Ed25519PrivateKey,",
        "password: typing.Optional[bytes],",
        "generate_private_key: x25519_generate_private_key,",
        "dot2_token: node.dot2_token,",
        "passwordPrompt = 'npm password: '",
        "password: \"Enter your password again\",",
        "password_file = \"/run/secrets/db-2\"",
        "token_url = \"auth2.internal/v2\"",
        "https://blog.test/posts/sk-test-driven-development-2024-guide",
        "https://blog.test/pa-school-district-budget-2024-report-final",
        "https://blog.test/secret-santa-2025-gift-exchange-ideas-list",
        "postgres://user:password@localhost/db and ftp://me:hunter22x@example.com/",
        "--token TOKEN  the token to send",
        "--password <PASSWORD>, or --password $PASS",
        "docker run -u 1000:1000 -p 8080:80 app",
        "mysql -u root -p app",
        "curl -u user:$PASS https://example.org",
        "login with -p or --password",
        "\"auth\": \"required\", _auth = true",
        "assert token == expected_token2",
        "password: \"Enter your password for http2\",",
        "password: \"use sha256\",",
        "compass = \"north42west9\"",
        "bypass_cache2 = true",
        "render_pass = \"shadow_map_pass2\"",
        "pass: \"two-pass\",",
        "let pass = Pass::new(\"first\");",
        "PASS=12/12 FAIL=0",
        "PASSWORD=test",
        "passwd=pw1x",
        "#define TOKEN_KIND 0x12ab34cd56ef",
        "#define MAX_TOKEN \"identifier\"",
        "ENV TOKEN_FILE /run/secrets/token2",
        "name: token\nvalue: the first one",
        "- name: TOKEN_COUNT\n  value: 128",
        "Vec<Token>(x)</b>",
        "const token: string = getToken();",
        "cio is short, dapi too, and EAAA",
        "data:font/woff2;base64,d09GMgABAAAAAcioA1b2C3d4E5f6A1b2C3d4E5f6A1b2C3d4E5f6",
        "curl -u user https://example.org",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ] {
        assert_eq!(redactor.redact(text), text);
    }
}

#[test]
fn json_is_cleaned_by_key_and_value() {
    let redactor = Redactor::new(["verysecretvalue".into()]);
    let mut value = serde_json::json!({
        "url": "postgres://u:hunter22x@h/d",
        "nested": [{ "password": "tr0ub4dor&3" }, "verysecretvalue"],
        "count": 3,
        "content": "nothing here",
    });
    redactor.redact_json(&mut value);
    let text = value.to_string();
    for secret in ["hunter22x", "tr0ub4dor", "verysecretvalue"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(text.contains("nothing here") && text.contains("\"count\":3"));
}

#[test]
fn keys_inside_escaped_json_are_masked() {
    let redactor = Redactor::new([]);
    for depth in 0..3 {
        let mut json = serde_json::json!({"user": "me", "password": "tr0ub4dor&3"}).to_string();
        for _ in 0..depth {
            json = serde_json::Value::from(json).to_string();
        }
        let masked = redactor.redact(&json).into_owned();
        assert!(!masked.contains("tr0ub4dor"), "{depth}: {masked}");
        assert!(masked.contains("password") && masked.contains("me"), "{depth}: {masked}");
    }
    // A quoted piece of code is none.
    let code = r#"{"new": "let token = \"cargo test\";"}"#;
    assert_eq!(redactor.redact(code), code);
}

#[test]
fn a_stream_without_line_ends_is_bounded() {
    let mut stream = RedactStream::new(Redactor::new([]));
    let mut out = String::new();
    for _ in 0..200 {
        out.push_str(&stream.push(&"é".repeat(300)));
        assert!(stream.held.len() <= 2 * MAX_HELD);
    }
    out.push_str(&stream.finish());
    assert_eq!(out.chars().count(), 200 * 300);
}

mod forms {
    use proptest::prelude::*;
    use proptest::string::bytes_regex;
    use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

    use super::*;
    use crate::redact::shapes::{RULES, random};
    use crate::redact::values::{entropy, strong};

    fn from(pattern: &str) -> impl Strategy<Value = String> + use<> {
        // The end of the text is there by itself.
        let pattern = format!("(?s-u:{})", pattern.replace("\\b", ""));
        // What is no text reads as letters; a vertical tab is a blank of patterns.
        let is_text = |b: u8| b.is_ascii_graphic() || b.is_ascii_whitespace() || b == 0x0b;
        let sign = move |b: u8| {
            char::from(if is_text(b) { b } else { ALNUM.as_bytes()[usize::from(b) % ALNUM.len()] })
        };
        bytes_regex(&pattern).unwrap().prop_map(move |bytes| bytes.into_iter().map(sign).collect())
    }

    #[test]
    fn each_row_of_the_rules_finds_what_has_its_form() {
        // One runner ends after so many cases, whatever it runs.
        let runner = || {
            let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) };
            TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        };
        let redactor = Redactor::default();
        let rows: Vec<&str> =
            include_str!("../vendors/rules.txt").lines().filter(|r| !r.starts_with('#')).collect();
        assert!(rows.len() > 100, "{}", rows.len());
        assert_eq!(RULES.rules.len(), rows.len());
        let (mut unseen, mut left) = (Vec::new(), Vec::new());
        for (row, rule) in rows.iter().zip(&RULES.rules) {
            assert!(rule.regex().is_some(), "{row}");
            for sign in row.split('\t').nth(1).unwrap().split(' ') {
                let asserted = std::cell::Cell::new(0);
                let seen = runner().run(&from(rule.form), |secret| {
                    let text = match sign.as_bytes()[0] {
                        b'~' => format!("so {secret} is"),
                        b'@' => format!("{}_x: \"{secret}\"", &sign[1..]),
                        _ => format!("so {sign}{secret} is"),
                    };
                    // The generator also makes what people write in examples, and words.
                    let whole = text.trim_start_matches("so ").trim_end_matches(" is");
                    let plain: String = secret.chars().filter(char::is_ascii_alphanumeric).collect();
                    let has = |is: fn(&char) -> bool| plain.chars().any(|c| is(&c));
                    let mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
                    let by_sign = !sign.starts_with('@') && plain.len() >= 12;
                    let sure = strong(&plain) || mixed && entropy(&plain) > if by_sign { 2.5 } else { 3.0 };
                    let random = secret.len() < 3 << 10 && random(whole) && sure;
                    let shown = redactor.redact(&text).into_owned();
                    prop_assert!(!random || !shown.contains(&secret), "{text}");
                    asserted.set(asserted.get() + usize::from(random));
                    Ok(())
                });
                if let Err(why) = seen {
                    left.push(format!("{row}: {why}"));
                }
                if asserted.get() == 0 {
                    unseen.push(format!("{sign} in {row}"));
                }
            }
        }
        assert!(left.is_empty(), "left are:\n{}", left.join("\n"));
        assert!(unseen.is_empty(), "nothing was asserted of:\n{}", unseen.join("\n"));
    }
}

/// A type is no value, but what stands where a type could stand may be one.
#[test]
fn values_that_look_like_types_are_masked_where_no_type_can_be() {
    let redactor = Redactor::new([]);
    for text in [
        "password: Xk7Qz_Pw9vR2",
        "password=CFSTRINGREF_77x",
        "token: Zq8rT2xLm4Nv7,",
        "secret: 7hQ_9xPm2Lv;",
        "DB_PASSWORD=a3B!",
        "export PASSWORD=k9q2z",
    ] {
        assert_ne!(redactor.redact(text), text);
    }
}
