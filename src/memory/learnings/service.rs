//! The learnings of this person: saving, finding, attaching.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_config::schema::LearningsSetting;
use tiller_protocol::memory::has_matcher;
use tiller_protocol::{
    Addition, Clock, EntryId, Learning, LearningSource, LearningState, Provenance, SessionId, Taint,
};
use tiller_store::Store;

use super::consolidate::{consolidate, has_faded, is_merged};
use super::find::{has_word, relevance};
use super::kind::{CallKind, command_subjects, failure_kind};
use super::limits::{CONTEXT, ERROR, FIX, PATTERN, TAG, TAGS};
use super::pair::Pair;
use super::screen::screen;
use super::words::{likeness, one_line, words};
use crate::rules::{Promotions, RuleBook};
use crate::screen::{FindSecret, no_secret};

/// Most learnings that are attached at once.
const ATTACHED: usize = 3;
/// Tokens of the learnings that are attached at once, where the settings say nothing else.
pub const LEARNING_TOKENS: u64 = 400;
/// Bytes of a token, about.
const TOKEN: u64 = 4;
/// Most texts about its calls at the end of the result of a script.
const OF_SCRIPT: usize = 6;
/// Most learnings about one subject that are compared.
const COMPARED: u32 = 200;
/// Most subjects of a message.
const SUBJECTS: usize = 4;
/// Time between two consolidations, in milliseconds.
const DAY: i64 = 24 * 3_600 * 1_000;
/// Time after which this process asks the database again whether a consolidation is due, in milliseconds.
const HOUR: i64 = 3_600 * 1_000;
/// Most learnings of one consolidation.
const ALL: u32 = 50_000;

/// Learnings for the end of a result or a message.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// One text for each.
    pub texts: Vec<String>,
    pub learnings: Vec<Learning>,
}

/// Texts of rules and learnings for the end of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Each with what it is.
    pub texts: Vec<(Addition, String)>,
    /// The numbers of the learnings among them.
    pub learnings: Vec<i64>,
    /// The least trusted origin of the texts; `None`: none is of others.
    pub taint: Option<Taint>,
}

impl Notes {
    /// Adds what is not there yet.
    pub fn add(&mut self, other: Self) {
        for (what, text) in other.texts {
            if self.texts.iter().all(|(_, known)| *known != text) {
                self.texts.push((what, text));
            }
        }
        for number in other.learnings {
            if !self.learnings.contains(&number) {
                self.learnings.push(number);
            }
        }
        self.taint = self.taint.max(other.taint);
    }

    /// How many more texts the result of a script has room for.
    pub fn left(&self) -> usize {
        OF_SCRIPT.saturating_sub(self.texts.len())
    }
}

/// The learnings of this person. One for a process; shared by all agents.
pub struct Learnings {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Learnings that stand at the end of a message of the session already.
    with_messages: Mutex<HashMap<SessionId, HashSet<i64>>>,
    /// Sessions of which it was looked at what their model had read before.
    looked: Mutex<HashSet<SessionId>>,
    /// Sessions whose model has read text of the web or of an MCP server.
    tainted: Mutex<HashSet<SessionId>>,
    /// What concerns calls of scripts that still run, by the call of the script in its session.
    of_scripts: Mutex<HashMap<(SessionId, String), Notes>>,
    mode: Mutex<LearningsSetting>,
    /// Bytes of the learnings that are attached at once.
    room: AtomicUsize,
    /// When it was asked last whether a consolidation is due, by the clock in milliseconds.
    asked_at: AtomicI64,
    rules: Option<RuleBook>,
    promotions: Option<Promotions>,
    secret: FindSecret,
}

impl Learnings {
    /// Over the main database.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            with_messages: Mutex::default(),
            looked: Mutex::default(),
            tainted: Mutex::default(),
            of_scripts: Mutex::default(),
            mode: Mutex::default(),
            room: AtomicUsize::new(bytes_of(LEARNING_TOKENS)),
            asked_at: AtomicI64::new(i64::MIN),
            rules: None,
            promotions: None,
            secret: no_secret(),
        }
    }

    /// With the rules of memory files.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleBook, promotions: Option<Promotions>) -> Self {
        (self.rules, self.promotions) = (Some(rules), promotions);
        self
    }

    /// Finds secrets by this.
    #[must_use]
    pub fn finding_secrets(mut self, secret: FindSecret) -> Self {
        self.secret = secret;
        self
    }

    /// Checks a text before it is kept.
    ///
    /// # Errors
    /// Why it may not be kept, as the end of a sentence.
    pub fn screen(&self, text: &str) -> Result<(), String> {
        screen(text, &self.secret)
    }

    /// The rules of memory files and of learnings.
    pub fn rules(&self) -> Option<&RuleBook> {
        self.rules.as_ref()
    }

    /// How rules become permission rules and hooks.
    pub fn promotions(&self) -> Option<&Promotions> {
        self.promotions.as_ref()
    }

    /// What happens to learnings that are offered.
    pub fn mode(&self) -> LearningsSetting {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings were read. `tokens`: of the learnings that are attached at once.
    pub fn set(&self, mode: LearningsSetting, tokens: u64) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
        self.room.store(bytes_of(tokens), Ordering::Relaxed);
    }

    /// The conversation was compacted, or the session went to another place of its tree: what was attached to earlier results
    /// and messages may be attached again.
    pub fn forget(&self, session: SessionId) {
        self.with_messages.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        if let Some(rules) = &self.rules {
            rules.forget(session);
        }
    }

    /// Whether it is to be looked at what the model of this session read before: once, until the session is forgotten.
    pub fn is_first_look(&self, session: SessionId) -> bool {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).insert(session)
    }

    /// The model of this session has read text of the web or of an MCP server: what it saves is proposed only.
    pub fn taint(&self, session: SessionId) {
        self.tainted.lock().unwrap_or_else(PoisonError::into_inner).insert(session);
    }

    /// The least trusted text that the model of this session has read, if it is `usual` otherwise.
    pub fn taint_of(&self, session: SessionId, usual: Taint) -> Taint {
        let tainted = self.tainted.lock().unwrap_or_else(PoisonError::into_inner);
        if tainted.contains(&session) { Taint::Web } else { usual }
    }

    /// Keeps what concerns a call of a script for the result of the script: call `outer` of the session.
    pub fn keep_for(&self, session: SessionId, outer: &str, notes: Notes) {
        let mut all = self.of_scripts.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry((session, outer.to_owned())).or_default().add(notes);
    }

    /// What is kept for the result of this call now.
    pub fn kept_for(&self, session: SessionId, outer: &str) -> Notes {
        let all = self.of_scripts.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(session, outer.to_owned())).cloned().unwrap_or_default()
    }

    /// Takes out what was kept for the result of this call.
    pub fn take_for(&self, session: SessionId, outer: &str) -> Notes {
        let mut all = self.of_scripts.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(session, outer.to_owned())).unwrap_or_default()
    }

    /// Those of `found` that the notes of the same result do not have, and that there is room for beside them: all learnings of
    /// a result together are bounded. `most`: of them.
    pub fn beside(&self, notes: &Notes, found: Attached, most: usize) -> Attached {
        let room = self.room.load(Ordering::Relaxed);
        let of_learnings = notes.texts.iter().filter(|(what, _)| *what == Addition::Learning);
        let mut bytes: usize = of_learnings.map(|(_, text)| text.len()).sum();
        let most = ATTACHED.saturating_sub(notes.learnings.len()).min(most);
        let mut fit = Attached::default();
        for (text, learning) in found.texts.into_iter().zip(found.learnings) {
            let known = notes.learnings.contains(&learning.id);
            if !known && fit.learnings.len() < most && bytes + text.len() <= room {
                bytes += text.len();
                fit.texts.push(text);
                fit.learnings.push(learning);
            }
        }
        fit
    }

    /// Takes note of what stands in the conversation of a session that is opened: rules, each with its entry, and learnings
    /// at the end of messages.
    pub fn restore_shown<'a>(
        &self,
        session: SessionId,
        rules: impl Iterator<Item = (&'a str, EntryId)>,
        with_messages: impl Iterator<Item = i64>,
    ) {
        if let Some(book) = &self.rules {
            book.restore_shown(session, rules);
        }
        let mut given = self.with_messages.lock().unwrap_or_else(PoisonError::into_inner);
        given.entry(session).or_default().extend(with_messages);
    }

    /// The database that they are in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Active learnings that fit a failed call. Blocks.
    pub fn for_failure(&self, kind: &CallKind, output: &str) -> Attached {
        let mut subjects = kind.subjects.clone();
        subjects.push(String::new());
        let Ok(known) = self.store.learnings().about(&kind.tool, &subjects, true, COMPARED) else {
            return Attached::default();
        };
        let mut found: Vec<(f64, Learning)> = known
            .into_iter()
            .filter_map(|learning| {
                let failed = failure_kind(&kind.tool, &learning.kind.subject, output);
                let fit = relevance(&learning, &failed, output);
                // What failed again as it is cannot be the fix.
                let tried = learning.fix == format!("`{}`", kind.text);
                (fit.fits() && !tried).then_some((fit.0, learning))
            })
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.times_used.cmp(&a.1.times_used)));
        self.attach(found.into_iter().map(|(_, learning)| learning))
    }

    /// Active learnings about commands that a message names; each once in a session. Blocks.
    pub fn for_message(&self, session: SessionId, text: &str) -> Attached {
        let low = text[..text.floor_char_boundary(8_000)].to_lowercase();
        let all = self.store.learnings().subjects("terminal").unwrap_or_default();
        // One word alone is too common in prose; in backquotes it is a command.
        let mut named: Vec<String> = all
            .into_iter()
            .filter(|s| {
                let s = s.to_lowercase();
                if s.contains(' ') { has_word(&low, &s) } else { low.contains(&format!("`{s} ")) }
            })
            .collect();
        named.truncate(SUBJECTS);
        if named.is_empty() {
            return Attached::default();
        }
        let Ok(known) = self.store.learnings().about("terminal", &named, true, COMPARED) else {
            return Attached::default();
        };
        let told = words(&low);
        let mut given = self.with_messages.lock().unwrap_or_else(PoisonError::into_inner);
        let given = given.entry(session).or_default();
        let fits = |l: &&Learning| {
            let alone = known.iter().filter(|o| o.kind.subject == l.kind.subject).count() == 1;
            let subject = words(&l.kind.subject.to_lowercase());
            let own = words(&format!("{} {}", l.pattern, l.kind.details.join(" ")));
            let shared = own.intersection(&told).any(|w| !subject.contains(w) && w.len() > 2);
            (alone || shared) && !given.contains(&l.id)
        };
        let attached = self.attach(known.iter().filter(fits).cloned());
        given.extend(attached.learnings.iter().map(|l| l.id));
        attached
    }

    /// The learning of a pair; `written`: what a model wrote of it, else it is made by rule. `None`: nothing to learn.
    pub fn of_pair(
        &self,
        pair: &Pair,
        written: Option<WrittenLearning>,
        source: LearningSource,
    ) -> Option<Learning> {
        let (pattern, fix, context, tags) = match written {
            Some(w) => (w.pattern, w.fix, w.context, w.tags),
            None => {
                let (fix, context) = pair.fix_by_rule()?;
                (format!("`{}`", one_line(&pair.failed, 400)), fix, context, Vec::new())
            }
        };
        Some(Learning {
            pattern: one_line(&pattern, PATTERN),
            error: pair.why.clone(),
            fix: one_line(&fix, FIX),
            context: one_line(&context, CONTEXT),
            tags,
            ..Learning::proposed(pair.kind.clone(), source, self.clock.now())
        })
    }

    /// Keeps a learning, as the person's setting says. `None`: it is known already, or nothing is kept. Blocks.
    ///
    /// # Errors
    /// Why it may not be kept.
    pub fn offer(&self, mut learning: Learning, mode: LearningsSetting) -> Result<Option<Learning>, String> {
        if mode == LearningsSetting::Never {
            return Ok(None);
        }
        let kind = &learning.kind.error_type;
        for text in [&learning.pattern, &learning.error, &learning.fix, &learning.context, kind] {
            self.screen(text)?;
        }
        self.screen(&learning.tags.join(" "))?;
        if learning.fix.trim().is_empty() || learning.pattern.trim().is_empty() {
            return Err("pattern or fix is empty".into());
        }
        let kind = &learning.kind;
        let subjects = [kind.subject.clone()];
        let known = self
            .store
            .learnings()
            .about(&kind.tool, &subjects, false, COMPARED)
            .map_err(|e| e.notice().message)?;
        let fix = words(&learning.fix);
        let same = |k: &&Learning| {
            let other = k.state == LearningState::Aside;
            !other && relevance(k, kind, "").fits() && likeness(&words(&k.fix), &fix) >= 0.9
        };
        let same: Vec<&Learning> = known.iter().filter(same).collect();
        if same.iter().any(|k| !has_faded(k) && !is_merged(k)) {
            return Ok(None);
        }
        // The mistake was made again: what has faded is of use once more.
        let faded = same.iter().find(|k| has_faded(k)).copied().cloned();
        if faded.is_none() && !same.is_empty() {
            return Ok(None);
        }
        learning.state = match (mode, &learning.source.taint) {
            // A matcher makes it a rule, and that only the person does.
            (LearningsSetting::Save, taint)
                if *taint != Taint::Person
                    && has_matcher(&format!("{} {}", learning.fix, learning.context)) =>
            {
                LearningState::Proposed
            }
            (LearningsSetting::Save, Taint::Person | Taint::Agent | Taint::ToolOutput) => {
                LearningState::Active
            }
            _ => LearningState::Proposed,
        };
        let stored = match faded {
            Some(faded) => self.store.learnings().learn_again(faded, learning.clone()),
            None => self.store.learnings().add(learning.clone()),
        };
        let (id, new) = stored.wait().map_err(|e| e.notice().message)?;
        learning.id = id;
        Ok(new.then_some(learning))
    }

    /// Keeps what an agent saves by a call. `None`: it is known already. Blocks.
    ///
    /// # Errors
    /// Why it may not be kept.
    pub fn save(&self, saved: SavedLearning, from: &Provenance) -> Result<Option<Learning>, String> {
        let subject = command_subjects(&saved.pattern).into_iter().next_back().unwrap_or_default();
        let kind = failure_kind("terminal", &subject, &saved.error);
        let source = LearningSource {
            session: from.session,
            entry: from.entry,
            agent: from.agent.0.clone(),
            branch: from.branch.clone(),
            taint: from.session.map_or(from.taint, |session| self.taint_of(session, from.taint)),
        };
        let learning = Learning {
            pattern: one_line(&saved.pattern, PATTERN),
            error: one_line(&saved.error, ERROR),
            fix: one_line(&saved.fix, FIX),
            context: one_line(&saved.context, CONTEXT),
            tags: saved.tags.iter().take(TAGS).map(|t| one_line(t, TAG)).collect(),
            ..Learning::proposed(kind, source, self.clock.now())
        };
        self.offer(learning, self.mode())
    }

    /// The first ones within the budget, with the text of each.
    fn attach(&self, found: impl Iterator<Item = Learning>) -> Attached {
        let room = self.room.load(Ordering::Relaxed);
        let mut attached = Attached::default();
        let mut bytes = 0;
        for learning in found {
            let text = note(&learning);
            if bytes + text.len() > room {
                continue;
            }
            bytes += text.len();
            attached.texts.push(text);
            attached.learnings.push(learning);
            if attached.learnings.len() == ATTACHED {
                break;
            }
        }
        attached
    }

    /// Consolidates, at most once a day; how many were changed. It costs nothing until an hour after the last call that asked.
    /// Blocks.
    pub fn consolidate_if_due(&self) -> usize {
        let now = self.clock.now().millis();
        if (0..HOUR).contains(&now.saturating_sub(self.asked_at.load(Ordering::Relaxed))) {
            return 0;
        }
        self.asked_at.store(now, Ordering::Relaxed);
        if !self.store.learnings().consolidation_due(DAY).wait().unwrap_or(false) {
            return 0;
        }
        let Ok(all) = self.store.learnings().list("", None, ALL) else { return 0 };
        let changes = consolidate(&all, self.clock.now());
        self.store.learnings().consolidate(changes).wait().unwrap_or(0)
    }
}

/// What an agent saves by a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedLearning {
    pub pattern: String,
    /// The line of the error; empty: any error of the command.
    pub error: String,
    pub fix: String,
    pub context: String,
    pub tags: Vec<String>,
}

/// What a model wrote of a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenLearning {
    pub pattern: String,
    pub fix: String,
    pub context: String,
    pub tags: Vec<String>,
}

fn bytes_of(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(TOKEN)).unwrap_or(usize::MAX)
}

/// A learning for the model: a note, and no instruction.
pub fn note(l: &Learning) -> String {
    let quiet = |text: &str, most: usize| one_line(text, most).replace(['[', ']'], "'");
    let mut text = format!("[Learning {}: {} failed before", l.id, quiet(&l.pattern, 200));
    if !l.shown_error().is_empty() {
        text.push_str(&format!(" ({})", quiet(l.shown_error(), 120)));
    }
    text.push_str(&format!(". What worked: {}.", quiet(&l.fix, 400)));
    if !l.context.is_empty() {
        text.push_str(&format!(" {}.", quiet(&l.context, 200)));
    }
    text.push_str(" A note of an earlier session: use it only where it fits.]");
    text
}
