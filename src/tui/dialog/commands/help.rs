//! Help: every key and every action, what applies here first. Made from the keymap and the list of
//! actions, so it is never out of date. Choosing a row does it.

use crate::app::App;
use crate::app::effect::Effect;
use crate::dialog::commands::palette;
use crate::dialog::picker::{Item, ListSpec, Picker, Source};
use crate::keymap::scope::Scope;
use crate::keymap::show;
use crate::keymap::vocabulary::Vocabulary;
use crate::model::Model;
use crate::registry::{Dialog, Opener};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("help.open", "help", "Search keys and commands", |app| Ok(Box::new(open(app))))
        .keys(&["f1", "leader f1"])],
    scopes: &[Scope::new("help", Some("picker"), "Help", true)],
    ..Dialog::NONE
};

/// What a person needs first, in this order; all else is below, and found by typing.
pub(super) const ESSENTIALS: [&str; 10] = [
    "composer.send",
    "composer.newline",
    "composer.queue",
    "global.escape",
    "global.profile",
    "palette.open",
    "global.answer",
    "review.open",
    "global.quit",
    "history.open",
];

struct Help {
    words: &'static Vocabulary,
    items: Vec<Item>,
}

/// Makes the list for the panel that has the focus now.
pub(crate) fn open(app: &App) -> Picker {
    let words = app.registry.words();
    let here = app.scopes();
    let mut rows: Vec<(usize, Item)> = Vec::new();
    // Each essential once, by the first of its keys.
    let mut first = ESSENTIALS.to_vec();
    for row in app.keys.map.table() {
        let near = here.iter().position(|s| *s == row.scope);
        let place = words.scope(row.scope).map_or(row.scope, |s| s.title);
        let label = words.find(row.action.0).map_or("", |s| s.label);
        let mut item = Item::new(row.action.0, format!("{:<16} {}", show(&row.keys), row.help));
        if near.is_none() {
            item.detail = place.to_owned();
            // A key of another place does nothing here; what has a name in the palette can be done all the same.
            let anywhere = words.find(row.action.0).is_some_and(|s| s.palette);
            item.disabled = (!anywhere).then(|| format!("in: {place}"));
        }
        // The draft is not in sight here: what sends it is pressed where it is.
        if matches!(row.action.0, "composer.send" | "composer.queue" | "composer.now" | "composer.take") {
            item.disabled = Some("press it in the composer".into());
        }
        item.more = format!("{} {label} {place}", row.action.0);
        let essential = first.iter().position(|id| *id == row.action.0).map(|at| first.remove(at));
        let rank = match essential.and_then(|id| ESSENTIALS.iter().position(|e| *e == id)) {
            Some(at) => {
                item.detail = "essential".into();
                at
            }
            None => near.map_or(usize::MAX, |n| n + ESSENTIALS.len()),
        };
        rows.push((rank, item));
    }
    for (group, s) in words.actions() {
        if app.keys.map.anywhere(s.action).is_none() && s.palette {
            let mut item = Item::new(s.action.0, format!("{:<16} {}", "--", s.help));
            item.detail = group.into();
            rows.push((usize::MAX, item));
        }
    }
    for (_, item) in &mut rows {
        item.decides = palette::ends(&format!("action {}", item.id));
    }
    rows.sort_by_key(|(near, _)| *near);
    Picker::new(Help { words, items: rows.into_iter().map(|(_, i)| i).collect() })
}

impl Source for Help {
    fn title(&self) -> String {
        "Help: keys and commands".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { scope: "help", ..ListSpec::default() }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.items.clone()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        self.words.find(&item.id).map(|s| Effect::Act(s.action)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Robot;

    #[test]
    fn ten_essentials_come_first_wherever_it_is_opened() {
        for before in ["wait 0", "alt-3", "alt-6"] {
            let mut r = Robot::new(80, 24);
            r.run(before);
            let shown = open(&r.app);
            let mut list = shown;
            let _ = crate::panel::Panel::handle(&mut list, crate::panel::PanelEvent::Opened, &r.app.model);
            let ids: Vec<&str> = list.rows().iter().take(10).map(|i| i.id.as_str()).collect();
            assert_eq!(ids, ESSENTIALS, "{before}");
            r.run("f1");
            // Those that only act in another place say which place instead.
            let essentials = r.screen().matches("essential").count();
            assert!((7..=10).contains(&essentials), "{}", r.screen());
        }
    }

    #[test]
    fn choosing_a_row_sends_no_draft_and_ends_nothing_unseen() {
        use crate::app::effect::Task;
        use crate::app::msg::Msg;
        use crate::input::Input;
        use crate::keymap::Chord;
        let bad = |r: &mut Robot| {
            let ends = |t: &Task| match t {
                Task::Quit => true,
                Task::Send(c) => !matches!(c.body, tiller_protocol::CommandBody::Query(_)),
                _ => false,
            };
            r.app.take_tasks().iter().any(ends)
        };
        // As fast as a hand can be: no frame is drawn between the keys.
        let press = |r: &mut Robot, key: &str| {
            r.app.update(Msg::Input(Input::Key(Chord::parse(key).unwrap().event())))
        };
        let mut r = Robot::new(118, 25);
        r.run("type half a thought");
        assert!(!bad(&mut r));
        for key in ["f1", "enter"] {
            press(&mut r, key);
            assert!(!bad(&mut r), "{key}");
        }
        r.run("wait 500; enter");
        assert!(!bad(&mut r) && r.screen().contains("half a thought"), "{}", r.screen());
        assert!(r.screen().contains("press it in the composer"), "{}", r.screen());
        let mut r = Robot::new(118, 25);
        for key in "f1 s a v e space a n d space q u i t enter".split(' ') {
            press(&mut r, key);
            assert!(!bad(&mut r), "{key}");
        }
        r.run("wait 500");
        press(&mut r, "enter");
        assert!(bad(&mut r), "once it was in sight, it is done: {}", r.screen());
    }
}
