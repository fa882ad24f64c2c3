//! Secrets of many shapes in many surroundings, and ordinary lines, both made from a seed: no literal of this file looks
//! like a secret.

use crate::redact::{RedactStream, Redactor};

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Knuth's constants; the low bits are the weak ones.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn text(&mut self, signs: &str, len: usize) -> String {
        (0..len).map(|_| char::from(signs.as_bytes()[self.below(signs.len())])).collect()
    }

    /// The same in a line with other signs of `<`.
    fn of_ordinary(&mut self, form: &str) -> String {
        let field = |at: usize| {
            let inner = form.get(at + 1..)?.split_once('>')?.0;
            let (kind, len) = inner.split_at_checked(1)?;
            ("axulbd".contains(kind) && len.parse::<usize>().is_ok()).then_some(inner.len() + 2)
        };
        let mut out = String::new();
        let mut at = 0;
        while let Some(next) = form[at..].find('<').map(|n| at + n) {
            out.push_str(&form[at..next]);
            at = next + field(next).unwrap_or(1);
            out.push_str(&if at > next + 1 { self.of(&form[next..at]) } else { "<".into() });
        }
        out + &form[at..]
    }

    /// `a20`: 20 letters and digits; `x` hex, `u` upper case, `l` lower case, `b` base64 of addresses, `d` digits.
    fn of(&mut self, form: &str) -> String {
        let mut out = String::new();
        for part in form.split('<') {
            let Some((field, plain)) = part.split_once('>') else {
                out.push_str(part);
                continue;
            };
            let (kind, len) = field.split_at(1);
            let signs = match kind {
                "a" => ALNUM,
                "x" => HEX,
                "u" => UPPER,
                "l" => LOWER,
                "b" => BASE64,
                _ => "0123456789",
            };
            // Every text of some length has each kind of sign that it may have.
            let made = loop {
                let made = self.text(signs, len.parse().unwrap());
                let digit = made.bytes().any(|b| b.is_ascii_digit());
                let letter = made.bytes().any(|b| b.is_ascii_alphabetic());
                if kind == "d" || made.len() < 12 || digit && letter {
                    break made;
                }
            };
            out.push_str(&made);
            out.push_str(plain);
        }
        out
    }
}

/// Vendors' shapes, in halves: the sign of a secret does not stand here.
const VENDORS: &[(&str, &str)] = &[
    ("sk", "-ant-api03-<b93>AA"),
    ("sk", "-proj-<b74>"),
    ("gh", "p_<a36>"),
    ("github", "_pat_<a82>"),
    ("gl", "pat-<b20>"),
    ("gl", "ffct-<b20>"),
    ("GR13", "48941<b20>"),
    ("xo", "xb-<d12>-<d12>-<a24>"),
    ("xo", "xe.xoxp-1-<u163>"),
    ("AK", "IA<u16>"),
    ("A3", "TX<u16>"),
    ("AB", "SK<a120>"),
    ("AI", "za<a35>"),
    ("A3", "-<u6>-<u11>-<u5>-<u5>-<u5>"),
    ("ops", "_eyJ<a250>"),
    ("p8", "e-<a32>"),
    ("AGE-SECRET", "-KEY-1<u58>"),
    ("pa", "t<a14>.<x64>"),
    ("LT", "AI<a20>"),
    ("AK", "Cp<a69>"),
    ("cm", "Vmd<a59>"),
    ("sc", "_<a20>.<a5>.acc_<a20>.<a60>"),
    ("4b", "1d<a38>"),
    ("CLO", "JARS_<l60>"),
    ("dp.", "pt.<a43>"),
    ("dt0", "c01.<u24>.<u64>"),
    ("FLW", "SECK_TEST-<x32>-X"),
    ("fi", "o-u-<b64>"),
    ("pat", ".<b22>.<a24>.<a20>"),
    ("ic", "o-<a32>"),
    ("s-s4", "t2ud-<x64>"),
    ("", "<a6>_<a29>_mmk"),
    ("AP", "I-<u26>"),
    ("sha", "256~<b43>"),
    ("access-", "sandbox-<x8>-<x4>-<x4>-<x4>-<x12>"),
    ("tk-", "us-<b48>"),
    ("sm_", "pat_<a16>"),
    ("shippo", "_live_<x40>"),
    ("pscale", "_pw_<a43>"),
    ("pscale", "_oauth_<a43>"),
    ("PM", "AK-<x24>-<x34>"),
    ("pn", "u_<a36>"),
    ("rd", "me_<l70>"),
    ("ruby", "gems_<x48>"),
    ("sh", "pat_<x32>"),
    ("sgp", "_<x16>_<x40>"),
    ("sq0", "atp-<b22>aa"),
    ("sk", "_live_<a24>"),
    ("hv", "s.<a95>"),
    ("tf", "p_<a40>_<a18>"),
    ("nt", "n_<d11><a35>"),
    ("lin", "_api_<a40>"),
    ("np", "m_<a36>"),
    ("py", "pi-AgEIcHlwaS5vcmc<b60>"),
    ("S", "G.<b22>.<b43>"),
    ("xkeys", "ib-<x64>-<a16>"),
    ("gl", "sa_<a32>_<x8>"),
    ("eyJr", "Ijoi<a80>"),
    ("da", "pi<x32>"),
    ("do", "p_v1_<x64>"),
    ("HR", "KU-AA<b58>"),
    ("fm", "2_<a100>"),
    ("", "<a3>1Q~<a33>"),
    ("AQ", "VN<a36>"),
    ("EZ", "AK<a54>"),
    ("apify", "_api_<a36>"),
    ("lsv2", "_pt_<x32>_<x10>"),
    ("pc", "sk_<a6>_<a60>"),
    ("bedrock", "-api-key-<a60>"),
    ("", "<d10>:AA<a33>"),
    ("hooks.slack.", "com/services/T<u8>/B<u10>/<a24>"),
    ("duffel", "_test_<b43>"),
    ("wh", "sec_<a32>"),
];

/// Names of secrets, with the form of the value: KEY, SECRET, PASS and TOKEN in each position, and names of vendors.
const NAMES: &[(&str, &str)] = &[
    ("STRIPE_KEY", "<a32>"),
    ("KEY_STRIPE", "<a32>"),
    ("APP_KEY_V2", "<a32>"),
    ("MYKEY", "<a28>"),
    ("SECRET_STRIPE", "<a32>"),
    ("STRIPE_SECRET_V2", "<a24>"),
    ("MYSECRET", "<a24>"),
    ("secretKeyBase", "<x64>"),
    ("secretkeybase", "<x64>"),
    ("PASS_DB", "<a14>"),
    ("DB_PASS_PROD", "<a14>"),
    ("DBPASS", "<a20>"),
    ("dbPass", "<a14>"),
    ("PASSWORD_DB", "<a12>"),
    ("dbpassword", "<a12>"),
    ("TOKEN_GH", "<a30>"),
    ("GH_TOKEN_2", "<a30>"),
    ("GHTOKEN", "<a30>"),
    ("tokenGithub", "<a30>"),
    ("spring.datasource.password", "<a12>"),
    ("sshPassphrase", "<a14>"),
    ("client-secret", "<x40>"),
    ("jwtKey", "<a40>"),
    ("AES_KEY", "<a44>"),
    ("clientCredential", "<a32>"),
    ("DATADOG_APP", "<x40>"),
    ("twilio_sid_auth", "<x32>"),
    ("algoliaAdmin", "<x32>"),
    ("SENDBIRD", "<x40>"),
    ("heroku_x", "<x8>-<x4>-<x4>-<x4>-<x12>"),
];

/// Surroundings: `¶` is the name, `§` the value.
const SURROUNDINGS: &[&str] = &[
    "export ¶=§",
    "¶=§",
    "¶=\"§\"",
    "{\"¶\": \"§\"}",
    "{\"a\":1,\"¶\":\"§\",\"b\":2}",
    "¶: §",
    "  ¶: '§'",
    "¶:\n  value: §",
    "¶:\n  - §",
    "¶: >-\n  §",
    "¶: !!str §",
    "<¶>§</¶>",
    "<add key=\"¶\" value=\"§\"/>",
    "<user ¶=\"§\" id=\"3\"/>",
    "<entry key=\"¶\">§</entry>",
    "<property name='¶'><value>§</value></property>",
    "<¶><![CDATA[§]]></¶>",
    "<key>¶</key>\n<string>§</string>",
    "¶ = b'§'",
    "¶ = B\"§\"",
    "¶ = rb'§'",
    "let ¶ = br#\"§\"#;",
    "const ¶ = `§`;",
    "¶ = \"\"\"§\"\"\"",
    "¶ = '§'",
    "¶ := \"§\"",
    "¶ => '§',",
    "'¶' => '§',",
    "define('¶', '§');",
    "os.environ[\"¶\"] = \"§\"",
    "os.environ.setdefault(\"¶\", \"§\")",
    "const ¶ = process.env.¶ || \"§\";",
    "¶ = Secret::new(\"§\")",
    "[section]\n¶ = \"§\"",
    "¶=§ ; note",
    "https://api.test/x?a=1&¶=§&b=2",
    "curl -H '¶: §' https://api.test",
    "setenv ¶ §",
    "set -gx ¶ §",
    "https%3A%2F%2Fapi.test%2Fx%3F¶%3D§%26b%3D2",
    "{\"out\": \"¶=§\\nnext\"}",
    "{\"out\": \"{\\\"¶\\\": \\\"§\\\"}\"}",
    "<a b=\"{&quot;¶&quot;:&quot;§&quot;}\"/>",
    "+¶=§",
    "12\t¶=§",
    "¶: {\n  \"default\": \"§\"\n}",
    "¶ = [\n  '§',\n]",
    "${¶:-§}",
    "$¶ = \"§\"",
    "SET ¶=§",
    "¶: \"§\" # note",
    "{\"key\": \"¶\", \"value\": \"§\"}",
    "{\"Name\":\"¶\",\"Value\":\"§\"}",
    "- name: ¶\n  value: §",
    "env:\n  - key: ¶\n    value: \"§\"",
    "variable \"¶\" {\n  default = \"§\"\n}",
    "<meta-data android:name=\"¶\" android:value=\"§\"/>",
    "¶ §",
    "¶: [\"§\", \"other\"]",
    "¶ -> \"§\"",
    "the ¶ is §",
    "const char ¶[] = \"§\";",
    "static const char* ¶ PROGMEM = \"§\";",
    "¶: &anchor §",
    "(setq ¶ \"§\")",
    "{:¶ \"§\"}",
    "¶ <- \"§\"",
    "¶ = ''.join(['§'])",
];

fn in_pieces(value: &str, joint: &str) -> String {
    let (a, b) = value.split_at(value.len() / 2);
    format!("{a}{joint}{b}")
}

const JOINTS: &[(&str, &str, &str)] = &[
    ("¶=\"", "\\\n", "\""),
    ("¶=", "\\\n", ""),
    ("¶ = \"", "\" +\n    \"", "\""),
    ("¶ = '", "' + '", "'"),
    ("¶ = (\n    \"", "\"\n    \"", "\"\n)"),
    ("¶ = '", "' .\n  '", "';"),
    ("¶ = \"", "\"\n    + \"", "\";"),
    ("¶ = \"", "\" \\\n  \"", "\""),
    ("¶ = \"", "\" & _\n  \"", "\""),
    ("¶ = b'", "'\n  b'", "'"),
];

fn encoded(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0, |n, b| n << 8 | usize::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            out.push(if i > chunk.len() { '=' } else { char::from(SIGNS[n >> (18 - 6 * i) & 63]) });
        }
    }
    out
}

/// Secret parts that must be gone, and the text with them.
type Case = (Vec<String>, String);

/// Secrets with surroundings of their own.
fn own(r: &mut Rng) -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    let mut one = |secret: String, text: String| all.push((vec![secret], text));
    for line in [
        "db.test:5432:app:me:§",
        "*:*:*:me:§",
        "localhost:5433:*:postgres:§",
        "machine api.test login me password §",
        "machine api.test\n  login me\n  password §",
        "https://§@git.test/o/r.git",
        "postgres://me:§@db.test/app",
        "redis://:§@cache.test:6379/0",
        "Authorization: Bearer §",
        "authorization: token §",
        "X-Vault-Token: §",
        "Private-Token: §",
        "X-API-Key: §",
        "Proxy-Authorization: Basic §",
        "Cookie: theme=dark; connect.sid=§",
        "users:\n- name: me\n  user:\n    token: §",
        "users:\n- name: me\n  user:\n    client-key-data: §",
        "apiVersion: v1\nkind: Secret\ndata:\n  plain: §\n",
        "aws configure set aws_secret_access_key §",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n§\n-----END OPENSSH PRIVATE KEY-----",
    ] {
        let secret = r.of("<a40>");
        one(secret.clone(), line.replace('§', &secret));
    }
    for field in ["d", "p", "q", "dp", "dq", "qi", "k"] {
        let secret = r.of("<b43>");
        one(secret.clone(), format!("{{\"kty\":\"RSA\",\"{field}\":\"{secret}\",\"use\":\"sig\"}}"));
        let secret = r.of("<b43>");
        one(secret.clone(), format!("  \"{field}\": \"{secret}\",\n  \"kty\": \"EC\""));
    }
    let lines: Vec<String> = (0..3).map(|_| r.text(ALNUM, 64)).collect();
    let key = format!(
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\n{}\nPrivate-Lines: 3\n{}\nPrivate-MAC: {}\n",
        r.text(ALNUM, 60),
        lines.join("\n"),
        r.text(HEX, 64)
    );
    all.push((lines, key));
    for (user, len) in [("admin", 8), ("me@mail.test", 12), ("deploy-bot", 20), ("x", 30)] {
        let word = encoded(format!("{user}:{}", r.text(ALNUM, len)).as_bytes());
        for line in
            ["Authorization: Basic §", "auth = §", "echo § | base64 -d", "{\"auth\": \"§\"}", "creds: \"§\""]
        {
            all.push((vec![word.clone()], line.replace('§', &word)));
        }
    }
    // A text of base64 that holds a secret.
    let inner = r.of("<a30>");
    for text in [format!("{{\"password\":\"{inner}\"}}"), format!("export API_TOKEN={inner}\n")] {
        let word = encoded(text.as_bytes());
        all.push((vec![word.clone()], format!("data: {word}\n")));
    }
    all
}

/// All secrets of the corpus.
fn corpus(seed: u64) -> Vec<Case> {
    let r = &mut Rng(seed);
    let mut all = own(r);
    for (n, (a, b)) in VENDORS.iter().enumerate() {
        let secret = format!("{a}{}", r.of(b));
        all.push((vec![secret.clone()], format!("so {secret} is\n")));
        for k in 0..8 {
            let around = SURROUNDINGS[(n * 8 + k) % SURROUNDINGS.len()];
            let around = around.replace('¶', "thing").replace('§', &secret);
            // A colon in a line of YAML or an address is a sign of its own.
            if !secret.contains([':', '/', '~']) {
                all.push((vec![secret.clone()], around));
            }
        }
    }
    for (name, form) in NAMES {
        for around in SURROUNDINGS {
            let secret = r.of(form);
            all.push((vec![secret.clone()], around.replace('¶', name).replace('§', &secret)));
        }
        for (before, joint, after) in JOINTS {
            let secret = r.of(form);
            let (a, b) = secret.split_at(secret.len() / 2);
            let text = format!("{before}{}{after}", in_pieces(&secret, joint)).replacen('¶', name, 1);
            all.push((vec![a.to_owned(), b.to_owned()], text));
        }
    }
    for (secrets, text) in &all {
        assert!(secrets.iter().all(|s| text.contains(s.as_str())), "{secrets:?} {text}");
    }
    all
}

#[test]
fn every_secret_of_the_corpus_is_masked() {
    let redactor = Redactor::default();
    let all = corpus(0x5EED_0033);
    let mut left = Vec::new();
    for (secrets, text) in &all {
        let text = format!("one\n{text}\nend\n");
        let shown = redactor.redact(&text);
        if secrets.iter().any(|s| shown.contains(s.as_str())) {
            left.push(shown.to_string());
        }
        assert!(shown.starts_with("one\n") && shown.ends_with("\nend\n"), "{shown}");
        assert_eq!(redactor.redact(&shown), shown, "what is masked is not masked again");
    }
    println!("{} of {} masked", all.len() - left.len(), all.len());
    assert!(left.is_empty(), "{} of {} are left:\n{}", left.len(), all.len(), left.join("\n---\n"));
}

/// One in so many of the corpus, and the pieces in which it comes: each cut would take minutes.
const EACH: usize = 5;

#[test]
fn streams_of_the_corpus_are_masked_like_the_whole_at_each_cut() {
    let redactor = Redactor::default();
    let mut wrong = Vec::new();
    for (n, (_, text)) in corpus(0x5EED_0034).iter().enumerate().filter(|(n, _)| n % EACH == 0) {
        let text = format!("one\n{text}\nend\n");
        let whole = redactor.redact(&text);
        for cut in (n % 3..text.len()).step_by(3).filter(|cut| text.is_char_boundary(*cut)) {
            let mut stream = RedactStream::new(redactor.clone());
            let out = stream.push(&text[..cut]) + &stream.push(&text[cut..]) + &stream.finish();
            if out != whole {
                wrong.push(format!("{cut}: {out}"));
            }
        }
        let mut stream = RedactStream::new(redactor.clone());
        let mut out = String::new();
        text.chars().for_each(|c| out.push_str(&stream.push(&c.to_string())));
        out.push_str(&stream.finish());
        if out != whole {
            wrong.push(format!("each: {out}"));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n---\n"));
}

#[test]
fn streams_show_no_part_of_a_secret_of_the_corpus_while_it_comes() {
    let redactor = Redactor::default();
    let mut shown_parts = Vec::new();
    // The sign of one vendor stands at the end: what is before it looks like a name.
    let late = |text: &str| text.contains("_mmk");
    for (secrets, text) in corpus(0x5EED_0035).iter().step_by(EACH).filter(|(_, text)| !late(text)) {
        for secret in secrets {
            let begin = text.find(secret.as_str()).unwrap();
            // Of some the sign stands inside.
            for end in begin + 4..begin + secret.len() {
                let shown = &text[..end];
                let hidden = || !redactor.redact(shown).ends_with(&text[begin..end]);
                if !(redactor.may_grow(shown) || hidden()) {
                    shown_parts.push(shown.to_owned());
                    break;
                }
            }
        }
    }
    assert!(shown_parts.is_empty(), "{} are shown:\n{}", shown_parts.len(), shown_parts.join("\n---\n"));
}

/// Lines that hold what looks random and is no secret: `x32` and the like are filled in as in [`VENDORS`].
const ORDINARY: &[&str] = &[
    "commit <x40>",
    "index <x7>..<x7> 100644",
    "id <x8>-<x4>-<x4>-<x4>-<x12>",
    "checksum = \"<x64>\"",
    "    \"integrity\": \"sha512-<a86>==\",",
    "  resolved \"https://registry.test/a/-/a-1.2.3.tgz#<x40>\"",
    "  integrity sha1-<a27>=",
    "data:image/png;base64,iVBORw0KGgo<a120>",
    "url(data:font/woff2;base64,d09GMgAB<a90>)",
    "source = \"git+https://host.test/o/r?rev=<x7>#<x40>\"",
    "example.com/m v1.2.3 h1:<a43>=",
    "sha256:<x64>",
    "FROM base@sha256:<x64>",
    "ETag: \"<x32>\"",
    "cache_key = \"<x40>\"",
    "cache-key: linux-<x64>",
    "primary_key: \"<x32>\"",
    "key: \"ArrowLeft\", code: 37",
    "<key>CFBundleIdentifier</key>\n<string>test.app.v2</string>",
    "token_count = <d1>",
    "max_tokens: <d5>,",
    "input_tokens: <d6>, output_tokens: <d3>",
    "password_field: PasswordInput",
    "key: value",
    "let key = format!(\"{name}_{id}\");",
    "const token = await getToken(user.id);",
    "token: Token::Ident(\"a<d2>\"),",
    "secret: Option<SecretString>,",
    "password: z.string().min(<d1>),",
    "if (event.key === 'Escape') return null;",
    "auth: AuthState.LoggedOut,",
    "pub const KEY_SIZE: usize = <d2>;",
    "API_KEY_HEADER = \"x-api-key-v<d1>\"",
    "session_key_len: u32,",
    "!function(e,t){\"object\"==typeof exports?t(exports):t(e.a<d3>={})}(this,function(e){var n=e.key||\"k<d2>\";return n})",
    "//# sourceMappingURL=app.<x8>.js.map",
    "assert_eq!(hash(&data), \"<x64>\");",
    "0x<x16>, 0x<x16>, 0x<x16>,",
    "2026-11-<d2>T10:00:00.<d3>Z INFO request <x16> took <d2> ms",
    "src/a_<d2>.rs:<d3>:<d2>: warning: unused variable `pass<d1>`",
    "thread 'main' panicked at src/x.rs:<d3>:<d2>: key `k<d2>` is missing",
    "<div class=\"btn-primary key-<d2>\" data-id=\"<x24>\">Token <d2></div>",
    "<path d=\"M<d2> <d2>h<d2>v<d2>H<d2>z\"/>",
    "| `token` | the token of the session, `v<d1>` |",
    "dependencies: compass <d1>.<d1>, passport 0.<d1>.<d2>, tokenizer-<d2>",
    "https://host.test/a/<x40>/b.png?v=<d6>",
    "%E2%9C%93 done %20 a=b",
    "https://host.test/search?q=a%20b%3D<d2>&key=name&page=<d2>",
    "export PATH=\"$HOME/.local/bin:$PATH\"",
    "{\"name\":\"n<d3>\",\"key\":\"k-<d3>\",\"value\":<d3>,\"parent\":\"<x24>\"}",
    "uuid: <x8>-<x4>-4<x3>-a<x3>-<x12>,",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<a43> me@host",
    "-----BEGIN CERTIFICATE-----\nMIIB<a60>\n<a64>\n-----END CERTIFICATE-----",
    "msgid \"Your password must have <d1> characters\"",
    "label: \"Password\", type: \"password\", id: \"pw-<d2>\",",
    "process.env.API_KEY, os.environ[\"API_KEY\"], ${API_KEY}, $API_KEY",
    "keyPath: 'data.items[<d2>].id',",
    "String s = \"a\" + \"b<d2>\" +\n    \"c<d2>\";",
    "color: #<x6>; background: #<x6>;",
    "\"_from\": \"a@^1.<d2>.0\", \"_shasum\": \"<x40>\",",
];

/// Lines of which one may be masked.
const MANY: usize = 50_000;

/// Counts lines, and what is masked in them.
#[derive(Default)]
struct Lines {
    redactor: Redactor,
    all: usize,
    masked: Vec<String>,
}

impl Lines {
    fn look(&mut self, name: &str, text: &str) {
        self.all += text.lines().count();
        for secret in self.redactor.secrets(text) {
            let from = text[..secret.range.start].rfind('\n').map_or(0, |i| i + 1);
            let line = text[..from].matches('\n').count() + 1;
            self.masked.push(format!("{name}:{line}: {}: {:?}", &text[from..secret.range.end], secret.name));
        }
    }

    fn assert_few(&self) {
        let (masked, lines) = (self.masked.len(), self.all);
        println!("{masked} of {lines} lines are masked");
        assert!(masked * MANY <= lines, "{masked} of {lines}:\n{}", self.masked.join("\n"));
    }
}

#[test]
fn ordinary_lines_are_not_masked() {
    let mut lines = Lines::default();
    let mut r = Rng(0x5EED_0036);
    for round in 0..60 {
        let page: Vec<String> =
            ORDINARY.iter().cycle().skip(round).take(300).map(|form| r.of_ordinary(form)).collect();
        lines.look(&format!("page {round}"), &page.join("\n"));
    }
    assert!(lines.all > 18_000, "{}", lines.all);
    lines.assert_few();
}

/// Source files below a folder; those of tests, by whatever name, hold made-up secrets.
fn sources(at: &std::path::Path, out: &mut Vec<std::path::PathBuf>) {
    const CODE: &[&str] =
        &["rs", "py", "js", "ts", "go", "c", "h", "toml", "json", "yaml", "yml", "md", "sh", "txt"];
    let Ok(items) = std::fs::read_dir(at) else { return };
    for item in items.flatten() {
        let (path, name) = (item.path(), item.file_name().to_string_lossy().into_owned());
        if name.contains("test") || matches!(&*name, "redact" | "hostile") || name.starts_with('.') {
            continue;
        }
        if item.file_type().unwrap().is_dir() {
            sources(&path, out);
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| CODE.contains(&e)) {
            out.push(path);
        }
    }
}

/// Of this project, and of the libraries that it is built from.
#[test]
#[ignore = "a minute: a million lines of what is on the machine"]
fn ordinary_files() {
    use std::hash::{Hash as _, Hasher as _};
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let mut files = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
    home.map(|home| home.join("registry/src")).iter().for_each(|at| sources(at, &mut files));
    files.sort();
    // One file in eight, by its path: another file on the machine changes nothing in the choice of the others.
    files.retain(|path| {
        let mut hasher = std::hash::DefaultHasher::new();
        path.components().rev().take(4).for_each(|part| part.as_os_str().hash(&mut hasher));
        hasher.finish().is_multiple_of(8)
    });
    let mut lines = Lines::default();
    for path in &files {
        if let Ok(text) = std::fs::read_to_string(path) {
            lines.look(&path.display().to_string(), &text);
        }
    }
    if lines.all < 4 * MANY {
        println!("skipped: the sources of the libraries are not here");
        return;
    }
    lines.assert_few();
}

/// Pieces of which hostile texts are made.
const PIECES: &[&str] = &[
    "\n",
    "\r\n",
    " ",
    "  ",
    "\t",
    "=",
    ":",
    ": ",
    ",",
    "\"",
    "'",
    "`",
    "\\",
    "\\n",
    "\\\"",
    "\\u00e9",
    "&quot;",
    "&amp;",
    "%3D",
    "%22",
    "%C3%A9",
    "é",
    "日本",
    "\u{1f600}",
    "<",
    ">",
    "</",
    "/>",
    "<![CDATA[",
    "]]>",
    "<key>",
    "<string>",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "+",
    " + ",
    " \\\n",
    "\"\n \"",
    "key",
    "KEY",
    "token",
    "password",
    "secret",
    "pass",
    "pw:",
    "auth",
    "datadog",
    "twilio",
    "kind: Secret",
    "data:",
    ".env",
    "==> .env <==\n",
    "$ cat .env\n",
    "Private-Lines: 2\n",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "\"d\":",
    "0Q~",
    ":AA",
    "-us1",
    "SK",
    "eyJ",
    "://",
    "@",
    ":",
    "setenv ",
    "|",
    ">-",
    "- ",
    "---\n",
    "*:*:*:a:",
    "a.b",
    ".",
    "%",
    "&",
    "#",
    "!!",
];

#[test]
fn hostile_texts_are_taken_as_they_come() {
    let redactor = Redactor::new(["correct-horse-é".to_owned()]);
    let mut r = Rng(0x5EED_0037);
    for _ in 0..1500 {
        let mut text = String::new();
        for _ in 0..r.below(40) {
            match r.below(5) {
                0 => text.push_str(&r.text(ALNUM, 1 + r.0 as usize % 40)),
                1 => text.push_str(&encoded(text.as_bytes())),
                _ => text.push_str(PIECES[r.below(PIECES.len())]),
            }
            text.truncate(text.floor_char_boundary(3000));
        }
        let mut at = 0;
        for secret in redactor.secrets(&text) {
            assert!(secret.range.start >= at && secret.range.end > secret.range.start, "{text:?}");
            assert!(text.get(secret.range.clone()).is_some(), "{text:?}");
            at = secret.range.end;
        }
        let mut stream = RedactStream::new(redactor.clone());
        let cut = text.floor_char_boundary(r.below(text.len() + 1));
        let streamed = stream.push(&text[..cut]) + &stream.push(&text[cut..]) + &stream.finish();
        assert!(!streamed.contains("correct-horse-é"));
        let _ = redactor.may_grow(&text[..cut]);
    }
}
