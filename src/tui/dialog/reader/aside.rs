//! A side question (`/btw`) and its answer. Neither becomes part of the conversation, and a running turn continues. The
//! answer can be copied; closing the dialog drops it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Event, EventBody};

use crate::app::effect::{Effect, Task, Token};
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply};
use crate::registry::Dialog;
use crate::text::line::{Line, Look, Wrap};
use crate::text::markdown::{Doc, Opts};
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::scroll::Scroll;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog =
    Dialog { samples: &[("on the side", || Box::new(Aside::new("why is it so?")))], ..Dialog::NONE };

/// The dialog.
pub struct Aside {
    question: String,
    /// The answer, or why there is none.
    answer: Option<Result<String, String>>,
    scroll: Scroll,
    /// Laid out for so many columns.
    columns: Option<u16>,
}

impl Aside {
    /// Makes the dialog; it asks the question as soon as it is shown.
    pub fn new(question: &str) -> Self {
        Self { question: question.into(), answer: None, scroll: Scroll::default(), columns: None }
    }

    fn close(&self) -> Reply {
        let mut all = vec![Effect::Pop];
        if self.answer.is_none() {
            all.push(Effect::send(CommandBody::Turn(TurnCommand::StopTool { id: "aside".into() })));
        }
        Reply::Done(all)
    }

    fn lines(&self, columns: u16, ascii: bool) -> Vec<Line> {
        let mut all: Vec<Line> = crate::text::clean::lines(&self.question)
            .map(|l| Line::strict(l, Look::of(Role::User), Wrap::Word))
            .collect();
        all.push(Line::new(Wrap::Word));
        match &self.answer {
            None => all.push(Line::strict("asking...", Look::of(Role::Dim), Wrap::Word)),
            Some(Err(why)) => all.push(Line::strict(why, Look::of(Role::Error), Wrap::Word)),
            Some(Ok(text)) => {
                let opts = Opts { columns: usize::from(columns).max(1), ascii, tables_as_text: columns < 60 };
                let doc = Doc::parse(text, opts);
                let stack = doc.stack();
                all.extend((0..stack.lines()).filter_map(|n| stack.line(n).cloned()));
            }
        }
        all
    }
}

impl Panel for Aside {
    fn status(&self, _model: &Model) -> PanelStatus {
        let leave = if self.answer.is_none() { "stop" } else { "close" };
        PanelStatus { leave, ..PanelStatus::new("text") }
    }

    fn title(&self, _model: &Model) -> String {
        "Side question".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        &[]
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        let (width, height) = model.window.screen;
        Placement::Center { width: 90.min(width.saturating_sub(4)), height: 20.min(height.saturating_sub(4)) }
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        match (action.0, &self.answer) {
            ("list.copy", Some(Ok(text))) => {
                Reply::with(Effect::Task(Task::Copy { text: text.clone(), what: "answer" }))
            }
            ("list.back", _) => self.close(),
            (id, _) if self.scroll.act(id) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Mouse(event, _) => {
                if self.scroll.mouse(event) {
                    Reply::done()
                } else {
                    Reply::Ignored
                }
            }
            PanelInput::Escape(_) => self.close(),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open()),
            PanelEvent::Answer(_, event) => self.on_answer(event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        let mut all = vec![Hint::of("list.page_down")];
        all.extend(matches!(self.answer, Some(Ok(_))).then_some(Hint::of("list.copy")));
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        if self.columns != Some(area.width) {
            self.columns = Some(area.width);
            self.scroll.set(self.lines(area.width, cx.ascii));
        }
        self.scroll.measure(usize::from(area.width), usize::from(area.height.saturating_sub(1)), true);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let text = Rect { height: area.height.saturating_sub(1), ..area };
        self.scroll.draw(text, buf, cx.theme);
        let last = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        let words = match self.scroll.below() {
            0 => String::new(),
            n => draw::below(n),
        };
        draw::text(buf, last, &words, cx.theme.style(Role::Dim));
    }
}

impl Aside {
    fn on_open(&mut self) -> Vec<Effect> {
        let body = CommandBody::Turn(TurnCommand::Aside { question: self.question.clone() });
        vec![Effect::ask(body, Token(1))]
    }

    fn on_answer(&mut self, event: &Event) -> Reply {
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        self.answer = match reply.as_ref() {
            ReplyEvent::AsideReply { answer, .. } => Some(Ok(answer.clone())),
            ReplyEvent::ErrorReply { notice } => Some(Err(notice.message.clone())),
            _ => return Reply::Ignored,
        };
        self.columns = None;
        Reply::done()
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::command::Query;
    use tiller_protocol::event::TurnEvent;
    use tiller_protocol::skill::SkillQuery;
    use tiller_protocol::{ModelRef, Notice, NoticeKind};

    use super::*;
    use crate::app::effect::Task;
    use crate::testing::Robot;

    #[test]
    fn it_is_asked_while_a_turn_runs_and_changes_nothing_of_it() {
        let mut r = Robot::new(118, 25);
        r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
        r.run("type /btw why the header?; enter");
        let ask = CommandBody::Turn(TurnCommand::Aside { question: "why the header?".into() });
        // The list of commands asks for the prompts of servers and for the user's own commands when it opens.
        let prompts = CommandBody::Query(Query::Mcp);
        let own = CommandBody::Query(Query::Skills { query: SkillQuery::Commands });
        assert_eq!(r.commands(), [&prompts, &own, &ask], "nothing else is sent");
        assert!(r.screen().contains("why the header?") && r.screen().contains("asking..."), "{}", r.screen());
        let answer = "Because **servers** say so.\n\n- one\n- two\n".to_owned();
        let (question, model) = ("why the header?".into(), ModelRef("a/b".into()));
        r.reply(ReplyEvent::AsideReply { question, answer: answer.clone(), model });
        assert!(r.screen().contains("Because servers say so."), "{}", r.screen());
        r.run("y");
        assert!(r.tasks.iter().any(|t| matches!(t, Task::Copy { text, .. } if *text == answer)));
        let before = r.app.model.agent.conversation.cells().len();
        r.run("esc");
        assert!(r.app.layers.is_empty() && r.app.model.agent.turn.running, "the turn goes on");
        assert_eq!(r.app.model.agent.conversation.cells().len(), before);
    }

    #[test]
    fn escape_stops_a_question_that_is_not_answered_yet() {
        let mut r = Robot::new(80, 24);
        r.run("type /btw why?; enter").clear();
        assert!(r.footer().contains("Esc stop"), "{}", r.footer());
        r.run("esc");
        let stop = CommandBody::Turn(TurnCommand::StopTool { id: "aside".into() });
        assert!(r.commands() == [&stop] && r.app.layers.is_empty());
        r.run("type /btw why?; enter");
        let (question, model) = ("why?".into(), ModelRef("a/b".into()));
        r.reply(ReplyEvent::AsideReply { question, answer: "so".into(), model });
        r.clear().run("esc");
        assert!(r.commands().is_empty() && r.app.layers.is_empty(), "it is over");
    }

    #[test]
    fn a_refusal_and_an_empty_question_say_why() {
        let mut r = Robot::new(80, 24);
        r.run("type /btw; space").clear().run("enter");
        assert!(r.commands().is_empty() && r.screen().contains("Write the question"), "{}", r.screen());
        r.run("ctrl-u; type /btw x; enter");
        r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::Budget, "the budget is used up") });
        assert!(r.screen().contains("the budget is used up"), "{}", r.screen());
    }
}
