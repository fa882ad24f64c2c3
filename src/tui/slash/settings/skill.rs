//! `/skill`, `/save-skill` and `/style`.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::skill::SkillCommand;
use tiller_protocol::{CommandBody, Message, SendMode};

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/skill`
pub(crate) struct Skill;

impl SlashCommand for Skill {
    fn name(&self) -> &'static str {
        "skill"
    }

    fn help(&self) -> &'static str {
        "Load a skill into a message, like $NAME"
    }

    fn usage(&self) -> &'static str {
        "/skill NAME [WORDS]"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Err("Name a skill: /skill NAME. /skills lists them.".into());
        }
        let message = Message::text(format!("${}", args.trim_start_matches('$')));
        Ok(vec![Effect::send(CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }))])
    }
}

/// `/save-skill`
pub(crate) struct SaveSkill;

impl SlashCommand for SaveSkill {
    fn name(&self) -> &'static str {
        "save-skill"
    }

    fn help(&self) -> &'static str {
        "Save how the last task was done as a skill, or end the offers"
    }

    fn usage(&self) -> &'static str {
        "/save-skill [never | offer]"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        let command = match args {
            "" => SkillCommand::Save,
            "never" => SkillCommand::Offer { on: false },
            "offer" => SkillCommand::Offer { on: true },
            _ => return Err("Use /save-skill, /save-skill never or /save-skill offer".into()),
        };
        Ok(vec![Effect::send(CommandBody::Skill(command))])
    }
}

/// `/style`
pub(crate) struct SetStyle;

impl SlashCommand for SetStyle {
    fn name(&self) -> &'static str {
        "style"
    }

    fn help(&self) -> &'static str {
        "Choose how answers are written"
    }

    fn usage(&self) -> &'static str {
        "/style [NAME | off]"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("style.open"))
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![match args {
            "" => Effect::Act(Action("style.open")),
            "off" => Effect::send(crate::dialog::settings::style::choose("")),
            name => Effect::send(crate::dialog::settings::style::choose(name)),
        }])
    }
}
