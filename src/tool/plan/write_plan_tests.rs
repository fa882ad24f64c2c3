use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::*;
use crate::testing::Bench;

const PLAN: &str = "# Mend it\n\nWhy: *it leaks*.\n\n1. Find the **leak**\n   - not a step\n2. Close it\n";

fn args() -> Value {
    json!({"plan": PLAN})
}

fn asked(b: &Bench) -> (PathBuf, String) {
    match b.ports.asked.lock().unwrap().last() {
        Some(AskBody::Plan { file, plan }) => (file.into(), plan.clone()),
        other => panic!("{other:?}"),
    }
}

fn contents(b: &Bench) -> Vec<String> {
    b.ports.todos.lock().unwrap().0.iter().map(|t| t.content.clone()).collect()
}

#[tokio::test]
async fn an_approved_plan_becomes_the_todo_list() {
    let b = Bench::new();
    b.ports.reply(AskReply::Yes { value: None });
    let said = b.say(&WritePlan, args()).await;
    assert!(said.contains("approved the plan. Its 2 steps"), "{said}");
    assert!(!said.contains("edited"), "{said}");
    assert_eq!(contents(&b), ["Find the leak", "Close it"]);
    let (file, plan) = asked(&b);
    assert_eq!(plan, PLAN);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), PLAN);
    let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

#[tokio::test]
async fn what_the_person_changed_in_the_file_holds_also_when_it_is_asked_again() {
    let b = Bench::new();
    let first = b.say(&WritePlan, args()).await;
    assert!(first.contains("nobody is there to answer, so the plan is not approved"), "{first}");
    let (file, _) = asked(&b);
    assert!(first.contains(&file.display().to_string()), "{first}");
    std::fs::write(&file, "- [x] Found already\n- [ ] Close it\n- [ ] Test it\n- a remark\n").unwrap();
    // After a restart the same call runs once more.
    b.ports.reply(AskReply::Yes { value: None });
    let said = b.say(&WritePlan, args()).await;
    assert!(asked(&b).1.contains("Test it"), "the person sees what they wrote");
    assert!(said.contains("also edited the plan") && said.contains("- [ ] Test it"), "{said}");
    assert_eq!(contents(&b), ["Found already", "Close it", "Test it"]);
    assert_eq!(b.ports.todos.lock().unwrap().0[0].status, TodoStatus::Completed);
}

#[tokio::test]
async fn every_other_answer_leaves_the_list_alone() {
    let b = Bench::new();
    b.ports.reply(AskReply::Choice { answers: vec!["without the second".into()] });
    let said = b.say(&WritePlan, args()).await;
    assert!(said.contains("wants this changed: without the second"), "{said}");
    b.ports.reply(AskReply::Never);
    let err = b.call(&WritePlan, args()).await.unwrap_err();
    assert!(matches!(err, ToolError::Declined(t) if t.contains("discarded the plan")));
    b.ports.reply(AskReply::Declined);
    let err = b.call(&WritePlan, args()).await.unwrap_err();
    assert!(matches!(err, ToolError::Declined(t) if t.contains("did not approve")));
    assert_eq!(contents(&b), [] as [String; 0]);
}

#[tokio::test]
async fn a_plan_that_is_empty_or_too_long_is_refused() {
    let b = Bench::new();
    for plan in ["", " \n\t", &"x".repeat(MOST + 1)] {
        let err = b.call(&WritePlan, json!({"plan": plan})).await.unwrap_err();
        assert!(matches!(err, ToolError::Tell(_)), "{err:?}");
    }
    assert!(b.ports.asked.lock().unwrap().is_empty());
    // A file in place of the folder: said, and nothing is asked.
    std::fs::write(b.cx.folders.plans.parent().unwrap(), "").unwrap();
    let err = b.call(&WritePlan, args()).await.unwrap_err();
    assert!(matches!(err, ToolError::Tell(t) if t.contains("cannot be used")));
}

#[test]
fn steps_are_boxes_else_numbers_else_bullets() {
    let of = |plan: &str| steps(plan).into_iter().map(|t| t.content).collect::<Vec<_>>();
    assert_eq!(of("- a\n- b\n1) one\n2) two\n"), ["one", "two"]);
    assert_eq!(of("* a\n+ b\n  - inner\n```\n- code\n```\n"), ["a", "b"]);
    assert_eq!(of("no list\n-not one\n3.x\n- \n"), [] as [String; 0]);
    assert_eq!(of(&"- x\n".repeat(999)).len(), ITEMS);
    assert_eq!(of(&format!("- {}", "é".repeat(999)))[0].chars().count(), STEP);
}
