//! The selected agent below the list: its task, what it does or what came of it, and its limits as gauges.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::{AgentView, Cost};

use super::row::{NEAR, by, look, time, wants};
use super::totals::{ended, waits};
use crate::model::Model;
use crate::panel::DrawCx;
use crate::panel::times::lasting;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::paint;
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::view::words::{money, short};
use crate::widget::activity_table::push_figure;
use crate::widget::{draw, sign};

/// Columns of the labels.
const LABEL: usize = 10;
/// Cells of a gauge, where there is room and where there is little.
const GAUGE: usize = 10;
const SHORT_GAUGE: usize = 5;
/// Columns from which there is room.
const ROOM: u16 = 44;
/// Columns from which the gauges stand beside the words, and their columns there.
const BESIDE: u16 = 72;
const BESIDE_WIDTH: u16 = 44;
/// Rows that a task or a result takes at most.
const ROWS: usize = 3;

/// The lines of both parts, laid out for a width.
#[derive(Debug, Default)]
pub(super) struct AgentDetail {
    title: Line,
    words: Sheet,
    gauges: Sheet,
    beside: bool,
}

impl AgentDetail {
    /// Of this agent at a width. `answer`: the key that answers its question.
    pub(super) fn of(model: &Model, a: &AgentView, answer: &str, columns: u16) -> Self {
        let gauges = gauges(model, a, columns < ROOM);
        let beside = columns >= BESIDE && !gauges.is_empty();
        let left = if beside { columns - BESIDE_WIDTH } else { columns };
        let mut words = Sheet::default();
        for line in facts(model, a, answer) {
            let mut one = Sheet::new(vec![line], usize::from(left).max(1));
            one.rows.truncate(ROWS);
            words
                .rows
                .extend(one.rows.iter().map(|r| crate::text::Row { line: words.lines.len() as u32, ..*r }));
            words.lines.append(&mut one.lines);
        }
        let gauges = Sheet::new(gauges, usize::from(if beside { BESIDE_WIDTH - 2 } else { columns }).max(1));
        Self { title: title(model, a), words, gauges, beside }
    }

    /// Rows with the line above.
    pub(super) fn height(&self) -> u16 {
        let (words, gauges) = (self.words.rows.len(), self.gauges.rows.len());
        let rows = if self.beside { words.max(gauges) } else { words + gauges };
        u16::try_from(rows + 1).unwrap_or(u16::MAX)
    }

    pub(super) fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let Some(body) = rule(&self.title, cx, area, buf) else { return };
        let used = paint::sheet(buf, body, &self.words, cx.theme);
        let rest = match self.beside {
            true => {
                let width = (BESIDE_WIDTH - 2).min(body.width);
                Rect { x: body.right() - width, width, ..body }
            }
            false => Rect { y: body.y + used, height: body.height - used, ..body },
        };
        paint::sheet(buf, rest, &self.gauges, cx.theme);
    }
}

/// A line with a title in it; returns what is below.
fn rule(title: &Line, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) -> Option<Rect> {
    if area.height == 0 {
        return None;
    }
    let style = cx.theme.style(Role::Border);
    for x in area.left()..area.right() {
        draw::put(buf, x, area.y, draw::lines(cx.ascii).h, style);
    }
    let room = usize::from(area.width.saturating_sub(4));
    let mut line = Line::new(Wrap::Cut);
    line.push_strict(" ", Look::of(Role::Text));
    line.push_slice(title, 0, title.text().len());
    line.push_strict(" ", Look::of(Role::Text));
    let sheet = Sheet::new(vec![line], room.max(1));
    let width = crate::text::width(sheet.lines[0].text()).min(room) as u16;
    paint::sheet(buf, Rect { x: area.x + 2, width, height: 1, ..area }, &sheet, cx.theme);
    Some(Rect { y: area.y + 1, height: area.height - 1, ..area })
}

/// Name, definition, and who does the work.
fn title(model: &Model, a: &AgentView) -> Line {
    let mut line = Line::new(Wrap::Cut);
    line.push_strict(&model.name_of(&a.id), Look::of(Role::Strong).bold());
    let role = a.child.as_ref().map_or("", |c| c.role.as_str());
    let (by, vendor) = by(a);
    for (text, role) in [(role, Role::Dim), (by.as_str(), vendor)] {
        if !text.is_empty() {
            line.push_strict(&format!("  {text}"), Look::of(role));
        }
    }
    line
}

fn fact(label: &str, text: &str, role: Role) -> Line {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = Line::strict(&text, Look::of(role), Wrap::Word);
    line.gutter(Gutter::new(format!("{label:<LABEL$}"), Role::Dim))
}

fn facts(model: &Model, a: &AgentView, answer: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let child = a.child.as_deref();
    if let Some(task) = child.map(|c| c.task.as_str()).filter(|t| !t.is_empty()) {
        lines.push(fact("Task", task, Role::Text));
    }
    let (_, word, role) = look(a.state);
    let result = child.map_or("", |c| c.result.as_str());
    let after = time(model, a);
    match ended(a.state) {
        _ if waits(model, a) => {
            let mut line = fact("Asks", &wants(model, a), Role::Waiting);
            if !answer.is_empty() {
                line.push_strict("  ", Look::of(Role::Text));
                line.push_strict(answer, Look::of(Role::Accent));
                line.push_strict(" answer", Look::of(Role::Dim));
            }
            lines.push(line);
        }
        true => {
            let after = if after.is_empty() { String::new() } else { format!(" after {after}") };
            lines.push(fact("State", &format!("{word}{after}"), role));
            if !result.is_empty() {
                lines.push(fact("Result", result, Role::Text));
            }
        }
        false if !a.act.is_nothing() => lines.push(fact("Now", a.act.words(), Role::Text)),
        false => lines.push(fact("State", word, Role::Text)),
    }
    if let Some(folder) = child.map(|c| c.folder.as_str()).filter(|f| !f.is_empty()) {
        lines.push(fact("Folder", folder, Role::Text));
    }
    if let Some(terminal) = child.map(|c| c.terminal.as_str()).filter(|t| !t.is_empty()) {
        lines.push(fact("Terminal", terminal, Role::Text));
    }
    lines
}

/// Task, state and limits of an agent in lines, for a preview in another view.
pub(crate) fn agent_lines(model: &Model, a: &AgentView) -> Vec<Line> {
    let mut lines = facts(model, a, "");
    let gauges = gauges(model, a, false);
    if !gauges.is_empty() {
        lines.push(Line::new(Wrap::Word));
    }
    lines.extend(gauges);
    lines
}

/// Returns what is used of each limit, and of the context.
fn gauges(model: &Model, a: &AgentView, narrow: bool) -> Vec<Line> {
    let mut all: Vec<(&str, u64, u64, String, String)> = Vec::new();
    if let Some(child) = a.child.as_deref() {
        let (used, of) = (&child.used, &child.limits);
        let dollars = |c: u64| money(Cost(c).usd());
        let time = |s: u64| lasting(i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(1000));
        let mut add = |label, used: Option<u64>, of: Option<u64>, word: &dyn Fn(u64) -> String| {
            if let Some(of) = of {
                let used = used.unwrap_or_default();
                all.push((label, used, of, word(used), word(of)));
            }
        };
        add("Cost", used.cost.map(|c| c.0), of.cost.map(|c| c.0), &dollars);
        add("Tokens", used.tokens, of.tokens, &short);
        add("Requests", used.turns.map(u64::from), of.turns.map(u64::from), &|n| n.to_string());
        let lived = a.since.filter(|_| !ended(a.state));
        let lived = lived.map(|t| (model.now.millis() - t.millis()).max(0) as u64 / 1000);
        add("Time", used.seconds.max(lived.filter(|_| used.seconds.is_none())), of.seconds, &time);
    }
    if let Some(window) = a.window.filter(|w| *w > 0 && !ended(a.state)) {
        all.push(("Context", a.context, window, short(a.context), short(window)));
    }
    let wide = all.iter().map(|(_, _, _, used, _)| used.len()).max().unwrap_or(0);
    let line = |(label, used, limit, used_words, of_words): (&str, u64, u64, String, String)| {
        // A limit of nothing is used up from the start.
        let percent = used.saturating_mul(100).checked_div(limit).unwrap_or(100);
        let role = if percent >= NEAR { Role::Error } else { Role::Text };
        let mut line = Line::new(Wrap::Cut);
        let (cells, of) = if narrow { (SHORT_GAUGE, "/") } else { (GAUGE, " of ") };
        let gap = if narrow { "" } else { " " };
        line.push_strict(&format!("{label:<0$}", LABEL - usize::from(narrow)), Look::of(Role::Dim));
        line.push_strict(&sign::gauge(used, limit, cells, draw::ascii()), Look::of(role));
        let figure = |line: &mut Line, text: &str| push_figure(line, text, Look::of(Role::Text));
        figure(&mut line, &format!("{gap}{:>5}", format!("{percent}%")));
        figure(&mut line, &format!("{gap} {used_words:>wide$}"));
        line.push_strict(of, Look::of(Role::Dim));
        figure(&mut line, &of_words);
        line
    };
    all.into_iter().map(line).collect()
}
