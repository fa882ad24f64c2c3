//! States of the files that are stored long after the work of an agent: its report names the files all the same.

use serde_json::json;
use tiller_engine::files::Keeper;
use tiller_protocol::command::Query;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{AgentCommand, AgentState, EventBody};

use crate::agents::delegation::{agent, delegate, first, result, row, state};
use crate::agents::external::{makes_unasked, until_its_call};
use crate::agents::user_commands::{spawn, to};
use crate::files::checkpoints::{keeps, messages};
use crate::rig::*;

/// Lets no state of the files be stored until the result is dropped.
fn hold(keeper: &Keeper) -> std::sync::mpsc::Sender<()> {
    let (open, gate) = std::sync::mpsc::channel();
    let held = keeper.submit(move |_| {
        // Closed, never sent to.
        let _ = gate.recv();
        Ok(())
    });
    drop(held);
    open
}

/// The turn of a program ends before the state after its last call is stored: the report waits for that state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_of_a_program_waits_for_the_state_after_its_last_call() {
    let place = Place::new();
    let go = place.tmp.path().join("go");
    let toy = makes_unasked(&place, &go);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "build it", "cli": "toy:acp"}])),
        _ => says(&result(r).unwrap()),
    });
    let mut keeper = None;
    let mut rig = place
        .start_with(&fake, |p| {
            keeps(&place, p);
            keeper = p.files.snapshots.clone();
            p.crew.programs = Some(toy);
        })
        .await;
    rig.submit("go");
    until_its_call(&mut rig).await;
    // States are stored one after the other: with this answer, the state before the call is stored.
    let entry = messages(&mut rig).await[0];
    rig.query(Query::RestorePreview { entry }).await;
    let open = hold(&keeper.unwrap());
    std::fs::write(&go, "").unwrap();
    rig.until_of("the end of its turn", |e| {
        let end = matches!(&e.body, EventBody::Turn(TurnEvent::TurnFinished { .. }));
        (end && e.agent == agent("main/a1")).then_some(())
    })
    .await;
    drop(open);
    let (_, text, _) = rig.finished().await;
    assert!(text.contains(r#""files":["made.txt"]"#), "{text}");
    assert_eq!(state(&mut rig, "main/a1", AgentState::Done).await.child.unwrap().files, 1);
    rig.quit().await;
}

/// The end of an agent that was stopped does not wait for long; its files are added to its report when they are known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_known_after_the_end_of_an_agent_are_added_to_its_report() {
    let place = Place::new();
    let fake = Fake::with(|_, _| {
        calls(&[("c1", "terminal", json!({"command": "echo made > made.txt; sleep 987656"}))])
    });
    let mut keeper = None;
    let mut rig = place
        .start_with(&fake, |p| {
            keeps(&place, p);
            keeper = p.files.snapshots.clone();
        })
        .await;
    rig.send(spawn("make it"));
    let limit = std::time::Instant::now() + DEADLINE;
    while !place.work.join("made.txt").exists() {
        assert!(std::time::Instant::now() < limit, "the command did not run");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let open = hold(&keeper.unwrap());
    rig.send(to(AgentCommand::Cancel { id: agent("main/a1"), subtree: true }));
    let stopped = state(&mut rig, "main/a1", AgentState::Cancelled).await;
    assert_eq!(stopped.child.unwrap().files, 0, "the state after its call is not stored yet");
    drop(open);
    let files = |e: &tiller_protocol::Event| row(e)?.child.map(|c| c.files).filter(|n| *n > 0);
    assert_eq!(rig.until_of("its file", files).await, 1);
    assert_eq!(rig.snapshot().await.agents[1].child.as_ref().unwrap().files, 1);
    rig.quit().await;
}
