//! How the parts of the screen meet: the composer's band with its notices, dialogs in its place, what lies behind others.

use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};
use tiller_config::schema::Ui;
use tiller_protocol::EventBody;
use tiller_protocol::event::TurnEvent;

use crate::keymap::action::Action;
use crate::scene;
use crate::testing::Robot;
use crate::theme::Role;

fn robot(width: u16, height: u16, theme: &str) -> Robot {
    Robot::with(width, height, Ui { theme: theme.into(), ..Ui::default() })
}

/// The row with this text.
fn row(r: &Robot, what: &str) -> u16 {
    let screen = r.screen();
    screen.lines().position(|l| l.contains(what)).unwrap_or_else(|| panic!("no {what} in\n{screen}")) as u16
}

/// Columns before this text.
fn column(r: &Robot, what: &str) -> usize {
    let line = r.screen().lines().nth(row(r, what).into()).unwrap().to_owned();
    line[..line.find(what).unwrap()].chars().count()
}

fn retrying(r: &mut Robot) {
    r.event(EventBody::Turn(TurnEvent::Retrying {
        attempt: 2,
        of: 5,
        seconds: 8.0,
        why: "the server answered 529".into(),
        discard: true,
    }));
}

#[test]
fn notices_lie_on_the_band_of_the_composer() {
    for (width, height) in [(60, 20), (80, 24), (118, 32), (160, 45), (220, 60)] {
        let mut r = robot(width, height, "tiller-dark");
        scene::play(&mut r);
        retrying(&mut r);
        let band = r.app.themes.current().style(Role::Band).bg.unwrap();
        let bars: Vec<u16> = ["Retry 2 of 5", "queue 1:", "Steer the turn"].map(|w| row(&r, w)).to_vec();
        for y in bars[0]..=bars[2] {
            let cells = |x: u16| r.buffer().cell((x, y)).unwrap();
            assert!((0..width).all(|x| cells(x).bg == band), "{width}x{height}, row {y}: {}", r.screen());
            assert_eq!(cells(0).symbol(), "▌", "{}", r.screen());
        }
        // With a row of padding above, and one between notices and text, where there is air.
        let air = usize::from(height >= 30);
        assert_eq!(usize::from(bars[2] - bars[1]), 1 + air, "{}", r.screen());
        let above = r.buffer().cell((1, bars[0] - 1)).unwrap().bg;
        assert_eq!(above == band, air == 1, "{}", r.screen());
        // The words begin where those of the composer do, behind a sign and a blank.
        assert_eq!(column(&r, "queue 1:"), column(&r, "Steer the turn") + 2, "{}", r.screen());
        assert_eq!(column(&r, "Retry 2 of 5"), column(&r, "Steer the turn") + 2, "{}", r.screen());
    }
}

#[test]
fn the_tour_lies_on_the_band_of_the_composer() {
    for (width, height) in [(80, 24), (118, 32)] {
        let mut r = robot(width, height, "tiller-dark");
        let step = ("One".to_owned(), "Do this.".to_owned(), String::new());
        *r.app.model.tour = crate::model::tour::Tour::new(&[step]);
        assert!(r.app.act(Action("tour.open")));
        r.run("wait 1");
        let band = r.app.themes.current().style(Role::Band).bg.unwrap();
        for words in ["tour 1/1", "Do this."] {
            let y = row(&r, words);
            assert!((0..width).all(|x| r.buffer().cell((x, y)).unwrap().bg == band), "{}", r.screen());
        }
    }
}

#[test]
fn a_dialog_in_the_composers_place_has_air_above_its_title_on_high_screens() {
    for (width, height) in [(80, 24), (118, 25), (118, 32), (160, 45), (220, 60)] {
        let mut r = robot(width, height, "tiller-dark");
        scene::play(&mut r);
        r.run("ctrl-x a; wait 500");
        let title = row(&r, "docs wants to");
        let band = r.app.themes.current().style(Role::Band).bg.unwrap();
        let screen = r.screen();
        let line = |up: u16| screen.lines().nth(usize::from(title - up)).unwrap().to_owned();
        let (above, padded) = (line(1), r.buffer().cell((5, title - 1)).unwrap().bg == band);
        // Waiting messages do not touch the title.
        let notice = above.trim().is_empty() && line(2).contains("queue 1:");
        if height >= 30 {
            assert!(padded && above.trim() == "▌", "{}", r.screen());
        } else {
            assert!(!padded || notice, "{}", r.screen());
        }
        // Nothing of it is lost to the padding.
        assert!(r.screen().contains("[n] deny") || r.screen().contains("[n] no"), "{}", r.screen());
    }
}

/// The ends of words in a narrow strip would be noise.
#[test]
fn narrow_strips_beside_a_dialog_are_blank() {
    for theme in ["tiller-dark", "ansi"] {
        let mut r = robot(100, 32, theme);
        scene::play(&mut r);
        r.run("f1");
        r.run("wait 500");
        let layer = *r.app.frame.last.as_ref().unwrap().parts.layers.last().unwrap();
        let strips: Vec<_> = layer.strips(r.buffer().area).collect();
        assert!(!strips.is_empty(), "{:?}", layer.outer);
        for at in strips.iter().flat_map(|s| s.positions()) {
            assert_eq!(r.buffer().cell(at).unwrap().symbol(), " ", "{theme} {at}");
        }
    }
}

#[test]
fn all_but_the_footer_is_dimmed_behind_a_dialog() {
    for theme in ["tiller-dark", "tiller-light", "ansi"] {
        for (width, height) in [(80, 24), (118, 32), (160, 45), (220, 60)] {
            for key in ["ctrl-p", "f1", "ctrl-x m"] {
                let mut r = robot(width, height, theme);
                scene::play(&mut r);
                let before = r.buffer().clone();
                r.run(key);
                r.run("wait 500");
                let covers = r.app.frame.last.as_ref().unwrap().parts.layers.clone();
                let floats = covers.iter().any(|l| l.floats);
                for y in 0..height - 1 {
                    for x in 0..width {
                        let (old, new) = (before.cell((x, y)).unwrap(), r.buffer().cell((x, y)).unwrap());
                        let inside = covers.iter().any(|l| l.outer.contains(Position::new(x, y)));
                        if !floats || inside || new.symbol().trim().is_empty() || old.symbol() != new.symbol()
                        {
                            continue;
                        }
                        if let (Color::Rgb(..), Color::Rgb(..)) = (old.bg, new.bg) {
                            let ground = r.app.themes.current().style(Role::Ground).bg.unwrap();
                            assert_eq!(old.bg != new.bg, old.bg != ground, "{theme} {x},{y}");
                        }
                        let dimmed = match (old.fg, new.fg) {
                            (Color::Rgb(..), Color::Rgb(..)) if old.fg != old.bg => old.fg != new.fg,
                            _ => new.modifier.contains(Modifier::DIM),
                        };
                        assert!(
                            dimmed && !new.modifier.contains(Modifier::BOLD),
                            "{theme} {width}x{height} {key}: {x},{y} {}: {old:?} {new:?}",
                            new.symbol()
                        );
                    }
                }
            }
        }
    }
}
