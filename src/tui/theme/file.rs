//! Theme files: a palette, looks by role, colours of code; what is missing comes from the theme that the
//! file inherits.

use std::collections::BTreeMap;

use ratatui::style::{Modifier, Style};
use toml::de::{DeTable, DeValue};

use super::color::{self, Depth};
use super::{Role, Theme};
use crate::mistakes::{self, Mistakes};

/// Name and text of a theme that comes with the program.
pub type BuiltIn = (&'static str, &'static str);

/// The themes that come with the program. `base` is what all others inherit in the end.
pub const BUILT_IN: &[BuiltIn] = &[
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
        let parsed = ThemeFile::parse(&n, &file, &text);
        if n != "base" {
            next = Some(parsed.inherits.clone().unwrap_or_else(|| "base".into()));
        }
        chain.push(parsed);
        if chain.len() > 8 {
            let message = "themes inherit from each other in a cycle".into();
            return Err(ThemeError::Bad { file, line: 1, message, more: Vec::new() });
        }
    }
    let mut theme = build(name, &chain, depth)?;
    super::readable::mend(&mut theme, light);
    Ok(theme)
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
    /// What can be read of it; the rest is reported.
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
                        if section == "roles" && !Role::ALL.iter().any(|(_, n)| n == name) {
                            let near = crate::keymap::nearest(name, Role::ALL.iter().map(|(_, n)| *n));
                            wrong.at(k.span().start, format!("unknown role '{name}'{near}"));
                            continue;
                        }
                        into.insert(name.to_string(), (wrong.line(k.span().start), s.to_string()));
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

fn build(name: &str, chain: &[ThemeFile], depth: Depth) -> Result<Theme, ThemeError> {
    let palette = |word: &str| chain.iter().find_map(|f| f.palette.get(word).map(|(_, v)| v.as_str()));
    let style = |text: &str| -> Result<Style, String> {
        let mut style = Style::new();
        let mut back = false;
        for word in text.split_whitespace() {
            style = match word {
                "on" => {
                    back = true;
                    continue;
                }
                "bold" => style.add_modifier(Modifier::BOLD),
                "dim" => style.add_modifier(Modifier::DIM),
                "italic" => style.add_modifier(Modifier::ITALIC),
                "underline" => style.add_modifier(Modifier::UNDERLINED),
                "reverse" => style.add_modifier(Modifier::REVERSED),
                "crossed" => style.add_modifier(Modifier::CROSSED_OUT),
                "plain" => style,
                _ => {
                    // A palette name may stand for another one.
                    let mut value = word;
                    for _ in 0..4 {
                        value = palette(value).unwrap_or(value);
                    }
                    let c = color::parse(value).ok_or_else(|| format!("unknown colour '{word}'"))?;
                    if back { style.bg(c) } else { style.fg(c) }
                }
            };
        }
        Ok(depth.fit(style))
    };
    let mut theme = Theme {
        name: name.into(),
        light: chain.iter().find_map(|f| f.light).unwrap_or(false),
        depth,
        styles: [Style::new(); Role::COUNT],
        syntax: Vec::new(),
    };
    // What each file gets wrong, by its place in the chain.
    let mut wrong: Vec<Vec<(usize, String)>> = chain.iter().map(|f| f.wrong.clone()).collect();
    for (role, word) in Role::ALL {
        let mut found = chain.iter().enumerate();
        if let Some((n, (line, text))) = found.find_map(|(n, f)| f.roles.get(*word).map(|v| (n, v))) {
            match style(text) {
                Ok(style) => theme.styles[*role as usize] = style,
                Err(message) => wrong[n].push((*line, message)),
            }
        }
    }
    let mut seen = BTreeMap::new();
    for (n, f) in chain.iter().enumerate() {
        for (scope, (line, text)) in
            f.syntax.iter().filter(|(scope, _)| !seen.contains_key(*scope)).collect::<Vec<_>>()
        {
            match style(text) {
                Ok(style) => drop(seen.insert(scope.clone(), style)),
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
    Ok(theme)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
