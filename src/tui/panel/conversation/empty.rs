//! The empty conversation: what Tiller is, the model in use, a few keys. For an agent without output: its task, and
//! what it waits for.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use tiller_protocol::{AgentState, AgentView, Effort, SandboxScope};

use crate::dialog::settings::profile;
use crate::keymap::action::Action;
use crate::panel::DrawCx;
use crate::panel::recent_sessions::Recent;
use crate::text::paint::{self, PaintTarget};
use crate::text::{clean, shorten_end};
use crate::theme::Role;
use crate::view::{header, layout};
use crate::widget::{draw, sign};

/// The things worth trying after the first message: an action with a key, or a command; and what it does. The footer names
/// the keys of modes, palette and help.
const TRIES: &[(&str, &str)] = &[
    ("history.open", "find a message you sent before"),
    ("/plan", "plan first; no edits or commands until you approve"),
];

/// The name in two rows.
const WORDMARK: [&str; 2] = ["▀█▀ █ █   █   █▀▀ █▀█", " █  █ █▄▄ █▄▄ ██▄ █▀▄"];

/// Rows of an agent's task.
const TASK: usize = 6;

/// Draws it in the middle.
pub(super) fn draw(cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    let shown = cx.model.shown.as_ref().and_then(|id| cx.model.row(id));
    let (columns, rows) = cx.model.window.screen;
    // While the composer stands in the middle, the rest is below it.
    let middle = !cx.model.agent.turn.running && cx.model.tour.step().is_none();
    if shown.is_none()
        && middle
        && layout::has_start(Rect::new(0, 0, columns, rows))
        && area.bottom() + 6 < rows
    {
        return above(cx, area, buf);
    }
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
        lines.push(("It receives the messages you send now at its next step.".into(), Role::Dim));
    }
    lines
}

/// Of the main agent.
fn first(cx: &DrawCx<'_>) -> Vec<(String, Role)> {
    let mut lines = wordmark(cx);
    lines.push((String::new(), Role::Text));
    let ready = ready(cx).into_iter().map(|(text, _)| text).collect();
    lines.extend([(ready, Role::Text), (String::new(), Role::Text)]);
    lines.extend(things_to_try(cx).into_iter().map(|(key, what)| {
        let line = if key.is_empty() { what.to_owned() } else { format!("{key:<11} {what}") };
        (line, Role::Dim)
    }));
    lines
}

fn wordmark(cx: &DrawCx<'_>) -> Vec<(String, Role)> {
    match cx.ascii {
        true => vec![("T I L L E R".into(), Role::Strong)],
        false => WORDMARK.map(|row| (row.to_owned(), Role::Strong)).to_vec(),
    }
}

/// Returns what is ready, in one line: the model, and the mode with what it lets run.
fn ready(cx: &DrawCx<'_>) -> Vec<(String, Role)> {
    let session = &cx.model.agent.session;
    let model = &session.model;
    let (full, free) = (sign::FULL.text(cx.ascii), sign::EMPTY.text(cx.ascii));
    let dot = (format!(" {} ", sign::DOT.text(cx.ascii)), Role::Dim);
    let mut spans = match (model.0.is_empty(), model.is_demo()) {
        (true, _) => vec![
            (format!("{free} "), Role::Dim),
            ("no model yet: you can type, your message is kept".into(), Role::Text),
        ],
        (_, true) => vec![
            (format!("{full} "), Role::Ok),
            ("demo model: a script, not a language model; no key, no network".into(), Role::Text),
        ],
        _ => vec![(format!("{full} "), Role::Ok), (clean::plain(&model.0).into_owned(), Role::Text)],
    };
    if session.effort.used != Effort::Default && !model.0.is_empty() && !model.is_demo() {
        spans.push((format!(" {}", session.effort.used.word()), Role::Dim));
    }
    let columns = layout::start_columns(Rect { width: cx.model.window.screen.0, ..Rect::ZERO });
    let fits = |spans: &[(String, Role)], more: &str| {
        let used: usize = spans.iter().map(|(text, _)| crate::text::width(text)).sum();
        used + 3 + crate::text::width(more) <= usize::from(columns)
    };
    if let Some((sign, role)) = sandbox(cx)
        && fits(&spans, "* sandbox")
    {
        spans.extend([dot.clone(), (format!("{sign} "), role), ("sandbox".to_owned(), Role::Text)]);
    }
    // The header says the mode in a word.
    let mode = profile::meaning(session.profile).to_owned();
    if fits(&spans, &mode) {
        spans.extend([dot, (mode, Role::Dim)]);
    }
    spans
}

/// The sign of a sandbox that was tested: whole, or with gaps, which the header names. `None`: there is none, which the
/// header says, too; commands run elsewhere, or not at all in this mode.
fn sandbox(cx: &DrawCx<'_>) -> Option<(&'static str, Role)> {
    let state = cx.model.engine.sandbox.as_deref()?;
    let profile = cx.model.agent.session.profile;
    let elsewhere = cx.model.terminal_of(&cx.model.shown_agent()).is_some();
    if elsewhere
        || !header::runs_commands(profile)
        || state.method.is_none()
        || state.scope == SandboxScope::Off
    {
        return None;
    }
    match header::sandbox(state, profile) {
        None => Some((sign::FULL.text(cx.ascii), Role::Ok)),
        Some(_) => Some((sign::HALF.text(cx.ascii), Role::Dim)),
    }
}

/// Three things to try, the last two with a key of the composer or a command.
fn things_to_try(cx: &DrawCx<'_>) -> Vec<(String, &'static str)> {
    let key = |id: &'static str| {
        let there = cx.keys.describe(Action(id), &["composer", "global"]);
        there.unwrap_or_else(|| cx.key(id))
    };
    let key = |what: &'static str| if what.starts_with('/') { what.to_owned() } else { key(what) };
    let first = (String::new(), "Type what you want done and press Enter");
    std::iter::once(first).chain(TRIES.iter().map(|(id, what)| (key(id), *what))).collect()
}

/// Draws the lines below the composer while nothing was said: what is ready, the last sessions, and what to try.
pub(crate) fn below(cx: &DrawCx<'_>, area: Rect, recent: Option<&Recent>, buf: &mut Buffer) {
    let mut rest = area;
    let ready = ready(cx);
    let ready: Vec<(&str, Role)> = ready.iter().map(|(text, role)| (text.as_str(), *role)).collect();
    row(cx, &mut rest, &ready, buf);
    skip(&mut rest, 1);
    let rows = recent.map_or(0, |r| r.draw(cx, rest, buf));
    skip(&mut rest, rows + u16::from(rows > 0));
    for (key, what) in things_to_try(cx) {
        match key.as_str() {
            "" => row(cx, &mut rest, &[(what, Role::Text)], buf),
            key => row(cx, &mut rest, &[(&format!("{key:<11} "), Role::Accent), (what, Role::Dim)], buf),
        }
    }
}

/// Where the last sessions stand, in what [`below`] draws into.
pub(crate) fn sessions_area(area: Rect) -> Rect {
    let mut rest = area;
    skip(&mut rest, 2);
    rest
}

/// Leaves so many rows out.
fn skip(rest: &mut Rect, rows: u16) {
    let rows = rows.min(rest.height);
    *rest = Rect { y: rest.y + rows, height: rest.height - rows, ..*rest };
}

/// Draws the next row.
fn row(cx: &DrawCx<'_>, rest: &mut Rect, spans: &[(&str, Role)], buf: &mut Buffer) {
    let mut at = Rect { height: rest.height.min(1), ..*rest };
    skip(rest, 1);
    for (text, role) in spans {
        let used = draw::text(buf, at, text, cx.theme.style(*role)).min(at.width);
        at = Rect { x: at.x + used, width: at.width - used, ..at };
    }
}

/// The name above the composer.
fn above(cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    let rows = wordmark(cx);
    let top = area.bottom().saturating_sub(rows.len() as u16 + 1).max(area.y);
    for (y, (text, role)) in (top..area.bottom()).zip(rows) {
        let columns = (crate::text::width(&text) as u16).min(area.width);
        let x = area.x + (area.width - columns) / 2;
        draw::text(buf, Rect { x, y, width: columns, height: 1 }, &text, cx.theme.style(role));
    }
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
