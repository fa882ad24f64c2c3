//! Golden screens of the whole shell with the fixed scene, and what must be visible without colours.

use ratatui::style::{Color, Modifier};
use tiller_config::schema::Ui;

use crate::testing::{Robot, text_of};
use crate::theme::{Depth, Theme};
use crate::{keymap, scene};

const SIZES: [(u16, u16); 6] = [(40, 12), (60, 20), (80, 24), (118, 25), (160, 50), (220, 60)];

fn robot(w: u16, h: u16, theme: &str, depth: Depth, ascii: bool) -> Robot {
    let ui = Ui { ascii, reduced_motion: true, ..Ui::default() };
    let map = keymap::preset(crate::shipped::registry().words(), "default").unwrap();
    let mut r = Robot::made(w, h, ui, map, Theme::built_in(theme, depth).unwrap());
    scene::play(&mut r);
    r
}

#[test]
fn golden_screens() {
    for (w, h) in SIZES {
        let r = robot(w, h, "ansi", Depth::Sixteen, false);
        insta::assert_snapshot!(format!("shell_{w}x{h}"), r.screen());
        let r = robot(w, h, "mono", Depth::Mono, true);
        insta::assert_snapshot!(format!("shell_{w}x{h}_ascii"), r.screen());
    }
}

/// Everything of ours is drawn as ASCII in ASCII mode. The scene's texts are.
#[test]
fn ascii_mode_draws_no_other_character() {
    for (w, h) in SIZES {
        for steps in [
            "", "ctrl-p", "f1", "ctrl-x ?", "ctrl-x a", "ctrl-x o", "ctrl-x d", "alt-2", "alt-3", "alt-4",
            "alt-5", "alt-7", "ctrl-x t", "ctrl-x ,", "ctrl-x e", "type /", "ctrl-x [", "ctrl-x +",
        ] {
            let mut r = robot(w, h, "mono", Depth::Mono, true);
            r.run(steps);
            let screen = r.screen();
            let odd: String = screen.chars().filter(|c| !c.is_ascii()).collect();
            assert!(odd.is_empty(), "{odd:?} at {w}x{h} after {steps:?}\n{screen}");
        }
    }
}

/// How a look would be drawn, without its colours.
fn looks(r: &Robot) -> Vec<Modifier> {
    r.buffer().content.iter().map(|c| c.modifier).collect()
}

#[test]
fn without_colours_focus_selection_and_cursor_are_visible() {
    for theme in ["mono", "ansi"] {
        let depth = if theme == "mono" { Depth::Mono } else { Depth::Sixteen };
        let mut r = robot(118, 25, "mono", depth, false);
        if depth == Depth::Mono {
            for c in &r.buffer().content {
                assert!(c.fg == Color::Reset && c.bg == Color::Reset, "{c:?} has a colour");
            }
        }
        assert!(r.cursor().is_some(), "the caret is in the composer");
        // The focus: moving it changes how titles look, not only colours.
        let before = looks(&r);
        r.run("alt-2");
        assert_ne!(before, looks(&r), "{theme}: the focus is not to be seen");
        r.run("esc").run("ctrl-p").run("down");
        let row = r.screen().lines().position(|l| l.contains("│ ▌ ")).is_some();
        assert!(row, "the chosen row has a mark\n{}", r.screen());
        let reversed = r.buffer().content.iter().filter(|c| c.modifier.contains(Modifier::REVERSED)).count();
        assert!(reversed > 20, "the chosen row is reversed: {reversed} cells");
        assert!(r.cursor().is_some(), "the caret is in the filter");
    }
}

/// With sixteen colours nothing else is used.
#[test]
fn sixteen_colours_are_sixteen() {
    for name in ["ansi", "catppuccin-mocha", "solarized-light", "high-contrast-dark"] {
        let theme = Theme::built_in(name, Depth::Sixteen).unwrap();
        let ui = Ui { reduced_motion: true, ..Ui::default() };
        let mut r = Robot::made(
            118,
            25,
            ui,
            keymap::preset(crate::shipped::registry().words(), "default").unwrap(),
            theme,
        );
        scene::play(&mut r);
        for steps in ["", "ctrl-p", "ctrl-x a"] {
            r.run(steps);
            for c in &r.buffer().content {
                for colour in [c.fg, c.bg] {
                    assert!(!matches!(colour, Color::Rgb(..)), "{name}: {colour:?} after {steps:?}");
                    assert!(!matches!(colour, Color::Indexed(n) if n > 15), "{name}: {colour:?}");
                }
            }
        }
    }
}

/// With reduced motion two moments look the same but for their seconds.
#[test]
fn reduced_motion_moves_nothing() {
    let still = |text: &str| {
        text.chars().filter(|c| !c.is_ascii_digit() && *c != ' ' && *c != 's').collect::<String>()
    };
    let mut r = robot(118, 25, "mono", Depth::Mono, false);
    let before = still(&text_of(r.buffer()));
    for _ in 0..8 {
        r.wait(std::time::Duration::from_millis(130));
        assert_eq!(still(&text_of(r.buffer())), before);
    }
}

/// The header's badges at 80 columns, and how a question without its dialog is shown.
#[test]
fn badges_and_titles() {
    let r = robot(80, 24, "mono", Depth::Mono, false);
    let first = r.screen().lines().next().unwrap().to_owned();
    for badge in ["2:", "3:"] {
        assert!(first.contains(badge), "{badge} is not in {first:?}");
    }
    for silent in ["4:", "5:"] {
        assert!(!first.contains(silent), "{silent} has no news: {first:?}");
    }
    assert!(first.contains("ASK") && first.contains("main*3"), "{first}");
    let mut r = Robot::new(118, 25);
    scene::ask(&mut r, 1);
    r.run("esc");
    assert!(r.screen().contains("needs you") && !r.screen().contains("queue"), "{}", r.screen());
}

/// Nothing in a dialog lies on the ground of the screen below it.
#[test]
fn a_dialog_has_one_ground() {
    for name in ["catppuccin-mocha", "catppuccin-latte", "gruvbox-dark"] {
        let mut r = robot(118, 25, name, Depth::True, false);
        r.run("ctrl-p").run("down");
        let theme = Theme::built_in(name, Depth::True).unwrap();
        let (screen, dialog) =
            (theme.style(crate::theme::Role::Ground).bg, theme.style(crate::theme::Role::Band).bg);
        assert_ne!(screen, dialog, "{name}");
        let area = *r.app.screen.boxes.last().unwrap();
        for (x, y) in area.positions().map(|p| (p.x, p.y)) {
            assert_ne!(Some(r.buffer()[(x, y)].bg), screen, "{name}: {x},{y}\n{}", r.screen());
        }
    }
}

/// Cells by how they look: a letter for each look of the theme, so that a change of colour is seen as text.
fn painted(r: &Robot) -> String {
    let mut looks: Vec<(Color, Color, Modifier)> = Vec::new();
    let mut out = String::new();
    for (n, c) in r.buffer().content.iter().enumerate() {
        let look = (c.fg, c.bg, c.modifier);
        let at = looks.iter().position(|l| *l == look).unwrap_or_else(|| {
            looks.push(look);
            looks.len() - 1
        });
        out.push(char::from_digit(at as u32, 36).unwrap_or('?'));
        if (n + 1) % usize::from(r.buffer().area.width) == 0 {
            out.push('\n');
        }
    }
    let names: Vec<String> = looks
        .iter()
        .enumerate()
        .map(|(n, (f, b, m))| {
            format!("{} {f:?} on {b:?} {m:?}", char::from_digit(n as u32, 36).unwrap_or('?'))
        })
        .collect();
    format!("{out}\n{}\n", names.join("\n"))
}

/// The same scene without colours, with a light theme and in the wide layouts.
#[test]
fn golden_looks_without_colours_and_on_a_light_ground() {
    for (w, h) in [(80, 24), (118, 25), (160, 50), (220, 60)] {
        let mono = robot(w, h, "mono", Depth::Mono, false);
        let dark = robot(w, h, "ansi", Depth::Sixteen, false);
        assert_eq!(mono.screen(), dark.screen(), "without colours the same is said at {w}x{h}");
        let light = robot(w, h, "catppuccin-latte", Depth::True, false);
        // Where bands have a colour no lines stand for them.
        let words = |r: &Robot| -> Vec<String> {
            r.screen().lines().map(|l| l.replace(['─', '│'], " ").trim_end().to_owned()).collect()
        };
        assert_eq!(words(&light), words(&dark), "and with a light theme at {w}x{h}");
    }
    insta::assert_snapshot!("looks_80x24_mono", painted(&robot(80, 24, "mono", Depth::Mono, false)));
    insta::assert_snapshot!(
        "looks_80x24_light",
        painted(&robot(80, 24, "catppuccin-latte", Depth::True, false))
    );
}

/// `NO_COLOR` overrides all other settings of colours.
#[test]
fn no_color_means_no_colour() {
    let var = |k: &str| ["NO_COLOR", "FORCE_COLOR", "COLORTERM"].contains(&k).then(|| "3".to_owned());
    let depth = Depth::of_env(&var);
    assert_eq!(depth, Depth::Mono);
    for theme in ["catppuccin-mocha", "gruvbox-light", "ansi", "high-contrast-dark"] {
        let mut r = robot(118, 25, theme, depth, false);
        for steps in ["", "ctrl-p", "esc; ctrl-x a", "esc; alt-2", "esc; ctrl-x d"] {
            r.run(steps);
            for c in &r.buffer().content {
                assert!(c.fg == Color::Reset && c.bg == Color::Reset, "{theme} {steps}: {c:?}");
            }
        }
    }
}
