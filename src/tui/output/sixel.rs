//! Sixels: six rows of pixels in a band, each colour of a band in a pass of its own. Colours are those of a cube of six
//! steps in each direction; what a pixel loses by that is spread over its neighbours (Floyd-Steinberg).

use std::fmt::Write as _;

use image::RgbImage;

/// Steps of red, green and blue.
const STEPS: usize = 6;
const COLOURS: usize = STEPS * STEPS * STEPS;

/// The sequence for a picture.
pub(super) fn encode(image: &RgbImage) -> String {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let pixels = dithered(image);
    let mut out = String::with_capacity(pixels.len() / 2 + 8_192);
    // Background stays as it is where no pixel is set; one to one pixels.
    let _ = write!(out, "\x1bP0;1;0q\"1;1;{width};{height}");
    let mut used = [false; COLOURS];
    pixels.iter().for_each(|p| used[usize::from(*p)] = true);
    for n in (0..COLOURS).filter(|n| used[*n]) {
        let percent = |step: usize| step * 100 / (STEPS - 1);
        let (r, g, b) = (n / (STEPS * STEPS), n / STEPS % STEPS, n % STEPS);
        let _ = write!(out, "#{n};2;{};{};{}", percent(r), percent(g), percent(b));
    }
    for top in (0..height).step_by(6) {
        band(&pixels, width, top..(top + 6).min(height), &mut out);
        out.push('-');
    }
    out.push_str("\x1b\\");
    out
}

/// One band: for each colour in it the bits of all columns, equal ones counted.
fn band(pixels: &[u8], width: usize, rows: std::ops::Range<usize>, out: &mut String) {
    let mut bits: Vec<Option<Vec<u8>>> = vec![None; COLOURS];
    for (bit, y) in rows.enumerate() {
        for (x, pixel) in pixels[y * width..(y + 1) * width].iter().enumerate() {
            bits[usize::from(*pixel)].get_or_insert_with(|| vec![0; width])[x] |= 1 << bit;
        }
    }
    for (n, columns) in bits.iter().enumerate() {
        let Some(columns) = columns else { continue };
        let _ = write!(out, "#{n}");
        let mut x = 0;
        // Empty columns at the end need not be written.
        let end = columns.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        while x < end {
            let run = columns[x..end].iter().take_while(|b| **b == columns[x]).count();
            let sign = char::from(63 + columns[x]);
            if run > 3 {
                let _ = write!(out, "!{run}{sign}");
            } else {
                out.extend(std::iter::repeat_n(sign, run));
            }
            x += run;
        }
        out.push('$');
    }
}

/// The number of a colour for each pixel.
fn dithered(image: &RgbImage) -> Vec<u8> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let mut out = Vec::with_capacity(width * height);
    // What this row and the next one still have to take, with a column at both sides.
    let mut now = vec![[0i32; 3]; width + 2];
    let mut next = now.clone();
    for y in 0..height {
        for x in 0..width {
            let pixel = image.get_pixel(x as u32, y as u32).0;
            let mut number = 0;
            for c in 0..3 {
                let want = (i32::from(pixel[c]) + now[x + 1][c] / 16).clamp(0, 255);
                let step = (want * (STEPS as i32 - 1) + 127) / 255;
                let lost = want - step * 255 / (STEPS as i32 - 1);
                now[x + 2][c] += lost * 7;
                next[x][c] += lost * 3;
                next[x + 1][c] += lost * 5;
                next[x + 2][c] += lost;
                number = number * STEPS as i32 + step;
            }
            out.push(number as u8);
        }
        std::mem::swap(&mut now, &mut next);
        next.fill([0; 3]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads sixels back, as a terminal does.
    fn decode(text: &str) -> RgbImage {
        let body = text.strip_prefix("\x1bP0;1;0q\"1;1;").unwrap().strip_suffix("\x1b\\").unwrap();
        let (size, mut rest) = body.split_at(body.find('#').unwrap());
        let (w, h) = size.split_once(';').unwrap();
        let mut image = RgbImage::new(w.parse().unwrap(), h.parse().unwrap());
        let mut palette = vec![[0u8; 3]; 256];
        let (mut x, mut top, mut colour) = (0, 0, 0);
        let number = |rest: &mut &str| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let n: u32 = rest[..end].parse().unwrap();
            *rest = &rest[end..];
            n
        };
        while let Some(c) = rest.chars().next() {
            rest = &rest[1..];
            let mut paint = |sign: char, run: u32, x: &mut u32| {
                for _ in 0..run {
                    for bit in (0..6).filter(|bit| (sign as u8 - 63) >> bit & 1 == 1) {
                        image.put_pixel(*x, top + bit, image::Rgb(palette[colour as usize]));
                    }
                    *x += 1;
                }
            };
            match c {
                '#' => {
                    colour = number(&mut rest);
                    if let Some(more) = rest.strip_prefix(";2;") {
                        rest = more;
                        for part in &mut palette[colour as usize] {
                            *part = (number(&mut rest) * 255 / 100) as u8;
                            rest = rest.strip_prefix(';').unwrap_or(rest);
                        }
                    }
                }
                '!' => {
                    let run = number(&mut rest);
                    let sign = rest.chars().next().unwrap();
                    rest = &rest[1..];
                    paint(sign, run, &mut x);
                }
                '$' => x = 0,
                '-' => (x, top) = (0, top + 6),
                sign => paint(sign, 1, &mut x),
            }
        }
        image
    }

    #[test]
    fn sixels_give_the_picture_back() {
        let image = RgbImage::from_fn(61, 47, |x, y| image::Rgb([(x * 4) as u8, (y * 5) as u8, 128]));
        let back = decode(&encode(&image));
        assert_eq!(back.dimensions(), (61, 47));
        // In the mean of a few pixels: each one alone is only near.
        for (cx, cy) in [(5, 5), (30, 20), (50, 40)] {
            for c in 0..3 {
                let mean = |i: &RgbImage| -> i32 {
                    let all = (0..49).map(|n| i32::from(i.get_pixel(cx + n % 7, cy + n / 7 - 3).0[c]));
                    all.sum::<i32>() / 49
                };
                assert!(
                    (mean(&image) - mean(&back)).abs() < 16,
                    "{cx},{cy} {c}: {} {}",
                    mean(&image),
                    mean(&back)
                );
            }
        }
    }

    #[test]
    fn equal_pixels_take_little() {
        let image = RgbImage::from_pixel(800, 600, image::Rgb([255, 255, 255]));
        assert!(encode(&image).len() < 1_500, "{}", encode(&image).len());
    }
}
