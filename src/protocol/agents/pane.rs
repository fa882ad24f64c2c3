//! The pane that shows a program in a terminal of ours: what travels to it (keys, size), and what comes back
//! (rows of its screen that changed). Keys are named here, and become bytes where the program's modes are known.

use serde::{Deserialize, Serialize};

use crate::agents::grid::GridRun;

/// What is done at an agent's terminal; [`crate::Command::agent`] says whose. One that has none ignores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PaneCommand {
    /// The pane has this size now; 0 by 0: nobody looks, it has its own size again.
    Size { cols: u16, rows: u16 },
    /// The person is in it and may type, or has left it.
    Enter { on: bool },
    /// Keys, pasted text, the mouse.
    Type { typed: Vec<Typed> },
    /// The person needs it no more: once it is idle it ends in good order, and what it said is its result.
    Finish,
}

/// One thing that a person does at a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Typed {
    Key {
        key: PaneKey,
        #[serde(default, skip_serializing_if = "Mods::is_none")]
        mods: Mods,
    },
    Paste {
        text: String,
    },
    /// The person's own window has the focus again, or lost it.
    Focus {
        on: bool,
    },
    /// Column and row from 0. Only what the program asked for reaches it.
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
    /// A key of the keypad, by its character; a line feed is its Enter.
    Pad(char),
}

/// Keys that are held.
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

/// What the mouse does; the left button where there is one.
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

/// The screen as it is now, or what of it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenView {
    /// Names this state: what changed since is asked for with it. Never 0.
    pub rev: u64,
    pub cols: u16,
    /// How many rows there are.
    pub height: u16,
    /// Rows by number that are others now; all of them when it was asked from 0 or the size is another.
    pub rows: Vec<(u16, Vec<GridRun>)>,
    /// Column and row from 0; `None`: hidden.
    pub cursor: Option<(u16, u16)>,
    /// It asked for the mouse.
    #[serde(default)]
    pub mouse: bool,
    /// Nothing will change any more: it has ended, or has no terminal.
    #[serde(default)]
    pub ended: bool,
}

/// What a program does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing has been seen of it yet.
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

/// The source of an activity, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivitySource {
    /// Nothing has been seen of it yet.
    #[default]
    #[serde(rename = "")]
    Unseen,
    /// What the process does.
    Process,
    /// Nothing was drawn for a while.
    Silence,
    /// A rule on the rendered screen.
    Screen,
    /// Title, OSC 9, OSC 133.
    Escape,
    /// Its own report: ACP, JSON.
    Report,
}

/// How a program in a terminal seems to stand, for its row and border. Texts are printable characters only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PaneView {
    pub doing: Activity,
    /// How that is known.
    pub source: ActivitySource,
    /// The title that it gave its terminal.
    pub title: String,
    /// How often it rang.
    pub bells: u32,
    /// A person is in it.
    pub entered: bool,
    /// A person typed into it: it does not end by itself then.
    pub touched: bool,
}
