//! An entry as fragments for every format: author, time, and prose, code, folds.

use serde_json::Value;
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{
    Attachment, Block, Entry, EntryBody, EntryId, Origin, Part, StopReason, ToolCall, ToolOutcome,
};
use tiller_text::clean::{self, Mode, Piece};

use super::book::SessionContent;

/// Maximum characters of a call's arguments in its line.
const LINE: usize = 100;

/// An entry with its heading.
pub(super) struct RenderedEntry {
    /// `You`, a model, ... Empty: it has no heading of its own (results of tools).
    pub(super) who: String,
    /// Known facts: tokens, cost, stop reason.
    pub(super) facts: Vec<String>,
    pub(super) bits: Vec<Fragment>,
    /// CSS class of its style.
    pub(super) class: &'static str,
}

/// A fragment. All text in it is untrusted: each format cleans and escapes it.
pub(super) enum Fragment {
    /// Markdown, as models write it.
    Prose(String),
    /// Plain text.
    Plain(String),
    Code {
        /// Name of a language, from Tiller's own list.
        lang: &'static str,
        text: String,
    },
    Image {
        media_type: String,
        data: String,
    },
    /// Folded to one line.
    Fold {
        line: String,
        bits: Vec<Self>,
    },
}

/// Untrusted text with invisible, control and direction characters made visible. Lines and tabs are kept.
pub(super) fn cleaned(text: &str, mode: Mode) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, line) in clean::lines(text).enumerate() {
        if n > 0 {
            out.push('\n');
        }
        clean::pieces(line, mode, |piece| match piece {
            Piece::Text(t) | Piece::Mark(t) => out.push_str(t),
            Piece::Tab => out.push('\t'),
        });
    }
    out
}

/// As one line: line ends become blanks.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    clean::plain(&words).into_owned()
}

/// `None`: the entry has nothing for people.
pub(super) fn rendered(book: &SessionContent, entry: &Entry) -> Option<RenderedEntry> {
    let plain =
        |who: &str, class, bits| Some(RenderedEntry { who: who.into(), facts: Vec::new(), bits, class });
    match &entry.body {
        EntryBody::Prefix { system, tools, .. } => {
            let names: Vec<&str> = tools.iter().map(|t| t.name.as_str()).collect();
            let bits = vec![
                Fragment::Code { lang: "text", text: system.clone() },
                Fragment::Plain(format!("Tools: {}", names.join(", "))),
            ];
            let line = format!("System prompt and {} tools", tools.len());
            plain("", "prefix", vec![Fragment::Fold { line, bits }])
        }
        EntryBody::User { message, origin, .. } => {
            let mut bits = vec![Fragment::Plain(message.text.clone())];
            for attachment in &message.attachments {
                bits.push(attached(attachment));
            }
            let (who, class) = match origin {
                Origin::Prompt | Origin::Steer if book.by_agent(entry) => ("To the agent", "you"),
                Origin::Prompt => ("You", "you"),
                Origin::Steer => ("You, during the turn", "you"),
                Origin::Shell => ("You ran", "you"),
                Origin::Engine | Origin::Task => ("Tiller, to the model", "note"),
            };
            plain(who, class, bits)
        }
        EntryBody::Assistant { blocks, stop, model, usage, cost } => {
            let mut facts = Vec::new();
            if usage.context() + usage.output > 0 {
                facts.push(format!("{} in, {} out", usage.context(), usage.output));
            }
            facts.extend(cost.map(|c| format!("${:.4}", c.usd())));
            facts.extend(ended(stop));
            let bits = blocks.iter().filter_map(|b| block(book, entry.id, b)).collect();
            let model = if model.0.trim().is_empty() { "A model" } else { &model.0 };
            let who =
                if entry.agent.is_main() { model.into() } else { format!("{} ({model})", entry.agent.0) };
            Some(RenderedEntry { who, facts, bits, class: "model" })
        }
        EntryBody::ToolResult { name, outcome, content, display, seconds, .. } => {
            let mut bits = Vec::new();
            let call = book.call_of(entry.id);
            if let Some(call) = call {
                bits.extend(arguments(call));
            }
            match display {
                Some(Display::Diff { files }) => {
                    for f in files {
                        let text = format!("{} +{} -{}\n{}", f.path, f.added, f.removed, f.diff);
                        bits.push(Fragment::Code { lang: "diff", text });
                    }
                }
                // Calls with entries of their own stand above.
                Some(Display::Calls { calls, .. }) => {
                    for call in calls.iter().filter(|call| !call.output.is_empty() || !call.files.is_empty())
                    {
                        bits.push(Fragment::Plain(inner_line(call)));
                        bits.extend(inner_bits(call));
                    }
                }
                Some(Display::Measure { .. } | Display::Output { .. }) | None => {}
            }
            bits.extend(content.iter().map(part));
            let how = how(*outcome);
            let line = format!("{name} {} · {how}, {seconds:.1} s", call.map(in_short).unwrap_or_default());
            plain("", if outcome.ok() { "tool" } else { "tool bad" }, vec![Fragment::Fold { line, bits }])
        }
        EntryBody::InnerCall { call, .. } => {
            let line = format!("script {}", inner_line(call));
            let class = if call.outcome.is_some_and(ToolOutcome::ok) { "tool" } else { "tool bad" };
            plain("", class, vec![Fragment::Fold { line, bits: inner_bits(call) }])
        }
        EntryBody::Compaction { summary, tokens_before, tokens_after, .. } => {
            let facts = vec![format!("{tokens_before} to {tokens_after} tokens")];
            let bits = vec![Fragment::Prose(summary.clone())];
            Some(RenderedEntry {
                who: "Summary of the earlier conversation".into(),
                facts,
                bits,
                class: "note",
            })
        }
        EntryBody::BranchSummary { summary, .. } => {
            plain("Summary of another branch", "note", vec![Fragment::Prose(summary.clone())])
        }
        EntryBody::Checkpoint { name } => plain("Checkpoint", "mark", vec![Fragment::Plain(name.clone())]),
        EntryBody::Note { text } => plain("Note", "note", vec![Fragment::Plain(text.clone())]),
    }
}

fn how(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Ok => "ok",
        ToolOutcome::Error => "failed",
        ToolOutcome::Denied => "denied",
        ToolOutcome::Interrupted => "interrupted",
        ToolOutcome::TimedOut => "timed out",
    }
}

/// A call of a script, in one line.
fn inner_line(call: &InnerCall) -> String {
    let how = call.outcome.map_or("not made", how);
    let what = one_line(&call.target);
    format!("{}. {} {what} · {how}, {:.1} s", call.number, call.verb, call.seconds)
}

/// Its arguments, its changes and its result.
fn inner_bits(call: &InnerCall) -> Vec<Fragment> {
    let mut bits = Vec::new();
    if !call.arguments.is_null() {
        bits.push(Fragment::Code { lang: "json", text: pretty(&call.arguments) });
    }
    let diffs = call.files.iter().map(|f| format!("{} +{} -{}\n{}", f.path, f.added, f.removed, f.diff));
    bits.extend(diffs.map(|text| Fragment::Code { lang: "diff", text }));
    if !call.output.is_empty() {
        bits.push(Fragment::Code { lang: "text", text: call.output.clone() });
    }
    bits
}

fn ended(stop: &StopReason) -> Option<String> {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse => None,
        StopReason::MaxTokens => Some("cut off at its output limit".into()),
        StopReason::Refusal(why) => Some(format!("declined {}", one_line(why))),
        StopReason::Interrupted => Some("interrupted".into()),
        StopReason::Cut(why) => Some(format!("interrupted {}", one_line(why))),
    }
}

fn block(book: &SessionContent, of: EntryId, block: &Block) -> Option<Fragment> {
    match block {
        Block::Text { text } => (!text.trim().is_empty()).then(|| Fragment::Prose(text.clone())),
        Block::Thinking { text, .. } => (!text.trim().is_empty())
            .then(|| Fragment::Fold { line: "Thinking".into(), bits: vec![Fragment::Prose(text.clone())] }),
        Block::Redacted { .. } => Some(Fragment::Plain("(Thinking not disclosed by the provider.)".into())),
        // Shown with its result.
        Block::ToolCall(call) if book.answered(of, &call.id) => None,
        Block::ToolCall(call) => {
            let line = format!("{} {} · no result", call.name, in_short(call));
            Some(Fragment::Fold { line, bits: arguments(call).into_iter().collect() })
        }
        Block::Unknown { provider, raw } => Some(Fragment::Fold {
            line: format!("A {provider} block"),
            bits: vec![Fragment::Code { lang: "json", text: pretty(raw) }],
        }),
    }
}

fn attached(attachment: &Attachment) -> Fragment {
    match attachment {
        Attachment::Paste { label, text } => Fragment::Fold {
            line: label.clone(),
            bits: vec![Fragment::Code { lang: "text", text: text.to_string() }],
        },
        Attachment::Image { media_type, data, .. } => {
            Fragment::Image { media_type: media_type.clone(), data: data.to_string() }
        }
        Attachment::File { path, lines, .. } => Fragment::Plain(match lines {
            Some((from, to)) => format!("Attached: {path}, lines {from} to {to}"),
            None => format!("Attached: {path}"),
        }),
    }
}

fn part(part: &Part) -> Fragment {
    match part {
        Part::Text { text } => Fragment::Code { lang: "text", text: text.clone() },
        Part::Image { media_type, data } => {
            Fragment::Image { media_type: media_type.clone(), data: data.clone() }
        }
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// All arguments, unless the line already shows them.
fn arguments(call: &ToolCall) -> Option<Fragment> {
    if let Some(text) = &call.malformed {
        return Some(Fragment::Code { lang: "text", text: text.clone() });
    }
    let whole = call.arguments.to_string();
    (whole.chars().count() > LINE || whole.contains("\\n"))
        .then(|| Fragment::Code { lang: "json", text: pretty(&call.arguments) })
}

/// The arguments in a line: a single one by its value only.
fn in_short(call: &ToolCall) -> String {
    let text = match call.arguments.as_object() {
        Some(map) if map.len() == 1 => match map.values().next() {
            Some(Value::String(s)) => s.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        },
        Some(map) if map.is_empty() => String::new(),
        _ => call.arguments.to_string(),
    };
    let text = one_line(&text);
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
