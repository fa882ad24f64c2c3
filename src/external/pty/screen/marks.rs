//! Activity that a program reports by escape sequences without output: OSC 9;4 (progress) and OSC 133 (prompt marks).

use tiller_protocol::Activity;

/// Finds marks in output.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// An incomplete sequence.
    open: Vec<u8>,
}

/// Maximum bytes of a sequence; a longer one is not one of these.
const LONGEST: usize = 64;

impl Marks {
    /// Reads output. The last mark counts; `Some(None)`: the claim was withdrawn.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Option<Option<Activity>> {
        let mut found = None;
        let mut i = 0;
        while i < bytes.len() {
            let b = bytes[i];
            i += 1;
            match self.open.as_slice() {
                [] => {
                    // Skips to the next escape: most output has none.
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

fn mark(body: &[u8]) -> Option<Option<Activity>> {
    match body {
        [b'9', b';', b'4', b';', b'0', ..] => Some(None),
        [b'9', b';', b'4', b';', b'1' | b'3', ..] | [b'1', b'3', b'3', b';', b'C', ..] => {
            Some(Some(Activity::Working))
        }
        [b'1', b'3', b'3', b';', b'A' | b'B' | b'D', ..] => Some(Some(Activity::Idle)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_though_they_come_in_pieces() {
        let mut marks = Marks::default();
        assert_eq!(marks.feed(b"text \x1b[31m \x1b]0;title\x07"), None);
        assert_eq!(marks.feed(b"x\x1b]9;"), None);
        assert_eq!(marks.feed(b"4;1;50\x07y"), Some(Some(Activity::Working)));
        assert_eq!(marks.feed(b"\x1b]133;C\x1b\\\x1b]133;D;0\x1b\\"), Some(Some(Activity::Idle)));
        assert_eq!(marks.feed(b"\x1b]9;4;0\x07"), Some(None));
        let long = [b"\x1b]133;".as_slice(), &[b'x'; 500], b"\x07"].concat();
        assert_eq!(marks.feed(&long), None);
        assert_eq!(marks.feed(b"\x1b]133;A\x07"), Some(Some(Activity::Idle)));
    }
}
