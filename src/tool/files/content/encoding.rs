//! Text of a file and back, without the loss of a byte: what is decoded here encodes to the same bytes.

/// How characters are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
    Latin1,
    /// UTF-8 with some bytes that are not; those are private characters in the text.
    Broken,
}

/// First of the 256 private characters that stand for stray bytes (plane 16).
const STRAY: u32 = 0x0010_ff00 - 0x100;

/// Decoded content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub encoding: Encoding,
    pub text: String,
}

impl Text {
    /// Decodes; `None` when it cannot be done without loss (broken UTF-16).
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let done = |encoding, text| Some(Self { encoding, text });
        if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf")
            && let Ok(text) = std::str::from_utf8(rest)
        {
            return done(Encoding::Utf8Bom, text.to_owned());
        }
        if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
            return done(Encoding::Utf16Le, utf16(rest, u16::from_le_bytes)?);
        }
        if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
            return done(Encoding::Utf16Be, utf16(rest, u16::from_be_bytes)?);
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            return done(Encoding::Utf8, text.to_owned());
        }
        // A single good multi-byte character says that it was meant as UTF-8.
        if bytes.utf8_chunks().all(|c| c.valid().is_ascii()) {
            return done(Encoding::Latin1, bytes.iter().map(|b| char::from(*b)).collect());
        }
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            if chunk.valid().chars().any(|c| stray(c).is_some()) {
                return None;
            }
            text.push_str(chunk.valid());
            text.extend(chunk.invalid().iter().filter_map(|b| char::from_u32(STRAY + u32::from(*b))));
        }
        done(Encoding::Broken, text)
    }

    /// Bytes of `text` in this encoding, without the mark at the start. `Err` holds the first character
    /// that it does not have.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u8>, char> {
        Ok(match self.encoding {
            Encoding::Utf8 | Encoding::Utf8Bom => text.as_bytes().to_vec(),
            Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Encoding::Latin1 => {
                text.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| c)).collect::<Result<_, _>>()?
            }
            Encoding::Broken => {
                let mut bytes = Vec::with_capacity(text.len());
                for c in text.chars() {
                    match stray(c) {
                        Some(byte) => bytes.push(byte),
                        None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                bytes
            }
        })
    }

    /// A whole file of `text`, with the mark that this one had.
    pub(crate) fn encode_file(&self, text: &str) -> Result<Vec<u8>, char> {
        let mark: &[u8] = match self.encoding {
            Encoding::Utf8Bom => b"\xef\xbb\xbf",
            Encoding::Utf16Le => b"\xff\xfe",
            Encoding::Utf16Be => b"\xfe\xff",
            _ => b"",
        };
        let mut bytes = mark.to_vec();
        bytes.extend(self.encode(text)?);
        Ok(bytes)
    }

    /// For people; empty for plain UTF-8.
    pub(crate) fn label(&self) -> &'static str {
        match self.encoding {
            Encoding::Utf8 => "",
            Encoding::Utf8Bom => "UTF-8 with BOM",
            Encoding::Utf16Le => "UTF-16 LE",
            Encoding::Utf16Be => "UTF-16 BE",
            Encoding::Latin1 => "Latin-1",
            Encoding::Broken => "UTF-8 with stray bytes",
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(pairs.iter().map(|p| unit(*p))).collect::<Result<_, _>>().ok()
}

/// The byte that a private character stands for.
fn stray(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).wrapping_sub(STRAY)).ok()
}

/// Stray bytes made visible.
pub(crate) fn hide_strays(text: &str) -> String {
    text.chars().map(|c| if stray(c).is_some() { '\u{fffd}' } else { c }).collect()
}

/// `\r\n` or `\n`: what most lines of `text` end with.
pub(crate) fn line_end(text: &str) -> &'static str {
    let all = text.matches('\n').count();
    let crlf = text.matches("\r\n").count();
    if crlf * 2 > all { "\r\n" } else { "\n" }
}

/// `text` with `end` at each line end.
pub(crate) fn with_line_ends(text: &str, end: &str) -> String {
    let unix = text.replace("\r\n", "\n");
    if end == "\n" { unix } else { unix.replace('\n', end) }
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
