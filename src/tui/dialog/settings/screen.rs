//! Settings of the screen: what each is now, and whether it is the user's own or the default. Choosing
//! one changes it at once, and keeps it.

use serde_json::{Value, json};
use tiller_config::schema;

use crate::app::App;
use crate::app::effect::{Effect, SettingsChange};
use crate::dialog::picker::{ACTIONS, Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, Menu};
use crate::model::Model;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("settings.open", "settings", "Change screen settings", |app| {
        Ok(Box::new(open(app)))
    })
    .menu(Menu::View)
    .keys(&["leader ,"])],
    ..Dialog::NONE
};

/// Name, what it means, and the values that choosing goes through; none: a dialog of its own.
struct Setting(&'static str, &'static str, fn() -> Vec<Value>);

/// A heading, and the settings below it.
type Group = (&'static str, &'static [Setting]);

fn switch() -> Vec<Value> {
    vec![json!(false), json!(true)]
}

fn own() -> Vec<Value> {
    Vec::new()
}

/// Every setting that can be changed here. What needs a restart says so.
const GROUPS: &[Group] = &[
    (
        "Look",
        &[
            Setting("theme", "Theme", own),
            Setting("measure", "Maximum text width in columns", || vec![json!(80), json!(100), json!(120)]),
            Setting("reduced_motion", "Reduce motion", switch),
            Setting("ascii", "Draw signs in plain ASCII", switch),
            Setting("ambiguous_wide", "Treat ambiguous characters as two columns wide", switch),
            Setting("images", "Pictures as the terminal's graphics", || vec![json!("auto"), json!("off")]),
            Setting("plain", "Plain linear text (from the next start)", switch),
        ],
    ),
    (
        "Keys and mouse",
        &[
            Setting("keymap", "Key preset", || vec![json!("default"), json!("vim"), json!("emacs")]),
            Setting("which_key_delay", "Show the key box after N ms", || {
                vec![json!(0), json!(250), json!(500), json!(1000)]
            }),
            Setting("mouse_wheel", "Scroll with the mouse wheel", switch),
            Setting("mouse_click", "Select with a mouse click", switch),
            Setting("mouse_motion", "Select text by dragging", switch),
            Setting("copy_on_select", "Copy when a drag ends", switch),
        ],
    ),
    (
        "Questions",
        &[
            Setting("approval_deaf", "Ignore keys for N ms after a question appears", || {
                vec![json!(0), json!(400), json!(800), json!(1500)]
            }),
            Setting("approval_timeout", "Auto-deny after N seconds (0 = never)", || {
                vec![json!(0), json!(60), json!(300), json!(1800)]
            }),
        ],
    ),
    (
        "Work",
        &[
            Setting("enter_while_running", "What Enter does while a turn is running", || {
                vec![json!("steer"), json!("queue")]
            }),
            Setting("branch_summary", "Summarize a branch when you leave it", || {
                vec![json!("ask"), json!("never"), json!("always")]
            }),
            Setting("notifications", "Notify when the window is not in front", switch),
            Setting("leave_last", "Leave the last exchange on the terminal at exit", switch),
        ],
    ),
];

/// Every setting with its heading.
fn settings() -> impl Iterator<Item = (&'static str, &'static Setting)> {
    GROUPS.iter().flat_map(|(group, list)| list.iter().map(move |s| (*group, s)))
}

/// The setting, a mark for the default, and its value.
const COLUMNS: &[Column] = &[Column::text("").grows(), Column::right("").rank(1), Column::key("")];

struct Settings {
    ui: Value,
    default: Value,
}

/// Makes it.
pub(crate) fn open(app: &App) -> Picker {
    let value = |ui: &schema::Ui| serde_json::to_value(ui).unwrap_or_default();
    let mut ui = value(&app.model.ui);
    ui["theme"] = app.themes.choice().into();
    Picker::new(Settings { ui, default: value(&schema::Ui::default()) })
}

/// The value in words.
fn words(v: &Value) -> String {
    match v {
        Value::Bool(true) => "on".into(),
        Value::Bool(false) => "off".into(),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// The value after this one, in a circle.
fn next(values: &[Value], now: &Value) -> Option<Value> {
    let at = values.iter().position(|v| v == now).map_or(0, |i| i + 1);
    values.get(at % values.len().max(1)).cloned()
}

/// True when a setting protects against keys that are pressed without looking.
pub(crate) fn guards(name: &str) -> bool {
    matches!(name, "approval_deaf" | "approval_timeout")
}

/// Rows for the palette: each setting with its value; the id is `setting NAME`.
pub(crate) fn rows(ui: &schema::Ui) -> Vec<Item> {
    let now = serde_json::to_value(ui).unwrap_or_default();
    let row = |(_, Setting(name, help, _)): (&str, &Setting)| {
        let mut item = Item::new(format!("setting {name}"), format!("Setting: {help}"));
        item = item.group("Settings").detail(words(&now[*name]));
        item.more = format!("ui.{name} settings");
        item.decides = guards(name);
        item
    };
    // The theme has rows of its own there.
    settings().filter(|(_, s)| s.0 != "theme").map(row).collect()
}

/// Gives the setting of this name its next value.
pub(crate) fn change(name: &str, ui: &schema::Ui) -> Option<Effect> {
    let (_, Setting(name, _, values)) = settings().find(|(_, s)| s.0 == name)?;
    let now = serde_json::to_value(ui).ok()?;
    let value = next(&values(), &now[*name])?;
    Some(Effect::Settings(SettingsChange::Set { key: format!("ui.{name}"), value }))
}

impl Source for Settings {
    fn title(&self) -> String {
        "Settings".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { actions: ACTIONS, columns: COLUMNS, verb: "change", ..ListSpec::default() }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        settings()
            .map(|(group, Setting(name, help, _))| {
                let now = &self.ui[*name];
                let origin = if *now == self.default[*name] { "" } else { "yours" };
                let mut item = Item::new(*name, *help).group(group);
                item.more = format!("ui.{name}");
                item = item.detail(origin).cell(Cell::new(words(now), Role::Text));
                item.decides = guards(name);
                item
            })
            .collect()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 != "picker.choose" {
            return None;
        }
        let (_, Setting(name, _, values)) =
            settings().find(|(_, s)| Some(s.0) == item.map(|i| i.id.as_str()))?;
        let values = values();
        let Some(value) = next(&values, &self.ui[*name]) else {
            return Some(Outcome::Close(vec![Effect::Act(Action("theme.open"))]));
        };
        self.ui[*name] = value.clone();
        let effects = vec![Effect::Settings(SettingsChange::Set { key: format!("ui.{name}"), value })];
        Some(Outcome::Stay { effects, reload: true })
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::effect::{SettingEdit, Task};
    use crate::testing::Robot;

    #[test]
    fn every_setting_exists_and_takes_every_value() {
        let all = serde_json::to_value(schema::Ui::default()).unwrap();
        for (_, Setting(name, _, values)) in settings() {
            assert!(all.get(*name).is_some(), "{name}");
            for v in values() {
                let mut one = all.clone();
                one[*name] = v;
                assert!(serde_json::from_value::<schema::Ui>(one).is_ok(), "{name}");
            }
        }
        for name in all.as_object().unwrap().keys() {
            let shown = settings().any(|(_, s)| s.0 == name)
                || ["theme_dark", "theme_light", "statusline"].contains(&name.as_str());
            assert!(shown, "{name} cannot be changed here");
        }
    }

    #[test]
    fn choosing_changes_it_at_once_and_keeps_it() {
        let mut r = Robot::new(80, 24);
        r.run("ctrl-x ,");
        insta::assert_snapshot!("settings_at_80x24", r.screen());
        r.run("type plain ascii; enter");
        assert!(r.app.model.ui.ascii);
        assert!(r.screen().contains("yours       on"), "{}", r.screen());
        let kept = |t: &Task| matches!(t, Task::SaveSetting { key, value } if key == "ui.ascii" && *value == SettingEdit::Value(json!(true)));
        assert!(r.tasks.iter().any(kept));
        r.run("enter");
        assert!(!r.app.model.ui.ascii, "and back");
    }

    #[test]
    fn the_width_of_ambiguous_characters_is_set_by_the_loop_that_owns_the_terminal() {
        let mut r = Robot::new(80, 24);
        r.run("ctrl-x ,; type ambiguous; enter");
        assert!(r.app.model.ui.ambiguous_wide, "{}", r.screen());
        assert!(!crate::text::width::ambiguous_wide());
    }

    #[test]
    fn the_tour_goes_on_when_the_person_does_what_it_says() {
        let mut r = Robot::new(80, 24);
        let step = |title: &str, action: &str| {
            (title.to_owned(), "Do this and see what happens.".to_owned(), action.to_owned())
        };
        let steps = [step("One", "composer.send"), step("Two", "view.todo"), step("Three", "help.open")];
        *r.app.model.tour = crate::model::tour::Tour::new(&steps);
        assert!(r.app.act(Action("tour.open")));
        r.run("wait 1");
        insta::assert_snapshot!("tour_at_80x24", r.screen());
        r.run("type hi; enter");
        assert!(r.screen().contains("tour 2/3  Two   Ctrl-T todo"), "{}", r.screen());
        r.run("ctrl-t; esc; ctrl-x >");
        assert!(!r.screen().contains("tour"), "{}", r.screen());
        assert!(r.app.act(Action("tour.open")));
        r.run("wait 1");
        assert!(r.screen().contains("tour 1/3"), "{}", r.screen());
        r.run("ctrl-x <");
        assert!(!r.screen().contains("tour 1/3"), "{}", r.screen());
    }
}
