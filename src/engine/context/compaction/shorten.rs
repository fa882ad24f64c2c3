//! Files of the prefix that are too long for their layer, summarised by the fast tier: before the first message of a
//! session and at each compaction. Summaries are kept in the store, so that the same file is paid for once. When it
//! fails, the cut text stays.

use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::event::StateEvent;
use tiller_protocol::{EventBody, Notice, NoticeKind};

use crate::bus::{Bus, EventScope};
use crate::context::msg::Prefix;
use crate::context::prefix::layers::{CutFile, Layers};
use crate::context::side_call::{self, SideCall};
use crate::core::Core;
use crate::core::services::Services;

const PROMPT: &str = include_str!("../../../../assets/prompts/shorten.md");
/// Longest time that a first message waits for the summaries.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Characters of a file that the model sees.
const SEEN: usize = 200_000;

/// Summarises files with the fast tier.
#[derive(Clone)]
pub(crate) struct Summariser {
    services: Arc<Services>,
    bus: Arc<Bus>,
    scope: EventScope,
    side: SideCall,
}

/// A summariser, where [`side_call::fast`] has a model.
pub(crate) fn fast(core: &Core) -> Option<Summariser> {
    let side = side_call::fast(core)?;
    let (services, bus, scope) = (Arc::clone(&core.services), Arc::clone(&core.bus), core.scope());
    Some(Summariser { services, bus, scope, side })
}

/// Renders the layers as a prefix, with summaries in place of cut files.
pub(crate) async fn prefix(layers: &Layers, fast: Option<Summariser>) -> Prefix {
    let cuts = layers.cuts();
    let Some(fast) = fast.filter(|_| !cuts.is_empty()) else { return Arc::new(layers.render()) };
    let mut layers = layers.clone();
    let asked = async {
        for cut in &cuts {
            if let Some(text) = fast.shorten(cut).await {
                layers.put(cut.at, &text);
            }
        }
    };
    if tokio::time::timeout(TIMEOUT, asked).await.is_err() {
        tracing::warn!("the fast model was too slow: the long text was cut");
    }
    Arc::new(layers.render())
}

impl Summariser {
    /// The summary of a file, from the store or made now. `None`: the cut text stays.
    async fn shorten(&self, cut: &CutFile) -> Option<String> {
        let whole = (self.services.redaction.redact)(&cut.whole);
        let mut hash = blake3::Hasher::new();
        for part in [self.side.model().0.as_bytes(), &cut.room.to_le_bytes(), whole.as_bytes()] {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let (hash, key) = (hash.finalize().to_hex().to_string(), format!("shortened {}", cut.source));
        let (store, at) = (self.services.store.clone(), key.clone());
        let kept = tokio::task::spawn_blocking(move || store.meta(&at)).await.ok()?.ok().flatten();
        if let Some(text) = kept.and_then(|k| Some(k.strip_prefix(&hash)?.strip_prefix('\n')?.to_owned())) {
            return Some(text);
        }
        let notice = Notice::new(
            NoticeKind::Info,
            format!("{} exceeds its budget: {} shortens it", cut.source, self.side.model()),
        )
        .hint("context.layers in config.toml sets its budget");
        self.bus.publish(&self.scope, EventBody::State(StateEvent::Notice { notice }));
        // About 2.5 characters a token, and 6 a word.
        let words = cut.room * 5 / 2 / 6 * 4 / 5;
        let end = whole.floor_char_boundary(SEEN);
        let text = format!("At most about {words} words.\n\n{}", &whole[..end]);
        let text = match self.side.ask(PROMPT, text, None).await {
            Ok(answer) if !answer.cut && !answer.text.trim().is_empty() => answer.text.trim().to_owned(),
            Ok(_) => return None,
            Err(error) => {
                tracing::warn!(%error, "the long text was cut: the fast model failed");
                return None;
            }
        };
        // Not awaited: a summary that is not stored is made again.
        drop(self.services.store.set_meta(&key, Some(format!("{hash}\n{text}"))));
        Some(text)
    }
}
