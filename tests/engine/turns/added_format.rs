//! An API format that is added by one line is complete: the configuration may name it, and a turn runs over it.

use std::sync::Arc;

use async_trait::async_trait;
use tiller_config::{Sources, json_schema, load};
use tiller_protocol::ModelRef;
use tiller_protocol::event::TurnStatus;
use tiller_provider::{ApiFormat, ApiFormats, ChunkStream, Provider, ProviderError, Redact, Request, build};

use crate::rig::*;

/// Says its own name.
struct Parrot(String);

const FORMAT: ApiFormat = ApiFormat::local("parrot", |of| Ok(Arc::new(Parrot(of.name.to_owned()))));

#[async_trait]
impl Provider for Parrot {
    fn name(&self) -> &str {
        &self.0
    }

    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError> {
        Fake::new([says(&format!("I am {}.", self.0))]).stream(request).await
    }

    fn body(&self, _: &Request) -> Vec<u8> {
        Vec::new()
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        Ok(vec!["polly".into()])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_format_is_added_by_one_line() {
    let mut formats = ApiFormats::built_in();
    formats.push(FORMAT);

    // The configuration may name it, and a wrong name leads to it.
    let place = Place::new();
    let file = place.tmp.path().join("config.toml");
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        load(&Sources { user: Some(file.clone()), kinds: formats.kinds(), ..Sources::default() })
    };
    let wrong = read("[providers.bird]\nkind = \"parot\"\n").problems;
    assert!(wrong[0].to_string().contains("did you mean `parrot`?"), "{wrong:?}");
    let right = read("model = \"bird/polly\"\n[providers.bird]\nkind = \"parrot\"\n");
    assert_eq!(right.problems, []);
    assert!(json_schema(&formats.kinds()).to_string().contains("\"parrot\""));

    // A turn runs over it.
    let providers = build(&right.config, &formats, &|_| None, None, &Redact::default());
    let mut rig = place
        .start_with(&Fake::new([]), |p| {
            p.providers = providers;
            p.config = right.config;
            p.session.model = Some(ModelRef("bird/polly".into()));
        })
        .await;
    assert_eq!(rig.turn("Who are you?").await, (TurnStatus::Done, "I am bird.".into()));
    rig.quit().await;
}
