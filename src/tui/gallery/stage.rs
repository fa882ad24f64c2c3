//! The screen of a scene: the app with a clock that moves by hand, an engine that answers from a script, and a person
//! who presses keys.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_config::schema::Ui;
use tiller_protocol::event::{ReplyEvent, StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::tool::Display;
use tiller_protocol::{
    AgentId, Block, Command, CommandId, Entry, EntryBody, EntryId, Event, EventBody, IdSource, ManualClock,
    Message, Notice, Origin, Part, SeqIds, SessionId, Snapshot, StopReason, Time, ToolCall, ToolOutcome,
};

use super::answers;
use super::look::Look;
use crate::app::App;
use crate::app::effect::{Effect, Navigation, Task};
use crate::app::msg::Msg;
use crate::app::state::Owner;
use crate::input::Input;
use crate::keymap::action::Action;
use crate::keymap::{self, Chord, Keymap, chord};
use crate::panel::Panel;
use crate::shipped;
use crate::text::highlight::Syntaxes;
use crate::theme::Themes;
use crate::view::layout::Zoom;

/// Milliseconds since the epoch at which every scene starts: 2026-11-21T20:00:00Z.
pub(super) const START: Time = Time(1_795_291_200_000);

/// Longest wait for the colours of code, which come from another thread.
const COLOURS: Duration = Duration::from_secs(5);

/// A screen that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub cells: Buffer,
    /// `None`: the cursor is hidden.
    pub cursor: Option<Position>,
}

/// One call of a tool from its start to its end.
pub(super) struct Call {
    /// As the tool is called.
    pub(super) tool: &'static str,
    pub(super) verb: &'static str,
    pub(super) target: &'static str,
    pub(super) output: &'static str,
    pub(super) display: Option<Display>,
    pub(super) outcome: ToolOutcome,
    pub(super) seconds: f64,
}

impl Call {
    /// A call that succeeds; `measure` is what its row says of the result.
    pub(super) fn new(tool: &'static str, verb: &'static str, target: &'static str, measure: &str) -> Self {
        let display = (!measure.is_empty()).then(|| Display::Measure { text: measure.into() });
        Self { tool, verb, target, output: "", display, outcome: ToolOutcome::Ok, seconds: 0.08 }
    }

    /// The arguments that the rows of calls which have not started are made from.
    fn arguments(&self) -> serde_json::Value {
        serde_json::json!({ "path": self.target, "command": self.target })
    }
}

/// The screen of a scene.
pub(super) struct Stage {
    app: App,
    pub(super) clock: Arc<ManualClock>,
    picture: Picture,
    /// The engine's answer about the whole state of the main agent.
    pub(super) snapshot: Snapshot,
    /// The engine's lists of sessions, models and the like are empty.
    pub(super) new_here: bool,
    ids: SeqIds,
    seq: u64,
    last: Option<EntryId>,
    calls: u32,
    /// Every event of the engine so far, answers aside.
    played: Vec<Event>,
    /// Text that a terminal would show instead of the screen.
    printed: Option<String>,
    /// Keys and actions of the scene that did nothing.
    mistakes: Vec<String>,
}

fn keys() -> Option<Arc<Keymap>> {
    static MAP: OnceLock<Option<Arc<Keymap>>> = OnceLock::new();
    MAP.get_or_init(|| keymap::preset(shipped::registry().words(), "default").ok().map(Arc::new)).clone()
}

/// Compiles the expressions of the grammars that the scenes use. The first block of a language would otherwise take so
/// long on a busy machine that the highlighter leaves a part of it plain.
fn warm_up() {
    static TABLES: OnceLock<Arc<Syntaxes>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let tables = Syntaxes::shared();
        let code: Vec<String> = include_str!("data/reply.md").lines().map(str::to_owned).collect();
        let _ = tables.colour("python", &code);
        tables
    });
}

impl Stage {
    /// A screen before its start.
    ///
    /// # Errors
    /// A sentence, when the shipped keymap cannot be read.
    pub(super) fn new((width, height): (u16, u16), mut ui: Ui, look: &Look) -> Result<Self, String> {
        warm_up();
        ui.theme.clone_from(&look.theme);
        let clock = Arc::new(ManualClock::new(START));
        // Not at zero, so that "long ago" exists.
        clock.advance(Duration::from_secs(3600));
        clock.jump(START);
        let map = keys().ok_or("the shipped keymap cannot be read")?;
        let themes = Themes::fixed(look.theme()?);
        let mut app = App::new(Arc::new(ui), shipped::registry(), map, themes, clock.clone());
        app.model.environment.folders.scratch = tempfile::env::temp_dir();
        let cells = Buffer::empty(Rect::new(0, 0, width, height));
        let mut stage = Self {
            app,
            clock,
            picture: Picture { cells, cursor: None },
            snapshot: answers::snapshot(),
            new_here: false,
            ids: SeqIds::default(),
            seq: 0,
            last: None,
            calls: 0,
            played: Vec::new(),
            printed: None,
            mistakes: Vec::new(),
        };
        stage.app.update(Msg::Resize(width, height));
        Ok(stage)
    }

    /// The same screen in another look.
    ///
    /// # Errors
    /// A sentence, when the theme is not shipped.
    pub(super) fn look(&mut self, look: &Look) -> Result<(), String> {
        self.app.themes = Themes::fixed(look.theme()?);
        Ok(())
    }

    /// The same screen in themes that no look names.
    pub(super) fn themes(&mut self, themes: Themes) {
        self.app.themes = themes;
    }

    /// Opens the session: the engine answers with the snapshot.
    pub(super) fn start(&mut self) {
        self.app.start();
        self.settle();
        self.wait(10);
    }

    /// An event of the main agent.
    pub(super) fn event(&mut self, body: EventBody) {
        self.event_of("main", None, body);
    }

    /// An event of an agent, perhaps as the answer to a command.
    pub(super) fn event_of(&mut self, agent: &str, cause: Option<CommandId>, body: EventBody) {
        use tiller_protocol::Clock;
        self.seq += 1;
        let event = Event {
            seq: self.seq,
            time: self.clock.now(),
            session: self.session(),
            agent: AgentId(agent.into()),
            cause,
            body,
        };
        self.played.push(event.clone());
        self.app.update(Msg::Engine(Box::new(event)));
        self.answer();
    }

    /// Every event of the engine so far, answers aside.
    pub(super) fn played(&self) -> Vec<Event> {
        self.played.clone()
    }

    /// Shows the end of a text in place of the screen, as a terminal would.
    pub(super) fn print(&mut self, text: &str) {
        self.printed = Some(text.to_owned());
        self.draw();
    }

    /// Goes to another agent, or another place.
    pub(super) fn go(&mut self, to: Navigation) {
        self.app.effects(Owner::Shell, vec![Effect::Navigate(to)]);
        self.app.after_message();
        self.settle();
        self.wait(10);
    }

    /// A change of the state of the session.
    pub(super) fn state(&mut self, event: StateEvent) {
        self.event(EventBody::State(event));
    }

    /// An event of the conversation.
    pub(super) fn turn(&mut self, event: TurnEvent) {
        self.event(EventBody::Turn(event));
    }

    /// A notice of the engine.
    pub(super) fn notice(&mut self, notice: Notice) {
        self.state(StateEvent::Notice { notice });
    }

    pub(super) fn session(&self) -> SessionId {
        self.snapshot.session.id
    }

    fn entry(&mut self, body: EntryBody) -> Entry {
        use tiller_protocol::Clock;
        let fresh = EntryId(self.ids.next(START));
        // The message of the story is one of the tree's.
        let wish = matches!(&body, EntryBody::User { message, .. } if message.text == super::story::WISH);
        let id = if wish { super::answers::entry(2) } else { fresh };
        Entry {
            id,
            parent: self.last.replace(id),
            session: self.session(),
            agent: AgentId::main(),
            time: self.clock.now(),
            body,
            snapshot: None,
        }
    }

    /// The person's message; a turn begins.
    pub(super) fn user(&mut self, text: &str) {
        let content = vec![Part::Text { text: text.into() }];
        let node = self.entry(EntryBody::User {
            message: Message::text(text),
            origin: Origin::Prompt,
            content,
            taint: None,
            learnings: Vec::new(),
        });
        self.turn(TurnEvent::UserMessage { entry: node.id, text: text.into(), node: Box::new(node) });
        self.turn(TurnEvent::TurnStarted {});
    }

    /// A reply: thinking (empty: none), text, calls.
    pub(super) fn reply(&mut self, thinking: &str, text: &str, calls: &[Call]) {
        if !thinking.is_empty() {
            self.turn(TurnEvent::ThinkingDelta { text: thinking.into() });
            self.clock.advance(Duration::from_secs(4));
        }
        if !text.is_empty() {
            self.turn(TurnEvent::TextDelta { text: text.into() });
        }
        self.store(thinking, text, calls.iter());
        for call in calls {
            let id = self.begin(call);
            self.finish(&id, call);
        }
    }

    /// The entry of a reply that was streamed. Its calls begin in the same order.
    pub(super) fn store<'a>(&mut self, thinking: &str, text: &str, calls: impl Iterator<Item = &'a Call>) {
        let mut blocks = Vec::new();
        if !thinking.is_empty() {
            blocks.push(Block::Thinking { text: thinking.into(), signature: None });
        }
        if !text.is_empty() {
            blocks.push(Block::Text { text: text.into() });
        }
        let mut stop = StopReason::EndTurn;
        for (n, call) in calls.enumerate() {
            stop = StopReason::ToolUse;
            blocks.push(Block::ToolCall(ToolCall {
                id: format!("c{}", self.calls + n as u32),
                name: call.tool.into(),
                arguments: call.arguments(),
                malformed: None,
                vendor: None,
            }));
        }
        let model = self.snapshot.model.clone();
        let node = self.entry(EntryBody::Assistant {
            blocks,
            stop,
            model,
            usage: tiller_protocol::Usage::default(),
            cost: None,
        });
        self.turn(TurnEvent::AssistantMessage { entry: node.id, text: text.into(), node: Box::new(node) });
    }

    /// A call starts; its id.
    pub(super) fn begin(&mut self, call: &Call) -> String {
        let id = format!("c{}", self.calls);
        self.calls += 1;
        self.event(EventBody::Tool(ToolEvent::ToolStarted {
            call_id: id.clone(),
            name: call.tool.into(),
            arguments: call.arguments(),
            verb: call.verb.into(),
            target: call.target.into(),
        }));
        id
    }

    /// A call ends.
    pub(super) fn finish(&mut self, id: &str, call: &Call) {
        self.clock.advance(Duration::from_secs_f64(call.seconds));
        let node = self.entry(EntryBody::ToolResult {
            call_id: id.into(),
            name: call.tool.into(),
            outcome: call.outcome,
            content: vec![Part::Text { text: call.output.into() }],
            display: call.display.clone(),
            seconds: call.seconds,
            learnings: Vec::new(),
            taint: None,
            added: tiller_protocol::Additions::default(),
        });
        self.event(EventBody::Tool(ToolEvent::ToolFinished {
            call_id: id.into(),
            name: call.tool.into(),
            arguments: call.arguments(),
            ok: call.outcome.ok(),
            outcome: call.outcome,
            output: call.output.into(),
            seconds: call.seconds,
            display: call.display.clone(),
            node: Box::new(node),
        }));
    }

    /// Time passes, with the ticks that the screen asks for.
    pub(super) fn wait(&mut self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
        self.app.update(Msg::Tick);
        self.settle();
    }

    /// Reads a dialog that has just opened: it takes no decision before.
    pub(super) fn read(&mut self) {
        self.wait(1500);
        self.wait(1500);
    }

    /// Does an action as if its key had been pressed.
    pub(super) fn act(&mut self, action: &'static str) {
        if !self.app.act(Action(action)) {
            self.mistakes.push(format!("{action} is not possible"));
        }
        self.app.after_message();
        self.settle();
        self.read();
    }

    /// Presses keys, written as in key files: `ctrl-x g`.
    pub(super) fn press(&mut self, sequence: &str) {
        match chord::parse_sequence(sequence, self.app.keys.map.leader) {
            Ok(keys) => {
                for key in keys {
                    self.input(Input::Key(key.event()));
                }
            }
            Err(why) => self.mistakes.push(why),
        }
    }

    /// Enlarges the focused pane until it fills the screen.
    pub(super) fn fill(&mut self) {
        for _ in 0..2 {
            if self.app.screen.zoom != Zoom::Full {
                self.act("screen.zoom");
            }
        }
    }

    /// Types text.
    pub(super) fn write(&mut self, text: &str) {
        for c in text.chars() {
            if let Ok(key) = Chord::parse(c.encode_utf8(&mut [0; 4])) {
                self.input(Input::Key(key.event()));
            }
        }
    }

    /// Puts a dialog on top.
    pub(super) fn push(&mut self, panel: Box<dyn Panel>) {
        self.app.push(panel);
        self.draw();
        self.settle();
        self.read();
    }

    fn input(&mut self, input: Input) {
        self.app.update(Msg::Input(input));
        self.settle();
    }

    /// Answers what the screen has asked for, and draws.
    fn settle(&mut self) {
        self.answer();
        self.draw();
    }

    /// Answers what the screen has asked for.
    fn answer(&mut self) {
        // Each answer may lead to the next question.
        for _ in 0..16 {
            let asked: Vec<Command> = self
                .app
                .take_tasks()
                .into_iter()
                .filter_map(|task| if let Task::Send(command) = task { Some(command) } else { None })
                .collect();
            if asked.is_empty() {
                break;
            }
            for command in asked {
                if let Some(reply) = answers::answer(self, &command) {
                    let agent = command.agent.as_ref().map_or("main", |a| a.0.as_str());
                    self.reply_to(agent, command.id, reply);
                }
            }
        }
    }

    fn reply_to(&mut self, agent: &str, cause: CommandId, reply: ReplyEvent) {
        use tiller_protocol::Clock;
        self.seq += 1;
        let event = Event {
            seq: self.seq,
            time: self.clock.now(),
            session: self.session(),
            agent: AgentId(agent.into()),
            cause: Some(cause),
            body: EventBody::Reply(Box::new(reply)),
        };
        self.app.update(Msg::Engine(Box::new(event)));
    }

    fn draw(&mut self) {
        if let Some(text) = &self.printed {
            let area = self.picture.cells.area;
            let columns = usize::from(area.width).max(1);
            let rows: Vec<String> = text
                .lines()
                .flat_map(|line| {
                    let chars: Vec<char> = line.chars().collect();
                    let pieces = chars.chunks(columns).map(|c| c.iter().collect()).collect::<Vec<String>>();
                    if pieces.is_empty() { vec![String::new()] } else { pieces }
                })
                .collect();
            let first = rows.len().saturating_sub(usize::from(area.height) - 1);
            self.picture.cells.reset();
            for (y, row) in rows.iter().skip(first).enumerate() {
                self.picture.cells.set_string(0, y as u16, row, ratatui::style::Style::new());
            }
            self.picture.cursor = Some(Position::new(0, (rows.len() - first) as u16));
            return;
        }
        self.picture.cursor = self.app.draw(&mut self.picture.cells);
    }

    /// Draws until the colours of all code are here.
    pub(super) fn coloured(&mut self) {
        let begun = std::time::Instant::now();
        self.app.redraw();
        self.draw();
        let soon = Duration::from_millis(30);
        let waits = |app: &App| app.frame.wake.is_some_and(|at| at <= app.model.mono + soon);
        while waits(&self.app) && begun.elapsed() < COLOURS {
            std::thread::park_timeout(Duration::from_millis(1));
            self.app.redraw();
            self.draw();
        }
    }

    /// Returns what is on the screen.
    pub(super) fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Keys and actions that did nothing: the scene is out of date.
    pub(super) fn mistakes(&self) -> &[String] {
        &self.mistakes
    }
}
