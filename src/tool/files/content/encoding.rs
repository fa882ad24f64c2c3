//! Text of a file and back, without the loss of a byte: what is decoded here encodes to the same bytes. Everything that
//! reads a file as text goes through [`Text::decode`].

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{GB18030, GBK, ISO_2022_JP, WINDOWS_1252};

use crate::files::content::utf16;
use crate::files::masks::pictures::Shown;
use crate::text::is_binary;

/// Bytes by which text is distinguished from other content.
const HEAD: usize = 8192;

/// How characters are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16 {
        big: bool,
        bom: bool,
    },
    /// One of the encodings before Unicode.
    Legacy(&'static encoding_rs::Encoding),
    /// UTF-8 with some bytes that are not.
    Broken,
}

/// First of the 256 private characters that stand for stray bytes (plane 16).
const STRAY: u32 = 0x0010_ff00 - 0x100;

/// Decoded content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub encoding: Encoding,
    /// Its lines end with `\n` or `\r\n`. Bytes that are no text in the encoding are private characters.
    pub text: String,
    /// In the file, each `\n` of the text is a lone carriage return.
    pub cr: bool,
}

/// Why a file is not edited as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotText {
    #[error("it has binary content")]
    Binary,
    #[error("it has private characters (U+10FE00 to U+10FEFF) beside bytes that are no text in its encoding")]
    Private,
}

impl Text {
    /// Decodes `bytes`, a whole file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, NotText> {
        Self::decode_as(bytes, None)
    }

    /// As [`Self::decode`], of a file that was in the encoding `known` before.
    pub(crate) fn decode_as(
        bytes: &[u8],
        known: Option<&'static encoding_rs::Encoding>,
    ) -> Result<Self, NotText> {
        let (encoding, mut text) = decode(bytes, known)?;
        let cr = !text.contains('\n') && text.contains('\r');
        if cr {
            text = text.replace('\r', "\n");
        }
        Ok(Self { encoding, text, cr })
    }

    /// A whole file of `text` as this one is stored. `Err` holds the first character that its encoding does not have.
    pub(crate) fn encode_file(&self, text: &str) -> Result<Vec<u8>, char> {
        let returns;
        let text = if self.cr {
            returns = text.replace('\n', "\r");
            &returns
        } else {
            text
        };
        Ok(match self.encoding {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf8Bom => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Encoding::Utf16 { big, bom } => utf16::encode(text, big, bom),
            Encoding::Legacy(encoding) => with_strays(text, |run| legacy(encoding, run))?,
            Encoding::Broken => with_strays(text, |run| Ok(run.as_bytes().to_vec()))?,
        })
    }

    /// The text, when the file is nothing but its text in UTF-8.
    pub(crate) fn utf8(self) -> Option<String> {
        (self.encoding == Encoding::Utf8 && !self.cr).then_some(self.text)
    }

    /// For people and models; empty for plain UTF-8.
    pub(crate) fn label(&self) -> String {
        let strays = self.text.chars().filter(|c| stray(*c).is_some()).count();
        let mut label = match self.encoding {
            Encoding::Utf8 => return String::new(),
            Encoding::Utf8Bom => return "UTF-8 with BOM".into(),
            Encoding::Broken => return "UTF-8 with stray bytes".into(),
            Encoding::Utf16 { big, bom } => {
                format!("UTF-16 {}{}", if big { "BE" } else { "LE" }, if bom { "" } else { " without BOM" })
            }
            Encoding::Legacy(encoding) => encoding.name().to_owned(),
        };
        if strays > 0 {
            label.push_str(" with stray bytes");
        }
        label
    }

    /// How its lines end, where that is not `\n` alone; empty otherwise.
    pub(crate) fn ends_label(&self) -> &'static str {
        let all = self.text.matches('\n').count();
        match self.text.matches("\r\n").count() {
            _ if self.cr => "CR line endings",
            0 => "",
            n if n == all => "CRLF line endings",
            _ => "mixed line endings, LF and CRLF",
        }
    }
}

/// Text of a file that is edited as text, exactly: stray bytes are private characters in it.
pub fn decoded(bytes: &[u8]) -> Option<String> {
    Text::decode(bytes).ok().map(|text| text.text)
}

/// Texts of a file before and after a change, when hunks of their difference can be taken back byte for byte: both have
/// one encoding, or the only one can be made again from its text. `None` stands for a file that does not exist.
pub fn comparable(before: Option<&[u8]>, after: Option<&[u8]>) -> Option<(String, String)> {
    let text = |bytes| Text::decode(bytes).ok();
    match (before, after) {
        (None, None) => None,
        (None, Some(after)) => Some((String::new(), text(after)?.utf8()?)),
        (Some(before), None) => Some((text(before)?.utf8()?, String::new())),
        (Some(before), Some(after)) => {
            let (before, after) = (text(before)?, text(after)?);
            let same = (before.encoding, before.cr) == (after.encoding, after.cr);
            same.then_some((before.text, after.text))
        }
    }
}

/// Text of a file as a model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadableText {
    /// With pictures of the characters that cannot be shown.
    pub text: String,
    /// Empty for plain UTF-8.
    pub encoding: String,
}

/// Decodes the beginning of a file, whose last character may be cut when `cut` is set.
///
/// # Errors
/// The reason why it is not shown.
pub fn readable(bytes: &[u8], cut: bool) -> Result<ReadableText, String> {
    let whole = match std::str::from_utf8(bytes) {
        Err(e) if cut && e.error_len().is_none() => e.valid_up_to(),
        _ => bytes.len(),
    };
    let text = Text::decode(&bytes[..whole]).map_err(|why| why.to_string())?;
    Ok(ReadableText { text: Shown::of(&text.text).text.into_owned(), encoding: text.label() })
}

fn decode(
    bytes: &[u8],
    known: Option<&'static encoding_rs::Encoding>,
) -> Result<(Encoding, String), NotText> {
    if let Some(decoded) = utf16::decode(bytes) {
        return decoded;
    }
    if is_binary(&bytes[..bytes.len().min(HEAD)]) {
        return Err(NotText::Binary);
    }
    let utf8 = std::str::from_utf8(bytes);
    if let Some(known) = known.filter(|_| bytes.is_ascii() || utf8.is_err())
        && let Some(text) = exactly(known, bytes)
    {
        return Ok((Encoding::Legacy(known), text));
    }
    if let Ok(text) = utf8 {
        if let Some(text) = iso_2022_jp(bytes) {
            return Ok((Encoding::Legacy(ISO_2022_JP), text));
        }
        return Ok(match text.strip_prefix('\u{feff}') {
            Some(text) => (Encoding::Utf8Bom, text.to_owned()),
            None => (Encoding::Utf8, text.to_owned()),
        });
    }
    if let Some(encoding) = legacy_of(bytes) {
        return Ok(from_legacy(encoding, bytes));
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        if has_strays(chunk.valid()) {
            return Err(NotText::Private);
        }
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|b| stray_of(*b)));
    }
    Ok((Encoding::Broken, text))
}

/// The encoding that bytes are in which are not UTF-8; `None`: they are UTF-8 but for a few.
pub(crate) fn legacy_of(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    // Bytes in characters of UTF-8 beyond ASCII, and bytes that are not UTF-8.
    let (mut good, mut bad) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().bytes().filter(|b| !b.is_ascii()).count();
        bad += chunk.invalid().len();
    }
    if bad == 0 || good >= 4 * bad {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let guess = if is_western(guess, bytes) { WINDOWS_1252 } else { guess };
    // Two bytes of an East Asian text may look like a character of UTF-8 by chance; in one of single bytes that is rare.
    (!guess.is_single_byte() || good < bad).then_some(guess)
}

/// Encodings of other languages in Latin letters.
const LATIN: [&str; 6] =
    ["windows-1250", "windows-1254", "windows-1257", "windows-1258", "ISO-8859-2", "ISO-8859-4"];
/// Different bytes beyond ASCII by which a language is not known yet.
const FEW: usize = 3;

/// Says whether windows-1252 is more likely than `guess`, another encoding of Latin letters: a few signs such as a pound or a
/// plus-minus that stand alone, or letters within words, are no text of Central Europe.
fn is_western(guess: &'static encoding_rs::Encoding, bytes: &[u8]) -> bool {
    let mut beyond: Vec<u8> = bytes.iter().copied().filter(|b| !b.is_ascii()).collect();
    beyond.sort_unstable();
    beyond.dedup();
    if !LATIN.contains(&guess.name()) || beyond.len() > FEW {
        return false;
    }
    let text = WINDOWS_1252.decode_without_bom_handling(bytes).0;
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let apart = !before.is_alphabetic() && !rest.peek().is_some_and(|c| c.is_alphabetic());
        let fits = match c {
            '\0'..='\x7f' => true,
            // Letters of Iceland alone, in whose place Turkish and Polish have frequent ones.
            'ð' | 'þ' | 'ý' | 'Ð' | 'Þ' | 'Ý' | '\u{80}'..='\u{9f}' => false,
            '«' | '»' | '¿' | '¡' | '©' | '®' | '°' | '§' | '\u{2010}'..='\u{203a}' | '™' => true,
            'ª' | 'º' => apart,
            c => c.is_alphabetic() || apart,
        };
        if !fits {
            return false;
        }
        before = c;
    }
    true
}

/// Text in `encoding`, or in one of its kin that gives the same bytes again.
fn from_legacy(encoding: &'static encoding_rs::Encoding, bytes: &[u8]) -> (Encoding, String) {
    // They differ in the bytes of a few characters.
    let larger = (encoding == GBK).then_some(GB18030);
    for encoding in [Some(encoding), larger].into_iter().flatten() {
        if let Some(text) = exactly(encoding, bytes) {
            return (Encoding::Legacy(encoding), text);
        }
    }
    let text = by_piece(encoding, bytes);
    if legacy_file(encoding, &text).as_deref() == Ok(bytes) {
        return (Encoding::Legacy(encoding), text);
    }
    // It has a character for each byte.
    let text = WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned();
    (Encoding::Legacy(WINDOWS_1252), text)
}

fn legacy_file(encoding: &'static encoding_rs::Encoding, text: &str) -> Result<Vec<u8>, char> {
    with_strays(text, |run| legacy(encoding, run))
}

/// The text, when it encodes to the same bytes.
fn exactly(encoding: &'static encoding_rs::Encoding, bytes: &[u8]) -> Option<String> {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    let same = !has_strays(&text) && encoding.encode(&text).0 == bytes;
    same.then(|| text.into_owned())
}

/// Text with stray bytes where it is none, and where it has other bytes than `encoding` gives it.
fn by_piece(encoding: &'static encoding_rs::Encoding, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    // In none of these encodings is a line feed a part of a character.
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if let Some(line) = exactly(encoding, line) {
            text.push_str(&line);
            continue;
        }
        let mut at = 0;
        while at < line.len() {
            let decoded = (1..=4).find_map(|n| {
                let piece = line.get(at..at + n)?;
                encoding.decode_without_bom_handling_and_without_replacement(piece).map(|_| piece)
            });
            let piece = decoded.unwrap_or(&line[at..=at]);
            match exactly(encoding, piece) {
                Some(piece) => text.push_str(&piece),
                None => text.extend(piece.iter().map(|b| stray_of(*b))),
            }
            at += piece.len();
        }
    }
    text
}

/// Text that switches to Japanese characters with escapes, all in ASCII (RFC 1468).
fn iso_2022_jp(bytes: &[u8]) -> Option<String> {
    memchr::memmem::find(bytes, b"\x1b$").filter(|_| bytes.is_ascii())?;
    exactly(ISO_2022_JP, bytes).filter(|text| !text.is_ascii())
}

/// Bytes of `text`, which has no stray bytes.
fn legacy(encoding: &'static encoding_rs::Encoding, text: &str) -> Result<Vec<u8>, char> {
    let comes_back = |text: &str| {
        let bytes = encoding.encode(text).0.into_owned();
        let again = encoding.decode_without_bom_handling_and_without_replacement(&bytes);
        (again.as_deref() == Some(text)).then_some(bytes)
    };
    // A character that it lacks would become a reference or another that looks alike.
    if let Some(bytes) = comes_back(text) {
        return Ok(bytes);
    }
    let lacks = |c: &char| comes_back(c.encode_utf8(&mut [0; 4])).is_none();
    Err(text.chars().find(lacks).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Encodes `text` piece by piece, with the stray bytes between them.
fn with_strays(text: &str, mut encode: impl FnMut(&str) -> Result<Vec<u8>, char>) -> Result<Vec<u8>, char> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut from = 0;
    for (at, c) in text.char_indices() {
        let Some(byte) = stray(c) else { continue };
        if from < at {
            bytes.extend(encode(&text[from..at])?);
        }
        bytes.push(byte);
        from = at + c.len_utf8();
    }
    if from < text.len() {
        bytes.extend(encode(&text[from..])?);
    }
    Ok(bytes)
}

/// A piece of a file or an output as text to look at: UTF-8 or UTF-16, or else `encoding`. Unlike [`Text::decode`] it loses
/// bytes.
pub(crate) fn lossy<'b>(
    bytes: &'b [u8],
    encoding: Option<&'static encoding_rs::Encoding>,
) -> std::borrow::Cow<'b, str> {
    if let Some(Ok((_, text))) = utf16::decode(bytes) {
        return hide_strays(&text).into();
    }
    match (std::str::from_utf8(bytes), encoding) {
        (Ok(text), _) => text.into(),
        (Err(_), None) => String::from_utf8_lossy(bytes),
        (Err(_), Some(encoding)) => {
            let text = encoding.decode_without_bom_handling(bytes).0;
            // They come from bytes that it has no character for, and would act as the start of an escape sequence.
            let c1 = |c| matches!(c, '\u{80}'..='\u{9f}');
            if text.contains(c1) { text.replace(c1, "\u{fffd}").into() } else { text }
        }
    }
}

/// The byte that a private character stands for.
pub(crate) fn stray(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).wrapping_sub(STRAY)).ok()
}

/// The private character for a stray byte.
pub(crate) fn stray_of(byte: u8) -> char {
    char::from_u32(STRAY + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

pub(crate) fn has_strays(text: &str) -> bool {
    text.contains(|c| stray(c).is_some())
}

/// Stray bytes made visible.
pub(crate) fn hide_strays(text: &str) -> String {
    text.chars().map(|c| if stray(c).is_some() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
