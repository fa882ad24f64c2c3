//! Servers that refuse, lie, send too much or nothing; budgets; interruption.

use std::time::Duration;

use super::*;
use crate::ToolError;

/// A tool of each kind over one server, with arguments, and the budget that it is asked for.
fn each(server: &Server, time: Duration) -> Vec<(&'static dyn Tool, Value)> {
    let endpoint = server.endpoint();
    let mixture = Mixture { models: vec![endpoint.clone()], synthesis: endpoint.clone() };
    let settings = MediaSettings {
        vision: Some(endpoint.clone()),
        image: Some(endpoint.clone()),
        speech: Some(endpoint),
        mixture: Some(mixture),
        time: Some(time),
    };
    let args = [
        json!({"path": "a.png", "question": "?"}),
        json!({"prompt": "x", "path": "out.png"}),
        json!({"text": "x", "path": "out.mp3"}),
        json!({"question": "x"}),
    ];
    tools(settings).into_iter().map(|(tool, _)| tool).zip(args).collect()
}

const LONG: Duration = Duration::from_secs(120);

fn bench() -> Bench {
    let b = Bench::new();
    b.file("a.png", png());
    b
}

fn nothing_was_written(b: &Bench) {
    assert!(!b.root.join("out.png").exists() && !b.root.join("out.mp3").exists());
}

#[tokio::test]
async fn refusals_say_what_to_set_and_never_the_key() {
    let error =
        format!(r#"{{"error": {{"message": "Incorrect API key provided: {KEY}.\u001b[2J Go\n away"}}}}"#);
    for (status, want) in [
        (
            401,
            "127.0.0.1: it refused the key of MEDIA_KEY (HTTP 401): Incorrect API key provided: (the key). Go away",
        ),
        (403, "it refused the key of MEDIA_KEY (HTTP 403)"),
        (404, "in config.toml may be wrong (model: model-1)"),
        (429, "it takes no more requests now (HTTP 429)"),
        (307, "it answered with a redirect (HTTP 307)"),
        (500, "it answered with HTTP 500: Incorrect API key provided"),
        (503, "it answered with HTTP 503"),
    ] {
        let server = Server::always(Said(status, "application/json", error.clone().into_bytes()));
        let b = bench();
        for (tool, args) in each(&server, LONG) {
            let said = b.say(tool, args).await;
            assert!(said.starts_with("error: ") && said.contains(want), "{} {status}: {said}", tool.name());
            assert!(!said.contains(KEY) && !said.contains('\u{1b}'), "{said:?}");
        }
        nothing_was_written(&b);
        assert_eq!(lock(&b.ports.costs).len(), 0, "{status}: what is refused costs nothing");
        assert!(
            server.requests().iter().all(|r| !r.head.contains("/elsewhere")),
            "no key follows a redirect"
        );
    }
}

#[tokio::test]
async fn garbage_is_an_error_and_writes_nothing() {
    for body in [
        &b""[..],
        b"garbage",
        b"{}",
        b"[]",
        b"null",
        br#"{"data": []}"#,
        br#"{"data": [{"b64_json": "%%%"}]}"#,
        br#"{"data": [{"b64_json": "bm8gaW1hZ2U="}]}"#,
        br#"{"choices": []}"#,
        br#"{"choices": [{"message": {"content": null}}]}"#,
        br#"{"choices": [{"message": {"content": "  "}}]}"#,
        b"<html>not found</html>",
    ] {
        let server = Server::always(Said(200, "application/json", body.to_vec()));
        let b = bench();
        for (tool, args) in each(&server, LONG) {
            let said = b.say(tool, args).await;
            assert!(said.starts_with("error: "), "{} {}: {said}", tool.name(), String::from_utf8_lossy(body));
        }
        nothing_was_written(&b);
    }
}

/// A small file that claims to be a very large image.
fn bomb() -> Vec<u8> {
    let mut bytes = png();
    // Width and height stand in the header; its checksum goes with them.
    bytes[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let sum = crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |s, _| if s & 1 == 1 { (s >> 1) ^ 0xedb8_8320 } else { s >> 1 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[tokio::test]
async fn an_image_that_would_fill_the_memory_is_refused() {
    let server = Server::always(said(json!({"data": [{"b64_json": STANDARD.encode(bomb())}]})));
    let b = bench();
    let said = b.say(image_tool(server.endpoint()), json!({"prompt": "x", "path": "out.png"})).await;
    assert!(said.starts_with("error: the server sent no image that can be used: "), "{said}");
    nothing_was_written(&b);
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let server = Server::always(Said(200, "application/json", vec![b'x'; endpoint::TEXT_BYTES + 1]));
    let b = bench();
    let (vision, args) = each(&server, LONG).remove(0);
    let said = b.say(vision, args).await;
    assert_eq!(said, "error: 127.0.0.1: its answer is larger than 4.2 MB");
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_may_have_charged() {
    let server = Server::start(|_, _| None);
    let b = bench();
    for (tool, args) in each(&server, Duration::from_secs(1)) {
        let done = b.call(tool, args).await;
        match done {
            Err(ToolError::TimedOut(why)) => {
                assert!(why.contains("no complete answer of 127.0.0.1"), "{why}")
            }
            // Each model has its own time; the call says that of all of them.
            Err(ToolError::Tell(why)) => assert!(why.contains("no complete answer"), "{why}"),
            other => panic!("{}: {other:?}", tool.name()),
        }
    }
    nothing_was_written(&b);
    let costs = lock(&b.ports.costs);
    assert_eq!(costs.len(), 4, "each is counted with what it was estimated to use");
    assert!(costs.iter().all(|c| c.usage.estimated && c.usage.input > 0), "{costs:?}");
}

#[tokio::test]
async fn esc_ends_a_call_at_once() {
    let server = Server::start(|_, _| None);
    for n in 0..4 {
        let b = bench();
        let (tool, args) = each(&server, LONG).remove(n);
        let before = server.requests().len();
        let running = b.call(tool, args);
        let stop = async {
            // Once the server has the request.
            while server.requests().len() == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            b.cx.cancel.cancel();
        };
        let (done, ()) = tokio::join!(running, stop);
        assert!(matches!(done, Err(ToolError::Interrupted(_))), "{}: {done:?}", tool.name());
        assert_eq!(lock(&b.ports.costs).len(), 1, "{}: the server may charge it", tool.name());
        nothing_was_written(&b);
    }
}

#[tokio::test]
async fn a_used_up_budget_refuses_before_anything_is_sent() {
    let server = Server::always(chat_reply("never"));
    let b = bench();
    *lock(&b.ports.broke) = Some("the budget of this session is used up: $1.00 of $1.00".into());
    for (tool, args) in each(&server, LONG) {
        let said = b.say(tool, args).await;
        assert!(
            said.starts_with("error: nothing was sent: the budget of this session is used up"),
            "{}: {said}",
            tool.name()
        );
    }
    assert_eq!(server.requests().len(), 0);
    assert_eq!(lock(&b.ports.costs).len(), 0);
}

#[tokio::test]
async fn the_budget_is_asked_with_the_price_where_it_is_known() {
    let server = Server::always(said(json!({"data": [{"b64_json": STANDARD.encode(png())}]})));
    let b = bench();
    let mut endpoint = server.endpoint();
    endpoint.prices.each = Some(0.04);
    b.call(image_tool(endpoint.clone()), json!({"prompt": "x"})).await.unwrap();
    // A server on this machine is free, one elsewhere is not.
    endpoint.prices = Prices::default();
    b.call(image_tool(endpoint.clone()), json!({"prompt": "x"})).await.unwrap();
    endpoint.url = "http://media.invalid/v1".into();
    b.call(image_tool(endpoint), json!({"prompt": "x"})).await.unwrap_err();
    assert_eq!(lock(&b.ports.prices).as_slice(), [Some(Cost::from_usd(0.04)), Some(Cost(0)), None]);
}

#[tokio::test]
async fn a_missing_key_or_server_says_what_to_set() {
    let server = Server::always(chat_reply("never"));
    let b = bench();
    let mut endpoint = server.endpoint();
    endpoint.key = None;
    let said = b.say(vision(endpoint.clone()), json!({"path": "a.png", "question": "?"})).await;
    assert_eq!(
        said,
        "error: there is no key for 127.0.0.1: MEDIA_KEY is not set. The user can set it, or name another variable with \
         key_env under [media.vision] in config.toml"
    );
    // A server that needs none is asked without.
    endpoint.variable = None;
    assert!(
        b.say(vision(endpoint.clone()), json!({"path": "a.png", "question": "?"})).await.contains("never")
    );
    assert!(!server.requests()[0].head.to_lowercase().contains("authorization"));
    endpoint.url = "http://127.0.0.1:1/v1".into();
    let said = b.say(vision(endpoint.clone()), json!({"path": "a.png", "question": "?"})).await;
    assert!(said.starts_with("error: 127.0.0.1: no connection: "), "{said}");
    assert_eq!(lock(&b.ports.costs).len(), 1, "without a connection nothing is charged");
    endpoint.url = "file:///etc".into();
    assert!(
        b.say(vision(endpoint), json!({"path": "a.png", "question": "?"}))
            .await
            .contains("is not an http address")
    );
    for (tool, offered) in tools(MediaSettings::default()) {
        assert!(!offered);
        let args = match tool.name() {
            "vision_analyze" => json!({"path": "a.png", "question": "?"}),
            "image_generate" => json!({"prompt": "x"}),
            "text_to_speech" => json!({"text": "x"}),
            _ => json!({"question": "x"}),
        };
        let said = b.say(tool, args).await;
        assert!(said.starts_with("error: there ") && said.contains("in config.toml"), "{said}");
    }
}

#[test]
fn prices() {
    let usage = tiller_protocol::Usage { input: 1_000_000, output: 500_000, ..Default::default() };
    let cost = |input, output, each| Prices { input, output, each }.cost(&usage).map(|c| c.usd());
    assert_eq!(cost(Some(2.0), Some(8.0), None), Some(6.0));
    assert_eq!(cost(Some(2.0), None, None), Some(3.0), "one price holds for both");
    assert_eq!(cost(None, None, Some(0.04)), Some(0.04));
    assert_eq!(cost(Some(2.0), None, Some(1.0)), Some(4.0));
    assert_eq!(cost(None, None, None), None);
    assert_eq!(cost(Some(f64::NAN), None, None), None);
    assert_eq!(cost(Some(-1.0), None, None), None);
}
