//! The report of a salvage, in a file beside the database until it was shown.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tiller_protocol::{Notice, NoticeKind};

use crate::error::{Result, StoreError};
use crate::open::{folder, migrate};

fn place(db: &Path) -> PathBuf {
    folder::beside(db, ".salvage-report")
}

/// Stores a notice for the next process that can show it, after those already stored.
pub(crate) fn keep(db: &Path, notice: &Notice) -> Result<()> {
    let path = place(db);
    let io = |e: std::io::Error| StoreError::from_io(&e, &path);
    let mut line = serde_json::to_string(notice)?;
    line.push('\n');
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(io)?;
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(io)
}

/// The notice for a database that is gone, although `left` lies beside its place.
pub(crate) fn missing(db: &Path, left: &Path) -> Notice {
    let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
    let notice = Notice::new(
        NoticeKind::Store,
        format!(
            "the database is missing, although {} lies beside its place: a new, empty one was created",
            name(left)
        ),
    )
    .hint(format!("if it was not removed on purpose: close Tiller and put it back as {}", db.display()));
    with_backup(notice, db)
}

/// Names the newest backup, if there is one.
pub(crate) fn with_backup(notice: Notice, db: &Path) -> Notice {
    match migrate::newest_backup(db) {
        Some(backup) => notice.hint(format!("{} is a backup from before an update", backup.display())),
        None => notice,
    }
}

/// Notices that were not shown yet. Unreadable lines are skipped.
pub(crate) fn read(db: &Path) -> Vec<Notice> {
    let text = fs::read_to_string(place(db)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Removes the report once it was shown.
pub(crate) fn forget(db: &Path) {
    if fs::remove_file(place(db)).is_err() {
        tracing::debug!("there is no report of a salvage");
    }
}
