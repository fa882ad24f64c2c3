//! Draws a workflow: the head line, the graph with one row per step, and details of the selected step below it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::{AgentState, StepState, StepView, WorkflowView};

use super::totals::{self, StepTotals};
use super::{Flow, agents, graph};
use crate::panel::DrawCx;
use crate::panel::row_end::RowEnd;
use crate::panel::rows::lasting;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, paint, shorten_end, width};
use crate::theme::Role;
use crate::view::words::{money, short};
use crate::widget::draw;

/// Columns of a step's name at most.
const NAME: usize = 24;
/// Share of a limit, in percent, from which it is shown.
const TOLD: u64 = 10;
/// From this width on, a row names the agent of its step.
const WIDE: u16 = 60;

/// Everything below the head.
pub(super) fn body(area: Rect) -> Rect {
    let head = area.height.min(1);
    Rect { y: area.y + head, height: area.height - head, ..area }
}

/// Mark, word and look of a state.
fn look(state: StepState) -> (&'static str, &'static str, Role) {
    match state {
        StepState::Waiting => (".", "waiting", Role::Dim),
        StepState::Running => ("~", "working", Role::Running),
        StepState::Done => ("v", "done", Role::Ok),
        StepState::Failed => ("x", "failed", Role::Error),
        StepState::Skipped => ("-", "skipped", Role::Dim),
        StepState::Cancelled => ("-", "abandoned", Role::Dim),
        StepState::Interrupted => ("=", "interrupted", Role::Waiting),
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
        _ if totals::waits(cx.model, step) => ("!", "needs you", Role::Waiting),
        Some(AgentState::Paused) => ("=", "paused", Role::Waiting),
        Some(AgentState::Queued) => (".", "queued", Role::Dim),
        _ if flow.paused => ("=", "pausing", Role::Waiting),
        Some(_) if agent.is_some_and(|a| step.reviewers.contains(&a.id)) => ("~", "reviewed", Role::Running),
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

/// The line above the picture.
fn head(flow: &WorkflowView, cx: &DrawCx<'_>) -> Line {
    let (glyph, word, role) = match (flow.state, flow.paused) {
        (StepState::Running, true) => ("=", "paused", Role::Waiting),
        (StepState::Cancelled, _) => ("-", "stopped", Role::Dim),
        (state, _) => look(state),
    };
    let sum = StepTotals::of_all(cx.model, flow);
    let mut line = Line::new(Wrap::Cut);
    line.push_strict(&format!("{glyph} {word}"), Look::of(role));
    let mut rest = format!("  {} of {} done", flow.done(), flow.steps.len());
    let waits = flow.steps.iter().filter(|s| totals::waits(cx.model, s)).count();
    for part in [
        Some(sum.ms).filter(|ms| *ms > 0).map(|ms| format!("{} of work", lasting(ms))),
        Some(sum.tokens).filter(|t| *t > 0).map(|t| format!("{} tokens", short(t))),
        Some(cost(sum)).filter(|c| !c.is_empty()),
        Some(waits)
            .filter(|n| *n > 0)
            .map(|n| format!("{n} needs you").replace("needs", if n == 1 { "needs" } else { "need" })),
    ]
    .into_iter()
    .flatten()
    {
        rest.push_str("  ");
        rest.push_str(&part);
    }
    line.push_strict(&rest, Look::of(Role::Dim));
    line
}

/// The picture.
pub(super) fn lines(
    flow: &WorkflowView,
    shape: &[graph::GraphRow],
    chosen: &str,
    columns: u16,
    cx: &DrawCx<'_>,
) -> Vec<Line> {
    let most = usize::from(columns / 3).max(3);
    let wide = shape.iter().map(|r| r.cells.len()).max().unwrap_or(1);
    let names = flow.steps.iter().map(|s| width(&clean::plain(&s.id))).max().unwrap_or(0).min(NAME);
    // The names of those beside the chosen one stand out: the ways from it can be followed.
    let near = |step: &StepView| {
        let own = flow.steps.iter().find(|s| s.id == chosen);
        step.needs.iter().any(|n| n == chosen) || own.is_some_and(|s| s.needs.contains(&step.id))
    };
    let row = |r: &graph::GraphRow| {
        let step = r.step.and_then(|s| flow.steps.get(s));
        let mut line = Line::new(Wrap::Cut);
        line.push_strict(" ", Look::of(Role::Text));
        let stand = step.map(|s| stands(flow, s, cx));
        for c in r.cells.iter().take(most) {
            match (c, stand) {
                (&graph::NODE, Some((glyph, _, role))) => line.push_strict(glyph, Look::of(role).bold()),
                (c, _) => {
                    let c = if cx.ascii { graph::plain(*c) } else { *c };
                    line.push_strict(c.encode_utf8(&mut [0; 4]), Look::of(Role::Dim));
                }
            }
        }
        line.pad_to(1 + wide.min(most) + 2, Look::of(Role::Text));
        if let (Some(step), Some(stand)) = (step, stand) {
            let role = if step.id == chosen || near(step) { Role::Strong } else { Role::Text };
            let name = shorten_end(&clean::plain(&step.id), names, draw::ascii());
            line.push_strict(&name, Look::of(role));
            line.pad_to(1 + wide.min(most) + 2 + names, Look::of(Role::Text));
            rest(&mut line, step, stand, columns, cx);
        }
        line
    };
    shape.iter().map(row).collect()
}

/// What stands right of a step's name: at the right end the figures, the most important first, as far as there is
/// room; between them what it does, or why it did not come to its end.
fn rest(line: &mut Line, step: &StepView, stand: (&str, &str, Role), columns: u16, cx: &DrawCx<'_>) {
    let sum = StepTotals::of(cx.model, step);
    let (_, word, role) = stand;
    let time = if sum.ms > 0 { format!("{word} {}", lasting(sum.ms)) } else { word.to_owned() };
    let round = match (step.round, step.rounds) {
        (_, 0) | (0, _) => String::new(),
        (round, rounds) => format!("round {round}/{rounds}"),
    };
    let tokens = if sum.tokens > 0 { short(sum.tokens) } else { String::new() };
    let right = [
        (time, role),
        (round, Role::Dim),
        (cost(sum), Role::Text),
        (tokens, Role::Dim),
        (who(step, columns, cx), Role::Dim),
    ];
    RowEnd::of(&right, width(line.text()), usize::from(columns)).end(line, &act(step, cx));
}

/// The agent's name, and its program, role or model.
fn who(step: &StepView, columns: u16, cx: &DrawCx<'_>) -> String {
    let agent = totals::agent(cx.model, step);
    let child = agent.and_then(|a| a.child.as_deref());
    let kind = match child {
        Some(c) if c.backend.is_external() => c.backend.to_string(),
        Some(c) if !c.role.is_empty() => c.role.clone(),
        _ => step.by.clone(),
    };
    let name = agent.map_or("", |a| a.id.name());
    let text = if columns < WIDE { name.to_owned() } else { format!("{name} {kind}") };
    draw::cut_middle(&clean::plain(text.trim()), 22)
}

/// What it does now, or why it is where it is.
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
        let text = text.trim();
        if !text.is_empty() {
            let mut label = label;
            for part in clean::lines(text).filter(|l| !l.trim().is_empty()) {
                let mut line = Line::new(Wrap::Word);
                line.push_strict(label, Look::of(Role::Dim));
                line.push_strict(if label.is_empty() { "" } else { " " }, Look::of(Role::Dim));
                line.push_strict(&clean::plain(part), Look::of(role));
                lines.push(line);
                label = "";
            }
        }
    };
    pair("goal:", &step.goal, Role::Text);
    let on: Vec<&str> =
        flow.steps.iter().filter(|s| s.needs.contains(&step.id)).map(|s| s.id.as_str()).collect();
    let ways = match (step.needs.is_empty(), on.is_empty()) {
        (true, true) => String::new(),
        (false, true) => step.needs.join(", "),
        (true, false) => format!("nothing; needed by {}", on.join(", ")),
        (false, false) => format!("{}; needed by {}", step.needs.join(", "), on.join(", ")),
    };
    pair("needs:", &ways, Role::Text);
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
                .map(|(percent, of)| format!(", {percent}% of its {of}"));
            format!("{} ({model}{})", cx.model.name_of(&a.id), limit.unwrap_or_default())
        })
        .collect();
    pair("by:", &if by.is_empty() { step.by.clone() } else { by.join("; ") }, Role::Text);
    let (label, role) = match step.state {
        StepState::Failed | StepState::Skipped | StepState::Cancelled => ("why:", Role::Error),
        _ => ("result:", Role::Text),
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
        let (list, rule, below) = Self::split(body(area), self.shape.len());
        for (n, line) in self.lines.iter().enumerate().skip(self.top).take(usize::from(list.height)) {
            let y = list.y + (n - self.top) as u16;
            let spot = Rect { x: list.x, y, width: columns, height: 1 };
            paint_line(buf, spot, line, cx);
            let step = self.shape.get(n).and_then(|r| flow.steps.get(r.step?));
            if step.is_some_and(|s| s.id == self.step) {
                draw::paint(buf, spot, cx.theme.style(Role::Selection));
            }
        }
        let hidden = self.lines.len().saturating_sub(self.top + usize::from(list.height));
        let more = if hidden > 0 { format!(" +{hidden} below ") } else { String::new() };
        let h = draw::lines(cx.ascii).h;
        let text = format!("{} {} {more}", h.repeat(2), clean::plain(&self.step));
        let text = format!("{text}{}", h.repeat(usize::from(columns).saturating_sub(width(&text))));
        if rule.height > 0 {
            draw::text(buf, rule, &text, cx.theme.style(Role::Dim));
        }
        for (n, row) in self.detail.rows.iter().enumerate().take(usize::from(below.height)) {
            let Some(line) = self.detail.lines.get(row.line as usize) else { continue };
            let place = paint::PaintTarget { x: below.x, y: below.y + n as u16, columns: below.width };
            paint::row(buf, place, line, *row, cx.theme, &[]);
        }
        let hidden = self.detail.rows.len().saturating_sub(usize::from(below.height));
        if hidden > 0 && below.height > 0 {
            let text = format!(" {} shows all ", cx.key("flow.result"));
            let wide = (width(&text) as u16).min(below.width);
            let spot = Rect { x: below.right() - wide, y: below.bottom() - 1, width: wide, height: 1 };
            draw::text(buf, spot, &text, cx.theme.style(Role::Dim));
        }
    }
}

fn draw_nothing(buf: &mut Buffer, area: Rect, cx: &DrawCx<'_>) {
    draw::text(buf, area, "No workflow was started in this session", cx.theme.style(Role::Dim));
}

fn paint_line(buf: &mut Buffer, area: Rect, line: &Line, cx: &DrawCx<'_>) {
    let sheet = crate::text::sheet::Sheet::new(vec![line.clone()], usize::from(area.width).max(1));
    if let Some(row) = sheet.rows.first() {
        let place = paint::PaintTarget { x: area.x, y: area.y, columns: area.width };
        paint::row(buf, place, line, *row, cx.theme, &[]);
    }
}
