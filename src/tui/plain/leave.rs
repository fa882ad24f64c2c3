//! Stopping and leaving: what Ctrl-C does, and what is asked before the end.

use std::time::Duration;

use tiller_protocol::command::{Query, SessionCommand, TurnCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{AgentCommand, CommandBody, CommandId, Event, EventBody};

use super::Plain;
use crate::app::ui::Exit;

/// The second Ctrl-C within this time is harder, or the end.
const AGAIN: Duration = Duration::from_secs(2);

/// Progress of quitting.
#[derive(Default)]
pub(crate) struct QuitState {
    /// Processes are looked at before the end.
    looks: Option<CommandId>,
    /// The list of running work was shown: the next request to quit quits.
    warned: bool,
    /// When Ctrl-C was pressed last.
    pressed: Option<Duration>,
}

impl Plain {
    /// Ctrl-C, as on the full screen: stop what runs, else clear the line (the terminal does that), else quit.
    pub(crate) fn interrupt(&mut self) {
        let now = self.model.mono;
        let again = self.leaving.pressed.replace(now).is_some_and(|t| now.saturating_sub(t) < AGAIN);
        if self.input.hidden {
            self.hide(false);
            self.leaving.pressed = None;
            return self.open_setup();
        }
        if let Some(id) = self.model.agent.conversation.running_line().map(str::to_owned) {
            self.say("Stopping your command. Press Ctrl-C again to kill it.");
            return self.send(CommandBody::Turn(TurnCommand::StopTool { id }));
        }
        if self.model.agent.turn.running {
            self.say(if again { "Killing." } else { "Stopping. Press Ctrl-C again to kill its commands." });
            return self.stop_turn(again);
        }
        if again {
            return self.quit();
        }
        self.say("The line is cleared. Press Ctrl-C again to quit.");
    }

    /// Stops the turn; `hard`: with its commands, and with the agents that it waits for, which otherwise go on.
    pub(crate) fn stop_turn(&mut self, hard: bool) {
        if !hard && self.model.main_waits_for_agents() {
            self.send(CommandBody::Agent(AgentCommand::BackgroundAll));
        }
        self.send(CommandBody::Turn(TurnCommand::Interrupt { hard }));
    }

    /// Quits, but asks first when something runs.
    pub(crate) fn quit(&mut self) {
        if !self.model.engine.ready || self.leaving.warned || self.leaving.looks.is_some() {
            return self.leave();
        }
        self.send(CommandBody::Query(Query::Processes));
        self.leaving.looks = Some(CommandId(self.requests.last));
    }

    /// Takes the answer to that look; `true`: it was one, and is not read out.
    pub(crate) fn looked(&mut self, event: &Event) -> bool {
        let EventBody::Reply(reply) = &event.body else { return false };
        if self.leaving.looks.take_if(|id| event.cause == Some(*id)).is_none() {
            return false;
        }
        let mut words = Vec::new();
        if self.model.agent.turn.running {
            words.push("A turn is running; quitting stops it.".to_owned());
        }
        if matches!(**reply, ReplyEvent::ProcessesReply { .. }) {
            for p in self.model.workspace.processes.iter().filter(|p| p.state.runs()) {
                words.push(format!("{} runs in the background; quitting ends it: {}", p.id, p.command));
            }
        }
        if words.is_empty() {
            self.leave();
        } else {
            self.leaving.warned = true;
            words.push("Type /quit again to quit.".into());
            self.say(&words.join("\n"));
        }
        true
    }

    /// Forgets the warning: the next `/quit` asks again.
    pub(crate) fn stays(&mut self) {
        self.leaving.warned = false;
        self.leaving.pressed = None;
    }

    /// Saves and ends.
    pub(crate) fn leave(&mut self) {
        if self.model.engine.ready {
            self.send(CommandBody::Session(SessionCommand::Quit));
        } else {
            self.exit = Some(Exit::Quit);
        }
    }
}
