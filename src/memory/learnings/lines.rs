//! Learnings as JSON lines: out and in. What comes in is hostile: it is bounded, screened, and waits for the person.

use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{FailureKind, Learning, LearningSource, LearningState, Taint, Time};

use super::error_line::normalised;
use super::kind::command_subjects;
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
}

/// Reads JSON lines. All that is read is proposed, and of the web's taint: the person decides.
pub fn read(text: &str, now: Time) -> LinesRead {
    let mut read = LinesRead::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let one = if at >= LINES { Err(format!("more than {LINES} lines")) } else { learning(line, now) };
        match one {
            Ok(learning) => read.learnings.push(learning),
            Err(why) => {
                read.left_out += 1;
                if read.refused.len() < NAMED {
                    read.refused.push((at + 1, why));
                }
            }
        }
        if at >= LINES {
            break;
        }
    }
    // The same learning twice in one file.
    let mut seen = std::collections::HashSet::new();
    read.learnings.retain(|l| {
        seen.insert((l.kind.tool.clone(), l.kind.subject.clone(), l.kind.error_type.clone(), l.fix.clone()))
    });
    read
}

fn learning(line: &str, now: Time) -> Result<Learning, String> {
    if line.len() > LINE {
        return Err(format!("longer than {LINE} bytes"));
    }
    let row: Row = serde_json::from_str(line).map_err(|_| "no JSON object".to_owned())?;
    let text = |v: &Value, most: usize| one_line(v.as_str().unwrap_or_default(), most);
    let list = |v: &Value| -> Vec<String> {
        v.as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .take(10)
            .map(|t| one_line(t, 80))
            .filter(|t| !t.is_empty())
            .collect()
    };
    // Secrets of this person are replaced by the caller.
    let secret = no_secret();
    let screen = |text: &str| screen::screen(text, &secret);
    for field in [&row.pattern, &row.error_type, &row.error, &row.fix, &row.context] {
        screen(field.as_str().unwrap_or_default())?;
    }
    let (pattern, fix) = (text(&row.pattern, 600), text(&row.fix, 1_000));
    if pattern.is_empty() || fix.is_empty() {
        return Err("pattern or fix is missing".into());
    }
    let tool = Some(text(&row.tool, 80)).filter(|t| !t.is_empty()).unwrap_or_else(|| "terminal".into());
    let subject = Some(text(&row.subject, 200)).filter(|s| !s.is_empty());
    let subject = subject.or_else(|| command_subjects(&pattern).into_iter().next_back()).unwrap_or_default();
    let error = if row.error.is_null() { &row.error_type } else { &row.error };
    let error = text(error, 400);
    // A file of another program has one of both forms.
    let kind = if row.error_type.is_null() { &row.error } else { &row.error_type };
    let (error_type, mut details) = normalised(&text(kind, 400));
    for detail in list(&row.details) {
        if !details.contains(&detail) {
            details.push(detail);
        }
    }
    screen(&details.join(" "))?;
    screen(&list(&row.tags).join(" "))?;
    screen(&format!("{tool} {subject}"))?;
    let created = row.created_at.as_str().and_then(|t| Time::parse(t).ok()).filter(|t| *t <= now);
    Ok(Learning {
        id: 0,
        kind: FailureKind { tool, subject, error_type, details },
        pattern,
        error,
        fix,
        context: text(&row.context, 600),
        tags: list(&row.tags),
        state: LearningState::Proposed,
        // One from long ago would fade before the person saw it.
        created_at: created.filter(|t| now.millis() - t.millis() < 30 * 24 * 3_600_000).unwrap_or(now),
        last_used_at: None,
        times_used: 0,
        source: LearningSource {
            session: None,
            entry: None,
            agent: "import".into(),
            branch: String::new(),
            taint: Taint::Web,
        },
    })
}
