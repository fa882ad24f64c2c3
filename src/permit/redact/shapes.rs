//! Secrets that are recognised by their own form: keys of vendors begin with a fixed prefix.

use crate::redact::hint::may_have_shape;
use crate::redact::named::{entropy, of_words};
use crate::redact::{LazyPattern, Span, range, regex};

/// Forms of secrets, with the name that the mask shows. No look-around: what comes
/// before is checked in code.
pub(crate) const SHAPES: &[(&str, &str)] = &[
    ("api key", r"sk-(?:ant|proj|or|svcacct|admin|live|test|lf)-[A-Za-z0-9_-]{16,}"),
    ("api key", r"sk-[A-Za-z0-9]{20,}"),
    ("api key", r"AIza[0-9A-Za-z_-]{30,}"),
    ("api key", r"(?:gsk|hf|r8|fw|pplx|nvapi|xai|tvly|csk|jina|voyage|pa|cohere)[_-][A-Za-z0-9_-]{24,}"),
    ("github token", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github token", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab token", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[A-Za-z0-9_.-]{18,}"),
    ("slack token", r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("slack token", r"xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("slack hook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    ("discord hook", r"discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{20,}"),
    ("aws key", r"(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA)[0-9A-Z]{16}"),
    ("token", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("token", r"eyJ[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{14,}"),
    ("stripe key", r"(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{14,}"),
    ("webhook secret", r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("npm token", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi token", r"pypi-[A-Za-z0-9_-]{40,}"),
    ("sendgrid key", r"SG\.[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{14,}"),
    ("google token", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("google secret", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("digitalocean token", r"do[oprt]_v1_[a-f0-9]{40,}"),
    ("shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{28,}"),
    (
        "token",
        r"(?:dckr_pat|glsa|lin_api|figd|sbp|rubygems|NRAK|tskey|hvs|hvb|pscale_tkn|PMAK|EZAK|dapi|sntrys|sgp|cio[a-z]{0,3}_?|ntn|secret|pul|api_org|dop|eas|vercel|sq0atp|sq0csp|EAAA)[_.-][A-Za-z0-9_.=-]{24,}",
    ),
    ("atlassian token", r"AT[AC]TT3[A-Za-z0-9_=+/.-]{30,}"),
    ("twilio key", r"SK[0-9a-f]{32}"),
    ("facebook token", r"EAA[A-Za-z0-9]{60,}"),
    ("mailchimp key", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("wallet key", r"[xyztuv]prv[1-9A-HJ-NP-Za-km-z]{90,}"),
    ("sonar token", r"sq[pua]_[0-9a-f]{40}"),
    ("grafana token", r"glc_[A-Za-z0-9+/=]{30,}"),
    ("registry token", r"cio[A-Za-z0-9]{32}"),
    ("databricks token", r"dapi[0-9a-f]{32}"),
    ("square token", r"EAAA[A-Za-z0-9_-]{56,}"),
    ("bitbucket token", r"ATBB[A-Za-z0-9_=-]{28,}"),
    ("api key", r"xkeysib-[0-9a-f]{60,}-[A-Za-z0-9]{12,}"),
    ("token", r"(?:nfp|rnd|tfp|fo1|fm2|phx|phc|sntryu)_[A-Za-z0-9+/=]{24,}"),
    ("api key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    ("api key", r"duffel_live_[A-Za-z0-9_-]{30,}"),
    ("token", r"atlasv1\.[A-Za-z0-9]{40,}"),
    ("token", r"(?:HRKU|CFPAT)-[A-Za-z0-9_-]{30,}"),
    ("api key", r"EZTK[A-Za-z0-9]{50,}"),
    ("cloudflare key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("database token", r"AstraCS:[A-Za-z0-9]{20,}:[0-9a-f]{60,}"),
    ("google token", r"1//0[A-Za-z0-9_-]{40,}"),
    (
        "password hash",
        r"\$(?:6\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}|apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22})",
    ),
    ("mailgun key", r"key-[0-9a-f]{32}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("telegram token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("discord token", r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("azure key", r"(?i:AccountKey|SharedAccessKey|SharedAccessSignature)=[A-Za-z0-9+/%=&-]{20,}"),
    ("signature", r"(?:X-Amz-Signature|X-Goog-Signature|[?&]sig)=[A-Za-z0-9%/+=-]{20,}"),
    (
        "bearer",
        r"(?i:bearer|authorization:\s{0,3}(?:basic|token)|x-api-key:|api-key:|x-auth-token:|x-goog-api-key:)\s{1,3}[A-Za-z0-9._~+/=-]{12,}",
    ),
    (
        "cookie",
        r"(?i:set-cookie|cookie):\s?[A-Za-z0-9_.-]{0,40}(?i:sess|sid|auth|token)[A-Za-z0-9_.-]{0,40}=[^;\s]{16,}",
    ),
];

/// Signs without a separator, which base64 may hold by chance.
const JOINED: &[&str] = &["cio", "dapi", "EAA", "EZTK"];

pub(crate) static SHAPE: LazyPattern = LazyPattern::new(|| {
    let all: Vec<String> = SHAPES.iter().enumerate().map(|(i, (_, r))| format!("(?P<s{i}>{r})")).collect();
    regex(&all.join("|"))
});

/// Adds what has the shape of a secret.
pub(crate) fn shapes(text: &str, found: &mut Vec<Span>) {
    let Some(shape) = SHAPE.for_text(text, may_have_shape) else { return };
    let mut at = 0;
    while let Some(m) = shape.find_at(text.as_bytes(), at) {
        let span = range(text, m);
        let Some(word) = text.get(span.clone()) else { return };
        let before = text[..span.start].chars().next_back();
        // Part of a longer word: a hash, an identifier, base64.
        let inner = before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+'))
            && !word.starts_with(['?', '&', '-'])
            && !word_begins(&text[..span.start]);
        // A sign that letters follow at once: in base64 any letters do.
        let longer = JOINED.iter().any(|sign| word.starts_with(sign))
            && text[span.end..]
                .starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='));
        // `/` before it is a path or base64.
        let path = before == Some('/') && !word.contains('.') && !word.starts_with("hooks");
        let joined = path && JOINED.iter().any(|sign| word.starts_with(sign));
        if inner || longer || joined || !random(word) {
            at = next(text, span.start);
            continue;
        }
        let name = shape
            .captures_at(text.as_bytes(), span.start)
            .and_then(|c| {
                SHAPES
                    .iter()
                    .enumerate()
                    .find(|(i, _)| c.name(&format!("s{i}")).is_some())
                    .map(|(_, (n, _))| *n)
            })
            .unwrap_or("secret");
        at = span.end.max(next(text, span.start));
        found.push((span, name));
    }
}

/// What stands at the end of `before` belongs to no word: the sign of an added line in a diff, or a line end
/// or tab as JSON spells it.
pub(crate) fn word_begins(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or(before);
    line == "+" || ["\\n", "\\r", "\\t", "\\n+"].iter().any(|e| before.ends_with(e))
}

/// The start of the next character.
pub(crate) fn next(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(text.len(), |c| at + c.len_utf8())
}

/// Not a name made of words: it has a digit and letters, or is long and mixed.
fn random(text: &str) -> bool {
    !slug(text)
        && ((text.chars().any(|c| c.is_ascii_digit()) && text.chars().any(|c| c.is_ascii_alphabetic()))
            || (text.chars().any(char::is_uppercase)
                && text.chars().any(char::is_lowercase)
                && entropy(text) > 3.5))
}

/// Characters of the longest word in a name.
const WORD: usize = 20;

/// Words between separators, as in addresses and names of files: `sk-test-driven-design-2026`.
fn slug(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', '_', '.']).filter(|p| !p.is_empty()).collect();
    parts.len() > 2 && parts.iter().all(|p| p.len() < 4 || (p.len() <= WORD && of_words(p)))
}
