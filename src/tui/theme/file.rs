//! Theme files: a palette, looks by role, colours of code; what is missing comes from the theme that the
//! file inherits.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use toml::de::{DeTable, DeValue};

use super::color::{self, Depth};
use super::readable::TEXT;
use super::spec::{self, Spec};
use super::{Role, Theme};
use crate::mistakes::{self, Mistakes};

/// Name and text of a theme that comes with the program.
pub type BuiltIn = (&'static str, &'static str);

/// The themes that come with the program. `base` is what all others inherit in the end.
pub const BUILT_IN: &[BuiltIn] = &[
    ("tiller-dark", include_str!("../../../themes/tiller-dark.toml")),
    ("tiller-light", include_str!("../../../themes/tiller-light.toml")),
    ("ansi", include_str!("../../../themes/ansi.toml")),
    ("mono", include_str!("../../../themes/mono.toml")),
    ("catppuccin-latte", include_str!("../../../themes/catppuccin-latte.toml")),
    ("catppuccin-frappe", include_str!("../../../themes/catppuccin-frappe.toml")),
    ("catppuccin-macchiato", include_str!("../../../themes/catppuccin-macchiato.toml")),
    ("catppuccin-mocha", include_str!("../../../themes/catppuccin-mocha.toml")),
    ("gruvbox-dark", include_str!("../../../themes/gruvbox-dark.toml")),
    ("gruvbox-light", include_str!("../../../themes/gruvbox-light.toml")),
    ("tokyonight", include_str!("../../../themes/tokyonight.toml")),
    ("solarized-dark", include_str!("../../../themes/solarized-dark.toml")),
    ("solarized-light", include_str!("../../../themes/solarized-light.toml")),
    ("high-contrast-dark", include_str!("../../../themes/high-contrast-dark.toml")),
    ("high-contrast-light", include_str!("../../../themes/high-contrast-light.toml")),
    ("colour-blind", include_str!("../../../themes/colour-blind.toml")),
];

const BASE: &str = include_str!("../../../themes/base.toml");

/// Why a theme could not be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("there is no theme '{name}'{near}")]
    Unknown { name: String, near: String },
    /// The first mistake of a file, and the others by their lines.
    #[error("{file}:{line}: {message}{}", mistakes::more(more))]
    Bad { file: String, line: usize, message: String, more: Vec<(usize, String)> },
}

/// A shipped theme.
pub(super) fn built_in(name: &str, depth: Depth, light: bool) -> Result<Theme, ThemeError> {
    load(BUILT_IN, name, depth, light, &|_| None)
}

/// A theme by name. `shipped`: the themes of the program; `own` finds the person's files; `light`: the terminal's own
/// background is light.
pub(super) fn load(
    shipped: &[BuiltIn],
    name: &str,
    depth: Depth,
    light: bool,
    own: &dyn Fn(&str) -> Option<(String, String)>,
) -> Result<Theme, ThemeError> {
    let mut chain = Vec::new();
    let mut next = Some(name.to_owned());
    while let Some(n) = next.take() {
        // A theme of the person's may inherit the shipped one of the same name.
        let again = chain.iter().any(|f: &ThemeFile| f.name == n);
        let found = if again { None } else { own(&n) };
        let mine = found.is_some();
        let (file, text) = match found {
            Some(found) => found,
            None if n == "base" => ("themes/base.toml".into(), BASE.to_owned()),
            None => match shipped.iter().find(|(b, _)| *b == n) {
                Some((b, text)) => (format!("themes/{b}.toml"), (*text).to_owned()),
                None => {
                    let near = crate::keymap::nearest(&n, shipped.iter().map(|(b, _)| *b));
                    return Err(ThemeError::Unknown { name: n, near });
                }
            },
        };
        let mut parsed = ThemeFile::parse(&n, &file, &text);
        if n != "base" {
            let last = parsed.inherits.as_deref().is_none_or(|i| i == "base");
            next = parsed.inherits.clone().or_else(|| Some("base".into()));
            let full = |plain: &str| n != "mono" && n != plain && chain.iter().all(|f| f.name != plain);
            if let Some(plain) = few(depth).filter(|plain| full(plain)) {
                next = if last { Some(plain.into()) } else { next };
                if !mine {
                    parsed.roles.clear();
                    parsed.syntax.clear();
                }
            }
        }
        chain.push(parsed);
        if chain.len() > 8 {
            let message = "themes inherit from each other in a cycle".into();
            return Err(ThemeError::Bad { file, line: 1, message, more: Vec::new() });
        }
    }
    let (full, mixes) = build(name, &chain, depth)?;
    let mut theme = full.clone();
    fit(&mut theme, &mixes);
    super::readable::mend(&mut theme, light, &full);
    Ok(theme)
}

/// The theme whose looks all others have where the terminal shows few colours: grounds and mixes cannot be shown there.
/// The hues remain those of the chosen theme.
fn few(depth: Depth) -> Option<&'static str> {
    match depth {
        Depth::Mono => Some("mono"),
        Depth::Sixteen => Some("ansi"),
        _ => None,
    }
}

/// One parsed file. Values keep their line.
struct ThemeFile {
    name: String,
    file: String,
    inherits: Option<String>,
    light: Option<bool>,
    palette: BTreeMap<String, (usize, String)>,
    roles: BTreeMap<String, (usize, String)>,
    syntax: BTreeMap<String, (usize, String)>,
    wrong: Vec<(usize, String)>,
}

impl ThemeFile {
    /// Names that files of earlier versions use: the background of `text` was the screen's.
    fn earlier_names(&mut self) {
        for (name, role) in Role::EARLIER {
            let Some(look) = self.roles.remove(*name) else { continue };
            let now = Role::ALL.iter().find(|(r, _)| Some(*r) == *role).map(|(_, n)| (*n).to_owned());
            if let Some(now) = now {
                self.roles.entry(now).or_insert(look);
            }
        }
        if let Some(text) = self.roles.get("text").filter(|(_, t)| t.split_whitespace().any(|w| w == "on")) {
            let text = text.clone();
            self.roles.entry("ground".into()).or_insert(text);
        }
    }

    /// Returns what can be read of it; the rest is reported.
    fn parse(name: &str, file: &str, text: &str) -> Self {
        let mut wrong = Mistakes::of(text);
        let mut out = Self {
            name: name.into(),
            file: file.into(),
            inherits: None,
            light: None,
            palette: BTreeMap::new(),
            roles: BTreeMap::new(),
            syntax: BTreeMap::new(),
            wrong: Vec::new(),
        };
        let (doc, errors) = DeTable::parse_recoverable(text);
        if !wrong.syntax(&errors) {
            out.take(doc.get_ref(), &mut wrong);
        }
        if let Some((first, more)) = wrong.end() {
            out.wrong = std::iter::once(first).chain(more).collect();
        }
        out
    }

    fn take(&mut self, doc: &DeTable<'_>, wrong: &mut Mistakes<'_>) {
        for (key, value) in doc {
            let at = key.span().start;
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("inherits", DeValue::String(s)) => self.inherits = Some(s.to_string()),
                ("light", DeValue::Boolean(b)) => self.light = Some(*b),
                (section @ ("palette" | "roles" | "syntax"), DeValue::Table(table)) => {
                    let into = match section {
                        "palette" => &mut self.palette,
                        "roles" => &mut self.roles,
                        _ => &mut self.syntax,
                    };
                    for (k, v) in table {
                        let name = k.get_ref();
                        let DeValue::String(s) = v.get_ref() else {
                            wrong.at(v.span().start, format!("'{name}' must be a string"));
                            continue;
                        };
                        if section == "roles" && Role::of_name(name).is_none() {
                            let near = crate::keymap::nearest(name, Role::ALL.iter().map(|(_, n)| *n));
                            wrong.at(k.span().start, format!("unknown role '{name}'{near}"));
                            continue;
                        }
                        into.insert(name.to_string(), (wrong.line(k.span().start), s.to_string()));
                    }
                    if section == "roles" {
                        self.earlier_names();
                    }
                }
                (name, _) => {
                    let known = ["inherits", "light", "palette", "roles", "syntax"];
                    let near = crate::keymap::nearest(name, known.into_iter());
                    wrong.at(at, format!("'{name}' is unknown or has the wrong type{near}"));
                }
            }
        }
    }
}

/// A background that is a mix: the role, the colour, percent of it.
type Mix = (Role, (u8, u8, u8), u8);

/// The theme in all its colours, and its mixes.
fn build(name: &str, chain: &[ThemeFile], depth: Depth) -> Result<(Theme, Vec<Mix>), ThemeError> {
    let palette = |word: &str| chain.iter().find_map(|f| f.palette.get(word).map(|(_, v)| v.as_str()));
    let style = |text: &str| -> Result<Spec, String> { spec::read(text, &palette) };
    let mut theme = Theme {
        name: name.into(),
        light: chain.iter().find_map(|f| f.light).unwrap_or(false),
        depth,
        styles: [Style::new(); Role::COUNT],
        syntax: Vec::new(),
        lifted: Vec::new(),
    };
    // What each file gets wrong, by its place in the chain.
    let mut wrong: Vec<Vec<(usize, String)>> = chain.iter().map(|f| f.wrong.clone()).collect();
    let mut mixes = Vec::new();
    for (role, word) in Role::ALL {
        let mut found = chain.iter().enumerate();
        if let Some((n, (line, text))) = found.find_map(|(n, f)| f.roles.get(*word).map(|v| (n, v))) {
            match style(text) {
                Ok(spec) => {
                    theme.styles[*role as usize] = spec.style;
                    mixes.extend(spec.mix.map(|(c, percent)| (*role, c, percent)));
                }
                Err(message) => wrong[n].push((*line, message)),
            }
        }
    }
    // What text lies on is painted before it.
    theme.styles[Role::Text as usize].bg = None;
    let mut seen = BTreeMap::new();
    for (n, f) in chain.iter().enumerate() {
        for (scope, (line, text)) in
            f.syntax.iter().filter(|(scope, _)| !seen.contains_key(*scope)).collect::<Vec<_>>()
        {
            match style(text) {
                Ok(spec) => drop(seen.insert(scope.clone(), spec.style)),
                Err(message) => wrong[n].push((*line, message)),
            }
        }
    }
    // The file that was asked for first.
    for (f, list) in chain.iter().zip(wrong) {
        let mut all = Mistakes::of("");
        list.into_iter().for_each(|(line, message)| all.on(line, message));
        if let Some(((line, message), more)) = all.end() {
            return Err(ThemeError::Bad { file: f.file.clone(), line, message, more });
        }
    }
    theme.syntax = seen.into_iter().collect();
    theme.syntax.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
    spec::limit(&mut theme, &mixes);
    Ok((theme, mixes))
}

/// Fits the looks to the colours that the terminal shows. `mixes`: the colours of which backgrounds are faint mixes.
fn fit(theme: &mut Theme, mixes: &[Mix]) {
    use Role::{AddedBand, AddedWord, RemovedBand, RemovedWord};
    let depth = theme.depth;
    let full = theme.styles;
    for (role, _) in Role::ALL {
        theme.styles[*role as usize] = depth.fit(full[*role as usize]);
    }
    theme.syntax.iter_mut().for_each(|(_, s)| *s = depth.fit(*s));
    let around = [Role::Ground, Role::Band].map(|r| theme.style(r).bg);
    for role in [AddedBand, RemovedBand, AddedWord, RemovedWord] {
        let Some(bg) = full[role as usize].bg.filter(|_| depth == Depth::TwoFiftySix) else { continue };
        let mark = mixes.iter().find(|(r, ..)| *r == role).map(|(_, c, _)| *c);
        // Its text must be read on it; grey is nearer to the faint colour where no tint is dark or light enough.
        let text = full[role as usize].fg.or(full[Role::Text as usize].fg).and_then(color::rgb);
        let read = |c: &Color| {
            let pair = text.zip(color::rgb(*c));
            // Changed words have a colour of their own.
            let band = [AddedBand, RemovedBand].contains(&role);
            !band || pair.is_none_or(|(text, below)| color::contrast(text, below) >= TEXT)
        };
        let tint = color::tint_256(bg, mark).filter(|c| !around.contains(&Some(*c)) && read(c));
        theme.styles[role as usize].bg = Some(tint.unwrap_or_else(|| color::grey_256(bg, &around)));
    }
    // A selected row of a diff differs from the rows around it.
    let bands = [Role::Ground, Role::Band, AddedBand, RemovedBand].map(|r| theme.style(r).bg);
    let selection = Role::Selection as usize;
    if let Some(bg) = full[selection].bg.filter(|_| depth == Depth::TwoFiftySix)
        && bands.contains(&theme.styles[selection].bg)
    {
        theme.styles[selection].bg = Some(color::grey_256(bg, &bands));
    }
    for (word, band) in [(AddedWord, AddedBand), (RemovedWord, RemovedBand)] {
        if theme.style(word).bg == theme.style(band).bg {
            let style = theme.style(word).add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
            theme.styles[word as usize] = style;
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
