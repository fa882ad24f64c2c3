//! Builds a valid session from another program's records: parents come first, each call has exactly one result directly
//! after it, ids are the same at each import. The result is a file as `sessions export` writes it.

use std::collections::HashMap;

use serde_json::{Value, json};
use tiller_protocol::{
    AgentId, Block, Cost, EntryBody, EntryId, ModelRef, Origin, Part, StopReason, Time, ToolOutcome, Usage,
};
use uuid::Uuid;

use super::talk::{Conversation, Item, Record};

/// Maximum characters of a title made from the first words.
const TITLE: usize = 80;
/// The branch for records that are not part of the conversation.
const RECORDS: &str = "records";

/// A call, and the place of its result.
struct Group {
    /// The last of the reply and its results: later items are attached here.
    tail: usize,
}

struct Build<'a> {
    program: &'static str,
    talk: &'a Conversation,
    /// Items that become entries: the transcript's, and missing results.
    items: Vec<Item>,
    /// Number of the transcript's items.
    theirs: usize,
    parents: Vec<Option<usize>>,
    groups: HashMap<usize, Group>,
    /// For each item, the reply whose group it belongs to.
    member: HashMap<usize, usize>,
}

/// The session as JSON lines. `None`: it has no messages.
pub(super) fn lines(program: &'static str, mut talk: Conversation) -> Option<String> {
    if talk.items.is_empty() {
        return None;
    }
    let items = std::mem::take(&mut talk.items);
    let mut build = Build {
        program,
        talk: &talk,
        theirs: items.len(),
        parents: vec![None; items.len()],
        items,
        groups: HashMap::new(),
        member: HashMap::new(),
    };
    build.calls();
    build.link();
    Some(build.write())
}

impl Build<'_> {
    /// Gives each call exactly one result, and a unique id.
    fn calls(&mut self) {
        // The transcript's id of a call → the reply, and the new id while it waits for its result.
        let mut open: HashMap<String, (usize, String, bool)> = HashMap::new();
        let mut used: HashMap<String, usize> = HashMap::new();
        let mut chains: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut replies = Vec::new();
        for at in 0..self.theirs {
            match &mut self.items[at].body {
                EntryBody::Assistant { blocks, .. } => {
                    for block in blocks {
                        let Block::ToolCall(call) = block else { continue };
                        let id = call.id.clone();
                        let times = used.entry(id.clone()).or_default();
                        *times += 1;
                        if *times > 1 || id.is_empty() {
                            call.id = format!("{id}#{times}");
                        }
                        // No message of the user's made it.
                        if tiller_protocol::ToolCall::is_of_message(&call.id) {
                            call.id.insert_str(0, "call_");
                        }
                        open.insert(id, (at, call.id.clone(), false));
                        if replies.last() != Some(&at) {
                            replies.push(at);
                        }
                    }
                }
                EntryBody::ToolResult { call_id, content, name, .. } => {
                    match open.get_mut(call_id.as_str()) {
                        Some((reply, ours, answered)) if !*answered => {
                            *answered = true;
                            call_id.clone_from(ours);
                            chains.entry(*reply).or_default().push(at);
                        }
                        // A second result, or one without a call: not valid for a model, but kept for the user.
                        _ => {
                            let words: Vec<&str> = content.iter().filter_map(words).collect();
                            let text = format!("A result of {name} without a call:\n{}", words.join("\n"));
                            self.items[at].body = EntryBody::Note { text };
                        }
                    }
                }
                _ => {}
            }
        }
        for reply in replies {
            let mut chain = chains.remove(&reply).unwrap_or_default();
            let missing: Vec<(String, String)> = match &self.items[reply].body {
                EntryBody::Assistant { blocks, .. } => blocks
                    .iter()
                    .filter_map(|b| if let Block::ToolCall(c) = b { Some((c.id.clone(), c.name.clone())) } else { None })
                    .filter(|(id, _)| !chain.iter().any(|at| matches!(&self.items[*at].body, EntryBody::ToolResult { call_id, .. } if call_id == id)))
                    .collect(),
                _ => Vec::new(),
            };
            for (id, name) in missing {
                chain.push(self.items.len());
                self.parents.push(None);
                self.items.push(no_result(&self.items[reply], id, name));
            }
            let mut above = reply;
            for at in chain {
                self.parents[at] = Some(above);
                self.member.insert(at, reply);
                above = at;
            }
            self.member.insert(reply, reply);
            self.groups.insert(reply, Group { tail: above });
        }
    }

    /// The parent of an item that names `at`: never between a call and its result.
    fn below(&self, at: usize) -> usize {
        self.member.get(&at).and_then(|reply| self.groups.get(reply)).map_or(at, |group| group.tail)
    }

    fn link(&mut self) {
        for at in 0..self.items.len() {
            if self.parents[at].is_some() {
                continue;
            }
            let named = self.talk.place(self.items[at].parent.as_deref());
            let above = match named {
                Ok(above) if above.is_none_or(|a| a < at) => above,
                // The parent does not exist or comes later: use the line before.
                _ => at.checked_sub(1),
            };
            self.parents[at] = above.map(|a| self.below(a));
        }
    }

    /// Parents before children, otherwise in the order of the file.
    fn order(&self) -> Vec<usize> {
        let mut below: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (at, parent) in self.parents.iter().enumerate() {
            below.entry(*parent).or_default().push(at);
        }
        let mut order = Vec::with_capacity(self.items.len());
        let mut todo: Vec<usize> = below.get(&None).into_iter().flatten().rev().copied().collect();
        while let Some(at) = todo.pop() {
            order.push(at);
            todo.extend(below.get(&Some(at)).into_iter().flatten().rev().copied());
        }
        order
    }

    fn id(&self, key: &str, time: Time) -> Uuid {
        let mut hash = blake3::Hasher::new();
        for part in [self.program, &self.talk.id, key] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut rest = [0; 10];
        rest.copy_from_slice(&hash.finalize().as_bytes()[..10]);
        uuid::Builder::from_unix_timestamp_millis(u64::try_from(time.0).unwrap_or(0), &rest).into_uuid()
    }

    fn write(&self) -> String {
        let times = || self.items.iter().map(|i| i.time);
        let (first, last) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
        let mut out = String::new();
        let mut put = |line: Value| {
            out.push_str(&line.to_string());
            out.push('\n');
        };
        let prompts = || {
            self.items.iter().filter_map(|i| match &i.body {
                EntryBody::User { message, origin: Origin::Prompt | Origin::Steer, .. } => {
                    Some(message.text.as_str())
                }
                _ => None,
            })
        };
        let title =
            if self.talk.title.trim().is_empty() { prompts().next().unwrap_or("") } else { &self.talk.title };
        let cost = self.items.iter().filter_map(|i| match &i.body {
            EntryBody::Assistant { cost, .. } => *cost,
            _ => None,
        });
        put(json!({"tiller": "session", "version": 2, "session": {
            "id": self.id("", first), "project": self.talk.project, "title": in_short(title, TITLE),
            "created": first.0, "used": last.0, "model": self.talk.model, "profile": "ask", "head": "main",
            "budget": null, "archived": 0, "spawned_by": null,
            "cost": cost.reduce(Cost::plus), "preview": in_short(prompts().next_back().unwrap_or(""), 200),
        }}));
        let order = self.order();
        let ids: Vec<Uuid> = self.items.iter().map(|i| self.id(&i.key, i.time)).collect();
        for at in &order {
            let item = &self.items[*at];
            let mut body = item.body.clone();
            if let EntryBody::Compaction { kept_from, .. } = &mut body {
                // The kept part begins with a complete reply.
                let from = item.kept.as_deref().and_then(|key| self.talk.place(Some(key)).ok().flatten());
                *kept_from = from.map(|at| EntryId(ids[*self.member.get(&at).unwrap_or(&at)]));
            }
            put(json!({"entry": {
                "id": ids[*at], "parent": self.parents[*at].map(|p| ids[p]), "agent": item.agent,
                "time": item.time.0, "body": body,
            }}));
        }
        let mut above: Option<Uuid> = None;
        for record in &self.talk.records {
            let id = self.id(&format!("record {}", record.line), record.time);
            put(json!({"entry": {
                "id": id, "parent": above, "agent": AgentId::main(), "time": record.time.0,
                "body": self.record(record),
            }}));
            above = Some(id);
        }
        let end = self.end();
        put(json!({"head": {"name": "main", "entry": end.map(|at| ids[at]), "todo": null}}));
        let mut n = 1;
        for at in order.iter().filter(|at| Some(**at) != end && !self.parents.contains(&Some(**at))) {
            n += 1;
            let label = if self.items[*at].agent == AgentId::main() {
                String::new()
            } else {
                format!("sub-agent {n}")
            };
            put(
                json!({"head": {"name": format!("branch-{n}"), "entry": ids[*at], "todo": null, "label": label}}),
            );
        }
        if let Some(last) = above {
            let label = format!("{} (not part of the conversation)", self.program);
            put(
                json!({"head": {"name": RECORDS, "entry": last, "todo": null, "label": label, "archived": true}}),
            );
        }
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (name, key) in &self.talk.tags {
            let Ok(Some(at)) = self.talk.place(Some(key)) else { continue };
            let times = names.entry(name).or_default();
            *times += 1;
            let name = if *times > 1 { format!("{name} ({times})") } else { name.clone() };
            put(json!({"tag": {"name": name, "entry": ids[at], "time": last.0}}));
        }
        out
    }

    /// The user's last place: as the file says, else the end of the path with the last line.
    fn end(&self) -> Option<usize> {
        let main = AgentId::main();
        let named = self.talk.end.as_deref().and_then(|key| self.talk.place(Some(key)).ok().flatten());
        let last = (0..self.theirs).rfind(|at| self.items[*at].agent == main);
        let mut at = self.below(named.or(last).or(self.theirs.checked_sub(1))?);
        // Down to a leaf while there is only one path.
        loop {
            let mut next = self.parents.iter().enumerate().filter(|(_, p)| **p == Some(at)).map(|(n, _)| n);
            match (next.next(), next.next()) {
                (Some(only), None) => at = only,
                _ => return Some(at),
            }
        }
    }

    /// A record: kept complete, but neither searched nor sent to a model.
    fn record(&self, record: &Record) -> EntryBody {
        match &record.body {
            Ok(raw) => EntryBody::Assistant {
                blocks: vec![Block::Unknown { provider: self.program.into(), raw: raw.clone() }],
                stop: StopReason::EndTurn,
                model: ModelRef(self.program.into()),
                usage: Usage::default(),
                cost: None,
            },
            Err((text, why)) => {
                EntryBody::Note { text: format!("Line {} could not be read ({why}):\n{text}", record.line) }
            }
        }
    }
}

fn words(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::Image { .. } => None,
    }
}

fn no_result(reply: &Item, call_id: String, name: String) -> Item {
    let text = "The transcript contains no result of this call.".to_owned();
    Item {
        key: format!("no result of {call_id}"),
        parent: None,
        time: reply.time,
        agent: reply.agent.clone(),
        body: EntryBody::plain_result(call_id, name, ToolOutcome::Interrupted, vec![Part::Text { text }]),
        kept: None,
    }
}

/// The first words, in one line.
fn in_short(text: &str, most: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(most) {
        Some((end, _)) => words[..end].to_owned(),
        None => words,
    }
}
