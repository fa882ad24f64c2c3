//! Choose a theme; the screen shows each one while the row is chosen, and the old one again on Escape.

use crate::app::App;
use crate::app::effect::{Effect, SettingsChange};
use crate::dialog::picker::{Item, Picker, Source};
use crate::keymap::action::Menu;
use crate::model::Model;
use crate::registry::{Dialog, Opener};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("theme.open", "theme", "Choose a theme with a live preview", |app| {
        Ok(Box::new(open(app)))
    })
    .menu(Menu::View)
    .keys(&["leader t"])],
    ..Dialog::NONE
};

struct ThemeSource {
    names: Vec<String>,
    now: String,
}

/// Makes it.
pub(crate) fn open(app: &App) -> Picker {
    let mut names = vec!["auto".to_owned()];
    names.extend(app.themes.names());
    Picker::new(ThemeSource { names, now: app.themes.choice().to_owned() })
}

/// Returns what a theme is that its name does not say.
fn about(name: &str) -> &'static str {
    match name {
        "auto" => "as light or dark as the terminal",
        "ansi" => "the terminal's 16 colours",
        "mono" => "no colours",
        _ => "",
    }
}

impl Source for ThemeSource {
    fn title(&self) -> String {
        "Theme".into()
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.names.iter().map(|n| Item::new(n, n).detail(about(n)).current(*n == self.now)).collect()
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        vec![Effect::Settings(SettingsChange::Theme { name: item.map(|i| i.id.clone()), keep: false })]
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        vec![Effect::Settings(SettingsChange::Theme { name: Some(item.id.clone()), keep: true })]
    }
}
