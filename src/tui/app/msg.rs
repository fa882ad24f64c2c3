//! Everything that can wake the loop. One bounded channel carries them all.

use crossterm::event::{KeyEvent, MouseEvent};
use tiller_protocol::{Event, Notice};

use crate::app::effect::Token;
use crate::model::kinds::AgentKind;

/// One message to the loop.
pub enum Msg {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// Columns and rows.
    Resize(u16, u16),
    FocusGained,
    FocusLost,
    /// The terminal told its background colour (red, green, blue, 0 to 255).
    Background(u8, u8, u8),
    /// The terminal told whether its colours are dark (mode 2031).
    Scheme {
        dark: bool,
    },
    /// What the terminal said about itself, for the doctor and for choices at start.
    Terminal(TerminalFact),
    Engine(Box<Event>),
    /// From here on the engine's events are fetched from there; only the inbox sees it.
    Source(crate::app::inbox::Source),
    /// A line for the person from a thread of ours.
    Notice(Box<Notice>),
    /// Bytes for the terminal from a thread of ours.
    Out(String),
    /// A line of text in plain mode; `None`: there will be no more.
    Line(Option<String>),
    /// A job is done.
    Job(Token, Box<dyn std::any::Any + Send>),
    /// A timer that the loop set has fired.
    Tick,
    /// The writer has room again after the terminal had stalled.
    Written,
    /// The configuration, theme or key file changed on disk.
    Reload,
    /// The kinds of agents that there are by now.
    Kinds(Vec<AgentKind>),
    /// SIGTERM or SIGHUP, or the terminal is gone.
    Terminate(i32),
    /// SIGTSTP from outside: leave the screen, then stop.
    Stop,
    /// SIGCONT after a stop.
    Continued,
    /// The terminal cannot be read or written any more.
    Lost,
    /// From the process that owns the terminal, or asks for it.
    Seat(Box<crate::terminal::terminal_owner::SeatMsg>),
}

/// Answers of the terminal to our queries at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalFact {
    /// Kitty keyboard flags in force (`CSI ? n u`).
    Keyboard(u16),
    /// Primary device attributes: every terminal answers this one, so it ends the wait for others.
    Attributes,
    /// DECRQM: mode and state (0 unknown, 1 set, 2 reset, 3 and 4 permanently so).
    Mode(u16, u8),
}
