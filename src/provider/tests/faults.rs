//! The provider rows of the fault matrix (P1 to P12), against a scripted server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod common;

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{KEY, ask, entry, hello, provider, with_entry, with_env};
use serde_json::json;
use tiller_protocol::{Block, Cost, StopReason, Usage};
use tiller_provider::{Chunk, Provider, ProviderError, transport::retry};
use tiller_testkit::{Counts, Framing, Reply, Script, ScriptServer, Wire};

/// A recording is cut at every multiple of this many bytes over a real connection; `stream_tests.rs` cuts at every byte
/// without one.
const EVERY: usize = 41;

fn error_of(wire: Wire, kind: &str, text: &str) -> serde_json::Value {
    match wire {
        Wire::Anthropic => json!({"type": "error", "error": {"type": kind, "message": text}}),
        Wire::Gemini => json!({"error": {"code": 429, "status": kind, "message": text}}),
        _ => json!({"error": {"type": kind, "code": kind, "message": text}}),
    }
}

#[tokio::test]
async fn p1_waits_are_told_and_retried() {
    for wire in Wire::ALL {
        for status in [408, 409, 429, 500, 502, 503, 529] {
            let server = ScriptServer::start([
                Reply::status(status).header("retry-after", "3").json(&error_of(
                    wire,
                    "overloaded_error",
                    "busy",
                )),
                Reply::script(wire, &Script::new().text("now")),
            ]);
            let p = provider(wire, &server.url());
            let first = ask(&p, hello()).await.error.unwrap();
            let ProviderError::Wait { after, .. } = &first else { panic!("{wire:?} {status} {first:?}") };
            assert_eq!(*after, Some(Duration::from_secs(3)));
            let wait = retry::wait(&first, 1, 6, 0.0).unwrap();
            assert!(wait >= Duration::from_secs(3));
            assert_eq!(ask(&p, hello()).await.text(), "now");
            assert_eq!(server.count(), 2, "the provider itself never tries again");
        }
    }
}

#[tokio::test]
async fn p2_spend_limits_and_bad_keys_end_after_one_request() {
    let table = [
        (
            429,
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        (400, "invalid_request_error", "messages: bad"),
        (401, "authentication_error", "bad key"),
        (403, "permission_error", "not allowed"),
    ];
    for wire in Wire::ALL {
        for (status, kind, text) in table {
            let server = ScriptServer::start([Reply::status(status).json(&error_of(wire, kind, text))]);
            let error = ask(&provider(wire, &server.url()), hello()).await.error.unwrap();
            assert!(!error.retryable(), "{wire:?} {status} {error:?}");
            assert!(error.to_string().contains("p "), "{error}");
            assert_eq!(retry::wait(&error, 1, 6, 0.5), None);
            assert_eq!(server.count(), 1);
        }
    }
}

/// A cut may leave a prefix of the whole reply, and never an incomplete call.
#[tokio::test]
async fn p3_cut_over_a_connection() {
    let script = Script::new()
        .thinking("Überlegung", "sig")
        .text("text — text")
        .call("c1", "run", json!({"x": "é"}))
        .call("c2", "run", json!({}))
        .pieces_of(4);
    for wire in Wire::ALL {
        let body = script.body(wire);
        let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let offset = Arc::clone(&next);
        let served = body.clone();
        let server = ScriptServer::with(move |_, _| {
            let at = offset.load(std::sync::atomic::Ordering::SeqCst);
            // Without framing a cut looks like a regular end.
            Reply::sse(served.clone()).framing(Framing::UntilClose).cut_at(at)
        });
        let p = provider(wire, &server.url());
        next.store(body.len(), std::sync::atomic::Ordering::SeqCst);
        let whole = ask(&p, hello()).await.reply;
        assert_eq!(whole.calls().count(), 2);
        let words = |blocks: &[Block]| -> String {
            blocks
                .iter()
                .map(|b| match b {
                    Block::Text { text } | Block::Thinking { text, .. } => text.as_str(),
                    _ => "",
                })
                .collect()
        };
        let mut cut = 0;
        for at in (0..body.len()).step_by(EVERY) {
            next.store(at, std::sync::atomic::Ordering::SeqCst);
            let out = ask(&p, hello()).await;
            if out.error.is_some() {
                cut += 1;
                assert!(
                    matches!(out.error, Some(ProviderError::Network(_))),
                    "{wire:?} {at} {:?}",
                    out.error
                );
                assert_eq!(out.reply.stop, None);
            } else {
                // Only the end may be missing: the reply itself is complete.
                assert_eq!(out.reply.blocks, whole.blocks, "{wire:?} {at}");
                assert_eq!(out.reply.stop, Some(StopReason::ToolUse));
            }
            assert!(
                words(&whole.blocks).starts_with(&words(&out.reply.blocks)),
                "{wire:?} {at}: doubled or wrong"
            );
            for call in out.reply.calls() {
                assert!(
                    whole.calls().any(|c| c.id == call.id && c.arguments == call.arguments),
                    "{wire:?} {at}"
                );
            }
        }
        assert!(cut > body.len() / EVERY / 2, "{wire:?}: {cut}");
    }
}

#[tokio::test]
async fn p4_odd_streams_are_read_by_the_rules() {
    let script = Script::new().text("grüße 👋 — ende").pieces_of(1);
    for wire in Wire::ALL {
        let body = String::from_utf8(script.body(wire)).unwrap();
        let odd = format!(
            "\u{feff}: hello\r\nretry: 1\n\n{}",
            body.replace("\n\n", "\r\n\r\n").replace("data: ", ": c\rid: 7\rdata:")
        );
        let unknown = format!("event: brand.new\ndata: {{\"type\":\"brand.new\",\"x\":[]}}\n\n{body}");
        for (what, reply) in [
            ("plain", Reply::sse(body.clone())),
            ("byte by byte", Reply::sse(body.clone()).dribble(1, 0)),
            ("odd", Reply::sse(odd)),
            ("unknown event", Reply::sse(unknown)),
        ] {
            let server = ScriptServer::start([reply]);
            let out = ask(&provider(wire, &server.url()), hello()).await;
            assert_eq!(
                (out.error.clone(), out.text().as_str()),
                (None, "grüße 👋 — ende"),
                "{wire:?} {what}"
            );
        }
        let server = ScriptServer::start([Reply::sse(format!("data: {{\"type\": broken\n\n{body}"))]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert!(out.message().contains("could not be read"), "{wire:?} {:?}", out.error);
    }
}

#[tokio::test]
async fn p4_a_line_of_more_than_64_mb_ends_the_reply() {
    let mut reply = Reply::sse("data: {\"x\":\"");
    for _ in 0..66 {
        reply = reply.bytes(vec![b'x'; 1024 * 1024]);
    }
    let server = ScriptServer::start([reply]);
    let out = ask(&provider(Wire::Anthropic, &server.url()), hello()).await;
    assert!(matches!(&out.error, Some(ProviderError::Rejected(t)) if t.contains("64 MB")), "{:?}", out.error);
}

/// The time-out fires after at least a tenth of the limit; the upper bound allows for a busy machine.
fn fires(took: Duration, limit: f64) {
    let took = took.as_secs_f64();
    assert!(took >= limit * 0.9 && took < limit + 20.0, "{took} for {limit}");
}

#[tokio::test]
async fn p5_each_limit_fires() {
    let wire = Wire::Anthropic;
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n";
    let text = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"so far\"}}\n\n";
    let table: Vec<(&str, Reply, &str)> = vec![
        ("accepts and is silent", Reply::silence(), "sent nothing"),
        ("headers only", Reply::sse("").hang(), "sent nothing"),
        ("goes silent", Reply::sse(format!("{start}{text}")).hang(), "went silent"),
        (
            "pings only",
            Reply::sse(format!("{start}{text}")).repeat("event: ping\ndata: {\"type\":\"ping\"}\n\n", 50),
            "keep-alive signals",
        ),
        (
            "comments only",
            Reply::sse(format!("{start}{text}")).repeat(": keep-alive\n\n", 50),
            "keep-alive signals",
        ),
    ];
    for (what, reply, words) in table {
        let server = ScriptServer::start([reply]);
        let mut e = entry(wire, &server.url());
        // Short only where it must run out; among the signals that do not end it, it is long beside their pause.
        let (limits, limit) = match words {
            "sent nothing" => ((0.4, 60.0, 60.0), 0.4),
            "went silent" => ((60.0, 1.0, 60.0), 1.0),
            _ => ((60.0, 2.0, 3.0), 3.0),
        };
        e.timeouts.first_byte = Some(limits.0);
        (e.timeouts.idle, e.timeouts.pings_only) = (limits.1, limits.2);
        let out = ask(&with_entry(e), hello()).await;
        // A request that the server in the own network may still compute is not sent again, and the setting is named.
        let setting = match words {
            "sent nothing" => "first_byte",
            "went silent" => "idle",
            _ => "pings_only",
        };
        let right = match &out.error {
            Some(ProviderError::Unanswered(t)) => {
                t.contains(&format!("raise providers.p.timeouts.{setting}"))
            }
            _ => false,
        };
        assert!(right && out.message().contains(words), "{what}: {:?}", out.error);
        fires(out.took, limit);
        if limit > 0.4 {
            assert_eq!(out.text(), "so far", "{what}: what came is kept");
        }
    }
}

#[tokio::test]
async fn p5_connecting_has_a_limit_and_waiting_can_be_dropped() {
    // It accepts, and never answers the TLS handshake.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut e = entry(Wire::OpenaiChat, &url);
    e.timeouts.connect = 0.4;
    let p = with_entry(e);
    // The first client for https loads certificates, which must not be measured.
    let _ = ask(&p, hello()).await;
    let out = ask(&p, hello()).await;
    assert!(out.message().contains("did not answer in time"), "{:?}", out.error);
    fires(out.took, 0.4);

    let server = ScriptServer::start([Reply::silence()]);
    let p = provider(Wire::Anthropic, &server.url());
    let task = tokio::spawn(async move { p.stream(hello()).await.map(|_| ()) });
    let server = tokio::task::spawn_blocking(move || {
        server.wait_for(1, Duration::from_secs(90));
        server
    })
    .await
    .unwrap();
    let start = Instant::now();
    task.abort();
    let _ = task.await;
    tokio::task::spawn_blocking(move || server.wait_finished(1, Duration::from_secs(90))).await.unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(90),
        "the server sees the connection go: {:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn p6_a_failure_event_ends_the_reply_though_the_socket_stays_open() {
    let text = Script::new().text("half").stop(tiller_testkit::Stop::Natural);
    for wire in Wire::ALL {
        let failure = match wire {
            Wire::Anthropic => {
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
            }
            Wire::OpenaiChat => "data: {\"error\":{\"code\":502,\"message\":\"Overloaded\"}}\n\n",
            Wire::OpenaiResponses => {
                "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"Overloaded\"}}}\n\n"
            }
            Wire::Gemini => {
                "data: {\"error\":{\"code\":503,\"message\":\"Overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n"
            }
        };
        let body = String::from_utf8(text.body(wire)).unwrap();
        // Everything up to and including the text.
        let at = body.find("half").unwrap();
        let head = &body[..at + body[at..].find("\n\n").unwrap() + 2];
        let server = ScriptServer::start([
            Reply::sse(format!("{head}{failure}")).hang(),
            Reply::sse(body.clone()).hang(),
        ]);
        let p = provider(wire, &server.url());
        let out = ask(&p, hello()).await;
        assert!(
            matches!(&out.error, Some(ProviderError::Wait { message, .. }) if message.contains("Overloaded")),
            "{wire:?} {:?}",
            out.error
        );
        assert_eq!(out.text(), "half");
        assert!(out.took < Duration::from_secs(20), "{wire:?} {:?}", out.took);
        // A complete reply ends at once as well.
        let out = ask(&p, hello()).await;
        assert_eq!((out.error, out.reply.stop), (None, Some(StopReason::EndTurn)), "{wire:?}");
        assert!(out.took < Duration::from_secs(20), "{wire:?} {:?}", out.took);
    }
}

#[tokio::test]
async fn p6_a_finish_mark_without_an_end_mark_is_enough() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = ScriptServer::start([Reply::sse(body).hang()]);
    let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
    assert_eq!((out.error.clone(), out.text().as_str()), (None, "x"));
    assert!(out.took < Duration::from_secs(30), "{:?}", out.took);
}

/// Deltas of the quick run; the nightly one has a million.
const DELTAS: usize = 20_000;

#[tokio::test]
async fn p7_many_tiny_deltas_are_cheap_and_joined() {
    for wire in Wire::ALL {
        let words = "word ".repeat(DELTAS);
        let body = Script::new().text(&words).pieces_of(5).body(wire);
        let server = ScriptServer::start([Reply::sse(body)]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert_eq!(out.text(), words, "{wire:?}");
        assert!(out.chunks.len() < DELTAS / 2, "{wire:?}: a burst is joined, {} chunks", out.chunks.len());
        // Unoptimised, on a machine with other load.
        assert!(out.took < Duration::from_secs(60), "{wire:?} {:?}", out.took);
    }
}

/// An endless reply: the part up to the limit is kept, and the rest is not read.
#[tokio::test]
async fn p7_a_reply_without_an_end_is_stopped_and_said() {
    for wire in Wire::ALL {
        let text = "word ".repeat(5 << 20);
        let body = Script::new().text(&text).pieces_of(30_000).body(wire);
        let server = ScriptServer::start([Reply::sse(body)]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        let said = matches!(&out.error, Some(ProviderError::Rejected(t)) if t.contains("longer than 16 MB"));
        assert!(said, "{wire:?}: {:?}", out.error);
        let kept = out.text();
        assert!(
            text.starts_with(&kept) && (15 << 20..=16 << 20).contains(&kept.len()),
            "{wire:?}: {}",
            kept.len()
        );
    }
}

#[tokio::test]
async fn p8_strange_calls_leave_one_valid_call_each() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for wire in Wire::ALL {
        let mut script = Script::new()
            .call_raw("same", "t", "{\"a\": 1")
            .call_raw("same", "t", "[1, 2]")
            .call_raw("", "no_such_tool", "{}")
            .call_raw("d", "t", &deep)
            .pieces_of(4096);
        for n in 0..500 {
            script = script.call(&format!("id{n}"), "t", json!({"n": n}));
        }
        let server = ScriptServer::start([Reply::script(wire, &script)]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert_eq!(out.error, None, "{wire:?}");
        let calls: Vec<_> = out.reply.calls().collect();
        assert_eq!(calls.len(), 504, "{wire:?}");
        let ids: std::collections::HashSet<_> = calls.iter().map(|c| &c.id).collect();
        assert_eq!(ids.len(), 504, "{wire:?}");
        let bad = calls.iter().filter(|c| c.malformed.is_some()).count();
        assert_eq!(bad, 3, "{wire:?}");
        assert!(calls.iter().all(|c| c.arguments.is_object()));
    }
}

#[tokio::test]
async fn p9_overflow_and_413_are_told_apart() {
    let table = [
        (Wire::Anthropic, 400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (Wire::OpenaiChat, 400, "This model's maximum context length is 8192 tokens."),
        (Wire::OpenaiResponses, 400, "Your input exceeds the context window of this model."),
        (
            Wire::Gemini,
            400,
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
        ),
    ];
    for (wire, status, text) in table {
        let server =
            ScriptServer::start([Reply::status(status).json(&error_of(wire, "invalid_request_error", text))]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert!(matches!(out.error, Some(ProviderError::TooLong(_))), "{wire:?} {:?}", out.error);
    }
    let error = error_of(Wire::Anthropic, "invalid_request_error", "Request too large");
    let server = ScriptServer::start([Reply::status(413).json(&error)]);
    let out = ask(&provider(Wire::Anthropic, &server.url()), hello()).await;
    assert!(matches!(out.error, Some(ProviderError::TooLarge(_))), "{:?}", out.error);
    // Some servers report it only in the middle of the stream.
    let event = "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}}\n\n";
    let server = ScriptServer::start([Reply::sse(event)]);
    let out = ask(&provider(Wire::OpenaiResponses, &server.url()), hello()).await;
    assert!(matches!(out.error, Some(ProviderError::TooLong(_))), "{:?}", out.error);
}

#[tokio::test]
async fn p11_usage_saturates() {
    let counts = [
        Counts { input: -5, output: -1, cache_read: -3, cache_write: 0, reasoning: -9 },
        Counts {
            input: i64::MAX,
            output: i64::MAX,
            cache_read: i64::MAX,
            cache_write: i64::MAX,
            reasoning: i64::MAX,
        },
    ];
    let info =
        tiller_config::schema::ModelInfo { input: Some(3.0), output: Some(15.0), ..Default::default() };
    for wire in Wire::ALL {
        for c in counts {
            let server = ScriptServer::start([Reply::script(wire, &Script::new().text("x").counts(c))]);
            let out = ask(&provider(wire, &server.url()), hello()).await;
            assert_eq!((out.error.clone(), out.text().as_str()), (None, "x"), "{wire:?}");
            let cost = tiller_provider::models::cost(&out.reply.usage, &info).unwrap();
            if c.input < 0 {
                assert!(cost <= Cost(1_000), "{wire:?} {cost:?} {:?}", out.reply.usage);
            } else {
                assert!(cost >= Cost(1 << 60), "{wire:?} {cost:?}");
            }
            assert!(out.reply.usage.context() >= out.reply.usage.input);
        }
        let server = ScriptServer::start([Reply::script(wire, &Script::new().text("x").no_usage())]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert_eq!((out.error.clone(), out.reply.usage), (None, Usage::default()), "{wire:?}");
    }
}

#[tokio::test]
async fn p12_the_key_never_follows_a_redirect() {
    for wire in Wire::ALL {
        for status in [301, 302, 303, 307, 308] {
            let other = ScriptServer::start([]);
            let to = format!("{}/steal", other.url().replace("127.0.0.1", "localhost"));
            let server = ScriptServer::start([Reply::status(status).header("location", &to)]);
            let out = ask(&provider(wire, &server.url()), hello()).await;
            assert!(out.message().contains("redirects to the host localhost"), "{wire:?} {:?}", out.error);
            assert_eq!(other.connections(), 0, "{wire:?} {status}");
        }
        // The same host at another port is a different server.
        let other = ScriptServer::start([]);
        let server = ScriptServer::start([Reply::status(307).header("location", &other.url())]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert!(matches!(out.error, Some(ProviderError::Rejected(_))), "{:?}", out.error);
        assert_eq!(other.connections(), 0);
    }
    // On the same server a redirect that keeps the method is followed, up to a limit.
    let server = ScriptServer::with(|r, _| {
        if r.path == "/there" {
            Reply::script(Wire::Anthropic, &Script::new().text("moved"))
        } else {
            Reply::status(308).header("location", if r.path.contains("loop") { "/loop" } else { "/there" })
        }
    });
    assert_eq!(ask(&provider(Wire::Anthropic, &server.url()), hello()).await.text(), "moved");
    let out = ask(&provider(Wire::Anthropic, &format!("{}/loop", server.url())), hello()).await;
    assert!(out.error.is_some());
    assert!(server.count() < 12, "{}", server.count());
}

#[tokio::test]
async fn p12_a_compression_bomb_in_an_error_is_read_up_to_a_cap() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        gzip.write_all(&vec![b'a'; 1024 * 1024]).unwrap();
    }
    let server = ScriptServer::start([Reply::status(500)
        .header("content-encoding", "gzip")
        .bytes(gzip.finish().unwrap())]);
    let out = ask(&provider(Wire::Anthropic, &server.url()), hello()).await;
    assert!(matches!(&out.error, Some(ProviderError::Wait { .. })), "{:?}", out.error);
    assert!(out.message().len() < 1_000);
    assert!(out.took < Duration::from_secs(30), "{:?}", out.took);
}

#[tokio::test]
async fn p12_tls_and_network_failures_say_what_to_do() {
    let plain = ScriptServer::start([]);
    let https = plain.url().replace("http://", "https://");
    let out = ask(&provider(Wire::Anthropic, &https), hello()).await;
    assert!(
        matches!(&out.error, Some(ProviderError::Network(t)) if t.contains("uses https")),
        "{:?}",
        out.error
    );

    // Nothing listens at the port of a client, and no other test gets it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let nobody = format!("http://{}", client.local_addr().unwrap());
    let out = ask(&provider(Wire::Anthropic, &nobody), hello()).await;
    assert!(
        matches!(&out.error, Some(ProviderError::Network(t)) if t.contains("connection refused")),
        "{:?}",
        out.error
    );
    let out = ask(&provider(Wire::Anthropic, "http://no-such-host.invalid"), hello()).await;
    assert!(
        matches!(&out.error, Some(ProviderError::Network(t)) if t.contains("no-such-host.invalid")),
        "{:?}",
        out.error
    );
    for bad in ["http://[bad", "http:// x y"] {
        let out = ask(&provider(Wire::Anthropic, bad), hello()).await;
        assert!(
            matches!(&out.error, Some(ProviderError::Rejected(t)) if t.contains("base URL")),
            "{bad} {:?}",
            out.error
        );
    }
}

#[tokio::test]
async fn p12_a_proxy_is_used_for_others_and_never_sees_the_key_of_https() {
    // A proxy that records the request, then closes.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 4096];
            let n = stream.read(&mut bytes).unwrap_or(0);
            if tell.send(String::from_utf8_lossy(&bytes[..n]).into_owned()).is_err() {
                return;
            }
        }
    });
    let proxied = |no_proxy: &'static str| {
        let address = address.clone();
        move |name: &str| match name {
            "HTTPS_PROXY" | "http_proxy" => Some(address.clone()),
            "NO_PROXY" => Some(no_proxy.into()),
            _ => None,
        }
    };
    let p = with_env(entry(Wire::Anthropic, "https://api.example.invalid"), &proxied(""));
    assert!(ask(&p, hello()).await.error.is_some());
    let seen = told.recv_timeout(Duration::from_secs(90)).unwrap();
    assert!(seen.starts_with("CONNECT api.example.invalid:443 HTTP/1.1"), "{seen}");
    assert!(!seen.contains(KEY));

    let p = with_env(entry(Wire::Anthropic, "https://api.example.invalid"), &proxied("example.invalid"));
    assert!(ask(&p, hello()).await.error.is_some());
    let server = ScriptServer::start([Reply::script(Wire::Anthropic, &Script::new().text("direct"))]);
    let p = with_env(entry(Wire::Anthropic, &server.url()), &proxied(""));
    assert_eq!(ask(&p, hello()).await.text(), "direct");
    assert!(told.try_recv().is_err(), "neither NO_PROXY hosts nor loopback go through it");
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_not_shown() {
    for status in [400, 401, 429, 500] {
        let body = json!({"error": {"message": format!("your key {KEY} is odd")}});
        let server = ScriptServer::start([Reply::status(status).json(&body)]);
        let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
        assert!(out.message().contains("[key]") && !out.message().contains(KEY), "{}", out.message());
        assert!(!format!("{:?}", out.error).contains(KEY));
    }
}

#[tokio::test]
async fn connections_are_reused() {
    let replies = (0..5).map(|_| Reply::script(Wire::Anthropic, &Script::new().text("x")));
    let server = ScriptServer::start(replies);
    let p: Arc<dyn Provider> = provider(Wire::Anthropic, &server.url());
    for _ in 0..5 {
        let out = ask(&p, hello()).await;
        assert_eq!(out.error, None);
        assert!(out.chunks.iter().any(|c| matches!(c, Chunk::Stop(_))));
    }
    assert!(server.connections() <= 5, "{}", server.connections());
}
