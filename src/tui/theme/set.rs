//! Which theme is shown: the chosen one, the pair for dark and light, a preview.

use std::path::{Path, PathBuf};

use super::color::{Depth, luminance};
use super::file::{self, BUILT_IN, BuiltIn, ThemeError};
use super::{Theme, base16};
use crate::input::TerminalFact;

/// The two themes of the program's own.
const DARK: &str = "tiller-dark";
const LIGHT: &str = "tiller-light";

/// The themes and the choice among them.
pub struct Themes {
    /// The themes that come with the program.
    shipped: &'static [BuiltIn],
    depth: Depth,
    /// The person's theme files, `NAME.toml`, or base16 schemes as `NAME.yaml`.
    folder: Option<PathBuf>,
    /// Folders with themes of plugins, looked at after the person's.
    plugins: Vec<PathBuf>,
    /// `auto`, or a name.
    choice: String,
    dark: String,
    light: String,
    /// True when the terminal's background is light, as it said.
    is_light: bool,
    /// The terminal has said it, or will say nothing about it.
    answered: bool,
    current: Theme,
    /// Shown instead, while a picker lies over the screen.
    preview: Option<Theme>,
}

impl Themes {
    /// From the settings. An unknown name falls back to `ansi`; the error comes back beside it.
    pub fn new(
        ui: &tiller_config::schema::Ui,
        depth: Depth,
        folder: Option<PathBuf>,
    ) -> (Self, Option<ThemeError>) {
        Self::with_plugins(ui, depth, folder, &[])
    }

    /// As [`Themes::new`], with the `themes` folders of these plugins.
    pub fn with_plugins(
        ui: &tiller_config::schema::Ui,
        depth: Depth,
        folder: Option<PathBuf>,
        plugins: &[PathBuf],
    ) -> (Self, Option<ThemeError>) {
        let mut out = Self {
            shipped: BUILT_IN,
            depth,
            folder,
            plugins: plugins.iter().map(|plugin| plugin.join("themes")).collect(),
            choice: ui.theme.clone(),
            dark: ui.theme_dark.clone(),
            light: ui.theme_light.clone(),
            is_light: false,
            answered: false,
            current: Theme::default(),
            preview: None,
        };
        let error = out.pick().err();
        if error.is_some() {
            out.current = file::built_in("ansi", depth, false).unwrap_or_default();
        }
        (out, error)
    }

    /// One fixed theme, for tests and pictures.
    pub fn fixed(theme: Theme) -> Self {
        Self {
            shipped: BUILT_IN,
            depth: Depth::True,
            folder: None,
            plugins: Vec::new(),
            choice: theme.name.clone(),
            dark: theme.name.clone(),
            light: theme.name.clone(),
            is_light: false,
            answered: true,
            current: theme,
            preview: None,
        }
    }

    /// The same with other themes in place of those of the program.
    #[cfg(test)]
    pub(crate) fn shipping(self, shipped: &'static [BuiltIn]) -> Self {
        Self { shipped, ..self }
    }

    /// The theme to draw with.
    pub fn current(&self) -> &Theme {
        self.preview.as_ref().unwrap_or(&self.current)
    }

    /// The kept choice: `auto` or a name.
    pub fn choice(&self) -> &str {
        &self.choice
    }

    /// Names of all themes, the person's first.
    pub fn names(&self) -> Vec<String> {
        let mut own: Vec<String> = self
            .folders()
            .filter_map(|f| std::fs::read_dir(f).ok())
            .flatten()
            .filter_map(|e| {
                let path = e.ok()?.path();
                let kind = path.extension()?.to_str()?;
                ["toml", "yaml", "yml"]
                    .contains(&kind)
                    .then(|| Some(path.file_stem()?.to_str()?.to_owned()))?
            })
            .collect();
        own.sort();
        own.extend(self.shipped.iter().map(|(n, _)| (*n).to_owned()));
        own.dedup();
        own
    }

    /// Shows a theme: for now (`keep: false`; `None` ends the preview), or for good.
    ///
    /// # Errors
    /// A sentence, when it cannot be read; nothing has changed then.
    pub fn show(&mut self, name: Option<&str>, keep: bool) -> Result<(), String> {
        match name {
            None => self.preview = None,
            Some(name) if keep => {
                let before = std::mem::replace(&mut self.choice, name.to_owned());
                self.preview = None;
                if let Err(e) = self.pick() {
                    self.choice = before;
                    return Err(e.to_string());
                }
            }
            Some("auto") => self.preview = None,
            Some(name) => self.preview = Some(self.load(name, self.depth).map_err(|e| e.to_string())?),
        }
        Ok(())
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// As [`Themes::show`]: the last good theme stays.
    pub fn reload(&mut self, ui: &tiller_config::schema::Ui) -> Result<(), ThemeError> {
        let before = (self.choice.clone(), self.dark.clone(), self.light.clone());
        self.choice.clone_from(&ui.theme);
        self.dark.clone_from(&ui.theme_dark);
        self.light.clone_from(&ui.theme_light);
        self.pick().inspect_err(|_| (self.choice, self.dark, self.light) = before)
    }

    /// Another terminal was attached: it may show fewer colours, and its background is not known yet.
    pub(crate) fn depth(&mut self, depth: Depth) {
        self.depth = depth;
        self.is_light = false;
        self.answered = false;
        // What could be read before and cannot be now stays as it is.
        let _ = self.pick();
    }

    /// The terminal reported its background; true when the theme changes by it.
    pub fn background(&mut self, r: u8, g: u8, b: u8) -> bool {
        self.scheme(luminance((r, g, b)) < 0.4)
    }

    /// The terminal reported its scheme; true when the theme changes by it.
    pub fn scheme(&mut self, dark: bool) -> bool {
        if self.answered && self.is_light != dark {
            return false;
        }
        self.answered = true;
        self.is_light = !dark;
        // Also a theme that was chosen by its name may lie on the terminal's own ground.
        self.pick_again()
    }

    /// The terminal answered a question; true when the theme changes by it.
    pub(crate) fn fact(&mut self, fact: TerminalFact) -> bool {
        match fact {
            TerminalFact::DirectColour(direct) => {
                let depth = if direct { Depth::True } else { Depth::TwoFiftySix };
                // The answer about the background follows, and the theme with it.
                std::mem::replace(&mut self.depth, depth) != depth && self.pick_again()
            }
            // It comes last: what has not been answered never will be.
            TerminalFact::Attributes { .. } => {
                !std::mem::replace(&mut self.answered, true) && self.pick_again()
            }
            TerminalFact::Keyboard(_) | TerminalFact::Mode(..) | TerminalFact::Pictures => false,
        }
    }

    /// True when the looks have changed.
    fn pick_again(&mut self) -> bool {
        let before = self.current.clone();
        self.pick().is_ok()
            && (&before.styles, &before.syntax) != (&self.current.styles, &self.current.syntax)
    }

    fn pick(&mut self) -> Result<(), ThemeError> {
        let name = match self.choice.as_str() {
            "auto" => self.automatic().to_owned(),
            name => name.to_owned(),
        };
        let own = self.choice == "auto" && name == "ansi";
        // The person's own sixteen, whatever else the terminal shows: what programs and pictures are drawn with.
        self.current = self.load(&name, if own { Depth::Sixteen.min(self.depth) } else { self.depth })?;
        self.current.depth = self.depth;
        Ok(())
    }

    /// The theme for this terminal. Until it has said whether it is dark or light, which the first frame does not wait
    /// for, that is the one without grounds of its own: it fits both, and no wrong ground is ever shown.
    fn automatic(&self) -> &str {
        let name = if self.is_light { &self.light } else { &self.dark };
        let open = !self.answered && self.dark != self.light;
        // With so few colours the person's own are better than the nearest ones.
        let own = [DARK, LIGHT].contains(&name.as_str());
        let few = self.depth == Depth::Sixteen && own;
        if self.depth > Depth::Mono && (open || few) { "ansi" } else { name }
    }

    fn load(&self, name: &str, depth: Depth) -> Result<Theme, ThemeError> {
        // Names come from files and pickers: they must not leave the folder.
        let plain = !name.contains(['/', '\\']) && !name.starts_with('.');
        let own = |name: &str| -> Option<(String, String)> {
            self.folders().filter(|_| plain).find_map(|folder| theme_file(folder, name))
        };
        file::load(self.shipped, name, depth, self.is_light, &own)
    }

    /// Folders with theme files, the person's first.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folder.iter().chain(&self.plugins).map(PathBuf::as_path)
    }
}

/// The path and the text of a theme file: `NAME.toml`, or a base16 scheme as `NAME.yaml`.
fn theme_file(folder: &Path, name: &str) -> Option<(String, String)> {
    let path = folder.join(format!("{name}.toml"));
    if let Ok(text) = std::fs::read_to_string(&path) {
        let text = base16::import(&text).unwrap_or(text);
        return Some((path.display().to_string(), text));
    }
    ["yaml", "yml"].into_iter().find_map(|e| {
        let path = folder.join(format!("{name}.{e}"));
        let text = std::fs::read_to_string(&path).ok()?;
        Some((path.display().to_string(), base16::import(&text)?))
    })
}
