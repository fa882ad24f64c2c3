//! Agents whose commands run at a terminal elsewhere: a pod that is this machine, behind a `kubectl` of the test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tiller_config::schema::{Terminal, TerminalKind};
use tiller_protocol::ask::OutsideAnswer;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{AskBody, AskReply, Decision, EventBody, Profile};
use tiller_terminals::Session;

use crate::agents::delegation::{delegate, first, result};
use crate::rig::*;

/// The terminal `build`, whose folder is `there/work` of the test.
fn terminals(place: &Place) -> Arc<Session> {
    let scratch = place.tmp.path().canonicalize().unwrap();
    let bin = scratch.join("bin");
    std::fs::create_dir_all(scratch.join("there")).unwrap();
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nHOME='{}/there' exec \"$@\"\n",
        scratch.display()
    );
    tiller_testkit::program(&bin.join("kubectl"), &script);
    let setting = Terminal {
        kind: TerminalKind::Kubernetes,
        pod: Some("builder-0".into()),
        folder: Some(scratch.join("there/work").display().to_string()),
        ..Terminal::default()
    };
    let vars = vec![("PATH".to_owned(), format!("{}:/usr/bin:/bin", bin.display()))];
    Arc::new(Session::new(BTreeMap::from([("build".to_owned(), setting)]), vars, scratch.join("state")))
}

/// One agent there and one whose terminal does not exist. Approval, row, report, prompt and audit name the terminal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_runs_at_its_terminal_and_all_that_is_said_of_it_names_that() {
    let place = Place::new();
    place.file("mine.txt", "mine\n");
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(
            json!([{"goal": "there", "terminal": "build"}, {"goal": "nowhere", "terminal": "biuld"}]),
        ),
        "go" => says(&format!("Got {}", result(r).unwrap())),
        _ if result(r).is_none() => {
            calls(&[("c1", "terminal", json!({"command": "cat mine.txt; pwd >where.txt"}))])
        }
        _ => says("Done."),
    });
    let sessions = terminals(&place);
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Ask);
            p.crew.terminals = Some(sessions);
        })
        .await;
    rig.submit("go");
    let ask = rig.asked().await;
    let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
    let work = place.work.canonicalize().unwrap();
    assert_eq!(p.folder, format!("build:{}", work.display()), "what only looks here is asked about there");
    let limits = "not confined: only the rights of the account at build (kubernetes) limit it";
    assert!(p.effects.iter().any(|e| e == limits) && p.outside == OutsideAnswer::No, "{p:?}");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash.clone() });
    let (status, text, _) = rig.finished().await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.contains("did you mean `build`?") && text.contains("\"terminal\":\"build\""), "{text}");
    let there = place.tmp.path().canonicalize().unwrap().join("there/work");
    assert_eq!(place.read("where.txt"), format!("{}\n", there.display()));
    let shown = rig.seen.iter().any(|e| match &e.body {
        EventBody::State(StateEvent::AgentChanged { view }) => {
            view.child.as_ref().is_some_and(|c| c.terminal == "build")
        }
        _ => false,
    });
    assert!(shown, "its row names the terminal");
    // All writes are done then, and the other side clears away what the session had there. On a busy machine it is still
    // at it.
    rig.quit().await;
    let rows = place.parts(&Fake::new([])).store.audit().list(None, "", 10).unwrap();
    let run: Vec<&str> = rows.iter().filter(|r| r.tool == "terminal").map(|r| r.what.as_str()).collect();
    assert!(run.len() == 1 && run[0].ends_with("\"terminal\":\"build\"}"), "{run:?}");
    let kept = || std::fs::read_dir(there.with_file_name(".cache").join("tiller")).unwrap().count();
    let end = Instant::now() + DEADLINE;
    while kept() > 0 {
        assert!(Instant::now() < end, "{} folders are left there", kept());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
