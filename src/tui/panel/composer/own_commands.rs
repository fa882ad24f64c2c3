//! Commands from files: they may be made or changed while the program runs, so the engine reads them again when the list of
//! commands opens, and when a name is sent that no command has.

use tiller_protocol::command::Query;
use tiller_protocol::notice::sentence;
use tiller_protocol::skill::{CommandRow, SkillQuery};
use tiller_protocol::{CommandBody, SendMode};

use super::popup::{Popup, PopupKind};
use super::{COMMANDS, Composer};
use crate::app::effect::Effect;
use crate::model::Model;
use crate::panel::Reply;
use crate::slash::{self, PromptCommand};

/// The own commands that are known.
#[derive(Default)]
pub(super) struct OwnCommands {
    /// As the engine last said.
    rows: Vec<CommandRow>,
    /// They were read since the list last opened.
    current: bool,
    /// A text with a name that no command had when it was sent: it is sent again when they have been read.
    again: Option<(String, SendMode)>,
}

impl OwnCommands {
    /// Has them read. A text that waits for an earlier answer, which may never come, is not sent any more.
    pub(super) fn ask(&mut self) -> Effect {
        (self.current, self.again) = (false, None);
        Effect::ask(CommandBody::Query(Query::Skills { query: SkillQuery::Commands }), COMMANDS)
    }

    /// Why the command of this name is not used and what to do; `None`: there is none, or it is used.
    fn unused(&self, name: &str) -> Option<String> {
        let row = self.rows.iter().find(|row| row.name == name && !row.unused.is_empty())?;
        Some(sentence(&row.unused))
    }
}

impl Composer {
    /// The text was not sent: returns why. A command that no list had may have been made since the last list.
    pub(super) fn stay(&mut self, text: &str, mode: SendMode, why: String) -> Reply {
        let name = slash::parse(text.trim()).map(|(name, _)| name).filter(|name| !self.commands.exists(name));
        self.notice = Some(name.and_then(|name| self.reported.commands.unused(name)).unwrap_or(why));
        if name.is_none() || self.reported.commands.current {
            return Reply::done();
        }
        let ask = self.reported.commands.ask();
        self.reported.commands.again = Some((text.to_owned(), mode));
        Reply::with(ask)
    }

    /// Takes the commands that the engine has read.
    pub(super) fn commands_reported(&mut self, rows: &[CommandRow], model: &Model) -> Reply {
        self.reported.commands.current = true;
        if self.reported.commands.rows != rows {
            self.reported.commands.rows = rows.to_vec();
            let used = rows.iter().filter(|row| row.unused.is_empty()).map(|row| PromptCommand {
                name: row.name.clone(),
                about: row.description.clone(),
                usage: row.hint.clone(),
            });
            self.commands = self.commands.with_files(&used.collect::<Vec<_>>());
        }
        let again = self.reported.commands.again.take();
        if let Some((_, mode)) = again.filter(|(text, _)| *text == self.content.message().text) {
            return self.send(mode, model);
        }
        if self.popup.as_ref().is_none_or(|p| p.kind == PopupKind::Slash && !p.moved) {
            self.popup = Popup::at(&self.content.edit, self.commands, &self.reported.prompts)
                .filter(|p| p.kind == PopupKind::Slash);
        }
        Reply::done()
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::command::TurnCommand;
    use tiller_protocol::event::ReplyEvent;
    use tiller_protocol::skill::SkillReply;
    use tiller_protocol::{EventBody, Message, Notice, NoticeKind};

    use super::*;
    use crate::testing::Robot;

    fn asks(c: &CommandBody) -> bool {
        matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Commands }))
    }

    fn report(r: &mut Robot, rows: Vec<CommandRow>) {
        let id = r.asked(asks);
        let reply = SkillReply::Commands { rows };
        r.cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
    }

    fn sent(r: &Robot) -> Option<Message> {
        r.commands().into_iter().find_map(|c| match c {
            CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.clone()),
            _ => None,
        })
    }

    #[test]
    fn a_command_that_is_made_while_the_program_runs_is_listed_and_sent() {
        let mut r = Robot::new(118, 25);
        r.run("type /fre");
        let fresh =
            CommandRow { name: "fresh".into(), description: "Just made".into(), ..CommandRow::default() };
        report(&mut r, vec![fresh]);
        assert!(r.screen().contains("Just made"), "{}", r.screen());
        r.run("type sh; enter");
        assert_eq!(sent(&r), Some(Message::text("/fresh")), "{}", r.screen());
        r.clear();
        // It is gone since.
        r.run("type /");
        report(&mut r, Vec::new());
        r.run("type fresh; enter");
        assert!(sent(&r).is_none() && r.screen().contains("There is no command /fresh"), "{}", r.screen());
    }

    #[test]
    fn a_name_that_could_not_be_looked_for_is_not_sent_when_it_is_typed_again() {
        let mut r = Robot::new(118, 25);
        r.run("type /brandnew; enter");
        let id = r.asked(asks);
        let notice = Notice::new(NoticeKind::Internal, "the query could not be answered");
        r.cause(id, EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
        r.run("ctrl-u; type /brandnew");
        report(&mut r, vec![CommandRow { name: "brandnew".into(), ..CommandRow::default() }]);
        assert!(sent(&r).is_none(), "{:?}", r.commands());
        r.run("enter");
        assert_eq!(sent(&r), Some(Message::text("/brandnew")));
    }

    #[test]
    fn an_unknown_name_is_looked_for_once_and_one_that_is_not_trusted_says_what_to_do() {
        let mut r = Robot::new(118, 25);
        r.run("type /brandnew; enter");
        assert!(sent(&r).is_none(), "{:?}", r.commands());
        let row = |unused: &str| CommandRow {
            name: "brandnew".into(),
            unused: unused.into(),
            ..CommandRow::default()
        };
        report(&mut r, vec![row("the command /brandnew is not used: see `tiller trust`")]);
        assert!(
            r.screen().contains("The command /brandnew is not used: see `tiller trust`."),
            "{}",
            r.screen()
        );
        assert!(sent(&r).is_none(), "{:?}", r.commands());
        r.run("ctrl-u; type /");
        report(&mut r, vec![row("")]);
        r.run("type brandnew; enter");
        assert_eq!(sent(&r), Some(Message::text("/brandnew")));
    }
}
