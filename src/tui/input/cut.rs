//! Replies of the terminal whose rest comes late. A beginning that was given up (its Escape was a key, or its rest did not
//! come in time) is kept for a while: what follows and completes a reply that this program asks for is that reply, never
//! text that a person typed.

/// Longest reply that is put together again.
const LONGEST: usize = 200;

/// The beginning of a reply, and what has come of its rest.
#[derive(Debug)]
pub(super) struct Cut {
    bytes: Vec<u8>,
    /// So many of them were given up: they are not looked at a second time unless the reply becomes whole.
    given_up: usize,
    /// How often in a row nothing came.
    silent: u8,
}

/// What a byte makes of a cut reply.
pub(super) enum Joined {
    /// More bytes are needed.
    Part,
    /// The whole reply.
    Whole(Vec<u8>),
    /// It is no reply: these bytes, the last one among them, mean what they mean without it.
    Other(Vec<u8>),
}

impl Cut {
    /// Bytes that are given up; `None`: no reply begins with them.
    pub(super) fn of(left: &[u8]) -> Option<Self> {
        let begins = left.first() == Some(&0x1b) && look(left) == Look::Part;
        begins.then(|| Self { bytes: left.to_vec(), given_up: left.len(), silent: 0 })
    }

    /// Takes the next byte.
    pub(super) fn push(&mut self, byte: u8) -> Joined {
        self.bytes.push(byte);
        match look(&self.bytes) {
            Look::Part => Joined::Part,
            Look::Whole => Joined::Whole(std::mem::take(&mut self.bytes)),
            Look::Broken => {
                // The rest of the reply is nothing; another sequence begins with the Escape.
                let from = self.bytes.len().saturating_sub(2).max(self.given_up);
                Joined::Other(self.bytes.split_off(from))
            }
            Look::No => Joined::Other(self.bytes.split_off(self.given_up)),
        }
    }

    /// A single byte that may be a person's key: the second one of a reply, or an Escape within it.
    pub(super) fn held_key(&self) -> Option<u8> {
        let last = self.bytes.last().copied().filter(|_| self.bytes.len() == self.given_up + 1);
        last.filter(|byte| self.given_up == 1 || *byte == 0x1b)
    }

    /// Nothing came for a while. Gives a byte that was held as a person's key.
    pub(super) fn rest(&mut self) -> Option<u8> {
        let key = self.held_key();
        let held = self.bytes.len() > self.given_up;
        self.silent = if held { 0 } else { self.silent + 1 };
        self.given_up = self.bytes.len();
        key
    }

    /// Whether it is waited for no longer. `awaited`: replies are outstanding.
    pub(super) fn is_over(&self, awaited: bool) -> bool {
        self.silent >= if awaited { 5 } else { 1 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// The beginning of a reply.
    Part,
    Whole,
    /// Another sequence begins before the end of the reply: at the Escape that is the last byte but one.
    Broken,
    No,
}

/// Whether `b`, which begins with an Escape, is one of the replies that this program asks for.
fn look(b: &[u8]) -> Look {
    if b.len() > LONGEST {
        return Look::No;
    }
    let Some(kind) = b.get(1) else { return Look::Part };
    let body = &b[2..];
    match kind {
        b'[' => control(body),
        b']' => string(body, b"11;", |c| c.is_ascii_hexdigit() || b"rgba:/#".contains(&c)),
        b'P' => {
            // 0 and 1 say whether the question was understood.
            let known = matches!(body.first(), None | Some(b'0' | b'1'));
            let rest = body.get(1..).unwrap_or(&[]);
            if known { string(rest, b"$r", |c| (0x20..0x7f).contains(&c)) } else { Look::No }
        }
        b'_' => string(body, b"Gi=7417", |c| (0x20..0x7f).contains(&c)),
        _ => Look::No,
    }
}

/// Device attributes, modes, keyboard flags, the colour scheme; and the mouse, which reports without a key.
fn control(body: &[u8]) -> Look {
    let Some((first, rest)) = body.split_first() else { return Look::Part };
    let ends: &[u8] = match first {
        b'?' => b"cuyn",
        b'<' => b"Mm",
        _ => return Look::No,
    };
    let numbers = rest.iter().take_while(|c| c.is_ascii_digit() || b";:$".contains(c)).count();
    match rest.get(numbers) {
        None => Look::Part,
        Some(c) if ends.contains(c) && numbers > 0 && rest.len() == numbers + 1 => Look::Whole,
        Some(0x1b) if rest.len() == numbers + 1 => Look::Part,
        Some(0x1b) => Look::Broken,
        Some(_) => Look::No,
    }
}

/// A string that begins with `head`, and ends with BEL or ST.
fn string(body: &[u8], head: &[u8], of: impl Fn(u8) -> bool) -> Look {
    if body.len() < head.len() {
        return if head.starts_with(body) { Look::Part } else { Look::No };
    }
    let Some(text) = body.strip_prefix(head) else { return Look::No };
    let inside = text.iter().take_while(|c| of(**c)).count();
    match &text[inside..] {
        [] | [0x1b] => Look::Part,
        [0x07] | [0x1b, b'\\'] => Look::Whole,
        [0x1b, _] => Look::Broken,
        _ => Look::No,
    }
}
