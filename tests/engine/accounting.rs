//! P15: recorded usage equals what the server charges, also for incomplete replies and side calls.

use std::sync::{Arc, Mutex};

use tiller_protocol::command::{ContextCommand, CostBy, TurnCommand};
use tiller_protocol::event::{ReplyEvent, TurnEvent, TurnStatus};
use tiller_protocol::{AgentId, AskBody, AskReply, CommandBody, EventBody, Part, StopReason, Usage};
use tiller_provider::{ChatMessage, Chunk, ProviderError, Request};
use tiller_store::{Options, Store};

use crate::rig::*;
use crate::scripted_model::lock;

/// A server with tokens of 4 bytes, where estimates take 2.5.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// What the server counts as read.
fn sent(r: &Request) -> u64 {
    let tools: usize =
        r.tools.iter().map(|t| t.name.len() + t.description.len() + t.schema.to_string().len()).sum();
    let parts = |parts: &[Part]| -> usize {
        parts.iter().map(|p| if let Part::Text { text } = p { text.len() } else { 0 }).sum()
    };
    let said: usize = r
        .messages
        .iter()
        .map(|m| match m {
            ChatMessage::User { content } | ChatMessage::ToolResult { content, .. } => parts(content),
            ChatMessage::Assistant { blocks, .. } => blocks
                .iter()
                .map(|b| if let tiller_protocol::Block::Text { text } = b { text.len() } else { 0 })
                .sum(),
        })
        .sum();
    tokens(r.system.len() + tools + said)
}

/// The server's own records: a row for each request, tokens in and out.
type Books = Arc<Mutex<Vec<(u64, u64)>>>;

fn text(words: &str) -> Step {
    Step::Chunk(Chunk::Text { index: 0, text: words.into() })
}

fn counted(r: &Request, output: &str) -> Step {
    let usage = Usage { input: sent(r), output: tokens(output.len()), ..Usage::default() };
    Step::Chunk(Chunk::Usage(usage))
}

fn cut() -> Step {
    Step::Fail(ProviderError::Network("the connection was reset".into()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_the_books_equal_the_servers_within_a_tenth() {
    let place = Place::new();
    let server: Books = Books::default();
    let books = Arc::clone(&server);
    let gate = Arc::new(Gate::new());
    let opened = Arc::clone(&gate);
    let long = "An answer with a number of ordinary words in it. ".repeat(40);
    let fake = Fake::with(move |n, r| {
        let book = |output: &str| lock(&books).push((sent(r), tokens(output.len())));
        match n {
            // Complete, with counts.
            0 => {
                book(&long);
                vec![text(&long), counted(r, &long), stop(StopReason::EndTurn)]
            }
            // Refused: it costs nothing.
            1 => vec![Step::Refuse(ProviderError::Wait { message: "slow".into(), after: None })],
            // Cut off in the middle, twice, before any count; then complete.
            2 | 3 => {
                book(&long[..1000]);
                vec![text(&long[..1000]), cut()]
            }
            4 => {
                book(&long);
                vec![text(&long), counted(r, &long), stop(StopReason::EndTurn)]
            }
            // Counted at its beginning, as Anthropic does it, and then interrupted.
            5 => {
                book(&long);
                let begun = Usage { input: sent(r), output: 1, ..Usage::default() };
                vec![
                    Step::Chunk(Chunk::Usage(begun)),
                    text(&long),
                    Step::Gate(Arc::clone(&opened)),
                    Step::Hang,
                ]
            }
            // A side answer that fails in the middle; a summary without the server's count.
            6 => {
                book(&long[..800]);
                vec![text(&long[..800]), cut()]
            }
            _ => {
                book(&long[..600]);
                vec![text(&long[..600]), stop(StopReason::EndTurn)]
            }
        }
    });
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn(&"Tell me about it. ".repeat(60)).await.0, TurnStatus::Done);
    assert_eq!(rig.turn("Once more.").await.0, TurnStatus::Done);
    rig.submit("And again.");
    let delta = |e: &EventBody| matches!(e, EventBody::Turn(TurnEvent::TextDelta { .. })).then_some(());
    fake.requested(6).await;
    rig.until("words", delta).await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    rig.send(CommandBody::Turn(TurnCommand::Aside { question: "why?".into() }));
    assert!(matches!(rig.reply().await, ReplyEvent::ErrorReply { .. }));
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    rig.until("a summary", |e| matches!(e, EventBody::Turn(TurnEvent::Compacted { .. })).then_some(())).await;
    rig.quit().await;
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let row = store
        .costs()
        .by(None, CostBy::Agent)
        .unwrap()
        .into_iter()
        .find(|r| r.key == AgentId::main().0)
        .unwrap();
    let server = lock(&server).clone();
    assert_eq!(row.calls, server.len() as u64, "one row for each request that the server took");
    assert_eq!(row.estimated, 5, "{row:?}");
    let close = |ours: u64, theirs: u64| ours.abs_diff(theirs) * 10 <= theirs;
    let (read, said): (Vec<u64>, Vec<u64>) = server.into_iter().unzip();
    let (read, said) = (read.iter().sum::<u64>(), said.iter().sum::<u64>());
    assert!(close(row.usage.context(), read), "read: {} of {read}", row.usage.context());
    assert!(close(row.usage.output, said), "written: {} of {said}", row.usage.output);
}

/// A summary that the output limit cut off is requested again with more room, and never used as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_that_was_cut_is_not_taken() {
    let place = Place::new();
    let fake = Fake::with(|n, r| match (n, &*r.tools) {
        (0..3, _) => says(&"word ".repeat(200)),
        (_, []) => {
            let mut steps = words(0, "half of it");
            steps.push(stop(StopReason::MaxTokens));
            steps
        }
        _ => says("x"),
    });
    let mut rig = place.start(&fake).await;
    for said in ["one", "two", "three"] {
        rig.turn(said).await;
    }
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    let notice = rig.refused().await;
    assert!(notice.message.contains("output limit") && !notice.hints.is_empty(), "{notice:?}");
    let room: Vec<Option<u64>> = lock(&fake.requests)[3..].iter().map(|r| r.max_output).collect();
    assert_eq!(room, [Some(4000), Some(8000), Some(16_000)]);
    assert!(!rig.kinds().contains(&"compacted".to_owned()));
    rig.quit().await;
}

/// A model that thinks gets room for that; a model that is not known to think gets a second attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn side_calls_of_models_that_think_get_room() {
    let place = Place::new();
    let fake = Fake::with(|n, _| match n {
        0 => says("x"),
        1 => vec![
            Step::Chunk(Chunk::Thinking { index: 0, text: "hm".into() }),
            Step::Chunk(Chunk::BlockEnd { index: 0 }),
            stop(StopReason::MaxTokens),
        ],
        _ => says("because"),
    });
    let mut rig = place.start(&fake).await;
    rig.turn("one").await;
    rig.send(CommandBody::Turn(TurnCommand::Aside { question: "why?".into() }));
    assert!(matches!(rig.reply().await, ReplyEvent::AsideReply { answer, .. } if answer == "because"));
    assert_eq!((fake.request(1).max_output, fake.request(2).max_output), (Some(4000), Some(20_000)));
    rig.quit().await;
}

/// A wait that a server requests during a compaction is shown, and can be skipped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_of_a_compaction_is_shown_and_can_be_skipped() {
    let place = Place::new();
    let wait = || ProviderError::Wait {
        message: "too many requests".into(),
        after: Some(std::time::Duration::from_secs(100_000)),
    };
    let fake = Fake::with(move |n, _| match n {
        0..3 => says(&"word ".repeat(200)),
        3 => vec![Step::Refuse(wait())],
        _ => says("a summary"),
    });
    let mut rig = place.start(&fake).await;
    for said in ["one", "two", "three"] {
        rig.turn(said).await;
    }
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    let shown = |e: &EventBody| match e {
        EventBody::Turn(TurnEvent::Retrying { seconds, why, .. }) => Some((*seconds, why.clone())),
        _ => None,
    };
    let (seconds, why) = rig.until("the wait", shown).await;
    assert!(seconds > 900.0 && why.contains("too many requests"), "{seconds} {why}");
    rig.send(CommandBody::Turn(TurnCommand::SkipWait));
    rig.until("a summary", |e| matches!(e, EventBody::Turn(TurnEvent::Compacted { .. })).then_some(())).await;
    rig.quit().await;
}

/// A compaction on request works for a conversation of any length, and gives the reason where there is nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_conversation_can_be_compacted_by_hand() {
    let place = Place::new();
    let fake =
        Fake::with(|_, r| if r.tools.is_empty() { says("in short") } else { says(&"word ".repeat(300)) });
    let mut rig = place.start(&fake).await;
    rig.turn("one").await;
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    let why = rig.refused().await.message;
    assert!(why.contains("2 message(s)") && why.contains("always kept"), "{why}");
    for said in ["two", "three"] {
        rig.turn(said).await;
    }
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    let tokens = rig
        .until("a summary", |e| match e {
            EventBody::Turn(TurnEvent::Compacted { tokens_before, tokens_after, .. }) => {
                Some((*tokens_before, *tokens_after))
            }
            _ => None,
        })
        .await;
    assert!(tokens.1 < tokens.0, "{tokens:?}");
    rig.quit().await;
}

/// A window that a server stated is known to the next session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_was_learned_from_a_refusal_is_kept() {
    let place = Place::new();
    let too_long = "x says the request is too long: maximum context length is 6144 tokens.";
    let fake = Fake::with(move |n, r| match n {
        0..3 => says(&"word ".repeat(4000)),
        3 => vec![Step::Refuse(ProviderError::TooLong(too_long.into()))],
        _ if r.tools.is_empty() => says("in short"),
        _ => says("x"),
    });
    let mut rig = place.start(&fake).await;
    for said in ["one", "two", "three", "four"] {
        assert_eq!(rig.turn(said).await.0, TurnStatus::Done, "{said}");
    }
    assert_eq!(rig.snapshot().await.agents[0].window, Some(6144));
    rig.quit().await;
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.snapshot().await.agents[0].window, Some(6144), "another session");
    rig.quit().await;
    // The user configures the window since the server was changed.
    let stated = |p: &mut tiller_engine::EngineConfig| {
        let provider = serde_json::json!({"kind": "openai-chat", "models": {"m": {"window": 32_768}}});
        p.config.providers.insert("fake".into(), serde_json::from_value(provider).unwrap());
    };
    let mut rig = place.start_with(&fake, stated).await;
    assert_eq!(rig.snapshot().await.agents[0].window, Some(32_768));
    rig.quit().await;
    // The server accepts more than that.
    let fake = Fake::with(|_, _| {
        let mut steps = words(0, "x");
        let usage = Usage { input: 9000, output: 1, ..Usage::default() };
        steps.extend([Step::Chunk(Chunk::Usage(usage)), stop(StopReason::EndTurn)]);
        steps
    });
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.snapshot().await.agents[0].window, Some(6144));
    rig.turn("one").await;
    assert_eq!(rig.snapshot().await.agents[0].window, None);
    rig.quit().await;
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.snapshot().await.agents[0].window, None, "another session");
    rig.quit().await;
}

/// A refusal in place of a summary or an answer is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_summary_is_not_taken() {
    let place = Place::new();
    let fake = Fake::with(|n, _| match n {
        0..3 => says(&"word ".repeat(200)),
        _ => {
            let mut steps = words(0, "I can't help with that.");
            steps.push(stop(StopReason::Refusal("policy".into())));
            steps
        }
    });
    let mut rig = place.start(&fake).await;
    for said in ["one", "two", "three"] {
        rig.turn(said).await;
    }
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    let why = rig.refused().await.message;
    assert!(why.contains("could not summarize") && why.contains("declined to answer: policy"), "{why}");
    assert_eq!(fake.count(), 4, "asked once");
    rig.send(CommandBody::Turn(TurnCommand::Aside { question: "why?".into() }));
    assert!(rig.refused().await.message.contains("declined to answer"));
    assert!(!rig.kinds().contains(&"compacted".to_owned()));
    rig.quit().await;
}

/// Calls of a session by all agents, and how many of them are estimated.
fn booked(place: &Place) -> (u64, u64) {
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let rows = store.costs().by(None, CostBy::Agent).unwrap();
    (rows.iter().map(|r| r.calls).sum(), rows.iter().map(|r| r.estimated).sum())
}

/// The end of the program stops a title and a summary; the server charges for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_side_calls_under_way_at_the_end_are_booked() {
    for titles in [true, false] {
        let place = Place::new();
        let taken = Arc::new(Gate::new());
        let reached = Arc::clone(&taken);
        let fake = Fake::with(move |_, r| match &*r.tools {
            [] => vec![text("half of"), Step::Reached(Arc::clone(&reached)), Step::Hang],
            _ => says(&"word ".repeat(200)),
        });
        let mut rig = place.start_with(&fake, |p| p.session.titles = titles).await;
        if titles {
            rig.turn("one").await;
        } else {
            for said in ["one", "two", "three"] {
                rig.turn(said).await;
            }
            rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
        }
        taken.passed().await;
        rig.quit().await;
        assert_eq!(booked(&place), (if titles { 2 } else { 4 }, 1), "titles: {titles}");
    }
}

/// Another process takes the session while a reply arrives: the reply is lost here, the bill is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_a_reply_that_came_after_the_lease_was_lost_is_booked() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |_, _| {
        vec![text("all of"), Step::Gate(Arc::clone(&hold)), text(" it"), usage(), stop(StopReason::EndTurn)]
    });
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.submit("go");
    let delta = |e: &EventBody| matches!(e, EventBody::Turn(TurnEvent::TextDelta { .. })).then_some(());
    rig.until("words", delta).await;
    let other = Store::open(&place.db(), Options::default()).unwrap();
    let lease = other.leases().acquire(session, "main", tiller_store::AcquireMode::Force).wait().unwrap();
    gate.pass_one();
    assert_eq!(rig.finished().await.0, TurnStatus::Store);
    rig.quit().await;
    other.leases().release(lease).wait().unwrap();
    assert_eq!(booked(&place), (1, 0));
}

/// A limit of messages shortens a conversation of few tokens, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_messages_compacts() {
    let place = Place::new();
    let fake = Fake::with(|_, r| if r.tools.is_empty() { says("in short") } else { says("ok") });
    let mut rig = place.start_with(&fake, |p| p.config.context.compact_messages = Some(4)).await;
    for said in ["one", "two", "three"] {
        rig.turn(said).await;
    }
    assert!(rig.kinds().contains(&"compacted".to_owned()), "{:?}", rig.kinds());
    let last = fake.request(fake.count() - 1);
    assert!(last.messages.len() <= 4, "{:?}", last.messages);
    rig.quit().await;
}

/// A model that repeats the same call gets a note after three rounds, and the user is asked after six.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_goes_round_in_circles_is_told_and_then_asked_about() {
    let place = Place::new();
    place.file("a.txt", "the same as ever\n");
    let same =
        || Fake::with(|n, _| calls(&[(&format!("c{n}"), "read_file", serde_json::json!({"path": "a.txt"}))]));
    let fake = same();
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    let ask = rig.asked().await;
    let AskBody::Repeats { rounds, calls: names } = &ask.body else { panic!("{ask:?}") };
    assert_eq!((*rounds, names.as_str(), fake.count()), (6, "read_file", 6));
    let heard = fake.request(3).messages.iter().any(
        |m| matches!(m, ChatMessage::User { content } if format!("{content:?}").contains("3 times in a row")),
    );
    assert!(heard, "the model was told after three rounds");
    rig.answer(&ask, AskReply::Yes { value: None });
    let again = rig.asked().await;
    assert_eq!(fake.count(), 12, "a yes is good for six more");
    rig.answer(&again, AskReply::Declined);
    let (status, _, notice) = rig.finished().await;
    assert_eq!(status, TurnStatus::Limit);
    assert!(notice.unwrap().message.contains("read_file"));
    rig.quit().await;
    // The different file of each long output does not hide it.
    let long = serde_json::json!({"command": "head -c 200000 /dev/zero | tr '\\0' x"});
    let fake = Fake::with(move |n, _| calls(&[(&format!("d{n}"), "terminal", long.clone())]));
    let mut rig = place.start_with(&fake, |p| p.session.profile = Some(tiller_protocol::Profile::Full)).await;
    rig.submit("go");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Repeats { rounds: 6, .. }), "{ask:?}");
    rig.quit().await;
    // Without a user it ends with a notice.
    let fake = same();
    let mut rig = place.start_with(&fake, |p| p.user.human = tiller_engine::Human::Absent).await;
    rig.submit("go");
    let (status, _, notice) = rig.finished().await;
    assert_eq!((status, fake.count()), (TurnStatus::Limit, 6));
    assert!(notice.unwrap().hints.iter().any(|h| h.contains("limits.repeats")));
    rig.quit().await;
}
