//! The stored state of agents, at the time when their rows are shown and when Tiller is killed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    AgentCommand, AgentState, AgentView, CommandBody, Event, EventBody, ManualClock, Receipt, SessionId, Time,
};
use tiller_store::AgentRow;

use crate::agents::delegation::{agent, first, row, state};
use crate::agents::user_commands::{spawn, to};
use crate::budgets::priced;
use crate::rig::*;

/// How far an agent is in its life.
fn stage(state: AgentState) -> u8 {
    match state {
        AgentState::Queued => 0,
        AgentState::Idle | AgentState::Running | AgentState::Waiting | AgentState::Paused => 1,
        _ => 2,
    }
}

/// A fact is shown when it is on disk, and no earlier.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_row_is_shown_before_it_is_on_disk() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("done"));
    let mut rig = place.start_with(&fake, |p| p.config.agents.running = 2).await;
    let session = rig.session();
    let store = place.parts(&Fake::new([])).store;
    let written = |view: &AgentView| -> Option<AgentRow> {
        store.agents().list(session).unwrap().into_iter().find(|r| r.id == view.id)
    };
    let ahead = |e: &Event| {
        let view = row(e).filter(|v| !v.id.is_main())?;
        let on_disk = written(&view);
        let there = on_disk.as_ref().is_some_and(|r| stage(r.state) >= stage(view.state));
        (!there).then(|| format!("{} is shown as {:?}, and on disk is {on_disk:?}", view.id, view.state))
    };
    for n in 0..12 {
        rig.send(spawn(&format!("part {n}")));
    }
    let mut done = 0;
    while done < 12 {
        let (early, ended) = rig
            .until_of("rows", |e| {
                let view = row(e).filter(|v| !v.id.is_main())?;
                Some((ahead(e), view.state == AgentState::Done))
            })
            .await;
        assert_eq!(early, None);
        done += usize::from(ended);
    }
    rig.quit().await;
}

/// Agents that work when another session is opened are interrupted in their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_a_session_that_is_left_are_stored_with_it() {
    let place = Place::new();
    let fake = Fake::with(|_, _| vec![Step::Hang]);
    let mut rig = place.start_with(&fake, |p| p.user.human = tiller_engine::Human::Absent).await;
    let left = rig.session();
    rig.send(spawn("look"));
    state(&mut rig, "main/a1", AgentState::Running).await;
    rig.send(CommandBody::Session(SessionCommand::New));
    let started =
        |e: &Event| matches!(&e.body, EventBody::Turn(TurnEvent::SessionStarted { .. })).then_some(e.session);
    let opened = rig.until_of("the new session", started).await;
    assert_ne!(opened, left);
    rig.quit().await;
    let store = place.parts(&fake).store;
    let states = |id: SessionId| -> Vec<AgentState> {
        store.agents().list(id).unwrap().into_iter().map(|row| row.state).collect()
    };
    assert_eq!((states(left), states(opened)), (vec![AgentState::Interrupted], Vec::new()));
}

/// Kills the engine, and opens the session again.
async fn killed(
    place: &Place,
    rig: Rig,
    fake: &Arc<Fake>,
    change: fn(&mut tiller_engine::EngineConfig),
) -> Rig {
    let (session, mut rig) = (rig.session(), rig);
    let children: Vec<SessionId> =
        rig.snapshot().await.agents.iter().filter_map(|a| a.child.clone()?.session).collect();
    rig.kill().await;
    place.free(session);
    children.into_iter().for_each(|c| place.free_if_there(c));
    let open = |p: &mut tiller_engine::EngineConfig| {
        change(p);
        p.session.open = tiller_engine::Open::Session(session);
    };
    place.start_with(fake, open).await
}

fn resume() -> tiller_protocol::CommandBody {
    to(AgentCommand::Resume { id: agent("main/a1") })
}

/// A model that reads one file again and again; every second request of one run of Tiller hangs.
fn reads_for_ever() -> Arc<Fake> {
    Fake::with(|n, r| match first(r).as_str() {
        "read" if n % 2 == 1 => vec![Step::Hang],
        _ => calls(&[(&format!("r{n}"), "read_file", read_args("a.txt"))]),
    })
}

/// However often Tiller is killed and its agent continues, each request is counted once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_calls_and_tokens_are_counted_on_after_each_kill() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let fake = reads_for_ever();
    let limits = |p: &mut tiller_engine::EngineConfig| {
        priced(p);
        p.config.agents.turns = 4;
    };
    let mut rig = place.start_with(&fake, limits).await;
    rig.send(spawn("read"));
    for run in 1..3 {
        fake.requested(run * 2).await;
        // Two requests in each run, the second without an answer.
        let used = rig
            .until_of("two requests more", |e| {
                let used = row(e).filter(|v| v.id == agent("main/a1"))?.child?.used;
                (used.turns == Some(run as u32 * 2)).then_some(used)
            })
            .await;
        assert_eq!(used.cost.unwrap().0, 120_000 * run as u64, "{used:?}");
        rig = killed(&place, rig, &fake, limits).await;
        let view = state(&mut rig, "main/a1", AgentState::Interrupted).await;
        let child = view.child.unwrap();
        let (used, session) = (child.used, child.session.unwrap());
        // The request without an answer is recorded too, as an estimate, where the end let it be written.
        let books = place.parts(&Fake::new([])).store.agents().work(session).unwrap();
        assert_eq!((books.cost.0, books.usage.output), (120_000 * run as u64, 20 * run as u64));
        let tokens = tiller_engine::context::tokens::of_usage(&books.usage);
        assert_eq!((used.turns, used.tokens), (Some(run as u32 * 2), Some(tokens)));
        assert!(tokens == 120 * run as u64 || books.usage.estimated, "{books:?}");
        rig.send(resume());
    }
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await.child.unwrap();
    assert!(failed.result.contains("reached its limit of 4 requests"), "{}", failed.result);
    assert_eq!(fake.count(), 4, "nothing was asked beyond that");
    let store = place.parts(&Fake::new([])).store;
    let row = store.agents().list(rig.session()).unwrap().remove(0);
    assert_eq!(row.report.unwrap()["tool_calls"], json!(2), "one in each run");
    rig.quit().await;
}

/// Working time counts on as well: only the remaining time is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_time_is_counted_on_after_a_quit() {
    let place = Place::new();
    let fake = Fake::with(|_, _| vec![Step::Hang]);
    let clock = Arc::new(ManualClock::new(Time(0)));
    let limits = |p: &mut tiller_engine::EngineConfig| {
        p.config.agents.seconds = 3;
        p.environment.clock = Arc::clone(&clock) as Arc<dyn tiller_protocol::Clock>;
    };
    let mut rig = place.start_with(&fake, limits).await;
    let session = rig.session();
    rig.send(spawn("hang"));
    fake.requested(1).await;
    clock.advance(Duration::from_millis(2_500));
    rig.quit().await;
    let open = |p: &mut tiller_engine::EngineConfig| {
        limits(p);
        p.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&fake, open).await;
    let before = state(&mut rig, "main/a1", AgentState::Interrupted).await.child.unwrap().used;
    assert_eq!(before.seconds, Some(2), "{before:?}");
    rig.send(resume());
    fake.requested(2).await;
    clock.advance(Duration::from_millis(600));
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await.child.unwrap();
    assert!(failed.result.contains("reached its limit of 3 seconds"), "{}", failed.result);
    // With a new limit it would have had three seconds more.
    assert_eq!(failed.used.seconds, Some(3), "{:?}", failed.used);
    rig.quit().await;
}

/// The model of an agent was chosen for it: where it cannot be used, that is an error, and no other one is paid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_model_cannot_be_used_is_not_continued_by_another_one() {
    let place = Place::new();
    let fake = Fake::new([vec![Step::Hang]]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.send(spawn("work"));
    fake.requested(1).await;
    rig.quit().await;
    let elsewhere = |p: &mut tiller_engine::EngineConfig| {
        crate::sessions::open::without_its_provider(p, session);
    };
    let mut rig = place.start_with(&fake, elsewhere).await;
    state(&mut rig, "main/a1", AgentState::Interrupted).await;
    rig.send(resume());
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await;
    assert_eq!(failed.model.0, "fake/m");
    rig.quit().await;
}

/// A message to a waiting agent is on disk when its receipt is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_one_in_line_is_heard_after_a_kill() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "first" => vec![Step::Hang],
        _ => says(&format!("heard: {}", message_text(r, r.messages.len() - 1))),
    });
    let one = |p: &mut tiller_engine::EngineConfig| p.config.agents.running = 1;
    let mut rig = place.start_with(&fake, one).await;
    rig.send(spawn("first"));
    fake.requested(1).await;
    rig.send(spawn("second"));
    state(&mut rig, "main/a2", AgentState::Queued).await;
    rig.send_to("main/a2", crate::agents::user_commands::say("mind the gap"));
    let queued = |e: &Event| match &e.body {
        EventBody::State(StateEvent::Receipt { receipt: Receipt::Queued }) => Some(()),
        _ => None,
    };
    rig.until_of("the receipt", queued).await;
    let mut rig = killed(&place, rig, &fake, one).await;
    state(&mut rig, "main/a2", AgentState::Interrupted).await;
    rig.send(to(AgentCommand::Resume { id: agent("main/a2") }));
    let done = |e: &Event| {
        let child = row(e).filter(|v| v.id == agent("main/a2") && v.state == AgentState::Done)?.child?;
        child.result.contains("mind the gap").then_some(())
    };
    rig.until_of("that it heard", done).await;
    rig.quit().await;
}

/// A finished agent that gets a message works again, in the store too: a kill then is an interruption.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_was_done_and_works_again_is_interrupted_by_a_kill() {
    let place = Place::new();
    let fake = Fake::with(|n, _| match n {
        0 => says("done"),
        1 => vec![Step::Hang],
        _ => says("done again"),
    });
    let mut rig = place.start(&fake).await;
    rig.send(spawn("work"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send_to("main/a1", crate::agents::user_commands::say("and more"));
    crate::agents::delegation::next_state(&mut rig, "main/a1", AgentState::Running).await;
    fake.requested(2).await;
    let mut rig = killed(&place, rig, &fake, |_| {}).await;
    state(&mut rig, "main/a1", AgentState::Interrupted).await;
    rig.send(resume());
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "done again");
    rig.quit().await;
}
