//! Commands from files, of plugins, of the user and of the project: the engine puts their text in place of their name.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{CommandBody, Message, SendMode};

use super::{Commands, SlashCommand};
use crate::app::effect::Effect;
use crate::model::Model;

/// Longest help, in characters.
const HELP: usize = 70;

/// A command that sends a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCommand {
    /// Without the slash.
    pub name: String,
    /// Its description.
    pub about: String,
    /// How its arguments are written; may be empty.
    pub usage: String,
}

impl PromptCommand {
    /// Returns what it does, in one line that is not empty.
    pub(crate) fn help(&self) -> String {
        let about = self.about.split_whitespace().collect::<Vec<_>>().join(" ");
        let about = if about.is_empty() { "Send a prompt from a file".to_owned() } else { about };
        about.chars().take(HELP).collect()
    }

    /// How it is written with its arguments; empty: it takes none.
    pub(crate) fn written(&self) -> String {
        match self.usage.trim() {
            "" => String::new(),
            usage => format!("/{} {}", self.name, usage.chars().take(HELP).collect::<String>()),
        }
    }
}

struct Sends {
    name: &'static str,
    help: &'static str,
    usage: &'static str,
}

impl SlashCommand for Sends {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn of_file(&self) -> bool {
        true
    }

    /// The engine puts the command's text in place of its name.
    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![call(self.name, args)])
    }
}

/// Sends the command of this name.
pub(crate) fn call(name: &str, args: &str) -> Effect {
    let message = Message::text(format!("/{name} {args}").trim_end());
    Effect::send(CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }))
}

impl Commands {
    /// With these commands from files in place of all others from files. They live as long as the process: only a list that
    /// differs from the one before is worth a call.
    pub(crate) fn with_files(self, files: &[PromptCommand]) -> Self {
        let others: Vec<&'static dyn SlashCommand> =
            self.0.iter().copied().filter(|c| !c.of_file()).collect();
        Self(Box::leak(others.into_boxed_slice())).with(files)
    }

    /// With these commands, too, in order of names; one whose name is taken is left out. They live as long as the process,
    /// which makes one screen.
    pub fn with(self, more: &[PromptCommand]) -> Self {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let mut all: Vec<&'static dyn SlashCommand> = self.0.to_vec();
        for command in more {
            if self.exists(&command.name) || all.iter().any(|c| c.name() == command.name) {
                continue;
            }
            all.push(Box::leak(Box::new(Sends {
                name: leak(command.name.clone()),
                help: leak(command.help()),
                usage: leak(command.written()),
            })));
        }
        all.sort_by_key(|c| c.name());
        Self(Box::leak(all.into_boxed_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &str, usage: &str) -> PromptCommand {
        PromptCommand { name: name.into(), about: "of the team".into(), usage: usage.into() }
    }

    fn sent(commands: Commands, name: &str, args: &str) -> String {
        let effects = commands.find(name).unwrap().run(args, &Model::default());
        let Ok([Effect::Command(request)]) = effects.as_deref() else { panic!("{name}") };
        let CommandBody::Turn(TurnCommand::Submit { message, .. }) = &request.body else { panic!("{name}") };
        message.text.clone()
    }

    #[test]
    fn a_command_from_a_file_is_sent_by_its_name() {
        let more = [command("deploy", "[stage]"), command("standup", ""), command("quit", "never")];
        let all = crate::slash::COMMANDS.with(&more);
        assert_eq!(sent(all, "deploy", "staging"), "/deploy staging");
        assert_eq!(sent(all, "standup", ""), "/standup");
        assert_eq!(all.find("deploy").unwrap().usage(), "/deploy [stage]");
        assert_eq!(all.find("quit").unwrap().help(), "Quit Tiller", "a name that is taken stays");
        assert!(all.0.iter().map(|c| c.name()).is_sorted());
    }

    #[test]
    fn files_take_the_place_of_those_before() {
        let all = crate::slash::COMMANDS.with(&[command("deploy", ""), command("standup", "")]);
        let all = all.with_files(&[command("standup", "[day]"), command("fresh", "")]);
        assert!(all.find("deploy").is_none() && all.find("fresh").is_some() && all.find("quit").is_some());
        assert_eq!(all.find("standup").unwrap().usage(), "/standup [day]");
    }

    #[test]
    fn a_command_of_a_folder_is_found_by_its_own_name_where_that_is_unique() {
        let more = ["web:build", "ops:build", "team:review", "team:quit"].map(|name| command(name, ""));
        let all = crate::slash::COMMANDS.with(&more);
        assert_eq!(sent(all, "team:review", "it"), "/team:review it");
        assert_eq!(sent(all, "review", "it"), "/team:review it");
        assert_eq!(all.find("quit").unwrap().help(), "Quit Tiller");
        assert!(all.find("build").is_none());
        let said = all.unknown("build");
        assert!(said.contains("/ops:build, /web:build"), "{said}");
    }
}
