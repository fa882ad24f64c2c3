//! `SOUL.md`, which says who the agent is, and the texts that it had before.
//!
//! A text that is replaced is kept as `souls/0001.md`, `souls/0002.md` and so on, so that each change can be undone.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::problem::ConfigError;
use crate::write;

/// The file, in the user's configuration folder.
pub const SOUL: &str = "SOUL.md";
/// The folder of the texts that were replaced, beside it.
const KEPT: &str = "souls";
/// Bytes of a text that are read.
const LARGEST: u64 = 64 << 10;
/// Earlier texts that are listed.
const LISTED: usize = 20;

/// A ready-made character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Personality {
    pub name: &'static str,
    pub text: &'static str,
}

/// The characters that come with the program.
pub const PERSONALITIES: &[Personality] = &[
    Personality {
        name: "concise-engineer",
        text: include_str!("../../assets/personalities/concise-engineer.md"),
    },
    Personality {
        name: "patient-teacher",
        text: include_str!("../../assets/personalities/patient-teacher.md"),
    },
    Personality {
        name: "careful-reviewer",
        text: include_str!("../../assets/personalities/careful-reviewer.md"),
    },
    Personality {
        name: "pragmatic-builder",
        text: include_str!("../../assets/personalities/pragmatic-builder.md"),
    },
    Personality {
        name: "curious-researcher",
        text: include_str!("../../assets/personalities/curious-researcher.md"),
    },
    Personality {
        name: "calm-companion",
        text: include_str!("../../assets/personalities/calm-companion.md"),
    },
];

/// The text in force; empty: there is none. Blocks.
///
/// # Errors
/// A sentence: the file cannot be read whole as text.
pub fn soul(config: &Path) -> Result<String, String> {
    read(&config.join(SOUL)).map(Option::unwrap_or_default)
}

/// Texts that were replaced, newest first, at most 20: number and text. What cannot be read is left out. Blocks.
pub fn earlier(config: &Path) -> Vec<(u32, String)> {
    let mut all = numbers(config);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.truncate(LISTED);
    all.into_iter().filter_map(|n| Some((n, read(&kept(config, n)).ok().flatten()?))).collect()
}

/// Puts `text` in force; an empty one removes the file. `expected`: the text that the user saw in force. What is replaced
/// is kept. Blocks.
///
/// # Errors
/// A sentence: the file is no longer as the user saw it, or it cannot be written.
pub fn replace(config: &Path, expected: &str, text: &str) -> Result<(), String> {
    let path = config.join(SOUL);
    let now = soul(config)?;
    if now != expected {
        return Err(format!("{} has changed meanwhile: look at it again", path.display()));
    }
    let failed = |e: ConfigError| e.to_string();
    if !now.trim().is_empty() {
        let next = numbers(config).into_iter().max().unwrap_or(0) + 1;
        write::replace(&kept(config, next), &now).map_err(failed)?;
    }
    if !text.trim().is_empty() {
        return write::replace(&path, text).map_err(failed);
    }
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {e}", path.display())),
        _ => Ok(()),
    }
}

fn kept(config: &Path, number: u32) -> PathBuf {
    config.join(KEPT).join(format!("{number:04}.md"))
}

fn numbers(config: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(config.join(KEPT)).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.strip_suffix(".md")?.parse().ok()).collect()
}

/// `None`: there is no such file.
fn read(path: &Path) -> Result<Option<String>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    // Checked first: opening a pipe would wait for a writer.
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
        Ok(meta) if !meta.is_file() || meta.len() > LARGEST => {
            return Err(format!(
                "{} is no regular file, or larger than {} KiB",
                path.display(),
                LARGEST >> 10
            ));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).and_then(|f| f.take(LARGEST).read_to_end(&mut bytes)).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_is_kept_and_can_be_put_back() {
        let tmp = tempfile::tempdir().unwrap();
        let config = tmp.path().join("config");
        assert_eq!(soul(&config), Ok(String::new()));
        replace(&config, "", "one\n").unwrap();
        assert_eq!((soul(&config).unwrap().as_str(), earlier(&config)), ("one\n", vec![]));
        replace(&config, "one\n", "two\n").unwrap();
        replace(&config, "two\n", "").unwrap();
        assert_eq!(soul(&config), Ok(String::new()));
        assert_eq!(earlier(&config), [(2, "two\n".to_owned()), (1, "one\n".to_owned())]);
        // Undone, and the undoing undone.
        replace(&config, "", "two\n").unwrap();
        replace(&config, "two\n", "one\n").unwrap();
        assert_eq!(soul(&config).unwrap(), "one\n");
        assert_eq!(earlier(&config).len(), 3);
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_replaced() {
        let tmp = tempfile::tempdir().unwrap();
        replace(tmp.path(), "", "one\n").unwrap();
        std::fs::write(tmp.path().join(SOUL), "mine\n").unwrap();
        assert!(replace(tmp.path(), "one\n", "two\n").unwrap_err().contains("has changed meanwhile"));
        assert_eq!(soul(tmp.path()).unwrap(), "mine\n");
        std::fs::write(tmp.path().join(SOUL), b"\xff\xfe").unwrap();
        assert!(replace(tmp.path(), "mine\n", "two\n").unwrap_err().contains("is not UTF-8"));
    }

    #[test]
    fn ready_made_characters_are_short_and_plain() {
        assert_eq!(PERSONALITIES.len(), 6);
        for it in PERSONALITIES {
            assert!(it.text.starts_with("You are a ") && it.text.ends_with('\n'), "{}", it.name);
            assert!(it.text.len() < 800 && it.text.lines().count() <= 8, "{}", it.name);
        }
    }
}
