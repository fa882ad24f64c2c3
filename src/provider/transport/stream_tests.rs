use std::io::Write as _;

use proptest::prelude::*;
use serde_json::json;
use tiller_protocol::Block;
use tiller_testkit::{Reply, Script, ScriptServer, Wire as Format, thread_cpu_time};

use super::*;
use crate::codec::assemble::{Assembled, Assembler};
use crate::transport::http::NetEnv;

fn decoder(format: Format) -> Box<dyn Decoder> {
    match format {
        Format::Anthropic => Box::new(crate::anthropic::reply::AnthropicReply::new("p")),
        Format::OpenaiChat => Box::new(crate::openai::chat_reply::ChatReply::new("p")),
        Format::OpenaiResponses => Box::new(crate::openai::responses_reply::ResponsesReply::new("p")),
        Format::Gemini => Box::new(crate::gemini::reply::GeminiReply::new("p")),
    }
}

/// Reads pieces of a body as a stream would, without a connection.
fn run(format: Format, pieces: &[&[u8]]) -> (Assembled, Option<ProviderError>) {
    let mut sse = SseDecoder::default();
    let mut decoder = decoder(format);
    let mut queue = VecDeque::new();
    let mut error = None;
    let mut over = false;
    for piece in pieces {
        sse.feed(piece, |event| {
            if over || error.is_some() {
                return;
            }
            match decoder.event(&event.name, &event.data, &mut queue) {
                Ok(flow) => over = flow == Flow::Over,
                Err(e) => error = Some(e),
            }
        })
        .unwrap();
    }
    if error.is_none() {
        error = decoder.end(&mut queue).err();
    }
    let mut assembler = Assembler::new("p", "1", []);
    queue.into_iter().for_each(|c| assembler.push(c));
    (assembler.finish(), error)
}

fn words(blocks: &[Block]) -> String {
    blocks
        .iter()
        .map(|b| match b {
            Block::Text { text } | Block::Thinking { text, .. } => text.as_str(),
            _ => "",
        })
        .collect()
}

#[test]
fn p3_cut_at_every_byte() {
    let scripts = [
        Script::new().thinking("Über", "sig").text("te—xt").call("c1", "run", json!({"x": "é"})).pieces_of(3),
        Script::new().call("c1", "run", json!({})).call("c2", "run", json!({"b": [1]})).pieces_of(2),
    ];
    let mut cuts = 0;
    for format in Format::ALL {
        for script in &scripts {
            let body = script.body(format);
            let (whole, error) = run(format, &[&body]);
            assert_eq!(error, None, "{format:?}");
            for at in 0..body.len() {
                let (part, error) = run(format, &[&body[..at]]);
                match error {
                    Some(ProviderError::Network(_)) => assert_eq!(part.stop, None),
                    Some(e) => panic!("{format:?} {at} {e:?}"),
                    // Only marks and counts may be missing.
                    None => assert_eq!(part.blocks, whole.blocks, "{format:?} {at}"),
                }
                assert!(words(&whole.blocks).starts_with(&words(&part.blocks)), "{format:?} {at}");
                for call in part.calls() {
                    assert!(whole.calls().any(|c| c == call), "{format:?} {at} {call:?}");
                }
                cuts += 1;
            }
        }
    }
    assert!(cuts > 5_000, "{cuts}");
}

/// Cases of the quick run.
const CASES: u32 = 300;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn p4_split_anywhere_is_the_same_reply(which in 0..4_usize, mut cuts in prop::collection::vec(0..4_000_usize, 0..8)) {
        let format = Format::ALL[which];
        let script = Script::new().thinking("Über 👋", "s").text("te—xt").call("c", "run", json!({"x": "é"})).pieces_of(2);
        let body = script.body(format);
        cuts.retain(|c| *c < body.len());
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for c in cuts {
            pieces.push(&body[from..c]);
            from = c;
        }
        pieces.push(&body[from..]);
        prop_assert_eq!(run(format, &[&body]), run(format, &pieces));
    }

    #[test]
    fn p4_p8_damaged_streams_never_panic(which in 0..4_usize, damage in prop::collection::vec((0..4_000_usize, any::<u8>()), 1..8)) {
        let format = Format::ALL[which];
        let mut body = Script::new().thinking("t", "s").text("text").call("c", "run", json!({"x": 1})).pieces_of(2).body(format);
        for (at, byte) in damage {
            let at = at % body.len();
            body[at] = byte;
        }
        let (reply, error) = run(format, &[&body]);
        // In any case ids are unique, and arguments are objects.
        let ids: std::collections::HashSet<_> = reply.calls().map(|c| c.id.clone()).collect();
        prop_assert_eq!(ids.len(), reply.calls().count());
        prop_assert!(reply.calls().all(|c| c.arguments.is_object()));
        prop_assert!(error.is_some() || reply.stop.is_some());
    }

    #[test]
    fn p4_any_json_is_survived(which in 0..4_usize, events in prop::collection::vec(any_event(), 0..12)) {
        let format = Format::ALL[which];
        let body: String = events.iter().map(|e| tiller_testkit::sse("", e)).collect();
        let (reply, _) = run(format, &[body.as_bytes()]);
        prop_assert!(reply.calls().all(|c| c.arguments.is_object() && !c.id.is_empty()));
    }
}

/// Events made of the formats' keywords, in any shape.
fn any_event() -> impl Strategy<Value = serde_json::Value> {
    let keys = [
        "type",
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "error",
        "text",
        "id",
        "name",
        "input",
        "partial_json",
        "choices",
        "tool_calls",
        "function",
        "arguments",
        "content",
        "finish_reason",
        "item",
        "output_index",
        "response",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "finishReason",
        "usageMetadata",
        "reasoning_details",
        "signature",
        "call_id",
        "encrypted_content",
    ];
    let kinds = [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "text",
        "tool_use",
        "thinking",
        "text_delta",
        "input_json_delta",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.completed",
        "function_call",
        "message",
        "reasoning",
        "stop",
        "STOP",
        "tool_calls",
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        (-3..5_i64).prop_map(|n| json!(n)),
        Just(json!(1e300)),
        prop::sample::select(kinds.to_vec()).prop_map(|k| json!(k)),
        "[a{}\"é]{0,4}".prop_map(|s| json!(s)),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|v| json!(v)),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().collect::<serde_json::Value>()),
        ]
    })
}

#[tokio::test]
async fn p12_a_compression_bomb_is_capped() {
    // 40 MB of text compressed to a few kilobytes; the limit here is 8 MB.
    let piece = format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}}\n\n",
        "a".repeat(60_000)
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..700 {
        gzip.write_all(piece.as_bytes()).unwrap();
    }
    let bomb = gzip.finish().unwrap();
    assert!(bomb.len() < 256 * 1024);
    let server = ScriptServer::start([Reply::sse(bomb).header("content-encoding", "gzip")]);
    let long = Duration::from_secs(90);
    let limit = 8 * 1024 * 1024;
    let mut stream = open(StreamRequest {
        http: &Http::new(NetEnv::default()),
        provider: "p",
        url: server.url(),
        headers: HeaderMap::new(),
        body: b"{}".to_vec(),
        decoder: decoder(Format::Anthropic),
        limits: Limits {
            connect: long,
            first_byte: long,
            idle: long,
            near: false,
            pings_only: long,
            reply: limit,
        },
    })
    .await
    .unwrap();
    let (mut bytes, mut error) = (0, None);
    while let Some(item) = stream.next().await {
        match item {
            Ok(Chunk::Text { text, .. }) => bytes += text.len(),
            Ok(_) => {}
            Err(e) => error = Some(e),
        }
    }
    assert!(
        matches!(&error, Some(ProviderError::Rejected(t)) if t.contains("larger than 8 MB")),
        "{error:?}"
    );
    assert!(bytes > limit / 2 && bytes <= limit, "{bytes}");
}

/// The least processor time of three runs, unoptimised; a release build takes a small part of it.
#[test]
fn p7_reading_20_000_deltas_is_cheap_and_linear() {
    let cpu = |format: Format, deltas: usize| {
        let body = Script::new().text(&"word ".repeat(deltas)).pieces_of(5).body(format);
        let once = || {
            let start = thread_cpu_time();
            let (reply, _) = run(format, &[&body]);
            assert_eq!(words(&reply.blocks).len(), deltas * 5);
            thread_cpu_time() - start
        };
        (0..3).map(|_| once()).min().unwrap()
    };
    for format in Format::ALL {
        let (small, large) = (cpu(format, 2_000), cpu(format, 20_000));
        println!("{format:?}: {large:?} for 20,000 deltas");
        assert!(large < Duration::from_secs(3), "{format:?} {large:?} of cpu");
        assert!(large < small * 30, "{format:?}: {small:?} for 2,000, {large:?} for 20,000");
    }
}
