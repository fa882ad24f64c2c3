//! The rules of memory files and of learnings: which there are, and what came of them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_protocol::{RuleReceipts, SessionId, Taint, ToolCatalog};
use tiller_store::Store;

use super::matcher::{ActionRule, parse};

/// Bytes of a file that are read.
const FILE: u64 = 256 << 10;
/// Most rules of all files.
const RULES: usize = 1_000;
/// Most rules that are attached to one result, and bytes of them.
const ATTACHED: usize = 3;
const BUDGET: usize = 1_600;
/// `O_NONBLOCK`: opening a FIFO does not wait for its writer.
const NONBLOCK: i32 = 0o4000;

/// A rule, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookRule {
    pub rule: ActionRule,
    /// The name of its file, or the number of its learning.
    pub origin: String,
}

/// A rule that concerns a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleHit {
    pub rule: BookRule,
    /// The rule forbids the call.
    pub forbids: bool,
}

/// Size, change time and inode of a file, by which a change is noticed.
type Stamp = Option<(u64, i64, i64, u64)>;
type Read1 = (Vec<Stamp>, Arc<Vec<BookRule>>);

/// The rules of this person and project.
pub struct RuleBook {
    files: Vec<(PathBuf, String)>,
    tools: ToolCatalog,
    read: Mutex<Option<Read1>>,
    /// Rules whose text stands in the conversation of a session.
    shown: Mutex<HashMap<SessionId, HashSet<String>>>,
}

impl RuleBook {
    /// Over these files, each with the name that is shown of it. A file need not exist.
    pub fn new(files: Vec<(PathBuf, String)>, tools: ToolCatalog) -> Self {
        Self { files, tools, read: Mutex::default(), shown: Mutex::default() }
    }

    /// The rules of the files as they are now, and of active learnings. Blocks.
    pub fn rules(&self, store: &Store) -> Vec<BookRule> {
        let mut all: Vec<BookRule> = self.of_files().iter().cloned().collect();
        for learning in store.learnings().with_matchers().unwrap_or_default() {
            let text = format!("{} {}", learning.fix, learning.context);
            // Output of a command must not write a rule by being learned from.
            if !matches!(learning.source.taint, Taint::Person | Taint::Agent) {
                continue;
            }
            if let Ok(Some(rule)) = parse(&text, &self.tools) {
                all.push(BookRule { rule, origin: format!("learning {}", learning.id) });
            }
        }
        all.truncate(RULES);
        all
    }

    fn of_files(&self) -> Arc<Vec<BookRule>> {
        let stamps: Vec<Stamp> = self.files.iter().map(|(path, _)| stamp(path)).collect();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = &*read
            && *known == stamps
        {
            return Arc::clone(rules);
        }
        let mut rules = Vec::new();
        for (path, name) in &self.files {
            let Some(text) = text(path) else { continue };
            for entry in entries(&text) {
                // A faulty matcher is shown by `faults`, and so is one in a text of others.
                if !of_others(&entry)
                    && let Ok(Some(rule)) = parse(&entry, &self.tools)
                    && rules.len() < RULES
                {
                    rules.push(BookRule { rule, origin: name.clone() });
                }
            }
        }
        let rules = Arc::new(rules);
        *read = Some((stamps, Arc::clone(&rules)));
        rules
    }

    /// Matchers that cannot be read, each with its file. Blocks.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (path, name) in &self.files {
            for entry in text(path).iter().flat_map(|text| entries(text)) {
                match parse(&entry, &self.tools) {
                    Err(why) => faults.push(format!("{name}: {why}")),
                    Ok(Some(rule)) if of_others(&entry) => faults.push(format!(
                        "{name}: this entry is no rule, since text of others had a part in it; remove the mark at its end to \
                         make it one: {}",
                        rule.text
                    )),
                    Ok(_) => {}
                }
            }
        }
        faults.truncate(20);
        faults
    }

    /// Takes note that these rules concern a call that was made: the texts for the end of its result, and the counts that
    /// are to be stored.
    pub fn note(&self, session: SessionId, hits: &[RuleHit]) -> (Vec<String>, Vec<(String, RuleReceipts)>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = shown.entry(session).or_default();
        let (mut texts, mut counts, mut bytes) = (Vec::new(), Vec::new(), 0);
        // What forbids the call comes first.
        let mut hits: Vec<&RuleHit> = hits.iter().collect();
        hits.sort_by_key(|h| !h.forbids);
        for hit in hits {
            let rule = &hit.rule.rule;
            let before = shown.contains(&rule.text);
            let mut count = RuleReceipts::default();
            match (before, hit.forbids) {
                (true, true) => count.violated = 1,
                (true, false) if !rule.never.is_empty() => count.followed = 1,
                _ => {}
            }
            let text = attached(hit);
            if (!before || hit.forbids) && texts.len() < ATTACHED && bytes + text.len() <= BUDGET {
                bytes += text.len();
                texts.push(text);
                count.shown = 1;
                shown.insert(rule.text.clone());
            }
            if count != RuleReceipts::default() {
                counts.push((rule.text.clone(), count));
            }
        }
        (texts, counts)
    }

    /// The rules were shown to the model, such as before a question about the call: only counted here.
    pub fn is_shown(&self, session: SessionId, text: &str) -> bool {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.get(&session).is_some_and(|s| s.contains(text))
    }

    /// The conversation was compacted, or another branch was opened: its rules are to be shown again.
    pub fn forget(&self, session: SessionId) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

/// A rule for the end of a result.
fn attached(hit: &RuleHit) -> String {
    let text = hit.rule.rule.text.replace(['[', ']'], "'");
    let verb = if hit.forbids { "forbids this call" } else { "concerns this call" };
    format!("[A rule of {} {verb}: {text}]", hit.rule.origin.replace(['[', ']'], "'"))
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino()))
}

/// The text of a plain file, up to its limit.
fn text(path: &Path) -> Option<String> {
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The entries of a memory file: list items with their indented lines, and paragraphs. What is archived is left out.
fn entries(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with('#') {
            if trimmed.trim_start_matches('#').trim().eq_ignore_ascii_case("archive") {
                break;
            }
            open = false;
            continue;
        }
        if trimmed.is_empty() {
            open = false;
            continue;
        }
        let item = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* "));
        match (item, open, all.last_mut()) {
            (None, true, Some(last)) => {
                last.push(' ');
                last.push_str(trimmed);
            }
            _ => all.push(without_date(item.unwrap_or(trimmed)).to_owned()),
        }
        open = true;
    }
    all
}

/// Whether an entry is marked as one that text of others had a part in. Such an entry has no power over calls.
fn of_others(entry: &str) -> bool {
    let untrusted = Taint::ALL.into_iter().filter(|taint| taint.is_untrusted());
    untrusted.map(Taint::mark).any(|mark| entry.contains(mark.trim()))
}

/// Without `2026-11-26: ` at its beginning.
fn without_date(entry: &str) -> &str {
    match entry.split_once(':') {
        Some((date, rest)) if date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-') => {
            rest.trim_start()
        }
        _ => entry,
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
