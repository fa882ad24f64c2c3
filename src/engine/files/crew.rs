//! What the agents of a session did to the files of its folder. They worked for it: going back takes that back as well.

use std::collections::{HashMap, HashSet};

use tiller_protocol::{EntryId, SessionId, Time};
use tiller_store::{Result, StepOf, StepRow, Store};

/// Their rows, by agent.
pub(super) struct CrewSteps {
    agents: Vec<Agent>,
}

struct Agent {
    session: SessionId,
    spawned_by: Option<EntryId>,
    rows: Vec<StepRow>,
}

/// Of all agents that work in the folder of the session, at any depth. Those with a folder of their own are left out.
pub(super) fn of(store: &Store, session: SessionId) -> Result<CrewSteps> {
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
                    rows: store.steps().list(id, 0)?,
                });
            }
        }
    }
    Ok(CrewSteps { agents })
}

impl CrewSteps {
    /// The last change after the row `after`, by `until`, of the agents that these entries started, and of theirs.
    pub(super) fn last(
        &self,
        store: &Store,
        entries: &HashSet<EntryId>,
        after: i64,
        until: Time,
    ) -> Result<Option<&StepRow>> {
        let mut started: HashSet<SessionId> = HashSet::new();
        let mut last: Option<&StepRow> = None;
        // A parent stands before its children.
        for agent in &self.agents {
            let Some(by) = agent.spawned_by else { continue };
            if !entries.contains(&by)
                && (started.is_empty() || !started.contains(&store.entries().get(by)?.session))
            {
                continue;
            }
            started.insert(agent.session);
            let rows = agent.rows.iter().filter(|r| matches!(r.of, StepOf::Call(_)));
            let theirs = rows.filter(|r| r.id > after && r.time <= until).max_by_key(|r| r.id);
            last = last.into_iter().chain(theirs).max_by_key(|r| r.id);
        }
        Ok(last)
    }

    /// The session's own rows and theirs after the row `after`, oldest first. Where two worked at the same time, one
    /// began at a state that the other had left behind, or in the middle of what that one did: what lies between is
    /// nobody else's.
    pub(super) fn merged(self, session: SessionId, own: Vec<StepRow>, after: i64) -> Vec<StepRow> {
        let theirs = self.agents.into_iter().map(|a| (a.session, a.rows));
        let all = std::iter::once((session, own)).chain(theirs);
        let mut all: Vec<(SessionId, StepRow)> =
            all.flat_map(|(of, rows)| rows.into_iter().map(move |row| (of, row))).collect();
        all.retain(|(_, row)| row.id > after && matches!(row.of, StepOf::Call(_) | StepOf::Restore(_)));
        all.sort_by_key(|(_, row)| row.id);
        side_by_side(&mut all);
        // States that were seen, and by whom last.
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

/// Calls that were under way at the same time: together they lead from where the first of them began to where the last
/// of them ended, each from the end of the one before it. `all` is in the order of their ends.
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
        for at in group {
            let row = &mut all[at].1;
            row.before = before.replace(row.after.clone());
        }
    }
}
