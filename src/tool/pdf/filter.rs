//! Unpacks streams, up to a bound.

use std::borrow::Cow;
use std::io::Read;

use super::Budget;
use super::object::{Dict, Object};

/// Bytes of one unpacked stream.
const STREAM: usize = 32 << 20;
/// Filters of one stream.
const FILTERS: usize = 4;

/// The bytes of a stream; `None`: it is a picture, or packed in a way that is not known, or too large. `parameters` are
/// those of each filter.
pub(super) fn decode(
    data: &[u8],
    filters: &[String],
    parameters: &[Dict],
    budget: &Budget,
) -> Option<Vec<u8>> {
    if filters.len() > FILTERS {
        return None;
    }
    if filters.is_empty() {
        let left = budget.bytes.get();
        budget.bytes.set(left.saturating_sub(data.len()));
        return (data.len() <= left.min(STREAM)).then(|| data.to_vec());
    }
    let mut bytes = Cow::Borrowed(data);
    for (at, filter) in filters.iter().enumerate() {
        let limit = budget.bytes.get().min(STREAM);
        let unpacked = match filter.as_str() {
            "FlateDecode" | "Fl" => inflate(&bytes, limit),
            "LZWDecode" | "LZW" => {
                let early = parameters.get(at).and_then(|p| p.get("EarlyChange")).and_then(Object::number);
                lzw(&bytes, early != Some(0.0), limit)
            }
            "ASCIIHexDecode" | "AHx" => ascii_hex(&bytes),
            "ASCII85Decode" | "A85" => ascii_85(&bytes, limit),
            "RunLengthDecode" | "RL" => run_length(&bytes, limit),
            _ => return None,
        };
        budget.bytes.set(budget.bytes.get().saturating_sub(unpacked.len()));
        if unpacked.len() > limit {
            return None;
        }
        bytes = match parameters.get(at) {
            Some(parameters) => unpredicted(unpacked, parameters),
            None => unpacked,
        }
        .into();
    }
    Some(bytes.into_owned())
}

/// One byte more than `limit` at most. The bytes before damage are kept.
fn inflate(bytes: &[u8], limit: usize) -> Vec<u8> {
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut out = Vec::new();
    let _ = flate2::read::ZlibDecoder::new(bytes).take(cap).read_to_end(&mut out);
    if out.is_empty() {
        let _ = flate2::read::DeflateDecoder::new(bytes.get(2..).unwrap_or_default())
            .take(cap)
            .read_to_end(&mut out);
    }
    out
}

fn lzw(bytes: &[u8], early: bool, limit: usize) -> Vec<u8> {
    // Each entry is an earlier one and a byte more: its place in the output and its length.
    let (mut table, mut out): (Vec<(usize, usize)>, Vec<u8>) = (Vec::new(), Vec::new());
    let (mut bits, mut count, mut width) = (0u32, 0u32, 9u32);
    let mut last: Option<(usize, usize)> = None;
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        if count < width {
            continue;
        }
        let code = (bits >> (count - width)) & ((1 << width) - 1);
        count -= width;
        let from = out.len();
        match code {
            256 => {
                table.clear();
                width = 9;
                last = None;
                continue;
            }
            257 => break,
            0..=255 => out.push((code & 0xff) as u8),
            code => {
                let entry = table.get(code as usize - 258).copied();
                // The entry that this code makes: the last one and its own first byte.
                let Some((at, len)) = entry.or(last.map(|(at, len)| (at, len + 1))) else { break };
                for n in 0..len {
                    let Some(byte) = out.get(at + n).copied() else { break };
                    out.push(byte);
                }
            }
        }
        if let Some((at, len)) = last {
            table.push((at, len + 1));
        }
        last = Some((from, out.len() - from));
        // The next code that the table gets; with `early`, codes are wider one code sooner.
        let next = table.len() + 258 + usize::from(early);
        width = match next {
            0..=511 => 9,
            512..=1023 => 10,
            1024..=2047 => 11,
            _ => 12,
        };
        if out.len() > limit || table.len() > 4096 {
            break;
        }
    }
    out
}

fn ascii_hex(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().take_while(|b| **b != b'>').filter_map(|b| char::from(*b).to_digit(16));
    let digits: Vec<u32> = digits.collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair.get(1).copied().unwrap_or(0)) as u8).collect()
}

/// A little more than `limit` at most.
fn ascii_85(bytes: &[u8], limit: usize) -> Vec<u8> {
    let (mut out, mut group) = (Vec::new(), Vec::with_capacity(5));
    for byte in bytes {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => out.extend([0; 4]),
            b'!'..=b'u' => group.push(u32::from(byte - b'!')),
            _ => {}
        }
        if group.len() == 5 {
            out.extend(word_85(&group).to_be_bytes());
            group.clear();
        }
        if out.len() > limit {
            break;
        }
    }
    if group.len() > 1 {
        let known = group.len() - 1;
        group.resize(5, 84);
        out.extend(&word_85(&group).to_be_bytes()[..known]);
    }
    out
}

fn word_85(group: &[u32]) -> u32 {
    group.iter().fold(0u32, |word, digit| word.wrapping_mul(85).wrapping_add(*digit))
}

fn run_length(bytes: &[u8], limit: usize) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(length) = bytes.get(at).copied().filter(|length| *length != 128) {
        let length = usize::from(length);
        if length < 128 {
            out.extend(bytes.iter().skip(at + 1).take(length + 1));
            at += length + 2;
        } else {
            let Some(byte) = bytes.get(at + 1) else { break };
            out.extend(std::iter::repeat_n(*byte, 257 - length));
            at += 2;
        }
        if out.len() > limit {
            break;
        }
    }
    out
}

/// Undoes the differences to the line above (those of PNG).
fn unpredicted(bytes: Vec<u8>, parameters: &Dict) -> Vec<u8> {
    let get = |name: &str, default: usize| {
        let number = parameters.get(name).and_then(Object::number).filter(|n| (1.0..65_536.0).contains(n));
        number.map_or(default, |n| n as usize)
    };
    if get("Predictor", 1) < 10 {
        return bytes;
    }
    let pixel = (get("Colors", 1) * get("BitsPerComponent", 8)).div_ceil(8).clamp(1, 64);
    let row =
        (get("Columns", 1) * get("Colors", 1) * get("BitsPerComponent", 8)).div_ceil(8).clamp(1, 1 << 20);
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut above = vec![0u8; row];
    for line in bytes.chunks(row + 1) {
        let (kind, line) = (line[0], &line[1..]);
        let mut now = vec![0u8; row];
        for (n, byte) in line.iter().enumerate() {
            let left = n.checked_sub(pixel).map_or(0, |at| now[at]);
            let corner = n.checked_sub(pixel).map_or(0, |at| above[at]);
            let guess = match kind {
                1 => left,
                2 => above[n],
                3 => ((u16::from(left) + u16::from(above[n])) / 2) as u8,
                4 => paeth(left, above[n], corner),
                _ => 0,
            };
            now[n] = byte.wrapping_add(guess);
        }
        out.extend(&now[..line.len()]);
        above = now;
    }
    out
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(up), i16::from(corner));
    let guess = a + b - c;
    let (to_a, to_b, to_c) = ((guess - a).abs(), (guess - b).abs(), (guess - c).abs());
    if to_a <= to_b && to_a <= to_c {
        left
    } else if to_b <= to_c {
        up
    } else {
        corner
    }
}
