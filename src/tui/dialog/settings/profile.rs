//! Choose what runs without asking. The most permissive profile is asked for twice.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, Profile};

use crate::app::effect::Effect;
use crate::dialog::confirm::Confirm;
use crate::dialog::picker::{Item, ListSpec, Picker, Source};
use crate::keymap::action::Menu;
use crate::model::Model;
use crate::registry::{Dialog, Opener};
use crate::view::header::profile_role;
use crate::widget::table::Column;
use crate::widget::{draw, sign};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("profile.open", "permissions", "Choose what runs without asking", |_| {
        Ok(Box::new(open()))
    })
    .menu(Menu::Agents)],
    ..Dialog::NONE
};

struct Profiles;

/// The word of the header, and what it means.
const COLUMNS: &[Column] = &[Column::text(""), Column::text("").grows()];

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Profiles)
}

/// Returns what a profile means, in one line.
pub(crate) fn meaning(profile: Profile) -> &'static str {
    match profile {
        Profile::ReadOnly => "no edits, no commands",
        Profile::Plan => "no edits or commands until you approve a plan",
        Profile::Ask => "reads run; everything else needs approval",
        Profile::AutoEdit => "edits in this folder run; commands need approval",
        Profile::Full => "everything in this folder runs; dangerous actions ask",
    }
}

/// The effects that change to `profile`, with a question before the most permissive one.
pub(crate) fn change(profile: Profile) -> Vec<Effect> {
    let then = vec![Effect::send(CommandBody::Session(SessionCommand::SetProfile { profile }))];
    if profile != Profile::Full {
        return then;
    }
    let text = "Runs everything in this folder without asking.\n\nDangerous actions, writing elsewhere, and reading \
    keys or personal data still ask.";
    vec![Effect::Push(Box::new(Confirm::new("Switch to AUTO mode?", text, "switch to AUTO", then)))]
}

impl Source for Profiles {
    fn title(&self) -> String {
        "Permissions".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { columns: COLUMNS, ..ListSpec::default() }
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let row = |p: &Profile| {
            let mut item = Item::new(p.name(), p.word())
                .sign(draw::sign(sign::BAR), profile_role(*p))
                .detail(meaning(*p))
                .current(*p == model.agent.session.profile);
            item.decides = !matches!(p, Profile::ReadOnly | Profile::Plan);
            item.more = p.name().into();
            item
        };
        Profile::ALL.iter().map(row).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        item.id.parse().map(change).unwrap_or_default()
    }
}
