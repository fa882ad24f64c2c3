//! Secrets of many kinds, as vendors and people write them, made anew from a seed.

use crate::common::Seed;

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const DIGITS: &str = "123456789";

/// What stands before, the secret's shape, what stands behind. `<a20>`: 20 letters and digits; `x` hex, `u`
/// upper case, `d` digits. The secret is the shape, or the part of it between `[` and `]`.
const KINDS: &[(&str, &str, &str)] = &[
    ("", "sk-ant-api03-<a80>", ""),
    ("", "sk-proj-<a48>", ""),
    ("key ", "sk-<a48>", "."),
    ("", "AIza<a35>", ""),
    ("", "ghp_<a36>", ""),
    ("", "github_pat_<a70>", ""),
    ("", "xoxb-<d12>-<a24>", ""),
    ("", "AKIA<u16>", ""),
    ("", "eyJ<a30>.eyJ<a60>.<a43>", ""),
    ("", "-----BEGIN RSA PRIVATE KEY----- [<a64>] -----END RSA PRIVATE KEY-----", ""),
    ("Authorization: Bearer ", "<a40>", ""),
    ("postgres://admin:", "<a16>", "@db.internal:5432/app"),
    ("password=", "<a16>", " x"),
    ("\"api_key\": \"", "<a24>", "\","),
    ("token: ", "<a32>", ""),
    ("export DB_PASSWORD='", "<a20>", "'"),
    ("aws_secret_access_key = ", "<a40>", ""),
    ("", "sk_live_<a24>", ""),
    ("", "npm_<a36>", ""),
    ("", "glpat-<a20>", ""),
    ("", "hf_<a34>", ""),
    ("", "SG.<a22>.<a43>", ""),
    ("", "pypi-AgEIcHlwaS5vcmc<a60>", ""),
    ("", "gsk_<a52>", ""),
    ("", "xai-<a80>", ""),
    ("client_secret: '", "<x40>", "'"),
    ("x-api-key: ", "<a32>", ""),
    ("", "dop_v1_<x64>", ""),
    ("", "shpat_<x32>", ""),
    ("SECRET_KEY := \"", "<a30>", "\""),
    ("{\"accessKey\":\"", "<a24>", "\"}"),
    ("", "ya29.<a60>", ""),
    ("", "AGE-SECRET-KEY-1<u58>", ""),
    ("", "<d10>:AA<a33>", ""),
    ("AccountKey=", "<a86>", "==;EndpointSuffix=x"),
    ("", "xoxp-<d11>-<a32>", ""),
    ("Cookie: session_id=", "<a27>", "; theme=dark"),
    ("mysql --password=", "<a18>", " -u root"),
    ("https://x-access-token:", "<a22>", "@github.com/o/r.git"),
    ("PASSWORD=\"", "<a6>!<a6>#9a", "\""),
];

/// One secret, and a line that holds it.
pub(crate) struct Seeded {
    pub(crate) secret: String,
    pub(crate) line: String,
}

/// `count` of them, of every kind in turn.
pub(crate) fn seeded(count: usize, seed: u64) -> Vec<Seeded> {
    let mut random = Seed(seed);
    (0..count).map(|n| one(KINDS[n % KINDS.len()], &mut random)).collect()
}

fn one((before, shape, after): (&str, &str, &str), random: &mut Seed) -> Seeded {
    let mut whole = String::new();
    let mut rest = shape;
    while let Some((plain, more)) = rest.split_once('<') {
        let (field, more) = more.split_once('>').unwrap();
        let (signs, count) = field.split_at(1);
        let signs = match signs {
            "a" => ALNUM,
            "x" => HEX,
            "u" => UPPER,
            _ => DIGITS,
        };
        whole.push_str(plain);
        for _ in 0..count.parse::<usize>().unwrap() {
            let at = usize::try_from(random.next().unwrap()).unwrap() % signs.len();
            whole.push(char::from(signs.as_bytes()[at]));
        }
        rest = more;
    }
    whole.push_str(rest);
    let secret = match whole.split_once('[') {
        Some((_, inner)) => inner.split_once(']').unwrap().0.to_owned(),
        None => whole.clone(),
    };
    let whole = whole.replace(['[', ']'], "");
    Seeded { secret, line: format!("{before}{whole}{after}") }
}
