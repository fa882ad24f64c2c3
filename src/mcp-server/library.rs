//! The store, opened when it is needed, and which of its sessions may be read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tiller_permit::Redactor;
use tiller_protocol::{Clock, EntryId, Notice, SessionId, lock};
use tiller_store::{SessionRow, Store, StoreError};
use tiller_text::clean;

/// Sessions above one that are looked at: agents have few levels.
const LEVELS: usize = 32;

/// What a library is made of.
pub struct LibraryConfig {
    /// Opens the store. It is called again after a failure.
    pub open: Box<dyn Fn() -> Result<Store, Notice> + Send + Sync>,
    /// Masks secrets.
    pub redactor: Arc<Redactor>,
    /// The folder whose sessions may be read; `None`: those of all folders.
    pub project: Option<String>,
    pub clock: Arc<dyn Clock>,
}

/// The sessions that may be read.
pub struct Library {
    config: LibraryConfig,
    store: Mutex<Option<Store>>,
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// For the model: a sentence without a full stop.
    pub(crate) why: String,
    /// The store could not be read.
    pub(crate) store: bool,
}

impl Refusal {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), store: false }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self { why: words(&error.notice()), store: true }
    }
}

/// A notice in one line.
fn words(notice: &Notice) -> String {
    let mut text = notice.message.clone();
    for hint in &notice.hints {
        text.push_str(&format!("; {hint}"));
    }
    clean::plain(&text).into_owned()
}

impl Library {
    /// Opens nothing yet.
    pub fn new(config: LibraryConfig) -> Self {
        Self { config, store: Mutex::new(None) }
    }

    /// The open store.
    pub(crate) fn store(&self) -> Result<Store, Refusal> {
        let mut open = lock(&self.store);
        if let Some(store) = &*open {
            return Ok(store.clone());
        }
        let store = (self.config.open)().map_err(|notice| Refusal::new(words(&notice)))?;
        Ok(open.insert(store).clone())
    }

    /// Opens the store again at the next call: its file may have been damaged, or replaced.
    pub(crate) fn forget(&self) {
        *lock(&self.store) = None;
    }

    /// The folder whose sessions may be read; `None`: all.
    pub(crate) fn project(&self) -> Option<&str> {
        self.config.project.as_deref()
    }

    /// The present time.
    pub(crate) fn now(&self) -> tiller_protocol::Time {
        self.config.clock.now()
    }

    /// A foreign text as it may leave Tiller: secrets masked, control characters visible.
    pub(crate) fn safe(&self, text: &str) -> String {
        clean::plain_lines(&self.config.redactor.redact(text))
    }

    /// Masks secrets in every text of a result.
    pub(crate) fn mask(&self, value: &mut serde_json::Value) {
        self.config.redactor.redact_json(value);
    }

    /// A session by its id or a prefix of it, if it may be read.
    pub(crate) fn session(&self, store: &Store, id: &str) -> Result<SessionRow, Refusal> {
        let id = id.trim();
        let id = store.sessions().find(id).map_err(|error| match error {
            StoreError::NotFound(_) => unknown(id),
            other => other.into(),
        })?;
        self.readable(store, id)
    }

    /// A session that may be read: of the folder, or of an agent that works for such a session.
    pub(crate) fn readable(&self, store: &Store, id: SessionId) -> Result<SessionRow, Refusal> {
        let found = store.sessions().get(id)?;
        let (mut row, mut seen) = (found.clone(), HashSet::from([id]));
        for _ in 0..LEVELS {
            if row.trashed.is_some() {
                return Err(unknown(&id.to_string()));
            }
            if self.config.project.as_ref().is_none_or(|project| *project == row.summary.project) {
                return Ok(found);
            }
            let Some(entry) = row.spawned_by else { break };
            let above = store.entries().get(entry)?.session;
            if !seen.insert(above) {
                break;
            }
            row = store.sessions().get(above)?;
        }
        // Not even that there is such a session.
        Err(unknown(&id.to_string()))
    }

    /// An entry's session, if it may be read.
    pub(crate) fn entry(&self, store: &Store, id: &str) -> Result<tiller_protocol::Entry, Refusal> {
        let wrong = || Refusal::new(format!("there is no message '{}'", clean::plain(id.trim())));
        let id = uuid::Uuid::parse_str(id.trim()).map(EntryId).map_err(|_| wrong())?;
        let entry = store.entries().get(id).map_err(|error| match error {
            StoreError::NoEntry(_) => wrong(),
            other => other.into(),
        })?;
        self.readable(store, entry.session).map_err(|_| wrong())?;
        Ok(entry)
    }
}

fn unknown(id: &str) -> Refusal {
    Refusal::new(format!(
        "there is no session '{}' that may be read here; list_sessions shows those that there are",
        clean::plain(id)
    ))
}
