//! The dialog of an agent's question as a [`Panel`].

use super::*;
use crate::dialog::picker::FILTER_PROMPT;
use crate::dialog::question::{placed, reads};
use crate::panel::composer::request::keep_unsent;

impl Panel for Clarify {
    fn status(&self, model: &Model) -> PanelStatus {
        let state = QuestionState { which: which_of(self.ask.id, model), ..QuestionState::default() };
        PanelStatus::question("clarify", self.ask.id)
            .escape(self.escape_step())
            .state(state)
            .input(self.letters(), !self.answer_state.accepts(model))
    }

    fn title(&self, model: &Model) -> String {
        format!("Question from {}", model.path_of(&self.ask.agent))
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        let columns = model.window.screen.0.saturating_sub(4);
        let question = self.rows.of(columns, || lines(&self.words));
        let list = u16::try_from(self.list(columns).rows.len()).unwrap_or(u16::MAX);
        let own = if self.writing { field::rows(&self.own, columns).clamp(1, FIELD) } else { 1 };
        placed(model.window.screen, question.saturating_add(list), own + 3)
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        let id = action.0;
        let numbered = std::mem::take(&mut self.numbered);
        if !id.starts_with("clarify.") && !id.starts_with("edit.") {
            return Reply::Ignored;
        }
        let edits = id.starts_with("edit.") || matches!(id, "clarify.mark" | "clarify.newline");
        if !(self.writing && edits || self.answer_state.takes(model)) {
            return Reply::done();
        }
        self.answer_state.feedback = None;
        let field = if self.writing { &self.own } else { &self.filter };
        if reads(id, field).is_some_and(|id| self.question.act(id)) {
            return Reply::done();
        }
        match id {
            "clarify.decline" => return self.answer(AskReply::Declined),
            "clarify.choose" => return self.choose(numbered),
            // There is no filter to write into.
            "clarify.mark" if !self.writing && !self.filters() => {}
            id if id.starts_with("edit.") && !self.writing && !self.filters() => {}
            "clarify.down" if self.writing => {
                self.own.vertical(true, COLUMNS, &|_| None);
            }
            "clarify.up" if self.writing => {
                self.own.vertical(false, COLUMNS, &|_| None);
            }
            "clarify.down" => self.chosen = (self.chosen + 1).min(self.found.len().saturating_sub(1)),
            "clarify.up" => self.chosen = self.chosen.saturating_sub(1),
            "clarify.mark" if self.options.multiple && !self.writing => {
                if let Some(choice) = self.found.get(self.chosen).copied() {
                    self.mark(choice);
                }
            }
            // Otherwise it is a blank like any other.
            "clarify.mark" if self.writing => self.own.insert(" "),
            "clarify.mark" => self.filter.insert(" "),
            "clarify.newline" if self.writing => self.own.insert("\n"),
            "clarify.text" if self.options.free && !self.options.choices.is_empty() => {
                self.writing = !self.writing
            }
            "clarify.text" if !self.options.free => {
                self.answer_state.feedback = Some("Only the listed answers are possible".into())
            }
            id if id.starts_with("edit.") => {
                let edit = if self.writing { &mut self.own } else { &mut self.filter };
                edit.act(id);
                if !self.writing {
                    self.search();
                }
            }
            _ => {}
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
            PanelEvent::Resumed => {
                self.on_resume(model);
                Reply::Ignored
            }
            PanelEvent::Withdrawn => keep_unsent(self.unsent_text()),
            PanelEvent::Engine(_) => {
                if self.renew(model) {
                    Reply::done()
                } else {
                    Reply::Ignored
                }
            }
            PanelEvent::Answer(_, event) => self.on_answer(event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        let mut all = Vec::new();
        if !self.withheld() {
            all.push(Hint::of("clarify.choose"));
        }
        if self.options.multiple {
            all.push(Hint::of("clarify.mark"));
        }
        if self.options.free && !self.options.choices.is_empty() {
            all.push(Hint::as_("clarify.text", if self.writing { "list" } else { "type an answer" }));
        }
        all.push(Hint::of("clarify.decline"));
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.answer_state.delay.note_drawn(cx);
        self.sheet = self.list(area.width);
        self.question.fit(usize::from(area.width));
        let [question, list, ..] = self.parts(area);
        self.question.measure(usize::from(area.width), usize::from(question.height), cx.focus);
        let (from, to) = self.span();
        let page = usize::from(list.height).max(1);
        self.top = self.top.min(self.sheet.rows.len().saturating_sub(page)).min(from);
        if to > self.top + page {
            self.top = (to - page).min(from);
        }
        Refresh::after(self.answer_state.delay.remaining(cx.model).filter(|_| cx.focus))
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let [question, list, words, fields] = self.parts(area);
        self.question.draw(question, buf, cx.theme);
        let chosen = self.span();
        for (n, row) in self.sheet.rows.iter().enumerate().skip(self.top).take(usize::from(list.height)) {
            let y = list.y + (n - self.top) as u16;
            let Some(line) = self.sheet.lines.get(row.line as usize) else { continue };
            paint::row(
                buf,
                paint::PaintTarget { x: list.x, y, columns: list.width },
                line,
                *row,
                cx.theme,
                &[],
            );
            if (chosen.0..chosen.1).contains(&n) && !self.writing {
                surface::chosen(cx, Rect { y, height: 1, ..list }, buf);
                if n == chosen.0 {
                    draw::put(buf, list.x, y, sign::CLOSED.text(cx.ascii), cx.theme.style(Role::Selection));
                }
            }
        }
        let (text, role) = self.status(cx);
        draw::text(buf, words, &text, cx.theme.style(role));
        if fields.height == 0 {
            return;
        }
        let sign = if self.writing { ">" } else { sign::CLOSED.text(cx.ascii) };
        draw::text(buf, fields, sign, cx.theme.style(Role::Accent));
        let room = Rect { x: fields.x + 2, width: fields.width.saturating_sub(2), ..fields };
        if self.writing {
            field::draw(&self.own, room, buf, cx.theme);
        } else if self.filter.is_empty() {
            draw::text(buf, room, FILTER_PROMPT, cx.theme.style(Role::Dim));
        } else {
            input::draw(&self.filter, room, buf, cx.theme.style(Role::Text));
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let [_, list, _, fields] = self.parts(area);
        let room = Rect { x: fields.x + 2, width: fields.width.saturating_sub(2), ..fields };
        if self.writing {
            return Some(field::caret(&self.own, room));
        }
        if !self.filter.is_empty() {
            return Some(input::caret(&self.filter, room));
        }
        let row = self.span().0.checked_sub(self.top)?;
        Some(Position::new(list.x, list.y + row as u16))
    }
}

impl Clarify {
    fn letters(&self) -> Letters {
        let numbers = if self.filter.is_empty() { self.options.choices.len() } else { 0 };
        match (self.writing, self.filters()) {
            _ if self.answer_state.sent => Letters::Press,
            (true, _) if self.own.is_empty() && self.options.choices.is_empty() => Letters::Filter(0),
            (true, _) => Letters::Write,
            (false, true) => Letters::Filter(numbers),
            (false, false) => Letters::Number(numbers),
        }
    }

    fn escape_step(&self) -> Option<EscapeStep> {
        if self.writing && !self.options.choices.is_empty() {
            return Some(EscapeStep::Popup);
        }
        (!self.filter.is_empty()).then_some(EscapeStep::Search)
    }

    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(c) = Chord::of(key).text() else { return Reply::Ignored };
        self.answer_state.feedback = None;
        if self.writing {
            self.own.insert(c.encode_utf8(&mut [0; 4]));
            return Reply::done();
        }
        if let Some(reply) = self.digit(c) {
            return reply;
        }
        if !self.filters() {
            return Reply::Ignored;
        }
        self.filter.insert(c.encode_utf8(&mut [0; 4]));
        self.search();
        Reply::done()
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        if !self.options.free {
            return Reply::Ignored;
        }
        // What is pasted is an answer, not a filter.
        self.writing = true;
        self.own.insert(text);
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        let [question, list, ..] = self.parts(area);
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollDown if question.contains(at) => self.question.wheel(true),
            MouseEventKind::ScrollUp if question.contains(at) => self.question.wheel(false),
            MouseEventKind::Down(MouseButton::Left)
                if list.contains(at) && self.answer_state.takes(model) =>
            {
                let row = self.top + usize::from(event.row - list.y);
                if let Some(r) = self.sheet.rows.get(row) {
                    self.chosen = r.line as usize;
                    self.writing = false;
                    if self.options.multiple
                        && let Some(choice) = self.found.get(self.chosen).copied()
                    {
                        self.mark(choice);
                    }
                }
            }
            _ => {}
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        match escape_step {
            EscapeStep::Popup => self.writing = false,
            EscapeStep::Search => {
                // What matches nothing may have been a message.
                let words = self.unmatched();
                self.filter.take();
                self.search();
                if words.is_some() {
                    return keep_unsent(words);
                }
            }
            EscapeStep::Layer => return Reply::with(Effect::Pop),
            _ => {}
        }
        Reply::done()
    }

    fn on_resume(&mut self, model: &Model) {
        self.renew(model);
        self.answer_state.resume();
    }

    fn unsent_text(&self) -> Option<String> {
        let own = self.own.text().trim();
        let own = (!own.is_empty()).then(|| own.to_owned());
        own.or_else(|| self.unmatched()).filter(|_| !self.answer_state.sent)
    }

    /// The words of the filter, where no answer has them.
    fn unmatched(&self) -> Option<String> {
        let words = self.filter.text().trim();
        (self.found.is_empty() && !words.is_empty()).then(|| words.to_owned())
    }

    fn on_answer(&mut self, event: &Event) -> Reply {
        self.answer_state.is_refused(event);
        Reply::done()
    }
}
