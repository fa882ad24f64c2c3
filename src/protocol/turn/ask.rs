//! Questions that wait for the person: approvals, clarifications, trust, budgets.

use serde::{Deserialize, Serialize};

use crate::base::ids::{AgentId, AskId};
use crate::base::word::word_enum;
use crate::turn::tool::ToolVerb;

/// A pending question. Answered by its id only, never by position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub id: AskId,
    pub agent: AgentId,
    /// The tool call that waits for the answer. After a restart such a call, which never ran, asks again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    pub body: AskBody,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "few questions exist at a time, most of them of the largest kind"
)]
pub enum AskBody {
    /// Whether this call may run.
    Permission(PermissionAsk),
    /// The model's question (`clarify`).
    Clarify {
        question: String,
        /// 0 to 6.
        choices: Vec<String>,
        allow_freetext: bool,
        #[serde(default)]
        multiple: bool,
        /// Index of the declared default, used when no user is present to answer.
        #[serde(default)]
        default: Option<usize>,
        /// Indices of the choices that grant or end something: their number selects them, never Enter alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        decides: Vec<usize>,
    },
    /// Whether what a folder brings may run.
    Trust { folder: String, brings: Vec<TrustItem>, changed: bool },
    /// Whether to work by this plan. It is in `file`, which the person may edit before they answer.
    Plan { file: String, plan: String },
    /// A limit was reached; whether to continue.
    Budget {
        what: String,
        spent: String,
        limit: String,
        /// The limit is not reached yet, but the input of the next request, which costs this, does not fit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    },
    /// The deep tier would be used; whether it may.
    DeepTier { model: String, why: String },
    /// A budget cannot be enforced with this model, because its price is not known; whether to use it nevertheless.
    Unpriced { model: String, why: String },
    /// The agent repeats the same calls with the same results, this many times in a row; whether it may continue.
    Repeats { calls: String, rounds: u32 },
    /// The session is open elsewhere.
    SessionBusy { holder: String },
    /// The store cannot be written; whether to continue without saving.
    NotSaving { why: String },
}

/// The state of a budget as text: `$0.90 of $1.00 is spent`, and the cost of the next request where that does not fit.
pub fn budget_words(spent: &str, limit: &str, next: Option<&str>) -> String {
    match next {
        None => format!("{spent} of {limit} is spent"),
        Some(next) => {
            format!("{spent} of {limit} is spent; the input of the next request alone costs about {next}")
        }
    }
}

/// Everything that the approval dialog shows. `shown` is exactly what runs; the answer carries its hash, so that it can
/// never apply to another text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermissionAsk {
    pub tool: String,
    /// For the title.
    pub verb: ToolVerb,
    /// The exact command, URL or path; files of the workspace are relative to it.
    pub shown: String,
    /// BLAKE3 of `shown` (with absolute paths) and of the arguments, hex.
    pub hash: String,
    /// The exact difference, for edits (unified).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Working folder.
    #[serde(default)]
    pub folder: String,
    /// The model's reason, when it gave one.
    #[serde(default)]
    pub why: String,
    /// Why it is asked.
    pub rule: AskReason,
    /// Its effects, as text.
    #[serde(default)]
    pub effects: Vec<String>,
    pub risk: Risk,
    /// The pattern that "always" would allow, or several joined by ` && `, one for each part of a command; `None` when
    /// no pattern describes it correctly.
    #[serde(default)]
    pub always: Option<String>,
    /// Whether the text may be edited before it runs.
    #[serde(default)]
    pub editable: bool,
    /// Whether the answer may be to run it outside the sandbox.
    #[serde(default, skip_serializing_if = "OutsideAnswer::is_no")]
    pub outside: OutsideAnswer,
    /// The calls of a script that this is about, in their order; empty for a call that makes none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<AskedCall>,
    /// Folder with the state that the call would make of a skill: it can be tried, and its `SKILL.md` edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
    /// The own command whose text has the call; `None`: a model made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CommandSource>,
}

/// An own command, and the file that it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSource {
    /// Without `/`.
    pub name: String,
    /// Relative to the workspace where it is inside.
    pub file: String,
}

impl std::fmt::Display for CommandSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}, {}", self.name, self.file)
    }
}

/// One call of a script that waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedCall {
    /// In one line.
    pub title: String,
    /// The exact text, or the difference that it makes (unified).
    pub detail: String,
    /// `detail` is a difference.
    pub diff: bool,
    /// A rule allows this one: it is only shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed: bool,
}

/// Whether [`Decision::Outside`] is an answer to a question about a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutsideAnswer {
    /// The call is not confined, or runs outside the sandbox anyway.
    #[default]
    No,
    /// Beside the answers that run it in the sandbox.
    Offered,
    /// In place of them: it has failed in the sandbox.
    Only,
}

impl OutsideAnswer {
    fn is_no(&self) -> bool {
        *self == Self::No
    }
}

/// Why a call is asked about. Stored and sent as its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum AskReason {
    /// No rule covers the call.
    NoRule,
    /// A rule, or another reason, in words.
    Because(String),
}

impl AskReason {
    /// As it is stored, and shown to the user.
    pub fn text(&self) -> &str {
        match self {
            Self::NoRule => "no permission rule matches",
            Self::Because(words) => words,
        }
    }
}

impl std::fmt::Display for AskReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl From<String> for AskReason {
    fn from(words: String) -> Self {
        if words == Self::NoRule.text() { Self::NoRule } else { Self::Because(words) }
    }
}

impl From<&str> for AskReason {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl From<AskReason> for String {
    fn from(reason: AskReason) -> Self {
        reason.text().to_owned()
    }
}

impl PermissionAsk {
    /// The action as it follows "wants to": the verb, or its verb form where `verb` is a noun.
    pub fn wants(&self) -> &str {
        match &self.verb {
            ToolVerb::Shell => "run",
            ToolVerb::Script if self.calls.is_empty() => "run a script",
            ToolVerb::Script => "make the calls of a script",
            ToolVerb::Process => "control a process",
            ToolVerb::Ask => "ask a question",
            ToolVerb::Tool => "call",
            ToolVerb::Memory => "change",
            verb => verb.word(),
        }
    }
}

/// How dangerous an act is. Decides where the dialog's focus starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Inside the workspace and easily undone: focus on "once".
    Low,
    /// Destructive, networked, outside the workspace or not understood: focus on "no".
    High,
}

word_enum! {
    /// The kind of a [`TrustItem`].
    pub enum TrustKind {
        Settings = "settings",
        Permissions = "permissions",
        McpServers = "mcp servers",
        Hooks = "hooks",
        Hook = "hook",
        Plugin = "plugin",
        Agent = "agent",
        Skill = "skill",
        Workflow = "workflow",
        Command = "command",
        /// An output style.
        Style = "style",
        /// A memory file: models see it in each session, and its rules concern calls.
        Memory = "memory",
        /// It configures an external program and nothing of Tiller's own.
        ProgramSettings = "program settings",
        /// A rule of the person that an external program cannot enforce.
        UnenforcedRule = "rule not enforced",
        /// A command that runs what no file pins.
        Unpinned = "not pinned",
        /// It existed when the person agreed, and is gone.
        Removed = "removed",
    }
}

/// How a [`TrustItem`] differs from what the person agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChange {
    New,
    Changed,
}

impl TrustChange {
    /// The word before the kind, followed by a blank.
    fn prefix(self) -> &'static str {
        match self {
            Self::New => "new ",
            Self::Changed => "changed ",
        }
    }
}

/// One thing that a folder brings and that needs trust. In JSON its `kind` begins with `new ` or `changed ` where [`Self::change`] says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TrustItemForm", into = "TrustItemForm")]
pub struct TrustItem {
    pub kind: TrustKind,
    /// `None`: the person agreed to it as it is, or to nothing of the folder yet.
    pub change: Option<TrustChange>,
    /// Path relative to the folder; the command of [`TrustKind::Unpinned`].
    pub path: String,
    /// What it does, in one line.
    pub detail: String,
    /// BLAKE3 of its content, hex: trust applies to this content only.
    pub hash: String,
}

impl TrustItem {
    /// What it is, in words: `changed permissions`.
    pub fn title(&self) -> String {
        format!("{}{}", self.change.map_or("", TrustChange::prefix), self.kind)
    }
}

/// A [`TrustItem`] as it is stored and sent.
#[derive(Serialize, Deserialize)]
struct TrustItemForm {
    kind: String,
    path: String,
    detail: String,
    hash: String,
}

impl From<TrustItem> for TrustItemForm {
    fn from(item: TrustItem) -> Self {
        Self { kind: item.title(), path: item.path, detail: item.detail, hash: item.hash }
    }
}

impl From<TrustItemForm> for TrustItem {
    fn from(form: TrustItemForm) -> Self {
        let TrustItemForm { kind, path, detail, hash } = form;
        let marked = [TrustChange::New, TrustChange::Changed]
            .into_iter()
            .find_map(|change| Some((Some(change), kind.strip_prefix(change.prefix())?)));
        let (change, kind) = marked.unwrap_or((None, &kind));
        Self { kind: kind.into(), change, path, detail, hash }
    }
}

/// The person's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum AskReply {
    /// For `Permission`. `hash` is the hash that the dialog showed.
    Permission {
        decision: Decision,
        hash: String,
    },
    /// For `Clarify`: the chosen texts (one, or several when `multiple`), or free text. For `Plan`: what to
    /// change in it.
    Choice {
        answers: Vec<String>,
    },
    /// Declined (Esc on a question; "no" to trust, budget, model, plan).
    Declined,
    /// For `Trust`: no, and do not ask again for this content. For `Plan`: discard it and leave planning.
    Never,
    /// Yes (trust, model, not saving, plan). For `Budget`: the new limit, if one was typed.
    Yes {
        #[serde(default)]
        value: Option<String>,
    },
    /// For `SessionBusy`: open a branch of it, or open it read-only.
    Branch,
    ReadOnly,
}

/// The person's decision about one permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// This call only.
    Once,
    /// This call only, and outside the sandbox.
    Outside,
    /// Until the session ends, for calls that match `pattern`.
    Session { pattern: String },
    /// Permanently, by a rule in the person's file.
    Always { pattern: String },
    /// Run this text instead (asked again if rules say so).
    Edit { text: String },
    /// No; the comment goes to the model.
    Deny { comment: Option<String> },
}
