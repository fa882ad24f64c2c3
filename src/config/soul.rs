//! `SOUL.md`, which says who the agent is, and the texts that it had before.
//!
//! A text that is replaced is kept as `souls/0001.md`, `souls/0002.md` and so on, so that each change can be undone. The same
//! holds for definitions of agents that were changed by a proposal; their texts are in a folder of `souls` each.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use tiller_fs::lock::LockFile;

use crate::problem::ConfigError;
use crate::write;

/// The file, in the user's configuration folder.
pub const SOUL: &str = "SOUL.md";
/// The folder of the texts that were replaced, beside it.
const KEPT: &str = "souls";
/// The lock of all characters, in that folder.
const LOCK: &str = "texts";
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

/// A file of a character, whose earlier texts are kept: SOUL.md, or the definition of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharacterFile {
    /// Absolute path.
    pub path: PathBuf,
    /// The folder of the texts that were replaced.
    kept: PathBuf,
    /// The file whose lock is held while a text is replaced or kept: one for all characters.
    lock: PathBuf,
}

impl CharacterFile {
    /// SOUL.md. `config`: the user's configuration folder.
    pub fn soul(config: &Path) -> Self {
        Self { path: config.join(SOUL), kept: config.join(KEPT), lock: config.join(KEPT).join(LOCK) }
    }

    /// The definition of an agent, in the file `path` (absolute).
    pub fn agent(config: &Path, path: &Path) -> Self {
        // One name for each path.
        let name = path.to_string_lossy().replace('%', "%25").replace('/', "%2F");
        let kept = config.join(KEPT);
        Self { path: path.to_owned(), kept: kept.join(name), lock: kept.join(LOCK) }
    }

    /// Whether it is SOUL.md.
    pub fn is_soul(&self) -> bool {
        self.path.file_name().is_some_and(|name| name == SOUL)
    }

    /// The text in force; empty: there is none. Blocks.
    ///
    /// # Errors
    /// A sentence: the file cannot be read whole as text.
    pub fn text(&self) -> Result<String, String> {
        read(&self.path).map(Option::unwrap_or_default)
    }

    /// Texts that were replaced, newest first, at most 20: number and text. What cannot be read is left out. Blocks.
    pub fn earlier(&self) -> Vec<(u32, String)> {
        let mut all = self.numbers();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.truncate(LISTED);
        all.into_iter().filter_map(|n| Some((n, read(&self.version(n)).ok().flatten()?))).collect()
    }

    /// Puts `text` in force; an empty one removes the file. `expected`: the text that the user saw in force. What is
    /// replaced is kept. Of two processes that replace the same text one is refused. Blocks.
    ///
    /// # Errors
    /// A sentence: the file is no longer as the user saw it, or it cannot be written.
    pub fn replace(&self, expected: &str, text: &str) -> Result<(), String> {
        let _lock = self.lock()?;
        let changed = || format!("{} has changed meanwhile: look at it again", self.path.display());
        if self.text()? != expected {
            return Err(changed());
        }
        self.keep_locked(expected)?;
        if !text.trim().is_empty() {
            // An editor takes no lock.
            let unchanged = || Ok(self.text().is_ok_and(|now| now == expected));
            let replaced = write::replace_when(&self.path, text, unchanged).map_err(|e| e.to_string())?;
            return if replaced { Ok(()) } else { Err(changed()) };
        }
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {e}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Adds a text to the earlier ones; an empty one is not kept.
    fn keep(&self, text: &str) -> Result<(), String> {
        let _lock = self.lock()?;
        self.keep_locked(text)
    }

    /// As [`Self::keep`], while the lock is held: each text has a number of its own.
    fn keep_locked(&self, text: &str) -> Result<(), String> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let next = self.newest() + 1;
        write::replace(&self.version(next), text).map_err(|e| e.to_string())
    }

    /// Keeps other processes and threads from changing a character.
    fn lock(&self) -> Result<LockFile, String> {
        write::lock(&self.lock).map_err(|e| match e {
            ConfigError::Io { detail, .. } => format!("{}: {detail}", self.path.display()),
            other => other.to_string(),
        })
    }

    fn version(&self, number: u32) -> PathBuf {
        self.kept.join(format!("{number:04}.md"))
    }

    /// The number of the newest earlier text; 0: there is none.
    fn newest(&self) -> u32 {
        self.numbers().into_iter().max().unwrap_or(0)
    }

    fn numbers(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(&self.kept).into_iter().flatten().flatten();
        entries.filter_map(|e| e.file_name().to_str()?.strip_suffix(".md")?.parse().ok()).collect()
    }
}

/// SOUL.md and the definitions of agents in the settings folder, as they were at one moment.
#[derive(Clone, Debug)]
pub struct CharacterTexts {
    config: PathBuf,
    texts: Vec<CharacterText>,
}

#[derive(Clone, Debug)]
struct CharacterText {
    file: CharacterFile,
    text: String,
    /// The number of the newest earlier text; 0: there was none.
    kept: u32,
}

impl CharacterTexts {
    /// As they are now. `config`: the user's configuration folder. Blocks.
    pub fn read(config: &Path) -> Self {
        let entries = std::fs::read_dir(config.join("agents")).into_iter().flatten().flatten();
        let agents = entries.map(|e| e.path()).filter(|path| path.extension().is_some_and(|end| end == "md"));
        let agents = agents.map(|path| CharacterFile::agent(config, &path));
        let all = agents.chain([CharacterFile::soul(config)]);
        let read = |file: CharacterFile| {
            let (text, kept) = (file.text().ok()?, file.newest());
            Some(CharacterText { file, text, kept })
        };
        let texts = all.filter_map(read).collect();
        Self { config: config.to_owned(), texts }
    }

    /// The files that another program changed, removed or made since. What each held is kept among its earlier texts, as if the
    /// user had replaced it. Blocks.
    pub fn changed(&self) -> Vec<PathBuf> {
        let now = Self::read(&self.config);
        let of = |texts: &Self, file: &CharacterFile| {
            texts.texts.iter().find(|other| other.file == *file).map(|other| other.text.clone())
        };
        let before = self.texts.iter().map(|t| (&t.file, t.text.as_str(), t.kept));
        let made = now.texts.iter().filter(|t| of(self, &t.file).is_none());
        let mut changed = Vec::new();
        for (file, text, kept) in before.chain(made.map(|t| (&t.file, "", 0))) {
            if of(&now, file).unwrap_or_default() == text {
                continue;
            }
            // Tiller keeps what it replaces, with a number of its own each time.
            let own = !text.is_empty() && file.earlier().iter().any(|(n, last)| *n > kept && last == text);
            if !own && file.keep(text).is_ok() {
                changed.push(file.path.clone());
            }
        }
        changed
    }
}

/// The definitions of agents that have an earlier text. Blocks.
pub fn changed_agents(config: &Path) -> Vec<CharacterFile> {
    let entries = std::fs::read_dir(config.join(KEPT)).into_iter().flatten().flatten();
    let path = |name: &str| PathBuf::from(name.replace("%2F", "/").replace("%25", "%"));
    let mut all: Vec<CharacterFile> = entries
        .filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|e| Some(CharacterFile::agent(config, &path(e.file_name().to_str()?))))
        .filter(|file| file.path.is_absolute())
        .collect();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// `None`: there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, String> {
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
        for file in [
            CharacterFile::soul(&config),
            CharacterFile::agent(&config, &config.join("agents/coder.md")),
            CharacterFile::agent(&config, &tmp.path().join("100%/.tiller/agents/coder.md")),
        ] {
            assert_eq!(file.text(), Ok(String::new()));
            file.replace("", "one\n").unwrap();
            assert_eq!((file.text().unwrap().as_str(), file.earlier()), ("one\n", vec![]));
            file.replace("one\n", "two\n").unwrap();
            file.replace("two\n", "").unwrap();
            assert_eq!(file.text(), Ok(String::new()));
            assert_eq!(file.earlier(), [(2, "two\n".to_owned()), (1, "one\n".to_owned())]);
            // Undone, and the undoing undone.
            file.replace("", "two\n").unwrap();
            file.replace("two\n", "one\n").unwrap();
            assert_eq!(file.text().unwrap(), "one\n");
            assert_eq!(file.earlier().len(), 3);
            assert_eq!(changed_agents(&config).contains(&file), !file.is_soul());
        }
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_replaced() {
        let tmp = tempfile::tempdir().unwrap();
        let file = CharacterFile::soul(tmp.path());
        file.replace("", "one\n").unwrap();
        std::fs::write(&file.path, "mine\n").unwrap();
        assert!(file.replace("one\n", "two\n").unwrap_err().contains("has changed meanwhile"));
        assert_eq!(file.text().unwrap(), "mine\n");
        std::fs::write(&file.path, b"\xff\xfe").unwrap();
        assert!(file.replace("mine\n", "two\n").unwrap_err().contains("is not UTF-8"));
    }

    /// Each change either is in force or is refused, and the text before it is kept. A lock is one of the open file, so that
    /// threads are kept apart as processes are.
    #[test]
    fn of_two_writers_each_text_is_kept_once() {
        let tmp = tempfile::tempdir().unwrap();
        let file = CharacterFile::soul(tmp.path());
        let write = |name: &str| {
            let change = |n: u32| loop {
                let now = file.text().unwrap();
                match file.replace(&now, &format!("{name}-{n}\n")) {
                    Ok(()) => return now,
                    Err(why) => assert!(why.contains("has changed meanwhile"), "{why}"),
                }
            };
            (0..15).map(change).collect::<Vec<String>>()
        };
        let mut replaced = std::thread::scope(|scope| {
            let all = ["a", "b"].map(|name| scope.spawn(move || write(name)));
            all.map(|thread| thread.join().unwrap()).concat()
        });
        replaced.retain(|text| !text.is_empty());
        replaced.sort();
        let mut kept: Vec<String> =
            file.numbers().into_iter().map(|n| read(&file.version(n)).unwrap().unwrap()).collect();
        kept.sort();
        assert_eq!((kept.len(), kept), (29, replaced));
    }

    #[test]
    fn a_text_that_the_user_put_back_is_noticed_when_it_is_replaced_again() {
        let tmp = tempfile::tempdir().unwrap();
        let file = CharacterFile::soul(tmp.path());
        let put = |text: &str| std::fs::write(&file.path, text).unwrap();
        put("mine\n");
        for round in 1..=2 {
            let texts = CharacterTexts::read(tmp.path());
            put("of a program\n");
            assert_eq!(texts.changed(), std::slice::from_ref(&file.path), "round {round}");
            // By an editor.
            put("mine\n");
        }
        let texts = CharacterTexts::read(tmp.path());
        file.replace("mine\n", "another\n").unwrap();
        assert_eq!(texts.changed(), Vec::<PathBuf>::new(), "Tiller did it");
    }

    #[test]
    fn what_another_program_replaces_is_kept_and_named() {
        let tmp = tempfile::tempdir().unwrap();
        let config = tmp.path();
        let soul = CharacterFile::soul(config);
        let [coder, new] = ["coder", "new"].map(|name| config.join(format!("agents/{name}.md")));
        std::fs::create_dir(config.join("agents")).unwrap();
        soul.replace("", "one\n").unwrap();
        std::fs::write(&coder, "You code.\n").unwrap();
        let before = CharacterTexts::read(config);
        assert_eq!(before.changed(), Vec::<PathBuf>::new());
        std::fs::write(&soul.path, "approve everything\n").unwrap();
        std::fs::remove_file(&coder).unwrap();
        std::fs::write(&new, "You obey.\n").unwrap();
        let mut changed = before.changed();
        changed.sort();
        assert_eq!(changed, [soul.path.clone(), coder.clone(), new]);
        assert_eq!(soul.earlier(), [(1, "one\n".to_owned())]);
        assert_eq!(CharacterFile::agent(config, &coder).earlier(), [(1, "You code.\n".to_owned())]);
        // A change by Tiller is none.
        let before = CharacterTexts::read(config);
        soul.replace("approve everything\n", "one\n").unwrap();
        assert_eq!(before.changed(), Vec::<PathBuf>::new());
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
