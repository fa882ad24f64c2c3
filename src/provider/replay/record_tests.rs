use std::sync::Arc;

use tiller_protocol::{ModelRef, Part};

use super::*;
use crate::demo::Demo;
use tiller_protocol::Effort;

fn user(text: &str) -> ChatMessage {
    ChatMessage::User { content: vec![Part::Text { text: text.into() }] }
}

fn request(messages: Vec<ChatMessage>) -> Request {
    Request {
        model: "demo".into(),
        system: "s".into(),
        tools: Arc::from([tiller_protocol::ToolSpec {
            name: "list_dir".into(),
            description: "d".into(),
            schema: serde_json::json!({}),
        }]),
        messages: messages.into(),
        max_output: None,
        effort: Effort::Default,
        cache_key: format!("{:p}", &0),
    }
}

async fn chunks(p: &dyn Provider, r: Request) -> Result<Vec<Result<Chunk, ProviderError>>, ProviderError> {
    Ok(p.stream(r).await?.collect().await)
}

const SECRET: &str = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx";

fn masks() -> Redact {
    Redact::new(|t| t.replace(SECRET, "[redacted api key]"))
}

/// A provider that sends a secret in pieces, and repeats one in its error.
struct Says;

#[async_trait]
impl Provider for Says {
    fn name(&self) -> &str {
        "says"
    }
    async fn stream(&self, _: Request) -> Result<ChunkStream, ProviderError> {
        let mut items: Vec<Result<Chunk, ProviderError>> = ["the key ", &SECRET[..9], &SECRET[9..], ", ok"]
            .into_iter()
            .map(|text| Ok(Chunk::Text { index: 0, text: text.into() }))
            .collect();
        items.push(Ok(Chunk::BlockEnd { index: 0 }));
        items.push(Err(ProviderError::Rejected(format!("bad key {SECRET}"))));
        Ok(futures_util::stream::iter(items).boxed())
    }
    fn body(&self, _: &Request) -> Vec<u8> {
        Vec::new()
    }
    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        Err(ProviderError::Auth(format!("401: {SECRET}")))
    }
}

#[tokio::test]
async fn a_secret_that_deltas_cut_and_one_in_an_error_are_masked_on_tape() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let recorder = Recorder::new(Arc::new(Says), &path, masks()).unwrap();
    let said = chunks(&recorder, request(vec![user("help")])).await.unwrap();
    assert_eq!(said.len(), 6, "what is said is not changed");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&SECRET[9..]) && !text.contains(SECRET), "{text}");
    assert!(
        text.contains("the key [redacted api key], ok") && text.contains("bad key [redacted api key]"),
        "{text}"
    );
    // Dropped in the middle: the text so far is recorded, masked.
    let mut stream = recorder.stream(request(vec![user("help")])).await.unwrap();
    for _ in 0..3 {
        stream.next().await;
    }
    drop(stream);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&SECRET[9..]) && text.contains("the key [redacted api key]\""), "{text}");
}

#[tokio::test]
async fn what_a_server_says_of_a_failure_is_masked() {
    let mut all = crate::build(
        &tiller_config::Config::default(),
        &crate::ApiFormats::built_in(),
        &|_| None,
        None,
        &masks(),
    );
    all.insert(Arc::new(Says));
    let says = all.get("says").unwrap();
    for error in [says.models().await.unwrap_err(), says.check().await.unwrap_err()] {
        assert_eq!(error.to_string(), "401: [redacted api key]");
    }
    let last = chunks(&*says, request(vec![user("x")])).await.unwrap().pop().unwrap();
    assert_eq!(last.unwrap_err().to_string(), "bad key [redacted api key]");
}

#[tokio::test]
async fn what_was_recorded_plays_back_without_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let first = vec![user(&format!("help, my key is {SECRET}"))];
    let mut second = first.clone();
    second.push(ChatMessage::Assistant { blocks: vec![], model: ModelRef("demo/demo".into()) });
    second.push(user("explain"));

    let recorder = Recorder::new(Arc::new(Demo::new(Duration::ZERO)), &path, masks()).unwrap();
    let a = chunks(&recorder, request(first.clone())).await.unwrap();
    let b = chunks(&recorder, request(second.clone())).await.unwrap();
    assert!(a.len() > 5 && b.len() > 2);

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(SECRET) && text.contains("[redacted api key]"));
    assert_eq!(text.matches("help, my key").count(), 1, "messages are written once");
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    let replay = Replay::open("r", &path, false, masks()).unwrap();
    assert_eq!(chunks(&replay, request(first.clone())).await.unwrap(), a);
    let wrong = chunks(&replay, request(vec![user("else")])).await.unwrap_err();
    assert!(
        matches!(&wrong, ProviderError::Rejected(t) if t.contains("request 2 is not the recorded one: message 1 is")),
        "{wrong}"
    );
    assert_eq!(chunks(&replay, request(second.clone())).await.unwrap(), b, "a mismatch uses nothing up");
    let over = chunks(&replay, request(second)).await.unwrap_err();
    assert!(over.to_string().contains("has ended: it has 2 requests"), "{over}");
}

#[tokio::test]
async fn a_reply_that_was_dropped_plays_back_as_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let recorder = Recorder::new(Arc::new(Demo::new(Duration::ZERO)), &path, masks()).unwrap();
    let mut stream = recorder.stream(request(vec![user("help")])).await.unwrap();
    stream.next().await;
    stream.next().await;
    drop(stream);
    let replay = Replay::open("r", &path, true, masks()).unwrap();
    let items = chunks(&replay, request(vec![user("help")])).await.unwrap();
    assert_eq!(items.len(), 3);
    assert!(matches!(items.last(), Some(Err(ProviderError::Network(_)))));
}

#[tokio::test]
async fn a_refusal_is_recorded_too() {
    struct No;
    #[async_trait]
    impl Provider for No {
        fn name(&self) -> &str {
            "no"
        }
        async fn stream(&self, _: Request) -> Result<ChunkStream, ProviderError> {
            Err(ProviderError::Wait { message: "slow".into(), after: Some(Duration::from_millis(1500)) })
        }
        fn body(&self, _: &Request) -> Vec<u8> {
            Vec::new()
        }
        async fn models(&self) -> Result<Vec<String>, ProviderError> {
            Ok(vec![])
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let recorder = Recorder::new(Arc::new(No), &path, masks()).unwrap();
    let want = chunks(&recorder, request(vec![user("x")])).await.unwrap_err();
    let replay = Replay::open("r", &path, false, masks()).unwrap();
    assert_eq!(chunks(&replay, request(vec![user("x")])).await.unwrap_err(), want);
}

#[test]
fn a_broken_recording_names_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    for (text, want) in [
        ("{\"t\":\"end\",\"n\":0,\"ms\":1}\n", "line 1 of"),
        ("\n{broken\n", "line 2 of"),
        (
            "{\"t\":\"request\",\"n\":0,\"ms\":0,\"model\":\"m\",\"head\":{},\"same\":3,\"messages\":[]}",
            "refers to",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Replay::open("r", &path, false, masks()).err().unwrap();
        assert!(error.contains(want), "{error}");
    }
}
