//! Rows of the fault matrix, driven through the whole engine. The name says which.

use std::time::{Duration, Instant};

use serde_json::json;
use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::event::{StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::{CommandBody, EventBody, StopReason};
use tiller_provider::{Chunk, ProviderError};

use crate::rig::*;
use crate::turns::failing_tools::Naughty;

/// Milliseconds that suffice on an idle machine; tests share one with builds.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) fn go_on(rig: &mut Rig) {
    rig.send(CommandBody::Turn(TurnCommand::Continue));
}

fn busy(after: Option<u64>) -> Vec<Step> {
    vec![Step::Refuse(ProviderError::Wait { message: "busy".into(), after: after.map(Duration::from_secs) })]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_busy_servers_are_tried_again_with_a_countdown() {
    let place = Place::new();
    let fake = Fake::new([busy(None), busy(None), says("There.")]);
    let mut rig = place.start(&fake).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "There."));
    let tries: Vec<(u32, u32, bool)> = rig
        .seen
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Turn(TurnEvent::Retrying { attempt, of, discard, .. }) => {
                Some((*attempt, *of, *discard))
            }
            _ => None,
        })
        .collect();
    assert_eq!(tries, [(2, 6, false), (3, 6, false)]);
    assert_eq!(fake.count(), 3);
    assert_eq!(fake.request(0).messages, fake.request(2).messages, "the same request again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_escape_ends_a_long_wait_at_once_and_skip_shortens_it() {
    let place = Place::new();
    let fake = Fake::new([busy(Some(100_000)), busy(Some(100_000)), says("There.")]);
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    let retrying = |e: &EventBody| matches!(e, EventBody::Turn(TurnEvent::Retrying { .. })).then_some(());
    rig.until("a wait", retrying).await;
    let began = Instant::now();
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    go_on(&mut rig);
    rig.until("a wait", retrying).await;
    rig.send(CommandBody::Turn(TurnCommand::SkipWait));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_parked_turn_goes_on_as_it_stands() {
    let place = Place::new();
    let fake = Fake::new([vec![Step::Refuse(ProviderError::Auth("the key is wrong".into()))]]);
    let mut rig = place.start(&fake).await;
    rig.submit("my long question");
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Failed);
    assert!(notice.unwrap().message.contains("the key is wrong"));
    assert_eq!(fake.count(), 1, "no retry");
    fake.push(says("Now it works."));
    go_on(&mut rig);
    assert_eq!(rig.finished().await.1, "Now it works.");
    assert_eq!(fake.request(0).messages, fake.request(1).messages, "no lost and no doubled input");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p3_a_cut_at_every_chunk_runs_nothing_and_doubles_nothing() {
    let place = Place::new();
    let whole = {
        let mut s = calls(&[("c1", "write_file", json!({"path": "made.txt", "content": "x"}))]);
        s.truncate(s.len() - 1);
        s
    };
    for cut in 0..=whole.len() {
        let mut first: Vec<Step> = whole[..cut].to_vec();
        first.push(Step::Fail(ProviderError::Network("cut".into())));
        let fake = Fake::new([first, says("Whole.")]);
        let mut rig = place.start(&fake).await;
        let (status, text) = rig.turn("go").await;
        assert_eq!((status, text.as_str()), (TurnStatus::Done, "Whole."), "cut at {cut}");
        assert!(!place.work.join("made.txt").exists(), "cut at {cut}: an incomplete call was run");
        let snap = rig.snapshot().await;
        let entries = shape(&snap.entries);
        assert!(entries[2].starts_with("note Sent again (try 2 of"), "cut at {cut}: {entries:?}");
        assert_eq!(entries[3..], ["reply 1 EndTurn"], "cut at {cut}");
        let discards = rig
            .seen
            .iter()
            .any(|e| matches!(&e.body, EventBody::Turn(TurnEvent::Retrying { discard: true, .. })));
        assert_eq!(discards, cut > 0, "cut at {cut}: what was shown is taken back");
        rig.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p3_without_another_try_the_partial_text_is_kept_and_marked() {
    let place = Place::new();
    let mut first = words(0, "half of it");
    first.push(Step::Fail(ProviderError::Rejected("overloaded for good".into())));
    let fake = Fake::new([first, says("The rest.")]);
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Failed);
    let snap = rig.snapshot().await;
    assert_eq!(shape(&snap.entries)[2..], ["reply 1 Cut(\"overloaded for good\")"]);
    go_on(&mut rig);
    rig.finished().await;
    assert_valid(&fake.request(1));
    assert!(message_text(&fake.request(1), 2).contains("cut off"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p6_a_failure_in_the_stream_ends_the_turn_at_once() {
    let place = Place::new();
    let mut first = words(0, "x");
    // The server would keep the connection open.
    first.extend([Step::Fail(ProviderError::Rejected("the server says no".into())), Step::Hang]);
    let mut rig = place.start(&Fake::new([first])).await;
    let began = Instant::now();
    rig.submit("go");
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Failed);
    assert_eq!(notice.unwrap().message, "the server says no");
    assert!(began.elapsed() < SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_bad_calls_get_one_result_each_and_the_model_goes_on() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut first = calls(&[
        ("d", "read_file", read_args("a.txt")),
        ("d", "read_file", read_args("a.txt")),
        ("", "read_fil", json!({})),
        ("w", "read_file", json!({"path": 7})),
        ("x", "launch_rocket", json!({})),
    ]);
    let at = first.len() - 2;
    let bad = [
        Step::Chunk(Chunk::ToolBegin {
            index: 20,
            id: "deep".into(),
            name: "read_file".into(),
            vendor: None,
        }),
        Step::Chunk(Chunk::ToolArgs { index: 20, json: deep }),
        Step::Chunk(Chunk::BlockEnd { index: 20 }),
    ];
    first.splice(at..at, bad);
    let fake = Fake::new([first, says("I see.")]);
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    let r = fake.request(1);
    assert_valid(&r);
    assert_eq!(r.messages.len(), 2 + 6);
    let all: String = (2..8).map(|i| message_text(&r, i) + "\n").collect();
    for part in
        ["A", "Did you mean 'read_file'", "There is no tool named 'launch_rocket'", "could not be read"]
    {
        assert!(all.contains(part), "{part} in {all}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_500_calls_are_capped_and_all_answered() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let many: Vec<(String, &str, serde_json::Value)> =
        (0..500).map(|i| (format!("c{i}"), "read_file", read_args("a.txt"))).collect();
    let many: Vec<(&str, &str, serde_json::Value)> =
        many.iter().map(|(id, name, args)| (id.as_str(), *name, args.clone())).collect();
    let fake = Fake::new([calls(&many), says("Enough.")]);
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    let r = fake.request(1);
    assert_valid(&r);
    assert_eq!(r.messages.len(), 502);
    assert!(message_text(&r, 501).contains("at most 64 calls"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p9_an_overflow_is_compacted_and_tried_again() {
    let place = Place::new();
    let fake = Fake::with(|_, r| {
        let summary = r.system.contains("memory of a pair-programming session");
        let size: usize = (0..r.messages.len()).map(|i| message_text(r, i).len()).sum();
        if summary {
            says("## Goal\nA SUMMARY")
        } else if size > 30_000 {
            vec![Step::Refuse(ProviderError::TooLong("too many tokens".into()))]
        } else {
            says("fine")
        }
    });
    let mut rig = place.start(&fake).await;
    rig.turn(&format!("first {}", "x".repeat(20_000))).await;
    let (status, text) = rig.turn(&format!("second {}", "y".repeat(15_000))).await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "fine"));
    let snap = rig.snapshot().await;
    let shape = shape(&snap.entries);
    assert_eq!(shape[shape.len() - 3..], ["compaction", "prefix", "reply 1 EndTurn"]);
    let last = fake.request(fake.count() - 1);
    assert!(message_text(&last, 0).contains("A SUMMARY"));
    assert!(message_text(&last, last.messages.len() - 1).starts_with("second"));
    assert_valid(&last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p9_a_single_message_that_is_too_long_stops_with_the_reason() {
    let place = Place::new();
    let fake = Fake::with(|_, _| vec![Step::Refuse(ProviderError::TooLong("too many tokens".into()))]);
    let mut rig = place.start(&fake).await;
    rig.submit("x");
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Failed);
    assert!(notice.is_some());
    assert_eq!(fake.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_empty_replies_thoughts_refusals_and_length_stops_leave_a_valid_history() {
    let place = Place::new();
    let thought =
        || vec![Step::Chunk(Chunk::Thinking { index: 0, text: "hm".into() }), stop(StopReason::EndTurn)];
    let rows: Vec<(Vec<Vec<Step>>, TurnStatus, &str)> = vec![
        (vec![vec![stop(StopReason::EndTurn)], vec![stop(StopReason::EndTurn)]], TurnStatus::Failed, "empty"),
        (vec![thought(), thought()], TurnStatus::Failed, "empty"),
        (vec![thought(), says("ok")], TurnStatus::Done, ""),
        (
            vec![vec![words(0, "No.")[0].clone(), stop(StopReason::Refusal("policy".into()))]],
            TurnStatus::Failed,
            "policy",
        ),
        (cut_off("lo", 4), TurnStatus::Failed, "output limit"),
        (cut_off("lo", 3).into_iter().chain([says("ng")]).collect(), TurnStatus::Done, ""),
    ];
    for (replies, expected, notice) in rows {
        let fake = Fake::new(replies);
        let mut rig = place.start(&fake).await;
        rig.submit("go");
        let (status, _, said) = rig.finished().await;
        assert_eq!(status, expected, "{notice}");
        assert!(said.map_or(notice.is_empty(), |n| n.message.contains(notice)), "{notice}");
        fake.push(says("after"));
        assert_eq!(rig.turn("and now?").await.0, TurnStatus::Done);
        assert_valid(&fake.request(fake.count() - 1));
        rig.quit().await;
    }
}

/// Replies of this text that the output limit cuts off.
fn cut_off(text: &str, count: usize) -> Vec<Vec<Step>> {
    (0..count).map(|_| vec![words(0, text)[0].clone(), stop(StopReason::MaxTokens)]).collect()
}

/// A reply that the output limit cut off is continued, and all of it is the answer. The request after it only grows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_the_output_limit_cut_is_continued() {
    let place = Place::new();
    let half = vec![
        Step::Chunk(Chunk::ToolBegin { index: 0, id: "c".into(), name: "write_file".into(), vendor: None }),
        Step::Chunk(Chunk::ToolArgs { index: 0, json: r#"{"path":"made","content":"ha"#.into() }),
        Step::Chunk(Chunk::BlockEnd { index: 0 }),
        stop(StopReason::MaxTokens),
    ];
    let mut replies = cut_off("Hello", 1);
    replies.extend([half, says(" world")]);
    let fake = Fake::new(replies);
    let mut rig = place.start_with(&fake, |p| p.session.profile = Some(tiller_protocol::Profile::Full)).await;
    let (status, said) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    assert!(said.ends_with(" world"), "{said}");
    assert_eq!(fake.count(), 3);
    let asked: Vec<String> = (0..3).map(|n| format!("{:?}", fake.request(n).messages)).collect();
    assert!(
        asked[1].contains("was cut off") && asked[2].contains("middle of a call to 'write_file'"),
        "{asked:?}"
    );
    assert!(!place.work.join("made").exists(), "a call that was cut is not run");
    assert_valid(&fake.request(2));
    rig.quit().await;
    // The pieces of one text are one answer.
    let mut replies = cut_off("Hel", 1);
    replies.push(says("lo"));
    let fake = Fake::new(replies);
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn("go").await, (TurnStatus::Done, "Hello".to_owned()));
    assert_eq!(fake.count(), 2);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p11_absurd_usage_saturates_and_unknown_prices_stay_unknown() {
    let place = Place::new();
    let huge = tiller_protocol::Usage { input: u64::MAX, output: u64::MAX, ..Default::default() };
    let reply = |u| {
        let mut s = words(0, "x");
        s.extend([Step::Chunk(Chunk::Usage(u)), stop(StopReason::EndTurn)]);
        s
    };
    let fake = Fake::new([reply(huge), reply(huge), reply(Default::default())]);
    let mut rig = place.start_with(&fake, |p| p.config.context.compact_tokens = Some(u64::MAX)).await;
    for _ in 0..3 {
        rig.submit("go");
        let cost = rig
            .until("end", |e| match e {
                EventBody::Turn(TurnEvent::TurnFinished { cost_usd, .. }) => Some(*cost_usd),
                _ => None,
            })
            .await;
        assert_eq!(cost, None);
    }
    let snap = rig.snapshot().await;
    assert_eq!((snap.usage.input, snap.cost), (u64::MAX, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t7_a_tool_or_provider_that_panics_fails_its_call_only() {
    let place = Place::new();
    let fake = Fake::new([
        calls(&[("c1", "naughty", json!({"do": "panic"}))]),
        says("It failed."),
        vec![Step::Panic],
        says("Back."),
    ]);
    let mut rig = place.start_with(&fake, |p| p.tools.push(Naughty::leak())).await;
    assert_eq!(rig.turn("go").await, (TurnStatus::Done, "It failed.".into()));
    assert!(message_text(&fake.request(1), 2).contains("failed internally"));
    assert_eq!(rig.turn("again").await.0, TurnStatus::Failed);
    assert_eq!(rig.turn("once more").await.0, TurnStatus::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x12_without_a_person_a_question_is_a_no_that_is_recorded_and_told_later() {
    let place = Place::new();
    let fake = Fake::new([
        calls(&[("c1", "write_file", json!({"path": "out.txt", "content": "x"}))]),
        says("I could not write."),
    ]);
    let session = {
        let mut rig = place
            .start_with(&fake, |p| {
                p.user.human = tiller_engine::Human::Absent;
                p.session.profile = Some(tiller_protocol::Profile::Ask);
            })
            .await;
        assert_eq!(rig.turn("write it").await.0, TurnStatus::Refused);
        assert!(!place.work.join("out.txt").exists());
        assert!(message_text(&fake.request(1), 2).contains("no one"));
        let session = rig.session();
        rig.quit().await;
        session
    };
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    rig.notice("1 calls that needed an approval").await;
    let store = tiller_store::Store::open(&place.db(), Default::default()).unwrap();
    let rows = store.audit().list(Some(session), "", 10).unwrap();
    assert_eq!((rows[0].decision.audit_word(), rows[0].outcome.word()), ("nobody", "denied"));
}

/// S13, W18: a permanently failed write is reported with its cause, and the next turn continues from the state on
/// disk, without opening the session anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s13_after_a_write_that_failed_memory_is_what_the_disk_has() {
    let place = Place::new();
    let fake = Fake::with(|n, _| match n {
        1 => calls(&[("c1", "read_file", read_args("a.txt"))]),
        _ => says("Well."),
    });
    place.file("a.txt", "x");
    let mut rig = place.start_with(&fake, |p| place.answer_failures(p)).await;
    assert_eq!(rig.turn("first").await.0, TurnStatus::Done);
    let aside = place.db().with_extension("aside");
    std::fs::rename(place.db(), &aside).unwrap();
    rig.submit("lost");
    let (status, _, notice) = rig.finished().await;
    let said = notice.unwrap().message;
    assert_eq!(status, TurnStatus::Store);
    assert!(said.contains("was moved") && !said.contains("no entry"), "{said}");
    let notices = rig.seen.iter().filter_map(|e| match &e.body {
        EventBody::State(tiller_protocol::event::StateEvent::Notice { notice }) => Some(&notice.message),
        _ => None,
    });
    assert!(notices.clone().all(|m| !m.contains("no entry")), "{:?}", notices.collect::<Vec<_>>());
    std::fs::rename(&aside, place.db()).unwrap();
    assert_eq!(rig.turn("third").await.0, TurnStatus::Done);
    let shown = shape(&rig.snapshot().await.entries);
    let session = rig.session();
    rig.quit().await;
    let store = tiller_store::Store::open(&place.db(), tiller_store::Options::default()).unwrap();
    let stored = shape(&store.paths().tail(session, "main", 1000).unwrap().entries);
    assert_eq!(shown, stored);
    assert!(
        stored.iter().any(|e| e.contains("third")) && !stored.iter().any(|e| e.contains("lost")),
        "{stored:?}"
    );
}

/// The session's title by the user. The title by the engine comes in an event of the same type, at any time after the
/// turn.
fn named_mine(event: &EventBody) -> Option<()> {
    matches!(event, EventBody::State(StateEvent::TitleChanged { title }) if title == "mine").then_some(())
}

/// The same for a title: an undo that was not saved did not happen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s13_after_an_undo_that_failed_the_title_is_what_the_disk_has() {
    let place = Place::new();
    let mut rig = place.start_with(&Fake::with(|_, _| says("Well.")), |p| place.answer_failures(p)).await;
    assert_eq!(rig.turn("first").await.0, TurnStatus::Done);
    let id = rig.session();
    rig.send(CommandBody::Session(SessionCommand::Rename { id, title: "mine".into() }));
    rig.until("the title", named_mine).await;
    let aside = place.db().with_extension("aside");
    std::fs::rename(place.db(), &aside).unwrap();
    rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: false }));
    // Its write stands behind that of the undo, so both have failed at its end.
    assert_eq!(rig.turn("lost").await.0, TurnStatus::Store);
    std::fs::rename(&aside, place.db()).unwrap();
    assert_eq!(rig.turn("second").await.0, TurnStatus::Done);
    let title = rig.snapshot().await.session.title;
    rig.quit().await;
    let store = tiller_store::Store::open(&place.db(), tiller_store::Options::default()).unwrap();
    assert_eq!((title.as_str(), store.sessions().get(id).unwrap().summary.title.as_str()), ("mine", "mine"));
}

/// A message that arrives during a job is sent after it, when the job changes nothing: an undo of a title, an undo
/// with nothing to undo, an unknown branch or session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_sent_during_a_job_goes_out_after_it() {
    let place = Place::new();
    let mut rig = place.start(&Fake::with(|_, _| says("Well."))).await;
    assert_eq!(rig.turn("first").await.0, TurnStatus::Done);
    let id = rig.session();
    rig.send(CommandBody::Session(SessionCommand::Rename { id, title: "mine".into() }));
    rig.until("the title", named_mine).await;
    // The first finds the title, the others find nothing.
    for n in 0..4 {
        rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: false }));
        assert_eq!(rig.turn(&format!("second {n}")).await.0, TurnStatus::Done);
    }
    // Neither can be opened.
    let absent = tiller_protocol::SessionId(uuid::Uuid::from_u128(1));
    for (n, command) in
        [SessionCommand::OpenBranch { head: "nowhere".into() }, SessionCommand::Open { id: absent }]
            .into_iter()
            .enumerate()
    {
        rig.send(CommandBody::Session(command));
        assert_eq!(rig.turn(&format!("third {n}")).await.0, TurnStatus::Done);
    }
    assert!(rig.snapshot().await.queue.is_empty());
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_a_store_that_cannot_save_pauses_the_turn_which_goes_on_when_it_can() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    let aside = place.db().with_extension("aside");
    std::fs::rename(place.db(), &aside).unwrap();
    rig.submit("second");
    let saving = |e: &EventBody| match e {
        EventBody::State(StateEvent::Saving { ok, .. }) => Some(*ok),
        _ => None,
    };
    assert!(!rig.until("the banner", saving).await);
    assert_eq!(fake.count(), 1, "nothing goes out that is not on disk");
    std::fs::rename(&aside, place.db()).unwrap();
    assert!(rig.until("saving again", saving).await);
    assert_eq!(rig.finished().await, (TurnStatus::Done, "two".into(), None));
}
