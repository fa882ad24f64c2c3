use serde_json::json;
use tiller_protocol::{AskBody, AskReply, ChangeKind, EntryId, RestoreFile, RestorePreview};

use super::*;
use crate::testing::Bench;
use crate::{Tool, ToolError};

fn file(path: &str, conflict: Option<&str>) -> RestoreFile {
    RestoreFile {
        path: path.into(),
        kind: ChangeKind::Modified,
        added: 1,
        removed: 2,
        diff: String::new(),
        conflict: conflict.map(Into::into),
    }
}

fn entry() -> EntryId {
    EntryId::fresh(&tiller_protocol::SeqIds::default(), tiller_protocol::Time(0))
}

fn yes() -> AskReply {
    AskReply::Choice { answers: vec!["restore them".into()] }
}

#[tokio::test]
async fn a_moment_is_named_in_one_plain_line() {
    let b = Bench::new();
    let out = Checkpoint.run(json!({"name": " before\n the  rewrite\u{1b}[31m "}), &b.cx).await.unwrap();
    assert_eq!(crate::testing::text_of(&out.content), "named before the rewrite␛[31m");
    for bad in
        [json!({"name": " "}), json!({"name": "x".repeat(81)}), json!({}), json!({"name": "a", "b": 1})]
    {
        assert!(Checkpoint.access(&bad, &b.cx).is_err(), "{bad}");
        assert!(Restore.access(&bad, &b.cx).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn going_back_asks_first_and_names_what_changes() {
    let b = Bench::new();
    let preview = RestorePreview {
        files: vec![file("a.rs", None), file("mine.rs", Some("changed since by you"))],
        ..RestorePreview::default()
    };
    *b.ports.preview.lock().unwrap() = Some((entry(), preview));
    b.ports.reply(yes());
    let out = Restore.run(json!({"name": "good"}), &b.cx).await.unwrap();
    assert!(
        crate::testing::text_of(&out.content).starts_with("restored\nRead files again"),
        "{}",
        crate::testing::text_of(&out.content)
    );
    let asked = b.ports.asked.lock().unwrap().clone();
    let AskBody::Clarify { question, choices, default, .. } = &asked[0] else { panic!("{asked:?}") };
    assert!(question.contains("1 file to the checkpoint \"good\"") && question.contains("M a.rs  +1 -2"));
    assert!(question.contains("are kept as they are: 1") && !question.contains("mine.rs"), "{question}");
    assert_eq!((choices[0].as_str(), default), ("keep the current files", &None), "no is the first choice");
    // Neither a no nor an absent user changes anything.
    b.ports.reply(AskReply::Choice { answers: vec!["keep the current files".into()] });
    let refused = Restore.run(json!({"name": "good"}), &b.cx).await;
    assert!(matches!(refused, Err(ToolError::Declined(_))), "{refused:?}");
    let unanswered = Restore.run(json!({"name": "good"}), &b.cx).await;
    assert!(matches!(unanswered, Err(ToolError::Unanswered(_))), "{unanswered:?}");
    assert_eq!(*b.ports.restored.lock().unwrap(), 1);
}

#[tokio::test]
async fn nothing_to_bring_back_asks_nobody() {
    let b = Bench::new();
    let none = Restore.run(json!({"name": "nowhere"}), &b.cx).await;
    assert!(matches!(&none, Err(ToolError::Tell(why)) if why.contains("no checkpoint")), "{none:?}");
    let preview = RestorePreview { files: vec![file("mine.rs", Some("yours"))], ..RestorePreview::default() };
    *b.ports.preview.lock().unwrap() = Some((entry(), preview));
    let out = Restore.run(json!({"name": "good"}), &b.cx).await.unwrap();
    assert!(
        crate::testing::text_of(&out.content).contains("mine.rs was kept: yours"),
        "{}",
        crate::testing::text_of(&out.content)
    );
    assert!(b.ports.asked.lock().unwrap().is_empty());
}
