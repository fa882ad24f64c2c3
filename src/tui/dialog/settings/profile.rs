//! Choose what runs without asking. The most permissive profile is asked for twice.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, Profile};

use crate::app::effect::Effect;
use crate::dialog::confirm::Confirm;
use crate::dialog::picker::{Item, Picker, Source};
use crate::model::Model;
use crate::registry::{Dialog, Opener};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("profile.open", "permissions", "Choose what runs without asking", |_| {
        Ok(Box::new(open()))
    })],
    ..Dialog::NONE
};

struct Profiles;

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Profiles)
}

/// What a profile means, in one line.
pub(crate) fn meaning(profile: Profile) -> &'static str {
    match profile {
        Profile::ReadOnly => "no edits, no commands",
        Profile::Plan => "no edits or commands until you approve a plan",
        Profile::Ask => "reads run; everything else needs approval",
        Profile::AutoEdit => "edits in this folder run; commands need approval",
        Profile::Full => "everything runs except denied, protected or dangerous actions",
    }
}

/// The effects that change to `profile`, with a question before the most permissive one.
pub(crate) fn change(profile: Profile) -> Vec<Effect> {
    let then = vec![Effect::send(CommandBody::Session(SessionCommand::SetProfile { profile }))];
    if profile != Profile::Full {
        return then;
    }
    let text = "Runs everything without asking, except denied, protected and dangerous actions.\n\nCommands \
    are not confined to this folder.";
    vec![Effect::Push(Box::new(Confirm::new("Switch to AUTO mode?", text, "switch to AUTO", then)))]
}

impl Source for Profiles {
    fn title(&self) -> String {
        "Permissions".into()
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let now = |p| if p == model.agent.session.profile { "now" } else { "" };
        Profile::ALL
            .iter()
            .map(|p| {
                let text = format!("{:10} {:5} {}", p.name(), p.word(), meaning(*p));
                let decides = !matches!(p, Profile::ReadOnly | Profile::Plan);
                Item { decides, ..Item::new(p.name(), text).detail(now(*p)) }
            })
            .collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        item.id.parse().map(change).unwrap_or_default()
    }
}
