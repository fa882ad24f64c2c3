//! Wire formats, lines of the person's own, a disk that goes away, and how long things take.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::{StateEvent, ToolEvent, TurnStatus};
use tiller_protocol::{CommandBody, EventBody, ModelRef};
use tiller_testkit::{Reply, Script, ScriptServer, Wire};

use crate::rig::*;
use crate::scripted_model::lock;

/// Without cache marks, which may move.
fn bare(v: &Value) -> Value {
    match v {
        Value::Object(m) => {
            m.iter().filter(|(k, _)| *k != "cache_control").map(|(k, v)| (k.clone(), bare(v))).collect()
        }
        Value::Array(a) => a.iter().map(bare).collect(),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_extends_the_one_before_it_in_every_wire_format() {
    for (wire, kind, list) in [
        (Wire::Anthropic, "anthropic", "messages"),
        (Wire::OpenaiChat, "openai-chat", "messages"),
        (Wire::OpenaiResponses, "openai-responses", "input"),
        (Wire::Gemini, "gemini", "contents"),
    ] {
        let place = Place::new();
        place.file("a.txt", "hello\n");
        let server = ScriptServer::start([
            Reply::script(
                wire,
                &Script::new().thinking("hm", "c2ln").text("I look.").call(
                    "c1",
                    "read_file",
                    read_args("a.txt"),
                ),
            ),
            Reply::script(wire, &Script::new().text("It says hello.")),
            Reply::script(
                wire,
                &Script::new().call("c2", "no_such_tool", json!({})).call_raw("c3", "read_file", "{}"),
            ),
            Reply::script(wire, &Script::new().text("Done.")),
        ]);
        let mut rig = place
            .start_with(&Fake::new([]), |p| {
                let provider = json!({"kind": kind, "base_url": server.url()});
                p.config.providers.insert("wire".into(), serde_json::from_value(provider).unwrap());
                p.providers =
                    tiller_provider::build(&p.config, &|_| None, None, &tiller_provider::Redact::default());
                p.session.model = Some(ModelRef("wire/m".into()));
            })
            .await;
        for text in ["what is in a.txt?", "and now?"] {
            rig.submit(text);
            let (status, _, notice) = rig.finished().await;
            assert_eq!(status, TurnStatus::Done, "{kind}: {notice:?}");
        }
        let bodies: Vec<Value> = server.bodies().iter().map(bare).collect();
        assert_eq!(bodies.len(), 4, "{kind}");
        for (n, pair) in bodies.windows(2).enumerate() {
            let (a, b) = (&pair[0], &pair[1]);
            let (old, new) = (a[list].as_array().unwrap(), b[list].as_array().unwrap());
            assert!(new.len() > old.len(), "{kind} {n}");
            assert_eq!(new[..old.len()], old[..], "{kind} {n}: the messages before are unchanged");
            for (key, value) in a.as_object().unwrap().iter().filter(|(k, _)| *k != list) {
                assert_eq!(b[key].to_string(), value.to_string(), "{kind} {n}: {key}");
            }
        }
        rig.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_persons_own_commands_are_shared_or_kept_private() {
    let place = Place::new();
    let fake = Fake::new([says("I saw it.")]);
    let mut rig = place.start(&fake).await;
    for (line, share) in [("echo shared-$((40+2))", true), ("echo private-$((40+2)); exit 3", false)] {
        rig.send(CommandBody::Turn(TurnCommand::Shell { line: line.into(), share }));
        let (output, shared) = rig
            .until("output", |e| match e {
                EventBody::Tool(ToolEvent::ShellLine { output, shared, .. }) => {
                    Some((output.clone(), *shared))
                }
                _ => None,
            })
            .await;
        assert!(output.contains("-42") && shared == share, "{output}");
    }
    assert_eq!(rig.turn("did you see?").await.0, TurnStatus::Done);
    let r = fake.request(0);
    let all: String = (0..r.messages.len()).map(|i| message_text(&r, i)).collect();
    assert!(all.contains("shared-42") && !all.contains("private-42"), "{all}");
    assert_valid(&r);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_a_store_that_cannot_save_pauses_the_turn_which_goes_on_when_it_can() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    let aside = place.db().with_extension("aside");
    std::fs::rename(place.db(), &aside).unwrap();
    rig.submit("second");
    let saving = |e: &EventBody| match e {
        EventBody::State(StateEvent::Saving { ok, .. }) => Some(*ok),
        _ => None,
    };
    assert!(!rig.until("the banner", saving).await);
    assert_eq!(fake.count(), 1, "nothing goes out that is not on disk");
    std::fs::rename(&aside, place.db()).unwrap();
    assert!(rig.until("saving again", saving).await);
    assert_eq!(rig.finished().await, (TurnStatus::Done, "two".into(), None));
}

/// Turns that are timed.
const TIMED: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_enter_to_request_and_from_call_to_request_is_short() {
    let place = Place::new();
    place.file("a.txt", "hello\n");
    let fake = Fake::with(|n, _| {
        if n % 2 == 0 { calls(&[(&format!("c{n}"), "read_file", read_args("a.txt"))]) } else { says("ok") }
    });
    let mut rig = place.start(&fake).await;
    let (mut enter, mut call) = (Vec::new(), Vec::new());
    for n in 0..TIMED {
        let began = Instant::now();
        rig.turn("go").await;
        let times = lock(&fake.times);
        enter.push(times[2 * n] - began);
        call.push(times[2 * n + 1] - times[2 * n]);
    }
    enter.sort();
    call.sort();
    println!("enter to request p50 {:?}, call to request p50 {:?}", enter[TIMED / 2], call[TIMED / 2]);
    // Unoptimised, beside builds: a bound on the order of magnitude only. The bench has the budgets.
    assert!(enter[TIMED / 2] < Duration::from_millis(200) && call[TIMED / 2] < Duration::from_millis(200));
}

/// What a search had to leave out for the model is there for the person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_can_be_read_whole() {
    let place = Place::new();
    let name = |n: usize| format!("n{n}-{}.txt", "x".repeat(200));
    (0..200).for_each(|n| place.file(&name(n), "x"));
    let fake = Fake::new([calls(&[("c1", "search", json!({"glob": "*.txt"}))]), says("Found.")]);
    let mut rig = place.start(&fake).await;
    rig.submit("find");
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("lines left out"), "the model gets a part: {} bytes", output.len());
    rig.finished().await;
    let reply = rig.query(tiller_protocol::command::Query::ToolOutput { call_id: "c1".into() }).await;
    let tiller_protocol::event::ReplyEvent::ToolOutputReply { text, .. } = reply else { panic!("{reply:?}") };
    assert!((0..200).all(|n| text.contains(&name(n))), "{} bytes", text.len());
}
