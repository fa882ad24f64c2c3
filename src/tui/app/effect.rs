//! The effects that a panel asks for outside of itself. The app does what concerns the screen; the rest becomes a [`Task`] of the
//! loop, which holds the terminal, threads and settings.

use std::any::Any;
use std::path::PathBuf;

use crossterm::event::KeyEvent;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AskId, Command, CommandBody, EntryId, ModelRef, Notice, SessionId};

use crate::keymap::action::Action;
use crate::panel::{Panel, View};

/// Work for another thread; its result is delivered to the panel that asked.
pub type Job = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// An effect that a panel asks for.
pub enum Effect {
    /// A command to the engine; see [`Effect::send`].
    Command(Request),
    /// Put a layer on top.
    Push(Box<dyn Panel>),
    /// Close the dialog that requests it; from a view: the top dialog.
    Pop,
    /// Show and focus a view, or the composer.
    Focus(View),
    /// Show another agent, session, terminal or question.
    Navigate(Navigation),
    /// Do another action, as if its key had been pressed (palette, slash commands).
    Act(Action),
    /// Put text into the composer.
    Compose(ComposerInput),
    /// A message to the panel of a view: the result of a picker, for instance.
    Tell(View, Box<dyn Any>),
    /// A short message on the screen; errors are also kept in the error log.
    Toast(Notice),
    Settings(SettingsChange),
    /// For the loop.
    Task(Task),
}

impl Effect {
    /// A command to the engine. What concerns one agent goes to the shown one.
    pub fn send(body: CommandBody) -> Self {
        Self::Command(Request { to: None, body, token: None })
    }

    /// A command to the engine; its answer is delivered to the panel with this token.
    pub fn ask(body: CommandBody, token: Token) -> Self {
        Self::Command(Request { to: None, body, token: Some(token) })
    }

    /// A command to this agent, whichever is shown.
    pub fn send_to(agent: AgentId, body: CommandBody) -> Self {
        Self::Command(Request { to: Some(agent), body, token: None })
    }

    /// A command to this agent, whichever is shown; its answer is delivered to the panel with this token.
    pub fn ask_of(agent: AgentId, body: CommandBody, token: Token) -> Self {
        Self::Command(Request { to: Some(agent), body, token: Some(token) })
    }
}

/// A command and where its answer goes.
pub struct Request {
    /// `None`: the shown agent, or the main one for commands that concern no single agent.
    pub to: Option<AgentId>,
    pub body: CommandBody,
    /// The panel wants the answer.
    pub token: Option<Token>,
}

/// The place to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Navigation {
    /// This agent's conversation, with its composer.
    Agent(AgentId),
    /// This agent's conversation; the action is done when the conversation is here.
    AgentFor(AgentId, Action),
    /// The terminal that this agent's program runs in.
    Terminal(AgentId),
    /// The terminal of the next agent that has one.
    NextTerminal,
    /// Toggle the focused view between the whole screen and its part of the layout.
    FullScreen,
    /// This question, even if it was put aside.
    Question(AskId),
    /// An entry of a session, which is opened for it.
    Entry { session: SessionId, entry: EntryId, then: EntryAction },
    /// A new branch from the end of a session, which is opened for it.
    Branch(SessionId),
}

/// The action at an entry of a session that was opened for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// Show it.
    Show,
    /// Branch from there.
    Branch,
    /// Ask what to restore to it.
    Restore,
}

/// Input for the composer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComposerInput {
    /// Text at the caret; `replace`: instead of the draft, which is kept in the history.
    Text { text: String, replace: bool },
    /// A key that was typed elsewhere.
    Key(KeyEvent),
    /// Text that was pasted elsewhere.
    Paste(String),
}

/// A change of a setting, or of a choice that is remembered.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingsChange {
    /// Show a theme by name: only for now (`keep: false`; `None` shows the kept one again), or for good.
    Theme { name: Option<String>, keep: bool },
    /// Change a setting of the screen (`ui.ascii`) now, and keep it. The value is as in JSON.
    Set { key: String, value: serde_json::Value },
    /// Start later sessions with this model too, once it is in use; `None`: with the next model in use.
    KeepModel(Option<ModelRef>),
    /// This row of the palette was chosen: it comes first the next time.
    PaletteRow(String),
}

/// How a setting is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingEdit {
    /// It gets this value, as in JSON.
    Value(serde_json::Value),
    /// Its list has this text from now on, or has it no longer. The other texts stay.
    Member { name: String, present: bool },
}

/// The work of the loop outside of the screen.
pub enum Task {
    /// To the engine. Made by the app only: panels use [`Effect::send`].
    Send(Command),
    /// To the clipboard; a toast says by which route. `what` names the text: `reply`.
    Copy {
        text: String,
        what: &'static str,
    },
    /// Leave the screen, run this, come back.
    Suspend(External),
    /// Slow work on another thread; the panel that asked gets the result.
    Job(Job, Token),
    /// Set up a provider on another thread; the panel that asked gets a `Result<Connected, String>`.
    Connect(Connect, Token),
    /// Keep a setting in the person's file.
    SaveSetting {
        key: String,
        value: SettingEdit,
    },
    Window(WindowTask),
    /// Send every cell to the terminal again, as after Ctrl-L.
    Repaint,
    /// Read settings, keys and theme again.
    Reload,
    /// The main agent's turn ended like this.
    Ended(TurnStatus),
    /// Leave the screen while the work goes on.
    Leave,
    Quit,
}

/// A sign of the terminal's window besides the screen.
pub enum WindowTask {
    Title(String),
    /// A desktop notification, because the window has no focus.
    Notify(String),
}

/// A provider that the person sets up.
#[derive(Clone, Debug)]
pub enum Connect {
    Key {
        provider: String,
        key: tiller_config::Secret,
    },
    /// The key in this variable of the environment.
    Variable {
        variable: String,
    },
    /// A server that was found on this machine, by its provider's name; the person has agreed to use it.
    Local {
        provider: String,
    },
    /// A server by its base URL.
    Server {
        url: String,
    },
}

/// A provider that is ready now.
#[derive(Clone, Debug, PartialEq)]
pub struct Connected {
    /// The outcome of the set-up, as a sentence for the person.
    pub said: String,
    /// The models to choose from; empty: a model is chosen already.
    pub models: Vec<ModelRef>,
}

/// Identifies an outstanding answer to the panel that requested it. Each panel chooses its own numbers; the app keeps
/// the numbers of different panels apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// A program that runs while the screen is left.
#[derive(Clone, Debug)]
pub enum External {
    /// `$VISUAL`/`$EDITOR` on a file. The panel that asked gets the result.
    Editor { file: PathBuf, line: Option<u32> },
    /// `tiller skills try` for a skill or the folder of one. The panel that asked gets the result.
    Trial { skill: String },
    /// `tiller skills trust` for a pack, or `tiller trust` for the folder. The panel that asked gets the result.
    Trust { pack: Option<String> },
    /// Write text to the terminal's scrollback and wait for a key.
    Dump { text: String },
    /// Stop the process as Ctrl-Z does.
    Stop,
}
