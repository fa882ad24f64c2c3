//! UTF-16, with or without a mark at the start.

use crate::files::content::encoding::{Encoding, NotText, has_strays, stray, stray_of};
use crate::text::is_odd;

/// Units that are looked at.
const HEAD: usize = 4096;

/// `None`: the file is not UTF-16.
pub(crate) fn decode(bytes: &[u8]) -> Option<Result<(Encoding, String), NotText>> {
    let (big, bom) = match bytes {
        [0xff, 0xfe, ..] => (false, true),
        [0xfe, 0xff, ..] => (true, true),
        _ => (bare(bytes)?, false),
    };
    let text = text(&bytes[if bom { 2 } else { 0 }..], big);
    let done = text.and_then(|text| {
        let (mut all, mut none) = (0, 0);
        for c in text.chars().take(HEAD) {
            all += 1;
            none += usize::from(c == '\0' || is_odd(c) || stray(c).is_some());
        }
        // Also UTF-32 has such a mark, and zeros between its characters.
        if none * 10 > all && none > 3 {
            Err(NotText::Binary)
        } else {
            Ok((Encoding::Utf16 { big, bom }, text))
        }
    });
    Some(done)
}

fn text(bytes: &[u8], big: bool) -> Result<String, NotText> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    for unit in char::decode_utf16(pairs.iter().map(|p| unit(*p, big))) {
        match unit {
            Ok(c) if stray(c).is_some() => return Err(NotText::Private),
            Ok(c) => text.push(c),
            Err(alone) => text.extend(pair(alone.unpaired_surrogate(), big).map(stray_of)),
        }
    }
    text.extend(rest.iter().map(|b| stray_of(*b)));
    Ok(text)
}

fn unit(pair: [u8; 2], big: bool) -> u16 {
    if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
}

fn pair(unit: u16, big: bool) -> [u8; 2] {
    if big { unit.to_be_bytes() } else { unit.to_le_bytes() }
}

pub(crate) fn encode(text: &str, big: bool, bom: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() * 2 + 2);
    if bom {
        bytes.extend(pair(0xfeff, big));
    }
    for c in text.chars() {
        match stray(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(c.encode_utf16(&mut [0; 2]).iter().flat_map(|u| pair(*u, big))),
        }
    }
    bytes
}

/// Whether UTF-16 without a mark has the larger byte first; `None`: it is not UTF-16. One byte of each Latin character is
/// zero, and always the same one.
fn bare(bytes: &[u8]) -> Option<bool> {
    let (units, rest) = bytes.as_chunks::<2>();
    if units.is_empty() || !rest.is_empty() {
        return None;
    }
    let units = &units[..units.len().min(HEAD)];
    let zeros = |at: usize| units.iter().filter(|u| u[at] == 0).count();
    let big = match (zeros(0), zeros(1)) {
        (0, 1..) => false,
        (1.., 0) => true,
        _ => return None,
    };
    let text = text(units.as_flattened(), big).ok().filter(|text| !has_strays(text))?;
    let all = text.chars().count();
    let share =
        |is: fn(char) -> bool, percent| text.chars().filter(|c| is(*c)).count() * 100 >= all * percent;
    // Else zeros may separate names of an odd length, or numbers of 16 bits be stored.
    let latin = share(|c| matches!(c, ' '..='~' | '\t' | '\n' | '\r'), 75);
    let words = crate::text::is_binary(units.as_flattened()) && share(is_written, 95);
    // Without any blank, they are names of one letter.
    (text.contains(char::is_whitespace) && (latin || words)).then_some(big)
}

/// Characters of words of any language, and what stands between them.
fn is_written(c: char) -> bool {
    c.is_alphanumeric()
        || c.is_whitespace()
        || matches!(c, ' '..='~' | '\u{a0}'..='\u{bf}' | '\u{300}'..='\u{36f}' | '\u{2000}'..='\u{206f}')
        || matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}')
}
