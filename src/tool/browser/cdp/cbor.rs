//! The messages as CBOR (RFC 8949), which a browser gives and takes instead of JSON. The process of a page writes its replies like
//! this; the browser's own would write them a second time as JSON, which takes a third of all time for a large page.
//!
//! Each map and list stands in an envelope, a byte string with tag 24, so that one that is not read is passed over at once.

use std::io::{Error, Result};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::MESSAGE_BYTES;

/// Depth of maps and lists within each other: more than what is read as JSON afterwards.
const DEPTH: usize = 200;
/// Bytes of a number. One with more digits is written with an exponent.
const NUMBER: usize = 24;
/// Fields that nothing reads. They are two thirds of the bytes of a tree of accessibility nodes.
const UNREAD: [&[u8]; 2] = [b"sources", b"chromeRole"];
/// Bytes at the begin of a message: the head of its envelope.
pub(super) const HEAD: usize = 7;

const TAG: u8 = 0xd8;
const ENVELOPE: u8 = 24;
/// The head of a byte string with a length of four bytes.
const BYTES: u8 = 0x5a;
const END: u8 = 0xff;

/// The length of a message behind its head.
///
/// # Errors
/// When it is no head of a message.
pub(super) fn length(head: [u8; HEAD]) -> Result<usize> {
    match head {
        [TAG, ENVELOPE, BYTES, a, b, c, d] => Ok(u32::from_be_bytes([a, b, c, d]) as usize),
        _ => Err(Error::other("a message of the browser has no envelope")),
    }
}

/// A message as CBOR.
///
/// # Errors
/// When it is larger than a message may be.
pub(super) fn encode(message: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    write(message, &mut out)?;
    Ok(out)
}

fn write(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(value) => out.push(if *value { 0xf5 } else { 0xf4 }),
        Value::Number(number) => match number.as_i64().and_then(|n| i32::try_from(n).ok()) {
            Some(n) if n < 0 => head(1, n.unsigned_abs() - 1, out),
            Some(n) => head(0, n.unsigned_abs(), out),
            // The protocol has no larger whole numbers.
            None => {
                out.push(0xfb);
                out.extend(number.as_f64().unwrap_or_default().to_be_bytes());
            }
        },
        Value::String(text) => {
            head(3, u32::try_from(text.len()).map_err(Error::other)?, out);
            out.extend(text.bytes());
        }
        Value::Array(items) => envelope(out, |out| {
            out.push(0x9f);
            items.iter().try_for_each(|item| write(item, out))
        })?,
        Value::Object(fields) => envelope(out, |out| {
            out.push(0xbf);
            fields.iter().try_for_each(|(key, value)| {
                head(3, u32::try_from(key.len()).map_err(Error::other)?, out);
                out.extend(key.bytes());
                write(value, out)
            })
        })?,
    }
    Ok(())
}

/// Writes a map or a list in its envelope.
fn envelope(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    out.extend([TAG, ENVELOPE, BYTES, 0, 0, 0, 0]);
    let begin = out.len();
    content(out)?;
    out.push(END);
    let length = u32::try_from(out.len() - begin).map_err(Error::other)?;
    out[begin - 4..begin].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Writes the kind of a value and its number or length.
fn head(kind: u8, n: u32, out: &mut Vec<u8>) {
    let kind = kind << 5;
    match n {
        0..24 => out.push(kind | n as u8),
        24..256 => out.extend([kind | 24, n as u8]),
        _ => {
            out.push(kind | 26);
            out.extend(n.to_be_bytes());
        }
    }
}

/// A message, without [`UNREAD`], as JSON.
///
/// # Errors
/// When it is no such message, or larger as JSON than a message may be.
pub(super) fn decode(message: &[u8]) -> Result<Vec<u8>> {
    let mut reader = Reader { rest: message, out: Vec::with_capacity(message.len() / 2) };
    match reader.value(DEPTH) {
        Some(()) if reader.rest.is_empty() => Ok(reader.out),
        _ => Err(Error::other("a message of the browser cannot be read")),
    }
}

/// The begin of a message that cannot be read: JSON that breaks off behind its id. Empty: it has none that can be read.
pub(super) fn begin(message: &[u8]) -> Vec<u8> {
    let rest = message.get(HEAD..).unwrap_or_default();
    let id = Reader { rest, out: Vec::new() }.id();
    id.map(|id| format!("{{\"id\":{id}").into_bytes()).unwrap_or_default()
}

struct Reader<'a> {
    rest: &'a [u8],
    out: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// The kind of the next value, and its number or length; `None` within: it has no end of its own.
    fn head(&mut self) -> Option<(u8, Option<u64>)> {
        let first = self.byte()?;
        let bytes = match first & 31 {
            n @ 0..24 => return Some((first >> 5, Some(u64::from(n)))),
            n @ 24..28 => self.take(1 << (n - 24))?,
            31 => return Some((first >> 5, None)),
            _ => return None,
        };
        Some((first >> 5, Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))))
    }

    /// The content of a text or a byte string of this length.
    fn content(&mut self, length: Option<u64>) -> Option<&'a [u8]> {
        self.take(usize::try_from(length?).ok()?)
    }

    /// The id in a map, behind fields that can be passed over.
    fn id(&mut self) -> Option<u64> {
        let (5, _) = self.head()? else { return None };
        loop {
            let (3, key) = self.head()? else { return None };
            let key = self.content(key)?;
            match self.head()? {
                (0, n) if key == b"id" => return n,
                (0 | 1 | 7, _) => {}
                (2 | 3, length) => drop(self.content(length)?),
                // Bytes, or an envelope.
                (6, _) => {
                    let (2, length) = self.head()? else { return None };
                    self.content(length)?;
                }
                _ => return None,
            }
        }
    }

    /// Writes the next value.
    fn value(&mut self, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        if self.out.len() > MESSAGE_BYTES {
            return None;
        }
        let double = self.rest.first() == Some(&0xfb);
        let (kind, n) = self.head()?;
        match kind {
            0 => self.say(&n?.to_string()),
            1 => self.say(&format!("-{}", u128::from(n?) + 1)),
            2 => {
                let units =
                    self.content(n)?.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
                let text: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
                self.text(&text)
            }
            3 => {
                let text = String::from_utf8_lossy(self.content(n)?);
                self.text(&text)
            }
            4 => self.list(n, depth),
            5 => self.map(n, depth),
            6 => self.tagged(n?, depth),
            _ if double => {
                let number = f64::from_bits(n?);
                match number.to_string() {
                    _ if !number.is_finite() => self.say("null"),
                    long if long.len() > NUMBER => self.say(&format!("{number:e}")),
                    text => self.say(&text),
                }
            }
            _ => self.say(match n? {
                20 => "false",
                21 => "true",
                22 | 23 => "null",
                _ => return None,
            }),
        }
    }

    fn tagged(&mut self, tag: u64, depth: usize) -> Option<()> {
        if tag == u64::from(ENVELOPE) {
            let (2, length) = self.head()? else { return None };
            let content = self.content(length)?;
            if depth == 0 {
                // Still too deep to be read as JSON: the call fails, and the connection goes on.
                return self.say("null");
            }
            let after = std::mem::replace(&mut self.rest, content);
            match self.head()? {
                (4, n) => self.list(n, depth)?,
                (5, n) => self.map(n, depth)?,
                _ => return None,
            }
            let whole = self.rest.is_empty();
            self.rest = after;
            return whole.then_some(());
        }
        // Bytes, which are in base64 in JSON.
        let (2, length) = self.head()? else { return None };
        let bytes = self.content(length)?;
        self.out.push(b'"');
        self.out.extend(STANDARD.encode(bytes).into_bytes());
        self.out.push(b'"');
        Some(())
    }

    fn list(&mut self, length: Option<u64>, depth: usize) -> Option<()> {
        self.out.push(b'[');
        let mut count = 0;
        while !self.ends(length, count)? {
            if count > 0 {
                self.out.push(b',');
            }
            self.value(depth)?;
            count += 1;
        }
        self.out.push(b']');
        Some(())
    }

    fn map(&mut self, length: Option<u64>, depth: usize) -> Option<()> {
        self.out.push(b'{');
        let (mut count, mut first) = (0, true);
        while !self.ends(length, count)? {
            count += 1;
            let (3, key) = self.head()? else { return None };
            let key = self.content(key)?;
            if UNREAD.contains(&key) && self.pass_over()? {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            self.text(&String::from_utf8_lossy(key))?;
            self.out.push(b':');
            self.value(depth)?;
        }
        self.out.push(b'}');
        Some(())
    }

    /// True behind the last of `length` items, of which `count` were read.
    fn ends(&mut self, length: Option<u64>, count: u64) -> Option<bool> {
        if let Some(length) = length {
            return Some(count == length);
        }
        let end = *self.rest.first()? == END;
        if end {
            self.byte()?;
        }
        Some(end)
    }

    /// Passes over an envelope; `false`: the next value is none.
    fn pass_over(&mut self) -> Option<bool> {
        let [TAG, ENVELOPE, ..] = self.rest else { return Some(false) };
        self.take(2)?;
        let (2, length) = self.head()? else { return None };
        self.content(length)?;
        Some(true)
    }

    fn say(&mut self, text: &str) -> Option<()> {
        self.out.extend(text.bytes());
        Some(())
    }

    /// Writes a text as JSON.
    fn text(&mut self, text: &str) -> Option<()> {
        self.out.push(b'"');
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate().filter(|(_, b)| matches!(b, b'"' | b'\\' | 0..0x20)) {
            self.out.extend(&text.as_bytes()[from..at]);
            match byte {
                b'"' | b'\\' => self.out.extend([b'\\', byte]),
                _ => self.out.extend(format!("\\u{byte:04x}").bytes()),
            }
            if self.out.len() > MESSAGE_BYTES {
                return None;
            }
            from = at + 1;
        }
        self.out.extend(&text.as_bytes()[from..]);
        self.out.push(b'"');
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Value> {
        Ok(serde_json::from_slice(&decode(bytes)?)?)
    }

    #[test]
    fn what_is_written_is_read() {
        let texts: [&str; 4] = ["", "a", "Größe \u{1f30a} \"x\" \\ \n\u{1}\u{7f}", &"long ".repeat(20_000)];
        for value in [
            json!({}),
            json!({"id": 1, "method": "Page.enable", "params": {}}),
            json!([0, 23, 24, 255, 256, 65_535, 65_536, i32::MAX, i32::MIN, -1, -24, -25]),
            json!([0.5, -1.25, 1e300, 3_000_000_000_u64, true, false, null]),
            json!({"a": [[], {}, [[1], {"b": null}]], "": texts}),
        ] {
            let bytes = encode(&value).unwrap();
            let length = length(bytes[..HEAD].try_into().unwrap()).unwrap();
            assert_eq!(length, bytes.len() - HEAD);
            let said = read(&bytes).unwrap();
            // Large numbers come back as such with a point.
            let same = |value: &Value| value.to_string().replace(".0", "");
            assert_eq!(same(&said), same(&value));
        }
    }

    #[test]
    fn a_message_of_a_browser_is_json_without_what_nothing_reads() {
        let field = |key: &str, value: &[u8]| [&[0x60 + key.len() as u8][..], key.as_bytes(), value].concat();
        let map = |fields: &[Vec<u8>]| {
            let content = [&[0xbf][..], &fields.concat(), &[END]].concat();
            [&[TAG, ENVELOPE, BYTES][..], &(content.len() as u32).to_be_bytes(), &content].concat()
        };
        let utf16: Vec<u8> = "5 é€🌊".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide = [&[0x58, utf16.len() as u8][..], &utf16].concat();
        let message = map(&[
            field("id", &[7]),
            field("wide", &wide),
            field("sources", &map(&[field("x", &[1])])),
            field("data", &[&[0xd6, 0x43][..], b"\xff\x00\x10"].concat()),
            field("role", &map(&[field("chromeRole", &map(&[])), field("value", b"\x64link")])),
            field("chromeRole", b"\x61x"),
            field("half", &[&[0xfb][..], &1.5_f64.to_be_bytes()].concat()),
            field("odd", &[&[0xfb][..], &f64::NAN.to_be_bytes()].concat()),
            field("list", &[0x83, 0xf5, 0xf6, 0x20]),
            field("short", &[0xa1, 0x61, b'k', 0xf4]),
        ]);
        let wanted = json!({
            "id": 7, "wide": "5 é€🌊", "data": STANDARD.encode(b"\xff\x00\x10"), "role": {"value": "link"},
            "chromeRole": "x", "half": 1.5, "odd": null, "list": [true, null, -1], "short": {"k": false},
        });
        assert_eq!(read(&message).unwrap(), wanted);
        // Each part of it, and each with one byte changed, is read or refused.
        for at in 0..message.len() {
            assert!(decode(&message[..at]).is_err(), "{at}");
            for byte in [0, 0x1b, 0x5b, 0x7f, 0x9f, 0xbf, 0xd8, 0xfb, 0xff] {
                let mut other = message.clone();
                other[at] = byte;
                if let Ok(json) = decode(&other) {
                    assert!(serde_json::from_slice::<Value>(&json).is_ok(), "{at} {byte}");
                }
            }
        }
    }

    #[test]
    fn a_deep_reply_fails_for_its_call_alone() {
        let reply = |depth: usize| {
            let mut list: Vec<u8> = vec![0xf6];
            for _ in 0..depth {
                let inner = std::mem::take(&mut list);
                let content = |out: &mut Vec<u8>| {
                    out.push(0x9f);
                    out.extend(inner);
                    Ok(())
                };
                envelope(&mut list, content).unwrap();
            }
            let mut bytes = Vec::new();
            let content = |out: &mut Vec<u8>| {
                out.push(0xbf);
                out.extend(b"\x62id\x07\x66result");
                out.extend(list);
                Ok(())
            };
            envelope(&mut bytes, content).unwrap();
            String::from_utf8(decode(&bytes).unwrap()).unwrap()
        };
        let whole = format!("{{\"id\":7,\"result\":{}null{}}}", "[".repeat(120), "]".repeat(120));
        assert_eq!(reply(120), whole);
        let deep = reply(1_000);
        assert!(deep.starts_with("{\"id\":7,"), "the call can be found");
        assert!(serde_json::from_str::<Value>(&deep).is_err(), "and its result cannot be read");
    }

    #[test]
    fn a_number_does_not_grow_many_times_longer() {
        for number in [f64::MIN_POSITIVE, f64::MAX, -1.5e-300, 5e-324, 0.1, 3e9] {
            let json = decode(&[&[0xfb][..], &number.to_be_bytes()].concat()).unwrap();
            let json = String::from_utf8(json).unwrap();
            assert!(json.len() <= NUMBER, "{json}");
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok(), "{json}");
            assert_eq!(json.parse::<f64>().map(f64::to_bits), Ok(number.to_bits()));
        }
    }

    #[test]
    fn x10_hostile_messages_are_refused() {
        let deep = [vec![0x9f; 100_000], vec![END; 100_000]].concat();
        let tags = [TAG, ENVELOPE].repeat(50_000);
        for bytes in [
            &deep[..],
            &tags,
            &[],
            &[0x9f],
            &[0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[TAG, ENVELOPE, BYTES, 0xff, 0xff, 0xff, 0xff],
            &[0xbf, 1, 1, END],
            &[0xf5, 0xf5],
            &[0x1c],
            &[0xf8, 0x40],
        ] {
            assert!(decode(bytes).is_err(), "{:?}", &bytes[..bytes.len().min(20)]);
        }
        assert!(length(*b"{\"id\":1").is_err());
    }
}
