use ratatui::style::Color;

use super::*;
use crate::theme::color::{contrast, rgb};

/// Least contrast of text, and of marks and borders, against what lies below.
const TEXT: f64 = 4.5;
const MARK: f64 = 3.0;

/// Roles that are lines, not words.
const MARKS: [Role; 2] = [Role::Border, Role::BorderFocus];

fn themes() -> impl Iterator<Item = Theme> {
    BUILT_IN.iter().map(|(n, _)| built_in(n, Depth::True, false).unwrap_or_else(|e| panic!("{e}")))
}

/// Colours that a theme of the terminal's own sixteen cannot know.
fn own_colours(t: &Theme) -> bool {
    matches!(t.style(Role::Text).bg, Some(Color::Rgb(..)))
}

#[test]
fn all_shipped_themes_load_and_say_their_name() {
    for t in themes() {
        for (role, name) in Role::ALL {
            assert!(t.style(*role) != Style::new() || *role == Role::Text, "{}: {name} has no look", t.name);
        }
        assert!(!t.syntax.is_empty());
    }
    assert_eq!(Role::ALL.len(), Role::COUNT);
}

#[test]
fn contrast_is_enough_in_every_shipped_theme() {
    let mut bad = Vec::new();
    for t in themes().filter(own_colours) {
        let ground = t.style(Role::Text).bg.and_then(rgb).unwrap();
        let mut check = |what: &str, s: Style, least: f64| {
            let (Some(fg), bg) = (s.fg.and_then(rgb), s.bg.and_then(rgb).unwrap_or(ground)) else { return };
            let c = contrast(fg, bg);
            if c < least {
                bad.push(format!("{}: {what} {c:.2} < {least}", t.name));
            }
        };
        for (role, name) in Role::ALL {
            let least = if MARKS.contains(role) { MARK } else { TEXT };
            check(name, t.style(*role), least);
        }
        // What is drawn over bars, dialogs and the selected row keeps its contrast there too.
        let words = [Role::Text, Role::Dim, Role::Strong, Role::Accent, Role::Waiting, Role::Error, Role::Ok];
        for ground in [Role::Bar, Role::Dialog] {
            for role in words {
                let s = t.style(ground).patch(t.style(role));
                let s = if t.style(role).bg == t.style(Role::Text).bg {
                    s.bg(t.style(ground).bg.unwrap())
                } else {
                    s
                };
                check(&format!("{role:?} on {ground:?}"), s, TEXT);
            }
        }
        for (scope, s) in &t.syntax {
            check(&format!("syntax {scope}"), *s, TEXT);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// U12: every theme, at 16, 256 and all colours, on a dark and a light ground of the terminal's own.
#[test]
fn u12_text_of_every_theme_can_be_read_at_every_depth_on_dark_and_on_light() {
    use crate::theme::readable::{bare, grounds, least, own, seen};
    let mut bad = Vec::new();
    for depth in [Depth::Sixteen, Depth::TwoFiftySix, Depth::True] {
        for light in [false, true] {
            for (name, _) in BUILT_IN {
                let t = built_in(name, depth, light).unwrap();
                let below = grounds(&t, light);
                let mut check = |what: String, role: Option<Role>, s: Style| {
                    let plain = |c: Option<Color>| c.is_none_or(|c| c == Color::Reset);
                    let words = s.fg.is_some() || !plain(s.bg);
                    if !words || (plain(s.fg) && plain(s.bg)) {
                        return;
                    }
                    let on = if bare(&t, s) { below.clone() } else { vec![own(light).0] };
                    for ground in on {
                        let s = if bare(&t, s) { Style { bg: None, ..s } } else { s };
                        let (fg, bg) = seen(s, ground, light);
                        let (c, need) = (contrast(fg, bg), least(role, s));
                        if c < need {
                            bad.push(format!(
                                "{name} {depth:?} light {light}: {what} {c:.2} < {need} on {bg:?}"
                            ));
                        }
                    }
                };
                for (role, word) in Role::ALL {
                    check((*word).to_owned(), Some(*role), t.style(*role));
                }
                for (scope, s) in &t.syntax {
                    check(format!("syntax {scope}"), None, *s);
                }
            }
        }
    }
    assert!(bad.is_empty(), "{} looks:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn a_chosen_theme_follows_the_ground_that_the_terminal_tells() {
    let ui = tiller_config::schema::Ui { theme: "ansi".into(), ..Default::default() };
    let (mut themes, none) = crate::theme::Themes::new(&ui, Depth::Sixteen, None);
    assert!(none.is_none());
    let dark = themes.current().style(Role::Code);
    assert!(themes.background(255, 255, 255), "yellow code cannot stay on white");
    assert_ne!(themes.current().style(Role::Code), dark);
    assert!(!themes.background(255, 255, 255), "nothing changes twice");
}

#[test]
fn states_are_told_apart_without_colour() {
    let t = built_in("mono", Depth::Mono, false).unwrap();
    let plain = t.style(Role::Text);
    for role in [Role::Selection, Role::ButtonFocus, Role::Risky, Role::MatchCurrent, Role::BorderFocus] {
        assert_ne!(t.style(role).add_modifier, plain.add_modifier, "{role:?}");
    }
    assert_ne!(t.style(Role::Added), t.style(Role::Removed));
    for (name, _) in BUILT_IN {
        let t = built_in(name, Depth::Mono, false).unwrap();
        for role in [Role::Selection, Role::ButtonFocus, Role::Risky] {
            assert!(!t.style(role).add_modifier.is_empty(), "{name} {role:?} is invisible without colours");
        }
        assert!(t.styles.iter().all(|s| s.fg.is_none() && s.bg.is_none()), "{name} keeps a colour");
    }
}

#[test]
fn differences_differ_in_every_theme() {
    for t in themes() {
        assert_ne!(t.style(Role::Added), t.style(Role::Removed), "{}", t.name);
    }
}

#[test]
fn own_files_inherit_and_mistakes_have_lines() {
    let own =
        |text: &'static str| move |n: &str| (n == "mine").then(|| ("mine.toml".to_owned(), text.to_owned()));
    let good =
        own("inherits = \"gruvbox-dark\"\n[palette]\nred = \"#ff0000\"\n[roles]\nok = \"cyan bold\"\n");
    let t = load(BUILT_IN, "mine", Depth::True, false, &good).unwrap();
    assert_eq!(t.style(Role::Error).fg, Some(Color::Rgb(255, 0, 0)));
    assert_eq!(t.style(Role::Text), built_in("gruvbox-dark", Depth::True, false).unwrap().style(Role::Text));
    for (text, line, part) in [
        ("[roles]\nokk = \"red\"\n", 2, "did you mean 'ok'"),
        ("[roles]\n\nok = \"rde\"\n", 3, "unknown colour 'rde'"),
        ("inherit = \"ansi\"\n", 1, "did you mean 'inherits'"),
        ("inherits = 3\n", 1, "wrong type"),
    ] {
        match load(BUILT_IN, "mine", Depth::True, false, &own(text)) {
            Err(ThemeError::Bad { file, line: l, message, more }) => {
                assert_eq!(more, []);
                assert_eq!((file.as_str(), l), ("mine.toml", line), "{message}");
                assert!(message.contains(part), "{message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    // All of a file's mistakes, not only the first.
    let many = own("light = 3\n[roles]\nokk = \"red\"\nok = \"rde\"\n[syntax]\nstring = \"gren\"\n");
    let told = load(BUILT_IN, "mine", Depth::True, false, &many).unwrap_err().to_string();
    for part in ["mine.toml:1:", "; line 3: unknown role", "; line 4: unknown colour 'rde'", "; line 6:"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(
        matches!(built_in("gruvbox", Depth::True, false), Err(ThemeError::Unknown { near, .. }) if near.contains("gruvbox"))
    );
}
