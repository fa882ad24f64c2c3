//! What a row of the panel says: of an agent, a process, a tool.

use tiller_protocol::{Act, AgentView, ChildView, Cost, ProcessRow, ProcessState, Receipt, ToolVerb};

use super::totals::{AgentTotals, ended};
use crate::model::Model;
use crate::model::conversation::{Body, Cell, ToolCell, ToolState};
use crate::panel::row_end::RowEnd;
use crate::panel::rows::lasting;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::view::words::money;
use crate::widget::draw;

/// What it costs with all below it; `short`: without the word that it is a sum. Empty for the demo model, which costs
/// nothing.
pub(super) fn cost(a: &AgentView, sum: AgentTotals, short: bool) -> String {
    let more = if sum.unknown { "+?" } else { "" };
    match sum {
        AgentTotals { cost: Cost(0), unknown: true, .. } => "$?".into(),
        AgentTotals { cost: Cost(0), .. } if a.cost.is_none() || a.model.is_demo() => String::new(),
        AgentTotals { agents: 1, cost, .. } => format!("{}{more}", money(cost.usd())),
        AgentTotals { cost, .. } if short => format!("{}{more}", money(cost.usd())),
        AgentTotals { cost, .. } => format!("sum {}{more}", money(cost.usd())),
    }
}

/// Its mark for the screen, and its name.
pub(super) fn name(model: &Model, a: &AgentView) -> String {
    let name = model.name_of(&a.id);
    let label = a.id.is_main() && !a.label.is_empty() && a.label != a.id.name();
    let name = if label { a.label.clone() } else { name };
    let shown = if model.shown.as_ref() == Some(&a.id) { "> " } else { "" };
    let pane = a.child.as_ref().and_then(|c| c.pane.as_ref()).filter(|_| !ended(a.state));
    let bell = if pane.is_some_and(|p| p.bells > model.bells_seen(Some(&a.id))) { " (bell)" } else { "" };
    let behind = if a.child.as_ref().is_some_and(|c| c.background) && !ended(a.state) { " bg" } else { "" };
    format!("{shown}{name}{behind}{bell}")
}

/// How far the last message to it has come.
pub(super) fn receipt(model: &Model, a: &AgentView) -> (String, Role) {
    match model.crew.receipts.get(&a.id) {
        Some(Receipt::Queued) => ("msg queued".into(), Role::Waiting),
        Some(Receipt::Delivered { step }) if !ended(a.state) => (format!("msg step {step}"), Role::Ok),
        Some(Receipt::Missed { .. }) => ("msg missed".into(), Role::Error),
        _ => (String::new(), Role::Dim),
    }
}

/// What it does now; when it has ended, what came out.
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
        share(used.cost.map(|c| c.0), of.cost.map(|c| c.0), "money"),
        share(used.tokens, of.tokens, "tokens"),
        share(used.turns.map(u64::from), of.turns.map(u64::from), "turns"),
        share(used.seconds, of.seconds, "time"),
    ]
    .into_iter()
    .flatten()
    .max_by_key(|(percent, _)| *percent)
}

/// Left part, then the parts at the right, the most important first: what does not fit goes.
pub(super) fn row(indent: usize, name: &str, right: &[(String, Role)], act: &str, columns: usize) -> Line {
    let left = format!("{}{}", " ".repeat(indent), clean::plain(&name.replace('\n', " ")));
    let right = RowEnd::of(right, width(&left).min(columns / 2), columns);
    let mut line = Line::new(Wrap::Cut);
    line.push_strict(&shorten_end(&left, right.room.saturating_sub(1), draw::ascii()), Look::of(Role::Text));
    right.end(&mut line, act);
    line
}

pub(super) fn process_row(p: &ProcessRow, columns: usize) -> Line {
    let state = match &p.state {
        ProcessState::Running { seconds } if p.intervention.is_empty() => {
            let ms = i64::try_from(*seconds).unwrap_or(i64::MAX).saturating_mul(1000);
            format!("~ running {}", lasting(ms))
        }
        _ => format!("~ {}", p.state_words()),
    };
    let said = if p.last.is_empty() { p.command.clone() } else { format!("{}: {}", p.command, p.last) };
    row(2, &p.id, &[(state, Role::Running)], &said, columns)
}

pub(super) fn tool_row(model: &Model, t: &ToolCell, indent: usize, columns: usize) -> Line {
    let since = t.started.map_or(String::new(), |s| format!(" {}", lasting(model.now.millis() - s.millis())));
    let (text, role) = match (t.asking, t.state) {
        (true, _) => ("! needs you".to_owned(), Role::Waiting),
        (_, ToolState::Running) => (format!("~ running{since}"), Role::Running),
        _ => (". waiting".to_owned(), Role::Dim),
    };
    // After a restart only name and arguments are known.
    let (verb, target) = match &t.verb {
        ToolVerb::Unnamed => crate::cell::describe(&t.name, &t.arguments, t.info.as_ref()),
        verb => (verb.to_string(), t.target.clone()),
    };
    row(indent, &verb, &[(text, role)], &target, columns)
}
