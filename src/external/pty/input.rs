//! Commands of the engine and of the person: messages, keys, size, focus.

use std::time::Duration;

use tiller_protocol::{MouseAct, TerminalInput};
use tokio::time::Instant;

use super::driver::Driver;
use super::screen::encode;
use crate::control::Command;

/// How long the program stays after a person's last key, since they may come back.
pub(super) const HOLD: Duration = Duration::from_secs(10 * 60);

/// A person's input in the terminal.
#[derive(Debug, Default)]
pub(super) struct PersonInput {
    /// A person has the terminal open and may type.
    pub(super) attached: bool,
    /// A person typed, and has not finished with the program: it does not end by itself.
    pub(super) in_use: bool,
    /// The person allows the program to end when it is idle.
    pub(super) finish: bool,
    /// Time of the person's last key.
    pub(super) last_key: Option<Instant>,
}

impl Driver {
    /// Carries out a command.
    pub(super) fn carry_out(&mut self, command: Command) {
        match command {
            Command::Say { id, text } => {
                self.delivery.last_message = Instant::now();
                self.delivery.queue.push((Some(id), text));
            }
            Command::Unsay(id) => self.delivery.queue.retain(|(waits, _)| *waits != Some(id)),
            Command::Keys(bytes) => {
                self.note_key();
                self.press(bytes);
            }
            Command::Typed(typed) => self.typed(&typed),
            Command::Resize(cols, rows) => {
                let (cols, rows) = if cols == 0 || rows == 0 { self.run.job.size } else { (cols, rows) };
                let (cols, rows) = (cols.clamp(20, 1000), rows.clamp(5, 500));
                let now = self.pane.screen.lock().size();
                if now != (cols, rows) {
                    (self.view.sized, self.view.resized) = (true, Some(Instant::now()));
                    self.pane.screen.lock().resize(cols, rows);
                    self.pane.resizer.resize(cols, rows);
                    // The text wraps differently, though nothing was drawn.
                    self.view.scanned = None;
                }
            }
            Command::Attach(on) => {
                self.person.attached = on;
                self.enter(on);
                // Triggers a scan, since the end of the run may depend on it.
                self.view.changed = Instant::now();
            }
            Command::Finish => {
                (self.person.in_use, self.person.attached, self.person.finish) = (false, false, true);
                self.view.changed = Instant::now();
            }
        }
    }

    /// Types a person's input, encoded for the modes that the program requested.
    fn typed(&mut self, typed: &[TerminalInput]) {
        let modes = self.pane.screen.lock().modes();
        let bytes: Vec<u8> = typed.iter().flat_map(|t| encode::encode(t, modes)).collect();
        if bytes.is_empty() {
            return;
        }
        let keys = |t: &TerminalInput| {
            !matches!(t, TerminalInput::Mouse { act: MouseAct::Move, .. } | TerminalInput::Focus { .. })
        };
        if typed.iter().any(keys) {
            (self.person.last_key, self.person.in_use, self.person.finish) =
                (Some(Instant::now()), true, false);
        }
        self.view.stability.touched(Instant::now());
        self.press(bytes);
    }

    /// Records a key of a person.
    fn note_key(&mut self) {
        let now = Instant::now();
        self.person.last_key = Some(now);
        self.view.stability.touched(now);
    }

    /// Reports to the program that a person entered or left. Some accept no input after a time without a person until
    /// their size changes.
    fn enter(&mut self, on: bool) {
        let modes = self.pane.screen.lock().modes();
        if on && !self.view.sized {
            self.view.sized = true;
            let (cols, rows) = self.pane.screen.lock().size();
            self.pane.resizer.resize(cols, rows - 1);
            self.pane.resizer.resize(cols, rows);
        }
        let bytes = encode::focus(on, modes);
        if !bytes.is_empty() {
            self.press(bytes);
        }
    }

    /// Types into the program; refused input is reported at the next iteration.
    pub(super) fn press(&mut self, bytes: Vec<u8>) {
        self.delivery.keys_lost |= !self.pane.keys.press(&bytes);
    }
}
