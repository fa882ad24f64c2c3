//! Random inputs in any order: the history is always valid and nothing comes after the end.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Block, Notice, NoticeKind, StopReason, ToolOutcome, Usage};
use tiller_provider::{Chunk, ProviderError};

use super::step_tests::tools;
use super::*;

/// Sequences tried, and inputs in each.
const CASES: u32 = 1500;
const INPUTS: usize = 60;

fn chunks() -> impl Strategy<Value = Chunk> {
    let index = 0..4usize;
    let names =
        prop::sample::select(vec!["read_file", "write_file", "terminal", "todo_write", "nonsense", ""]);
    let ids = prop::sample::select(vec!["", "a", "b", "c", "a"]);
    prop_oneof![
        4 => (index.clone(), "[a-z ]{0,4}").prop_map(|(index, text)| Chunk::Text { index, text }),
        1 => (index.clone(), "[a-z]{0,3}").prop_map(|(index, text)| Chunk::Thinking { index, text }),
        5 => (index.clone(), ids, names).prop_map(|(index, id, name)| Chunk::ToolBegin {
            index, id: id.into(), name: name.into(), vendor: None }),
        3 => (index.clone(), prop::sample::select(vec!["{}", "{\"a\":1}", "{", "[]", "x"]))
            .prop_map(|(index, json)| Chunk::ToolArgs { index, json: json.into() }),
        4 => index.prop_map(|index| Chunk::BlockEnd { index }),
        1 => any::<u64>().prop_map(|n| Chunk::Usage(Usage { input: n, output: n, ..Usage::default() })),
        3 => prop::sample::select(vec![StopReason::EndTurn, StopReason::ToolUse, StopReason::MaxTokens,
            StopReason::Refusal("no".into())]).prop_map(Chunk::Stop),
        1 => Just(Chunk::Ping),
    ]
}

/// An input whose numbers and ids are filled in from what is outstanding (or are deliberately stale).
#[derive(Clone, Debug)]
enum Move {
    Chunk(Chunk, bool),
    Ended(Option<ProviderError>, bool),
    Prepared(u8),
    WaitOver(bool),
    SkipWait,
    Rest,
    Resume,
    ToolDone(prop::sample::Index, bool),
    Steer(bool),
    Steered,
    Compacted(bool),
    Interrupt(bool),
    Start,
}

fn moves() -> impl Strategy<Value = Move> {
    let errors = prop::sample::select(vec![
        None,
        Some(ProviderError::Network("n".into())),
        Some(ProviderError::Wait { message: "w".into(), after: Some(Duration::from_secs(1)) }),
        Some(ProviderError::TooLong("t".into())),
        Some(ProviderError::TooLarge("t".into())),
        Some(ProviderError::Auth("a".into())),
    ]);
    prop_oneof![
        12 => (chunks(), prop::bool::weighted(0.9)).prop_map(|(c, now)| Move::Chunk(c, now)),
        2 => (errors, prop::bool::weighted(0.9)).prop_map(|(e, now)| Move::Ended(e, now)),
        6 => (0..12u8).prop_map(Move::Prepared),
        2 => any::<bool>().prop_map(Move::WaitOver),
        1 => Just(Move::SkipWait),
        1 => Just(Move::Rest),
        2 => Just(Move::Resume),
        6 => (any::<prop::sample::Index>(), prop::bool::weighted(0.9)).prop_map(|(i, known)| Move::ToolDone(i, known)),
        1 => any::<bool>().prop_map(Move::Steer),
        1 => Just(Move::Steered),
        1 => prop::bool::weighted(0.8).prop_map(Move::Compacted),
        1 => any::<bool>().prop_map(Move::Interrupt),
        1 => Just(Move::Start),
    ]
}

/// What the driver would have done with the effects, and whether they were lawful.
#[derive(Default)]
struct World {
    /// Calls in the conversation that have no result yet, in order.
    open: Vec<String>,
    ids: HashSet<String>,
    running: HashSet<String>,
    ran: HashSet<String>,
    n: u32,
    finished: bool,
}

impl World {
    fn take(&mut self, effects: Vec<Effect>) {
        for e in effects {
            assert!(!self.finished, "an effect after the end: {e:?}");
            match e {
                Effect::AppendReply { blocks, .. } => {
                    assert!(self.open.is_empty(), "a reply while calls of the last have no result");
                    assert!(!blocks.is_empty());
                    for b in blocks {
                        if let Block::ToolCall(c) = b {
                            assert!(!c.id.is_empty() && self.ids.insert(c.id.clone()), "id twice: {}", c.id);
                            self.open.push(c.id);
                        }
                    }
                }
                Effect::AppendResult { call_id, .. } => {
                    assert_eq!(self.open.first(), Some(&call_id), "results come in call order, once");
                    self.open.remove(0);
                    assert!(!self.running.contains(&call_id), "a result before the call was done");
                }
                Effect::RunTool { call } => {
                    assert!(call.malformed.is_none(), "a call that could not be read was run");
                    assert!(self.open.contains(&call.id));
                    assert!(self.ran.insert(call.id.clone()), "run twice: {}", call.id);
                    self.running.insert(call.id);
                }
                Effect::Request { n } => {
                    assert!(self.open.is_empty(), "a request while calls have no result");
                    assert!(n > self.n);
                    self.n = n;
                }
                Effect::DeliverSteer => assert!(self.open.is_empty(), "words between a call and its result"),
                Effect::Finish { .. } => {
                    assert!(self.open.is_empty(), "the end while calls have no result");
                    assert!(self.running.is_empty(), "the end while calls run");
                    self.finished = true;
                }
                _ => {}
            }
        }
    }

    fn input(&mut self, m: Move, turn: &Turn) -> Input {
        match m {
            Move::Chunk(chunk, now) => {
                Input::Chunk { n: if now { self.n } else { self.n.wrapping_sub(1) }, chunk }
            }
            Move::Ended(e, now) => {
                Input::StreamEnded { n: if now { self.n } else { self.n + 1 }, result: e.map_or(Ok(()), Err) }
            }
            Move::Prepared(0) => Input::Prepared(Prepared::Compact),
            Move::Prepared(1) => Input::Prepared(Prepared::Stop {
                status: TurnStatus::Limit,
                notice: Notice::new(NoticeKind::Budget, "b"),
            }),
            Move::Prepared(_) => Input::Prepared(Prepared::Go),
            Move::WaitOver(now) => Input::WaitOver { n: if now { self.n } else { self.n + 1 } },
            Move::SkipWait => Input::SkipWait,
            Move::Rest => Input::Pause,
            Move::Resume => Input::Resume,
            Move::ToolDone(i, known) => {
                let mut ids: Vec<&String> = self.running.iter().collect();
                ids.sort();
                let call_id = match (ids.is_empty(), known && turn.phase() == Phase::Tools) {
                    (false, true) => i.get(&ids).to_string(),
                    _ => "unknown".into(),
                };
                self.running.remove(&call_id);
                Input::ToolDone { call_id, result: CallResult::text(ToolOutcome::Ok, "ok") }
            }
            Move::Steer(w) => Input::Steer(w),
            Move::Steered => Input::Steered,
            Move::Compacted(true) => Input::Compacted(Ok(())),
            Move::Compacted(false) => Input::Compacted(Err(Notice::new(NoticeKind::Network, "c"))),
            Move::Interrupt(hard) => Input::Interrupt { hard },
            Move::Start => Input::Start,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn history_is_valid_whatever_happens(moves in prop::collection::vec(moves(), 0..INPUTS)) {
        let limits = TurnLimits { attempts: 3, parallel: 2, calls_per_reply: 3, requests: 6, ..TurnLimits::default() };
        let mut turn = Turn::new(limits, tools(), "fake", HashSet::new());
        let mut world = World::default();
        world.take(turn.step(Input::Start));
        for m in moves {
            let input = world.input(m, &turn);
            let effects = turn.step(input);
            world.take(effects);
        }
        // It can always be ended: stop it, and let what runs end.
        let effects = turn.step(Input::Interrupt { hard: true });
        world.take(effects);
        while let Some(id) = world.running.iter().next().cloned() {
            world.running.remove(&id);
            let effects = turn.step(Input::ToolDone { call_id: id, result: CallResult::interrupted() });
            world.take(effects);
        }
        prop_assert!(turn.finished());
        prop_assert!(world.finished);
        prop_assert!(world.open.is_empty());
    }
}
