//! Pictures as the terminal's own graphics: Kitty's protocol, iTerm2's, or sixels. These sequences are made of pixels
//! that were decoded here, never of what a file or a model says.

use std::fmt::Write as _;
use std::io::Cursor;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat, RgbImage, RgbaImage, imageops};
use ratatui::layout::Rect;

use super::sixel;

/// How a terminal shows pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Kitty,
    Iterm,
    Sixel,
}

/// Asks for Kitty's protocol: a picture of one pixel that is not to be shown. Terminals without it do not answer.
pub(crate) const ASK_KITTY: &str = "\x1b_Gi=7417,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\";

/// Number of our picture in Kitty's protocol; one is shown at a time.
const ID: u32 = 7417;
/// Bytes of base64 in a sequence of Kitty's protocol.
const CHUNK: usize = 4096;

/// Which picture, and the cells that it covers.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) image: Arc<RgbaImage>,
    pub(crate) place: Rect,
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.image, &other.image) && self.place == other.place
    }
}

/// A picture in the terminal's form.
pub struct EncodedPicture {
    pub(crate) of: Shown,
    /// `None`: it cannot be encoded.
    pub(crate) bytes: Option<String>,
}

/// Where a picture stands, and how large its cells are in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) cell: (u16, u16),
}

/// The bytes that show `image` in a frame whose first cell is that of the cursor. Transparent pixels get the colour
/// `ground`. Slow: call it from another thread. `None`: it cannot be encoded.
pub(crate) fn encode(image: &RgbaImage, frame: Frame, ground: [u8; 3], protocol: Protocol) -> Option<String> {
    let canvas = canvas(image, frame, ground);
    match protocol {
        Protocol::Sixel => Some(sixel::encode(&canvas)),
        Protocol::Kitty => Some(kitty(&STANDARD.encode(png(&canvas)?), frame)),
        Protocol::Iterm => {
            let png = png(&canvas)?;
            let Frame { columns, rows, .. } = frame;
            Some(format!(
                "\x1b]1337;File=inline=1;size={};width={columns};height={rows};preserveAspectRatio=0;doNotMoveCursor=1:{}\x07",
                png.len(),
                STANDARD.encode(&png)
            ))
        }
    }
}

/// The bytes that remove what [`encode`] shows, where a cleared screen does not.
pub(crate) fn remove(protocol: Protocol) -> String {
    match protocol {
        Protocol::Kitty => format!("\x1b_Ga=d,d=I,i={ID},q=2\x1b\\"),
        Protocol::Iterm | Protocol::Sixel => String::new(),
    }
}

/// The image in the middle of its whole cells.
fn canvas(image: &RgbaImage, frame: Frame, ground: [u8; 3]) -> RgbImage {
    let width = (u32::from(frame.columns) * u32::from(frame.cell.0)).max(1);
    let height = (u32::from(frame.rows) * u32::from(frame.cell.1)).max(1);
    let (w, h) = (image.width().max(1), image.height().max(1));
    // As whole fractions, so that nothing is stretched.
    let wide = u64::from(w) * u64::from(height) > u64::from(h) * u64::from(width);
    let scaled =
        |a: u32, num: u32, den: u32| ((u64::from(a) * u64::from(num) / u64::from(den)) as u32).max(1);
    let (w, h) = if wide {
        (width, scaled(h, width, w).min(height))
    } else {
        (scaled(w, height, h).min(width), height)
    };
    let small = imageops::thumbnail(image, w, h);
    let (left, top) = ((width - w) / 2, (height - h) / 2);
    let mut canvas = RgbImage::from_pixel(width, height, image::Rgb(ground));
    for (x, y, pixel) in small.enumerate_pixels() {
        let a = u32::from(pixel.0[3]);
        let mix = |n: usize| ((u32::from(pixel.0[n]) * a + u32::from(ground[n]) * (255 - a)) / 255) as u8;
        canvas.put_pixel(left + x, top + y, image::Rgb([mix(0), mix(1), mix(2)]));
    }
    canvas
}

fn png(image: &RgbImage) -> Option<Vec<u8>> {
    let mut out = Cursor::new(Vec::new());
    image.write_to(&mut out, ImageFormat::Png).ok()?;
    Some(out.into_inner())
}

/// In pieces; the terminal says nothing of errors (`q=2`) and leaves the cursor where it is (`C=1`).
fn kitty(data: &str, frame: Frame) -> String {
    let mut out = String::with_capacity(data.len() + data.len() / CHUNK * 16 + 128);
    let mut rest = data;
    let mut first = true;
    while first || !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(CHUNK));
        let more = u8::from(!after.is_empty());
        if first {
            let Frame { columns, rows, .. } = frame;
            let _ = write!(out, "\x1b_Ga=T,f=100,t=d,i={ID},p=1,c={columns},r={rows},C=1,q=2,m={more};");
        } else {
            let _ = write!(out, "\x1b_Gm={more},q=2;");
        }
        out.push_str(piece);
        out.push_str("\x1b\\");
        (rest, first) = (after, false);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { columns: 10, rows: 4, cell: (8, 16) };

    fn picture() -> RgbaImage {
        RgbaImage::from_fn(160, 80, |x, y| image::Rgba([x as u8, (y * 3) as u8, (x * y) as u8, 255]))
    }

    #[test]
    fn kittys_pieces_are_those_of_a_png_in_the_frame() {
        let noise = RgbaImage::from_fn(400, 300, |x, y| {
            let n = x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503).rotate_left(7);
            image::Rgba([n as u8, (n >> 8) as u8, (n >> 16) as u8, 255])
        });
        let out = encode(&noise, FRAME, [0; 3], Protocol::Kitty).unwrap();
        let mut data = String::new();
        let pieces: Vec<&str> = out.split_terminator("\x1b\\").collect();
        assert!(pieces.len() > 1);
        for (n, piece) in pieces.iter().enumerate() {
            let (control, base64) = piece.strip_prefix("\x1b_G").unwrap().split_once(';').unwrap();
            let more = if n + 1 < pieces.len() { "m=1" } else { "m=0" };
            assert!(control.split(',').any(|c| c == more), "{control}");
            assert_eq!(n == 0, control.contains("a=T,f=100,t=d,i=7417,p=1,c=10,r=4,C=1,q=2"), "{control}");
            assert!(base64.len() <= CHUNK);
            data.push_str(base64);
        }
        let png = image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap();
        assert_eq!((png.width(), png.height()), (80, 64));
    }

    #[test]
    fn iterms_sequence_holds_a_png_of_its_size() {
        let out = encode(&picture(), FRAME, [0; 3], Protocol::Iterm).unwrap();
        let (head, data) = out.strip_suffix('\x07').unwrap().split_once(':').unwrap();
        let png = STANDARD.decode(data).unwrap();
        assert_eq!(
            head,
            format!(
                "\x1b]1337;File=inline=1;size={};width=10;height=4;preserveAspectRatio=0;doNotMoveCursor=1",
                png.len()
            )
        );
        assert!(image::load_from_memory(&png).is_ok());
    }

    #[test]
    fn what_is_transparent_gets_the_ground_and_nothing_is_stretched() {
        let mut image = RgbaImage::from_pixel(40, 40, image::Rgba([200, 0, 0, 255]));
        image.put_pixel(20, 20, image::Rgba([0, 0, 0, 0]));
        let canvas = canvas(&image, FRAME, [1, 2, 3]);
        assert_eq!(canvas.dimensions(), (80, 64));
        assert_eq!(canvas.get_pixel(0, 30).0, [1, 2, 3], "a margin");
        assert_eq!(canvas.get_pixel(8, 0).0, [200, 0, 0]);
        assert_eq!(canvas.get_pixel(71, 63).0, [200, 0, 0]);
    }

    /// The only control characters are those of the sequences themselves.
    #[test]
    fn nothing_but_our_sequences_goes_out() {
        for protocol in [Protocol::Kitty, Protocol::Iterm, Protocol::Sixel] {
            let out = encode(&picture(), FRAME, [0; 3], protocol).unwrap();
            let controls = out.bytes().filter(|b| *b < 0x20 || *b >= 0x7f).count();
            let ends = out.matches("\x1b\\").count() + out.matches('\x07').count();
            let begins = out.matches("\x1b_G").count()
                + out.matches("\x1b]1337;").count()
                + out.matches("\x1bP").count();
            assert_eq!(begins, ends, "{protocol:?}");
            assert_eq!(controls, begins + ends, "{protocol:?}");
        }
    }
}
