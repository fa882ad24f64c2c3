//! Import of base16 schemes: sixteen colours by fixed names, as YAML (`base00: "181818"`, also below
//! `palette:`) or TOML (`base00 = "#181818"`). The result is the text of a theme file of ours.

use super::color::{hex_rgb, luminance};

/// Turns a scheme into a theme file; `None` when it is not one.
pub fn import(text: &str) -> Option<String> {
    let mut colors: [Option<String>; 16] = Default::default();
    for line in text.lines() {
        let line = line.trim();
        let Some((key, value)) = line.split_once([':', '=']) else { continue };
        let key = key.trim().trim_matches(['"', '\'']);
        let Some(n) = key.strip_prefix("base").filter(|n| n.len() == 2) else { continue };
        let Ok(n) = usize::from_str_radix(n, 16) else { continue };
        let value =
            value.split(" #").next().unwrap_or("").trim().trim_matches(['"', '\'']).trim_start_matches('#');
        if n < 16 && hex_rgb(value).is_some() {
            colors[n] = Some(value.to_ascii_lowercase());
        }
    }
    let c: Vec<String> = colors.into_iter().collect::<Option<_>>()?;
    let light = luminance(hex_rgb(&c[0])?) > 0.4;
    // What each number means is fixed by the scheme's definition.
    let names = [
        ("bg", 0),
        ("bg2", 1),
        ("bg3", 2),
        ("dim", 4),
        ("fg", 5),
        ("strong", 6),
        ("red", 8),
        ("orange", 9),
        ("yellow", 10),
        ("green", 11),
        ("cyan", 12),
        ("blue", 13),
        ("magenta", 14),
        ("line", 3),
    ];
    let palette: String = names.iter().map(|(name, n)| format!("{name} = \"#{}\"\n", c[*n])).collect();
    Some(format!("light = {light}\n\n[palette]\n{palette}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Depth, Role, file};

    fn scheme(style: impl Fn(usize) -> String) -> String {
        (0..16).map(|n| style(n) + "\n").collect()
    }

    #[test]
    fn yaml_and_toml_are_read() {
        let yaml = scheme(|n| format!("  base{n:02X}: \"#{0:02x}{0:02x}{0:02x}\" # note", n * 16));
        let toml = scheme(|n| format!("base{n:02x} = '{0:02X}{0:02X}{0:02X}'", n * 16));
        assert_eq!(import(&yaml), import(&toml));
        let text = import(&yaml).unwrap();
        let own = |name: &str| (name == "mine").then(|| ("mine.yaml".to_owned(), text.clone()));
        let theme = file::load(file::BUILT_IN, "mine", Depth::True, false, &own).unwrap();
        assert_eq!(theme.style(Role::Ground).bg, Some(ratatui::style::Color::Rgb(0, 0, 0)));
        assert!(!theme.light);
    }

    #[test]
    fn half_a_scheme_is_none() {
        assert_eq!(import("base00: \"000000\"\n"), None);
        assert_eq!(import("[palette]\nbg = \"#000000\"\n"), None);
    }
}
