//! Memory files as a client shows and changes them, and where an entry comes from.

use crate::knowledge::learning::RuleReceipts;
use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::{AgentId, EntryId, SessionId};
use crate::base::word::stored_words;

/// The origin of a text that is kept for later sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taint {
    /// The person wrote it.
    Person,
    /// An agent wrote it, and had read nothing of others in that turn.
    #[default]
    Agent,
    /// An agent wrote it in a turn in which it read files or output of commands.
    ToolOutput,
    /// An agent wrote it in a turn in which it read pages, or results of servers of others.
    Web,
}

// The most trusted first.
stored_words!(Taint { Person = "person", Agent = "agent", ToolOutput = "tool_output", Web = "web" });

impl Taint {
    /// For people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Person => "you",
            Self::Agent => "agent",
            Self::ToolOutput => "tool output",
            Self::Web => "web",
        }
    }

    /// The origin with this stored word; an unknown one counts as the least trusted.
    pub fn of(word: &str) -> Self {
        Self::of_word(word).unwrap_or(Self::Web)
    }

    /// What stands behind a text of this origin, for people and models; empty where no text of others has a part in it.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Person | Self::Agent => "",
            Self::ToolOutput => " [from tool output]",
            Self::Web => " [from web]",
        }
    }

    /// The least trusted origin whose mark stands in a text; `None`: there is no mark.
    pub fn marked_in(text: &str) -> Option<Self> {
        [Self::Web, Self::ToolOutput].into_iter().find(|taint| text.contains(taint.mark().trim()))
    }

    /// Text of others may have a part in it.
    pub fn is_untrusted(self) -> bool {
        matches!(self, Self::ToolOutput | Self::Web)
    }
}

/// Where an entry of memory comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The entry of the session tree that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Name of the branch; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch: String,
    #[serde(default)]
    pub agent: AgentId,
    #[serde(default)]
    pub taint: Taint,
}

/// What an agent may do with memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryRights {
    #[default]
    Off,
    Read,
    Write,
}

// The least first; the words are those of an agent definition.
stored_words!(MemoryRights { Off = "off", Read = "read", Write = "write" });

/// Which file.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemoryFile {
    /// MEMORY.md: what agents should know for long.
    #[default]
    Memory,
    /// USER.md: who the user is.
    User,
}

impl MemoryFile {
    /// The name of the file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY.md",
            Self::User => "USER.md",
        }
    }
}

stored_words!(MemoryFile { Memory = "memory", User = "user" });

/// Whose file.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemoryScope {
    /// For all projects of the user.
    #[default]
    User,
    /// For this project, in its `.tiller` folder.
    Project,
}

stored_words!(MemoryScope { User = "user", Project = "project" });

/// One of the four memory files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemoryTarget {
    pub file: MemoryFile,
    pub scope: MemoryScope,
}

impl MemoryTarget {
    /// All of them: the person's, then the project's.
    pub const ALL: [Self; 4] = [
        Self { file: MemoryFile::Memory, scope: MemoryScope::User },
        Self { file: MemoryFile::User, scope: MemoryScope::User },
        Self { file: MemoryFile::Memory, scope: MemoryScope::Project },
        Self { file: MemoryFile::User, scope: MemoryScope::Project },
    ];

    /// For people: `MEMORY.md`, `.tiller/USER.md`.
    pub fn label(self) -> &'static str {
        match (self.scope, self.file) {
            (MemoryScope::User, MemoryFile::Memory) => "MEMORY.md",
            (MemoryScope::User, MemoryFile::User) => "USER.md",
            (MemoryScope::Project, MemoryFile::Memory) => ".tiller/MEMORY.md",
            (MemoryScope::Project, MemoryFile::User) => ".tiller/USER.md",
        }
    }
}

/// The state of an entry of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryState {
    /// It is in the file, and models see it.
    Kept,
    /// It is in the section `Archive` of the file, which models do not see unasked.
    Archived,
    /// It waits for the person.
    Pending,
    /// It was written on a branch that was left.
    Aside,
    /// It vanished from its file outside of Tiller, and can be brought back.
    Removed,
}

impl MemoryState {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Archived => "archived",
            Self::Pending => "pending",
            Self::Aside => "of another branch",
            Self::Removed => "removed outside Tiller",
        }
    }
}

impl Provenance {
    /// The place in the sessions that it is from, `session ID, entry ID`; `None`: it is of no session.
    pub fn cited(&self) -> Option<String> {
        cited(self.session, self.entry)
    }
}

/// As [`Provenance::cited`].
pub(crate) fn cited(session: Option<SessionId>, entry: Option<EntryId>) -> Option<String> {
    let entry = entry.map_or_else(String::new, |entry| format!(", entry {entry}"));
    session.map(|session| format!("session {session}{entry}"))
}

/// One entry as the memory browser lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEntry {
    pub target: MemoryTarget,
    pub state: MemoryState,
    /// `2026-11-26`; empty: the entry has no date.
    pub date: String,
    pub text: String,
    /// The change that the person can decide about, undo or redo; `None`: the entry was written in an editor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<i64>,
    /// `None`: it was written in an editor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
    /// Models do not get it: a program wrote it beside Tiller, and it reads like an instruction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// What a pending change takes away.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replaces: String,
    /// How often a rule was shown with a call, followed, and violated.
    #[serde(default, skip_serializing_if = "RuleReceipts::is_none")]
    pub counts: RuleReceipts,
    /// When it was found missing, of an entry that was removed outside of Tiller. `from` is then the call or the turn that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Time>,
    /// Why a matcher in it has no power over calls; empty: it has, or there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fault: String,
    #[serde(default, skip_serializing_if = "ChangeDetails::is_none")]
    pub details: ChangeDetails,
}

impl MemoryEntry {
    /// The text, with the mark of its origin where text of others had a part in it.
    pub fn marked_text(&self) -> String {
        let taint = self.from.as_ref().map(|from| from.taint).filter(|taint| taint.is_untrusted());
        // What a program wrote beside Tiller has no mark in its file.
        let mark = taint.filter(|_| Taint::marked_in(&self.text).is_none()).map_or("", Taint::mark);
        format!("{}{mark}", self.text)
    }

    /// Who wrote it, in a word for people: the user's consent and an import do not change it.
    pub fn writer(&self) -> &'static str {
        let written = self.details.accepted.as_ref().map(|accepted| &accepted.from).or(self.from.as_ref());
        match written {
            _ if !self.details.imported.is_empty() => "import",
            Some(from) => from.taint.label(),
            None => "editor",
        }
    }

    /// Whether the text names calls as a rule does: `[when: ...]`, `[never: ...]`.
    pub fn has_matcher(&self) -> bool {
        has_matcher(&self.text)
    }
}

/// The beginning of a matcher of calls that a rule is shown with.
pub const WHEN: &str = "[when:";
/// The beginning of a matcher of calls that a rule forbids.
pub const NEVER: &str = "[never:";

/// What an answer to a change of memory says before the fault of a matcher, after what was done.
pub const BUT_NO_RULE: &str = ", but it is no rule: ";

/// Whether a text has something that is read as a matcher, with or without fault.
pub fn has_matcher(text: &str) -> bool {
    [WHEN, NEVER].iter().any(|matcher| text.contains(matcher))
}

/// What a memory file takes up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    pub target: MemoryTarget,
    /// Absolute path.
    pub path: String,
    /// Bytes that models see.
    pub bytes: u64,
    pub budget: u64,
    /// Why it cannot be read or written; empty: it can.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fault: String,
}

/// All of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPage {
    pub entries: Vec<MemoryEntry>,
    pub files: Vec<MemoryUse>,
    /// The words that were searched in the spelling of the entries, when no entry has one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// Which entries a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryQuery {
    /// Words to search for; empty: all entries.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filter: String,
}

/// The person's changes of memory. Each is answered by `done_reply` or `error_reply`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MemoryCommand {
    /// Writes an entry; it is never sent to a model as a message.
    Add { target: MemoryTarget, text: String },
    /// Replaces the entry with the text `old`.
    Edit { target: MemoryTarget, old: String, text: String },
    /// Removes the entry with the text `old`.
    Delete { target: MemoryTarget, old: String },
    /// Moves the entry into the section `Archive`, or back.
    Archive { target: MemoryTarget, old: String, archived: bool },
    /// Accepts a pending change, with another text where one is given, or declines it.
    Decide {
        change: i64,
        accept: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Brings back an entry that was removed outside of Tiller; `all`: also those that were found missing at the same time.
    Restore { change: i64, all: bool },
    /// Undoes the last change, or redoes the one that was undone last.
    Undo { redo: bool },
}

/// A change of a memory file as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryChange {
    pub id: i64,
    pub time: Time,
    /// Absolute path of the file.
    pub path: String,
    /// The entry that was taken away, with its date.
    pub removed: Option<String>,
    /// The entry that was added, with its date.
    pub added: Option<String>,
    /// The entry in `removed` was moved: into the archive of its file (true), or out of it. Nothing was taken away.
    pub archived: Option<bool>,
    pub state: ChangeState,
    pub from: Provenance,
    #[serde(default, skip_serializing_if = "ChangeDetails::is_none")]
    pub details: ChangeDetails,
}

/// What is shown about a change of memory. Nothing is decided by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeDetails {
    /// The person accepted the entry; `None`: they did not, or it was before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
    /// The file that an import read the entry from; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imported: String,
    /// The entry that another program than Tiller put in the place of the one in `removed`, with its date; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub became: String,
}

impl ChangeDetails {
    /// There is nothing to show.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The person's consent to an entry that an agent or another program wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    pub time: Time,
    /// Who wrote it, and how far it could be trusted before.
    pub from: Provenance,
}

/// Whether a change of memory is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    Done,
    /// It waits for the person.
    Pending,
    Declined,
    /// The person undid it.
    Undone,
    /// It was made on a branch that was left.
    Aside,
    /// Another program than Tiller made it: an entry vanished from its file.
    Outside,
}

stored_words!(ChangeState {
    Done = "done",
    Pending = "pending",
    Declined = "declined",
    Undone = "undone",
    Aside = "aside",
    Outside = "outside",
});

impl ChangeState {
    /// The state with this stored word; an unknown one is not in its file.
    pub fn of(word: &str) -> Self {
        Self::of_word(word).unwrap_or(Self::Undone)
    }
}
