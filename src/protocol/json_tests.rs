//! Pins the JSON form of the bus: scripts and transcripts rely on it. A changed line here is a broken promise,
//! unless it only adds.

use serde_json::json;

use crate::bus::command::*;
use crate::bus::event::*;
use crate::*;

const NOW: Time = Time(1_795_291_200_123);

fn ids() -> SeqIds {
    SeqIds::default()
}

fn event(body: EventBody) -> String {
    let session = SessionId::fresh(&ids(), NOW);
    let event =
        Event { seq: 12, time: NOW, session, agent: AgentId::main(), cause: Some(CommandId(7)), body };
    let text = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "it must come back as it went");
    text
}

fn command(body: CommandBody) -> String {
    let command = Command::new(CommandId(7), body);
    let text = serde_json::to_string(&command).unwrap();
    assert_eq!(serde_json::from_str::<Command>(&text).unwrap(), command, "it must come back as it went");
    text
}

fn entry() -> Entry {
    Entry {
        id: EntryId::fresh(&ids(), NOW),
        parent: None,
        session: SessionId::fresh(&ids(), NOW),
        agent: AgentId::main(),
        time: NOW,
        body: EntryBody::User {
            message: Message::text("hello"),
            origin: Origin::Prompt,
            content: vec![Part::Text { text: "hello".into() }],
            taint: None,
            learnings: Vec::new(),
        },
        snapshot: None,
    }
}

#[test]
fn events_have_a_stable_form() {
    let node = || Box::new(entry());
    let id = EntryId::fresh(&ids(), NOW);
    let ask = AskId::fresh(&ids(), NOW);
    let lines = [
        event(EventBody::Turn(TurnEvent::TurnStarted {})),
        event(EventBody::Turn(TurnEvent::UserMessage { entry: id, text: "hello".into(), node: node() })),
        event(EventBody::Turn(TurnEvent::TextDelta { text: "a\u{e9}\n".into() })),
        event(EventBody::Turn(TurnEvent::ThinkingDelta { text: "hm".into() })),
        event(EventBody::Turn(TurnEvent::AssistantMessage { entry: id, text: "hi".into(), node: node() })),
        event(EventBody::Turn(TurnEvent::Awaiting {
            seconds: 12.0,
            limit: Some(120.0),
            setting: "providers.p.timeouts.first_byte".into(),
            progress: Some(30),
        })),
        event(EventBody::Turn(TurnEvent::Retrying {
            attempt: 2,
            of: 6,
            seconds: 1.5,
            why: "overloaded".into(),
            discard: true,
        })),
        event(EventBody::Turn(TurnEvent::Usage {
            usage: Usage {
                input: 1,
                output: 2,
                cache_read: 3,
                cache_write: 4,
                reasoning: 5,
                ..Usage::default()
            },
            cost_usd: None,
            context: 8,
            window: Some(200_000),
        })),
        event(EventBody::Turn(TurnEvent::Compacted { entry: id, tokens_before: 9, tokens_after: 3 })),
        event(EventBody::Turn(TurnEvent::TurnFinished {
            status: TurnStatus::Failed,
            text: String::new(),
            usage: Usage::default(),
            cost_usd: Some(0.25),
            error: Some(Notice::new(NoticeKind::Network, "The server is away.").hint("Try again.")),
        })),
        event(EventBody::Tool(ToolEvent::ToolProgress { call_id: "c1".into(), text: "out".into() })),
        event(EventBody::Tool(ToolEvent::ToolFinished {
            call_id: "c1".into(),
            name: "read_file".into(),
            arguments: json!({"path": "a"}),
            ok: true,
            outcome: ToolOutcome::Ok,
            output: "text".into(),
            seconds: 0.5,
            display: None,
            node: node(),
        })),
        event(EventBody::Ask(AskEvent::PermissionDecided {
            id: Some(ask),
            tool: "terminal".into(),
            what: "ls".into(),
            decision: PermissionOutcome::from_event_word("ask:once"),
            by: "person".into(),
            allow: None,
            change: false,
        })),
        event(EventBody::Ask(AskEvent::QuestionAnswered {
            id: ask,
            reply: AskReply::Choice { answers: vec!["a".into()] },
        })),
        event(EventBody::State(StateEvent::TodoChanged {
            todos: vec![TodoItem {
                id: "1".into(),
                content: "x".into(),
                status: TodoStatus::InProgress,
                agent: None,
            }],
            by_person: false,
        })),
        event(EventBody::State(StateEvent::CheckpointCreated { entry: id, name: "before".into() })),
        event(EventBody::State(StateEvent::Restored { entry: id })),
        event(EventBody::State(StateEvent::WorkspaceChanged {
            changes: vec![FileChange {
                time: NOW,
                kind: ChangeKind::Modified,
                path: "src/a.rs".into(),
                who: Who::Shell { agent: AgentId::main() },
                count: 1,
                lines: Some((3, 1)),
                during: Some("cargo test".into()),
            }],
        })),
        event(EventBody::State(StateEvent::Notice { notice: Notice::new(NoticeKind::Info, "News.") })),
        event(EventBody::State(StateEvent::Lagged { missed: 3 })),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn commands_have_a_stable_form() {
    let queue = QueueId::fresh(&ids(), NOW);
    let session = SessionId::fresh(&ids(), NOW);
    let lines = [
        command(CommandBody::Turn(TurnCommand::Submit {
            message: Message::text("hi"),
            mode: SendMode::Steer,
        })),
        command(CommandBody::Turn(TurnCommand::Interrupt { hard: true })),
        command(CommandBody::Turn(TurnCommand::Shell { line: "ls".into(), share: false })),
        command(CommandBody::Queue(QueueCommand::Move { id: queue, to: 0 })),
        command(CommandBody::Ask(AskCommand::Answer {
            id: AskId::fresh(&ids(), NOW),
            reply: AskReply::Permission { decision: Decision::Deny { comment: None }, hash: "00".into() },
        })),
        command(CommandBody::Session(SessionCommand::Open { id: session })),
        command(CommandBody::Session(SessionCommand::SetProfile { profile: Profile::AutoEdit })),
        command(CommandBody::Context(ContextCommand::Compact { focus: Some("tests".into()) })),
        command(CommandBody::Todo(TodoCommand::Status { id: "1".into(), status: TodoStatus::Completed })),
        command(CommandBody::Review(ReviewCommand::UndoReject)),
        command(CommandBody::Watch(WatchCommand::Pause { paused: true })),
        command(CommandBody::Query(Query::Costs { by: CostBy::Day })),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn only_deltas_may_be_joined() {
    let delta = EventBody::Turn(TurnEvent::TextDelta { text: String::new() });
    assert_eq!(delta.delivery(), Delivery::Mergeable);
    let fact = EventBody::Turn(TurnEvent::TurnStarted {});
    assert_eq!(fact.delivery(), Delivery::Fact);
}
