//! Records on disk of the calls that are changing files, so that the changes of a call whose process was killed are
//! still attributed to it. Each record is locked by its process, and the kernel releases that lock when the process
//! ends; the record's time of modification is its heartbeat.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tiller_protocol::Time;
use tiller_protocol::lock;

use crate::names;
use crate::objects::id::Id;

const FORMAT: &str = "tiller-call 1";
/// Maximum size of a record, in bytes; a larger file is ignored.
const MOST: u64 = 16 << 20;
/// Changes later than this after the last heartbeat are not attributed to the call.
const SLACK: Duration = Duration::from_secs(2);
/// Makes the names of records unique within this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Facts about a call before it changes anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallNote {
    /// The session, as the caller names it.
    pub session: String,
    /// The call's id, as the caller names it.
    pub call: String,
    /// The state before the call.
    pub before: Id,
    /// When that state was taken.
    pub began: Time,
    /// Paths that the call changes; `None`: any.
    pub paths: Option<Vec<PathBuf>>,
}

/// The record of a running call. Dropping it without [`Self::end`] leaves the call recorded as cut off.
#[derive(Debug)]
pub struct OpenCall {
    path: PathBuf,
    file: Arc<File>,
}

impl OpenCall {
    /// Removes the record: the call has ended and its changes are recorded elsewhere.
    pub fn end(self) {
        // A record that could not be removed is examined later and found to be recorded.
        let _ = std::fs::remove_file(&self.path);
        drop(self.file);
    }
}

/// A call whose process ended while it ran.
#[derive(Debug)]
pub struct CutCall {
    pub note: CallNote,
    /// The last heartbeat plus some slack: later changes are not the call's.
    pub until: SystemTime,
    open: OpenCall,
}

impl CutCall {
    /// Removes the record, once the call's changes are recorded elsewhere.
    pub fn end(self) {
        self.open.end();
    }
}

/// The records of one store.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) dir: PathBuf,
    /// The records of this process's running calls.
    open: Mutex<Vec<Weak<File>>>,
}

impl Calls {
    pub(crate) fn new(store: &Path) -> Self {
        Self { dir: store.join("calls"), open: Mutex::default() }
    }

    /// Creates the record of a call that begins.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(crate) fn begin(&self, note: &CallNote) -> io::Result<OpenCall> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{}-{number}-{}", std::process::id(), nanos()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        // Another process may have found the record empty and removed it: then this call is not recorded.
        file.try_lock().map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        file.write_all(text(note).as_bytes())?;
        let file = Arc::new(file);
        lock(&self.open).push(Arc::downgrade(&file));
        Ok(OpenCall { path, file })
    }

    /// Renews the heartbeat of every running call; returns whether there is one.
    pub(crate) fn beat(&self) -> bool {
        let mut open = lock(&self.open);
        open.retain(|call| {
            let call = call.upgrade();
            // If it fails, later changes are attributed to others, which only asks the person more often.
            call.is_some_and(|file| file.set_modified(SystemTime::now()).is_ok())
        });
        !open.is_empty()
    }

    /// Calls of ended processes, in the order of their start.
    pub(crate) fn cut(&self) -> Vec<CutCall> {
        let Ok(items) = std::fs::read_dir(&self.dir) else { return Vec::new() };
        let mut cut: Vec<CutCall> = items.flatten().filter_map(|item| look(&item.path())).collect();
        cut.sort_by_key(|c| c.note.began);
        cut
    }
}

fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// A record whose process has ended.
fn look(path: &Path) -> Option<CutCall> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    (&file).take(MOST).read_to_string(&mut text).ok()?;
    let until = file.metadata().and_then(|m| m.modified()).ok()? + SLACK;
    let open = OpenCall { path: path.to_owned(), file: Arc::new(file) };
    match parse(&text) {
        Some(note) => Some(CutCall { note, until, open }),
        // Cut off before the call began.
        None => {
            open.end();
            None
        }
    }
}

fn text(note: &CallNote) -> String {
    let word = |text: &str| names::escape(text.as_bytes());
    let mut out = format!(
        "{FORMAT}\nsession {}\ncall {}\nbefore {}\nbegan {}\n",
        word(&note.session),
        word(&note.call),
        note.before,
        note.began.millis()
    );
    match &note.paths {
        None => out.push_str("all\n"),
        Some(paths) => {
            for path in paths {
                out.push_str(&format!("path {}\n", names::escape(path.as_os_str().as_bytes())));
            }
        }
    }
    out.push_str("end\n");
    out
}

fn parse(text: &str) -> Option<CallNote> {
    let mut lines = text.lines();
    (lines.next()? == FORMAT).then_some(())?;
    let mut value = |key: &str| Some(lines.next()?.strip_prefix(key)?.strip_prefix(' ')?.to_owned());
    let word = |text: String| String::from_utf8(names::unescape(&text)?).ok();
    let (session, call) = (word(value("session")?)?, word(value("call")?)?);
    let (before, began) = (value("before")?.parse().ok()?, Time(value("began")?.parse().ok()?));
    let (mut paths, mut all) = (Vec::new(), false);
    for line in lines {
        match line.split_once(' ') {
            None if line == "all" => all = true,
            None if line == "end" => {
                let paths = (!all).then_some(paths);
                return Some(CallNote { session, call, before, began, paths });
            }
            Some(("path", path)) => paths.push(names::path(&names::unescape(path)?)),
            _ => {}
        }
    }
    None
}
