//! Choose what runs without asking. The most permissive profile is asked for twice.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, Profile};

use super::confirm::Confirm;
use super::picker::{Item, Picker, Source};
use crate::effect::Effect;
use crate::model::Model;

struct Profiles;

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Profiles)
}

/// What a profile means, in one line.
pub(crate) fn meaning(profile: Profile) -> &'static str {
    match profile {
        Profile::ReadOnly => "nothing is written, nothing runs",
        Profile::Plan => "nothing is written or run until you approve a plan",
        Profile::Ask => "reads are free, the rest asks",
        Profile::AutoEdit => "edits in this folder are free, commands ask",
        Profile::Full => "everything runs but what is denied, protected or dangerous",
    }
}

/// The effects that change to `profile`, with a question before the most permissive one.
pub(crate) fn change(profile: Profile) -> Vec<Effect> {
    let then = vec![Effect::Send(CommandBody::Session(SessionCommand::SetProfile { profile }))];
    if profile != Profile::Full {
        return then;
    }
    let text = "The agent will edit and run without asking. Only denied, protected and dangerous acts still ask.\n\n\
                Nothing confines its commands to this folder.";
    vec![Effect::Push(Box::new(Confirm::new("change to AUTO?", text, "yes, change to AUTO", then)))]
}

impl Source for Profiles {
    fn title(&self) -> String {
        "permissions".into()
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let now = |p| if p == model.session.profile { "now" } else { "" };
        Profile::ALL
            .iter()
            .map(|p| {
                Item::new(p.name(), format!("{:10} {:5} {}", p.name(), p.word(), meaning(*p))).detail(now(*p))
            })
            .collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        item.id.parse().map(change).unwrap_or_default()
    }
}
