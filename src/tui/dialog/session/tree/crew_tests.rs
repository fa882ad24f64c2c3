//! Sessions of agents in the browser: what their rows tell, and where their keys lead.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tree::{SessionTree, TreeLine, TreeQuery, TreeReply, TreeSpawned};
use tiller_protocol::{
    AgentId, AgentState, AgentView, ChildView, CommandBody, Cost, EntryId, ModelRef, SessionSummary, Time,
};

use super::*;
use crate::testing::{Robot, START};

fn id(n: u32) -> SessionId {
    format!("{n:032x}").parse().unwrap()
}

/// The second entry started two agents; entries of sessions have numbers of their own.
fn tree(session: SessionId) -> SessionTree {
    let mut tree = forest::made("uau", &[None, Some(0), Some(1)], 2);
    tree.session = session;
    tree.title.clear();
    let from = if session == id(1) { 0 } else { 50 };
    for (n, node) in tree.nodes.iter_mut().enumerate() {
        node.id = format!("{:032x}", 1000 + from + n).parse().unwrap();
    }
    if session == id(1) {
        let spawned = |n: u32, agent: &str, state, title: &str| TreeSpawned {
            session: id(n),
            node: 1,
            title: title.into(),
            agent: Some(AgentId(agent.into())),
            state: Some(state),
            time: Some(START),
            entries: 3,
            tokens: 12_345,
            cost: Some(Cost(250_000)),
            files: 2,
        };
        tree.spawned = vec![
            spawned(21, "main/a1", AgentState::Failed, "write the tests"),
            spawned(22, "main/a2", AgentState::Done, "look around"),
        ];
    }
    tree
}

/// The browser with everything answered; `a2` is at work again.
fn opened(w: u16, h: u16) -> Robot {
    let mut r = Robot::new(w, h);
    let summary = SessionSummary {
        id: id(1),
        title: "retry work".into(),
        project: "/home/ann/api".into(),
        created: START,
        used: Time(START.0),
        entries: 3,
        model: ModelRef("vendor/model-x".into()),
        cost: None,
        archived: false,
        exec: false,
        open_in: None,
        interrupted: None,
        preview: String::new(),
        git_branch: String::new(),
    };
    r.app.model.agent.session.summary = Some(summary.clone());
    let child = ChildView { session: Some(id(22)), ..ChildView::default() };
    r.app.model.crew.agents.push(AgentView {
        id: AgentId("main/a2".into()),
        parent: Some(AgentId::main()),
        state: AgentState::Waiting,
        child: Some(Box::new(child)),
        ..AgentView::default()
    });
    r.run("ctrl-x T");
    listed(&mut r, summary);
    r
}

fn listed(r: &mut Robot, summary: SessionSummary) {
    let list = r.asked(|c| matches!(c, CommandBody::Query(Query::Sessions { .. })));
    r.cause(list, EventBody::Reply(Box::new(ReplyEvent::SessionsReply { sessions: vec![summary] })));
    serve(r);
}

fn serve(r: &mut Robot) {
    for _ in 0..20 {
        let asked: Vec<_> = r
            .sent()
            .into_iter()
            .filter_map(|(id, c)| match c {
                CommandBody::Query(Query::Tree { query }) => Some((id, query)),
                _ => None,
            })
            .collect();
        if asked.is_empty() {
            return;
        }
        r.clear();
        for (cause, query) in asked {
            let line = |e: &EntryId| TreeLine {
                entry: *e,
                text: format!("words {}", e.to_string().trim_start_matches(['0', '-'])),
                origin: None,
                call: None,
            };
            let reply = match query {
                TreeQuery::Nodes { session } => {
                    TreeReply::Nodes { tree: std::sync::Arc::new(tree(session.unwrap())) }
                }
                TreeQuery::Lines { entries } => {
                    TreeReply::Lines { lines: entries.iter().map(line).collect() }
                }
                TreeQuery::Marks { session } => TreeReply::Marks { session, marks: Default::default() },
                TreeQuery::Find { .. } | TreeQuery::Preview { .. } => continue,
            };
            r.cause(Some(cause), EventBody::Reply(Box::new(ReplyEvent::TreeReply { reply })));
        }
    }
    panic!("it asks again and again");
}

#[test]
fn a_row_tells_who_how_it_stands_and_what_it_took() {
    let r = opened(80, 24);
    let screen = r.screen();
    let row = |words: &str| screen.lines().find(|l| l.contains(words)).unwrap_or_default().to_owned();
    let ended = row("write the tests");
    for part in ["✗ a1 write the tests", "failed", "$0.25", " 2"] {
        assert!(ended.contains(part), "{part}: {screen}");
    }
    let wide = opened(160, 40).screen();
    assert!(wide.lines().any(|l| l.contains("write the tests") && l.contains("12k")), "{wide}");
    // The states of agents are those of now.
    assert!(row("look around").contains("▲ a2 look around  needs you"), "{screen}");
    assert_eq!(screen.matches(" now").count(), 1, "only where the person is: {screen}");
}

#[test]
fn the_preview_of_an_agent_says_its_task_its_state_and_its_figures() {
    let mut r = opened(160, 40);
    r.run("k; k");
    let screen = r.screen();
    for part in [
        "a1  ✗ failed",
        "Task      write the tests",
        "Tokens         12k",
        "Cost         $0.25",
        "Files            2",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(!screen.contains("No file changed"), "nothing of the message is left: {screen}");
    r.run("j");
    assert!(r.screen().contains("a2  ▲ needs you"), "it is known as it stands now: {}", r.screen());
    r.run("g");
    assert!(r.screen().contains("Folder    /home/ann/api"), "a session: {}", r.screen());
}

#[test]
fn enter_shows_an_agent_of_the_open_session_and_unfolds_another() {
    let mut r = opened(80, 24);
    r.run("k; k");
    assert!(r.footer().contains("Right unfold"), "{}", r.footer());
    r.run("enter");
    serve(&mut r);
    assert!(r.screen().contains("words 41a"), "{}", r.screen());
    let mut r = opened(80, 24);
    r.run("k");
    assert!(r.footer().contains("Enter open"), "{}", r.footer());
    r.run("enter");
    assert_eq!(r.app.model.shown_agent(), AgentId("main/a2".into()));
    let opens = |c: &&CommandBody| matches!(c, CommandBody::Session(SessionCommand::Open { .. }));
    assert_eq!(r.commands().into_iter().find(opens), None, "its session is open already");
}

#[test]
fn an_entry_of_an_agent_is_shown_in_its_conversation() {
    let mut r = opened(80, 24);
    let summary = r.app.model.agent.session.summary.clone().unwrap();
    r.run("k; right");
    serve(&mut r);
    r.run("j; enter");
    assert_eq!(r.app.model.shown_agent(), AgentId("main/a2".into()));
    let snapshot = |c: &&CommandBody| matches!(c, CommandBody::Query(Query::Snapshot));
    assert!(r.commands().into_iter().any(|c| snapshot(&c)));
    // The small tree is the agent's as well.
    r.run("alt-5; wait 0");
    let nodes = |c: &&CommandBody| {
        matches!(c, CommandBody::Query(Query::Tree { query: TreeQuery::Nodes { session: Some(_) } }))
    };
    assert!(r.commands().into_iter().any(|c| nodes(&c)), "{:?}", r.commands());
    // From there, the browser shows both: the agent's place, and what it hangs off.
    r.run("ctrl-x T");
    listed(&mut r, summary);
    let here = r.screen();
    let now = here.lines().find(|l| l.contains(" now")).unwrap_or_default();
    assert!(now.contains("words 41c"), "{here}");
    assert!(here.contains("write the tests"), "{here}");
    r.run("g");
    assert!(r.footer().contains("Enter back to main"), "{}", r.footer());
    r.run("enter");
    assert!(r.app.model.shown_agent().is_main());
}

/// A hit of a search may be on another branch.
#[test]
fn what_is_not_on_the_path_is_shown_in_the_tree() {
    let mut r = opened(80, 24);
    let entry: EntryId = format!("{:032x}", 1001).parse().unwrap();
    r.run("esc");
    r.push(Box::new(at(&r.app.model, entry)));
    let summary = r.app.model.agent.session.summary.clone().unwrap();
    listed(&mut r, summary);
    let y = usize::from(r.cursor().unwrap().y);
    let screen = r.screen();
    assert!(screen.lines().nth(y).unwrap().contains("words 3e9"), "its turn is unfolded: {screen}");
}
