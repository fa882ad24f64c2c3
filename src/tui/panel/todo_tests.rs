//! The todo panel, driven by the robot.

use tiller_protocol::EventBody;
use tiller_protocol::event::StateEvent;

use super::*;
use crate::testing::Robot;

pub(crate) fn plan(r: &mut Robot, n: usize) {
    use TodoStatus::{Cancelled, Completed, InProgress, Pending};
    let states = [Completed, Completed, Completed, InProgress, Pending, Pending, Pending, Cancelled];
    let names = [
        "read client",
        "parse both header forms",
        "cap the wait",
        "tests",
        "docs",
        "changelog",
        "flag",
        "gone",
    ];
    let todos = (0..n)
        .map(|i| TodoItem {
            id: i.to_string(),
            content: names[i % 8].into(),
            status: states[i % 8],
            agent: None,
        })
        .collect();
    r.event(EventBody::State(StateEvent::TodoChanged { todos, by_person: false }));
}

fn sent(r: &Robot) -> Vec<TodoCommand> {
    r.commands()
        .into_iter()
        .filter_map(|c| match c {
            CommandBody::Todo(t) => Some(t.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn looks_well_in_the_rail_and_alone() {
    let mut r = Robot::new(118, 25);
    plan(&mut r, 8);
    insta::assert_snapshot!("todo_at_118x25", r.screen());
    r.run("size 80x24; alt-2");
    insta::assert_snapshot!("todo_at_80x24", r.screen());
}

#[test]
fn too_much_for_the_rail_is_folded_until_it_has_the_focus() {
    let mut r = Robot::new(118, 25);
    crate::scene::play(&mut r);
    plan(&mut r, 32);
    assert!(r.screen().contains("12 done, 4 cancelled"), "{}", r.screen());
    assert!(r.screen().contains("more to do"), "{}", r.screen());
    r.run("alt-2");
    assert!(r.screen().contains("✓ read client"), "{}", r.screen());
}

/// A list without anything left to do stays to the end of its turn, and comes back with the next change.
#[test]
fn a_finished_list_leaves_with_its_turn() {
    let mut r = Robot::new(118, 25);
    crate::scene::play(&mut r);
    let listed = |r: &Robot| r.screen().contains("Todo ");
    plan(&mut r, 3);
    assert!(listed(&r), "{}", r.screen());
    let finished = TurnEvent::TurnFinished {
        status: tiller_protocol::event::TurnStatus::Done,
        text: String::new(),
        usage: tiller_protocol::Usage::default(),
        cost_usd: None,
        error: None,
    };
    r.event(EventBody::Turn(finished));
    assert!(!listed(&r), "{}", r.screen());
    r.run("alt-2");
    assert!(r.screen().contains("cap the wait"), "its key still shows it\n{}", r.screen());
    r.run("esc");
    plan(&mut r, 4);
    assert!(listed(&r), "{}", r.screen());
}

#[test]
fn every_key_changes_the_plan() {
    let mut r = Robot::new(80, 24);
    plan(&mut r, 8);
    r.run("alt-2").clear();
    let status = |id: &str, status| TodoCommand::Status { id: id.into(), status };
    let words = |content: &str| content.to_owned();
    for (keys, want) in [
        ("space", status("0", TodoStatus::Pending)),
        ("down; down; down; space", status("3", TodoStatus::Completed)),
        ("down; s", status("4", TodoStatus::InProgress)),
        ("c", status("4", TodoStatus::Cancelled)),
        ("J", TodoCommand::Move { id: words("4"), to: 5 }),
        ("K", TodoCommand::Move { id: words("5"), to: 4 }),
        ("a; type new thing; enter", TodoCommand::Add { content: words("new thing") }),
        ("e; ctrl-u; type other; enter", TodoCommand::Edit { id: words("4"), content: words("other") }),
    ] {
        r.clear().run(keys);
        assert_eq!(sent(&r), [want], "{keys}\n{}", r.screen());
    }
    r.clear().run("a; type lost; esc; esc");
    assert!(sent(&r).is_empty());
    assert_eq!(r.app.screen.focus, View::Composer);
}

#[test]
fn an_item_names_its_agent_and_the_row_jumps_there_and_back() {
    use tiller_protocol::{AgentId, AgentState, AgentView};
    let mut r = Robot::new(118, 25);
    let row = |id: &str, label: &str| AgentView {
        id: AgentId(id.into()),
        parent: AgentId(id.into()).parent(),
        label: label.into(),
        state: AgentState::Running,
        ..AgentView::default()
    };
    for view in [row("main", "main"), row("main/a1", "docs"), row("main/a2", "tests")] {
        r.event(EventBody::State(StateEvent::AgentChanged { view }));
    }
    let item = |id: &str, agent: Option<&str>| TodoItem {
        id: id.into(),
        content: format!("item {id}"),
        status: TodoStatus::InProgress,
        agent: agent.map(|a| AgentId(a.into())),
    };
    let todos = vec![item("one", None), item("two", Some("main/a1")), item("three", Some("main/a2"))];
    r.event(EventBody::State(StateEvent::TodoChanged { todos, by_person: false }));
    assert!(r.screen().contains("item three  @a2 tests"), "{}", r.screen());
    r.run("alt-2; j; j; @");
    assert_eq!(r.app.screen.focus, crate::panel::View::Agents);
    // The chosen row is a2's: what is done there is done to it.
    r.clear().run("p");
    let id = AgentId("main/a2".into());
    assert_eq!(
        r.commands(),
        [&tiller_protocol::CommandBody::Agent(tiller_protocol::AgentCommand::Pause { id })]
    );
    r.run("k; up; up; j; t");
    assert_eq!(r.app.screen.focus, crate::panel::View::Todo);
    r.run("g; @");
    assert!(r.screen().contains("No other agent works on this item"), "{}", r.screen());
    // An agent that was given the item by its number counts as well; the last such agent is shown.
    let given = |id: &str, parent: &str, label: &str| {
        let child = tiller_protocol::ChildView { todo: Some("one".into()), ..Default::default() };
        let parent = Some(AgentId(parent.into()));
        AgentView { child: Some(Box::new(child)), parent, ..row(id, label) }
    };
    for view in [
        given("main/a3", "main", "first"),
        given("main/a4", "main", "next"),
        given("main/a4/a1", "main/a4", "x"),
    ] {
        r.event(EventBody::State(StateEvent::AgentChanged { view }));
    }
    r.run("alt-2; g; @");
    assert_eq!(r.app.screen.focus, crate::panel::View::Agents);
    r.run("alt-2");
    assert!(r.screen().contains("item one  @a4 next"), "{}", r.screen());
}

#[test]
fn an_item_that_was_begun_comes_back_with_up() {
    let recalled = |keys: &str| {
        let mut r = Robot::new(118, 25);
        plan(&mut r, 3);
        r.run("alt-2").run(keys).run("esc; up");
        r.reply(tiller_protocol::event::ReplyEvent::HistoryReply { prompts: Vec::new() });
        r
    };
    let r = recalled("a; type mind the gap; esc");
    assert!(r.words().contains("mind the gap"), "{}", r.screen());
    // An unchanged message is not kept.
    let r = recalled("e; esc");
    assert!(r.screen().contains("What should I do?"), "{}", r.screen());
}
