//! The rules of memory files and of learnings: which there are, and what came of them.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_protocol::{MemoryFile, RuleReceipts, SessionId, Taint, ToolCatalog};
use tiller_store::Store;

use super::matcher::{ActionRule, parse};
use crate::files::{Document, Entry, Memory, RuleFilePlace};

/// Most rules of all files.
const RULES: usize = 1_000;
/// Most rules that are attached to one result, and bytes of them.
const ATTACHED: usize = 3;
const BUDGET: usize = 1_600;

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

/// An entry of a file that is a rule.
#[derive(Clone, Debug)]
struct FileRule {
    rule: BookRule,
    /// Path of the file, and the line of the entry: the database finds its origin by these.
    place: (String, String),
}

/// The rules of the files, and what the files were when they were read.
type RulesRead = (Vec<(PathBuf, Stamp)>, Arc<Vec<FileRule>>);

/// The rules of this person and project.
pub struct RuleBook {
    memory: Arc<Memory>,
    tools: ToolCatalog,
    read: Mutex<Option<RulesRead>>,
    /// Rules whose text stands in the conversation of a session.
    shown: Mutex<HashMap<SessionId, HashSet<String>>>,
}

impl RuleBook {
    /// Over the memory files in use.
    pub fn new(memory: Arc<Memory>, tools: ToolCatalog) -> Self {
        Self { memory, tools, read: Mutex::default(), shown: Mutex::default() }
    }

    /// The rules of the files as they are now, and of active learnings. Blocks.
    pub fn rules(&self, store: &Store) -> Vec<BookRule> {
        let own = self.of_files();
        let others = if own.is_empty() { HashSet::new() } else { self.memory.lines_of_others() };
        let mut all: Vec<BookRule> =
            own.iter().filter(|r| !others.contains(&r.place)).map(|r| r.rule.clone()).collect();
        for learning in store.learnings().with_matchers().unwrap_or_default() {
            let text = format!("{} {}", learning.fix, learning.context);
            // Output of a command must not write a rule by being learned from: the user accepts it first.
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

    /// The memory files of models' prompts without the entries that are rules: these stand with the calls that they concern.
    /// Blocks.
    pub fn live_without_rules(&self, file: MemoryFile) -> Vec<(PathBuf, String)> {
        let rules = self.of_files();
        let others = self.memory.lines_of_others();
        let places: HashSet<&(String, String)> =
            rules.iter().map(|r| &r.place).filter(|place| !others.contains(*place)).collect();
        let path = |path: &Path| path.to_string_lossy().into_owned();
        self.memory.live_without(file, &|at, entry| places.contains(&(path(at), entry.line())))
    }

    fn of_files(&self) -> Arc<Vec<FileRule>> {
        let files = self.memory.rule_files();
        let stamps: Vec<(PathBuf, Stamp)> =
            files.iter().map(|file| (file.path.clone(), stamp(&file.path))).collect();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = &*read
            && *known == stamps
        {
            return Arc::clone(rules);
        }
        self.memory.note_free_entries(None);
        let mut rules = Vec::new();
        for file in &files {
            for entry in live(file) {
                let text = &entry.text;
                // A faulty matcher is shown by `faults`, and so is one in a text of others.
                if !of_others(text)
                    && let Ok(Some(rule)) = parse(text, &self.tools)
                    && rules.len() < RULES
                {
                    let place = (file.path.to_string_lossy().into_owned(), entry.line());
                    rules.push(FileRule { rule: BookRule { rule, origin: file.label.to_owned() }, place });
                }
            }
        }
        let rules = Arc::new(rules);
        *read = Some((stamps, Arc::clone(&rules)));
        rules
    }

    /// Matchers that cannot be read or have no power, each with its file. Blocks.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let others = self.memory.lines_of_others();
        for file in self.memory.rule_files() {
            let name = file.label;
            for entry in live(&file) {
                let text = &entry.text;
                let place = (file.path.to_string_lossy().into_owned(), entry.line());
                match parse(text, &self.tools) {
                    Err(why) => faults.push(format!("{name}: {why}")),
                    Ok(Some(rule)) if of_others(text) || others.contains(&place) => faults.push(format!(
                        "{name}: this entry is no rule, since text of others had a part in it; accept it in /memory to make it \
                         one: {}",
                        rule.text
                    )),
                    Ok(_) => {}
                }
            }
        }
        faults.truncate(20);
        faults
    }

    /// The tools that matchers may name.
    pub fn tools(&self) -> &ToolCatalog {
        &self.tools
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

    /// The conversation was compacted, or another branch was opened: its rules are to be shown again.
    pub(crate) fn forget(&self, session: SessionId) {
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

/// The entries of a file that are not archived.
fn live(file: &RuleFilePlace) -> Vec<Entry> {
    file.document().iter().flat_map(Document::entries).filter(|e| !e.archived).cloned().collect()
}

/// Whether an entry is marked as one that text of others had a part in. Such an entry has no power over calls.
fn of_others(entry: &str) -> bool {
    let untrusted = Taint::ALL.into_iter().filter(|taint| taint.is_untrusted());
    untrusted.map(Taint::mark).any(|mark| entry.contains(mark.trim()))
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
