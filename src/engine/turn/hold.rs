//! Applies the terms of a message to its turn: the tools of its own command and its skills, and the command's model.

use tiller_config::agents::Tier;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{ModelRef, Notice, NoticeKind};

use crate::core::Core;
use crate::session::model;
use crate::turn::terms::{ToolList, TurnTerms};

/// A turn begins with these terms. Those of the turn before end.
pub(crate) fn begin(core: &mut Core, terms: TurnTerms) {
    over(core);
    core.services.permit.clear_limits();
    add(core, terms);
}

/// A message with terms joins the turn: they hold from now on. A model is only changed where a turn begins.
pub(crate) fn join(core: &mut Core, mut terms: TurnTerms) {
    terms.model = None;
    add(core, terms);
}

fn add(core: &mut Core, terms: TurnTerms) {
    for list in terms.limits {
        core.services.permit.limit(&list.of, &list.entries);
    }
    if let Some((command, name)) = terms.model {
        switch(core, &command, &name);
    }
}

/// The agent has loaded a skill: its tools are the only ones until the turn ends.
pub(crate) fn loaded(core: &Core, name: &str) {
    let entries = core.services.skills().allowed_tools(name);
    if let Some(list) = of_skill(name, entries) {
        core.services.permit.limit(&list.of, &list.entries);
    }
}

/// The terms of the skills of these names.
pub(crate) fn of_skills<'a>(core: &Core, names: impl IntoIterator<Item = &'a str>) -> Vec<ToolList> {
    let skills = core.services.skills();
    names.into_iter().filter_map(|name| of_skill(name, skills.allowed_tools(name))).collect()
}

/// The turn has ended: the model from before it is in use again, unless another one was chosen meanwhile.
pub(crate) fn over(core: &mut Core) {
    let Some((chosen, before)) = core.turn.model_before.take() else { return };
    if core.session.model == chosen {
        core.session.model = before;
        show(core);
    }
}

/// Answers with the model of an own command, where it can be used.
fn switch(core: &mut Core, command: &str, name: &str) {
    let Some(wanted) = resolve(core, name) else { return };
    let why = match wanted {
        Ok(model) if model == core.session.model => return,
        Ok(model) => match model::provider(core, &model) {
            Ok(_) => {
                let before = std::mem::replace(&mut core.session.model, model.clone());
                core.turn.model_before = Some((model, before));
                return show(core);
            }
            Err(e) => e.to_string(),
        },
        Err(why) => why,
    };
    let text =
        format!("/{command} asks for the model {name}, which is not used: {}", why.trim_end_matches('.'));
    core.notice(Notice::new(NoticeKind::Info, text).hint(format!("{} answers", core.session.model)));
}

/// The model of a tier, of a full name, or of a name at the provider in use. `None`: the one in use.
fn resolve(core: &Core, name: &str) -> Option<Result<ModelRef, String>> {
    let config = core.services.config();
    let tier = match name {
        "inherit" | "default" => return None,
        // As files for another program name them.
        "haiku" => Some(Tier::Fast),
        "sonnet" => Some(Tier::Main),
        "opus" => Some(Tier::Deep),
        other => Tier::of(other),
    };
    let of_tier = |tier: Tier| {
        let named = match tier {
            Tier::Fast => &config.tiers.fast,
            Tier::Main => &config.tiers.main,
            Tier::Deep => &config.tiers.deep,
        };
        named.clone().map(ModelRef).ok_or_else(|| format!("no model is set for the tier {}", tier.word()))
    };
    Some(match tier {
        Some(tier) => of_tier(tier),
        None if name.contains('/') => Ok(ModelRef(name.to_owned())),
        None => {
            let model = ModelRef(format!("{}/{name}", core.session.model.provider()));
            match model::stated_info(core, &model).window {
                Some(_) => Ok(model),
                None => Err("its provider is not named, and the one in use has none of this name".into()),
            }
        }
    })
}

/// Sends the model that answers to the clients. It is not stored: the session keeps its own.
fn show(core: &Core) {
    let (model, window) = (core.session.model.clone(), model::window(core));
    core.state(None, StateEvent::ModelChanged { model, window });
}

fn of_skill(name: &str, entries: Vec<String>) -> Option<ToolList> {
    (!entries.is_empty()).then(|| ToolList { of: format!("the skill {name}"), entries })
}
