//! Carries effects out, and delivers answers to the panels that asked.

use std::any::Any;

use tiller_protocol::command::{Query, QueueCommand, SessionCommand, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::view::Snapshot;
use tiller_protocol::{
    AgentId, CommandBody, CommandId, Event, EventBody, Message, Notice, NoticeKind, SendMode, SessionId,
};

use crate::app::App;
use crate::app::effect::{
    ComposerInput, Effect, EntryAction, Navigation, Request, SettingEdit, SettingsChange, Task, Token,
};
use crate::app::state::{AfterOpen, Layer, Owner, PendingRequest};
use crate::panel::composer::request::ComposerRequest;
use crate::panel::conversation::GoTo;
use crate::panel::{Availability, Panel, PanelEvent, PanelInput, Reply, View};

/// Rows of the palette that are remembered.
const RECENT: usize = 8;

impl App {
    pub(crate) fn effects(&mut self, from: Owner, list: Vec<Effect>) {
        for effect in list {
            self.effect(from, effect);
        }
    }

    fn effect(&mut self, from: Owner, effect: Effect) {
        match effect {
            Effect::Command(request) => self.request(from, request),
            Effect::Push(panel) => self.push(panel),
            Effect::Pop => self.pop(from),
            Effect::Focus(view) => self.focus(view),
            Effect::Navigate(to) => self.navigate(to),
            Effect::Act(action) => {
                if !self.act(action) {
                    let why = self.disabled(action).unwrap_or_else(|| "Not possible now".into());
                    self.say(why);
                }
            }
            Effect::Compose(ComposerInput::Text { text, replace }) => {
                self.compose(Message::text(text), replace)
            }
            Effect::Compose(ComposerInput::Key(key)) => self.typed_elsewhere(PanelInput::Key(&key)),
            Effect::Compose(ComposerInput::Paste(text)) => self.typed_elsewhere(PanelInput::Paste(&text)),
            Effect::Tell(view, message) => {
                self.tell(Owner::View(view), PanelEvent::Message(message));
            }
            Effect::Toast(notice) => self.notice(notice),
            Effect::Settings(change) => self.change_settings(change),
            Effect::Task(task) => self.task(from, task),
        }
    }

    /// Sends a command of a panel's, and notes where its answer goes.
    fn request(&mut self, from: Owner, request: Request) {
        let Request { to, body, token } = request;
        let to_shown = to.is_none();
        if to_shown {
            if let Some(token) = token
                && self.hold(from, &body, token)
            {
                return;
            }
            self.follow_sent(&body);
        }
        let id = match to {
            Some(agent) => self.send_to(Some(agent), body),
            None => {
                let early = self.is_early(&body);
                let id = self.send(body);
                if early && token.is_some() {
                    self.sent_early(id);
                }
                id
            }
        };
        if let Some(token) = token {
            self.asks(id, from, token);
        }
    }

    fn navigate(&mut self, to: Navigation) {
        match to {
            Navigation::Agent(agent) => self.show_agent(&agent),
            Navigation::AgentFor(agent, action) => self.show_for(&agent, action),
            Navigation::Terminal(agent) => crate::pane::show(self, &agent),
            Navigation::NextTerminal => crate::pane::next(self),
            Navigation::FullScreen => crate::pane::full_screen(self),
            Navigation::Question(id) => {
                if !self.open_this(id) {
                    self.say("This question was already answered");
                }
            }
            Navigation::Entry { session, entry, then } => {
                let then = match then {
                    EntryAction::Show => AfterOpen::Show(entry),
                    EntryAction::Branch => AfterOpen::Branch(Some(entry)),
                    EntryAction::Restore => AfterOpen::Restore(entry),
                };
                self.visit(session, then);
            }
            Navigation::Branch(session) => self.visit(session, AfterOpen::Branch(None)),
        }
    }

    fn change_settings(&mut self, change: SettingsChange) {
        match change {
            SettingsChange::Theme { name, keep } => {
                let shown = self.themes.show(name.as_deref(), keep);
                self.redraw();
                if let Err(why) = shown {
                    self.say(why);
                } else if let (true, Some(name)) = (keep, name) {
                    self.setting("ui.theme".into(), name.into());
                }
            }
            SettingsChange::Set { key, value } => self.setting(key, value),
            SettingsChange::KeepModel(which) => self.keep_model(which),
            SettingsChange::PaletteRow(row) => {
                self.keys.recent.retain(|r| *r != row);
                self.keys.recent.insert(0, row);
                self.keys.recent.truncate(RECENT);
            }
        }
    }

    /// Hands a task of a panel's to the loop, and notes where its result goes.
    fn task(&mut self, from: Owner, task: Task) {
        let task = match task {
            Task::Job(job, token) => Task::Job(job, self.router.job(from, token)),
            Task::Connect(what, token) => Task::Connect(what, self.router.job(from, token)),
            Task::Suspend(external) => {
                self.router.suspended = Some(from);
                Task::Suspend(external)
            }
            task => task,
        };
        self.tasks.push(task);
    }

    /// Scrolls the conversation to its end when the person sends something, wherever they were reading.
    fn follow_sent(&mut self, body: &CommandBody) {
        let words = match body {
            CommandBody::Turn(TurnCommand::Submit { .. } | TurnCommand::Shell { .. }) => true,
            CommandBody::Queue(QueueCommand::Mode { mode, .. }) => *mode == SendMode::Now,
            _ => false,
        };
        if words {
            self.effect(Owner::Shell, Effect::Tell(View::Conversation, Box::new(GoTo::End)));
        }
    }

    /// Opens a session, unless it is open already, and then does `then` there.
    fn visit(&mut self, id: SessionId, then: AfterOpen) {
        // The session of an agent of the open session is open already: that agent is shown.
        if let Some(agent) = self.model.of_session(id).map(|a| a.id.clone()) {
            self.show_agent(&agent);
        } else if self.model.main_session() == Some(id) {
            self.show_agent(&AgentId::main());
        }
        let body = if self.model.shown_session() == Some(id) {
            CommandBody::Query(Query::Snapshot)
        } else {
            CommandBody::Session(SessionCommand::Open { id })
        };
        self.router.then = Some((id, self.send(body), then));
    }

    /// Does what was requested for this session, now that its state is here. A session that is open elsewhere is
    /// branched by the answer to the question that follows.
    fn arrived(&mut self, s: &Snapshot) {
        let Some((_, _, then)) = self.router.then.take_if(|(id, ..)| *id == s.session.id) else { return };
        match then {
            AfterOpen::Show(entry) => {
                self.focus(View::Conversation);
                self.effect(Owner::Shell, Effect::Tell(View::Conversation, Box::new(GoTo::Entry(entry))));
            }
            AfterOpen::Restore(entry) => {
                self.push(Box::new(crate::dialog::session::restore::Restore::to(entry)))
            }
            AfterOpen::Branch(_) if s.read_only => {}
            AfterOpen::Branch(at) => match at.or(s.head) {
                Some(entry) => {
                    self.send(CommandBody::Session(SessionCommand::Fork { entry }));
                    self.focus(View::Composer);
                }
                None => self.say("This session has no messages yet"),
            },
        }
    }

    /// Applies a setting at once, and requests that it is saved.
    fn setting(&mut self, key: String, value: serde_json::Value) {
        let Some(name) = key.strip_prefix("ui.") else { return };
        let changed = serde_json::to_value(self.model.ui.as_ref()).and_then(|mut all| {
            all[name] = value.clone();
            serde_json::from_value::<tiller_config::schema::Ui>(all)
        });
        match changed {
            Ok(ui) => {
                *self.model.ui = std::sync::Arc::new(ui);
                self.tasks.push(Task::SaveSetting { key, value: SettingEdit::Value(value) });
            }
            Err(e) => self.say(format!("{key}: {e}")),
        }
    }

    /// Notes that the answer to command `id` goes to this panel.
    fn asks(&mut self, id: CommandId, owner: Owner, token: Token) {
        let screen = self.model.shown_agent();
        self.router.requests.insert(id, PendingRequest { owner, token, screen });
    }

    /// Requests the whole state of the agent on the screen, one request at a time.
    pub(crate) fn ask_snapshot(&mut self) {
        let agent = self.model.shown_agent();
        if !self.router.snapshots.contains_key(&agent) {
            let id = self.send(CommandBody::Query(Query::Snapshot));
            self.router.snapshots.insert(agent, id);
        }
    }

    /// Requests the main agent's state too, which contains all agents and questions.
    fn ask_everything(&mut self) {
        if self.model.shown.is_some() && !self.router.snapshots.contains_key(&AgentId::main()) {
            let id = self.send_to(None, CommandBody::Query(Query::Snapshot));
            self.router.snapshots.insert(AgentId::main(), id);
        }
        self.ask_snapshot();
    }

    /// True when the top layer is this confirmation already: the key that opens it works in it, too, and each Escape closes
    /// one.
    fn is_on_top(&self, panel: &dyn Panel) -> bool {
        let same = |top: &dyn Panel| {
            [top, panel].iter().all(|p| p.status(&self.model).scope == "confirm")
                && top.title(&self.model) == panel.title(&self.model)
        };
        self.layers.last().is_some_and(|top| same(top.panel()))
    }

    /// Puts a layer on top.
    pub(crate) fn push(&mut self, mut panel: Box<dyn Panel>) {
        if self.is_on_top(panel.as_ref()) {
            return;
        }
        let id = self.router.fresh();
        let reply = panel.handle(PanelEvent::Opened, &self.model);
        self.keys.pending.clear();
        self.cover();
        self.layers.push(Layer::new(id, panel));
        if let Reply::Done(list) = reply {
            self.effects(Owner::Layer(id), list);
        }
    }

    /// Notes that the dialog on top changes: the next key was meant for another one.
    fn cover(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.delay.restart());
    }

    /// Closes the dialog that requested it, else the top dialog.
    fn pop(&mut self, from: Owner) {
        match from {
            Owner::Layer(id) => {
                if let Some(at) = self.layers.iter().position(|l| l.id == id) {
                    let layer = self.layers.remove(at);
                    self.keep_ask(layer.into_panel());
                }
            }
            _ => {
                if let Some(layer) = self.layers.pop() {
                    self.keep_ask(layer.into_panel());
                }
            }
        }
        self.cover();
        self.keys.pending.clear();
    }

    /// Shows and focuses a view.
    pub(crate) fn focus(&mut self, view: View) {
        let model = &self.model;
        self.layers.retain(|l| l.question(model).is_some());
        // What was put aside opens again when a pane is left, not when its own dialog is.
        if view == View::Composer && self.layers.is_empty() {
            self.left_pane();
        }
        self.leave_asks();
        let wide = self.screen.areas.as_ref().is_some_and(|a| {
            a.class.wide() && a.parts().any(|p| p.view == view && p.view != self.screen.main)
        });
        if view == View::Composer {
            self.screen.main = View::Conversation;
        } else if !wide {
            self.screen.main = view;
        }
        if self.screen.focus != view {
            self.screen.zoom = crate::view::layout::Zoom::Normal;
        }
        self.screen.focus = view;
        self.tell(Owner::View(view), PanelEvent::Focused);
    }

    /// Puts a message into the composer. `replace`: instead of the draft.
    pub(crate) fn compose(&mut self, message: Message, replace: bool) {
        let request =
            if replace { ComposerRequest::Replace(message) } else { ComposerRequest::Insert(message) };
        self.tell(Owner::View(View::Composer), PanelEvent::Message(Box::new(request)));
    }

    /// A line for the person.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.toasts.push(self.model.mono, Notice::new(NoticeKind::Info, text));
    }

    /// Shows a notice and keeps it in the error log.
    pub(crate) fn notice(&mut self, notice: Notice) {
        if notice.kind != NoticeKind::Info {
            self.model.notices.push((self.model.now, notice.clone()));
        }
        self.toasts.push(self.model.mono, notice);
    }

    /// Why an action cannot be done now; the panel that owns the action says so.
    pub(crate) fn disabled(&self, action: crate::keymap::action::Action) -> Option<String> {
        crate::app::global::disabled(self, action).or_else(|| {
            self.views.iter().find_map(|v| match v.panel().availability(action, &self.model) {
                Availability::Unavailable(why) => Some(why),
                _ => None,
            })
        })
    }

    /// Delivers an answer to the panel that asked.
    pub(crate) fn answered(&mut self, event: &Event) {
        let Some(cause) = event.cause else { return };
        let reply = matches!(event.body, EventBody::Reply(_));
        if reply {
            self.router.snapshots.retain(|_, asked| *asked != cause);
        }
        let found = if reply {
            self.router.requests.remove(&cause)
        } else {
            self.router.requests.get(&cause).cloned()
        };
        if let Some(PendingRequest { owner, token, screen }) = found.clone()
            && let Some(Reply::Done(list)) =
                self.with_of(&screen, owner, |p, m| p.handle(PanelEvent::Answer(token, event), m))
        {
            self.effects(owner, list);
        }
        // A result that no panel asked for is shown as a notice.
        if let (None, EventBody::Reply(reply)) = (found, &event.body)
            && let ReplyEvent::DoneReply { said } = reply.as_ref()
        {
            self.say(said.clone());
        }
    }

    /// Delivers a job's result to the panel that started it.
    pub(crate) fn job(&mut self, token: Token, result: Box<dyn Any + Send>) {
        let waits = self.router.jobs.remove(&token);
        if let Some((Owner::Shell, _)) = waits {
            if let Ok(said) = result.downcast::<Result<String, String>>() {
                crate::view::statusline::done(self, *said);
            }
            return;
        }
        if let Some((owner, token)) = waits {
            self.tell(owner, PanelEvent::JobDone(token, result));
        }
    }

    /// Reports to the terminal's panel, and shows questions and the title, after each message.
    pub(crate) fn after_message(&mut self) {
        crate::view::arrange::settle_focus(self, self.screen.notice_actions.len());
        crate::pane::settle(self);
        self.time_asks();
        self.show_asks();
        crate::terminal::outside::show_title(self);
    }

    /// Does the app's own part about an event.
    pub(crate) fn after_event(&mut self, event: &Event) {
        self.recall_asks(event);
        match &event.body {
            EventBody::State(StateEvent::Lagged { .. }) => self.ask_everything(),
            EventBody::State(StateEvent::HeadMoved { draft, .. }) => {
                if let Some(draft) = draft.as_ref().filter(|_| event.agent == self.model.shown_agent()) {
                    self.compose(draft.clone(), true);
                }
                self.ask_everything();
            }
            EventBody::State(StateEvent::BranchLeft { from, name, entries }) => {
                self.branch_left(*from, name, *entries);
            }
            EventBody::State(StateEvent::Notice { notice }) => {
                self.toasts.push(self.model.mono, notice.clone());
            }
            EventBody::State(StateEvent::ProfileChanged { profile }) => {
                let meaning = crate::dialog::settings::profile::meaning(*profile);
                let said = format!("permission mode {}: {meaning}", profile.word());
                // When modes are cycled through, only the last one is shown.
                let notice = Notice::new(NoticeKind::Info, said);
                self.toasts.push_about(self.model.mono, "mode", notice);
            }
            EventBody::State(StateEvent::EffortChanged { effort }) if event.cause.is_some() => {
                let notice = Notice::new(NoticeKind::Info, format!("effort {}", effort.chosen.word()));
                self.toasts.push_about(self.model.mono, "effort", notice);
            }
            EventBody::State(StateEvent::ModelChanged { .. }) => {
                self.model_chosen();
                self.release();
            }
            EventBody::State(StateEvent::Receipt { receipt }) => self.receipt(event, receipt),
            EventBody::State(StateEvent::Stopped {}) => self.tasks.push(Task::Quit),
            EventBody::Turn(tiller_protocol::event::TurnEvent::SessionStarted { .. }) => {
                self.ask_everything()
            }
            EventBody::Reply(r) => match r.as_ref() {
                ReplyEvent::ErrorReply { notice } => {
                    self.router.then.take_if(|(_, asked, _)| event.cause == Some(*asked));
                    self.notice(notice.clone());
                    self.refused_early(event.cause);
                }
                ReplyEvent::SnapshotReply { snapshot } if !event.agent.is_main() => {
                    self.agent_here();
                    if event.agent == self.model.shown_agent() {
                        self.arrived(snapshot);
                    }
                }
                ReplyEvent::SnapshotReply { snapshot } => {
                    self.agents_changed();
                    self.arrived(snapshot);
                }
                _ => {}
            },
            _ => {}
        }
        crate::terminal::outside::notify(self, event);
        crate::view::statusline::event(self, event);
    }

    /// Reports to the panel that opened an external program that it has ended. `program`: what it is, for an error.
    pub fn edited(&mut self, program: &str, result: Result<(), String>) {
        if let Err(why) = &result {
            self.notice(Notice::new(NoticeKind::User, format!("{program}: {why}")));
        }
        if let Some(owner) = self.router.suspended.take() {
            self.tell(owner, PanelEvent::Edited(result));
        }
        self.redraw();
    }
}
