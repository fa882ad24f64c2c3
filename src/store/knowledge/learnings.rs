//! Learnings: what failed, and what worked instead. They outlive the sessions that they come from.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_protocol::{
    FailureKind, Learning, LearningSource, LearningState, LearningText, SessionId, Taint, Time,
};

use crate::error::{Result, StoreError};
use crate::handles::Learnings;
use crate::session::family::below;
use crate::write::ticket::Ticket;

const COLUMNS: &str = "id, tool, subject, error_type, details, pattern, fix, context, tags, state, created, used, times, source, error";
/// Bytes that the largest learning of the database may have; larger ones were written by another program.
const LARGEST: usize = 64 << 10;

/// The agent of a learning that a file of others brought.
pub const IMPORT: &str = "import";

/// A learning that a consolidation retires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retirement {
    /// The learning as it was when this was decided.
    pub seen: Learning,
    /// The learning that takes over its uses.
    pub into: Option<i64>,
    /// Its context from then on, which says why.
    pub context: String,
}

/// Unreadable JSON counts as empty: a learning is a hint, not a record.
fn from_row(row: &Row<'_>) -> rusqlite::Result<Learning> {
    let text = |at: usize| -> rusqlite::Result<String> {
        let mut text: String = row.get(at)?;
        text.truncate(text.floor_char_boundary(LARGEST));
        Ok(text)
    };
    let unknown = || LearningSource {
        session: None,
        entry: None,
        agent: String::new(),
        branch: String::new(),
        taint: Taint::Web,
    };
    Ok(Learning {
        id: row.get(0)?,
        kind: FailureKind {
            tool: text(1)?,
            subject: text(2)?,
            error_type: text(3)?,
            details: serde_json::from_str(&text(4)?).unwrap_or_default(),
        },
        pattern: text(5)?,
        error: text(14)?,
        fix: text(6)?,
        context: text(7)?,
        tags: serde_json::from_str(&text(8)?).unwrap_or_default(),
        state: LearningState::from(text(9)?.as_str()),
        created_at: Time(row.get(10)?),
        last_used_at: row.get::<_, Option<i64>>(11)?.map(Time),
        times_used: row.get(12)?,
        source: serde_json::from_str(&text(13)?).unwrap_or_else(|_| unknown()),
    })
}

fn get(conn: &Connection, id: i64) -> Result<Learning> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM learnings WHERE id = ?1"))?
        .query_row([id], from_row)
        .optional()?
        .ok_or_else(|| StoreError::NotFound(format!("learning {id}")))
}

/// Adds a learning, or finds the one with the same text; whether it is new.
fn put(conn: &Connection, l: &Learning) -> Result<(i64, bool)> {
    let kind = &l.kind;
    let added = conn
        .prepare_cached(
            "INSERT INTO learnings(tool, subject, error_type, details, pattern, fix, context, tags, state, created, used,
               times, source, error)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
             ON CONFLICT(tool, subject, error_type, fix) DO NOTHING",
        )?
        .execute(params![
            kind.tool,
            kind.subject,
            kind.error_type,
            serde_json::to_string(&kind.details)?,
            l.pattern,
            l.fix,
            l.context,
            serde_json::to_string(&l.tags)?,
            l.state.word(),
            l.created_at.millis(),
            l.last_used_at.map(Time::millis),
            l.times_used,
            serde_json::to_string(&l.source)?,
            l.error,
        ])?;
    if added > 0 {
        return Ok((conn.last_insert_rowid(), true));
    }
    let id = conn
        .prepare_cached(
            "SELECT id FROM learnings WHERE tool = ?1 AND subject = ?2 AND error_type = ?3 AND fix = ?4",
        )?
        .query_row(params![kind.tool, kind.subject, kind.error_type, l.fix], |r| r.get::<_, i64>(0))?;
    // One of a branch that was left is learned again: with the texts of now, which were judged for its state.
    let again = conn
        .prepare_cached(
            "UPDATE learnings SET state = ?2, source = ?3, pattern = ?4, context = ?5, tags = ?6, details = ?7, error = ?8,
               aside = NULL WHERE id = ?1 AND state = 'aside'",
        )?
        .execute(params![
            id,
            l.state.word(),
            serde_json::to_string(&l.source)?,
            l.pattern,
            l.context,
            serde_json::to_string(&l.tags)?,
            serde_json::to_string(&kind.details)?,
            l.error,
        ])?;
    Ok((id, again > 0))
}

/// Whether a file of others brought it, and the user has not accepted it.
fn is_of_import(l: &Learning) -> bool {
    l.source.agent == IMPORT && l.source.session.is_none() && l.source.taint.is_untrusted()
}

/// The learning that an import made of the same text; `None`: there is none, or one with this kind and fix is the user's.
fn imported(conn: &Connection, own: &Learning) -> Result<Option<Learning>> {
    let kind = &own.kind;
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM learnings WHERE tool = ?1 AND fix = ?2 AND (pattern = ?3 OR (subject = ?4 AND error_type = ?5))
         ORDER BY id"
    ))?;
    let rows = statement
        .query_map(params![kind.tool, own.fix, own.pattern, kind.subject, kind.error_type], from_row)?
        .collect::<rusqlite::Result<Vec<Learning>>>()?;
    // Plain imports derive subject and error from the text, so that they may be others there.
    let same = |l: &&Learning| l.kind.subject == kind.subject && l.kind.error_type == kind.error_type;
    let found = rows.iter().find(same).or_else(|| rows.iter().find(|l| is_of_import(l)));
    Ok(found.filter(|l| is_of_import(l)).cloned())
}

/// A learning of an import as it is with what the line of the user's own file says. One that was retired here stays so.
fn owned(known: &Learning, own: &Learning) -> Learning {
    let state = if known.state == LearningState::Proposed { own.state.clone() } else { known.state.clone() };
    Learning {
        id: known.id,
        state,
        last_used_at: known.last_used_at.max(own.last_used_at),
        times_used: known.times_used.max(own.times_used),
        ..own.clone()
    }
}

/// Writes what a change by the user leaves as it is.
fn write_kind(conn: &Connection, l: &Learning) -> Result<()> {
    conn.prepare_cached(
        "UPDATE learnings SET subject = ?2, error_type = ?3, details = ?4, error = ?5, tags = ?6, created = ?7 WHERE id = ?1",
    )?
    .execute(params![
        l.id,
        l.kind.subject,
        l.kind.error_type,
        serde_json::to_string(&l.kind.details)?,
        l.error,
        serde_json::to_string(&l.tags)?,
        l.created_at.millis(),
    ])?;
    Ok(())
}

impl Learnings<'_> {
    /// Adds a learning, unless there is one with the same kind and fix. Its number, and whether it is new.
    pub fn add(&self, learning: Learning) -> Ticket<(i64, bool)> {
        self.store.write(move |conn| put(conn, &learning))
    }

    /// Brings a retired learning back, as it was read, with state, texts and origin of one that was learned now; its uses stay.
    /// Its number, and whether it is back: not where it has changed since it was read.
    pub fn learn_again(&self, retired: Learning, learned: Learning) -> Ticket<(i64, bool)> {
        self.store.write(move |conn| {
            let known = get(conn, retired.id)?;
            if known != retired {
                return Ok((known.id, false));
            }
            let (id, times_used, last_used_at) = (known.id, known.times_used, known.last_used_at);
            let after = Learning { id, times_used, last_used_at, ..learned.clone() };
            write(conn, &after, Some(&known))?;
            write_kind(conn, &after)?;
            Ok((id, true))
        })
    }

    /// Adds many in one transaction; the number of new ones.
    pub fn add_all(&self, learnings: Vec<Learning>) -> Ticket<usize> {
        self.store.write(move |conn| {
            let mut new = 0;
            for learning in &learnings {
                new += usize::from(put(conn, learning)?.1);
            }
            Ok(new)
        })
    }

    /// As [`Self::add_all`], for those of a file of the user's own: one that is here from an import, and that waits or was never
    /// the user's, gets the state, the uses and the origin of the file. The numbers of new and of taken over ones.
    pub fn add_own(&self, learnings: Vec<Learning>) -> Ticket<(usize, usize)> {
        self.store.write(move |conn| {
            let (mut new, mut taken) = (0, 0);
            for learning in &learnings {
                let Some(known) = imported(conn, learning)? else {
                    new += usize::from(put(conn, learning)?.1);
                    continue;
                };
                let after = owned(&known, learning);
                if after != known {
                    write(conn, &after, Some(&known))?;
                    write_kind(conn, &after)?;
                    taken += 1;
                }
            }
            Ok((new, taken))
        })
    }

    /// One learning.
    ///
    /// # Errors
    /// When no learning has this number.
    pub fn get(&self, id: i64) -> Result<Learning> {
        self.store.read(|conn| get(conn, id))
    }

    /// Learnings about a tool and one of these subjects, the newest first; at most `limit` for each. `active`: only those.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn about(&self, tool: &str, subjects: &[String], active: bool, limit: u32) -> Result<Vec<Learning>> {
        self.store.read(|conn| {
            let mut all = Vec::new();
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM learnings WHERE tool = ?1 AND subject = ?2
                 AND (state = 'active' OR NOT ?4) ORDER BY id DESC LIMIT ?3"
            ))?;
            for subject in subjects {
                let rows = statement.query_map(params![tool, subject, limit, active], from_row)?;
                all.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
            }
            Ok(all)
        })
    }

    /// The subjects of active learnings about a tool.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn subjects(&self, tool: &str) -> Result<Vec<String>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT DISTINCT subject FROM learnings WHERE tool = ?1 AND state = 'active' AND subject > ''",
            )?;
            let rows = statement.query_map([tool], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Learnings in which each word of `filter` occurs, last used or made first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, filter: &str, state: Option<&LearningState>, limit: u32) -> Result<Vec<Learning>> {
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM learnings WHERE ?1 IS NULL OR state = ?1
                 ORDER BY coalesce(used, created) DESC, id DESC"
            ))?;
            let rows = statement.query_map([state.map(LearningState::word)], from_row)?;
            let mut found = Vec::new();
            for row in rows {
                let row = row?;
                let text = row.search_text().to_lowercase();
                if words.iter().all(|w| text.contains(w.as_str())) {
                    found.push(row);
                    if found.len() >= limit as usize {
                        break;
                    }
                }
            }
            Ok(found)
        })
    }

    /// Active learnings whose text has a matcher. The condition is that of the index, word for word. What is made of them is kept
    /// until [`Self::matchers_revision`] is another one: there may be many.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn with_matchers(&self) -> Result<Vec<Learning>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM learnings INDEXED BY learnings_matchers WHERE state = 'active'
                 AND (instr(fix || context, '[when:') OR instr(fix || context, '[never:')) ORDER BY id"
            ))?;
            let rows = statement.query_map([], from_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// A number that is another one after each change of what [`Self::with_matchers`] returns, the counts of uses aside.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn matchers_revision(&self) -> Result<i64> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT number FROM revisions WHERE name = 'learning_matchers'")?;
            Ok(statement.query_row([], |r| r.get(0))?)
        })
    }

    /// Those that a session made and that the person has not changed since: they follow its branches.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn unchanged_of(&self, session: SessionId) -> Result<Vec<Learning>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM learnings WHERE json_extract(source, '$.session') = ?1 AND before IS NULL
                 AND state IN ('proposed', 'active', 'aside') ORDER BY id"
            ))?;
            let mut found = Vec::new();
            for of in std::iter::once(session).chain(below(conn, session)?) {
                for learning in statement.query_map([of.to_string()], from_row)? {
                    found.push(learning?);
                }
            }
            found.sort_by_key(|learning| learning.id);
            Ok(found)
        })
    }

    /// Takes learnings out of use whose branch was left, and brings back those whose branch was entered, in the state that they had.
    pub fn follow_branch(&self, aside: Vec<i64>, back: Vec<i64>) -> Ticket<()> {
        self.store.write(move |conn| {
            for id in &aside {
                conn.prepare_cached(
                    "UPDATE learnings SET state = 'aside', aside = state WHERE id = ?1 AND before IS NULL
                     AND state IN ('proposed', 'active')",
                )?
                .execute([id])?;
            }
            for id in &back {
                conn.prepare_cached(
                    "UPDATE learnings SET state = coalesce(aside, 'proposed'), aside = NULL
                     WHERE id = ?1 AND state = 'aside'",
                )?
                .execute([id])?;
            }
            Ok(())
        })
    }

    /// How many wait for the person.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn pending(&self) -> Result<u32> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT count(*) FROM learnings WHERE state = 'proposed'")?
                .query_row([], |r| r.get(0))?)
        })
    }

    /// Counts that these were attached now.
    pub fn used(&self, ids: Vec<i64>) -> Ticket<()> {
        let now = self.store.now();
        self.store.write(move |conn| {
            for id in &ids {
                conn.prepare_cached("UPDATE learnings SET used = ?2, times = times + 1 WHERE id = ?1")?
                    .execute(params![id, now.millis()])?;
            }
            Ok(())
        })
    }

    /// Changes state or text, and keeps what was there for [`Self::undo`]. The learning after it. A change to what is there
    /// already records nothing.
    pub fn change(
        &self,
        id: i64,
        state: Option<LearningState>,
        text: Option<LearningText>,
    ) -> Ticket<Learning> {
        self.store.write(move |conn| {
            let before = get(conn, id)?;
            let mut after = before.clone();
            if let Some(state) = &state {
                after.state = state.clone();
                // An accepted text is the text of the user.
                if *state == LearningState::Active {
                    after.source.taint = Taint::Person;
                }
            }
            if let Some(text) = &text {
                (after.pattern, after.fix, after.context) =
                    (text.pattern.clone(), text.fix.clone(), text.context.clone());
                // One in use has the text of the user from now on. One that waits is accepted with all that it says.
                if after.state == LearningState::Active {
                    after.source.taint = Taint::Person;
                }
            }
            // A change that changes nothing leaves the state that `undo` brings back.
            if after != before {
                write(conn, &after, Some(&before))?;
            }
            Ok(after)
        })
    }

    /// Brings back state and text from before the last change; done twice, it is as if it was not done.
    pub fn undo(&self, id: i64) -> Ticket<Learning> {
        self.store.write(move |conn| {
            let now = get(conn, id)?;
            let kept: Option<String> =
                conn.query_row("SELECT before FROM learnings WHERE id = ?1", [id], |r| r.get(0))?;
            let before: Learning = kept
                .and_then(|text| serde_json::from_str(&text).ok())
                .ok_or_else(|| StoreError::NotFound(format!("an earlier state of learning {id}")))?;
            let after = Learning { times_used: now.times_used, last_used_at: now.last_used_at, id, ..before };
            write(conn, &after, Some(&now))?;
            Ok(after)
        })
    }

    /// Applies a consolidation in one transaction; how many were retired. A learning that was changed since it was read stays as
    /// it is, and so does one whose uses cannot be taken over any more. The uses of all learnings together stay the same.
    pub fn consolidate(&self, retirements: Vec<Retirement>) -> Ticket<usize> {
        self.store.write(move |conn| {
            let mut done = 0;
            for Retirement { seen, into, context } in &retirements {
                let Some(now) = get(conn, seen.id).ok().filter(|now| now == seen) else { continue };
                let mut after =
                    Learning { state: LearningState::Retired, context: context.clone(), ..now.clone() };
                if let Some(into) = into {
                    let known = get(conn, *into).ok();
                    if known.is_none_or(|leader| leader.state != now.state || leader.id == now.id) {
                        continue;
                    }
                    conn.prepare_cached(
                        "UPDATE learnings SET times = times + ?2, used = max(coalesce(used, ?3), coalesce(?3, used))
                         WHERE id = ?1",
                    )?
                    .execute(params![into, now.times_used, now.last_used_at.map(Time::millis)])?;
                    after.times_used = 0;
                }
                write(conn, &after, Some(&now))?;
                done += 1;
            }
            Ok(done)
        })
    }

    /// Whether a day has passed since the last consolidation; if so, this one counts as made. One process gets the yes.
    pub fn consolidation_due(&self, every_millis: i64) -> Ticket<bool> {
        let now = self.store.now().millis();
        self.store.write(move |conn| {
            let last: Option<String> = conn
                .query_row("SELECT value FROM meta WHERE key = 'learnings_consolidated'", [], |r| r.get(0))
                .optional()?;
            let last = last.and_then(|t| t.parse::<i64>().ok()).filter(|t| *t <= now);
            if last.is_some_and(|t| now.saturating_sub(t) < every_millis) {
                return Ok(false);
            }
            conn.execute(
                "INSERT OR REPLACE INTO meta(key, value) VALUES('learnings_consolidated', ?1)",
                [now.to_string()],
            )?;
            Ok(true)
        })
    }
}

/// Writes state, text and counts. A change to the text of another learning is refused.
fn write(conn: &Connection, l: &Learning, before: Option<&Learning>) -> Result<()> {
    let before = before.map(serde_json::to_string).transpose()?;
    let same: bool = conn.query_row(
        "SELECT EXISTS(SELECT 1 FROM learnings WHERE tool = ?1 AND subject = ?2 AND error_type = ?3 AND fix = ?4 AND id <> ?5)",
        params![l.kind.tool, l.kind.subject, l.kind.error_type, l.fix, l.id],
        |r| r.get(0),
    )?;
    if same {
        return Err(StoreError::Conflict("there is a learning with this fix already".into()));
    }
    conn.prepare_cached(
        "UPDATE learnings SET pattern = ?2, fix = ?3, context = ?4, state = ?5, used = ?6, times = ?7, before = ?8,
           source = ?9 WHERE id = ?1",
    )?
    .execute(params![
        l.id,
        l.pattern,
        l.fix,
        l.context,
        l.state.word(),
        l.last_used_at.map(Time::millis),
        l.times_used,
        before,
        serde_json::to_string(&l.source)?
    ])?;
    Ok(())
}
