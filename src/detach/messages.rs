//! Messages between client and host, one JSON object on each line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Programs with different versions cannot communicate.
pub(super) const VERSION: u32 = 1;

/// Variables that describe a terminal and the connection to it. Each client sends its own, like tmux's
/// `update-environment`.
pub(super) const OF_TERMINAL: &[&str] = &[
    "TERM",
    "COLORTERM",
    "COLORFGBG",
    "NO_COLOR",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMUX",
    "STY",
    "SSH_CONNECTION",
    "SSH_TTY",
    "SSH_CLIENT",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "WINDOWID",
    "KRB5CCNAME",
    "DBUS_SESSION_BUS_ADDRESS",
    "KITTY_WINDOW_ID",
    "VTE_VERSION",
    "WT_SESSION",
    "ConEmuPID",
    "VISUAL",
    "EDITOR",
];

/// The first line that a client sends.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    #[serde(rename = "wish")]
    pub(super) request: Request,
}

/// The purpose of a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Request {
    /// To attach a terminal, whose two descriptors come with it. `take`: also when another terminal is attached.
    Attach { take: bool, place: String, env: BTreeMap<String, String> },
    /// To observe without typing; the terminal's two descriptors come with it.
    Watch { place: String },
    /// List what runs.
    About,
    /// Detach the attached terminal; the work continues.
    Detach,
    /// End the workbench.
    Stop,
}

/// From the client to the host.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum FromClient {
    Resized,
    /// The client runs again after a stop; `false`: it could not be stopped.
    Continued {
        stopped: bool,
    },
    Stop,
    Signal {
        n: i32,
    },
    /// The observer moves its view by these columns and rows.
    Look {
        columns: i32,
        rows: i32,
    },
    /// The observer's view follows the cursor.
    Follow,
    /// The program in the foreground has ended; `error`: it could not be started.
    Ran {
        code: Option<i32>,
        error: Option<String>,
    },
}

/// From the host to the client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum FromHost {
    Welcome,
    Refused {
        message: String,
        hints: Vec<String>,
    },
    /// Run this program in the foreground. Arguments as bytes, since paths need not be UTF-8.
    Run {
        words: Vec<Vec<u8>>,
    },
    /// Print this and wait for Enter.
    Show {
        text: String,
    },
    /// Stop, as by Ctrl-Z.
    Stop {
        all: bool,
    },
    /// Restore the terminal and exit, with this text; empty: without text.
    Leave {
        text: String,
    },
    /// The host ends now, with this exit code.
    Exit {
        code: u8,
    },
    About {
        about: Box<About>,
    },
    Done {
        text: String,
    },
}

/// The terminal that shows a workbench.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttachedTerminal {
    /// For instance `/dev/pts/3`, and the origin of the connection.
    pub(crate) place: String,
    /// RFC 3339.
    pub(crate) since: String,
}

/// One running workbench: a line of `tiller ps --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) pid: u32,
    pub(crate) project: String,
    pub(crate) session: String,
    pub(crate) title: String,
    /// What it does, in words for people.
    pub(crate) work: String,
    pub(crate) turn: bool,
    pub(crate) agents: usize,
    pub(crate) waiting: usize,
    pub(crate) processes: usize,
    pub(crate) goal: bool,
    /// Shell lines of the person's that run. Left out where there are none.
    #[serde(default, skip_serializing_if = "none")]
    pub(crate) lines: usize,
    /// Start time; RFC 3339.
    pub(crate) since: String,
    /// `null`: no terminal is attached.
    pub(crate) screen: Option<AttachedTerminal>,
    /// When the terminal was detached; RFC 3339.
    pub(crate) left: Option<String>,
    /// It does not answer: an editor is open in it, or it hangs.
    pub(crate) busy: bool,
}

impl About {
    /// Something runs in it, or waits for the person; also when that is not known, because it does not answer.
    pub(crate) fn at_work(&self) -> bool {
        self.busy || self.turn || self.goal || self.agents + self.waiting + self.processes + self.lines > 0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn none(lines: &usize) -> bool {
    *lines == 0
}
