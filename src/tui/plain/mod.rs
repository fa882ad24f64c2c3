//! Linear text for screen readers, dumb terminals and people who want it: labelled turns, numbered
//! choices, nothing is ever drawn twice. Everything can be reached by `/` commands.

mod ask;
mod command;
mod crew;
mod flow;
mod leave;
mod line;
mod own_commands;
mod restore;
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
use tiller_protocol::event::{ReplyEvent, StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AgentId, AgentState, AskBody, AskReply, Clock, Command, CommandBody, CommandId, Event, EventBody,
    SendMode, SessionSummary, StepState,
};

use crate::app::inbox::{Inbox, Post};
use crate::app::msg::{Msg, OutputMsg, SignalMsg};
use crate::app::ui::{Exit, UiError, UiOptions};
use crate::model::Model;
use crate::terminal::signals::Signals;

/// How often "still running" is said, at most.
const PROGRESS: Duration = Duration::from_secs(15);

/// How long a command that the engine did not take waits.
const RETRY: Duration = Duration::from_millis(5);

/// The plain mode's state.
pub(crate) struct Plain {
    pub(crate) model: Model,
    pub(crate) out: Box<dyn Write + Send>,
    clock: Arc<dyn Clock>,
    requests: Requests,
    pub(crate) reply: ReplyText,
    progress: Progress,
    pub(crate) question: OpenQuestion,
    /// The sessions that `/open N` counts.
    pub(crate) sessions: Vec<SessionSummary>,
    input: LineInput,
    own_commands: own_commands::OwnCommands,
    pub(crate) setup: setup::Setup,
    pub(crate) leaving: leave::QuitState,
    pub(crate) hooks: PlainHooks,
    pub(crate) exit: Option<Exit>,
}

/// Commands to the engine.
#[derive(Default)]
struct Requests {
    /// Number of the newest command.
    last: u64,
    /// Commands that the engine has not taken yet, in order.
    waiting: VecDeque<Command>,
    /// Messages, `!` lines and wishes to continue that the engine has not taken up yet, and queries without an answer.
    unanswered: Vec<CommandId>,
}

/// The reply that is being printed.
#[derive(Default)]
pub(crate) struct ReplyText {
    /// Words that do not make a whole line yet.
    pub(crate) partial: String,
    /// Rows of a table that has not ended yet: a table is printed as sentences.
    pub(crate) table: String,
    /// Something of this reply has been printed.
    pub(crate) begun: bool,
}

/// The work that runs, and when something was printed last.
#[derive(Default)]
struct Progress {
    /// When the turn began.
    started: Option<Duration>,
    /// When a line was printed last.
    said: Duration,
    /// The person's own shell line that runs.
    shell: Option<shell::ShellLine>,
    /// Messages that wait are not sent by themselves: no turn ran yet, or the last one was stopped or could not begin.
    stopped: bool,
    /// The wait for the first token was said, and its limit.
    wait: (bool, bool),
    /// That agents work in the background was said at the end of a script.
    awaited: bool,
}

/// The question that was printed last.
#[derive(Default)]
pub(crate) struct OpenQuestion {
    pub(crate) id: Option<tiller_protocol::AskId>,
    /// Its answers by number.
    pub(crate) choices: Vec<(String, AskReply)>,
    /// When it was printed.
    pub(crate) read_at: Duration,
    /// A risky yes that waits for its confirmation.
    pub(crate) unconfirmed: Option<AskReply>,
    deadlines: crate::app::deadline::Deadlines,
}

/// Where lines come from.
#[derive(Default)]
struct LineInput {
    /// A file or a pipe: after its end the program waits for the answers.
    script: bool,
    /// There will be no more lines.
    ended: bool,
    /// Echo is off: what is typed is not shown.
    hidden: bool,
}

/// Functions of other rooms: to set a model up and to keep a setting; and the channel for the result of a job.
#[derive(Default)]
pub(crate) struct PlainHooks {
    connect: Option<crate::app::ui::SetUp>,
    save: Option<crate::app::ui::SaveSetting>,
    tx: Option<Post>,
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
    *plain.model.ui = Arc::new(o.config);
    plain.input.script = !std::io::stdin().is_terminal();
    plain.hooks = PlainHooks { connect: o.hooks.connect, save: o.hooks.save_setting, tx: Some(jobs) };
    plain.model.environment.found_keys = o.found.keys;
    plain.model.environment.found_agents = o.found.agents;
    plain.setup.offer = o.start.first_run && !plain.input.script;
    plain.say(&format!("Tiller in plain text mode, enabled by {why}. Type a message, or /help."));
    if let Some(text) = o.start.prompt {
        // Where a model may have to be set up first, it waits for the engine's word.
        if plain.setup.offer { plain.setup.held = Some(text) } else { plain.line(&text) }
    }
    plain.turns(&rx, &*commands);
    plain.hide(false);
    Ok(plain.exit.unwrap_or(Exit::Quit))
}

impl Plain {
    pub(crate) fn new(out: Box<dyn Write + Send>, clock: Arc<dyn Clock>) -> Self {
        let progress = Progress { said: clock.mono(), stopped: true, ..Progress::default() };
        let mut plain = Self {
            model: Model::default(),
            out,
            clock,
            requests: Requests::default(),
            reply: ReplyText::default(),
            progress,
            question: OpenQuestion::default(),
            sessions: Vec::new(),
            input: LineInput::default(),
            own_commands: own_commands::OwnCommands::default(),
            setup: setup::Setup::default(),
            leaving: leave::QuitState::default(),
            hooks: PlainHooks::default(),
            exit: None,
        };
        plain.send(CommandBody::Query(Query::Snapshot));
        plain
    }

    /// The loop. No time limit while nothing runs.
    fn turns(&mut self, rx: &Inbox, commands: &dyn Fn(Command) -> bool) {
        let mut wait = RETRY;
        while self.exit.is_none() {
            while let Some(c) = self.requests.waiting.front() {
                if !commands(c.clone()) {
                    // Waiting for an engine that never starts costs nearly nothing.
                    wait = (wait * 5 / 4).min(Duration::from_secs(60));
                    break;
                }
                self.requests.waiting.pop_front();
                wait = RETRY;
            }
            let still = (self.model.agent.turn.running || self.progress.shell.is_some()).then_some(PROGRESS);
            let retry = (!self.requests.waiting.is_empty()).then_some(wait);
            let now = self.clock.mono();
            let limit = self.model.questions.deadlines.values().min().map(|t| t.saturating_sub(now));
            match rx.recv([still, retry, limit].into_iter().flatten().min()) {
                Ok(msg) => self.take(msg),
                Err(RecvTimeoutError::Timeout) => {
                    self.report_progress();
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
                let ran = self.model.agent.turn.running;
                let was = self.model.row(&event.agent).map(|a| a.state);
                self.model.apply(&event);
                if !event.agent.is_main() {
                    self.of_another(&event, was);
                    return self.wind_up();
                }
                if !self.looked(&event) {
                    self.event(&event);
                }
                match (ran, self.model.agent.turn.running) {
                    (false, true) => self.progress.started = Some(self.model.mono),
                    (true, false) => self.progress.started = None,
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
                if let Some(id) = self.question.id {
                    self.question.deadlines.attended(id, self.model.mono);
                }
                self.line(&line);
            }
            Msg::Line(None) if self.input.script => {
                self.input.ended = true;
                self.wind_up();
            }
            // No more lines can come, so nothing can be asked.
            Msg::Line(None) => self.leave(),
            Msg::Signal(SignalMsg::Terminate(signal_hook::consts::SIGINT)) if !self.input.script => {
                self.interrupt()
            }
            Msg::Output(OutputMsg::Lost) => self.exit = Some(Exit::Signal(crate::input::reader::HANGUP)),
            Msg::Signal(SignalMsg::Terminate(n)) => self.exit = Some(Exit::Signal(n)),
            Msg::Job(_, result) => self.connected(result),
            Msg::Notice(n) => self.notice(&n),
            _ => {}
        }
        self.too_late();
    }

    /// True when a line may have been typed before the question could be read. The lines of a script are not typed.
    pub(crate) fn typed_ahead(&self) -> bool {
        let delay = Duration::from_millis(self.model.ui.approval_deaf);
        !self.input.script && self.clock.mono().saturating_sub(self.question.read_at) < delay
    }

    /// A question was read out just now.
    pub(crate) fn read_out(&mut self) {
        self.question.read_at = self.clock.mono();
    }

    /// Denies approvals whose time is over.
    pub(crate) fn too_late(&mut self) {
        self.model.mono = self.clock.mono();
        for (answer, said) in self.question.deadlines.late(&mut self.model) {
            self.send(answer);
            self.notice(&said);
        }
    }

    /// Says that something still runs, if nothing was said for long enough.
    pub(crate) fn report_progress(&mut self) {
        let now = self.clock.mono();
        let started = self.progress.started.or(self.progress.shell.as_ref().map(|s| s.since));
        if let Some(started) = started.filter(|_| now.saturating_sub(self.progress.said) >= PROGRESS) {
            let seconds = now.saturating_sub(started).as_secs();
            self.say(&format!("still running, {seconds} s"));
        }
    }

    /// One line of ours: cleaned, and never in the middle of another.
    pub(crate) fn say(&mut self, text: &str) {
        self.progress.said = self.clock.mono();
        let text = crate::text::clean::plain_lines(text);
        if writeln!(self.out, "{}", text.trim_end()).and_then(|()| self.out.flush()).is_err() {
            self.exit = Some(Exit::Signal(crate::input::reader::HANGUP));
        }
    }

    /// Notes that the engine has handled the command of this event: a turn runs, waits, or was refused.
    fn taken_up(&mut self, event: &Event) {
        let told = match &event.body {
            EventBody::Turn(e) => matches!(e, TurnEvent::TurnStarted {} | TurnEvent::TurnFinished { .. }),
            EventBody::State(e) => matches!(e, StateEvent::QueueChanged { .. }),
            EventBody::Tool(e) => matches!(e, ToolEvent::ShellLine { .. }),
            EventBody::Reply(_) => true,
            EventBody::Ask(_) => false,
        };
        let (cause, before) = (event.cause, self.requests.unanswered.len());
        if told {
            self.requests.unanswered.retain(|id| cause != Some(*id));
        }
        match &event.body {
            EventBody::Turn(TurnEvent::TurnFinished { status, .. }) => {
                self.progress.stopped = !matches!(status, TurnStatus::Done | TurnStatus::Refused);
            }
            // A message of this program waits for the end of what runs, which sends it.
            EventBody::State(StateEvent::QueueChanged { .. }) if self.requests.unanswered.len() < before => {
                self.progress.stopped = false;
            }
            _ => {}
        }
    }

    /// True when agents or workflows work besides the main agent. What is paused waits for the user.
    fn others_work(&self) -> bool {
        let crew = &self.model.crew;
        let mut states = crew.agents.iter().filter(|a| !a.id.is_main()).map(|a| a.state);
        let paused = states.clone().any(|state| state == AgentState::Paused);
        let works = states.any(|state| match state {
            AgentState::Running | AgentState::Waiting => true,
            // It begins when there is room, which a paused agent may not leave.
            AgentState::Queued => !paused,
            _ => false,
        });
        works || crew.workflows.iter().any(|w| w.state == StepState::Running && !w.paused)
    }

    /// After the last line of a script: what is open is answered with no, and when nothing runs or waits any
    /// more, this ends.
    fn wind_up(&mut self) {
        if !self.input.ended {
            return;
        }
        if let Some(id) = self.question.id.take() {
            self.question.unconfirmed = None;
            let asks = &self.model.questions.open;
            let clarify = asks.iter().any(|a| a.id == id && matches!(a.body, AskBody::Clarify { .. }));
            // The first choice allows nothing, except in questions of a model, which have choices of its own.
            let no = self.question.choices.first().filter(|_| !clarify).map(|(_, reply)| reply.clone());
            let reply = no.unwrap_or(AskReply::Declined);
            self.say("No one can answer the question, so it was denied.");
            self.send(CommandBody::Ask(AskCommand::Answer { id, reply }));
        }
        let m = &self.model;
        let kept = m.agent.queue.len();
        let by_itself = !self.progress.stopped || m.agent.queue.iter().any(|q| q.mode == SendMode::Now);
        let rests = m.engine.ready
            && !m.agent.turn.running
            && (kept == 0 || !by_itself)
            && m.questions.open.is_empty();
        if rests && self.requests.unanswered.is_empty() && self.requests.waiting.is_empty() {
            if self.others_work() {
                if !std::mem::replace(&mut self.progress.awaited, true) {
                    self.say("Agents work in the background. Tiller quits when they have ended.");
                }
                return;
            }
            match kept {
                0 => {}
                1 => self.say("1 message was not sent. It stays in the queue of this session."),
                n => {
                    self.say(&format!("{n} messages were not sent. They stay in the queue of this session."))
                }
            }
            self.leave();
            self.input.ended = false;
        }
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, body: CommandBody) {
        self.send_to(None, body);
    }

    /// Sends a command to this agent; `None`: the main one.
    pub(crate) fn send_to(&mut self, agent: Option<AgentId>, body: CommandBody) {
        self.requests.last += 1;
        // The engine always answers these; the receipt reports what happens to a message to an agent.
        let answered = match &body {
            CommandBody::Query(_) => true,
            CommandBody::Turn(t) => {
                matches!(t, TurnCommand::Submit { .. } | TurnCommand::Continue | TurnCommand::Shell { .. })
            }
            CommandBody::Context(c) => matches!(c, ContextCommand::Report | ContextCommand::CompactPreview),
            _ => false,
        };
        if answered && agent.is_none() {
            self.requests.unanswered.push(CommandId(self.requests.last));
        }
        self.requests
            .waiting
            .push_back(Command { agent, ..Command::new(CommandId(self.requests.last), body) });
    }

    /// Commands not yet taken by the engine.
    #[cfg(test)]
    pub(crate) fn waiting(&mut self) -> Vec<CommandBody> {
        self.requests.waiting.drain(..).map(|c| c.body).collect()
    }
}
