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

/// The cost is the sum of all agents, also of those whose events were lost or came before the session was opened.
#[test]
fn the_cost_is_the_sum_of_all_agents() {
    let row = |id: &str, usd: f64| AgentView {
        id: AgentId(id.into()),
        cost: Some(Cost::from_usd(usd)),
        context: 15,
        window: Some(200),
        ..AgentView::default()
    };
    let of = |update: &Value| (update["used"].as_u64(), update["cost"]["amount"].as_f64());
    let mut v = view();
    assert_eq!(v.usage(), None, "no request was made");
    let told = v.agents(&[row("main", 0.5), row("main/a1", 0.25), row("main/a1/a2", 0.125)]).unwrap();
    assert_eq!(of(&told), (Some(15), Some(0.875)));
    assert_eq!(v.agents(&[row("main", 0.5)]), None, "nothing has changed");
    let changed = |usd| at(0, EventBody::State(StateEvent::AgentChanged { view: row("main/a1", usd) }));
    assert_eq!(v.event(&changed(0.25)), [] as [Value; 0]);
    let told = v.event(&changed(0.5));
    assert_eq!(told.iter().map(of).collect::<Vec<_>>(), [(Some(15), Some(1.125))]);
    // An agent that worked while events were lost.
    assert_eq!(of(&v.agents(&[row("main/a3", 1.0)]).unwrap()), (Some(15), Some(2.125)));
    assert_eq!(of(&v.usage().unwrap()), (Some(15), Some(2.125)));
}
