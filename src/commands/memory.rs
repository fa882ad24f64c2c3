//! `tiller memory`: what is kept across sessions, for scripts and for people without a screen.

use std::io::Read;
use std::path::Path;

use tiller_memory::files::{Document, Edit, Entry, Imported, ImportedEntry, LARGEST};
use tiller_memory::{Memory, MemoryError};
use tiller_permit::trust::Status;
use tiller_protocol::memory::BUT_NO_RULE;
use tiller_protocol::{
    AgentId, MemoryEntry, MemoryFile, MemoryQuery, MemoryScope, MemoryState, MemoryTarget, Notice,
    NoticeKind, Provenance, Taint,
};

use crate::app::Setup;
use crate::app::tools::memory::{may_use, open};
use crate::commands::args::{MemoryOf, MemoryWhat};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, opened, say, say_beside};

/// Does what was asked.
pub(super) fn run(setup: &Setup, what: &MemoryWhat) -> Result<Exit, Notice> {
    let store = opened(setup)?;
    let status = setup.trust(&store);
    let redactor = std::sync::Arc::clone(&setup.redactor);
    open(setup, &store, may_use(&status), std::sync::Arc::new(move |text: &str| redactor.secrets(text)));
    let memory = &setup.services.memory;
    match what {
        MemoryWhat::List { of, json } => list(memory, "", &|e| shown(e, of), *json),
        MemoryWhat::Search { words, json } => {
            let (_finder, fault) = crate::app::tools::search::finder(setup, &store);
            fault.iter().for_each(|fault| say_beside(&fault.message));
            list(memory, &words.join(" "), &|e| e.state != MemoryState::Removed, *json)
        }
        MemoryWhat::Export { of } => {
            // What no model gets is not carried to where it would be an entry.
            list(memory, "", &|e| shown(e, of) && e.state != MemoryState::Removed && !e.hidden, true)
        }
        MemoryWhat::Embed { import } => embed(setup, &store, import.as_deref()),
        MemoryWhat::Add { text, of } => {
            let target = target(of, may_use(&status), &status)?;
            memory.write(target, &Edit::Append(text.clone()), by_person()).map_err(|e| notice(&e))?;
            let fault = tiller_memory::rules::matcher::parse(text, &setup.tools.catalog()).err();
            let fault = fault.map(|why| format!("{BUT_NO_RULE}{why}")).unwrap_or_default();
            say(&format!("Kept in {}{fault}.\n", place(memory, target)))
        }
        MemoryWhat::Forget { text, of } => {
            let target = target(of, may_use(&status), &status)?;
            let done = memory
                .write(target, &Edit::Remove { old: text.clone() }, by_person())
                .map_err(|e| notice(&e))?;
            let gone = done.removed.map(|e| e.text).unwrap_or_default();
            say(&format!("Removed from {}: {}\n", place(memory, target), one_line(&gone)))
        }
        MemoryWhat::Import { file, mine, of } => {
            let target = target(of, may_use(&status), &status)?;
            import(memory, file, target, of.user || of.project, *mine)
        }
    }
}

/// Imports a table of vectors and makes those of all entries, or says what is in use.
fn embed(setup: &Setup, store: &tiller_store::Store, import: Option<&Path>) -> Result<Exit, Notice> {
    let place = crate::app::tools::search::table(setup);
    if let Some(from) = import {
        let table = tiller_search::table::import(from, &place).map_err(|e| {
            Notice::new(NoticeKind::User, e.0)
                .hint("A folder with model.safetensors and tokenizer.json is needed.")
        })?;
        let (rows, dimensions) = table.size();
        say_beside(&format!("Imported {rows} pieces of words with {dimensions} dimensions."));
    }
    let (finder, fault) = crate::app::tools::search::finder(setup, store);
    if let Some(fault) = fault {
        return Err(fault);
    }
    if import.is_some() {
        finder.index_blocking().map_err(|e| e.notice())?;
    }
    say(&format!("{}\n", finder.described()))
}

/// Whether an entry is of the files that were asked for; without a choice all are.
fn shown(entry: &MemoryEntry, of: &MemoryOf) -> bool {
    (!of.user || entry.target.file == MemoryFile::User)
        && (!of.project || entry.target.scope == MemoryScope::Project)
}

fn target(of: &MemoryOf, may: bool, status: &Status) -> Result<MemoryTarget, Notice> {
    let file = if of.user { MemoryFile::User } else { MemoryFile::Memory };
    let scope = if of.project { MemoryScope::Project } else { MemoryScope::User };
    if of.project && !may {
        let why = match status {
            Status::Nothing => "The memory files of this folder came with it, so they are not used.",
            _ => "This folder is not trusted, so its memory files are not used.",
        };
        return Err(Notice::new(NoticeKind::User, why).hint("`tiller trust` shows what the folder brings."));
    }
    Ok(MemoryTarget { file, scope })
}

fn by_person() -> Provenance {
    Provenance { agent: AgentId::main(), taint: Taint::Person, ..Provenance::default() }
}

fn place(memory: &Memory, target: MemoryTarget) -> String {
    memory.path(target).map_or_else(|| target.label().to_owned(), |path| path.display().to_string())
}

fn notice(error: &MemoryError) -> Notice {
    let kind = match error {
        MemoryError::Refused(_) | MemoryError::Known { .. } => NoticeKind::User,
        MemoryError::NotFound(_) => {
            return Notice::new(NoticeKind::User, error.to_string())
                .hint("`tiller memory list` shows all entries.");
        }
        MemoryError::File(_) => NoticeKind::Config,
        MemoryError::Store(_) => NoticeKind::Store,
    };
    Notice::new(kind, error.to_string())
}

fn list(
    memory: &Memory,
    filter: &str,
    wanted: &dyn Fn(&MemoryEntry) -> bool,
    json: bool,
) -> Result<Exit, Notice> {
    let page = memory.page(&MemoryQuery { filter: filter.into() }).map_err(|e| notice(&e))?;
    for file in page.files.iter().filter(|f| !f.fault.is_empty()) {
        say_beside(&file.fault);
    }
    if let Some(spelling) = &page.suggestion {
        say_beside(&format!("Did you mean: {}", one_line(spelling.trim())));
    }
    let entries = page.entries.iter().filter(|e| wanted(e));
    if json {
        return say(&entries.map(json_line).collect::<String>());
    }
    let text: String = entries.map(|e| row(e, !filter.is_empty())).collect();
    let nothing = if filter.is_empty() { "Nothing is kept yet.\n" } else { "Nothing found.\n" };
    say(if text.is_empty() { nothing } else { &text })
}

/// An entry for people. `is_hit`: it was searched for, so that the entry of a session that it comes from is cited.
fn row(e: &MemoryEntry, is_hit: bool) -> String {
    let became = Entry::of_line(&e.details.became).text;
    let state = match e.state {
        MemoryState::Kept => String::new(),
        MemoryState::Removed if !became.is_empty() => {
            format!(" (changed outside Tiller into: {})", one_line(&became))
        }
        state => format!(" ({})", state.word()),
    };
    let date = if e.date.is_empty() { "-         " } else { e.date.as_str() };
    let cited = e.from.as_ref().filter(|_| is_hit).and_then(Provenance::cited);
    let cited = cited.map_or_else(String::new, |cited| format!("    from {cited}\n"));
    format!(
        "{}  {:18}  {:11}  {}{state}\n{cited}",
        one_line(date),
        e.target.label(),
        e.writer(),
        one_line(&e.text)
    )
}

/// Adds entries that are not there yet. Those that are refused are named, and the others are added.
fn import(
    memory: &Memory,
    file: &Path,
    usual: MemoryTarget,
    chosen: bool,
    mine: bool,
) -> Result<Exit, Notice> {
    let unreadable =
        |e: std::io::Error| Notice::new(NoticeKind::User, format!("{} cannot be read: {e}", file.display()));
    let mut bytes = Vec::new();
    // Larger than a memory file can be.
    let most = LARGEST * 4;
    if file == Path::new("-") {
        std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        let source = std::fs::File::open(file).map_err(unreadable)?;
        source.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if bytes.len() as u64 > most {
        return Err(Notice::new(NoticeKind::User, "The file is larger than 4 MiB; split it."));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Notice::new(NoticeKind::User, format!("{} is not UTF-8.", file.display())))?;
    let (mut added, mut waiting, mut known, mut refused) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut accepted = 0_usize;
    let source = source_name(file);
    let (entries, unreadable) = entries(&text, usual, chosen);
    for line in &unreadable {
        say_beside(&format!("not imported: line {line} is no entry of an export"));
    }
    refused += unreadable.len();
    for entry in entries {
        match memory.import(&entry, mine, &source) {
            Ok(Imported::Added) => added += 1,
            Ok(Imported::Pending) => waiting += 1,
            Ok(Imported::Accepted) => accepted += 1,
            Ok(Imported::Removed) => {}
            Err(MemoryError::Known { .. }) => known += 1,
            Err(MemoryError::Refused(why)) => {
                refused += 1;
                say_beside(&format!("not imported: {}: {why}", one_line(&entry.text)));
            }
            Err(error) => return Err(notice(&error)),
        }
    }
    let waits = if waiting > 0 { format!("{waiting} waiting in /memory, ") } else { String::new() };
    let yours = if accepted > 0 { format!("{accepted} there and now yours, ") } else { String::new() };
    say(&format!("{added} added, {waits}{yours}{known} already there, {refused} refused.\n"))?;
    Ok(if refused > 0 { Exit::Refused } else { Exit::Done })
}

/// The file of an import, as its entries name it.
fn source_name(file: &Path) -> String {
    if file == Path::new("-") {
        return "standard input".into();
    }
    std::path::absolute(file).unwrap_or(file.to_owned()).to_string_lossy().into_owned()
}

/// The entries of an export (JSON lines), with the numbers of the lines that cannot be read, or of a Markdown file. Those of an
/// export are for the file that they were in, unless the user has `chosen` the `usual` one.
fn entries(text: &str, usual: MemoryTarget, chosen: bool) -> (Vec<ImportedEntry>, Vec<usize>) {
    let of_line = |line: &str| serde_json::from_str::<MemoryEntry>(line).ok();
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    // One entry makes it an export: a damaged first line does not turn it into Markdown.
    if lines().any(|(_, line)| of_line(line).is_some()) {
        let mut unreadable = Vec::new();
        let mut exported = Vec::new();
        for (at, line) in lines() {
            match of_line(line).map(ImportedEntry::from) {
                Some(e) => {
                    exported.push(ImportedEntry { target: if chosen { usual } else { e.target }, ..e });
                }
                None => unreadable.push(at + 1),
            }
        }
        return (exported, unreadable);
    }
    let item = |e: &Entry| ImportedEntry {
        target: usual,
        date: e.date.clone(),
        text: e.text.clone(),
        state: if e.archived { MemoryState::Archived } else { MemoryState::Kept },
        taint: None,
        replaces: String::new(),
    };
    (Document::parse(text).entries().map(item).collect(), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_cites_the_entry_that_it_comes_from() {
        let session = "01a220f1-ec69-717a-a130-98469f0e0778";
        let entry = "01a220f4-1f5a-7044-8ed9-a7e4473904d8";
        let json = serde_json::json!({
            "target": MemoryTarget::default(), "state": MemoryState::Kept, "date": "2026-11-28", "text": "use tabs",
            "from": {"session": session, "entry": entry, "taint": Taint::Person},
        });
        let e: MemoryEntry = serde_json::from_value(json).unwrap();
        let listed = row(&e, false);
        assert!(listed.starts_with("2026-11-28  MEMORY.md") && listed.ends_with("use tabs\n"), "{listed}");
        assert_eq!(row(&e, true), format!("{listed}    from session {session}, entry {entry}\n"));
    }

    #[test]
    fn lines_of_an_export_that_cannot_be_read_are_named() {
        let entry = |text: &str| {
            let target = serde_json::to_value(MemoryTarget::default()).unwrap();
            let state = serde_json::to_value(MemoryState::Kept).unwrap();
            serde_json::json!({"target": target, "state": state, "date": "", "text": text}).to_string()
        };
        let text = format!("{{broken\n{}\n\n{{\"text\": 7}}\n{}\n", entry("one"), entry("two"));
        let (found, unreadable) = entries(&text, MemoryTarget::default(), false);
        let texts: Vec<&str> = found.iter().map(|e| e.text.as_str()).collect();
        assert_eq!((texts, unreadable), (vec!["one", "two"], vec![1, 4]));
        let (found, unreadable) = entries("- a fact\n", MemoryTarget::default(), false);
        assert_eq!((found.len(), unreadable), (1, vec![]));
    }
}
