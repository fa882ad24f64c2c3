//! Windows of any size, and what is larger than they are: every turn ends, and summaries are not paid for twice (row P16).

use std::sync::{Arc, Mutex};

use serde_json::json;
use tiller_engine::EngineConfig;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Block, Part, Usage};
use tiller_provider::{ChatMessage, Chunk, ProviderError, Request};

use crate::rig::*;

/// The tokens of a request, as a server would count them: four bytes each.
fn counted(request: &Request) -> u64 {
    let part = |p: &Part| if let Part::Text { text } = p { text.len() } else { 6_000 };
    let block = |b: &Block| match b {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.arguments.to_string().len(),
        _ => 0,
    };
    let message = |m: &ChatMessage| match m {
        ChatMessage::User { content } | ChatMessage::ToolResult { content, .. } => {
            content.iter().map(part).sum::<usize>()
        }
        ChatMessage::Assistant { blocks, .. } => blocks.iter().map(block).sum(),
    };
    let tools: usize = request.tools.iter().map(|t| t.description.len() + t.schema.to_string().len()).sum();
    let all = request.system.len() + tools + request.messages.iter().map(message).sum::<usize>();
    all as u64 / 4
}

/// Gives a reply its true usage.
fn with_usage(mut steps: Vec<Step>, input: u64) -> Vec<Step> {
    for step in &mut steps {
        if let Step::Chunk(Chunk::Usage(usage)) = step {
            *usage = Usage { input, output: 20, ..Usage::default() };
        }
    }
    steps
}

/// A kind of session that outgrows its window.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Calls of one reply, rounds, and kilobytes of each result.
    Reads(usize, usize, usize),
    /// Kilobytes of a message of the person's, sent some times.
    Message(usize, usize),
    /// Kilobytes of a project's rules.
    Rules(usize),
    /// Kilobytes of what the summariser answers.
    Summary(usize),
    /// Kilobytes of the arguments of a call.
    Arguments(usize),
    /// Kilobytes of the model's own words, some times.
    Words(usize, usize),
}

const SHAPES: [Shape; 12] = [
    Shape::Reads(20, 1, 45),
    Shape::Reads(64, 2, 12),
    Shape::Reads(1, 40, 8),
    Shape::Reads(1, 12, 45),
    Shape::Reads(3, 30, 20),
    Shape::Message(100, 3),
    Shape::Message(400, 1),
    Shape::Rules(300),
    Shape::Rules(30),
    Shape::Summary(400),
    Shape::Arguments(60),
    Shape::Words(40, 12),
];

#[derive(Default)]
struct Seen {
    rounds: usize,
    sides: usize,
    /// Summaries one after another with less than a tenth of growth between them, now and at most.
    in_a_row: (usize, usize),
    /// Tokens of the first and the last accepted request since the last summary.
    since: Option<(u64, u64)>,
    /// Tokens of the largest request that was accepted.
    accepted: u64,
    refused: usize,
}

/// A server with a window of this many tokens, and a model that behaves as `shape` says.
fn server(shape: Shape, window: u64, seen: Arc<Mutex<Seen>>) -> Arc<Fake> {
    Fake::with(move |n, request| {
        let mut seen = lock(&seen);
        let tokens = counted(request);
        if tokens > window {
            seen.refused += 1;
            let said = format!("prompt is too long: {tokens} tokens > {window} maximum");
            return vec![Step::Refuse(ProviderError::TooLong(said))];
        }
        if request.tools.is_empty() {
            seen.sides += 1;
            let grown = seen.since.take().is_some_and(|(first, last)| last > first + first / 10);
            let now = if grown { 1 } else { seen.in_a_row.0 + 1 };
            seen.in_a_row = (now, seen.in_a_row.1.max(now));
            let long = if let Shape::Summary(kb) = shape { kb * 1000 } else { 600 };
            return with_usage(says(&"in short ".repeat(long / 9)), tokens);
        }
        seen.accepted = seen.accepted.max(tokens);
        seen.since = Some((seen.since.map_or(tokens, |(first, _)| first), tokens));
        let round = seen.rounds;
        seen.rounds += 1;
        let id = |at: usize| format!("c{n}x{at}");
        let steps = match shape {
            Shape::Reads(many, rounds, _) if round < rounds => {
                let ids: Vec<String> = (0..many).map(id).collect();
                // Each call reads another part, since repeated calls would be asked about.
                let args = |at: usize| json!({"path": "long.txt", "offset": 1 + round * many + at});
                let all: Vec<_> =
                    ids.iter().enumerate().map(|(at, id)| (&**id, "read_file", args(at))).collect();
                calls(&all)
            }
            Shape::Arguments(kb) if round < 4 => {
                let content = "word ".repeat(kb * 200);
                calls(&[(&id(0), "write_file", json!({"path": format!("w{round}"), "content": content}))])
            }
            Shape::Words(kb, rounds) if round < rounds => {
                let mut steps = words(0, &"I think. ".repeat(kb * 111));
                let args = json!({"path": "long.txt", "start": 1 + round, "end": 1 + round});
                steps.extend(calls(&[(&id(0), "read_file", args)]).split_off(2));
                steps
            }
            Shape::Summary(_) if round < 12 => {
                calls(&[(&id(0), "read_file", json!({"path": "long.txt", "offset": 1 + round}))])
            }
            _ => says("Done."),
        };
        with_usage(steps, tokens)
    })
}

/// The ends of the turns of such a session, its cost, and the reasons of its failures.
async fn story(shape: Shape, window: u64, known: bool) -> (Vec<TurnStatus>, Seen, String) {
    let place = Place::new();
    let kb = if let Shape::Reads(_, _, kb) = shape { kb } else { 45 };
    let line = "a line of the long file, as they are\n";
    // Lines enough that each part has its length.
    place.file("long.txt", &line.repeat(kb * 1000 / line.len() + 200));
    if let Shape::Rules(kb) = shape {
        place.file("AGENTS.md", &"Do as it says here. ".repeat(kb * 50));
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    let fake = server(shape, window, Arc::clone(&seen));
    let settings = |p: &mut EngineConfig| {
        if known {
            let model = json!({"kind": "openai-chat", "models": {"m": {"window": window}}});
            p.config.providers.insert("fake".into(), serde_json::from_value(model).unwrap());
        }
        p.session.profile = Some(tiller_protocol::Profile::Full);
        p.user.human = tiller_engine::Human::Absent;
    };
    let mut rig = place.start_with(&fake, settings).await;
    let messages = match shape {
        Shape::Message(kb, times) => vec!["word ".repeat(kb * 200); times],
        _ => vec!["THE TASK".to_owned()],
    };
    let mut ends = Vec::new();
    let mut why = String::new();
    for message in messages {
        rig.submit(&message);
        let (status, _, notice) = rig.finished().await;
        ends.push(status);
        why.push_str(&notice.map_or_else(String::new, |n| n.message));
    }
    rig.quit().await;
    for request in fake.requests.lock().unwrap().iter() {
        assert_valid(request);
    }
    let seen = std::mem::take(&mut *lock(&seen));
    (ends, seen, why)
}

/// True for a kind of session that can go on with this window: what cannot be shortened leaves half of it.
fn fits(shape: Shape, window: u64) -> bool {
    match shape {
        Shape::Rules(_) => window > 15_000,
        // A reply as long as the window.
        Shape::Arguments(_) => window > 20_000,
        Shape::Words(..) => window > 15_000,
        Shape::Reads(many, ..) => window > many as u64 * 120,
        Shape::Message(..) | Shape::Summary(_) => true,
    }
}

/// Tokens that a round of such a session brings.
fn round_tokens(shape: Shape) -> u64 {
    let kb = match shape {
        Shape::Reads(many, _, kb) => many * kb,
        Shape::Message(kb, _) | Shape::Rules(kb) | Shape::Arguments(kb) | Shape::Words(kb, _) => kb,
        Shape::Summary(_) => 45,
    };
    kb as u64 * 250
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p16_every_turn_ends_in_a_window_of_any_size() {
    for window in [4_000, 16_000, 64_000, 200_000] {
        for (known, shape) in SHAPES.iter().flat_map(|shape| [(true, *shape), (false, *shape)]) {
            let (ends, seen, why) = story(shape, window, known).await;
            let all = format!(
                "{shape:?} in {window}, known {known}: {ends:?}, {} rounds, {} summaries, {} in a row, {} refused: {why}",
                seen.rounds, seen.sides, seen.in_a_row.1, seen.refused
            );
            println!("{all}");
            let done = ends.iter().all(|end| *end == TurnStatus::Done);
            assert!(done || !fits(shape, window), "{all}");
            assert!(done || why.contains("the largest parts are "), "{all}");
            assert!(seen.accepted <= window, "{all}");
            // At most two summaries for each tenth of growth, where no round brings a large part of the window.
            assert!(round_tokens(shape) > window / 4 || seen.in_a_row.1 <= 2, "{all}");
            assert!(seen.refused <= 3 * ends.len() + seen.rounds, "{all}");
        }
    }
}
