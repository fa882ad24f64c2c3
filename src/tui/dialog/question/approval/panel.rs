//! The approval dialog as a [`Panel`].

use super::*;
use crate::dialog::question::reads;
use crate::panel::composer::request::keep_unsent;

impl Panel for Approval {
    fn status(&self, model: &Model) -> PanelStatus {
        let writing = self.fields.mode != KeyTarget::Buttons;
        let scope = if writing { "approval_text" } else { "approval" };
        let escape = writing.then_some(EscapeStep::Popup);
        let letters = if writing && !self.answer_state.sent { Letters::Write } else { Letters::Press };
        PanelStatus::question(scope, self.ask.id)
            .escape(escape)
            .state(self.state(model))
            .input(letters, !self.answer_state.accepts(model))
    }

    fn title(&self, model: &Model) -> String {
        self.titled(model).text
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        self.place_for(model)
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        let id = action.0;
        let read = self.fields.active().and_then(|field| reads(id, field));
        if read.is_some_and(|id| self.text.act(id)) {
            return Reply::done();
        }
        if id.starts_with("edit.") || id == "approval.send" || id == "approval.newline" {
            let Some(edit) = self.fields.active_mut() else { return Reply::done() };
            match id {
                "approval.send" if !self.answer_state.takes(model) => return Reply::done(),
                "approval.send" => return self.send(),
                "approval.newline" => edit.insert("\n"),
                id => {
                    edit.act(id);
                }
            }
            self.height.set(None);
            return Reply::done();
        }
        if !id.starts_with("approval.") && !id.starts_with("list.") {
            return Reply::Ignored;
        }
        if self.fields.mode != KeyTarget::Buttons || !self.answer_state.takes(model) {
            return Reply::done();
        }
        self.buttons_act(id)
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, _) => self.on_mouse(event, model),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open(model)),
            PanelEvent::Resumed => {
                self.on_resume(model);
                Reply::Ignored
            }
            PanelEvent::Withdrawn => keep_unsent(self.unsent_text()),
            PanelEvent::Engine(_) => self.on_event(model),
            PanelEvent::Answer(_, event) => self.on_answer(event),
            PanelEvent::Edited(result) => self.on_return(result),
            PanelEvent::JobDone(_, result) => self.on_draft(result),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        match self.fields.mode {
            // The buttons name their keys.
            KeyTarget::Buttons => Vec::new(),
            KeyTarget::Comment => vec![Hint::as_("approval.send", "deny"), Hint::of("approval.newline")],
            KeyTarget::Command => {
                vec![Hint::as_("approval.send", "check again"), Hint::of("approval.newline")]
            }
            KeyTarget::Rule => vec![Hint::as_("approval.send", "use this rule")],
        }
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.lay_out(area, cx);
        Refresh::after(self.wake(cx))
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, model: &Model) -> Option<Position> {
        match self.fields.active() {
            Some(edit) => Some(field::caret(edit, self.parts(area, model).field)),
            // On the bracket: a block hides no key.
            None => self.spots.iter().find(|(b, _)| *b == self.focus).map(|(_, r)| Position::new(r.x, r.y)),
        }
    }
}

impl Approval {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(c) = Chord::of(key).text() else { return Reply::Ignored };
        let Some(edit) = self.fields.active_mut() else { return Reply::Ignored };
        edit.insert(c.encode_utf8(&mut [0; 4]));
        self.height.set(None);
        Reply::done()
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        let Some(edit) = self.fields.active_mut() else { return Reply::Ignored };
        edit.insert(text);
        self.height.set(None);
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, model: &Model) -> Reply {
        match event.kind {
            MouseEventKind::ScrollDown => self.text.wheel(true),
            MouseEventKind::ScrollUp => self.text.wheel(false),
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position::new(event.column, event.row);
                let hit = self.spots.iter().find(|(_, r)| r.contains(at)).map(|(b, _)| *b);
                if self.answer_state.sent
                    || self.fields.mode != KeyTarget::Buttons
                    || !self.answer_state.takes(model)
                {
                    return Reply::done();
                }
                match hit {
                    Some(b @ (Button::No | Button::Comment | Button::Calls)) => return self.press(b),
                    Some(_) => {
                        self.answer_state.feedback = Some("A click is not enough here: press its key".into())
                    }
                    None => {}
                }
            }
            _ => {}
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        if escape_step == EscapeStep::Layer {
            return Reply::with(Effect::Pop);
        }
        self.leave_text();
        Reply::done()
    }

    fn on_open(&mut self, model: &Model) -> Vec<Effect> {
        self.gather(model);
        Vec::new()
    }

    fn on_resume(&mut self, model: &Model) {
        self.renew(model);
        self.gather(model);
        self.answer_state.resume();
    }

    fn unsent_text(&self) -> Option<String> {
        let comment = self.fields.comment.text().trim();
        if self.answer_state.sent {
            return None;
        }
        let changed = self.fields.command.text() != self.p.shown && self.fields.mode == KeyTarget::Command;
        let command = changed.then(|| self.fields.command.text().trim());
        command.or(Some(comment)).filter(|t| !t.is_empty()).map(str::to_owned)
    }

    fn on_event(&mut self, model: &Model) -> Reply {
        let renewed = self.renew(model);
        if self.gather(model) || renewed { Reply::done() } else { Reply::Ignored }
    }

    fn on_answer(&mut self, event: &Event) -> Reply {
        if self.answer_state.is_refused(event) {
            self.leave_text();
        }
        Reply::done()
    }

    fn wake(&self, cx: &DrawCx<'_>) -> Option<Duration> {
        let delay = self.answer_state.delay.remaining(cx.model).filter(|_| cx.focus);
        let until = cx.model.questions.deadlines.get(&self.ask.id).map(|t| tick(t.saturating_sub(cx.mono)));
        delay.into_iter().chain(cx.delay).chain(until).chain(self.colours.wake()).min()
    }
}
