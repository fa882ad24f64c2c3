//! Fonts: what the codes of a string mean, and how wide they are.

use std::collections::HashMap;

use super::cmap::{CharacterMap, utf16};
use super::file::File;
use super::glyphs;
use super::object::{Dict, Object};

/// Widths that are read of a font.
const WIDTHS: usize = 70_000;

/// A font.
#[derive(Debug, Default)]
pub(super) struct Font {
    map: CharacterMap,
    /// Text of the codes of one byte.
    simple: HashMap<u8, String>,
    /// Widths in units of the text's size.
    widths: HashMap<u32, f64>,
    usual: f64,
    /// Bytes of a code.
    bytes: usize,
    /// Its codes are characters of UTF-16.
    unicode: bool,
}

/// A code of a string.
pub(super) struct Glyph {
    /// Its text; `None`: the font does not say.
    pub(super) text: Option<String>,
    pub(super) width: f64,
    /// It is the code 32 in one byte, which has a width of its own.
    pub(super) space: bool,
}

impl Font {
    pub(super) fn read(dict: &Dict, file: &File<'_>) -> Self {
        let mut font = Self { usual: 0.5, bytes: 1, ..Self::default() };
        if let Some(table) = dict.get("ToUnicode").and_then(|t| file.stream(&file.resolve(Some(t)))) {
            font.map = CharacterMap::read(&table, file.budget);
        }
        let kind = file.resolve(dict.get("Subtype"));
        match kind.name() {
            Some("Type0") => font.composite(dict, file),
            kind => font.of_one_byte(dict, kind.unwrap_or_default(), file),
        }
        font
    }

    fn composite(&mut self, dict: &Dict, file: &File<'_>) {
        self.bytes = 2;
        self.usual = 1.0;
        let encoding = file.resolve(dict.get("Encoding"));
        let name = encoding.name().unwrap_or_default();
        self.unicode = name.contains("UCS2") || name.contains("UTF16");
        if !name.starts_with("Identity") && !self.unicode {
            self.bytes = self.map.width.filter(|width| (1..=4).contains(width)).unwrap_or(2);
        }
        let descendants = file.resolve(dict.get("DescendantFonts"));
        let inner = file.dict(descendants.array().first());
        if let Some(width) = file.number(inner.get("DW")) {
            self.usual = width / 1000.0;
        }
        let list = file.resolve(inner.get("W"));
        let mut items = list.array().iter().map(|item| file.resolve(Some(item)));
        while let (Some(Object::Number(first)), Some(next)) = (items.next(), items.next()) {
            let first = first.max(0.0) as u32;
            match next {
                Object::Array(widths) => {
                    if !file.budget.step(widths.len()) {
                        break;
                    }
                    for (code, width) in (first..=u32::MAX).zip(&widths) {
                        self.width(code, file.number(Some(width)).unwrap_or(1000.0) / 1000.0);
                    }
                }
                Object::Number(last) => {
                    let Some(Object::Number(width)) = items.next() else { break };
                    let last = (last.max(0.0) as u32).min(first.saturating_add(0xffff));
                    if !file.budget.step(last.saturating_sub(first) as usize + 1) {
                        break;
                    }
                    for code in first..=last {
                        self.width(code, width / 1000.0);
                    }
                }
                _ => break,
            }
            if self.widths.len() >= WIDTHS || !file.budget.step(1) {
                break;
            }
        }
    }

    fn of_one_byte(&mut self, dict: &Dict, kind: &str, file: &File<'_>) {
        let scale = if kind == "Type3" {
            let matrix = file.resolve(dict.get("FontMatrix"));
            matrix.array().first().and_then(Object::number).unwrap_or(0.001)
        } else {
            0.001
        };
        let descriptor = file.dict(dict.get("FontDescriptor"));
        if let Some(width) = file.number(descriptor.get("MissingWidth")).filter(|w| *w > 0.0) {
            self.usual = width * scale;
        }
        let first = file.number(dict.get("FirstChar")).unwrap_or(0.0).max(0.0) as u32;
        let widths = file.resolve(dict.get("Widths"));
        for (code, width) in (first..256).zip(widths.array()) {
            if let Some(width) = file.number(Some(width)) {
                self.width(code, width * scale);
            }
        }
        let encoding = file.resolve(dict.get("Encoding"));
        let of_dict = encoding.dict().map(|d| file.resolve(d.get("BaseEncoding")));
        let base = match &of_dict {
            Some(base) => base.name().unwrap_or_default(),
            None => encoding.name().unwrap_or_default(),
        };
        for code in 0..=255u8 {
            let text = match base {
                "WinAnsiEncoding" => of_page(encoding_rs::WINDOWS_1252, code),
                "MacRomanEncoding" => of_page(encoding_rs::MACINTOSH, code),
                _ if kind == "TrueType" => of_page(encoding_rs::WINDOWS_1252, code),
                // Codes of a drawn font mean what its table says.
                _ if kind == "Type3" => None,
                _ => glyphs::standard(code),
            };
            if let Some(text) = text {
                self.simple.insert(code, text);
            }
        }
        let differences = encoding.dict().map(|d| file.resolve(d.get("Differences"))).unwrap_or_default();
        let mut code = 0u32;
        for item in differences.array() {
            match item {
                Object::Number(n) => code = n.max(0.0) as u32,
                Object::Name(name) => {
                    if let Ok(at) = u8::try_from(code) {
                        match glyphs::named(name) {
                            Some(text) => self.simple.insert(at, text),
                            None => self.simple.remove(&at),
                        };
                    }
                    code = code.saturating_add(1);
                }
                _ => {}
            }
        }
    }

    fn width(&mut self, code: u32, width: f64) {
        if self.widths.len() < WIDTHS && width.is_finite() {
            self.widths.insert(code, width);
        }
    }

    /// The codes of a string.
    pub(super) fn glyphs<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Glyph> + 'a {
        text.chunks(self.bytes).map(|bytes| {
            let code = bytes.iter().fold(0u32, |code, byte| code << 8 | u32::from(*byte));
            let text = match self.map.get(code) {
                Some(text) => Some(text.to_owned()),
                None if self.unicode => Some(utf16(bytes)),
                // A table that lacks a code is still better than a guess, but for codes of one byte.
                None if self.bytes == 1 => bytes.first().and_then(|byte| self.simple.get(byte)).cloned(),
                None if code == 0 && !self.map.is_empty() => Some(String::new()),
                None => None,
            };
            let width = self.widths.get(&code).copied().unwrap_or(self.usual);
            Glyph { text, width, space: self.bytes == 1 && code == 32 }
        })
    }
}

/// The text of a code of a code page; `None`: it is a control character.
fn of_page(page: &'static encoding_rs::Encoding, code: u8) -> Option<String> {
    let bytes = [code];
    let text = page.decode_without_bom_handling(&bytes).0;
    text.chars().next().filter(|c| !c.is_control()).map(String::from)
}
