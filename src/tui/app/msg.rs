//! Everything that can wake the loop. One bounded channel carries them all.

use tiller_protocol::{Event, Notice};

use crate::app::effect::Token;
use crate::input::Input;
use crate::model::kinds::AgentKind;

/// One message to the loop.
pub enum Msg {
    /// From the terminal: keys, mouse, pastes, and what it reports about itself.
    Input(Input),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    Engine(Box<Event>),
    /// From now on the inbox fetches the engine's events from this source. The inbox keeps the message to itself.
    Source(crate::app::inbox::EventSource),
    /// A notice from another thread of this process.
    Notice(Box<Notice>),
    /// A line of text in plain mode; `None`: there will be no more.
    Line(Option<String>),
    /// The result of a job.
    Job(Token, Box<dyn std::any::Any + Send>),
    /// A timer that the loop set has fired.
    Tick,
    Output(OutputMsg),
    Config(ConfigMsg),
    Signal(SignalMsg),
    /// From the process that owns the terminal, or requests it.
    Owner(Box<crate::terminal::terminal_owner::OwnerMsg>),
}

/// About the bytes that go to the terminal.
pub enum OutputMsg {
    /// Bytes for the terminal from another thread of this process.
    Bytes(String),
    /// The writer accepts a frame again after the terminal had stalled.
    Ready,
    /// The terminal cannot be read or written any more.
    Lost,
    /// A picture was encoded on another thread.
    Picture(Box<crate::output::graphics::EncodedPicture>),
}

/// About files that the screen is configured by.
pub enum ConfigMsg {
    /// The configuration, theme or key file changed on disk.
    Changed,
    /// The kinds of agents that are defined now.
    Kinds(Vec<AgentKind>),
}

/// Signals of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalMsg {
    /// A signal that ends the program, by its number.
    Terminate(i32),
    /// SIGTSTP from outside: leave the screen, then stop.
    Stop,
    /// SIGCONT after a stop.
    Continued,
}
