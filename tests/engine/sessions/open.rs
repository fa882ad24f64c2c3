//! Opening, branching, settings, and two windows on one session.

use serde_json::json;
use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AskBody, AskReply, CommandBody, EntryBody, EventBody, Message, ModelRef, Profile, SendMode, SessionId,
};
use tiller_store::Store;
use tiller_tool::Workspace;

use crate::rig::*;
use tiller_engine::Open;

fn started(e: &EventBody) -> Option<()> {
    matches!(e, EventBody::Turn(TurnEvent::SessionStarted { .. })).then_some(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_gives_the_words_back_and_leaves_the_old_path() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), says("other")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let snap = rig.snapshot().await;
    let second = snap.entries[3].id;
    rig.send(CommandBody::Session(SessionCommand::Fork { entry: second }));
    let draft = rig
        .until("the branch", |e| match e {
            EventBody::State(StateEvent::HeadMoved { draft: Some(d), .. }) => Some(d.text.clone()),
            _ => None,
        })
        .await;
    assert_eq!(draft, "second");
    rig.turn("instead").await;
    let now = rig.snapshot().await;
    assert_eq!(
        shape(&now.entries)[1..],
        ["user Prompt first", "reply 1 EndTurn", "user Prompt instead", "reply 1 EndTurn"]
    );
    let store = tiller_store::Store::open(&place.db(), Default::default()).unwrap();
    assert_eq!(store.paths().tail(rig.session(), "main", 100).unwrap().entries, snap.entries);
    let ReplyEvent::OpsReply { ops, .. } = rig.query(tiller_protocol::command::Query::Ops { limit: 5 }).await
    else {
        panic!()
    };
    assert_eq!(ops[0].title, "fork");
}

/// Opens a session where there is no provider `fake`, and `demo/demo` is the configured model.
pub(crate) fn without_its_provider(p: &mut tiller_engine::EngineConfig, session: SessionId) {
    use tiller_provider::registry::{ApiFormats, build};
    p.config.model = Some("demo/demo".into());
    let redact = tiller_provider::Redact::default();
    p.providers = build(&p.config, &ApiFormats::built_in(), &|_| None, None, &redact);
    p.session.model = None;
    p.session.open = Open::Session(session);
}

/// A session of another machine or program may name a model that is not known here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_model_cannot_be_used_goes_on_with_the_configured_one_and_says_so() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let session = rig.session();
    rig.quit().await;
    let elsewhere = |p: &mut tiller_engine::EngineConfig| without_its_provider(p, session);
    let mut rig = place.start_with(&fake, elsewhere).await;
    let notice = rig.notice("fake/m").await;
    assert!(notice.message.contains("demo/demo answers instead"), "{notice:?}");
    let snap = rig.snapshot().await;
    assert_eq!(snap.model, ModelRef("demo/demo".into()));
    let prompt = snap.entries.iter().rfind(|e| e.body.begins_turn()).unwrap().id;
    rig.send(CommandBody::Session(SessionCommand::Fork { entry: prompt }));
    rig.until("the branch", |e| matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(()))
        .await;
    assert_eq!(rig.turn("hello").await.0, TurnStatus::Done, "the first message on the branch is answered");
    rig.quit().await;
    // One that is asked for is not replaced.
    let asked = |p: &mut tiller_engine::EngineConfig| {
        elsewhere(p);
        p.session.model = Some(ModelRef("fake/m".into()));
    };
    let mut rig = place.start_with(&fake, asked).await;
    assert_eq!(rig.snapshot().await.model, ModelRef("fake/m".into()));
    let seen = rig.quit().await;
    assert!(!seen.iter().any(|e| format!("{:?}", e.body).contains("answers instead")));
    // Nor where no user sees that another one is paid.
    let unseen = |p: &mut tiller_engine::EngineConfig| {
        elsewhere(p);
        p.user.human = tiller_engine::Human::Absent;
    };
    let mut rig = place.start_with(&fake, unseen).await;
    assert_eq!(rig.snapshot().await.model, ModelRef("fake/m".into()));
    assert_eq!(rig.turn("go").await.0, TurnStatus::Failed);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_left_branch_brought_is_carried_over() {
    let place = Place::new();
    let fake =
        Fake::new([says("one"), says("two, on the way that failed"), says("## Tried\nA retry."), says("ok")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let snap = rig.snapshot().await;
    let (second, tip) = (snap.entries[3].id, snap.entries[4].id);
    rig.send(CommandBody::Session(SessionCommand::Fork { entry: second }));
    rig.until("the branch", |e| matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(()))
        .await;
    let carry = |from| {
        let focus = Some("the error text".to_owned());
        CommandBody::Session(SessionCommand::CarryOver { from, focus })
    };
    rig.send(carry(tip));
    assert!(matches!(rig.reply().await, ReplyEvent::DoneReply { .. }));
    // The answer comes when the summary is saved, which its entry shows.
    let added = rig.seen.iter().any(|e| match &e.body {
        EventBody::Turn(TurnEvent::EntryAdded { node }) => {
            matches!(node.body, EntryBody::BranchSummary { .. })
        }
        _ => false,
    });
    assert!(added, "{:?}", rig.kinds());
    // The summariser saw that branch alone, and the user's focus.
    let asked = message_text(&fake.request(2), 0);
    assert!(
        asked.contains("second") && asked.contains("two, on the way") && asked.contains("the error text")
    );
    assert!(!asked.contains("first"), "{asked}");
    rig.turn("instead").await;
    let now = rig.snapshot().await;
    assert_eq!(
        shape(&now.entries)[1..],
        ["user Prompt first", "reply 1 EndTurn", "branch summary", "user Prompt instead", "reply 1 EndTurn"]
    );
    let (before, after) = (fake.request(0), fake.request(3));
    assert_eq!((before.system, before.tools), (after.system.clone(), after.tools.clone()));
    let told = message_text(&after, 2);
    assert!(told.contains("## Tried\nA retry.") && told.contains("Another approach was tried"), "{told}");
    // Summarising the open path or an unknown entry is refused.
    rig.send(carry(now.entries[2].id));
    assert!(rig.refused().await.message.contains("that branch has no messages"));
    rig.send(carry(tiller_protocol::EntryId(uuid::Uuid::nil())));
    rig.refused().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_kept_and_told() {
    let place = Place::new();
    let fake = Fake::new([says("a"), says("b")]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.turn("hi").await;
    rig.send(CommandBody::Session(SessionCommand::SetModel { model: ModelRef("nobody/x".into()) }));
    assert!(rig.refused().await.message.contains("nobody"));
    rig.send(CommandBody::Session(SessionCommand::SetModel { model: ModelRef("fake/other".into()) }));
    rig.send(CommandBody::Session(SessionCommand::SetProfile { profile: Profile::ReadOnly }));
    rig.send(CommandBody::Session(SessionCommand::Rename { id: session, title: "A name".into() }));
    let named = |e: &EventBody| {
        matches!(e, EventBody::State(StateEvent::TitleChanged { title }) if title == "A name").then_some(())
    };
    rig.until("the name", named).await;
    rig.turn("and now").await;
    let last = fake.request(1);
    assert_eq!(last.model, "other");
    let text = message_text(&last, 2);
    assert!(
        text.contains("the model is now fake/other") && text.contains("the permission mode is now read-only"),
        "{text}"
    );
    rig.quit().await;
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.open = Open::Last;
            p.session.model = None;
            p.session.profile = None;
        })
        .await;
    let snap = rig.snapshot().await;
    assert_eq!((snap.session.id, snap.session.title.as_str()), (session, "A name"));
    assert_eq!((snap.model.0.as_str(), snap.profile), ("fake/other", Profile::ReadOnly));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_a_session_that_is_open_elsewhere_is_looked_at_or_branched() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), says("three")]);
    let mut first = place.start(&fake).await;
    first.turn("hello").await;
    let session = first.session();
    let mut second = place.start_with(&fake, |p| p.session.open = Open::Session(session)).await;
    let ask = second.asked().await;
    assert!(matches!(ask.body, AskBody::SessionBusy { .. }));
    second.submit("me too");
    assert!(second.refused().await.message.contains("read-only"));
    second.answer(&ask, AskReply::Branch);
    second.notice("is open").await;
    assert_eq!(second.turn("on my branch").await.0, TurnStatus::Done);
    assert_eq!(first.turn("on the main path").await.0, TurnStatus::Done);
    let main = shape(&first.snapshot().await.entries);
    let branch = shape(&second.snapshot().await.entries);
    assert_eq!(main[3], "user Prompt on the main path");
    assert_eq!(branch[3], "user Prompt on my branch");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_a_branch_beside_another_window_is_held_and_leaves_what_waits_there() {
    let place = Place::new();
    let fake = Fake::new([says("one"), vec![Step::Hang], says("two")]);
    let mut first = place.start(&fake).await;
    let session = first.session();
    first.turn("hello").await;
    first.submit("hang");
    fake.requested(2).await;
    first.submit_as(Message::text("waits"), SendMode::Queue);
    let store = Store::open(&place.db(), Default::default()).unwrap();
    let end = std::time::Instant::now() + DEADLINE;
    while store.unfinished().queue(session, "main").unwrap().len() != 1 {
        assert!(std::time::Instant::now() < end);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let mut second = place.start_with(&fake, |p| p.session.open = Open::Session(session)).await;
    let ask = second.asked().await;
    second.answer(&ask, AskReply::Branch);
    second.notice("is open").await;
    assert!(second.snapshot().await.queue.is_empty(), "what waits in the other window is not ours");
    assert_eq!(second.turn("on my branch").await.1, "two");
    let branch = store.sessions().get(session).unwrap().head;
    assert_ne!(branch, "main");
    assert!(store.leases().holder(session, &branch).unwrap().is_some(), "held");
    // A third window finds the branch taken, too.
    let mut third = place.start_with(&fake, |p| p.session.open = Open::Last).await;
    let ask = third.asked().await;
    assert!(matches!(ask.body, AskBody::SessionBusy { .. }), "{ask:?}");
    third.quit().await;
    second.quit().await;
    assert!(store.leases().holder(session, &branch).unwrap().is_none(), "given back");
    assert_eq!(
        store.unfinished().queue(session, "main").unwrap().len(),
        1,
        "the first window's message is there"
    );
    assert!(store.unfinished().interrupted(session, "main").unwrap().is_some(), "and its turn");
    first.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_of_ones_own_takes_the_lease_and_what_waits_along() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), vec![Step::Hang]]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.turn("first").await;
    rig.turn("second").await;
    rig.submit("third");
    fake.requested(3).await;
    rig.submit_as(Message::text("waits"), SendMode::Queue);
    rig.interrupt(false);
    rig.finished().await;
    let entry = rig.snapshot().await.entries[3].id;
    rig.send(CommandBody::Session(SessionCommand::Fork { entry }));
    rig.until("the branch", |e| {
        matches!(e, EventBody::State(StateEvent::HeadMoved { draft: Some(_), .. })).then_some(())
    })
    .await;
    let store = Store::open(&place.db(), Default::default()).unwrap();
    let branch = store.sessions().get(session).unwrap().head;
    let end = std::time::Instant::now() + DEADLINE;
    while store.leases().holder(session, &branch).unwrap().is_none()
        || store.unfinished().queue(session, &branch).unwrap().len() != 1
    {
        assert!(std::time::Instant::now() < end);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(store.leases().holder(session, "main").unwrap().is_none());
    assert!(store.unfinished().queue(session, "main").unwrap().is_empty());
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openings_that_were_stopped_give_their_lease_back() {
    let place = Place::new();
    let fake = Fake::new([says("one")]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.turn("hello").await;
    let mut stopped = 0;
    for _ in 0..20 {
        rig.send(CommandBody::Session(SessionCommand::New));
        rig.until("a fresh session", started).await;
        rig.send(CommandBody::Session(SessionCommand::Open { id: session }));
        rig.interrupt(false);
        // The session may be opened before the stop arrives.
        let refused = rig
            .until("either end", |e| match e {
                EventBody::Reply(r) => Some(matches!(**r, ReplyEvent::ErrorReply { .. })),
                other => started(other).map(|()| false),
            })
            .await;
        stopped += u32::from(refused);
    }
    assert!(stopped > 0, "never quick enough");
    // A lease that is never released would keep the session closed for good; a lease that is being released is free soon.
    let end = std::time::Instant::now() + DEADLINE;
    loop {
        rig.send(CommandBody::Session(SessionCommand::New));
        rig.until("a fresh session", started).await;
        rig.send(CommandBody::Session(SessionCommand::Open { id: session }));
        rig.until("the session", started).await;
        if !rig.snapshot().await.read_only {
            break;
        }
        assert!(std::time::Instant::now() < end, "still held, by nobody");
    }
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_another_folder_says_so_and_asks_again() {
    let place = Place::new();
    let fake = Fake::new([says("one")]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.turn("hello").await;
    rig.quit().await;
    let store = Store::open(&place.db(), Default::default()).unwrap();
    assert_eq!(store.sessions().get(session).unwrap().profile, Profile::Full);
    store.rules().add(session, "terminal(rm *)").wait().unwrap();
    let other = place.tmp.path().canonicalize().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    let command = calls(&[("c1", "terminal", json!({"command": "rm -f x"}))]);
    let fake = Fake::new([command, says("Denied.")]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.workspace = Workspace::new(&other).unwrap();
            p.session.open = Open::Session(session);
            p.session.profile = None;
        })
        .await;
    let notice = rig.notice("was created in").await;
    assert!(notice.message.contains(&place.work.display().to_string()), "{notice:?}");
    assert_eq!(rig.snapshot().await.profile, Profile::Ask);
    rig.submit("remove it");
    let ask = rig.asked().await;
    assert!(matches!(ask.body, AskBody::Permission(_)), "earlier approvals do not apply here");
    rig.quit().await;
    assert_eq!(store.sessions().get(session).unwrap().profile, Profile::Full, "at home it is as it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_only_looks_changes_nothing() {
    let place = Place::new();
    let fake = Fake::new([says("one")]);
    let mut first = place.start(&fake).await;
    let session = first.session();
    first.turn("hello").await;
    first.quit().await;
    let store = Store::open(&place.db(), Default::default()).unwrap();
    let before = store.sessions().get(session).unwrap();
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.open = Open::Session(session);
            p.session.read_only = true;
        })
        .await;
    for command in [
        SessionCommand::SetModel { model: ModelRef("fake/other".into()) },
        SessionCommand::SetProfile { profile: Profile::ReadOnly },
        SessionCommand::SetBudget { usd: 1.0 },
        SessionCommand::Rename { id: session, title: "other".into() },
        SessionCommand::Archive { id: session, archived: true },
    ] {
        rig.send(CommandBody::Session(command));
        assert!(rig.refused().await.message.contains("read-only"));
    }
    rig.quit().await;
    assert_eq!(store.sessions().get(session).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_for_a_session_that_is_not_there_is_refused_and_saving_goes_on() {
    let place = Place::new();
    let fake = Fake::new([says("one")]);
    let mut rig = place.start(&fake).await;
    let nobody = SessionId(uuid::Uuid::from_u128(7));
    rig.send(CommandBody::Session(SessionCommand::Rename { id: nobody, title: "x".into() }));
    rig.refused().await;
    assert_eq!(rig.turn("hello").await.0, TurnStatus::Done);
    assert!(!rig.kinds().iter().any(|k| k == "saving"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_a_session_asks_about_what_runs_there() {
    let place = Place::new();
    let run = json!({"command": "sleep 300", "background": true});
    let fake = Fake::new([calls(&[("c1", "terminal", run)]), says("It runs.")]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.turn("go").await;
    rig.send(CommandBody::Session(SessionCommand::New));
    let ask = rig.asked().await;
    let AskBody::Clarify { question, choices, decides, .. } = &ask.body else { panic!("{ask:?}") };
    assert!(question.contains("sleep 300"), "{question}");
    assert_eq!(decides, &[1], "what ends something is chosen by its number only");
    rig.answer(&ask, AskReply::Choice { answers: vec![choices[0].clone()] });
    assert!(rig.refused().await.message.contains("stay"));
    assert_eq!(rig.snapshot().await.session.id, session);
    rig.send(CommandBody::Session(SessionCommand::New));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Choice { answers: vec![choices[1].clone()] });
    rig.until("the new session", started).await;
    assert_ne!(rig.snapshot().await.session.id, session);
    // A shell line of the user's counts, too.
    let line = TurnCommand::Shell { line: "sleep 300".into(), share: true };
    rig.send(CommandBody::Turn(line));
    rig.send(CommandBody::Session(SessionCommand::Open { id: session }));
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Clarify { question, .. } if question.contains("! sleep 300")));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_open_session_can_be_opened_again_at_once() {
    let place = Place::new();
    let fake = Fake::new([says("one")]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.until("the start", started).await;
    // Its own lease may not even be on disk yet.
    rig.send(CommandBody::Session(SessionCommand::Open { id: session }));
    rig.until("the session", started).await;
    let snapshot = rig.snapshot().await;
    assert_eq!((snapshot.session.id, snapshot.read_only), (session, false));
    assert_eq!(rig.turn("hello").await.1, "one");
    rig.quit().await;
}
