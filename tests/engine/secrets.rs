//! Secrets: put into all input, and found in nothing that is stored or published.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tiller_permit::Redactor;
use tiller_protocol::command::{KeyText, Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnStatus};
use tiller_protocol::{Attachment, Block, CommandBody, EntryBody, EventBody, Message, ModelRef, SendMode};
use tiller_provider::registry::EnteredKey;
use tiller_provider::registry::key::{self, Secret};
use tiller_provider::{Chunk, ChunkStream, Provider, ProviderError, Providers, Request};

use crate::rig::*;
use tiller_engine::{EngineConfig, KeyStore, Open};

/// Recognised by its form.
const SHAPED: &str = "ghp_abcdEFGH1234ijklMNOP5678qrstUVWX90";
/// Recognised by its value.
const KNOWN: &str = "correct-horse-battery-staple-77";

fn redacting(p: &mut EngineConfig) {
    let r = Redactor::new([KNOWN.to_owned()]);
    p.redaction.redact = Arc::new(move |t: &str| r.redact(t).into_owned());
}

fn hits(bytes: &[u8]) -> usize {
    [SHAPED, KNOWN].iter().map(|s| bytes.windows(s.len()).filter(|w| *w == s.as_bytes()).count()).sum()
}

fn hits_under(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    files.map(|f| std::fs::read(f.path()).map_or(0, |bytes| hits(&bytes))).sum()
}

/// Its text in pieces of a few bytes.
fn babbles(text: &str, stop_with: Vec<Step>) -> Vec<Step> {
    let pieces = text.as_bytes().chunks(5);
    let mut steps: Vec<Step> = pieces
        .map(|p| Step::Chunk(Chunk::Text { index: 0, text: String::from_utf8(p.to_vec()).unwrap() }))
        .collect();
    steps.push(Step::Chunk(Chunk::BlockEnd { index: 0 }));
    steps.extend(stop_with);
    steps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seeded_secret_is_in_no_event_and_not_in_the_database_and_tools_get_the_real_one() {
    let place = Place::new();
    place.file("config.env", &format!("TOKEN={SHAPED}\nPASS={KNOWN}\n"));
    let gate = Arc::new(Gate::new());
    let command = format!("printf '%s %s' {SHAPED} {KNOWN} > copy.txt; cat copy.txt");
    let mut first = babbles(&format!("I found {SHAPED} and {KNOWN}, see."), Vec::new());
    let calls_of = calls(&[
        ("c1", "read_file", read_args("config.env")),
        ("c2", "terminal", json!({"command": command})),
        ("c3", "write_file", json!({"path": "new.txt", "content": format!("key {KNOWN}\n")})),
        (
            "c4",
            "todo_write",
            json!({"todos": [{"id": "1", "content": format!("rotate {KNOWN}"), "status": "pending"}]}),
        ),
    ]);
    // After the text that was just added.
    first.extend(calls_of.into_iter().skip(2));
    let mut last = vec![Step::Gate(Arc::clone(&gate))];
    last.extend(babbles(
        &format!("Done with {KNOWN}."),
        vec![usage(), stop(tiller_protocol::StopReason::EndTurn)],
    ));
    let fake = Fake::new([first, last, says(&format!("And {SHAPED} again.")), says("Fine.")]);
    let mut rig = place.start_with(&fake, redacting).await;
    let session = rig.session();
    let paste =
        Attachment::Paste { label: "[paste 1: 1 lines]".into(), text: format!("pasted {KNOWN}").into() };
    let message = Message {
        text: format!("use {SHAPED} [paste 1: 1 lines]"),
        attachments: vec![paste],
        ..Message::default()
    };
    rig.submit_as(message, SendMode::Steer);
    fake.requested(2).await;
    rig.submit_as(Message::text(format!("then {KNOWN}")), SendMode::Queue);
    rig.until("the queue", |e| {
        matches!(e, EventBody::State(StateEvent::QueueChanged { queue }) if queue.len() == 1).then_some(())
    })
    .await;
    gate.pass_one();
    let (status, text, _) = rig.finished().await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.starts_with("Done with [redacted"), "{text}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    // The tools ran with the original arguments.
    assert_eq!(place.read("copy.txt"), format!("{SHAPED} {KNOWN}"));
    assert_eq!(place.read("new.txt"), format!("key {KNOWN}\n"));
    let ReplyEvent::ToolOutputReply { text, .. } =
        rig.query(Query::ToolOutput { call_id: "c2".into() }).await
    else {
        panic!()
    };
    assert!(text.contains("[redacted") && hits(text.as_bytes()) == 0, "{text}");
    rig.snapshot().await;
    let seen = rig.quit().await;
    for e in &seen {
        let json = serde_json::to_vec(&**e).unwrap();
        assert_eq!(hits(&json), 0, "{}", String::from_utf8_lossy(&json));
    }
    assert_eq!(hits_under(place.db().parent().unwrap()), 0);
    // Requests repeat what is stored: each is the one before it and more, also after a restart.
    let mut rig = place
        .start_with(&fake, |p| {
            redacting(p);
            p.session.open = Open::Session(session);
        })
        .await;
    assert_eq!(rig.turn("and now?").await.0, TurnStatus::Done);
    for n in 1..4 {
        let (a, b) = (fake.request(n - 1), fake.request(n));
        assert!(b.messages.len() > a.messages.len());
        assert!(a.messages.iter().eq(b.messages.iter().take(a.messages.len())), "request {n}");
        assert_eq!(hits(format!("{b:?}").as_bytes()), 0, "request {n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_thinking_goes_back_as_it_came() {
    let place = Place::new();
    let fake = Fake::new([vec![
        Step::Chunk(Chunk::Thinking { index: 0, text: format!("hm {KNOWN}") }),
        Step::Chunk(Chunk::Signature { index: 0, signature: "sig".into() }),
        Step::Chunk(Chunk::BlockEnd { index: 0 }),
        Step::Chunk(Chunk::Text { index: 1, text: "Yes.".into() }),
        Step::Chunk(Chunk::BlockEnd { index: 1 }),
        usage(),
        stop(tiller_protocol::StopReason::EndTurn),
    ]]);
    let mut rig = place.start_with(&fake, redacting).await;
    rig.turn("think").await;
    let entries = rig.snapshot().await.entries;
    let EntryBody::Assistant { blocks, .. } = &entries.last().unwrap().body else { panic!() };
    assert_eq!(blocks[0], Block::Thinking { text: format!("hm {KNOWN}"), signature: Some("sig".into()) });
}

/// A vendor's server that knows one key.
struct Server {
    file: std::path::PathBuf,
    up: bool,
}

#[async_trait]
impl Provider for Server {
    fn name(&self) -> &str {
        "anthropic"
    }

    async fn stream(&self, _: Request) -> Result<ChunkStream, ProviderError> {
        Err(ProviderError::Rejected("not in this test".into()))
    }

    fn body(&self, _: &Request) -> Vec<u8> {
        Vec::new()
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        if !self.up {
            return Err(ProviderError::Network("connection refused".into()));
        }
        match key::load(&self.file, "anthropic") {
            Ok(Some(k)) if k.reveal() == KNOWN => Ok(Vec::new()),
            _ => Err(ProviderError::Auth("401".into())),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entered_key_is_kept_in_the_key_file_only_tried_and_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let file = place.work.parent().unwrap().join("home/config/credentials.toml");
    for up in [true, false] {
        let learned = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (at, l) = (file.clone(), Arc::clone(&learned));
        let mut rig = place
            .start_with(&Fake::new([]), |p| {
                p.session.model = Some(ModelRef("demo/demo".into()));
                p.user.keys = Some(KeyStore {
                    file: at.clone(),
                    rebuild: Arc::new(move || {
                        let mut all = Providers::default();
                        all.insert(Arc::new(Server { file: at.clone(), up }));
                        all
                    }),
                    entered: Arc::new(|name| match name {
                        "fixed" => EnteredKey::Unused("config.toml gives a command for it".into()),
                        _ => EnteredKey::Over("ANTHROPIC_API_KEY".into()),
                    }),
                    learn: Arc::new(move |k: &str| crate::scripted_model::lock(&l).push(k.to_owned())),
                });
            })
            .await;
        let fixed = KeyText(KNOWN.to_owned());
        rig.send(CommandBody::Session(SessionCommand::StoreKey { provider: "fixed".into(), key: fixed }));
        assert!(rig.refused().await.message.contains("gives a command for it"));
        assert!(key::load(&file, "fixed").unwrap().is_none());
        let enter = |rig: &mut Rig, key: &str| {
            let (provider, key) = ("anthropic".to_owned(), KeyText(key.to_owned()));
            assert!(!format!("{key:?}").contains(&key.0));
            rig.send(CommandBody::Session(SessionCommand::StoreKey { provider, key }));
        };
        enter(&mut rig, "two words");
        assert!(rig.refused().await.message.contains("is not a key"));
        if up {
            enter(&mut rig, "wrong");
            assert!(rig.refused().await.message.contains("did not accept this key"));
            assert_eq!(key::load(&file, "anthropic").unwrap(), None);
        }
        enter(&mut rig, KNOWN);
        let notice = rig.notice("is stored in").await;
        assert!(notice.message.contains("credentials.toml") && !notice.message.contains(KNOWN));
        assert_eq!(notice.message.contains("could not be tested"), !up);
        // A variable does not silently override the key that was just entered.
        assert!(notice.message.contains("instead of the one in ANTHROPIC_API_KEY"), "{}", notice.message);
        assert_eq!(key::load(&file, "anthropic").unwrap(), Some(Secret::new(KNOWN)));
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        let model = rig
            .until("the model", |e| match e {
                EventBody::State(StateEvent::ModelChanged { model, .. }) => Some(model.clone()),
                _ => None,
            })
            .await;
        assert_eq!(model.provider(), "anthropic");
        assert!(crate::scripted_model::lock(&learned).contains(&KNOWN.to_owned()));
        let seen = rig.quit().await;
        assert!(seen.iter().all(|e| hits(&serde_json::to_vec(&**e).unwrap()) == 0));
        assert_eq!(hits_under(place.db().parent().unwrap()), 0);
    }
}
