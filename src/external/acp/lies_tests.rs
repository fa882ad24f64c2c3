//! An agent that sends false, endless or no messages, or crashes: one ending, within time and memory limits.

use tiller_tool::shell::Host;

use serde_json::json;

use super::client::PENDING;
use super::tests::{END, HELLO, OPEN, fake, log, text};
use super::*;
use crate::fake::{Fake, all};
use crate::start;

async fn played(script: &[&str]) -> (Fake, Vec<AgentEvent>, Ending) {
    let fake = fake("", &script.concat());
    let (_control, said) = start(fake.job("go"), &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    (fake, said, ending)
}

fn words(said: &[AgentEvent]) -> String {
    said.iter().filter_map(|s| if let AgentEvent::Text(t) = s { Some(t.as_str()) } else { None }).collect()
}

#[tokio::test]
async fn answers_that_nobody_asked_for_or_that_come_twice_are_none() {
    // The answer to the prompt before the prompt was sent; answers with unknown ids; the first answer once more.
    let early = r#"say '{"id":3,"result":{"stopReason":"refusal"}}'; say '{"id":4,"result":{"stopReason":"end_turn"}}'
say '{"id":99,"result":{}}'; say '{"id":-1,"result":{}}'; say '{"id":"3","result":{}}'; say '{"id":1.5,"result":{}}'
"#;
    let twice = r#"say '{"id":1,"result":{"protocolVersion":7}}'; say '{"id":2,"result":{"sessionId":"other"}}'
"#;
    let end = r#"say '{"id":3,"result":{"stopReason":"end_turn"}}'; say '{"id":3,"result":{"stopReason":"refusal"}}'
say '{"id":3,"error":{"code":1,"message":"no"}}'; hear"#;
    let (_, said, ending) = played(&[HELLO, early, OPEN, twice, "hear\n", &text("real"), end]).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "real"), "{ending:?}");
    assert_eq!(words(&said), "real");
}

#[tokio::test]
async fn what_it_claims_for_other_sessions_is_not_taken() {
    let other = text("of another").replace("\"s1\"", "\"s2\"");
    let asks = r#"say '{"id":"p","method":"session/request_permission","params":{"sessionId":"s2","toolCall":{"toolCallId":"t","title":"rm x"},"options":[{"optionId":"y","kind":"allow_once"}]}}'; hear
say '{"id":"f","method":"fs/read_text_file","params":{"sessionId":"s2","path":"/etc/passwd"}}'; hear
"#;
    let (fake, said, ending) = played(&[HELLO, OPEN, "hear\n", &other, asks, &text("mine"), END]).await;
    assert_eq!((ending.status, words(&said).as_str()), (Status::Done, "mine"), "{ending:?}");
    // It approves everything here, but only for its own session.
    let log = log(&fake);
    assert_eq!(log.matches("unknown session").count(), 2, "{log}");
    assert!(!log.contains("optionId") && !said.iter().any(|s| matches!(s, AgentEvent::Tool(_))), "{said:?}");
}

#[tokio::test]
async fn a_line_without_end_is_dropped_and_the_talk_goes_on() {
    let long = "head -c 3000000 /dev/zero | tr '\\0' x; echo\n";
    let fake = fake("", &[HELLO, OPEN, "hear\n", long, &text("after"), END].concat());
    let mut job = fake.job("go");
    job.limits.line = 1 << 20;
    let (_control, said) = start(job, &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "after"), "{ending:?}");
    assert!(said.iter().any(|s| matches!(s, AgentEvent::Note(n) if n.contains("too long"))));
    // A line without end ends the run.
    let fake = super::tests::fake("", &[HELLO, OPEN, "hear; exec cat /dev/zero"].concat());
    let mut job = fake.job("go");
    (job.limits.line, job.limits.output) = (1 << 20, 8 << 20);
    assert!(fake.ending(job).await.why.contains("more than 8 MB"));
}

#[tokio::test]
async fn messages_of_any_shape_do_not_stop_it() {
    let mut deep = "[".repeat(200_000);
    deep.push_str(&"]".repeat(200_000));
    let odd = [
        "null",
        "[]",
        "7",
        "\"x\"",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"id\":3}",
        "{\"id\":{},\"result\":1}",
        "{\"method\":7}",
        "{\"method\":\"session/update\"}",
        "{\"method\":\"session/update\",\"params\":[1]}",
        "{\"method\":\"session/update\",\"params\":{\"sessionId\":9,\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":[]}}}",
        "{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"tool_call\",\"toolCallId\":5}}}",
        "{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"plan\",\"entries\":{}}}}",
        "{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"usage_update\",\"used\":-5,\"cost\":{\"amount\":-1e308,\"currency\":\"USD\"}}}}",
        "{\"id\":[],\"method\":\"fs/write_text_file\",\"params\":\"x\"}",
        "{\"id\":\"e\",\"method\":\"session/request_permission\",\"params\":null}",
        "{\"id\":\"e\",\"method\":\"session/request_permission\",\"params\":{\"options\":\"all\"}}",
        "\u{feff}{\"id\":3,\"result\":{\"stopReason\":\"refusal\"}}",
    ];
    let mut script = vec![HELLO.to_owned(), OPEN.to_owned(), "hear\n".to_owned()];
    script.extend(odd.iter().map(|o| format!("say '{o}'\n")));
    script.push("cat deep; echo; printf '\\377\\376\\000\\033]52;c;x\\007\\n'\n".to_owned());
    // Three equal requests get three answers; then the end.
    script.extend([text("alive"), END.to_owned()]);
    let fake = fake("", &script.concat());
    std::fs::write(fake.tmp.path().join("deep"), deep).unwrap();
    let (_control, said) = start(fake.job("go"), &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    // `{"id":3}` is an empty answer: the turn ends with it, without a panic.
    assert_eq!(ending.status, Status::Done, "{ending:?} {said:?}");
}

/// More questions than the limit are refused; those before them wait for the person.
#[tokio::test]
async fn a_flood_of_questions_reaches_nobody() {
    let flood = r#"i=0; while [ $i -lt 500 ]; do i=$((i+1))
say '{"id":"p'$i'","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t'$i'","title":"x"},"options":[{"optionId":"y","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}]}}'
done; i=0; while [ $i -lt 436 ]; do i=$((i+1)); hear; done
"#;
    let fake = fake("", &[HELLO, OPEN, "hear\n", flood, END].concat());
    let mut job = fake.job("go");
    job.auto_approve = false;
    let (_control, mut said) = start(job, &Host::default()).unwrap();
    let mut asked = Vec::new();
    let ending = loop {
        match timeout(Duration::from_secs(60), said.recv()).await.unwrap().unwrap() {
            AgentEvent::Ask(ask) => asked.push(ask),
            AgentEvent::Ended(e) => break e,
            _ => {}
        }
    };
    assert_eq!((asked.len(), ending.status), (PENDING, Status::Done), "{ending:?}");
    assert!(log(&fake).contains("requests are already waiting for answers"));
}

#[tokio::test]
async fn more_calls_than_can_be_are_forgotten() {
    let mut updates = Updates::default();
    let mut out = Vec::new();
    for n in 0..30_000 {
        updates.take(
            &json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{n}"), "title": "x"}),
            &mut out,
        );
    }
    // Each is shown, and the memory for them is bounded: calls that never end are dropped.
    assert_eq!(out.len(), 30_000);
    assert!(updates.known() <= 10_000, "{}", updates.known());
    // The last ones are known, and end once.
    out.clear();
    let end = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t29999", "status": "completed"});
    updates.take(&end, &mut out);
    updates.take(&end, &mut out);
    assert_eq!(out.len(), 1, "one end each: {out:?}");
}

#[tokio::test]
async fn silence_and_death_at_every_step_are_one_ending() {
    let steps = [HELLO, OPEN, "hear\n", &text("half")];
    for (end, status) in [
        ("kill -9 $$", Status::Crashed),
        ("exec 1>&-; exec sleep 3000", Status::Crashed),
        ("exit 0", Status::Crashed),
        ("exec sleep 3000", Status::TimedOut),
    ] {
        for n in 0..=steps.len() {
            let script = format!("{}\n{end}", steps[..n].concat());
            let fake = fake("", &script);
            let mut job = fake.job("go");
            job.limits.grace = Duration::from_millis(50);
            // Short only where the silence must end it.
            if status == Status::TimedOut {
                job.limits.idle = Duration::from_millis(1_500);
            }
            let ending = fake.ending(job).await;
            assert_eq!(ending.status, status, "{end} after {n}: {ending:?}");
            assert!(!ending.why.is_empty());
        }
    }
}
