//! Converts keys and mouse events to the form in which they are sent to the program.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventState, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Rect;
use tiller_protocol::{Mods, MouseAct, PaneKey, TerminalInput};

fn mods(m: KeyModifiers) -> Mods {
    Mods {
        shift: m.contains(KeyModifiers::SHIFT),
        alt: m.contains(KeyModifiers::ALT),
        ctrl: m.contains(KeyModifiers::CONTROL),
    }
}

/// A key; `None`: programs in terminals do not know this key.
pub(super) fn key(event: &KeyEvent) -> Option<TerminalInput> {
    let mut held = mods(event.modifiers);
    let pad = event.state.contains(KeyEventState::KEYPAD);
    let key = match event.code {
        KeyCode::Char(c) if pad => PaneKey::Pad(c),
        KeyCode::Enter if pad => PaneKey::Pad('\n'),
        KeyCode::Char(c) => PaneKey::Char(c),
        KeyCode::F(n) => PaneKey::F(n),
        KeyCode::Enter => PaneKey::Enter,
        KeyCode::Tab => PaneKey::Tab,
        KeyCode::BackTab => {
            held.shift = true;
            PaneKey::Tab
        }
        KeyCode::Backspace => PaneKey::Backspace,
        KeyCode::Esc => PaneKey::Escape,
        KeyCode::Up => PaneKey::Up,
        KeyCode::Down => PaneKey::Down,
        KeyCode::Left => PaneKey::Left,
        KeyCode::Right => PaneKey::Right,
        KeyCode::Home => PaneKey::Home,
        KeyCode::End => PaneKey::End,
        KeyCode::PageUp => PaneKey::PageUp,
        KeyCode::PageDown => PaneKey::PageDown,
        KeyCode::Insert => PaneKey::Insert,
        KeyCode::Delete => PaneKey::Delete,
        _ => return None,
    };
    Some(TerminalInput::Key { key, mods: held })
}

/// The mouse on the screen that is drawn in `area`; `None`: not on it.
pub(super) fn mouse(event: &MouseEvent, area: Rect) -> Option<TerminalInput> {
    let act = match event.kind {
        MouseEventKind::Down(MouseButton::Left) => MouseAct::Down,
        MouseEventKind::Up(MouseButton::Left) => MouseAct::Up,
        MouseEventKind::Drag(MouseButton::Left) => MouseAct::Drag,
        MouseEventKind::Moved => MouseAct::Move,
        MouseEventKind::ScrollUp => MouseAct::WheelUp,
        MouseEventKind::ScrollDown => MouseAct::WheelDown,
        _ => return None,
    };
    let col = event.column.checked_sub(area.x).filter(|c| *c < area.width)?;
    let row = event.row.checked_sub(area.y).filter(|r| *r < area.height)?;
    Some(TerminalInput::Mouse { act, col, row, mods: mods(event.modifiers) })
}
