//! X18: a program that must ask is in a mode in which it asks, or gets no prompt.

use serde_json::Value;
use tiller_tool::shell::Host;

use super::tests::{END, HELLO, fake, log, update};
use crate::fake::all;
use crate::{Job, StartError, Status, start};

/// Opens a session with these fields in addition to its id.
fn open(fields: &str) -> String {
    format!("hear; say '{{\"id\":2,\"result\":{{\"sessionId\":\"s1\"{fields}}}}}'\n")
}

const MODES: &str =
    "auto_mode = [\"yolo\"]\nedit_mode = [\"edits\"]\nask_mode = [\"asks\"]\nrest_mode = [\"plan\"]\n";
const YES: &str = "hear; say '{\"id\":3,\"result\":{}}'\n";
const NO: &str = "hear; say '{\"id\":3,\"error\":{\"code\":-32000,\"message\":\"no such mode\"}}'\n";

/// The requests that it received.
fn heard(log: &str) -> Vec<(String, Value)> {
    let all = log.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
    all.filter_map(|v| Some((v["method"].as_str()?.to_owned(), v["params"].clone()))).collect()
}

#[tokio::test]
async fn x18_the_asking_mode_is_sent_though_it_is_not_listed() {
    let end = END.replace("\"id\":3", "\"id\":4");
    for (fields, edits, method, mode) in [
        // As the session of a program whose own settings want full access.
        (
            r#","modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo"}]}"#,
            false,
            "session/set_mode",
            "asks",
        ),
        (
            r#","modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo"}]}"#,
            true,
            "session/set_mode",
            "asks",
        ),
        (
            r#","modes":{"currentModeId":"yolo","availableModes":[{"id":"edits"}]}"#,
            true,
            "session/set_mode",
            "edits",
        ),
        ("", false, "session/set_mode", "asks"),
        (
            r#","configOptions":[{"id":"m","category":"mode","options":[{"value":"yolo"}]}]"#,
            false,
            "session/set_config_option",
            "asks",
        ),
    ] {
        let fake = fake(MODES, &[HELLO, &open(fields), YES, "hear\n", &end].concat());
        let job = Job { auto_approve: false, edits, ..fake.job("work") };
        assert_eq!(fake.ending(job).await.status, Status::Done, "{fields}");
        let heard = heard(&log(&fake));
        let at = heard.iter().position(|(m, _)| m == method).unwrap_or_else(|| panic!("{heard:?}"));
        let field = if method == "session/set_mode" { "modeId" } else { "value" };
        assert_eq!(heard[at].1[field], mode, "{heard:?}");
        let prompted = heard.iter().position(|(m, _)| m == "session/prompt");
        assert!(prompted.is_some_and(|p| p > at), "the mode comes before the prompt: {heard:?}");
    }
}

#[tokio::test]
async fn x18_a_program_that_refuses_the_asking_mode_is_not_prompted() {
    for listed in ["", r#","modes":{"currentModeId":"yolo","availableModes":[{"id":"asks"}]}"#] {
        let fake = fake(MODES, &[HELLO, &open(listed), NO, "hear; hear"].concat());
        let job = Job { auto_approve: false, edits: false, ..fake.job("delete all") };
        let ending = fake.ending(job).await;
        assert_eq!(ending.status, Status::Failed, "{ending:?}");
        assert!(ending.why.contains("asks") && ending.why.contains("no such mode"), "{ending:?}");
        assert!(!ending.why.contains("logged in"), "{ending:?}");
        assert!(!log(&fake).contains("delete all"), "{}", log(&fake));
    }
    // Where everything is allowed the failure is only reported.
    let end = END.replace("\"id\":3", "\"id\":4");
    let listed = r#","modes":{"availableModes":[{"id":"yolo"}]}"#;
    let fake = fake(MODES, &[HELLO, &open(listed), NO, "hear\n", &end].concat());
    assert_eq!(fake.ending(fake.job("work")).await.status, Status::Done);
}

#[tokio::test]
async fn x18_one_that_leaves_the_asking_mode_is_put_back_or_ended() {
    let leaves =
        |mode: &str| update(&format!(r#""sessionUpdate":"current_mode_update","currentModeId":"{mode}""#));
    let listed = open(r#","modes":{"currentModeId":"yolo","availableModes":[{"id":"asks"}]}"#);
    let end = END.replace("\"id\":3", "\"id\":4");
    let back = "hear; say '{\"id\":5,\"result\":{}}'\n";
    let stays = "hear; say '{\"id\":5,\"error\":{\"code\":1,\"message\":\"I like it here\"}}'\nhear; hear\n";
    let start_of = [HELLO, &listed, YES, "hear\n"].concat();
    // It may enter a mode without actions by itself.
    for (script, status, requests) in [
        ([start_of.as_str(), &leaves("plan"), &end].concat(), Status::Done, 1),
        ([start_of.as_str(), &leaves("yolo"), back, &end].concat(), Status::Done, 2),
        ([start_of.as_str(), &leaves("yolo"), stays].concat(), Status::Failed, 2),
    ] {
        let fake = fake(MODES, &script);
        let job = Job { auto_approve: false, edits: false, ..fake.job("work") };
        let ending = fake.ending(job).await;
        assert_eq!(ending.status, status, "{ending:?}");
        let sent = heard(&log(&fake)).into_iter().filter(|(m, _)| m == "session/set_mode");
        let sent: Vec<Value> = sent.map(|(_, p)| p["modeId"].clone()).collect();
        assert_eq!(sent, vec![Value::from("asks"); requests], "{}", log(&fake));
    }
}

/// Over this transport it asks in every profile: where everything is allowed, deny rules and the danger list answer.
#[tokio::test]
async fn x18_its_own_settings_are_overridden_in_every_profile() {
    let more = format!(
        "{MODES}careful = [\"--ask-all\"]\nask_meta = '{{\"vendor\":{{\"ask\":[\"all\"]}}}}'\n[env.careful]\nASKS = \"1\"\n"
    );
    let end = END.replace("\"id\":3", "\"id\":4");
    for auto_approve in [false, true] {
        let listed = r#","modes":{"availableModes":[{"id":"asks"},{"id":"yolo"}]}"#;
        let started = "printf '%s %s' \"$*\" \"$ASKS\" >started\n";
        let fake = fake(&more, &[started, HELLO, &open(listed), YES, "hear\n", &end].concat());
        let job = Job { auto_approve, edits: false, ..fake.job("work") };
        assert_eq!(fake.ending(job).await.status, Status::Done);
        let heard = heard(&log(&fake));
        let new = heard.iter().find(|(m, _)| m == "session/new").unwrap();
        assert_eq!(new.1["_meta"]["vendor"]["ask"][0], "all", "{auto_approve} {heard:?}");
        let started = std::fs::read_to_string(fake.tmp.path().join("started")).unwrap();
        assert_eq!(started, "--ask-all 1", "{auto_approve}");
    }
}

/// A program whose adapter has no way to make it ask is started only where it need not ask.
#[tokio::test]
async fn x18_without_a_way_to_make_it_ask_it_is_not_started() {
    for (section, word) in [
        ("[acp]\ncommand = \"PROGRAM\"\n", "ask_mode"),
        ("[headless]\nformat = \"text\"\nprompt = \"stdin\"\n", "[headless]"),
        ("[pty]\nready = '^> $'\n", "[pty]"),
    ] {
        let fake = crate::fake::Fake::new(section, "echo hello");
        let job = Job { auto_approve: false, ..fake.job("work") };
        let Err(e) = start(job, &Host::default()) else { panic!("{section}") };
        assert!(matches!(e, StartError::NoAsking { .. }), "{e}");
        assert!(e.to_string().contains(word) && e.to_string().contains("full mode"), "{e}");
        let (control, said) = start(fake.job("work"), &Host::default()).unwrap();
        control.stop(true);
        let (_, ending) = all(said).await;
        assert_ne!(ending.status, Status::Done);
    }
}
