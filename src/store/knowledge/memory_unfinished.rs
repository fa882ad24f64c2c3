//! A change of a memory file that is being written. The store keeps what is to be recorded of it before the file is replaced, so
//! that the record is completed when the process is killed in between.

use rusqlite::params;
use serde::{Deserialize, Serialize};
use tiller_protocol::memory::{ChangeState, MemoryChange};

use crate::error::Result;
use crate::handles::MemoryChanges;
use crate::knowledge::memory::{accept, give_up_undone, insert, set};
use crate::write::ticket::Ticket;

/// One step of the record of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordStep {
    /// A new change; its id and time are set when it is recorded.
    Add(Box<MemoryChange>),
    /// The undone changes of these files cannot be redone any more.
    GiveUpUndone(Vec<String>),
    /// The user accepts a change that waited: it is done now, as the last one. `added`: the text as the user changed it.
    /// `own`: it is the user's from now on, and belongs to no branch.
    Accept { id: i64, added: Option<String>, own: bool },
    /// The new state of a change.
    Set { id: i64, state: ChangeState },
}

/// A change of a memory file that may or may not be in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedChange {
    /// Recorded lines that the file has less often after the change, and how often then.
    pub fewer: Vec<(String, usize)>,
    /// Recorded lines that the file has more often after the change, and how often then.
    pub more: Vec<(String, usize)>,
    pub steps: Vec<RecordStep>,
}

/// The name of the value that has the unfinished change of the file at `path`.
pub(crate) fn key(path: &str) -> String {
    format!("memory unfinished {path}")
}

impl MemoryChanges<'_> {
    /// A change of the file at `path` is about to be written. One that was begun before is given up.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn begin(&self, path: &str, change: &UnfinishedChange) -> Result<Ticket<()>> {
        let text = serde_json::to_string(change)?;
        Ok(self.store.set_meta(&key(path), Some(text)))
    }

    /// The change of the file at `path` that was begun and not recorded.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn unfinished(&self, path: &str) -> Result<Option<UnfinishedChange>> {
        let text = self.store.meta(&key(path))?;
        // What a newer version wrote is given up.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// The change that was begun did not come into the file at `path`.
    pub fn give_up(&self, path: &str) -> Ticket<()> {
        self.store.set_meta(&key(path), None)
    }

    /// Records a change of the file at `path`. All of it or, after a kill, nothing. The next look at the file finishes it.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn record(&self, path: &str, change: UnfinishedChange) -> Result<Ticket<()>> {
        let (now, key, steps) = (self.store.now(), key(path), change.steps);
        let recorded = serde_json::to_string(&UnfinishedChange { steps: Vec::new(), ..change })?;
        Ok(self.store.write(move |conn| {
            for step in &steps {
                match step {
                    RecordStep::Add(change) => insert(conn, now, change).map(drop)?,
                    RecordStep::GiveUpUndone(paths) => give_up_undone(conn, paths)?,
                    RecordStep::Accept { id, added, own } => {
                        accept(conn, now, *id, added.as_deref(), *own)?;
                    }
                    RecordStep::Set { id, state } => set(conn, *id, *state)?,
                }
            }
            conn.execute("UPDATE meta SET value = ?2 WHERE key = ?1", params![key, recorded])?;
            Ok(())
        }))
    }
}
