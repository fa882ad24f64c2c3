//! The focus is always in something that the frame shows, however the screen and what it holds change.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{AgentCommand, CommandBody, EventBody};

use crate::panel::View;
use crate::scene;
use crate::testing::{Random, Robot};

const SIZES: [(u16, u16); 14] = [
    (220, 60),
    (180, 40),
    (160, 20),
    (118, 32),
    (118, 25),
    (118, 16),
    (112, 17),
    (111, 24),
    (80, 24),
    (80, 15),
    (60, 16),
    (40, 10),
    (29, 24),
    (80, 7),
];

/// Checks of each frame; `why`: how it came about.
fn look(r: &Robot, why: &str) {
    let app = &r.app;
    let areas = app.screen.areas.as_ref().unwrap();
    if !app.layers.is_empty() {
        assert!(app.screen.boxes.last().is_some_and(|b| b.area() > 0), "a dialog: {why}\n{}", r.screen());
        return;
    }
    let focus = app.screen.focus;
    assert!(areas.shows(focus), "{focus:?} has the keys and is not drawn: {why}\n{}", r.screen());
    let part = areas.part(focus).unwrap();
    let inner = part.inner;
    assert_eq!(inner.intersection(r.buffer().area), inner, "{focus:?}: {why}");
    if matches!(focus, View::Agents | View::Composer) {
        let seen = r.cursor().is_some_and(|at| inner.contains(at));
        assert!(seen, "the row or field that keys act on is in sight: {focus:?} {why}\n{}", r.screen());
    }
}

/// A letter goes where the frame shows the focus.
fn letter(r: &mut Robot, why: &str) {
    if r.app.layers.is_empty() && r.app.screen.focus == View::Composer {
        let before = r.screen().matches('ß').count();
        r.run("type ß");
        assert_eq!(r.screen().matches('ß').count(), before + 1, "{why}\n{}", r.screen());
    }
    look(r, why);
}

fn with_scene(size: (u16, u16)) -> Robot {
    let mut r = Robot::new(size.0, size.1);
    scene::play(&mut r);
    r
}

#[test]
fn the_focus_is_drawn_at_every_size_after_every_resize_and_with_any_panels() {
    for before in SIZES {
        for after in SIZES {
            for view in View::ALL {
                let why = format!("{view:?} at {before:?}, then {after:?}");
                let mut r = with_scene(before);
                r.app.focus(view);
                r.run("wait 0");
                look(&r, &why);
                r.size(after.0, after.1);
                look(&r, &why);
                r.size(before.0, before.1);
                letter(&mut r, &why);
            }
        }
    }
}

#[test]
fn the_focus_is_drawn_after_any_sequence_of_sizes_layouts_and_changes() {
    for seed in 1..=60 {
        let mut random = Random(seed * 7919);
        let mut r = if seed % 3 == 0 { Robot::new(118, 25) } else { with_scene((118, 25)) };
        let mut steps = String::new();
        for _ in 0..25 {
            let step = match random.below(9) {
                0..3 => {
                    let (width, height) = (40 + random.below(181), 10 + random.below(51));
                    format!("size {width}x{height}")
                }
                3 => format!("alt-{}", 1 + random.below(7)),
                4 => "ctrl-x z".into(),
                5 => {
                    r.app.act(crate::keymap::action::Action(
                        ["screen.rail", "screen.layout", "screen.zoom", "screen.reset", "focus.next"]
                            [random.below(5) as usize],
                    ));
                    "wait 1".into()
                }
                6 => "tab".into(),
                7 => {
                    // Panels lose what they show.
                    r.event(EventBody::State(StateEvent::TodoChanged {
                        todos: Vec::new(),
                        by_person: false,
                    }));
                    "wait 1".into()
                }
                _ => "esc".into(),
            };
            steps.push_str(&step);
            steps.push_str("; ");
            r.run(&step);
            look(&r, &format!("seed {seed}: {steps}"));
        }
    }
}

/// Seen: shrunk from 118 to 80 columns, `k` and `k` ended an agent that no frame showed.
#[test]
fn keys_of_a_panel_act_only_while_it_is_drawn() {
    for (width, height) in [(80, 24), (40, 10), (29, 24), (80, 7), (118, 12)] {
        let mut r = with_scene((118, 25));
        r.run("alt-3");
        assert_eq!(r.app.screen.focus, View::Agents);
        r.clear().size(width, height);
        let shown = r.app.screen.areas.as_ref().unwrap().shows(View::Agents);
        r.run("j; j; k; k");
        let ends = |c: &&CommandBody| {
            matches!(c, CommandBody::Agent(AgentCommand::Cancel { .. }) | CommandBody::Turn(_))
        };
        if !shown {
            assert!(!r.commands().iter().any(ends), "{width}x{height}: {:?}", r.commands());
            assert!(r.screen().contains("jjkk"), "{width}x{height}: the keys are text\n{}", r.screen());
        }
        look(&r, "afterwards");
        // Wide again, the keys are where they went last.
        r.size(118, 25);
        assert_eq!(r.app.screen.focus == View::Agents, shown, "{width}x{height}");
        look(&r, "wide again");
    }
}
