//! Bracketed paste: everything up to the end mark is text, whatever it looks like. What follows the end
//! mark without a pause is still the paste: its own text may have held an end mark.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Input;

const END: &[u8] = b"\x1b[201~";

/// Bytes of one paste that are kept.
const MOST: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct Paste {
    open: bool,
    /// The end mark never came: Ctrl-C or Escape leave.
    stale: bool,
    text: Vec<u8>,
    /// Text after the end mark, while no pause has come.
    tail: Option<String>,
}

impl Paste {
    pub(super) fn open(&self) -> bool {
        self.open
    }

    pub(super) fn tail(&self) -> bool {
        self.tail.is_some()
    }

    pub(super) fn start(&mut self) {
        self.open = true;
        self.stale = false;
    }

    /// Takes bytes; returns how many it used.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Input>) -> usize {
        if self.stale && matches!(bytes[0], 0x03 | 0x1b) && !END.starts_with(bytes) {
            self.open = false;
            self.text.clear();
            return 1;
        }
        // The mark may have begun in what came before.
        let before = self.text.len();
        let from = before.saturating_sub(END.len() - 1);
        let take = bytes.len();
        self.text.extend_from_slice(bytes);
        let Some(at) = find_end(&self.text[from..]).map(|i| i + from) else {
            self.text.truncate(MOST);
            return take;
        };
        let used = at + END.len() - before;
        self.text.truncate(at);
        self.open = false;
        let text = clean(&std::mem::take(&mut self.text));
        match &mut self.tail {
            // A second end mark: the whole was one paste with a mark in it.
            Some(tail) => tail.push_str(&text),
            None => out.push(Input::Paste(text)),
        }
        self.tail.get_or_insert_default();
        used
    }

    /// Nothing has come for long: gives out what there is, and lets Ctrl-C or Escape leave.
    pub(super) fn stale(&mut self, out: &mut Vec<Input>) {
        if !self.text.is_empty() {
            out.push(Input::Paste(clean(&std::mem::take(&mut self.text))));
        }
        self.stale = true;
    }

    pub(super) fn add(&mut self, key: &KeyEvent) {
        let tail = self.tail.get_or_insert_default();
        match key.code {
            KeyCode::Enter => tail.push('\n'),
            KeyCode::Tab => tail.push('\t'),
            KeyCode::Char('j') if key.modifiers.contains(KeyModifiers::CONTROL) => tail.push('\n'),
            KeyCode::Char(c) => tail.push(c),
            _ => {}
        }
    }

    /// A pause, or something that is no text: the paste is over.
    pub(super) fn end_tail(&mut self, out: &mut Vec<Input>) {
        if let Some(text) = self.tail.take().filter(|t| !t.is_empty()) {
            out.push(Input::Paste(text));
        }
    }
}

fn find_end(b: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(i) = b[at..].iter().position(|c| *c == 0x1b) {
        at += i;
        if b[at..].starts_with(END) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Keys that stand for text or a line break.
pub(super) fn is_text(key: &KeyEvent) -> bool {
    match key.code {
        KeyCode::Char(c) => key.modifiers.is_empty() || (c == 'j' && key.modifiers == KeyModifiers::CONTROL),
        KeyCode::Enter | KeyCode::Tab => key.modifiers.is_empty(),
        _ => false,
    }
}

/// Pasted bytes as text: line ends become `\n`, controls go, bad UTF-8 becomes a mark.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                out.push('\n');
            }
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
