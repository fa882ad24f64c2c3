//! `tiller sessions import`: export files, and transcripts of other programs. Transcripts are first converted to export
//! files, so that both are checked in the same way. To support another format: one file here, and one line in
//! [`FORMATS`].

mod build;
mod claude;
mod codex;
mod pi;
mod talk;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tiller_permit::Redactor;
use tiller_protocol::{Notice, NoticeKind, SessionId};
use tiller_store::{ImportAs, ImportIds, ImportSource, Imported, Store, StoreError, Withheld};

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
/// Bytes of these lines that are read.
const LOOK_BYTES: u64 = 64 << 20;
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
    /// The file is mine: keep the permission mode, permission rules and open questions of its sessions
    #[arg(long)]
    mine: bool,
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
    withheld: Withheld,
}

impl ImportedFile {
    /// A session that was here already and got `entries` more.
    fn continued(session: SessionId, entries: u64, here: u64, report: Option<Report>) -> Self {
        Self { session, entries, others: 0, here: Some(here), report, withheld: Withheld::default() }
    }
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
    let came = one(setup, store, &what.file, what)?;
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
        match one(setup, store, file, what) {
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

fn one(setup: &Setup, store: &Store, file: &Path, what: &Import) -> Result<ImportedFile, Notice> {
    let mut source = ImportSource::File(opened(setup, file).map_err(|e| unreadable(file, &e))?);
    let first = first_lines(&mut source).map_err(|e| unreadable(file, &e))?;
    let mut report = None;
    if let Some(format) = format_of(&first) {
        let (lines, told) = {
            let mut bytes = Vec::new();
            let read = source.start().map_err(std::io::Error::other);
            read.and_then(|mut r| r.read_to_end(&mut bytes)).map_err(|e| unreadable(file, &e))?;
            translate(format, &bytes, &setup.project_name(), &setup.redactor)
        };
        let Some(lines) = lines else {
            return Err(Notice::new(
                NoticeKind::User,
                format!("{} ({}) has no messages.", file.display(), format.name),
            )
            .hint("It contains settings of that program but no conversation."));
        };
        (source, report) = (ImportSource::Bytes(lines.into_bytes()), Some(told));
    } else if !ours(&first) {
        let name = if file.as_os_str() == "-" { "standard input".into() } else { file.display().to_string() };
        return Err(Notice::new(NoticeKind::User, format!("{name} is not a session that Tiller can read."))
            .hint("It must come from 'tiller sessions export' (JSON lines), or be a transcript of Claude Code, Codex or Pi."));
    }
    if !what.copy
        && let Some(there) = there(store, &mut source)?
    {
        let StoredSession { id, here, missing, .. } = there;
        if missing == 0 {
            return Ok(ImportedFile::continued(id, 0, here, report));
        }
        // Export files also contain state that cannot be merged: the queue, the log, file states.
        if report.is_none() {
            return Err(there.notice(file));
        }
        let more = store.transfer().import_more_from(source).wait();
        let more = more.map_err(|e| match e {
            StoreError::Conflict(_) => there.notice(file),
            e => e.notice(),
        })?;
        return Ok(ImportedFile::continued(id, more.entries, here, report));
    }
    let how = ImportAs {
        ids: if what.copy { ImportIds::Fresh } else { ImportIds::Keep },
        rights: what.mine,
        agent: Some(tiller_agents::from_elsewhere),
    };
    let Imported { session, entries, others, withheld } =
        store.transfer().import_from(source, how).wait().map_err(|e| e.notice())?;
    Ok(ImportedFile { session, entries, others, here: None, report, withheld })
}

/// The file. What can be read once only (standard input, a pipe) is copied first, into a file without a name.
fn opened(setup: &Setup, file: &Path) -> std::io::Result<File> {
    let mut input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = File::open(file)?;
        if opened.metadata()?.is_file() {
            return Ok(opened);
        }
        Box::new(opened)
    };
    let mut copy = tempfile::tempfile_in(&setup.places.data)?;
    std::io::copy(&mut input, &mut copy)?;
    Ok(copy)
}

/// The first lines, by which a format is detected.
fn first_lines(source: &mut ImportSource) -> std::io::Result<Vec<u8>> {
    let mut input = source.start().map_err(std::io::Error::other)?.take(LOOK_BYTES);
    let (mut bytes, mut lines) = (Vec::new(), 0);
    while lines < LOOK {
        let from = bytes.len();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        lines += usize::from(!bytes[from..].trim_ascii().is_empty());
    }
    Ok(bytes)
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

/// One line about the rights that were not taken; empty: there were none.
fn withheld_text(withheld: &Withheld) -> String {
    let Withheld { profiles, rules, asks } = withheld;
    let mut parts: Vec<String> = profiles
        .iter()
        .map(|(name, n)| match n {
            1 => format!("the profile '{}' (it is 'ask' here)", one_line(name)),
            n => format!("the profile '{}' of {n} sessions and agents (it is 'ask' here)", one_line(name)),
        })
        .collect();
    parts.extend((*rules > 0).then(|| format!("{rules} permission rule(s)")));
    parts.extend((*asks > 0).then(|| format!("{asks} open question(s)")));
    if parts.is_empty() {
        return String::new();
    }
    format!("  Not taken from the file: {}. --mine takes them from a file of yours.\n", parts.join(", "))
}

fn report_text(file: &Path, came: &ImportedFile, json: bool) -> String {
    let ImportedFile { session, entries, others, here, report, withheld } = came;
    if json {
        let mut row = json!({"session": session, "entries": entries, "file": file.display().to_string()});
        if let Some(here) = here {
            row["here"] = json!(here);
        }
        if *others > 0 {
            row["agents"] = json!(others);
        }
        if *withheld != Withheld::default() {
            let Withheld { profiles, rules, asks } = withheld;
            row["withheld"] = json!({"profiles": profiles, "rules": rules, "questions": asks});
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
        let kept_out = withheld_text(withheld);
        return format!("Imported session {session} with {entries} entries{agents}.\n{kept_out}");
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
fn there(store: &Store, source: &mut ImportSource) -> Result<Option<StoredSession>, Notice> {
    let Some((id, file)) = source.exported() else { return Ok(None) };
    match store.sessions().get(id) {
        Ok(_) => {}
        Err(StoreError::NoSession(_)) => return Ok(None),
        Err(e) => return Err(e.notice()),
    }
    let own = store.transfer().entries_of(id).map_err(|e| e.notice())?;
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
