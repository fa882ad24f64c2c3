//! Killed processes, and stopped turns.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tiller_protocol::EventBody;
use tiller_protocol::event::{StateEvent, TurnEvent, TurnStatus};

use crate::faults::{SOON, go_on};
use crate::rig::*;
use crate::turns::failing_tools::Naughty;

const CRASHED: &str = "note Interrupted: Tiller ended before this turn finished.";

/// A session that is opened later shows that a turn ended, and how, also when there was no reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_without_an_answer_says_so_in_the_stored_conversation() {
    let place = Place::new();
    let refused = Step::Refuse(tiller_provider::ProviderError::Auth("the key is wrong".into()));
    let mut half = words(0, "half");
    half.push(Step::Hang);
    let fake = Fake::new([vec![Step::Hang], vec![refused], half]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.submit("one");
    fake.requested(1).await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert_eq!(rig.turn("two").await.0, TurnStatus::Failed);
    rig.submit("three");
    rig.until("text", |e| matches!(e, EventBody::Turn(TurnEvent::TextDelta { .. })).then_some(())).await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    rig.quit().await;
    let fake = Fake::new([says("Four.")]);
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    let stored = shape(&rig.snapshot().await.entries);
    let notes: Vec<&String> = stored.iter().filter(|e| e.starts_with("note")).collect();
    assert_eq!(notes[0], "note Stopped by you before the model answered.");
    assert!(notes[1].starts_with("note The turn ended early: "), "{notes:?}");
    assert_eq!(notes.len(), 2, "the third has its half answer: {stored:?}");
    assert_eq!(stored.last().unwrap(), "reply 1 Interrupted");
    assert_eq!(rig.turn("four").await.0, TurnStatus::Done);
    assert_valid(&fake.request(0));
    assert!(!format!("{:?}", fake.request(0)).contains("ended early"), "notes are the person's");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_a_session_that_was_killed_anywhere_goes_on_with_a_valid_history() {
    // The moment at which the process ends: before the first text, in the text, while a tool runs, between replies.
    for stage in 0..4 {
        let place = Place::new();
        place.file("a.txt", "A\n");
        let gate = Arc::new(Gate::new());
        let hang = |mut steps: Vec<Step>| {
            steps.push(Step::Hang);
            steps
        };
        let replies = match stage {
            0 => vec![vec![Step::Hang]],
            1 => vec![hang(words(0, "half"))],
            2 => vec![calls(&[
                ("c1", "read_file", read_args("a.txt")),
                ("c2", "naughty", json!({"do": "hang"})),
                ("c3", "read_file", read_args("a.txt")),
            ])],
            _ => vec![calls(&[("c1", "read_file", read_args("a.txt"))]), vec![Step::Gate(gate), Step::Hang]],
        };
        let fake = Fake::new(replies);
        let mut rig = place.start_with(&fake, |p| p.tools.push(Naughty::leak())).await;
        let session = rig.session();
        rig.submit("the question");
        match stage {
            0 => {
                rig.until("start", |e| matches!(e, EventBody::Turn(TurnEvent::TurnStarted {})).then_some(()))
                    .await
            }
            1 => {
                rig.until("text", |e| matches!(e, EventBody::Turn(TurnEvent::TextDelta { .. })).then_some(()))
                    .await
            }
            2 => while rig.started().await != "c2" {},
            _ => drop(rig.tool_finished().await),
        }
        let shown: Vec<String> = shape(&acknowledged(&rig));
        rig.kill().await;
        place.free(session);

        let fake = Fake::new([says("Continued.")]);
        let began = Instant::now();
        let mut rig = place
            .start_with(&fake, |p| {
                p.session.open = tiller_engine::Open::Session(session);
                p.tools.push(Naughty::leak());
            })
            .await;
        rig.notice("was interrupted").await;
        assert!(began.elapsed() < SOON, "usable soon: {:?}", began.elapsed());
        let stored = shape(&rig.snapshot().await.entries);
        for entry in &shown {
            assert!(stored.contains(entry), "stage {stage}: {entry} was shown and is lost: {stored:?}");
        }
        assert_eq!(stored.last().map(String::as_str), Some(CRASHED), "stage {stage}: {stored:?}");
        go_on(&mut rig);
        assert_eq!(rig.finished().await.0, TurnStatus::Done, "stage {stage}");
        assert_valid(&fake.request(0));
        rig.quit().await;
    }
}

/// Entries that were shown as being on disk.
fn acknowledged(rig: &Rig) -> Vec<tiller_protocol::Entry> {
    rig.seen
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Turn(
                TurnEvent::UserMessage { node, .. }
                | TurnEvent::AssistantMessage { node, .. }
                | TurnEvent::EntryAdded { node },
            ) => Some((**node).clone()),
            EventBody::Tool(tiller_protocol::event::ToolEvent::ToolFinished { node, .. }) => {
                Some((**node).clone())
            }
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupts_at_every_stage_end_soon_and_leave_a_valid_history() {
    for stage in 0..3 {
        let place = Place::new();
        let mut hang = words(0, "half");
        hang.push(Step::Hang);
        let replies = match stage {
            0 => vec![vec![Step::Hang]],
            1 => vec![hang],
            _ => vec![calls(&[
                ("c1", "naughty", json!({"do": "wait"})),
                ("c2", "naughty", json!({"do": "wait"})),
            ])],
        };
        let fake = Fake::new(replies);
        let mut rig = place.start_with(&fake, |p| p.tools.push(Naughty::leak())).await;
        rig.submit("go");
        match stage {
            0 => fake.requested(1).await,
            1 => {
                rig.until("text", |e| matches!(e, EventBody::Turn(TurnEvent::TextDelta { .. })).then_some(()))
                    .await
            }
            _ => drop(rig.started().await),
        }
        let began = Instant::now();
        rig.interrupt(false);
        assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
        assert!(began.elapsed() < SOON, "stage {stage}: {:?}", began.elapsed());
        fake.push(says("after"));
        assert_eq!(rig.turn("and now?").await.0, TurnStatus::Done);
        let last = fake.request(fake.count() - 1);
        assert_valid(&last);
        assert!(message_text(&last, last.messages.len() - 1).contains("the user stopped"), "stage {stage}");
        rig.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_ignores_its_end_is_left_behind_after_the_second_stop() {
    let place = Place::new();
    let fake = Fake::new([calls(&[("c1", "naughty", json!({"do": "hang"}))])]);
    let mut rig = place.start_with(&fake, |p| p.tools.push(Naughty::leak())).await;
    rig.submit("go");
    rig.started().await;
    rig.interrupt(false);
    rig.interrupt(true);
    let began = Instant::now();
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let end = Instant::now();
    let seen = rig.quit().await;
    assert!(end.elapsed() < SOON, "{:?}", end.elapsed());
    assert!(matches!(seen.last().unwrap().body, EventBody::State(StateEvent::Stopped {})));
}
