//! Timed pictures as an animated PNG. Each frame after the first holds only the part that changed.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use png::{BlendOp, DisposeOp};

use crate::raster::Image;

/// A part of the picture that is drawn over what was there.
struct Frame {
    x: u32,
    y: u32,
    part: Image,
    time: Duration,
}

/// The pictures so far.
#[derive(Default)]
pub(crate) struct Animation {
    frames: Vec<Frame>,
    last: Option<Image>,
}

impl Animation {
    /// Adds a picture. A picture that equals its predecessor makes that one longer.
    pub(crate) fn add(&mut self, image: Image, time: Duration) {
        let changed = match &self.last {
            None => Some((0, 0, image.width, image.height)),
            Some(last) => difference(last, &image),
        };
        match (changed, self.frames.last_mut()) {
            (None, Some(frame)) => frame.time += time,
            (None, None) => {}
            (Some((x, y, width, height)), _) => {
                self.frames.push(Frame { x, y, part: image.part(x, y, width, height), time });
                self.last = Some(image);
            }
        }
    }

    /// How many frames, and how long it takes.
    pub(crate) fn length(&self) -> (usize, Duration) {
        (self.frames.len(), self.frames.iter().map(|f| f.time).sum())
    }

    /// Writes it; it is played again and again.
    ///
    /// # Errors
    /// When there is no picture, or the file cannot be written.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let first = self.frames.first().context("an animation without pictures")?;
        let out = BufWriter::new(File::create(file).with_context(|| file.display().to_string())?);
        let mut encoder = png::Encoder::new(out, first.part.width, first.part.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::Balanced);
        encoder.set_animated(self.frames.len() as u32, 0)?;
        encoder.set_blend_op(BlendOp::Source)?;
        encoder.set_dispose_op(DisposeOp::None)?;
        let mut writer = encoder.write_header()?;
        for (n, frame) in self.frames.iter().enumerate() {
            if n > 0 {
                // The frame before may lie elsewhere and be larger.
                writer.reset_frame_position()?;
                writer.set_frame_dimension(frame.part.width, frame.part.height)?;
                writer.set_frame_position(frame.x, frame.y)?;
            }
            let ms = u16::try_from(frame.time.as_millis()).unwrap_or(u16::MAX);
            writer.set_frame_delay(ms, 1000)?;
            writer.write_image_data(&frame.part.pixels)?;
        }
        writer.finish()?;
        Ok(())
    }
}

/// The smallest part that holds all pixels in which two pictures of one size differ: left, top, width, height.
fn difference(a: &Image, b: &Image) -> Option<(u32, u32, u32, u32)> {
    let row = (a.width * 3) as usize;
    let rows = || a.pixels.chunks(row).zip(b.pixels.chunks(row)).enumerate().filter(|(_, (a, b))| a != b);
    let top = rows().next()?.0 as u32;
    let bottom = rows().next_back()?.0 as u32;
    let (mut left, mut right) = (a.width, 0);
    for (_, (a, b)) in rows() {
        let mut pixels = a.chunks(3).zip(b.chunks(3)).enumerate().filter(|(_, (a, b))| a != b);
        let from = pixels.next().map_or(0, |(n, _)| n as u32);
        left = left.min(from);
        right = right.max(pixels.next_back().map_or(from, |(n, _)| n as u32));
    }
    Some((left, top, right + 1 - left, bottom + 1 - top))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(dots: &[(u32, u32)]) -> Image {
        let (width, height) = (6, 4);
        let mut pixels = vec![0; (width * height * 3) as usize];
        for (x, y) in dots {
            pixels[((y * width + x) * 3) as usize] = 255;
        }
        Image { width, height, pixels }
    }

    #[test]
    fn a_frame_holds_only_what_changed() {
        assert_eq!(difference(&image(&[]), &image(&[(2, 1), (4, 3)])), Some((2, 1, 3, 3)));
        assert_eq!(difference(&image(&[(5, 3)]), &image(&[])), Some((5, 3, 1, 1)));
        assert_eq!(difference(&image(&[(1, 1)]), &image(&[(1, 1)])), None);
    }

    #[test]
    fn the_same_picture_makes_its_frame_longer() {
        let mut animation = Animation::default();
        let second = Duration::from_secs(1);
        for dots in [&[][..], &[], &[(1, 1)], &[(1, 1)]] {
            animation.add(image(dots), second);
        }
        assert_eq!(animation.length(), (2, 4 * second));
    }
}
