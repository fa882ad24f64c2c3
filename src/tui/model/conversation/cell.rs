//! The content of a cell: the source of what is drawn, never the drawing.

use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::permission::denied_for_person;
use tiller_protocol::restore::TurnChanges;
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{
    Addition, Entry, EntryBody, EntryId, Notice, Origin, Time, ToolCatalog, ToolInfo, ToolOutcome,
};

/// Bytes of output that a cell keeps; the full text is asked for when it is looked at.
const TAIL: usize = 16 << 10;
/// Bytes of one argument or difference that a cell keeps.
const LONG: usize = 256 << 10;

/// One block of the conversation.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Stays with it.
    pub key: u64,
    /// The entry it is made from; several cells may be of one.
    pub entry: Option<EntryId>,
    /// Entries of the path that it stands for.
    pub entries: u16,
    /// Which turn it belongs to.
    pub turn: i64,
    pub time: Time,
    /// Grows with each change.
    pub rev: u32,
    /// Part of the reply in flight.
    pub open: bool,
    pub body: Body,
}

/// The content of a cell, by its kind.
#[derive(Clone, Debug)]
pub enum Body {
    /// The person's words.
    User {
        text: String,
        origin: Origin,
        /// The numbers of the learnings that were added to it for the model.
        learnings: Vec<i64>,
        /// The text that was sent, where it is not the typed one.
        sent: Option<String>,
    },
    /// The model's words, Markdown.
    Reply {
        text: String,
    },
    /// Its reasoning. `seconds` when it was seen streaming; empty text: the vendor hides it.
    Thinking {
        text: String,
        seconds: Option<f64>,
    },
    Tool(Box<ToolCell>),
    Summary {
        summary: String,
        focus: Option<String>,
        /// Of a compaction: before and after. `None`: of a branch that was left.
        tokens: Option<(u64, u64)>,
    },
    Checkpoint {
        name: String,
    },
    Note {
        text: String,
    },
    /// Entries of the path that are not loaded.
    NotLoaded {
        entries: u64,
    },
    /// A `!` or `!!` line.
    Shell {
        line: String,
        output: TextTail,
        exit: Option<i32>,
        shared: bool,
        /// `None`: it has run.
        run: Option<ShellRun>,
    },
    Notice(Notice),
    /// The label of the demo model's turns.
    Demo,
    /// Why a reply ended early.
    End(ReplyEnd),
    /// The end of a turn.
    Finished(TurnSummary),
}

/// The sums of a turn. Made from its cells; no entry of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnSummary {
    /// From the person's message to the end.
    pub seconds: f64,
    pub calls: u32,
    /// Paths of the files that it changed: from the snapshots, else those that calls report.
    pub files: Vec<String>,
    /// Number of further ones.
    pub more: u64,
    pub added: u32,
    pub removed: u32,
}

impl TurnSummary {
    /// Turns without calls are summed up from so many seconds on.
    const LONG: f64 = 10.0;

    /// Sums up the cells of a turn, from `began` to `ended`. `None`: there is nothing to say.
    pub(super) fn of<'a>(cells: impl Iterator<Item = &'a Cell>, began: Time, ended: Time) -> Option<Self> {
        let seconds = (ended.millis() - began.millis()).max(0) as f64 / 1000.0;
        let mut sum = Self { seconds, ..Self::default() };
        for cell in cells {
            let Body::Tool(t) = &cell.body else { continue };
            sum.calls += 1;
            let calls = t.inner.iter().flat_map(|inner| &inner.calls);
            let own = t.display.iter().flat_map(Display::files);
            for f in own.chain(calls.flat_map(|call| &call.files)) {
                sum.added += f.added;
                sum.removed += f.removed;
                if !sum.files.contains(&f.path) {
                    sum.files.push(f.path.clone());
                }
            }
        }
        (sum.calls > 0 || seconds >= Self::LONG).then_some(sum)
    }

    /// Takes what the snapshots say over what the calls reported. Returns whether anything is different.
    pub(super) fn changed(&mut self, changes: &TurnChanges) -> bool {
        let files = changes.files.iter().map(|f| f.path.clone()).collect();
        let (more, added, removed) = (changes.more, changes.added, changes.removed);
        let new = Self { seconds: self.seconds, calls: self.calls, files, more, added, removed };
        let differs = *self != new;
        *self = new;
        differs
    }
}

/// A `!` or `!!` line that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellRun {
    /// Id that its output events carry.
    pub call_id: String,
    /// It waits for the line before it.
    pub waits: bool,
    /// Since when it runs, or waits.
    pub since: Time,
}

/// Why a reply ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyEnd {
    Interrupted,
    Cut(String),
    MaxTokens,
    Refusal(String),
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolState {
    /// The model still writes it.
    #[default]
    Begun,
    /// Written, not running yet.
    Waiting,
    Running,
    Done(ToolOutcome),
    /// It has no result, and nothing runs any more.
    Lost,
}

/// A tool call with its result.
#[derive(Clone, Debug, Default)]
pub struct ToolCell {
    pub call_id: String,
    pub name: String,
    /// The tool; `None`: it belongs to another program, or no longer exists.
    pub info: Option<ToolInfo>,
    /// The words of the row: `read`, `src/x.rs`. While it is unnamed, the row is made from the arguments.
    pub verb: ToolVerb,
    pub target: String,
    /// Long texts in it are cut.
    pub arguments: Value,
    pub state: ToolState,
    /// Since when it waits for the person; `None`: it does not.
    pub asked: Option<Time>,
    /// When it began, later by the time in which it waited for the person.
    pub started: Option<Time>,
    /// When it last reported output.
    pub heard: Option<Time>,
    /// Its output so far, then its result.
    pub output: TextTail,
    pub display: Option<Display>,
    pub seconds: f64,
    pub result: Option<ResultEntry>,
    /// The calls that it makes: it is a script.
    pub inner: Option<Box<InnerCalls>>,
}

/// The entry of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultEntry {
    pub id: EntryId,
    /// The numbers of the learnings at its end.
    pub learnings: Vec<i64>,
    /// The texts behind what the tool said, each with what it is.
    pub behind: Vec<(Addition, String)>,
}

impl ResultEntry {
    /// Of a stored entry. The learnings are a field of it: text of a result that looks like a learning is none.
    pub(super) fn of(entry: &Entry) -> Self {
        let EntryBody::ToolResult { learnings, added, content, .. } = &entry.body else {
            return Self { id: entry.id, learnings: Vec::new(), behind: Vec::new() };
        };
        let behind = added.behind(content).map(|(what, text)| (what.clone(), text.to_owned())).collect();
        Self { id: entry.id, learnings: learnings.clone(), behind }
    }
}

/// The calls of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InnerCalls {
    /// By their numbers.
    pub calls: Vec<InnerCall>,
    /// How many it may make.
    pub most: u32,
}

impl InnerCalls {
    /// Takes a call in, or its new state. The row of a call that is known from its own entry adds nothing to it.
    fn take(&mut self, mut call: InnerCall, most: u32) {
        self.most = most;
        shorten(&mut call);
        match self.calls.binary_search_by_key(&call.number, |c| c.number) {
            Ok(at) if self.calls[at].decision.is_some() && call == call.row() => {}
            Ok(at) => self.calls[at] = call,
            Err(at) => self.calls.insert(at, call),
        }
    }

    /// True when the entry of a call was taken in.
    fn has_entry(&self, number: u32) -> bool {
        let at = self.calls.binary_search_by_key(&number, |c| c.number);
        at.is_ok_and(|at| self.calls[at].decision.is_some())
    }

    /// Takes in the calls that the result names: there are no others.
    fn settle(&mut self, ended: Self) {
        self.calls.retain(|call| ended.calls.iter().any(|other| other.number == call.number));
        ended.calls.into_iter().for_each(|call| self.take(call, ended.most));
    }
}

/// Differences with their long texts cut, without the results: the viewer reads them.
fn shorten(call: &mut InnerCall) {
    call.output = String::new();
    // Those of a call that is over stand in its entry.
    call.arguments = if call.outcome.is_none() { shortened(&call.arguments) } else { Value::Null };
    call.files.iter_mut().for_each(|file| cut(&mut file.diff, LONG));
}

impl ToolCell {
    /// A call of the tool `name`, of which nothing else is known yet.
    pub(super) fn new(call_id: &str, name: &str, tools: &ToolCatalog) -> Self {
        let info = tools.get(name).cloned();
        Self { call_id: call_id.to_owned(), name: name.to_owned(), info, ..Self::default() }
    }

    /// The numbers of the learnings at the end of its result.
    pub fn learnings(&self) -> &[i64] {
        self.result.as_ref().map_or(&[], |result| &result.learnings)
    }

    /// The texts behind what the tool said, each with what it is.
    pub fn behind(&self) -> &[(Addition, String)] {
        self.result.as_ref().map_or(&[], |result| &result.behind)
    }

    /// Notes that the call began to run.
    pub(super) fn start(&mut self, now: Time, arguments: &Value, verb: &ToolVerb, target: &str) {
        self.verb = verb.clone();
        self.target = target.to_owned();
        self.arguments = shortened(arguments);
        self.state = ToolState::Running;
        self.started = Some(now);
        self.heard = Some(now);
    }

    /// Notes that it waits for the person, or no longer does: that time is none in which it ran.
    pub(super) fn ask(&mut self, now: Time, asks: bool) {
        if asks {
            self.asked.get_or_insert(now);
        } else if let Some(asked) = self.asked.take() {
            let waited = (now.millis() - asked.millis()).max(0);
            let later = |at: Time| Time((at.millis() + waited).min(now.millis()));
            self.started = self.started.map(later);
            self.heard = self.heard.map(later);
        }
    }

    /// Takes output of the running call.
    pub(super) fn progress(&mut self, now: Time, text: &str) {
        if !matches!(self.state, ToolState::Done(_)) {
            self.state = ToolState::Running;
            self.started.get_or_insert(now);
            self.heard = Some(now);
            self.output.push(text);
        }
    }

    /// Takes a call that this one makes.
    pub(super) fn makes(&mut self, now: Time, call: &InnerCall, most: u32) {
        if !matches!(self.state, ToolState::Done(_)) {
            self.heard = Some(now);
            self.inner.get_or_insert_default().take(call.clone(), most);
        }
    }

    /// Takes the entry of a call that this one made. `false`: it was taken before.
    pub(super) fn made(&mut self, call: &InnerCall, most: u32) -> bool {
        let inner = self.inner.get_or_insert_default();
        let new = !inner.has_entry(call.number);
        if new {
            inner.take(call.clone(), most);
        }
        new
    }

    /// Takes calls in that stand further up on the path than what is known.
    pub(super) fn made_before(&mut self, earlier: &InnerCalls) {
        let inner = self.inner.get_or_insert_default();
        let most = earlier.most.max(inner.most);
        for call in &earlier.calls {
            if !inner.has_entry(call.number) {
                inner.take(call.clone(), most);
            }
        }
    }

    /// Takes over a result that was built on its own.
    pub(super) fn take_result(&mut self, result: Self) {
        self.state = result.state;
        self.asked = None;
        self.output = result.output;
        self.display = result.display;
        self.seconds = result.seconds;
        self.result = result.result;
        self.take_inner(result.inner);
    }

    /// Takes the calls in that a result names.
    pub(super) fn take_inner(&mut self, ended: Option<Box<InnerCalls>>) {
        match (&mut self.inner, ended) {
            (Some(inner), Some(ended)) => inner.settle(*ended),
            (inner @ None, ended) => *inner = ended,
            (Some(_), None) => {}
        }
    }

    /// Notes that the call ended. The result, without what the tool did not say, replaces the live tail.
    pub(super) fn finish(
        &mut self,
        outcome: ToolOutcome,
        output: &str,
        seconds: f64,
        display: Option<&Display>,
    ) {
        self.state = ToolState::Done(outcome);
        self.asked = None;
        self.seconds = seconds;
        let output = match outcome {
            ToolOutcome::Denied => denied_for_person(output),
            _ => output.into(),
        };
        self.output = TextTail::of(&output);
        // What came before a refusal does not say why.
        let denied = outcome == ToolOutcome::Denied;
        self.display = display.map(|d| match d {
            Display::Diff { files } => {
                let mut files = files.clone();
                for f in &mut files {
                    cut(&mut f.diff, LONG);
                }
                Display::Diff { files }
            }
            Display::Output { tail, exit, full } => {
                if !denied {
                    self.output = TextTail::of(tail);
                }
                Display::Output { tail: String::new(), exit: *exit, full: full.clone() }
            }
            Display::Calls { calls, most, tail } => {
                if !denied {
                    self.output = TextTail::of(tail);
                }
                let mut inner = InnerCalls::default();
                calls.iter().for_each(|call| inner.take(call.clone(), *most));
                self.take_inner(Some(Box::new(inner)));
                self.inner.take_if(|inner| inner.calls.is_empty());
                Display::Calls { calls: Vec::new(), most: *most, tail: String::new() }
            }
            Display::Measure { .. } => d.clone(),
        });
    }
}

/// Arguments with their long texts cut: a written file need not lie in memory twice.
pub(super) fn shortened(v: &Value) -> Value {
    const TEXT: usize = 2 << 10;
    match v {
        Value::String(s) if s.len() > TEXT => {
            let mut s = s.clone();
            cut(&mut s, TEXT);
            Value::String(s)
        }
        Value::Array(a) => Value::Array(a.iter().map(shortened).collect()),
        Value::Object(o) => Value::Object(o.iter().map(|(k, v)| (k.clone(), shortened(v))).collect()),
        other => other.clone(),
    }
}

pub(super) fn cut(s: &mut String, max: usize) {
    if s.len() > max {
        let at = s.floor_char_boundary(max);
        s.truncate(at);
        s.push_str(tiller_text::sign::cut(false));
    }
}

/// The last part of a text that may be long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTail {
    text: String,
    /// Lines that were dropped before `text`.
    dropped: u64,
}

impl TextTail {
    /// The tail of `text`.
    pub fn of(text: &str) -> Self {
        let mut tail = Self::default();
        tail.push(text);
        tail
    }

    /// Adds to the end; amortised constant time per byte.
    pub fn push(&mut self, text: &str) {
        if text.len() > 2 * TAIL {
            let at = text.floor_char_boundary(text.len() - 2 * TAIL);
            self.dropped += (self.text.matches('\n').count() + text[..at].matches('\n').count()) as u64;
            self.text.clear();
            self.text.push_str(&text[at..]);
        } else {
            self.text.push_str(text);
        }
        if self.text.len() > 2 * TAIL {
            let from = self.text.floor_char_boundary(self.text.len() - TAIL);
            let at = self.text[from..].find('\n').map_or(from, |n| from + n + 1);
            self.dropped += self.text[..at].matches('\n').count() as u64;
            self.text.drain(..at);
        }
    }

    /// Returns what is kept.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many lines came before it.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}
