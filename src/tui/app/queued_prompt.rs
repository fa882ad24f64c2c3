//! A message that was sent before a model was set up: it stays in the composer, the set-up dialog opens, and the
//! message is sent once a model is chosen.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    AgentId, CommandBody, CommandId, Event, EventBody, Message, ModelRef, Notice, NoticeKind, SessionId,
};

use crate::app::App;
use crate::app::effect::{SettingEdit, Task, Token};
use crate::app::state::Owner;
use crate::dialog::first_run::SetupNeeded;
use crate::keymap::action::Action;
use crate::panel::{PanelEvent, PanelInput, Reply, View};

const COMPOSER: Owner = Owner::View(View::Composer);

impl App {
    /// Keeps a message back when no model is set up; `false`: the message is to be sent.
    pub(crate) fn hold(&mut self, from: Owner, body: &CommandBody, token: Token) -> bool {
        let message = matches!(body, CommandBody::Turn(TurnCommand::Submit { .. }));
        if !message
            || from != COMPOSER
            || !self.model.engine.ready
            || !self.model.agent.session.model.0.is_empty()
        {
            return false;
        }
        // The composer restores it as it restores a message that the engine refuses.
        let notice = Notice::new(NoticeKind::Config, "Your message is sent as soon as a model is set up.");
        let event = Event {
            seq: 0,
            time: self.model.now,
            session: SessionId::fresh(&tiller_protocol::SeqIds::default(), self.model.now),
            agent: AgentId::main(),
            cause: None,
            body: EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })),
        };
        if let Some(Reply::Done(list)) =
            self.with(from, |p, m| p.handle(PanelEvent::Answer(token, &event), m))
        {
            self.effects(from, list);
        }
        self.wait_for_model();
        true
    }

    fn wait_for_model(&mut self) {
        self.questions.pending.waits = true;
        self.questions.first_run = false;
        // The set-up may be open already, as an offer at the start; now it is needed.
        let there = self
            .layers
            .iter()
            .find(|l| l.panel().status(&self.model).scope.starts_with("setup"))
            .map(|l| l.id);
        match there {
            Some(id) => {
                let _ = self
                    .with(Owner::Layer(id), |p, m| p.handle(PanelEvent::Message(Box::new(SetupNeeded)), m));
            }
            None => {
                self.act(Action("setup.open"));
            }
        }
    }

    /// True when this is a message that goes out before the engine has reported whether a model is set up.
    pub(crate) fn is_early(&self, body: &CommandBody) -> bool {
        !self.model.engine.ready && matches!(body, CommandBody::Turn(TurnCommand::Submit { .. }))
    }

    /// Notes such a message.
    pub(crate) fn sent_early(&mut self, id: CommandId) {
        self.questions.pending.early = Some(id);
    }

    /// Opens the set-up when the engine refused such a message; the composer has restored its text.
    pub(crate) fn refused_early(&mut self, cause: Option<CommandId>) {
        let early = self.questions.pending.early;
        let known = self.model.engine.ready && self.model.agent.session.model.0.is_empty();
        if early.is_some() && early == cause && known {
            self.questions.pending.early = None;
            self.wait_for_model();
        }
    }

    /// Forgets the message that waits: its text is being changed.
    pub(crate) fn unhold(&mut self) {
        self.questions.pending.waits = false;
    }

    /// Sends the message that waits: a model was chosen.
    pub(crate) fn release(&mut self) {
        if std::mem::take(&mut self.questions.pending.waits) {
            self.send_composed();
        }
    }

    /// Keeps a model for later sessions: at once when it is in use, else when the engine has taken it.
    pub(crate) fn keep_model(&mut self, which: Option<ModelRef>) {
        self.questions.pending.keep = Some(which);
        self.model_chosen();
    }

    /// Keeps the session's new model for later sessions, if that was requested.
    pub(crate) fn model_chosen(&mut self) {
        let now = self.model.agent.session.model.clone();
        let wanted = match &self.questions.pending.keep {
            Some(Some(which)) => *which == now,
            // The demo model is kept only when it was chosen by name.
            Some(None) => now.is_real(),
            None => false,
        };
        if wanted {
            self.questions.pending.keep = None;
            self.tasks
                .push(Task::SaveSetting { key: "model".into(), value: SettingEdit::Value(now.0.into()) });
        }
    }

    /// Gives the composer input that was typed into a dialog over it.
    pub(crate) fn typed_elsewhere(&mut self, input: PanelInput<'_>) {
        self.wrote();
        self.unhold();
        if let Some(Reply::Done(list)) = self.with(COMPOSER, |p, m| p.input(input, m)) {
            self.effects(COMPOSER, list);
        }
    }

    fn send_composed(&mut self) {
        if let Some(Reply::Done(list)) = self.with(COMPOSER, |p, m| p.act(Action("composer.send"), m)) {
            self.effects(COMPOSER, list);
        }
    }

    /// Sends the prompt of the command line as if it had been typed. A draft is put aside.
    pub(crate) fn submit(&mut self, text: String) {
        if !self.is_empty(COMPOSER) {
            let _ = self.with(COMPOSER, |p, m| p.act(Action("composer.aside"), m));
        }
        self.compose(Message::text(text), true);
        self.send_composed();
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::SendMode;
    use tiller_protocol::command::SessionCommand;
    use tiller_protocol::event::StateEvent;

    use super::*;
    use crate::testing::Robot;

    fn submitted(r: &Robot) -> Vec<String> {
        let text = |c: &CommandBody| match c {
            CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.text.clone()),
            _ => None,
        };
        r.commands().into_iter().filter_map(text).collect()
    }

    fn model(r: &mut Robot, name: &str) {
        let model = ModelRef(name.into());
        r.app.model.agent.session.model = model.clone();
        r.event(EventBody::State(StateEvent::ModelChanged { model, window: None }));
    }

    #[test]
    fn a_prompt_waits_for_a_model_and_is_then_sent_once() {
        let mut r = Robot::new(80, 24);
        r.app.model.engine.ready = true;
        r.run("type my first prompt; enter");
        assert!(submitted(&r).is_empty(), "nothing can be sent yet");
        assert!(
            r.screen().contains("Set up a model") && r.screen().contains("my first prompt"),
            "{}",
            r.screen()
        );
        r.run("3");
        let set = |c: &&CommandBody| matches!(c, CommandBody::Session(SessionCommand::SetModel { .. }));
        assert!(r.commands().iter().any(set));
        model(&mut r, "demo/demo");
        assert_eq!(submitted(&r), ["my first prompt"]);
        assert!(!r.screen().contains("my first prompt"), "{}", r.screen());
        model(&mut r, "other/one");
        assert_eq!(submitted(&r).len(), 1);
    }

    #[test]
    fn what_is_written_on_is_not_sent_by_itself() {
        let mut r = Robot::new(80, 24);
        r.app.model.engine.ready = true;
        r.run("type half; enter; esc; type  more");
        model(&mut r, "demo/demo");
        assert!(submitted(&r).is_empty());
        assert!(r.screen().contains("half more"), "{}", r.screen());
        r.run("enter");
        assert_eq!(submitted(&r), ["half more"]);
    }

    #[test]
    fn a_prompt_of_the_command_line_comes_back_from_an_engine_without_a_model() {
        let mut r = Robot::new(80, 24);
        r.run("type a draft");
        r.app.submit("from the shell".into());
        r.run("wait 0");
        assert_eq!(submitted(&r), ["from the shell"]);
        let id = r.asked(|c| matches!(c, CommandBody::Turn(_)));
        r.app.model.engine.ready = true;
        // The set-up opens by itself first.
        r.app.questions.first_run = true;
        r.run("wait 2000");
        let notice = Notice::new(NoticeKind::Config, "no model is set up yet, so nothing was sent");
        r.cause(id, EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
        assert!(
            r.screen().contains("Set up a model") && r.screen().contains("from the shell"),
            "{}",
            r.screen()
        );
        r.clear().run("3");
        assert_eq!(r.commands().len(), 1, "it is asked for now: a digit is an answer at once");
        r.clear();
        model(&mut r, "demo/demo");
        assert_eq!(submitted(&r), ["from the shell"]);
        // The earlier draft is kept.
        r.run("esc");
        r.app.act(Action("composer.aside"));
        r.run("wait 0");
        assert!(r.screen().contains("a draft"), "{}", r.screen());
        let want = CommandBody::Turn(TurnCommand::Submit {
            message: Message::text("from the shell"),
            mode: SendMode::Steer,
        });
        assert!(r.commands().contains(&&want));
    }
}
