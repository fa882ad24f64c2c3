//! Colours for code, worked out on a thread of its own. Until they are there, code is drawn plain.
//!
//! The result names classes, not colours, so it outlives a change of theme. The syntax tables take megabytes: they are
//! loaded by the first job, shared by all highlighters, and freed when the last one has no use for them.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use ratatui::style::{Modifier, Style};
use syntect::dumps::from_uncompressed_data;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::text::line::{Line, Look, Run};
use crate::text::sheet::{Answer, Coloured, Highlight};
use crate::theme::{Role, Theme};

/// Scopes that get a look of their own, most specific first.
pub const CLASSES: &[&str] = &[
    "comment",
    "string",
    "constant.numeric",
    "constant.language",
    "constant.character.escape",
    "constant",
    "keyword.operator",
    "keyword",
    "storage.type",
    "storage",
    "entity.name.function",
    "entity.name.tag",
    "entity.name",
    "entity.other.attribute-name",
    "support.function",
    "support",
    "variable.function",
    "variable.parameter",
    "variable.language",
    "markup.heading",
    "markup.inserted",
    "markup.deleted",
    "invalid",
];

/// Code beyond these is left plain.
const MAX_BYTES: usize = 256 << 10;
const MAX_LINE: usize = 2000;
/// Processor time that one block may cost; the rest stays plain.
const MAX_TIME: Duration = Duration::from_millis(400);
/// Results that are kept.
const KEEP: usize = 128;
/// Blocks that may wait.
const WAIT: usize = 32;

/// The theme's style for a class (1-based, see [`Look`]).
pub(crate) fn style(class: u8, theme: &Theme) -> Style {
    let Some(scope) = CLASSES.get(class as usize - 1) else { return Style::new() };
    let fits = |prefix: &str| {
        scope.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if let Some((_, style)) = theme.syntax.iter().find(|(prefix, _)| fits(prefix)) {
        return *style;
    }
    // A theme without syntax colours: what the roles can say.
    match scope.split('.').next() {
        Some("comment") => theme.style(Role::Dim),
        Some("keyword" | "storage") => Style::new().add_modifier(Modifier::BOLD),
        Some("invalid") => theme.style(Role::Error),
        _ => Style::new(),
    }
}

/// Names a block: its language and its clean lines.
fn key(language: &str, lines: &[Line]) -> u64 {
    let mut h = DefaultHasher::new();
    language.hash(&mut h);
    for line in lines {
        line.text().hash(&mut h);
    }
    h.finish()
}

enum HighlightMsg {
    Colour(HighlightJob),
    /// No code is expected for now: the tables are freed.
    Release,
}

struct HighlightJob {
    key: u64,
    language: String,
    code: Vec<String>,
}

struct HighlightResult {
    key: u64,
    runs: Option<Vec<Vec<Run>>>,
}

enum HighlightState {
    Waiting,
    Ready(Coloured),
    /// Unknown language, too long, or it failed.
    Plain,
}

/// The thread's owner. Dropping it ends the thread with its current block.
#[derive(Default)]
pub struct Highlighter {
    /// Bounded by [`WAIT`]; the worker ends when this end closes.
    jobs: Option<SyncSender<HighlightMsg>>,
    /// As many as there are jobs; read by [`Self::poll`].
    done: Option<Receiver<HighlightResult>>,
    states: HashMap<u64, HighlightState>,
    order: VecDeque<u64>,
    waiting: usize,
    /// The worker may have loaded the tables.
    loaded: bool,
}

impl Highlighter {
    /// Takes in what the worker has finished.
    #[expect(clippy::redundant_clone, reason = "the copy lies elsewhere in memory, which is why it is made")]
    pub fn poll(&mut self) {
        while let Some(done) = self.done.as_ref().and_then(|rx| rx.try_recv().ok()) {
            self.waiting = self.waiting.saturating_sub(1);
            // Copied to exact sizes, and off the memory between the tables, which could not be given back otherwise.
            let state =
                done.runs.map_or(HighlightState::Plain, |r| HighlightState::Ready(Arc::new(r.clone())));
            self.states.insert(done.key, state);
        }
    }

    /// Frees the syntax tables, unless code is being worked on. They are loaded again when needed, by the same thread: in
    /// another one the memory that this one got back could not be used.
    pub fn release(&mut self) {
        if self.loaded
            && self.waiting == 0
            && let Some(jobs) = &self.jobs
        {
            self.loaded = jobs.try_send(HighlightMsg::Release).is_err();
        }
    }

    /// The worker may have loaded the tables.
    #[cfg(test)]
    pub(crate) fn loaded(&self) -> bool {
        self.loaded
    }

    /// Something is being worked on: look again soon.
    pub fn busy(&self) -> bool {
        self.waiting > 0
    }

    fn keep(&mut self, key: u64, state: HighlightState) {
        self.states.insert(key, state);
        self.order.push_back(key);
        if self.order.len() > KEEP
            && let Some(old) = self.order.pop_front()
        {
            self.states.remove(&old);
        }
    }

    fn sender(&mut self) -> Option<&SyncSender<HighlightMsg>> {
        if self.jobs.is_none() {
            let (jobs, inbox) = sync_channel::<HighlightMsg>(WAIT);
            let (outbox, done) = sync_channel::<HighlightResult>(WAIT + 1);
            let worker = std::thread::Builder::new().name("highlight".into());
            worker.spawn(move || work(&inbox, &outbox)).ok()?;
            self.jobs = Some(jobs);
            self.done = Some(done);
        }
        self.jobs.as_ref()
    }
}

impl Highlight for Highlighter {
    /// A block that is not known yet is queued for the worker.
    fn want(&mut self, language: &str, lines: &[Line]) -> Answer {
        let key = key(language, lines);
        match self.states.get(&key) {
            Some(HighlightState::Ready(c)) => return Answer::Ready(Arc::clone(c)),
            Some(HighlightState::Waiting) => return Answer::Later,
            Some(HighlightState::Plain) => return Answer::Plain,
            None => {}
        }
        let bytes: usize = lines.iter().map(|l| l.text().len()).sum();
        if language.is_empty() || bytes > MAX_BYTES || lines.iter().any(|l| l.text().len() > MAX_LINE) {
            return Answer::Plain;
        }
        let job = HighlightJob {
            key,
            language: language.to_owned(),
            code: lines.iter().map(|l| l.text().to_owned()).collect(),
        };
        match self.sender().map(|tx| tx.try_send(HighlightMsg::Colour(job))) {
            Some(Ok(())) => {
                self.waiting += 1;
                self.loaded = true;
                self.keep(key, HighlightState::Waiting);
                Answer::Later
            }
            Some(Err(TrySendError::Full(_))) => Answer::Later,
            Some(Err(TrySendError::Disconnected(_))) | None => Answer::Plain,
        }
    }
}

fn work(inbox: &Receiver<HighlightMsg>, outbox: &SyncSender<HighlightResult>) {
    let mut tables = None;
    while let Ok(message) = inbox.recv() {
        let HighlightMsg::Colour(job) = message else {
            tables = None;
            continue;
        };
        let tables = tables.get_or_insert_with(Syntaxes::shared);
        // A grammar that panics costs its colours, nothing else.
        let runs = catch_unwind(AssertUnwindSafe(|| tables.colour(&job.language, &job.code))).ok().flatten();
        if outbox.send(HighlightResult { key: job.key, runs }).is_err() {
            return;
        }
    }
}

/// The syntax tables of all languages, with what was compiled of them so far.
pub struct Syntaxes(SyntaxSet);

/// For tests: a language whose grammar panics.
#[cfg(test)]
const PANICS: &str = "test-panic";

/// The tables of all languages, with the patterns that the build script has made small.
const TABLES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/syntaxes.bin"));

/// The loaded tables, while they are in use.
static LOADED: Mutex<Weak<Syntaxes>> = Mutex::new(Weak::new());

impl Syntaxes {
    /// The tables, loaded if no one has them. They are freed with the last reference.
    pub fn shared() -> Arc<Self> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.upgrade().unwrap_or_else(|| {
            // Written by the build script, so it can be read; without tables all code is plain.
            let tables = Arc::new(Self(from_uncompressed_data(TABLES).unwrap_or_default()));
            *loaded = Arc::downgrade(&tables);
            tables
        })
    }

    /// Other tables, to compare with.
    #[cfg(test)]
    pub(crate) fn of(tables: SyntaxSet) -> Self {
        Self(tables)
    }

    /// A copy of the tables.
    #[cfg(test)]
    pub(crate) fn to_set(&self) -> SyntaxSet {
        self.0.clone()
    }

    fn find(&self, language: &str) -> Option<&SyntaxReference> {
        #[cfg(test)]
        assert!(language != PANICS, "a grammar panics");
        let word = language.split([',', ' ', '{', ':', '\t']).next().unwrap_or_default().to_lowercase();
        let word = match word.as_str() {
            "" | "text" | "txt" | "plain" | "plaintext" | "output" => return None,
            "console" | "shell" | "shellsession" | "zsh" => "bash",
            "golang" => "go",
            "c++" => "cpp",
            "c#" => "cs",
            other => other,
        };
        self.0.find_syntax_by_token(word)
    }

    /// Runs for every line of `code`; `None` when the language is not known. Beyond 400 ms of processor time the rest
    /// stays plain.
    pub fn colour(&self, language: &str, code: &[String]) -> Option<Vec<Vec<Run>>> {
        self.colour_within(MAX_TIME, language, code)
    }

    /// As [`Self::colour`], with another limit of processor time.
    pub(crate) fn colour_within(
        &self,
        limit: Duration,
        language: &str,
        code: &[String],
    ) -> Option<Vec<Vec<Run>>> {
        static SCOPES: OnceLock<Vec<Scope>> = OnceLock::new();
        let scopes =
            SCOPES.get_or_init(|| CLASSES.iter().map(|c| Scope::new(c).unwrap_or_default()).collect());
        let mut state = ParseState::new(self.find(language)?);
        let mut stack = ScopeStack::new();
        let begun = processor_time();
        let mut all = Vec::with_capacity(code.len());
        let mut line = String::new();
        for text in code {
            line.clear();
            line.push_str(text);
            line.push('\n');
            if processor_time().saturating_sub(begun) > limit {
                all.push(plain_run(text.len()));
                continue;
            }
            let Ok(ops) = state.parse_line(&line, &self.0) else {
                return None;
            };
            let mut runs: Vec<Run> = Vec::new();
            let mut at = 0;
            let mut add = |at: &mut usize, to: usize, stack: &ScopeStack| {
                let to = to.min(text.len());
                if to > *at {
                    let class = classify(stack, scopes);
                    let look = Look::of(Role::Code).class(class);
                    match runs.last_mut() {
                        Some(last) if last.look == look => last.end = to as u32,
                        _ => runs.push(Run { end: to as u32, look }),
                    }
                    *at = to;
                }
            };
            for (offset, op) in ops {
                add(&mut at, offset, &stack);
                stack.apply(&op).ok()?;
            }
            add(&mut at, text.len(), &stack);
            all.push(runs);
        }
        Some(all)
    }
}

/// Processor time of this thread: unlike the wall clock, it stands still while other programs run.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

fn plain_run(len: usize) -> Vec<Run> {
    if len == 0 { Vec::new() } else { vec![Run { end: len as u32, look: Look::of(Role::Code) }] }
}

/// The class of the innermost scope that has one.
fn classify(stack: &ScopeStack, scopes: &[Scope]) -> u8 {
    for scope in stack.as_slice().iter().rev() {
        if let Some(n) = scopes.iter().position(|c| c.is_prefix_of(*scope)) {
            return n as u8 + 1;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::text::Wrap;

    #[test]
    fn rust_keywords_strings_and_comments_are_found() {
        let code = vec!["fn main() { // hi".to_owned(), "    let s = \"x\";".to_owned(), String::new()];
        let runs = Syntaxes::shared().colour_within(Duration::MAX, "rust", &code).unwrap();
        assert_eq!(runs.len(), 3);
        let class_at = |line: usize, byte: u32| {
            let run = runs[line].iter().find(|r| r.end > byte).unwrap();
            if run.look.class == 0 { "" } else { CLASSES[run.look.class as usize - 1] }
        };
        assert_eq!(class_at(0, 13), "comment");
        assert_eq!(class_at(1, 4), "storage.type");
        assert_eq!(class_at(1, 13), "string");
        assert_eq!(runs[0].last().unwrap().end as usize, code[0].len());
    }

    #[test]
    fn unknown_languages_stay_plain() {
        assert!(Syntaxes::shared().colour("no-such-language", &["x".into()]).is_none());
    }

    #[test]
    fn the_worker_answers_and_the_cache_is_bounded() {
        let mut h = Highlighter::default();
        let line = |n: usize| vec![Line::strict(&format!("let x = {n};"), Look::of(Role::Code), Wrap::Hard)];
        let deadline = Instant::now() + Duration::from_secs(60);
        for n in 0..KEEP + 20 {
            let lines = line(n);
            loop {
                h.poll();
                match h.want("rust", &lines) {
                    Answer::Ready(runs) => break assert_eq!(runs.len(), 1),
                    Answer::Plain => panic!("rust is known"),
                    Answer::Later => std::thread::yield_now(),
                }
                assert!(Instant::now() < deadline, "no answer");
            }
        }
        assert!(h.states.len() <= KEEP && !h.busy());
    }

    #[test]
    fn t7_a_grammar_that_panics_costs_its_colours_only() {
        let mut h = Highlighter::default();
        let deadline = Instant::now() + Duration::from_secs(60);
        for (language, plain) in [(PANICS, true), ("rust", false)] {
            let lines = vec![Line::strict("let x = 1;", Look::of(Role::Code), Wrap::Hard)];
            loop {
                h.poll();
                match h.want(language, &lines) {
                    Answer::Later => std::thread::yield_now(),
                    answer => break assert_eq!(matches!(answer, Answer::Plain), plain, "{language}"),
                }
                assert!(Instant::now() < deadline, "no answer");
            }
        }
    }

    #[test]
    fn a_theme_without_colours_still_tells_things_apart() {
        let theme = Theme::default();
        let keyword = CLASSES.iter().position(|c| *c == "keyword").unwrap() as u8 + 1;
        assert!(style(keyword, &theme).add_modifier.contains(Modifier::BOLD));
    }
}
