//! Thinking effort: where it is chosen, how long it holds, and that it changes nothing of the prefix.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{AgentCommand, AgentState, CommandBody, Effort, EventBody, Message, SendMode};

use crate::rig::*;
use tiller_engine::Open;

fn set(effort: Effort) -> CommandBody {
    CommandBody::Session(SessionCommand::SetEffort { effort })
}

async fn changed(rig: &mut Rig) -> Effort {
    rig.until("the effort", |e| match e {
        EventBody::State(StateEvent::EffortChanged { effort }) => Some(effort.chosen),
        _ => None,
    })
    .await
}

/// An event that names a command is the answer to a command about the effort: screens say so to the person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_command_about_the_effort_is_named_as_its_cause() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place.start(&fake).await;
    let model = tiller_protocol::ModelRef("fake/other".into());
    rig.send(CommandBody::Session(SessionCommand::New));
    rig.send(CommandBody::Session(SessionCommand::SetModel { model }));
    rig.send(set(Effort::High));
    let changed = |e: &tiller_protocol::Event| match &e.body {
        EventBody::State(StateEvent::EffortChanged { effort }) => Some((e.cause.is_some(), effort.chosen)),
        _ => None,
    };
    let mut without = 0;
    while let (false, _) = rig.until_of("the effort", changed).await {
        without += 1;
    }
    assert!(without >= 2, "the new session and the other model have an effort: {without}");
    assert_eq!(changed(rig.seen.last().unwrap()), Some((true, Effort::High)));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effort_holds_for_the_session_or_for_one_message_and_survives_a_restart() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place.start_with(&fake, |p| p.config.effort = Effort::Low).await;
    let session = rig.snapshot().await.session.id;
    assert_eq!(rig.turn("one").await.0, TurnStatus::Done);
    rig.send(set(Effort::High));
    while changed(&mut rig).await != Effort::High {}
    assert_eq!(rig.turn("two").await.0, TurnStatus::Done);
    // One message has its own effort; the next one has the session's.
    rig.submit_as(Message { effort: Some(Effort::Off), ..Message::text("three") }, SendMode::Steer);
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(rig.turn("four").await.0, TurnStatus::Done);
    let view = rig.snapshot().await.effort;
    assert_eq!((view.chosen, view.used), (Effort::High, Effort::High));
    rig.quit().await;

    let mut rig = place
        .start_with(&fake, |p| {
            p.config.effort = Effort::Low;
            p.session.open = Open::Session(session);
        })
        .await;
    assert_eq!(rig.turn("five").await.0, TurnStatus::Done);
    rig.quit().await;
    // A flag wins over the stored effort.
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.open = Open::Session(session);
            p.session.effort = Some(Effort::Max);
        })
        .await;
    assert_eq!(rig.turn("six").await.0, TurnStatus::Done);
    rig.quit().await;

    let requests: Vec<_> = (0..fake.count()).map(|n| fake.request(n)).collect();
    let efforts: Vec<Effort> = requests.iter().map(|r| r.effort).collect();
    assert_eq!(efforts, [Effort::Low, Effort::High, Effort::Off, Effort::High, Effort::High, Effort::Max]);
    for pair in requests.windows(2) {
        assert_eq!((&pair[0].system, &pair[0].tools), (&pair[1].system, &pair[1].tools), "the prefix stays");
        assert_eq!(
            pair[0].messages[..],
            pair[1].messages[..pair[0].messages.len()],
            "and so do the messages"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_level_that_the_model_lacks_is_told_and_the_nearest_is_used() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place
        .start_with(&fake, |p| {
            let info =
                serde_json::json!({"kind": "openai-chat", "models": {"m": {"effort": ["low", "high"]}}});
            p.config.providers.insert("fake".into(), serde_json::from_value(info).unwrap());
        })
        .await;
    rig.send(set(Effort::Max));
    rig.notice("m does not support effort max; high is used").await;
    let view = *rig.snapshot().await.effort;
    assert_eq!(
        (view.chosen, view.used, view.offered),
        (Effort::Max, Effort::High, vec![Effort::Low, Effort::High])
    );
}

/// An agent continues with the effort that it started with, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_read_again_keeps_the_effort_of_its_kind() {
    let place = Place::new();
    let roles = || crate::agents::delegation::kinds(&place, "thinker", "description: thinks\neffort: max");
    let fake = Fake::with(|_, _| says("thought about"));
    let mut rig = place.start_with(&fake, |p| p.crew.roles = tiller_engine::Roles::new(roles())).await;
    rig.turn("hello").await;
    let session = rig.session();
    let role = Some("thinker".into());
    let spawn = AgentCommand::Spawn { goal: "think".into(), role, model: None, cli: None, isolated: false };
    rig.send(CommandBody::Agent(spawn));
    crate::agents::delegation::state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(fake.request(1).effort, Effort::Max);
    rig.quit().await;
    let open = |p: &mut tiller_engine::EngineConfig| {
        p.crew.roles = tiller_engine::Roles::new(roles());
        p.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&fake, open).await;
    crate::agents::delegation::state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send_to("main/a1", crate::agents::user_commands::say("once more"));
    fake.requested(3).await;
    assert_eq!(fake.request(2).effort, Effort::Max);
    rig.quit().await;
}
