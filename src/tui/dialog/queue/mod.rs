//! Queued messages: which is sent next and when. Each can be moved, edited, sent at another time, taken back into the
//! composer or removed. The engine owns the queue; the dialog shows its last report.

mod actions;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::QueueCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    CommandBody, Event, EventBody, Message, Notice, NoticeKind, QueueId, Queued, QueuedState, SendMode,
};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use crate::app::effect::{Effect, Task, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::composer::request::ComposerRequest;
use crate::panel::{
    DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::{Dialog, Opener};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::line_list::LineList;
use crate::widget::{draw, field};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("queue.open", "queue", "Reorder, edit or remove waiting messages", |app| {
        let none = app.model.agent.waiting().next().is_none();
        if none { Err("No message is waiting".into()) } else { Ok(Box::new(Queue::default())) }
    })
    .menu(Menu::Write)
    .keys(&["leader j"])],
    groups: &[("Queue", ACTIONS)],
    scopes: &[
        Scope::new("queue", Some("list"), "Queue", false).keys(KEYS),
        Scope::new("queue_text", Some("input"), "Queue, words", true).keys(&[
            ("enter", "queue.send"),
            ("ctrl-j", "queue.newline"),
            ("alt-enter", "queue.newline"),
            ("shift-enter", "queue.newline"),
        ]),
    ],
    ..Dialog::NONE
};

const CHANGE: Token = Token(1);
const EDIT: Token = Token(2);
/// Most rows of the field.
const FIELD: u16 = 6;
/// Rows of the box at most, and at least.
const MOST: u16 = 14;
const LEAST: u16 = 5;

/// The dialog.
#[derive(Default)]
pub struct Queue {
    rows: LineList,
    /// Messages as listed, and the chosen one.
    ids: Vec<QueueId>,
    chosen: Option<QueueId>,
    /// The message that is being edited: id, original, and the new text.
    edit: Option<(QueueId, Message, Edit)>,
    /// An edited message that the engine has not confirmed; its text must not be lost.
    sent: Option<Message>,
}

/// When it goes out, in a word.
pub(crate) fn word(mode: SendMode) -> &'static str {
    match mode {
        SendMode::Steer => "steer",
        SendMode::Queue => "queue",
        SendMode::Now => "now",
    }
}

fn line(n: usize, q: &Queued) -> Line {
    let mut line = Line::new(Wrap::Word);
    let text = q.message.text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.push_strict(&text, Look::of(Role::Text));
    if q.state == QueuedState::Queued {
        line.push(" (saving)", Look::of(Role::Dim));
    }
    line.gutter(Gutter::new(format!("{:>2}  {:<5}  ", n + 1, word(q.mode)), Role::Dim))
}

fn lines(model: &Model) -> Vec<Line> {
    model.agent.waiting().enumerate().map(|(n, q)| line(n, q)).collect()
}

fn waits(q: &Queued) -> bool {
    q.state != QueuedState::Delivered
}

/// Keeps an edited text that is not sent in the composer's history. An unchanged text is in the queue or was sent.
fn changed(old: &Message, edit: &Edit) -> Option<Effect> {
    let text = edit.text().trim_end();
    if text.is_empty() || text == old.text {
        return None;
    }
    let attachments = old.attachments.iter().filter(|a| text.contains(a.label())).cloned().collect();
    let kept = Message { text: text.to_owned(), attachments, ..Message::default() };
    Some(Effect::Tell(View::Composer, Box::new(ComposerRequest::Keep(kept))))
}

fn send(command: QueueCommand) -> Reply {
    Reply::with(Effect::ask(CommandBody::Queue(command), CHANGE))
}

impl Queue {
    fn current<'a>(&self, model: &'a Model) -> Option<&'a Queued> {
        let id = self.chosen?;
        model.agent.waiting().find(|q| q.id == id)
    }

    /// The chosen message stays chosen wherever it goes; when it has gone out, its neighbour is chosen.
    fn follow(&mut self, model: &Model) {
        self.ids = model.agent.waiting().map(|q| q.id).collect();
        match self.chosen.and_then(|id| self.ids.iter().position(|i| *i == id)) {
            Some(at) => self.rows.chosen = at,
            None => self.rows.chosen = self.rows.chosen.min(self.ids.len().saturating_sub(1)),
        }
        self.chosen = self.ids.get(self.rows.chosen).copied();
    }

    fn shift(&self, model: &Model, down: bool) -> Reply {
        let Some(id) = self.chosen else { return Reply::done() };
        // Places are those of the engine's list, in which delivered ones may still stand.
        let all = &model.agent.queue;
        let Some(at) = all.iter().position(|q| q.id == id) else { return Reply::done() };
        let to = match down {
            true => (at + 1..all.len()).find(|i| waits(&all[*i])),
            false => (0..at).rev().find(|i| waits(&all[*i])),
        };
        to.map_or_else(Reply::done, |to| send(QueueCommand::Move { id, to }))
    }

    fn mode(&self, model: &Model, mode: SendMode) -> Reply {
        match self.current(model) {
            Some(q) if q.mode != mode || !model.agent.turn.running => {
                send(QueueCommand::Mode { id: q.id, mode })
            }
            _ => Reply::done(),
        }
    }

    fn finish(&mut self) -> Reply {
        let Some((id, old, edit)) = self.edit.take() else { return Reply::Ignored };
        let text = edit.text().trim_end().to_owned();
        if text.trim().is_empty() || text == old.text {
            return Reply::done();
        }
        let attachments = old.attachments.into_iter().filter(|a| text.contains(a.label())).collect();
        let message = Message { text, attachments, ..Message::default() };
        self.sent = Some(message.clone());
        Reply::with(Effect::ask(CommandBody::Queue(QueueCommand::Edit { id, message }), EDIT))
    }

    fn remove(&self, model: &Model) -> Reply {
        let Some(q) = self.current(model) else { return Reply::done() };
        Reply::Done(vec![
            Effect::Tell(View::Composer, Box::new(ComposerRequest::Keep(q.message.clone()))),
            Effect::ask(CommandBody::Queue(QueueCommand::Remove { id: q.id }), CHANGE),
        ])
    }

    fn field_act(&mut self, id: &str) -> Reply {
        match (id, &mut self.edit) {
            ("queue.send", _) => return self.finish(),
            ("queue.newline", Some((.., edit))) => edit.insert("\n"),
            (id, Some((.., edit))) if id.starts_with("edit.") => {
                edit.act(id);
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn parts(&self, area: Rect) -> (Rect, Rect) {
        let columns = area.width.saturating_sub(2);
        let rows = self.edit.as_ref().map_or(0, |(.., e)| field::rows(e, columns).clamp(1, FIELD));
        let rows = rows.min(area.height.saturating_sub(1));
        let list = Rect { height: area.height - rows, ..area };
        (list, Rect { x: area.x + 2, y: list.bottom(), width: columns, height: rows })
    }
}

impl Panel for Queue {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.edit.is_some() { "queue_text" } else { "queue" })
            .escape(self.edit.is_some().then_some(EscapeStep::Popup))
    }

    fn title(&self, model: &Model) -> String {
        format!("Queue {}", model.agent.waiting().count())
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        let columns = model.window.screen.0.saturating_sub(6).max(1);
        let field = self.edit.as_ref().map_or(0, |(.., e)| field::rows(e, columns).clamp(1, FIELD));
        let need = LineList::height(lines(model), columns).saturating_add(field + 2).clamp(LEAST, MOST);
        if model.window.screen.0 < 60 || model.window.screen.1 < 16 {
            Placement::Full
        } else {
            Placement::Dock { height: need }
        }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if self.edit.is_some() {
            return self.field_act(action.0);
        }
        match action.0 {
            "queue.edit" | "list.open" => {
                if let Some(q) = self.current(model) {
                    self.edit = Some((q.id, q.message.clone(), Edit::with(&q.message.text)));
                }
            }
            "queue.up" => return self.shift(model, false),
            "queue.down" => return self.shift(model, true),
            "queue.steer" => return self.mode(model, SendMode::Steer),
            "queue.after" => return self.mode(model, SendMode::Queue),
            "queue.now" => return self.mode(model, SendMode::Now),
            "queue.remove" => return self.remove(model),
            "queue.take" => {
                let Some(id) = self.chosen else { return Reply::done() };
                let take = Effect::Tell(View::Composer, Box::new(ComposerRequest::Take(id)));
                return Reply::Done(vec![Effect::Pop, take]);
            }
            "list.copy" => {
                if let Some(q) = self.current(model) {
                    return Reply::with(Effect::Task(Task::Copy {
                        text: q.message.text.clone(),
                        what: "message",
                    }));
                }
            }
            "list.back" => return Reply::with(Effect::Pop),
            id if self.rows.act(id) => self.chosen = self.ids.get(self.rows.chosen).copied(),
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area, model),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open(model)),
            PanelEvent::Engine(_) => self.on_event(model),
            PanelEvent::Answer(token, event) => self.on_answer(token, event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if self.edit.is_some() {
            return vec![Hint::as_("queue.send", "keep"), Hint::of("queue.newline")];
        }
        let mut all = vec![Hint::of("queue.edit"), Hint::of("queue.take")];
        if model.agent.waiting().count() > 1 {
            all.extend([Hint::of("queue.up"), Hint::of("queue.down")]);
        }
        match self.current(model).map(|q| q.mode) {
            Some(SendMode::Queue) => all.push(Hint::of("queue.steer")),
            Some(_) => all.push(Hint::of("queue.after")),
            None => {}
        }
        all.extend([Hint::of("queue.now"), Hint::of("queue.remove")]);
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.follow(cx.model);
        let (list, _) = self.parts(area);
        self.rows.set(lines(cx.model), list);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let (list, words) = self.parts(area);
        if self.ids.is_empty() {
            let words =
                format!("Messages that wait for the turn to end; {} queues one", cx.key("composer.queue"));
            draw::text(buf, list, &words, cx.theme.style(Role::Dim));
        }
        self.rows.draw(cx, list, buf);
        if let Some((.., edit)) = &self.edit {
            draw::put(buf, area.x, words.y, ">", cx.theme.style(Role::Accent));
            field::draw(edit, words, buf, cx.theme);
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let (list, words) = self.parts(area);
        match &self.edit {
            Some((.., edit)) => Some(field::caret(edit, words)),
            None => self.rows.cursor(list),
        }
    }
}

impl Queue {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        match (&mut self.edit, Chord::of(key).text()) {
            (Some((.., edit)), Some(c)) => {
                edit.insert(c.encode_utf8(&mut [0; 4]));
                Reply::done()
            }
            _ => Reply::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        if let Some((.., edit)) = &mut self.edit {
            edit.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
        }
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        if self.edit.is_some() {
            return Reply::done();
        }
        let again = self.rows.mouse(event, self.parts(area).0);
        self.chosen = self.ids.get(self.rows.chosen).copied();
        if again { self.act(Action("queue.edit"), model) } else { Reply::done() }
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        if escape_step == EscapeStep::Layer {
            return Reply::with(Effect::Pop);
        }
        // What was typed is not lost by leaving the field.
        match self.edit.take() {
            Some((_, old, edit)) => Reply::Done(changed(&old, &edit).into_iter().collect()),
            None => Reply::done(),
        }
    }

    fn on_open(&mut self, model: &Model) -> Vec<Effect> {
        self.follow(model);
        Vec::new()
    }

    fn on_event(&mut self, model: &Model) -> Reply {
        // The message was sent while it was being edited: the edit must not be sent as a change.
        if let Some((_, old, edit)) =
            self.edit.take_if(|(id, ..)| !model.agent.queue.iter().any(|q| q.id == *id && waits(q)))
        {
            let mut all: Vec<Effect> = changed(&old, &edit).into_iter().collect();
            let said = Notice::new(NoticeKind::Info, "The message was already sent unchanged");
            let said = match all.is_empty() {
                true => said,
                false => said.hint("Your text is the newest entry of the composer's history"),
            };
            all.push(Effect::Toast(said));
            if model.agent.waiting().next().is_none() {
                all.push(Effect::Pop);
            }
            return Reply::Done(all);
        }
        // The queue is empty: the dialog closes unless a message is being edited.
        if model.agent.waiting().next().is_none() && self.edit.is_none() && self.sent.is_none() {
            return Reply::with(Effect::Pop);
        }
        Reply::Ignored
    }

    fn on_answer(&mut self, token: Token, event: &Event) -> Reply {
        let message = self.sent.take_if(|_| token == EDIT);
        let EventBody::Reply(r) = &event.body else { return Reply::done() };
        let ReplyEvent::ErrorReply { notice } = r.as_ref() else { return Reply::done() };
        let Some(message) = message else { return Reply::with(Effect::Toast(notice.clone())) };
        let said = Notice::new(NoticeKind::User, notice.message.clone())
            .hint("Your text is the newest entry of the composer's history");
        Reply::Done(vec![
            Effect::Tell(View::Composer, Box::new(ComposerRequest::Keep(message))),
            Effect::Toast(said),
        ])
    }
}

#[cfg(test)]
mod tests;
