//! Errors and notices of this session, newest first: cause, what to do, technical details.

use tiller_protocol::notice::{capital, sentence};
use tiller_protocol::{Notice, Time};

use crate::app::App;
use crate::app::effect::{Effect, Task};
use crate::dialog::picker::{Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::registry::{Dialog, Opener};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("errors.open", "errors", "Show errors and notices", |app| {
        Ok(Box::new(open(app)))
    })
    .menu(Menu::Go)
    .keys(&["leader e"])],
    groups: &[("Error log", ACTIONS)],
    scopes: &[Scope::new("errors", Some("picker"), "Error log", true)
        .keys(&[("alt-c", "errors.copy"), ("leader y", "errors.copy")])],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
pub const ACTIONS: &[ActionSpec] = &[ActionSpec::key_only("errors.copy", "copy", "Copy the whole entry")];

struct ErrorLog {
    notices: Vec<(Time, Notice)>,
}

/// Makes it.
pub(crate) fn open(app: &App) -> Picker {
    Picker::new(ErrorLog { notices: app.model.notices.iter().rev().cloned().collect() })
}

/// The full text of a notice.
fn whole(n: &Notice) -> String {
    let mut text = sentence(&n.message);
    for h in &n.hints {
        text.push_str("\n\nWhat to do: ");
        text.push_str(&sentence(h));
    }
    if let Some(d) = &n.detail {
        text.push_str("\n\n");
        text.push_str(d);
    }
    text
}

impl ErrorLog {
    fn of(&self, item: &Item) -> Option<&Notice> {
        let n: usize = item.id.parse().ok()?;
        self.notices.get(n).map(|(_, n)| n)
    }
}

impl Source for ErrorLog {
    fn title(&self) -> String {
        "Errors and notices".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "errors",
            actions: ACTIONS,
            verb: "copy",
            empty: "No errors: what goes wrong is listed here, with its cause and what to do",
            ..ListSpec::default()
        }
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 != "errors.copy" {
            return None;
        }
        let text = item.and_then(|i| self.of(i)).map(whole)?;
        Some(Outcome::Stay { effects: vec![Effect::Task(Task::Copy { text, what: "entry" })], reload: false })
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        self.notices
            .iter()
            .enumerate()
            .map(|(i, (time, n))| {
                let ago = crate::dialog::commands::palette::ago(model.now.millis() - time.millis());
                Item::new(i.to_string(), capital(&n.message)).detail(ago)
            })
            .collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        self.of(item).map(whole)
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        let text = self.of(item).map(whole).unwrap_or_default();
        vec![Effect::Task(Task::Copy { text, what: "entry" })]
    }
}
