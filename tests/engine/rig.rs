//! An engine in a scratch folder, with a scripted model; the test plays the user.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tiller_protocol::command::{AskCommand, Query, SessionCommand, TurnCommand};
use tiller_protocol::event::{AskEvent, ReplyEvent, StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    Ask, AskReply, Command, CommandBody, CommandId, Entry, Event, EventBody, Message, Notice, SendMode,
    SessionId, Snapshot,
};
use tiller_provider::{Provider, Request};
use tiller_store::{Options, Store};
use tiller_tool::Registry;

use tiller_engine::{CrewConfig, Engine, EngineConfig, EngineHandle, EventStream, Roles};

pub(crate) use crate::scripted_model::*;

/// Longest time that a test waits for an event.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// Waits until `done` is true.
pub(crate) async fn wait_until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, wait).await.is_ok(), "waited for {what}");
}

/// Folders of one test. Outlives the engines that it starts.
pub(crate) struct Place {
    pub(crate) tmp: tempfile::TempDir,
    pub(crate) work: PathBuf,
    /// What the engine's model can call; the program's own tools unless a test adds one.
    pub(crate) tools: Registry,
    /// The stores of the engines that ran here.
    stores: Mutex<Vec<Store>>,
}

/// Before the folder goes, every store is closed: a thread of an engine that still waits for a write gets its answer. A store
/// whose folder is gone would retry the write without end, and the test's runtime would wait for that thread.
impl Drop for Place {
    fn drop(&mut self) {
        self.stores.get_mut().unwrap_or_else(PoisonError::into_inner).iter().for_each(Store::close);
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let work = tmp.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&work).unwrap();
        Self { work, tmp, tools: Registry::built_in(), stores: Mutex::default() }
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        std::fs::write(self.work.join(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work.join(name)).unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.tmp.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.home().join("data/tiller.db")
    }

    /// Releases the lease of a killed process. (In a test it is this process, which lives on.)
    pub(crate) fn free(&self, session: SessionId) {
        let store = Store::open(&self.db(), Options::default()).unwrap();
        let lease = store.leases().acquire(session, "main", tiller_store::AcquireMode::Force).wait().unwrap();
        store.leases().release(lease).wait().unwrap();
    }

    /// Like [`Self::free`], for a lease that may not exist.
    pub(crate) fn free_if_there(&self, session: SessionId) {
        let store = Store::open(&self.db(), Options::default()).unwrap();
        if let Ok(lease) = store.leases().acquire(session, "main", tiller_store::AcquireMode::Force).wait() {
            store.leases().release(lease).wait().unwrap();
        }
    }

    /// Gives the engine a store that returns the error of a failed write at once, instead of retrying without end.
    pub(crate) fn answer_failures(&self, parts: &mut EngineConfig) {
        let options = Options { on_failure: tiller_store::OnFailure::Answer, ..Options::default() };
        parts.store = Store::open(&self.db(), options).unwrap();
    }

    pub(crate) fn parts(&self, fake: &Arc<Fake>) -> EngineConfig {
        let mut parts =
            tiller_engine::testing::parts(&self.work, &self.home(), crew(), self.tools.clone()).unwrap();
        parts.providers.insert(Arc::clone(fake) as Arc<dyn Provider>);
        parts
    }

    pub(crate) async fn start(&self, fake: &Arc<Fake>) -> Rig {
        self.start_with(fake, |_| {}).await
    }

    pub(crate) async fn start_with(&self, fake: &Arc<Fake>, change: impl FnOnce(&mut EngineConfig)) -> Rig {
        let mut parts = self.parts(fake);
        change(&mut parts);
        self.stores.lock().unwrap().push(parts.store.clone());
        let (engine, events) = Engine::start(parts).await.unwrap();
        Rig { handle: engine.handle(), engine: Some(engine), events, seen: Vec::new(), next: 1 }
    }
}

/// Gives the engine the model `wire/m` of a provider with these settings, in place of a scripted one.
pub(crate) fn by_wire(p: &mut EngineConfig, provider: Value) {
    p.config.providers.insert("wire".into(), serde_json::from_value(provider).unwrap());
    p.providers = tiller_provider::build(
        &p.config,
        &tiller_provider::ApiFormats::built_in(),
        &|_| None,
        None,
        &tiller_provider::Redact::default(),
    );
    p.session.model = Some(tiller_protocol::ModelRef("wire/m".into()));
}

/// The crew of the program, without external programs, folders and workflows of its own.
fn crew() -> CrewConfig {
    CrewConfig {
        agents: Arc::new(|| Box::<tiller_agents::Roster>::default()),
        delegation: Arc::new(tiller_agents::Delegation),
        programs: None,
        folders: None,
        terminals: None,
        workflows: None,
        roles: Roles::new(tiller_config::agents::Definitions::default()),
    }
}

/// A running engine and its events.
pub(crate) struct Rig {
    pub(crate) engine: Option<Engine>,
    pub(crate) handle: EngineHandle,
    pub(crate) events: EventStream,
    pub(crate) seen: Vec<Arc<Event>>,
    next: u64,
}

impl Rig {
    pub(crate) fn send(&mut self, body: CommandBody) -> CommandId {
        let id = CommandId(self.next);
        self.next += 1;
        self.handle.send(Command::new(id, body)).unwrap();
        id
    }

    /// Sends a command to one agent.
    pub(crate) fn send_to(&mut self, agent: &str, body: CommandBody) -> CommandId {
        let id = CommandId(self.next);
        self.next += 1;
        let agent = Some(tiller_protocol::AgentId(agent.into()));
        self.handle.send(Command { id, agent, body }).unwrap();
        id
    }

    pub(crate) fn submit(&mut self, text: &str) -> CommandId {
        self.submit_as(Message::text(text), SendMode::Steer)
    }

    pub(crate) fn submit_as(&mut self, message: Message, mode: SendMode) -> CommandId {
        self.send(CommandBody::Turn(TurnCommand::Submit { message, mode }))
    }

    pub(crate) fn interrupt(&mut self, hard: bool) {
        self.send(CommandBody::Turn(TurnCommand::Interrupt { hard }));
    }

    /// The next event of the main agent that `wanted` accepts; all events up to it are kept in `seen`.
    pub(crate) async fn until<T>(&mut self, what: &str, wanted: impl Fn(&EventBody) -> Option<T>) -> T {
        self.until_of(what, |e| if e.agent.is_main() { wanted(&e.body) } else { None }).await
    }

    /// Like [`Self::until`], for events of any agent.
    pub(crate) async fn until_of<T>(&mut self, what: &str, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let wait = async {
            loop {
                let Some(e) = self.events.next().await else { panic!("the engine ended; waited for {what}") };
                self.seen.push(Arc::clone(&e));
                if let Some(t) = wanted(&e) {
                    return t;
                }
            }
        };
        match tokio::time::timeout(DEADLINE, wait).await {
            Ok(t) => t,
            Err(_) => panic!("no {what}; seen: {:#?}", self.kinds()),
        }
    }

    /// The types of the events that were seen.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.seen
            .iter()
            .map(|e| serde_json::to_value(&**e).unwrap()["type"].as_str().unwrap_or("?").to_owned())
            .collect()
    }

    pub(crate) async fn finished(&mut self) -> (TurnStatus, String, Option<Notice>) {
        self.until("end of the turn", |e| match e {
            EventBody::Turn(TurnEvent::TurnFinished { status, text, error, .. }) => {
                Some((*status, text.clone(), error.clone()))
            }
            _ => None,
        })
        .await
    }

    /// Sends a message and waits for the end of its turn.
    pub(crate) async fn turn(&mut self, text: &str) -> (TurnStatus, String) {
        self.submit(text);
        let (status, text, _) = self.finished().await;
        (status, text)
    }

    pub(crate) async fn tool_finished(&mut self) -> (String, String) {
        self.until("result of a tool", |e| match e {
            EventBody::Tool(ToolEvent::ToolFinished { call_id, output, .. }) => {
                Some((call_id.clone(), output.clone()))
            }
            _ => None,
        })
        .await
    }

    pub(crate) async fn started(&mut self) -> String {
        self.until("start of a tool", |e| match e {
            EventBody::Tool(ToolEvent::ToolStarted { call_id, .. }) => Some(call_id.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn asked(&mut self) -> Ask {
        self.until("a question", |e| match e {
            EventBody::Ask(AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask }) => {
                Some(ask.clone())
            }
            _ => None,
        })
        .await
    }

    pub(crate) fn answer(&mut self, ask: &Ask, reply: AskReply) {
        self.send(CommandBody::Ask(AskCommand::Answer { id: ask.id, reply }));
    }

    pub(crate) async fn notice(&mut self, part: &str) -> Notice {
        self.until(&format!("a notice with '{part}'"), |e| match e {
            EventBody::State(StateEvent::Notice { notice }) if notice.message.contains(part) => {
                Some(notice.clone())
            }
            _ => None,
        })
        .await
    }

    pub(crate) async fn query(&mut self, q: Query) -> ReplyEvent {
        self.send(CommandBody::Query(q));
        self.reply().await
    }

    pub(crate) async fn reply(&mut self) -> ReplyEvent {
        self.until("a reply", |e| match e {
            EventBody::Reply(r) => Some((**r).clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn refused(&mut self) -> Notice {
        match self.reply().await {
            ReplyEvent::ErrorReply { notice } => notice,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn snapshot(&mut self) -> Snapshot {
        match self.query(Query::Snapshot).await {
            ReplyEvent::SnapshotReply { snapshot } => *snapshot,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.engine.as_ref().unwrap().session()
    }

    /// Ends the engine by the quit command.
    pub(crate) async fn quit(mut self) -> Vec<Arc<Event>> {
        self.send(CommandBody::Session(SessionCommand::Quit));
        self.until("the end", |e| matches!(e, EventBody::State(StateEvent::Stopped {})).then_some(())).await;
        self.engine.take().unwrap().shutdown().await;
        self.seen
    }

    /// Stops it at once, as far as that is possible within a process: no last writes.
    pub(crate) async fn kill(mut self) {
        self.engine.take().unwrap().kill().await;
    }
}

/// The entries of a path as short texts.
pub(crate) fn shape(entries: &[Entry]) -> Vec<String> {
    use tiller_protocol::EntryBody as B;
    entries
        .iter()
        .map(|e| match &e.body {
            B::Prefix { .. } => "prefix".into(),
            B::User { message, origin, .. } => format!("user {origin:?} {}", message.text),
            B::Assistant { blocks, stop, .. } => format!("reply {} {stop:?}", blocks.len()),
            B::ToolResult { call_id, outcome, .. } => format!("result {call_id} {outcome:?}"),
            B::Compaction { .. } => "compaction".into(),
            B::BranchSummary { .. } => "branch summary".into(),
            B::Checkpoint { name } => format!("checkpoint {name}"),
            B::InnerCall { call_id, .. } => format!("inner {call_id}"),
            B::Note { text } => format!("note {text}"),
        })
        .collect()
}

/// Asserts that every call has exactly one result, which follows its reply with nothing in between.
pub(crate) fn assert_valid(request: &Request) {
    use tiller_protocol::Block;
    use tiller_provider::ChatMessage as M;
    let mut open: Vec<String> = Vec::new();
    for m in request.messages.iter() {
        match m {
            M::ToolResult { call_id, .. } => {
                assert_eq!(open.first(), Some(call_id), "results in call order, once each");
                open.remove(0);
            }
            M::User { .. } => assert!(open.is_empty(), "words between call and result: {open:?}"),
            M::Assistant { blocks, .. } => {
                assert!(open.is_empty(), "a reply before the results of {open:?}");
                open = blocks
                    .iter()
                    .filter_map(|b| if let Block::ToolCall(c) = b { Some(c.id.clone()) } else { None })
                    .collect();
            }
        }
    }
    assert!(open.is_empty(), "calls without a result: {open:?}");
    assert!(
        !matches!(request.messages.last(), Some(M::Assistant { .. })),
        "it ends with the model's own words"
    );
}

/// The text that a request holds of a message or result.
pub(crate) fn message_text(request: &Request, at: usize) -> String {
    use tiller_provider::ChatMessage as M;
    match &request.messages[at] {
        M::User { content } | M::ToolResult { content, .. } => tiller_engine::testing::text_of(content),
        M::Assistant { .. } => String::new(),
    }
}

pub(crate) fn read_args(path: &str) -> Value {
    json!({ "path": path })
}
