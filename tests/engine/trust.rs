//! The question whether to trust a folder's own files.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::ask::{TrustItem, TrustKind};
use tiller_protocol::event::{AskEvent, StateEvent, ToolEvent, TurnStatus};
use tiller_protocol::{AskBody, AskReply, Decision, EventBody, Profile};

use crate::agents::delegation::{delegate, first, result};
use crate::rig::*;
use crate::scripted_model::lock;
use tiller_engine::{EngineConfig, Human, TrustGrant, TrustLoss, TrustOffer};

type Said = Arc<Mutex<Vec<bool>>>;

/// A project that allows one command.
fn offer(p: &mut EngineConfig, said: &Said, fails: bool) {
    let said = Arc::clone(said);
    p.session.profile = Some(Profile::Ask);
    p.startup.trust = Some(TrustOffer {
        folder: "/work".into(),
        items: vec![TrustItem {
            kind: TrustKind::Permissions,
            change: None,
            path: ".tiller/permissions.yaml".into(),
            detail: "allows 1".into(),
            hash: "0".into(),
        }],
        changed: false,
        never: false,
        decide: Arc::new(move |yes| {
            lock(&said).push(yes);
            match (fails, yes) {
                (true, _) => Err("the disk is full".into()),
                (false, true) => Rule::parse(
                    Effect::Allow,
                    Source::Project,
                    "write_file(a.txt)",
                    &tiller_tool::Registry::built_in().catalog(),
                )
                .map(|r| TrustGrant { rules: vec![r], ..TrustGrant::default() }),
                (false, false) => Ok(TrustGrant::default()),
            }
        }),
    });
}

fn write() -> Vec<Step> {
    calls(&[("c1", "write_file", json!({"path": "a.txt", "content": "x"}))])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_brings_the_projects_rules_in_also_for_later_sessions() {
    let place = Place::new();
    let said = Said::default();
    let fake = Fake::new([write(), says("One."), write(), says("Two.")]);
    let mut rig = place.start_with(&fake, |p| offer(p, &said, false)).await;
    let ask = rig.asked().await;
    let AskBody::Trust { brings, changed: false, .. } = &ask.body else { panic!("{ask:?}") };
    assert_eq!(brings[0].path, ".tiller/permissions.yaml");
    // Before the answer its rules do not apply: the call asks.
    rig.submit("write");
    let other = rig.asked().await;
    let AskBody::Permission(p) = &other.body else { panic!("{other:?}") };
    let deny = Decision::Deny { comment: None };
    rig.answer(&other, AskReply::Permission { decision: deny, hash: p.hash.clone() });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    rig.answer(&ask, AskReply::Yes { value: None });
    assert!(rig.notice("trusted").await.message.contains("its rule applies"));
    rig.send(tiller_protocol::CommandBody::Session(tiller_protocol::command::SessionCommand::New));
    rig.snapshot().await;
    let asked_before = asks(&rig);
    assert_eq!(rig.turn("again").await, (TurnStatus::Done, "Two.".into()));
    assert_eq!(asks(&rig), asked_before, "the trusted rule allows it");
    assert_eq!((place.read("a.txt"), lock(&said).clone()), ("x".into(), vec![true]));
}

fn asks(rig: &Rig) -> usize {
    rig.seen.iter().filter(|e| matches!(&e.body, EventBody::Ask(AskEvent::PermissionAsked { .. }))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_that_is_taken_back_takes_the_projects_rules_back_before_the_next_message() {
    let place = Place::new();
    let (said, lost) = (Said::default(), Arc::new(Mutex::new(false)));
    let fake = Fake::new([write(), says("One."), write(), says("Two.")]);
    let look = Arc::clone(&lost);
    let change = |p: &mut EngineConfig| {
        offer(p, &said, false);
        p.user.trust = Some(Arc::new(move || {
            std::mem::take(&mut *lock(&look))
                .then(|| TrustLoss { settings: false, roles: tiller_config::agents::Definitions::default() })
        }));
    };
    let mut rig = place.start_with(&fake, change).await;
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Yes { value: None });
    rig.notice("trusted").await;
    assert_eq!(rig.turn("write").await, (TurnStatus::Done, "One.".into()));
    assert_eq!(asks(&rig), 0, "the trusted rule allows it");
    *lock(&lost) = true;
    rig.submit("again");
    rig.notice("you no longer trust this folder").await;
    let other = rig.asked().await;
    let AskBody::Permission(p) = &other.body else { panic!("{other:?}") };
    let deny = Decision::Deny { comment: None };
    rig.answer(&other, AskReply::Permission { decision: deny, hash: p.hash.clone() });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}

/// It counts before the next call, without a message of the user's: for the turn that runs, and for agents that were started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_that_is_taken_back_counts_before_the_next_call_of_each_agent() {
    for in_child in [false, true] {
        let place = Place::new();
        let (said, lost) = (Said::default(), Arc::new(Mutex::new(false)));
        let revoke = Arc::clone(&lost);
        let mut writes = 0;
        let fake = Fake::with(move |_, r| match (first(r).as_str(), result(r)) {
            ("go", None) if in_child => delegate(json!([{"goal": "write"}])),
            ("go", Some(_)) if in_child => says("Done."),
            _ if writes == 2 => says("Written."),
            _ => {
                // Between the first and the second call.
                *lock(&revoke) = writes == 1;
                writes += 1;
                write()
            }
        });
        let look = Arc::clone(&lost);
        let change = |p: &mut EngineConfig| {
            offer(p, &said, false);
            p.user.trust = Some(Arc::new(move || {
                std::mem::take(&mut *lock(&look)).then(|| TrustLoss {
                    settings: false,
                    roles: tiller_config::agents::Definitions::default(),
                })
            }));
        };
        let mut rig = place.start_with(&fake, change).await;
        let ask = rig.asked().await;
        rig.answer(&ask, AskReply::Yes { value: None });
        rig.notice("trusted").await;
        rig.submit("go");
        // The first call is allowed by the project's rule, the second one asks.
        let other = rig.asked().await;
        let AskBody::Permission(p) = &other.body else { panic!("{other:?}") };
        assert_eq!((other.agent.is_main(), writes_done(&rig)), (!in_child, 1), "in a child: {in_child}");
        let deny = Decision::Deny { comment: None };
        rig.answer(&other, AskReply::Permission { decision: deny, hash: p.hash.clone() });
        assert_eq!(rig.finished().await.0, TurnStatus::Done);
        let is_lost = |e: &EventBody| match e {
            EventBody::State(StateEvent::Notice { notice }) => notice.message.contains("no longer trust"),
            _ => false,
        };
        let notices: Vec<_> = rig.seen.iter().filter(|e| is_lost(&e.body)).collect();
        assert!(notices.len() == 1 && notices[0].agent.is_main(), "{notices:?}");
    }
}

/// How many calls wrote the file.
fn writes_done(rig: &Rig) -> usize {
    let is_done = |e: &EventBody| match e {
        EventBody::Tool(ToolEvent::ToolFinished { ok, name, .. }) => *ok && name == "write_file",
        _ => false,
    };
    rig.seen.iter().filter(|e| is_done(&e.body)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_now_says_nothing_never_is_kept_and_a_failure_is_told() {
    let place = Place::new();
    for (reply, fails, kept) in [
        (AskReply::Declined, false, vec![]),
        (AskReply::Never, false, vec![false]),
        (AskReply::Yes { value: None }, true, vec![true]),
    ] {
        let said = Said::default();
        let mut rig = place.start_with(&Fake::new([]), |p| offer(p, &said, fails)).await;
        let ask = rig.asked().await;
        rig.answer(&ask, reply);
        match (fails, kept.is_empty()) {
            (true, _) => assert!(rig.notice("could not be saved").await.message.contains("the disk is full")),
            (false, false) => drop(rig.notice("not be asked again").await),
            (false, true) => {
                rig.until("the answer", |e| {
                    matches!(e, EventBody::Ask(AskEvent::QuestionAnswered { .. })).then_some(())
                })
                .await;
            }
        }
        let seen = rig.quit().await;
        let answered = |e: &EventBody| matches!(e, EventBody::Ask(AskEvent::QuestionAnswered { .. }));
        assert!(seen.iter().any(|e| answered(&e.body)));
        assert_eq!(*lock(&said), kept);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_is_there_nothing_is_asked_and_nothing_is_trusted() {
    let place = Place::new();
    let said = Said::default();
    let fake = Fake::new([write(), says("Done.")]);
    let mut rig = place
        .start_with(&fake, |p| {
            offer(p, &said, false);
            p.user.human = Human::Absent;
        })
        .await;
    assert_eq!(rig.turn("write").await.0, TurnStatus::Refused);
    assert!(lock(&said).is_empty() && !place.work.join("a.txt").exists());
}
