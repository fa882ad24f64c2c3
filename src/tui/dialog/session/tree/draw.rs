//! Draws the rows, one line each: lines of the tree, a mark, the first words, names, and the columns at the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use tiller_protocol::tree::NodeKind;
use tiller_protocol::{AgentState, Cost, Origin, Time};

use super::Browser;
use super::columns::{Column, fit};
use super::forest::{LoadState, RowKind, SessionNode, TreeRow};
use super::shape::Shape;
use crate::cell::describe::describe;
use crate::cell::named;
use crate::model::Model;
use crate::panel::DrawCx;
use crate::panel::agents::look;
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::view::words::short;
use crate::widget::lanes::Lanes;
use crate::widget::{draw, input, sign, surface};

/// From this width on, the preview stands beside the rows.
const WIDE: u16 = 100;

/// Parts of the browser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BrowserAreas {
    /// Titles of the columns, and the active filters.
    pub head: Rect,
    pub rows: Rect,
    /// The preview; empty when it is not shown.
    pub side: Rect,
    /// The text field at the bottom.
    pub field: Rect,
}

/// Writes the parts of a row from left to right.
struct RowPainter<'a> {
    buf: &'a mut Buffer,
    x: u16,
    y: u16,
    end: u16,
}

impl RowPainter<'_> {
    fn put(&mut self, text: &str, style: Style) {
        let room = Rect { x: self.x, y: self.y, width: self.end.saturating_sub(self.x), height: 1 };
        self.x += draw::text(self.buf, room, text, style);
    }
}

/// `10:41` today, `Nov 21` before.
pub(super) fn when(time: Time, now: Time) -> String {
    let zone = crate::zone::local();
    let at = |t: Time| jiff::Timestamp::from_millisecond(t.millis()).map(|t| t.to_zoned(zone.clone()));
    match (at(time), at(now)) {
        (Ok(t), Ok(n)) if t.date() == n.date() => t.strftime("%H:%M").to_string(),
        (Ok(t), Ok(n)) if t.year() == n.year() => t.strftime("%b %d").to_string(),
        (Ok(t), _) => t.strftime("%Y-%m").to_string(),
        _ => String::new(),
    }
}

/// An amount such as `$1.20`, from $100 on without cents; empty where no price is known.
pub(crate) fn dollars(cost: Option<Cost>) -> String {
    cost.map_or_else(String::new, |c| {
        if c.usd() >= 100.0 { format!("${:.0}", c.usd()) } else { format!("${:.2}", c.usd()) }
    })
}

fn some(tokens: u64) -> String {
    if tokens > 0 { short(tokens) } else { String::new() }
}

/// The name of a model without its vendor.
fn brief(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// Texts of the columns at the right.
#[derive(Default)]
struct ColumnTexts {
    /// The row is on the current path.
    bright: bool,
    time: String,
    model: String,
    tokens: String,
    cost: String,
    files: String,
}

impl ColumnTexts {
    fn of(&self, m: Column) -> &str {
        match m {
            Column::Time => &self.time,
            Column::Model => &self.model,
            Column::Tokens => &self.tokens,
            Column::Cost => &self.cost,
            Column::Files => &self.files,
        }
    }
}

/// The sign of a message within a turn, and how it looks. A shell line is no part of the turn before it.
pub(crate) fn inner_glyph(origin: Option<Origin>, path: bool) -> Option<(&'static str, Role)> {
    let role = if path { Role::User } else { Role::Dim };
    (origin != Some(Origin::Shell)).then(|| (draw::sign(sign::CHILD), role))
}

/// The sign of an entry, and how it looks. `path`: it is on the current path of its session.
pub(crate) fn glyph(kind: NodeKind, failed: bool, path: bool) -> (&'static str, Role) {
    let (glyph, role) = match kind {
        NodeKind::User if path => (draw::sign(sign::FULL), Role::User),
        NodeKind::User => (draw::sign(sign::EMPTY), Role::Dim),
        NodeKind::Assistant | NodeKind::ToolResult | NodeKind::InnerCall if failed => {
            return (draw::sign(sign::FAILED), Role::Error);
        }
        NodeKind::Assistant => (draw::sign(sign::DOT), Role::Agent),
        NodeKind::ToolResult | NodeKind::InnerCall => (draw::sign(sign::OK), Role::Ok),
        NodeKind::Compaction | NodeKind::BranchSummary => (draw::sign(sign::WRAPPED), Role::Dim),
        NodeKind::Checkpoint => (draw::sign(sign::SAVED), Role::Text),
        NodeKind::Prefix | NodeKind::Note => (draw::sign(sign::DOT), Role::Dim),
    };
    (glyph, if path { role } else { Role::Dim })
}

impl Browser {
    pub(super) fn parts(&self, area: Rect) -> BrowserAreas {
        let line = |n: bool| u16::from(n).min(area.height);
        let field_rows = line(self.field_shown());
        let body = Rect { height: area.height - field_rows, ..area };
        let field = Rect { y: body.bottom(), height: field_rows, ..area };
        let none = Rect { width: 0, ..body };
        let beside = area.width >= WIDE;
        let (left, side) = match (self.side.wanted.unwrap_or(beside), beside) {
            (true, true) => {
                let w = area.width * 3 / 7;
                let left = Rect { width: area.width - w - 2, ..body };
                (left, Rect { x: left.right() + 3, width: w - 1, ..body })
            }
            // Where there is no room beside them, it takes the place of the rows but for a few.
            (true, false) => {
                let h = (body.height / 3).max(3).min(body.height);
                let top = Rect { height: h, ..body };
                let below = body.height - h;
                (top, Rect { y: top.bottom() + below.min(1), height: below.saturating_sub(1), ..body })
            }
            (false, _) => (body, none),
        };
        let head = Rect { height: left.height.min(1), ..left };
        let rows = Rect { y: head.bottom(), height: left.height - head.height, ..left };
        BrowserAreas { head, rows, side, field }
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let parts = self.parts(area);
        let measures = fit(parts.rows.width, &self.filled(cx.model));
        self.paint_head(cx, parts.head, &measures, buf);
        if self.rows.is_empty() {
            let text = self.nothing();
            draw::text(buf, Rect { x: area.x + 1, ..parts.rows }, text, cx.theme.style(Role::Dim));
        }
        let page = usize::from(parts.rows.height);
        for (n, row) in self.rows.iter().enumerate().skip(self.list.top).take(page) {
            let y = parts.rows.y + (n - self.list.top) as u16;
            let line = Rect { y, height: 1, ..parts.rows };
            self.paint_row(cx, row, &measures, line, buf);
            if n == self.list.chosen {
                surface::chosen(cx, line, buf);
            }
        }
        if parts.side.width > 0 {
            self.paint_border(cx, &parts, buf);
            self.side.draw(cx, parts.side, buf);
        }
        self.paint_field(cx, parts.field, buf);
    }

    /// The columns in which at least one row has something to say.
    fn filled(&self, model: &Model) -> Vec<Column> {
        let mut filled = Column::ALL.map(|_| false);
        for row in &self.rows {
            for (known, (column, _)) in filled.iter_mut().zip(Column::ALL) {
                *known = *known || self.is_filled(model, row, column);
            }
            if filled.iter().all(|f| *f) {
                break;
            }
        }
        Column::ALL.into_iter().zip(filled).filter(|(_, f)| *f).map(|((column, _), _)| column).collect()
    }

    fn is_filled(&self, model: &Model, row: &TreeRow, column: Column) -> bool {
        let tree = &self.forest.trees[row.tree as usize];
        match (row.what, tree.shape()) {
            (RowKind::Title, _) => {
                let live = model.of_session(tree.session).filter(|_| tree.nested);
                match column {
                    Column::Time => true,
                    Column::Model => live.is_some() || !tree.about.model.is_empty(),
                    Column::Tokens => live.is_some() || tree.child.tokens > 0,
                    Column::Cost => live.map_or(tree.about.cost, |a| a.cost).is_some(),
                    Column::Files => tree.child.files > 0,
                }
            }
            (RowKind::Node(n), Some(shape)) => {
                let (n, sum) = (n as usize, shape.sums[n as usize]);
                match column {
                    Column::Time => true,
                    Column::Model => sum.model.is_some(),
                    Column::Tokens => sum.tokens > 0,
                    Column::Cost => sum.cost.is_some(),
                    Column::Files => shape.files[n] > 0,
                }
            }
            _ => false,
        }
    }

    fn paint_border(&self, cx: &DrawCx<'_>, parts: &BrowserAreas, buf: &mut Buffer) {
        let (l, style) = (draw::lines(cx.ascii), cx.theme.style(Role::Border));
        if parts.side.x > parts.rows.x {
            (parts.side.top()..parts.side.bottom())
                .for_each(|y| draw::put(buf, parts.side.x - 2, y, l.v, style));
        } else if parts.side.y > 0 {
            (parts.side.left()..parts.side.right())
                .for_each(|x| draw::put(buf, x, parts.side.y - 1, l.h, style));
        }
    }

    fn paint_head(&self, cx: &DrawCx<'_>, area: Rect, measures: &[(Column, u16)], buf: &mut Buffer) {
        let style = cx.theme.style(Role::Dim);
        let used: u16 = measures.iter().map(|(_, w)| w).sum();
        let words = Rect { x: area.x + 1, width: area.width.saturating_sub(used + 1), ..area };
        draw::text(buf, words, &self.shown_words(), style);
        let mut x = area.right() - used.min(area.width);
        for (m, w) in measures {
            column(buf, (x, area.y, *w), *m, m.title(), (style, style));
            x += w;
        }
    }

    fn paint_row(
        &self,
        cx: &DrawCx<'_>,
        row: &TreeRow,
        measures: &[(Column, u16)],
        line: Rect,
        buf: &mut Buffer,
    ) {
        let used: u16 = measures.iter().map(|(_, w)| w).sum();
        let end = line.right() - used.min(line.width);
        let mut pen = RowPainter { buf, x: line.x, y: line.y, end };
        let tree = &self.forest.trees[row.tree as usize];
        let shown = match (row.what, tree.shape()) {
            (RowKind::Title, _) => self.paint_title(cx, row, tree, &mut pen),
            (RowKind::Node(n), Some(shape)) => self.paint_node(cx, row, tree, shape, n as usize, &mut pen),
            _ => {
                pen.put("    ", cx.theme.style(Role::Dim));
                let words = match &tree.state {
                    LoadState::Failed(why) => why.as_str(),
                    LoadState::Loaded(_) if self.filter.active() => "no entry matches",
                    LoadState::Loaded(_) => "no messages",
                    _ => "Loading...",
                };
                pen.put(words, cx.theme.style(Role::Dim));
                ColumnTexts::default()
            }
        };
        let dim = cx.theme.style(Role::Dim);
        let number = if shown.bright { cx.theme.style(Role::Text) } else { dim };
        let mut x = end;
        for (m, w) in measures {
            column(buf, (x, line.y, *w), *m, shown.of(*m), (number, dim));
            x += w;
        }
    }

    /// Columns of the tree's lines; deep ones are cut at their left.
    fn paint_lines(&self, cx: &DrawCx<'_>, row: &TreeRow, pen: &mut RowPainter<'_>) {
        // The lane of the current path is the first one of the open session.
        let here = self.origin.here == Some(self.forest.trees[row.tree as usize].session);
        let style = cx.theme.style(Role::Border);
        pen.put(" ", style);
        let lanes = Lanes { depth: row.depth, first: row.first, lines: row.lines };
        for (text, trunk) in lanes.draw(pen.end.saturating_sub(pen.x), cx.ascii) {
            pen.put(&text, if here && trunk { cx.theme.style(Role::Text) } else { style });
        }
    }

    fn paint_title(
        &self,
        cx: &DrawCx<'_>,
        row: &TreeRow,
        tree: &SessionNode,
        pen: &mut RowPainter<'_>,
    ) -> ColumnTexts {
        if tree.nested {
            self.paint_lines(cx, row, pen);
        }
        let open = tree.open || (!self.filter.text.trim().is_empty() && tree.found > 0);
        let mark = if open { draw::sign(sign::OPEN) } else { draw::sign(sign::CLOSED) };
        pen.put(&format!("{mark} "), cx.theme.style(Role::Dim));
        let title = if tree.about.title.is_empty() { "(no title yet)" } else { &tree.about.title };
        // The state of an agent of the open session is known as it is now.
        let live = cx.model.of_session(tree.session).filter(|_| tree.nested);
        let state = live.map(|a| a.state).or(tree.child.state);
        if let Some((glyph, _, role)) = state.map(look) {
            pen.put(&format!("{glyph} "), cx.theme.style(role));
        }
        if let Some(agent) = &tree.child.agent {
            pen.put(&format!("{} ", clean::plain(agent.name())), cx.theme.style(Role::Dim));
        }
        let mut notes = String::new();
        if let Some((_, word, _)) = state.filter(|s| *s != AgentState::Done).map(look) {
            notes.push_str(&format!("  {word}"));
        }
        if self.origin.everywhere && !tree.nested {
            notes.push_str(&format!("  {}", brief(&tree.about.project)));
        }
        if tree.about.exec {
            notes.push_str("  exec");
        }
        if tree.trashed {
            notes.push_str("  in the trash");
        } else if tree.about.archived {
            notes.push_str("  archived");
        }
        if tree.about.open_in && ![self.origin.here, self.origin.root].contains(&Some(tree.session)) {
            notes.push_str("  open elsewhere");
        }
        let count = match (open, tree.found, tree.about.entries) {
            (true, ..) => String::new(),
            (_, 0, 1) => "1 entry".into(),
            (_, 0, n) => format!("{n} entries"),
            (_, found, _) => format!("{found} found"),
        };
        let title = clean::plain(title);
        let room = usize::from(pen.end.saturating_sub(pen.x)).saturating_sub(width(&notes));
        // The preview says how many entries there are.
        let count = if self.side_shown && tree.found == 0 { String::new() } else { count };
        let need = if count.is_empty() { 0 } else { width(&count) + 2 };
        let style = match tree.nested {
            true => cx.theme.style(Role::Text),
            false => cx.theme.style(Role::Strong).add_modifier(Modifier::BOLD),
        };
        pen.put(&shorten_end(&title, room.saturating_sub(need), cx.ascii), style);
        pen.put(&notes, cx.theme.style(Role::Dim));
        if need > 0 {
            pen.x = pen.end.saturating_sub(width(&count) as u16);
            pen.put(&count, cx.theme.style(Role::Dim));
        }
        ColumnTexts {
            bright: self.origin.here == Some(tree.session),
            time: tree.about.time.map_or_else(String::new, |t| when(t, cx.now)),
            model: brief(live.map_or(&tree.about.model, |a| &a.model.0)).into(),
            tokens: some(live.map_or(tree.child.tokens, |a| a.usage.context() + a.usage.output)),
            cost: dollars(live.map_or(tree.about.cost, |a| a.cost)),
            files: if tree.child.files > 0 { tree.child.files.to_string() } else { String::new() },
        }
    }

    fn paint_node(
        &self,
        cx: &DrawCx<'_>,
        row: &TreeRow,
        tree: &SessionNode,
        shape: &Shape,
        n: usize,
        pen: &mut RowPainter<'_>,
    ) -> ColumnTexts {
        self.paint_lines(cx, row, pen);
        let node = &shape.tree.nodes[n];
        let path = shape.path[n];
        let origin = self.lines.by_entry.get(&node.id).and_then(|line| line.origin);
        let inner = shape.within[n].then(|| inner_glyph(origin, path)).flatten();
        let (mark, role) = inner.unwrap_or_else(|| glyph(node.kind, shape.failed[n], path));
        let marked = self.marked == Some((tree.session, node.id));
        let (mark, role) = if marked { (draw::sign(sign::CLOSED), Role::Accent) } else { (mark, role) };
        pen.put(mark, cx.theme.style(role));
        pen.put(" ", cx.theme.style(Role::Text));
        let mut names: Vec<(String, Role)> = Vec::new();
        for badge in self.badges.get(&(row.tree, n as u32)).into_iter().flatten() {
            names.push((" ".to_owned(), Role::Text));
            names.push((clean::plain(&badge.text).into_owned(), badge.role));
        }
        if row.hidden > 0 {
            names.push((format!(" +{}", row.hidden), Role::Dim));
        }
        let room = usize::from(pen.end.saturating_sub(pen.x));
        let need: usize = names.iter().map(|(t, _)| width(t)).sum();
        // Words keep half of the row.
        let words =
            shorten_end(&self.words_of(cx.model, node.id), room.saturating_sub(need).max(room / 2), cx.ascii);
        let stands = matches!(node.kind, NodeKind::User | NodeKind::Checkpoint);
        pen.put(&words, cx.theme.style(if path && stands { Role::Text } else { Role::Dim }));
        for (text, role) in names {
            pen.put(&text, cx.theme.style(role));
        }
        let sum = shape.sums[n];
        let model = sum.model.and_then(|m| shape.tree.models.get(usize::from(m)));
        ColumnTexts {
            bright: path && self.origin.here == Some(tree.session),
            time: when(node.time, cx.now),
            model: model.map_or("", |m| brief(m)).into(),
            tokens: some(sum.tokens),
            cost: dollars(sum.cost),
            files: if shape.files[n] > 0 { shape.files[n].to_string() } else { String::new() },
        }
    }

    /// The first words of an entry, clean.
    fn words_of(&self, model: &Model, entry: tiller_protocol::EntryId) -> String {
        let Some(line) = self.lines.by_entry.get(&entry) else { return String::new() };
        let text = match (&line.call, line.origin) {
            (Some(call), _) => {
                let tool = model.environment.tools.get(&call.name);
                let (verb, target) = describe(&call.name, &call.arguments, tool);
                let target = match tool {
                    Some(tool) => named(&tool.verb, &target, &model.environment.folders.workspace),
                    None => target,
                };
                format!("{verb:<7} {target}")
            }
            (_, Some(Origin::Shell)) => format!("! {}", line.text),
            (_, Some(Origin::Steer)) => format!("(steer) {}", line.text),
            (_, Some(Origin::Engine | Origin::Task)) => format!("(Tiller) {}", line.text),
            _ => line.text.clone(),
        };
        draw::clean(&text)
    }

    fn paint_field(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if area.height == 0 {
            return;
        }
        let style = cx.theme.style(Role::Raised);
        draw::clear(buf, area, style);
        let (label, edit) = self.field_line();
        let used = draw::text(buf, area, label, style);
        let count = self.count();
        let right = (count.len() as u16).min(area.width);
        let room = Rect { x: area.x + used, width: area.width.saturating_sub(used + right + 1), ..area };
        match edit {
            Some(edit) => drop(input::draw(edit, room, buf, style)),
            None => drop(draw::text(buf, room, &self.filter.text, style)),
        }
        draw::text(buf, Rect { x: area.right() - right, width: right, ..area }, &count, style);
    }
}

/// Puts a text into a column: words at its left, numbers at its right with their units in the second style. One blank
/// stands before it at least.
fn column(buf: &mut Buffer, (x, y, columns): (u16, u16, u16), of: Column, text: &str, look: (Style, Style)) {
    let text = draw::cut(text, usize::from(columns.saturating_sub(2)));
    let (number, unit) = look;
    if of == Column::Model {
        let area = Rect { x: x + 2.min(columns), y, width: columns.saturating_sub(2), height: 1 };
        draw::text(buf, area, &text, unit);
        return;
    }
    let from = x + columns.saturating_sub(width(&text) as u16);
    let is_unit = |c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':'));
    for (x, c) in (from..).zip(text.chars()) {
        let style = if of == Column::Time || is_unit(c) { unit } else { number };
        draw::put(buf, x, y, c.encode_utf8(&mut [0; 4]), style);
    }
}
