//! The agents panel, driven by the robot.

use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::{Cost, EventBody, Time, Usage};

use super::*;
use crate::testing::{Robot, START};

fn agent(id: &str, parent: Option<&str>, state: AgentState) -> AgentView {
    AgentView {
        id: AgentId(id.into()),
        parent: parent.map(|p| AgentId(p.into())),
        label: id.rsplit('/').next().unwrap_or(id).into(),
        state,
        act: "edit src/client.rs".into(),
        model: "vendor/model".into(),
        usage: Usage { input: 12_000, output: 900, ..Usage::default() },
        cost: Some(Cost::from_usd(0.31)),
        context: 82_000,
        window: Some(200_000),
        since: Some(Time(START.millis() - 125_000)).filter(|_| state == AgentState::Running),
    }
}

fn crew(r: &mut Robot) {
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    for view in [
        agent("main", None, AgentState::Running),
        agent("main/a1", Some("main"), AgentState::Running),
        agent("main/a2", Some("main"), AgentState::Waiting),
        agent("main/a1/b1", Some("main/a1"), AgentState::Done),
    ] {
        r.event(EventBody::State(StateEvent::AgentChanged { view }));
    }
    r.event(EventBody::Tool(ToolEvent::ToolStarted {
        call_id: "c1".into(),
        name: "terminal".into(),
        arguments: serde_json::json!({"command": "cargo test -p api"}),
        verb: "shell".into(),
        target: "cargo test -p api".into(),
    }));
}

fn sent(r: &Robot) -> Vec<TurnCommand> {
    let turn = |c: &CommandBody| match c {
        CommandBody::Turn(t) => Some(t.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(turn).collect()
}

#[test]
fn looks_well_in_the_rail_and_alone() {
    let mut r = Robot::new(118, 25);
    crew(&mut r);
    insta::assert_snapshot!("agents_at_118x25", r.screen());
    r.run("size 80x24; alt-3");
    insta::assert_snapshot!("agents_at_80x24", r.screen());
}

#[test]
fn blocked_ones_come_first_and_children_below_their_parent() {
    let mut r = Robot::new(80, 24);
    crew(&mut r);
    let (_, what) = Agents::lines(&r.app.model, 80);
    let agent = |id: &str| What::Agent(AgentId(id.into()));
    let want =
        [agent("main"), What::Tool("c1".into()), agent("main/a2"), agent("main/a1"), agent("main/a1/b1")];
    assert_eq!(what, want);
    // Parents that go round in a circle hang nothing up.
    r.app.model.agents[0].parent = Some(AgentId("main/a1".into()));
    let _ = Agents::lines(&r.app.model, 80);
}

#[test]
fn stop_stops_what_is_chosen_and_twice_kills() {
    let mut r = Robot::new(80, 24);
    crew(&mut r);
    r.run("alt-3; down").clear().run("k");
    assert_eq!(sent(&r), [TurnCommand::StopTool { id: "c1".into() }]);
    r.clear().run("up; k; k");
    let stop = |hard| TurnCommand::Interrupt { hard };
    assert_eq!(sent(&r), [stop(false), stop(true)]);
    r.clear().run("wait 3000; k");
    assert_eq!(sent(&r), [stop(false)]);
    r.clear().run("K; enter");
    assert!(sent(&r).is_empty(), "the focus is on no");
    r.run("K; y");
    assert_eq!(sent(&r), [stop(true)]);
}

#[test]
fn enter_looks_inside() {
    let mut r = Robot::new(80, 24);
    crew(&mut r);
    r.run("alt-3; down; enter");
    assert_eq!(r.app.screen.focus, View::Conversation);
    r.run("alt-3; m");
    assert!(r.screen().contains("model"), "{}", r.screen());
}
