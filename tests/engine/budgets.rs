//! Budgets, tiers and titles.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tiller_protocol::command::{ContextCommand, CostBy, SessionCommand, TurnCommand};
use tiller_protocol::event::{StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AgentId, AskBody, AskReply, CommandBody, Cost, EventBody, ManualClock, ModelRef, SessionId, Time, Usage,
};
use tiller_store::{ModelCall, Options, Store};

use crate::rig::*;
use crate::scripted_model::lock;
use tiller_engine::EngineConfig;

/// Prices a reply of 20 tokens at 12 cents; input is free.
pub(crate) fn priced(p: &mut EngineConfig) {
    priced_at(p, 0.0, 6000.0);
}

/// Prices in dollars per million tokens.
pub(crate) fn priced_at(p: &mut EngineConfig, input: f64, output: f64) {
    let info =
        tiller_config::schema::ModelInfo { input: Some(input), output: Some(output), ..Default::default() };
    let mut provider: tiller_config::schema::Provider =
        serde_json::from_value(json!({"kind": "openai-chat"})).unwrap();
    provider.models.insert("m".into(), info);
    p.config.providers.insert("fake".into(), provider);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hard_budget_stops_and_asks() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.budget.session_soft = Some(0.05);
            p.config.budget.session_hard = Some(0.2);
        })
        .await;
    rig.turn("one").await;
    rig.submit("two");
    rig.notice("more than the warning limit").await;
    rig.finished().await;
    rig.submit("three");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Budget { spent, .. } if spent == "$0.24"), "{ask:?}");
    rig.answer(&ask, AskReply::Declined);
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Limit);
    assert!(notice.unwrap().message.contains("used up"));
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Yes { value: Some("5".into()) });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(fake.count(), 3);
}

/// A limit that cannot be enforced: where no user can be asked, nothing is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_without_a_price_does_not_run_past_a_budget_unseen() {
    type Limit = fn(&mut EngineConfig);
    let limits: [(&str, Limit); 4] = [
        ("this session ($1.00)", |p| p.limits.cost = Some(Cost::from_usd(1.0))),
        ("this session ($2.00)", |p| p.config.budget.session_hard = Some(2.0)),
        ("today ($3.00)", |p| p.config.budget.day_hard = Some(3.0)),
        ("the tier main ($4.00)", |p| p.config.budget.tiers.extend([("main".to_owned(), 4.0)])),
    ];
    for (words, limit) in limits {
        let place = Place::new();
        let fake = Fake::with(|_, _| says("x"));
        let mut rig = place
            .start_with(&fake, |p| {
                limit(p);
                p.user.human = tiller_engine::Human::Absent;
            })
            .await;
        rig.submit("go");
        let (status, _, notice) = rig.finished().await;
        assert_eq!(status, TurnStatus::Limit, "{words}");
        let notice = notice.unwrap();
        assert!(
            notice.message.contains("price is not known") && notice.message.contains(words),
            "{notice:?}"
        );
        assert!(notice.hints[0].contains("[providers.fake.models.\"m\"]"), "{notice:?}");
        assert_eq!(fake.count(), 0, "{words}: nothing was sent");
        rig.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_may_allow_a_model_without_a_price_for_the_session() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place
        .start_with(&fake, |p| {
            p.config.budget.session_hard = Some(1.0);
            // No title is requested from a model that was not approved.
            p.config.tiers.fast = Some("fake/fast".into());
            p.session.titles = true;
        })
        .await;
    rig.submit("one");
    let ask = rig.asked().await;
    assert!(
        matches!(&ask.body, AskBody::Unpriced { model, why } if model == "fake/m" && why.contains("$1.00")),
        "{ask:?}"
    );
    rig.answer(&ask, AskReply::Declined);
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Limit);
    assert!(notice.unwrap().message.contains("price is not known"));
    assert_eq!(fake.count(), 0);
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Yes { value: None });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(rig.turn("two").await.0, TurnStatus::Done, "asked once");
    let seen: Vec<String> = lock(&fake.requests).iter().map(|r| r.model.clone()).collect();
    assert!(seen.iter().all(|m| m == "m"), "the fast model was asked: {seen:?}");
    rig.quit().await;
}

/// The usage of servers that send no counts is estimated and counts against the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_says_nothing_of_usage_does_not_run_past_a_budget() {
    let place = Place::new();
    let fake = Fake::with(|_, _| {
        let mut steps = words(0, "x");
        steps.push(stop(tiller_protocol::StopReason::EndTurn));
        steps
    });
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.budget.session_hard = Some(0.005);
            p.user.human = tiller_engine::Human::Absent;
        })
        .await;
    assert_eq!(rig.turn("one").await.0, TurnStatus::Done);
    assert_eq!(rig.turn("two").await.0, TurnStatus::Limit);
    assert_eq!(fake.count(), 1);
    let agent = rig.snapshot().await.agents[0].clone();
    assert_eq!(agent.cost, Some(Cost::from_usd(0.006)), "one token of output");
    assert!(agent.usage.estimated && agent.usage.input > 100, "{:?}", agent.usage);
    rig.quit().await;
}

/// A request whose input alone costs more than what is left is not sent, and the notice says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_input_does_not_fit_is_not_sent() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place
        .start_with(&fake, |p| {
            priced_at(p, 1000.0, 0.0);
            p.limits.cost = Some(Cost::from_usd(0.01));
            p.user.human = tiller_engine::Human::Absent;
        })
        .await;
    rig.submit("one");
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Limit);
    let said = notice.unwrap().message;
    assert!(said.contains("was not sent") && said.contains("its input alone costs about $"), "{said}");
    assert_eq!(fake.count(), 0);
    rig.quit().await;
    // The user is asked, and a yes makes room for it.
    let mut rig = place
        .start_with(&fake, |p| {
            priced_at(p, 1000.0, 0.0);
            p.limits.cost = Some(Cost::from_usd(0.01));
        })
        .await;
    rig.submit("two");
    let ask = rig.asked().await;
    assert!(
        matches!(&ask.body, AskBody::Budget { next: Some(next), .. } if next.starts_with('$')),
        "{ask:?}"
    );
    rig.answer(&ask, AskReply::Declined);
    assert_eq!(rig.finished().await.0, TurnStatus::Limit);
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Yes { value: None });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fast_tiers_budget_stops_titles() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.tiers.fast = Some("fake/fast".into());
            let models = &mut p.config.providers.get_mut("fake").unwrap().models;
            models.insert("fast".into(), models["m"].clone());
            p.config.budget.tiers.insert("fast".into(), 0.0);
            p.session.titles = true;
        })
        .await;
    rig.turn("make the retry logic honour the header").await;
    let title = rig
        .until("a title", |e| match e {
            EventBody::State(StateEvent::TitleChanged { title }) => Some(title.clone()),
            _ => None,
        })
        .await;
    assert_eq!(title, "make the retry logic honour the header");
    assert_eq!(fake.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn titles_come_after_the_turn() {
    let place = Place::new();
    let fake =
        Fake::with(
            |_, r| if r.system.starts_with("Give this") { says("\"Retry logic\"") } else { says("ok") },
        );
    let mut rig = place.start_with(&fake, |p| p.session.titles = true).await;
    rig.turn("make the retry logic honour the header").await;
    let title = rig
        .until("a title", |e| match e {
            EventBody::State(StateEvent::TitleChanged { title }) => Some(title.clone()),
            _ => None,
        })
        .await;
    assert_eq!(title, "Retry logic");
    rig.turn("more").await;
    assert_eq!(fake.count(), 3, "asked once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cost_of_a_title_is_booked_where_it_was_asked_for() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let held = Arc::clone(&gate);
    let fake = Fake::with(move |_, r| {
        if r.system.starts_with("Give this") {
            let mut steps = vec![Step::Gate(Arc::clone(&held))];
            steps.extend(says("A title"));
            steps
        } else {
            says("ok")
        }
    });
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.session.titles = true;
        })
        .await;
    let session = rig.session();
    rig.turn("hello").await;
    fake.requested(2).await;
    rig.send(CommandBody::Session(SessionCommand::New));
    rig.until("the new session", |e| {
        matches!(e, EventBody::Turn(TurnEvent::SessionStarted { resumed: false, .. })).then_some(())
    })
    .await;
    gate.pass_one();
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let calls =
        || store.costs().by(Some(session), CostBy::Model).unwrap().iter().map(|r| r.calls).sum::<u64>();
    let end = std::time::Instant::now() + DEADLINE;
    while calls() < 2 {
        assert!(std::time::Instant::now() < end, "the title's call is not booked");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(store.sessions().get(session).unwrap().summary.cost, Some(Cost::from_usd(0.24)));
    let titled = || store.sessions().get(session).unwrap().summary.title == "A title";
    while !titled() {
        assert!(std::time::Instant::now() < end, "the title is given where it was asked for");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_persons_title_stays_and_an_early_end_leaves_one_too() {
    for named in [true, false] {
        let place = Place::new();
        let title = |r: &tiller_provider::Request| r.system.starts_with("Give this");
        let fake = Fake::with(move |_, r| if title(r) { vec![Step::Hang] } else { says("ok") });
        let mut rig = place.start_with(&fake, |p| p.session.titles = true).await;
        let session = rig.session();
        rig.turn("make the retry logic honour the header").await;
        fake.requested(2).await;
        let store = Store::open(&place.db(), Options::default()).unwrap();
        if named {
            // Spent by another process, which this one does not notice.
            store.sessions().set_title(session, "Mine", true, None).wait().unwrap();
        }
        rig.quit().await;
        let want = if named { "Mine" } else { "make the retry logic honour the header" };
        assert_eq!(store.sessions().get(session).unwrap().summary.title, want);
    }
}

/// Side calls never exceed a limit, like the requests of turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_call_whose_input_does_not_fit_is_not_sent() {
    let place = Place::new();
    // 10 cents for each request.
    let fake = Fake::with(|_, _| {
        let mut steps = words(0, &"word ".repeat(20_000));
        let usage = Usage { input: 100_000, output: 20, ..Usage::default() };
        steps.extend([
            Step::Chunk(tiller_provider::Chunk::Usage(usage)),
            stop(tiller_protocol::StopReason::EndTurn),
        ]);
        steps
    });
    let mut rig = place
        .start_with(&fake, |p| {
            priced_at(p, 1.0, 0.0);
            for provider in p.config.providers.values_mut() {
                provider.models.values_mut().for_each(|m| m.window = Some(1_000_000));
            }
            p.limits.cost = Some(Cost::from_usd(0.301));
        })
        .await;
    for said in ["one", "two", "three"] {
        assert_eq!(rig.turn(said).await.0, TurnStatus::Done, "{said}");
    }
    let fits_not = |why: &str| why.contains("its input alone costs about") && why.contains("is left");
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    let why = rig.refused().await.message;
    assert!(fits_not(&why), "{why}");
    rig.send(CommandBody::Turn(TurnCommand::Aside { question: "why?".into() }));
    let why = rig.refused().await.message;
    assert!(fits_not(&why), "{why}");
    assert_eq!(fake.count(), 3);
    rig.quit().await;
}

/// 2026-11-21T22:00:00Z.
const EVENING: Time = Time(1_795_298_400_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_days_budget_counts_every_process_and_begins_anew_at_midnight() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let clock = Arc::new(ManualClock::new(EVENING));
    let options = || Options {
        clock: Arc::clone(&clock) as Arc<dyn tiller_protocol::Clock>,
        zone: Some(jiff::tz::TimeZone::UTC),
        ..Options::default()
    };
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.environment.clock = Arc::clone(&clock) as Arc<dyn tiller_protocol::Clock>;
            p.store = Store::open(&place.db(), options()).unwrap();
            p.config.budget.day_soft = Some(0.20);
            p.config.budget.day_hard = Some(0.50);
        })
        .await;
    rig.turn("one").await;
    // Another process spends 30 cents.
    let other = Store::open(&place.db(), options()).unwrap();
    let call = ModelCall {
        agent: AgentId::main(),
        model: ModelRef("other/m".into()),
        tier: "main".into(),
        time: EVENING,
        usage: Usage::default(),
        cost: Some(Cost::from_usd(0.30)),
    };
    other.costs().record(SessionId(uuid::Uuid::from_u128(9)), call).wait().unwrap();
    rig.submit("two");
    assert!(rig.notice("more than the warning limit").await.message.contains("today has cost $0.42"));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    rig.submit("three");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Budget { what, spent, .. } if what == "today" && spent == "$0.54"));
    rig.answer(&ask, AskReply::Declined);
    assert_eq!(rig.finished().await.0, TurnStatus::Limit);
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Yes { value: Some("100".into()) });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    // Midnight: nothing is spent, and yesterday's raised limit no longer holds.
    clock.advance(Duration::from_secs(3 * 3600));
    for text in ["four", "five", "six", "seven"] {
        assert_eq!(rig.turn(text).await.0, TurnStatus::Done, "{text}");
    }
    rig.turn("eight").await;
    rig.submit("nine");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Budget { spent, .. } if spent == "$0.60"), "{ask:?}");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tier_has_a_budget_of_its_own() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.tiers.main = Some("fake/m".into());
            p.config.budget.tiers.insert("main".into(), 0.20);
        })
        .await;
    rig.turn("one").await;
    rig.turn("two").await;
    rig.submit("three");
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Limit);
    assert!(notice.unwrap().message.contains("budget for the tier main is used up: $0.20"));
    // Another model without a tier counts as main, too; the deep tier has no limit here, but asks.
    assert_eq!(fake.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deep_tier_asks_once_for_a_session() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("x"));
    let mut rig = place.start_with(&fake, |p| p.config.tiers.deep = Some("fake/m".into())).await;
    rig.submit("think");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::DeepTier { model, .. } if model == "fake/m"), "{ask:?}");
    assert_eq!(fake.count(), 0, "nothing was sent before the yes");
    rig.answer(&ask, AskReply::Declined);
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Limit);
    assert!(notice.unwrap().message.contains("was not approved"));
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Yes { value: None });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(rig.turn("again").await.0, TurnStatus::Done, "asked once");
    // Another session asks again.
    rig.send(CommandBody::Session(SessionCommand::New));
    rig.until("the new session", |e| {
        matches!(e, EventBody::Turn(TurnEvent::SessionStarted { resumed: false, .. })).then_some(())
    })
    .await;
    rig.submit("once more");
    rig.asked().await;
    rig.quit().await;
    // Where no user can be asked it is refused.
    let mut rig = place
        .start_with(&fake, |p| {
            p.config.tiers.deep = Some("fake/m".into());
            p.user.human = tiller_engine::Human::Absent;
        })
        .await;
    assert_eq!(rig.turn("think").await.0, TurnStatus::Refused);
    rig.quit().await;
}
