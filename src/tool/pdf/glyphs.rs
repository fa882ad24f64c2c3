//! Characters by the names that fonts give them.

/// Names of the characters from U+0020 to U+007E, but for letters.
const ASCII: &str = "space exclam quotedbl numbersign dollar percent ampersand quotesingle parenleft parenright asterisk \
    plus comma hyphen period slash zero one two three four five six seven eight nine colon semicolon less equal greater \
    question at";
/// Names of the characters from U+00A1 to U+00FF.
const LATIN: &str = "exclamdown cent sterling currency yen brokenbar section dieresis copyright ordfeminine guillemotleft \
    logicalnot softhyphen registered macron degree plusminus twosuperior threesuperior acute mu paragraph periodcentered \
    cedilla onesuperior ordmasculine guillemotright onequarter onehalf threequarters questiondown Agrave Aacute \
    Acircumflex Atilde Adieresis Aring AE Ccedilla Egrave Eacute Ecircumflex Edieresis Igrave Iacute Icircumflex Idieresis \
    Eth Ntilde Ograve Oacute Ocircumflex Otilde Odieresis multiply Oslash Ugrave Uacute Ucircumflex Udieresis Yacute Thorn \
    germandbls agrave aacute acircumflex atilde adieresis aring ae ccedilla egrave eacute ecircumflex edieresis igrave \
    iacute icircumflex idieresis eth ntilde ograve oacute ocircumflex otilde odieresis divide oslash ugrave uacute \
    ucircumflex udieresis yacute thorn ydieresis";
/// Names of others.
const OTHERS: &[(&str, &str)] = &[
    ("bracketleft", "["),
    ("backslash", "\\"),
    ("bracketright", "]"),
    ("asciicircum", "^"),
    ("underscore", "_"),
    ("grave", "`"),
    ("braceleft", "{"),
    ("bar", "|"),
    ("braceright", "}"),
    ("asciitilde", "~"),
    ("quoteright", "’"),
    ("quoteleft", "‘"),
    ("quotedblleft", "“"),
    ("quotedblright", "”"),
    ("quotesinglbase", "‚"),
    ("quotedblbase", "„"),
    ("guilsinglleft", "‹"),
    ("guilsinglright", "›"),
    ("endash", "–"),
    ("emdash", "—"),
    ("bullet", "•"),
    ("ellipsis", "…"),
    ("dagger", "†"),
    ("daggerdbl", "‡"),
    ("perthousand", "‰"),
    ("trademark", "™"),
    ("Euro", "€"),
    ("minus", "−"),
    ("fraction", "⁄"),
    ("florin", "ƒ"),
    ("ff", "ff"),
    ("fi", "fi"),
    ("fl", "fl"),
    ("ffi", "ffi"),
    ("ffl", "ffl"),
    ("OE", "Œ"),
    ("oe", "œ"),
    ("Scaron", "Š"),
    ("scaron", "š"),
    ("Zcaron", "Ž"),
    ("zcaron", "ž"),
    ("Ydieresis", "Ÿ"),
    ("Lslash", "Ł"),
    ("lslash", "ł"),
    ("dotlessi", "ı"),
    ("circumflex", "ˆ"),
    ("tilde", "˜"),
    ("caron", "ˇ"),
    ("breve", "˘"),
    ("dotaccent", "˙"),
    ("ring", "˚"),
    ("ogonek", "˛"),
    ("hungarumlaut", "˝"),
    ("nbspace", " "),
    ("sfthyphen", "-"),
    ("Alpha", "Α"),
    ("Beta", "Β"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Theta", "Θ"),
    ("Lambda", "Λ"),
    ("Xi", "Ξ"),
    ("Pi", "Π"),
    ("Sigma", "Σ"),
    ("Phi", "Φ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("iota", "ι"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("upsilon", "υ"),
    ("phi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("infinity", "∞"),
    ("lessequal", "≤"),
    ("greaterequal", "≥"),
    ("notequal", "≠"),
    ("approxequal", "≈"),
    ("summation", "∑"),
    ("product", "∏"),
    ("integral", "∫"),
    ("partialdiff", "∂"),
    ("radical", "√"),
    ("element", "∈"),
    ("arrowright", "→"),
    ("arrowleft", "←"),
    ("arrowup", "↑"),
    ("arrowdown", "↓"),
    ("arrowdblright", "⇒"),
    ("universal", "∀"),
    ("existential", "∃"),
    ("asteriskmath", "*"),
    ("periodmath", "."),
    ("logicaland", "∧"),
    ("logicalor", "∨"),
    ("intersection", "∩"),
    ("union", "∪"),
    ("equivalence", "≡"),
    ("Abreve", "Ă"),
    ("abreve", "ă"),
    ("Aogonek", "Ą"),
    ("aogonek", "ą"),
    ("Cacute", "Ć"),
    ("cacute", "ć"),
    ("Ccaron", "Č"),
    ("ccaron", "č"),
    ("Dcaron", "Ď"),
    ("dcaron", "ď"),
    ("Ecaron", "Ě"),
    ("ecaron", "ě"),
    ("Eogonek", "Ę"),
    ("eogonek", "ę"),
    ("Gbreve", "Ğ"),
    ("gbreve", "ğ"),
    ("Idotaccent", "İ"),
    ("Nacute", "Ń"),
    ("nacute", "ń"),
    ("Ncaron", "Ň"),
    ("ncaron", "ň"),
    ("Rcaron", "Ř"),
    ("rcaron", "ř"),
    ("Sacute", "Ś"),
    ("sacute", "ś"),
    ("Scedilla", "Ş"),
    ("scedilla", "ş"),
    ("Tcaron", "Ť"),
    ("tcaron", "ť"),
    ("Uring", "Ů"),
    ("uring", "ů"),
    ("Zacute", "Ź"),
    ("zacute", "ź"),
    ("Zdotaccent", "Ż"),
    ("zdotaccent", "ż"),
    ("Ohungarumlaut", "Ő"),
    ("ohungarumlaut", "ő"),
    ("Uhungarumlaut", "Ű"),
    ("uhungarumlaut", "ű"),
];
/// Codes of the standard encoding above those of ASCII.
const STANDARD: &[(u8, &str)] = &[
    (0x27, "quoteright"),
    (0x60, "quoteleft"),
    (0xa1, "exclamdown"),
    (0xa2, "cent"),
    (0xa3, "sterling"),
    (0xa4, "fraction"),
    (0xa5, "yen"),
    (0xa6, "florin"),
    (0xa7, "section"),
    (0xa8, "currency"),
    (0xa9, "quotesingle"),
    (0xaa, "quotedblleft"),
    (0xab, "guillemotleft"),
    (0xac, "guilsinglleft"),
    (0xad, "guilsinglright"),
    (0xae, "fi"),
    (0xaf, "fl"),
    (0xb1, "endash"),
    (0xb2, "dagger"),
    (0xb3, "daggerdbl"),
    (0xb4, "periodcentered"),
    (0xb6, "paragraph"),
    (0xb7, "bullet"),
    (0xb8, "quotesinglbase"),
    (0xb9, "quotedblbase"),
    (0xba, "quotedblright"),
    (0xbb, "guillemotright"),
    (0xbc, "ellipsis"),
    (0xbd, "perthousand"),
    (0xbf, "questiondown"),
    (0xd0, "emdash"),
    (0xe1, "AE"),
    (0xe3, "ordfeminine"),
    (0xe8, "Lslash"),
    (0xe9, "Oslash"),
    (0xea, "OE"),
    (0xeb, "ordmasculine"),
    (0xf1, "ae"),
    (0xf5, "dotlessi"),
    (0xf8, "lslash"),
    (0xf9, "oslash"),
    (0xfa, "oe"),
    (0xfb, "germandbls"),
];

/// The text of a character's name; `None`: the name says nothing.
pub(super) fn named(name: &str) -> Option<String> {
    let base = name.split('.').next().filter(|base| !base.is_empty())?;
    if base.contains('_') {
        return base.split('_').map(named).collect();
    }
    let mut letters = base.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return letter.is_ascii_alphabetic().then(|| letter.to_string());
    }
    let at = |list: &str, from: u32| {
        let at = list.split_whitespace().position(|word| word == base)?;
        char::from_u32(from + u32::try_from(at).ok()?).map(String::from)
    };
    let known = || OTHERS.iter().find(|(word, _)| *word == base).map(|(_, text)| (*text).to_owned());
    at(ASCII, 0x20).or_else(|| at(LATIN, 0xa1)).or_else(known).or_else(|| by_number(base))
}

/// `uni0041`, `uni00410042` and `u1F600`.
fn by_number(name: &str) -> Option<String> {
    let one = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    if let Some(digits) =
        name.strip_prefix("uni").filter(|d| d.len() >= 4 && d.len() % 4 == 0 && d.is_ascii())
    {
        return (0..digits.len()).step_by(4).map(|at| one(&digits[at..at + 4])).collect();
    }
    let digits = name.strip_prefix('u').filter(|d| (4..=6).contains(&d.len()))?;
    one(digits).map(String::from)
}

/// The text of a code of Adobe's standard encoding.
pub(super) fn standard(code: u8) -> Option<String> {
    if let Some((_, name)) = STANDARD.iter().find(|(of, _)| *of == code) {
        return named(name);
    }
    (0x20..0x7f).contains(&code).then(|| char::from(code).to_string())
}
