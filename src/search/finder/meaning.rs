//! Vectors of queries and of texts that are no entries.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_store::StoreError;
use tiller_store::search::statistics::inverse_frequency;
use tiller_store::search::{Near, TextHash};

use super::{Finder, lock};
use crate::embedder::{Embedder, by_server, content_words, cosine};
use crate::endpoint::{EmbedFault, Fault, TimeLimit};
use crate::fuse::shares;
use crate::near::{COMPARED, Vocabulary};

/// How long an endpoint that failed is left alone.
const BACKOFF: Duration = Duration::from_secs(60);
/// Texts of queries whose vectors are kept.
const KEPT: usize = 64;
/// Vectors of texts that are kept in memory.
const TEXTS: usize = 50_000;

/// What a text is known by.
pub(super) fn hash(text: &str) -> TextHash {
    let mut hash = TextHash::default();
    hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    hash
}

impl Finder {
    /// The vector of a query. `None`: there is no model, or the model has none of its words.
    pub(super) async fn vector_of(self: &Arc<Self>, text: &str) -> Result<Option<Vec<u8>>, Fault> {
        let text = text.trim();
        if text.is_empty() || self.embedder.is_none() {
            return Ok(None);
        }
        if let Some((_, vector)) = lock(&self.asked).iter().find(|(t, _)| t == text) {
            return Ok(Some(vector.clone()));
        }
        if let Some(fault) = self.backoff() {
            return Err(fault);
        }
        let made = self.made(vec![text.to_owned()], TimeLimit::Search).await;
        let made = made.map_err(Fault::from).inspect_err(|fault| self.failed(fault))?;
        let vector = made.into_iter().next().filter(|v| !v.is_empty());
        if let Some(vector) = &vector {
            let mut asked = lock(&self.asked);
            asked.insert(0, (text.to_owned(), vector.clone()));
            asked.truncate(KEPT);
        }
        Ok(vector)
    }

    /// A vector for each text, in their order; empty for one that has none. Only a server is waited for here: a table is read
    /// on a thread that may block, since the words of the texts are looked up in the index.
    pub(super) async fn made(
        self: &Arc<Self>,
        texts: Vec<String>,
        limit: TimeLimit,
    ) -> Result<Vec<Vec<u8>>, EmbedFault> {
        if let Some(Embedder::Endpoint(endpoint)) = &self.embedder {
            return by_server(endpoint, &texts, limit).await;
        }
        let finder = Arc::clone(self);
        let made = tokio::task::spawn_blocking(move || finder.by_table(&texts)).await;
        made.map_err(|_| EmbedFault::Server(Fault("the vectors could not be made".into())))
    }

    /// As [`Self::made`], by the table. Blocks.
    fn by_table(&self, texts: &[String]) -> Vec<Vec<u8>> {
        let Some(Embedder::Table(table)) = &self.embedder else { return vec![Vec::new(); texts.len()] };
        let rarity = self.rarity(texts);
        texts.iter().map(|text| table.packed(text, &rarity)).collect()
    }

    /// How rare the words of these texts are. Blocks.
    fn rarity(&self, texts: &[String]) -> impl Fn(&str) -> f32 + Sync + use<> {
        let mut known = HashMap::new();
        let mut all = 0;
        if matches!(self.embedder, Some(Embedder::Table(_))) {
            let mut words: Vec<String> = texts.iter().flat_map(|t| content_words(t)).collect();
            words.sort();
            words.dedup();
            // An index that cannot be read makes all words equal.
            if let Ok((counts, total)) = self.store.search().frequencies(&words) {
                known = words.into_iter().zip(counts).collect();
                all = total;
            }
        }
        move |word: &str| {
            #[allow(clippy::cast_precision_loss, reason = "a frequency is rounded")]
            let (with, all) = (known.get(word).copied().unwrap_or(0) as f32, all as f32);
            inverse_frequency(all, with).max(0.1)
        }
    }

    pub(super) fn backoff(&self) -> Option<Fault> {
        lock(&self.fault)
            .as_ref()
            .filter(|(since, _)| since.elapsed() < BACKOFF)
            .map(|(_, fault)| fault.clone())
    }

    pub(super) fn failed(&self, fault: &Fault) {
        tracing::warn!(fault = fault.0, "no vectors for the search");
        *lock(&self.fault) = Some((Instant::now(), fault.clone()));
    }

    /// As [`Self::vector_of`], for a thread that may block and has no runtime of its own.
    pub(super) fn vector_blocking(self: &Arc<Self>, text: &str) -> Result<Option<Vec<u8>>, Fault> {
        if self.embedder.is_none() {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|e| Fault(e.to_string()))?.block_on(self.vector_of(text))
    }

    /// Words near to those of a text; none without a table.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(super) fn near(&self, text: &str) -> Result<Near, StoreError> {
        let Some(Embedder::Table(table)) = self.embedder.as_ref().filter(|_| self.weight > 0.0) else {
            return Ok(Near::default());
        };
        let search = self.store.search();
        let (_, entries) = search.frequencies(&[])?;
        let mut words = lock(&self.words);
        if words.is_old(entries) {
            *words = Vocabulary::of(table, search.vocabulary(COMPARED)?, entries);
        }
        Ok(words.near(table, text))
    }

    /// How much each text means the same as a query with this vector, from 0 to 1; empty where none of them has a vector. One whose
    /// vector is not made yet has 0; those of a table are made here. Blocks.
    pub(super) fn meant(&self, wanted: &[u8], texts: &[&str]) -> Vec<f32> {
        let hashes: Vec<TextHash> = texts.iter().map(|t| hash(t)).collect();
        self.load(texts, &hashes);
        let known = lock(&self.texts);
        let cosines: Vec<Option<f32>> = hashes
            .iter()
            .map(|hash| known.get(hash).filter(|v| !v.is_empty()).map(|v| cosine(wanted, v)))
            .collect();
        if cosines.iter().all(Option::is_none) {
            return Vec::new();
        }
        let shares = shares(&cosines.iter().flatten().copied().collect::<Vec<_>>());
        let mut shares = shares.into_iter();
        cosines.iter().map(|cosine| cosine.and_then(|_| shares.next()).unwrap_or(0.0)).collect()
    }

    /// Brings the vectors of texts into memory.
    fn load(&self, texts: &[&str], hashes: &[TextHash]) {
        let missing: Vec<usize> = {
            let known = lock(&self.texts);
            (0..hashes.len()).filter(|n| !known.contains_key(&hashes[*n])).collect()
        };
        if missing.is_empty() {
            return;
        }
        let found: HashMap<TextHash, Vec<u8>> = match &self.embedder {
            None => return,
            Some(Embedder::Table(_)) => {
                let all: Vec<String> = missing.iter().map(|n| texts[*n].to_owned()).collect();
                missing.iter().map(|n| hashes[*n]).zip(self.by_table(&all)).collect()
            }
            Some(endpoint) => {
                let wanted: Vec<TextHash> = missing.iter().map(|n| hashes[*n]).collect();
                // An index that cannot be read has no vectors.
                let stored =
                    self.store.search().text_vectors(&endpoint.identity(), &wanted).unwrap_or_default();
                wanted.into_iter().zip(stored).filter_map(|(hash, v)| Some((hash, v?))).collect()
            }
        };
        self.keep(found);
    }

    /// Keeps vectors of texts in memory.
    fn keep(&self, found: HashMap<TextHash, Vec<u8>>) {
        let mut known = lock(&self.texts);
        if known.len() + found.len() > TEXTS {
            known.clear();
        }
        known.extend(found);
    }

    /// Makes the vectors of the documents that have none, by a server. Those of a table are made when they are needed.
    pub(super) async fn index_texts(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(embedder @ Embedder::Endpoint(_)) = &self.embedder else { return Ok(()) };
        let (finder, model) = (Arc::clone(self), embedder.identity());
        let missing = tokio::task::spawn_blocking(move || {
            let texts: Vec<String> =
                finder.library().texts(finder.now()).into_iter().map(|t| t.text).collect();
            let hashes: Vec<TextHash> = texts.iter().map(|t| hash(t)).collect();
            let stored = finder.store.search().text_vectors(&model, &hashes)?;
            let missing = hashes.into_iter().zip(texts).zip(stored).filter(|(_, v)| v.is_none());
            Ok::<_, StoreError>(missing.map(|(text, _)| text).collect::<Vec<_>>())
        });
        let missing = missing.await.map_err(|_| StoreError::Internal("indexing ended early".into()))??;
        for part in missing.chunks(embedder.batch() as usize) {
            if self.backoff().is_some() {
                break;
            }
            let texts: Vec<String> = part.iter().map(|(_, text)| text.clone()).collect();
            let vectors = self.made_for_index(texts).await;
            let (finder, model) = (Arc::clone(self), embedder.identity());
            let pairs: Vec<(TextHash, Vec<u8>)> = part.iter().map(|(hash, _)| *hash).zip(vectors).collect();
            let kept = tokio::task::spawn_blocking(move || {
                finder.store.search().put_text_vectors(&model, &pairs)?;
                finder.keep(pairs.into_iter().collect());
                Ok::<_, StoreError>(())
            });
            kept.await.map_err(|_| StoreError::Internal("indexing ended early".into()))??;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;
    use crate::room_tests::scratch;
    use crate::table::{Table, written};

    /// One worker serves all agents: it must wait neither for the index nor for a table.
    #[test]
    fn vectors_of_a_table_are_made_on_a_thread_that_may_block() {
        let (_dir, store) = scratch();
        let table = Table::read(&written(2, [("kitten", &[1.0f32, 0.5][..])].into_iter())).unwrap();
        let finder = Arc::new(Finder::new(store, Some(Embedder::Table(table))));
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            // The only such thread has other work.
            let (end, wait) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || wait.recv());
            let mut asked = Box::pin(finder.vector_of("kitten"));
            let mut made = Box::pin(finder.made(vec!["kitten".into(), "dog".into()], TimeLimit::Index));
            let pending = std::future::poll_fn(|cx| {
                Poll::Ready((asked.as_mut().poll(cx).is_pending(), made.as_mut().poll(cx).is_pending()))
            });
            assert_eq!(pending.await, (true, true));
            drop(end);
            busy.await.unwrap().unwrap_err();
            let vector = asked.await.unwrap().unwrap();
            assert_eq!(made.await.unwrap(), [vector, Vec::new()]);
        });
    }
}
