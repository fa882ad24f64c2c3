//! Requests in each wire format.

use serde_json::{Value, json};
use tiller_protocol::event::TurnStatus;
use tiller_testkit::{Reply, Script, ScriptServer, Wire};

use crate::rig::*;

/// The request without cache marks, which may move.
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
            .start_with(&Fake::new([]), |p| by_wire(p, json!({"kind": kind, "base_url": server.url()})))
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
