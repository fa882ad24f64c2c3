//! Changes by the agents of a session in its folder. They worked for the session: a restore takes them back as well.

use std::collections::{HashMap, HashSet};

use tiller_protocol::{EntryId, SessionId, Time};
use tiller_store::{Result, StepOf, StepRow, Store};

/// The steps of the agents, by agent.
pub(super) struct CrewSteps {
    agents: Vec<Agent>,
}

struct Agent {
    session: SessionId,
    spawned_by: Option<EntryId>,
    rows: Vec<StepRow>,
}

/// Reads the steps after row `after` of all agents that work in the session's folder, at any depth. Agents with a folder of
/// their own are left out.
pub(super) fn of(store: &Store, session: SessionId, after: i64) -> Result<CrewSteps> {
    let mut agents = Vec::new();
    let family = store.agents().sessions_below(session)?;
    if !family.is_empty() {
        let here = store.sessions().get(session)?.summary.project;
        for id in family {
            let row = store.sessions().get(id)?;
            if row.summary.project == here {
                agents.push(Agent {
                    session: id,
                    spawned_by: row.spawned_by,
                    rows: store.steps().list(id, after)?,
                });
            }
        }
    }
    Ok(CrewSteps { agents })
}

impl CrewSteps {
    /// The last change after row `after` and before `until` by the agents that these entries started, and by their
    /// children.
    pub(super) fn last(
        &self,
        store: &Store,
        entries: &HashSet<EntryId>,
        after: i64,
        until: Time,
    ) -> Result<Option<&StepRow>> {
        let started = self.started_by(store, entries)?;
        let mut last: Option<&StepRow> = None;
        for agent in self.agents.iter().filter(|agent| started.contains(&agent.session)) {
            let rows = agent.rows.iter().filter(|r| matches!(r.of, StepOf::Call(_)));
            for row in rows.filter(|r| r.id > after && r.time <= until) {
                if last.is_none_or(|l| ended_after(row, l)) {
                    last = Some(row);
                }
            }
        }
        Ok(last)
    }

    /// Leaves the agents that these entries started, and their children.
    pub(super) fn only_started_by(mut self, store: &Store, entries: &HashSet<EntryId>) -> Result<Self> {
        let started = self.started_by(store, entries)?;
        self.agents.retain(|agent| started.contains(&agent.session));
        Ok(self)
    }

    fn started_by(&self, store: &Store, entries: &HashSet<EntryId>) -> Result<HashSet<SessionId>> {
        let mut started: HashSet<SessionId> = HashSet::new();
        // Parents are listed before their children.
        for agent in &self.agents {
            let Some(by) = agent.spawned_by else { continue };
            let child = || -> Result<bool> {
                Ok(!started.is_empty() && started.contains(&store.entries().get(by)?.session))
            };
            if entries.contains(&by) || child()? {
                started.insert(agent.session);
            }
        }
        Ok(started)
    }

    /// The steps of the session and its agents that the state of the row `after` does not contain, oldest first. Where
    /// two worked at the same time, one began at a state that the other had left, or in the middle of the other's change:
    /// no other program changed the files in between.
    pub(super) fn merged(self, session: SessionId, own: Vec<StepRow>, after: &StepRow) -> Vec<StepRow> {
        let theirs = self.agents.into_iter().map(|a| (a.session, a.rows));
        let all = std::iter::once((session, own)).chain(theirs);
        let mut all: Vec<(SessionId, StepRow)> =
            all.flat_map(|(of, rows)| rows.into_iter().map(move |row| (of, row))).collect();
        all.retain(|(_, row)| {
            matches!(row.of, StepOf::Call(_) | StepOf::Restore(_)) && ended_after(row, after)
        });
        all.sort_by_key(|(_, row)| row.id);
        side_by_side(&mut all);
        // States so far, with the session that saw each last.
        let mut seen: HashMap<String, SessionId> = HashMap::new();
        let mut at: Option<String> = None;
        for (of, row) in &mut all {
            if let (Some(before), Some(at)) = (&mut row.before, &at) {
                let left = before != at && seen.get(before).is_some_and(|other| other != of);
                seen.insert(before.clone(), *of);
                if left {
                    before.clone_from(at);
                }
            } else if let Some(before) = &row.before {
                seen.insert(before.clone(), *of);
            }
            seen.insert(row.after.clone(), *of);
            at = Some(row.after.clone());
        }
        all.into_iter().map(|(_, row)| row).collect()
    }
}

/// Whether `row` ended after `other`. Rows are stored in the order of their ends, except where two calls ran at the same
/// time: each agent stores its own row, so the row of the call that ended first can be stored last.
fn ended_after(row: &StepRow, other: &StepRow) -> bool {
    let within =
        |one: &StepRow, of: &StepRow| of.began.is_some_and(|began| began <= one.time && one.time <= of.time);
    match within(row, other) || within(other, row) {
        true => (row.time, row.id) > (other.time, other.id),
        false => row.id > other.id,
    }
}

/// Aligns calls that ran at the same time: together they lead from the start of the first to the end of the last, each
/// from the end of the one before it. They are put in the order of their ends (see [`ended_after`]).
fn side_by_side(all: &mut [(SessionId, StepRow)]) {
    let mut begun: Vec<(Time, usize)> =
        all.iter().enumerate().filter_map(|(at, (_, row))| Some((row.began?, at))).collect();
    begun.sort_unstable();
    let mut next = 0;
    while let Some((_, first)) = begun.get(next) {
        let mut group = vec![*first];
        let mut end = all[*first].1.time;
        next += 1;
        while let Some((_, at)) = begun.get(next).filter(|(began, _)| *began <= end) {
            group.push(*at);
            end = end.max(all[*at].1.time);
            next += 1;
        }
        if group.len() == 1 {
            continue;
        }
        let mut before = all[group[0]].1.before.clone();
        group.sort_unstable();
        let mut rows: Vec<_> = group.iter().map(|at| all[*at].clone()).collect();
        rows.sort_by_key(|(_, row)| (row.time, row.id));
        for (at, (of, mut row)) in group.into_iter().zip(rows) {
            row.before = before.replace(row.after.clone());
            all[at] = (of, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(n: u8) -> SessionId {
        SessionId(uuid::Uuid::from_bytes([n; 16]))
    }

    fn row(id: i64, (before, after): (&str, &str), (began, time): (i64, i64)) -> StepRow {
        StepRow {
            id,
            of: StepOf::Call(format!("c{id}")),
            before: Some(before.into()),
            after: after.into(),
            files: Vec::new(),
            time: Time(time),
            began: Some(Time(began)),
        }
    }

    /// Three calls at the same time, and the call that ended first is stored last.
    #[test]
    fn calls_at_the_same_time_are_in_the_order_of_their_ends_however_late_a_row_is_stored() {
        let outer = row(1, ("start", "outer"), (10, 30));
        let inner = row(2, ("middle", "inner"), (15, 40));
        let tool = row(3, ("other", "tool"), (20, 25));
        let agent =
            |n: u8, row: &StepRow| Agent { session: session(n), spawned_by: None, rows: vec![row.clone()] };
        let after = |point: &StepRow| {
            let crew = CrewSteps { agents: vec![agent(1, &outer), agent(2, &inner), agent(3, &tool)] };
            let steps = crew.merged(session(0), Vec::new(), point).into_iter();
            steps.map(|r| format!("{}-{}", r.before.unwrap(), r.after)).collect::<Vec<_>>()
        };
        let point = StepRow {
            of: StepOf::Point(EntryId(uuid::Uuid::nil())),
            began: None,
            ..row(0, ("", "start"), (0, 10))
        };
        assert_eq!(after(&point), ["start-tool", "tool-outer", "outer-inner"]);
        assert_eq!(
            after(&outer),
            ["middle-inner"],
            "the state after the outer call contains the tool's file"
        );
        assert!(after(&inner).is_empty());
    }
}
