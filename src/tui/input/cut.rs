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
    /// A byte that was held was given back as a key: a person may be typing.
    typed: bool,
}

/// Result of a byte for a cut reply.
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
        let begins = left.first() == Some(&0x1b) && look(left, false) == Look::Part;
        begins.then(|| Self { bytes: left.to_vec(), given_up: left.len(), silent: 0, typed: false })
    }

    /// Takes the next byte.
    pub(super) fn push(&mut self, byte: u8) -> Joined {
        self.bytes.push(byte);
        match look(&self.bytes, self.typed) {
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

    /// A single byte that may be a person's key: one behind the Escape key, or behind Alt and a key, or an Escape.
    /// `answered`: no reply to a question is outstanding.
    pub(super) fn held_key(&self, answered: bool) -> Option<u8> {
        let last = self.bytes.last().copied().filter(|_| self.bytes.len() == self.given_up + 1)?;
        let behind_key = self.typed || self.given_up == 1 || self.given_up == 2 && answered;
        (if last == 0x1b { answered } else { behind_key }).then_some(last)
    }

    /// Nothing came for a while. Gives a byte that was held as a person's key.
    pub(super) fn rest(&mut self, answered: bool) -> Option<u8> {
        let key = self.held_key(answered);
        let held = self.bytes.len() > self.given_up;
        // After an Escape the end of the reply may still come.
        self.typed |= key.is_some_and(|byte| byte != 0x1b);
        self.silent = if held { 0 } else { self.silent + 1 };
        self.given_up = self.bytes.len();
        key
    }

    /// Returns true if it is waited for no longer. `awaited`: replies are outstanding.
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

/// Compares `b`, which begins with an Escape, with what terminals send without a key of the person, and the beginning of a
/// paste. `typed`: some of it was given back as keys.
fn look(b: &[u8], typed: bool) -> Look {
    if b.len() > LONGEST {
        return Look::No;
    }
    let Some(kind) = b.get(1) else { return Look::Part };
    let body = &b[2..];
    match kind {
        b'[' => control(body, typed),
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

/// Device attributes, modes, keyboard flags, the colour scheme; the mouse and the focus, which report without a key; the
/// mark of a paste, and keys that are sent as numbers.
fn control(body: &[u8], typed: bool) -> Look {
    let Some((first, rest)) = body.split_first() else { return Look::Part };
    let (ends, rest): (&[u8], _) = match first {
        // A word in brackets may begin with these.
        b'I' | b'O' if !typed && rest.is_empty() => return Look::Whole,
        b'?' => (b"cuyn", rest),
        b'<' => (b"Mm", rest),
        b'0'..=b'9' => (if typed { b"~" } else { b"~u" }, body),
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
