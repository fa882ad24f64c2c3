//! Settings that change while the engine runs.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnStatus};
use tiller_protocol::{AskBody, CommandBody, EventBody, ModelRef, Notice, NoticeKind};
use tiller_provider::{Provider, Providers};

use crate::rig::*;
use crate::scripted_model::lock;
use tiller_engine::{LoadedSettings, SettingsSource};

fn set_model(model: &str) -> CommandBody {
    CommandBody::Session(SessionCommand::SetModel { model: ModelRef(model.into()) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_providers_hold_from_the_moment_they_are_read_again() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    // Content of the settings file: no fault, or this one.
    let wrong: Arc<Mutex<Option<Notice>>> = Arc::default();
    let (mistake, server) = (Arc::clone(&wrong), Arc::clone(&fake));
    let config = tiller_config::Config::default();
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.model = Some(ModelRef(String::new()));
            p.providers = Providers::default();
            p.user.settings = Some(SettingsSource {
                read: Arc::new(move || {
                    if let Some(notice) = lock(&mistake).clone() {
                        return Err(notice);
                    }
                    let mut config = config.clone();
                    let info =
                        json!({"kind": "openai-chat", "models": {"m": {"input": 0.0, "output": 6000.0}}});
                    config.providers.insert("fake".into(), serde_json::from_value(info).unwrap());
                    config.budget.session_hard = Some(0.1);
                    let mut providers = Providers::default();
                    providers.insert(Arc::clone(&server) as Arc<dyn Provider>);
                    Ok(LoadedSettings { config, providers })
                }),
                keep: Arc::new(|_| Ok(())),
            });
        })
        .await;
    // Without a model nothing is sent, and nothing is stored as sent.
    rig.submit("too early");
    assert!(rig.refused().await.message.contains("no model is set up"));
    assert!(rig.snapshot().await.entries.is_empty());
    rig.send(set_model("fake/m"));
    assert!(rig.refused().await.message.contains("no provider"));
    // A fault is reported to the client that asked, and changes nothing.
    *lock(&wrong) = Some(Notice::new(NoticeKind::Config, "config.toml:3: unknown key"));
    rig.send(CommandBody::Session(SessionCommand::Reload));
    assert!(rig.refused().await.message.contains("config.toml:3"));
    rig.send(set_model("fake/m"));
    assert!(rig.refused().await.message.contains("no provider"));
    *lock(&wrong) = None;
    rig.send(CommandBody::Session(SessionCommand::Reload));
    assert!(matches!(rig.reply().await, ReplyEvent::DoneReply { .. }));
    rig.send(set_model("fake/m"));
    let changed =
        |e: &EventBody| matches!(e, EventBody::State(StateEvent::ModelChanged { .. })).then_some(());
    rig.until("the model", changed).await;
    assert_eq!(rig.turn("one").await.0, TurnStatus::Done);
    // 12 cents were spent; the limit that was read is 10.
    rig.submit("two");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Budget { limit, .. } if limit == "$0.10"), "{ask:?}");
}

/// A model that was just chosen here is stored in the settings: that is no news. Another one is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_that_is_in_use_is_no_news_when_it_is_read_again() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let model: Arc<Mutex<&str>> = Arc::new(Mutex::new("fake/m"));
    let (said, server) = (Arc::clone(&model), Arc::clone(&fake));
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.model = Some(ModelRef("fake/m".into()));
            let config = p.config.clone();
            p.user.settings = Some(SettingsSource {
                read: Arc::new(move || {
                    let model = *lock(&said);
                    let mut config = tiller_config::Config { model: Some(model.into()), ..config.clone() };
                    config.budget.session_hard = Some(model.len() as f64);
                    let mut providers = Providers::default();
                    providers.insert(Arc::clone(&server) as Arc<dyn Provider>);
                    Ok(LoadedSettings { config, providers })
                }),
                keep: Arc::new(|_| Ok(())),
            });
        })
        .await;
    let notice = |e: &EventBody| match e {
        EventBody::State(StateEvent::Notice { notice }) if notice.message.contains("Settings reloaded") => {
            Some(notice.message.clone())
        }
        _ => None,
    };
    rig.send(CommandBody::Session(SessionCommand::Reload));
    assert_eq!(rig.until("the first", notice).await, "Settings reloaded: budget");
    *lock(&model) = "fake/another";
    rig.send(CommandBody::Session(SessionCommand::Reload));
    let second = rig.until("the second", notice).await;
    assert!(second.contains("model (for new sessions)") && second.contains("budget"), "{second}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_to_a_local_server_is_handed_on_to_be_kept() {
    let place = Place::new();
    for fails in [false, true] {
        let kept: Arc<Mutex<Vec<String>>> = Arc::default();
        let into = Arc::clone(&kept);
        let mut rig = place
            .start_with(&Fake::new([]), |p| {
                p.user.settings = Some(SettingsSource {
                    read: Arc::new(|| Err(Notice::new(NoticeKind::Config, "not asked for"))),
                    keep: Arc::new(move |local| {
                        lock(&into).push(format!("{} {}", local.name, local.base()));
                        if fails { Err("the disk is full".into()) } else { Ok(()) }
                    }),
                });
            })
            .await;
        rig.send(set_model("vllm/some-model"));
        if fails {
            assert!(rig.notice("could not be saved").await.message.contains("the disk is full"));
        }
        rig.query(Query::Snapshot).await;
        let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
        while lock(&kept).is_empty() {
            assert!(std::time::Instant::now() < end, "it was not handed on");
            tokio::task::yield_now().await;
        }
        assert_eq!(*lock(&kept), ["vllm http://127.0.0.1:8000/v1"]);
        // Allowed now: a second choice does not store it again.
        rig.send(set_model("vllm/other"));
        rig.query(Query::Snapshot).await;
        assert_eq!(lock(&kept).len(), 1);
        rig.quit().await;
    }
}

/// Waiting agents start when more of them may run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_places_for_agents_are_taken_at_once() {
    use tiller_protocol::{AgentCommand, AgentState};
    let place = Place::new();
    let fake = Fake::with(|_, _| vec![Step::Hang]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.config.agents.running = 1;
            let (mut more, server) = (p.config.clone(), p.providers.clone());
            more.agents.running = 2;
            let read = move || Ok(LoadedSettings { config: more.clone(), providers: server.clone() });
            p.user.settings = Some(SettingsSource { read: Arc::new(read), keep: Arc::new(|_| Ok(())) });
        })
        .await;
    for goal in ["one", "two"] {
        let (role, model, cli) = (None, None, None);
        let spawn = AgentCommand::Spawn { goal: goal.into(), role, model, cli, isolated: false };
        rig.send(CommandBody::Agent(spawn));
    }
    crate::agents::delegation::state(&mut rig, "main/a1", AgentState::Running).await;
    crate::agents::delegation::state(&mut rig, "main/a2", AgentState::Queued).await;
    rig.send(CommandBody::Session(SessionCommand::Reload));
    crate::agents::delegation::state(&mut rig, "main/a2", AgentState::Running).await;
    rig.quit().await;
}

/// Before the first message fails. Nothing is blocked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_no_list_has_is_told_when_the_session_opens() {
    let place = Place::new();
    let change = |p: &mut tiller_engine::EngineConfig| {
        let var = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "x".to_owned());
        let formats = tiller_provider::ApiFormats::built_in();
        let redact = tiller_provider::Redact::default();
        p.providers = tiller_provider::build(&p.config, &formats, &var, None, &redact);
        p.session.model = Some(tiller_protocol::ModelRef("anthropic/claud-opus-5-5".into()));
    };
    let mut rig = place.start_with(&Fake::new([]), change).await;
    let notice = rig.notice("the list of models of anthropic has no claud-opus-5-5").await;
    assert!(notice.hints.iter().any(|hint| hint.contains("/model")), "{notice:?}");
}
