//! The size of an image, read from its header at the start of the base64 text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Maximum number of JPEG segments before the one with the size.
const SEGMENTS: usize = 200;

/// Length of the longer side in pixels; `None`: the header is not readable.
pub(crate) fn side(data: &str) -> Option<u32> {
    size(data).map(|(width, height)| width.max(height))
}

/// Width and height in pixels of an image, whose base64 text may be cut behind its header; `None`: the header is not
/// readable.
pub fn size(data: &str) -> Option<(u32, u32)> {
    let head = bytes(data, 0, 30)?;
    let at = |n: usize| head.get(n).copied().map(u32::from);
    let little = |n: usize| Some(at(n)? | at(n + 1)? << 8);
    match head.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => {
            let big = |n| Some(at(n)? << 24 | at(n + 1)? << 16 | at(n + 2)? << 8 | at(n + 3)?);
            Some((big(16)?, big(20)?))
        }
        [b'G', b'I', b'F', b'8', ..] => Some((little(6)?, little(8)?)),
        [b'R', b'I', b'F', b'F', ..] => match head.get(12..16)? {
            b"VP8 " => Some((little(26)? & 0x3fff, little(28)? & 0x3fff)),
            b"VP8L" => {
                let bits = little(21)? | little(23)? << 16;
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            b"VP8X" => Some(((little(24)? | at(26)? << 16) + 1, (little(27)? | at(29)? << 16) + 1)),
            _ => None,
        },
        [0xff, 0xd8, ..] => jpeg(data),
        _ => None,
    }
}

/// Walks the segments up to the start of the frame.
fn jpeg(data: &str) -> Option<(u32, u32)> {
    let mut at = 2;
    for _ in 0..SEGMENTS {
        let head = bytes(data, at, 9)?;
        let two = |n: usize| Some(u32::from(*head.get(n)?) << 8 | u32::from(*head.get(n + 1)?));
        match (*head.first()?, *head.get(1)?) {
            // Fill bytes.
            (0xff, 0xff) => at += 1,
            (0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf) => {
                return Some((two(7)?, two(5)?));
            }
            (0xff, _) => at += 2 + two(2)? as usize,
            _ => return None,
        }
    }
    None
}

/// At most `len` bytes from the byte `at` on.
fn bytes(data: &str, at: usize, len: usize) -> Option<Vec<u8>> {
    let from = at / 3 * 4;
    let to = (at.checked_add(len)?.div_ceil(3) * 4).min(data.len());
    let decoded = STANDARD.decode(data.as_bytes().get(from..to)?).ok()?;
    let found = decoded.get(at % 3..)?;
    Some(found[..found.len().min(len)].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<u32> {
        side(&STANDARD.encode(bytes))
    }

    #[test]
    fn the_side_is_read_from_the_header_of_each_format() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x09\x60\0\0\0\x0a\x08\x02\0\0\0";
        assert_eq!(of(png), Some(2400));
        assert_eq!(of(b"GIF89a\x40\x01\x20\x03"), Some(800));
        assert_eq!(of(b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xc8\x00"), Some(320));
        assert_eq!(of(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\x41\x06\x00"), Some(320));
        assert_eq!(of(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x3f\x01\0\x1f\x03\0"), Some(800));
        let mut jpeg = b"\xff\xd8\xff\xe1\x01\x02".to_vec();
        jpeg.extend([0; 256]);
        jpeg.extend(b"\xff\xff\xc2\0\x0b\x08\x09\x60\x00\x10\x03");
        assert_eq!(of(&jpeg), Some(2400));
        for broken in [&b"icon"[..], b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe1\0\0", b"\xff\xd8\xff"] {
            assert_eq!(of(broken), None, "{broken:?}");
        }
        assert_eq!(side("not base64 at all, for certain, no"), None);
    }
}
