//! The operation log: rows are only added.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::op::OpChange;
use tiller_protocol::restore::TurnChanges;
use tiller_protocol::{Entry, Op, OpId, SessionId};

use crate::error::Result;
use crate::handles::Sessions;
use crate::write::ticket::Ticket;

/// Adds `op` after the last one of its session, which becomes its parent.
pub(crate) fn append(conn: &Connection, op: &Op) -> Result<()> {
    let last = last(conn, op.session)?;
    insert(conn, &Op { parent: op.parent.or(last), ..op.clone() })
}

fn last(conn: &Connection, session: SessionId) -> Result<Option<OpId>> {
    Ok(conn
        .prepare_cached("SELECT id FROM ops WHERE session = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row(params![session.0], |r| r.get(0).map(OpId))
        .optional()?)
}

/// Adds `op` unchanged.
pub(crate) fn insert(conn: &Connection, op: &Op) -> Result<()> {
    conn.prepare_cached("INSERT INTO ops(id, session, body) VALUES(?1, ?2, ?3)")?.execute(params![
        op.id.0,
        op.session.0,
        serde_json::to_string(op)?
    ])?;
    Ok(())
}

/// Puts turns where they ended, behind their parents. Such a row is stored once the last state of the files is kept, so rows of
/// what was done meanwhile can stand before it. `ops` are newest first; `whole`: they go back to the first one.
fn put_turns_in_place(ops: &mut [Op], whole: bool) {
    let is_turn = |op: &Op| matches!(op.change, OpChange::Files { of: None, turn: Some(_), .. });
    for at in (0..ops.len()).rev().collect::<Vec<_>>() {
        if !is_turn(&ops[at]) {
            continue;
        }
        let older = &ops[at + 1..];
        let end = match ops[at].parent {
            Some(parent) => older.iter().position(|op| op.id == parent),
            None => whole.then_some(older.len()),
        };
        // Turns are stored in the order of their ends.
        let turn = older.iter().position(is_turn);
        if let Some(end) = end {
            ops[at..=at + end.min(turn.unwrap_or(end))].rotate_left(1);
        }
    }
}

impl Sessions<'_> {
    /// The last `limit` operations of a session, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn ops(&self, session: SessionId, limit: u32) -> Result<Vec<Op>> {
        let bodies: Vec<String> = self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT body FROM ops WHERE session = ?1 ORDER BY seq DESC LIMIT ?2")?;
            let rows = statement.query_map(params![session.0, limit], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut ops = bodies
            .iter()
            .map(|body| serde_json::from_str(body))
            .collect::<std::result::Result<Vec<Op>, serde_json::Error>>()?;
        let whole = ops.len() < limit as usize;
        put_turns_in_place(&mut ops, whole);
        Ok(ops)
    }

    /// The last operation of a session, in the order of the writes.
    pub fn last_op(&self, session: SessionId) -> Ticket<Option<OpId>> {
        self.store.write(move |conn| last(conn, session))
    }

    /// Adds an operation that changes no other row, with its own parent.
    pub fn log(&self, op: Op) -> Ticket<()> {
        self.store.write(move |conn| insert(conn, &op))
    }

    /// What the turns that begin in these entries changed, as far as the log has it: earlier versions did not write it. Of
    /// a turn that went on after it had ended, the last row counts.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn turn_changes<'a>(
        &self,
        session: SessionId,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Result<Vec<TurnChanges>> {
        let begun: Vec<String> = entries.filter(|e| e.body.begins_turn()).map(|e| e.id.to_string()).collect();
        if begun.is_empty() {
            return Ok(Vec::new());
        }
        let begun = serde_json::to_string(&begun)?;
        let bodies: Vec<String> = self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT body FROM ops WHERE session = ?1 AND instr(body, '\"turn\":{') > 0
                   AND json_extract(body, '$.change.of') IS NULL
                   AND json_extract(body, '$.change.turn.entry') IN (SELECT value FROM json_each(?2)) ORDER BY seq",
            )?;
            let rows = statement.query_map(params![session.0, begun], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut turns: Vec<TurnChanges> = Vec::new();
        for body in &bodies {
            // A row that cannot be read only loses its figures.
            let Ok(Op { change: OpChange::Files { files, turn: Some(of), .. }, .. }) =
                serde_json::from_str(body)
            else {
                continue;
            };
            turns.retain(|t| t.turn != of.entry);
            turns.push(TurnChanges::new(of.entry, of.began, files));
        }
        Ok(turns)
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::op::TurnOp;
    use tiller_protocol::restore::StepFile;
    use tiller_protocol::{ChangeKind, EntryId};

    use super::*;
    use crate::testing::{NOW, entry_id, grow, scratch, session};

    #[test]
    fn what_turns_changed_is_found_by_their_first_entries() {
        let (_dir, store) = scratch();
        let s = session(&store, 1);
        grow(&store, s, 1, 4);
        let op = |n: u128, of: Option<u128>, turn: Option<EntryId>, lines: (u32, u32)| {
            let turn = turn.map(|entry| TurnOp {
                entry,
                began: NOW,
                head: "main".into(),
                steps: vec![("s0".into(), "s1".into())],
                folders: Vec::new(),
            });
            let files = vec![StepFile { lines: Some(lines), ..StepFile::new("a", ChangeKind::Modified) }];
            let id = |n: u128| OpId(entry_id(100 + n).0);
            let change = OpChange::Files {
                before: "s0".into(),
                after: "s1".into(),
                files,
                of: of.map(id),
                turn: turn.map(Box::new),
            };
            let (time, parent, cause, with) = (NOW, None, None, None);
            Op { id: id(n), session: s, time, parent, cause, title: "t".into(), of: None, with, change }
        };
        let entries: Vec<Entry> = (1..=4).map(|n| store.entries().get(entry_id(n)).unwrap()).collect();
        let begun: Vec<EntryId> = entries.iter().filter(|e| e.body.begins_turn()).map(|e| e.id).collect();
        let found = || store.sessions().turn_changes(s, entries.iter()).unwrap();
        assert_eq!(found(), []);
        for op in [
            op(1, None, None, (9, 9)),
            op(2, None, Some(begun[0]), (1, 0)),
            op(3, None, Some(begun[0]), (13, 1)),
            op(4, Some(3), Some(begun[0]), (1, 13)),
            op(5, None, Some(entry_id(77)), (5, 5)),
        ] {
            let parent = store.sessions().last_op(s).wait().unwrap();
            store.sessions().log(Op { parent, ..op }).wait().unwrap();
        }
        let all: Vec<_> = found().iter().map(|t| (t.turn, t.files.len(), t.added, t.removed)).collect();
        assert_eq!(all, [(begun[0], 1, 13, 1)], "the last row, and not its undo");
        // Rows of what was done after the turn had ended, and that were stored before it.
        let last = store.sessions().last_op(s).wait().unwrap();
        let log = |op: Op| store.sessions().log(op).wait().unwrap();
        let rename = OpChange::Title { before: "a".into(), after: "b".into() };
        for n in [8, 9] {
            log(Op { change: rename.clone(), ..op(n, None, None, (0, 0)) });
        }
        let ended = op(7, None, Some(begun[0]), (1, 0));
        log(Op { parent: last, ..ended.clone() });
        // The next turn ended before the row of the last one was stored.
        log(Op { id: OpId(entry_id(110).0), parent: last, ..ended });
        let ids =
            |limit| -> Vec<OpId> { store.sessions().ops(s, limit).unwrap().iter().map(|o| o.id).collect() };
        let wanted = [9, 8, 10, 7, 5].map(|n| OpId(entry_id(100 + n).0));
        assert_eq!(ids(5), wanted);
        assert_eq!(ids(99)[..5], wanted);
    }
}
