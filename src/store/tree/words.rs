//! Parts of payloads for the tree browser: the first lines of the visible rows, and the beginning of each tool result.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use tiller_protocol::tree::{NodeKind, TreeCall, TreeLine, TreeMarks, TreeNode};
use tiller_protocol::{Block, EntryBody, EntryId, Origin, SessionId, StopReason, ToolCall};
use uuid::Uuid;

use crate::error::Result;
use crate::handles::Tree;
use crate::session::steps::StepOf;
use crate::tree::entries::{self, read_body};

/// Bytes at the start of a tool result that contain its call and its outcome, unless the call's id is unusually long.
const HEAD: usize = 300;
/// Bytes at the end of a reply that contain its stop reason and the fields after it.
const END: usize = 500;
/// Maximum characters of a line, and of a text in a call's arguments.
const LINE: usize = 400;
/// Maximum number of results, and of calls of scripts, that are skipped on the way up to their reply.
const UP: usize = 1_000;

/// The beginning of a tool result: call and outcome.
fn head(text: &str) -> Option<(String, String)> {
    let at = |key: &str, from: &str| {
        let rest = &from[from.find(key)? + key.len()..];
        let mut words = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let word = words.next()?.ok()?;
        Some((word, rest[words.byte_offset()..].to_owned()))
    };
    let (call, rest) = at("\"call_id\":", text)?;
    let (_, rest) = at("\"name\":", &rest)?;
    Some((call, at("\"outcome\":", &rest)?.0))
}

fn whole(payload: &str) -> Option<(String, String)> {
    match read_body(payload).ok()? {
        EntryBody::ToolResult { call_id, outcome, .. } => {
            Some((call_id, serde_json::to_value(outcome).ok()?.as_str()?.to_owned()))
        }
        EntryBody::InnerCall { call_id, call, .. } => {
            Some((call_id, serde_json::to_value(call.outcome?).ok()?.as_str()?.to_owned()))
        }
        _ => None,
    }
}

/// Calls and outcomes of these tool results, without reading their outputs.
pub(crate) fn results(conn: &Connection, rows: &[i64]) -> Result<Vec<(i64, String, String)>> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let mut blob = conn.blob_open("main", "entries", "payload", *first, true)?;
    let mut found = Vec::with_capacity(rows.len());
    let mut bytes = [0; HEAD];
    for row in rows {
        blob.reopen(*row)?;
        let n = blob.read_at(&mut bytes, 0)?;
        let parsed = match head(&String::from_utf8_lossy(&bytes[..n])) {
            Some(parsed) => Some(parsed),
            None => {
                let payload: String = conn
                    .prepare_cached("SELECT payload FROM entries WHERE seq = ?1")?
                    .query_row([row], |r| r.get(0))?;
                whole(&payload)
            }
        };
        found.extend(parsed.map(|(call, outcome)| (*row, call, outcome)));
    }
    Ok(found)
}

/// Those of these replies that did not end normally: cut off, stopped, refused, or at their output limit.
fn cut_off(conn: &Connection, rows: &[i64]) -> Result<Vec<i64>> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let mut blob = conn.blob_open("main", "entries", "payload", *first, true)?;
    let mut found = Vec::new();
    let mut bytes = [0; END];
    for row in rows {
        blob.reopen(*row)?;
        let n = blob.read_at(&mut bytes, blob.len().saturating_sub(END))?;
        let ended = match stop(&String::from_utf8_lossy(&bytes[..n])) {
            Some(stop) => stop == "end_turn" || stop == "tool_use",
            None => {
                let payload: String = conn
                    .prepare_cached("SELECT payload FROM entries WHERE seq = ?1")?
                    .query_row([row], |r| r.get(0))?;
                // A damaged one is reported at its own place.
                !matches!(read_body(&payload), Ok(EntryBody::Assistant { stop, .. })
                    if !matches!(stop, StopReason::EndTurn | StopReason::ToolUse))
            }
        };
        if !ended {
            found.push(*row);
        }
    }
    Ok(found)
}

/// The stop reason at the end of a reply. Quotes within texts are escaped, so the last key of that name is the right
/// one: only numbers and the model's name follow it.
fn stop(text: &str) -> Option<Value> {
    const KEY: &str = "\"stop\":";
    let rest = &text[text.rfind(KEY)? + KEY.len()..];
    serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()
}

/// The messages of a session that begin no turn, by their numbers. One that cannot be read counts as one that does.
fn within(conn: &Connection, session: SessionId) -> Result<BTreeMap<i64, Origin>> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, CASE WHEN json_valid(payload) THEN json_extract(payload, '$.origin') END
         FROM entries WHERE session = ?1 AND kind = 'user'",
    )?;
    let mut rows = statement.query(params![session.0])?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let origin = row.get::<_, Option<String>>(1)?.and_then(|o| serde_json::from_value(o.into()).ok());
        if let Some(origin) = origin.filter(|origin: &Origin| !origin.begins_turn()) {
            found.insert(row.get(0)?, origin);
        }
    }
    Ok(found)
}

impl Tree<'_> {
    /// For each entry the number of files that it changed, and which calls failed or replies were cut off.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn marks(&self, session: SessionId) -> Result<TreeMarks> {
        let tree = self.load(session)?;
        let is_call = |n: &&TreeNode| matches!(n.kind, NodeKind::ToolResult | NodeKind::InnerCall);
        let rows: Vec<i64> = tree.nodes.iter().filter(is_call).map(|n| n.seq).collect();
        let replies: Vec<i64> =
            tree.nodes.iter().filter(|n| n.kind == NodeKind::Assistant).map(|n| n.seq).collect();
        let (results, cut, within) = self
            .store
            .read(|conn| Ok((results(conn, &rows)?, cut_off(conn, &replies)?, within(conn, session)?)))?;
        let failed = results.iter().filter(|(.., outcome)| outcome != "ok").map(|(seq, ..)| *seq);
        let mut failed: Vec<i64> = failed.chain(cut).collect();
        failed.sort_unstable();
        // Two branches may use an id twice.
        let mut by_call: HashMap<&str, Vec<usize>> = HashMap::new();
        for (seq, call, _) in &results {
            if let Ok(at) = tree.nodes.binary_search_by_key(seq, |n| n.seq) {
                by_call.entry(call).or_default().push(at);
            }
        }
        // The message that begins the turn of each node; parents come before their children.
        let mut turns: Vec<usize> = Vec::with_capacity(tree.nodes.len());
        for (n, node) in tree.nodes.iter().enumerate() {
            let above = node.parent.and_then(|p| turns.get(p as usize)).copied();
            // A message before the first turn stands for itself.
            let of_message =
                |at: &usize| node.kind != NodeKind::User || tree.nodes[*at].kind == NodeKind::User;
            let begins = node.kind == NodeKind::User && !within.contains_key(&node.seq);
            turns.push(above.filter(of_message).filter(|_| !begins).unwrap_or(n));
        }
        let steps = self.store.steps().list(session, 0)?;
        let mut of_turn: HashMap<i64, HashSet<&str>> = HashMap::new();
        let mut files: BTreeSet<(i64, u32)> = BTreeSet::new();
        for step in steps.iter().filter(|s| !s.files.is_empty()) {
            let StepOf::Call(call) = &step.of else { continue };
            let far = |at: &&usize| tree.nodes[**at].time.millis().abs_diff(step.time.millis());
            let Some(at) = by_call.get(call.as_str()).and_then(|all| all.iter().min_by_key(far)) else {
                continue;
            };
            let seq = tree.nodes[*at].seq;
            files.insert((seq, u32::try_from(step.files.len()).unwrap_or(u32::MAX)));
            let of_message = ToolCall::message_of(call);
            let turn = match of_message {
                // A command of a message stands before it. Where the message was never sent, no turn has it. A shell line
                // is the user's own.
                Some(message) => tree.nodes.iter().position(|n| n.id == message).map(|n| {
                    let own = within.get(&tree.nodes[n].seq) == Some(&Origin::Shell);
                    &tree.nodes[if own { n } else { turns[n] }]
                }),
                None => Some(&tree.nodes[turns[*at]]),
            };
            if let Some(turn) = turn.filter(|turn| turn.seq != seq) {
                of_turn.entry(turn.seq).or_default().extend(step.files.iter().map(|f| f.path.as_str()));
            }
        }
        files.extend(of_turn.iter().map(|(s, f)| (*s, u32::try_from(f.len()).unwrap_or(u32::MAX))));
        Ok(TreeMarks { files: files.into_iter().collect(), failed, within: within.into_keys().collect() })
    }

    /// The first lines of these entries. Entries that are gone are left out.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn lines(&self, entries: &[EntryId]) -> Result<Vec<TreeLine>> {
        self.store.read(|conn| {
            let mut replies = HashMap::new();
            let mut lines = Vec::with_capacity(entries.len());
            for id in entries {
                let Some(raw) = entries::one(conn, id.0)? else { continue };
                let (entry, _) = raw.decode_or_note();
                let mut line = TreeLine { entry: *id, text: words(&entry.body), origin: None, call: None };
                match &entry.body {
                    EntryBody::User { origin, .. } => line.origin = Some(*origin),
                    EntryBody::ToolResult { call_id, name, .. } => {
                        let arguments = match entry.body.message_call() {
                            Some(arguments) => Some(arguments),
                            None => call_of(conn, entry.parent, call_id, &mut replies)?.map(|c| c.arguments),
                        };
                        let arguments = arguments.map_or(Value::Null, |a| shortened(&a));
                        line.call = Some(TreeCall { name: name.clone(), arguments });
                    }
                    EntryBody::InnerCall { call, .. } => {
                        let arguments = shortened(&call.arguments);
                        line.call = Some(TreeCall { name: call.name.clone(), arguments });
                    }
                    _ => {}
                }
                lines.push(line);
            }
            Ok(lines)
        })
    }
}

/// The first line with words.
fn words(body: &EntryBody) -> String {
    let first = |text: &str| {
        let line = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
        line.chars().take(LINE).collect::<String>()
    };
    match body {
        EntryBody::Assistant { blocks, .. } => {
            let text = blocks.iter().find_map(|b| match b {
                Block::Text { text } if !text.trim().is_empty() => Some(first(text)),
                _ => None,
            });
            let called = || {
                let names = blocks.iter().filter_map(|b| match b {
                    Block::ToolCall(c) => Some(c.name.as_str()),
                    _ => None,
                });
                first(&names.collect::<Vec<_>>().join(", "))
            };
            text.unwrap_or_else(called)
        }
        EntryBody::Prefix { .. } => "system prompt and tools".into(),
        EntryBody::Compaction { summary, .. } => format!("summary: {}", gist(summary)),
        EntryBody::BranchSummary { summary, .. } => format!("from another branch: {}", gist(summary)),
        body => first(&body.search_text()),
    }
}

/// The first words of a summary that are not a heading.
fn gist(summary: &str) -> String {
    let lines = || summary.lines().map(str::trim).filter(|l| !l.is_empty());
    let line = lines().find(|l| !l.starts_with('#')).or_else(|| lines().next()).unwrap_or_default();
    line.trim_start_matches(['#', '-', '*', ' ']).chars().take(LINE).collect()
}

/// The call of a result: it is in the nearest reply above.
fn call_of(
    conn: &Connection,
    parent: Option<EntryId>,
    call_id: &str,
    replies: &mut HashMap<Uuid, Vec<ToolCall>>,
) -> Result<Option<ToolCall>> {
    let mut at = parent.map(|p| p.0);
    for _ in 0..UP {
        let Some(id) = at else { break };
        if let Some(calls) = replies.get(&id) {
            return Ok(calls.iter().find(|c| c.id == call_id).cloned());
        }
        let row = conn
            .prepare_cached("SELECT kind, parent FROM entries WHERE id = ?1")?
            .query_row(params![id], |r| Ok((r.get::<_, String>(0)?, r.get::<_, Option<Uuid>>(1)?)))
            .optional()?;
        match row {
            Some((kind, _)) if kind == "assistant" => drop(replies.insert(id, calls(conn, id)?)),
            Some((kind, parent)) if kind != "user" => at = parent,
            _ => break,
        }
    }
    Ok(None)
}

/// The calls of a reply.
fn calls(conn: &Connection, id: Uuid) -> Result<Vec<ToolCall>> {
    let payload: String = conn
        .prepare_cached("SELECT payload FROM entries WHERE id = ?1")?
        .query_row(params![id], |r| r.get(0))?;
    // A damaged one is reported at its own place.
    let Ok(EntryBody::Assistant { blocks, .. }) = read_body(&payload) else { return Ok(Vec::new()) };
    let call = |b| if let Block::ToolCall(c) = b { Some(c) } else { None };
    Ok(blocks.into_iter().filter_map(call).collect())
}

/// Arguments with long texts shortened.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(s) => Value::String(s.chars().take(LINE).collect()),
        Value::Array(a) => Value::Array(a.iter().take(50).map(shortened).collect()),
        Value::Object(o) => Value::Object(o.iter().map(|(k, v)| (k.clone(), shortened(v))).collect()),
        other => other.clone(),
    }
}
