//! Calls of models: tokens and money, by agent, model and day.

use rusqlite::{Connection, params};
use tiller_protocol::command::CostBy;
use tiller_protocol::view::CostRow;
use tiller_protocol::{AgentId, Cost, ModelRef, SessionId, Time, Usage};

use crate::error::Result;
use crate::handles::Costs;
use crate::tree::entries::{count, uncount};
use crate::write::ticket::Ticket;

/// One call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    pub agent: AgentId,
    pub model: ModelRef,
    /// `fast`, `main` or `deep`.
    pub tier: String,
    pub time: Time,
    pub usage: Usage,
    /// `None`: the price is unknown.
    pub cost: Option<Cost>,
}

/// Sum of the costs that count towards a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostSum {
    /// Sum of the known prices.
    pub cost: Cost,
    pub calls: u64,
    /// Calls whose price is not known.
    pub unpriced: u64,
}

pub(crate) fn insert(conn: &Connection, session: SessionId, call: &ModelCall, day: &str) -> Result<()> {
    let u = &call.usage;
    conn.prepare_cached(
        "INSERT INTO calls(session, agent, model, tier, day, time, input, output, cache_read, cache_write,
           reasoning, cost, estimated) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        session.0,
        call.agent.0,
        call.model.0,
        call.tier,
        day,
        call.time.millis(),
        count(u.input),
        count(u.output),
        count(u.cache_read),
        count(u.cache_write),
        count(u.reasoning),
        call.cost.map(|c| count(c.0)),
        u.estimated,
    ])?;
    if let Some(cost) = call.cost {
        // Saturates, as all sums of money do.
        conn.prepare_cached(
            "UPDATE sessions SET cost = CASE WHEN coalesce(cost, 0) > 9223372036854775807 - ?2
               THEN 9223372036854775807 ELSE coalesce(cost, 0) + ?2 END WHERE id = ?1",
        )?
        .execute(params![session.0, count(cost.0)])?;
    }
    Ok(())
}

/// Highest first; days: newest first.
fn sort(rows: &mut [CostRow], by: CostBy) {
    match by {
        CostBy::Day => rows.sort_by(|a, b| b.key.cmp(&a.key)),
        CostBy::Agent | CostBy::Model => rows.sort_by(|a, b| b.cost.cmp(&a.cost).then(a.key.cmp(&b.key))),
    }
}

impl Costs<'_> {
    /// Records a call on its own. (Usually part of an [`crate::Append`].)
    pub fn record(&self, session: SessionId, call: ModelCall) -> Ticket<()> {
        let day = self.day(call.time);
        self.store.write(move |conn| insert(conn, session, &call, &day))
    }

    /// The day of `time` in the person's time zone, for instance `2026-11-21`.
    pub fn day(&self, time: Time) -> String {
        jiff::Timestamp::from_millisecond(time.millis())
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .to_zoned(self.store.zone())
            .date()
            .to_string()
    }

    /// Costs of one session (`None`: of all), grouped, highest first (days: newest first).
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn by(&self, session: Option<SessionId>, by: CostBy) -> Result<Vec<CostRow>> {
        let column = match by {
            CostBy::Agent => "agent",
            CostBy::Model => "model",
            CostBy::Day => "day",
        };
        let rows: Vec<CostRow> = self.store.read(|conn| {
            // Added here, not in SQL, whose `sum` fails on overflow; this one saturates.
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {column}, input, output, cache_read, cache_write, reasoning, cost, estimated
                 FROM calls
                 WHERE ?1 IS NULL OR session = ?1 ORDER BY {column}, id"
            ))?;
            let mut rows = statement.query(params![session.map(|s| s.0)])?;
            let mut groups: Vec<CostRow> = Vec::new();
            while let Some(row) = rows.next()? {
                let key: String = row.get(0)?;
                if groups.last().is_none_or(|g| g.key != key) {
                    groups.push(CostRow {
                        key,
                        calls: 0,
                        usage: Usage::default(),
                        cost: None,
                        unpriced: 0,
                        estimated: 0,
                    });
                }
                let Some(group) = groups.last_mut() else { continue };
                let estimated = row.get(7)?;
                group.calls += 1;
                group.estimated += u64::from(estimated);
                group.usage.add(&Usage {
                    input: uncount(row.get(1)?),
                    output: uncount(row.get(2)?),
                    cache_read: uncount(row.get(3)?),
                    cache_write: uncount(row.get(4)?),
                    reasoning: uncount(row.get(5)?),
                    estimated,
                });
                match row.get::<_, Option<i64>>(6)? {
                    Some(cost) => {
                        group.cost = Some(group.cost.unwrap_or_default().plus(Cost(uncount(cost))));
                    }
                    None => group.unpriced += 1,
                }
            }
            Ok(groups)
        })?;
        let mut rows = rows;
        sort(&mut rows, by);
        Ok(rows)
    }

    /// Costs of a session and of all its agents, at any depth, grouped as by [`Self::by`].
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn with_agents(&self, session: SessionId, by: CostBy) -> Result<Vec<CostRow>> {
        let mut sums: Vec<CostRow> = Vec::new();
        for id in std::iter::once(session).chain(self.store.agents().sessions_below(session)?) {
            for row in self.by(Some(id), by)? {
                match sums.iter_mut().find(|sum| sum.key == row.key) {
                    Some(sum) => {
                        sum.calls += row.calls;
                        sum.unpriced += row.unpriced;
                        sum.estimated += row.estimated;
                        sum.usage.add(&row.usage);
                        sum.cost = row.cost.map(|c| sum.cost.unwrap_or_default().plus(c)).or(sum.cost);
                    }
                    None => sums.push(row),
                }
            }
        }
        sort(&mut sums, by);
        Ok(sums)
    }

    /// The spending of one session.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn spent_in(&self, session: SessionId) -> Result<CostSum> {
        self.spent("session = ?1", params![session.0])
    }

    /// The spending on a day (all sessions), in one tier or in all.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn spent_on(&self, day: &str, tier: Option<&str>) -> Result<CostSum> {
        self.spent("day = ?1 AND (?2 IS NULL OR tier = ?2)", params![day, tier])
    }

    fn spent(&self, condition: &'static str, values: &[&dyn rusqlite::ToSql]) -> Result<CostSum> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(&format!("SELECT cost FROM calls WHERE {condition}"))?;
            let mut rows = statement.query(values)?;
            let mut spent = CostSum::default();
            while let Some(row) = rows.next()? {
                spent.calls += 1;
                match row.get::<_, Option<i64>>(0)? {
                    Some(cost) => spent.cost = spent.cost.plus(Cost(uncount(cost))),
                    None => spent.unpriced += 1,
                }
            }
            Ok(spent)
        })
    }
}
