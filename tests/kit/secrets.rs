//! Generates secrets of many kinds, in the forms of vendors and people, from a seed.

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const DIGITS: &str = "123456789";
const WORDS: &[&str] =
    &["correct", "Horse", "battery", "staple", "Winter", "copper", "kettle", "Violet", "harbour", "seven"];

/// Text before the secret, the secret's pattern, text after it. `<a20>`: 20 letters and digits; `x` hex, `u` upper
/// case, `l` lower case, `b` base 58, `d` digits, `w` words. The secret is the pattern, or the part of it between `[`
/// and `]`.
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
    // Secrets that other programs keep in their own files.
    ("//registry.example.org/:_auth=", "<a40>", "=="),
    ("//registry.example.org/:_authToken=", "<l8>-<l4>-<l4>-<l12>", ""),
    ("_password = ", "<a28>", "=="),
    ("machine api.example.org login me password ", "<a18>", ""),
    ("machine api.example.org login me account x password ", "<l14>", ""),
    ("{\"auths\":{\"ghcr.io\":{\"auth\":\"", "<a44>", "==\"}}}"),
    ("{\"identitytoken\": \"", "<a36>", "\"}"),
    // On command lines.
    ("curl -u admin:", "<a16>", " https://api.example.org/v1"),
    ("curl -sS --user 'me:", "<a6>$<a8>", "' https://api.example.org"),
    ("docker login -u me --password ", "<a20>", " ghcr.io"),
    ("tool push --password '", "<a8>%<a6>", "' --yes"),
    ("tool push --token ", "<a24>", " --yes"),
    ("mysql -u root -p", "<a14>", " app < dump.sql"),
    ("mysqldump --user=root -p'", "<a6>&<a6>", "' app"),
    ("sshpass -p ", "<a12>", " ssh me@host"),
    ("sshpass -p '", "<a5> <a5>", "' ssh me@host"),
    ("PGPASSWORD=", "<a14>", " psql -h db"),
    ("redis-cli -a ", "<a24>", " ping"),
    // Vendors that were missed at first.
    ("", "SK<x32>", ""),
    ("TWILIO_AUTH_TOKEN=", "<x32>", ""),
    ("", "EAACEdEose0cBA<a90>", ""),
    ("", "<x32>-us<d2>", ""),
    ("", "xprv9s21ZrQH143K<b95>", ""),
    ("", "sqp_<x40>", ""),
    ("", "glc_<a60>", ""),
    ("", "ATATT3xFfGF0<a120>", ""),
    ("", "ATCTT3xFfGN0<a120>", ""),
    ("key ", "cio<a32>", "\n"),
    ("", "dapi<x32>", ""),
    ("", "EAAA<a60>", ""),
    ("", "ATBB<a32>", ""),
    ("", "xkeysib-<x64>-<a16>", ""),
    ("", "nfp_<a36>", ""),
    ("", "fo1_<a43>", ""),
    ("", "re_<a8>_<a24>", ""),
    ("", "HRKU-<a60>", ""),
    ("refresh ", "1//0<a60>", ""),
    ("terraform ", "<a14>.atlasv1.[<a60>]", ""),
    // Variants of the forms above.
    ("curl -sSu me:", "<a12>", " https://api.example.org"),
    ("curl -kLu 'me:", "<a12>", "' https://api.example.org"),
    ("default login me password ", "<a14>", ""),
    ("DB_PASS=", "<a12><d2>", ""),
    ("SMTP_PASS=\"", "<a12><d2>", "\""),
    ("ansible_become_pass: ", "<a10><d2>", ""),
    ("tool login --pass ", "<a14>", " --yes"),
    ("requirepass ", "<a20>", ""),
    ("ENV API_TOKEN ", "<a32>", ""),
    ("ENV DB_PASSWORD ", "<a14>", ""),
    ("setx API_TOKEN ", "<a32>", ""),
    ("#define API_KEY \"", "<a32>", "\""),
    ("export const token: string = \"", "<a32>", "\""),
    ("pub const TOKEN: &str = \"", "<a32>", "\";"),
    ("let password = r#\"", "<a14>", "\"#;"),
    ("- name: API_TOKEN\n  value: ", "<a32>", ""),
    ("- name: DB_PASSWORD\n  value: \"", "<a14>", "\""),
    ("{\"name\": \"API_TOKEN\", \"value\": \"", "<a32>", "\"}"),
    ("password: |\n  ", "<a14>", ""),
    ("<password>", "<a12><d2>", "</password>"),
    ("IDENTIFIED BY '", "<a12><d2>", "'"),
    ("auth=('me', '", "<a12><d2>", "')"),
    ("'Authorization': '", "<a32>", "'"),
    ("APP_KEY=base64:", "<a43>", "="),
    ("RAILS_MASTER_KEY=", "<x32>", ""),
    // Words in quotes.
    ("\"password\": \"", "My dog Rex<d3>", "\","),
    ("password: \"", "<w4>", "\""),
    ("DB_PASSWORD=\"", "<w4> 7", "\""),
    ("\"passphrase\": \"", "<w6>", "\","),
];

/// One secret, and a line that contains it.
#[derive(Clone, Debug)]
pub struct Seeded {
    pub secret: String,
    pub line: String,
}

/// `count` of them, of every kind in turn.
pub fn seeded(count: usize, seed: u64) -> Vec<Seeded> {
    let mut random = Random(seed);
    (0..count).map(|n| one(KINDS[n % KINDS.len()], &mut random)).collect()
}

struct Random(u64);

impl Random {
    /// A number below `n`. Knuth's constants; the low bits are the weak ones.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

fn one((before, shape, after): (&str, &str, &str), random: &mut Random) -> Seeded {
    let mut whole = String::new();
    let mut rest = shape;
    while let Some((plain, more)) = rest.split_once('<') {
        let (field, more) = more.split_once('>').unwrap();
        let (signs, count) = field.split_at(1);
        let count = count.parse::<usize>().unwrap();
        whole.push_str(plain);
        if signs == "w" {
            let words: Vec<&str> = (0..count).map(|_| WORDS[random.below(WORDS.len())]).collect();
            whole.push_str(&words.join(" "));
        } else {
            whole.push_str(&field_of(signs, count, random));
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

fn field_of(signs: &str, count: usize, random: &mut Random) -> String {
    let signs = match signs {
        "a" => ALNUM,
        "x" => HEX,
        "u" => UPPER,
        "l" => LOWER,
        "b" => BASE58,
        _ => DIGITS,
    };
    (0..count).map(|_| char::from(signs.as_bytes()[random.below(signs.len())])).collect()
}
