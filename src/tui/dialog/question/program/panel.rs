//! The dialog of the program's own questions as a [`Panel`].

use super::*;
use crate::dialog::question::{placed, reads};
use crate::panel::composer::request::keep_unsent;

impl Panel for Question {
    fn status(&self, model: &Model) -> PanelStatus {
        let state = QuestionState { which: which_of(self.ask.id, model), ..QuestionState::default() };
        let scope = if self.writing { "question_text" } else { self.scope };
        // A button that does what Escape does names the key.
        let leave = if self.escape.is_some() && !self.writing { "" } else { "later" };
        let escape = self.writing.then_some(EscapeStep::Popup);
        let letters = if self.writing && !self.answer_state.sent { Letters::Write } else { Letters::Press };
        let status = PanelStatus::question(scope, self.ask.id).escape(escape).state(state);
        PanelStatus { leave, ..status.input(letters, !self.answer_state.accepts(model)) }
    }

    fn title(&self, _model: &Model) -> String {
        self.title.clone()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        let width = model.window.screen.0;
        let rows = self.rows.of(width.saturating_sub(4), || self.lines.clone());
        let below = buttons::rows(&self.labels(|_| "n".into()), width.saturating_sub(4));
        placed(model.window.screen, rows, below + 3)
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        let id = action.0;
        if !["question.", "edit.", "list."].iter().any(|p| id.starts_with(p)) {
            return Reply::Ignored;
        }
        if self.writing && id != "question.send" {
            match reads(id, &self.field) {
                Some(id) => self.text.act(id),
                None => self.field.act(id),
            };
            return Reply::done();
        }
        if !self.answer_state.takes(model) {
            return Reply::done();
        }
        if self.writing {
            return self.send();
        }
        self.answer_state.feedback = None;
        let count = self.count();
        match id {
            "question.next" => self.focus = (self.focus + 1) % count,
            "question.previous" => self.focus = (self.focus + count - 1) % count,
            "question.press" if self.says_yes(self.focus) => {
                self.answer_state.feedback = Some("To approve, press the key of the button".into());
            }
            "question.press" => return self.press(self.focus),
            id => {
                if let Some(n) = self.choices.iter().position(|c| c.0 == id) {
                    return self.press(n);
                }
                if !self.text.act(id) {
                    return Reply::Ignored;
                }
            }
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, _) => self.on_mouse(event, model),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step, model),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Resumed => {
                self.on_resume();
                Reply::Ignored
            }
            PanelEvent::Withdrawn => keep_unsent(self.unsent_text()),
            PanelEvent::Engine(_) => self.on_event(model),
            PanelEvent::Answer(_, event) => self.on_answer(event),
            PanelEvent::JobDone(_, result) => self.on_job(result),
            PanelEvent::Edited(result) => self.on_edited(result),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.writing {
            return vec![Hint::as_("question.send", if self.scope == "plan" { "send" } else { "raise" })];
        }
        // The buttons name their keys.
        Vec::new()
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let labels = self.labels(|id| cx.key(id));
        let [text, _, below] = self.parts(area, &labels);
        self.text.measure(usize::from(area.width), usize::from(text.height), cx.focus);
        self.answer_state.delay.note_drawn(cx);
        self.spots = if self.writing { Vec::new() } else { buttons::spots(&labels, below) };
        let delay = self.answer_state.delay.remaining(cx.model).filter(|_| cx.focus);
        Refresh::after(delay.into_iter().chain(cx.delay).min())
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let labels = self.labels(|id| cx.key(id));
        let [text, words, below] = self.parts(area, &labels);
        self.text.draw(text, buf, cx.theme);
        let more = self.text.below();
        let rows = || format!("{} ({})", draw::below(more), cx.key("list.page_down"));
        let status = match (&self.answer_state.feedback, self.answer_state.sent) {
            (_, true) => "Sent; waiting for the engine".into(),
            (Some(said), _) if said == NOT_YET && more > 0 => format!("Not yet: {}", rows()),
            (Some(said), _) => said.clone(),
            _ if self.writing && self.scope == "plan" => "What to change:".into(),
            _ if self.writing => "New limit in US dollars:".into(),
            _ if more > 0 && (0..self.choices.len()).any(|n| self.unread(n)) => {
                format!("{}: read to the end before you trust it", rows())
            }
            _ if more > 0 => rows(),
            _ => String::new(),
        };
        draw::text(buf, words, &status, cx.theme.style(Role::Waiting));
        if self.writing {
            let mark = if self.scope == "plan" { ">" } else { "$" };
            draw::text(buf, below, mark, cx.theme.style(Role::Accent));
            let room = Rect { x: below.x + 2, width: below.width.saturating_sub(2), ..below };
            input::draw(&self.field, room, buf, cx.theme.style(Role::Text));
            return;
        }
        let off = !self.answer_state.accepts(cx.model) || cx.delay.is_some();
        for (n, (label, spot)) in labels.iter().zip(&self.spots).enumerate() {
            let face = match (off || self.unread(n), n == self.focus) {
                (true, _) => Face::Off,
                (_, true) => Face::Focus,
                _ => Face::Plain,
            };
            buttons::draw(cx, label, *spot, face, buf);
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        if self.writing {
            let [_, _, below] = self.parts(area, &[]);
            let room = Rect { x: below.x + 2, width: below.width.saturating_sub(2), ..below };
            return Some(input::caret(&self.field, room));
        }
        self.spots.get(self.focus).map(|r| Position::new(r.x, r.y))
    }
}

impl Question {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(c) = Chord::of(key).text().filter(|_| self.writing) else { return Reply::Ignored };
        self.field.insert(c.encode_utf8(&mut [0; 4]));
        Reply::done()
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        if !self.writing {
            return Reply::Ignored;
        }
        self.field.insert(&text.replace(['\n', '\r'], " "));
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, model: &Model) -> Reply {
        match event.kind {
            MouseEventKind::ScrollDown => self.text.wheel(true),
            MouseEventKind::ScrollUp => self.text.wheel(false),
            MouseEventKind::Down(MouseButton::Left) if self.answer_state.takes(model) => {
                let at = Position::new(event.column, event.row);
                match self.spots.iter().position(|r| r.contains(at)) {
                    Some(n) if self.says_yes(n) => {
                        self.answer_state.feedback = Some("A click is not enough here: press its key".into());
                    }
                    Some(n) if n < self.count() => return self.press(n),
                    _ => {}
                }
            }
            _ => {}
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep, model: &Model) -> Reply {
        if escape_step != EscapeStep::Layer {
            self.writing = false;
            self.answer_state.delay.restart();
            return Reply::done();
        }
        match self.escape.clone() {
            Some(_) if !self.answer_state.takes(model) => Reply::done(),
            Some(reply) => self.put_off(reply),
            None => Reply::with(Effect::Pop),
        }
    }

    fn on_resume(&mut self) {
        self.answer_state.resume();
    }

    fn unsent_text(&self) -> Option<String> {
        let text = self.field.text().trim();
        (self.scope == "plan" && !self.answer_state.sent && !text.is_empty()).then(|| text.to_owned())
    }

    fn on_event(&mut self, model: &Model) -> Reply {
        if let Some(now) = model.questions.open.iter().find(|a| a.id == self.ask.id)
            && *now != self.ask
            && let Some(new) = Self::of(now)
        {
            *self = new;
            return Reply::done();
        }
        Reply::Ignored
    }

    fn on_answer(&mut self, event: &Event) -> Reply {
        if self.answer_state.is_refused(event) {
            self.answer_state.delay.restart();
        }
        Reply::done()
    }

    fn on_job(&mut self, result: Box<dyn std::any::Any + Send>) -> Reply {
        match super::plan::found(&self.ask.body, result) {
            Some(Ok(lines)) => {
                self.text.set(lines.clone());
                self.lines = lines;
                self.rows.forget();
            }
            Some(Err(why)) => self.answer_state.feedback = Some(why),
            None => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_edited(&mut self, result: Result<(), String>) -> Reply {
        self.answer_state.delay.restart();
        match result {
            Ok(()) => super::plan::read(&self.ask.body).map_or(Reply::Ignored, Reply::with),
            Err(why) => {
                self.answer_state.feedback = Some(why);
                Reply::done()
            }
        }
    }
}
