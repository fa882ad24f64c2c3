//! Commands from files: they may be made, changed or removed while the program runs, so the engine reads them when a name is
//! typed that no other command has, and for `/help`.

use std::collections::VecDeque;

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::notice::sentence;
use tiller_protocol::skill::{CommandRow, SkillQuery, SkillReply, find_command};
use tiller_protocol::{CommandBody, CommandId, SendMode};

use super::Plain;
use super::command::{ALL, submit};

/// The lines that wait for the engine's list.
#[derive(Default)]
pub(crate) struct OwnCommands {
    /// Typed lines without the slash, by the requests of the list.
    lines: Vec<(CommandId, String)>,
    /// The request of `/help`.
    help: Option<CommandId>,
    /// Lines of a script that follow such a line.
    pub(crate) behind: VecDeque<String>,
}

impl OwnCommands {
    /// True when a typed line waits for the list. The next line of a script then waits, too.
    pub(crate) fn is_pending(&self) -> bool {
        !self.lines.is_empty()
    }
}

/// True when a file can have this name of a command.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | ':');
    !name.is_empty() && name.chars().all(plain)
}

/// The message about a name that no command has.
pub(super) fn unknown(name: &str) -> String {
    let near = crate::keymap::nearest(name, ALL.iter().map(|s| s.name));
    format!("there is no command /{name}{near}")
}

impl Plain {
    /// Asks the engine for the commands from files; returns the number of the request.
    fn ask_commands(&mut self) -> CommandId {
        self.send(CommandBody::Query(Query::Skills { query: SkillQuery::Commands }));
        CommandId(self.requests.last)
    }

    /// Looks for the command of a line among those from files. `rest`: the line without the slash.
    pub(super) fn look_for(&mut self, rest: &str) {
        let request = self.ask_commands();
        self.own_commands.lines.push((request, rest.to_owned()));
    }

    /// Lists the commands from files once they have been read.
    pub(super) fn list_own_commands(&mut self) {
        self.own_commands.help = Some(self.ask_commands());
    }

    /// Takes the answer to one of these requests. False: it answers another.
    pub(super) fn own_commands_read(&mut self, cause: Option<CommandId>, reply: &ReplyEvent) -> bool {
        let Some(cause) = cause else { return false };
        let rows = match reply {
            ReplyEvent::SkillsReply { reply: SkillReply::Commands { rows } } => Ok(rows),
            other => Err(other),
        };
        if self.own_commands.help == Some(cause) {
            self.own_commands.help = None;
            if let Ok(rows) = rows {
                self.say_own_commands(rows);
            }
            return true;
        }
        let Some(at) = self.own_commands.lines.iter().position(|(request, _)| *request == cause) else {
            return false;
        };
        let (_, rest) = self.own_commands.lines.remove(at);
        match rows {
            Ok(rows) => {
                if let Err(why) = self.call(&rest, rows) {
                    self.say(&format!("Failed: {}", sentence(&why)));
                }
            }
            Err(other) => self.reply(other),
        }
        while !self.own_commands.is_pending() {
            let Some(line) = self.own_commands.behind.pop_front() else { break };
            self.line(&line);
        }
        true
    }

    /// Sends the line of a command from a file: the engine puts its text in place of its name.
    fn call(&mut self, rest: &str, rows: &[CommandRow]) -> Result<(), String> {
        let name = rest.split(char::is_whitespace).next().unwrap_or_default();
        let used = rows.iter().filter(|row| row.unused.is_empty());
        if find_command(used, name, |row| row.name.as_str()).is_some() {
            return submit(self, &format!("/{rest}"), SendMode::Steer);
        }
        let unused = find_command(rows.iter(), name, |row| row.name.as_str());
        Err(unused.map_or_else(|| unknown(name), |row| row.unused.clone()))
    }

    fn say_own_commands(&mut self, rows: &[CommandRow]) {
        let used = rows.iter().filter(|row| row.unused.is_empty());
        let line = |row: &CommandRow| {
            let words = [row.hint.as_str(), row.description.as_str()].into_iter().filter(|w| !w.is_empty());
            let words: Vec<&str> = words.collect();
            format!("/{}{}{}", row.name, if words.is_empty() { "" } else { ": " }, words.join(": "))
        };
        let lines: Vec<String> = used.map(line).collect();
        if !lines.is_empty() {
            self.say(&format!("Commands from files:\n{}", lines.join("\n")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::START;
    use std::sync::Arc;
    use tiller_protocol::command::TurnCommand;
    use tiller_protocol::{AgentId, Event, EventBody, ManualClock, Notice, NoticeKind, SeqIds, SessionId};

    use crate::app::msg::Msg;

    fn plain() -> Plain {
        let mut plain = Plain::new(Box::new(std::io::sink()), Arc::new(ManualClock::new(START)));
        plain.waiting();
        plain
    }

    /// Answers the open request.
    fn answer(plain: &mut Plain, reply: ReplyEvent) {
        let session = SessionId::fresh(&SeqIds::default(), START);
        let cause = plain.own_commands.lines.first().map(|(request, _)| *request);
        let body = EventBody::Reply(Box::new(reply));
        plain.take(Msg::Engine(Box::new(Event {
            seq: 1,
            time: START,
            session,
            agent: AgentId::main(),
            cause,
            body,
        })));
    }

    fn rows(names: &[(&str, &str)]) -> ReplyEvent {
        let row = |(name, unused): &(&str, &str)| CommandRow {
            name: (*name).into(),
            unused: (*unused).into(),
            ..CommandRow::default()
        };
        ReplyEvent::SkillsReply { reply: SkillReply::Commands { rows: names.iter().map(row).collect() } }
    }

    fn sent(plain: &mut Plain) -> Vec<String> {
        let text = |c| match c {
            CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.text),
            _ => None,
        };
        plain.waiting().into_iter().filter_map(text).collect()
    }

    #[test]
    fn a_command_from_a_file_is_looked_for_when_it_is_typed() {
        let mut p = plain();
        p.line("/deploy it now");
        assert!(sent(&mut p).is_empty());
        answer(&mut p, rows(&[("deploy", "")]));
        assert_eq!(sent(&mut p), ["/deploy it now"]);
        p.line("/ship");
        answer(&mut p, rows(&[("team:ship", "")]));
        assert_eq!(sent(&mut p), ["/ship"]);
        // Others that are not used do not count.
        p.line("/ship");
        answer(&mut p, rows(&[("ops:ship", "the command /ops:ship is not used"), ("team:ship", "")]));
        assert_eq!(sent(&mut p), ["/ship"]);
        // It is gone, or not trusted.
        for known in [rows(&[]), rows(&[("deploy", "the command /deploy is not used")])] {
            p.line("/deploy");
            answer(&mut p, known);
            assert!(sent(&mut p).is_empty());
        }
        assert!(p.call("sesions", &[]).is_err_and(|why| why.ends_with("did you mean 'sessions'?")));
        p.line("/usr/bin");
        assert!(p.waiting().is_empty(), "no file can have this name");
    }

    #[test]
    fn the_lines_of_a_script_stay_in_order() {
        let mut p = plain();
        p.input.script = true;
        p.line("/deploy");
        p.line("/other");
        p.line("hello");
        assert!(sent(&mut p).is_empty());
        answer(&mut p, rows(&[("deploy", "")]));
        // The second one is looked for now.
        assert_eq!(sent(&mut p), ["/deploy"]);
        let notice = Notice::new(NoticeKind::Internal, "the query could not be answered");
        answer(&mut p, ReplyEvent::ErrorReply { notice });
        assert_eq!(sent(&mut p), ["hello"]);
    }
}
