//! Questions that a command asks before it changes or runs something.

use std::io::{IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tiller_protocol::Notice;

use crate::commands::Exit;

/// Bytes of an answer at most.
const ANSWER: usize = 200;

/// Asks for the word yes, unless the user agreed by an option. Esc and Ctrl-C mean no.
///
/// # Errors
/// `without`, where there is no terminal to ask on.
pub(in crate::commands) fn agreed(question: &str, yes: bool, without: Notice) -> Result<bool, Notice> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(without);
    }
    Ok(answer(&format!("{question} Type yes: ")).is_some_and(|line| line.trim() == "yes"))
}

/// Waits for Enter, Esc or Ctrl-C where the screen comes back and hides what was said.
pub(in crate::commands) fn before_screen(exit: Exit) -> Exit {
    let _ = answer("\n-- Press Enter to return to Tiller --");
    exit
}

/// The terminal with keys as they are pressed, until this value is dropped.
struct Keys {
    before: Termios,
}

impl Keys {
    fn new() -> Option<Self> {
        let before = tcgetattr(rustix::stdio::stdin()).ok()?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &keys).ok()?;
        Some(Self { before })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

/// The line that is typed after the question is shown; `None`: Esc or Ctrl-C was pressed, or there is no more input.
fn answer(question: &str) -> Option<String> {
    // First, so that the terminal echoes no key that is pressed as soon as the question is seen.
    let keys = Keys::new();
    let _ = std::io::stderr().write_all(question.as_bytes());
    let Some(_keys) = keys else {
        let mut line = String::new();
        return std::io::stdin().read_line(&mut line).ok().map(|_| line);
    };
    let mut line = Line::default();
    let mut bytes = [0; 64];
    let end = loop {
        let read = match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
            Ok(0) => break None,
            Ok(read) => read,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break None,
        };
        let (shown, end) = line.take(&bytes[..read]);
        let _ = std::io::stderr().write_all(shown.as_bytes());
        if let Some(end) = end {
            break end.then_some(line.text);
        }
    };
    let _ = std::io::stderr().write_all(b"\n");
    end
}

/// An answer that is being typed.
#[derive(Default)]
struct Line {
    text: String,
}

impl Line {
    /// Takes what one read brought. Returns what is to be shown, and whether the line was ended by Enter; `None`: it goes on.
    fn take(&mut self, bytes: &[u8]) -> (String, Option<bool>) {
        let mut shown = String::new();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'\r' | b'\n' => return (shown, Some(true)),
                // Ctrl-C, Ctrl-D and Ctrl-\.
                0x03 | 0x04 | 0x1c => return (shown, Some(false)),
                // A key that sends several bytes, such as an arrow, is not Esc.
                0x1b => match bytes.get(at) {
                    None => return (shown, Some(false)),
                    Some(b'[' | b'O') => {
                        let ends = |byte: &u8| (0x40..0x7f).contains(byte);
                        at = bytes[at + 1..].iter().position(ends).map_or(bytes.len(), |n| at + n + 2);
                    }
                    Some(_) => at += 1,
                },
                0x08 | 0x7f if !self.text.is_empty() => {
                    self.text.pop();
                    shown.push_str("\x08 \x08");
                }
                byte if (byte.is_ascii_graphic() || *byte == b' ') && self.text.len() < ANSWER => {
                    self.text.push(char::from(*byte));
                    shown.push(char::from(*byte));
                }
                _ => {}
            }
        }
        (shown, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn esc_and_ctrl_c_end_an_answer_and_other_keys_do_not() {
        let typed = |reads: &[&[u8]]| {
            let mut line = Line::default();
            let mut shown = String::new();
            for read in reads {
                let (more, end) = line.take(read);
                shown.push_str(&more);
                if end.is_some() {
                    return (line.text, shown, end);
                }
            }
            (line.text, shown, None)
        };
        assert_eq!(typed(&[b"y", b"es\r"]), ("yes".into(), "yes".into(), Some(true)));
        assert_eq!(typed(&[b"yes\x1b"]), ("yes".into(), "yes".into(), Some(false)));
        assert_eq!(typed(&[b"yes", b"\x03"]), ("yes".into(), "yes".into(), Some(false)));
        // Arrows and letters with Alt are nothing; a letter is taken back.
        assert_eq!(typed(&[b"\x1b[A\x1b[1;5Dy\x1bOP\x1bxes\n"]), ("yes".into(), "yes".into(), Some(true)));
        assert_eq!(
            typed(&[b"yet\x7fs\x7f\x7f\x7f\x7f"]),
            ("".into(), "yet\x08 \x08s\x08 \x08\x08 \x08\x08 \x08".into(), None)
        );
    }
}
