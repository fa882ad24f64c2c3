//! Imports a session from JSONL. The file is not trusted: everything in it is checked, and either all of it is added or
//! nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufRead;

use tiller_protocol::{Profile, SessionId};
use uuid::Uuid;

use crate::error::StoreError;
use crate::handles::Transfer;
use crate::session::agents::AgentRow;
use crate::transfer::import_rows::Rows;
use crate::transfer::lines::{FileLine, each, wrong};
use crate::transfer::source::{Ids, ImportSource};
use crate::write::ticket::Ticket;

/// Which ids an imported session gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportIds {
    /// Those of the file: a move. An existing session is a [`crate::StoreError::Conflict`].
    Keep,
    /// New ones: a copy.
    Fresh,
}

/// How a file is imported.
#[derive(Clone, Copy, Debug)]
pub struct ImportAs {
    /// The ids that its rows get.
    pub ids: ImportIds,
    /// Profiles, permission rules and open questions are taken as they are in the file. Otherwise no profile allows more than
    /// `ask`, and there are no rules and no questions.
    pub rights: bool,
    /// Cleans the row of an agent; `None`: it is taken as it is.
    pub agent: Option<fn(AgentRow) -> AgentRow>,
}

impl From<ImportIds> for ImportAs {
    /// Everything as it is in the file.
    fn from(ids: ImportIds) -> Self {
        Self { ids, rights: true, agent: None }
    }
}

/// Rights that a file states and that were not taken from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Profiles that allow more than `ask`, with the number of sessions and agents that have `ask` instead.
    pub profiles: BTreeMap<String, u64>,
    /// Permission rules.
    pub rules: u64,
    /// Open questions.
    pub asks: u64,
}

impl Withheld {
    /// The profile that a session gets: the one of the file where it allows no more than `ask`.
    pub(crate) fn profile(&mut self, named: &str) -> Profile {
        let profile = named.parse::<Profile>().ok();
        let most = profile.unwrap_or_default().min(Profile::Ask);
        if profile != Some(most) && !named.is_empty() {
            *self.profiles.entry(named.to_owned()).or_default() += 1;
        }
        most
    }
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    pub session: SessionId,
    /// In all sessions of the file.
    pub entries: u64,
    /// Further sessions: those of its agents.
    pub others: u64,
    /// What was left out.
    pub withheld: Withheld,
}

impl Transfer<'_> {
    /// Imports a session and the sessions of its agents from a text, which is read before the ticket is returned. See
    /// [`Self::import_from`].
    pub fn import(&self, input: &mut dyn BufRead, how: impl Into<ImportAs>) -> Ticket<Imported> {
        let mut bytes = Vec::new();
        match input.read_to_end(&mut bytes) {
            Ok(_) => self.import_from(ImportSource::Bytes(bytes), how),
            Err(error) => Ticket::ready(Err(wrong(1, error))),
        }
    }

    /// Imports a session and the sessions of its agents. The file is read twice, a line at a time: its ids before the ticket
    /// is returned, and its rows where they are added, in one commit. A file that changes in between is an error.
    pub fn import_from(&self, mut source: ImportSource, how: impl Into<ImportAs>) -> Ticket<Imported> {
        let how = how.into();
        let (new, now) = (self.store.inner.options.ids.clone(), self.store.now());
        let mut next = || new.next(now);
        let next: Option<&mut dyn FnMut() -> Uuid> = match how.ids {
            ImportIds::Keep => None,
            ImportIds::Fresh => Some(&mut next),
        };
        let ids = match source.start().and_then(|mut input| Ids::read(&mut *input, next)) {
            Ok(ids) => ids,
            Err(error) => return Ticket::ready(Err(error)),
        };
        self.store.write(move |conn| {
            let theirs: HashSet<Uuid> = ids.sessions.iter().copied().collect();
            let mut withheld = Withheld::default();
            let mut rows: Option<Rows<'_>> = None;
            let mut at = 0;
            let hash = each(&mut *source.start()?, |line| {
                let session = match (line, &mut rows) {
                    (FileLine::Row(row), Some(rows)) => return rows.row(&row, &mut withheld),
                    (FileLine::Row(row), None) => return Err(wrong(row.number, "a row of no session")),
                    (FileLine::Session(session), _) => session,
                };
                let Some(ours) = ids.entries.get(at) else { return Err(changed()) };
                // Its parent. Below an entry that the file does not contain it would never be shown.
                let hangs =
                    |e: &Uuid| at > 0 && !ours.contains(e) && ids.entries.iter().any(|o| o.contains(e));
                let spawned_by = session.spawned_by.filter(hangs);
                let of = SessionId(ids.fresh.get(&session.id).copied().unwrap_or(session.id));
                let next = Rows {
                    conn,
                    how,
                    fresh: &ids.fresh,
                    ours,
                    theirs: &theirs,
                    todos: HashMap::new(),
                    session: of,
                    current: session.head.clone(),
                    place: 0,
                };
                next.begin(&session, spawned_by, &mut withheld)?;
                rows = Some(next);
                at += 1;
                Ok(())
            })?;
            if ids.hash != Some(hash) {
                return Err(changed());
            }
            let first = ids.sessions.first().copied().unwrap_or_default();
            Ok(Imported {
                session: SessionId(ids.fresh.get(&first).copied().unwrap_or(first)),
                entries: ids.entries.iter().map(|ours| ours.len() as u64).sum(),
                others: (ids.sessions.len() as u64).saturating_sub(1),
                withheld,
            })
        })
    }
}

pub(crate) fn changed() -> StoreError {
    wrong(1, "the file changed while it was read: import it again")
}
