//! Pictures in cells: two pixels one above the other in each, or a character as dense as they are dark
//! where there are no colours.

use ratatui::style::{Color, Style};

use super::{Depth, Theme};

/// Red, green, blue, opacity.
type Pixel = [u8; 4];

/// Characters from the ground to the most ink.
const RAMP: &[&str] = &[" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"];

impl Theme {
    /// Returns what a cell shows of the pixels `top` and `bottom`. `ascii`: nothing but ASCII.
    pub fn cell(&self, top: [u8; 4], bottom: [u8; 4], ascii: bool) -> (&'static str, Style) {
        let (top, bottom) = (self.over(top), self.over(bottom));
        if ascii || self.depth == Depth::Mono {
            let light = (luma(top) + luma(bottom)) / 2;
            // On a dark ground what is light is ink.
            let ink = if self.light { 255 - light } else { light };
            return (RAMP[ink as usize * (RAMP.len() - 1) / 255], Style::new());
        }
        let colour = |p: [u8; 3]| Color::Rgb(p[0], p[1], p[2]);
        ("▀", self.depth.fit(Style::new().fg(colour(top)).bg(colour(bottom))))
    }

    /// Returns what pictures are laid over: white or black.
    pub(crate) fn ground(&self) -> [u8; 3] {
        if self.light { [255; 3] } else { [0; 3] }
    }

    /// Laid over the theme's ground: white or black.
    fn over(&self, p: Pixel) -> [u8; 3] {
        let ground = if self.light { 255 } else { 0 };
        let a = u32::from(p[3]);
        let mix = |c: u8| ((u32::from(c) * a + ground * (255 - a)) / 255) as u8;
        [mix(p[0]), mix(p[1]), mix(p[2])]
    }
}

/// How light it is, 0 to 255 (ITU-R BT.601 weights).
fn luma(p: [u8; 3]) -> u32 {
    (u32::from(p[0]) * 299 + u32::from(p[1]) * 587 + u32::from(p[2]) * 114) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_become_what_the_terminal_can_show() {
        let (white, black, clear) = ([255, 255, 255, 255], [0, 0, 0, 255], [9, 9, 9, 0]);
        let full = Theme::built_in("catppuccin-mocha", Depth::True).unwrap();
        let (symbol, style) = full.cell(white, black, false);
        assert_eq!(
            (symbol, style.fg, style.bg),
            ("▀", Some(Color::Rgb(255, 255, 255)), Some(Color::Rgb(0, 0, 0)))
        );
        assert_eq!(full.cell(clear, clear, false).1.fg, Some(Color::Rgb(0, 0, 0)), "what is clear is ground");
        let few = Theme::built_in("ansi", Depth::Sixteen).unwrap();
        assert!(!matches!(few.cell(white, black, false).1.fg, Some(Color::Rgb(..) | Color::Indexed(_))));
        let none = Theme::built_in("mono", Depth::Mono).unwrap();
        assert_eq!(none.cell(white, white, false), ("@", Style::new()));
        assert_eq!(none.cell(black, black, false), (" ", Style::new()));
        assert_eq!(full.cell(white, white, true).0, "@", "ASCII only");
        let light = Theme::built_in("catppuccin-latte", Depth::True).unwrap();
        assert_eq!(light.cell(white, white, true).0, " ", "white on white is no ink");
    }
}
