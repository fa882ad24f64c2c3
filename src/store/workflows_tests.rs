use std::collections::BTreeMap;

use serde_json::json;
use tiller_protocol::AgentId;
use tiller_protocol::workflow::StepState;

use super::{WorkflowRow, WorkflowStep};
use crate::testing::*;

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
        steps: BTreeMap::new(),
    };
    let step = |state, report| WorkflowStep { state, agent: Some(AgentId("main/a1".into())), report };
    store.put_workflow(row(StepState::Running)).wait().unwrap();
    let put = |name: &str, row| store.put_step(root, "w1".into(), name.into(), row).wait().unwrap();
    put("a", step(StepState::Running, None));
    put("a", step(StepState::Done, Some(json!({"summary": "s"}))));
    put("b", WorkflowStep { state: StepState::Skipped, ..WorkflowStep::default() });
    store.put_workflow(row(StepState::Failed)).wait().unwrap();
    let other = session(&store, 2);
    assert_eq!(store.workflows(other).unwrap(), []);
    let all = store.workflows(root).unwrap();
    assert_eq!((all.len(), all[0].state), (1, StepState::Failed));
    assert_eq!(all[0].steps["a"], step(StepState::Done, Some(json!({"summary": "s"}))));
    assert_eq!(all[0].steps["b"].state, StepState::Skipped);
    assert_eq!(all[0].steps.len(), 2);
}
