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
        child: None,
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

fn process(r: &mut Robot, rows: &[&str]) {
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Processes)));
    assert!(id.is_some(), "the processes were not asked for");
    let rows = rows.iter().map(|row| (*row).to_owned()).collect();
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::ProcessesReply { rows })));
}

fn terminal_done(r: &mut Robot) {
    let mut s = crate::model::conversation::script::Script::new();
    for e in s.tool("t1", "terminal", "shell", "npm run dev &", "started", None) {
        r.msg(crate::msg::Msg::Engine(Box::new(e)));
    }
}

const ROWS: [&str; 2] =
    ["p1: running for 12 s: npm run dev\n  ready on :3000", "p2: ended, exit 1: cargo run"];

#[test]
fn background_processes_have_rows_and_end_by_key() {
    let mut r = Robot::new(80, 24);
    r.event(EventBody::State(StateEvent::AgentChanged { view: agent("main", None, AgentState::Idle) }));
    r.run("alt-3");
    terminal_done(&mut r);
    process(&mut r, &ROWS);
    let screen = r.screen();
    assert!(screen.contains("p1  npm run dev: ready on :3000") && screen.contains("runs 12s"), "{screen}");
    assert!(!screen.contains("cargo run"), "what has ended is no row: {screen}");
    // They are looked at while they live, and not otherwise.
    r.run("wait 2000");
    assert!(r.commands().is_empty());
    r.run("wait 1000");
    process(&mut r, &["p1: running for 15 s: npm run dev"]);
    assert!(r.screen().contains("runs 15s"), "{}", r.screen());
    r.clear().run("G k");
    assert_eq!(sent(&r), [TurnCommand::StopTool { id: "p1".into() }]);
    r.reply(ReplyEvent::DoneReply { said: "p1: ended, exit 143".into() });
    assert!(r.screen().contains("p1: ended, exit 143"), "{}", r.screen());
    process(&mut r, &["p1: ended, exit 143: npm run dev"]);
    assert!(!r.screen().contains("npm run dev"), "{}", r.screen());
    r.run("wait 9000");
    assert!(r.commands().is_empty(), "nothing lives");
}

#[test]
fn quitting_asks_while_a_process_runs_in_the_background() {
    let mut r = Robot::new(80, 24);
    r.app.model.ready = true;
    terminal_done(&mut r);
    process(&mut r, &ROWS);
    r.clear().run("ctrl-d");
    assert!(r.screen().contains("quit?") && r.screen().contains("npm run dev"), "{}", r.screen());
    assert!(r.commands().is_empty());
    r.run("y");
    assert_eq!(r.commands().len(), 1);
    let mut r = Robot::new(80, 24);
    r.app.model.ready = true;
    terminal_done(&mut r);
    process(&mut r, &ROWS[1..]);
    r.clear().run("ctrl-d");
    assert_eq!(r.commands().len(), 1, "nothing runs: {}", r.screen());
}
