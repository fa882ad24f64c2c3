//! `tiller sessions import`: export files, and transcripts of other programs. Transcripts are first converted to export
//! files, so that both are checked in the same way. To support another format: one file here, and one line in
//! [`FORMATS`].

mod build;
mod claude;
mod codex;
mod pi;
mod talk;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tiller_permit::Redactor;
use tiller_protocol::{Notice, NoticeKind, Profile, SessionId};
use tiller_store::{ImportIds, Store, StoreError};

use self::talk::Conversation;
use crate::app::Setup;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Parses a format line by line. Everything that it does not know is kept as a record ([`Conversation::keep`]).
trait Reader {
    fn line(&mut self, talk: &mut Conversation, number: usize, line: &Value);
}

/// A format: the program's name, a test for its lines, a reader.
struct Format {
    name: &'static str,
    recognises: fn(&Value) -> bool,
    reader: fn() -> Box<dyn Reader>,
}

const FORMATS: &[Format] = &[
    Format { name: "Pi", recognises: pi::recognises, reader: || Box::new(pi::Pi::default()) },
    Format { name: "Codex", recognises: codex::recognises, reader: || Box::new(codex::Codex::default()) },
    Format {
        name: "Claude Code",
        recognises: claude::recognises,
        reader: || Box::new(claude::Claude::default()),
    },
];

/// Number of lines at the beginning of a file by which its format is detected.
const LOOK: usize = 20;
/// Maximum depth of folders.
const DEEP: usize = 16;

/// What to read.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// File from `sessions export`, transcript of Claude Code, Codex or Pi, folder of these, or - for standard input
    #[arg(value_name = "FILE|FOLDER")]
    file: PathBuf,
    /// Import as a separate session even if it already exists
    #[arg(long)]
    copy: bool,
}

/// The result of a file.
struct ImportedFile {
    session: SessionId,
    entries: u64,
    /// Further sessions: those of its agents.
    others: u64,
    /// Entries that existed before, if the session was here already; `entries` is the number of new ones.
    here: Option<u64>,
    report: Option<Report>,
}

/// The report about a transcript of another program.
struct Report {
    program: &'static str,
    /// Lines kept as records: kinds with their numbers.
    kept: BTreeMap<String, usize>,
    /// Lines that could not be parsed, and why.
    broken: Vec<(usize, String)>,
}

/// Imports a file or a folder.
pub(crate) fn run(setup: &Setup, store: &Store, what: &Import, json: bool) -> Result<Exit, Notice> {
    if what.file.is_dir() {
        return folder(setup, store, what, json);
    }
    let came = one(setup, store, &what.file, what.copy)?;
    say(&report_text(&what.file, &came, json))
}

fn folder(setup: &Setup, store: &Store, what: &Import, json: bool) -> Result<Exit, Notice> {
    let mut files = Vec::new();
    find(&what.file, DEEP, &mut files).map_err(|e| unreadable(&what.file, &e))?;
    files.sort();
    if files.is_empty() {
        return Err(Notice::new(
            NoticeKind::User,
            format!("There is no .jsonl file in {}.", what.file.display()),
        )
        .hint(
            "Claude Code stores transcripts in ~/.claude/projects, Codex in ~/.codex/sessions, \
                Pi in ~/.pi/agent/sessions.",
        ));
    }
    let (mut new, mut here, mut more, mut failed) = (0, 0, 0, 0);
    for file in &files {
        match one(setup, store, file, what.copy) {
            Ok(came) => {
                if came.here.is_some() && came.entries > 0 {
                    more += 1;
                } else if came.here.is_some() {
                    here += 1;
                } else {
                    new += 1;
                }
                say(&report_text(file, &came, json))?;
            }
            // An error of the store ends the import; a bad file does not prevent the others.
            Err(notice) if notice.kind == NoticeKind::Store => return Err(notice),
            Err(notice) => {
                failed += 1;
                let name = file.display().to_string();
                say(&if json {
                    json_line(&json!({"file": name, "error": notice.message}))
                } else {
                    format!("{}: {}\n", one_line(&name), one_line(&notice.message))
                })?;
            }
        }
    }
    if !json {
        let more = if more > 0 { format!("{more} continued, ") } else { String::new() };
        say(&format!("{new} imported, {more}{here} already present, {failed} failed.\n"))?;
    }
    Ok(if failed > 0 { Exit::Usage } else { Exit::Done })
}

/// Transcripts below a folder. Links are not followed.
fn find(dir: &Path, deep: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() && deep > 0 {
            find(&path, deep - 1, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|e| e == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

fn unreadable(file: &Path, error: &std::io::Error) -> Notice {
    Notice::new(NoticeKind::User, format!("{} could not be read: {error}.", file.display())).hint(
        "Name a file written by 'tiller sessions export', a transcript, a folder of \
            transcripts, or - for standard input.",
    )
}

fn one(setup: &Setup, store: &Store, file: &Path, copy: bool) -> Result<ImportedFile, Notice> {
    let mut bytes = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(file).map(|b| bytes = b)
    };
    read.map_err(|e| unreadable(file, &e))?;
    let mut report = None;
    if let Some(format) = format_of(&bytes) {
        let (lines, told) = translate(format, &bytes, &setup.project_name(), &setup.redactor);
        let Some(lines) = lines else {
            return Err(Notice::new(
                NoticeKind::User,
                format!("{} ({}) has no messages.", file.display(), format.name),
            )
            .hint("It contains settings of that program but no conversation."));
        };
        (bytes, report) = (lines.into_bytes(), Some(told));
    } else if !ours(&bytes) {
        let name = if file.as_os_str() == "-" { "standard input".into() } else { file.display().to_string() };
        return Err(Notice::new(NoticeKind::User, format!("{name} is not a session that Tiller can read."))
            .hint("It must come from 'tiller sessions export' (JSON lines), or be a transcript of Claude Code, Codex or Pi."));
    }
    if !copy && let Some(there) = there(store, &bytes)? {
        let StoredSession { id, here, missing, .. } = there;
        if missing == 0 {
            return Ok(ImportedFile { session: id, entries: 0, others: 0, here: Some(here), report });
        }
        // Export files also contain state that cannot be merged: the queue, the log, file states.
        if report.is_none() {
            return Err(there.notice(file));
        }
        let more = store.transfer().import_more(&mut &bytes[..]).wait();
        let more = more.map_err(|e| match e {
            StoreError::Conflict(_) => there.notice(file),
            e => e.notice(),
        })?;
        return Ok(ImportedFile { session: id, entries: more.entries, others: 0, here: Some(here), report });
    }
    let keep = if copy { ImportIds::Fresh } else { ImportIds::Keep };
    let done = store.transfer().import(&mut &bytes[..], keep).wait().map_err(|e| e.notice())?;
    quiet(store, done.session).map_err(|e| e.notice())?;
    Ok(ImportedFile { session: done.session, entries: done.entries, others: done.others, here: None, report })
}

/// Removes what was allowed elsewhere: permission rules and open questions are dropped, the asking profile is set, and
/// agents work in this session's folder.
fn quiet(store: &Store, session: SessionId) -> Result<(), StoreError> {
    let mut all = store.agents().sessions_below(session)?;
    all.push(session);
    for id in all {
        store.rules().clear(id).wait()?;
        store.unfinished().clear_asks(id).wait()?;
        store.sessions().set_profile(id, Profile::Ask).wait()?;
        for agent in store.agents().list(id)? {
            store.agents().put(tiller_agents::from_elsewhere(agent)).wait()?;
        }
    }
    Ok(())
}

/// Whether it begins like an export file. Later errors are reported with their line.
fn ours(bytes: &[u8]) -> bool {
    let first = bytes.split(|b| *b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or_default();
    serde_json::from_slice::<Value>(first).is_ok_and(|v| v.get("tiller").is_some())
}

/// `None`: an export file, or an unknown program.
fn format_of(bytes: &[u8]) -> Option<&'static Format> {
    let lines = bytes.split(|b| *b == b'\n').filter(|l| !l.trim_ascii().is_empty()).take(LOOK);
    let lines: Vec<Value> = lines.filter_map(|l| serde_json::from_slice(l).ok()).collect();
    if lines.first().is_some_and(|l| l.get("tiller").is_some()) {
        return None;
    }
    FORMATS.iter().find(|f| lines.iter().any(f.recognises))
}

/// Converts a transcript to an export file; `None` when it has no conversation.
fn translate(
    format: &'static Format,
    bytes: &[u8],
    here: &str,
    redactor: &Arc<Redactor>,
) -> (Option<String>, Report) {
    let (mut talk, mut reader) = (Conversation::default(), (format.reader)());
    for (number, line) in (1..).zip(bytes.split(|b| *b == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(value) if value.is_object() => reader.line(&mut talk, number, &value),
            Ok(_) => talk.broken(number, &String::from_utf8_lossy(line), "it is not an object"),
            Err(e) => talk.broken(number, &String::from_utf8_lossy(line), &e.to_string()),
        }
    }
    let mut report = Report { program: format.name, kept: BTreeMap::new(), broken: Vec::new() };
    for record in &talk.records {
        match &record.body {
            Ok(_) => *report.kept.entry(record.kind.clone()).or_default() += 1,
            Err((_, why)) => report.broken.push((record.line, why.clone())),
        }
    }
    talk.mask(redactor);
    if !talk.project.starts_with('/') {
        talk.project = here.to_owned();
    }
    (build::lines(format.name, talk), report)
}

fn report_text(file: &Path, came: &ImportedFile, json: bool) -> String {
    let ImportedFile { session, entries, others, here, report } = came;
    if json {
        let mut row = json!({"session": session, "entries": entries, "file": file.display().to_string()});
        if let Some(here) = here {
            row["here"] = json!(here);
        }
        if *others > 0 {
            row["agents"] = json!(others);
        }
        if let Some(r) = report {
            let broken: Vec<Value> =
                r.broken.iter().map(|(line, why)| json!({"line": line, "why": why})).collect();
            (row["program"], row["kept"], row["broken"]) = (json!(r.program), json!(r.kept), json!(broken));
        }
        return json_line(&row);
    }
    if let Some(here) = here.filter(|_| *entries == 0) {
        return format!(
            "Session {session} already exists with all entries of the file ({here}). Nothing was imported.\n"
        );
    }
    let Some(r) = report else {
        let agents = match others {
            0 => String::new(),
            1 => ", including one agent's".into(),
            n => format!(", including those of {n} agents"),
        };
        return format!("Imported session {session} with {entries} entries{agents}.\n");
    };
    let mut text = match here {
        Some(here) => {
            format!(
                "Session {session} already had {here} entries; {entries} more were imported, from {}.\n",
                r.program
            )
        }
        None => format!("Imported session {session} with {entries} entries, from {}.\n", r.program),
    };
    if !r.kept.is_empty() {
        let kinds: Vec<String> = r.kept.iter().map(|(kind, n)| format!("{} {n}", one_line(kind))).collect();
        text.push_str(&format!(
            "  Kept outside the conversation, on the archived branch 'records': {}.\n",
            kinds.join(", ")
        ));
    }
    for (line, why) in &r.broken {
        text.push_str(&format!("  Line {line} could not be read and is kept as a note: {}\n", one_line(why)));
    }
    text
}

/// A session that exists here, compared with its file.
struct StoredSession {
    id: SessionId,
    /// Number of entries here, in the file, and in the file only.
    here: u64,
    file: usize,
    missing: usize,
}

impl StoredSession {
    fn notice(&self, file: &Path) -> Notice {
        let Self { id, here, file: whole, missing } = self;
        let message = format!(
            "Session {id} already exists with {here} entries; {missing} of the file's {whole} \
            entries are missing from it. Nothing was imported."
        );
        Notice::new(NoticeKind::User, message).hint(format!(
            "`tiller sessions import --copy {}` imports it as a separate session.",
            file.display()
        ))
    }
}

/// `None`: the session does not exist here, or the file is not an export file (which importing it reports better).
fn there(store: &Store, bytes: &[u8]) -> Result<Option<StoredSession>, Notice> {
    let Some((id, file)) = tiller_store::exported(bytes) else { return Ok(None) };
    match store.sessions().get(id) {
        Ok(_) => {}
        Err(StoreError::NoSession(_)) => return Ok(None),
        Err(e) => return Err(e.notice()),
    }
    let mut own = Vec::new();
    store.transfer().export(id, &mut own).map_err(|e| e.notice())?;
    let own = tiller_store::exported(&own).map(|(_, entries)| entries).unwrap_or_default();
    Ok(Some(StoredSession {
        id,
        here: own.len() as u64,
        file: file.len(),
        missing: file.difference(&own).count(),
    }))
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
