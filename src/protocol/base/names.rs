//! Names of files. A name is bytes; records, messages and JSON hold text, so there is one way to write the one as the
//! other: what is UTF-8 stands as it is, any other byte as U+FFFD and its two hexadecimal digits, and U+FFFD itself
//! twice. Earlier versions wrote U+FFFD alone for what is not UTF-8; such a name is read as that text.
//!
//! Some names are of files that this program puts into a workspace for a moment. No snapshot holds them, no change
//! feed shows them, and the next start removes those that a kill left behind.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Stands before the digits of a byte that is not UTF-8.
const MARK: char = '\u{fffd}';

/// A path as text that [`path`] reads back exactly.
pub fn written(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            out.push(c);
            if c == MARK {
                out.push(MARK);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("{MARK}{byte:02X}"));
        }
    }
    out
}

/// The path that [`written`] wrote.
pub fn path(text: &str) -> PathBuf {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let (before, after) = (&rest[..at], &rest[at + MARK.len_utf8()..]);
        out.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).filter(|d| d.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')));
        let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok()).filter(|b| *b >= 0x80);
        rest = match (byte, after.strip_prefix(MARK)) {
            (Some(byte), _) => {
                out.push(byte);
                &after[2..]
            }
            (None, twice) => {
                out.extend_from_slice(MARK.encode_utf8(&mut [0; 4]).as_bytes());
                twice.unwrap_or(after)
            }
        };
    }
    out.extend_from_slice(rest.as_bytes());
    PathBuf::from(OsString::from_vec(out))
}

/// Most `**` beside other characters in one pattern: each doubles its forms.
const SPREADS: u32 = 6;

/// The forms of a pattern of paths, together the one meaning of `*` and `**` in rules, hooks and searches: `*` stays within a
/// name, `**` reaches below folders wherever it stands. Libraries take `**` beside other characters (`src/**.py`) for `*`: it
/// is written out as `src/*.py` and `src/*/**/*.py`. Within brackets and braces it stays as it is.
///
/// # Errors
/// When there are too many of them; in words.
pub fn pattern_forms(pattern: &str) -> Result<Vec<String>, String> {
    let mut forms = vec![String::new()];
    let (mut class, mut depth, mut before) = (false, 0_u32, '/');
    let mut spreads = 0;
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        let mut piece = String::from(c);
        let mut ways = 1;
        match c {
            '\\' => piece.extend(rest.next()),
            '[' => class = true,
            ']' => class = false,
            '{' if !class => depth += 1,
            '}' if !class => depth = depth.saturating_sub(1),
            '*' if !class && depth == 0 => {
                while let Some(star) = rest.next_if_eq(&'*') {
                    piece.push(star);
                }
                let whole = before == '/' && rest.peek().is_none_or(|next| *next == '/');
                if piece.len() > 1 && !whole {
                    ways = 2;
                    spreads += 1;
                }
            }
            _ => {}
        }
        if spreads > SPREADS {
            return Err(format!("at most {SPREADS} `**` may stand beside other characters"));
        }
        if ways == 2 {
            let below: Vec<String> = forms.iter().map(|form| format!("{form}*/**/*")).collect();
            forms.iter_mut().for_each(|form| form.push('*'));
            forms.extend(below);
        } else {
            forms.iter_mut().for_each(|form| form.push_str(&piece));
        }
        before = c;
    }
    Ok(forms)
}

/// Folders that package managers, interpreters and test programs make, and make again: no work of a person lies in them, whether
/// a rule of git names them or not.
pub const MADE_AGAIN: &[&str] = &[
    ".angular",
    ".cache",
    ".direnv",
    ".eggs",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    "__pycache__",
    "bower_components",
    "node_modules",
];

/// The name of the temporary file for change `n` of the change set `token` (16 hexadecimal digits). It lies
/// beside its target.
pub fn temporary(token: &str, n: usize) -> String {
    format!(".tiller-{token}-{n}.tmp")
}

/// The second name of a file that is replaced where two names cannot be exchanged.
pub fn second(token: &str, n: usize) -> String {
    format!(".tiller-{token}-{n}o.tmp")
}

/// Whether [`temporary`] or [`second`] makes such names.
pub fn is_temporary(name: &[u8]) -> bool {
    let inner = name.strip_prefix(b".tiller-").and_then(|rest| rest.strip_suffix(b".tmp"));
    let Some((token, n)) = inner.and_then(|rest| rest.split_at_checked(16)) else { return false };
    let Some(n) = n.strip_prefix(b"-") else { return false };
    let n = n.strip_suffix(b"o").unwrap_or(n);
    token.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b))
        && !n.is_empty()
        && n.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w16_every_name_is_read_back_exactly_and_no_two_are_written_alike() {
        let pieces: [&[u8]; 8] =
            [b"a", b"\xe9", b"\xff", "\u{fffd}".as_bytes(), b"E9", b"/", "\u{e9}".as_bytes(), b"\\xE9"];
        let mut seen = std::collections::HashMap::new();
        for n in 0..8_usize.pow(5) {
            let bytes: Vec<u8> = (0..5).flat_map(|i| pieces[n / 8_usize.pow(i) % 8]).copied().collect();
            let name = PathBuf::from(OsString::from_vec(bytes));
            let text = written(&name);
            assert_eq!(path(&text).as_os_str(), name.as_os_str(), "{text}");
            if let Some(other) = seen.insert(text, name.clone()) {
                assert_eq!(other.as_os_str(), name.as_os_str());
            }
        }
        // UTF-8 stands as it is, and what earlier versions wrote is that text.
        for plain in ["a/b.rs", "caf\u{e9}", "a\\xE9", "lost \u{fffd}.txt", "\u{fffd}"] {
            assert_eq!(path(plain), Path::new(plain));
        }
        assert_eq!(written(Path::new("caf\u{e9} \\x.rs")), "caf\u{e9} \\x.rs");
    }

    #[test]
    fn a_double_star_beside_other_characters_is_written_out() {
        for (pattern, forms) in [
            ("src/**.py", vec!["src/*.py", "src/*/**/*.py"]),
            ("**.py", vec!["*.py", "*/**/*.py"]),
            ("a**b**c", vec!["a*b*c", "a*/**/*b*c", "a*b*/**/*c", "a*/**/*b*/**/*c"]),
            ("a/b**", vec!["a/b*", "a/b*/**/*"]),
            ("src/**", vec!["src/**"]),
            ("**/x/*.py", vec!["**/x/*.py"]),
            ("a/***/b", vec!["a/***/b"]),
            ("/a/b**/c", vec!["/a/b*/c", "/a/b*/**/*/c"]),
            ("s/**.{pem,key}", vec!["s/*.{pem,key}", "s/*/**/*.{pem,key}"]),
            ("s/**[0-9].cfg", vec!["s/*[0-9].cfg", "s/*/**/*[0-9].cfg"]),
            (r"s/\*\*.py", vec![r"s/\*\*.py"]),
            ("[**]", vec!["[**]"]),
            ("{**.a,b}", vec!["{**.a,b}"]),
            ("", vec![""]),
        ] {
            assert_eq!(pattern_forms(pattern).unwrap(), forms, "{pattern}");
        }
        assert_eq!(pattern_forms(&"a**/".repeat(6)).unwrap().len(), 64);
        assert!(pattern_forms(&"a**/".repeat(7)).is_err());
    }

    #[test]
    fn only_our_own_names_count() {
        for n in [0, 7, 499] {
            assert!(is_temporary(temporary("0123456789abcdef", n).as_bytes()));
            assert!(is_temporary(second("0123456789abcdef", n).as_bytes()));
        }
        for other in [
            ".tiller",
            ".tiller-notes.tmp",
            ".tiller-0123456789abcdef.tmp",
            ".tiller-0123456789abcdef-.tmp",
            ".tiller-0123456789abcdef-1.tmp.rs",
            "x.tiller-0123456789abcdef-1.tmp",
            ".tiller-0123456789ABCDEF-1.tmp",
            ".tiller-0123456789abcde\u{e9}-1.tmp",
            "a.tmp",
        ] {
            assert!(!is_temporary(other.as_bytes()), "{other}");
        }
    }
}
