//! The stack of layers and the focus: passes messages down and effects up. Global actions are in `global`, effects in
//! `route`, drawing in `view`, the steps of Escape in [`crate::input::escape`].

pub(crate) mod deadline;
pub(crate) mod decisions;
pub mod effect;
pub mod global;
pub(crate) mod inbox;
pub mod msg;
pub(crate) mod questions;
pub(crate) mod queued_prompt;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod saver;
pub mod state;
pub mod ui;

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::KeyEventKind;
use ratatui::layout::Rect;
use tiller_config::schema;
use tiller_protocol::{Clock, Event, EventBody};

use crate::app::msg::{ConfigMsg, Msg, OutputMsg, SignalMsg};

use crate::app::effect::Task;
use crate::app::state::{AgentViewState, Keys, Layer, OutsideState, Owner, QuestionState, Router, Screen};
use crate::input::Input;
use crate::keymap::Keymap;
use crate::keymap::action::Action;
use crate::model::{Model, Tracked};
use crate::panel::{Panel, PanelEvent, PanelStatus, Reply, View};
use crate::registry::Registry;
use crate::theme::Themes;
use crate::view::frame_state::FrameState;
use crate::view::layout::Zoom;
use crate::view::toast::Toasts;
use crate::view::view_panel::{PanelFacts, ViewPanel};

/// The screen's state.
pub struct App {
    pub model: Model,
    /// The parts that the screen is made of.
    pub(crate) registry: &'static Registry,
    pub(crate) screen: Screen,
    pub(crate) views: Vec<ViewPanel>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) keys: Keys,
    pub(crate) themes: Themes,
    pub(crate) toasts: Toasts,
    pub(crate) questions: QuestionState,
    pub(crate) router: Router,
    pub(crate) agent_view: AgentViewState,
    pub(crate) tasks: Vec<Task>,
    pub(crate) outside: OutsideState,
    clock: Arc<dyn Clock>,
    pub(crate) frame: FrameState,
}

impl App {
    /// A new screen. It sends nothing to the engine before [`App::start`].
    pub fn new(
        ui: Arc<schema::Ui>,
        registry: &'static Registry,
        map: Arc<Keymap>,
        themes: Themes,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let model = Model { ui: Tracked::new(ui), now: clock.now(), mono: clock.mono(), ..Model::default() };
        Self {
            model,
            registry,
            screen: Screen {
                focus: View::Composer,
                main: View::Conversation,
                zoom: Zoom::Normal,
                rail: true,
                half: false,
                size: Rect::new(0, 0, 80, 24),
                areas: None,
                shows_folded: false,
                notice_actions: Vec::new(),
                header_clicks: Vec::new(),
                boxes: Vec::new(),
                grab: None,
            },
            views: View::ALL
                .into_iter()
                .map(|v| ViewPanel::new(v, registry.panel(v), registry.reads(v)))
                .collect(),
            layers: Vec::new(),
            keys: Keys {
                map,
                pending: Vec::new(),
                since: Duration::ZERO,
                which: false,
                #[cfg(test)]
                log: Vec::new(),
                recent: Vec::new(),
                last: None,
                escape: None,
                breaks: None,
                typed: None,
                held: None,
                next_mode: false,
            },
            themes,
            toasts: Toasts::default(),
            questions: QuestionState::default(),
            router: Router::default(),
            agent_view: AgentViewState::default(),
            tasks: Vec::new(),
            outside: OutsideState::default(),
            clock,
            frame: FrameState::new(),
        }
    }

    /// Requests the state of the session, and what each view needs.
    pub fn start(&mut self) {
        self.tick_clock();
        self.ask_snapshot();
        for view in View::ALL {
            self.tell(Owner::View(view), PanelEvent::Opened);
        }
    }

    /// Takes one message in. Work for the loop is in [`App::take_tasks`] afterwards.
    pub fn update(&mut self, msg: Msg) {
        self.tick_clock();
        // A letter acts when a timer fires: with keys or text before the screen it was the first of a word.
        if matches!(msg, Msg::Tick) {
            self.release_letter();
        }
        // A change that is not drawn yet stays to be drawn, whatever this message is.
        let before = std::mem::replace(&mut self.frame.dirty, true);
        match msg {
            Msg::Input(Input::Key(key)) if key.kind != KeyEventKind::Release => {
                // Some terminals do not report that the window got the focus again.
                if self.model.window.away {
                    self.back();
                }
                self.key(&key);
            }
            Msg::Input(Input::Key(_))
            | Msg::Output(OutputMsg::Ready)
            | Msg::Line(_)
            | Msg::Output(OutputMsg::Bytes(_))
            | Msg::Output(OutputMsg::Lost | OutputMsg::Picture(_))
            | Msg::Owner(_)
            | Msg::Source(_) => self.frame.dirty = false,
            Msg::Input(Input::Mouse(event)) => self.mouse(&event),
            Msg::Input(Input::Paste(text)) => self.paste(&text),
            Msg::Input(Input::BurstBegins) => self.frame.dirty = self.write_held(),
            Msg::Input(Input::Burst { typed, text, enter }) => self.burst(typed, &text, enter),
            Msg::Resize(width, height) => {
                self.screen.size = Rect::new(0, 0, width, height);
                self.model.window.screen = (width, height);
            }
            Msg::Input(Input::FocusGained) => self.back(),
            Msg::Input(Input::FocusLost) => self.model.window.away = true,
            Msg::Input(Input::Background(r, g, b)) => {
                if self.themes.background(r, g, b) {
                    self.redraw();
                } else {
                    self.frame.dirty = false;
                }
            }
            Msg::Input(Input::Fact(fact)) => {
                if self.themes.fact(fact) {
                    self.redraw();
                } else {
                    self.frame.dirty = false;
                }
            }
            Msg::Input(Input::Scheme { dark }) => {
                if self.themes.scheme(dark) {
                    self.redraw();
                } else {
                    self.frame.dirty = false;
                }
            }
            Msg::Engine(event) => {
                let seen = self.event(&event);
                self.frame.dirty = seen || matches!(event.body, EventBody::Reply(_));
            }
            Msg::Notice(notice) => self.notice(*notice),
            Msg::Job(token, result) => self.job(token, result),
            Msg::Tick => {
                self.views.iter_mut().for_each(ViewPanel::tick);
                self.layers.iter_mut().chain(&mut self.questions.folded).for_each(Layer::tick);
                for view in View::ALL {
                    self.tell(Owner::View(view), PanelEvent::Tick);
                }
                let layers: Vec<u64> = self.dialogs().map(|l| l.id).collect();
                for id in layers {
                    self.tell(Owner::Layer(id), PanelEvent::Tick);
                }
            }
            Msg::Config(ConfigMsg::Changed) => self.tasks.push(Task::Reload),
            Msg::Config(ConfigMsg::Kinds(kinds)) => {
                self.model.crew.kinds = kinds;
                self.frame.dirty = false;
            }
            Msg::Signal(SignalMsg::Terminate(_)) => self.tasks.push(Task::Quit),
            Msg::Signal(SignalMsg::Stop) => self.frame.dirty = false,
            Msg::Signal(SignalMsg::Continued) => self.tasks.push(Task::Repaint),
        }
        self.after_message();
        self.frame.dirty |= before;
    }

    /// Reports to every panel that the settings have changed.
    pub(crate) fn settings_changed(&mut self) {
        let Self { views, layers, questions, model, .. } = self;
        for view in views {
            view.call(model, |p, m| p.handle(PanelEvent::SettingsChanged, m));
        }
        for layer in layers.iter_mut().chain(&mut questions.folded) {
            layer.call(model, |p, m| p.handle(PanelEvent::SettingsChanged, m));
        }
        self.redraw();
    }

    /// Notes that the window has the focus again.
    fn back(&mut self) {
        self.model.window.away = false;
        self.model.window.back = self.model.mono;
    }

    /// Takes the tasks for the loop.
    pub fn take_tasks(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.tasks)
    }

    /// True when something changed since the last frame, or the screen changes by itself now.
    pub fn due(&self) -> bool {
        self.frame.dirty || self.ticks() || self.frame.spin.is_some_and(|w| self.clock.mono() >= w)
    }

    /// True when more changes by itself now than spinners: the panels are told of it.
    pub(crate) fn ticks(&self) -> bool {
        self.frame.wake.is_some_and(|w| self.clock.mono() >= w)
    }

    /// Time until the screen changes by itself; `None`: never.
    pub fn sleep(&self) -> Option<Duration> {
        let next = self.frame.wake.into_iter().chain(self.frame.spin).min();
        next.map(|w| w.saturating_sub(self.clock.mono()))
    }

    pub(crate) fn tick_clock(&mut self) {
        self.model.now = self.clock.now();
        self.model.mono = self.clock.mono();
    }

    /// The panel that takes keys: the top layer, else the focused view.
    pub(crate) fn top(&self) -> Owner {
        self.layers.last().map_or(Owner::View(self.screen.focus), |l| Owner::Layer(l.id))
    }

    /// All dialogs on the screen, the folded question too.
    pub(crate) fn dialogs(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().chain(&self.questions.folded)
    }

    /// Calls a panel; `None`: it is gone.
    pub(crate) fn with(
        &mut self,
        owner: Owner,
        f: impl FnOnce(&mut dyn Panel, &Model) -> Reply,
    ) -> Option<Reply> {
        match owner {
            Owner::View(v) => Some(self.views.iter_mut().find(|x| x.view == v)?.call(&self.model, f)),
            Owner::Layer(id) => {
                let layer = self.layers.iter_mut().chain(&mut self.questions.folded).find(|l| l.id == id)?;
                Some(layer.call(&self.model, f))
            }
            Owner::Shell => None,
        }
    }

    /// Returns what layout, titles and badges show of a view.
    pub(crate) fn facts(&self, view: View) -> &PanelFacts {
        self.views[view.digit()].facts()
    }

    /// A panel; `None`: it is gone.
    pub(crate) fn panel(&self, owner: Owner) -> Option<&dyn Panel> {
        match owner {
            Owner::View(v) => self.views.iter().find(|x| x.view == v).map(ViewPanel::panel),
            Owner::Layer(id) => self.dialogs().find(|l| l.id == id).map(Layer::panel),
            Owner::Shell => None,
        }
    }

    /// The state of a panel; `None`: it is gone.
    pub(crate) fn status_of(&self, owner: Owner) -> Option<PanelStatus> {
        self.panel(owner).map(|p| p.status(&self.model))
    }

    /// True when a panel has nothing to show, or is gone.
    pub(crate) fn is_empty(&self, owner: Owner) -> bool {
        self.status_of(owner).is_none_or(|s| s.empty)
    }

    /// Delivers an event to a panel and carries out the effects of it. `false`: the panel ignored it.
    pub(crate) fn tell(&mut self, owner: Owner, event: PanelEvent<'_>) -> bool {
        let Some(Reply::Done(list)) = self.with(owner, |p, m| p.handle(event, m)) else { return false };
        self.effects(owner, list);
        true
    }

    /// Sections of the key file that are active, inner first.
    pub(crate) fn scopes(&self) -> Vec<&'static str> {
        self.registry.words().chain(self.status_of(self.top()).map_or("global", |s| s.scope))
    }

    /// Performs an action: by the panel on top if it takes the action, else by the app, else by the view that owns the
    /// action. `false`: it cannot be performed now.
    pub(crate) fn act(&mut self, action: Action) -> bool {
        // For Escape the tour needs to know whether it stops a turn.
        let escape = action == Action("global.escape");
        let running = self.model.agent.turn.running
            && (!escape || crate::app::global::escape_step(self) == crate::input::escape::EscapeStep::Stop);
        let done = self.carry_out(action);
        if done && self.model.tour.step().is_some() {
            self.model.tour.performed(action, running);
        }
        done
    }

    fn carry_out(&mut self, action: Action) -> bool {
        #[cfg(test)]
        self.keys.log.push(action);
        if action != Action("global.repeat") {
            self.keys.last = Some(action);
        }
        let top = self.top();
        if self.withheld(action) {
            return true;
        }
        if let Some(Reply::Done(list)) = self.with(top, |p, m| p.act(action, m)) {
            self.effects(top, list);
            return true;
        }
        if let Some(list) = crate::app::global::run(self, action) {
            self.effects(Owner::Shell, list);
            return true;
        }
        if let Some(open) = self.registry.openers().find(|o| o.spec.action == action) {
            match (open.open)(self) {
                Ok(panel) => {
                    if action.0 == "errors.open" {
                        self.outside.seen = self.model.notices.len();
                    }
                    self.push(panel);
                }
                Err(why) => self.say(why),
            }
            return true;
        }
        for view in View::ALL {
            let owner = Owner::View(view);
            let mine = self.panel(owner).is_some_and(|p| p.actions().iter().any(|s| s.action == action));
            if mine
                && owner != top
                && let Some(Reply::Done(list)) = self.with(owner, |p, m| p.act(action, m))
            {
                self.effects(owner, list);
                return true;
            }
        }
        false
    }

    /// Takes an event in. `false`: nothing on the screen changes, as with most events of agents that are not shown.
    fn event(&mut self, event: &Event) -> bool {
        let failed = self.fails(event);
        self.model.apply(event);
        if self.keys.next_mode && self.model.agent.session.profile_known {
            self.keys.next_mode = false;
            self.act(Action("global.profile"));
        }
        if let Some(notice) = failed {
            self.notice(notice);
        }
        self.at_home(event);
        if !self.model.affects_screen(event) {
            let seen = self.peek().is_some_and(|owner| self.tell(owner, PanelEvent::Engine(event)));
            self.answered(event);
            if event.agent.is_main() {
                self.after_event(event);
            }
            return seen;
        }
        let mut owners: Vec<Owner> = View::ALL.into_iter().map(Owner::View).collect();
        owners.extend(self.dialogs().map(|l| Owner::Layer(l.id)));
        for owner in owners {
            if let Some(Reply::Done(list)) = self.with(owner, |p, m| p.handle(PanelEvent::Engine(event), m)) {
                self.effects(owner, list);
            }
        }
        self.answered(event);
        self.after_event(event);
        true
    }
}
