//! The file of an import. It is read twice, a line at a time, so that its size does not matter: for its ids, and for its rows.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

use serde::Deserialize;
use tiller_protocol::{EntryId, SessionId};
use uuid::Uuid;

use crate::error::Result;
use crate::transfer::lines::{texts, wrong};

/// The bytes of an import.
#[derive(Debug)]
pub enum ImportSource {
    /// A file that can be read from its beginning again.
    File(File),
    /// Text in memory.
    Bytes(Vec<u8>),
}

impl ImportSource {
    /// Reads it from its beginning.
    ///
    /// # Errors
    /// [`crate::StoreError::Import`] when it is no regular file, or cannot be read.
    pub fn start(&mut self) -> Result<Box<dyn BufRead + '_>> {
        match self {
            Self::File(file) => {
                file.seek(SeekFrom::Start(0)).map_err(|e| wrong(1, e))?;
                Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
            }
            Self::Bytes(bytes) => Ok(Box::new(&bytes[..])),
        }
    }

    /// The exported session and all entries of the file. `None`: it is not an export.
    pub fn exported(&mut self) -> Option<(SessionId, HashSet<EntryId>)> {
        let ids = Ids::read(&mut *self.start().ok()?, None).ok()?;
        let first = SessionId(*ids.sessions.first()?);
        Some((first, ids.entries.into_iter().flatten().map(EntryId).collect()))
    }
}

/// The ids of a file.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Its sessions, in their order.
    pub(crate) sessions: Vec<Uuid>,
    /// The entries of each.
    pub(crate) entries: Vec<HashSet<Uuid>>,
    /// New ones for everything that has one; empty when ids are kept.
    pub(crate) fresh: HashMap<Uuid, Uuid>,
    /// The hash of the file.
    pub(crate) hash: Option<blake3::Hash>,
}

/// The ids of a line. Its other parts are checked where they are added.
#[derive(Deserialize)]
struct LineIds {
    session: Option<Id>,
    entry: Option<Id>,
    agent: Option<OfAgent>,
    op: Option<OfOp>,
}

#[derive(Deserialize)]
struct Id {
    id: Uuid,
}

#[derive(Deserialize)]
struct OfAgent {
    session: Uuid,
}

#[derive(Deserialize)]
struct OfOp {
    body: Id,
}

impl Ids {
    /// Reads a file; `next` makes new ids.
    pub(crate) fn read(input: &mut dyn BufRead, mut next: Option<&mut dyn FnMut() -> Uuid>) -> Result<Self> {
        let mut ids = Self::default();
        let hash = texts(input, |line, number| {
            let line: LineIds = serde_json::from_str(line).map_err(|e| wrong(number, e))?;
            if let Some(next) = &mut next {
                let agent = line.agent.map(|agent| agent.session);
                let named = [&line.session, &line.entry].map(|id| id.as_ref().map(|id| id.id));
                for old in named.into_iter().chain([agent, line.op.map(|op| op.body.id)]).flatten() {
                    ids.fresh.entry(old).or_insert_with(&mut *next);
                }
            }
            if let Some(session) = line.session {
                ids.sessions.push(session.id);
                ids.entries.push(HashSet::new());
            }
            if let (Some(entry), Some(of)) = (line.entry, ids.entries.last_mut()) {
                of.insert(entry.id);
            }
            Ok(())
        })?;
        ids.hash = Some(hash);
        Ok(ids)
    }
}
