//! The pure part of compaction: when it is due, which messages are kept verbatim, and the text that is summarised. A
//! call is never separated from its result.

use std::fmt::Write;
use std::sync::Arc;

use tiller_config::schema::Context;
use tiller_protocol::view::{CompactPreview, EntryAuthor, RoleTokens};
use tiller_protocol::{Block, Carried, Entry, EntryBody, EntryId, Origin, Part, ToolOutcome};

use crate::context::compaction::carried::{self, LongContent};
use crate::context::request::{is_message, live};
use crate::context::tokens;

/// The prompt of the summariser.
pub(crate) const PROMPT: &str = include_str!("../../../../assets/prompts/compact.md");
/// Tokens at which a path is compacted, and that results share, when neither the configuration nor the model table states a limit.
pub(crate) const UNKNOWN_WINDOW: u64 = 100_000;
/// Assumed size of a summary, in tokens.
const SUMMARY: u64 = 1_000;
/// Entries that a preview names.
const NAMED: usize = 50;
/// Messages that are always kept.
const LEAST: usize = 2;
/// Characters kept of one tool result in the transcript.
const RESULT: usize = 3_000;
/// Characters kept of a message of the user or the model.
const WORDS: usize = 12_000;

/// The size of a context after a compaction, or after one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactedSize {
    /// The last entry at that time.
    pub at: EntryId,
    pub tokens: u64,
    pub messages: u64,
    /// Tokens at which it was due.
    pub limit: u64,
}

impl CompactedSize {
    /// The present size, with the limit that holds. `None`: the path is empty.
    pub(crate) fn of(path: &[Arc<Entry>], limit: u64) -> Option<Self> {
        let live = live(path);
        let messages = live.iter().filter(|e| is_message(e)).count() as u64;
        Some(Self { at: path.last()?.id, tokens: tokens::of_path(&live).0, messages, limit })
    }

    /// True after a growth of more than a tenth.
    fn has_grown(before: u64, now: u64) -> bool {
        now > before.saturating_add(before / 10)
    }
}

/// Tokens at which a path is compacted.
pub(crate) fn limit(settings: &Context, window: Option<u64>) -> u64 {
    settings.compact_tokens.unwrap_or_else(|| window.map_or(UNKNOWN_WINDOW, |w| w / 5 * 4))
}

/// True for a path that is over one of the limits, and over a tenth larger than `last` left it: another compaction would free
/// nothing before.
pub(crate) fn due(
    path: &[Arc<Entry>],
    settings: &Context,
    window: Option<u64>,
    last: Option<CompactedSize>,
) -> bool {
    let Some(now) = CompactedSize::of(path, limit(settings, window)) else { return false };
    // That of another branch, or under a larger limit, says nothing.
    let last = last.filter(|last| last.limit <= now.limit && path.iter().rev().any(|e| e.id == last.at));
    let grown = |before: fn(CompactedSize) -> u64, now| {
        last.is_none_or(|last| CompactedSize::has_grown(before(last), now))
    };
    let many = settings.compact_messages.is_some_and(|most| now.messages > most);
    let long = now.tokens > now.limit;
    (many && grown(|last| last.messages, now.messages)) || (long && grown(|last| last.tokens, now.tokens))
}

/// What a compaction does with a path.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Oldest first; may begin with an earlier summary.
    pub goes: Vec<Arc<Entry>>,
    /// The first entry that is kept word for word.
    pub kept_from: Option<EntryId>,
    pub kept: usize,
    pub tokens_before: u64,
    /// Tokens that are kept, without the summary and the todo list.
    pub tokens_kept: u64,
    /// Contents that later requests have in place of entries.
    pub carried: Carried,
    /// Kept contents that are to be shortened.
    pub long: Vec<LongContent>,
}

impl Plan {
    /// True where there is something to summarise.
    pub(crate) fn sums_up(&self) -> bool {
        self.goes.iter().any(|e| is_message(e))
    }

    /// The summary of a plan that sums up nothing: that of before.
    pub(crate) fn earlier(&self) -> String {
        let earlier = self.goes.iter().rev().find_map(|e| match &e.body {
            EntryBody::Compaction { summary, .. } => Some(summary.clone()),
            _ => None,
        });
        earlier.unwrap_or_default()
    }
}

/// How much of the end of a path is kept verbatim. The last two messages always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepLimits {
    pub tokens: u64,
    /// `None`: as many as fit into `tokens`.
    pub messages: Option<u64>,
    /// Percentage of the conversation that may be kept, so that a short one becomes shorter too.
    pub share: u64,
    /// Tokens of the whole request afterwards; kept results are shortened for it.
    pub room: u64,
    /// Kept messages are, too.
    pub shorten_words: bool,
}

impl KeepLimits {
    /// Keeps up to this many tokens, in a request of up to `room`.
    pub(crate) fn tokens(tokens: u64, room: u64) -> Self {
        Self { tokens, messages: None, share: 100, room, shorten_words: false }
    }
}

/// Why nothing can be summarised, for people.
pub(crate) fn nothing_to_do(path: &[Arc<Entry>]) -> String {
    let messages = live(path).iter().filter(|e| is_message(e)).count();
    match messages {
        0 => "there is nothing to compact: the conversation is empty".into(),
        _ => format!(
            "there is nothing to compact: the conversation has {messages} message(s), and the last \
            {LEAST} with their tool calls are always kept"
        ),
    }
}

/// Keeps the end of the path as `keep` says. `None` when nothing is left to summarise or to shorten.
pub(crate) fn plan(path: &[Arc<Entry>], keep: KeepLimits) -> Option<Plan> {
    let live = live(path);
    let (prefix, rest) = live.split_first()?;
    let all: u64 = rest.iter().map(|e| tokens::of_entry(e)).sum();
    let most =
        keep.tokens.min((u128::from(all) * u128::from(keep.share) / 100).try_into().unwrap_or(u64::MAX));
    let messages = keep.messages.unwrap_or(u64::MAX);
    let mut from = rest.len();
    let mut size = 0;
    let mut kept = 0;
    while let Some(start) = step_back(rest, from) {
        let more: u64 = rest[start..from].iter().map(|e| tokens::of_entry(e)).sum();
        let enough = size + more > most || kept >= messages;
        if rest.len() - from >= LEAST && enough {
            break;
        }
        size += more;
        kept += rest[start..from].iter().filter(|e| is_message(e)).count() as u64;
        from = start;
    }
    let (goes, stays) = (rest[..from].to_vec(), &rest[from..]);
    let sums = goes.iter().any(|e| is_message(e));
    let mut carried = carried::messages(&goes, stays, keep.room / 4);
    let words: u64 = carried.words().map(|m| tokens::of_parts(&m.content)).sum();
    let fixed = stays.iter().filter(|e| !carried::may_shorten(e, keep.shorten_words));
    let others: u64 = fixed.map(|e| tokens::of_entry(e)).sum();
    let fixed = tokens::of_entry(prefix) + words + others + if sums { SUMMARY } else { 0 };
    let (long, freed) = carried::long_contents(stays, keep.room.saturating_sub(fixed), keep.shorten_words);
    if !sums && long.is_empty() {
        return None;
    }
    // Contents that were shortened before stay so.
    carried.shortened = carried::shortened_before(path, stays);
    let (tokens_before, exact) = tokens::of_path(&live);
    let mut tokens_kept = (tokens::of_entry(prefix) + size + words).saturating_sub(freed);
    if exact {
        // Scales the estimate to the provider's count, so that both numbers have the same unit.
        let estimate: u64 = live.iter().map(|e| tokens::of_entry(e)).sum();
        tokens_kept = (u128::from(tokens_kept) * u128::from(tokens_before) / u128::from(estimate.max(1)))
            .try_into()
            .unwrap_or(u64::MAX);
    }
    Some(Plan {
        goes,
        kept_from: rest.get(from).map(|e| e.id),
        kept: rest.len() - from,
        tokens_before,
        tokens_kept,
        carried,
        long,
    })
}

/// The start of the message that ends before `end`; `None` at the beginning or at an earlier summary.
fn step_back(rest: &[Arc<Entry>], end: usize) -> Option<usize> {
    let mut at = end.checked_sub(1)?;
    while matches!(rest[at].body, EntryBody::ToolResult { .. }) && at > 0 {
        at -= 1;
    }
    is_message(&rest[at]).then_some(at)
}

/// The preview that is shown before a compaction.
///
/// Counts every entry that is removed by its role, and names the first [`NAMED`] of them.
pub(crate) fn preview(plan: &Plan) -> CompactPreview {
    let mut by_role: Vec<RoleTokens> = Vec::new();
    let mut goes = Vec::new();
    for entry in &plan.goes {
        let role = role(&entry.body);
        let tokens = tokens::of_entry(entry);
        match by_role.iter_mut().find(|r| r.role == role) {
            Some(r) => (r.entries, r.tokens) = (r.entries + 1, r.tokens + tokens),
            None => by_role.push(RoleTokens { role: role.clone(), entries: 1, tokens }),
        }
        goes.push(match first_line(&said(&entry.body)) {
            line if line.is_empty() => format!("{role}, about {tokens} tokens"),
            line => format!("{role}: {line}"),
        });
    }
    let more = goes.len().saturating_sub(NAMED);
    goes.truncate(NAMED);
    if more > 0 {
        goes.push(format!("and {more} more"));
    }
    CompactPreview {
        tokens_before: plan.tokens_before,
        tokens_after: plan.tokens_kept
            + if plan.sums_up() { SUMMARY } else { tokens::of_text(&plan.earlier()) },
        summarised: plan.goes.len() as u64,
        kept: plan.kept as u64,
        goes,
        by_role,
    }
}

/// The role of an entry, as text for the user.
fn role(body: &EntryBody) -> EntryAuthor {
    match body {
        EntryBody::User { origin: Origin::Engine | Origin::Task, .. } => EntryAuthor::Engine,
        EntryBody::User { .. } => EntryAuthor::User,
        EntryBody::Assistant { .. } => EntryAuthor::Agent,
        EntryBody::ToolResult { .. } | EntryBody::InnerCall { .. } => EntryAuthor::ToolResult,
        EntryBody::Compaction { .. } => EntryAuthor::Compaction,
        EntryBody::BranchSummary { .. } => EntryAuthor::BranchSummary,
        EntryBody::Prefix { .. } | EntryBody::Checkpoint { .. } | EntryBody::Note { .. } => EntryAuthor::Note,
    }
}

fn said(body: &EntryBody) -> String {
    match body {
        EntryBody::ToolResult { name, content, .. } => format!("{name} {}", first_line(&words(content))),
        EntryBody::Assistant { blocks, .. } => {
            let text = blocks.iter().find_map(|b| match b {
                Block::Text { text } if !text.trim().is_empty() => Some(text.clone()),
                _ => None,
            });
            let calls = || {
                let names = blocks.iter().filter_map(|b| match b {
                    Block::ToolCall(c) => Some(c.name.as_str()),
                    _ => None,
                });
                format!("calls {}", names.collect::<Vec<_>>().join(", "))
            };
            text.unwrap_or_else(calls)
        }
        other => other.search_text(),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
    line.trim().chars().take(120).collect()
}

/// The entries as text for the summariser, at most about `most` characters.
pub(crate) fn transcript(entries: &[Arc<Entry>], focus: Option<&str>, most: usize) -> String {
    let mut out = String::new();
    for e in entries {
        // Writing to a string cannot fail.
        let _ = match &e.body {
            EntryBody::Compaction { summary, .. } => writeln!(out, "[earlier summary]\n{summary}\n"),
            EntryBody::BranchSummary { summary, .. } => {
                writeln!(out, "[summary of another branch]\n{summary}\n")
            }
            EntryBody::User { content, origin: Origin::Task, .. } => {
                writeln!(out, "[task from Tiller]\n{}\n", cut(&words(content), WORDS))
            }
            EntryBody::User { content, .. } => writeln!(out, "[person]\n{}\n", cut(&words(content), WORDS)),
            EntryBody::Assistant { blocks, .. } => {
                for b in blocks {
                    let _ = match b {
                        Block::Text { text } => writeln!(out, "[agent]\n{}\n", cut(text, WORDS)),
                        Block::ToolCall(c) => {
                            writeln!(out, "[call] {} {}\n", c.name, cut(&c.arguments.to_string(), RESULT))
                        }
                        _ => Ok(()),
                    };
                }
                Ok(())
            }
            EntryBody::ToolResult { name, outcome, content, .. } => {
                let how = if *outcome == ToolOutcome::Ok { "ok".into() } else { format!("{outcome:?}") };
                writeln!(out, "[result of {name}: {how}]\n{}\n", cut(&words(content), RESULT))
            }
            _ => Ok(()),
        };
    }
    let mut out = cut(&out, most);
    if let Some(focus) = focus.map(str::trim).filter(|f| !f.is_empty()) {
        let _ = write!(out, "\n\nThe summary must keep, as the user asked: {focus}");
    }
    out
}

fn words(content: &[Part]) -> String {
    let parts: Vec<&str> = content
        .iter()
        .map(|p| match p {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "[image]",
        })
        .collect();
    parts.join("\n")
}

/// A summary of at most about `most` bytes.
pub(crate) fn bounded(summary: String, most: usize) -> String {
    if summary.len() <= most { summary } else { cut(&summary, most) }
}

/// Cuts the middle out and puts a mark in its place.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    format!("{}\n[... {} bytes left out ...]\n{}", &text[..head], tail - head, &text[tail..])
}

/// A summary made without a model: the user's requests, the changed files, the last reply. For the demo model.
pub(crate) fn extract(entries: &[Arc<Entry>]) -> String {
    let mut out = String::from("## Goal\n");
    for e in entries {
        match &e.body {
            EntryBody::User { message, .. } if !message.text.trim().is_empty() => {
                let _ = writeln!(out, "- {}", first_line(&message.text));
            }
            EntryBody::Compaction { summary, .. } => {
                let _ = writeln!(out, "{}", summary.trim_start_matches("## Goal\n").trim_end());
            }
            _ => {}
        }
    }
    let files = crate::undo::changed::changed_paths(entries.iter().map(AsRef::as_ref));
    if !files.is_empty() {
        let _ = writeln!(out, "## Files\n- changed: {}", files.join(", "));
    }
    let last = entries.iter().rev().find_map(|e| match &e.body {
        EntryBody::Assistant { blocks, .. } => blocks.iter().find_map(|b| match b {
            Block::Text { text } if !text.trim().is_empty() => Some(first_line(text)),
            _ => None,
        }),
        _ => None,
    });
    if let Some(last) = last {
        let _ = writeln!(out, "## State\n{last}");
    }
    out
}
