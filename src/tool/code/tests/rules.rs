//! One approval for a whole script.

use serde_json::json;
use tiller_protocol::{ToolOutcome, lock};

use super::{bench, output};
use crate::code::{CallConsent, ExecuteCode};
use crate::testing::{Bench, text_of};

async fn go(b: &Bench, args: serde_json::Value) -> (ToolOutcome, String) {
    let out = b.call(&ExecuteCode, args).await.unwrap();
    (out.outcome, text_of(&out.content))
}

#[tokio::test]
async fn writes_are_recorded_shown_together_and_made_in_a_second_run() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    b.file("in.txt", "v1\n");
    let code = "from tiller_tools import read_file, write_file, terminal\nfor n in range(3):\n    write_file(f'o{n}.txt', read_file('in.txt'))\n\
                print(terminal('echo x > t.txt').exit_code)\n";
    go(&b, json!({"code": code})).await;
    let approval = std::sync::Arc::clone(&b.cx.run.script);
    assert!(approval.waits());
    assert!(!b.root.join("o0.txt").exists() && !b.root.join("t.txt").exists(), "nothing is done yet");
    let shown: Vec<(String, bool)> =
        approval.waiting().into_iter().map(|(ask, allowed)| (ask.shown, allowed)).collect();
    let of = |name: &str| (name.to_owned(), false);
    assert_eq!(shown, [of("o0.txt"), of("o1.txt"), of("o2.txt"), ("echo x > t.txt".into(), true)]);
    approval.approve();
    let (outcome, text) = go(&b, json!({"code": code})).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "0"), "{text}");
    assert_eq!(std::fs::read_to_string(b.root.join("o2.txt")).unwrap(), "v1\n");
    assert!(b.root.join("t.txt").exists());
    assert!(!approval.waits());
}

#[tokio::test]
async fn what_was_done_before_the_first_question_is_not_done_again() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    let code = "from tiller_tools import terminal, write_file\nprint(terminal('echo once >> log.txt; cat log.txt').strip())\nwrite_file('o.txt', 'x')\n";
    go(&b, json!({"code": code})).await;
    b.cx.run.script.approve();
    let (outcome, text) = go(&b, json!({"code": code})).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "once"), "{text}");
    assert_eq!(std::fs::read_to_string(b.root.join("log.txt")).unwrap(), "once\n");
}

#[tokio::test]
async fn a_real_run_that_differs_stops_at_the_first_call_that_was_not_shown() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    b.file("in.txt", "1\n");
    let code = "from tiller_tools import read_file, write_file\nwrite_file('a.txt', 'x')\n\
                write_file('b.txt' if read_file('in.txt').strip() == '1' else 'c.txt', 'x')\nwrite_file('d.txt', 'x')\n";
    go(&b, json!({"code": code})).await;
    b.cx.run.script.approve();
    b.file("in.txt", "2\n");
    let (outcome, text) = go(&b, json!({"code": code})).await;
    assert_eq!(outcome, ToolOutcome::Denied, "{text}");
    assert!(text.contains("stopped at `write c.txt`"), "{text}");
    let there = ["a.txt", "b.txt", "c.txt", "d.txt"].map(|name| b.root.join(name).exists());
    assert_eq!(there, [true, false, false, false]);
    assert!(
        !lock(&b.ports.calls).iter().any(|c| c.args["path"] == "c.txt" && c.consent != CallConsent::Reads)
    );
}

#[tokio::test]
async fn a_script_that_fails_by_itself_is_not_asked_about() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file", "terminal"];
    let (_, text) =
        go(&b, json!({"code": "from tiller_tools import write_file\nwrite_file('a.txt', 'x')\n1 / 0\n"}))
            .await;
    assert!(text.contains("the user was not asked") && text.contains("ZeroDivisionError"), "{text}");
    assert!(!b.cx.run.script.waits());
    // What the command says is not known before it runs: the question comes all the same.
    go(
        &b,
        json!({"code": "import json\nfrom tiller_tools import terminal\njson.loads(terminal('echo [1]'))\n"}),
    )
    .await;
    assert!(b.cx.run.script.waits());
}

/// The run that collects the calls leaves no trace in the variables of a session.
#[tokio::test]
async fn in_a_session_the_collecting_run_changes_no_variable() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    let session = |code: &str| json!({"code": code, "session": "s"});
    go(&b, session("n = 1\n")).await;
    let code = "from tiller_tools import write_file\nn += 1\nwrite_file(f'{n}.txt', 'x')\nprint(n)\n";
    go(&b, session(code)).await;
    b.cx.run.script.approve();
    let (outcome, text) = go(&b, session(code)).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "2"), "{text}");
    assert!(b.root.join("2.txt").exists());
    let (_, text) = go(&b, session("print(n)\n")).await;
    assert_eq!(output(&text).trim(), "2", "{text}");
}
