use std::sync::Arc;

use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::{
    AgentId, CommandBody, CommandId, Event, EventBody, ManualClock, Notice, NoticeKind, SessionId, Time,
};
use uuid::Uuid;

use super::*;
use crate::bus::*;

fn scope() -> EventScope {
    EventScope { session: SessionId(Uuid::from_u128(1)), agent: AgentId::main(), cause: None }
}

fn text(s: &str) -> EventBody {
    EventBody::Turn(TurnEvent::TextDelta { text: s.into() })
}

fn progress(call: &str, s: &str) -> EventBody {
    EventBody::Tool(ToolEvent::ToolProgress { call_id: call.into(), text: s.into() })
}

fn fact() -> EventBody {
    EventBody::Turn(TurnEvent::TurnStarted {})
}

fn bus() -> (Arc<Bus>, EngineHandle) {
    let (bus, handle, _rx) = Bus::new(Arc::new(ManualClock::new(Time(5))));
    (bus, handle)
}

fn drain(s: &mut EventStream) -> Vec<Event> {
    std::iter::from_fn(|| s.try_next().map(Arc::unwrap_or_clone)).collect()
}

#[test]
fn neighbouring_deltas_are_joined_and_facts_are_not() {
    let (bus, handle) = bus();
    let mut s = handle.subscribe();
    for e in [
        text("a"),
        text("b"),
        fact(),
        fact(),
        text("c"),
        progress("1", "x"),
        progress("1", "y"),
        progress("2", "z"),
    ] {
        bus.publish(&scope(), e);
    }
    let got = drain(&mut s);
    let bodies: Vec<EventBody> = got.iter().map(|e| e.body.clone()).collect();
    assert_eq!(bodies, [text("ab"), fact(), fact(), text("c"), progress("1", "xy"), progress("2", "z")]);
    assert_eq!(got.iter().map(|e| e.seq).collect::<Vec<_>>(), [2, 3, 4, 5, 7, 8]);
    assert!(got.iter().all(|e| e.time == Time(5)));
}

#[test]
fn a_joined_delta_does_not_change_another_readers_copy() {
    let (bus, handle) = bus();
    let (mut a, mut b) = (handle.subscribe(), handle.subscribe());
    bus.publish(&scope(), text("1"));
    assert_eq!(drain(&mut a)[0].body, text("1"));
    bus.publish(&scope(), text("2"));
    assert_eq!(drain(&mut a)[0].body, text("2"));
    assert_eq!(drain(&mut b)[0].body, text("12"));
}

#[test]
fn a_reader_that_falls_behind_is_told_and_the_others_miss_nothing() {
    let (bus, handle) = bus();
    let (mut slow, mut quick) = (handle.subscribe(), handle.subscribe());
    let mut seen = 0;
    let all = EVENTS as u64 * 2 + 10;
    for _ in 0..all {
        bus.publish(&scope(), fact());
        seen += drain(&mut quick).len() as u64;
    }
    assert_eq!(seen, all);
    let got = drain(&mut slow);
    let EventBody::State(StateEvent::Lagged { missed }) = got[0].body else { panic!("{:?}", got[0]) };
    assert_eq!(missed + got.len() as u64 - 1, all, "each event is delivered or counted");
    assert!(got.windows(2).all(|w| w[0].seq < w[1].seq));
}

#[test]
fn waiting_deltas_are_bounded_in_bytes() {
    let (bus, handle) = bus();
    let mut s = handle.subscribe();
    let piece = "x".repeat(1 << 20);
    for _ in 0..100 {
        bus.publish(&scope(), text(&piece));
    }
    let got = drain(&mut s);
    let bytes: usize = got.iter().map(|e| delta_len(&e.body)).sum();
    assert!(bytes <= BYTES, "{bytes}");
    assert!(got.iter().any(|e| matches!(e.body, EventBody::State(StateEvent::Lagged { .. }))));
}

#[test]
fn replies_reach_only_the_client_that_asked() {
    let (bus, handle) = bus();
    let other = handle.client();
    let (mut mine, mut theirs) = (handle.subscribe(), other.subscribe());
    let reply = ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::Info, "x") };
    let at = EventScope { cause: Some(CommandId(7)), ..scope() };
    bus.reply(ClientId(0), &at, reply);
    assert_eq!(drain(&mut mine)[0].cause, Some(CommandId(7)));
    assert!(drain(&mut theirs).is_empty());
}

#[tokio::test]
async fn readers_wake_on_events_and_end_with_the_engine() {
    let (bus, handle) = bus();
    let mut s = handle.subscribe();
    let mut blocking = handle.subscribe();
    let reader = std::thread::spawn(move || std::iter::from_fn(|| blocking.recv()).count());
    let task = tokio::spawn(async move {
        let mut n = 0;
        while s.next().await.is_some() {
            n += 1;
        }
        n
    });
    tokio::task::yield_now().await;
    bus.publish(&scope(), fact());
    bus.publish(&scope(), fact());
    bus.close();
    assert_eq!(task.await.unwrap(), 2);
    assert_eq!(reader.join().unwrap(), 2);
    assert!(handle.subscribe().try_next().is_none());
}

#[test]
fn a_full_or_closed_engine_says_so() {
    let (_bus, handle, rx) = Bus::new(Arc::new(ManualClock::new(Time(0))));
    let command = |n| Command::new(CommandId(n), CommandBody::Query(Query::Snapshot));
    for n in 0..COMMANDS as u64 {
        handle.send(command(n)).unwrap();
    }
    assert_eq!(handle.send(command(999)), Err(SendError::Full));
    drop(rx);
    assert_eq!(handle.send(command(999)), Err(SendError::Closed));
}

#[test]
fn large_facts_that_nobody_reads_are_bounded_in_bytes() {
    const LARGE: usize = 64 << 10;
    let clock = std::sync::Arc::new(tiller_protocol::ManualClock::new(Time(0)));
    let (bus, handle, _commands) = Bus::new(clock);
    let mut stalled = handle.subscribe();
    let mut reader = handle.client().subscribe();
    let words = |body: &EventBody| match body {
        EventBody::State(StateEvent::Notice { notice }) => notice.message.len(),
        _ => 0,
    };
    let mut most = 0;
    for n in 0..2_000 {
        let notice = Notice::new(NoticeKind::Info, format!("{n}: {}", "x".repeat(LARGE)));
        bus.publish(&scope(), EventBody::State(StateEvent::Notice { notice }));
        assert!(
            reader.try_next().is_some_and(|e| matches!(e.body, EventBody::State(StateEvent::Notice { .. })))
        );
        let waiting = lock(&stalled.mailbox.waiting);
        let held: usize = waiting.events.iter().map(|(e, _)| words(&e.body)).sum();
        most = most.max(held);
    }
    assert!(most <= BYTES + (FEW + 1) * (LARGE + 1024), "{most} bytes wait for one reader");
    // It gets the number of missed events, and continues from there.
    let first = stalled.try_next().unwrap();
    let EventBody::State(StateEvent::Lagged { missed }) = &first.body else { panic!("{first:?}") };
    let rest = std::iter::from_fn(|| stalled.try_next()).count();
    assert_eq!(usize::try_from(*missed).unwrap() + rest, 2_000);
    assert_eq!(lock(&stalled.mailbox.waiting).bytes, 0);
}
