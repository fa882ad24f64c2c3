//! Cells to pixels.

use ratatui::buffer::Cell as ScreenCell;
use ratatui::style::Modifier;
use tiller_tui::gallery::{Look, Picture, Rgb};
use unicode_width::UnicodeWidthStr;

use crate::font::{Face, Fonts};
use crate::shapes::{self, Cell, Pen};

/// Pixels of a cell at scale 1.
const WIDTH: u32 = 9;
const HEIGHT: u32 = 19;

/// A picture of pixels, three bytes each, row by row.
#[derive(Clone, PartialEq)]
pub(crate) struct Image {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<u8>,
}

impl Image {
    /// A part of it, which must lie inside.
    pub(crate) fn part(&self, x: u32, y: u32, width: u32, height: u32) -> Self {
        let rows = (y..y + height).flat_map(|row| {
            let from = ((row * self.width + x) * 3) as usize;
            self.pixels[from..from + (width * 3) as usize].iter().copied()
        });
        Self { width, height, pixels: rows.collect() }
    }

    fn blend(&mut self, x: i64, y: i64, colour: Rgb, alpha: u8) {
        if x < 0 || y < 0 || x >= i64::from(self.width) || y >= i64::from(self.height) {
            return;
        }
        let at = ((y * i64::from(self.width) + x) * 3) as usize;
        let Some([r, g, b]) = self.pixels.get_mut(at..at + 3) else { return };
        for (old, new) in [(r, colour.0), (g, colour.1), (b, colour.2)] {
            let (o, n, a) = (u32::from(*old), u32::from(new), u32::from(alpha));
            *old = ((o * (255 - a) + n * a + 127) / 255) as u8;
        }
    }
}

/// Draws into one cell.
struct CellPen<'a> {
    image: &'a mut Image,
    x: u32,
    y: u32,
    colour: Rgb,
}

impl Pen for CellPen<'_> {
    fn fill(&mut self, x0: u32, y0: u32, x1: u32, y1: u32, alpha: u8) {
        if alpha == 255 {
            let (r, g, b) = self.colour;
            for y in self.y + y0..(self.y + y1).min(self.image.height) {
                let row = y * self.image.width;
                let (from, to) = (row + self.x + x0, row + (self.x + x1).min(self.image.width));
                let row = self.image.pixels.get_mut((from * 3) as usize..(to * 3) as usize);
                for pixel in row.into_iter().flat_map(|r| r.chunks_exact_mut(3)) {
                    pixel.copy_from_slice(&[r, g, b]);
                }
            }
            return;
        }
        for y in y0..y1 {
            for x in x0..x1 {
                self.image.blend(i64::from(self.x + x), i64::from(self.y + y), self.colour, alpha);
            }
        }
    }
}

/// Draws pictures at one scale.
pub(crate) struct Raster {
    fonts: Fonts,
    cell: Cell,
}

impl Raster {
    /// `scale`: 1 for a cell of 9 by 19 pixels.
    ///
    /// # Errors
    /// When there is no font.
    pub(crate) fn new(scale: u32) -> anyhow::Result<Self> {
        let cell = Cell { width: WIDTH * scale, height: HEIGHT * scale, line: scale };
        Ok(Self { fonts: Fonts::find(cell.width, cell.height)?, cell })
    }

    /// The pixels of a picture.
    pub(crate) fn draw(&mut self, picture: &Picture, look: &Look) -> Image {
        let area = picture.cells.area;
        let (width, height) =
            (u32::from(area.width) * self.cell.width, u32::from(area.height) * self.cell.height);
        let mut image = Image { width, height, pixels: vec![0; (width * height * 3) as usize] };
        for y in area.top()..area.bottom() {
            let mut x = area.left();
            while x < area.right() {
                let Some(cell) = picture.cells.cell((x, y)) else { break };
                let columns = (cell.symbol().width() as u16).clamp(1, 2);
                let here = picture.cursor.is_some_and(|c| c.x == x && c.y == y);
                let place = (u32::from(x) * self.cell.width, u32::from(y) * self.cell.height);
                self.cell(&mut image, place, u32::from(columns), cell, here, look);
                x += columns;
            }
        }
        image
    }

    fn cell(
        &mut self,
        image: &mut Image,
        (x, y): (u32, u32),
        columns: u32,
        cell: &ScreenCell,
        cursor: bool,
        look: &Look,
    ) {
        let (mut fg, mut bg) = look.seen(cell.fg, cell.bg, cell.modifier);
        if cursor {
            // On a row of the text's own colour it is seen by the other way round.
            (fg, bg) = if bg == look.text() { (bg, fg) } else { (look.ground().0, look.text()) };
        }
        let Cell { width, height, line } = self.cell;
        CellPen { image, x, y, colour: bg }.fill(0, 0, width * columns, height, 255);
        let face = Face {
            bold: cell.modifier.contains(Modifier::BOLD),
            italic: cell.modifier.contains(Modifier::ITALIC),
        };
        if !cell.modifier.contains(Modifier::HIDDEN) {
            for c in cell.symbol().chars().filter(|c| *c != ' ') {
                self.character(image, (x, y), c, face, fg);
            }
        }
        let baseline = self.fonts.baseline();
        let mut across = |row: u32| {
            CellPen { image, x, y, colour: fg }.fill(0, row, width * columns, row + line, 255);
        };
        if cell.modifier.contains(Modifier::UNDERLINED) {
            across((baseline + 2 * line).min(height - line));
        }
        if cell.modifier.contains(Modifier::CROSSED_OUT) {
            across(height / 2);
        }
    }

    fn character(&mut self, image: &mut Image, (x, y): (u32, u32), c: char, face: Face, colour: Rgb) {
        if shapes::draw(c, self.cell, &mut CellPen { image, x, y, colour }) {
            return;
        }
        let coverage = self.fonts.coverage(c, face);
        if coverage.width == 0 {
            return;
        }
        for (row, alphas) in coverage.alpha.chunks(coverage.width).enumerate() {
            for (column, alpha) in alphas.iter().enumerate().filter(|(_, a)| **a > 0) {
                let px = i64::from(x) + i64::from(coverage.x) + column as i64;
                let py = i64::from(y) + i64::from(coverage.y) + row as i64;
                image.blend(px, py, colour, *alpha);
            }
        }
    }
}
