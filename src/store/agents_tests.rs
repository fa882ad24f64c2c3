use serde_json::json;
use tiller_protocol::{AgentId, AgentState};

use super::AgentRow;
use crate::Append;
use crate::testing::*;

#[test]
fn agents_are_kept_as_they_stood_last_and_announced_once() {
    let (_dir, store) = scratch();
    let root = session(&store, 1);
    let row = |name: &str, state| AgentRow {
        root,
        id: AgentId(name.into()),
        session: session_id(9),
        brief: json!({"goal": "g"}),
        state,
        report: None,
        announced: false,
        created: NOW,
    };
    store.put_agent(row("main/a1", AgentState::Running)).wait().unwrap();
    store.put_agent(row("main/a2", AgentState::Queued)).wait().unwrap();
    let done = AgentRow { report: Some(json!({"summary": "s"})), ..row("main/a1", AgentState::Done) };
    store.put_agent(done.clone()).wait().unwrap();
    let all = store.agents(root).unwrap();
    assert_eq!(all, [done.clone(), row("main/a2", AgentState::Queued)]);
    let agents = vec![AgentId("main/a1".into())];
    let told = crate::append::Announced { root, agents, workflows: Vec::new() };
    let append = Append { announced: Some(told), ..Append::new(root, "main") };
    store.append(append).wait().unwrap();
    assert!(store.agents(root).unwrap()[0].announced);
    // What is written of it later does not make it be told again, until it works again.
    store.put_agent(done).wait().unwrap();
    assert!(store.agents(root).unwrap()[0].announced);
    store.put_agent(row("main/a1", AgentState::Running)).wait().unwrap();
    assert!(!store.agents(root).unwrap()[0].announced);
}
