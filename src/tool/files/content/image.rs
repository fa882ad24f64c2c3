//! Images for the model: attached when a vendor would take them, else described.

use std::io::Cursor;

use base64::Engine as _;
use image::{ImageFormat, ImageReader, Limits};
use tiller_protocol::Part;

use crate::output::human;

/// Bytes and pixels of one side that every vendor takes.
const BYTES_MAX: usize = 3_750_000;
const SIDE_MAX: u32 = 8_000;

/// The media type, by the first bytes; `None`: not an image that models take.
pub(crate) fn media_type(head: &[u8]) -> Option<&'static str> {
    match image::guess_format(head).ok()? {
        ImageFormat::Png => Some("image/png"),
        ImageFormat::Jpeg => Some("image/jpeg"),
        ImageFormat::Gif => Some("image/gif"),
        ImageFormat::WebP => Some("image/webp"),
        _ => None,
    }
}

/// Whether the file is complete; a file that is still being written is not.
fn ends(media_type: &str, bytes: &[u8]) -> bool {
    match media_type {
        "image/png" => bytes.windows(4).rev().any(|w| w == b"IEND"),
        "image/jpeg" => bytes.windows(2).rev().any(|w| w == b"\xff\xd9"),
        "image/webp" => bytes
            .get(4..8)
            .and_then(|n| n.try_into().ok())
            .is_some_and(|n| u32::from_le_bytes(n) as usize + 8 <= bytes.len()),
        _ => true,
    }
}

/// Media type, width and height of an image that models take; `None`: it is none. Only its header is decoded.
pub fn info(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
    attachable(bytes).ok()
}

/// Media type, width and height of an image that can be attached. Only its header is decoded.
///
/// # Errors
/// Why it cannot be; a sentence without a full stop.
pub fn attachable(bytes: &[u8]) -> Result<(&'static str, u32, u32), String> {
    let Some(media_type) = media_type(bytes) else {
        return Err("it is no picture that models take (PNG, JPEG, GIF or WebP)".into());
    };
    let (width, height) =
        sides(media_type, bytes).ok_or_else(|| format!("it is a damaged {media_type} file"))?;
    if bytes.len() > BYTES_MAX || width.max(height) > SIDE_MAX {
        return Err(format!(
            "it has {width}x{height} pixels and {}, too large to attach (at most {} and {SIDE_MAX} pixels a side)",
            human(bytes.len() as u64),
            human(BYTES_MAX as u64)
        ));
    }
    Ok((media_type, width, height))
}

/// Width and height of an image; `None`: it is damaged. Only its header is decoded.
fn sides(media_type: &str, bytes: &[u8]) -> Option<(u32, u32)> {
    let mut reader = ImageReader::new(Cursor::new(bytes));
    reader.limits(Limits::default());
    let sides = reader.with_guessed_format().ok().and_then(|r| r.into_dimensions().ok());
    sides.filter(|_| ends(media_type, bytes))
}

/// The parts for an image of `media_type`. Only its header is decoded.
pub(crate) fn parts(name: &str, media_type: &str, bytes: &[u8]) -> Vec<Part> {
    let size = human(bytes.len() as u64);
    let Some((width, height)) = sides(media_type, bytes) else {
        return vec![Part::Text { text: format!("{name}: damaged {media_type} file, {size}; not attached") }];
    };
    let text = format!("{name}: {media_type}, {width}x{height} pixels, {size}");
    if bytes.len() > BYTES_MAX || width.max(height) > SIDE_MAX {
        let text = format!(
            "{text}; too large to attach (at most {} and {SIDE_MAX} pixels a side). Make a smaller copy.",
            human(BYTES_MAX as u64)
        );
        return vec![Part::Text { text }];
    }
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    vec![Part::Text { text }, Part::Image { media_type: media_type.into(), data }]
}
