//! What a panel wants done outside of itself. Carried out by `app` (screen) or `run` (terminal, jobs).

use std::path::PathBuf;

use crossterm::event::KeyEvent;
use tiller_protocol::{AgentId, CommandBody, ModelRef, Notice};

use crate::keymap::action::Action;
use crate::panel::{Panel, View};

/// Work for another thread; its result is delivered to the panel that asked.
pub type Job = Box<dyn FnOnce() -> Box<dyn std::any::Any + Send> + Send>;

/// One wish.
pub enum Effect {
    /// To the engine.
    Send(CommandBody),
    /// To the engine, and the reply goes to the panel with this token (see [`crate::panel::PanelEvent::Answer`]).
    Ask(CommandBody, Token),
    /// The same two, to this agent, whichever is on the screen.
    SendTo(AgentId, CommandBody),
    AskOf(AgentId, CommandBody, Token),
    /// Show this agent's conversation, and write to it.
    Show(AgentId),
    /// The same, and do this when its conversation is here.
    ShowFor(AgentId, Action),
    /// Show the terminal that this agent's program runs in; that of the next one.
    ShowTerminal(AgentId),
    NextTerminal,
    /// Give the focused view the whole screen, or take it back.
    Zoom,
    /// Put a layer on top.
    Push(Box<dyn Panel>),
    /// Take the top layer away.
    Pop,
    /// Show and focus one of the seven views, or the composer.
    Focus(View),
    /// Do another action, as if its key had been pressed (palette, slash commands).
    Act(Action),
    /// Put text into the composer (`replace`: instead of what is there, which is kept in history).
    Compose {
        text: String,
        replace: bool,
    },
    /// To the clipboard, by the best honest route; the toast says which. `what` names it: `reply`.
    Copy {
        text: String,
        what: &'static str,
    },
    /// Leave the screen, run this, come back.
    Suspend(External),
    /// A line for the person, also kept in the error log.
    Toast(Notice),
    /// Slow work off the UI thread; its result comes back to this panel's [`crate::panel::PanelEvent::JobDone`].
    Job(Job, Token),
    /// Put the message into the panel of this view as if it had come from a layer above it: the result
    /// of a picker for instance. It arrives in [`crate::panel::PanelEvent::Message`].
    Tell(View, Box<dyn std::any::Any>),
    /// Show a theme by name: only for now (`keep: false`; `None` shows the kept one again), or for good.
    Theme {
        name: Option<String>,
        keep: bool,
    },
    /// Change a setting of the screen (`ui.ascii`) now, and keep it. The value is as in JSON.
    Setting {
        key: String,
        value: serde_json::Value,
    },
    /// Set up a provider; what comes of it arrives in [`crate::panel::PanelEvent::JobDone`] as a `Result<Connected, String>`.
    Connect(Connect, Token),
    /// Open a session, and do something at this entry of it.
    Visit {
        session: tiller_protocol::SessionId,
        entry: tiller_protocol::EntryId,
        then: Visit,
    },
    /// Begin later sessions with this model as well, once it is in use; `None`: with whichever comes next.
    KeepModel(Option<ModelRef>),
    /// This key, or this pasted text, was meant for the composer.
    Type(KeyEvent),
    Paste(String),
    /// This row of the palette was chosen: it comes first the next time.
    Used(String),
    /// Open a session, and go on there on a branch of its own.
    Branch(tiller_protocol::SessionId),
    /// Shows this question, also when it was put aside.
    Answer(tiller_protocol::AskId),
    /// Ask to be drawn again.
    Redraw,
    /// Read settings, keys and theme again.
    Reload,
    /// Draw everything anew, as after Ctrl-L.
    Repaint,
    /// Leave the screen, and let the work go on.
    Leave,
    Quit,
}

/// What is done at an entry of a session that was opened for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Show it.
    Show,
    /// Go on from there on a branch of its own.
    Branch,
    /// Ask what is to go back to it.
    Restore,
}

/// A provider that the person sets up.
#[derive(Clone, Debug)]
pub enum Connect {
    Key {
        provider: String,
        key: tiller_config::Secret,
    },
    /// The key that stands in this variable of the environment.
    Variable {
        variable: String,
    },
    /// A server that was found on this machine, by its provider's name. This is the person's yes to it.
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
    /// What was done, for the person.
    pub said: String,
    /// What can be chosen there; empty: a model is chosen already.
    pub models: Vec<ModelRef>,
}

/// Names who waits for a reply or a job. Each panel chooses its own numbers; the shell keeps those of
/// different panels apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// What runs while the screen is left.
#[derive(Clone, Debug)]
pub enum External {
    /// `$VISUAL`/`$EDITOR` on a file. Afterwards the panel that asked gets [`crate::panel::PanelEvent::Edited`].
    Editor { file: PathBuf, line: Option<u32> },
    /// Write text to the terminal's scrollback and wait for a key.
    Dump { text: String },
    /// Stop the process as Ctrl-Z does.
    Stop,
}
