//! Learnings as JSON lines: out and in. What comes in is hostile: it is bounded, screened, and waits for the person. Of a
//! file of the person's own, state, uses and origin are taken as they are written.

use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{FailureKind, Learning, LearningSource, LearningState, Taint, Time};

use super::error_line::normalised;
use super::kind::{SUBJECT, command_subjects};
use super::limits::{CONTEXT, ERROR, FIX, PATTERN, TAG, TAGS};
use super::screen;
use super::words::one_line;
use crate::screen::no_secret;

/// Bytes of a line, and lines of a file.
pub const LINE: usize = 16 << 10;
pub const LINES: usize = 20_000;
/// Bytes of a file.
pub const FILE: u64 = 32 << 20;
/// Most lines that are named in the report.
const NAMED: usize = 20;
/// Bytes of the name of a tool.
const TOOL: usize = 80;
/// Bytes of the name of an agent, and of a branch.
const NAME: usize = 200;

/// One learning as a line, without its end.
pub fn line(l: &Learning) -> String {
    let mut row = json!({
        "pattern": l.pattern,
        "error_type": l.kind.error_type,
        "error": l.error,
        "fix": l.fix,
        "context": l.context,
        "tags": l.tags,
        "created_at": l.created_at,
        "last_used_at": l.last_used_at,
        "times_used": l.times_used,
        "state": l.state,
        "tool": l.kind.tool,
        "subject": l.kind.subject,
        "details": l.kind.details,
        "source": l.source,
    });
    if l.id != 0
        && let Some(fields) = row.as_object_mut()
    {
        fields.insert("id".into(), l.id.into());
    }
    row.to_string()
}

/// What was read of a file.
#[derive(Debug, Default)]
pub struct LinesRead {
    pub learnings: Vec<Learning>,
    /// Lines that were left out, each with its reason; at most some.
    pub refused: Vec<(usize, String)>,
    /// How many were left out.
    pub left_out: usize,
}

/// A line of any version and of other programs: what is missing or of another kind is empty.
#[derive(Deserialize)]
struct Row {
    #[serde(default, alias = "trigger", alias = "problem")]
    pattern: Value,
    #[serde(default)]
    error_type: Value,
    /// The line as it was printed; of other programs the only form.
    #[serde(default)]
    error: Value,
    #[serde(default, alias = "solution", alias = "resolution")]
    fix: Value,
    #[serde(default)]
    context: Value,
    #[serde(default)]
    tags: Value,
    #[serde(default)]
    created_at: Value,
    #[serde(default)]
    tool: Value,
    #[serde(default)]
    subject: Value,
    #[serde(default)]
    details: Value,
    #[serde(default)]
    state: Value,
    #[serde(default)]
    last_used_at: Value,
    #[serde(default)]
    times_used: Value,
    #[serde(default)]
    source: Value,
}

/// Reads JSON lines. All that is read is proposed, and of the web's taint: the person decides. `mine`: the file is the
/// person's own, and each learning has the state, the times, the uses and the origin that its line states.
pub fn read(text: &str, now: Time, mine: bool) -> LinesRead {
    let (mut read, mut full) = (LinesRead::default(), false);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if at >= LINES {
            // Each counts; the report names the first.
            if !std::mem::replace(&mut full, true) {
                read.refused.push((at + 1, format!("more than {LINES} lines")));
            }
            read.left_out += 1;
            continue;
        }
        match learning(line, now, mine) {
            Ok(learning) => read.learnings.push(learning),
            Err(why) => {
                read.left_out += 1;
                if read.refused.len() < NAMED {
                    read.refused.push((at + 1, why));
                }
            }
        }
    }
    // The same learning twice in one file.
    let mut seen = std::collections::HashSet::new();
    read.learnings.retain(|l| {
        seen.insert((l.kind.tool.clone(), l.kind.subject.clone(), l.kind.error_type.clone(), l.fix.clone()))
    });
    if mine {
        // An export begins with the newest one: stored from its end, they have the same order again.
        read.learnings.reverse();
    }
    read
}

fn learning(line: &str, now: Time, mine: bool) -> Result<Learning, String> {
    if line.len() > LINE {
        return Err(format!("longer than {LINE} bytes"));
    }
    let row: Row = serde_json::from_str(line).map_err(|_| "no JSON object".to_owned())?;
    let text = |v: &Value, most: usize| one_line(v.as_str().unwrap_or_default(), most);
    // Secrets of this person are replaced by the caller.
    let secret = no_secret();
    let screen = |text: &str| screen::screen(text, &secret);
    for field in [&row.pattern, &row.error_type, &row.error, &row.fix, &row.context] {
        screen(field.as_str().unwrap_or_default())?;
    }
    let (pattern, fix) = (text(&row.pattern, PATTERN), text(&row.fix, FIX));
    if pattern.is_empty() || fix.is_empty() {
        return Err("pattern or fix is missing".into());
    }
    let tool = Some(text(&row.tool, TOOL)).filter(|t| !t.is_empty()).unwrap_or_else(|| "terminal".into());
    let subject = Some(text(&row.subject, SUBJECT)).filter(|s| !s.is_empty());
    let subject = subject.or_else(|| command_subjects(&pattern).into_iter().next_back()).unwrap_or_default();
    let error = if row.error.is_null() { &row.error_type } else { &row.error };
    let error = text(error, ERROR);
    // A file of another program has one of both forms.
    let kind = if row.error_type.is_null() { &row.error } else { &row.error_type };
    let (error_type, mut details) = normalised(&text(kind, ERROR));
    for detail in list(&row.details) {
        if !details.contains(&detail) {
            details.push(detail);
        }
    }
    screen(&details.join(" "))?;
    screen(&list(&row.tags).join(" "))?;
    screen(&format!("{tool} {subject}"))?;
    let created = row.created_at.as_str().and_then(|t| Time::parse(t).ok()).filter(|t| *t <= now);
    // One from long ago would fade before the person saw it.
    let created = created.filter(|t| now.millis() - t.millis() < 30 * 24 * 3_600_000).unwrap_or(now);
    let kind = FailureKind { tool, subject, error_type, details };
    let source = LearningSource {
        session: None,
        entry: None,
        agent: tiller_store::IMPORT.into(),
        branch: String::new(),
        taint: Taint::Web,
    };
    let mut learning = Learning {
        pattern,
        error,
        fix,
        context: text(&row.context, CONTEXT),
        tags: list(&row.tags),
        ..Learning::proposed(kind, source, created)
    };
    if mine {
        take_over(&mut learning, &row, now)?;
    }
    Ok(learning)
}

/// The texts of a list, each of bounded size.
fn list(v: &Value) -> Vec<String> {
    v.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(TAGS)
        .map(|t| one_line(t, TAG))
        .filter(|t| !t.is_empty())
        .collect()
}

/// Takes over what the line of a file of the person's own states. What it does not state, or not readably, stays as in a file
/// of others: never more trusted than written. A learning of a branch that was left waits for the person, because the branch
/// may not be here.
fn take_over(learning: &mut Learning, row: &Row, now: Time) -> Result<(), String> {
    let time = |v: &Value| v.as_str().and_then(|t| Time::parse(t).ok()).map(|t| t.min(now));
    learning.created_at = time(&row.created_at).unwrap_or(learning.created_at);
    learning.last_used_at = time(&row.last_used_at);
    learning.times_used = row.times_used.as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    if row.subject.as_str() == Some("") {
        // It is about any call of the tool.
        learning.kind.subject.clear();
    }
    let state = row.state.as_str().map(LearningState::from);
    if let Some(state @ (LearningState::Active | LearningState::Retired)) = state {
        learning.state = state;
    }
    if let Ok(source) = serde_json::from_value::<LearningSource>(row.source.clone()) {
        let (agent, branch) = (one_line(&source.agent, NAME), one_line(&source.branch, NAME));
        screen::screen(&format!("{agent} {branch}"), &no_secret())?;
        // A line of an export has the error without paths and numbers already.
        if let Some(error_type) = row.error_type.as_str() {
            learning.kind.error_type = one_line(error_type, ERROR);
            learning.kind.details = list(&row.details);
        }
        learning.source = LearningSource { agent, branch, ..source };
    }
    Ok(())
}
