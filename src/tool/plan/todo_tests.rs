use serde_json::json;
use tiller_protocol::{TodoItem, TodoStatus};

use super::*;
use crate::plan::TodoRead;
use crate::plan::todo::{CHARS, ITEMS};
use crate::testing::Bench;

fn list(b: &Bench) -> Vec<TodoItem> {
    b.ports.todos.lock().unwrap().0.clone()
}

#[tokio::test]
async fn replaces_merges_and_reads() {
    let b = Bench::new();
    let said = b
        .say(&TodoWrite, json!({"todos": [{"content": "look"}, {"id": "x", "content": "fix\nit", "status": "in_progress"}]}))
        .await;
    assert_eq!(said, "1 [pending] look\nx [in_progress] fix it\n");
    let said = b
        .say(
            &TodoWrite,
            json!({"merge": true, "todos": [{"id": "1", "status": "completed"}, {"content": "test"}]}),
        )
        .await;
    assert_eq!(said, "1 [completed] look\nx [in_progress] fix it\n2 [pending] test\n");
    b.ports.todos.lock().unwrap().1 = 7;
    let said = b.say(&TodoRead, json!({})).await;
    assert!(said.ends_with("1 done, 2 left; 7 tool calls since the last update\n"), "{said}");
    b.say(&TodoWrite, json!({"todos": []})).await;
    assert!(list(&b).is_empty());
}

#[tokio::test]
async fn keeps_the_list_when_a_call_is_wrong() {
    let b = Bench::new();
    b.say(&TodoWrite, json!({"todos": [{"content": "stay", "status": "in_progress"}]})).await;
    let many: Vec<_> = (0..=ITEMS).map(|n| json!({ "content": n.to_string() })).collect();
    for (args, why) in [
        (json!({ "todos": many }), "at most 256"),
        (json!({"todos": [{"content": "x".repeat(CHARS + 1)}]}), "4000 characters"),
        (json!({"todos": [{"id": "a", "content": "1"}, {"id": "a", "content": "2"}]}), "two items"),
        (json!({"todos": [{"id": "nope", "status": "completed"}], "merge": true}), "no item 'nope'"),
        (json!({"todos": [{"content": "  "}]}), "has no content"),
        (json!({"todos": [{"content": "a", "status": "doing"}]}), "invalid arguments"),
    ] {
        let said = b.say(&TodoWrite, args).await;
        assert!(said.contains(why), "{said}");
        assert_eq!(
            list(&b),
            [TodoItem {
                id: "1".into(),
                content: "stay".into(),
                status: TodoStatus::InProgress,
                agent: None
            }]
        );
    }
}

#[tokio::test]
async fn advises_on_progress_and_cleans() {
    let b = Bench::new();
    let two =
        json!([{"content": "a", "status": "in_progress"}, {"content": "b\x1b[2J", "status": "in_progress"}]);
    let said = b.say(&TodoWrite, json!({ "todos": two })).await;
    assert!(said.contains("more than one item") && said.contains("b␛[2J"), "{said}");
    let said = b.say(&TodoWrite, json!({"todos": [{"content": "a"}]})).await;
    assert!(said.contains("no item is in_progress"), "{said}");
}
