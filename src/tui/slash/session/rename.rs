//! `/rename`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/rename`
pub(crate) struct Rename;

impl SlashCommand for Rename {
    fn name(&self) -> &'static str {
        "rename"
    }

    fn help(&self) -> &'static str {
        "Rename this session"
    }

    fn usage(&self) -> &'static str {
        "/rename TITLE"
    }

    fn run(&self, args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        let Some(session) = &model.agent.session.summary else {
            return Err("The session is still being opened. Try again in a moment.".into());
        };
        if args.is_empty() {
            return Err("Write the new title after the command: /rename TITLE".into());
        }
        let rename = SessionCommand::Rename { id: session.id, title: args.to_owned() };
        Ok(vec![Effect::send(CommandBody::Session(rename))])
    }
}
