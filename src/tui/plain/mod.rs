//! Linear text for screen readers, dumb terminals and people who want it: labelled turns, numbered
//! choices, nothing is ever drawn twice. Everything can be reached by `/` commands.

mod ask;
mod back;
mod command;
mod crew;
mod flow;
mod leave;
mod say;
mod setup;
mod shell;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tiller_protocol::command::{AskCommand, ContextCommand, Query, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::{
    AgentId, AskBody, AskReply, Clock, Command, CommandBody, CommandId, Event, EventBody, SessionSummary,
};

use crate::app::inbox::{Inbox, Post};
use crate::app::msg::Msg;
use crate::app::ui::{Exit, UiError, UiOptions};
use crate::model::Model;
use crate::terminal::signals::Signals;

/// How often "still running" is said, at most.
const STILL: Duration = Duration::from_secs(15);

/// How long a command that the engine did not take waits.
const RETRY: Duration = Duration::from_millis(5);

/// The state of the linear face.
pub(crate) struct Plain {
    pub(crate) model: Model,
    pub(crate) out: Box<dyn Write + Send>,
    clock: Arc<dyn Clock>,
    next: u64,
    outbox: VecDeque<Command>,
    /// Words of the reply that do not make a whole line yet.
    pub(crate) partial: String,
    /// Rows of a table that has not ended yet: it is read out as sentences.
    pub(crate) table: String,
    /// Something of this reply has been printed.
    pub(crate) speaking: bool,
    /// When the turn began, and when something was said last.
    started: Option<Duration>,
    said: Duration,
    /// The person's own line that runs.
    shell: Option<shell::Shell>,
    /// Answers by number to the question that was read out last.
    pub(crate) choices: Vec<(String, AskReply)>,
    pub(crate) asked: Option<tiller_protocol::AskId>,
    pub(crate) read: ReadOut,
    deadlines: crate::app::deadline::Deadlines,
    /// What `/open N` means.
    pub(crate) sessions: Vec<SessionSummary>,
    /// Lines come from a file or a pipe: its end is no wish to leave before the answers are there.
    script: bool,
    /// There will be no more lines.
    over: bool,
    pub(crate) setup: setup::Setup,
    pub(crate) leaving: leave::Leaving,
    pub(crate) doors: Doors,
    /// Messages and `!` lines that the engine has not taken up yet, questions that it has not answered.
    owed: Vec<CommandId>,
    pub(crate) exit: Option<Exit>,
}

/// The question that was read out last.
#[derive(Default)]
pub(crate) struct ReadOut {
    pub(crate) at: Duration,
    /// A risky yes to it that waits for the word.
    pub(crate) sure: Option<AskReply>,
}

/// Ways out of this face: to set a model up, to keep a setting, to be told what came of a job.
#[derive(Default)]
pub(crate) struct Doors {
    connect: Option<crate::app::ui::SetUp>,
    save: Option<crate::app::ui::SaveSetting>,
    tx: Option<Post>,
    /// What is typed is not shown.
    hidden: bool,
}

/// Runs until the end of input or `/quit`.
pub(crate) fn run(
    o: UiOptions,
    (tx, rx): (Post, Inbox),
    why: &str,
    commands: Box<dyn Fn(Command) -> bool + Send>,
) -> Result<Exit, UiError> {
    let signals = Signals::start(tx.clone())?;
    // No modes to put back: a stop may come at any moment.
    signals.away(true);
    let jobs = tx.clone();
    // It holds a sender; it ends with its input, or with the process: a blocked read cannot be woken.
    std::thread::Builder::new().name("tiller-lines".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if tx.send(Msg::Line(Some(line))).is_err() {
                return;
            }
        }
        let _ = tx.send(Msg::Line(None));
    })?;
    let mut plain = Plain::new(Box::new(std::io::stdout()), Arc::clone(&o.clock));
    plain.model.ui = Arc::new(o.config);
    plain.script = !std::io::stdin().is_terminal();
    plain.doors = Doors { connect: o.connect, save: o.save_setting, tx: Some(jobs), hidden: false };
    plain.model.found_keys = o.found_keys;
    plain.model.found_agents = o.found_agents;
    plain.setup.offer = o.first_run && !plain.script;
    plain.say(&format!("Tiller in plain text mode, enabled by {why}. Type a message, or /help."));
    if let Some(text) = o.prompt {
        // Where a model may have to be set up first, it waits for the engine's word.
        if plain.setup.offer { plain.setup.held = Some(text) } else { plain.line(&text) }
    }
    plain.turns(&rx, &*commands);
    plain.hide(false);
    Ok(plain.exit.unwrap_or(Exit::Quit))
}

impl Plain {
    pub(crate) fn new(out: Box<dyn Write + Send>, clock: Arc<dyn Clock>) -> Self {
        let mut plain = Self {
            model: Model::default(),
            out,
            said: clock.mono(),
            clock,
            next: 0,
            outbox: VecDeque::new(),
            partial: String::new(),
            table: String::new(),
            speaking: false,
            started: None,
            shell: None,
            choices: Vec::new(),
            asked: None,
            read: ReadOut::default(),
            deadlines: crate::app::deadline::Deadlines::default(),
            sessions: Vec::new(),
            script: false,
            setup: setup::Setup::default(),
            leaving: leave::Leaving::default(),
            doors: Doors::default(),
            over: false,
            owed: Vec::new(),
            exit: None,
        };
        plain.send(CommandBody::Query(Query::Snapshot));
        plain
    }

    /// The loop. No time limit while nothing runs.
    fn turns(&mut self, rx: &Inbox, commands: &dyn Fn(Command) -> bool) {
        let mut wait = RETRY;
        while self.exit.is_none() {
            while let Some(c) = self.outbox.front() {
                if !commands(c.clone()) {
                    // An engine that never comes costs nearly nothing.
                    wait = (wait * 5 / 4).min(Duration::from_secs(60));
                    break;
                }
                self.outbox.pop_front();
                wait = RETRY;
            }
            let still = (self.model.running || self.shell.is_some()).then_some(STILL);
            let retry = (!self.outbox.is_empty()).then_some(wait);
            let now = self.clock.mono();
            let limit = self.model.deadlines.values().min().map(|t| t.saturating_sub(now));
            match rx.recv([still, retry, limit].into_iter().flatten().min()) {
                Ok(msg) => self.take(msg),
                Err(RecvTimeoutError::Timeout) => {
                    self.still();
                    self.too_late();
                }
                Err(RecvTimeoutError::Disconnected) => self.exit = Some(Exit::Quit),
            }
        }
    }

    pub(crate) fn take(&mut self, msg: Msg) {
        self.model.now = self.clock.now();
        self.model.mono = self.clock.mono();
        match msg {
            Msg::Engine(event) => {
                let ran = self.model.running;
                let was = self.model.row(&event.agent).map(|a| a.state);
                self.model.apply(&event);
                if !event.agent.is_main() {
                    self.of_another(&event, was);
                    return self.wind_up();
                }
                if !self.looked(&event) {
                    self.event(&event);
                }
                match (ran, self.model.running) {
                    (false, true) => self.started = Some(self.model.mono),
                    (true, false) => self.started = None,
                    _ => {}
                }
                self.taken_up(&event);
                match &event.body {
                    EventBody::Reply(r) if matches!(**r, ReplyEvent::SnapshotReply { .. }) => {
                        self.offer_setup();
                        self.model_chosen();
                    }
                    EventBody::State(StateEvent::ModelChanged { .. }) => self.model_chosen(),
                    _ => {}
                }
                self.wind_up();
            }
            Msg::Line(Some(line)) => {
                if let Some(id) = self.asked {
                    self.deadlines.attended(id, self.model.mono);
                }
                self.line(&line);
            }
            Msg::Line(None) if self.script => {
                self.over = true;
                self.wind_up();
            }
            // No more lines can come, so nothing can be asked.
            Msg::Line(None) => self.leave(),
            Msg::Terminate(signal_hook::consts::SIGINT) if !self.script => self.interrupt(),
            Msg::Lost => self.exit = Some(Exit::Signal(crate::input::reader::HANGUP)),
            Msg::Terminate(n) => self.exit = Some(Exit::Signal(n)),
            Msg::Job(_, result) => self.connected(result),
            Msg::Notice(n) => self.notice(&n),
            _ => {}
        }
        self.too_late();
    }

    /// Whether a line may have been typed before the question could be read. The lines of a script are not typed.
    pub(crate) fn typed_ahead(&self) -> bool {
        let deaf = Duration::from_millis(self.model.ui.approval_deaf);
        !self.script && self.clock.mono().saturating_sub(self.read.at) < deaf
    }

    /// A question was read out just now.
    pub(crate) fn read_out(&mut self) {
        self.read.at = self.clock.mono();
    }

    /// Says no to approvals whose time is over.
    pub(crate) fn too_late(&mut self) {
        self.model.mono = self.clock.mono();
        for (answer, said) in self.deadlines.late(&mut self.model) {
            self.send(answer);
            self.notice(&said);
        }
    }

    /// Says that something still runs, if nothing was said for long enough.
    pub(crate) fn still(&mut self) {
        let now = self.clock.mono();
        let started = self.started.or(self.shell.as_ref().map(|s| s.since));
        if let Some(started) = started.filter(|_| now.saturating_sub(self.said) >= STILL) {
            let seconds = now.saturating_sub(started).as_secs();
            self.say(&format!("still running, {seconds} s"));
        }
    }

    /// One line of ours: cleaned, and never in the middle of another.
    pub(crate) fn say(&mut self, text: &str) {
        self.said = self.clock.mono();
        let text = crate::text::clean::plain_lines(text);
        if writeln!(self.out, "{}", text.trim_end()).and_then(|()| self.out.flush()).is_err() {
            self.exit = Some(Exit::Signal(crate::input::reader::HANGUP));
        }
    }

    /// The engine has taken up what this event tells of: a turn runs, or waits, or was refused.
    fn taken_up(&mut self, event: &Event) {
        let told = match &event.body {
            EventBody::Turn(e) => matches!(e, TurnEvent::TurnStarted {} | TurnEvent::TurnFinished { .. }),
            EventBody::State(e) => matches!(e, StateEvent::QueueChanged { .. }),
            EventBody::Tool(e) => matches!(e, ToolEvent::ShellLine { .. }),
            EventBody::Reply(_) => true,
            EventBody::Ask(_) => false,
        };
        if told {
            self.owed.retain(|id| event.cause != Some(*id));
        }
    }

    /// After the last line of a script: what is open is answered with no, and when nothing runs or waits any
    /// more, this ends.
    fn wind_up(&mut self) {
        if !self.over {
            return;
        }
        if let Some(id) = self.asked.take() {
            self.read.sure = None;
            let asks = &self.model.asks;
            let clarify = asks.iter().any(|a| a.id == id && matches!(a.body, AskBody::Clarify { .. }));
            // The first choice is the one that allows nothing; a model's own choices are no such thing.
            let no = self.choices.first().filter(|_| !clarify).map(|(_, reply)| reply.clone());
            let reply = no.unwrap_or(AskReply::Declined);
            self.say("No one can answer the question, so it was denied.");
            self.send(CommandBody::Ask(AskCommand::Answer { id, reply }));
        }
        let m = &self.model;
        let rests = m.ready && !m.running && m.queue.is_empty() && m.asks.is_empty();
        if rests && self.owed.is_empty() && self.outbox.is_empty() {
            self.leave();
            self.over = false;
        }
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, body: CommandBody) {
        self.send_to(None, body);
    }

    /// Sends a command to this agent; `None`: the main one.
    pub(crate) fn send_to(&mut self, agent: Option<AgentId>, body: CommandBody) {
        self.next += 1;
        // These are always heard of again; what becomes of a message to an agent its receipt tells.
        let answered = match &body {
            CommandBody::Query(_) => true,
            CommandBody::Turn(t) => matches!(t, TurnCommand::Submit { .. } | TurnCommand::Shell { .. }),
            CommandBody::Context(c) => matches!(c, ContextCommand::Report | ContextCommand::CompactPreview),
            _ => false,
        };
        if answered && agent.is_none() {
            self.owed.push(CommandId(self.next));
        }
        self.outbox.push_back(Command { agent, ..Command::new(CommandId(self.next), body) });
    }

    /// Commands not yet taken by the engine.
    #[cfg(test)]
    pub(crate) fn waiting(&mut self) -> Vec<CommandBody> {
        self.outbox.drain(..).map(|c| c.body).collect()
    }
}
