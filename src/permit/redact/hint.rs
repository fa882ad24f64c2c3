//! A cheap check before the patterns: whether a text can contain a secret at all. Compiling the patterns takes
//! milliseconds and a megabyte, which most starts avoid.

/// With these a shape begins, or it holds them.
pub(crate) const SIGNS: &[&str] = &[
    "sk-",
    "AIza",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "glptt-",
    "glft-",
    "glimt-",
    "glagent-",
    "glsoat-",
    "gloas-",
    "xox",
    "xapp-",
    "hooks.slack.com/",
    "/api/webhooks/",
    "AKIA",
    "ASIA",
    "AGPA",
    "AIDA",
    "AROA",
    "AIPA",
    "ANPA",
    "ANVA",
    "ABIA",
    "ACCA",
    "eyJ",
    "_live_",
    "_test_",
    "whsec_",
    "npm_",
    "pypi-",
    "SG.",
    "ya29.",
    "GOCSPX-",
    "_v1_",
    "shpat_",
    "shpca_",
    "shppa_",
    "shpss_",
    "key-",
    "AGE-SECRET-KEY-1",
    ":AA",
    "X-Amz-Signature=",
    "X-Goog-Signature=",
    "ATATT3",
    "ATCTT3",
    "xprv",
    "yprv",
    "zprv",
    "tprv",
    "uprv",
    "vprv",
    "sqp_",
    "squ_",
    "sqa_",
    "glc_",
    "ATBB",
    "xkeysib-",
    "nfp_",
    "rnd_",
    "re_",
    "tfp_",
    "atlasv1.",
    "fo1_",
    "fm2_",
    "phx_",
    "phc_",
    "HRKU-",
    "CFPAT-",
    "sntryu_",
    "EZTK",
    "v1.0-",
    "AstraCS:",
    "1//0",
    "$6$",
    "$apr1$",
    "?sig=",
    "&sig=",
];

/// The same in any case; here in lower case.
const ANY_CASE: &[&str] = &[
    "accountkey=",
    "sharedaccesskey=",
    "sharedaccesssignature=",
    "bearer",
    "authorization:",
    "api-key:",
    "x-auth-token:",
    "cookie:",
];

/// Short beginnings: a separator and a long word must follow.
pub(crate) const SHORT: &[&str] = &[
    "gsk",
    "hf",
    "r8",
    "fw",
    "pplx",
    "nvapi",
    "xai",
    "tvly",
    "csk",
    "jina",
    "voyage",
    "pa",
    "cohere",
    "dckr_pat",
    "glsa",
    "lin_api",
    "figd",
    "sbp",
    "rubygems",
    "NRAK",
    "tskey",
    "hvs",
    "hvb",
    "pscale_tkn",
    "PMAK",
    "EZAK",
    "dapi",
    "sntrys",
    "sgp",
    "ntn",
    "secret",
    "pul",
    "api_org",
    "dop",
    "eas",
    "vercel",
    "sq0atp",
    "sq0csp",
    "EAAA",
];

/// Bytes of that word at least.
const LONG: usize = 24;

/// What a value is given to; in lower case.
const NAMES: &[&str] = &["pass", "pwd", "pw", "psk", "secret", "token", "credential"];

/// What stands before `key` in such a name.
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
];

/// Bytes between such a name and its `=` or `:`, at most.
const BETWEEN: usize = 64;

/// Longer texts are worth the expensive look at once.
const MOST: usize = 32 << 10;

/// Pairs of bytes: a set, one bit each.
struct Pairs([u64; 1024]);

impl Pairs {
    /// Those with which one of the words begins. `any_case`: the words are in lower case, and meant in any.
    const fn of(lists: &[&[&str]], any_case: bool) -> Self {
        let mut bits = [0; 1024];
        let (mut i, mut j) = (0, 0);
        while i < lists.len() {
            while j < lists[i].len() {
                let word = lists[i][j].as_bytes();
                let mut case = 0;
                while case < if any_case { 4 } else { 1 } {
                    let a = if case & 1 == 1 { word[0].to_ascii_uppercase() } else { word[0] };
                    let b = if case & 2 == 2 { word[1].to_ascii_uppercase() } else { word[1] };
                    let at = Self::at(a, b);
                    bits[at / 64] |= 1 << (at % 64);
                    case += 1;
                }
                j += 1;
            }
            (i, j) = (i + 1, 0);
        }
        Self(bits)
    }

    const fn at(a: u8, b: u8) -> usize {
        (a as usize) << 8 | b as usize
    }

    fn begin(&self, text: &[u8]) -> bool {
        let [a, b, ..] = text else { return false };
        let at = Self::at(*a, *b);
        self.0[at / 64] >> (at % 64) & 1 == 1
    }
}

static SHAPES: Pairs = Pairs::of(&[SIGNS], false);
static SHAPES_ANY_CASE: Pairs = Pairs::of(&[ANY_CASE], true);
static SHORTS: Pairs = Pairs::of(&[SHORT, &["cio"]], false);
static ASSIGNED: Pairs = Pairs::of(&[NAMES, &["key"]], true);

/// Whether there may be something that is a secret by its shape.
pub(crate) fn may_have_shape(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |at: usize| {
        let here = &bytes[at..];
        // `xxx.xxxxxx.xxx`
        if here[0] == b'.' && here.get(7) == Some(&b'.') {
            return true;
        }
        // `SK` and hex, `EAA` and letters, hex and `-us1`.
        if here.strip_prefix(b"SK").is_some_and(|rest| run(rest, 32, u8::is_ascii_hexdigit))
            || here.strip_prefix(b"EAA").is_some_and(|rest| run(rest, LONG, u8::is_ascii_alphanumeric))
            || here.strip_prefix(b"dapi").is_some_and(|rest| run(rest, 32, u8::is_ascii_hexdigit))
            || here.strip_prefix(b"cio").is_some_and(|rest| run(rest, 32, u8::is_ascii_alphanumeric))
            || here.strip_prefix(b"EAAA").is_some_and(|rest| run(rest, 50, of_word))
            || here.strip_prefix(b"-us").is_some_and(|rest| run(rest, 1, u8::is_ascii_digit))
        {
            return true;
        }
        let short = || {
            SHORT.iter().any(|s| here.strip_prefix(s.as_bytes()).is_some_and(long_word))
                || here
                    .strip_prefix(b"cio")
                    .is_some_and(|rest| (0..5).any(|n| rest.get(n..).is_some_and(long_word)))
        };
        SHAPES.begin(here) && begins(here, SIGNS)
            || SHAPES_ANY_CASE.begin(here) && ANY_CASE.iter().any(|s| begins_any_case(here, s))
            || SHORTS.begin(here) && short()
    };
    bytes.len() > MOST || (0..bytes.len()).any(at)
}

/// Whether there may be a value behind a name that says that it is secret.
pub(crate) fn may_be_assigned(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |at: usize| {
        let here = &bytes[at..];
        if !ASSIGNED.begin(here) {
            return false;
        }
        let name = NAMES.iter().find(|n| begins_any_case(here, n)).map(|n| n.len());
        let key = || (begins_any_case(here, "key") && before_key(&bytes[..at])).then_some(3);
        name.or_else(key).is_some_and(|n| value_follows(&here[n..]))
    };
    bytes.len() > MOST || (0..bytes.len()).any(at)
}

/// Whether something is named whose value is secret, wherever that value is.
pub(crate) fn names_a_secret(text: &str) -> bool {
    if crate::redact::command::SIGNS.iter().any(|s| text.contains(s)) {
        return true;
    }
    let bytes = text.as_bytes();
    (0..bytes.len()).any(|at| {
        let here = &bytes[at..];
        let one_of = |names: &[&str]| names.iter().any(|n| begins_any_case(here, n));
        ASSIGNED.begin(here) && (one_of(NAMES) || one_of(&["key"]))
            || SHAPES_ANY_CASE.begin(here) && one_of(ANY_CASE)
    })
}

/// It begins with this many characters of one kind.
fn run(text: &[u8], many: usize, kind: fn(&u8) -> bool) -> bool {
    text.len() >= many && text[..many].iter().all(kind)
}

fn begins(text: &[u8], signs: &[&str]) -> bool {
    signs.iter().any(|s| text.starts_with(s.as_bytes()))
}

fn begins_any_case(text: &[u8], sign: &str) -> bool {
    text.get(..sign.len()).is_some_and(|t| t.eq_ignore_ascii_case(sign.as_bytes()))
}

/// A separator, then a long word.
fn long_word(rest: &[u8]) -> bool {
    let Some((b'_' | b'.' | b'-', word)) = rest.split_first() else { return false };
    word.iter().take(LONG).filter(|b| of_word(b)).count() == LONG
}

fn of_word(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'=' | b'-')
}

fn before_key(text: &[u8]) -> bool {
    let text = text.strip_suffix(b"_").or_else(|| text.strip_suffix(b"-")).unwrap_or(text);
    KEYS.iter().any(|k| {
        text.len().checked_sub(k.len()).is_some_and(|at| text[at..].eq_ignore_ascii_case(k.as_bytes()))
    })
}

/// The rest of a name, its quotes and spaces, then `=` or `:`.
fn value_follows(rest: &[u8]) -> bool {
    let between = |b: &&u8| {
        b.is_ascii_alphanumeric()
            || b.is_ascii_whitespace()
            || matches!(b, 0x0b | b'_' | b'.' | b'-' | b'\\' | b'"' | b'\'' | b']' | b'&')
    };
    let next = rest.iter().take(BETWEEN).find(|b| !between(b));
    matches!(next, Some(b'=' | b':'))
}
