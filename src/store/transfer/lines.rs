//! The export format: a header line, then one line for each row: `{"entry":{"id":...}}`. Lossless.
//!
//! | row | fields |
//! | --- | --- |
//! | (header) | `tiller: "session"`, `version`, `session` |
//! | `todo` | `n` (named by entries and heads), `entry`, `list` |
//! | `entry` | `id`, `parent`, `agent`, `time`, `snapshot`, `todo`, `body` (as in the protocol) |
//! | `head` | `name`, `entry`, `todo`, `label`, `archived` |
//! | `tag` | `name`, `entry`, `time` |
//! | `step` | the columns: states of the workspace's files |
//! | `op` | `body` |
//! | `queued`, `ask`, `pending` | `body`, `head` (missing in old files: the current one) |
//! | `audit`, `call`, `prompt`, `rule`, `draft` | the columns |
//! | `agent`, `workflow`, `workflow_step` | the columns: agents that worked for the session, and their states |
//! | `session` | as in the header: the following lines are of this session, which was started by one before it |
//!
//! Parents come before their children. Readers ignore unknown fields. Data of this machine (leases, the running turn)
//! is left out. Version 1 had no tags, no steps and no names of branches, version 2 no agents, no workflows and one
//! session only.

use std::collections::HashSet;
use std::io::BufRead;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tiller_protocol::PermissionOutcome;
use tiller_protocol::{EntryBody, Message};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::tree::entries::read_body;

/// Version of the format.
pub(crate) const VERSION: u32 = 3;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) tiller: String,
    pub(crate) version: u32,
    pub(crate) session: SessionLine,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionLine {
    pub(crate) id: Uuid,
    pub(crate) project: String,
    pub(crate) title: String,
    pub(crate) created: i64,
    pub(crate) used: i64,
    pub(crate) model: String,
    pub(crate) profile: String,
    pub(crate) head: String,
    pub(crate) budget: Option<i64>,
    pub(crate) archived: i64,
    pub(crate) spawned_by: Option<Uuid>,
    pub(crate) cost: Option<i64>,
    pub(crate) preview: String,
    /// What made it, unless a person did. Missing in older files, as the git branch.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) origin: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) git_branch: String,
}

/// Unsent text.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DraftLine {
    pub message: Message,
    /// Texts that were set aside, the latest last.
    pub aside: Vec<Message>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Todo {
        n: i64,
        entry: Option<Uuid>,
        list: Box<RawValue>,
    },
    Entry(EntryLine),
    Head(HeadLine),
    Tag(TagLine),
    Step(StepLine),
    Op {
        body: Box<RawValue>,
    },
    Queued(Waiting),
    Ask(Waiting),
    Pending(Waiting),
    Audit(AuditLine),
    Call(CallLine),
    Prompt {
        time: i64,
        text: String,
    },
    Rule {
        time: i64,
        text: String,
    },
    /// In files of earlier versions only.
    Draft {
        project: String,
        body: DraftLine,
    },
    Agent(AgentLine),
    Workflow(WorkflowLine),
    WorkflowStep(WorkflowStepLine),
    /// The lines of another session begin.
    Session(Box<SessionLine>),
}

/// Something that waits on a head.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) body: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeadLine {
    pub(crate) name: String,
    pub(crate) entry: Option<Uuid>,
    pub(crate) todo: Option<i64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) label: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) archived: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TagLine {
    pub(crate) name: String,
    pub(crate) entry: Uuid,
    pub(crate) time: i64,
}

/// The subject is in the field of its kind: `entry` of a point, `call`, `op` of a restore.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepLine {
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) op: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
    pub(crate) after: String,
    pub(crate) files: Box<RawValue>,
    pub(crate) time: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) began: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EntryLine {
    pub(crate) id: Uuid,
    pub(crate) parent: Option<Uuid>,
    pub(crate) agent: String,
    pub(crate) time: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) todo: Option<i64>,
    pub(crate) body: Box<RawValue>,
    /// The text of a damaged entry, whose body is then a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) damaged: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AuditLine {
    pub(crate) time: i64,
    pub(crate) agent: String,
    pub(crate) tool: String,
    pub(crate) what: String,
    pub(crate) decision: PermissionOutcome,
    pub(crate) by: String,
    pub(crate) seconds: f64,
    pub(crate) outcome: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallLine {
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) tier: String,
    pub(crate) day: String,
    pub(crate) time: i64,
    /// input, output, cache_read, cache_write, reasoning
    pub(crate) tokens: [i64; 5],
    pub(crate) cost: Option<i64>,
    /// At least one count of `tokens` is an estimate. Left out when false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) estimated: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AgentLine {
    pub(crate) name: String,
    pub(crate) session: Uuid,
    pub(crate) brief: Box<RawValue>,
    pub(crate) state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<Box<RawValue>>,
    pub(crate) announced: bool,
    pub(crate) created: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkflowLine {
    pub(crate) id: String,
    pub(crate) definition: Box<RawValue>,
    pub(crate) state: String,
    pub(crate) created: i64,
    /// Missing in older files: those agents are not reported again.
    #[serde(default = "told")]
    pub(crate) announced: bool,
}

fn told() -> bool {
    true
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkflowStepLine {
    pub(crate) workflow: String,
    pub(crate) step: String,
    pub(crate) state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<Box<RawValue>>,
}

/// Maximum bytes of one line.
const LINE: u64 = 256 * 1024 * 1024;

/// A line, and the body's text if it is an entry.
pub(crate) struct ParsedLine {
    pub(crate) line: Line,
    pub(crate) number: usize,
    pub(crate) body: Option<EntryBody>,
}

pub(crate) fn wrong(line: usize, detail: impl std::fmt::Display) -> StoreError {
    StoreError::Import { line, detail: detail.to_string() }
}

/// A line of a file.
pub(crate) enum FileLine {
    /// The lines of a session begin: the exported one first, then those that were started by it or below it.
    Session(Box<SessionLine>),
    Row(Box<ParsedLine>),
}

/// Calls `take` with each line of a file, which is checked by itself. No session id may occur twice. Returns the hash of the
/// file.
pub(crate) fn each(
    input: &mut dyn BufRead,
    mut take: impl FnMut(FileLine) -> Result<()>,
) -> Result<blake3::Hash> {
    let mut seen = HashSet::new();
    let hash = texts(input, |line, number| {
        let next = if seen.is_empty() {
            let first: Header = serde_json::from_str(line)
                .map_err(|e| wrong(number, format!("not the start of an exported session: {e}")))?;
            if first.tiller != "session" || first.version > VERSION {
                return Err(wrong(number, format!("version {} is newer than {VERSION}", first.version)));
            }
            Box::new(first.session)
        } else {
            match serde_json::from_str(line).map_err(|e| wrong(number, e))? {
                Line::Session(session) => session,
                line => {
                    let body = match &line {
                        Line::Entry(entry) => {
                            Some(read_body(entry.body.get()).map_err(|e| wrong(number, e))?)
                        }
                        _ => None,
                    };
                    return take(FileLine::Row(Box::new(ParsedLine { line, number, body })));
                }
            }
        };
        if !seen.insert(next.id) {
            return Err(wrong(number, format!("session {} appears twice", next.id)));
        }
        take(FileLine::Session(next))
    })?;
    if seen.is_empty() { Err(wrong(1, "the file is empty")) } else { Ok(hash) }
}

/// Calls `take` with the text and the number of each line that is not blank. Returns the hash of the file.
pub(crate) fn texts(
    input: &mut dyn BufRead,
    mut take: impl FnMut(&str, usize) -> Result<()>,
) -> Result<blake3::Hash> {
    use std::io::Read;
    let mut hasher = blake3::Hasher::new();
    let mut text = String::new();
    for number in 1.. {
        text.clear();
        let read = (&mut *input).take(LINE).read_line(&mut text).map_err(|e| wrong(number, e))?;
        if read == 0 {
            break;
        }
        hasher.update(text.as_bytes());
        if !text.ends_with('\n') && text.len() as u64 >= LINE {
            return Err(wrong(number, "the line is too long"));
        }
        if !text.trim().is_empty() {
            take(text.trim(), number)?;
        }
    }
    Ok(hasher.finalize())
}
