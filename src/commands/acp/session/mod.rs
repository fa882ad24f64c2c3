//! One session: receives prompts, sends updates and answers, until its channel closes.

mod events;

use std::collections::HashMap;

use serde_json::{Value, json};
use tiller_engine::{EngineHandle, EventStream};
use tiller_protocol::command::{AskCommand, Query, QueueCommand, SessionCommand, TurnCommand};
use tiller_protocol::skill::{CommandRow, SkillQuery};
use tiller_protocol::view::Snapshot;
use tiller_protocol::{
    Ask, AskId, AskReply, Command, CommandBody, CommandId, Message, ModelRef, Notice, NoticeKind, Profile,
    QueueId, SendMode, SessionId,
};
use tiller_store::Store;
use tokio::sync::mpsc;

use super::open::{self, RunningSession};
use super::outlet::Outlet;
use super::view::{self, BEAT, View};
use super::{history, slash};
use tiller_rpc::Error;

/// Requests of the hub. `id`: the client's request.
pub(super) enum SessionRequest {
    Prompt {
        id: Value,
        blocks: Vec<Value>,
    },
    Cancel,
    /// The client cancels a request.
    Withdraw {
        id: Value,
    },
    Mode {
        id: Value,
        profile: Profile,
    },
    Model {
        id: Value,
        model: ModelRef,
        options: bool,
    },
    /// The mode as an option: the answer contains all options.
    Option {
        id: Value,
        profile: Profile,
    },
    /// Send the history again.
    Load {
        id: Value,
        replay: bool,
    },
    /// The client's answer to request `n`.
    Answer {
        n: u64,
        result: Option<Value>,
    },
    Close {
        id: Value,
    },
}

/// A prompt that waits for the end of its turn.
struct Prompt {
    id: Value,
    /// The command that the prompt became.
    command: CommandId,
    /// It is a command, which has no turn.
    slash: bool,
    cancelled: bool,
    /// Its place in the queue, while it waits there.
    queued: Option<QueueId>,
}

/// A request whose answer waits for a change of the session.
enum PendingChange {
    Nothing { id: Value },
    Options { id: Value },
}

/// A question that was sent to the client.
struct PendingQuestion {
    ask: Ask,
    answered: bool,
}

/// One session.
pub(super) struct Session {
    id: SessionId,
    handle: EngineHandle,
    store: Store,
    out: Outlet,
    view: View,
    /// The client supports forms.
    forms: bool,
    prompt: Option<Prompt>,
    waiting: HashMap<CommandId, PendingChange>,
    /// Questions that were sent to the client, by request number.
    asked: HashMap<u64, PendingQuestion>,
    /// A question that was sent as text.
    worded: Option<AskId>,
    /// Notices for the person, sent with the next text.
    notes: Vec<String>,
    /// The commands from files that the client knows.
    own: Vec<CommandRow>,
    commands: u64,
    requests: u64,
}

impl Session {
    /// `notes`: sent with the first text.
    pub(super) fn new(
        opened: &RunningSession,
        store: Store,
        out: Outlet,
        forms: bool,
        notes: Vec<String>,
    ) -> Self {
        Self {
            id: opened.snapshot.session.id,
            handle: opened.handle.clone(),
            store,
            out,
            view: View::new(opened.root.clone(), opened.tools.clone(), opened.choices.clone()),
            forms,
            prompt: None,
            waiting: HashMap::new(),
            asked: HashMap::new(),
            worded: None,
            notes,
            own: Vec::new(),
            commands: open::LOOK.0,
            requests: 0,
        }
    }

    /// The state for a client that opens the session.
    pub(super) fn state(&self) -> Value {
        json!({"modes": self.view.choices.modes(), "configOptions": self.view.choices.options()})
    }

    /// Sends the history and the open questions.
    pub(super) async fn replay(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        let (store, wanted) = (self.store.clone(), snapshot.clone());
        let entries = tokio::task::spawn_blocking(move || open::path(&store, &wanted))
            .await
            .unwrap_or_else(|_| Err(Notice::new(NoticeKind::Internal, "the history could not be read")))?;
        self.view.last = entries.last().map(|e| e.id);
        for update in history::replay(&self.view.root, &self.view.tools, &entries) {
            self.update(update).await;
        }
        if !snapshot.todo.is_empty() {
            self.update(view::plan(&snapshot.todo)).await;
        }
        Ok(())
    }

    /// Runs until the channel closes or the engine ends.
    pub(super) async fn run(
        mut self,
        mut orders: mpsc::Receiver<SessionRequest>,
        mut events: EventStream,
        snapshot: Snapshot,
        engine: open::OwnedEngine,
    ) -> SessionId {
        self.update(slash::offered(&[])).await;
        self.look_for_commands();
        if let Some(update) = self.view.agents(&snapshot.agents) {
            self.update(update).await;
        }
        for ask in snapshot.asks {
            self.ask(ask).await;
        }
        let mut closing = None;
        let mut late: Option<tokio::time::Instant> = None;
        loop {
            // The last output of a command may be followed by nothing for a long time.
            let beat = std::time::Duration::from_millis(BEAT.unsigned_abs());
            let now = tokio::time::Instant::now();
            late = self.view.has_late().then(|| late.unwrap_or(now + beat));
            tokio::select! {
                order = orders.recv() => match order {
                    Some(SessionRequest::Close { id }) => {
                        closing = Some(id);
                        break;
                    }
                    Some(order) => self.order(order).await,
                    None => break,
                },
                event = events.next() => match event {
                    Some(event) => self.event(&event).await,
                    None => break,
                },
                () = tokio::time::sleep_until(late.unwrap_or(now)), if late.is_some() => {
                    for update in self.view.late() {
                        self.update(update).await;
                    }
                }
            }
        }
        // The client is gone: an open question ends with its turn.
        self.send(CommandBody::Turn(TurnCommand::Interrupt { hard: false }));
        engine.stop().await;
        if let Some(prompt) = self.prompt.take() {
            self.out.answer(&prompt.id, Ok(json!({"stopReason": "cancelled"}))).await;
        }
        if let Some(id) = closing {
            self.out.answer(&id, Ok(json!({}))).await;
        }
        self.id
    }

    async fn update(&self, update: Value) {
        let params = json!({"sessionId": self.id, "update": update});
        self.out.notify("session/update", &params).await;
    }

    fn next(&mut self) -> CommandId {
        self.commands += 1;
        CommandId(self.commands)
    }

    /// Sends a command to the engine; returns its number.
    fn send(&mut self, body: CommandBody) -> CommandId {
        let id = self.next();
        if let Err(e) = self.handle.send(Command::new(id, body)) {
            // The events show when the engine has ended.
            tracing::warn!(%e, "a command was not accepted");
        }
        id
    }

    async fn order(&mut self, order: SessionRequest) {
        match order {
            SessionRequest::Prompt { id, blocks } => self.prompt(id, blocks).await,
            SessionRequest::Cancel => self.cancel(),
            SessionRequest::Withdraw { id } => {
                if self.prompt.as_ref().is_some_and(|p| p.id == id) {
                    self.cancel();
                }
            }
            SessionRequest::Mode { id, profile } => self.mode(profile, PendingChange::Nothing { id }).await,
            SessionRequest::Option { id, profile } => self.mode(profile, PendingChange::Options { id }).await,
            SessionRequest::Model { id, model, options } => {
                let waiting =
                    if options { PendingChange::Options { id } } else { PendingChange::Nothing { id } };
                if model == self.view.choices.model {
                    return self.changed(waiting, Ok(())).await;
                }
                let n = self.send(CommandBody::Session(SessionCommand::SetModel { model }));
                self.waiting.insert(n, waiting);
            }
            SessionRequest::Load { id, replay } => self.load(id, replay).await,
            SessionRequest::Answer { n, result } => self.answered(n, result.as_ref()),
            SessionRequest::Close { .. } => {}
        }
    }

    async fn mode(&mut self, profile: Profile, waiting: PendingChange) {
        if profile == self.view.choices.profile {
            return self.changed(waiting, Ok(())).await;
        }
        let n = self.send(CommandBody::Session(SessionCommand::SetProfile { profile }));
        self.waiting.insert(n, waiting);
    }

    async fn changed(&self, waiting: PendingChange, result: Result<(), Error>) {
        let (id, value) = match waiting {
            PendingChange::Nothing { id } => (id, json!({})),
            PendingChange::Options { id } => (id, json!({"configOptions": self.view.choices.options()})),
        };
        self.out.answer(&id, result.map(|()| value)).await;
    }

    /// The client opened a session again that is already open.
    async fn load(&mut self, id: Value, replay: bool) {
        if replay {
            let (store, session) = (self.store.clone(), self.id);
            let read = tokio::task::spawn_blocking(move || {
                let row = store.sessions().get(session).map_err(|e| e.notice())?;
                store.paths().tail(session, &row.head, u32::MAX).map_err(|e| e.notice())
            });
            let entries = match read.await {
                Ok(Ok(tail)) => tail.entries,
                Ok(Err(notice)) => return self.out.answer(&id, Err(notice.into())).await,
                Err(_) => {
                    return self.out.answer(&id, Err(open::broken("the history could not be read"))).await;
                }
            };
            for update in history::replay(&self.view.root, &self.view.tools, &entries) {
                self.update(update).await;
            }
            if let Some(update) = self.view.usage() {
                self.update(update).await;
            }
        }
        self.out.answer(&id, Ok(self.state())).await;
    }

    async fn prompt(&mut self, id: Value, blocks: Vec<Value>) {
        if self.prompt.is_some() {
            let error = Error::invalid_request(
                "a prompt is running in this session: wait until it ends, or cancel it",
            );
            return self.out.answer(&id, Err(error)).await;
        }
        let message = match super::prompt::message(&self.view.root, blocks) {
            Ok(message) => message,
            Err(error) => return self.out.answer(&id, Err(error)).await,
        };
        self.tell_notes().await;
        let (body, slash) = self.body(message);
        let command = self.send(body);
        self.prompt = Some(Prompt { id, command, slash, cancelled: false, queued: None });
    }

    /// The meaning of a prompt: the answer to a question, a command, or a message for the model.
    fn body(&mut self, message: Message) -> (CommandBody, bool) {
        if let Some(id) = self.worded.take() {
            let reply = AskReply::Choice { answers: vec![message.text] };
            return (CommandBody::Ask(AskCommand::Answer { id, reply }), false);
        }
        if message.attachments.is_empty()
            && let Some(command) = slash::read(&message.text)
        {
            return (command, true);
        }
        (CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }), false)
    }

    /// Asks the engine for the commands from files, which may be made, changed or removed at any time.
    fn look_for_commands(&mut self) {
        self.send(CommandBody::Query(Query::Skills { query: SkillQuery::Commands }));
    }

    /// Lists the commands again, if those from files are others than before.
    async fn own_commands(&mut self, rows: &[CommandRow]) {
        if self.own != rows {
            self.own = rows.to_vec();
            self.update(slash::offered(rows)).await;
        }
    }

    async fn tell_notes(&mut self) {
        for note in std::mem::take(&mut self.notes) {
            self.update(view::said(&format!("{note}\n\n"))).await;
        }
    }

    fn cancel(&mut self) {
        let mut queued = None;
        if let Some(prompt) = &mut self.prompt {
            prompt.cancelled = true;
            queued = prompt.queued.take();
        }
        // The client shows no queue: what it cancelled is not sent later.
        if let Some(id) = queued {
            self.send(CommandBody::Queue(QueueCommand::Remove { id }));
        }
        self.worded = None;
        self.send(CommandBody::Turn(TurnCommand::Interrupt { hard: false }));
    }

    /// Ends the prompt in flight.
    async fn finish(&mut self, result: Result<&str, Error>) {
        for update in self.view.over() {
            self.update(update).await;
        }
        let Some(prompt) = self.prompt.take() else { return };
        let reason = if prompt.cancelled { Ok("cancelled") } else { result };
        self.out.answer(&prompt.id, reason.map(|r| json!({"stopReason": r}))).await;
    }
}

/// What happened, and what to do.
pub(super) fn words(notice: &Notice) -> String {
    let mut text = notice.message.clone();
    for hint in &notice.hints {
        text.push(' ');
        text.push_str(hint);
    }
    text
}
