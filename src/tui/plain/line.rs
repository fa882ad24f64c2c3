//! The meaning of a typed line: an answer by number, a `/` command, a `!` line, or a message.

use tiller_protocol::command::{AskCommand, TurnCommand};
use tiller_protocol::notice::sentence;
use tiller_protocol::{AskBody, AskReply, CommandBody, Decision, Risk, SendMode};

use super::Plain;
use super::command::{ALL, numbered, send, submit};
use super::own_commands;

impl Plain {
    /// Takes a line that the person typed.
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if self.input.script && self.own_commands.is_pending() {
            return self.own_commands.behind.push_back(line.to_owned());
        }
        if !line.starts_with("/quit") {
            self.stays();
        }
        let key = matches!(self.setup.step, Some(super::setup::PlainStep::Key(_)));
        if line.trim().is_empty() && !key {
            return;
        }
        if self.setup_line(line) {
            return;
        }
        let done = if let Some(rest) = line.strip_prefix('/') {
            self.slash(rest)
        } else if let Some(id) = self.question.id {
            self.answer(id, line.trim())
        } else if let Some(rest) = line.strip_prefix("!!") {
            send(self, CommandBody::Turn(TurnCommand::Shell { line: rest.trim().into(), share: false }))
        } else if let Some(rest) = line.strip_prefix('!') {
            send(self, CommandBody::Turn(TurnCommand::Shell { line: rest.trim().into(), share: true }))
        } else {
            submit(self, line, SendMode::Steer)
        };
        if let Err(why) = done {
            self.say(&format!("Failed: {}", sentence(&why)));
        }
    }

    /// Runs a `/` command.
    fn slash(&mut self, rest: &str) -> Result<(), String> {
        let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match ALL.iter().find(|s| s.name == name) {
            Some(s) => (s.run)(self, text.trim()),
            None => {
                if let Some(done) = super::restore::elsewhere(self, name, text.trim()) {
                    return done;
                }
                if !own_commands::is_name(name) {
                    return Err(own_commands::unknown(name));
                }
                self.look_for(rest);
                Ok(())
            }
        }
    }

    /// Answers the question that was printed last.
    fn answer(&mut self, id: tiller_protocol::AskId, text: &str) -> Result<(), String> {
        if let Some(reply) = self.question.unconfirmed.take() {
            if text == "yes" {
                self.send(CommandBody::Ask(AskCommand::Answer { id, reply }));
                return Ok(());
            }
            return Err(
                "the answer was not yes, so the question is still open; /answer shows it again".into()
            );
        }
        let ask = self.model.questions.open.iter().find(|a| a.id == id).map(|a| &a.body);
        let free = matches!(ask, Some(AskBody::Clarify { allow_freetext: true, .. } | AskBody::Plan { .. }));
        let decides = |n: &str| match ask {
            Some(AskBody::Clarify { decides, .. }) => {
                n.parse::<usize>().is_ok_and(|n| decides.contains(&n.wrapping_sub(1)))
            }
            _ => false,
        };
        let risky = |n: &str| match ask {
            Some(AskBody::Permission(p)) => p.risk != Risk::Low,
            Some(AskBody::Trust { .. }) => true,
            _ => decides(n),
        };
        let (number, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut reply = match numbered(number, self.question.choices.len()) {
            Ok(i) => self.question.choices[i].1.clone(),
            Err(_) if free => AskReply::Choice { answers: vec![text.into()] },
            Err(why) => return Err(why),
        };
        // An answer that grants something counts only once the question could be read, as on the screen.
        let allows = match &reply {
            AskReply::Permission { decision, .. } => !matches!(decision, Decision::Deny { .. }),
            AskReply::Yes { .. } => true,
            _ => false,
        };
        if allows && self.typed_ahead() {
            return Err("the line came before the question could be read; type it again".into());
        }
        match &mut reply {
            AskReply::Permission { decision: Decision::Deny { comment }, .. } if !rest.is_empty() => {
                *comment = Some(rest.trim().into());
            }
            // A number and something else may be a message that was meant for the model.
            AskReply::Choice { answers } if free && !rest.is_empty() => *answers = vec![text.into()],
            _ if !rest.is_empty() => return Err("type a number to answer".into()),
            AskReply::Permission { decision: Decision::Deny { .. }, .. } | AskReply::Declined => {}
            _ if risky(number) => {
                self.question.unconfirmed = Some(reply);
                self.say("This is risky. Type yes to allow it; anything else leaves it open.");
                return Ok(());
            }
            _ => {}
        }
        self.send(CommandBody::Ask(AskCommand::Answer { id, reply }));
        Ok(())
    }

    /// Prints the list of commands.
    pub(super) fn help(&mut self) {
        let more = super::restore::MORE.iter().filter_map(|name| crate::slash::COMMANDS.find(name));
        let more = more.map(|c| {
            let usage = c.usage().trim_start_matches('/');
            format!("/{}: {}{}{}", c.name(), usage, if usage.is_empty() { "" } else { ": " }, c.help())
        });
        let lines: Vec<String> = ALL.iter().map(|s| format!("/{}: {}", s.name, s.help)).chain(more).collect();
        self.say(&format!(
            "Type a message and press Enter. !COMMAND runs a command and shares it with the \
                agent, !!COMMAND keeps it private.\n{}",
            lines.join("\n")
        ));
        self.list_own_commands();
    }
}
