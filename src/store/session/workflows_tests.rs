use std::collections::BTreeMap;

use serde_json::json;
use tiller_protocol::AgentId;
use tiller_protocol::workflow::StepState;

use super::{WorkflowRow, WorkflowStep};
use crate::testing::*;
use crate::tree::append::{Append, ReportedEnds};

#[test]
fn a_workflow_is_kept_with_each_step_as_it_stood_last() {
    let (_dir, store) = scratch();
    let root = session(&store, 1);
    let row = |state| WorkflowRow {
        root,
        id: "w1".into(),
        definition: json!({"steps": []}),
        state,
        created: NOW,
        announced: false,
        steps: BTreeMap::new(),
    };
    let step = |state, report| WorkflowStep { state, agent: Some(AgentId("main/a1".into())), report };
    store.workflows().put(row(StepState::Running)).wait().unwrap();
    let put =
        |name: &str, row| store.workflows().put_step(root, "w1".into(), name.into(), row).wait().unwrap();
    put("a", step(StepState::Running, None));
    put("a", step(StepState::Done, Some(json!({"summary": "s"}))));
    put("b", WorkflowStep { state: StepState::Skipped, ..WorkflowStep::default() });
    store.workflows().put(row(StepState::Failed)).wait().unwrap();
    let other = session(&store, 2);
    assert_eq!(store.workflows().list(other).unwrap(), []);
    let all = store.workflows().list(root).unwrap();
    assert_eq!((all.len(), all[0].state), (1, StepState::Failed));
    assert_eq!(all[0].steps["a"], step(StepState::Done, Some(json!({"summary": "s"}))));
    assert_eq!(all[0].steps["b"].state, StepState::Skipped);
    assert_eq!(all[0].steps.len(), 2);
}

#[test]
fn an_end_is_announced_once_and_a_new_end_again() {
    let (_dir, store) = scratch();
    let root = session(&store, 1);
    let put = |state| {
        let (id, definition, steps) = ("w1".into(), json!({}), BTreeMap::new());
        let row = WorkflowRow { root, id, definition, state, created: NOW, announced: false, steps };
        store.workflows().put(row).wait().unwrap();
    };
    let told = || store.workflows().list(root).unwrap()[0].announced;
    put(StepState::Failed);
    assert!(!told());
    let announced = ReportedEnds { root, agents: Vec::new(), workflows: vec!["w1".into()] };
    let append = Append { announced: Some(announced), ..Append::new(root, "main") };
    store.entries().append(append).wait().unwrap();
    assert!(told());
    put(StepState::Failed);
    assert!(told(), "it is the same end");
    put(StepState::Running);
    put(StepState::Done);
    assert!(!told());
}
