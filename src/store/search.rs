//! Search in what was said. A scan for now; the full-text index comes with the Tree issue.

use rusqlite::params;
use tiller_protocol::{EntryId, SessionId, Time};

use crate::entries::{COLUMNS, Raw};
use crate::error::Result;
use crate::open::Store;
use crate::sessions::like;

/// Characters of a preview on each side of the match.
const AROUND: usize = 60;

/// One entry that holds the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub session: SessionId,
    pub entry: EntryId,
    /// `user`, `assistant`, `tool_result`, ...
    pub kind: String,
    pub time: Time,
    /// Text around the match, in one line.
    pub preview: String,
    /// Where the match is in `preview`: bytes from and to.
    pub mark: (usize, usize),
}

impl Store {
    /// Entries that hold `query` (as it stands, whatever its case), newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn search(&self, query: &str, project: Option<&str>, limit: u32) -> Result<Vec<Hit>> {
        let wanted = query.trim().to_lowercase();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // Payloads are JSON: look for the longest word without marks that JSON escapes, then look closely.
        let word = wanted
            .split(|c: char| c == '"' || c == '\\' || c.is_control() || !c.is_ascii())
            .max_by_key(|w| w.len())
            .unwrap_or_default();
        let columns = COLUMNS.split(", ").map(|c| format!("e.{c}")).collect::<Vec<_>>().join(", ");
        self.read(|conn| {
            let mut statement = conn.prepare(&format!(
                "SELECT {columns} FROM entries e JOIN sessions s ON s.id = e.session
                 WHERE e.payload LIKE ?1 ESCAPE '\\' AND e.kind != 'prefix' AND s.trashed IS NULL
                   AND (?2 IS NULL OR s.project = ?2) ORDER BY e.seq DESC"
            ))?;
            let mut rows = statement.query(params![like(word), project])?;
            let mut hits = Vec::new();
            while let Some(row) = rows.next()? {
                if hits.len() >= limit as usize {
                    break;
                }
                // A damaged entry has nothing to find.
                let Ok(entry) = Raw::from_row(row)?.decode() else { continue };
                let text = entry.body.search_text();
                if let Some((preview, mark)) = preview(&text, &wanted) {
                    hits.push(Hit {
                        session: entry.session,
                        entry: entry.id,
                        kind: entry.body.kind().into(),
                        time: entry.time,
                        preview,
                        mark,
                    });
                }
            }
            Ok(hits)
        })
    }
}

/// The match in its surroundings. Lower case may be longer than the original, so positions are counted in
/// characters of the original.
fn preview(text: &str, wanted: &str) -> Option<(String, (usize, usize))> {
    let chars: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lower = String::with_capacity(text.len());
    // For each byte of `lower`: the character of `text` that it came from.
    let mut from = Vec::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        let start = lower.len();
        lower.extend(c.to_lowercase());
        from.extend(std::iter::repeat_n(n, lower.len() - start));
    }
    let at = lower.find(wanted)?;
    let first = from[at];
    let last = from[at + wanted.len() - 1];
    let begin = first.saturating_sub(AROUND);
    let end = (last + 1 + AROUND).min(chars.len());
    let before: String = chars[begin..first].iter().collect();
    let found: String = chars[first..=last].iter().collect();
    let after: String = chars[last + 1..end].iter().collect();
    let mark = (before.len(), before.len() + found.len());
    Some((format!("{before}{found}{after}"), mark))
}
