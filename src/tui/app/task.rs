//! What the screen asks of the loop that runs it.

use crate::app::effect::{External, Job, Token};
use crate::app::state::Owner;

/// What the loop has to do outside of the screen.
pub enum Task {
    /// To the engine.
    Send(tiller_protocol::Command),
    Copy {
        text: String,
        what: &'static str,
    },
    Suspend(External, Owner),
    Job(Job, Token),
    /// Set up a provider off the loop's thread; the result comes back as a job's.
    Connect(crate::app::effect::Connect, Token),
    /// Tell the person by the terminal: the window has no focus.
    Notify(String),
    Title(String),
    /// Keep a setting in the person's file.
    Setting {
        key: String,
        value: serde_json::Value,
    },
    /// Draw everything anew.
    Repaint,
    /// Read the key file and the theme again.
    Reload,
    /// Leave the screen, and let the work go on.
    Leave,
    /// The main agent's turn ended like this.
    Ended(tiller_protocol::event::TurnStatus),
    Quit,
}
