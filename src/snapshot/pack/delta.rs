//! Git's deltas: an object as copies from another object and inserted bytes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a block that is compared.
const BLOCK: usize = 16;
/// Maximum bytes of one copy.
const COPY: usize = 0x1_0000;
/// Maximum bytes of one insertion.
const INSERT: usize = 127;

/// A hasher for numbers that are hashes already.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = spread(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// A map with hashes as keys.
pub(crate) type BySpread<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Makes each bit of the result depend on each bit of `n`.
pub(crate) fn spread(n: u64) -> u64 {
    let n = (n ^ (n >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (n >> 31)
}

fn block(bytes: &[u8]) -> Option<u64> {
    let (low, rest) = bytes.split_first_chunk::<8>()?;
    let high = rest.first_chunk::<8>()?;
    Some(spread(u64::from_le_bytes(*low)) ^ u64::from_le_bytes(*high).rotate_left(17))
}

/// The delta from `base` to `target`. `None` when it would not be smaller than `most` bytes.
pub(crate) fn encode(base: &[u8], target: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut blocks: BySpread<usize> = BySpread::default();
    for (n, bytes) in base.chunks_exact(BLOCK).enumerate() {
        blocks.entry(spread(block(bytes)?)).or_insert(n * BLOCK);
    }
    let mut out = Vec::with_capacity(256);
    put_len(&mut out, base.len());
    put_len(&mut out, target.len());
    // The bytes from `new` to `at` are not written yet.
    let (mut at, mut new) = (0, 0);
    while let Some(hash) = target.get(at..at + BLOCK).and_then(block) {
        let found = blocks.get(&spread(hash)).copied();
        let Some(mut from) = found.filter(|from| base[*from..from + BLOCK] == target[at..at + BLOCK]) else {
            at += 1;
            if out.len() + (at - new) >= most {
                return None;
            }
            continue;
        };
        let forward = base[from..].iter().zip(&target[at..]).take_while(|(a, b)| a == b).count();
        let end = at + forward;
        let back = base[..from].iter().rev().zip(target[new..at].iter().rev());
        let back = back.take_while(|(a, b)| a == b).count();
        (from, at) = (from - back, at - back);
        put_new(&mut out, &target[new..at]);
        put_copies(&mut out, from, end - at);
        (at, new) = (end, end);
    }
    put_new(&mut out, &target[new..]);
    (out.len() < most).then_some(out)
}

fn put_len(out: &mut Vec<u8>, mut len: usize) {
    while len >= 0x80 {
        out.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
}

fn put_new(out: &mut Vec<u8>, bytes: &[u8]) {
    for part in bytes.chunks(INSERT) {
        out.push(part.len() as u8);
        out.extend_from_slice(part);
    }
}

fn put_copies(out: &mut Vec<u8>, mut from: usize, mut len: usize) {
    while len > 0 {
        let part = len.min(COPY);
        let head = out.len();
        out.push(0x80);
        let put = |out: &mut Vec<u8>, byte: usize, flag: u8| {
            if byte != 0 {
                out.push(byte as u8);
                out[head] |= flag;
            }
        };
        for (n, flag) in [1, 2, 4, 8].into_iter().enumerate() {
            put(out, from >> (8 * n) & 0xff, flag);
        }
        // A length that is left out means the largest.
        if part != COPY {
            put(out, part & 0xff, 0x10);
            put(out, part >> 8 & 0xff, 0x20);
        }
        (from, len) = (from + part, len - part);
    }
}

fn take_len(delta: &mut &[u8]) -> Option<usize> {
    let (mut len, mut shift) = (0_usize, 0_u32);
    loop {
        let (byte, rest) = delta.split_first()?;
        *delta = rest;
        len |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(len);
        }
        shift += 7;
    }
}

/// Length of the object that a delta produces. The first bytes of the delta are enough.
pub(crate) fn target_len(mut delta: &[u8]) -> Option<usize> {
    take_len(&mut delta)?;
    take_len(&mut delta)
}

/// Applies a delta to its base; `None` when the delta is malformed or has another base.
pub(crate) fn apply(base: &[u8], mut delta: &[u8]) -> Option<Vec<u8>> {
    if take_len(&mut delta)? != base.len() {
        return None;
    }
    let len = take_len(&mut delta)?;
    let mut out = Vec::with_capacity(len.min(1 << 24));
    while let Some((op, rest)) = delta.split_first() {
        delta = rest;
        let bytes = if op & 0x80 == 0 {
            let (bytes, rest) = delta.split_at_checked(usize::from(*op))?;
            delta = rest;
            // Zero is reserved for later versions of the format.
            if bytes.is_empty() {
                return None;
            }
            bytes
        } else {
            let mut number = |flags: &[u8]| -> Option<usize> {
                let mut n = 0;
                for (place, _) in flags.iter().enumerate().filter(|(_, flag)| op & **flag != 0) {
                    let (byte, rest) = delta.split_first()?;
                    delta = rest;
                    n |= usize::from(*byte) << (8 * place);
                }
                Some(n)
            };
            let from = number(&[1, 2, 4, 8])?;
            let size = number(&[0x10, 0x20, 0x40])?;
            base.get(from..)?.get(..if size == 0 { COPY } else { size })?
        };
        if out.len() + bytes.len() > len {
            return None;
        }
        out.extend_from_slice(bytes);
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
#[path = "delta_tests.rs"]
mod tests;
