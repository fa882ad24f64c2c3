//! The rules of memory files and of learnings: which there are, and what came of them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_protocol::memory::MemoryPage;
use tiller_protocol::{
    EntryId, Learning, MemoryFile, MemoryState, RuleReceipts, SessionId, Taint, ToolCatalog,
};
use tiller_store::Store;

use super::index::{RuleCall, RuleIndex};
use super::matcher::{ActionRule, of_others, parse};
use crate::files::{Document, Entry, KnownLines, Memory, RuleFilePlace, Stamp, stamp, stamp_of_link};

/// Most rules of all memory files.
const RULES: usize = 1_000;
/// Most rules that are attached to one result, and bytes of them.
const ATTACHED: usize = 3;
const BUDGET: usize = 1_600;

/// A rule, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookRule {
    pub rule: ActionRule,
    /// The name of its file, or the number of its learning; several, where entries have the same text.
    pub origin: String,
}

/// A rule that concerns a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleHit {
    pub rule: BookRule,
    /// The rule forbids the call.
    pub forbids: bool,
    /// The rule only forbids, and this call, of the same tool and program, is one that it does not forbid: that is counted and
    /// not shown.
    pub spares: bool,
}

/// A call that rules concern, and where their texts are put.
#[derive(Clone, Copy, Debug)]
pub struct RulePlace {
    pub session: SessionId,
    /// The reply that made the call: the model reads the texts with the results of the whole reply. `None`: it is not known.
    pub reply: Option<EntryId>,
    /// A script made the call: its result has each text once, whatever the number of calls.
    pub in_script: bool,
    /// Most texts that there is room for.
    pub most: usize,
}

/// When a rule was shown in a session, by the replies whose calls it concerned.
#[derive(Clone, Copy, Debug)]
struct ShownRule {
    first: Option<EntryId>,
    last: Option<EntryId>,
}

/// An entry of a file that is a rule.
#[derive(Clone, Debug)]
struct FileRule {
    rule: BookRule,
    /// Path of the file, and the line of the entry: the database finds its origin by these.
    place: (String, String),
}

/// A matcher that has no power over calls, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RuleFault {
    /// Name of the file.
    label: &'static str,
    /// Path of the file, and the line of the entry; empty where it is about the whole file.
    place: (String, String),
    /// Without a full stop.
    why: String,
}

/// Characters of an entry that a message names.
const NAMED: usize = 60;

impl RuleFault {
    /// As the start of a sentence, with the entry that is meant.
    fn as_sentence(&self) -> String {
        if self.place.1.is_empty() {
            return self.why.clone();
        }
        let text = Entry::of_line(&self.place.1).text;
        let (named, cut) = match text.char_indices().nth(NAMED) {
            Some((end, _)) => (&text[..end], "..."),
            None => (text.as_str(), ""),
        };
        format!("\"{named}{cut}\" in {} is no rule: {}", self.label, self.why)
    }
}

/// What was read from the files.
#[derive(Debug, Default)]
struct FileRules {
    rules: Vec<FileRule>,
    /// Entries whose matcher cannot be read.
    faults: Vec<RuleFault>,
}

/// The rules of the files, and what the files were when they were read.
type RulesRead = (Vec<(PathBuf, Stamp)>, Arc<FileRules>);

/// Most faults that are kept and shown.
const FAULTS: usize = 100;

/// The rules of learnings, each text once, and where to find those of a call.
#[derive(Debug, Default)]
struct LearnedRules {
    rules: Vec<BookRule>,
    index: RuleIndex,
}

/// The rules of learnings, and the revision of the learnings that they were read from.
type LearnedRead = (i64, Arc<LearnedRules>);

/// The rules of this user and project.
pub struct RuleBook {
    memory: Arc<Memory>,
    tools: ToolCatalog,
    read: Mutex<Option<RulesRead>>,
    learned: Mutex<Option<LearnedRead>>,
    /// Rules whose text stands in the conversation of a session.
    shown: Mutex<HashMap<SessionId, HashMap<String, ShownRule>>>,
    /// Faults that a notice has named.
    reported: Mutex<HashSet<(String, String)>>,
}

impl RuleBook {
    /// Over the memory files in use.
    pub fn new(memory: Arc<Memory>, tools: ToolCatalog) -> Self {
        memory.match_tools(tools.clone());
        Self {
            memory,
            tools,
            read: Mutex::default(),
            learned: Mutex::default(),
            shown: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// The rules of the files as they are now, and of active learnings. Entries with the same text are one rule: it is
    /// shown and counted by its text. Blocks.
    pub fn rules(&self, store: &Store) -> Vec<BookRule> {
        self.with_learned(store, |learned| (0..learned.rules.len()).collect())
    }

    /// As [`Self::rules`], without rules of learnings that cannot concern the call: these may be many, and are neither compared
    /// with it nor copied. Blocks.
    pub fn rules_for(&self, store: &Store, call: &RuleCall) -> Vec<BookRule> {
        self.with_learned(store, |learned| learned.index.of_call(call))
    }

    /// The rules of the files, and those of learnings at the places that `fit` gives.
    fn with_learned(&self, store: &Store, fit: impl Fn(&LearnedRules) -> BTreeSet<usize>) -> Vec<BookRule> {
        let read = self.of_files();
        let own = &read.rules;
        let others = if own.is_empty() { Arc::default() } else { self.memory.lines_of_others() };
        let known = if own.is_empty() { KnownLines::default() } else { self.memory.known_lines() };
        let counts = |r: &&FileRule| !others.contains(&r.place) && known.has(&r.place.0, &r.place.1);
        let mut all: Vec<BookRule> = own.iter().filter(counts).map(|r| r.rule.clone()).collect();
        let learned = self.of_learnings(store);
        let mut places = fit(&learned);
        // One with the text of an entry is a part of that entry's rule.
        places.extend(own.iter().filter_map(|r| learned.index.of_text(&r.rule.rule.text)));
        all.extend(places.into_iter().filter_map(|at| learned.rules.get(at)).cloned());
        one_for_each_text(all)
    }

    /// The rules of active learnings, each text once. They are read again when one of these has changed.
    fn of_learnings(&self, store: &Store) -> Arc<LearnedRules> {
        let mut read = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let known = || read.as_ref().map(|(_, rules)| Arc::clone(rules)).unwrap_or_default();
        // Before the rows: what changes in between is read with the next call.
        let Ok(revision) = store.learnings().matchers_revision() else { return known() };
        if let Some((of, rules)) = &*read
            && *of == revision
        {
            return Arc::clone(rules);
        }
        let Ok(learnings) = store.learnings().with_matchers() else { return known() };
        let rule = |learning: &Learning| {
            // Output of a command must not write a rule by being learned from: the user accepts it first.
            if !matches!(learning.source.taint, Taint::Person | Taint::Agent) {
                return None;
            }
            let rule = parse(&text_of(learning), &self.tools).ok().flatten()?;
            Some(BookRule { rule, origin: format!("learning {}", learning.id) })
        };
        let rules = one_for_each_text(learnings.iter().filter_map(rule).collect());
        let learned = Arc::new(LearnedRules { index: RuleIndex::new(&rules), rules });
        *read = Some((revision, Arc::clone(&learned)));
        learned
    }

    /// Why the matcher of a learning cannot be read, without a full stop; `None`: it can, or there is none.
    pub fn fault_of(&self, learning: &Learning) -> Option<String> {
        learning_fault(learning, &self.tools)
    }

    /// The memory files of models' prompts without the entries that are rules: these stand with the calls that they concern.
    /// Blocks.
    pub fn live_without_rules(&self, file: MemoryFile) -> Vec<(PathBuf, String)> {
        let read = self.of_files();
        let others = self.memory.lines_of_others();
        let places: HashSet<&(String, String)> =
            read.rules.iter().map(|r| &r.place).filter(|place| !others.contains(*place)).collect();
        let path = |path: &Path| path.to_string_lossy().into_owned();
        self.memory.live_without(file, &|at, entry| places.contains(&(path(at), entry.line())))
    }

    fn of_files(&self) -> Arc<FileRules> {
        let files = self.memory.rule_files();
        let stamps: Vec<(PathBuf, Stamp)> = files
            .iter()
            .flat_map(|file| [stamp(&file.path), stamp_of_link(&file.path)].map(|s| (file.path.clone(), s)))
            .collect();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = &*read
            && *known == stamps
        {
            return Arc::clone(rules);
        }
        // A program of another window may have written them.
        self.memory.look();
        self.memory.note_unconfined_entries(None);
        let mut found = FileRules::default();
        let before = read.as_ref().map(|(_, rules)| Arc::clone(rules)).unwrap_or_default();
        for file in &files {
            // Rules that were read once stay in force while their file cannot be read.
            if let Err(error) = file.read_rules() {
                let path = file.path.to_string_lossy().into_owned();
                let kept = before.rules.iter().filter(|rule| rule.place.0 == path).cloned();
                let rules = found.rules.len();
                found.rules.extend(kept);
                if found.rules.len() > rules {
                    let why = format!(
                        "{error}; its rules as they were read before stay in use until it is corrected"
                    );
                    found.faults.push(RuleFault { label: file.label, place: (path, String::new()), why });
                }
                continue;
            }
            for entry in live(file) {
                let text = &entry.text;
                let place = || (file.path.to_string_lossy().into_owned(), entry.line());
                let fault = match parse(text, &self.tools) {
                    Err(why) => Some(why),
                    Ok(Some(_)) if !of_others(text) && found.rules.len() >= RULES => {
                        Some(format!("there are {RULES} rules before it, and no more count"))
                    }
                    // A marked entry is no rule: `mark` reports it.
                    Ok(Some(rule)) if !of_others(text) => {
                        let rule = BookRule { rule, origin: file.label.to_owned() };
                        found.rules.push(FileRule { rule, place: place() });
                        None
                    }
                    Ok(_) => None,
                };
                if let Some(why) = fault.filter(|_| found.faults.len() < FAULTS) {
                    found.faults.push(RuleFault { label: file.label, place: place(), why });
                }
            }
        }
        let rules = Arc::new(found);
        *read = Some((stamps, Arc::clone(&rules)));
        rules
    }

    /// Says at each entry of a page why its matcher has no power over calls. Blocks.
    pub fn mark(&self, page: &mut MemoryPage) {
        let (read, others) = (self.of_files(), self.memory.lines_of_others());
        for entry in page.entries.iter_mut().filter(|e| e.state == MemoryState::Kept) {
            let Some(file) = page.files.iter().find(|file| file.target == entry.target) else { continue };
            let own = Entry { date: entry.date.clone(), text: entry.text.clone(), archived: false };
            let place = (file.path.clone(), own.line());
            // A hidden entry has a fault of its own already.
            if entry.hidden {
                continue;
            }
            if let Some(fault) = read.faults.iter().find(|fault| fault.place == place) {
                entry.fault = format!("It is no rule: {}", fault.why);
            } else if entry.has_matcher() && (of_others(&entry.text) || others.contains(&place)) {
                entry.fault = NO_RULE.into();
            }
        }
    }

    /// Matchers that cannot be read and that this did not return before, each with its file, as the start of a sentence. Blocks.
    pub fn new_faults(&self) -> Vec<String> {
        let read = self.of_files();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let new = read.faults.iter().filter(|fault| reported.insert(fault.place.clone()));
        new.map(RuleFault::as_sentence).collect()
    }

    /// Counts the fault of the entry with this text as reported: another notice has named it. Blocks.
    pub fn fault_reported(&self, text: &str) {
        let (read, text) = (self.of_files(), Entry::new("", text).text);
        let told = read.faults.iter().filter(|fault| Entry::of_line(&fault.place.1).text == text);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.extend(told.map(|fault| fault.place.clone()));
    }

    /// The tools that matchers may name.
    pub fn tools(&self) -> &ToolCatalog {
        &self.tools
    }

    /// Takes note that these rules concern a call that was made: the texts for the end of its result, and the counts that
    /// are to be stored. Counts of rules that are shown are in the order of the texts. Only what the model had read when it
    /// made the call can be followed or violated.
    pub fn note(&self, place: &RulePlace, hits: &[RuleHit]) -> (Vec<String>, Vec<(String, RuleReceipts)>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = shown.entry(place.session).or_default();
        let is_of_reply = |reply: Option<EntryId>| reply.is_some() && reply == place.reply;
        let (mut texts, mut counts, mut bytes) = (Vec::new(), Vec::new(), 0);
        // What forbids the call comes first.
        let mut hits: Vec<&RuleHit> = hits.iter().collect();
        hits.sort_by_key(|h| !h.forbids);
        for hit in hits {
            let rule = &hit.rule.rule;
            let known = shown.get(&rule.text).copied();
            let read = known.is_some_and(|known| !is_of_reply(known.first));
            let mut count = RuleReceipts::default();
            if hit.spares {
                if read {
                    counts.push((rule.text.clone(), RuleReceipts { followed: 1, ..count }));
                }
                continue;
            }
            match (read, hit.forbids) {
                (true, true) => count.violated = 1,
                (true, false) if !rule.never.is_empty() => count.followed = 1,
                _ => {}
            }
            let text = attached(hit);
            let fits = texts.is_empty() || bytes + text.len() <= BUDGET;
            let repeated = place.in_script && known.is_some_and(|known| is_of_reply(known.last));
            let due = (known.is_none() || hit.forbids) && !repeated;
            if due && texts.len() < ATTACHED.min(place.most) && fits {
                bytes += text.len();
                texts.push(text);
                count.shown = 1;
                let now = ShownRule { first: place.reply, last: place.reply };
                shown.entry(rule.text.clone()).and_modify(|known| known.last = place.reply).or_insert(now);
            }
            if count != RuleReceipts::default() {
                counts.push((rule.text.clone(), count));
            }
        }
        (texts, counts)
    }

    /// Takes note that these rules stand in the conversation of a session that is opened, each with the entry that it stands in.
    pub fn restore_shown<'a>(&self, session: SessionId, rules: impl Iterator<Item = (&'a str, EntryId)>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = shown.entry(session).or_default();
        for (rule, entry) in rules {
            let then = ShownRule { first: Some(entry), last: Some(entry) };
            shown.entry(rule.to_owned()).or_insert(then);
        }
    }

    /// The conversation was compacted, or another branch was opened: its rules are to be shown again.
    pub(crate) fn forget(&self, session: SessionId) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

/// What is shown at an entry that is marked as one of others.
const NO_RULE: &str = "It is no rule until you accept it, since text of others had a part in it";

/// A rule for the end of a result.
fn attached(hit: &RuleHit) -> String {
    let text = hit.rule.rule.text.replace(['[', ']'], "'");
    let verb = if hit.forbids { "forbids this call" } else { "concerns this call" };
    format!("[A rule of {} {verb}: {text}]", hit.rule.origin.replace(['[', ']'], "'"))
}

/// As [`RuleBook::fault_of`], where there is no book.
pub fn learning_fault(learning: &Learning, tools: &ToolCatalog) -> Option<String> {
    parse(&text_of(learning), tools).err()
}

/// The text of a learning in which matchers stand.
fn text_of(learning: &Learning) -> String {
    format!("{} {}", learning.fix, learning.context)
}

/// Joins rules that say the same: what concerns or violates one does so for all.
fn one_for_each_text(rules: Vec<BookRule>) -> Vec<BookRule> {
    let mut out: Vec<BookRule> = Vec::with_capacity(rules.len());
    let mut known: HashMap<String, usize> = HashMap::new();
    for next in rules {
        let Some(rule) = known.get(&next.rule.text).and_then(|at| out.get_mut(*at)) else {
            known.insert(next.rule.text.clone(), out.len());
            out.push(next);
            continue;
        };
        for (patterns, more) in
            [(&mut rule.rule.when, next.rule.when), (&mut rule.rule.never, next.rule.never)]
        {
            let new: Vec<String> = more.into_iter().filter(|pattern| !patterns.contains(pattern)).collect();
            patterns.extend(new);
        }
        if !rule.origin.split(", ").any(|origin| origin == next.origin) {
            rule.origin = format!("{}, {}", rule.origin, next.origin);
        }
    }
    out
}

/// The entries of a file that are not archived.
fn live(file: &RuleFilePlace) -> Vec<Entry> {
    file.document().iter().flat_map(Document::entries).filter(|e| !e.archived).cloned().collect()
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
