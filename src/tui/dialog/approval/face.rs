//! The approval dialog as a panel: what the shell asks of it.

use super::*;

impl Panel for Approval {
    fn scope(&self) -> &'static str {
        match self.mode {
            Mode::Buttons => "approval",
            _ => "approval_text",
        }
    }

    fn title(&self, model: &Model) -> String {
        let name = match self.same.len() {
            0 => model.path_of(&self.ask.agent),
            n => format!("{} (for {} agents)", model.path_of(&self.ask.agent), n + 1),
        };
        let risk = if self.p.risk == Risk::High { ", risky" } else { "" };
        let at = model.asks.iter().position(|a| a.id == self.ask.id).map_or(1, |i| i + 1);
        let of =
            if model.asks.len() > 1 { format!(" -- {at} of {}", model.asks.len()) } else { String::new() };
        let no =
            model.deadlines.get(&self.ask.id).map_or_else(String::new, |until| no_in(*until, model.mono));
        format!("Approve? {name} -- {}{risk}{of}{no}", self.p.verb)
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn ask(&self) -> Option<AskId> {
        Some(self.ask.id)
    }

    fn begun(&self) -> Option<String> {
        let comment = self.comment.text().trim();
        if self.sent {
            return None;
        }
        let changed = self.command.text() != self.p.shown && self.mode == Mode::Command;
        let command = changed.then(|| self.command.text().trim());
        command.or(Some(comment)).filter(|t| !t.is_empty()).map(str::to_owned)
    }

    fn opened(&mut self, model: &Model) -> Vec<Effect> {
        self.gather(model);
        Vec::new()
    }

    fn back(&mut self, model: &Model) {
        self.renew(model);
        self.gather(model);
        self.deaf.restart();
        self.said = None;
    }

    fn place(&self, model: &Model) -> Place {
        self.place_for(model)
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        let id = action.0;
        if id.starts_with("edit.") || id == "approval.send" || id == "approval.newline" {
            let Some(edit) = self.field() else { return Reply::done() };
            match id {
                "approval.send" => return if self.sent { Reply::done() } else { self.send() },
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
        if self.sent || !self.deaf.listens(model) || self.mode != Mode::Buttons {
            return Reply::done();
        }
        self.buttons_act(id)
    }

    fn escape_step(&self, _model: &Model) -> Option<EscapeStep> {
        (self.mode != Mode::Buttons).then_some(EscapeStep::Popup)
    }

    fn escape(&mut self, escape_step: EscapeStep, _model: &Model) -> Reply {
        if escape_step == EscapeStep::Layer {
            return Reply::with(Effect::Pop);
        }
        self.leave_text();
        Reply::done()
    }

    fn key(&mut self, key: &KeyEvent, model: &Model) -> Reply {
        let Some(c) = Chord::of(key).text() else { return Reply::Ignored };
        if self.mode == Mode::Buttons {
            // A message that was meant for the composer: its other letters answer nothing.
            self.deaf.typed(model.mono);
            self.said = Some(crate::dialog::deaf::TYPED.into());
            return Reply::done();
        }
        let Some(edit) = self.field() else { return Reply::Ignored };
        edit.insert(c.encode_utf8(&mut [0; 4]));
        self.height.set(None);
        Reply::done()
    }

    fn paste(&mut self, text: &str, _model: &Model) -> Reply {
        let Some(edit) = self.field() else { return Reply::done() };
        edit.insert(text);
        self.height.set(None);
        Reply::done()
    }

    fn mouse(&mut self, event: &MouseEvent, _area: Rect, model: &Model) -> Reply {
        match event.kind {
            MouseEventKind::ScrollDown => self.text.wheel(true),
            MouseEventKind::ScrollUp => self.text.wheel(false),
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position::new(event.column, event.row);
                let hit = self.spots.iter().find(|(_, r)| r.contains(at)).map(|(b, _)| *b);
                if self.sent || self.mode != Mode::Buttons || !self.deaf.listens(model) {
                    return Reply::done();
                }
                match hit {
                    Some(b @ (Button::No | Button::Comment)) => return self.press(b),
                    Some(_) => self.said = Some("A click is not enough here: press its key".into()),
                    None => {}
                }
            }
            _ => {}
        }
        Reply::done()
    }

    fn event(&mut self, _event: &Event, model: &Model) -> Reply {
        let renewed = self.renew(model);
        if self.gather(model) || renewed { Reply::done() } else { Reply::Ignored }
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Reply {
        if let EventBody::Reply(r) = &event.body
            && let ReplyEvent::ErrorReply { notice } = r.as_ref()
        {
            self.sent = false;
            self.leave_text();
            self.said = Some(format!("Not accepted: {}", notice.message));
        }
        Reply::done()
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        match self.mode {
            Mode::Buttons => {
                // A hint that would do nothing is none.
                let can = self.buttons().filter(|b| !self.unread(b.0));
                let mut all: Vec<Hint> = can.map(|b| Hint::of(b.1)).collect();
                if self.text.below() > 0 {
                    // What makes a yes possible comes first.
                    let at = if self.unread(Button::Once) { 0 } else { all.len() };
                    all.insert(at, Hint::as_("list.page_down", "read on"));
                }
                all
            }
            Mode::Comment => vec![Hint::as_("approval.send", "deny"), Hint::of("approval.newline")],
            Mode::Command => vec![Hint::as_("approval.send", "check again"), Hint::of("approval.newline")],
            Mode::Rule => vec![Hint::as_("approval.send", "use this rule")],
        }
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) {
        self.lay_out(area, cx);
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, model: &Model) -> Option<Position> {
        match self.text_field() {
            Some(edit) => Some(field::caret(edit, self.parts(area, model).field)),
            None => {
                self.spots.iter().find(|(b, _)| *b == self.focus).map(|(_, r)| Position::new(r.x + 1, r.y))
            }
        }
    }

    fn wake(&self, cx: &DrawCx<'_>) -> Option<Duration> {
        let deaf = self.deaf.left(cx.model).filter(|_| cx.focus);
        let until = cx.model.deadlines.get(&self.ask.id).map(|t| tick(t.saturating_sub(cx.mono)));
        deaf.into_iter().chain(until).min()
    }
}
