//! The state of the screen besides the model, one struct per concern. What is done with it stands in the files that
//! implement `App`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use tiller_protocol::{AgentId, AskId, CommandId, EntryId, Message, ModelRef, SessionId};

use crate::app::effect::Token;
use crate::dialog::question::input_delay::InputDelay;
use crate::keymap::action::Action;
use crate::keymap::{Chord, Keymap};
use crate::model::{Model, Revisions, Slice};
use crate::panel::{Panel, Placement, Refresh, Reply, View};
use crate::view::layout::{Areas, Zoom};
use crate::view::view_panel::TrackedPanel;

/// The view or dialog that made a request, and receives its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    View(View),
    Layer(u64),
    Shell,
}

/// A dialog on the stack.
pub(crate) struct Layer {
    pub(crate) id: u64,
    panel: TrackedPanel,
    /// Since when it has been in sight: until then nothing is decided in it.
    pub(crate) delay: InputDelay,
    /// It was drawn last while it took no decisions.
    delayed: bool,
}

impl Layer {
    /// A dialog that was not drawn yet.
    pub(crate) fn new(id: u64, panel: Box<dyn Panel>) -> Self {
        Self { id, panel: TrackedPanel::new(panel), delay: InputDelay::default(), delayed: false }
    }

    pub(crate) fn panel(&self) -> &dyn Panel {
        self.panel.panel()
    }

    /// The dialog alone: it leaves the stack.
    pub(crate) fn into_panel(self) -> Box<dyn Panel> {
        self.panel.into_panel()
    }

    /// For measuring and drawing: caches are not part of its state.
    pub(crate) fn panel_to_draw(&mut self) -> &mut dyn Panel {
        self.panel.panel_to_draw()
    }

    /// Calls the dialog. Its state counts as changed unless it ignored the call.
    pub(crate) fn call(&mut self, model: &Model, f: impl FnOnce(&mut dyn Panel, &Model) -> Reply) -> Reply {
        self.panel.call(model, f)
    }

    /// True when it would look the same as it was drawn last; `top`: it has the focus. A dialog may read any slice of the
    /// model.
    pub(crate) fn is_drawn(&self, model: &Model, slices: &Revisions, top: bool) -> bool {
        let delayed = top && !self.delay.is_over(model);
        !self.delayed && !delayed && self.panel.is_drawn(model, slices, &Slice::ALL)
    }

    /// Notes that it was drawn in this state at `now` (monotonic). `delay`: time in which it takes no decisions; `refresh`:
    /// what changes by itself in its `area`.
    pub(crate) fn was_drawn(
        &mut self,
        slices: &Revisions,
        delay: Option<Duration>,
        now: Duration,
        area: Rect,
        refresh: &Refresh,
    ) {
        self.panel.was_drawn(slices, now, area, refresh);
        self.delayed = delay.is_some();
    }

    /// It is not on the screen, and nothing of it changes by itself.
    pub(crate) fn was_hidden(&mut self) {
        self.panel.was_hidden();
    }

    /// Its cells with a spinner, as drawn last.
    pub(crate) fn spinners(&self) -> &[Position] {
        self.panel.spinners()
    }

    /// When it changes by itself (monotonic).
    pub(crate) fn wake(&self) -> Option<Duration> {
        self.panel.wake()
    }

    /// Notes that a timer has fired: see [`TrackedPanel::tick`].
    pub(crate) fn tick(&mut self) {
        self.panel.tick();
    }

    /// The question that its dialog answers.
    pub(crate) fn question(&self, model: &Model) -> Option<AskId> {
        self.panel().status(model).question
    }

    /// Where it lies.
    pub(crate) fn placement(&self, model: &Model) -> Placement {
        self.panel().placement(model.window.screen.0, model)
    }
}

/// The layout as it is now, and what the last frame drew where.
pub(crate) struct Screen {
    pub(crate) focus: View,
    /// The view in the main part.
    pub(crate) main: View,
    pub(crate) zoom: Zoom,
    pub(crate) rail: bool,
    /// The rail takes half of the screen.
    pub(crate) half: bool,
    pub(crate) size: Rect,
    /// As drawn last; for the mouse and for moving the focus by direction.
    pub(crate) areas: Option<Areas>,
    /// The last frame had room for the folded question.
    pub(crate) shows_folded: bool,
    /// The action of a click on each row of the notice bar.
    pub(crate) notice_actions: Vec<Option<&'static str>>,
    /// The action of a click on columns of the header.
    pub(crate) header_clicks: Vec<(std::ops::Range<u16>, &'static str)>,
    /// Where each layer was drawn last.
    pub(crate) boxes: Vec<Rect>,
    /// The panel in which the left button was pressed, and its area: it receives the rest of the drag.
    pub(crate) grab: Option<(Owner, Rect)>,
}

/// The keyboard's state.
pub(crate) struct Keys {
    pub(crate) map: Arc<Keymap>,
    /// Keys of an unfinished sequence, and since when.
    pub(crate) pending: Vec<Chord>,
    pub(crate) since: Duration,
    /// Show the which-key box without waiting.
    pub(crate) which: bool,
    /// Every action, for the tests of footer and keys.
    #[cfg(test)]
    pub(crate) log: Vec<Action>,
    /// Rows of the palette that were chosen, the last one first.
    pub(crate) recent: Vec<String>,
    /// The last action, for `global.repeat`.
    pub(crate) last: Option<Action>,
    /// When Escape, Ctrl-C and any printable key (not at a question) were pressed last.
    pub(crate) escape: Option<Duration>,
    pub(crate) breaks: Option<Duration>,
    pub(crate) typed: Option<Duration>,
    /// A letter at a question, until it is known that it was not the first of a word.
    pub(crate) held: Option<HeldLetter>,
    /// The key for the next permission mode was pressed before the engine reported the present mode.
    pub(crate) next_mode: bool,
}

/// A letter that answers the question of this layer when no other key follows it at once.
pub(crate) struct HeldLetter {
    pub(crate) key: KeyEvent,
    pub(crate) layer: u64,
    /// When it acts (monotonic).
    pub(crate) until: Duration,
}

/// Questions that were put aside or are folded, and the set-up, which opens once the person is not typing.
#[derive(Default)]
pub(crate) struct QuestionState {
    pub(crate) aside: HashSet<AskId>,
    /// The question that is shown above the composer and takes no keys.
    pub(crate) folded: Option<Layer>,
    /// Questions that waited behind one that took keys: they take keys when they open.
    pub(crate) row: HashSet<AskId>,
    /// The main agent waited for the person when it was heard of last.
    pub(crate) waited: bool,
    /// Their dialogs, with unsent text.
    pub(crate) kept: Vec<(AskId, Box<dyn Panel>)>,
    pub(crate) deadlines: crate::app::deadline::Deadlines,
    /// The set-up is to be offered once.
    pub(crate) first_run: bool,
    /// A message that waits for a model.
    pub(crate) pending: PendingPrompt,
}

/// A message that waits for a model.
#[derive(Default)]
pub(crate) struct PendingPrompt {
    /// The composer's text is sent when a model is chosen.
    pub(crate) waits: bool,
    /// A message on its way to an engine that had not answered yet.
    pub(crate) early: Option<CommandId>,
    /// The next model in use (only this one, if one is named) is saved for later sessions.
    pub(crate) keep: Option<Option<ModelRef>>,
}

/// The requests whose answers are outstanding, and where each answer goes.
#[derive(Default)]
pub(crate) struct Router {
    pub(crate) next: u64,
    pub(crate) requests: HashMap<CommandId, PendingRequest>,
    pub(crate) jobs: HashMap<Token, (Owner, Token)>,
    /// The panel for which the screen was left.
    pub(crate) suspended: Option<Owner>,
    /// Requests for a whole state without an answer yet, by agent.
    pub(crate) snapshots: HashMap<AgentId, CommandId>,
    /// The work in a session once it is open, and the command that opens it.
    pub(crate) then: Option<(SessionId, CommandId, AfterOpen)>,
}

/// One outstanding request: its owner, its number there, and the agent that was on the screen then.
#[derive(Clone)]
pub(crate) struct PendingRequest {
    pub(crate) owner: Owner,
    pub(crate) token: Token,
    pub(crate) screen: AgentId,
}

/// The work in a session once it is open.
#[derive(Clone, Copy)]
pub(crate) enum AfterOpen {
    /// Start a branch from this entry; `None`: from the session's end.
    Branch(Option<EntryId>),
    Show(EntryId),
    /// Ask what to restore to it.
    Restore(EntryId),
}

impl Router {
    pub(crate) fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A token for a job of this panel's: unlike the panel's own one it is unique.
    pub(crate) fn job(&mut self, owner: Owner, token: Token) -> Token {
        let outer = Token(self.fresh());
        self.jobs.insert(outer, (owner, token));
        outer
    }
}

/// State of agents that are not shown.
#[derive(Default)]
pub(crate) struct AgentViewState {
    /// Panels of agents that are not shown.
    pub(crate) parked: Vec<(AgentId, View, Box<dyn Panel>)>,
    /// The action to perform once the conversation of this agent has arrived.
    pub(crate) then: Option<(AgentId, Action)>,
    /// Messages to agents without a receipt yet.
    pub(crate) sent: VecDeque<(CommandId, Message)>,
}

impl AgentViewState {
    pub(crate) fn take(&mut self, agent: &AgentId, view: View) -> Option<Box<dyn Panel>> {
        let at = self.parked.iter().position(|(a, v, _)| a == agent && *v == view)?;
        Some(self.parked.swap_remove(at).2)
    }

    pub(crate) fn find(&mut self, agent: &AgentId, view: View) -> Option<&mut dyn Panel> {
        self.parked.iter_mut().find(|(a, v, _)| a == agent && *v == view).map(|(_, _, p)| p.as_mut())
    }
}

/// Runs a command with the second argument on its standard input, within its time limit. Returns its output, or why
/// there is none. Called on a separate thread.
pub type Runner = Arc<dyn Fn(&str, &str) -> Result<String, String> + Send + Sync>;

/// State of the status line's command.
#[derive(Default)]
pub(crate) struct StatusLine {
    pub(crate) runner: Option<Runner>,
    pub(crate) running: bool,
    /// The state changed while it ran.
    pub(crate) again: bool,
    /// Its last error, so that the same error is reported once.
    pub(crate) wrong: Option<String>,
}

/// The last values that were shown outside of the screen.
#[derive(Default)]
pub(crate) struct OutsideState {
    /// The terminal's title.
    pub(crate) title: String,
    pub(crate) turn: Option<Duration>,
    pub(crate) stop: Option<Duration>,
    /// That stop was one of the main agent.
    pub(crate) stopped_main: bool,
    /// The terminal of a program.
    pub(crate) pane: crate::panel::terminal::visibility::Visibility,
    /// Notices that the person has seen in the error log.
    pub(crate) seen: usize,
    /// The command of the person's status line.
    pub(crate) status: StatusLine,
}

impl OutsideState {
    /// Resets the values for another terminal, which has received none yet.
    pub(crate) fn forget(&mut self) {
        self.title.clear();
    }

    /// Notes that "stop" was pressed; true when it was within two seconds of the last time. `main`: the main agent is
    /// stopped; a stop of another one before does not count.
    pub(crate) fn stopped(&mut self, now: Duration, main: bool) -> bool {
        let hard = self.stop.is_some_and(|t| now.saturating_sub(t) < Duration::from_secs(2))
            && self.stopped_main == main;
        (self.stop, self.stopped_main) = (Some(now), main);
        hard
    }
}
