//! The texts that the agents of a session have read and were told, for the decision where they may send something.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tiller_permit::{Heard, Policy, Request, Verdict};
use tiller_protocol::{
    Access, Attachment, Block, Entry, EntryBody, EntryId, Part, RuleArgument, SessionId, Taint, ToolCall,
};

use super::permission::{Permit, Question};
use crate::lock::lock;

/// The beginning of a mask.
const MASK: &str = "[redacted ";

/// The source of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySource {
    /// Its words are the user's own.
    pub(crate) user: bool,
    /// The least trusted text that it brought.
    pub(crate) taint: Taint,
}

/// Texts of one session, those of its agents included.
#[derive(Debug, Default)]
pub(crate) struct SessionHeard {
    heard: Heard,
    /// The last entry that was taken in, of the path of each agent.
    last: HashMap<SessionId, EntryId>,
    /// It has entries of earlier runs of the program, whose calls were not seen.
    resumed: bool,
}

impl SessionHeard {
    pub(super) fn sending(&self, policy: &Policy, request: &Request<'_>, verdict: Verdict) -> Verdict {
        tiller_permit::sending(policy, request, &self.heard, verdict)
    }

    fn take_in(
        &mut self,
        policy: &Policy,
        agent: SessionId,
        path: &[Arc<Entry>],
        source: impl Fn(&Entry) -> EntrySource,
    ) {
        let before = self.last.get(&agent);
        let earlier = before.is_none() && self.resumed;
        let from = before.and_then(|last| path.iter().rposition(|e| e.id == *last)).map_or(0, |at| at + 1);
        for entry in &path[from..] {
            self.entry(policy, entry, source(entry));
            if earlier {
                self.unseen(policy, entry);
            }
        }
        if let Some(entry) = path.last() {
            self.last.insert(agent, entry.id);
        }
    }

    fn entry(&mut self, policy: &Policy, entry: &Entry, source: EntrySource) {
        let mut name = "an earlier text";
        match &entry.body {
            EntryBody::User { message, content, .. } => {
                if source.user {
                    self.heard.user(&message.text);
                }
                texts(content).for_each(|text| self.heard.text(text));
                for attachment in &message.attachments {
                    if let Attachment::File { path, .. } = attachment {
                        self.heard.reads(policy, "", &[read(policy, path)]);
                    }
                }
                name = "a message";
            }
            EntryBody::ToolResult { name: tool, content, .. } => {
                for text in texts(content) {
                    self.heard.text(text);
                    if text.contains(MASK) {
                        self.heard.private(format!("a secret in a result of {tool}"));
                    }
                    if tiller_tool::foreign::has_frame(text) {
                        self.heard.foreign(tool);
                    }
                }
                name = tool;
            }
            _ => {}
        }
        if source.taint == Taint::Web {
            self.heard.foreign(name);
        }
    }

    /// The reads of an entry of an earlier run. A summary stands for calls that are not known.
    fn unseen(&mut self, policy: &Policy, entry: &Entry) {
        match &entry.body {
            EntryBody::Assistant { blocks, .. } => {
                for block in blocks {
                    if let Block::ToolCall(call) = block {
                        self.heard.reads(policy, &call.name, &access_of(policy, call));
                    }
                }
            }
            EntryBody::Compaction { .. } => {
                self.heard.private("the part of the session that a summary stands for")
            }
            _ => {}
        }
    }
}

fn texts(content: &[Part]) -> impl Iterator<Item = &str> {
    content.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None })
}

fn read(policy: &Policy, path: &str) -> Access {
    let path = policy.roots.workspace.join(Path::new(path));
    Access::Read { path: path.display().to_string(), inside: false }
}

/// The reads of a call of Tiller's own tools, by its arguments.
fn access_of(policy: &Policy, call: &ToolCall) -> Vec<Access> {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let folder = policy.roots.workspace.display().to_string();
    match policy.tools.get(&call.name).map(|tool| tool.rule) {
        Some(RuleArgument::ReadPath | RuleArgument::EditPath) => {
            text("path").map(|path| read(policy, path)).into_iter().collect()
        }
        Some(RuleArgument::Command) => text("command")
            .map(|command| Access::Run { command: command.into(), folder, background: false })
            .into_iter()
            .collect(),
        Some(RuleArgument::Text) => {
            text("code").map(|code| Access::Script { code: code.into() }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

impl Permit {
    /// Forgets the session before; another one is open. `resumed`: it has entries of earlier runs.
    pub(crate) fn hear_anew(&self, resumed: bool) {
        *lock(&self.heard) = SessionHeard { resumed, ..SessionHeard::default() };
    }

    /// Takes in what is new on the path of an agent. May take some milliseconds.
    pub(crate) fn hear(&self, agent: SessionId, path: &[Arc<Entry>], source: impl Fn(&Entry) -> EntrySource) {
        self.in_force(|policy| lock(&self.heard).take_in(policy, agent, path, source));
    }

    /// Notes that the path of an agent could not be taken in: what was read counts as private.
    pub(crate) fn heard_unknown(&self) {
        lock(&self.heard).heard.private("what is not known");
    }

    /// Takes in a call that runs. `agreed`: the user was asked.
    pub(crate) fn hear_call(&self, question: &Question<'_>, agreed: bool) {
        self.with_request(question, |policy, request| {
            let heard = &mut lock(&self.heard).heard;
            if agreed {
                heard.agreed(policy, request);
            }
            heard.reads(policy, request.tool, request.access);
        });
    }
}
