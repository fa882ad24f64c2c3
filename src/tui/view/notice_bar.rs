//! The lines above the composer's text, on its band: messages to be sent, when the next try starts, and whether the
//! session is saved.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::ask::budget_words;
use tiller_protocol::{Ask, AskBody, QueuedState};
use unicode_width::UnicodeWidthStr;

use crate::dialog::queue;
use crate::input::escape::EscapeStep;
use crate::model::AwaitedToken;
use crate::panel::DrawCx;
use crate::theme::Role;
use crate::widget::{draw, sign};

/// Messages of the queue that are shown.
const QUEUE: usize = 3;

/// Below so many rows they have no lines of their own.
pub(crate) const LOW: u16 = 20;

/// One line: a sign, text, keys at its right end.
pub(crate) struct NoticeLine {
    /// The sign and its look; empty: none.
    sign: (&'static str, Role),
    text: String,
    role: Role,
    /// Keys, each with what it does. One without a key is a remark.
    keys: Vec<(String, String)>,
    /// The action of a click on it.
    pub(crate) act: Option<&'static str>,
}

impl NoticeLine {
    fn new(sign: (&'static str, Role), text: String) -> Self {
        Self { sign, text, role: Role::Text, keys: Vec::new(), act: None }
    }

    fn keys(self, keys: impl IntoIterator<Item = (String, &'static str)>) -> Self {
        Self { keys: keys.into_iter().map(|(key, label)| (key, label.to_owned())).collect(), ..self }
    }
}

/// The lines, most important first. `width`: of the place where they are drawn; `waits`: a question waits that takes no
/// keys.
pub(crate) fn lines(cx: &DrawCx<'_>, width: u16, waits: bool) -> Vec<NoticeLine> {
    let m = cx.model;
    let mut out = Vec::new();
    tour(cx, width, waits, &mut out);
    if let Some(why) = &m.engine.not_saving {
        let failed = sign::FAILED.text(cx.ascii);
        out.push(NoticeLine::new((failed, Role::Error), format!("Not saving: {why}")));
    }
    let half = sign::HALF.text(cx.ascii);
    if let Some(what) = m.agent.session.summary.as_ref().and_then(|s| s.interrupted.as_ref())
        && !m.agent.turn.running
    {
        let line = NoticeLine::new((half, Role::Dim), format!("Interrupted: {}", what.replace('\n', " ")));
        let resume = (!m.agent.session.read_only).then(|| ("/continue".to_owned(), "resumes it"));
        out.push(line.keys(resume));
    }
    if let Some(r) = &m.agent.turn.retry {
        let left = (r.until.millis() - cx.now.millis()).max(0).unsigned_abs().div_ceil(1000);
        let text = format!("Retry {} of {} in {left} s: {}", r.attempt, r.of, r.why);
        let keys = [(cx.key("global.try_now"), "now"), (cx.key("global.escape"), "stop")];
        let line = NoticeLine::new((half, Role::Running), text).keys(keys);
        out.push(NoticeLine { act: Some("global.try_now"), ..line });
    }
    if let Some(wait) = &m.agent.turn.awaited {
        awaited(cx, wait, &mut out);
    }
    queue(cx, &mut out);
    out
}

/// The wait for the first token. From half of its limit on, the limit has a line of its own.
fn awaited(cx: &DrawCx<'_>, wait: &AwaitedToken, out: &mut Vec<NoticeLine>) {
    let sign = || (sign::HALF.text(cx.ascii), Role::Running);
    let seconds = wait.seconds(cx.now);
    let read =
        wait.progress.map(|p| format!("; the server has read {p} % of the prompt")).unwrap_or_default();
    let text = format!("Waiting for the first token, {seconds} s{read}");
    out.push(NoticeLine::new(sign(), text).keys([(cx.key("global.escape"), "stop")]));
    if let Some(limit) = wait.limit.filter(|limit| seconds.saturating_mul(2) >= *limit) {
        let text = format!("It ends after {limit} s: {}", wait.setting);
        out.push(NoticeLine { role: Role::Dim, ..NoticeLine::new(sign(), text) });
    }
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
        let line = NoticeLine::new((sign::EMPTY.text(cx.ascii), Role::Dim), text);
        let line = match i {
            0 if all.len() > 1 => line.keys([(cx.key("queue.open"), "all")]),
            0 => line.keys([(cx.key("composer.up"), "edit")]),
            2 if all.len() > QUEUE => {
                NoticeLine { keys: vec![(String::new(), format!("+{}", all.len() - QUEUE))], ..line }
            }
            _ => line,
        };
        out.push(NoticeLine { role: Role::Dim, act: Some("queue.open"), ..line });
    }
}

/// The step of the guided tour: its title with the keys, and its text.
fn tour(cx: &DrawCx<'_>, width: u16, waits: bool, out: &mut Vec<NoticeLine>) {
    let Some((step, at, of)) = cx.model.tour.step() else { return };
    let keys = [(cx.key("tour.next"), "next"), (cx.key("tour.end"), "end")];
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
    let first =
        NoticeLine { role: Role::Strong, ..NoticeLine::new(("", Role::Text), String::new()).keys(keys) };
    // A key is never cut: where there is too little room, the text below says what it does.
    let whole = line(true);
    let fits = whole.width() + usize::from(first.right()) + 2 <= usize::from(width);
    out.push(NoticeLine { text: if fits { whole } else { line(false) }, ..first });
    let width = usize::from(width).clamp(20, 102);
    // A message of this step would wait behind the question.
    let text = match waits {
        true => {
            format!("A question waits: press {} and answer it first. {}", cx.key("global.answer"), step.text)
        }
        false => step.text.clone(),
    };
    let rows = crate::widget::wrap::wrap(&text, width);
    out.extend(rows.into_iter().map(|text| NoticeLine::new(("", Role::Text), text)));
}

/// Returns what a question is, in one line.
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

impl NoticeLine {
    /// Columns of the keys.
    fn right(&self) -> u16 {
        let of = |(key, label): &(String, String)| key.width() + usize::from(!key.is_empty()) + label.width();
        let all: usize = self.keys.iter().map(of).sum();
        (all + 2 * self.keys.len().saturating_sub(1)) as u16
    }
}

/// Draws as many as fit.
pub(crate) fn draw(cx: &DrawCx<'_>, lines: &[NoticeLine], area: Rect, buf: &mut Buffer) {
    for (i, l) in lines.iter().take(usize::from(area.height)).enumerate() {
        let row = Rect { y: area.y + i as u16, height: 1, ..area };
        let need = l.right();
        let right = if need > 0 && need + 12 < row.width { need } else { 0 };
        let mut left = Rect { width: row.width - right - 2 * u16::from(right > 0), ..row };
        if !l.sign.0.is_empty() {
            let used = draw::text(buf, left, l.sign.0, cx.theme.style(l.sign.1)) + 1;
            left = Rect { x: left.x + used, width: left.width.saturating_sub(used), ..left };
        }
        draw::text(buf, left, &l.text, cx.theme.style(l.role));
        let mut at = Rect { x: row.right() - right, width: right, ..row };
        for (key, label) in l.keys.iter().filter(|_| right > 0) {
            let gap = u16::from(!key.is_empty());
            for (text, role, gap) in [(key, Role::Accent, gap), (label, Role::Dim, 2)] {
                let used = (draw::text(buf, at, text, cx.theme.style(role)) + gap).min(at.width);
                at = Rect { x: at.x + used, width: at.width - used, ..at };
            }
        }
    }
}
