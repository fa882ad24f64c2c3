//! Memory files: MEMORY.md, what agents should know for long, and USER.md, who the user is. Both are in the user's data
//! folder; a project that the user trusts can have a second pair in its `.tiller` folder.
//!
//! | file | holds |
//! | --- | --- |
//! | `document` | the form of a file: entries, and text of the user's that is kept byte for byte |
//! | `merge` | what two sides changed, in one document |
//! | `disk` | reading and replacing a file that others write too |
//! | `leftovers` | what a killed process leaves beside a file |
//! | `screen` | what may become an entry |
//! | `plan` | one change: found, screened, shown, and carried out |
//! | `history` | undoing changes, deciding about pending ones, following branches |
//! | `page` | what clients see |
//! | `seen` | what vanishes from the files by another hand than Tiller's |
//! | `restore` | what an edited entry became, and bringing entries back |
//! | `power` | which entries may be rules |
//! | `taints` | the recorded origins of entries, and what they pass on |
//! | `import` | entries of an export or of another file |
//! | `budget` | moving entries into the archive |

mod budget;
mod disk;
mod document;
mod history;
mod import;
mod leftovers;
mod merge;
mod page;
mod plan;
mod power;
mod restore;
mod screen;
mod seen;
mod taints;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use tiller_config::schema::{Config, MemoryApproval};
use tiller_protocol::memory::{ChangeState, MemoryChange};
use tiller_protocol::{Clock, MemoryFile, MemoryScope, MemoryTarget, ToolCatalog};
use tiller_store::Store;

pub use budget::Condensed;
pub use disk::LARGEST;
pub use document::{Document, Entry};
pub use history::Moved;
pub use import::{Imported, ImportedEntry};
pub use merge::merge;
pub use page::MemoryMark;
pub use plan::{Edit, Planned, Route};
pub(crate) use power::KnownLines;
pub use power::{RuleFilePlace, is_written_here};
pub use screen::screen;
pub use seen::UnconfinedCall;
pub(crate) use seen::{Stamp, stamp, stamp_of_link};

use crate::screen::FindSecret;
use disk::Slot;
use document::{Part, Shown};
use tiller_text::clean::visible;

/// Why memory was not read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The text or the change is refused: a sentence without a full stop, with what to do.
    #[error("{0}")]
    Refused(String),
    /// The entry is not there. How entries are listed depends on the caller, which adds it.
    #[error("{0}")]
    NotFound(String),
    /// An entry with this text is there.
    #[error("this is already {} {}", if *archived { "in the archive of" } else { "in" }, target.label())]
    Known { target: MemoryTarget, archived: bool },
    /// A file, with its path: it cannot be read or written.
    #[error("{0}")]
    File(String),
    /// The database has the changes of entries and their origins: it cannot be read or written.
    #[error("the record of memory changes cannot be read or written: {0}")]
    Store(String),
}

impl From<tiller_store::StoreError> for MemoryError {
    fn from(error: tiller_store::StoreError) -> Self {
        Self::Store(error.notice().message)
    }
}

/// Where memory files are.
#[derive(Clone, Debug)]
pub struct MemoryPlaces {
    /// The user's data folder.
    pub data: PathBuf,
    /// The user's settings folder: a USER.md in it is read, too.
    pub settings: PathBuf,
    /// The workspace; `None`: there is none.
    pub project: Option<PathBuf>,
}

/// Memory files of the user and of one project. Every method blocks.
pub struct Memory {
    places: MemoryPlaces,
    clock: Arc<dyn Clock>,
    secret: RwLock<FindSecret>,
    settings: RwLock<MemorySettings>,
    /// Set once the database is open; before that the origin of entries is neither known nor kept.
    store: OnceLock<Store>,
    /// The user trusts the project.
    trusted: AtomicBool,
    /// The lines of its files that the user agreed to; `None`: all.
    agreed: RwLock<Option<Arc<HashSet<String>>>>,
    since_unconfined: Mutex<Option<power::SinceUnconfined>>,
    watch: Mutex<seen::Watch>,
    /// Lines that are no entry as the list showed them last, with the change of their row; by path.
    shown_lines: Mutex<HashMap<String, (i64, HashSet<String>)>>,
    /// What the database said of the entries when it was read last.
    origins: Mutex<Option<Arc<taints::Origins>>>,
    /// Entries that moved into an archive by themselves, and that no notice has named.
    archived: AtomicUsize,
    /// How entries are searched; without it, by words that they all contain.
    order: OnceLock<OrderTexts>,
    /// The tools that matchers may name; without them no entry is a rule.
    tools: OnceLock<ToolCatalog>,
}

/// Orders texts by how well they fit a query: the positions of those that fit, best first, and the query in a near spelling.
/// `None`: the search has ended. Blocks.
pub type OrderTexts = Arc<dyn Fn(&str, Vec<String>) -> Option<(Vec<usize>, Option<String>)> + Send + Sync>;

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("places", &self.places).finish_non_exhaustive()
    }
}

/// What the settings say of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// What is done with an entry that an agent writes.
    pub approve: MemoryApproval,
    /// Bytes of each MEMORY.md that models see.
    pub memory: u64,
    /// The same of each USER.md.
    pub user: u64,
}

/// The file that the USER.md of the settings folder is shown as.
const SETTINGS: MemoryTarget = MemoryTarget { file: MemoryFile::User, scope: MemoryScope::User };

/// Tokens of the layer of MEMORY.md, where the settings say none.
pub const MEMORY_TOKENS: u64 = 3_000;
/// As [`MEMORY_TOKENS`], of USER.md.
pub const USER_TOKENS: u64 = 2_000;

impl MemorySettings {
    /// From all settings.
    pub fn of(config: &Config) -> Self {
        // About 2.5 bytes a token.
        let bytes = |layer: &str, usual| config.context.layers.get(layer).copied().unwrap_or(usual) * 5 / 2;
        Self {
            approve: config.memory.approve,
            memory: bytes("memory", MEMORY_TOKENS),
            user: bytes("user", USER_TOKENS),
        }
    }
}

impl Memory {
    /// Memory at these places. Reads and makes nothing.
    pub fn new(
        places: MemoryPlaces,
        clock: Arc<dyn Clock>,
        secret: FindSecret,
        settings: MemorySettings,
    ) -> Self {
        Self {
            places,
            clock,
            secret: RwLock::new(secret),
            settings: RwLock::new(settings),
            store: OnceLock::new(),
            trusted: AtomicBool::new(false),
            agreed: RwLock::default(),
            since_unconfined: Mutex::default(),
            watch: Mutex::default(),
            shown_lines: Mutex::default(),
            origins: Mutex::default(),
            archived: AtomicUsize::new(0),
            order: OnceLock::new(),
            tools: OnceLock::new(),
        }
    }

    /// Keeps the origin of entries in this database. Only the first call counts.
    pub fn open(&self, store: Store) {
        let _ = self.store.set(store);
    }

    /// Searches entries by this from now on. Only the first call counts.
    pub fn order_by(&self, order: OrderTexts) {
        let _ = self.order.set(order);
    }

    /// Takes entries with matchers of these tools for rules from now on. Only the first call counts.
    pub(crate) fn match_tools(&self, tools: ToolCatalog) {
        let _ = self.tools.set(tools);
    }

    /// Finds secrets by this from now on.
    pub fn find_secrets(&self, secret: FindSecret) {
        *self.secret.write().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    /// The kind of a secret in a text.
    pub fn secret_in(&self, text: &str) -> Option<&'static str> {
        let secret = self.secret.read().unwrap_or_else(PoisonError::into_inner).clone();
        secret(text)
    }

    /// The settings from now on.
    pub fn set_settings(&self, settings: MemorySettings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// The settings as they are now.
    pub fn settings(&self) -> MemorySettings {
        *self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the files of the project, which the user trusts as they are. Blocks.
    pub fn trust_project(&self) {
        self.trusted.store(true, Ordering::Relaxed);
        self.know_project();
    }

    /// The user agreed to these lines of the files of the project: models see no other one that was not written here.
    pub fn agree_project(&self, lines: impl Iterator<Item = String>) {
        let lines = lines.collect();
        *self.agreed.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(lines));
    }

    /// Uses the files of the project no longer.
    pub fn distrust_project(&self) {
        self.trusted.store(false, Ordering::Relaxed);
    }

    /// The path of a file, which need not exist; `None`: there is no project, or it is not trusted.
    pub fn path(&self, target: MemoryTarget) -> Option<PathBuf> {
        let name = target.file.file_name();
        match target.scope {
            MemoryScope::User => Some(self.places.data.join(name)),
            MemoryScope::Project => {
                let project =
                    self.places.project.as_ref().filter(|_| self.trusted.load(Ordering::Relaxed))?;
                Some(project.join(".tiller").join(name))
            }
        }
    }

    /// The files that are in use.
    pub fn targets(&self) -> impl Iterator<Item = MemoryTarget> + '_ {
        MemoryTarget::ALL.into_iter().filter(|target| self.path(*target).is_some())
    }

    fn slot(&self, target: MemoryTarget) -> Result<Slot, MemoryError> {
        let path = self.path(target).ok_or_else(|| {
            MemoryError::Refused(
                "this folder has no memory of its own: it is not trusted. Use scope user, or let the user trust the folder"
                    .into(),
            )
        })?;
        let project = target.scope == MemoryScope::Project;
        Ok(Slot {
            path,
            locks: self.places.data.join("locks"),
            links: !project,
            inside: self.places.project.clone().filter(|_| project),
        })
    }

    /// The USER.md of the user's settings, which is read only.
    fn settings_slot(&self) -> Slot {
        let path = self.places.settings.join(MemoryFile::User.file_name());
        Slot { path, locks: self.places.data.join("locks"), links: true, inside: None }
    }

    /// A file; an empty document where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, target: MemoryTarget) -> Result<Document, MemoryError> {
        Ok(Document::parse(&self.slot(target)?.read()?.unwrap_or_default()))
    }

    /// What models see of both scopes of a file, with its path: the user's first. Invisible text is made visible. A file
    /// that cannot be read is left out; [`Self::page`] says why.
    pub fn live(&self, file: MemoryFile) -> Vec<(PathBuf, String)> {
        self.live_without(file, &|_, _| false)
    }

    /// As [`Self::live`], without the entries that are `left_out`, which is asked with the path of the file. An entry that text
    /// of others had a part in has the mark of its origin, also where the file has none; one that reads like an instruction,
    /// and a line outside of entries that a program wrote, are left out until the user accepts them.
    pub fn live_without(
        &self,
        file: MemoryFile,
        left_out: &dyn Fn(&Path, &Entry) -> bool,
    ) -> Vec<(PathBuf, String)> {
        // What a program wrote that was killed with Tiller, or that runs now, is known before models see it.
        self.look();
        self.note_unconfined_entries(None);
        let others = self.by_others();
        let text_of = |path: &Path, document: &Document| {
            let place = name(path);
            let shown = |part: Part<'_>| match part {
                Part::Entry(entry) if left_out(path, entry) => Shown::LeftOut,
                part => others.shown(&place, part),
            };
            visible(&document.live_text_as(&shown))
        };
        let mut out = Vec::new();
        if file == MemoryFile::User {
            let slot = self.settings_slot();
            if let Ok(Some(text)) = slot.read() {
                let text = text_of(&slot.path, &Document::parse(&text));
                out.push((slot.path, text));
            }
        }
        for scope in [MemoryScope::User, MemoryScope::Project] {
            let target = MemoryTarget { file, scope };
            if let (Some(path), Ok(document)) = (self.path(target), self.read(target)) {
                let text = text_of(&path, &document);
                out.push((path, text));
            }
        }
        out.retain(|(_, text)| !text.is_empty());
        out
    }

    fn today(&self) -> String {
        self.clock.now().to_rfc3339().get(..10).unwrap_or_default().to_owned()
    }

    fn screened(&self, text: &str, taint: tiller_protocol::Taint) -> Result<(), MemoryError> {
        let secret = self.secret.read().unwrap_or_else(PoisonError::into_inner).clone();
        screen(text, taint, &secret).map_err(MemoryError::Refused)
    }

    /// The recorded changes of the files in use that are in one of these states, oldest first.
    pub(crate) fn changes(&self, states: &[ChangeState]) -> Result<Vec<MemoryChange>, MemoryError> {
        let Some(store) = self.store.get() else { return Ok(Vec::new()) };
        let paths: Vec<String> = self.rule_files().iter().map(|file| name(&file.path)).collect();
        Ok(store.memory_changes().in_states(&paths, states)?)
    }

    /// The file that a recorded change is of.
    fn target_of(&self, path: &str) -> Option<MemoryTarget> {
        self.targets().find(|t| self.path(*t).is_some_and(|p| name(&p) == path))
    }
}

/// A path as it is stored.
fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "tests/document.rs"]
mod document_tests;
#[cfg(test)]
#[path = "tests/service.rs"]
mod service_tests;
