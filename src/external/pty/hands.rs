//! What the engine and the person do to a program in a terminal: messages, keys, size, coming and going.

use std::time::Duration;

use tiller_protocol::{MouseAct, Typed};
use tokio::time::Instant;

use super::driver::Driver;
use super::encode;
use crate::control::Order;

/// A person who typed into it may come back: it stays for so long after their last key.
pub(super) const HOLD: Duration = Duration::from_secs(10 * 60);

impl Driver {
    pub(super) fn order(&mut self, order: Order) {
        match order {
            Order::Say { id, text } => {
                self.came = Instant::now();
                self.queue.push((Some(id), text));
            }
            Order::Unsay(id) => self.queue.retain(|(waits, _)| *waits != Some(id)),
            Order::Keys(bytes) => {
                self.hand();
                self.press(bytes);
            }
            Order::Typed(typed) => self.typed(&typed),
            Order::Resize(cols, rows) => {
                let (cols, rows) = if cols == 0 || rows == 0 { self.run.job.size } else { (cols, rows) };
                let (cols, rows) = (cols.clamp(20, 1000), rows.clamp(5, 500));
                let now = self.pane.screen.lock().size();
                if now != (cols, rows) {
                    (self.sized, self.resized) = (true, Some(Instant::now()));
                    self.pane.screen.lock().resize(cols, rows);
                    self.pane.resizer.resize(cols, rows);
                    // It is another picture, though nothing was drawn.
                    self.scanned = None;
                }
            }
            Order::Attach(on) => {
                self.attached = on;
                self.enter(on);
                // A look follows: it may be what its end waited for.
                self.changed = Instant::now();
            }
            Order::Finish => {
                (self.held, self.attached, self.finish) = (false, false, true);
                self.changed = Instant::now();
            }
        }
    }

    /// A person's hands.
    fn typed(&mut self, typed: &[Typed]) {
        let modes = self.pane.screen.lock().modes();
        let bytes: Vec<u8> = typed.iter().flat_map(|t| encode::encode(t, modes)).collect();
        if bytes.is_empty() {
            return;
        }
        let hands = |t: &Typed| !matches!(t, Typed::Mouse { act: MouseAct::Move, .. } | Typed::Focus { .. });
        if typed.iter().any(hands) {
            (self.touched, self.held, self.finish) = (Some(Instant::now()), true, false);
        }
        self.still.touched(Instant::now());
        self.press(bytes);
    }

    /// A person pressed a key.
    fn hand(&mut self) {
        let now = Instant::now();
        self.touched = Some(now);
        self.still.touched(now);
    }

    /// Tells it that a person came or went. Some take no input after a time without one until their size changes.
    fn enter(&mut self, on: bool) {
        let modes = self.pane.screen.lock().modes();
        if on && !self.sized {
            self.sized = true;
            let (cols, rows) = self.pane.screen.lock().size();
            self.pane.resizer.resize(cols, rows - 1);
            self.pane.resizer.resize(cols, rows);
        }
        let bytes = encode::focus(on, modes);
        if !bytes.is_empty() {
            self.press(bytes);
        }
    }

    /// Types into the program; input that its buffer cannot take is reported at the next look.
    pub(super) fn press(&mut self, bytes: Vec<u8>) {
        self.unread |= !self.pane.keys.press(&bytes);
    }
}
