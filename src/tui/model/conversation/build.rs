//! Entries to cells: snapshots, pages, finished replies.

use std::collections::HashMap;
use tiller_protocol::ShellRecord;
use tiller_protocol::tool::InnerCall;

use tiller_protocol::{
    Block, Entry, EntryBody, EntryId, ModelRef, Origin, Part, Snapshot, StopReason, Time, ToolCatalog,
    ToolOutcome, ToolVerb,
};

use super::cell::{ResultEntry, shortened};
use super::message_lines;
use super::{Body, Cell, Conversation, FirstEntry, ReplyEnd, TextTail, ToolCell, ToolState, TurnSummary};

/// A result whose call is not (yet) known here.
pub(super) struct UnmatchedResult {
    entry: EntryId,
    time: Time,
    call_id: String,
    name: String,
    tool: Box<ToolCell>,
}

/// Builds cells from entries. Keys are assigned later.
pub(super) struct Builder {
    pub(super) cells: Vec<Cell>,
    pub(super) results: Vec<UnmatchedResult>,
    pub(super) turn: i64,
    demo: bool,
    /// Calls may be known where the cells go to: results without a call are kept aside.
    live: bool,
    tools: ToolCatalog,
    /// Time of the last entry.
    last: Time,
}

impl Builder {
    pub(super) fn new(turn: i64, model: &ModelRef, live: bool, tools: &ToolCatalog) -> Self {
        let tools = tools.clone();
        let demo = is_demo(model);
        Self { cells: Vec::new(), results: Vec::new(), turn, demo, live, tools, last: Time(0) }
    }

    fn add(&mut self, node: &Entry, body: Body) {
        let first = self.cells.last().is_none_or(|c| c.entry != Some(node.id));
        self.cells.push(Cell {
            key: 0,
            entry: Some(node.id),
            entries: u16::from(first),
            turn: self.turn,
            time: node.time,
            rev: 0,
            open: false,
            body,
        });
    }

    /// Sums up the turn that ends here, when it began here too.
    pub(super) fn turn_finished(&mut self) {
        let turn = self.turn;
        let from = self.cells.iter().rposition(|c| c.turn != turn).map_or(0, |n| n + 1);
        let Some(first) = self.cells.get(from).filter(|c| matches!(c.body, Body::User { .. })) else {
            return;
        };
        let Some(sum) = TurnSummary::of(self.cells[from..].iter(), first.time, self.last) else { return };
        self.cells.push(Cell {
            key: 0,
            entry: None,
            entries: 0,
            turn,
            time: self.last,
            rev: 0,
            open: false,
            body: Body::Finished(sum),
        });
    }

    /// Adds what `node` shows.
    pub(super) fn entry(&mut self, node: &Entry) {
        let prompt = matches!(
            &node.body,
            EntryBody::User { origin: Origin::Prompt | Origin::Task | Origin::Shell, .. }
        );
        let lines = message_lines::first_of(self.cells.iter(), node);
        let first_line = matches!(&node.body, EntryBody::ToolResult { call_id, .. }
            if !self.live && message_lines::begins(self.cells.iter(), call_id));
        if !self.live && ((prompt && lines.is_none()) || first_line) {
            self.turn_finished();
        }
        self.turn += i64::from(first_line);
        self.last = node.time;
        if let Some(body) = shell(&node.body) {
            self.turn += i64::from(matches!(node.body, EntryBody::User { .. }));
            return self.add(node, body);
        }
        match &node.body {
            EntryBody::Prefix { .. } => {}
            EntryBody::User { message, origin, content, learnings, .. } => {
                if prompt && lines.is_none() {
                    self.turn += 1;
                }
                let mut text = message.text.clone();
                if text.is_empty() {
                    text = words(content);
                }
                let sent = message_lines::sent(&node.body);
                self.add(node, Body::User { text, origin: *origin, learnings: learnings.clone(), sent });
                if let Some(first) = lines {
                    message_lines::put_above(&mut self.cells, first);
                }
            }
            EntryBody::Assistant { blocks, stop, model, .. } => {
                self.demo = is_demo(model);
                self.blocks(node, blocks, stop);
            }
            EntryBody::ToolResult { call_id, name, outcome, content, display, seconds, added, .. } => {
                let mut tool = ToolCell::new(call_id, name, &self.tools);
                if let Some(arguments) = node.body.message_call() {
                    tool.arguments = shortened(&arguments);
                }
                tool.finish(*outcome, &words(added.own(content)), *seconds, display.as_ref());
                tool.result = Some(ResultEntry::of(node));
                self.results.push(UnmatchedResult {
                    entry: node.id,
                    time: node.time,
                    call_id: call_id.clone(),
                    name: name.clone(),
                    tool: Box::new(tool),
                });
                self.join();
            }
            EntryBody::InnerCall { of, call, most, .. } => self.inner(node, of, call, *most),
            EntryBody::Compaction { summary, focus, tokens_before, tokens_after, .. } => self.add(
                node,
                Body::Summary {
                    summary: summary.clone(),
                    focus: focus.clone(),
                    tokens: Some((*tokens_before, *tokens_after)),
                },
            ),
            EntryBody::BranchSummary { summary, focus, .. } => {
                let (summary, focus) = (summary.clone(), focus.clone());
                self.add(node, Body::Summary { summary, focus, tokens: None });
            }
            EntryBody::Checkpoint { name } => self.add(node, Body::Checkpoint { name: name.clone() }),
            EntryBody::Note { text } => self.add(node, Body::Note { text: text.clone() }),
        }
    }

    /// A call of a script: below the row of the script, whose reply may stand further up.
    fn inner(&mut self, node: &Entry, of: &str, call: &InnerCall, most: u32) {
        let known = |c: &Cell| matches!(&c.body, Body::Tool(t) if t.call_id == of);
        if !self.cells.iter().any(known) {
            let mut tool = ToolCell::new(of, "execute_code", &self.tools);
            tool.verb = ToolVerb::Script;
            tool.state = ToolState::Running;
            self.add(node, Body::Tool(Box::new(tool)));
            if let Some(cell) = self.cells.last_mut() {
                cell.entries = 0;
            }
        }
        let Some(cell) = self.cells.iter_mut().rev().find(|c| known(c)) else { return };
        if let Body::Tool(tool) = &mut cell.body
            && tool.made(call, most)
        {
            cell.entries += 1;
            cell.rev += 1;
        }
    }

    fn blocks(&mut self, node: &Entry, blocks: &[Block], stop: &StopReason) {
        let labelled = |c: &Cell| c.turn == self.turn && matches!(c.body, Body::Demo);
        if self.demo && !self.cells.iter().rev().any(labelled) {
            self.add(node, Body::Demo);
        }
        for block in blocks {
            if let Some(body) = block_body(block, &self.tools) {
                self.add(node, body);
            }
        }
        if let Some(end) = end_of(stop) {
            self.add(node, Body::End(end));
        }
    }

    /// Gives results to their calls. Those without a call become rows of their own.
    fn join(&mut self) {
        for r in std::mem::take(&mut self.results) {
            let call = self.cells.iter_mut().rev().find_map(|c| match &mut c.body {
                Body::Tool(t) if t.call_id == r.call_id => Some((&mut c.entries, &mut c.rev, t)),
                _ => None,
            });
            match call {
                Some((entries, rev, tool)) => {
                    *entries += 1;
                    *rev += 1;
                    tool.take_result(*r.tool);
                }
                None if !self.live => self.cells.push(Cell {
                    key: 0,
                    entry: Some(r.entry),
                    entries: 1,
                    turn: self.turn,
                    time: r.time,
                    rev: 0,
                    open: false,
                    body: Body::Tool(r.tool),
                }),
                None => self.results.push(r),
            }
        }
    }
}

/// A stored `!` or `!!` line, as it was shown when it ran; `None`: it is something else.
pub(super) fn shell(body: &EntryBody) -> Option<Body> {
    let ShellRecord { line, output, shared } = ShellRecord::read(body)?;
    Some(Body::Shell { line, output: TextTail::of(&output), exit: None, shared, run: None })
}

fn is_demo(model: &ModelRef) -> bool {
    model.is_demo()
}

fn words(content: &[Part]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .map(|p| match p {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "[image]",
        })
        .collect();
    texts.join("\n")
}

/// Returns what a block of a reply shows; `None`: nothing.
pub(super) fn block_body(block: &Block, tools: &ToolCatalog) -> Option<Body> {
    Some(match block {
        Block::Text { text } if text.trim().is_empty() => return None,
        Block::Text { text } => Body::Reply { text: text.clone() },
        Block::Thinking { text, .. } => Body::Thinking { text: text.clone(), seconds: None },
        Block::Redacted { .. } => Body::Thinking { text: String::new(), seconds: None },
        Block::ToolCall(call) => Body::Tool(Box::new(ToolCell {
            arguments: shortened(&call.arguments),
            state: ToolState::Waiting,
            ..ToolCell::new(&call.id, &call.name, tools)
        })),
        Block::Unknown { provider, .. } => {
            Body::Note { text: format!("a {provider} block of an unknown kind (kept)") }
        }
    })
}

fn end_of(stop: &StopReason) -> Option<ReplyEnd> {
    Some(match stop {
        StopReason::EndTurn | StopReason::ToolUse => return None,
        StopReason::MaxTokens => ReplyEnd::MaxTokens,
        StopReason::Refusal(why) => ReplyEnd::Refusal(why.clone()),
        StopReason::Interrupted => ReplyEnd::Interrupted,
        StopReason::Cut(why) => ReplyEnd::Cut(why.clone()),
    })
}

impl Conversation {
    /// Adds built cells at the end.
    pub(super) fn append(&mut self, built: Builder) {
        self.turn = built.turn;
        for mut cell in built.cells {
            cell.key = self.fresh_key();
            self.cells.push_back(cell);
        }
        for r in built.results {
            let name = r.name.clone();
            let key = self.with_tool(r.time, &r.call_id, &name, |t| t.take_result(*r.tool));
            if let Some(cell) = key.and_then(|k| self.find(k)).and_then(|n| self.cells.get_mut(n)) {
                cell.entries += 1;
                cell.entry.get_or_insert(r.entry);
            }
        }
    }

    /// The finished reply takes the place of the streamed one.
    pub(super) fn assistant(&mut self, node: &Entry) {
        if self.cells.iter().rev().take(64).any(|c| c.entry == Some(node.id)) {
            return;
        }
        let (at, mut open) = self.take_open();
        let mut built = Builder::new(self.turn, &self.model, true, &self.tools);
        // The label was drawn when the first delta came.
        let labelled = self.cells.iter().rev().any(|c| c.turn == self.turn && matches!(c.body, Body::Demo));
        built.entry(node);
        let mut cells: Vec<Cell> = Vec::new();
        for mut cell in built.cells {
            if labelled && matches!(cell.body, Body::Demo) {
                continue;
            }
            // A call that already runs has its row.
            if let Body::Tool(t) = &cell.body
                && let Some(n) = self
                    .cells
                    .iter()
                    .rposition(|c| matches!(&c.body, Body::Tool(o) if o.call_id == t.call_id))
            {
                let known = &mut self.cells[n];
                known.entry = Some(node.id);
                continue;
            }
            match open.iter().position(|o| same_kind(&o.body, &cell.body)) {
                Some(n) => adopt(&mut cell, open.remove(n)),
                None => cell.key = self.fresh_key(),
            }
            cells.push(cell);
        }
        if let Some(first) = cells.first_mut() {
            first.entries = first.entries.max(1);
        }
        for (n, cell) in cells.into_iter().enumerate() {
            self.cells.insert(at + n, cell);
        }
    }

    /// Takes the streamed cells out: where the first of them stood, and what they are.
    fn take_open(&mut self) -> (usize, Vec<Cell>) {
        let near = self.cells.iter().enumerate().rev().take(1024);
        let Some(from) = near.filter(|(_, c)| c.open).map(|(n, _)| n).min() else {
            return (self.cells.len(), Vec::new());
        };
        let (open, others): (Vec<Cell>, Vec<Cell>) = self.cells.drain(from..).partition(|c| c.open);
        self.cells.extend(others);
        (from, open)
    }

    /// Rebuilds all cells from a snapshot. Entries that stay keep their keys.
    pub(super) fn rebuild(&mut self, s: &Snapshot) {
        let mut keys: HashMap<(EntryId, u16), (u64, u32, Body)> = HashMap::new();
        if self.session == Some(s.session.id) {
            let mut count: HashMap<EntryId, u16> = HashMap::new();
            for c in self.cells.drain(..) {
                if let Some(entry) = c.entry {
                    let n = count.entry(entry).or_default();
                    keys.insert((entry, *n), (c.key, c.rev, c.body));
                    *n += 1;
                }
            }
        }
        self.cells.clear();
        self.lines.clear();
        self.session = Some(s.session.id);
        self.model = s.model.clone();
        self.earlier = s.earlier;
        self.first = FirstEntry::of(&s.entries);
        self.gap = None;
        self.turn = 0;
        self.first_turn = 0;
        self.epoch += 1;
        let mut built = Builder::new(0, &self.model, false, &self.tools);
        for node in &s.entries {
            built.entry(node);
        }
        if !s.running {
            built.turn_finished();
        }
        self.turn = built.turn;
        let asked = built.cells.iter().rfind(|c| matches!(c.body, Body::User { .. }));
        self.running = s.running.then(|| asked.map_or(s.session.used, |c| c.time));
        let mut count: HashMap<EntryId, u16> = HashMap::new();
        for mut cell in built.cells {
            let known = cell.entry.and_then(|entry| {
                let n = count.entry(entry).or_default();
                *n += 1;
                keys.remove(&(entry, *n - 1))
            });
            match known {
                Some((key, rev, body)) => {
                    cell.key = key;
                    cell.rev = rev + u32::from(!same_text(&body, &cell.body));
                }
                None => cell.key = self.fresh_key(),
            }
            self.cells.push_back(cell);
        }
        for line in &s.shell_lines {
            self.shell_started(s.session.used, line);
        }
        for block in &s.partial {
            if let Some(body) = block_body(block, &self.tools) {
                self.push(s.session.used, body);
                if let Some(c) = self.cells.back_mut() {
                    c.open = true;
                }
            }
        }
        if !s.running {
            self.lose_calls();
        }
        self.asks.clear();
        for ask in &s.asks {
            if let Some(call) = self.call_of(ask) {
                self.set_asking(s.session.used, &call, true);
                self.asks.insert(ask.id, call);
            }
        }
    }

    /// Calls without a result, after the process that ran them is gone.
    fn lose_calls(&mut self) {
        for cell in &mut self.cells {
            if let Body::Tool(t) = &mut cell.body
                && matches!(t.state, ToolState::Begun | ToolState::Waiting | ToolState::Running)
            {
                t.state = ToolState::Lost;
            }
        }
    }
}

/// A finished cell takes over the streamed one's key, and its layout where the text is the same.
fn adopt(cell: &mut Cell, open: Cell) {
    cell.key = open.key;
    cell.rev = open.rev + 1;
    match (&mut cell.body, open.body) {
        (Body::Reply { text }, Body::Reply { text: streamed }) if *text == streamed => cell.rev = open.rev,
        (Body::Thinking { seconds, .. }, Body::Thinking { seconds: s, .. }) => *seconds = s,
        _ => {}
    }
}

fn same_kind(a: &Body, b: &Body) -> bool {
    match (a, b) {
        (Body::Tool(a), Body::Tool(b)) => a.call_id.is_empty() && (a.name == b.name || a.name.is_empty()),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

fn same_text(a: &Body, b: &Body) -> bool {
    match (a, b) {
        (Body::Reply { text: a }, Body::Reply { text: b }) => a == b,
        (Body::User { text: a, .. }, Body::User { text: b, .. }) => a == b,
        (Body::Tool(a), Body::Tool(b)) => {
            a.state == b.state && matches!(a.state, ToolState::Done(ToolOutcome::Ok))
        }
        (Body::Thinking { text: a, .. }, Body::Thinking { text: b, .. }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && !matches!(a, Body::Tool(_)),
    }
}
