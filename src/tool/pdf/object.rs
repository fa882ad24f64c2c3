//! The syntax of PDF: objects, as they stand in files and in the content of pages.

use std::collections::BTreeMap;

/// Depth of arrays and dictionaries.
const DEPTH: usize = 40;

/// A dictionary.
pub(super) type Dict = BTreeMap<String, Object>;

/// A value of the syntax.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Object {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    Array(Vec<Self>),
    Dict(Dict),
    /// A dictionary with the place at which its bytes begin.
    Stream(Dict, usize),
    /// The number of another object.
    Ref(u32),
    /// Any other word: an operator.
    Word(Vec<u8>),
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(n) => Some(*n),
            _ => None,
        }
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn array(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The work that a copy of it takes: its values, and its bytes by the dozen.
    pub(super) fn weight(&self) -> usize {
        let of_dict =
            |dict: &Dict| dict.iter().map(|(key, value)| 1 + key.len() / 16 + value.weight()).sum::<usize>();
        match self {
            Self::Name(name) => 1 + name.len() / 16,
            Self::Text(bytes) | Self::Word(bytes) => 1 + bytes.len() / 16,
            Self::Array(items) => 1 + items.iter().map(Self::weight).sum::<usize>(),
            Self::Dict(dict) | Self::Stream(dict, _) => of_dict(dict),
            _ => 1,
        }
    }

    /// The dictionary of a dictionary or a stream.
    pub(super) fn dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) | Self::Stream(dict, _) => Some(dict),
            _ => None,
        }
    }
}

/// Reads objects one after another.
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    /// `1 0 R` is a reference, as in files.
    refs: bool,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

impl<'a> Lexer<'a> {
    /// Of a file.
    pub(super) fn file(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, refs: true }
    }

    /// Of the content of a page, or of a table of characters.
    pub(super) fn content(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, refs: false }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self.peek().is_some_and(|b| b != b'\n' && b != b'\r') {
                    self.at += 1;
                }
            } else if is_space(byte) {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// The next object; `None`: there is no other.
    pub(super) fn next(&mut self) -> Option<Object> {
        self.object(0)
    }

    fn object(&mut self, depth: usize) -> Option<Object> {
        if depth > DEPTH {
            return None;
        }
        self.skip_space();
        let first = self.peek()?;
        match first {
            b'/' => {
                self.at += 1;
                Some(Object::Name(self.name()))
            }
            b'(' => Some(Object::Text(self.literal())),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Some(self.dict(depth))
            }
            b'<' => Some(Object::Text(self.hex())),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                loop {
                    self.skip_space();
                    match self.peek() {
                        None => break,
                        Some(b']') => {
                            self.at += 1;
                            break;
                        }
                        Some(_) => match self.object(depth + 1)? {
                            // A damaged array ends where its object does.
                            Object::Word(word) if word == b"endobj" => break,
                            item => items.push(item),
                        },
                    }
                }
                Some(Object::Array(items))
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => Some(self.number()),
            b'>' | b')' | b']' | b'{' | b'}' => {
                self.at += if self.bytes[self.at..].starts_with(b">>") { 2 } else { 1 };
                Some(Object::Word(vec![first]))
            }
            _ => Some(self.word()),
        }
    }

    fn token(&mut self) -> &'a [u8] {
        let from = self.at;
        while self.peek().is_some_and(|b| !is_space(b) && !is_delimiter(b)) {
            self.at += 1;
        }
        &self.bytes[from..self.at]
    }

    fn word(&mut self) -> Object {
        match self.token() {
            b"true" => Object::Bool(true),
            b"false" => Object::Bool(false),
            b"null" => Object::Null,
            word => Object::Word(word.to_vec()),
        }
    }

    fn name(&mut self) -> String {
        let token = self.token();
        let mut bytes = Vec::with_capacity(token.len());
        let mut at = 0;
        while let Some(byte) = token.get(at) {
            let coded =
                (*byte == b'#').then(|| Some(hex(*token.get(at + 1)?)? << 4 | hex(*token.get(at + 2)?)?));
            match coded.flatten() {
                Some(coded) => {
                    bytes.push(coded);
                    at += 3;
                }
                None => {
                    bytes.push(*byte);
                    at += 1;
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn number(&mut self) -> Object {
        let token = self.token();
        let text = std::str::from_utf8(token).unwrap_or_default();
        // Some writers put a sign twice, or one in the middle.
        let number: f64 =
            text.trim_start_matches('+').parse().or_else(|_| text.replace('-', "").parse()).unwrap_or(0.0);
        if !self.refs || !token.iter().all(u8::is_ascii_digit) {
            return Object::Number(number);
        }
        let before = self.at;
        self.skip_space();
        let digits = self.token();
        if !digits.is_empty() && digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit) {
            self.skip_space();
            if self.token() == b"R" {
                return text.parse().map_or(Object::Null, Object::Ref);
            }
        }
        self.at = before;
        Object::Number(number)
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let (mut out, mut open) = (Vec::new(), 0);
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' if open == 0 => break,
                b')' => open -= 1,
                b'\\' => {
                    self.escape(&mut out);
                    continue;
                }
                _ => {}
            }
            out.push(byte);
        }
        out
    }

    fn escape(&mut self, out: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit) = self.peek().filter(|b| (b'0'..=b'7').contains(b)) else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                out.push((code & 0xff) as u8);
            }
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
            }
            b'\n' => {}
            other => out.push(other),
        }
    }

    fn hex(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut digits = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            digits.extend(hex(byte));
        }
        digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
    }

    fn dict(&mut self, depth: usize) -> Object {
        let mut dict = Dict::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(b'>') => {
                    self.at += if self.bytes[self.at..].starts_with(b">>") { 2 } else { 1 };
                    break;
                }
                Some(b'/') => {
                    self.at += 1;
                    let key = self.name();
                    let from = self.at;
                    match self.object(depth + 1) {
                        // A damaged dictionary ends where its object does.
                        Some(Object::Word(word)) if word == b"endobj" || word == b">" => {
                            self.at = from;
                            break;
                        }
                        Some(value) => dict.insert(key, value),
                        None => break,
                    };
                }
                Some(_) => match self.object(depth + 1) {
                    Some(Object::Word(word)) if word == b"endobj" || word == b"stream" => break,
                    Some(_) => {}
                    None => break,
                },
            }
        }
        Object::Dict(dict)
    }

    /// The place of the bytes of a stream, when its keyword is next.
    pub(super) fn stream(&mut self) -> Option<usize> {
        self.skip_space();
        let rest = self.bytes.get(self.at..)?.strip_prefix(b"stream")?;
        let end = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => 0,
        };
        Some(self.at + b"stream".len() + end)
    }
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
