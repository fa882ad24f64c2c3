//! Commands from files, of plugins and of the user: each sends a prompt.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{CommandBody, Message, SendMode};

use super::{Commands, SlashCommand};
use crate::app::effect::Effect;
use crate::model::Model;

/// Stands for what is typed behind the command.
const ARGUMENTS: &str = "$ARGUMENTS";
/// Longest help, in characters.
const HELP: usize = 70;

/// A command that sends a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCommand {
    /// Without the slash.
    pub name: String,
    /// What it does.
    pub about: String,
    /// `$ARGUMENTS` in it stands for what is typed behind the command.
    pub prompt: String,
}

struct Sends {
    name: &'static str,
    help: &'static str,
    prompt: &'static str,
}

impl SlashCommand for Sends {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        let text = match self.prompt.contains(ARGUMENTS) {
            true => self.prompt.replace(ARGUMENTS, args),
            false => format!("{}\n\n{args}", self.prompt),
        };
        let message = Message::text(text.trim());
        Ok(vec![Effect::send(CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }))])
    }
}

impl Commands {
    /// With these commands, too, in order of names; one whose name is taken is left out. They live as long as the process,
    /// which makes one screen.
    pub fn with(self, more: &[PromptCommand]) -> Self {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let mut all: Vec<&'static dyn SlashCommand> = self.0.to_vec();
        for command in more {
            if self.exists(&command.name) || all.iter().any(|c| c.name() == command.name) {
                continue;
            }
            let about = command.about.split_whitespace().collect::<Vec<_>>().join(" ");
            let about = if about.is_empty() { "Send a prompt from a file".to_owned() } else { about };
            all.push(Box::leak(Box::new(Sends {
                name: leak(command.name.clone()),
                help: leak(about.chars().take(HELP).collect()),
                prompt: leak(command.prompt.clone()),
            })));
        }
        all.sort_by_key(|c| c.name());
        Self(Box::leak(all.into_boxed_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &str, prompt: &str) -> PromptCommand {
        PromptCommand { name: name.into(), about: "of the team".into(), prompt: prompt.into() }
    }

    fn sent(commands: Commands, name: &str, args: &str) -> String {
        let effects = commands.find(name).unwrap().run(args, &Model::default());
        let Ok([Effect::Command(request)]) = effects.as_deref() else { panic!("{name}") };
        let CommandBody::Turn(TurnCommand::Submit { message, .. }) = &request.body else { panic!("{name}") };
        message.text.clone()
    }

    #[test]
    fn a_command_from_a_file_sends_its_prompt_with_the_arguments() {
        let more = [
            command("deploy", "Deploy to $ARGUMENTS. Then check $ARGUMENTS."),
            command("standup", "Say what was done."),
            command("quit", "never"),
        ];
        let all = crate::slash::COMMANDS.with(&more);
        assert_eq!(sent(all, "deploy", "staging"), "Deploy to staging. Then check staging.");
        assert_eq!(sent(all, "standup", ""), "Say what was done.");
        assert_eq!(sent(all, "standup", "in German"), "Say what was done.\n\nin German");
        assert_eq!(all.find("quit").unwrap().help(), "Quit Tiller", "a name that is taken stays");
        assert!(all.0.iter().map(|c| c.name()).is_sorted());
    }
}
