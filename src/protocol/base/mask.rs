//! Masks that replace secrets in text: a mask names the kind of secret and reveals nothing of its value.

use std::ops::Range;

/// The place of a secret in a text, and its name in the mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// `password`, `api key`, ...: small letters and single blanks.
    pub name: &'static str,
}

/// Every mask begins with this.
pub const OPEN: &str = "[redacted ";
/// Maximum length of a name, in bytes.
const NAME: usize = 24;

/// The mask of a secret with this name.
pub fn mask(name: &str) -> String {
    format!("{OPEN}{name}]")
}

/// Whether the text contains a mask.
pub fn has_mask(text: &str) -> bool {
    masks(text).next().is_some()
}

/// What stands before the text of a file of variables, so that each value in it is found.
pub const OF_VARIABLES: &str = "==> .env <==\n";
/// What stands before the output of a command that reads such a file.
pub const READS_VARIABLES: &str = "$ .env\n";

/// The beginning of the name of a file of variables.
const VARIABLES: &str = ".env";

/// Whether a path is that of a file of variables, in which every value is a secret: `.env`, `.env.local`, `.envrc`.
pub fn has_variables(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.get(..VARIABLES.len()).is_some_and(|n| n.eq_ignore_ascii_case(VARIABLES))
}

/// Whether a command names such a file, or a pattern that may stand for one.
pub fn reads_variables(command: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "\"'`=;|&<>(),:@".contains(c);
    command.split(ends).any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word).replace('\\', "");
        let fixed = name.find(['*', '?', '[', '{']).map(|n| &name[..n]);
        has_variables(&name) || fixed.is_some_and(|f| f.starts_with('.') && VARIABLES.starts_with(f))
    })
}

/// Where masks stand in a text, in order.
pub fn masks(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    text.match_indices(OPEN).filter_map(|(at, open)| {
        let rest = &text[at + open.len()..];
        let len = rest.bytes().take(NAME + 1).position(|b| b == b']')?;
        let name = &rest[..len];
        let letters = |b: u8| b.is_ascii_lowercase() || b == b' ';
        let whole = !name.is_empty() && name == name.trim() && name.bytes().all(letters);
        whole.then(|| at..at + open.len() + len + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_variables_are_known_by_name_and_in_commands() {
        for path in [".env", "a/b/.env.local", ".ENV", ".envrc", "c:\\x\\.env"] {
            assert!(has_variables(path), "{path}");
        }
        for path in ["env", "process.env", ".en", "a.env", "\u{e9}", "x/.environ/y"] {
            assert!(!has_variables(path), "{path}");
        }
        let reads = [
            "cat .env",
            "cat './a b/.env.test'",
            "head -3 <.env",
            "cat .e*",
            "cat .[e]nv",
            "tail .*",
            "git show HEAD:.env",
        ];
        for command in reads {
            assert!(reads_variables(command), "{command}");
        }
        for command in ["ls", "node -e process.env", "cat *.rs", "ls ..", "rm .[g]it/x", "cat .x*"] {
            assert!(!reads_variables(command), "{command}");
        }
    }

    #[test]
    fn masks_are_found_and_their_like_are_not() {
        let text = "A=[redacted api key]\nB=[redacted password]";
        let found: Vec<&str> = masks(text).map(|r| &text[r]).collect();
        assert_eq!(found, [mask("api key"), mask("password")]);
        for text in [
            "[redacted ]",
            "[redacted",
            "[redacted \u{e9}]",
            "[redacted  x]",
            "[redacted a\nb]",
            "[redacted X]",
        ] {
            assert!(!has_mask(text), "{text}");
        }
    }
}
