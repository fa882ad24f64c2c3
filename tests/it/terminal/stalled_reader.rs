//! A terminal that does not read for a while: the lost output is replaced.

use std::time::Duration;

use serde_json::json;
use tiller_testkit::{Reply, Script, ScriptServer, Wire};

use crate::common::{Place, calls, poll, says};

const LIMIT: Duration = Duration::from_secs(120);

/// Enough events to overflow the mailbox of a stopped reader, then a question.
#[test]
#[ignore = "half a minute: 12,000 calls overflow the mailbox"]
fn a_whole_mailbox_that_exec_lagged_behind_asks_its_lost_question_after_all() {
    let mut replies = Vec::new();
    for n in 0..24 {
        let mut script = Script::new();
        for k in 0..500 {
            let name = if n < 4 { "list_dir" } else { "no_such_tool" };
            // A repeating model would cause a question.
            let arguments = if n < 4 { json!({"path": "."}) } else { json!({"round": n}) };
            script = script.call(&format!("c{n}_{k}"), name, arguments);
        }
        replies.push(Reply::script(Wire::Anthropic, &script));
    }
    replies.push(calls("w", "write_file", json!({"path": "a.txt", "content": "apples"})));
    replies.push(says("Written."));
    let all = replies.len();
    let server = ScriptServer::start(replies);
    let place = Place::anthropic(&server);
    let mut term = place.term(&["exec", "go"], 118, 25);
    server.wait_for(1, LIMIT);
    let stalled = term.stall();
    server.wait_finished(all - 1, LIMIT);
    assert!(poll(LIMIT, || place.rows("asks").filter(|n| *n > 0)).is_some(), "the question is open");
    drop(stalled);
    term.wait("the question", |s| s.contains("yes, once: y"));
    term.keys("y\r");
    term.wait_text("Written.");
    assert_eq!(term.wait_exit(), 0);
    assert_eq!(place.read("a.txt"), "apples");
}
