//! The screen of a program that runs in one of Tiller's terminals, as plain cells without escape sequences.

use serde::{Deserialize, Serialize};

/// The present content of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    pub cols: u16,
    /// From top to bottom. Each row is a list of runs of equal style, without blank cells at the end.
    pub rows: Vec<Vec<GridRun>>,
    /// Column and row from 0; `None`: hidden.
    pub cursor: Option<(u16, u16)>,
    /// As the program set it; printable characters only.
    #[serde(default)]
    pub title: String,
}

/// Neighbouring cells of one style, without control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridRun {
    pub text: String,
    #[serde(default)]
    pub style: GridStyle,
}

/// How cells look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GridStyle {
    pub fg: Hue,
    pub bg: Hue,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub reverse: bool,
    pub strike: bool,
}

/// A colour as the program named it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hue {
    /// The terminal's default colour.
    #[default]
    Default,
    /// 0 to 255: index into the xterm palette.
    Index(u8),
    Rgb(u8, u8, u8),
}

impl Grid {
    /// The text alone, one line for each row, without blank lines at the end.
    pub fn text(&self) -> String {
        let rows = self.rows.iter().map(|runs| runs.iter().map(|r| r.text.as_str()).collect::<String>());
        let mut text = rows.collect::<Vec<_>>().join("\n");
        text.truncate(text.trim_end().len());
        text
    }
}
