//! Imports a session from JSONL. The file is not trusted: everything in it is checked, and either all of it is added or
//! nothing.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use tiller_protocol::{Op, SessionId};
use uuid::Uuid;

use crate::handles::Transfer;
use crate::transfer::import_rows::Rows;
use crate::transfer::lines::{Line, SessionLines, parse};
use crate::write::ticket::Ticket;

/// Which ids an imported session gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportIds {
    /// Those of the file: a move. An existing session is a [`crate::StoreError::Conflict`].
    Keep,
    /// New ones: a copy.
    Fresh,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    pub session: SessionId,
    /// In all sessions of the file.
    pub entries: u64,
    /// Further sessions: those of its agents.
    pub others: u64,
}

impl Transfer<'_> {
    /// Imports a session and the sessions of its agents. The file is read before the ticket is returned; the rows are
    /// added in one commit.
    pub fn import(&self, input: &mut dyn BufRead, ids: ImportIds) -> Ticket<Imported> {
        let sheets = match parse(input) {
            Ok(parsed) => parsed,
            Err(error) => return Ticket::ready(Err(error)),
        };
        let source = self.store.inner.options.ids.clone();
        let now = self.store.now();
        let fresh = match ids {
            ImportIds::Keep => HashMap::new(),
            ImportIds::Fresh => fresh(&sheets, || source.next(now)),
        };
        self.store.write(move |conn| {
            let mut came = Imported { session: SessionId(Uuid::nil()), entries: 0, others: 0 };
            let theirs: HashSet<Uuid> = sheets.iter().map(|s| s.session.id).collect();
            let all: Vec<HashSet<Uuid>> = sheets.iter().map(SessionLines::entries).collect();
            for (n, (sheet, ours)) in sheets.iter().zip(&all).enumerate() {
                // Its parent. Below an entry that the file does not contain it would never be shown.
                let hangs = |e: &Uuid| n > 0 && !ours.contains(e) && all.iter().any(|o| o.contains(e));
                let spawned_by = sheet.session.spawned_by.filter(hangs);
                let mut rows = Rows {
                    conn,
                    fresh: &fresh,
                    ours,
                    theirs: &theirs,
                    todos: HashMap::new(),
                    session: SessionId(fresh.get(&sheet.session.id).copied().unwrap_or(sheet.session.id)),
                };
                rows.add(sheet, spawned_by)?;
                if n == 0 {
                    came.session = rows.session;
                }
                came.entries += ours.len() as u64;
            }
            came.others = sheets.len() as u64 - 1;
            Ok(came)
        })
    }
}

/// New ids for everything that has one.
fn fresh(sheets: &[SessionLines], mut next: impl FnMut() -> Uuid) -> HashMap<Uuid, Uuid> {
    let mut fresh = HashMap::new();
    let mut give = |old: Uuid| {
        fresh.entry(old).or_insert_with(&mut next);
    };
    for sheet in sheets {
        give(sheet.session.id);
        for parsed in &sheet.lines {
            match &parsed.line {
                Line::Entry(entry) => give(entry.id),
                Line::Agent(agent) => give(agent.session),
                Line::Op { body } => {
                    if let Ok(op) = serde_json::from_str::<Op>(body.get()) {
                        give(op.id.0);
                    }
                }
                _ => {}
            }
        }
    }
    fresh
}
