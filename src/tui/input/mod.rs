//! Bytes of the terminal to keys, mouse, pastes and answers, without ever inventing a key: whatever is not
//! understood is swallowed, and a sequence split at any byte gives the same result.
//!
//! [`Decoder`] is pure. [`reader`] feeds it.

pub(crate) mod burst;
pub(crate) mod dropped;
pub mod escape;
pub(crate) mod keying;
pub(crate) mod mouse;
pub(crate) mod own_tmp;

mod csi;
mod cut;
mod keys;
mod paste;
pub(crate) mod reader;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent};

/// One input of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// Cleaned: no controls but line feeds and tabs.
    Paste(String),
    /// Keys came as fast as only a paste does: those that are not there yet will come as [`Input::Burst`].
    BurstBegins,
    /// A paste that the terminal did not mark, cleaned.
    Burst {
        /// Its begin, which has acted as keys.
        typed: String,
        /// The rest.
        text: String,
        /// A line end that came last, and is the only one: it may have been meant as a key.
        enter: Option<KeyEvent>,
    },
    FocusGained,
    FocusLost,
    /// Background colour, 0 to 255.
    Background(u8, u8, u8),
    Scheme {
        dark: bool,
    },
    Fact(TerminalFact),
}

/// Answers of the terminal to the queries that are sent at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalFact {
    /// Kitty keyboard flags in force (`CSI ? n u`).
    Keyboard(u16),
    /// Primary device attributes: every terminal answers this one, so it ends the wait for others.
    Attributes {
        /// It shows sixels.
        sixel: bool,
    },
    /// It shows pictures by Kitty's protocol.
    Pictures,
    /// The background that was set before the question (DECRQSS of SGR): `true` when it came back with all its
    /// colours, `false` when as one of a palette.
    DirectColour(bool),
    /// DECRQM: mode and state (0 unknown, 1 set, 2 reset, 3 and 4 permanently so).
    Mode(u16, u8),
}

/// The input that the decoder waits for; decides how long the reader waits before it calls [`Decoder::flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecoderWait {
    /// Nothing: block until bytes come.
    Nothing,
    /// A lone Escape: is it the key, or the beginning of something? Also the quiet after a paste.
    Escape,
    /// The rest of a sequence: it will come, unless the line broke.
    Rest,
}

/// Longest sequence that is looked at. Longer ones are swallowed.
const LONGEST: usize = 256;

/// The decoder.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes not yet understood.
    buf: Vec<u8>,
    paste: paste::Paste,
    /// Swallowing an answer (OSC, DCS, APC) that was too long to keep.
    skip: bool,
    /// The beginning of a reply that was given up.
    cut: Option<cut::Cut>,
    /// The reply that every terminal gives last has come: no other is outstanding.
    answered: bool,
}

/// The outcome of looking at the front of the buffer.
enum Parse {
    /// More bytes are needed.
    More,
    /// So many bytes are done, with a meaning or without.
    Done(usize, Option<Input>),
}

impl Decoder {
    /// Takes bytes as they come and adds what they mean to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            if self.paste.open() {
                let used = self.paste.feed(bytes, out);
                bytes = &bytes[used..];
                continue;
            }
            // One by one, so that the start of a paste hands the rest over without copying it twice.
            let (head, rest) = bytes.split_at(1);
            bytes = rest;
            if self.cut.is_some() {
                head.iter().for_each(|byte| self.join(*byte, out));
                continue;
            }
            self.buf.extend_from_slice(head);
            self.run(out);
        }
    }

    /// Takes a byte that may belong to a reply whose beginning was given up.
    fn join(&mut self, byte: u8, out: &mut Vec<Input>) {
        let Some(cut) = &mut self.cut else { return };
        let bytes = match cut.push(byte) {
            cut::Joined::Part => return,
            cut::Joined::Whole(bytes) | cut::Joined::Other(bytes) => bytes,
        };
        self.cut = None;
        for byte in bytes {
            self.buf.push(byte);
            self.run(out);
        }
    }

    /// Returns what is being waited for.
    pub fn waiting(&self) -> DecoderWait {
        if self.paste.open() {
            return DecoderWait::Rest;
        }
        if let Some(cut) = &self.cut {
            let key = cut.held_key(self.answered).is_some() && self.answered;
            return if key { DecoderWait::Escape } else { DecoderWait::Rest };
        }
        match self.buf.as_slice() {
            [] if self.paste.tail() => DecoderWait::Escape,
            [] if self.skip => DecoderWait::Rest,
            [] => DecoderWait::Nothing,
            [0x1b] => DecoderWait::Escape,
            _ => DecoderWait::Rest,
        }
    }

    /// No byte has come for as long as [`Decoder::waiting`] asked for: resolves what is left.
    pub fn flush(&mut self, out: &mut Vec<Input>) {
        if self.paste.open() {
            self.paste.stale(out);
            return;
        }
        if let Some(cut) = &mut self.cut {
            let key = cut.rest(self.answered);
            let meant = |byte| if byte == 0x1b { keys::control(byte) } else { keys::plain(byte) };
            out.extend(key.map(|byte| Input::Key(meant(byte))));
            self.cut.take_if(|cut| cut.is_over(!self.answered));
            return;
        }
        let left = std::mem::take(&mut self.buf);
        self.skip = false;
        self.cut = cut::Cut::of(&left);
        let alone = match left.as_slice() {
            [0x1b] => Some(keys::key(KeyCode::Esc, KeyModifiers::empty())),
            // Alt and a key that could also have begun a sequence.
            [0x1b, b @ (b'[' | b'O' | b']' | b'P' | b'_')] => {
                Some(keys::key(KeyCode::Char(char::from(*b)), KeyModifiers::ALT))
            }
            _ => None,
        };
        if let Some(key) = alone {
            self.paste.end_tail(out);
            out.push(Input::Key(key));
        }
        self.paste.end_tail(out);
    }

    fn run(&mut self, out: &mut Vec<Input>) {
        while !self.buf.is_empty() && !self.paste.open() {
            match self.front() {
                Parse::More => return,
                Parse::Done(n, meaning) => {
                    let start = self.buf.get(..n) == Some(b"\x1b[200~");
                    self.buf.drain(..n.min(self.buf.len()));
                    if start {
                        self.paste.start();
                        return;
                    }
                    match meaning {
                        // Text right behind the end of a paste still belongs to it: a paste that holds
                        // an end mark of its own must not type, let alone send.
                        Some(Input::Key(k)) if self.paste.tail() && paste::is_text(&k) => self.paste.add(&k),
                        Some(other) => {
                            self.paste.end_tail(out);
                            self.answered |= matches!(other, Input::Fact(TerminalFact::Attributes { .. }));
                            out.push(other);
                        }
                        None => {}
                    }
                }
            }
        }
    }

    fn front(&mut self) -> Parse {
        let b = self.buf.as_slice();
        if self.skip {
            return self.skip_string();
        }
        match b[0] {
            0x1b => self.escape(),
            0x20..=0x7e => Parse::Done(1, Some(Input::Key(keys::plain(b[0])))),
            0x80.. => keys::utf8(b),
            c => Parse::Done(1, Some(Input::Key(keys::control(c)))),
        }
    }

    fn escape(&mut self) -> Parse {
        let b = self.buf.as_slice();
        let Some(second) = b.get(1) else { return Parse::More };
        match second {
            b'[' => csi::parse(b, LONGEST),
            b'O' => csi::ss3(b),
            // Answers begin with these; anything else was Alt and the key.
            b']' => self.string(|c| c.is_ascii_digit()),
            b'P' => self.string(|c| c.is_ascii_digit() || b">$+!|=".contains(&c)),
            b'_' => self.string(|c| c == b'G'),
            0x1b => Parse::Done(1, Some(Input::Key(keys::key(KeyCode::Esc, KeyModifiers::empty())))),
            _ => match keys::after_escape(&b[1..]) {
                Parse::Done(n, meaning) => Parse::Done(n + 1, meaning),
                Parse::More => Parse::More,
            },
        }
    }

    /// OSC, DCS or APC up to BEL or ST.
    fn string(&mut self, begins: impl Fn(u8) -> bool) -> Parse {
        let b = self.buf.as_slice();
        let Some(third) = b.get(2) else { return Parse::More };
        if !begins(*third) {
            let alt = keys::key(KeyCode::Char(char::from(b[1])), KeyModifiers::ALT);
            return Parse::Done(2, Some(Input::Key(alt)));
        }
        match end_of_string(&b[2..]) {
            StringEnd::At(text, n) => {
                let meaning = match b[1] {
                    b']' => csi::osc(&b[2..2 + text]),
                    b'P' => csi::dcs(&b[2..2 + text]),
                    b'_' => csi::apc(&b[2..2 + text]),
                    _ => None,
                };
                Parse::Done(2 + n, meaning)
            }
            StringEnd::Broken(n) => Parse::Done(2 + n, None),
            StringEnd::Open if b.len() > LONGEST => {
                self.skip = true;
                // A last Escape may be the first half of the terminator.
                let keep = usize::from(b.last() == Some(&0x1b));
                Parse::Done(b.len() - keep, None)
            }
            StringEnd::Open => Parse::More,
        }
    }

    /// The rest of a string that was too long.
    fn skip_string(&mut self) -> Parse {
        match end_of_string(&self.buf) {
            StringEnd::At(_, n) | StringEnd::Broken(n) => {
                self.skip = false;
                Parse::Done(n, None)
            }
            StringEnd::Open if self.buf.last() == Some(&0x1b) => Parse::More,
            StringEnd::Open => Parse::Done(self.buf.len(), None),
        }
    }
}

/// Where a string ends.
enum StringEnd {
    /// Length of the text, and with its terminator.
    At(usize, usize),
    /// Something else begins here.
    Broken(usize),
    Open,
}

fn end_of_string(b: &[u8]) -> StringEnd {
    for (i, c) in b.iter().enumerate() {
        match c {
            0x07 => return StringEnd::At(i, i + 1),
            0x1b => match b.get(i + 1) {
                Some(b'\\') => return StringEnd::At(i, i + 2),
                Some(_) => return StringEnd::Broken(i),
                None => return StringEnd::Open,
            },
            // Cancel and substitute end any sequence.
            0x18 | 0x1a => return StringEnd::Broken(i + 1),
            _ => {}
        }
    }
    StringEnd::Open
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
