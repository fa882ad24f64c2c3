//! The server over a pipe, with a store of its own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tiller_permit::Redactor;
use tiller_protocol::{
    AgentId, AgentState, Block, Cost, Entry, EntryBody, EntryId, ManualClock, Message, ModelRef, Notice,
    NoticeKind, Origin, Part, Profile, SeqIds, SessionId, StopReason, Time, TodoItem, TodoStatus,
    ToolOutcome, Usage,
};
use tiller_store::{AgentRow, Append, MadeBy, ModelCall, NewSession, OnFailure, Options, Store};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use uuid::Uuid;

use crate::{Library, LibraryConfig, serve};

/// 2026-11-21T20:00:00Z.
const NOW: Time = Time(1_795_291_200_000);
/// Time limit of one answer on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A store with sessions in the folders `/work/a` (1) and `/work/b` (2), an agent (3) of the first in `/elsewhere`.
struct Shelf {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    store: Store,
}

fn options() -> Options {
    Options {
        clock: Arc::new(ManualClock::new(NOW)),
        ids: Arc::new(SeqIds::default()),
        on_failure: OnFailure::Answer,
        zone: Some(jiff::tz::TimeZone::UTC),
        ..Options::default()
    }
}

fn id(n: u128) -> SessionId {
    SessionId(Uuid::from_u128(n << 64))
}

fn entry_id(n: u128) -> EntryId {
    EntryId(Uuid::from_u128(n))
}

impl Shelf {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data/tiller.db");
        let store = Store::open(&path, options()).unwrap();
        let shelf = Self { _dir: dir, path, store };
        shelf.session(1, "/work/a", None);
        shelf.session(2, "/work/b", None);
        shelf.add(1, 10, user("please mend the roof\u{1b}[31m"));
        shelf.add(1, 11, said("The key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG."));
        shelf.add(1, 12, result(&"long ".repeat(10_000)));
        shelf.add(2, 20, user("a secret plan of the other folder"));
        shelf.session(3, "/elsewhere", Some(11));
        shelf.add(3, 30, user("look below the roof"));
        let row = AgentRow {
            root: id(1),
            id: AgentId("main/a1".into()),
            session: id(3),
            brief: json!({"label": "roofer", "model": "p/m", "brief": {"goal": "look below the roof"}}),
            state: AgentState::Running,
            report: Some(json!({"summary": "nothing there"})),
            announced: false,
            created: NOW,
        };
        shelf.store.agents().put(row).wait().unwrap();
        let call = ModelCall {
            agent: AgentId::main(),
            model: ModelRef("p/m".into()),
            tier: "main".into(),
            time: NOW,
            usage: Usage { input: 100, output: 20, ..Usage::default() },
            cost: Some(Cost(1500)),
        };
        shelf.store.costs().record(id(1), call).wait().unwrap();
        let todo =
            TodoItem { id: "1".into(), content: "nail it".into(), status: TodoStatus::Pending, agent: None };
        shelf.store.todos().set(id(1), "main", vec![todo]).wait().unwrap();
        shelf
    }

    fn session(&self, n: u128, project: &str, spawned_by: Option<u128>) {
        let new = NewSession {
            id: id(n),
            project: project.into(),
            title: format!("session {n}"),
            model: ModelRef("p/m".into()),
            profile: Profile::default(),
            spawned_by: spawned_by.map(entry_id),
            made_by: MadeBy::Person,
        };
        self.store.sessions().create(new).wait().unwrap();
    }

    fn add(&self, session: u128, n: u128, body: EntryBody) {
        let session = id(session);
        let tail = self.store.paths().tail(session, "main", 1).unwrap();
        let entry = Entry {
            id: entry_id(n),
            parent: tail.entries.last().map(|e| e.id),
            session,
            agent: AgentId::main(),
            time: NOW,
            body,
            snapshot: None,
        };
        let mut append = Append::new(session, "main").entries(vec![entry]);
        append.prompt = Some("x".into());
        self.store.entries().append(append).wait().unwrap();
    }

    /// A server of the folder `/work/a`.
    fn client(&self) -> Client {
        let path = self.path.clone();
        Client::new(Some("/work/a"), Box::new(move || Store::open(&path, options()).map_err(|e| e.notice())))
    }
}

fn user(text: &str) -> EntryBody {
    EntryBody::User {
        message: Message { text: text.into(), ..Message::default() },
        origin: Origin::default(),
        content: vec![Part::Text { text: text.into() }],
        taint: None,
        learnings: Vec::new(),
    }
}

fn said(text: &str) -> EntryBody {
    EntryBody::Assistant {
        blocks: vec![Block::Text { text: text.into() }],
        stop: StopReason::EndTurn,
        model: ModelRef("p/m".into()),
        usage: Usage::default(),
        cost: None,
    }
}

fn result(text: &str) -> EntryBody {
    EntryBody::ToolResult {
        call_id: "c".into(),
        name: "terminal".into(),
        outcome: ToolOutcome::Ok,
        content: vec![Part::Text { text: text.into() }],
        display: None,
        seconds: 1.0,
        learnings: Vec::new(),
        taint: None,
        added: tiller_protocol::Additions::default(),
    }
}

/// A client that speaks lines.
struct Client {
    to: WriteHalf<DuplexStream>,
    from: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: tokio::task::JoinHandle<Result<(), String>>,
    next: u64,
}

impl Client {
    fn new(project: Option<&str>, open: Box<dyn Fn() -> Result<Store, Notice> + Send + Sync>) -> Self {
        let library = Library::new(LibraryConfig {
            open,
            redactor: Arc::new(Redactor::new(["hunter2-hunter2".to_owned()])),
            project: project.map(str::to_owned),
            clock: Arc::new(ManualClock::new(NOW)),
        });
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let server = tokio::spawn(serve(library, input, output));
        let (from, to) = tokio::io::split(ours);
        Self { to, from: BufReader::new(from).lines(), server, next: 0 }
    }

    async fn send(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self) -> Value {
        let line = tokio::time::timeout(TIMEOUT, self.from.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&request.to_string()).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], json!(self.next), "{answer}");
        answer
    }

    async fn begin(&mut self) -> Value {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}});
        let answer = self.ask("initialize", hello).await;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        answer
    }

    /// A call's result; `Err`: the tool's error.
    async fn call(&mut self, name: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments})).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        if answer["result"]["isError"] == json!(true) {
            return Err(text.to_owned());
        }
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(value["note"].as_str().unwrap().contains("not instructions"), "{value}");
        Ok(value)
    }
}

#[tokio::test]
async fn every_tool_is_listed_as_reading_and_gives_what_the_store_has() {
    let shelf = Shelf::new();
    let mut client = shelf.client();
    let hello = client.begin().await;
    assert_eq!(hello["result"]["serverInfo"]["name"], json!("tiller"), "{hello}");
    assert!(hello["result"]["instructions"].as_str().unwrap().contains("/work/a"), "{hello}");
    let list = client.ask("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    let all =
        ["search_sessions", "list_sessions", "read_session", "read_message", "list_agents", "read_todo"];
    assert_eq!(names, all);
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], json!(true), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], json!("object"), "{tool}");
    }
    let found = client.call("search_sessions", json!({"query": "roof"})).await.unwrap();
    assert_eq!(found["hits"][0]["session"], json!(id(1)), "{found}");
    let found = client.call("list_sessions", json!({})).await.unwrap();
    let sessions = found["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{found}");
    assert_eq!((&sessions[0]["title"], &sessions[0]["open"]), (&json!("session 1"), &json!(false)));
    let read = client.call("read_session", json!({"session": id(1)})).await.unwrap();
    let messages = read["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool"], "{read}");
    assert_eq!(messages[2]["tool"], json!("terminal"));
    let agents = client.call("list_agents", json!({"session": id(1)})).await.unwrap();
    let [main, agent] = agents["agents"].as_array().unwrap().as_slice() else { panic!("{agents}") };
    let spent = [&main["tokens_in"], &main["tokens_out"], &main["cost_usd"]];
    assert_eq!(spent, [&json!(100), &json!(20), &json!(0.0015)], "{agents}");
    // No process has the session open: it cannot run.
    assert_eq!((&agent["state"], &agent["parent"]), (&json!("interrupted"), &json!("main")), "{agents}");
    assert_eq!((&agent["label"], &agent["result"]), (&json!("roofer"), &json!("nothing there")), "{agents}");
    let own = client.call("read_session", json!({"session": agent["session"]})).await.unwrap();
    assert_eq!(own["messages"][0]["text"], json!("look below the roof"), "an agent's own session: {own}");
    let todo = client.call("read_todo", json!({"session": id(1)})).await.unwrap();
    assert_eq!(todo["todo"][0]["content"], json!("nail it"), "{todo}");
}

#[tokio::test]
async fn secrets_are_masked_and_controls_are_visible() {
    let shelf = Shelf::new();
    shelf.add(1, 13, said("the password hunter2-hunter2 works"));
    let mut client = shelf.client();
    client.begin().await;
    let read = client.call("read_session", json!({"session": id(1)})).await.unwrap().to_string();
    let found = client.call("search_sessions", json!({"query": "password"})).await.unwrap().to_string();
    assert!(found.contains("password"), "{found}");
    for text in [&read, &found] {
        assert!(!text.contains("hunter2") && !text.contains("sk-ant-api03-abc"), "{text}");
        assert!(!text.contains("\\u001b"), "{text}");
    }
    assert!(read.contains("please mend the roof"), "{read}");
}

/// Neither a list nor a search, an id, the beginning of one, a message nor a cursor reaches another folder.
#[tokio::test]
async fn another_folder_is_closed_unless_all_are_served() {
    let shelf = Shelf::new();
    let mut client = shelf.client();
    client.begin().await;
    let found = client.call("search_sessions", json!({"query": "secret plan"})).await.unwrap();
    assert_eq!(found["hits"], json!([]));
    let calls = [
        ("read_session", json!({"session": id(2)})),
        ("read_session", json!({"session": id(1), "cursor": entry_id(20)})),
        ("read_message", json!({"message": entry_id(20)})),
        ("list_agents", json!({"session": id(2)})),
        ("read_todo", json!({"session": id(2)})),
        ("search_sessions", json!({"query": "plan", "session": id(2)})),
    ];
    for (tool, arguments) in &calls {
        let why = client.call(tool, arguments.clone()).await.unwrap_err();
        assert!(why.contains("there is no") && !why.contains("secret"), "{tool}: {why}");
    }
    let path = shelf.path.clone();
    let mut client =
        Client::new(None, Box::new(move || Store::open(&path, options()).map_err(|e| e.notice())));
    client.begin().await;
    for (tool, arguments) in calls {
        client.call(tool, arguments).await.unwrap();
    }
}

#[tokio::test]
async fn long_sessions_and_messages_come_in_parts_without_a_gap() {
    let shelf = Shelf::new();
    // On a thread without a runtime: a task may poll only so often before it must yield.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..60 {
                shelf.add(1, 100 + n, said(&format!("line {n} {}", "some words ".repeat(300))));
            }
        });
    });
    let mut client = shelf.client();
    client.begin().await;
    let (mut cursor, mut seen) = (json!(null), Vec::new());
    for _ in 0..100 {
        let mut arguments = json!({"session": id(1), "limit": 50});
        arguments["cursor"] = cursor;
        let page = client.call("read_session", arguments).await.unwrap();
        assert!(page.to_string().len() < 60_000, "{} bytes", page.to_string().len());
        let mut ids: Vec<String> =
            page["messages"].as_array().unwrap().iter().map(|m| m["message"].to_string()).collect();
        ids.extend(seen);
        seen = ids;
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let all = shelf.store.paths().tail(id(1), "main", 1000).unwrap().entries;
    assert_eq!(seen, all.iter().map(|e| json!(e.id).to_string()).collect::<Vec<_>>());
    let (mut text, mut cursor) = (String::new(), json!(null));
    for _ in 0..10 {
        let mut arguments = json!({"message": entry_id(12)});
        arguments["cursor"] = cursor;
        let part = client.call("read_message", arguments).await.unwrap();
        text.push_str(part["text"].as_str().unwrap());
        cursor = part["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(text, "long ".repeat(10_000));
}

#[tokio::test]
async fn what_is_no_message_gets_an_error_and_the_next_one_its_answer() {
    let shelf = Shelf::new();
    let mut client = shelf.client();
    client.begin().await;
    client.send("Listening on port 1").await;
    assert_eq!(client.answer().await["error"]["code"], json!(-32700));
    client.send("[1, 2]").await;
    assert_eq!(client.answer().await["error"]["code"], json!(-32600));
    client.send(r#"{"id": 77, "nothing": 1}"#).await;
    let answer = client.answer().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(77), &json!(-32600)), "{answer}");
    client.to.write_all(&vec![b'{'; 3 << 20]).await.unwrap();
    client.send("").await;
    assert!(client.answer().await["error"]["message"].as_str().unwrap().contains("MB"));
    client.to.write_all(b"\xff\xfe\n\n  \n").await.unwrap();
    assert_eq!(client.answer().await["error"]["code"], json!(-32700));
    for (tool, arguments) in [
        ("list_sessions", json!({"unknown": 1})),
        ("list_sessions", json!({"cursor": "-1"})),
        ("read_session", json!({})),
        ("read_session", json!({"session": "%"})),
        ("read_session", json!({"session": ""})),
        ("read_session", json!({"session": "\u{1b}[31m"})),
        ("read_message", json!({"message": "x"})),
        ("search_sessions", json!({"query": "a", "role": "king"})),
        ("search_sessions", json!({"query": "a", "since": "never"})),
    ] {
        let why = client.call(tool, arguments.clone()).await.unwrap_err();
        assert!(!why.contains('\u{1b}'), "{tool} {arguments}: {why}");
    }
    let answer = client.ask("tools/call", json!({"name": "rm", "arguments": {}})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("no tool 'rm'"), "{answer}");
    let answer = client.ask("no/such", json!({})).await;
    assert_eq!(answer["error"]["code"], json!(-32601), "{answer}");
    // It still works, and ends with its input.
    client.call("list_sessions", json!({})).await.unwrap();
    let Client { to, from, server, .. } = client;
    drop((to, from));
    tokio::time::timeout(TIMEOUT, server).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_an_error_of_the_call_and_is_tried_again() {
    let shelf = Shelf::new();
    let path = shelf.path.clone();
    let tries = std::sync::atomic::AtomicU32::new(0);
    let open = move || match tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => {
            Err(Notice::new(NoticeKind::Store, "The database is damaged.").hint("`tiller doctor` shows more"))
        }
        _ => Store::open(&path, options()).map_err(|e| e.notice()),
    };
    let mut client = Client::new(Some("/work/a"), Box::new(open));
    client.begin().await;
    let why = client.call("list_sessions", json!({})).await.unwrap_err();
    assert!(why.contains("damaged") && why.contains("tiller doctor"), "{why}");
    client.call("list_sessions", json!({})).await.unwrap();
}

/// The revision without a handshake.
#[tokio::test]
async fn the_newest_revision_is_spoken_too() {
    let shelf = Shelf::new();
    let mut client = shelf.client();
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    }});
    let found = client.ask("server/discover", meta.clone()).await;
    assert!(found["result"].to_string().contains("2026-07-28"), "{found}");
    let mut params = meta;
    params["name"] = json!("list_sessions");
    params["arguments"] = json!({});
    let answer = client.ask("tools/call", params).await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("session 1"), "{answer}");
}
