//! The lines between conversation and composer: questions without an answer, messages to be sent, when the
//! next try starts, and whether the session is saved.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::ask::budget_words;
use tiller_protocol::{Ask, AskBody, QueuedState};
use unicode_width::UnicodeWidthStr;

use crate::dialog::queue;
use crate::input::escape::EscapeStep;
use crate::panel::DrawCx;
use crate::theme::Role;
use crate::widget::draw;

/// Messages of the queue that are shown.
const QUEUE: usize = 3;

/// Below so many rows they have no lines of their own.
pub(crate) const LOW: u16 = 20;

/// One line: text, what stands at its right end, look.
pub(crate) struct NoticeLine {
    pub(crate) text: String,
    pub(crate) right: String,
    pub(crate) role: Role,
    /// What a click on it does.
    pub(crate) act: Option<&'static str>,
}

/// The lines, most important first. `asks`: questions wait that are not on the screen. `width`: of the
/// place where they are drawn.
pub(crate) fn lines(cx: &DrawCx<'_>, asks: usize, width: u16) -> Vec<NoticeLine> {
    let m = cx.model;
    let mut out = Vec::new();
    tour(cx, width, &mut out);
    if let Some(why) = &m.engine.not_saving {
        out.push(NoticeLine {
            text: format!("x Not saving: {why}"),
            right: String::new(),
            role: Role::Error,
            act: None,
        });
    }
    if asks > 0
        && let Some(ask) = m.questions.open.first()
    {
        let right = format!("{} to answer", cx.key("global.answer"));
        let more = if asks > 1 { format!(" (+{})", asks - 1) } else { String::new() };
        out.push(NoticeLine {
            text: format!("! {}{more}", sentence(m, ask)),
            right,
            role: Role::Waiting,
            act: Some("global.answer"),
        });
    }
    if let Some(what) = m.agent.session.summary.as_ref().and_then(|s| s.interrupted.as_ref())
        && !m.agent.turn.running
    {
        let right = if m.agent.session.read_only { String::new() } else { "/continue resumes it".into() };
        let text = format!("- Interrupted: {}", what.replace('\n', " "));
        out.push(NoticeLine { text, right, role: Role::Waiting, act: None });
    }
    if let Some(r) = &m.agent.turn.retry {
        let left = (r.until.millis() - cx.now.millis()).max(0).unsigned_abs().div_ceil(1000);
        let text = format!("~ Retry {} of {} in {left} s: {}", r.attempt, r.of, r.why);
        out.push(NoticeLine {
            text,
            right: format!("{} now  {} stop", cx.key("global.try_now"), cx.key("global.escape")),
            role: Role::Waiting,
            act: Some("global.try_now"),
        });
    }
    queue(cx, &mut out);
    out
}

/// The messages that wait, and the keys that do something about them.
fn queue(cx: &DrawCx<'_>, out: &mut Vec<NoticeLine>) {
    // Low screens tell in the header how many there are.
    if cx.model.window.screen.1 < LOW {
        return;
    }
    let all: Vec<_> = cx.model.agent.waiting().collect();
    for (i, q) in all.iter().take(QUEUE).enumerate() {
        let saved = if q.state == QueuedState::Queued { " (saving)" } else { "" };
        let text = format!("{} {}: {}{saved}", queue::word(q.mode), i + 1, q.message.text.replace('\n', " "));
        let right = match i {
            0 if all.len() > 1 => format!("{}: all", cx.key("queue.open")),
            0 => format!("{}: edit", cx.key("composer.up")),
            2 if all.len() > QUEUE => format!("+{}", all.len() - QUEUE),
            _ => String::new(),
        };
        out.push(NoticeLine { text, right, role: Role::Dim, act: Some("queue.open") });
    }
}

/// The step of the guided tour: its title with the keys, and its text.
fn tour(cx: &DrawCx<'_>, width: u16, out: &mut Vec<NoticeLine>) {
    let Some((step, at, of)) = cx.model.tour.step() else { return };
    let right = format!("{} next  {} end", cx.key("tour.next"), cx.key("tour.end"));
    let specs = || step.actions.iter().filter_map(|a| cx.keys.words().find(&a.id));
    // Escape is bound to several actions; in a tour it is named by the step's action.
    let label = |s: &crate::keymap::action::ActionSpec| match s.action.0 {
        "global.escape" => EscapeStep::Stop.label().unwrap_or(s.label),
        _ => s.label,
    };
    let line = |labels: bool| -> String {
        let key = |s: &crate::keymap::action::ActionSpec| match labels {
            true => format!("{} {}", cx.key(s.action.0), label(s)),
            false => cx.key(s.action.0),
        };
        let keys: Vec<String> = specs().map(key).collect();
        let keys = if keys.is_empty() { String::new() } else { format!("   {}", keys.join(", ")) };
        format!("tour {at}/{of}  {}{keys}", step.title)
    };
    // A key is never cut: where there is too little room, the text below says what it does.
    let whole = line(true);
    let fits = whole.width() + right.width() + 4 <= usize::from(width);
    let text = if fits { whole } else { line(false) };
    out.push(NoticeLine { text, right, role: Role::Strong, act: None });
    let width = usize::from(width).clamp(20, 102) - 2;
    let rows = crate::widget::wrap::wrap(&step.text, width);
    out.extend(rows.into_iter().map(|text| NoticeLine {
        text,
        right: String::new(),
        role: Role::Text,
        act: None,
    }));
}

/// What the border over the lines says.
pub(crate) fn title(cx: &DrawCx<'_>, shown: &[Option<&'static str>]) -> String {
    let m = cx.model;
    match m.agent.waiting().count() {
        n @ 1.. if shown.contains(&Some("queue.open")) => format!("queue {n}"),
        _ if m.tour.step().is_some() => "tour".into(),
        _ if m.engine.not_saving.is_some() => "not saving".into(),
        _ if !m.questions.open.is_empty() => "needs you".into(),
        _ if m.agent.turn.retry.is_none() => "unfinished".into(),
        _ => "retrying".into(),
    }
}

/// What a question is, in one line.
pub(crate) fn sentence(m: &crate::model::Model, ask: &Ask) -> String {
    let who = m.path_of(&ask.agent);
    match &ask.body {
        AskBody::Permission(p) => {
            format!("{who} wants to {}: {}", p.wants(), p.shown.replace('\n', " "))
        }
        AskBody::Clarify { question, .. } => format!("{who} asks: {}", question.replace('\n', " ")),
        AskBody::Trust { folder, .. } => format!("trust the files of {folder}?"),
        AskBody::Budget { what, spent, limit, next } => {
            format!("{what}: {}", budget_words(spent, limit, next.as_deref()))
        }
        AskBody::Plan { .. } => format!("{} has a plan to approve", ask.agent),
        AskBody::DeepTier { model, .. } => format!("use {model}?"),
        AskBody::Repeats { calls, .. } => format!("{who} repeats the same calls: {calls}"),
        AskBody::Unpriced { model, .. } => format!("use {model} without knowing its price?"),
        AskBody::SessionBusy { holder } => format!("session already open in process {holder}"),
        AskBody::NotSaving { why } => format!("continue without saving? {why}"),
    }
}

/// Draws as many as fit.
pub(crate) fn draw(cx: &DrawCx<'_>, lines: &[NoticeLine], area: Rect, buf: &mut Buffer) {
    for (i, l) in lines.iter().take(usize::from(area.height)).enumerate() {
        let row =
            Rect { x: area.x + 1, y: area.y + i as u16, width: area.width.saturating_sub(2), height: 1 };
        let need = l.right.width() as u16;
        let right = if need > 0 && need + 12 < row.width { need } else { 0 };
        let left = Rect { width: row.width - right - u16::from(right > 0), ..row };
        draw::text(buf, left, &l.text, cx.theme.style(l.role));
        if right > 0 {
            let spot = Rect { x: row.right() - right, width: right, ..row };
            draw::text(buf, spot, &l.right, cx.theme.style(Role::Accent));
        }
    }
}
