//! The empty conversation: what Tiller is, the model in use, a few keys. For an agent without output: its task, and
//! what it waits for.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use tiller_protocol::{AgentState, AgentView};

use crate::panel::DrawCx;
use crate::text::paint::{self, PaintTarget};
use crate::text::{clean, shorten_end};
use crate::theme::Role;

/// Keys worth knowing first: their actions, and what they do.
const KEYS: &[(&str, &str)] = &[
    ("palette.open", "find and run any action"),
    ("global.leader", "more keys, shown in a box"),
    ("help.open", "help"),
    ("global.profile", "what the agent may do without asking"),
];

/// Rows of an agent's task.
const TASK: usize = 6;

/// Draws it in the middle.
pub(super) fn draw(cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    let shown = cx.model.shown.as_ref().and_then(|id| cx.model.row(id));
    let lines = shown.map_or_else(|| first(cx), |row| silent(cx, row, area.width));
    lay_out(lines, cx, area, buf);
}

/// An agent without output.
fn silent(cx: &DrawCx<'_>, row: &AgentView, width: u16) -> Vec<(String, Role)> {
    let waits = match row.state {
        AgentState::Queued => "Queued. It starts when another agent finishes.",
        AgentState::Running | AgentState::Waiting => "Just started.",
        AgentState::Paused => "Paused.",
        _ => "Ended without a reply.",
    };
    let mut lines = vec![(cx.model.name_of(&row.id), Role::Heading)];
    let task = row.child.as_ref().map(|c| c.task.as_str()).filter(|t| *t != row.label).unwrap_or_default();
    let columns = usize::from(width).saturating_sub(4).clamp(20, 70);
    let task = crate::widget::wrap::wrap(&clean::plain(task), columns);
    lines.extend(task.into_iter().take(TASK).map(|l| (l, Role::Text)));
    lines.push((String::new(), Role::Text));
    lines.push((waits.into(), Role::Accent));
    if row.state == AgentState::Queued {
        let hint = "Set how many run at once with `running` under [agents] in config.toml";
        lines.push((hint.into(), Role::Dim));
    }
    if row.state.at_work() {
        lines.push(("Messages that you send now are delivered then.".into(), Role::Dim));
    }
    lines
}

/// Of the main agent.
fn first(cx: &DrawCx<'_>) -> Vec<(String, Role)> {
    let model = &cx.model.agent.session.model;
    let using = match (model.0.is_empty(), model.is_demo()) {
        (true, _) => "no model yet: you can type, your message is kept".to_owned(),
        (_, true) => "demo model: a script, not a language model; no key, no network".to_owned(),
        _ => format!("model {}", clean::plain(&model.0)),
    };
    let mut lines: Vec<(String, Role)> = vec![
        ("Tiller".into(), Role::Heading),
        ("a workbench for pair programming with an agent".into(), Role::Text),
        (using, Role::Accent),
        (String::new(), Role::Text),
        ("Type what you want done and press Enter.".into(), Role::Text),
        ("@ mentions a file, / runs a command, ! runs a shell command.".into(), Role::Text),
        (String::new(), Role::Text),
    ];
    for (id, what) in KEYS {
        lines.push((format!("{:<11} {what}", cx.key(id)), Role::Dim));
    }
    lines
}

fn lay_out(mut lines: Vec<(String, Role)>, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    let rows = usize::from(area.height);
    if lines.len() > rows {
        lines.retain(|(t, _)| !t.is_empty());
    }
    let widest = lines.iter().map(|(t, _)| crate::text::width(t)).max().unwrap_or(0);
    let x = area.x + (area.width.saturating_sub(widest.min(u16::MAX.into()) as u16)) / 2;
    let y = area.y + (rows.saturating_sub(lines.len()) / 3) as u16;
    for (n, (text, role)) in lines.iter().take(rows).enumerate() {
        let columns = area.right().saturating_sub(x);
        let text = shorten_end(text, columns.into(), cx.ascii);
        paint::text(buf, PaintTarget { x, y: y + n as u16, columns }, &text, cx.theme.style(*role));
    }
}
