//! xterm's modifyOtherKeys, which the emulator does not track: how keys with modifiers are encoded.

/// Maximum bytes of a sequence; a longer one is not one of these.
const LONGEST: usize = 32;

/// Reads the level from the output.
#[derive(Debug, Default)]
pub(super) struct OtherKeys {
    /// An incomplete control sequence.
    open: Vec<u8>,
    /// 0, 1 or 2.
    pub level: u8,
}

impl OtherKeys {
    /// Reads output; queries are answered into `answers`.
    pub(super) fn feed(&mut self, bytes: &[u8], answers: &mut Vec<u8>) {
        let mut rest = bytes;
        loop {
            if self.open.is_empty() {
                // Skips to the next escape: most output has none.
                let Some(at) = rest.iter().position(|b| *b == 0x1b) else { return };
                self.open.push(0x1b);
                rest = rest.get(at + 1..).unwrap_or_default();
            }
            let Some((b, after)) = rest.split_first() else { return };
            rest = after;
            match (self.open.as_slice(), b) {
                (_, 0x1b) => self.open.truncate(1),
                ([_], b'[') => self.open.push(*b),
                // Full reset.
                ([_], b'c') => *self = Self::default(),
                ([_], _) => self.open.clear(),
                (_, 0x20..=0x3f) if self.open.len() < LONGEST => self.open.push(*b),
                _ => {
                    self.done(*b, answers);
                    self.open.clear();
                }
            }
        }
    }

    fn done(&mut self, last: u8, answers: &mut Vec<u8>) {
        let params = self.open.get(2..).unwrap_or_default();
        let words = |from: usize| params.get(from..).unwrap_or_default().split(|b| *b == b';');
        let value = |n: Option<&[u8]>| match n {
            Some([d @ b'0'..=b'2']) => d - b'0',
            Some(_) | None => 0,
        };
        match (params.first(), last) {
            (Some(b'>'), b'm') => match words(1).next() {
                Some(b"4") => self.level = value(words(1).nth(1)),
                // Resets the whole group.
                Some(b"") => self.level = 0,
                _ => {}
            },
            (Some(b'>'), b'n') if words(1).next() == Some(b"4") => self.level = 0,
            (Some(b'?'), b'm') if params == b"?4" => {
                answers.extend_from_slice(format!("\x1b[>4;{}m", self.level).as_bytes());
            }
            // Soft reset.
            (Some(b'!'), b'p') => self.level = 0,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modify_other_keys_is_set_asked_and_taken_back_however_it_is_cut() {
        for (output, level, answer) in [
            ("\x1b[>4;2m", 2, ""),
            ("\x1b[>4;1m\x1b[?4m", 1, "\x1b[>4;1m"),
            ("\x1b[?4m", 0, "\x1b[>4;0m"),
            ("\x1b[>4;2mtext\x1b[>4m", 0, ""),
            ("\x1b[>4;2m\x1b[>4n", 0, ""),
            ("\x1b[>4;2m\x1b[>m", 0, ""),
            ("\x1b[>4;2m\x1b[!p", 0, ""),
            ("\x1b[>4;2m\x1bc", 0, ""),
            ("\x1b[>4;2m\x1b[4m\x1b[0m\x1b[>1;0m", 2, ""),
            ("\x1b\x1b[>4;2m", 2, ""),
            ("\x1b]0;\x1b[>4;2m", 2, ""),
            ("\x1b[>4;9m", 0, ""),
        ] {
            for size in [1, 2, 3, 64] {
                let (mut keys, mut answers) = (OtherKeys::default(), Vec::new());
                output.as_bytes().chunks(size).for_each(|piece| keys.feed(piece, &mut answers));
                assert_eq!((keys.level, &*String::from_utf8_lossy(&answers)), (level, answer), "{output:?}");
            }
        }
        let (mut keys, mut answers) = (OtherKeys::default(), Vec::new());
        keys.feed(&[b"\x1b[".as_slice(), &[b'1'; 10_000]].concat(), &mut answers);
        assert!(keys.open.len() <= LONGEST, "a sequence without end is not kept");
    }
}
