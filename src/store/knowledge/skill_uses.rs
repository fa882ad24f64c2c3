//! How often skills were used, and what came of it.

use std::collections::BTreeMap;

use rusqlite::params;
use tiller_protocol::{Cost, SessionId, Time};

use crate::error::Result;
use crate::handles::SkillUses;
use crate::tree::entries::{count, uncount};
use crate::write::ticket::Ticket;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillUseKind {
    /// A turn whose agent loaded the skill.
    Agent,
    /// A turn whose message names it.
    Person,
    /// A trial with it.
    With,
    /// The same trial without it.
    Without,
}

impl SkillUseKind {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person => "person",
            Self::With => "with",
            Self::Without => "without",
        }
    }
}

/// A turn that used a skill, or a trial of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillUse {
    pub skill: String,
    /// `None`: of a trial.
    pub session: Option<SessionId>,
    pub kind: SkillUseKind,
    /// The turn succeeded.
    pub done: bool,
    /// Its check succeeded; `None`: there was none.
    pub checked: Option<bool>,
    /// `None`: not known.
    pub cost: Option<Cost>,
    pub tokens: u64,
}

/// Sums of a skill's uses, trials aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkillTotals {
    pub uses: u64,
    /// Uses whose turn succeeded.
    pub done: u64,
    /// Sum of the known costs of these turns.
    pub cost: Cost,
    pub tokens: u64,
    /// The newest.
    pub last: Time,
}

impl SkillTotals {
    /// For people: `used 3 times, 2 of them in a turn that succeeded, $0.12`.
    pub fn words(&self) -> String {
        match self.uses {
            0 => "not used yet".into(),
            n => {
                let times = if n == 1 { "once".to_owned() } else { format!("{n} times") };
                let cost =
                    if self.cost == Cost::default() { String::new() } else { format!(", {}", self.cost) };
                format!("used {times}, {} in turns that succeeded{cost}", self.done)
            }
        }
    }
}

impl SkillUses<'_> {
    /// Adds rows.
    pub fn add(&self, all: Vec<SkillUse>) -> Ticket<()> {
        let now = self.store.now();
        self.store.write(move |conn| {
            let mut insert = conn.prepare_cached(
                "INSERT INTO skill_uses(time, skill, session, kind, done, checked, cost, tokens)
                   VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            for row in &all {
                insert.execute(params![
                    now.millis(),
                    row.skill,
                    row.session.map(|session| session.0),
                    row.kind.word(),
                    row.done,
                    row.checked,
                    row.cost.map(|cost| count(cost.0)),
                    count(row.tokens),
                ])?;
            }
            Ok(())
        })
    }

    /// The sums of each skill that was used, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn totals(&self) -> Result<BTreeMap<String, SkillTotals>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT skill, count(*), sum(done), coalesce(sum(cost), 0), sum(tokens), max(time) FROM skill_uses
                   WHERE kind IN ('agent', 'person') GROUP BY skill",
            )?;
            let rows = statement.query_map([], |row| {
                let totals = SkillTotals {
                    uses: uncount(row.get(1)?),
                    done: uncount(row.get(2)?),
                    cost: Cost(uncount(row.get(3)?)),
                    tokens: uncount(row.get(4)?),
                    last: Time(row.get(5)?),
                };
                Ok((row.get(0)?, totals))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    #[test]
    fn uses_are_summed_and_trials_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::Store::open(&dir.path().join("tiller.db"), options()).unwrap();
        let row = |skill: &str, kind, done, cost: Option<u64>| SkillUse {
            skill: skill.into(),
            session: None,
            kind,
            done,
            checked: None,
            cost: cost.map(Cost),
            tokens: 10,
        };
        let all = vec![
            row("a", SkillUseKind::Agent, true, Some(5)),
            row("a", SkillUseKind::Person, false, None),
            row("a", SkillUseKind::With, true, Some(100)),
            row("b", SkillUseKind::Without, true, Some(100)),
        ];
        store.skill_uses().add(all).wait().unwrap();
        let totals = store.skill_uses().totals().unwrap();
        assert_eq!(totals.keys().map(String::as_str).collect::<Vec<_>>(), ["a"]);
        let a = totals["a"];
        assert_eq!((a.uses, a.done, a.cost, a.tokens), (2, 1, Cost(5), 20));
        assert!(a.words().starts_with("used 2 times, 1 in turns that succeeded"), "{}", a.words());
        assert_eq!(SkillTotals::default().words(), "not used yet");
    }

    #[test]
    fn an_older_database_gets_the_table() {
        use crate::open::migrate::{self, DatabaseKind, MIGRATIONS};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiller.db");
        let before = MIGRATIONS.iter().position(|step| step.contains("CREATE TABLE skill_uses")).unwrap();
        let conn = rusqlite::Connection::open(&path).unwrap();
        migrate::migrate(&conn, None, DatabaseKind::Empty, &MIGRATIONS[..before], NOW).unwrap();
        drop(conn);
        let store = crate::Store::open(&path, options()).unwrap();
        assert!(store.skill_uses().totals().unwrap().is_empty());
    }
}
