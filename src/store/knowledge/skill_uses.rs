//! How often skills were used, and what came of it.

use std::collections::BTreeMap;

use rusqlite::params;
use tiller_protocol::skill::{SkillRecord, SkillTrial};
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
}

impl SkillUseKind {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person => "person",
        }
    }
}

/// A turn that used a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillUse {
    pub skill: String,
    pub session: SessionId,
    pub kind: SkillUseKind,
    /// The turn succeeded.
    pub done: bool,
    /// Its check succeeded; `None`: there was none.
    pub checked: Option<bool>,
    /// `None`: not known.
    pub cost: Option<Cost>,
    pub tokens: u64,
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
                    row.session.0,
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

    /// Notes how the check of the newest turn of a session ended, with all skills that the turn used. Later checks of the
    /// same turn count.
    pub fn checked(&self, session: SessionId, passed: bool) -> Ticket<()> {
        self.store.write(move |conn| {
            conn.execute(
                "UPDATE skill_uses SET checked = ?2 WHERE kind IN ('agent', 'person') AND session = ?1
                   AND time = (SELECT max(time) FROM skill_uses WHERE session = ?1)",
                params![session.0, passed],
            )?;
            Ok(())
        })
    }

    /// Adds a trial.
    pub fn add_trial(&self, skill: &str, trial: &SkillTrial) -> Ticket<()> {
        let (skill, result) = (skill.to_owned(), serde_json::to_string(trial).unwrap_or_default());
        let time = trial.time;
        self.store.write(move |conn| {
            conn.execute(
                "INSERT INTO skill_trials(time, skill, result) VALUES(?1, ?2, ?3)",
                params![time.millis(), skill, result],
            )?;
            Ok(())
        })
    }

    /// What is known of each skill that was used or tried, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn records(&self) -> Result<BTreeMap<String, SkillRecord>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT skill, count(*), sum(done), count(checked), coalesce(sum(checked), 0), coalesce(sum(cost), 0),
                   sum(tokens), max(time) FROM skill_uses WHERE kind IN ('agent', 'person') GROUP BY skill",
            )?;
            let rows = statement.query_map([], |row| {
                let record = SkillRecord {
                    uses: uncount(row.get(1)?),
                    done: uncount(row.get(2)?),
                    checked: uncount(row.get(3)?),
                    passed: uncount(row.get(4)?),
                    cost: Cost(uncount(row.get(5)?)),
                    tokens: uncount(row.get(6)?),
                    last: Time(row.get(7)?),
                    trial: None,
                };
                Ok((row.get(0)?, record))
            })?;
            let mut all: BTreeMap<String, SkillRecord> = rows.collect::<rusqlite::Result<_>>()?;
            let mut statement = conn.prepare_cached(
                "SELECT skill, result FROM skill_trials WHERE id IN (SELECT max(id) FROM skill_trials GROUP BY skill)",
            )?;
            let rows =
                statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
            for row in rows {
                let (skill, result) = row?;
                // One that a later version wrote in another way is none.
                all.entry(skill).or_default().trial = serde_json::from_str(&result).ok();
            }
            Ok(all)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    #[test]
    fn uses_are_summed_with_their_checks_and_the_newest_trial() {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::Store::open(&dir.path().join("tiller.db"), options()).unwrap();
        let row = |skill: &str, kind, done, cost: Option<u64>| SkillUse {
            skill: skill.into(),
            session: SessionId(uuid::Uuid::from_u128(1)),
            kind,
            done,
            checked: None,
            cost: cost.map(Cost),
            tokens: 10,
        };
        let all =
            vec![row("a", SkillUseKind::Agent, true, Some(5)), row("a", SkillUseKind::Person, false, None)];
        store.skill_uses().add(all).wait().unwrap();
        let records = store.skill_uses().records().unwrap();
        assert_eq!(records.keys().map(String::as_str).collect::<Vec<_>>(), ["a"]);
        let a = &records["a"];
        assert_eq!((a.uses, a.done, a.cost, a.tokens), (2, 1, Cost(5), 20));
        assert_eq!((a.checked, a.passed, &a.trial), (0, 0, &None));
        // A check of the newest turn of a session, and of no other.
        let session = SessionId(uuid::Uuid::from_u128(7));
        let of = |done| SkillUse { session, ..row("c", SkillUseKind::Agent, done, None) };
        store.skill_uses().add(vec![of(true)]).wait().unwrap();
        store.skill_uses().checked(session, false).wait().unwrap();
        store.skill_uses().checked(session, true).wait().unwrap();
        store.skill_uses().checked(SessionId(uuid::Uuid::from_u128(8)), false).wait().unwrap();
        let records = store.skill_uses().records().unwrap();
        assert_eq!((records["c"].checked, records["c"].passed), (1, 1));
        assert_eq!(records["a"].checked, 0);
        // Of two trials the later one counts; what cannot be read is none.
        let trial = |text: &str| SkillTrial { text: text.into(), ..SkillTrial::default() };
        for (skill, text) in [("a", "one"), ("a", "two"), ("d", "three")] {
            store.skill_uses().add_trial(skill, &trial(text)).wait().unwrap();
        }
        let records = store.skill_uses().records().unwrap();
        assert_eq!(records["a"].trial, Some(trial("two")));
        assert_eq!((records["d"].uses, &records["d"].trial), (0, &Some(trial("three"))));
    }

    #[test]
    fn an_older_database_gets_the_table() {
        use crate::open::migrate::{self, DatabaseKind, MIGRATIONS};
        let dir = tempfile::tempdir().unwrap();
        for table in ["skill_uses", "skill_trials"] {
            let create = format!("CREATE TABLE {table}");
            let before = MIGRATIONS.iter().position(|step| step.contains(&create)).unwrap();
            let path = dir.path().join(format!("{table}.db"));
            let conn = rusqlite::Connection::open(&path).unwrap();
            migrate::migrate(&conn, None, DatabaseKind::Empty, &MIGRATIONS[..before], NOW).unwrap();
            drop(conn);
            let store = crate::Store::open(&path, options()).unwrap();
            assert!(store.skill_uses().records().unwrap().is_empty());
        }
    }
}
