use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tiller_tool::shell::Host;

use super::client::PENDING;
use super::*;
use crate::event::{Answer, ChoiceKind, Question};
use crate::fake::{Fake, TIMEOUT, all};
use crate::{FileError, Files, Job, Receipt, Resume, start};

/// An agent that reads requests in order and prints these lines; request ids count from 1. `log` gets all that it read.
pub(super) const HELLO: &str = r#"say() { printf '%s\n' "$1"; }
hear() { IFS= read -r line; printf '%s\n' "$line" >>log; }
hear; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":[{"id":"x-api-key"}]}}'
"#;
pub(super) const OPEN: &str = r#"hear; say 'chatter'; say '{"method":"_vendor/hello","params":{}}'; say '{"id":2,"result":{"sessionId":"s1"}}'
"#;
pub(super) const END: &str =
    r#"say '{"id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":4}}}'; hear"#;

pub(super) fn fake(more: &str, script: &str) -> Fake {
    // Its environment makes it ask, unless the test says more.
    let env =
        if more.contains("[env") || more.contains("ask_mode") { "" } else { "[env.careful]\nASK = \"1\"\n" };
    Fake::new(&format!("[acp]\ncommand = \"PROGRAM\"\n{more}\n{env}"), script)
}

pub(super) fn update(fields: &str) -> String {
    format!(
        "say '{{\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s1\",\"update\":{{{fields}}}}}}}'\n"
    )
}

pub(super) fn text(words: &str) -> String {
    update(&format!(
        "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{words}\"}}"
    ))
}

pub(super) fn log(fake: &Fake) -> String {
    std::fs::read_to_string(fake.tmp.path().join("log")).unwrap_or_default()
}

#[tokio::test]
async fn a_turn_with_text_tools_plan_and_usage() {
    let script = [
        HELLO,
        OPEN,
        "hear\n",
        &text("I look."),
        &update(r#""sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}"#),
        &update(r#""sessionUpdate":"tool_call","toolCallId":"t1","title":"Write a","kind":"edit","status":"pending","rawInput":{"file_path":"/a"}"#),
        &update(r#""sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"diff","path":"/a","oldText":null,"newText":"x"}]"#),
        &update(r#""sessionUpdate":"plan","entries":[{"content":"one","status":"in_progress"}]"#),
        &update(r#""sessionUpdate":"usage_update","used":5,"size":100,"cost":{"amount":0.5,"currency":"USD"}"#),
        &update(r#""sessionUpdate":"usage_update","used":6,"size":100,"cost":{"amount":0.75,"currency":"USD"}"#),
        &update(r#""sessionUpdate":"something_new","x":1"#),
        &text("Do"),
        &text("ne."),
        END,
    ]
    .concat();
    let fake = fake("", &script);
    let (_control, said) = start(fake.job("do it"), &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "Done."), "{ending:?}");
    let done = said.iter().find_map(|s| match s {
        AgentEvent::ToolDone { id, ok, diffs, .. } => Some((id.clone(), *ok, diffs.clone())),
        _ => None,
    });
    let (id, ok, diffs) = done.unwrap();
    assert_eq!((id.as_str(), ok, diffs[0].new.as_deref()), ("t1", true, Some("x")));
    let costs: u64 = said
        .iter()
        .filter_map(|s| if let AgentEvent::Usage { cost, .. } = s { cost.map(|c| c.0) } else { None })
        .sum();
    assert_eq!(costs, 750_000);
    assert!(
        said.iter()
            .any(|s| matches!(s, AgentEvent::Usage { usage, .. } if usage.input == 9 && usage.output == 4))
    );
    assert!(said.iter().any(|s| matches!(s, AgentEvent::Plan(p) if p[0].content == "one")));
    assert!(said.iter().any(|s| matches!(s, AgentEvent::Session { id: Some(id), .. } if id == "s1")));
    assert!(log(&fake).contains(r#""text":"do it""#), "{}", log(&fake));
}

#[tokio::test]
async fn permission_may_come_before_its_call_and_is_answered_by_kind() {
    let ask = r#"say '{"id":"p-1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t9","title":"rm x","kind":"execute","rawInput":{"command":"rm x"}},"options":[{"optionId":"z1","name":"Always","kind":"allow_always"},{"optionId":"z2","name":"Yes","kind":"allow_once"},{"optionId":"z3","name":"No","kind":"reject_once"}]}}'; hear
"#;
    // Later only an update mentions the call.
    let after = update(
        r#""sessionUpdate":"tool_call_update","toolCallId":"t9","status":"completed","rawOutput":"gone""#,
    );
    let script = [HELLO, OPEN, "hear\n", ask, &after, END].concat();
    for (answer, expected) in [
        (Some(Answer::Kind(ChoiceKind::AllowOnce)), r#""optionId":"z2""#),
        (Some(Answer::Kind(ChoiceKind::RejectAlways)), r#""optionId":"z3""#),
        (Some(Answer::Cancel), r#""outcome":"cancelled""#),
        (None, r#""optionId":"z3""#),
    ] {
        let fake = fake("", &script);
        let mut job = fake.job("go");
        job.auto_approve = false;
        let (_control, mut said) = start(job, &Host::default()).unwrap();
        let mut tools = Vec::new();
        let ending = loop {
            match timeout(TIMEOUT, said.recv()).await.unwrap().unwrap() {
                AgentEvent::Tool(t) => tools.push(t),
                AgentEvent::Ask(ask) => {
                    let Question::Permission { tool, shown, .. } = &ask.what else { panic!("{ask:?}") };
                    assert_eq!((tool.verb.word(), shown.as_str()), ("shell", "rm x"));
                    if let Some(answer) = answer.clone() {
                        ask.reply.send(answer).unwrap();
                    }
                }
                AgentEvent::Ended(e) => break e,
                _ => {}
            }
        };
        assert_eq!(ending.status, Status::Done, "{ending:?}");
        assert_eq!(tools.len(), 1, "the call is told once: {tools:?}");
        assert!(log(&fake).contains(expected), "{}", log(&fake));
    }
    // Where everything is allowed the rules still answer: deny rules and the danger list apply.
    let fake = fake("", &script);
    let (_control, said) = start(fake.job("go"), &Host::default()).unwrap();
    let mut said = said;
    let asked = loop {
        match timeout(Duration::from_secs(60), said.recv()).await.unwrap().unwrap() {
            AgentEvent::Ask(ask) => break ask,
            AgentEvent::Ended(e) => panic!("it was not asked: {e:?}"),
            _ => {}
        }
    };
    drop(asked);
    assert_eq!(all(said).await.1.status, Status::Done);
    assert!(log(&fake).contains(r#""optionId":"z3""#), "no answer: {}", log(&fake));
}

#[tokio::test]
async fn an_agent_that_asks_without_end_is_refused() {
    let ask = r#"n=0; while [ $n -lt 70 ]; do n=$((n+1)); say '{"id":"p-'$n'","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t'$n'","title":"rm x"},"options":[]}}'; done
n=0; while [ $n -lt 6 ]; do n=$((n+1)); hear; done
"#;
    let script = [HELLO, OPEN, "hear\n", ask, END].concat();
    let fake = fake("", &script);
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
    assert_eq!(ending.status, Status::Done, "{ending:?}");
    assert_eq!(asked.len(), PENDING);
    assert_eq!(
        log(&fake).matches("requests are already waiting for answers").count(),
        70 - PENDING,
        "{}",
        log(&fake)
    );
}

#[test]
fn a_call_that_says_that_it_is_nothing_known_is_not_guessed_at() {
    let mut updates = Updates::default();
    let mut out = Vec::new();
    let told = json!({"toolCallId": "1", "title": "Read the room", "kind": "other",
        "rawInput": {"description": "x"}, "locations": [{"path": "/w/a"}]});
    let call = updates.call(&told, &mut out).unwrap();
    assert_eq!((call.tool.verb.word(), call.tool.paths.as_slice()), ("tool", &["/w/a".to_owned()][..]));
}

#[derive(Default)]
struct Folder(Mutex<HashMap<String, String>>);

#[async_trait]
impl Files for Folder {
    async fn read(&self, path: &Path) -> Result<String, FileError> {
        self.0.lock().unwrap().get(path.to_str().unwrap()).cloned().ok_or(FileError::Missing)
    }
    async fn write(&self, path: &Path, text: &str) -> Result<(), FileError> {
        if path.ends_with("secret") {
            return Err(FileError::Refused("a rule".into()));
        }
        self.0.lock().unwrap().insert(path.display().to_string(), text.into());
        Ok(())
    }
}

#[tokio::test]
async fn files_go_through_the_engine_and_stay_in_the_folder() {
    let cwd = tempfile::tempdir().unwrap();
    let at = cwd.path().display().to_string();
    let ask = |id: u32, method: &str, fields: &str| {
        format!(
            "say '{{\"id\":{id},\"method\":\"fs/{method}\",\"params\":{{\"sessionId\":\"s1\",{fields}}}}}'; hear\n"
        )
    };
    let script = [
        HELLO,
        OPEN,
        "hear\n",
        &ask(20, "write_text_file", &format!(r#""path":"{at}/a.txt","content":"1\n2\n3\n""#)),
        &ask(21, "read_text_file", &format!(r#""path":"{at}/x/../a.txt","line":2,"limit":1"#)),
        &ask(22, "read_text_file", &format!(r#""path":"{at}/none""#)),
        &ask(23, "read_text_file", &format!(r#""path":"{at}/../etc/passwd""#)),
        &ask(24, "write_text_file", &format!(r#""path":"{at}/secret","content":"x""#)),
        &ask(25, "read_text_file", r#""path":"a.txt""#),
        &ask(26, "rename", r#""path":"a.txt""#),
        END,
    ]
    .concat();
    for (missing, told) in [("error", "there is no file"), ("empty", r#""result":{"content":""}"#)] {
        let fake = fake(&format!("missing_file = \"{missing}\"\n"), &script);
        let folder = Arc::new(Folder::default());
        // The script runs in its own folder, so the log is there.
        let script_log = cwd.path().join("log");
        let _ = std::fs::remove_file(&script_log);
        let job = Job { cwd: cwd.path().into(), files: Some(folder.clone()), ..fake.job("go") };
        let (_control, said) = start(job, &Host::default()).unwrap();
        let (_, ending) = all(said).await;
        assert_eq!(ending.status, Status::Done, "{ending:?}");
        let log = std::fs::read_to_string(&script_log).unwrap();
        let answer = |id: u32| {
            let mark = format!(r#"{{"id":{id},"#);
            log.lines().find(|l| l.starts_with(&mark)).unwrap_or_default().to_owned()
        };
        assert!(log.contains(r#""readTextFile":true"#));
        assert!(answer(21).contains(r#""content":"2\n""#), "{log}");
        assert!(answer(22).contains(told), "{log}");
        assert!(answer(23).contains("is outside "), "{log}");
        assert!(answer(24).contains("not allowed: a rule"), "{log}");
        assert!(answer(25).contains("absolute"), "{log}");
        assert!(answer(26).contains("-32601"), "{log}");
        assert_eq!(folder.0.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn opening_fails_with_what_the_agent_said() {
    for (script, word) in [
        (
            r#"hear; say '{"id":2,"error":{"code":-32603,"message":"Internal error","data":{"details":"no such model"}}}'; hear"#,
            "Internal error: no such model",
        ),
        (
            r#"hear; say '{"id":2,"error":{"code":-32000,"message":"Authentication required"}}'; hear"#,
            "log in",
        ),
        ("hear; exit 3", "ended with exit code 3"),
        ("hear; echo Not logged in >&2; exit 1", "log in"),
        ("hear; kill -KILL $$", "signal 9"),
        (r#"hear; say '{"id":2,"result":{}}'; hear"#, "without an id"),
    ] {
        let fake = fake("", &[HELLO, script].concat());
        let ending = fake.ending(fake.job("x")).await;
        assert!(matches!(ending.status, Status::Failed | Status::Crashed), "{ending:?}");
        assert!(ending.why.contains(word), "{word}: {ending:?}");
    }
    let fake = fake("", r#"read l; echo '{"id":1,"result":{"protocolVersion":7}}'; read l"#);
    assert!(fake.ending(fake.job("x")).await.why.contains("version 7"));
}

#[tokio::test]
async fn a_key_in_its_environment_logs_it_in() {
    let script = [
        HELLO,
        r#"hear; say '{"id":2,"error":{"code":-32000,"message":"Authentication required"}}'
hear; say '{"id":3,"result":{}}'
hear; say '{"id":4,"result":{"sessionId":"s1"}}'
hear; say '{"id":5,"result":{"stopReason":"end_turn"}}'; hear"#,
    ]
    .concat();
    let fake = fake("[env]\nkeys = [\"FAKE_API_KEY\"]\n", &script);
    let job = Job { lookup: Arc::new(|n| (n == "FAKE_API_KEY").then(|| "k".into())), ..fake.job("x") };
    let ending = fake.ending(job).await;
    assert_eq!(ending.status, Status::Done, "{ending:?}");
    assert!(log(&fake).contains(r#""methodId":"x-api-key""#));
}

#[tokio::test]
async fn model_and_mode_are_set_as_it_offers_them() {
    let config = r#"hear; say '{"id":2,"result":{"sessionId":"s1","configOptions":[{"id":"m","category":"model","currentValue":"a","options":[{"value":"a"},{"value":"big"}]},{"id":"mode","category":"mode","options":[{"value":"yolo"}]}]}}'
"#;
    let lists = r#"hear; say '{"id":2,"result":{"sessionId":"s1","models":{"currentModelId":"a","availableModels":[{"modelId":"big"}]},"modes":{"currentModeId":"d","availableModes":[{"id":"yolo"}]}}}'
"#;
    let rest = r#"hear; say '{"id":3,"result":{}}'
hear; say '{"id":4,"error":{"code":1,"message":"not now"}}'
hear; say '{"id":5,"result":{"stopReason":"end_turn"}}'; hear"#;
    for (open, words) in [
        (config, [r#""configId":"m","value":"big""#, r#""configId":"mode","value":"yolo""#]),
        (lists, [r#""modelId":"big""#, r#""modeId":"yolo""#]),
    ] {
        let fake = fake("auto_mode = [\"full\", \"yolo\"]\n", &[HELLO, open, rest].concat());
        let (_control, said) =
            start(Job { model: Some("big".into()), ..fake.job("x") }, &Host::default()).unwrap();
        let (said, ending) = all(said).await;
        assert_eq!(ending.status, Status::Done, "{ending:?}");
        for word in words {
            assert!(log(&fake).contains(word), "{word} in {}", log(&fake));
        }
        // A refused mode is reported and not fatal.
        assert!(said.iter().any(|s| matches!(s, AgentEvent::Note(n) if n.contains("not now"))));
        let other = Job { model: Some("none".into()), ..fake.job("x") };
        assert!(fake.ending(other).await.why.contains("does not offer the model none"));
    }
    // Less is allowed: another mode.
    let rest = rest.replace(r#""error":{"code":1,"message":"not now"}"#, r#""result":{}"#);
    for (edits, mode) in [(true, "halves"), (false, "careful")] {
        let open = lists.replace(r#"{"id":"yolo"}"#, r#"{"id":"yolo"},{"id":"halves"},{"id":"careful"}"#);
        let modes = "auto_mode = [\"yolo\"]\nedit_mode = [\"halves\"]\nask_mode = [\"careful\"]\n";
        let fake = fake(modes, &[HELLO, &open, &rest].concat());
        let job = Job { model: Some("big".into()), auto_approve: false, edits, ..fake.job("x") };
        assert_eq!(fake.ending(job).await.status, Status::Done);
        assert!(log(&fake).contains(&format!(r#""modeId":"{mode}""#)), "{}", log(&fake));
    }
}

#[tokio::test]
async fn history_is_not_told_again_when_a_session_is_resumed() {
    let script = [
        HELLO,
        "hear\n",
        &text("old words"),
        r#"say '{"id":2,"result":{}}'; hear
"#,
        &text("new words"),
        END,
    ]
    .concat();
    let fake = fake("", &script);
    let (_control, said) =
        start(Job { resume: Resume::session("s1"), ..fake.job("x") }, &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    assert_eq!(ending.text, "new words");
    assert!(!said.iter().any(|s| matches!(s, AgentEvent::Text(t) if t.contains("old"))));
    assert!(log(&fake).contains("session/load"));
}

/// A program that cannot continue a session, or does not have it any more, begins a fresh one with the earlier
/// conversation.
#[tokio::test]
async fn one_that_keeps_no_session_is_told_the_talk_again() {
    let cannot = HELLO.replace(r#""loadSession":true"#, r#""loadSession":false"#);
    let lost = [
        HELLO,
        r#"say '{"id":2,"error":{"code":-32602,"message":"unknown session"}}'; hear
"#,
    ]
    .concat();
    let opened = |id: u32| {
        format!(
            r#"say '{{"id":{id},"result":{{"sessionId":"fresh"}}}}'; hear
say '{{"id":{},"result":{{"stopReason":"end_turn"}}}}'; hear
"#,
            id + 1
        )
    };
    for script in [format!("{cannot}{}", opened(2)), format!("{lost}hear\n{}", opened(3))] {
        // Each `hear` in the script reads one line.
        let script = script.replace("hear\nhear\n", "hear\n");
        let fake = fake("", &script);
        let job = |anew: Option<&str>| Job {
            resume: Resume { fresh_prompt: anew.map(str::to_owned), ..Resume::session("old") },
            ..fake.job("only the last words")
        };
        let (_control, said) = start(job(Some("all of it")), &Host::default()).unwrap();
        let (said, ending) = all(said).await;
        assert_eq!(ending.status, Status::Done, "{ending:?} {}", log(&fake));
        assert!(said.iter().any(|s| matches!(s, AgentEvent::Anew)), "{said:?}");
        assert!(said.iter().any(|s| matches!(s, AgentEvent::Session { id: Some(id), .. } if id == "fresh")));
        let log = log(&fake);
        assert!(log.contains("all of it") && !log.contains("only the last words"), "{log}");
        // Without an earlier conversation it fails.
        let (_control, said) = start(job(None), &Host::default()).unwrap();
        assert_eq!(all(said).await.1.status, Status::Failed);
    }
}

#[tokio::test]
async fn cancelling_is_told_to_it_and_a_deaf_one_is_ended() {
    let heeds = [
        HELLO,
        OPEN,
        "hear\n",
        &text("half"),
        r#"hear; say '{"id":3,"result":{"stopReason":"cancelled"}}'; hear"#,
    ]
    .concat();
    let deaf = [HELLO, OPEN, "hear\n", &text("half"), "trap '' TERM; sleep 3000 & wait; sleep 3000"].concat();
    for (script, told) in [(heeds, true), (deaf, false)] {
        let fake = fake("", &script);
        let mut job = fake.job("x");
        // Short only where it must run out.
        if told {
            job.limits.grace = TIMEOUT;
        }
        let (control, mut said) = start(job, &Host::default()).unwrap();
        let ending = loop {
            match timeout(Duration::from_secs(60), said.recv()).await.unwrap().unwrap() {
                AgentEvent::Text(_) => control.stop(false),
                AgentEvent::Ended(e) => break e,
                _ => {}
            }
        };
        assert_eq!((ending.status, ending.text.as_str()), (Status::Cancelled, "half"));
        assert_eq!(log(&fake).contains("session/cancel"), told);
    }
}

#[tokio::test]
async fn messages_wait_for_the_end_of_the_turn() {
    let script = [
        HELLO,
        OPEN,
        "hear; while [ ! -e go ]; do sleep 0.02; done\n",
        &text("one"),
        r#"say '{"id":3,"result":{"stopReason":"end_turn"}}'; hear
"#,
        &text("two"),
        r#"say '{"id":4,"result":{"stopReason":"end_turn"}}'; hear"#,
    ]
    .concat();
    let fake = fake("", &script);
    let (control, said) = start(fake.job("first"), &Host::default()).unwrap();
    let Receipt::Queued { id } = control.say("and then") else { panic!("queued") };
    std::fs::write(fake.tmp.path().join("go"), "").unwrap();
    let (said, ending) = all(said).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "two"), "{ending:?}");
    assert!(said.iter().any(|s| matches!(s, AgentEvent::Delivered { id: d } if *d == id)));
    assert!(log(&fake).contains("and then"));
}

#[tokio::test]
async fn silence_and_floods_end_but_a_waiting_question_does_not() {
    let fake1 = fake("", &[HELLO, OPEN, "hear; sleep 3000 & wait"].concat());
    let mut job = fake1.job("x");
    job.limits.idle = Duration::from_millis(700);
    let ending = fake1.ending(job).await;
    assert_eq!(ending.status, Status::TimedOut, "{ending:?}");

    let flood = [HELLO, OPEN, "hear; yes '{\"method\":\"_x\"}'"].concat();
    let fake2 = fake("", &flood);
    let mut job = fake2.job("x");
    job.limits.output = 4 << 20;
    assert!(fake2.ending(job).await.why.contains("more than 4 MB"));

    let ask = r#"say '{"id":7,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","kind":"allow_once"}]}}'; hear
"#;
    let fake3 = fake("", &[HELLO, OPEN, "hear\n", ask, END].concat());
    let mut job = fake3.job("x");
    job.auto_approve = false;
    job.limits.idle = Duration::from_secs(6);
    let (_control, mut said) = start(job, &Host::default()).unwrap();
    let ending = loop {
        match timeout(Duration::from_secs(60), said.recv()).await.unwrap().unwrap() {
            AgentEvent::Ask(ask) => {
                tokio::spawn(async move {
                    // Longer than the limit of silence: a question that waits for the person is no silence.
                    tokio::time::sleep(Duration::from_secs(7)).await;
                    let _ = ask.reply.send(Answer::Kind(ChoiceKind::AllowOnce));
                });
            }
            AgentEvent::Ended(e) => break e,
            _ => {}
        }
    };
    assert_eq!(ending.status, Status::Done, "{ending:?}");
}

/// Claude's adapter ends a moment before its child process has saved the session.
#[tokio::test]
async fn what_it_leaves_behind_may_finish_its_writing_but_does_not_stay() {
    let script = [
        HELLO,
        OPEN,
        "hear\n",
        &text("Done."),
        END,
        "\n{ sleep 0.1; echo saved >saved; } >/dev/null 2>&1 &\n{ exec sleep 399; } >/dev/null 2>&1 &\n",
    ]
    .concat();
    let fake = fake("", &script);
    let mut job = fake.job("do it");
    job.limits.grace = Duration::from_secs(80);
    let begun = Instant::now();
    let ending = fake.ending(job).await;
    assert_eq!(ending.status, Status::Done, "{ending:?}");
    assert_eq!(std::fs::read_to_string(fake.tmp.path().join("saved")).unwrap(), "saved\n");
    assert!(begun.elapsed() < Duration::from_secs(60), "it waited for the child that never ends");
}

/// A program that reports the sum of its session, over two processes: the second adds the difference only. A program
/// that counts for each process is counted in full.
#[tokio::test]
async fn the_costs_of_a_session_are_not_counted_again_by_the_next_process() {
    let opened = OPEN.replace(r#"'{"id":2,"result":{"sessionId":"s1"}}'"#, r#"'{"id":2,"result":{}}'"#);
    let cost = |sum: &str| {
        update(&format!(
            "\"sessionUpdate\":\"usage_update\",\"used\":5,\"size\":100,\"cost\":{{\"amount\":{sum},\"currency\":\"USD\"}}"
        ))
    };
    for (booked, sums, added) in [
        (500_000, ["0.5", "0.75"], 250_000),
        (500_000, ["0.75", "0.75"], 250_000),
        (500_000, ["0.25", "0.375"], 375_000),
        (0, ["0.5", "0.75"], 750_000),
    ] {
        let script = [HELLO, &opened, "hear\n", &cost(sums[0]), &cost(sums[1]), END].concat();
        let fake = fake("", &script);
        let job = Job {
            resume: Resume { cost: tiller_protocol::Cost(booked), ..Resume::session("s1") },
            ..fake.job("and then?")
        };
        let (_control, said) = start(job, &Host::default()).unwrap();
        let (said, ending) = all(said).await;
        assert_eq!(ending.status, Status::Done, "{ending:?}");
        let costs =
            said.iter().filter_map(|s| if let AgentEvent::Usage { cost, .. } = s { *cost } else { None });
        assert_eq!(costs.map(|c| c.0).sum::<u64>(), added, "{booked} {sums:?}");
    }
}
