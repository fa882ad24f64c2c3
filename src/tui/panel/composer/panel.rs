//! The composer as a [`Panel`].

use std::any::Any;

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::{Attachment, CommandBody, Event, EventBody, MemoryTarget, Message, SendMode};

use super::content::Content;
use super::draft::DraftStore;
use super::vim::{Mode, Vim};
use super::{ACTIONS, Composer, DROPPED, PASTED, RECENT, TAKEN, draw, running_modes, submit};
use crate::app::effect::{Effect, Task, Token};
use crate::dialog::reader::picture::Picture;
use crate::dialog::reader::text::Text;
use crate::input::dropped::{self, Dropped};
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::composer::request::ComposerRequest;
use crate::panel::recent_sessions;
use crate::panel::{
    Availability, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply,
};
use crate::terminal::clipboard::{self, PastedImage};
use crate::text::clean;

/// Content of the clipboard.
enum ClipboardContent {
    Image(PastedImage),
    Text(String),
}

type Pasted = Result<ClipboardContent, String>;

/// Reads the clipboard: an image if there is one, else text. Slow: only in a job.
fn pasted() -> Pasted {
    if let Ok(image) = clipboard::image_from_display() {
        return Ok(ClipboardContent::Image(image));
    }
    clipboard::text_from_display()
        .map(ClipboardContent::Text)
        .map_err(|why| format!("The clipboard cannot be read ({why}). Paste with your terminal's own key."))
}

impl Panel for Composer {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(self.scope()).escape(self.escape_step()).empty(self.content.is_blank())
    }

    fn title(&self, model: &Model) -> String {
        let to = model.shown.as_ref().map_or(String::new(), |a| format!(" to {}", model.name_of(a)));
        let state = match (self.vim.as_ref().map(|v| v.mode), &self.aside) {
            _ if self.vim.as_ref().is_some_and(|v| v.selected(&self.content.edit).is_some()) => " (visual)",
            (Some(Mode::Normal), _) => " (normal)",
            (Some(Mode::Insert), Some(_)) => " (insert, draft stashed)",
            (Some(Mode::Insert), None) => " (insert)",
            (_, Some(_)) => " (draft stashed)",
            _ => "",
        };
        format!("Message{to}{state}")
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, width: u16, _model: &Model) -> Placement {
        Placement::Rows(draw::rows(self, width))
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if let Some(row) = recent_sessions::OPEN.iter().position(|a| *a == action) {
            return self.open_recent(row, model);
        }
        match action.0 {
            "composer.send" => self.enter(model),
            "composer.take" => self.take_row().unwrap_or(Reply::Ignored),
            "composer.memory" if submit::note(self.content.edit.text()).is_some() => {
                let all = MemoryTarget::ALL;
                let at = all.iter().position(|target| *target == self.reported.memory).unwrap_or(0);
                self.reported.memory = all[(at + 1) % all.len()];
                self.notice = None;
                Reply::done()
            }
            "composer.queue" if model.agent.turn.running => self.send(running_modes(model).1, model),
            "composer.now" => self.send(SendMode::Now, model),
            "composer.newline" => {
                self.content.edit.insert("\n");
                self.look()
            }
            "composer.up" => self.up(model),
            "composer.down" => self.down(model),
            "composer.delete" if !self.content.edit.is_empty() => {
                self.content.edit.delete_forward();
                self.look()
            }
            "composer.help" if self.content.edit.is_empty() => Reply::with(Effect::Act(Action("help.open"))),
            "composer.clear" if !self.content.edit.is_empty() => {
                self.history.cleared(&self.content.message());
                self.empty();
                Reply::done()
            }
            "composer.aside" => self.put_aside(),
            "composer.editor" => self.open_editor(model),
            "composer.paste" => Reply::with(Effect::Task(Task::Job(Box::new(|| Box::new(pasted())), PASTED))),
            "composer.look" => match self.content.attached().cloned() {
                Some(Attachment::Paste { label, text }) => {
                    Reply::with(Effect::Push(Box::new(Text::plain(&label, &text))))
                }
                Some(Attachment::Image { label, data, .. }) => {
                    Reply::with(Effect::Push(Box::new(Picture::new(&label, data))))
                }
                _ => {
                    self.notice = Some("There is no pasted block or image at the caret.".into());
                    Reply::done()
                }
            },
            "composer.unfold" => {
                if self.content.unfold() {
                    self.changed();
                } else {
                    self.notice = Some("There is no pasted block before the caret.".into());
                }
                Reply::done()
            }
            id if self.content.edit.act(id) => self.look(),
            _ => Reply::Ignored,
        }
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key, model),
            PanelInput::Paste(text) => self.on_paste(text, model),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open(model)),
            PanelEvent::SettingsChanged => {
                self.on_settings(model);
                Reply::Ignored
            }
            PanelEvent::Engine(event) => self.on_event(event, model),
            PanelEvent::Answer(token, event) => self.on_answer(token, event, model),
            PanelEvent::JobDone(token, result) => self.on_job(token, result),
            PanelEvent::Edited(result) => self.on_edited(result),
            PanelEvent::Message(what) => self.on_message(what, model),
            _ => Reply::Ignored,
        }
    }

    fn availability(&self, action: Action, model: &Model) -> Availability {
        let blank = self.content.is_blank();
        Availability::unless(match action.0 {
            "composer.queue" if submit::note(self.content.edit.text()).is_some() => {
                Some("Text after # goes to memory")
            }
            "composer.now" | "composer.queue" if !model.agent.turn.running => Some("No turn is running"),
            "composer.send" if blank && model.agent.waiting().next().is_some() => None,
            "composer.now" | "composer.queue" | "composer.clear" | "composer.send" if blank => {
                Some("The message is empty")
            }
            "composer.memory" if submit::note(self.content.edit.text()).is_none() => {
                Some("Only text after # goes to memory")
            }
            "composer.aside" if blank && self.aside.is_none() => Some("The message is empty"),
            _ => None,
        })
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if self.popup.as_ref().is_some_and(|p| !p.rows.is_empty()) {
            return vec![Hint::of("composer.take"), Hint::as_("composer.down", "next")];
        }
        if self.recent.selected().is_some() {
            return vec![Hint::as_("composer.send", "open"), Hint::as_("composer.down", "next")];
        }
        if self.content.is_blank() {
            let mut all = Vec::new();
            if model.agent.waiting().next().is_some() {
                // After a stop they wait for the person.
                all.extend((!model.agent.turn.running).then(|| Hint::as_("composer.send", "send queued")));
                all.push(Hint::as_("composer.up", "edit queued"));
                // Where there is little room, what Escape does is more important.
                all.extend((model.window.screen.0 >= 100).then_some(Hint::of("queue.open")));
            }
            return all;
        }
        if submit::note(self.content.edit.text()).is_some() {
            return vec![Hint::as_("composer.send", "keep"), Hint::of("composer.memory")];
        }
        let look = self.content.attached().map(|_| Hint::of("composer.look"));
        if !model.agent.turn.running {
            let mut all = vec![Hint::of("composer.send"), Hint::of("composer.newline")];
            all.extend(look);
            return all;
        }
        let (enter, tab) = match running_modes(model).0 {
            SendMode::Queue => ("queue", "steer"),
            _ => ("steer", "queue"),
        };
        let mut all = vec![
            Hint::as_("composer.send", enter),
            Hint::as_("composer.queue", tab),
            Hint::of("composer.now"),
        ];
        all.extend(look);
        all
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        self.width = usize::from(draw::text_area(self, area).width);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        draw::draw(self, cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        // The terminal's cursor is where text goes.
        self.recent.selected().is_none().then(|| draw::cursor(self, area)).flatten()
    }
}

impl Composer {
    fn scope(&self) -> &'static str {
        if self.recent.selected().is_some() {
            return "recent";
        }
        // What a begun command waits for (`f`, `r`) is never another binding.
        match &self.vim {
            Some(v) if v.mode == Mode::Normal && !v.pending() => "vim",
            _ => "composer",
        }
    }

    fn escape_step(&self) -> Option<EscapeStep> {
        // A list without rows is not seen: there is nothing to close.
        if self.popup.as_ref().is_some_and(|p| !p.rows.is_empty()) {
            return Some(EscapeStep::Popup);
        }
        if self.recent.selected().is_some() {
            return Some(EscapeStep::Selection);
        }
        let leave = self.vim.as_ref().is_some_and(|v| v.mode == Mode::Insert || v.pending());
        // In an empty composer Escape belongs to the other steps, also in vim.
        (leave && !self.content.is_blank()).then_some(EscapeStep::VimInsert)
    }

    fn on_key(&mut self, key: &KeyEvent, model: &Model) -> Reply {
        let Some(c) = Chord::of(key).text() else { return Reply::Ignored };
        if let Some(v) = self.vim.as_mut().filter(|v| v.mode == Mode::Normal) {
            // Beyond the first and the last line is what was written earlier, as in a shell.
            let (before, behind) = self.content.edit.text().split_at(self.content.edit.caret());
            match c {
                'k' if !v.pending() && !before.contains('\n') => return self.up(model),
                'j' if !v.pending() && !behind.contains('\n') => return self.down(model),
                _ => {}
            }
            if matches!(key.code, KeyCode::Char(_)) {
                v.key(c, &mut self.content.edit);
            }
            self.popup = None;
            self.changed();
            return Reply::done();
        }
        if c == ':' && self.gap == Some(self.content.edit.caret()) {
            self.content.edit.delete_back();
        }
        self.gap = None;
        self.content.edit.insert(c.encode_utf8(&mut [0; 4]));
        self.look()
    }

    fn on_paste(&mut self, text: &str, model: &Model) -> Reply {
        // Shell lines, commands and notes have only text.
        let written = self.content.edit.text();
        // A path behind an `@` names a file.
        let words =
            written.starts_with(['!', '/', '#']) || written[..self.content.edit.caret()].ends_with('@');
        if let Some(paths) = dropped::paths(text).filter(|_| !words) {
            self.elsewhere.last += 1;
            let label = format!("[reading picture {}]", self.elsewhere.last);
            self.content.reserve(label.clone(), text);
            self.elsewhere.reading.push(label.clone());
            self.changed();
            let text = text.to_owned();
            let sandbox = model.engine.sandbox.clone();
            let read = move || dropped::read(label, text, &paths, sandbox.as_deref());
            let job = Box::new(move || Box::new(read()) as Box<dyn Any + Send>);
            return Reply::with(Effect::Task(Task::Job(job, DROPPED)));
        }
        self.content.paste(text);
        self.look()
    }

    /// The pictures of a paste, or its text where there are none.
    fn on_dropped(&mut self, dropped: Dropped) -> Reply {
        let Dropped { note, label, text, pictures } = dropped;
        self.elsewhere.reading.retain(|l| *l != label);
        if !self.content.reserves(&label) {
            return Reply::done();
        }
        let said = |why: &str| format!("Not attached as a picture: {}", clean::plain(why));
        let why = pictures.as_ref().err().and_then(|why| why.as_deref()).map(said);
        let why =
            why.or_else(|| note.map(|note| clean::plain(&note).into_owned()).filter(|_| pictures.is_ok()));
        self.content.fill(&label, pictures.unwrap_or_default(), &text);
        self.changed();
        self.notice = why;
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        let text = draw::text_area(self, area);
        if event.kind != MouseEventKind::Down(MouseButton::Left)
            || !text.contains(Position::new(event.column, event.row))
        {
            return Reply::Ignored;
        }
        self.recent.leave();
        let labels = self.content.labels();
        let label = |c: char| labels.get(c);
        let rows = self.content.edit.rows(usize::from(text.width), &label);
        let row = draw::first_row(self, &rows, usize::from(text.height)) + usize::from(event.row - text.y);
        self.content.edit.click(&rows, row, usize::from(event.column - text.x), &label);
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        match escape_step {
            EscapeStep::Popup => self.popup = None,
            EscapeStep::Selection => {
                self.recent.leave();
            }
            EscapeStep::VimInsert => {
                if let Some(v) = &mut self.vim {
                    v.escape(&mut self.content.edit);
                }
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_open(&mut self, model: &Model) -> Vec<Effect> {
        self.vim = (model.ui.keymap == "vim").then(Vim::default);
        if let Some(path) = &model.environment.folders.draft {
            let mut keeper = DraftStore::new(path.clone());
            let draft = keeper.load();
            self.keeper = Some(keeper);
            return self.restore(draft);
        }
        Vec::new()
    }

    fn on_settings(&mut self, model: &Model) {
        if (model.ui.keymap == "vim") != self.vim.is_some() {
            self.vim = (model.ui.keymap == "vim").then(Vim::default);
        }
    }

    fn on_event(&mut self, event: &Event, model: &Model) -> Reply {
        match &event.body {
            EventBody::State(StateEvent::HeadMoved { draft: Some(message), .. }) => self.replace(message),
            EventBody::State(StateEvent::QueueChanged { queue }) => {
                self.queue(queue);
                Reply::Ignored
            }
            EventBody::Reply(r) if matches!(**r, ReplyEvent::SnapshotReply { .. }) => {
                self.whole_state(model);
                let start = event.agent.is_main() && model.is_start();
                if start { Reply::with(recent_sessions::ask(RECENT)) } else { Reply::Ignored }
            }
            _ => Reply::Ignored,
        }
    }

    fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        match (token, &event.body) {
            (TAKEN, EventBody::State(StateEvent::QueueChanged { queue })) => {
                self.taken(queue);
                Reply::done()
            }
            (sent, EventBody::State(StateEvent::QueueChanged { queue })) => self.waits(sent, queue),
            (sent, EventBody::Turn(TurnEvent::UserMessage { .. })) => self.stored(sent),
            (_, EventBody::Reply(reply)) => self.answered(token, reply, model),
            _ => Reply::Ignored,
        }
    }

    fn on_job(&mut self, token: Token, result: Box<dyn Any + Send>) -> Reply {
        if token == DROPPED {
            return result.downcast::<Dropped>().map_or(Reply::Ignored, |d| self.on_dropped(*d));
        }
        match (token, result.downcast::<Pasted>().map(|p| *p)) {
            (PASTED, Ok(Ok(ClipboardContent::Image(i)))) => {
                self.content.image("image/png", i.data, i.width, i.height)
            }
            (PASTED, Ok(Ok(ClipboardContent::Text(text)))) => self.content.paste(&text),
            (PASTED, Ok(Err(why))) => {
                self.notice = Some(why);
                return Reply::done();
            }
            _ => return Reply::Ignored,
        }
        self.changed();
        Reply::done()
    }

    /// The editor's text, with those attachments whose labels are still in it. An empty file means that
    /// nothing was changed.
    fn on_edited(&mut self, result: Result<(), String>) -> Reply {
        let Some(file) = self.elsewhere.editing.take() else { return Reply::Ignored };
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if let Err(e) = std::fs::remove_file(&file) {
            tracing::debug!("{} was kept: {e}", file.display());
        }
        if let Err(why) = result {
            self.notice = Some(why);
        } else if !text.trim().is_empty() {
            let mut old = self.content.message();
            old.attachments.retain(|a| text.contains(a.label()));
            self.content = Content::of(&Message {
                text: text.trim_end().to_owned(),
                attachments: old.attachments,
                ..Message::default()
            });
            self.changed();
        }
        Reply::done()
    }

    fn on_message(&mut self, what: Box<dyn Any>, model: &Model) -> Reply {
        match what.downcast::<ComposerRequest>().map(|r| *r) {
            Ok(ComposerRequest::Insert(message)) => {
                let text = self.content.edit.text();
                let gap = if text.is_empty() || text.ends_with(char::is_whitespace) { "" } else { " " };
                self.content.edit.insert(&format!("{gap}{}", message.text));
                if let Some(name) = message.text.trim().strip_prefix('@') {
                    self.content.mention(name);
                }
                self.popup = None;
                self.changed();
                Reply::done()
            }
            Ok(ComposerRequest::TakeBack(words)) => {
                let edit = &mut self.content.edit;
                let caret = edit.caret();
                if !edit.text()[..caret].ends_with(&words) {
                    return Reply::Ignored;
                }
                edit.replace(caret - words.len()..caret, "");
                Reply::done()
            }
            Ok(ComposerRequest::Replace(message)) => self.replace(&message),
            Ok(ComposerRequest::Take(id)) => self.take_back(id, model),
            Ok(ComposerRequest::Keep(message)) => {
                self.history.keep(message);
                self.changed();
                Reply::done()
            }
            Ok(ComposerRequest::Prepend(words)) => {
                let behind = self.content.edit.caret() + words.len();
                self.content.edit.set_caret(0);
                self.content.edit.insert(&words);
                self.content.edit.set_caret(behind);
                self.look()
            }
            Ok(ComposerRequest::Send(message)) => {
                let submit = TurnCommand::Submit { message: message.clone(), mode: SendMode::default() };
                self.post(message, CommandBody::Turn(submit))
            }
            Err(_) => Reply::Ignored,
        }
    }

    /// Replaces the text; what was there is kept among the earlier prompts.
    fn replace(&mut self, message: &Message) -> Reply {
        self.history.keep(self.content.message());
        self.content = Content::of(message);
        self.popup = None;
        self.changed();
        Reply::done()
    }
}
