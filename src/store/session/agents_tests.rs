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
    store.agents().put(row("main/a1", AgentState::Running)).wait().unwrap();
    store.agents().put(row("main/a2", AgentState::Queued)).wait().unwrap();
    let done = AgentRow { report: Some(json!({"summary": "s"})), ..row("main/a1", AgentState::Done) };
    store.agents().put(done.clone()).wait().unwrap();
    let all = store.agents().list(root).unwrap();
    assert_eq!(all, [done.clone(), row("main/a2", AgentState::Queued)]);
    let agents = vec![AgentId("main/a1".into())];
    let told = crate::tree::append::ReportedEnds { root, agents, workflows: Vec::new() };
    let append = Append { announced: Some(told), ..Append::new(root, "main") };
    store.entries().append(append).wait().unwrap();
    assert!(store.agents().list(root).unwrap()[0].announced);
    // Later writes do not cause its end to be reported again, unless it works again.
    store.agents().put(done).wait().unwrap();
    assert!(store.agents().list(root).unwrap()[0].announced);
    store.agents().put(row("main/a1", AgentState::Running)).wait().unwrap();
    assert!(!store.agents().list(root).unwrap()[0].announced);
}

/// Agents that the person starts before the first message.
#[test]
fn a_session_of_agents_alone_is_listed_and_theirs_are_not() {
    let (_dir, store) = scratch();
    let (root, own) = (session(&store, 1), session(&store, 2));
    let listed =
        || store.sessions().list(&crate::Filter::default()).unwrap().iter().map(|s| s.id).collect::<Vec<_>>();
    let mut append = Append::new(own, "main").entries(vec![user(own, entry_id(1), None, "look around")]);
    append.prompt = Some("look around".into());
    let row = AgentRow {
        root,
        id: AgentId("main/a1".into()),
        session: own,
        brief: json!({}),
        state: AgentState::Running,
        report: None,
        announced: false,
        created: NOW,
    };
    store.agents().put(row).wait().unwrap();
    store.sessions().mark_used(root, "look around".into()).wait().unwrap();
    store.entries().append(append).wait().unwrap();
    assert_eq!(listed(), [root]);
    assert_eq!(store.trash().unused().unwrap(), []);
    assert_eq!(store.tree().load(root).unwrap().spawned, [], "there is no entry that it could hang off");
    store
        .entries()
        .append(Append::new(root, "main").entries(vec![user(root, entry_id(9), None, "x")]))
        .wait()
        .unwrap();
    let tree = store.tree().load(root).unwrap();
    assert_eq!(tree.spawned.iter().map(|s| (s.session, s.node)).collect::<Vec<_>>(), [(own, 0)]);
    assert_eq!(tree.spawned[0].agent, Some(AgentId("main/a1".into())));
    assert_eq!(store.agents().sessions_below(root).unwrap(), [own]);
}

#[test]
fn a_session_with_only_an_agent_is_listed_and_the_agents_own_is_not() {
    let (_dir, store) = scratch();
    let (root, own) = (session(&store, 1), session(&store, 2));
    let listed = || -> Vec<_> {
        let all = store.sessions().list(&crate::Filter::default()).unwrap();
        all.into_iter().map(|s| (s.id, s.preview)).collect()
    };
    assert_eq!(listed(), []);
    store.sessions().mark_used(root, "look\n for it".into()).wait().unwrap();
    let row = AgentRow {
        root,
        id: AgentId("main/a1".into()),
        session: own,
        brief: json!({}),
        state: AgentState::Done,
        report: None,
        announced: true,
        created: NOW,
    };
    store.agents().put(row).wait().unwrap();
    store.sessions().mark_used(own, "its task".into()).wait().unwrap();
    assert_eq!(listed(), [(root, "look for it".to_owned())]);
    // The first message stays the preview.
    store.sessions().mark_used(root, "another".into()).wait().unwrap();
    assert_eq!(listed()[0].1, "look for it");
}
