//! The keys of an observer: they move its view, or end watching. None reaches the workbench.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};

use crate::input::{Decoder, DecoderWait, Input};

/// Columns and rows of one step.
const STEP: (i32, i32) = (8, 2);
/// More than any screen has.
const FAR: i32 = 4096;

/// How long the rest of a sequence is waited for: a lone Escape is a key.
const REST: Duration = Duration::from_millis(50);

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObserverAction {
    Leave,
    /// Another part of the screen: so many columns and rows further.
    Look(i32, i32),
    /// The part in which the cursor is.
    Follow,
}

/// Reads the keys.
#[derive(Default)]
pub struct ObserverKeys(Decoder);

impl ObserverKeys {
    /// Takes bytes as they come; none: nothing came for as long as [`ObserverKeys::rest`] said. `rows`: of this window.
    pub fn keys(&mut self, bytes: &[u8], rows: u16) -> Vec<ObserverAction> {
        let mut said = Vec::new();
        if bytes.is_empty() {
            self.0.flush(&mut said);
        } else {
            self.0.feed(bytes, &mut said);
        }
        said.iter().filter_map(|i| wants(i, rows)).collect()
    }

    /// How long to wait for more; `None`: for ever.
    pub fn rest(&self) -> Option<Duration> {
        (self.0.waiting() != DecoderWait::Nothing).then_some(REST)
    }
}

fn wants(input: &Input, window: u16) -> Option<ObserverAction> {
    let Input::Key(key) = input else { return None };
    let look = |columns, rows| Some(ObserverAction::Look(columns, rows));
    let page = i32::from(window).saturating_sub(3).max(1);
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(ObserverAction::Leave);
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(ObserverAction::Leave),
        KeyCode::Char('f') => Some(ObserverAction::Follow),
        KeyCode::Left | KeyCode::Char('h') => look(-STEP.0, 0),
        KeyCode::Right | KeyCode::Char('l') => look(STEP.0, 0),
        KeyCode::Up | KeyCode::Char('k') => look(0, -STEP.1),
        KeyCode::Down | KeyCode::Char('j') => look(0, STEP.1),
        KeyCode::PageUp => look(0, -page),
        KeyCode::PageDown => look(0, page),
        KeyCode::Home => look(-FAR, 0),
        KeyCode::End => look(FAR, 0),
        KeyCode::Char('g') => look(0, -FAR),
        KeyCode::Char('G') => look(0, FAR),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_pieces_is_one_and_a_lone_escape_leaves() {
        let look = ObserverAction::Look;
        let mut l = ObserverKeys::default();
        assert_eq!(l.keys(b"\x1b", 24), []);
        assert!(l.rest().is_some());
        assert_eq!(l.keys(b"[C", 24), [look(8, 0)]);
        assert!(l.rest().is_none());
        assert_eq!(l.keys(b"\x1bOAj\x1b[5~G", 24), [look(0, -2), look(0, 2), look(0, -21), look(0, FAR)]);
        assert_eq!(l.keys(b"f", 24), [ObserverAction::Follow]);
        assert_eq!(l.keys(b"\x1b", 24), []);
        assert_eq!(l.keys(b"", 24), [ObserverAction::Leave]);
        for leave in ["q", "\x03", "\x04"] {
            assert_eq!(l.keys(leave.as_bytes(), 24), [ObserverAction::Leave]);
        }
        // What is typed for the workbench goes nowhere; pasted text is no key.
        assert_eq!(l.keys(b"xyz\r\x1b[200~q\x1b[201~ ", 24), []);
    }
}
