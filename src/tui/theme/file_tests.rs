use ratatui::style::Color;

use super::*;
use crate::theme::color::{contrast, rgb};
use crate::theme::readable::{BANDS, TEXT, areas_of, least, least_of_code, own, seen};

/// A theme of the person's.
fn own_file(text: &'static str, depth: Depth) -> Theme {
    let own = |n: &str| (n == "mine").then(|| ("mine.toml".to_owned(), text.to_owned()));
    load(BUILT_IN, "mine", depth, false, &own).unwrap_or_else(|e| panic!("{e}"))
}

fn themes() -> impl Iterator<Item = Theme> {
    BUILT_IN.iter().map(|(n, _)| built_in(n, Depth::True, false).unwrap_or_else(|e| panic!("{e}")))
}

/// Colours that a theme of the terminal's own sixteen cannot know.
fn own_colours(t: &Theme) -> bool {
    matches!(t.style(Role::Ground).bg, Some(Color::Rgb(..) | Color::Indexed(_)))
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

/// Looks of a theme whose text cannot be read on one of the areas on which it can lie.
fn unreadable(t: &Theme, light: bool) -> Vec<String> {
    let mut bad = Vec::new();
    let mut check = |what: &str, below: Role, s: Style, need: f64| {
        // A reversed row is drawn in its own look.
        let area = t.style(below);
        if area.add_modifier.contains(Modifier::REVERSED) && what != below_name(below) {
            return;
        }
        let ground = area.bg.and_then(rgb).unwrap_or(own(light).0);
        // On the bands of a diff every text can be read, dim text too.
        let band = BANDS.contains(&below) && !BANDS.contains(&role_of(what)) && own_colours(t);
        let (s, need) =
            if band && t.depth >= Depth::TwoFiftySix { (t.on(below, s), TEXT) } else { (s, need) };
        let (fg, bg) = seen(s, ground, light);
        let c = contrast(fg, bg);
        if c < need {
            let (name, depth) = (&t.name, t.depth);
            bad.push(format!("{name} {depth:?} light {light}: {what} on {below:?}: {c:.2} < {need}"));
        }
    };
    for (role, word) in Role::ALL {
        let s = t.style(*role);
        let Some(need) = least(Some(*role), s) else { continue };
        // What has no colour of its own is the terminal's text on the terminal's ground.
        let plain = |c: Option<Color>| c.is_none_or(|c| c == Color::Reset);
        if plain(s.fg) && plain(s.bg) && !s.add_modifier.contains(Modifier::DIM) {
            continue;
        }
        let areas = if role.is_area() { vec![*role] } else { areas_of(Some(*role)) };
        areas.into_iter().for_each(|below| check(word, below, s, need));
        // Dim is less than text by its tone, not because it could not be read.
        if own_colours(t) && t.depth == Depth::True && *role == Role::Dim {
            [Role::Ground, Role::Band].into_iter().for_each(|below| check(word, below, s, TEXT));
        }
    }
    for (scope, s) in t.syntax.iter().filter(|(_, s)| s.fg.is_some_and(|c| c != Color::Reset)) {
        let areas = areas_of(None);
        areas.into_iter().for_each(|below| check(scope, below, *s, least_of_code(scope)));
    }
    bad
}

/// The role of a name; of a scope of code that of text.
fn role_of(name: &str) -> Role {
    Role::ALL.iter().find(|(_, n)| *n == name).map_or(Role::Text, |(r, _)| *r)
}

fn below_name(area: Role) -> &'static str {
    Role::ALL.iter().find(|(r, _)| *r == area).map_or("", |(_, n)| n)
}

/// U12: every theme, at 16, 256 and all colours, on a dark and a light ground of the terminal's own.
#[test]
fn u12_text_of_every_theme_can_be_read_at_every_depth_on_dark_and_on_light() {
    let mut bad = Vec::new();
    for depth in [Depth::Sixteen, Depth::TwoFiftySix, Depth::True] {
        for light in [false, true] {
            for (name, _) in BUILT_IN {
                bad.extend(unreadable(&built_in(name, depth, light).unwrap(), light));
            }
        }
    }
    assert!(bad.is_empty(), "{} looks:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn text_sets_no_background_and_areas_set_one() {
    let blue = own_file("inherits = \"ansi\"\n[roles]\nok = \"green on blue\"\n", Depth::True);
    assert_eq!(blue.style(Role::Ok).bg, Some(Color::LightBlue), "a person may want it");
    for t in themes() {
        for (role, name) in Role::ALL {
            let bg = t.style(*role).bg.filter(|c| *c != Color::Reset);
            let wants = role.is_area() && own_colours(&t) && *role != Role::MatchCurrent;
            assert_eq!(bg.is_some(), wants, "{}: {name}", t.name);
        }
    }
}

#[test]
fn no_theme_with_colours_of_its_own_lets_the_terminal_dim_text() {
    for t in themes().filter(own_colours) {
        let dim = |s: &Style| s.add_modifier.contains(Modifier::DIM);
        assert!(!t.styles.iter().any(dim) && !t.syntax.iter().any(|(_, s)| dim(s)), "{}", t.name);
    }
}

/// The values that the design gives; contrasts as computed there.
#[test]
fn tiller_dark_is_as_designed() {
    let t = built_in("tiller-dark", Depth::True, false).unwrap();
    let bg = |role| t.style(role).bg.and_then(rgb).unwrap();
    let is = |role, on, want: f64| {
        let ratio = contrast(t.style(role).fg.and_then(rgb).unwrap(), bg(on));
        assert!((ratio - want).abs() < 0.1, "{role:?} on {on:?}: {ratio}");
    };
    assert_eq!(bg(Role::AddedBand), (0x24, 0x32, 0x2c));
    assert_eq!(bg(Role::AddedWord), (0x36, 0x52, 0x3f));
    assert_eq!(bg(Role::RemovedBand), (0x36, 0x25, 0x2a));
    assert_eq!(bg(Role::RemovedWord), (0x5c, 0x37, 0x3a));
    is(Role::Text, Role::Ground, 13.1);
    is(Role::Dim, Role::Ground, 6.1);
    is(Role::Dim, Role::AddedBand, 4.5);
    is(Role::Accent, Role::Band, 7.8);
    is(Role::Waiting, Role::Band, 9.0);
    for area in [Role::AddedWord, Role::RemovedWord] {
        assert!(contrast(t.style(area).fg.and_then(rgb).unwrap(), bg(area)) >= 6.2, "{area:?}");
    }
}

#[test]
fn the_words_of_a_diff_keep_their_hue_with_256_colours_and_its_bands_are_seen() {
    for (name, _) in BUILT_IN {
        let t = built_in(name, Depth::TwoFiftySix, false).unwrap();
        if !own_colours(&built_in(name, Depth::True, false).unwrap()) {
            continue;
        }
        let bg = |role| t.style(role).bg.and_then(rgb).unwrap();
        for band in [Role::AddedBand, Role::RemovedBand] {
            for below in [Role::Ground, Role::Band] {
                assert_ne!(bg(band), bg(below), "{name}: {band:?} is seen on {below:?}");
            }
            assert_ne!(bg(band), bg(Role::Selection), "{name}: a selected row of a diff is seen");
        }
        assert_ne!(bg(Role::AddedWord), bg(Role::RemovedWord), "{name}");
        let bands = [Role::AddedBand, Role::RemovedBand];
        let bands = bands.into_iter().filter(|_| ["tiller-dark", "tiller-light"].contains(name));
        for role in bands.chain([Role::AddedWord, Role::RemovedWord]) {
            let (r, g, b) = bg(role);
            assert!(!(r == g && g == b), "{name}: {role:?} is grey");
        }
        for (word, band) in [(Role::AddedWord, Role::AddedBand), (Role::RemovedWord, Role::RemovedBand)] {
            assert_ne!(t.style(word), t.style(band), "{name}: words are told apart");
        }
    }
}

#[test]
fn colours_with_a_meaning_are_told_apart_with_256_and_with_16_colours_too() {
    let roles = [Role::Waiting, Role::Error, Role::Ok, Role::Accent, Role::Running, Role::Vendor];
    for (name, _) in BUILT_IN.iter().filter(|(name, _)| *name != "mono") {
        let ours = ["tiller-dark", "tiller-light"].contains(name);
        for depth in [Depth::True, Depth::TwoFiftySix, Depth::Sixteen] {
            let t = built_in(name, depth, false).unwrap();
            for (n, a) in roles.iter().enumerate() {
                for b in &roles[..n] {
                    let (x, y) = (t.style(*a).fg.unwrap(), t.style(*b).fg.unwrap());
                    let meant = *a == Role::Vendor && [Role::Waiting, Role::Error].contains(b);
                    if depth == Depth::Sixteen && meant && (ours || *name == "ansi") {
                        assert_ne!(x, y, "{name}: {a:?} and {b:?} with 16 colours");
                    }
                    let (x, y) = (rgb(x).unwrap(), rgb(y).unwrap());
                    let far = [x.0.abs_diff(y.0), x.1.abs_diff(y.1), x.2.abs_diff(y.2)].into_iter().max();
                    assert!(
                        !ours || depth == Depth::Sixteen || far >= Some(40),
                        "{name} at {depth:?}: {a:?} {x:?} and {b:?} {y:?}"
                    );
                }
            }
        }
    }
}

/// Names of roles are data of a released format.
#[test]
fn files_of_earlier_versions_are_read() {
    let colour = |n: u8| Some(Color::Rgb(n, n, n));
    let old = "[palette]\nbg = \"#010101\"\nbg2 = \"#020202\"\nbg3 = \"#030303\"\n\
               [roles]\ntext = \"#ffffff on #040404\"\ndialog = \"#ffffff on #050505\"\n\
               bar = \"red on blue\"\nborder_focus = \"blue\"\nskipped = \"dim\"\nrisky = \"bg on red\"\n\
               hunk = \"cyan\"\n";
    let t = own_file(old, Depth::True);
    assert_eq!(t.style(Role::Ground).bg, colour(4), "the background of text was the screen's");
    assert_eq!((t.style(Role::Text).fg, t.style(Role::Text).bg), (colour(255), None));
    assert_eq!(t.style(Role::Band).bg, colour(5), "dialogs lie on the band");
    assert_eq!(t.style(Role::Raised).bg, colour(3));
    // A file that says both means the new names.
    let both = own_file("[roles]\ndialog = \"on red\"\nband = \"on blue\"\n", Depth::True);
    assert_eq!(both.style(Role::Band).bg, Some(Color::Blue));
    for (name, _) in Role::EARLIER {
        assert!(Role::of_name(name).is_some() && !Role::ALL.iter().any(|(_, n)| n == name), "{name}");
    }
}

#[test]
fn a_theme_with_few_colours_has_the_looks_for_few_colours_and_its_own_hues() {
    let t = built_in("colour-blind", Depth::Sixteen, false).unwrap();
    assert_eq!(t.style(Role::Ground), built_in("ansi", Depth::Sixteen, false).unwrap().style(Role::Ground));
    assert!(t.style(Role::Selection).add_modifier.contains(Modifier::REVERSED));
    let green = built_in("ansi", Depth::Sixteen, false).unwrap().style(Role::Ok);
    assert_ne!(t.style(Role::Ok).fg, green.fg, "blue instead of green");
    assert_eq!(t.name, "colour-blind");
}

#[test]
fn a_chosen_theme_follows_the_ground_that_the_terminal_tells() {
    let ui = tiller_config::schema::Ui { theme: "ansi".into(), ..Default::default() };
    let (mut themes, none) = crate::theme::Themes::new(&ui, Depth::Sixteen, None);
    assert!(none.is_none());
    let dark = themes.current().style(Role::Waiting);
    assert!(themes.background(255, 255, 255), "yellow cannot stay on white");
    assert_ne!(themes.current().style(Role::Waiting), dark);
    assert!(!themes.background(255, 255, 255), "nothing changes twice");
}

#[test]
fn states_are_told_apart_without_colour() {
    let t = built_in("mono", Depth::Mono, false).unwrap();
    let plain = t.style(Role::Text);
    for role in [Role::Selection, Role::ButtonFocus, Role::ModeAuto, Role::MatchCurrent, Role::Accent] {
        assert_ne!(t.style(role).add_modifier, plain.add_modifier, "{role:?}");
    }
    assert_ne!(t.style(Role::Added), t.style(Role::Removed));
    for (name, _) in BUILT_IN {
        let t = built_in(name, Depth::Mono, false).unwrap();
        for role in [Role::Selection, Role::ButtonFocus, Role::ModeAuto] {
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

/// The answers of a terminal, in the order of the questions, and the theme of its frames: before it has said anything,
/// and at the end.
#[test]
fn the_theme_is_chosen_by_what_the_terminal_answers() {
    use crate::input::TerminalFact::{Attributes, DirectColour};
    use crate::theme::Themes;
    let ui = tiller_config::schema::Ui::default();
    let themes = |depth| Themes::new(&ui, depth, None).0;
    let name = |t: &Themes| (t.current().name.clone(), t.current().depth);
    let is = |t: &Themes, want: &str, depth| assert_eq!(name(t), (want.to_owned(), depth));

    // It says everything. COLORTERM was lost on the way.
    let mut t = themes(Depth::TwoFiftySix);
    is(&t, "ansi", Depth::TwoFiftySix);
    assert!(!t.fact(DirectColour(true)), "the ground is not known yet: nothing is drawn again");
    assert!(t.background(0xfc, 0xfc, 0xfb));
    is(&t, "tiller-light", Depth::True);
    assert!(!t.fact(Attributes { sixel: false }), "nothing changes twice");
    assert!(t.scheme(true), "the terminal's scheme has changed");
    is(&t, "tiller-dark", Depth::True);

    // It knows only what every terminal knows.
    let mut t = themes(Depth::TwoFiftySix);
    assert!(t.fact(Attributes { sixel: false }));
    is(&t, "tiller-dark", Depth::TwoFiftySix);
    assert!(!t.background(10, 10, 10), "a late answer that says the same");

    // COLORTERM is of another terminal.
    let mut t = themes(Depth::True);
    t.fact(DirectColour(false));
    t.fact(Attributes { sixel: false });
    is(&t, "tiller-dark", Depth::TwoFiftySix);

    // Sixteen colours: the person's own.
    let mut t = themes(Depth::Sixteen);
    assert!(!t.fact(Attributes { sixel: false }) && t.background(255, 255, 255));
    is(&t, "ansi", Depth::Sixteen);

    // Another terminal is attached: nothing is known again.
    let mut t = themes(Depth::True);
    t.background(255, 255, 255);
    is(&t, "tiller-light", Depth::True);
    t.depth(Depth::TwoFiftySix);
    is(&t, "ansi", Depth::TwoFiftySix);

    // A theme that was chosen by its name is there from the first frame on, and gets the colours that there are.
    let ui = tiller_config::schema::Ui { theme: "gruvbox-dark".into(), ..Default::default() };
    let mut t = Themes::new(&ui, Depth::TwoFiftySix, None).0;
    is(&t, "gruvbox-dark", Depth::TwoFiftySix);
    assert!(t.fact(DirectColour(true)));
    is(&t, "gruvbox-dark", Depth::True);

    // Without colours there is nothing to wait for.
    is(&themes(Depth::Mono), "tiller-dark", Depth::Mono);
}

/// Each pair of a text and a ground that a diff draws: what stands on a band, and the changed words.
#[test]
fn everything_in_a_diff_can_be_read_in_every_theme_with_256_colours_too() {
    use crate::text::line::Look;
    use crate::text::paint::resolve;
    let mut bad = Vec::new();
    for depth in [Depth::TwoFiftySix, Depth::True] {
        for (name, _) in BUILT_IN {
            let t = built_in(name, depth, false).unwrap();
            for ground in [Role::AddedBand, Role::RemovedBand, Role::AddedWord, Role::RemovedWord] {
                if t.style(ground).bg.and_then(rgb).is_none() {
                    continue;
                }
                for role in [Role::Text, Role::Dim, Role::Added, Role::Removed, Role::Code] {
                    let style = resolve(Look::of(role).on(ground), &t);
                    let (fg, bg) = seen(style, own(t.light).0, t.light);
                    let c = contrast(fg, bg);
                    bad.extend(
                        (c < TEXT).then(|| format!("{name} {depth:?}: {role:?} on {ground:?}: {c:.2}")),
                    );
                }
                for (scope, s) in t.syntax.iter().filter(|_| BANDS.contains(&ground)) {
                    let (fg, bg) = seen(t.on(ground, *s), own(t.light).0, t.light);
                    let c = contrast(fg, bg);
                    bad.extend(
                        (c < TEXT).then(|| format!("{name} {depth:?}: {scope} on {ground:?}: {c:.2}")),
                    );
                }
            }
        }
    }
    assert!(bad.is_empty(), "{} looks:\n{}", bad.len(), bad.join("\n"));
}
