//! `tiller exec`: one turn without a screen. Progress goes to standard error; standard output contains only the answer,
//! or one JSON event on each line.

pub(crate) mod ends;
mod feeder;
pub(crate) mod prepare;
pub(crate) mod printer;
pub(crate) mod progress;
pub(crate) mod questions;
mod refused;
pub(crate) mod stop;

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use tiller_config::agents::Definition;
use tiller_engine::{EngineHandle, EventStream, Human, Open, RunLimits};
use tiller_protocol::command::{AskCommand, Query, TurnCommand};
use tiller_protocol::event::{AskEvent, ReplyEvent, StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AgentId, Ask, AskBody, AskId, AskReply, Command, CommandBody, CommandId, Cost, Event, EventBody, Message,
    Notice, NoticeKind, SendMode, Snapshot,
};
use tiller_store::{MadeBy, OnFailure};

use crate::app::{FolderTrust, RuleFlags, Running, Setup, Start};
use crate::commands::args::Exec;
use crate::commands::exec::ends::{Crew, Limits};
use crate::commands::exec::prepare::{check_model, holder, message, say_unattached};
use crate::commands::exec::printer::{Lines, Printer};
use crate::commands::exec::progress::{progress, progress_of};
use crate::commands::exec::refused::Refusals;
use crate::commands::exec::stop::Stop;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line};

/// Ids of the commands that it sends.
const SUBMIT: u64 = 1;
const STOP: u64 = 2;
const ANSWER: u64 = 3;
const LOOK: u64 = 4;
const AGAIN: u64 = 5;

/// Runs the turn to its end; `role`: with this agent definition.
pub(crate) fn run(mut setup: Setup, exec: &Exec, role: Option<&Definition>) -> Result<Exit, Notice> {
    setup.common.without_skills.clone_from(&exec.without_skill);
    let message = message(exec)?;
    setup.check_config()?;
    say_unattached(if exec.prompt == "-" { &message.text } else { &exec.prompt }, &setup.project);
    // A script waits: a failed write ends the turn, with exit code 5.
    let store = setup.try_store(OnFailure::Answer).map_err(|e| e.at_start())?;
    crate::commands::say_opening(&store);
    let open = setup.which_session(&store, exec.cont, exec.session.as_deref())?;
    check_model(&setup, matches!(open, Open::New))?;
    let holder = holder(&setup, &store, open);
    let discarded = exec.ephemeral.then(|| (store.clone(), crate::app::spill::folders(&setup.places)));
    // A person at a terminal can answer questions; a pipe cannot.
    let asks =
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !exec.json && exec.prompt != "-";
    let start = Start {
        made_by: if exec.ephemeral { MadeBy::Ephemeral } else { MadeBy::Exec },
        human: if asks { Human::Present } else { Human::Absent },
        rules: RuleFlags {
            allow: exec.allow.clone(),
            ask: role.map(|r| r.permissions.ask.clone()).unwrap_or_default(),
            deny: exec.deny.clone(),
        },
        limits: RunLimits { requests: exec.max_turns, cost: exec.max_cost.map(Cost::from_usd) },
        trust: FolderTrust { given: exec.trust, ask: false },
        role: role.map(|r| r.name.clone()),
        announce: exec.json,
        exporter: Some(std::sync::Arc::new(crate::commands::export_file)),
        ..Start::headless(open)
    };
    let mut engine = Running::start(setup, store, start)?;
    for notice in std::mem::take(&mut engine.notices) {
        crate::commands::fail(&notice);
    }
    let mut events = engine.events();
    let (handle, session) = (engine.handle(), engine.session());
    let id = exec.session.as_ref().map_or_else(String::new, |id| format!(" {id}"));
    let exit = engine.block_on(async {
        stop::heed(&engine)?;
        let follow = Follow {
            handle,
            message,
            json: exec.json,
            stop: Stop::listen()?,
            out: Printer::start()?,
            lines: Lines::default(),
            branching: false,
            holder: holder.map(|pid| (None, format!("process {pid}"))),
            asks,
            id: &id,
            crew: Crew::new(exec.no_wait),
            limits: Limits::of(role),
            put: BTreeSet::new(),
            refusals: Refusals::default(),
        };
        follow.run(&mut events).await
    });
    for unsaved in engine.stop() {
        crate::commands::fail(&unsaved);
    }
    if let Some((store, folders)) = discarded {
        match store.trash().discard(session).wait() {
            Ok(_) => crate::app::spill::discard(&folders, session),
            Err(e) => {
                crate::commands::fail(&e.notice());
            }
        }
    }
    exit
}

/// Follows a run to its end. Nothing here blocks: standard output and input have threads of their own, so that Ctrl-C
/// takes effect at once, even while a peer does not read or answer.
struct Follow<'a> {
    handle: EngineHandle,
    message: Message,
    json: bool,
    stop: Stop,
    out: Printer,
    lines: Lines,
    /// The process that has the session open. The prompt is refused then.
    holder: Option<(Option<AskId>, String)>,
    /// The person chose a branch: the message is sent once the session is on it.
    branching: bool,
    /// A person can answer questions.
    asks: bool,
    /// The session id in the message about a session that another process has open.
    id: &'a str,
    crew: Crew,
    limits: Limits,
    /// Questions that were shown to the person.
    put: BTreeSet<AskId>,
    refusals: Refusals,
}

/// The effect of a stop.
enum StopEffect {
    /// The turn ends with its present result.
    Soft,
    /// Agents are not waited for any more.
    Now,
}

impl Follow<'_> {
    fn send(&self, id: u64, body: CommandBody) -> Result<(), Notice> {
        self.handle.send(Command::new(CommandId(id), body)).map_err(|e| {
            Notice::new(NoticeKind::Internal, format!("The engine does not accept commands: {e}."))
        })
    }

    fn submit(&self) -> Result<(), Notice> {
        let message = self.message.clone();
        self.send(SUBMIT, CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }))
    }

    /// The awaited agents have ended: starts one more turn with their results.
    fn submit_again(&mut self) -> Result<(), Notice> {
        self.crew.held = None;
        let message = Message::text(ends::ENDED);
        self.send(AGAIN, CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }))
    }

    /// A limit was reached: ends the turn. `Some`: no turn runs, and the run ends.
    fn limit(&mut self) -> Result<Option<Exit>, Notice> {
        if self.crew.held.is_some() {
            return Ok(Some(self.ended(Exit::Limit)));
        }
        self.send(STOP, CommandBody::Turn(TurnCommand::Interrupt { hard: true }))?;
        Ok(None)
    }

    /// The exit code at the end of the turn. A limit that was reached takes precedence.
    fn ended(&mut self, exit: Exit) -> Exit {
        match (self.limits.reached.take(), exit) {
            (Some(notice), _) => {
                crate::commands::fail(&notice);
                Exit::Limit
            }
            // A refusal of an agent of the run counts for the run.
            (None, exit) => {
                if let Some(notice) = self.refusals.notice() {
                    crate::commands::fail(&notice);
                }
                let refused = self.crew.refused || self.refusals.any_change();
                if exit == Exit::Done && refused { Exit::Refused } else { exit }
            }
        }
    }

    /// The first stop ends the turn, the second kills its tools, the third ends without waiting.
    fn stopped(&self) -> Result<StopEffect, Notice> {
        match self.stop.times() {
            0 | 1 => self.send(STOP, CommandBody::Turn(TurnCommand::Interrupt { hard: false }))?,
            2 => self.send(STOP, CommandBody::Turn(TurnCommand::Interrupt { hard: true }))?,
            _ => return Ok(StopEffect::Now),
        }
        Ok(StopEffect::Soft)
    }

    /// Reads events until the turn is over.
    async fn run(mut self, events: &mut EventStream) -> Result<Exit, Notice> {
        self.submit()?;
        let exit = self.events(events).await;
        if exit.is_ok() {
            self.report_held().await;
        }
        // The last bytes of the answer; a reader that closed its end is not an error.
        tokio::select! {
            rest = self.out.finish() => rest.and(exit),
            () = self.stop.next() => exit,
        }
    }

    async fn events(&mut self, events: &mut EventStream) -> Result<Exit, Notice> {
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = self.stop.next() => {
                    // No turn runs: stops waiting for agents.
                    if self.crew.held.is_some() {
                        return Ok(Exit::Interrupted);
                    }
                    match self.stopped()? {
                        StopEffect::Soft => continue,
                        StopEffect::Now => return Ok(Exit::Interrupted),
                    }
                }
                () = self.limits.late() => {
                    self.limits.over();
                    match self.limit()? {
                        Some(exit) => return Ok(exit),
                        None => continue,
                    }
                }
            };
            let Some(event) = event else {
                return Err(Notice::new(NoticeKind::Internal, "The engine ended before the turn did."));
            };
            if let EventBody::State(StateEvent::AgentChanged { view }) = &event.body {
                self.crew.note(view);
            }
            let ends = matches!(event.body, EventBody::Turn(TurnEvent::TurnFinished { .. }));
            let event = match ends && event.agent.is_main() {
                true => Arc::new(self.crew.with_turns_before((*event).clone())),
                false => event,
            };
            if self.waits(&event) {
                if self.crew.all_ended() {
                    self.submit_again()?;
                }
                continue;
            }
            if self.json
                && let Some(exit) = self.print(json_line(&*event), &event.body).await?
            {
                return Ok(exit);
            }
            if let Some(exit) = self.event(&event).await? {
                return Ok(exit);
            }
        }
    }

    /// For readers of JSON, the end of the turn is the last line, also where agents are not waited for any longer.
    async fn report_held(&mut self) {
        if let Some(event) = self.crew.take_held()
            && self.json
            && let Ok(room) = self.out.room().await
        {
            room.send(json_line(&event));
        }
    }

    /// Prints without waiting for the reader longer than the person wants. `Some`: the run is over.
    async fn print(&mut self, text: String, body: &EventBody) -> Result<Option<Exit>, Notice> {
        loop {
            let gone = tokio::select! {
                room = self.out.room() => match room {
                    Ok(room) => {
                        room.send(text);
                        return Ok(None);
                    }
                    Err(()) => true,
                },
                () = self.stop.next() => false,
            };
            if !gone {
                match self.stopped()? {
                    StopEffect::Soft => continue,
                    StopEffect::Now => return Ok(Some(Exit::Interrupted)),
                }
            }
            // The reader is gone: ends quietly, and an unfinished turn counts as interrupted.
            if let EventBody::Turn(TurnEvent::TurnFinished { status, .. }) = body {
                return Ok(Some((*status).into()));
            }
            self.send(STOP, CommandBody::Turn(TurnCommand::Interrupt { hard: false }))?;
            return Ok(Some(Exit::Interrupted));
        }
    }

    /// At the end of the turn, while agents are running: waits for them. The end of this turn is not reported, because
    /// another turn follows.
    fn waits(&mut self, event: &Event) -> bool {
        let EventBody::Turn(TurnEvent::TurnFinished { status: TurnStatus::Done, .. }) = &event.body else {
            return false;
        };
        let waits = event.agent.is_main() && self.crew.waited_for() && self.stop.times() == 0;
        let waits = waits && self.limits.reached.is_none();
        if waits {
            self.crew.hold(event);
        }
        if waits && !self.crew.all_ended() {
            let n = self.crew.count();
            let who = if n == 1 { "1 agent is running".into() } else { format!("{n} agents are running") };
            // Standard error may be closed.
            let _ = writeln!(
                std::io::stderr().lock(),
                "~ {who} in the background; waiting until all have ended (--no-wait skips this)"
            );
        }
        waits
    }

    async fn event(&mut self, event: &Event) -> Result<Option<Exit>, Notice> {
        self.refusals.note(&event.body);
        if !event.agent.is_main() {
            if !self.json {
                progress_of(event);
            }
            if let EventBody::State(StateEvent::AgentChanged { view }) = &event.body
                && self.crew.hear(view)
            {
                self.submit_again()?;
            }
            return Ok(None);
        }
        if let EventBody::Turn(TurnEvent::UserMessage { node, .. } | TurnEvent::EntryAdded { node })
        | EventBody::Tool(ToolEvent::ToolFinished { node, .. }) = &event.body
        {
            self.crew.mark_reported(node);
        }
        match &event.body {
            EventBody::Turn(TurnEvent::TurnFinished { status, text, error, .. }) => {
                if !self.json && !text.is_empty() {
                    // A terminal gets plain text; a pipe or file gets the bytes unchanged.
                    let shown = if std::io::stdout().is_terminal() {
                        tiller_text::clean::plain_lines(text)
                    } else {
                        text.clone()
                    };
                    self.print(format!("{}\n", shown.trim_end()), &event.body).await?;
                }
                if let Some(n) = error {
                    crate::commands::fail(n);
                }
                return Ok(Some(self.ended((*status).into())));
            }
            EventBody::Turn(TurnEvent::Usage { usage, .. }) if self.limits.used(usage) => {
                return self.limit();
            }
            EventBody::Ask(AskEvent::QuestionAsked {
                ask: Ask { id, body: AskBody::SessionBusy { holder }, .. },
            }) => {
                self.holder = Some((Some(*id), holder.clone()));
            }
            EventBody::Ask(AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask })
                if self.asks && !self.put.contains(&ask.id) =>
            {
                return self.ask(ask).await;
            }
            EventBody::State(StateEvent::HeadMoved { .. }) if self.branching => {
                self.branching = false;
                self.stop.calm();
                self.submit()?;
            }
            // Events were lost: the whole state shows whether the turn still runs.
            EventBody::State(StateEvent::Lagged { .. }) => {
                self.send(LOOK, CommandBody::Query(Query::Snapshot))?
            }
            EventBody::Reply(r) => match r.as_ref() {
                ReplyEvent::ErrorReply { .. }
                    if self.holder.is_some() && event.cause == Some(CommandId(SUBMIT)) =>
                {
                    return self.busy().await;
                }
                ReplyEvent::ErrorReply { notice } => return Err(notice.clone()),
                ReplyEvent::SnapshotReply { snapshot } if snapshot.running || self.crew.held.is_some() => {
                    return self.caught_up(snapshot).await;
                }
                ReplyEvent::SnapshotReply { .. } => {
                    return Err(Notice::new(
                        NoticeKind::Internal,
                        "The output was read too slowly, and the end of the turn was missed.",
                    )
                    .hint(format!("`tiller sessions show {}` prints all of it.", event.session)));
                }
                _ => {}
            },
            body if !self.json => progress(body),
            _ => {}
        }
        Ok(None)
    }

    /// The state after events were lost: shows the open questions, and records the ended agents.
    async fn caught_up(&mut self, snapshot: &Snapshot) -> Result<Option<Exit>, Notice> {
        for view in &snapshot.agents {
            self.crew.note(view);
            if !view.id.is_main() && self.crew.hear(view) {
                self.submit_again()?;
            }
        }
        if !self.asks {
            return Ok(None);
        }
        let lost =
            |ask: &&Ask| !matches!(ask.body, AskBody::SessionBusy { .. }) && !self.put.contains(&ask.id);
        let lost: Vec<Ask> = snapshot.asks.iter().filter(lost).cloned().collect();
        for ask in &lost {
            if let Some(exit) = self.ask(ask).await? {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }

    /// Shows a question, and waits for the answer, a stop, or the end of the turn. `Some`: the run is over.
    async fn ask(&mut self, ask: &Ask) -> Result<Option<Exit>, Notice> {
        self.put.insert(ask.id);
        questions::put(&ask.body, &ask.agent);
        let line = tokio::select! {
            line = self.lines.next() => line,
            () = self.stop.next() => {
                return Ok(match self.stopped()? {
                    StopEffect::Soft => None,
                    StopEffect::Now => Some(Exit::Interrupted),
                });
            }
        };
        let reply = questions::reply(&ask.body, &line);
        self.send(ANSWER, CommandBody::Ask(AskCommand::Answer { id: ask.id, reply }))?;
        Ok(None)
    }

    /// The session is open in another process, and nothing was sent. A person can continue on a branch.
    async fn busy(&mut self) -> Result<Option<Exit>, Notice> {
        let Some((id, holder)) = self.holder.take() else { return Ok(None) };
        let body = AskBody::SessionBusy { holder };
        if let Some(id) = id.filter(|_| self.asks) {
            questions::put(&body, &AgentId::main());
            let line = tokio::select! {
                line = self.lines.next() => line,
                () = self.stop.next() => return Ok(Some(Exit::Interrupted)),
            };
            if questions::reply(&body, &line) == AskReply::Branch {
                self.send(ANSWER, CommandBody::Ask(AskCommand::Answer { id, reply: AskReply::Branch }))?;
                // Limits the wait, in case the branch is never created.
                self.stop.hurry();
                self.branching = true;
                return Ok(None);
            }
        }
        let AskBody::SessionBusy { holder } = body else { return Ok(None) };
        Err(Notice::new(
            NoticeKind::Denied,
            format!("The session{} is open in {}, so nothing was sent.", self.id, one_line(&holder)),
        )
        .hint("Close it there first, or omit --session and --continue to start a new session."))
    }
}
