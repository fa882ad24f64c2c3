//! The conversation as a [`Panel`].

use super::*;

/// Columns that frames and margins take.
const BORDERS: u16 = 4;

impl Panel for ConversationPanel {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(self.scope()).escape(self.escape_step())
    }

    fn title(&self, model: &Model) -> String {
        let earlier = model.agent.conversation.above();
        let name = match &*model.shown {
            _ if self.viewer => "Viewer".to_owned(),
            Some(agent) => model.path_of(agent),
            None => "Conversation".to_owned(),
        };
        let state = if self.copy.is_some() { ": copy mode" } else { "" };
        if earlier > 0 && self.viewer {
            format!("{name}{state} ({earlier} earlier)")
        } else {
            format!("{name}{state}")
        }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if let Some(search) = self.search.as_mut().filter(|s| s.typing) {
            if search.edit.act(action.0) {
                search.run(&model.agent.conversation);
                return Reply::done();
            }
            if !action.0.starts_with("conversation.") {
                return Reply::Ignored;
            }
        }
        if let Some(mut copy) = self.copy {
            if copy.act(action.0, &mut self.view, &model.agent.conversation) {
                self.copy = Some(copy);
                return self.done(model);
            }
            match action.0 {
                "copy.take" | "list.copy" | "list.open" => return self.take(model),
                "copy.leave" | "list.back" => {
                    self.copy = None;
                    return Reply::done();
                }
                _ => {}
            }
        }
        self.do_action(action.0, model)
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key, model),
            PanelInput::Paste(text) => self.on_paste(text, model),
            PanelInput::Mouse(event, area) => self.mouse_event(event, area, model),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step, model),
            PanelInput::CopySelection => self.copy_selection(model).unwrap_or(Reply::Ignored),
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Engine(event) => self.on_event(event, model),
            PanelEvent::Answer(token, event) => self.on_answer(token, event, model),
            PanelEvent::JobDone(_, _) => Reply::Ignored,
            PanelEvent::Edited(result) => self.on_edited(result),
            PanelEvent::Message(what) => self.on_message(what, model),
            _ => Reply::Ignored,
        }
    }

    fn availability(&self, action: Action, model: &Model) -> Availability {
        let empty = action.0.starts_with("conversation.") && model.agent.conversation.cells().is_empty();
        Availability::unless(empty.then_some("The conversation is empty"))
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if self.search.as_ref().is_some_and(|s| s.typing) {
            return vec![Hint::as_("input.done", "find")];
        }
        if self.copy.is_some() {
            return vec![
                Hint::of("copy.mark"),
                Hint::of("copy.take"),
                Hint::of("copy.dump"),
                Hint::of("copy.edit"),
                Hint::of("list.search"),
            ];
        }
        let mut hints = Vec::new();
        if self.search.is_some() {
            hints.extend([Hint::of("list.next"), Hint::of("list.previous")]);
        }
        hints.extend(self.opens(model).then_some(Hint::of("list.open")));
        if !self.learnings(model).is_empty() {
            hints.push(Hint::of("conversation.learning_wrong"));
        }
        hints.extend([
            Hint::of("list.copy"),
            Hint::of("list.search"),
            Hint::of("conversation.turn_up"),
            Hint::of("conversation.tool_up"),
            Hint::of("conversation.copy_mode"),
        ]);
        hints
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        fit(&mut self.view, area, cx);
        let env = &mut self.view.env;
        env.rows = env.rows.saturating_sub(usize::from(self.search.is_some()));
        env.leaps = cx.model.agent.turn.running
            && area.width + BORDERS < cx.model.window.screen.0
            && !cx.model.window.sides;
        env.unfold_key = cx.key("conversation.unfold");
        env.viewer_key = cx.key("viewer.open");
        env.review_key = cx.key("review.open");
        cx.model.row_folders().clone_into(&mut env.folders);
        env.todo_shown = !self.viewer
            && area.width + BORDERS < cx.model.window.screen.0
            && !cx.model.agent.todo.is_empty();
        let conv = &cx.model.agent.conversation;
        self.view.measure(conv);
        if cx.focus && self.cursor.is_none_or(|k| conv.find(k).is_none()) {
            self.cursor = self.view.visible.last().map(|s| s.key);
        }
        let bare = !cx.focus && self.search.is_none() && self.copy.is_none() && self.selection.is_none();
        let shown = self.view.shown().filter(|_| bare);
        let (kept, blank) = match (&self.shown, &shown) {
            (Some(before), Some(now)) => (before.same(now), before.blank().min(now.blank())),
            _ => (0, 0),
        };
        self.shown = shown;
        let spinners = spinners(&self.view, cx);
        Refresh { wake: self.view.moving(conv), kept: kept as u16, blank: blank as u16, spinners }
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let conv = &cx.model.agent.conversation;
        if conv.cells().is_empty() {
            empty::draw(cx, area, buf);
            return;
        }
        let words = self.search.as_ref().map_or("", Search::words);
        let cursor = self.cursor.filter(|_| self.copy.is_none() && !self.viewer);
        let over = draw::Overlay { cursor, selection: self.range(cx.model), words, hit: self.hit };
        draw::rows(&self.view, over, cx, area, buf);
        if cx.kept == 0 {
            self.remarks(cx, area, buf);
        }
    }

    fn cursor(&self, area: Rect, model: &Model) -> Option<Position> {
        if let Some(s) = self.search.as_ref().filter(|s| s.typing) {
            let x = 1 + crate::text::width(s.edit.text().get(..s.edit.caret())?);
            return Some(Position::new(
                area.x + (x as u16).min(area.width.saturating_sub(1)),
                area.bottom() - 1,
            ));
        }
        let (x, y) = match &self.copy {
            Some(copy) => self.view.screen_of(copy.caret)?,
            None => {
                let seen = self.view.visible.iter().find(|s| Some(s.key) == self.cursor)?;
                let gap = self.view.kept(seen.key)?.gap;
                (0, seen.y + gap.saturating_sub(seen.from).min(seen.rows - 1))
            }
        };
        let _ = model;
        Some(Position::new(area.x + (x as u16).min(area.width.saturating_sub(1)), area.y + y as u16))
    }
}

impl ConversationPanel {
    fn scope(&self) -> &'static str {
        if self.search.as_ref().is_some_and(|s| s.typing) {
            "input"
        } else if self.copy.is_some() {
            "copy"
        } else if self.viewer {
            "viewer"
        } else {
            "conversation"
        }
    }

    fn escape_step(&self) -> Option<EscapeStep> {
        if self.search.is_some() {
            Some(EscapeStep::Search)
        } else if self.selection.is_some() || self.copy.is_some_and(|c| c.mark.is_some()) {
            Some(EscapeStep::Selection)
        } else if self.copy.is_some() {
            Some(EscapeStep::CopyMode)
        } else {
            None
        }
    }

    fn on_key(&mut self, key: &KeyEvent, model: &Model) -> Reply {
        let Some(search) = self.search.as_mut().filter(|s| s.typing) else { return Reply::Ignored };
        match key.code {
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                search.edit.insert(c.encode_utf8(&mut [0; 4]));
                search.run(&model.agent.conversation);
                self.hit = None;
                Reply::done()
            }
            KeyCode::Enter => self.find(model),
            _ => Reply::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str, model: &Model) -> Reply {
        let Some(search) = self.search.as_mut().filter(|s| s.typing) else { return Reply::Ignored };
        search.edit.insert(text.lines().next().unwrap_or_default());
        search.run(&model.agent.conversation);
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep, model: &Model) -> Reply {
        match escape_step {
            EscapeStep::Search => {
                self.search = None;
                self.hit = None;
                self.hold_pages(model);
            }
            EscapeStep::Selection => {
                self.selection = None;
                if let Some(copy) = &mut self.copy {
                    copy.mark = None;
                }
            }
            EscapeStep::CopyMode => self.copy = None,
            EscapeStep::Layer => return Reply::with(Effect::Pop),
            _ => {}
        }
        Reply::done()
    }

    pub(super) fn copy_selection(&mut self, model: &Model) -> Option<Reply> {
        let text = self.selected_text(model)?;
        self.selection = None;
        Some(Reply::with(Effect::Task(crate::app::effect::Task::Copy { text, what: "selection" })))
    }

    fn on_event(&mut self, event: &Event, model: &Model) -> Reply {
        if let EventBody::Reply(r) = &event.body
            && let ReplyEvent::SnapshotReply { .. } = r.as_ref()
        {
            self.loading = false;
            self.wanted = None;
            self.to_start = false;
            self.asked = None;
            self.selection = None;
            if let Some(search) = &mut self.search {
                search.restart(&model.agent.conversation);
            }
            self.copy = self.copy.filter(|c| model.agent.conversation.find(c.caret.key).is_some());
            return self.done(model);
        }
        Reply::Ignored
    }

    fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        if token == WRONG {
            return match &event.body {
                EventBody::Reply(reply) if matches!(reply.as_ref(), ReplyEvent::DoneReply { .. }) => {
                    let text = "Retired: it is not attached any more. /learnings undoes that";
                    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
                }
                _ => Reply::Ignored,
            };
        }
        if token != PAGE {
            return Reply::Ignored;
        }
        self.loading = false;
        let conv = &model.agent.conversation;
        let EventBody::Reply(reply) = &event.body else { return Reply::done() };
        match reply.as_ref() {
            ReplyEvent::PathPartReply { at: PathPlace::Search { entry }, entries, earlier, .. } => {
                if let Some(search) = self.search.as_mut().filter(|s| s.before == Some(*entry)) {
                    search.look(&conv.cells_of(entries), entries.first().map(|e| e.id), *earlier);
                }
            }
            ReplyEvent::PageReply { .. } | ReplyEvent::PathPartReply { .. } => return self.on_part(model),
            _ => {
                // What cannot be read is not requested again.
                (self.wanted, self.to_start) = (None, false);
                if let Some(search) = &mut self.search {
                    search.whole = false;
                }
                self.hold_pages(model);
                return Reply::done();
            }
        }
        self.forget_asked(conv);
        let first_hit = |s: &Search| !s.typing && s.current.is_none() && !s.hits.is_empty();
        match self.search.as_ref().is_some_and(first_hit) {
            true => self.step(model, false),
            false => self.done(model),
        }
    }

    /// Another part is here: goes to what is waited for.
    fn on_part(&mut self, model: &Model) -> Reply {
        let conv = &model.agent.conversation;
        if self.wanted.is_none() && !self.to_start {
            self.forget_asked(conv);
            return self.done(model);
        }
        // Something else came, or the end has changed meanwhile.
        let again = self.place_part(conv).is_some_and(|query| self.asked.as_ref() != Some(&query));
        let here = self.wanted.map_or(self.to_start && conv.above() == 0, |e| conv.find_entry(e).is_some());
        if again && !here {
            return self.done(model);
        }
        self.asked = None;
        let (wanted, to_start) = (self.wanted.take(), std::mem::take(&mut self.to_start));
        match wanted {
            Some(entry) if self.search.as_ref().and_then(Search::hit_entry) == Some(entry) => {
                if here {
                    self.show_hit(model)
                } else {
                    self.done(model)
                }
            }
            Some(entry) if here => self.go_to(model, &GoTo::Entry(entry)),
            Some(entry) => {
                Reply::with(Effect::Push(Box::new(crate::dialog::session::tree::at(model, entry))))
            }
            None if to_start && here => self.do_action("conversation.first", model),
            None => self.done(model),
        }
    }

    /// Lets a part that was asked for and came be asked for again later. A part that was of no use may not.
    fn forget_asked(&mut self, conv: &Conversation) {
        let next = self.near_part(conv).or_else(|| self.search_part());
        if next != self.asked {
            self.asked = None;
        }
    }

    fn on_edited(&mut self, result: Result<(), String>) -> Reply {
        if let Some(file) = self.file.take() {
            let _ = std::fs::remove_file(file);
        }
        match result {
            Ok(()) => Reply::done(),
            Err(why) => Reply::with(Effect::Toast(Notice::new(NoticeKind::User, why))),
        }
    }

    fn on_message(&mut self, what: Box<dyn Any>, model: &Model) -> Reply {
        match what.downcast::<GoTo>() {
            Ok(to) => self.go_to(model, &to),
            Err(_) => Reply::Ignored,
        }
    }
}
