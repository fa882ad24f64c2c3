//! Which pane has the focus, and how the panes share the screen.

use crate::app::App;
use crate::app::effect::Effect;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::panel::View;
use crate::view::layout::{self, SizeClass};
use crate::view::layout_request;

/// Names and help.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::new("view.composer", "composer", "Go to the composer").menu(Menu::Go),
    ActionSpec::new("view.conversation", "conversation", "Go to the conversation").menu(Menu::Go),
    ActionSpec::new("view.todo", "todo", "Go to the todo list").menu(Menu::Go),
    ActionSpec::new("view.agents", "agents", "Go to the agents").menu(Menu::Go),
    ActionSpec::new("view.watch", "changes", "Go to the changed files").menu(Menu::Go),
    ActionSpec::new("view.sessions", "session tree", "Go to the session tree").menu(Menu::Go),
    ActionSpec::new("view.diff", "diff", "Go to the diff review").menu(Menu::Go),
    ActionSpec::new("view.terminals", "terminals", "Go to the terminals").menu(Menu::Go),
    ActionSpec::key_only("focus.next", "next pane", "Move the focus to the next pane"),
    ActionSpec::key_only("focus.previous", "previous pane", "Move the focus to the previous pane"),
    ActionSpec::key_only("focus.left", "pane left", "Move the focus to the left"),
    ActionSpec::key_only("focus.right", "pane right", "Move the focus to the right"),
    ActionSpec::key_only("focus.up", "pane up", "Move the focus up"),
    ActionSpec::key_only("focus.down", "pane down", "Move the focus down"),
    ActionSpec::new("screen.zoom", "zoom", "Enlarge the focused pane: normal, half, full").menu(Menu::View),
    ActionSpec::key_only("screen.unzoom", "unzoom", "Shrink the focused pane"),
    ActionSpec::new("screen.rail", "sidebar", "Show or hide the sidebar").menu(Menu::View),
    ActionSpec::new("screen.layout", "layout", "Next layout: with sidebar, half and half, conversation only")
        .menu(Menu::View),
    ActionSpec::new("screen.reset", "reset layout", "Back to the normal layout").menu(Menu::View),
];

/// Performs an action of this file; `None`: it is none of them.
pub(crate) fn run(app: &mut App, action: Action) -> Option<Vec<Effect>> {
    Some(match action.0 {
        "focus.next" => step(app, true),
        "focus.previous" => step(app, false),
        "focus.left" => direction(app, -1, 0),
        "focus.right" => direction(app, 1, 0),
        "focus.up" => direction(app, 0, -1),
        "focus.down" => direction(app, 0, 1),
        "screen.zoom" => zoom(app, true),
        "screen.unzoom" => zoom(app, false),
        "screen.rail" => rail(app),
        "screen.layout" => next_layout(app),
        "screen.reset" => reset(app),
        id => vec![Effect::Focus(view(id)?)],
    })
}

/// Gives the focus to the composer when the screen is too small for the view that has it: keys act on nothing that the
/// frame does not show. `notices`: lines of the notice bar.
pub(crate) fn settle_focus(app: &mut App, notices: usize) {
    let focus = app.screen.focus;
    if focus == View::Composer {
        return;
    }
    let request = layout_request::request(app, app.screen.size, notices as u16);
    if !layout::layout(&request).shows(focus) {
        app.focus_composer();
        app.screen.main = View::Conversation;
    }
}

/// Why it cannot be done now.
pub(crate) fn disabled(app: &App, action: Action) -> Option<&'static str> {
    Some(match action.0 {
        "screen.layout" if !SizeClass::of(app.screen.size.width, app.screen.size.height).wide() => {
            "This terminal shows one view at a time; layouts need 112 columns"
        }
        "screen.reset" if preset(app) == Preset::Normal && app.screen.zoom == Default::default() => {
            "The layout is already the default one"
        }
        _ => return None,
    })
}

/// The current value of what an action changes; empty if it has none.
pub(crate) fn state(app: &App, action: Action) -> &'static str {
    match action.0 {
        "screen.rail" if app.screen.rail => "shown",
        "screen.rail" => "hidden",
        "screen.layout" => preset(app).word(),
        "screen.zoom" => match app.screen.zoom {
            crate::view::layout::Zoom::Normal => "",
            crate::view::layout::Zoom::Half => "half",
            crate::view::layout::Zoom::Full => "full",
        },
        _ => "",
    }
}

fn view(id: &str) -> Option<View> {
    Some(match id {
        "view.composer" => View::Composer,
        "view.conversation" => View::Conversation,
        "view.todo" => View::Todo,
        "view.agents" => View::Agents,
        "view.watch" => View::Watch,
        "view.sessions" => View::Sessions,
        "view.diff" => View::Diff,
        "view.terminals" => View::Terminals,
        _ => return None,
    })
}

/// Views that can take the focus now, in reading order.
fn order(app: &App) -> Vec<View> {
    let mut all = vec![View::Composer];
    if let Some(a) = &app.screen.areas {
        all.extend(a.tree.iter().chain([&a.main]).chain(&a.rail).map(|p| p.view));
    }
    all.dedup();
    all
}

fn step(app: &App, forward: bool) -> Vec<Effect> {
    let all = order(app);
    let at = all.iter().position(|v| *v == app.screen.focus).unwrap_or(0);
    let next = if forward { at + 1 } else { at + all.len() - 1 };
    vec![Effect::Focus(all[next % all.len()])]
}

/// The nearest pane whose middle lies in that direction.
fn direction(app: &App, dx: i32, dy: i32) -> Vec<Effect> {
    let Some(areas) = &app.screen.areas else { return Vec::new() };
    let middle = |r: ratatui::layout::Rect| {
        (i32::from(r.x) + i32::from(r.width) / 2, i32::from(r.y) + i32::from(r.height) / 2)
    };
    let whole =
        |p: &crate::view::layout::ViewArea| if p.title.area() > 0 { p.title.union(p.inner) } else { p.inner };
    let Some(here) = areas.part(app.screen.focus).or(areas.parts().next()).map(|p| middle(whole(p))) else {
        return Vec::new();
    };
    let best = areas
        .parts()
        .filter(|p| p.view != app.screen.focus && whole(p).area() > 0)
        .filter_map(|p| {
            let (x, y) = middle(whole(p));
            let (along, across) =
                if dx != 0 { ((x - here.0) * dx, y - here.1) } else { ((y - here.1) * dy, x - here.0) };
            (along > 0).then_some((along + across.abs() * 2, p.view))
        })
        .min_by_key(|(d, _)| *d);
    best.map_or_else(Vec::new, |(_, v)| vec![Effect::Focus(v)])
}

/// The next step that changes something: half of a wide screen is less than the conversation has.
fn zoom(app: &mut App, up: bool) -> Vec<Effect> {
    let before = app.screen.zoom;
    let looks = |app: &App| layout::layout(&layout_request::request(app, app.screen.size, 0));
    let now = looks(app);
    loop {
        app.screen.zoom = app.screen.zoom.turn(up);
        if app.screen.zoom == before {
            app.say("This pane is already as large as it can be");
            break;
        }
        if looks(app) != now {
            break;
        }
    }
    Vec::new()
}

fn rail(app: &mut App) -> Vec<Effect> {
    app.screen.rail = !app.screen.rail;
    let gone = is_at_side(app);
    if gone && !app.screen.rail { vec![Effect::Focus(View::Composer)] } else { Vec::new() }
}

/// How conversation and rail share a wide screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Preset {
    /// The columns that the prose leaves to the rail.
    #[default]
    Normal,
    /// Half for the rail: many agents, long plans.
    Half,
    /// The conversation alone.
    Alone,
}

impl Preset {
    /// The next one, round and round.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Normal => Self::Half,
            Self::Half => Self::Alone,
            Self::Alone => Self::Normal,
        }
    }

    /// In words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Normal => "conversation and sidebar",
            Self::Half => "half and half",
            Self::Alone => "conversation only",
        }
    }
}

/// Returns what the layout is now.
fn preset(app: &App) -> Preset {
    match (app.screen.rail, app.screen.half) {
        (false, _) => Preset::Alone,
        (true, true) => Preset::Half,
        (true, false) => Preset::Normal,
    }
}

fn next_layout(app: &mut App) -> Vec<Effect> {
    if let Some(why) = disabled(app, Action("screen.layout")) {
        app.say(why);
        return Vec::new();
    }
    let next = preset(app).next();
    app.screen.zoom = Default::default();
    app.screen.half = next == Preset::Half;
    app.screen.rail = next != Preset::Alone;
    app.say(format!("Layout: {}", next.word()));
    let gone = is_at_side(app);
    if gone && !app.screen.rail { vec![Effect::Focus(View::Composer)] } else { Vec::new() }
}

/// The view with the focus lies in a panel at a side.
fn is_at_side(app: &App) -> bool {
    let sides = app.screen.areas.iter().flat_map(|a| a.tree.iter().chain(&a.rail));
    sides.into_iter().any(|p| p.view == app.screen.focus)
}

fn reset(app: &mut App) -> Vec<Effect> {
    app.screen.zoom = Default::default();
    app.screen.rail = true;
    app.screen.half = false;
    vec![Effect::Focus(View::Composer)]
}

#[cfg(test)]
#[path = "focus_tests.rs"]
mod focus_tests;

#[cfg(test)]
mod tests {
    use crate::panel::View;
    use crate::testing::Robot;
    use crate::view::layout::Zoom;

    #[test]
    fn each_press_gives_the_pane_more_room_or_says_why_not() {
        for (width, height) in [(140, 40), (118, 25), (80, 24)] {
            for view in [View::Conversation, View::Todo, View::Composer] {
                let mut r = Robot::new(width, height);
                r.app.focus(view);
                for _ in 0..3 {
                    let (before, zoom) = (r.screen(), r.app.screen.zoom);
                    super::zoom(&mut r.app, true);
                    r.app.redraw();
                    let after = r.msg(crate::app::msg::Msg::Tick).screen();
                    let changed = r.app.screen.zoom != zoom && after != before;
                    assert!(
                        changed || after.contains("already as large as it can be"),
                        "{width}x{height} {view:?}\n{after}"
                    );
                }
                assert!(view != View::Composer || r.app.screen.zoom == Zoom::Normal);
            }
        }
    }
}
