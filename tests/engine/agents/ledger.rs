//! One ledger: whatever agents, critics, summaries and questions beside the conversation use, each place shows the sum that the
//! server has counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tiller_protocol::command::{ContextCommand, CostBy, Query, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::{CommandBody, Cost, EventBody, StopReason, Usage};
use tiller_provider::{Chunk, Request};
use tiller_store::{Filter, Options, Store};

use crate::agents::delegation::{delegate, first, result};
use crate::rig::*;

/// The counts of the server: input, read from its cache, and output.
#[derive(Default)]
struct Counter([AtomicU64; 3]);

impl Counter {
    /// The steps with other counts: those of request `n`.
    fn counted(&self, n: usize, steps: Vec<Step>) -> Vec<Step> {
        let n = n as u64;
        let usage =
            Usage { input: 900 + n * 7, cache_read: n * 11 % 500, output: 30 + n * 3, ..Usage::default() };
        for (sum, tokens) in self.0.iter().zip([usage.input, usage.cache_read, usage.output]) {
            sum.fetch_add(tokens, Ordering::SeqCst);
        }
        let mut out: Vec<Step> = steps
            .into_iter()
            .filter(|s| !matches!(s, Step::Chunk(Chunk::Usage(_) | Chunk::Stop(_))))
            .collect();
        let calls = out.iter().any(|s| matches!(s, Step::Chunk(Chunk::ToolBegin { .. })));
        let end = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        out.extend([Step::Chunk(Chunk::Usage(usage)), stop(end)]);
        out
    }

    fn usage(&self) -> (u64, u64, u64) {
        let [input, cached, output] = &self.0;
        let of = |n: &AtomicU64| n.load(Ordering::SeqCst);
        (of(input), of(cached), of(output))
    }

    /// At 3 dollars for a million tokens of input, and 15 of output.
    fn cost(&self) -> Cost {
        let (input, cached, output) = self.usage();
        Cost((input + cached) * 3 + output * 15)
    }
}

/// Numbers that look random, the same for each seed.
fn random(seed: u64, path: &str, most: u64) -> u64 {
    let hash = path
        .bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    (hash >> 32) % most
}

/// The tasks that an agent gives away: a tree of up to two levels, some of them with a critic, one after the other or together.
fn tasks(seed: u64, path: &str, depth: u64) -> Vec<Value> {
    let count = random(seed, path, 3) + u64::from(depth == 0);
    (0..count)
        .map(|n| {
            let id = format!("{path}.{n}");
            let verify = random(seed, &format!("v{id}"), 3) == 0;
            json!({"goal": format!("node {id} {}", depth + 1), "verify": verify})
        })
        .collect()
}

fn answer(seed: u64, request: &Request) -> Vec<Step> {
    if request.tools.is_empty() {
        return says(r#"{"verdict": "valid", "reasons": "fine"}"#);
    }
    let message = first(request);
    let node: Vec<&str> = message.split_whitespace().skip_while(|w| *w != "node").take(3).collect();
    match (&node[..], result(request)) {
        (_, Some(_)) => says(&"words that end it ".repeat(30)),
        ([_, path, depth], None) if *depth == "1" => {
            let tasks = tasks(seed, path, 1);
            if tasks.is_empty() { says("leaf") } else { delegate(json!(tasks)) }
        }
        ([_, _, _], None) => says("leaf"),
        _ => delegate(json!(tasks(seed, "root", 0))),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_place_shows_the_sum_of_the_server() {
    for seed in 0..6 {
        let place = Place::new();
        let counter = Arc::new(Counter::default());
        let server = Arc::clone(&counter);
        let fake = Fake::with(move |n, r| server.counted(n, answer(seed, r)));
        let mut rig = place
            .start_with(&fake, |p| {
                crate::budgets::priced_at(p, 3.0, 15.0);
                p.config.agents.depth = 2;
                p.session.titles = true;
            })
            .await;
        let session = rig.session();
        for said in ["one", "two", "three"] {
            assert_eq!(rig.turn(said).await.0, TurnStatus::Done, "{seed} {said}");
            if said == "one" {
                let title = |e: &EventBody| {
                    matches!(e, EventBody::State(StateEvent::TitleChanged { .. })).then_some(())
                };
                if !rig.seen.iter().any(|e| title(&e.body).is_some()) {
                    rig.until("a title", title).await;
                }
            }
            if said == "two" {
                rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
                let done =
                    |e: &EventBody| matches!(e, EventBody::Turn(TurnEvent::Compacted { .. })).then_some(());
                rig.until("a summary", done).await;
                rig.send(CommandBody::Turn(TurnCommand::Aside { question: "why?".into() }));
                assert!(matches!(rig.reply().await, ReplyEvent::AsideReply { .. }));
            }
        }
        let (cost, (input, cached, output)) = (counter.cost(), counter.usage());
        assert!(fake.count() > 8, "{seed}: {} requests", fake.count());
        // The ends of the turns.
        let mut told = (Usage::default(), 0.0);
        for event in &rig.seen {
            if let EventBody::Turn(TurnEvent::TurnFinished { usage, cost_usd, .. }) = &event.body
                && event.agent.is_main()
            {
                told.0.add(usage);
                told.1 += cost_usd.unwrap();
            }
        }
        assert_eq!((told.0.input, told.0.cache_read, told.0.output), (input, cached, output), "{seed}");
        assert_eq!(Cost::from_usd(told.1), cost, "{seed}: the turns");
        // The rows of the agents, of which the header is the sum.
        let rows = rig.snapshot().await.agents;
        let rows = rows.iter().filter_map(|a| a.cost).fold(Cost(0), Cost::plus);
        assert_eq!(rows, cost, "{seed}: the agents");
        // The table of costs, each way.
        for by in [CostBy::Model, CostBy::Agent, CostBy::Day] {
            let ReplyEvent::CostsReply { rows, total } = rig.query(Query::Costs { by }).await else {
                panic!()
            };
            assert_eq!(total, Some(cost), "{seed}: {by:?}");
            let sum = rows.iter().map(|r| r.calls).sum::<u64>();
            assert_eq!(sum, fake.count() as u64, "{seed}: {by:?} {rows:?}");
        }
        rig.quit().await;
        let store = Store::open(&place.db(), Options::default()).unwrap();
        let all = Filter { exec: true, ..Filter::default() };
        let listed = store.sessions().list(&all).unwrap();
        let listed = listed.iter().find(|s| s.id == session).and_then(|s| s.cost);
        assert_eq!(listed, Some(cost), "{seed}: the list of sessions");
    }
}
