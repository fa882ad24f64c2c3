//! The words of a row of the panel: of an agent, a workflow, a process, a tool.

use tiller_protocol::{
    Act, Activity, AgentState, AgentView, AskBody, ChildView, Cost, ProcessRow, ProcessState, Receipt,
    StepState, WorkflowView,
};

use super::totals::{AgentTotals, ended, waits};
use crate::model::Model;
use crate::model::conversation::{Body, Cell, ToolCell, ToolState};
use crate::panel::times::lasting;
use crate::text::line::Look;
use crate::theme::Role;
use crate::view::words::{goal, money, short};
use crate::widget::activity_table::{ActivityRow, ColumnNames, FigureColumn, WIDE};
use crate::widget::{draw, sign};

/// Share of a limit, in percent, from which it stands out.
pub(super) const NEAR: u64 = 80;
/// Share of a limit from which it is shown.
const TOLD: u64 = 10;

/// The columns, and the places of the figures in them.
pub(super) const NAMES: ColumnNames =
    ColumnNames { name: "Agent", lead: 2, state: "State", figures: &FIGURES };
const FIGURES: [FigureColumn; 9] = [
    FigureColumn::words("Model", 4),
    FigureColumn::words("Message", 2),
    // Where there is little room it goes before the cost: it says whether the agent is done.
    FigureColumn::words("Goal", 1),
    FigureColumn::number("Time", 0),
    FigureColumn::number("Tokens", 3),
    FigureColumn::number("Cost", 1),
    FigureColumn::number("Files", 6),
    FigureColumn::number("Context", 8),
    FigureColumn::number("Limit", 7),
];
const MODEL: usize = 0;
const MESSAGE: usize = 1;
const GOAL: usize = 2;
const TIME: usize = 3;
const TOKENS: usize = 4;
const COST: usize = 5;
const FILES: usize = 6;
const CONTEXT: usize = 7;
const LIMIT: usize = 8;

/// A row with a sign before its name.
fn new_row(indent: usize, (glyph, role): (&str, Role), name: String) -> ActivityRow {
    let glyph = if glyph.is_empty() { " " } else { glyph };
    let lead = vec![(" ".repeat(indent), Look::of(Role::Text)), (format!("{glyph} "), Look::of(role))];
    ActivityRow::new(lead, name, &FIGURES)
}

/// Sign, word and look of a state.
pub(crate) fn look(state: AgentState) -> (&'static str, &'static str, Role) {
    match state {
        AgentState::Idle => (draw::sign(sign::EMPTY), "idle", Role::Dim),
        AgentState::Queued => (draw::sign(sign::EMPTY), "queued", Role::Dim),
        AgentState::Running => (draw::sign(sign::FULL), "working", Role::Running),
        AgentState::Waiting => (draw::sign(sign::ATTENTION), "needs you", Role::Waiting),
        AgentState::Paused => (draw::sign(sign::HALF), "paused", Role::Text),
        AgentState::Done => (draw::sign(sign::OK), "done", Role::Ok),
        AgentState::Failed => (draw::sign(sign::FAILED), "failed", Role::Error),
        AgentState::Cancelled => (draw::sign(sign::DOT), "cancelled", Role::Dim),
        AgentState::Interrupted => (draw::sign(sign::HALF), "interrupted", Role::Text),
    }
}

/// The row of an agent, with its own figures. `path`: its parent is not above it, so that its name says it.
pub(super) fn agent_row(
    model: &Model,
    a: &AgentView,
    (indent, path): (usize, bool),
    columns: usize,
) -> ActivityRow {
    let wide = columns >= WIDE;
    let own = AgentTotals::of(model, a);
    let needs = waits(model, a);
    let (glyph, word, role) = look(if needs { AgentState::Waiting } else { a.state });
    let child = a.child.as_deref();
    let mut called = name(model, a, path);
    // As in the prompt of a shell: where its commands run.
    if let Some(terminal) = child.map(|c| c.terminal.as_str()).filter(|t| !t.is_empty()) {
        called.push_str(&format!(" @{terminal}"));
    }
    let mut row = new_row(indent, (glyph, role), called);
    row.state = state(model, a);
    let (program, vendor) = by(a);
    row.figure(MODEL, program, vendor);
    let (message, told) = receipt(model, a, wide);
    row.figure(MESSAGE, message, told);
    if let Some(g) = child.and_then(|c| c.goal.as_deref()) {
        let (words, role) = goal(g);
        row.figure(GOAL, words, role);
    }
    let time = time(model, a);
    // Where the state has no column, its word stands in place of the time.
    let rests = !matches!(a.state, AgentState::Running | AgentState::Done | AgentState::Idle) && !needs;
    match rests && !wide {
        true => row.figure(TIME, word, Role::Dim),
        false => row.figure(TIME, time, Role::Text),
    }
    row.figure(COST, cost(a, own), Role::Text);
    totals(&mut row, own, wide);
    if wide {
        if let Some(w) = a.window.filter(|w| *w > 0 && !ended(a.state)) {
            let share = (a.context.saturating_mul(100) / w).min(100);
            row.figure(CONTEXT, format!("{share}%"), Role::Text);
        }
        // Of an agent that has ended well it does not matter how near it came.
        let near = child.filter(|_| a.state != AgentState::Done).and_then(nearest_limit);
        if let Some((percent, of)) = near.filter(|(percent, _)| *percent >= TOLD) {
            let role = if percent >= NEAR { Role::Error } else { Role::Text };
            row.figure(LIMIT, format!("{percent}% {of}"), role);
        }
    } else if needs {
        row.below = (wants(model, a), Role::Waiting);
    }
    // The agent on the screen.
    if model.shown_agent() == a.id && !a.id.is_main() {
        row.look = Look::of(Role::Strong).bold();
    }
    row
}

/// Tokens and files.
fn totals(row: &mut ActivityRow, sum: AgentTotals, wide: bool) {
    if sum.tokens > 0 {
        row.figure(TOKENS, short(sum.tokens), Role::Text);
    }
    if sum.files > 0 && wide {
        row.figure(FILES, sum.files.to_string(), Role::Text);
    }
}

/// How an agent stands, and what it does or did.
fn state(model: &Model, a: &AgentView) -> Vec<(String, Role)> {
    let (_, word, role) = look(a.state);
    let child = a.child.as_deref();
    if waits(model, a) {
        return vec![(wants(model, a), Role::Waiting)];
    }
    // A program that rests because a person works in it.
    if child.and_then(|c| c.pane.as_ref()).is_some_and(|p| p.touched && p.doing == Activity::Idle)
        && !ended(a.state)
    {
        return vec![("yours".into(), Role::Ok)];
    }
    let act = act(model, a);
    match a.state {
        AgentState::Running if act.is_empty() => vec![(word.into(), Role::Text)],
        AgentState::Running => vec![(act.into(), Role::Text)],
        AgentState::Done => {
            let result = child.map(|c| c.result.as_str()).filter(|r| !r.is_empty());
            vec![(result.unwrap_or(word).into(), Role::Dim)]
        }
        AgentState::Failed | AgentState::Cancelled | AgentState::Interrupted => {
            let result = child.map_or("", |c| c.result.as_str());
            let role = if role == Role::Error { role } else { Role::Text };
            let mut parts = vec![(word.into(), role)];
            if !result.is_empty() {
                parts.push((format!("  {result}"), Role::Dim));
            }
            parts
        }
        _ => vec![(word.into(), if role == Role::Dim { role } else { Role::Text })],
    }
}

/// Returns what the agent wants of the person.
pub(super) fn wants(model: &Model, a: &AgentView) -> String {
    let ask = model.questions.open.iter().find(|k| k.agent == a.id);
    let words = match ask.map(|k| &k.body) {
        Some(AskBody::Permission(p)) => {
            format!("{} {}", p.wants(), p.shown.lines().next().unwrap_or_default())
        }
        Some(AskBody::Clarify { question, .. }) => question.clone(),
        Some(AskBody::Plan { .. }) => "approve its plan".into(),
        Some(AskBody::Trust { folder, .. }) => format!("trust {folder}"),
        Some(AskBody::Budget { what, .. }) => format!("continue past its limit of {what}"),
        Some(AskBody::DeepTier { model, .. } | AskBody::Unpriced { model, .. }) => format!("use {model}"),
        Some(AskBody::Repeats { .. }) => "continue although it repeats itself".into(),
        Some(AskBody::SessionBusy { .. }) => "open a session that is open elsewhere".into(),
        Some(AskBody::NotSaving { .. }) => "continue without saving".into(),
        None => act(model, a).to_owned(),
    };
    if words.trim().is_empty() { "needs you".into() } else { words }
}

/// How long it has worked.
pub(super) fn time(model: &Model, a: &AgentView) -> String {
    let took = a.child.as_ref().map_or(0.0, |c| c.took);
    match a.since {
        _ if took > 0.0 && ended(a.state) => lasting((took * 1000.0) as i64),
        Some(t) if !ended(a.state) => lasting(model.now.millis() - t.millis()),
        _ => String::new(),
    }
}

/// The model, or another vendor's program.
pub(super) fn by(a: &AgentView) -> (String, Role) {
    let external = a.child.as_ref().map(|c| &c.backend).filter(|b| b.is_external());
    match external {
        Some(program) => (draw::cut_middle(&program.to_string(), 18), Role::Vendor),
        None => {
            let name = a.model.0.rsplit('/').next().unwrap_or_default();
            (draw::cut_middle(name, 18), Role::Dim)
        }
    }
}

/// Returns what it costs. Empty for the demo model, which costs nothing.
fn cost(a: &AgentView, sum: AgentTotals) -> String {
    match sum {
        AgentTotals { cost: Cost(0), unknown: true, .. } => "$?".into(),
        AgentTotals { cost: Cost(0), .. } if a.cost.is_none() || a.model.is_demo() => String::new(),
        AgentTotals { cost, .. } => spent(cost, sum.unknown),
    }
}

/// `$1.30`, and `+?` where the cost of some agents is not known.
pub(super) fn spent(cost: Cost, unknown: bool) -> String {
    format!("{}{}", money(cost.usd()), if unknown { "+?" } else { "" })
}

/// Its name. `path`: with the agents above it.
fn name(model: &Model, a: &AgentView, path: bool) -> String {
    let named = a.id.is_main() && !a.label.is_empty() && a.label != a.id.name();
    let mut name = if named { a.label.clone() } else { model.name_of(&a.id) };
    if let Some(above) = a.id.parent().filter(|p| path && !p.is_main()) {
        name = format!("{}/{name}", above.name());
    }
    let pane = a.child.as_ref().and_then(|c| c.pane.as_ref()).filter(|_| !ended(a.state));
    let bell = if pane.is_some_and(|p| p.bells > model.bells_seen(Some(&a.id))) { " (bell)" } else { "" };
    let behind = if a.child.as_ref().is_some_and(|c| c.background) && !ended(a.state) { " bg" } else { "" };
    format!("{name}{behind}{bell}")
}

/// How far the last message to it has come.
fn receipt(model: &Model, a: &AgentView, wide: bool) -> (String, Role) {
    let of = if wide { "" } else { "message " };
    match model.crew.receipts.get(&a.id) {
        Some(Receipt::Queued) => (format!("{of}queued"), Role::Text),
        Some(Receipt::Delivered { step }) if !ended(a.state) => {
            (format!("{of}read at step {step}"), Role::Ok)
        }
        Some(Receipt::Missed { .. }) => (format!("{of}missed"), Role::Error),
        _ => (String::new(), Role::Dim),
    }
}

/// Returns what it does now; when it has ended, what came out.
pub(super) fn act<'a>(model: &'a Model, a: &'a AgentView) -> &'a str {
    // Of the one on the screen it is seen what streams.
    let shown = model.shown.as_ref().map_or(a.id.is_main(), |id| *id == a.id);
    let words = |c: &Cell| c.open && matches!(c.body, Body::Reply { .. });
    if a.act == Act::Thinking && shown && model.agent.conversation.cells().back().is_some_and(words) {
        return "writing";
    }
    let Some(child) = a.child.as_deref() else { return a.act.words() };
    match ended(a.state) {
        true if child.result.is_empty() => &child.task,
        true => &child.result,
        // Of a program in a terminal only its title tells what it is at.
        false if child.pane.is_some() && matches!(a.act, Act::Nothing | Act::Thinking) => {
            child.pane.as_ref().map(|p| p.title.as_str()).filter(|t| !t.is_empty()).unwrap_or(&child.task)
        }
        false if a.act.is_nothing() => &child.task,
        false => a.act.words(),
    }
}

/// The limit of which most is used: percent, and which one.
pub(crate) fn nearest_limit(child: &ChildView) -> Option<(u64, &'static str)> {
    let (used, of) = (&child.used, &child.limits);
    let share = |used: Option<u64>, of: Option<u64>, word: &'static str| {
        let (used, of) = (used.unwrap_or_default(), of?);
        // A limit of nothing is used up from the start.
        Some((used.saturating_mul(100).checked_div(of).unwrap_or(100), word))
    };
    [
        share(used.cost.map(|c| c.0), of.cost.map(|c| c.0), "cost"),
        share(used.tokens, of.tokens, "tokens"),
        share(used.turns.map(u64::from), of.turns.map(u64::from), "requests"),
        share(used.seconds, of.seconds, "time"),
    ]
    .into_iter()
    .flatten()
    .max_by_key(|(percent, _)| *percent)
}

/// How a workflow stands. `sum`: of the agents of its steps.
pub(super) fn flow_row(flow: &WorkflowView, sum: AgentTotals, indent: usize) -> ActivityRow {
    let state = match (flow.state, flow.paused) {
        (_, true) => AgentState::Paused,
        (StepState::Waiting, _) => AgentState::Queued,
        (StepState::Running, _) => AgentState::Running,
        (StepState::Done, _) => AgentState::Done,
        (StepState::Failed, _) => AgentState::Failed,
        (StepState::Skipped | StepState::Cancelled, _) => AgentState::Cancelled,
        (StepState::Interrupted, _) => AgentState::Interrupted,
    };
    let (glyph, word, role) = look(state);
    let word = if state == AgentState::Running { String::new() } else { format!("{word}  ") };
    let mut parts = vec![
        (word, if role == Role::Error { role } else { Role::Text }),
        (format!("{} of {} steps", flow.done(), flow.steps.len()), Role::Dim),
    ];
    if let Some(s) = flow.steps.iter().find(|s| s.state == StepState::Failed) {
        parts.push((format!("  {}: {}", s.id, s.said), Role::Dim));
    }
    let mut row = new_row(indent, (glyph, role), flow.called());
    row.state = parts;
    row.figure(MODEL, "workflow", Role::Dim);
    if sum.cost != Cost(0) {
        row.figure(COST, spent(sum.cost, sum.unknown), Role::Text);
    }
    totals(&mut row, sum, false);
    row
}

/// The row below the list: totals of all agents.
pub(super) fn sum_row(sum: AgentTotals, columns: usize) -> ActivityRow {
    let mut row = new_row(0, ("", Role::Dim), format!("{} agents", sum.agents));
    row.look = Look::of(Role::Dim);
    if sum.cost != Cost(0) {
        row.figure(COST, spent(sum.cost, sum.unknown), Role::Text);
    }
    totals(&mut row, sum, columns >= WIDE);
    row
}

pub(super) fn process_row(p: &ProcessRow, columns: usize) -> ActivityRow {
    let said = if p.last.is_empty() { p.command.clone() } else { format!("{}: {}", p.command, p.last) };
    let (mut word, mut time) = (String::new(), String::new());
    match &p.state {
        ProcessState::Running { seconds } if p.intervention.is_empty() => {
            time = lasting(i64::try_from(*seconds).unwrap_or(i64::MAX).saturating_mul(1000));
        }
        _ => word = format!("{}  ", p.state_words()),
    }
    let state = vec![(word, Role::Text), (said, Role::Dim)];
    beside((draw::sign(sign::FULL), Role::Running), 0, p.id.clone(), (state, time), columns)
}

pub(super) fn tool_row(model: &Model, t: &ToolCell, indent: usize, columns: usize) -> ActivityRow {
    // While it waits for the person it does not run.
    let now = t.asked.unwrap_or(model.now);
    let time = t.started.map_or_else(String::new, |s| lasting((now.millis() - s.millis()).max(0)));
    let mark = match (t.asked.is_some(), t.state) {
        (true, _) => (draw::sign(sign::ATTENTION), Role::Waiting),
        (_, ToolState::Running) => (draw::sign(sign::FULL), Role::Running),
        _ => (draw::sign(sign::EMPTY), Role::Dim),
    };
    // After a restart only name and arguments are known.
    let (verb, target) = crate::cell::row_words(t, model.row_folders());
    beside(mark, indent, verb, (vec![(target, Role::Dim)], time), columns)
}

/// A row of which the state belongs to the name where it has no column.
fn beside(
    sign: (&str, Role),
    indent: usize,
    name: String,
    (state, time): (Vec<(String, Role)>, String),
    columns: usize,
) -> ActivityRow {
    let words: String = state.iter().map(|(text, _)| text.as_str()).collect();
    let name = if columns >= WIDE { name } else { format!("{name} {words}") };
    let mut row = new_row(indent, sign, name);
    row.state = state;
    row.figure(TIME, time, Role::Text);
    row
}
