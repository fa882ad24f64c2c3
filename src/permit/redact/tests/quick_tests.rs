//! How long masking takes: twice the text takes about twice as long, whatever it consists of, and ordinary text needs no
//! pattern.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::redact::Redactor;
use crate::redact::pattern::{Ahead, LOOKS};

#[test]
fn a_megabyte_is_quick() {
    // Unoptimised builds are some ten times slower; the figure guards against a loop in a loop.
    const LIMIT: Duration = Duration::from_secs(40);
    let text = ordinary(1 << 20);
    let redactor = Redactor::new((0..10).map(|i| format!("known-value-number-{i}")));
    let start = Instant::now();
    assert!(matches!(redactor.redact(&text), Cow::Borrowed(_)));
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    // No blank and no line end in sight.
    let solid = "x".repeat(1 << 20);
    assert!(matches!(redactor.redact(&solid), Cow::Borrowed(_)));
    assert!(start.elapsed() < LIMIT * 2, "{:?}", start.elapsed());
}

#[test]
fn ordinary_texts_need_no_expensive_look() {
    let redactor = Redactor::default();
    for text in [
        "PATH=/home/me/.cargo/bin:/usr/local/bin:/usr/bin",
        "HOME=/home/me",
        "LANG=C.UTF-8",
        "XDG_RUNTIME_DIR=/run/user/1000",
        "Read src/main.rs and say what the keys do: they open the key map.",
        "cargo test -p permit -- --nocapture",
        "fn main() { println!(\"{}\", first(items)); }",
        &ordinary(4 << 10),
    ] {
        let before = LOOKS.get();
        assert!(!redactor.finds(text));
        assert_eq!(LOOKS.get(), before, "{text}");
    }
    let before = LOOKS.get();
    assert!(redactor.finds(&format!("postgres://me:{}@db.test/app", "x7Kq".repeat(3))));
    assert!(LOOKS.get() > before, "patterns are counted");
}

#[test]
fn what_is_ahead_is_searched_once() {
    let text = b"..x...x..";
    let mut ahead = Ahead::new(text, |rest| rest.iter().position(|b| *b == b'x'));
    for (at, want) in [(1, 2), (0, 2), (2, 2), (3, 6), (5, 6), (1, 2), (7, 9), (9, 9)] {
        assert_eq!(ahead.next(at), want, "{at}");
    }
}

fn ordinary(len: usize) -> String {
    let line = "2026-11-21T20:00:00Z INFO request 5f2c1a7be0d94c1b done in 12 ms, user 42, at /a/b?c=d\n";
    repeated("", line, len)
}

fn repeated(head: &str, unit: &str, len: usize) -> String {
    let mut text = head.to_owned();
    text.push_str(&unit.repeat(len / unit.len() + 1));
    text
}

/// Names below names, each further in up to some depth.
fn deeper(name: &str, depth: usize, len: usize) -> String {
    let mut text = String::new();
    for n in 0.. {
        if text.len() >= len {
            break;
        }
        text.push_str(&" ".repeat(n % depth));
        text.push_str(name);
        text.push('\n');
    }
    text
}

/// What stands before the first one, and what is repeated. These were quadratic.
const REPEATED: &[(&str, &str)] = &[
    ("", "<key><![CDATA["),
    ("", "<key><![CDATA[ "),
    ("kind: Secret\n", "data:{"),
    ("kind: Secret\n", "data: "),
    ("kind: Secret\n", "data:\n "),
    ("", "a = \"b\" + \"c\"; token = \"aB3xK9mQ2pL7\"; "),
    ("", "-----BEGIN RSA PRIVATE KEY-----Comment:"),
    ("", "Comment: -----BEGIN RSA PRIVATE KEY-----Comment:\n"),
    ("", "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANaaaa1bbbb2cccc\n"),
    ("-----BEGIN RSA PRIVATE KEY-----\n", "Version:\\n"),
    ("", "MIIEvQIBADANaaaa1\n"),
    ("", "-----END RSA PRIVATE KEY-----"),
    ("", "curl --token x1y2z3w4 "),
];

/// Everything that opens something.
const OPENERS: &[&str] = &[
    "key=",
    "key:{",
    "keys = ['a', {",
    "\"",
    "'",
    "`",
    "\\\"",
    "\"\"\"",
    "r#\"",
    "<",
    "</",
    "<a",
    "<a b=\"",
    "<key>",
    "<key value=\"",
    "<!--",
    "<![CDATA[",
    "<?",
    "{",
    "[",
    "(",
    "{\"",
    "(\"",
    "key:",
    "key: ",
    "key:\n",
    "key: |\n",
    "key:[",
    "\"key\":\"",
    "\"key\":{\"",
    "key = \"",
    "key => '",
    "token ",
    "password=",
    "X_PASSWORD=Abc123!x,",
    "\\nX_PASSWORD=Abc123!x,",
    "name: TOKEN value: ",
    "key:key/value=",
    "\\",
    "\\\\",
    "\\n",
    "\\\n",
    "\"\n\"",
    "' + '",
    "%3D",
    "%22a",
    "%25",
    "%",
    "&quot;",
    "&",
    "QUJDREVGR0hJSktM",
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJz\n",
    "-----BEGIN ",
    "-----END ",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "-----END RSA PRIVATE KEY-----\n",
    "Private-Lines: 2\n",
    "Private-Lines: 2\nMIIEvQIBADANaaaa1\n",
    "Version:",
    "\"d\":\"",
    "\"d\":",
    "kind: Secret\n",
    "kind: Secret\n---\n",
    "\"data\":{\"a\":\"",
    "curl -u ",
    "--token ",
    "mysql -p",
    "echo a1b2c3d4 |",
    "://",
    "://a:b",
    "a@",
    "sk-",
    "ghp_",
    "|",
    "1234567890123456|",
    "a.b",
    "Bearer ",
    "==> .env <==\n",
    "A=\"",
    "$ cat .env\n",
    ".env:1:A=b\n",
    ".env-A=b ",
    "+++ ",
    "--- a/.env\n",
    "@@ ",
    "*:*:*:a:",
    "machine a login b ",
    "login ",
    "a,",
    "é",
    "\r",
    " ",
    "\n",
];

fn all_of(len: usize) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (head, unit) in REPEATED {
        all.push((format!("{head:?} {unit:?}"), repeated(head, unit, len)));
    }
    for depth in [60, 4000] {
        all.push((format!("key: {depth} deep"), deeper("key:", depth, len)));
        all.push((format!("data: {depth} deep"), format!("kind: Secret\n{}", deeper("data:", depth, len))));
    }
    let joints = "a = \"b\" + \"c\";".to_owned() + &" ".repeat(1200);
    all.push(("joints apart".into(), repeated("", &joints, len)));
    let body = "aB3x".repeat(len / 8);
    all.push((
        "ends on one line".into(),
        repeated(&format!("{body}\n"), "-----END RSA PRIVATE KEY-----", len / 2),
    ));
    all
}

fn cost(redactor: &Redactor, text: &str) -> Duration {
    let start = Instant::now();
    let _ = redactor.secrets(text);
    start.elapsed()
}

/// The texts whose cost grows faster than they do. `make` makes them of some length.
fn slow(len: usize, make: impl Fn(usize) -> Vec<(String, String)>) -> Vec<String> {
    /// How many times as long as the shorter text the longer one is.
    const TIMES: usize = 8;
    /// Twice the text must take less than four times: about three.
    const GROWTH: u32 = 24;
    let redactor = Redactor::default();
    let usual = cost(&redactor, &ordinary(len)).max(cost(&redactor, &ordinary(len)));
    let small = make(len / TIMES);
    let mut slow = Vec::new();
    for ((what, long), (_, short)) in make(len).iter().zip(&small) {
        let (mut most, mut least) = (Duration::MAX, Duration::ZERO);
        // On a busy machine one measure may take any time.
        for _ in 0..5 {
            most = most.min(cost(&redactor, long));
            if most < usual * 10 {
                break;
            }
            least = least.max(cost(&redactor, short));
            if most < least * GROWTH {
                break;
            }
        }
        if std::env::var_os("TILLER_SHOW_COST").is_some() {
            println!("{most:?} {least:?} {what}");
        }
        if most >= usual * 10 && most >= least * GROWTH {
            slow.push(format!("{what}: {most:?}, and {least:?} for a part of {TIMES}"));
        }
    }
    slow
}

#[test]
fn hostile_texts_cost_no_more_than_their_length() {
    let slow = slow(256 << 10, all_of);
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

/// Each opener by itself, and before each of some others.
#[test]
fn whatever_opens_over_and_over_costs_no_more_than_its_length() {
    let make = |len: usize| {
        let mut seed = 0x5EED_0038_u64;
        let mut pick = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            OPENERS[usize::try_from(seed >> 33).unwrap() % OPENERS.len()]
        };
        let mut units: Vec<String> = OPENERS.iter().map(|&o| o.to_owned()).collect();
        units.extend((0..30).map(|_| format!("{}{}{}", pick(), pick(), pick())));
        units
            .into_iter()
            .map(|unit| (format!("{unit:?}"), repeated("kind: Secret .env\n", &unit, len)))
            .collect()
    };
    let slow = slow(8 << 10, make);
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}
