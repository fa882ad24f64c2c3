//! Goals: turns that follow each other until a check holds, a limit is reached, or the user stops them.

use serde_json::json;
use tiller_protocol::command::GoalCommand;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{CommandBody, EventBody, Goal, GoalCheck, GoalState, GoalView, Profile};

use crate::rig::*;
use tiller_engine::{EngineConfig, Open};

fn full(p: &mut EngineConfig) {
    p.session.profile = Some(Profile::Full);
}

fn set(rig: &mut Rig, check: GoalCheck, turns: u32, usd: Option<f64>) {
    let goal = Goal { text: "three lines in log".into(), check, turns, usd };
    rig.send(CommandBody::Goal(GoalCommand::Set { goal }));
}

fn by(line: &str) -> GoalCheck {
    GoalCheck::Command { line: line.into() }
}

async fn until(rig: &mut Rig, state: GoalState) -> GoalView {
    rig.until("the goal's state", |e: &EventBody| match e {
        EventBody::State(StateEvent::GoalChanged { goal: Some(goal) }) if goal.state == state => {
            Some(goal.clone())
        }
        _ => None,
    })
    .await
}

const THREE: &str = "wc -l < log; test $(wc -l < log) -ge 3";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_follow_each_other_until_the_check_holds() {
    let place = Place::new();
    let fake = Fake::with(|n, _| match n % 2 {
        0 => calls(&[(&format!("c{n}"), "terminal", json!({"command": "echo line >> log"}))]),
        _ => says("One more."),
    });
    let mut rig = place.start_with(&fake, full).await;
    set(&mut rig, by(THREE), 10, None);
    let reached = until(&mut rig, GoalState::Reached).await;
    assert_eq!((reached.done, reached.last.as_str()), (3, "3"));
    assert_eq!(place.read("log"), "line\nline\nline\n");
    assert_eq!(fake.count(), 6, "nothing is asked after that");
    let first = message_text(&fake.request(0), 0);
    assert!(
        first.starts_with("Goal: three lines in log") && first.contains("There are 10 turns."),
        "{first}"
    );
    let second = message_text(&fake.request(2), 4);
    assert!(second.contains("not reached yet (turn 1 of 10)") && second.contains('1'), "{second}");
    assert_eq!(rig.snapshot().await.goal.map(|g| g.state), Some(GoalState::Reached));
    // The user drops it.
    rig.send(CommandBody::Goal(GoalCommand::Stop));
    rig.reply().await;
    assert_eq!(rig.snapshot().await.goal, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stops_at_its_turns_and_goes_on_only_with_more() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("I tried."));
    let mut rig = place.start_with(&fake, full).await;
    set(&mut rig, by("false"), 2, None);
    let stopped = until(&mut rig, GoalState::Stopped).await;
    assert_eq!((stopped.done, stopped.last.as_str()), (2, "not reached in 2 turns"));
    assert_eq!(fake.count(), 2);
    rig.send(CommandBody::Goal(GoalCommand::Go));
    assert!(rig.refused().await.message.contains("2 turns are used up"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_judge_reads_what_was_done_and_says_what_is_missing() {
    let place = Place::new();
    let judged = std::sync::atomic::AtomicU32::new(0);
    let fake = Fake::with(move |_, r| {
        if !r.system.starts_with("You judge") {
            return says("It is written.");
        }
        let n = judged.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        says(if n == 0 { "No. The third line is missing." } else { "Yes, all three." })
    });
    let mut rig = place.start_with(&fake, full).await;
    set(&mut rig, GoalCheck::Judge, 5, None);
    let reached = until(&mut rig, GoalState::Reached).await;
    assert_eq!((reached.done, reached.last.as_str()), (2, "all three."));
    let judge = fake.request(1);
    let read = message_text(&judge, 0);
    assert!(read.contains("It is written.") && read.ends_with("[the goal]\nthree lines in log"), "{read}");
    assert!(judge.tools.is_empty());
    assert!(message_text(&fake.request(2), 2).contains("The third line is missing."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_own_budget_stops_it_also_when_the_cost_is_not_known() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("I tried."));
    // The fake model has no price.
    let mut rig = place.start_with(&fake, full).await;
    set(&mut rig, by("false"), 5, Some(0.5));
    let stopped = until(&mut rig, GoalState::Stopped).await;
    assert_eq!(stopped.last, "its cost is not known, so its budget cannot be enforced");
    assert_eq!(fake.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn escape_stops_it_in_a_turn_and_in_a_check() {
    let place = Place::new();
    let fake = Fake::new([vec![Step::Hang], says("Tried."), says("Tried again.")]);
    let mut rig = place.start_with(&fake, full).await;
    set(&mut rig, by("touch checking; sleep 300"), 5, None);
    fake.requested(1).await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert_eq!(until(&mut rig, GoalState::Stopped).await.last, "stopped by you");
    rig.send(CommandBody::Goal(GoalCommand::Go));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    until(&mut rig, GoalState::Checking).await;
    rig.interrupt(false);
    assert_eq!(until(&mut rig, GoalState::Stopped).await.last, "stopped by you");
    // The engine is free at once.
    assert_eq!(rig.turn("hello").await.0, TurnStatus::Done);
    assert_eq!(fake.count(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_waits_for_the_person_after_a_restart() {
    let place = Place::new();
    let fake = Fake::new([vec![Step::Hang], says("Done.")]);
    let mut rig = place.start_with(&fake, full).await;
    set(&mut rig, by("true"), 5, None);
    fake.requested(1).await;
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = Open::Last).await;
    let snap = rig.snapshot().await;
    let goal = snap.goal.unwrap();
    assert_eq!((goal.state, snap.running, snap.queue.len()), (GoalState::Stopped, false, 0));
    assert_eq!(fake.count(), 1, "nothing is asked by itself");
    rig.send(CommandBody::Goal(GoalCommand::Go));
    assert_eq!(until(&mut rig, GoalState::Reached).await.done, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_pursued_is_refused() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("ok"));
    let mut rig = place.start_with(&fake, full).await;
    let goal = |text: &str, check, turns, usd| Goal { text: text.into(), check, turns, usd };
    for (goal, want) in [
        (goal(" ", by("true"), 1, None), "1 to 8,000 characters"),
        (goal("x", by("  "), 1, None), "check command is empty"),
        (goal("x", by("true"), 0, None), "1 to 1,000 turns"),
        (goal("x", by("true"), 1_001, None), "1 to 1,000 turns"),
        (goal("x", by("true"), 1, Some(0.0)), "above 0"),
        (goal("x", by("true"), 1, Some(f64::NAN)), "above 0"),
    ] {
        rig.send(CommandBody::Goal(GoalCommand::Set { goal }));
        let said = rig.refused().await.message;
        assert!(said.contains(want), "{said}");
    }
    for command in [GoalCommand::Stop, GoalCommand::Go] {
        rig.send(CommandBody::Goal(command));
        assert!(rig.refused().await.message.contains("no goal is set"));
    }
    assert_eq!(fake.count(), 0);
}

/// The result of one goal's check is not used for the next goal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goal_that_is_set_while_another_is_checked_has_its_own_end() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("Done, I think."));
    let mut rig = place.start_with(&fake, full).await;
    set(&mut rig, by("while [ ! -e go ]; do sleep 0.05; done"), 5, None);
    until(&mut rig, GoalState::Checking).await;
    set(&mut rig, by("false"), 1, None);
    until(&mut rig, GoalState::Working).await;
    place.file("go", "");
    let ended = |e: &EventBody| match e {
        EventBody::State(StateEvent::GoalChanged { goal: Some(goal) }) if !goal.state.active() => {
            Some(goal.clone())
        }
        _ => None,
    };
    let view = rig.until("its end", ended).await;
    assert_eq!((view.state, view.done), (GoalState::Stopped, 1), "{view:?}");
    assert_eq!(view.last, "not reached in 1 turns");
    rig.quit().await;
}
