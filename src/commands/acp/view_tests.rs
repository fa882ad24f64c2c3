use tiller_config::Config;
use tiller_protocol::{CommandId, ModelRef, Profile, SessionId};

use super::*;

fn view() -> View {
    let choices = modes::Choices::new(Profile::Ask, ModelRef("demo/demo".into()), &Config::default());
    View::new("/w".into(), tiller_tool::Registry::built_in().catalog(), choices)
}

fn at(ms: i64, body: impl Into<EventBody>) -> Event {
    let session: SessionId = "01900000-0000-7000-8000-000000000001".parse().unwrap();
    let cause = Some(CommandId(1));
    Event { seq: 1, time: Time(ms), session, agent: AgentId::main(), cause, body: body.into() }
}

fn said_of(updates: &[Value]) -> String {
    updates.iter().filter_map(|u| u["content"]["text"].as_str()).collect()
}

#[test]
fn words_that_are_dropped_are_told_as_dropped() {
    let mut v = view();
    let retry = |discard| {
        let why = "the stream was cut\nhere".to_owned();
        at(0, EventBody::Turn(TurnEvent::Retrying { attempt: 1, of: 3, seconds: 2.0, why, discard }))
    };
    assert_eq!(v.event(&retry(true)).len(), 1, "nothing was said yet");
    v.event(&at(0, EventBody::Turn(TurnEvent::TextDelta { text: "Half".into() })));
    let told = v.event(&retry(true));
    assert!(said_of(&told).contains("was interrupted here"), "{told:?}");
    assert!(said_of(&told).contains("in 2 s: the stream was cut\n"), "{told:?}");
    assert_eq!(v.event(&retry(true)).len(), 1, "said once");
}

#[test]
fn live_output_is_its_tail_and_not_told_too_often() {
    let mut v = view();
    let progress = |ms, text: &str| {
        at(ms, EventBody::Tool(ToolEvent::ToolProgress { call_id: "c".into(), text: text.into() }))
    };
    assert_eq!(v.event(&progress(0, "before it began")).len(), 0);
    let begun = ToolEvent::ToolStarted {
        call_id: "c".into(),
        name: "terminal".into(),
        arguments: json!({"command": "make"}),
        verb: "shell".into(),
        target: "make".into(),
    };
    assert_eq!(v.event(&at(0, EventBody::Tool(begun)))[0]["status"], "in_progress");
    assert_eq!(v.event(&progress(0, "one\n")).len(), 1);
    assert!(!v.has_late());
    assert_eq!(v.event(&progress(10, "two\n")).len(), 0);
    // Nothing may follow, so it is sent after a pause.
    assert!(v.has_late());
    let late = v.late();
    assert!(late.len() == 1 && late[0].to_string().contains("two"), "{late:?}");
    assert!(!v.has_late() && v.late().is_empty(), "once");
    assert_eq!(v.event(&progress(20, "three\n")).len(), 0);
    let told = v.event(&progress(300, &"é".repeat(20_000)));
    let text = told[0]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.len() <= TAIL + 16 && !text.contains("one"), "{}", text.len());
    assert!(!v.has_late(), "it was told with what followed");
    assert_eq!(v.over(), [status("c", "failed")], "what never ended");
    assert_eq!(v.over(), [] as [Value; 0]);
}

#[test]
fn other_agents_words_are_not_the_sessions() {
    let mut v = view();
    let mut event = at(0, EventBody::Turn(TurnEvent::TextDelta { text: "from a child".into() }));
    event.agent = AgentId("main/a1".into());
    assert_eq!(v.event(&event), [] as [Value; 0]);
}

#[test]
fn cancelled_items_are_no_part_of_the_plan() {
    let item =
        |content: &str, status| TodoItem { id: content.into(), content: content.into(), status, agent: None };
    let todos = [
        item("a", TodoStatus::Completed),
        item("b", TodoStatus::Cancelled),
        item("c", TodoStatus::InProgress),
        item("d", TodoStatus::Pending),
    ];
    let told = plan(&todos);
    let of: Vec<_> =
        told["entries"].as_array().unwrap().iter().map(|e| e["status"].as_str().unwrap()).collect();
    assert_eq!(of, ["completed", "in_progress", "pending"]);
}
