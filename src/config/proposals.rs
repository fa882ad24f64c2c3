//! Proposals of agents: a text for SOUL.md, or for the agent's own definition. Nothing reads them but the dialog in which the
//! user accepts, edits or declines them; until then nothing changes.
//!
//! A proposal is two files in `proposals/` of the settings folder: `ID.md`, its text, which the user may edit, and `ID.json`,
//! which says of which file it is and where it comes from. The second is written last.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiller_protocol::{AgentId, SessionId, Taint, Time};

use crate::soul::{self, CharacterFile};
use crate::write;

/// The folder, in the user's configuration folder.
const FOLDER: &str = "proposals";
/// Proposals that may wait at once.
pub const MOST: usize = 20;
/// Bytes of a text at most.
pub const LARGEST: usize = 16 << 10;

/// What is known of a proposal beside its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalSource {
    /// The file that it is for; `None`: SOUL.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Why, in the agent's words; may be empty.
    #[serde(default)]
    pub why: String,
    pub agent: AgentId,
    pub session: SessionId,
    pub taint: Taint,
    pub time: Time,
}

/// A proposal that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The names of its files without their ends.
    pub id: String,
    pub text: String,
    pub from: ProposalSource,
}

impl ProposalSource {
    /// The file that it is for.
    pub fn target(&self, config: &Path) -> CharacterFile {
        match &self.file {
            Some(path) => CharacterFile::agent(config, path),
            None => CharacterFile::soul(config),
        }
    }
}

impl Proposal {
    /// The file of its text. `config`: the user's configuration folder.
    pub fn file(&self, config: &Path) -> PathBuf {
        text_file(config, &self.id)
    }

    /// The text as it is now: the user may have edited it. Blocks.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or it was decided about meanwhile.
    pub fn text_now(&self, config: &Path) -> Result<String, String> {
        soul::read(&self.file(config))?.ok_or_else(|| "the proposal is no longer there".to_owned())
    }

    /// Puts `text` in force, and the proposal away. `expected`: the text of the file that the user saw in force. Returns why
    /// the proposal could not be put away; it is in force all the same. Blocks.
    ///
    /// # Errors
    /// A sentence: the file or the proposal is no longer as the user saw it, or the file cannot be written. Nothing was
    /// changed then.
    pub fn accept(&self, config: &Path, expected: &str, text: &str) -> Result<Option<String>, String> {
        if self.text_now(config)? != text {
            return Err("the proposal has changed meanwhile: look at it again".into());
        }
        self.from.target(config).replace(expected, text)?;
        Ok(self.remove(config).err())
    }

    /// Puts the proposal away. Blocks.
    ///
    /// # Errors
    /// A sentence: its files cannot be removed.
    pub fn remove(&self, config: &Path) -> Result<(), String> {
        // The text last: without the other file it is no proposal.
        for path in [source_file(config, &self.id), self.file(config)] {
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("{}: {e}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn text_file(config: &Path, id: &str) -> PathBuf {
    config.join(FOLDER).join(format!("{id}.md"))
}

fn source_file(config: &Path, id: &str) -> PathBuf {
    config.join(FOLDER).join(format!("{id}.json"))
}

/// Proposals that wait, oldest first. What cannot be read is left out. Blocks.
pub fn waiting(config: &Path) -> Vec<Proposal> {
    let entries = std::fs::read_dir(config.join(FOLDER)).into_iter().flatten().flatten();
    let mut all: Vec<Proposal> = entries
        .filter_map(|e| {
            let id = e.file_name().to_str()?.strip_suffix(".json")?.to_owned();
            let from = serde_json::from_str(&soul::read(&e.path()).ok()??).ok()?;
            Some(Proposal { text: soul::read(&text_file(config, &id)).ok()??, id, from })
        })
        .collect();
    all.sort_by(|a, b| (a.from.time, &a.id).cmp(&(b.from.time, &b.id)));
    all
}

/// Keeps a proposal for the user. `id`: a name that no other proposal has. Blocks.
///
/// # Errors
/// A sentence for the agent: the text is in force or waits already, there are too many proposals, or it cannot be kept.
pub fn propose(config: &Path, id: &str, text: &str, from: &ProposalSource) -> Result<(), String> {
    let target = from.target(config);
    if target.text()?.trim() == text.trim() {
        return Err(format!("{} has this text already", target.path.display()));
    }
    let others = waiting(config);
    if others.iter().any(|p| p.from.file == from.file && p.text.trim() == text.trim()) {
        return Err("this is proposed already, and waits for the user".into());
    }
    if others.len() >= MOST {
        return Err(format!("{MOST} proposals wait already: the user decides about them first"));
    }
    let failed = |e: crate::problem::ConfigError| e.to_string();
    let source = serde_json::to_string_pretty(from).map_err(|e| e.to_string())?;
    write::replace(&text_file(config, id), text).map_err(failed)?;
    write::replace(&source_file(config, id), &source).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(file: Option<PathBuf>, time: i64) -> ProposalSource {
        ProposalSource {
            file,
            why: "shorter".into(),
            agent: AgentId::main(),
            session: SessionId(Default::default()),
            taint: Taint::Agent,
            time: Time(time),
        }
    }

    #[test]
    fn a_proposal_waits_until_it_is_accepted_or_declined() {
        let tmp = tempfile::tempdir().unwrap();
        let config = tmp.path().join("config");
        let coder = config.join("agents/coder.md");
        assert!(waiting(&config).is_empty());
        propose(&config, "b", "Be dry.\n", &from(None, 2)).unwrap();
        propose(&config, "a", "You code.\n", &from(Some(coder.clone()), 3)).unwrap();
        let all = waiting(&config);
        assert_eq!(all.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert!(!config.join("SOUL.md").exists() && !coder.exists());
        all[0].accept(&config, "", "Be dry.\n").unwrap();
        assert_eq!(CharacterFile::soul(&config).text().unwrap(), "Be dry.\n");
        all[1].remove(&config).unwrap();
        assert!(!coder.exists() && waiting(&config).is_empty());
        assert_eq!(std::fs::read_dir(config.join(FOLDER)).unwrap().count(), 0);
        assert!(all[1].accept(&config, "", "You code.\n").unwrap_err().contains("no longer there"));
    }

    #[test]
    fn what_is_accepted_is_what_was_seen() {
        let tmp = tempfile::tempdir().unwrap();
        let config = tmp.path();
        let soul = CharacterFile::soul(config);
        soul.replace("", "one\n").unwrap();
        propose(config, "a", "two\n", &from(None, 1)).unwrap();
        let proposal = waiting(config).remove(0);
        std::fs::write(proposal.file(config), "three\n").unwrap();
        assert!(proposal.accept(config, "one\n", "two\n").unwrap_err().contains("has changed meanwhile"));
        assert!(proposal.accept(config, "zero\n", "three\n").unwrap_err().contains("has changed meanwhile"));
        assert_eq!((soul.text().unwrap().as_str(), waiting(config).len()), ("one\n", 1));
        proposal.accept(config, "one\n", "three\n").unwrap();
        assert_eq!(soul.text().unwrap(), "three\n");
        assert_eq!(soul.earlier(), [(1, "one\n".to_owned())]);
    }

    #[test]
    fn the_same_again_and_too_many_are_refused_and_half_of_one_is_none() {
        let tmp = tempfile::tempdir().unwrap();
        let config = tmp.path();
        CharacterFile::soul(config).replace("", "one\n").unwrap();
        let offer = |id: &str, text: &str| propose(config, id, text, &from(None, 1));
        assert!(offer("a", "one").unwrap_err().contains("has this text already"));
        offer("a", "two\n").unwrap();
        assert!(offer("b", " two").unwrap_err().contains("waits for the user"));
        for n in 1..MOST {
            offer(&format!("n{n}"), &format!("text {n}\n")).unwrap();
        }
        assert!(offer("z", "more").unwrap_err().contains("20 proposals wait"));
        // A kill between the two writes.
        std::fs::remove_file(config.join(FOLDER).join("a.json")).unwrap();
        std::fs::write(config.join(FOLDER).join("n1.json"), "{").unwrap();
        assert_eq!(waiting(config).len(), MOST - 2);
        offer("z", "more").unwrap();
    }
}
