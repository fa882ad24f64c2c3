//! The conversation: cells in the order of the path, the reply in flight at the end.
//!
//! A cell has a key that stays with it for as long as it is the same thing: when the finished entry
//! replaces the streamed reply, when pages come in above, when a snapshot rebuilds everything. Scroll
//! positions, folds and layouts hang on keys. What is not near is forgotten: [`Conversation::above`] says
//! how many entries lie before the first cell, and pages bring them back. The end of the path is always
//! there. Where the person reads far above it, that part is there as well, with a row for the entries in
//! between that are not.

mod build;
mod cell;
mod change;
pub(crate) mod learned;
mod lines;
mod message_lines;
mod parts;
#[cfg(test)]
pub(crate) mod script;
mod stream;

use std::cell::Cell as Slot;
use std::collections::{HashMap, VecDeque};

use tiller_protocol::event::{AskEvent, ReplyEvent, StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::restore::TurnChanges;
use tiller_protocol::{
    Ask, AskBody, AskId, Entry, EntryBody, EntryId, Event, EventBody, ModelRef, Notice, NoticeKind, Receipt,
    SessionId, Time, ToolCatalog,
};

pub use cell::{
    Body, Cell, InnerCalls, ReplyEnd, ResultEntry, ShellRun, TextTail, ToolCell, ToolState, TurnSummary,
};
pub use change::Change;

/// Cells that are kept, wherever the person reads.
pub const KEEP: usize = 4000;
/// How far over that it may grow before some go.
const SLACK: usize = 500;

/// The first entry that is loaded; it can be without a cell.
#[derive(Default)]
struct FirstEntry {
    id: Option<EntryId>,
    /// The entry before it, with which an earlier page must end. `None`: any page fits.
    parent: Option<EntryId>,
}

impl FirstEntry {
    /// The first of these entries.
    fn of(entries: &[Entry]) -> Self {
        let first = entries.first();
        Self { id: first.map(|e| e.id), parent: first.and_then(|e| e.parent) }
    }
}

/// The part that the person reads. Set by the panel.
#[derive(Default)]
pub struct Reading {
    /// The oldest cell that is on the screen, or `None` when the end is: what is far from it may go. Set when it measures.
    pub hold: Slot<Option<u64>>,
    /// Other parts are being asked for, or text is being selected: nothing is forgotten meanwhile.
    pub keep: Slot<bool>,
}

/// The cells of one session's path, and the reply that is being written.
#[derive(Default)]
pub struct Conversation {
    cells: VecDeque<Cell>,
    next_key: u64,
    session: Option<SessionId>,
    /// Entries of the path before the cells of its end.
    earlier: u64,
    first: FirstEntry,
    /// The entries that are not loaded between a part of the path further up, which the person reads, and its end.
    gap: Option<parts::Gap>,
    /// Number of the current turn; pages count down from the first.
    turn: i64,
    first_turn: i64,
    model: ModelRef,
    /// When the turn that runs began; `None`: no turn runs.
    running: Option<Time>,
    /// Shell lines that have not ended, in the order in which they were typed.
    lines: Vec<String>,
    /// Calls that wait for the person.
    asks: HashMap<AskId, String>,
    /// Grows when cells were rebuilt or removed, not when they grew.
    epoch: u64,
    /// The tools of this program, for the rows of calls.
    tools: ToolCatalog,
    /// The part that the person reads, which is not forgotten.
    pub reading: Reading,
}

impl Conversation {
    /// An empty one. `tools`: those of this program.
    pub(crate) fn new(tools: ToolCatalog) -> Self {
        Self { tools, ..Self::default() }
    }

    /// The cells, oldest first.
    pub fn cells(&self) -> &VecDeque<Cell> {
        &self.cells
    }

    /// Where the cell with this key stands. Most look-ups are near the end.
    pub fn find(&self, key: u64) -> Option<usize> {
        self.cells.iter().rposition(|c| c.key == key)
    }

    /// The cell of a tool call.
    pub fn tool(&self, call_id: &str) -> Option<&ToolCell> {
        self.cells.iter().rev().find_map(|c| match &c.body {
            Body::Tool(t) if t.call_id == call_id => Some(t.as_ref()),
            _ => None,
        })
    }

    /// How many entries of the path lie before the cells of its end.
    pub fn earlier(&self) -> u64 {
        self.earlier
    }

    /// The first entry of the loaded end, to ask for what is before it; `None` when everything is here.
    pub fn page_before(&self) -> Option<EntryId> {
        if self.earlier == 0 { None } else { self.first.id.or_else(|| self.end().find_map(|c| c.entry)) }
    }

    /// The turn that runs, or ran last.
    pub fn turn(&self) -> i64 {
        self.turn
    }

    /// The turn that runs, or ran last, has changed files: there is something to review.
    pub fn last_turn_changed_files(&self) -> bool {
        let changed = |c: &Cell| match &c.body {
            Body::Finished(sum) => !sum.files.is_empty(),
            Body::Tool(t) => {
                let inner = t.inner.iter().flat_map(|inner| &inner.calls);
                t.display.as_ref().is_some_and(|d| !d.files().is_empty())
                    || inner.flat_map(|c| &c.files).count() > 0
            }
            _ => false,
        };
        self.cells.iter().rev().take_while(|c| c.turn == self.turn).any(changed)
    }

    pub fn running(&self) -> bool {
        self.running.is_some()
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes one event of its agent's in.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            EventBody::Turn(e) => self.turn_event(event.time, e),
            EventBody::Tool(e) => self.tool_event(event.time, e),
            EventBody::Ask(e) => self.ask_event(event.time, e),
            EventBody::State(StateEvent::ModelChanged { model, .. }) => self.model = model.clone(),
            EventBody::State(StateEvent::Receipt { receipt }) => {
                // What waits is to be seen in the queue.
                let said = match receipt {
                    Receipt::Queued => return,
                    Receipt::Delivered { step } => format!("Your message was delivered at step {step}"),
                    Receipt::Missed { why } => format!("Your message was not read: {why}"),
                };
                self.notice(event.time, &Notice::new(NoticeKind::Info, said));
            }
            EventBody::State(StateEvent::TurnChanged { changes }) => self.turns_changed([changes.as_ref()]),
            EventBody::State(_) => {}
            EventBody::Reply(e) => match e.as_ref() {
                ReplyEvent::SnapshotReply { snapshot } => {
                    self.rebuild(snapshot);
                    self.turns_changed(&snapshot.turns);
                }
                ReplyEvent::PageReply { entries, earlier, turns } => {
                    self.page(entries, *earlier);
                    self.turns_changed(turns);
                }
                ReplyEvent::PathPartReply { before, at, entries, earlier, later, next, turns } => {
                    let counts = parts::Counts { earlier: *earlier, later: *later, next: *next };
                    self.part(*before, *at, entries, counts);
                    self.turns_changed(turns);
                }
                _ => {}
            },
        }
        self.trim();
    }

    fn turn_event(&mut self, now: Time, e: &TurnEvent) {
        match e {
            TurnEvent::SessionStarted { model, .. } => self.model = model.clone(),
            TurnEvent::TurnStarted {} => {
                self.running = Some(now);
            }
            TurnEvent::UserMessage { node, .. } | TurnEvent::EntryAdded { node } => self.entry(node),
            TurnEvent::AssistantMessage { node, .. } => self.assistant(node),
            TurnEvent::TextDelta { text } => self.text_delta(now, text),
            TurnEvent::ThinkingDelta { text } => self.thinking_delta(now, text),
            TurnEvent::ToolCallBegun { name } => self.call_begun(now, name),
            TurnEvent::Retrying { discard: true, .. } => self.discard_open(),
            TurnEvent::TurnFinished { error, .. } => {
                self.close_open();
                if let Some(notice) = error {
                    self.notice(now, notice);
                }
                self.turn_finished(now);
            }
            TurnEvent::Awaiting { .. }
            | TurnEvent::Retrying { .. }
            | TurnEvent::RetryEnded {}
            | TurnEvent::Usage { .. }
            | TurnEvent::Compacted { .. } => {}
        }
    }

    fn tool_event(&mut self, now: Time, e: &ToolEvent) {
        match e {
            ToolEvent::ToolStarted { call_id, name, arguments, verb, target } => {
                self.with_tool(now, call_id, name, |t| {
                    t.start(now, arguments, verb, target);
                });
            }
            ToolEvent::ToolProgress { call_id, text } => {
                if !self.shell_said(call_id, text) {
                    self.with_tool(now, call_id, "", |t| t.progress(now, text));
                }
            }
            ToolEvent::InnerCall { call_id, call, most } => {
                self.with_tool(now, call_id, "", |t| t.makes(now, call, *most));
            }
            ToolEvent::ToolFinished { call_id, name, outcome, output, seconds, display, node, .. } => {
                let own = node.body.own_text();
                let said = own.as_deref().unwrap_or(output);
                let key = self.with_tool(now, call_id, name, |t| {
                    t.finish(*outcome, said, *seconds, display.as_ref());
                    t.result = Some(ResultEntry::of(node));
                });
                if let Some(cell) = key.and_then(|k| self.find(k)).and_then(|n| self.cells.get_mut(n)) {
                    cell.entries += 1;
                    // Orphans of a lost call still belong somewhere on the path.
                    cell.entry.get_or_insert(node.id);
                }
            }
            ToolEvent::ShellStarted { line } => self.shell_started(now, line),
            ToolEvent::ShellLine { line, output, exit, shared, call_id } => {
                let body = Body::Shell {
                    line: line.clone(),
                    output: TextTail::of(output),
                    exit: *exit,
                    shared: *shared,
                    run: None,
                };
                self.shell_ended(now, call_id, body);
            }
        }
    }

    fn ask_event(&mut self, now: Time, e: &AskEvent) {
        let (id, asking) = match e {
            AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask } => {
                let Some(call) = self.call_of(ask) else { return };
                self.asks.insert(ask.id, call);
                (ask.id, true)
            }
            AskEvent::PermissionDecided { id: Some(id), .. } | AskEvent::QuestionAnswered { id, .. } => {
                (*id, false)
            }
            AskEvent::PermissionDecided { id: None, .. } => return,
        };
        let call = if asking { self.asks.get(&id).cloned() } else { self.asks.remove(&id) };
        if let Some(call) = call {
            // Another question about it may still be open.
            let asking = asking || self.asks.values().any(|other| *other == call);
            self.set_asking(now, &call, asking);
        }
    }

    /// The call that an open question is about; `None`: none, or it is not known.
    pub(crate) fn asking_call(&self, id: AskId) -> Option<&str> {
        self.asks.get(&id).map(String::as_str)
    }

    /// The call that a question is about. A call that runs already asks without its number: it is the only one of its tool that
    /// runs. `None`: it is not known.
    fn call_of(&self, ask: &Ask) -> Option<String> {
        if let Some(call) = ask.call.as_ref().or_else(|| self.asks.get(&ask.id)) {
            return Some(call.clone());
        }
        let AskBody::Permission(asked) = &ask.body else { return None };
        let mut running = self.cells.iter().filter_map(|cell| match &cell.body {
            Body::Tool(t) if t.state == ToolState::Running && t.name == asked.tool => Some(&t.call_id),
            _ => None,
        });
        let first = running.next()?;
        running.next().is_none().then(|| first.clone())
    }

    fn set_asking(&mut self, now: Time, call: &str, asking: bool) {
        for cell in self.cells.iter_mut().rev() {
            if let Body::Tool(t) = &mut cell.body
                && t.call_id == call
            {
                t.ask(now, asking);
                cell.rev += 1;
                return;
            }
        }
    }

    /// Adds a cell at the end.
    fn push(&mut self, time: Time, body: Body) -> u64 {
        let key = self.fresh_key();
        self.cells.push_back(Cell {
            key,
            entry: None,
            entries: 0,
            turn: self.turn,
            time,
            rev: 0,
            open: false,
            body,
        });
        key
    }

    fn fresh_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }

    /// Gives the ends of turns the files and figures that the states before and after them have.
    fn turns_changed<'a>(&mut self, turns: impl IntoIterator<Item = &'a TurnChanges>) {
        let by_entry: HashMap<EntryId, &TurnChanges> = turns.into_iter().map(|t| (t.turn, t)).collect();
        if by_entry.is_empty() {
            return;
        }
        let begins = |c: &Cell| Some((c.turn, *by_entry.get(&c.entry?)?));
        let by_turn: HashMap<i64, &TurnChanges> = self.cells.iter().filter_map(begins).collect();
        for cell in &mut self.cells {
            if let Body::Finished(sum) = &mut cell.body
                && let Some(changes) = by_turn.get(&cell.turn)
                && sum.changed(changes)
            {
                cell.rev += 1;
            }
        }
    }

    /// Sums up the turn that has ended.
    fn turn_finished(&mut self, now: Time) {
        let Some(began) = self.running.take() else { return };
        let turn = self.turn;
        let of_it = |c: &&Cell| c.turn == turn && !matches!(c.body, Body::Finished(_));
        let sum = TurnSummary::of(self.cells.iter().rev().take_while(of_it), began, now);
        if let Some(sum) = sum {
            self.push(now, Body::Finished(sum));
        }
    }

    fn notice(&mut self, now: Time, notice: &Notice) {
        self.push(now, Body::Notice(notice.clone()));
    }

    /// Entries that came as events.
    fn entry(&mut self, node: &Entry) {
        if self.cells.iter().rev().take(64).any(|c| c.entry == Some(node.id)) {
            return; // a snapshot had it already
        }
        // The output of a shell line is on the screen already: this is the stored entry.
        if let Some(Body::Shell { line, shared, .. }) = build::shell(&node.body)
            && let Some(cell) = self.cells.iter_mut().rev().find(|c| {
                let same =
                    matches!(&c.body, Body::Shell { line: l, shared: s, run: None, .. } if *l == line && *s == shared);
                c.entry.is_none() && same
            })
        {
            cell.entry = Some(node.id);
            cell.entries = 1;
            return;
        }
        if let EntryBody::InnerCall { of, call, most, .. } = &node.body {
            let mut new = false;
            let key = self.with_tool(node.time, of, "execute_code", |t| new = t.made(call, *most));
            if let Some(cell) = key.and_then(|k| self.find(k)).and_then(|n| self.cells.get_mut(n)) {
                cell.entries += u16::from(new);
                cell.entry.get_or_insert(node.id);
            }
            return;
        }
        self.close_open();
        let lines = message_lines::first_of(self.cells.iter(), node);
        // They began its turn.
        let turn = self.turn - i64::from(lines.is_some());
        let mut built = build::Builder::new(turn, &self.model, true, &self.tools);
        built.entry(node);
        self.append(built);
        if let Some(first) = lines {
            message_lines::put_above(self.cells.make_contiguous(), first);
            self.epoch += 1;
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
