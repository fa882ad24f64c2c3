//! Tables from the codes of a font to characters (`ToUnicode`).

use std::collections::HashMap;

use super::Budget;
use super::object::{Lexer, Object};

/// Codes of one table.
const CODES: usize = 70_000;
/// Codes of one range.
const RANGE: u32 = 0xffff;
/// Bytes of what one code means: the longest ligatures are far shorter.
const TARGET: usize = 64;

/// A table.
#[derive(Debug, Default)]
pub(super) struct CharacterMap {
    texts: HashMap<u32, String>,
    /// Bytes of a code, as the table says.
    pub(super) width: Option<usize>,
}

impl CharacterMap {
    /// Each code costs a step of the budget.
    pub(super) fn read(bytes: &[u8], budget: &Budget) -> Self {
        let mut map = Self::default();
        let mut lexer = Lexer::content(bytes);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(object) = lexer.next() {
            if !budget.step(1) {
                break;
            }
            let Object::Word(word) = object else {
                operands.push(object);
                if operands.len() > 4 * CODES {
                    break;
                }
                continue;
            };
            match word.as_slice() {
                b"endcodespacerange" => {
                    map.width = operands.iter().filter_map(code).map(|(_, width)| width).max();
                }
                b"endbfchar" => {
                    for pair in operands.chunks_exact(2) {
                        if let (Some((code, _)), Object::Text(text)) = (code(&pair[0]), &pair[1]) {
                            map.add(code, text);
                        }
                    }
                }
                b"endbfrange" => operands.chunks_exact(3).for_each(|range| map.range(range, budget)),
                _ => {}
            }
            operands.clear();
        }
        map
    }

    fn range(&mut self, range: &[Object], budget: &Budget) {
        let (Some((low, _)), Some((high, _))) = (code(&range[0]), code(&range[1])) else { return };
        let high = high.min(low.saturating_add(RANGE));
        let Some(more) = high.checked_sub(low) else { return };
        if !budget.step(more as usize + 1) {
            return;
        }
        match &range[2] {
            Object::Array(texts) => {
                for (code, text) in (low..=high).zip(texts) {
                    if let Object::Text(text) = text {
                        self.add(code, text);
                    }
                }
            }
            Object::Text(first) if first.len() <= TARGET => {
                let Some((last, head)) = first.split_last_chunk::<2>().map(|(head, last)| (last, head))
                else {
                    return;
                };
                for code in low..=high {
                    let unit = u32::from(u16::from_be_bytes(*last)) + (code - low);
                    let Ok(unit) = u16::try_from(unit) else { break };
                    let text = [head, &unit.to_be_bytes()].concat();
                    self.add(code, &text);
                    if self.texts.len() >= CODES {
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, code: u32, text: &[u8]) {
        if self.texts.len() < CODES && text.len() <= TARGET {
            self.texts.insert(code, utf16(text));
        }
    }

    pub(super) fn get(&self, code: u32) -> Option<&str> {
        self.texts.get(&code).map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// A code and its number of bytes.
fn code(object: &Object) -> Option<(u32, usize)> {
    match object {
        Object::Text(bytes) if (1..=4).contains(&bytes.len()) => {
            Some((bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte)), bytes.len()))
        }
        _ => None,
    }
}

/// Text in UTF-16, high byte first.
pub(super) fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u16::from_be_bytes([*high, *low]),
        [low, ..] => u16::from(*low),
        [] => 0,
    });
    let mut text = String::new();
    for c in char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).filter(|c| *c != '\0') {
        match c {
            // Letters that are drawn as one: words are searched for by their letters.
            '\u{fb00}' => text.push_str("ff"),
            '\u{fb01}' => text.push_str("fi"),
            '\u{fb02}' => text.push_str("fl"),
            '\u{fb03}' => text.push_str("ffi"),
            '\u{fb04}' => text.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => text.push_str("st"),
            c => text.push(c),
        }
    }
    text
}
