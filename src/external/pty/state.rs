//! What the agent seems to be doing: sources in ranks, never mixed.

use std::collections::BTreeMap;

use crate::said::{Doing, Guess, Source};

/// What each source claims now.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<Source, Doing>);

impl Claims {
    /// `source` claims `what`, or nothing any more.
    pub(crate) fn set(&mut self, source: Source, what: Option<Doing>) {
        match what {
            Some(what) => _ = self.0.insert(source, what),
            None => _ = self.0.remove(&source),
        }
    }

    /// What `source` claims.
    pub(crate) fn of(&self, source: Source) -> Option<Doing> {
        self.0.get(&source).copied()
    }

    /// The claim of the highest source; but a prompt that is seen to block counts more than any claim, which must be
    /// stale then. Without a claim: unknown.
    pub(crate) fn best(&self) -> Guess {
        if self.0.get(&Source::Screen) == Some(&Doing::Blocked) {
            return Guess { what: Doing::Blocked, source: Source::Screen };
        }
        let best = self.0.iter().next_back();
        best.map_or(Guess { what: Doing::Unknown, source: Source::Process }, |(source, what)| Guess {
            what: *what,
            source: *source,
        })
    }
}

/// Finds what a program tells of itself by escape sequences that have no picture: OSC 9;4 (progress) and OSC 133
/// (prompt marks).
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// A sequence that is not complete.
    open: Vec<u8>,
}

/// Bytes of a sequence; a longer one is none of these.
const LONGEST: usize = 64;

impl Marks {
    /// Reads output. The last mark counts: `Some(None)`, it claims nothing any more.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Option<Option<Doing>> {
        let mut found = None;
        let mut i = 0;
        while i < bytes.len() {
            let b = bytes[i];
            i += 1;
            match self.open.as_slice() {
                [] => {
                    // Straight to the next escape: most output has none.
                    match bytes[i - 1..].iter().position(|b| *b == 0x1b) {
                        Some(at) => {
                            i += at;
                            self.open.push(0x1b);
                        }
                        None => break,
                    }
                }
                [0x1b] if b != b']' => {
                    self.open.clear();
                    if b == 0x1b {
                        self.open.push(b);
                    }
                }
                _ if b == 0x07 || b == 0x1b || b == 0x9c => {
                    found = mark(&self.open[2..]).or(found);
                    self.open.clear();
                }
                _ if self.open.len() >= LONGEST => self.open.clear(),
                _ => self.open.push(b),
            }
        }
        found
    }
}

fn mark(body: &[u8]) -> Option<Option<Doing>> {
    match body {
        [b'9', b';', b'4', b';', b'0', ..] => Some(None),
        [b'9', b';', b'4', b';', b'1' | b'3', ..] | [b'1', b'3', b'3', b';', b'C', ..] => {
            Some(Some(Doing::Working))
        }
        [b'1', b'3', b'3', b';', b'A' | b'B' | b'D', ..] => Some(Some(Doing::Idle)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_source_never_overwrites_a_higher_one_but_for_a_visible_prompt() {
        let mut claims = Claims::default();
        assert_eq!(claims.best().what, Doing::Unknown);
        claims.set(Source::Escape, Some(Doing::Working));
        claims.set(Source::Screen, Some(Doing::Idle));
        claims.set(Source::Silence, Some(Doing::Idle));
        assert_eq!(claims.best(), Guess { what: Doing::Working, source: Source::Escape });
        claims.set(Source::Screen, Some(Doing::Blocked));
        assert_eq!(claims.best(), Guess { what: Doing::Blocked, source: Source::Screen });
        claims.set(Source::Screen, None);
        assert_eq!(claims.best().what, Doing::Working);
        claims.set(Source::Escape, None);
        assert_eq!(claims.best(), Guess { what: Doing::Idle, source: Source::Silence });
    }

    #[test]
    fn marks_are_found_though_they_come_in_pieces() {
        let mut marks = Marks::default();
        assert_eq!(marks.feed(b"text \x1b[31m \x1b]0;title\x07"), None);
        assert_eq!(marks.feed(b"x\x1b]9;"), None);
        assert_eq!(marks.feed(b"4;1;50\x07y"), Some(Some(Doing::Working)));
        assert_eq!(marks.feed(b"\x1b]133;C\x1b\\\x1b]133;D;0\x1b\\"), Some(Some(Doing::Idle)));
        assert_eq!(marks.feed(b"\x1b]9;4;0\x07"), Some(None));
        let long = [b"\x1b]133;".as_slice(), &[b'x'; 500], b"\x07"].concat();
        assert_eq!(marks.feed(&long), None);
        assert_eq!(marks.feed(b"\x1b]133;A\x07"), Some(Some(Doing::Idle)));
    }
}
