//! A robot user: events and keys as text, the screen as text. For tests of every panel and dialog.
//!
//! ```text
//! let mut r = Robot::new(80, 24);
//! r.run("type hello; enter");
//! assert!(matches!(r.commands()[..], [CommandBody::Turn(_)]));
//! r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
//! insta::assert_snapshot!(r.screen());
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_config::schema;
use tiller_protocol::event::{TurnEvent, TurnStatus};
use tiller_protocol::{
    AgentId, CommandBody, CommandId, Event, EventBody, ManualClock, RuleArgument, SeqIds, SessionId, Time,
    ToolCatalog, ToolGrant, ToolInfo, ToolSet, ToolVerb, Touch,
};

use crate::app::App;
use crate::app::effect::Task;
use crate::app::msg::Msg;
pub use crate::gallery::text as text_of;
use crate::input::Input;
use crate::keymap::{self, Chord, chord};
use crate::panel::Panel;
use crate::shipped;
use crate::theme::{Depth, Theme, Themes};

/// Milliseconds since the epoch at which every test starts: 2026-11-21T20:00:00Z.
pub const START: Time = Time(1_795_291_200_000);

/// The app with a hand-moved clock and a screen of its own.
pub struct Robot {
    pub app: App,
    pub clock: Arc<ManualClock>,
    buf: Buffer,
    cursor: Option<Position>,
    /// Everything that the app wanted done, with commands taken out.
    pub tasks: Vec<Task>,
    commands: Vec<(CommandId, CommandBody)>,
    /// Agents that commands were for, other than the main one.
    to: std::collections::HashMap<CommandId, AgentId>,
    seq: u64,
    /// The layer that it has looked at before it went on pressing keys.
    looked: Option<u64>,
}

/// Numbers that look random, the same in each run with the same seed (xorshift; not 0).
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Values by name that all tests of the process share: a keymap or theme is read from its file once, not for each of the
/// thousands of screens.
type Shared<T> = Mutex<BTreeMap<String, T>>;

fn shared<T: Clone>(all: &Shared<T>, name: &str, read: impl FnOnce() -> T) -> T {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(name.to_owned()).or_insert_with(read).clone()
}

/// Tools with the verbs of the program's own, whose calls tests show. The tools themselves are not known in this room.
pub fn tools() -> ToolCatalog {
    fn target(arguments: &serde_json::Value) -> String {
        let text = |key: &str| arguments.get(key).and_then(serde_json::Value::as_str);
        ["path", "command", "url", "pattern"].into_iter().find_map(text).unwrap_or_default().to_owned()
    }
    let verbs = [
        ("read_file", "read"),
        ("write_file", "write"),
        ("edit_file", "edit"),
        ("list_dir", "list"),
        ("search", "search"),
        ("terminal", "shell"),
        ("process", "process"),
        ("web_fetch", "fetch"),
        ("list_agents", "agents"),
        ("delegate_task", "delegate"),
    ];
    let tool = |(name, verb)| ToolInfo {
        name,
        set: ToolSet::Read,
        grant: ToolGrant::All,
        starts_agents: false,
        touch: Touch::Read,
        rule: RuleArgument::Text,
        aliases: &[],
        verb: ToolVerb::from(verb),
        target,
    };
    verbs.into_iter().map(tool).collect()
}

fn built_in_theme(name: &str) -> Theme {
    static THEMES: Shared<Theme> = Mutex::new(BTreeMap::new());
    shared(&THEMES, name, || Theme::built_in(name, Depth::True).expect("a shipped theme"))
}

fn preset_keymap(name: &str) -> Arc<keymap::Keymap> {
    static MAPS: Shared<Arc<keymap::Keymap>> = Mutex::new(BTreeMap::new());
    shared(&MAPS, name, || {
        Arc::new(keymap::preset(shipped::registry().words(), name).expect("a shipped keymap"))
    })
}

impl Robot {
    /// Theme `mono`, default keys, ASCII off.
    pub fn new(width: u16, height: u16) -> Self {
        Self::with(width, height, schema::Ui::default())
    }

    /// With settings; theme and keymap by their names in them (`auto` is `mono`).
    pub fn with(width: u16, height: u16, ui: schema::Ui) -> Self {
        let name = if ui.theme == "auto" { "mono" } else { ui.theme.as_str() };
        let theme = built_in_theme(name);
        let map = preset_keymap(&ui.keymap);
        Self::made(width, height, ui, map, theme)
    }

    /// With everything given.
    pub fn made(
        width: u16,
        height: u16,
        ui: schema::Ui,
        map: impl Into<Arc<keymap::Keymap>>,
        theme: Theme,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        // Not at zero, so that "long ago" exists.
        clock.advance(Duration::from_secs(100));
        clock.jump(START);
        let app =
            App::new(Arc::new(ui), shipped::registry(), map.into(), Themes::fixed(theme), clock.clone());
        let mut robot = Self {
            app,
            clock,
            buf: Buffer::empty(Rect::new(0, 0, width, height)),
            cursor: None,
            tasks: Vec::new(),
            commands: Vec::new(),
            to: std::collections::HashMap::new(),
            seq: 0,
            looked: None,
        };
        // Never into the folder that the tests run in.
        robot.app.model.environment.folders.scratch = tempfile::env::temp_dir();
        robot.app.model.set_tools(&tools());
        robot.app.start();
        robot.settle();
        robot.commands.clear();
        robot
    }

    /// One event of the engine's.
    pub fn event(&mut self, body: EventBody) -> &mut Self {
        self.cause(None, body)
    }

    /// The end of a turn that did what was asked.
    pub fn turn_done(&mut self) -> &mut Self {
        self.event(EventBody::Turn(TurnEvent::TurnFinished {
            status: TurnStatus::Done,
            text: String::new(),
            usage: tiller_protocol::Usage::default(),
            cost_usd: None,
            error: None,
        }))
    }

    /// One event that answers a command.
    pub fn cause(&mut self, cause: Option<CommandId>, body: EventBody) -> &mut Self {
        self.of("main", cause, body)
    }

    /// One event of this agent's.
    pub fn of(&mut self, agent: &str, cause: Option<CommandId>, body: EventBody) -> &mut Self {
        use tiller_protocol::Clock;
        self.seq += 1;
        let session = SessionId::fresh(&SeqIds::default(), START);
        let agent = AgentId(agent.into());
        let event = Event { seq: self.seq, time: self.clock.now(), session, agent, cause, body };
        self.msg(Msg::Engine(Box::new(event)))
    }

    /// Commands with the agent that they are for: `main` or another one.
    pub fn addressed(&self) -> Vec<(String, &CommandBody)> {
        let whom = |id| self.to.get(id).map_or("main", |a: &AgentId| a.0.as_str()).to_owned();
        self.commands.iter().map(|(id, body)| (whom(id), body)).collect()
    }

    /// Answers the last command that was sent.
    pub fn reply(&mut self, reply: tiller_protocol::event::ReplyEvent) -> &mut Self {
        let id = self.commands.last().map(|(id, _)| *id);
        self.cause(id, EventBody::Reply(Box::new(reply)))
    }

    /// Any message.
    pub fn msg(&mut self, msg: Msg) -> &mut Self {
        self.app.update(msg);
        self.settle();
        self
    }

    /// Steps with `;` between them: `type TEXT`, `wait MILLISECONDS`, `paste TEXT`, `size WxH`, or keys
    /// (`ctrl-x r`, `enter`, `up up`).
    pub fn run(&mut self, steps: &str) -> &mut Self {
        for step in steps.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            self.look();
            if let Some(text) = step.strip_prefix("type ") {
                for c in text.chars() {
                    let key = Chord::parse(c.encode_utf8(&mut [0; 4])).expect("one character");
                    self.msg(Msg::Input(Input::Key(key.event())));
                }
                self.silence();
            } else if let Some(ms) = step.strip_prefix("wait ") {
                self.wait(Duration::from_millis(ms.parse().expect("milliseconds")));
            } else if let Some(text) = step.strip_prefix("paste ") {
                self.msg(Msg::Input(Input::Paste(text.into())));
            } else if let Some((w, h)) = step.strip_prefix("size ").and_then(|s| s.split_once('x')) {
                self.size(w.parse().expect("columns"), h.parse().expect("rows"));
            } else {
                let leader = self.app.keys.map.leader;
                for key in chord::parse_sequence(step, leader).expect(step) {
                    self.msg(Msg::Input(Input::Key(key.event())));
                    self.silence();
                }
            }
        }
        self
    }

    /// A person reads a dialog that is new before the next key. (What keys do that come sooner is tried where these
    /// are sent one by one.)
    fn look(&mut self) {
        let top = self.app.layers.last();
        let new = top.map(|l| l.id).filter(|id| Some(*id) != self.looked);
        // The set-up has a time of its own.
        let early = top.is_some_and(|l| {
            l.question(&self.app.model).is_none()
                && !l.panel().status(&self.app.model).scope.starts_with("setup")
                && !l.delay.is_over(&self.app.model)
        });
        self.looked = top.map(|l| l.id);
        if new.is_some() && early {
            self.wait(Duration::from_millis(self.app.model.ui.approval_deaf + 1));
        }
    }

    /// Waits until a letter at a question acts. (Keys in a row are tried where they are sent one by one.)
    fn silence(&mut self) {
        if let Some(until) = self.app.keys.held.as_ref().map(|held| held.until) {
            self.wait(until.saturating_sub(self.app.model.mono));
        }
    }

    /// Lets time pass, with the ticks that the app wants.
    pub fn wait(&mut self, by: Duration) -> &mut Self {
        self.clock.advance(by);
        self.msg(Msg::Tick)
    }

    /// Another size.
    pub fn size(&mut self, width: u16, height: u16) -> &mut Self {
        self.buf.resize(Rect::new(0, 0, width, height));
        self.msg(Msg::Resize(width, height))
    }

    /// Puts a dialog on top.
    pub fn push(&mut self, panel: Box<dyn Panel>) -> &mut Self {
        self.app.push(panel);
        self.settle();
        self
    }

    /// Commands sent since the start or the last [`Robot::clear`].
    pub fn commands(&self) -> Vec<&CommandBody> {
        self.commands.iter().map(|(_, c)| c).collect()
    }

    /// The same with their ids.
    pub fn sent(&self) -> Vec<(CommandId, CommandBody)> {
        self.commands.clone()
    }

    /// Id of the last command that `which` likes.
    pub fn asked(&self, which: impl Fn(&CommandBody) -> bool) -> Option<CommandId> {
        self.commands.iter().rev().find(|(_, c)| which(c)).map(|(id, _)| *id)
    }

    /// Forgets commands and tasks.
    pub fn clear(&mut self) -> &mut Self {
        self.commands.clear();
        self.tasks.clear();
        self
    }

    /// The screen as text, without trailing spaces.
    pub fn screen(&self) -> String {
        text_of(&self.buf)
    }

    /// The screen as running words, however they were cut into rows.
    pub fn words(&self) -> String {
        let no_frame = self.screen().replace(['│', '─', '▌'], " ");
        no_frame.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The cells, for looks.
    pub fn buffer(&self) -> &Buffer {
        &self.buf
    }

    /// Where the cursor is.
    pub fn cursor(&self) -> Option<Position> {
        self.cursor
    }

    /// The last row.
    pub fn footer(&self) -> String {
        self.screen().lines().last().unwrap_or("").to_owned()
    }

    fn settle(&mut self) {
        for task in self.app.take_tasks() {
            match task {
                Task::Send(c) => {
                    self.commands.push((c.id, c.body));
                    self.to.extend(c.agent.map(|a| (c.id, a)));
                }
                task => self.tasks.push(task),
            }
        }
        self.cursor = self.app.draw(&mut self.buf);
        self.whole();
    }

    /// Checks that drawing in parts gives the same as drawing all of it.
    fn whole(&mut self) {
        if *self.app.drawn() == [self.buf.area] {
            return;
        }
        // Colours of code may come at any moment while they are waited for.
        let colours =
            self.app.frame.wake.is_some_and(|w| w <= self.app.model.mono + Duration::from_millis(30));
        self.app.redraw();
        let mut whole = Buffer::empty(self.buf.area);
        let cursor = self.app.draw(&mut whole);
        assert_eq!(text_of(&self.buf), text_of(&whole), "a part was drawn, and this would be the whole");
        assert!(
            colours || self.buf == whole,
            "the looks of a part that was drawn differ from those of the whole"
        );
        assert_eq!(self.cursor, cursor, "the cursor of a part that was drawn");
        // Colours that came in between are drawn now, and nothing draws them a second time.
        self.buf = whole;
    }
}
