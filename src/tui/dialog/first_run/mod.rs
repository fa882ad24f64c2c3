//! No model is known yet: take a key that is in the environment, paste one, name a server, use one of this
//! machine, or take the built-in demo model. What is typed in the composer stays there. The key is never
//! drawn or logged. Servers that were found are listed; nothing is sent to them before the person's yes.

mod draw;

use std::any::Any;
use std::time::Duration;
use tiller_protocol::view::ModelSource;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_config::Secret;
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::ModelChoice;
use tiller_protocol::{CommandBody, Event, EventBody, ModelRef, Notice, NoticeKind};

use crate::app::effect::{ComposerInput, Connect, Connected, Effect, SettingsChange, Task, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::composer::request::ComposerRequest;
use crate::panel::{
    DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::{Dialog, Opener};
use crate::widget::edit::Edit;
use crate::widget::line_list::LineList;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("setup.open", "setup", "Set up a model: a key, a server or the demo", |_| {
        Ok(Box::new(FirstRun::default()))
    })
    .menu(Menu::Agents)],
    groups: &[("Setup", ACTIONS)],
    scopes: &[
        Scope::new("setup", None, "Setup", false).keys(KEYS),
        Scope::new("setup_text", Some("input"), "Setup, text", true).keys(&[("enter", "setup.send")]),
    ],
    samples: &[("first run", || Box::new(FirstRun::default()))],
    ..Dialog::NONE
};

/// Its actions, besides those of a list.
pub const ACTIONS: &[ActionSpec] = &[ActionSpec::key_only("setup.send", "done", "Submit the text")];

/// Default keys of the section `setup`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("down", "list.down"),
    ("up", "list.up"),
    ("ctrl-n", "list.down"),
    ("ctrl-p", "list.up"),
    ("pagedown", "list.page_down"),
    ("pageup", "list.page_up"),
    ("home", "list.first"),
    ("end", "list.last"),
    ("enter", "list.open"),
];

/// Names under which keys are kept, as the environment variables have them.
pub(crate) const PROVIDERS: [&str; 7] =
    ["anthropic", "openai", "gemini", "openrouter", "xai", "groq", "deepseek"];

/// Columns with the border.
const WIDTH: u16 = 76;

const CONNECT: Token = Token(1);
const LOOK: Token = Token(2);

/// The step of the set-up.
#[derive(Clone, Debug, PartialEq)]
enum SetupStep {
    Menu,
    Provider,
    /// The key of this provider is pasted.
    Key(&'static str),
    Url,
    /// A request is running: what is being done.
    Busy(String),
    /// One of these is to be chosen.
    Model(Vec<ModelRef>),
}

/// The choice that a row stands for.
#[derive(Clone, Debug, PartialEq)]
enum SetupChoice {
    /// A key of the environment: this model, or the variable's name.
    Ready(ModelRef),
    Variable(String),
    Key,
    Url,
    Demo,
    Local(String),
    /// An agent program of this machine.
    Program(String),
    Provider(&'static str),
    Model(ModelRef),
}

/// The dialog.
pub struct FirstRun {
    step: SetupStep,
    rows: LineList,
    field: Edit,
    said: Option<String>,
    /// The URL that is being asked.
    tried: Option<Edit>,
    /// Servers of this machine: provider and where.
    found: Vec<(String, String)>,
    /// The session had a model of its own when the set-up was asked for: the engine may give it one before
    /// the answer is here.
    had: bool,
    /// When the dialog opened by itself: keys that follow at once were meant for the composer. `None`: it was
    /// requested.
    came: Option<Duration>,
}

/// Message to an open set-up dialog that it is needed now: a message waits for a model.
pub(crate) struct SetupNeeded;

impl Default for FirstRun {
    fn default() -> Self {
        let (rows, field) = (LineList::default(), Edit::default());
        let (found, said, tried) = (Vec::new(), None, None);
        Self { step: SetupStep::Menu, rows, field, said, tried, found, had: false, came: None }
    }
}

impl FirstRun {
    /// The dialog as it opens by itself.
    pub(crate) fn by_itself(now: Duration) -> Self {
        Self { came: Some(now), ..Self::default() }
    }

    /// The person is typing and has not seen it yet.
    fn unseen(&self, model: &Model) -> bool {
        let delay = Duration::from_millis(model.ui.approval_deaf);
        self.came.is_some_and(|t| model.mono.saturating_sub(t) < delay)
    }

    fn choices(&self, model: &Model) -> Vec<(SetupChoice, String)> {
        match &self.step {
            SetupStep::Menu => self.menu(model),
            SetupStep::Provider => {
                PROVIDERS.iter().map(|p| (SetupChoice::Provider(p), (*p).to_owned())).collect()
            }
            SetupStep::Model(models) => {
                models.iter().map(|m| (SetupChoice::Model(m.clone()), m.0.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Keys come first, and programs before servers, for they are known from the start: no number changes when
    /// a server is found.
    fn menu(&self, model: &Model) -> Vec<(SetupChoice, String)> {
        let keys = model.environment.found_keys.iter().map(|k| {
            let choice =
                k.model.clone().map_or_else(|| SetupChoice::Variable(k.variable.clone()), SetupChoice::Ready);
            (choice, format!("Use the key in {} ({})", k.variable, k.provider))
        });
        let fixed = [
            (SetupChoice::Key, "Paste a key of a model provider".to_owned()),
            (SetupChoice::Url, "Use a server by its base URL (a local one needs no key)".into()),
            (
                SetupChoice::Demo,
                "Use the built-in demo model: no key, no network, not a language model".into(),
            ),
        ];
        let programs = model.environment.found_agents.iter().map(|a| {
            (SetupChoice::Program(a.clone()), format!("Use {a}, installed on this machine, as an agent"))
        });
        let found = self.found.iter().map(|(provider, place)| {
            (
                SetupChoice::Local(provider.clone()),
                format!("Use {provider}, a {place} (nothing has been sent to it)"),
            )
        });
        keys.chain(fixed).chain(programs).chain(found).collect()
    }

    fn words(&self) -> String {
        match &self.step {
            SetupStep::Menu => "No model is set up yet. What you type is kept.".into(),
            SetupStep::Provider => "Which provider is the key for?".into(),
            SetupStep::Key(p) => format!(
                "Paste the {p} key. It is not shown. It is tested, then stored in a file that \
                    only you can read."
            ),
            SetupStep::Url => "The server's base URL, for example http://localhost:11434/v1".into(),
            SetupStep::Busy(what) => format!("{what}..."),
            SetupStep::Model(_) => "Which model? /model changes it later.".into(),
        }
    }

    fn writing(&self) -> bool {
        matches!(self.step, SetupStep::Key(_) | SetupStep::Url)
    }

    fn go(&mut self, step: SetupStep) -> Reply {
        self.step = step;
        self.field = Edit::default();
        self.said = None;
        self.rows.chosen = 0;
        Reply::done()
    }

    fn open(&mut self, model: &Model) -> Reply {
        let Some((choice, _)) = self.choices(model).into_iter().nth(self.rows.chosen) else {
            return Reply::done();
        };
        match choice {
            SetupChoice::Ready(model) | SetupChoice::Model(model) => chosen(model),
            SetupChoice::Demo => chosen(ModelRef("demo/demo".into())),
            SetupChoice::Program(name) => {
                let before = ComposerRequest::Prepend(format!("/spawn @{name} "));
                let told = Effect::Tell(View::Composer, Box::new(before));
                Reply::Done(vec![Effect::Pop, Effect::Focus(View::Composer), told])
            }
            SetupChoice::Key => self.go(SetupStep::Provider),
            SetupChoice::Url => self.go(SetupStep::Url),
            SetupChoice::Provider(p) => self.go(SetupStep::Key(p)),
            SetupChoice::Variable(variable) => {
                let what = format!("Testing the key in {variable}");
                self.connect(model, Connect::Variable { variable }, what)
            }
            SetupChoice::Local(provider) => {
                let what = format!("Asking {provider} for its models");
                self.connect(model, Connect::Local { provider }, what)
            }
        }
    }

    fn send(&mut self, model: &Model) -> Reply {
        let text = self.field.text().trim().to_owned();
        match self.step {
            SetupStep::Key(provider) if !text.is_empty() => {
                let key = Secret::from(text);
                self.connect(model, Connect::Key { provider: provider.into(), key }, "Testing the key".into())
            }
            SetupStep::Url if !text.is_empty() => {
                let url = with_scheme(&text);
                self.connect(model, Connect::Server { url }, "Asking the server for its models".into())
            }
            _ => Reply::done(),
        }
    }

    fn connect(&mut self, model: &Model, what: Connect, busy: String) -> Reply {
        self.had = model.agent.session.model.is_real();
        // A URL is shown again when nothing answers there; a key is not.
        let tried = (self.step == SetupStep::Url).then(|| self.field.clone());
        let _ = self.go(SetupStep::Busy(busy));
        self.tried = tried;
        Reply::with(Effect::Task(Task::Connect(what, CONNECT)))
    }

    fn connected(&mut self, done: Connected) -> Reply {
        let toast = Effect::Toast(Notice::new(NoticeKind::Info, done.said));
        let mut models = done.models;
        if models.len() > 1 {
            let _ = self.go(SetupStep::Model(models));
            return Reply::with(toast);
        }
        let mut effects = vec![Effect::Pop, toast];
        if let Some(only) = models.pop() {
            effects.extend(choose(only));
        } else if !self.had {
            // The engine takes one of the provider's by itself.
            effects.push(Effect::Settings(SettingsChange::KeepModel(None)));
        } else if self.had {
            // A provider was added to a session that has a model: it goes on, unless the person says so.
            effects.push(Effect::Act(Action("model.open")));
        }
        Reply::Done(effects)
    }
}

/// From now on, and in later sessions.
fn choose(model: ModelRef) -> [Effect; 2] {
    let keep = Effect::Settings(SettingsChange::KeepModel(Some(model.clone())));
    [Effect::send(CommandBody::Session(SessionCommand::SetModel { model })), keep]
}

fn chosen(model: ModelRef) -> Reply {
    Reply::Done([Effect::Pop].into_iter().chain(choose(model)).collect())
}

/// A URL as people type it: what is here speaks http, everything else https.
pub(crate) fn with_scheme(typed: &str) -> String {
    if typed.contains("://") {
        return typed.to_owned();
    }
    let host = typed.split('/').next().unwrap_or_default();
    let here =
        ["localhost", "127.", "[::1]", "0.0.0.0", "192.168.", "10."].iter().any(|h| host.starts_with(h));
    format!("{}://{typed}", if here { "http" } else { "https" })
}

/// Servers of this machine that answer and wait for a yes.
fn locals(models: &[ModelChoice]) -> Vec<(String, String)> {
    models
        .iter()
        .filter(|m| {
            m.unavailable.is_none()
                && m.model.model().is_empty()
                && matches!(m.source, ModelSource::Local { .. })
        })
        .map(|m| (m.model.provider().to_owned(), m.source.to_string()))
        .collect()
}

impl Panel for FirstRun {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.writing() { "setup_text" } else { "setup" })
            .escape((self.step != SetupStep::Menu).then_some(EscapeStep::Popup))
    }

    fn title(&self, _model: &Model) -> String {
        "Set up a model".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        Placement::Center { width: WIDTH, height: self.rows_needed(WIDTH - 2, model).saturating_add(2) }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            "setup.send" => return self.send(model),
            "list.open" => return self.open(model),
            "list.back" => return Reply::with(Effect::Pop),
            id if id.starts_with("edit.") && self.writing() => {
                self.field.act(id);
            }
            id if self.rows.act(id) => {}
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key, model),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area, model),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(vec![Effect::ask(CommandBody::Query(Query::Models), LOOK)]),
            PanelEvent::Answer(_, event) => self.on_answer(event),
            PanelEvent::JobDone(_, result) => self.on_job(result),
            PanelEvent::Message(what) => self.on_message(what),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        match self.step {
            SetupStep::Busy(_) => Vec::new(),
            _ if self.writing() => vec![Hint::of("setup.send")],
            _ => vec![Hint::as_("list.open", "choose")],
        }
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.lay(area, cx);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.caret(area)
    }
}

impl FirstRun {
    fn on_key(&mut self, key: &KeyEvent, model: &Model) -> Reply {
        match Chord::of(key).text() {
            Some(c) if self.writing() => {
                self.field.insert(c.encode_utf8(&mut [0; 4]));
                Reply::done()
            }
            Some(c) => match c.to_digit(10).map(|d| d as usize) {
                Some(d) if d >= 1 && d <= self.choices(model).len() && !self.unseen(model) => {
                    self.rows.chosen = d - 1;
                    self.open(model)
                }
                // Words are for the composer: nothing that is typed is lost, and this can be opened again.
                _ if self.step == SetupStep::Menu && (c != ' ' || self.unseen(model)) => Reply::Done(vec![
                    Effect::Focus(View::Composer),
                    Effect::Compose(ComposerInput::Key(*key)),
                ]),
                _ => Reply::Ignored,
            },
            None => Reply::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        if self.writing() {
            self.field.insert(text.trim());
        } else if text.trim().contains(char::is_whitespace) {
            return Reply::Done(vec![
                Effect::Focus(View::Composer),
                Effect::Compose(ComposerInput::Paste(text.to_owned())),
            ]);
        } else {
            // The text may be a key: it must not be shown in the composer.
            self.said = Some("Choose what it is first, then paste it again".into());
        }
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        let [_, list, _] = self.parts(area);
        if list.contains(Position::new(event.column, event.row)) && self.rows.mouse(event, list) {
            return self.open(model);
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        if escape_step == EscapeStep::Layer {
            return Reply::with(Effect::Pop);
        }
        match self.step {
            SetupStep::Key(_) => self.go(SetupStep::Provider),
            _ => self.go(SetupStep::Menu),
        }
    }

    fn on_answer(&mut self, event: &Event) -> Reply {
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        let ReplyEvent::ModelsReply { models } = reply.as_ref() else { return Reply::Ignored };
        self.found = locals(models);
        Reply::done()
    }

    fn on_job(&mut self, result: Box<dyn Any + Send>) -> Reply {
        match result.downcast::<Result<Connected, String>>().map(|r| *r) {
            Ok(Ok(done)) => self.connected(done),
            Ok(Err(why)) => {
                let tried = self.tried.take();
                let reply = self.go(if tried.is_some() { SetupStep::Url } else { SetupStep::Menu });
                self.field = tried.unwrap_or_default();
                self.said = Some(why);
                reply
            }
            Err(_) => Reply::Ignored,
        }
    }

    fn on_message(&mut self, what: Box<dyn Any>) -> Reply {
        if what.is::<SetupNeeded>() {
            self.came = None;
        }
        Reply::done()
    }
}

#[cfg(test)]
mod tests;
