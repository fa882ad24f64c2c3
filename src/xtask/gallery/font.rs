//! The font: four faces of a monospace family of this machine, and others for characters that it lacks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ab_glyph::{Font as _, FontVec, Glyph, PxScale, ScaleFont as _, point};
use anyhow::{Context, Result, bail};

/// Families: file names of the regular, bold, italic and bold italic face.
const FAMILIES: &[[&str; 4]] = &[
    [
        "DejaVuSansMono.ttf",
        "DejaVuSansMono-Bold.ttf",
        "DejaVuSansMono-Oblique.ttf",
        "DejaVuSansMono-BoldOblique.ttf",
    ],
    [
        "LiberationMono-Regular.ttf",
        "LiberationMono-Bold.ttf",
        "LiberationMono-Italic.ttf",
        "LiberationMono-BoldItalic.ttf",
    ],
];

/// Folders in which distributions and macOS keep them.
const FOLDERS: &[&str] = &[
    "/usr/share/fonts/truetype/dejavu",
    "/usr/share/fonts/truetype/liberation",
    "/usr/share/fonts/dejavu-sans-mono-fonts",
    "/usr/share/fonts/dejavu",
    "/usr/share/fonts/TTF",
    "/usr/share/fonts/liberation-mono",
    "/usr/local/share/fonts",
    "/opt/homebrew/share/fonts",
    "/Library/Fonts",
];

/// One of the four faces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Face {
    pub(crate) bold: bool,
    pub(crate) italic: bool,
}

/// How much of each pixel a character covers: 0 to 255, row by row, with the place of the first pixel in the cell.
#[derive(Default)]
pub(crate) struct Coverage {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: usize,
    pub(crate) alpha: Vec<u8>,
}

/// The faces at one size, with the characters that were drawn already.
pub(crate) struct Fonts {
    faces: [FontVec; 4],
    /// Fonts for other characters, by file.
    others: HashMap<PathBuf, Option<FontVec>>,
    scale: PxScale,
    baseline: f32,
    known: HashMap<(char, Face), Coverage>,
}

impl Fonts {
    /// The first family that is here, so that a character is `columns` pixels wide and stands in the middle of `rows`.
    ///
    /// # Errors
    /// When no family is found, or a file of it is no font.
    pub(crate) fn find(columns: u32, rows: u32) -> Result<Self> {
        let Some(files) = FAMILIES.iter().find_map(family) else {
            bail!(
                "no monospace font was found. Install DejaVu Sans Mono: apt install fonts-dejavu-core, \
                 dnf install dejavu-sans-mono-fonts, pacman -S ttf-dejavu, brew install --cask font-dejavu"
            );
        };
        let [regular, bold, italic, both] = files;
        let faces = [load(&regular)?, load(&bold)?, load(&italic)?, load(&both)?];
        // A scale of 1 pixel tells how wide a character is.
        let one = faces[0].as_scaled(PxScale::from(1.0));
        let scale = PxScale::from(columns as f32 / one.h_advance(one.glyph_id('m')));
        let sized = faces[0].as_scaled(scale);
        let baseline = ((rows as f32 - sized.height()) / 2.0 + sized.ascent()).round();
        Ok(Self { faces, others: HashMap::new(), scale, baseline, known: HashMap::new() })
    }

    /// The row of pixels on which characters stand.
    pub(crate) fn baseline(&self) -> u32 {
        self.baseline as u32
    }

    /// The pixels of a character.
    pub(crate) fn coverage(&mut self, c: char, face: Face) -> &Coverage {
        if !self.known.contains_key(&(c, face)) {
            let coverage = self.draw(c, face);
            self.known.insert((c, face), coverage);
        }
        &self.known[&(c, face)]
    }

    fn draw(&mut self, c: char, face: Face) -> Coverage {
        let own = &self.faces[usize::from(face.bold) + 2 * usize::from(face.italic)];
        if own.glyph_id(c).0 != 0 {
            return outline(own, c, self.scale, self.baseline);
        }
        let file = other(c);
        let font = file.and_then(|f| self.others.entry(f.clone()).or_insert_with(|| load(&f).ok()).as_ref());
        match font.filter(|f| f.glyph_id(c).0 != 0) {
            Some(font) => outline(font, c, self.scale, self.baseline),
            None => outline(own, c, self.scale, self.baseline),
        }
    }
}

fn outline(font: &FontVec, c: char, scale: PxScale, baseline: f32) -> Coverage {
    let glyph: Glyph = font.glyph_id(c).with_scale_and_position(scale, point(0.0, baseline));
    let Some(outlined) = font.outline_glyph(glyph) else { return Coverage::default() };
    let bounds = outlined.px_bounds();
    let (width, height) = (bounds.width().ceil() as usize, bounds.height().ceil() as usize);
    let mut alpha = vec![0; width * height];
    outlined.draw(|x, y, a| {
        if let Some(cell) = alpha.get_mut(y as usize * width + x as usize) {
            *cell = (a.clamp(0.0, 1.0) * 255.0).round() as u8;
        }
    });
    Coverage { x: bounds.min.x.floor() as i32, y: bounds.min.y.floor() as i32, width, alpha }
}

fn load(file: &Path) -> Result<FontVec> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    FontVec::try_from_vec(bytes).with_context(|| format!("{} is no font", file.display()))
}

/// The four files of a family, when all are in one folder.
fn family(names: &[&str; 4]) -> Option<[PathBuf; 4]> {
    let home = std::env::var_os("HOME").map(|h| Path::new(&h).join(".local/share/fonts"));
    let folders = FOLDERS.iter().map(PathBuf::from).chain(home);
    // Where fontconfig knows it, and no folder of the list holds it.
    let told = matched(names[0]).and_then(|file| Some(file.parent()?.to_owned()));
    folders
        .chain(told)
        .map(|folder| names.map(|name| folder.join(name)))
        .find(|files| files.iter().all(|f| f.exists()))
}

/// The font that fontconfig names for a file name or a pattern; `None`: there is no fontconfig.
fn matched(pattern: &str) -> Option<PathBuf> {
    let out = Command::new("fc-match").args(["-f", "%{file}", pattern]).output().ok()?;
    let file = PathBuf::from(String::from_utf8(out.stdout).ok()?);
    file.exists().then_some(file)
}

/// A font that has this character.
fn other(c: char) -> Option<PathBuf> {
    matched(&format!("monospace:charset={:x}", u32::from(c)))
}
