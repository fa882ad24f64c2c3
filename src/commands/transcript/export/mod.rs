//! `tiller sessions export`: lossless JSON lines, Markdown for reading, or one HTML page.

mod bits;
mod book;
mod html;
mod markdown;
mod order;
mod prose;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;
use tiller_protocol::{Notice, NoticeKind, SessionId};
use tiller_store::Store;

use self::book::SessionContent;
use crate::app::Setup;
use crate::commands::{Exit, json_line, say};

/// What an export is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON lines: the whole session, for `sessions import`
    Jsonl,
    /// For reading: one branch or all branches
    Markdown,
    /// One page with the whole tree, for a browser
    Html,
}

impl Format {
    /// The format for the extension of a file name.
    fn of(file: &Path) -> Self {
        let ending = file.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("md" | "markdown") => Self::Markdown,
            Some("html" | "htm") => Self::Html,
            _ => Self::Jsonl,
        }
    }
}

/// What to write, and where.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Session ID or its beginning, or last
    id: String,
    /// Output file; standard output by default
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format; by default from the file name (.md, .html), otherwise jsonl
    #[arg(short, long)]
    format: Option<Format>,
    /// Export only the branch with this name (Markdown and HTML)
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    branch: Option<String>,
    /// Export all branches (Markdown; HTML and JSON lines always contain all)
    #[arg(long)]
    all: bool,
}

/// Writes a session.
pub(crate) fn run(setup: &Setup, store: &Store, what: &Export, json: bool) -> Result<Exit, Notice> {
    let id = setup.find_session(store, &what.id)?;
    let format = what.format.unwrap_or_else(|| what.output.as_deref().map_or(Format::Jsonl, Format::of));
    let bytes = match format {
        Format::Jsonl => {
            if what.branch.is_some() {
                return Err(Notice::new(NoticeKind::User, "JSON lines always contain the whole session.")
                    .hint("Omit --branch, or use --format markdown or html."));
            }
            let mut bytes = Vec::new();
            store.transfer().export(id, &mut bytes).map_err(|e| e.notice())?;
            bytes
        }
        Format::Markdown => {
            let book = open(store, id, what.branch.as_deref())?;
            markdown::write(&book, what.all).into_bytes()
        }
        Format::Html => html::write(&open(store, id, what.branch.as_deref())?).into_bytes(),
    };
    let Some(path) = &what.output else { return say(&String::from_utf8_lossy(&bytes)) };
    write_private(path, &bytes, false)?;
    let lines = bytes.iter().filter(|b| **b == b'\n').count();
    let name = path.display().to_string();
    if json {
        let format = format.to_possible_value().map(|v| v.get_name().to_owned());
        return say(&json_line(&json!({"session": id, "lines": lines, "file": name, "format": format})));
    }
    say(&format!("Wrote {lines} lines to {}.\n", crate::commands::sessions::one_line(&name)))
}

/// Writes a whole session to a new file; its extension determines the format.
///
/// # Errors
/// When the file exists or cannot be written, or the session cannot be read.
pub fn to_file(store: &Store, id: SessionId, path: &Path) -> Result<String, Notice> {
    if path.exists() {
        return Err(Notice::new(NoticeKind::User, format!("{} already exists", path.display()))
            .hint("Use another file name; existing files are not overwritten."));
    }
    let bytes = match Format::of(path) {
        Format::Jsonl => {
            let mut bytes = Vec::new();
            store.transfer().export(id, &mut bytes).map_err(|e| e.notice())?;
            bytes
        }
        Format::Markdown => markdown::write(&open(store, id, None)?, true).into_bytes(),
        Format::Html => html::write(&open(store, id, None)?).into_bytes(),
    };
    write_private(path, &bytes, true)?;
    Ok(format!("The session is in {}", path.display()))
}

fn open(store: &Store, id: SessionId, branch: Option<&str>) -> Result<SessionContent, Notice> {
    let mut book = SessionContent::read(store, id).map_err(|e| e.notice())?;
    let Some(name) = branch else { return Ok(book) };
    if book.only(name) {
        return Ok(book);
    }
    let names: Vec<String> =
        book.branches.iter().map(|b| crate::commands::sessions::one_line(book::called(b))).collect();
    Err(Notice::new(NoticeKind::User, format!("This session has no branch '{name}'."))
        .hint(format!("Its branches: {}.", names.join(", "))))
}

/// Writes a file that only its owner can read, since exports contain whole conversations. `fresh`: it must not exist
/// yet.
fn write_private(path: &Path, bytes: &[u8], fresh: bool) -> Result<(), Notice> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .create_new(fresh)
        .truncate(!fresh)
        .mode(0o600)
        .open(path)
        .and_then(|mut f| f.write_all(bytes).and_then(|()| f.sync_all()))
        .map_err(|e| {
            Notice::new(NoticeKind::User, format!("{} could not be written: {e}.", path.display()))
                .hint("Use another file with -o, or omit -o to print.")
        })
}

#[cfg(test)]
mod tests;
