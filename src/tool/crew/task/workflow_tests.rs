use serde_json::{Value, json};

use super::{NameCheck, Workflow};
use crate::crew::{CrewReply, CrewRequest, DelegateTask, Report, ReportStatus};
use crate::testing::Bench;

fn wrong(steps: Value) -> Vec<(Option<usize>, String)> {
    let flow: Workflow = serde_json::from_value(json!({"name": "n", "steps": steps})).unwrap();
    let known = NameCheck {
        role: &|name| (name != "coder").then(|| format!("there is no agent `{name}`")),
        skill: &|name| (name != "deploy").then(|| format!("there is no skill `{name}`")),
        cli: &|name| (name != "claude").then(|| format!("{name} is not installed")),
        model: &|name| (!name.starts_with("ours/")).then(|| format!("there is no model `{name}`")),
        tool: &|name| (name != "read").then(|| format!("there is no tool `{name}`")),
        terminal: &|name| (name != "local").then(|| format!("there is no terminal `{name}`")),
    };
    let wrong = flow.check(&known).err().unwrap_or_default();
    wrong.into_iter().map(|w| (w.step, w.message)).collect()
}

#[test]
fn each_mistake_names_its_step() {
    let step = |id: &str, needs: Value| json!({"id": id, "goal": "g", "needs": needs});
    for (steps, at, why) in [
        (json!([]), None, "it has no steps"),
        (json!([{"goal": "g"}]), Some(0), "step 1 has no id"),
        (json!([{"id": "a b", "goal": "g"}]), Some(0), "an id can contain letters"),
        (json!([step("a", json!([])), {"id": "b", "goal": " "}]), Some(1), "step b has no goal"),
        (
            json!([step("a", json!([])), step("a", json!([]))]),
            Some(1),
            "two steps have the id a: numbers 1 and 2",
        ),
        (
            json!([step("a", json!([])), step("b", json!(["c"]))]),
            Some(1),
            "depends on c, which does not exist",
        ),
        (json!([step("a", json!(["b"])), step("b", json!(["a"]))]), Some(0), "a -> b -> a"),
        (json!([{"id": "a", "goal": "g", "terminal": "box"}]), Some(0), "step a: there is no terminal `box`"),
        (json!([{"id": "a", "goal": "g", "agent": "codr"}]), Some(0), "step a: there is no agent `codr`"),
        (json!([{"id": "a", "goal": "g", "cli": "codex"}]), Some(0), "step a: codex is not installed"),
        (
            json!([{"id": "a", "goal": "g", "skills": ["deploi"]}]),
            Some(0),
            "step a: there is no skill `deploi`",
        ),
        (json!([{"id": "a", "goal": "g", "review": {"by": "x"}}]), Some(0), "no agent `x`"),
        (json!([{"id": "a", "goal": "g", "review": {"rounds": 0}}]), Some(0), "review.rounds is 0"),
        (json!([{"id": "a", "goal": "g", "retries": 6}]), Some(0), "at most 5 retries"),
    ] {
        let said = wrong(steps);
        assert_eq!(said.len(), 1, "{why}: {said:?}");
        assert!(said[0].0 == at && said[0].1.contains(why), "{why}: {said:?}");
    }
    let circle = json!([
        {"id": "a", "goal": "g", "agent": "codr", "needs": ["b"]},
        {"id": "b", "goal": " ", "needs": ["a"]},
    ]);
    let said = wrong(circle);
    assert!(said.len() == 3 && said.iter().any(|w| w.1.contains("a -> b -> a")), "not hidden: {said:?}");
    let two = json!([
        {"id": "a", "goal": "g", "agent": "codr"},
        {"id": "b", "goal": "g", "cli": "aider", "agent": "coder", "needs": ["a"]},
        {"id": "c", "goal": "g", "cli": "claude", "review": {"by": "coder", "rounds": 3}},
    ]);
    assert_eq!(wrong(two).len(), 2, "all unknown names are told");
}

#[test]
fn everything_is_found_at_once() {
    let steps = json!([
        {"id": "a", "goal": " ", "needs": ["z"], "tools": ["reed"], "model": "fats", "retries": 9},
        {"id": "b b", "goal": "g", "schema": {"type": "strnig"}, "agent": "codr"},
        {"id": "c", "goal": "g", "model": "ours/m", "tools": ["read"], "schema": {"type": "object"}},
        {"id": "d", "goal": "g", "cli": "claude", "model": "of-claude", "review": {"by": "coder", "model": "x"}},
    ]);
    let said = wrong(steps);
    for (at, why) in [
        (0, "no goal"),
        (0, "depends on z"),
        (0, "no tool `reed`"),
        (0, "no model `fats`"),
        (0, "at most 5 retries"),
        (1, "can contain letters"),
        (1, "the schema is not a valid schema: type cannot be \"strnig\""),
        (1, "no agent `codr`"),
        (3, "no model `x`"),
    ] {
        assert!(said.iter().any(|(step, said)| *step == Some(at) && said.contains(why)), "{why}: {said:?}");
    }
    assert_eq!(said.len(), 9, "{said:?}");
}

#[test]
fn every_cycle_is_named_by_its_steps_beside_other_faults() {
    let step = |id: &str, needs: Value| json!({"id": id, "goal": "g", "needs": needs});
    let steps = json!([
        step("a", json!(["b", "gone"])),
        step("b", json!(["c"])),
        step("c", json!(["a"])),
        step("self", json!(["self"])),
        step("free", json!([])),
        step("free", json!(["x", "y"])),
        step("x", json!(["y"])),
        step("y", json!(["x"])),
    ]);
    let said = wrong(steps);
    for (at, why) in [
        (0, "depends on gone"),
        (0, "a -> b -> c -> a"),
        (3, "self -> self"),
        (5, "two steps have the id free"),
        (6, "x -> y -> x"),
    ] {
        assert!(said.iter().any(|(step, said)| *step == Some(at) && said.contains(why)), "{why}: {said:?}");
    }
    assert_eq!(said.len(), 5, "{said:?}");
}

#[test]
fn cycles_that_share_a_step_are_all_named() {
    let step = |id: &str, needs: Value| json!({"id": id, "goal": "g", "needs": needs});
    let said =
        wrong(json!([step("a", json!(["b", "c"])), step("b", json!(["a"])), step("c", json!(["a"])),]));
    for way in ["a -> b -> a", "a -> c -> a"] {
        assert!(said.iter().any(|(_, said)| said.contains(way)), "{way}: {said:?}");
    }
    assert_eq!(said.len(), 2, "{said:?}");
    // A file with thousands of them names some.
    let all: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    let said = wrong(json!(all.iter().map(|id| step(id, json!(all))).collect::<Vec<_>>()));
    assert_eq!(said.len(), super::super::MOST, "{said:?}");
}

#[test]
fn a_schema_that_is_none_is_refused() {
    for (schema, why) in [
        (json!("object"), "not a JSON object"),
        (json!({}), "is empty"),
        (json!({"type": "strnig"}), "type cannot be"),
        (json!({"type": ["string", 3]}), "type cannot be"),
        (json!({"type": []}), "type cannot be"),
        (json!({"required": "name"}), "required cannot be"),
        (json!({"properties": ["name"]}), "properties cannot be"),
        (json!({"properties": {"name": "string"}}), "of name is not a JSON object"),
        (json!({"type": "array", "items": {"type": "x"}}), "of the items is not a valid schema: type"),
        (json!({"enum": []}), "enum cannot be"),
        (json!({"minLength": -1}), "minLength cannot be"),
        (json!({"maximum": "9"}), "maximum cannot be"),
        (json!({"additionalProperties": {"type": "string"}}), "additionalProperties cannot be"),
        (json!({"oneOf": []}), "oneOf, which cannot be checked"),
    ] {
        let said = wrong(json!([{"id": "a", "goal": "g", "schema": schema}]));
        assert!(said.len() == 1 && said[0].1.contains(why), "{why}: {said:?}");
    }
    let good = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": ["integer", "null"], "minimum": 0}}});
    assert!(wrong(json!([{"id": "a", "goal": "g", "schema": good}])).is_empty());
}

#[tokio::test]
async fn a_call_with_a_workflow_is_checked_and_handed_to_the_engine() {
    let b = Bench::new();
    let play = |ask: CrewRequest| {
        let CrewRequest::Workflow(flow) = ask else { panic!("{ask:?}") };
        let report = |s: &crate::crew::Task| Report {
            status: ReportStatus::DONE,
            summary: s.id.clone().unwrap(),
            ..Report::default()
        };
        Ok(CrewReply::Reports(flow.steps.iter().map(report).collect()))
    };
    b.ports.crew.lock().unwrap().play = Some(Box::new(play));
    let steps = json!([{"id": "one", "goal": "g"}, {"id": "two", "goal": "g", "needs": ["one"]}]);
    let said = b.say(&DelegateTask, json!({"tasks": [], "workflow": steps})).await;
    assert!(said.contains("\"summary\":\"one\"") && said.contains("\"summary\":\"two\""), "{said}");
    for (args, why) in [
        (json!({"workflow": [{"id": "a", "goal": "g", "needs": ["b"]}]}), "which does not exist"),
        (json!({"workflow": [{"goal": "g"}]}), "has no id"),
        (json!({"workflow": [{"id": "a", "goal": "g"}], "tasks": [{"goal": "g"}]}), "not both"),
    ] {
        let said = b.say(&DelegateTask, args).await;
        assert!(said.starts_with("error:") && said.contains(why), "{why}: {said}");
    }
}
