//! Assigns rows of file states to calls. Ids of calls are unique on a path, but two branches may use an id twice, so a
//! row belongs to the result that is nearest in time, and a call without changes has none.

use rusqlite::{Connection, params};
use tiller_protocol::{SessionId, Time};

use crate::error::Result;
use crate::handles::Steps;
use crate::session::steps::{StepOf, StepRow};
use crate::tree::words::results;

/// Whether there is a result of this call from `from` to `to`, both included. Usually there is no entry at all, and no
/// payload is read.
fn came(conn: &Connection, session: SessionId, call: &str, from: i64, to: i64) -> Result<bool> {
    if from > to {
        return Ok(false);
    }
    let mut statement = conn.prepare_cached(
        "SELECT seq FROM entries WHERE session = ?1 AND kind IN ('tool_result', 'inner_call') AND time BETWEEN ?2 AND ?3",
    )?;
    let rows = statement.query_map(params![session.0, from, to], |r| r.get(0))?;
    let rows: Vec<i64> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(results(conn, &rows)?.iter().any(|(_, id, _)| id == call))
}

impl Steps<'_> {
    /// Whether the row belongs to the call whose result has time `time`: no other result of that id is nearer.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn owns(&self, session: SessionId, call: &str, time: Time, row: &StepRow) -> Result<bool> {
        let at = row.time.millis();
        let far = i64::try_from(at.abs_diff(time.millis())).unwrap_or(i64::MAX);
        let (from, to) = (at.saturating_sub(far).saturating_add(1), at.saturating_add(far).saturating_sub(1));
        Ok(!self.store.read(|conn| came(conn, session, call, from, to))?)
    }

    /// The changes of the tool call whose result has time `time`; `None`: it changed nothing.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of_call(&self, session: SessionId, call: &str, time: Time) -> Result<Option<StepRow>> {
        let mut rows = self.of(session, &StepOf::Call(call.into()))?;
        rows.sort_by_key(|row| row.time.millis().abs_diff(time.millis()));
        for row in rows {
            if self.owns(session, call, time, &row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Changes of others directly before the call whose result has time `time`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn others_before_call(&self, session: SessionId, call: &str, time: Time) -> Result<Option<StepRow>> {
        let mut rows = self.of(session, &StepOf::OthersBeforeCall(call.into()))?;
        rows.retain(|row| row.time <= time);
        // The last one before it, unless another result of that id comes in between: then it belongs to that one.
        let Some(row) = rows.pop() else { return Ok(None) };
        let (from, to) = (row.time.millis(), time.millis().saturating_sub(1));
        Ok((!self.store.read(|conn| came(conn, session, call, from, to))?).then_some(row))
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{EntryBody, ToolOutcome};

    use super::*;
    use crate::Append;
    use crate::testing::{NOW, entry, entry_id, grow, scratch, session};

    #[test]
    fn two_branches_with_one_id_each_have_their_own_rows_or_none() {
        let (_dir, store) = scratch();
        let s = session(&store, 1);
        grow(&store, s, 1, 1);
        let at = |millis: i64| Time(NOW.millis() + millis);
        for (n, head, time) in [(2, "a", 1_000), (3, "b", 5_000), (4, "c", 9_000)] {
            let body = EntryBody::plain_result("c1".into(), "terminal".into(), ToolOutcome::Ok, Vec::new());
            let result =
                tiller_protocol::Entry { time: at(time), ..entry(s, entry_id(n), Some(entry_id(1)), body) };
            store.entries().append(Append::new(s, head).entries(vec![result])).wait().unwrap();
        }
        // The first changed something (its state was stored a little later), and so did the last; the second did not.
        let add = |of, millis, after: &str| {
            let time = at(millis);
            let row = StepRow {
                began: None,
                id: 0,
                of,
                before: None,
                after: after.into(),
                files: Vec::new(),
                time,
            };
            store.steps().add(s, row).wait().unwrap();
        };
        add(StepOf::Call("c1".into()), 1_040, "first");
        // The last one ran long: others changed a file at its start.
        add(StepOf::OthersBeforeCall("c1".into()), 5_200, "others");
        add(StepOf::Call("c1".into()), 9_001, "last");
        let did = |millis| store.steps().of_call(s, "c1", at(millis)).unwrap().map(|r| r.after);
        assert_eq!([did(1_000), did(5_000), did(9_000)], [Some("first".into()), None, Some("last".into())]);
        let before = |millis| store.steps().others_before_call(s, "c1", at(millis)).unwrap().map(|r| r.after);
        assert_eq!([before(1_000), before(5_000), before(9_000)], [None, None, Some("others".into())]);
    }
}
