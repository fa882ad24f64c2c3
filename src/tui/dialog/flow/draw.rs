//! Draws a workflow: the head line, the graph with one row per step, and details of the selected step below it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use tiller_protocol::{AgentState, StepState, StepView, WorkflowView};

use super::totals::{self, StepTotals};
use super::{Flow, FlowAreas, agents, graph};
use crate::panel::DrawCx;
use crate::panel::times::lasting;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::{clean, paint, width};
use crate::theme::Role;
use crate::view::words::{money, short};
use crate::widget::activity_table::{ActivityRow, ActivityTable, ColumnNames, FigureColumn, push_figure};
use crate::widget::{draw, sign, surface};

/// Cells of the gauge of done steps.
const GAUGE: usize = 10;
/// Columns of the labels of the detail.
const LABEL: usize = 8;
/// Share of a limit, in percent, from which it is shown.
const TOLD: u64 = 10;

/// Sign, word and look of a state.
fn look(state: StepState) -> (&'static str, &'static str, Role) {
    match state {
        StepState::Waiting => (draw::sign(sign::EMPTY), "waiting", Role::Dim),
        StepState::Running => (draw::sign(sign::FULL), "working", Role::Running),
        StepState::Done => (draw::sign(sign::OK), "done", Role::Ok),
        StepState::Failed => (draw::sign(sign::FAILED), "failed", Role::Error),
        StepState::Skipped => (draw::sign(sign::DOT), "skipped", Role::Dim),
        StepState::Cancelled => (draw::sign(sign::DOT), "cancelled", Role::Dim),
        StepState::Interrupted => (draw::sign(sign::HALF), "interrupted", Role::Text),
    }
}

/// The same, with the state of the step's agents.
pub(super) fn stands(
    flow: &WorkflowView,
    step: &StepView,
    cx: &DrawCx<'_>,
) -> (&'static str, &'static str, Role) {
    if step.state != StepState::Running {
        return look(step.state);
    }
    let agent = totals::agent(cx.model, step);
    match agent.map(|a| a.state) {
        _ if totals::waits(cx.model, step) => (draw::sign(sign::ATTENTION), "needs you", Role::Waiting),
        Some(AgentState::Paused) => (draw::sign(sign::HALF), "paused", Role::Text),
        Some(AgentState::Queued) => (draw::sign(sign::EMPTY), "queued", Role::Dim),
        _ if flow.paused => (draw::sign(sign::HALF), "pausing", Role::Text),
        Some(_) if agent.is_some_and(|a| step.reviewers.contains(&a.id)) => {
            (draw::sign(sign::FULL), "in review", Role::Running)
        }
        _ => look(StepState::Running),
    }
}

fn cost(sum: StepTotals) -> String {
    match (sum.priced, sum.cost.0, sum.unknown) {
        (false, _, _) => String::new(),
        (_, 0, true) => "$?".into(),
        (_, _, more) => format!("{}{}", money(sum.cost.usd()), if more { "+?" } else { "" }),
    }
}

/// The line above the graph: how the workflow stands.
fn head(flow: &WorkflowView, cx: &DrawCx<'_>) -> Line {
    let (glyph, word, role) = match (flow.state, flow.paused) {
        (StepState::Running, true) => (draw::sign(sign::HALF), "paused", Role::Text),
        (StepState::Cancelled, _) => (draw::sign(sign::DOT), "stopped", Role::Dim),
        (state, _) => look(state),
    };
    let mut line = Line::new(Wrap::Cut);
    line.push_strict(&format!("{glyph} {word}"), Look::of(role));
    let (done, all) = (flow.done(), flow.steps.len());
    line.push_strict(
        &format!("  {}", sign::gauge(done as u64, all as u64, GAUGE, cx.ascii)),
        Look::of(Role::Text),
    );
    push_figure(&mut line, &format!("  {done} of {all} steps"), Look::of(Role::Text));
    line
}

/// The columns, and the places of the figures in them.
const FIGURES: [FigureColumn; 5] = [
    FigureColumn::words("Agent", 3),
    FigureColumn::number("Round", 4),
    FigureColumn::number("Time", 0),
    FigureColumn::number("Tokens", 2),
    FigureColumn::number("Cost", 1),
];
const AGENT: usize = 0;
const ROUND: usize = 1;
const TIME: usize = 2;
const TOKENS: usize = 3;
const COST: usize = 4;

/// The graph with its columns.
#[derive(Default)]
pub(super) struct GraphLines {
    /// The names of the columns, where there is room.
    pub(super) head: Option<Line>,
    pub(super) rows: Vec<Line>,
    /// The totals of all steps.
    pub(super) sum: Option<Line>,
}

/// Lays the graph out.
pub(super) fn lines(
    flow: &WorkflowView,
    shape: &[graph::GraphRow],
    chosen: &str,
    columns: u16,
    cx: &DrawCx<'_>,
) -> GraphLines {
    let most = usize::from(columns / 3).max(3);
    let wide = shape.iter().map(|r| r.cells.len()).max().unwrap_or(1).min(most);
    // The names of those beside the chosen one stand out: the ways from it can be followed.
    let near = |step: &StepView| {
        let own = flow.steps.iter().find(|s| s.id == chosen);
        step.needs.iter().any(|n| n == chosen) || own.is_some_and(|s| s.needs.contains(&step.id))
    };
    let row = |r: &graph::GraphRow| {
        let step = r.step.and_then(|s| flow.steps.get(s));
        let stand = step.map(|s| stands(flow, s, cx));
        let cell = |c: &char| match (*c, stand) {
            (graph::NODE, Some((glyph, _, role))) => (glyph.to_owned(), Look::of(role).bold()),
            (c, _) => ((if cx.ascii { graph::plain(c) } else { c }).to_string(), Look::of(Role::Border)),
        };
        let mut lead: Vec<(String, Look)> = r.cells.iter().take(most).map(cell).collect();
        lead.push((" ".repeat(wide - lead.len() + 2), Look::of(Role::Text)));
        let name = step.map_or_else(String::new, |s| clean::plain(&s.id).into_owned());
        let mut row = ActivityRow::new(lead, name, &FIGURES);
        if let (Some(step), Some(stand)) = (step, stand) {
            if step.id == chosen || near(step) {
                row.look = Look::of(Role::Strong).bold();
            }
            fill(&mut row, step, stand, cx);
        }
        row
    };
    let rows: Vec<ActivityRow> = shape.iter().map(row).collect();
    let total = StepTotals::of_all(cx.model, flow);
    let lead = vec![(" ".repeat(wide + 2), Look::of(Role::Text))];
    let mut sum = ActivityRow::new(lead, format!("{} steps", flow.steps.len()), &FIGURES);
    sum.look = Look::of(Role::Dim);
    figures(&mut sum, total);
    let names = ColumnNames { name: "Step", lead: wide + 2, state: "State", figures: &FIGURES };
    let table = ActivityTable::new(names, rows.iter().chain([&sum]), usize::from(columns));
    let any = total.ms > 0 || total.tokens > 0;
    GraphLines {
        head: table.head(),
        rows: rows.iter().map(|r| table.row(r)).collect(),
        sum: any.then(|| table.row(&sum)),
    }
}

fn figures(row: &mut ActivityRow, sum: StepTotals) {
    if sum.ms > 0 {
        row.figure(TIME, lasting(sum.ms), Role::Text);
    }
    if sum.tokens > 0 {
        row.figure(TOKENS, short(sum.tokens), Role::Text);
    }
    row.figure(COST, cost(sum), Role::Text);
}

/// Fills the columns right of a step's name: its state with what it does or why it did not come to its end, and the figures.
fn fill(row: &mut ActivityRow, step: &StepView, (_, word, role): (&str, &str, Role), cx: &DrawCx<'_>) {
    let act = act(step, cx);
    // That it works is said by its sign and by what it does.
    let word = if role == Role::Running && word == "working" && !act.is_empty() { "" } else { word };
    let gap = if word.is_empty() || act.is_empty() { "" } else { "  " };
    let told = if role == Role::Dim { Role::Dim } else { Role::Text };
    row.state = vec![
        (word.to_owned(), if role == Role::Running || role == Role::Ok { Role::Text } else { role }),
        (format!("{gap}{act}"), if word.is_empty() { told } else { Role::Dim }),
    ];
    if step.round > 0 && step.rounds > 0 {
        row.figure(ROUND, format!("{}/{}", step.round, step.rounds), Role::Text);
    }
    let (who, vendor) = who(step, cx);
    row.figure(AGENT, who, vendor);
    figures(row, StepTotals::of(cx.model, step));
}

/// The agent's name, and its program, role or model.
fn who(step: &StepView, cx: &DrawCx<'_>) -> (String, Role) {
    let agent = totals::agent(cx.model, step);
    let child = agent.and_then(|a| a.child.as_deref());
    let (kind, role) = match child {
        Some(c) if c.backend.is_external() => (c.backend.to_string(), Role::Vendor),
        Some(c) if !c.role.is_empty() => (c.role.clone(), Role::Dim),
        _ => (step.by.clone(), Role::Dim),
    };
    let name = agent.map_or("", |a| a.id.name());
    (draw::cut_middle(&clean::plain(format!("{name} {kind}").trim()), 22), role)
}

/// Returns what it does now, or why it is where it is.
fn act(step: &StepView, cx: &DrawCx<'_>) -> String {
    match step.state {
        StepState::Running => {
            let agent = totals::agent(cx.model, step);
            agent.map_or(String::new(), |a| {
                if a.act.is_nothing() { step.goal.clone() } else { a.act.to_string() }
            })
        }
        StepState::Failed | StepState::Skipped | StepState::Cancelled if !step.said.is_empty() => {
            step.said.clone()
        }
        StepState::Done if !step.said.is_empty() => step.said.clone(),
        _ => step.goal.clone(),
    }
}

/// All that is known of a step, in lines.
pub(super) fn detail(flow: &WorkflowView, step: &StepView, cx: &DrawCx<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut pair = |label: &str, text: &str, role: Role| {
        let mut label = label;
        for part in clean::lines(text.trim()).filter(|l| !l.trim().is_empty()) {
            let line = Line::strict(&clean::plain(part), Look::of(role), Wrap::Word);
            lines.push(line.gutter(Gutter::new(format!("{label:<LABEL$}"), Role::Dim)));
            label = "";
        }
    };
    pair("Task", &step.goal, Role::Text);
    let on: Vec<&str> =
        flow.steps.iter().filter(|s| s.needs.contains(&step.id)).map(|s| s.id.as_str()).collect();
    let ways = match (step.needs.is_empty(), on.is_empty()) {
        (true, true) => String::new(),
        (false, true) => step.needs.join(", "),
        (true, false) => format!("nothing; needed by {}", on.join(", ")),
        (false, false) => format!("{}; needed by {}", step.needs.join(", "), on.join(", ")),
    };
    pair("Needs", &ways, Role::Text);
    let by: Vec<String> = agents(step)
        .filter_map(|id| cx.model.row(id))
        .map(|a| {
            let child = a.child.as_deref();
            let external = child.map(|c| &c.backend).filter(|b| b.is_external());
            let model = external.map_or_else(|| a.model.to_string(), ToString::to_string);
            let limit = child
                .filter(|_| a.state.at_work())
                .and_then(crate::panel::agents::nearest_limit)
                .filter(|(percent, _)| *percent >= TOLD)
                .map(|(percent, of)| format!(", {percent}% of its limit of {of}"));
            format!("{} ({model}{})", cx.model.name_of(&a.id), limit.unwrap_or_default())
        })
        .collect();
    pair("Agent", &if by.is_empty() { step.by.clone() } else { by.join("; ") }, Role::Text);
    let (label, role) = match step.state {
        StepState::Failed | StepState::Skipped | StepState::Cancelled => ("Why", Role::Error),
        _ => ("Result", Role::Text),
    };
    pair(label, &step.said, role);
    lines
}

impl Flow {
    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let Some(flow) = self.view(cx.model) else {
            return draw_nothing(buf, area, cx);
        };
        let columns = area.width;
        if area.height > 0 {
            paint_line(buf, Rect { height: 1, ..area }, &head(flow, cx), cx);
        }
        let FlowAreas { head, list, sum, rule, below } = self.parts(area);
        for (line, place) in [(&self.lines.head, head), (&self.lines.sum, sum)] {
            if let Some(line) = line.as_ref().filter(|_| place.height > 0) {
                paint_line(buf, place, line, cx);
            }
        }
        for (n, line) in self.lines.rows.iter().enumerate().skip(self.top).take(usize::from(list.height)) {
            let y = list.y + (n - self.top) as u16;
            let spot = Rect { x: list.x, y, width: columns, height: 1 };
            paint_line(buf, spot, line, cx);
            let step = self.shape.get(n).and_then(|r| flow.steps.get(r.step?));
            if step.is_some_and(|s| s.id == self.step) {
                surface::chosen(cx, spot, buf);
            }
        }
        let hidden = self.lines.rows.len().saturating_sub(self.top + usize::from(list.height));
        if rule.height > 0 {
            for x in rule.left()..rule.right() {
                draw::put(buf, x, rule.y, draw::lines(cx.ascii).h, cx.theme.style(Role::Border));
            }
            let strong = cx.theme.style(Role::Strong).add_modifier(Modifier::BOLD);
            let room = Rect { x: rule.x + 2, width: rule.width.saturating_sub(4), ..rule };
            let used = draw::text(buf, room, &format!(" {} ", clean::plain(&self.step)), strong);
            if hidden > 0 {
                let room = Rect { x: room.x + used, width: room.width.saturating_sub(used), ..room };
                draw::text(buf, room, &format!("{} ", draw::below(hidden)), cx.theme.style(Role::Dim));
            }
        }
        for (n, row) in self.detail.rows.iter().enumerate().take(usize::from(below.height)) {
            let Some(line) = self.detail.lines.get(row.line as usize) else { continue };
            let place = paint::PaintTarget { x: below.x, y: below.y + n as u16, columns: below.width };
            paint::row(buf, place, line, *row, cx.theme, &[]);
        }
        let hidden = self.detail.rows.len().saturating_sub(usize::from(below.height));
        if hidden > 0 && below.height > 0 {
            let text = format!(" {} show all ", cx.key("flow.result"));
            let wide = (width(&text) as u16).min(below.width);
            let spot = Rect { x: below.right() - wide, y: below.bottom() - 1, width: wide, height: 1 };
            draw::text(buf, spot, &text, cx.theme.style(Role::Dim));
        }
    }
}

fn draw_nothing(buf: &mut Buffer, area: Rect, cx: &DrawCx<'_>) {
    draw::text(buf, area, "No workflow has been started in this session", cx.theme.style(Role::Dim));
}

fn paint_line(buf: &mut Buffer, area: Rect, line: &Line, cx: &DrawCx<'_>) {
    let sheet = crate::text::sheet::Sheet::new(vec![line.clone()], usize::from(area.width).max(1));
    if let Some(row) = sheet.rows.first() {
        let place = paint::PaintTarget { x: area.x, y: area.y, columns: area.width };
        paint::row(buf, place, line, *row, cx.theme, &[]);
    }
}
