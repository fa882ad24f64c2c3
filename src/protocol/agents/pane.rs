//! The pane that shows a program in one of Tiller's terminals: input to the program (keys, size), and the rows of its
//! screen that changed. Keys are named here; the terminal encodes them as bytes, according to the program's modes.

use serde::{Deserialize, Serialize};

use crate::agents::grid::GridRun;

/// Input to an agent's terminal; [`crate::Command::agent`] names the agent. An agent without a terminal ignores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PaneCommand {
    /// The size of the pane; 0 by 0: no client shows it, and the terminal returns to its default size.
    Size { cols: u16, rows: u16 },
    /// The person entered the pane and may type, or left it.
    Enter { on: bool },
    /// Keys, pasted text, the mouse.
    Type { typed: Vec<TerminalInput> },
    /// The person has finished with it: once idle the program ends normally, and its last output is its result.
    Finish,
}

/// One input event of the person at a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TerminalInput {
    Key {
        key: PaneKey,
        #[serde(default, skip_serializing_if = "Mods::is_none")]
        mods: Mods,
    },
    Paste {
        text: String,
    },
    /// The person's own terminal window gained or lost the focus.
    Focus {
        on: bool,
    },
    /// Column and row from 0. Forwarded only as far as the program enabled mouse reports.
    Mouse {
        act: MouseAct,
        col: u16,
        row: u16,
        #[serde(default, skip_serializing_if = "Mods::is_none")]
        mods: Mods,
    },
}

/// A key by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaneKey {
    Char(char),
    F(u8),
    Enter,
    Tab,
    Backspace,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Insert,
    Delete,
    /// A key of the keypad, by its character; a line feed is its Enter key.
    Pad(char),
}

/// Modifier keys that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mods {
    pub shift: bool,
    pub alt: bool,
    pub ctrl: bool,
}

impl Mods {
    /// Whether none is held.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Mouse events; the left button where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MouseAct {
    Down,
    Up,
    Drag,
    Move,
    WheelUp,
    WheelDown,
}

/// The screen, or the rows that changed since a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenView {
    /// Revision of this state; a client passes it to ask for later changes. Never 0.
    pub rev: u64,
    pub cols: u16,
    /// Height in rows.
    pub height: u16,
    /// Changed rows by number; all rows when the request said 0 or the size changed.
    pub rows: Vec<(u16, Vec<GridRun>)>,
    /// Column and row from 0; `None`: hidden.
    pub cursor: Option<(u16, u16)>,
    /// The program enabled mouse reports.
    #[serde(default)]
    pub mouse: bool,
    /// The screen cannot change any more: the program ended, or has no terminal.
    #[serde(default)]
    pub ended: bool,
}

/// The activity of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Not known yet.
    #[default]
    #[serde(rename = "")]
    Unseen,
    Starting,
    Working,
    /// It waits for a person.
    Blocked,
    /// It waits for the next message.
    Idle,
    /// Never safe to type into.
    Unknown,
}

/// The evidence for an activity, in ascending reliability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivitySource {
    /// Not known yet.
    #[default]
    #[serde(rename = "")]
    Unseen,
    /// State of the process.
    Process,
    /// No output for a while.
    Silence,
    /// A rule on the rendered screen.
    Screen,
    /// Title, OSC 9, OSC 133.
    Escape,
    /// Its own report: ACP, JSON.
    Report,
}

/// Estimated state of a program in a terminal, for its row and border. Texts are printable characters only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PaneView {
    pub doing: Activity,
    /// The evidence for `doing`.
    pub source: ActivitySource,
    /// The title that the program set.
    pub title: String,
    /// Number of bell characters received.
    pub bells: u32,
    /// The person is in the pane.
    pub entered: bool,
    /// The person typed into it: it does not end by itself then.
    pub touched: bool,
}
