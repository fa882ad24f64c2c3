//! Programs of other vendors as agents: small scripts stand for them here; the real ones are driven in `tests/it`.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::json;
use tiller_link::external::Adapters;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentCommand, AgentState, AskBody, AskReply, CommandBody, Decision, Profile};

use super::crew::{agent, delegate, first, result, state};
use super::rig::*;
use crate::crew::Programs;

/// A program `toy` that is this script, run as aider is.
pub(super) fn toy(place: &Place, script: &str) -> Programs {
    let folder = place.tmp.path().join("adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("toy.sh");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let adapter = format!(
        "name = \"toy\"\ntitle = \"Toy\"\n[program]\ncommand = \"{0}\"\ninstall = \"nothing\"\n\
         [headless]\nformat = \"text\"\nargs = []\nlast = [\"{{prompt}}\"]\nprompt = \"argument\"\n\
         edited = '^Applied edit to (.+)$'\n[acp]\ncommand = \"{0}\"\ninstall = \"nothing\"\n",
        program.display()
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
    let adapters = Adapters::load(&[folder]);
    assert!(adapters.get("toy").is_some(), "the adapter is right");
    Programs { adapters, host: tiller_tool::shell::Host::default(), lookup: Arc::new(|_| None) }
}

fn spawn(cli: &str, goal: &str) -> CommandBody {
    let cli = Some(cli.into());
    CommandBody::Agent(AgentCommand::Spawn {
        goal: goal.into(),
        role: None,
        model: None,
        cli,
        isolated: false,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_does_a_task_and_its_report_comes_back() {
    let place = Place::new();
    let toy =
        toy(&place, "echo 'I was asked to:' \"$1\"; echo new > made.txt; echo 'Applied edit to made.txt'");
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "build it", "cli": "toy:headless"}, {"goal": "own work"}, {"goal": "x", "cli": "nobody"}
        ])),
        "go" => says(&result(r).unwrap()),
        _ => says("own work is done"),
    });
    let mut rig = place.start_with(&fake, |p| p.programs = Some(toy)).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.contains("I was asked to: build it") && text.contains("own work is done"), "{text}");
    assert!(text.contains("there is no adapter for nobody"), "{text}");
    assert!(text.contains("made.txt"), "{text}");
    assert!(place.work.join("made.txt").exists());
    let row = state(&mut rig, "main/a1", AgentState::Done).await;
    let child = row.child.unwrap();
    assert_eq!((child.backend.as_str(), row.cost), ("toy, headless", None), "what it cost is not known");
    // Its talk is a session like any other.
    let store = place.parts(&Fake::new([])).store;
    let tail = store.path_tail(child.session.unwrap(), "main", 100).unwrap();
    let shape = shape(&tail.entries);
    assert_eq!(shape[0], "user Prompt build it");
    assert!(shape.last().unwrap().starts_with("reply"), "{shape:?}");
    drop(store);
    rig.quit().await;
}

/// Fault A3 with programs: a crash, a hang and garbage are results, and nothing of them is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_a_program_that_crashes_or_hangs_is_one_result() {
    let place = Place::new();
    let toy = toy(
        &place,
        "case \"$1\" in crash*) kill -9 $$;; hang*) sleep 987654 & wait;; esac; printf '\\377\\000\\033[2J'",
    );
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "crash", "cli": "toy:headless"}, {"goal": "hang", "cli": "toy:headless"}, {"goal": "garbage", "cli": "toy:headless"}
        ])),
        _ => says(&result(r).unwrap()),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            p.programs = Some(toy);
            p.config.agents.seconds = 2;
        })
        .await;
    let (_, text) = rig.turn("go").await;
    let states = text.matches("\"status\":\"failed\"").count();
    assert!(states >= 2, "{text}");
    rig.quit().await;
    let left = std::process::Command::new("pgrep").args(["-f", "sleep 987654"]).output().unwrap();
    assert!(left.stdout.is_empty(), "the hanging program's child is gone");
}

/// A program over the Agent Client Protocol asks, and the person answers in our dialog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_programs_question_is_ours_and_our_rules_come_first() {
    let place = Place::new();
    let toy = toy(&place, ACP);
    let fake = Fake::new([]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.programs = Some(toy);
            p.profile = Some(Profile::Ask);
        })
        .await;
    rig.send(spawn("toy:acp", "run it"));
    let ask = rig.asked().await;
    assert_eq!(ask.agent, agent("main/a1"));
    let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
    assert!(p.shown.contains("touch asked"), "{p:?}");
    state(&mut rig, "main/a1", AgentState::Waiting).await;
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash.clone() });
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    let child = done.child.unwrap();
    assert_eq!((child.result.as_str(), child.backend.as_str()), ("it said allow-once", "toy, acp"));
    rig.quit().await;
}

/// A small agent of the protocol: it asks once, and says which option was chosen.
const ACP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{}}}';;
    *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s1"}}';;
    *'"method":"session/prompt"'*) prompt=$id
      echo '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"touch asked","kind":"execute","rawInput":{"command":"touch asked"}},"options":[{"optionId":"yes1","name":"Yes","kind":"allow_once"},{"optionId":"no1","name":"No","kind":"reject_once"}]}}';;
    *'"id":900'*) case "$line" in *yes1*) said=allow-once;; *) said=refused;; esac
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"it said '$said'"}}}}'
      echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;
  esac
done
"#;
