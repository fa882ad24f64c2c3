//! The tree of a session in small: the same rows and lanes as the tree browser draws, with what each turn cost and changed.

use std::collections::HashMap;
use std::sync::Arc;

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tree::{NodeKind, TreeHead, TreeLine, TreeQuery, TreeReply};
use tiller_protocol::{CommandBody, Cost, EntryId, Origin, SessionId};

use crate::app::effect::{Effect, Token};
use crate::dialog::session::tree::{Filter, Forest, RowKind, Shape, TreeRow, dollars, glyph, inner_glyph};
use crate::model::Model;
use crate::panel::times::clock;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::lanes::Lanes;

const NODES: Token = Token(1);
const MARKS: Token = Token(2);
const LINES: Token = Token(3);

/// Rows around the present turn that are listed at most.
const MOST: usize = 400;
/// Of those, rows below it.
const BELOW: usize = 50;
/// Entries from which on the end of a turn does not read the tree again: newer turns stand below it.
const LARGE: usize = 5_000;
/// Columns that the words keep beside the figures, and beside the figures with the time.
const WORDS: usize = 17;
const MORE_WORDS: usize = 26;

/// In place of the time of the present turn.
pub(super) const NOW: &str = "now";

/// A row of it.
pub(super) struct GraphRow {
    pub(super) entry: EntryId,
    /// On the open branch.
    pub(super) path: bool,
    /// The last entry of a branch that was left, where it ends at this row.
    pub(super) end: Option<EntryId>,
    /// The present turn.
    now: bool,
    lanes: Lanes,
    kind: NodeKind,
    /// A message that begins no turn: its figures are those of the turn.
    within: bool,
    failed: bool,
    time: String,
    /// Of the whole turn, at the message that begins it.
    cost: Option<Cost>,
    files: u32,
    /// Names of branches and checkpoints that end here.
    names: Vec<(String, Role)>,
}

/// `3 files`, or `3f`; nothing where there are none.
fn of_files(files: u32, brief: bool) -> String {
    match (files, brief) {
        (0, _) => String::new(),
        (n, true) => format!("{n}f"),
        (1, _) => "1 file".into(),
        (n, _) => format!("{n} files"),
    }
}

/// The tree, and the state of the requests about it.
#[derive(Default)]
pub(super) struct SessionGraph {
    forest: Forest,
    session: Option<SessionId>,
    rows: Vec<GraphRow>,
    /// The places of entries in `rows`.
    places: HashMap<EntryId, usize>,
    /// Rows above those that are listed.
    pub(super) earlier: usize,
    texts: HashMap<EntryId, TreeLine>,
    /// A request for the tree runs, and it is out of date.
    asked: bool,
    stale: bool,
    /// A turn has ended since a large tree was read.
    behind: bool,
}

fn ask(query: TreeQuery, token: Token) -> Effect {
    Effect::ask(CommandBody::Query(Query::Tree { query }), token)
}

impl SessionGraph {
    /// The listed rows, from the top.
    pub(super) fn rows(&self) -> &[GraphRow] {
        &self.rows
    }

    /// Its session, once it is here.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The row of an entry, where it is listed.
    pub(super) fn place(&self, entry: EntryId) -> Option<usize> {
        self.places.get(&entry).copied()
    }

    /// It has changed, and no request for it runs.
    pub(super) fn is_due(&self) -> bool {
        self.stale && !self.asked
    }

    fn shape(&self) -> Option<&Shape> {
        self.session.and_then(|id| self.forest.find(id)).and_then(|n| self.forest.trees[n].shape())
    }

    /// A turn has ended. Newer turns have rows without the tree; a large one is read again by
    /// [`SessionGraph::looked_at`].
    pub(super) fn turn_ended(&mut self) {
        match self.shape().is_some_and(|s| s.tree.nodes.len() > LARGE) {
            true => self.behind = true,
            false => self.stale = true,
        }
    }

    /// The person goes to it.
    pub(super) fn looked_at(&mut self) {
        self.stale |= self.behind;
    }

    /// The tree has changed.
    pub(super) fn changed(&mut self) {
        self.stale = true;
    }

    /// It leaves the screen: answers to its requests go to another one.
    pub(super) fn parked(mut self) -> Self {
        self.stale |= std::mem::take(&mut self.asked);
        self
    }

    /// Asks for the tree, when it has changed and is seen.
    pub(super) fn want(&mut self, model: &Model, seen: bool) -> Vec<Effect> {
        if !self.is_due() || !seen {
            return Vec::new();
        }
        (self.asked, self.stale, self.behind) = (true, false, false);
        // Without a session the query is about the one that is open in the main agent.
        let session = model.shown.is_some().then(|| model.shown_session()).flatten();
        vec![ask(TreeQuery::Nodes { session }, NODES)]
    }

    /// Takes an answer; returns the next requests.
    pub(super) fn answered(&mut self, reply: &ReplyEvent, model: &Model) -> Vec<Effect> {
        let reply = match reply {
            ReplyEvent::TreeReply { reply } => reply,
            ReplyEvent::ErrorReply { .. } => {
                self.asked = false;
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        match reply {
            TreeReply::Nodes { tree } => {
                self.asked = false;
                if model.shown_session().is_some_and(|id| id != tree.session) {
                    return Vec::new();
                }
                if self.session != Some(tree.session) {
                    (self.forest, self.texts) = (Forest::default(), HashMap::new());
                }
                self.session = Some(tree.session);
                self.forest.put(Arc::clone(tree));
                let at = self.forest.ready(tree.session);
                self.forest.roots = vec![at as u32];
                self.make_rows();
                let mut next = vec![ask(TreeQuery::Marks { session: tree.session }, MARKS)];
                let entries = self.rows.iter().map(|r| r.entry).filter(|e| !self.texts.contains_key(e));
                let entries: Vec<EntryId> = entries.collect();
                next.extend((!entries.is_empty()).then(|| ask(TreeQuery::Lines { entries }, LINES)));
                next
            }
            TreeReply::Marks { session, marks } => {
                if self.forest.mark(*session, marks) {
                    self.make_rows();
                }
                Vec::new()
            }
            TreeReply::Lines { lines } => {
                self.texts.extend(lines.iter().map(|l| (l.entry, l.clone())));
                Vec::new()
            }
            TreeReply::Find { .. } | TreeReply::Preview { .. } => Vec::new(),
        }
    }

    fn make_rows(&mut self) {
        let Some(shape) = self.shape() else { return };
        let nodes = |row: &TreeRow| match row.what {
            RowKind::Node(n) => Some((*row, n as usize)),
            _ => None,
        };
        // Sessions of child agents have no rows here, so no lane leads to them.
        let filter = Filter { alone: true, ..Filter::default() };
        let all: Vec<(TreeRow, usize)> = self.forest.rows(&filter).iter().filter_map(nodes).collect();
        let at_row = rows_by_node(&all);
        let tips = tips(shape, &at_row);
        let now = shape
            .tree
            .heads
            .iter()
            .find(|h| h.current)
            .and_then(|h| h.node)
            .and_then(|n| tips.get(&n).copied());
        // A branch without an entry of its own has no present turn.
        let to = all.len().min((now.unwrap_or(all.len()) + 1 + BELOW).max(MOST));
        let from = to.saturating_sub(MOST);
        let rows = all[from..to].iter().enumerate();
        let rows = rows.map(|(at, (row, n))| graph_row(shape, row, *n, (from + at, now), &tips));
        (self.rows, self.earlier) = (rows.collect(), from);
        self.places = self.rows.iter().enumerate().map(|(at, row)| (row.entry, at)).collect();
    }

    /// The words of a row that the conversation does not have.
    fn words(&self, entry: EntryId) -> String {
        let Some(line) = self.texts.get(&entry) else { return String::new() };
        match line.origin {
            Some(Origin::Shell) => format!("! {}", line.text),
            Some(Origin::Engine) => format!("(Tiller) {}", line.text),
            Some(Origin::Steer) => format!("(steer) {}", line.text),
            _ => line.text.clone(),
        }
    }

    /// The rows as lines. `spoken`: for each row the words of its message, where the conversation has it; `goes_on`: rows of
    /// newer turns follow.
    pub(super) fn lines(&self, spoken: &[Option<&str>], goes_on: bool, columns: usize) -> Vec<Line> {
        let figures = Figures::of(&self.rows, columns);
        let line = |(row, spoken): (&GraphRow, &Option<&str>)| {
            let words = spoken.map_or_else(|| self.words(row.entry), str::to_owned);
            let origin = self.texts.get(&row.entry).and_then(|line| line.origin);
            let inner = row.within.then(|| inner_glyph(origin, row.path)).flatten();
            let sign = inner.unwrap_or_else(|| glyph(row.kind, row.failed, row.path));
            figures.line(row, sign, &words, goes_on, columns)
        };
        self.rows.iter().zip(spoken).map(line).collect()
    }
}

/// The row of each node that has one.
fn rows_by_node(rows: &[(TreeRow, usize)]) -> HashMap<u32, usize> {
    rows.iter().enumerate().map(|(at, (_, n))| (*n as u32, at)).collect()
}

/// It may have a name or an end here: an archived branch has no rows of its own.
fn is_live(head: &TreeHead) -> bool {
    head.current || !head.archived
}

/// The row at which each head's node stands: its own, or that of the nearest entry of its turn above it. A message within the
/// turn has none, but for one before the first turn.
fn tips(shape: &Shape, at: &HashMap<u32, usize>) -> HashMap<u32, usize> {
    let row_of = |tip: u32| {
        let mut node = Some(tip);
        while let Some(n) = node {
            let begins = !shape.within[n as usize] || shape.turn[n as usize] == n;
            if let Some(at) = at.get(&n).filter(|_| begins) {
                let same = shape.turn.get(n as usize) == shape.turn.get(tip as usize);
                return same.then_some(*at);
            }
            node = shape.tree.nodes.get(n as usize).and_then(|n| n.parent);
        }
        None
    };
    let heads = shape.tree.heads.iter().filter(|h| is_live(h)).filter_map(|h| h.node);
    heads.filter_map(|tip| Some((tip, row_of(tip)?))).collect()
}

fn graph_row(
    shape: &Shape,
    row: &TreeRow,
    n: usize,
    (at, now): (usize, Option<usize>),
    tips: &HashMap<u32, usize>,
) -> GraphRow {
    let node = &shape.tree.nodes[n];
    let live = || shape.tree.heads.iter().filter(|h| is_live(h));
    let several = live().count() > 1;
    let here = || live().filter(|h| h.node.and_then(|n| tips.get(&n)) == Some(&at));
    let head_name = |h: &TreeHead| match (h.label.is_empty(), h.name.as_str()) {
        (false, _) => Some((h.label.clone(), Role::Raised)),
        (true, "main") if several => Some(("main".to_owned(), Role::Raised)),
        _ => None,
    };
    let tags = shape.tags.get(&(n as u32)).into_iter().flatten();
    let tags = tags.filter_map(|t| shape.tree.tags.get(*t)).map(|t| (format!("#{}", t.name), Role::Strong));
    let left = here().find(|h| !h.current).and_then(|h| h.node);
    GraphRow {
        entry: node.id,
        path: shape.path[n],
        end: left.and_then(|n| shape.tree.nodes.get(n as usize)).map(|n| n.id).filter(|_| !shape.path[n]),
        now: Some(at) == now,
        lanes: Lanes { depth: row.depth, first: row.first, lines: row.lines },
        kind: node.kind,
        failed: shape.failed[n],
        time: clock(node.time),
        within: shape.within[n],
        cost: shape.sums[n].cost,
        files: shape.files[n],
        names: here().filter_map(head_name).chain(tags).collect(),
    }
}

/// Columns of the figures at the right; 0: they are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    time: usize,
    cost: usize,
    files: usize,
    /// `2f` for `2 files`.
    brief: bool,
}

impl Figures {
    /// The columns that the words leave room for: the time goes first, then the name of the files' figure.
    fn of(rows: &[GraphRow], columns: usize) -> Self {
        let widest = |text: &dyn Fn(&GraphRow) -> usize| rows.iter().map(text).max().unwrap_or(0);
        let cost = widest(&|r| dollars(r.cost).len());
        let long = widest(&|r| of_files(r.files, false).len());
        let short = widest(&|r| of_files(r.files, true).len());
        let time = widest(&|r| r.time.len());
        let all = [
            (Self { time, cost, files: long, brief: false }, MORE_WORDS),
            (Self { time: 0, cost, files: long, brief: false }, WORDS),
            (Self { time: 0, cost, files: short, brief: true }, WORDS),
            (Self { time: 0, cost, files: 0, brief: true }, WORDS),
        ];
        let fits = |(f, words): &&(Self, usize)| f.width() + words <= columns;
        all.iter().find(fits).map_or_else(Self::default, |(f, _)| *f)
    }

    /// With two blanks before each.
    fn width(self) -> usize {
        [self.time, self.cost, self.files].into_iter().filter(|w| *w > 0).map(|w| w + 2).sum()
    }

    fn line(
        self,
        row: &GraphRow,
        (mark, role): (&str, Role),
        words: &str,
        goes_on: bool,
        columns: usize,
    ) -> Line {
        let now = row.now && !goes_on;
        let mut line = Line::new(Wrap::Cut);
        for (lane, trunk) in row.lanes.draw(columns as u16, draw::ascii()) {
            line.push_strict(&lane, Look::of(if trunk { Role::Text } else { Role::Border }));
        }
        line.push_strict(mark, Look::of(role));
        line.push_strict(" ", Look::of(Role::Text));
        let mut names = row.names.clone();
        if now && self.time == 0 {
            names.push((NOW.into(), Role::Strong));
        }
        let need: usize = names.iter().map(|(name, _)| width(name) + 1).sum();
        let end = columns.saturating_sub(self.width());
        let room = end.saturating_sub(width(line.text()));
        let look = match (now, row.path) {
            (true, _) => Look::of(Role::Strong).bold(),
            (_, true) => Look::of(Role::Text),
            (_, false) => Look::of(Role::Dim),
        };
        // Words keep half of the row.
        let words = clean::plain(words);
        line.push_strict(&shorten_end(&words, room.saturating_sub(need).max(room / 2), draw::ascii()), look);
        for (name, role) in names {
            let left = end.saturating_sub(width(line.text()) + 1);
            if left > 1 {
                line.push_strict(" ", Look::of(Role::Text));
                line.push_strict(&shorten_end(&clean::plain(&name), left, draw::ascii()), Look::of(role));
            }
        }
        line.pad_to(end, Look::of(Role::Text));
        let number = Look::of(if row.path { Role::Text } else { Role::Dim });
        let time = if now { (NOW, look) } else { (row.time.as_str(), Look::of(Role::Dim)) };
        let (cost, files) = (dollars(row.cost), of_files(row.files, self.brief));
        let figures = [
            (self.cost, cost.as_str(), number),
            (self.files, files.as_str(), number),
            (self.time, time.0, time.1),
        ];
        for (columns, text, look) in figures.into_iter().filter(|(columns, ..)| *columns > 0) {
            line.push_strict(&format!("  {text:>columns$}"), look);
        }
        line
    }
}
