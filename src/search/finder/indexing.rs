//! Work in the background that keeps the index up to date.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tiller_store::StoreError;

use super::meaning::hash;
use super::{Finder, lock};
use crate::embedder::{Embedder, cosine};
use crate::endpoint::{EmbedFault, Fault, TimeLimit};

/// Entries that are indexed before the index is free for a search.
const STEP: u64 = 500;
/// The vector of this text tells whether the model of a server is still the one that made the stored vectors.
pub(crate) const PROBE: &str = "The letter about the old harbour lies in the third drawer of the desk.";
/// Two vectors of [`PROBE`] with a smaller cosine are by two models. The same model on other hardware differs by less than 0.01.
const SAME_MODEL: f32 = 0.98;
/// How long a model counts as the same without another look.
const TRUSTED: Duration = Duration::from_secs(3600);

/// A run of [`Finder::refresh`]. The next one may begin when it is dropped: at its end, or with its runtime.
struct Running(Arc<Finder>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.indexing.store(false, Ordering::Release);
    }
}

impl Finder {
    /// Indexes everything that is new and waits, for a thread without a runtime.
    ///
    /// # Errors
    /// When no runtime can be made.
    pub fn index_blocking(self: &Arc<Self>) -> Result<(), StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|e| StoreError::Internal(e.to_string()))?.block_on(self.index());
        Ok(())
    }

    /// Indexes what is new, in the background and step by step; once at a time. Call it after entries were written, and where
    /// others may have written some; within a runtime.
    pub fn refresh(self: &Arc<Self>) {
        if self.indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let running = Running(Arc::clone(self));
        drop(tokio::spawn(async move { running.0.index().await }));
    }

    /// Indexes everything that is new: words, then vectors. What fails is tried again with the next call.
    pub async fn index(self: &Arc<Self>) {
        loop {
            let finder = Arc::clone(self);
            let left = tokio::task::spawn_blocking(move || finder.store.search().index_some(STEP)).await;
            match left {
                Ok(Ok(0)) => break,
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "entries could not be indexed");
                    return;
                }
                Err(_) => return,
            }
        }
        let vectors = async {
            self.compare_model().await?;
            self.index_vectors().await?;
            self.index_texts().await
        };
        if let Err(error) = vectors.await {
            tracing::warn!(%error, "vectors could not be stored");
        }
    }

    /// Forgets when the model was compared, as if the time had passed.
    #[cfg(test)]
    pub(crate) fn compare_soon(&self) {
        if let Some((at, _)) = &mut *lock(&self.compared) {
            *at = at.checked_sub(TRUSTED).unwrap_or(*at);
        }
    }

    /// Removes the stored vectors if the model of the server makes others now, also with the same name and length: a server may
    /// be given another model under a known name. Asks the server once an hour at most.
    async fn compare_model(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(embedder @ Embedder::Endpoint(_)) = &self.embedder else { return Ok(()) };
        let recent = lock(&self.compared).as_ref().is_some_and(|(at, _)| at.elapsed() < TRUSTED);
        if recent || self.backoff().is_some() {
            return Ok(());
        }
        let made = match self.made(vec![PROBE.to_owned()], TimeLimit::Index).await {
            Ok(made) => made.into_iter().next().unwrap_or_default(),
            Err(fault) => {
                self.failed(&Fault::from(fault));
                return Ok(());
            }
        };
        let (finder, model) = (Arc::clone(self), embedder.identity());
        let kept = tokio::task::spawn_blocking(move || {
            let (search, key) = (finder.store.search(), hash(PROBE));
            let before = lock(&finder.compared).replace((Instant::now(), made.clone()));
            let differs = |known: &Vec<u8>| cosine(known, &made) < SAME_MODEL;
            let known = search.text_vectors(&model, &[key])?.pop().flatten();
            if known.as_ref().is_some_and(differs) {
                finder.forget(&model)?;
            } else if before.is_some_and(|(_, known)| differs(&known)) {
                // Another process has removed the stored ones.
                finder.forget_in_memory();
            }
            search.put_text_vectors(&model, &[(key, made)])
        });
        kept.await.map_err(|_| StoreError::Internal("indexing ended early".into()))?
    }

    async fn index_vectors(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(embedder) = &self.embedder else { return Ok(()) };
        let model = embedder.identity();
        while self.backoff().is_none() {
            let (finder, of, most) = (Arc::clone(self), model.clone(), embedder.batch());
            let rows =
                tokio::task::spawn_blocking(move || finder.store.search().without_vector(&of, most)).await;
            let rows = rows.map_err(|_| StoreError::Internal("indexing ended early".into()))??;
            if rows.is_empty() {
                break;
            }
            let (rows, texts): (Vec<i64>, Vec<String>) = rows.into_iter().unzip();
            let vectors = self.made_for_index(texts).await;
            let finder = Arc::clone(self);
            let (of, pairs) = (model.clone(), rows.into_iter().zip(vectors).collect::<Vec<_>>());
            let kept =
                tokio::task::spawn_blocking(move || finder.store.search().put_vectors(&of, &pairs)).await;
            if !kept.map_err(|_| StoreError::Internal("indexing ended early".into()))?? {
                // The vectors there were of another length, or were removed: all are made again with the next call.
                self.forget_in_memory();
                break;
            }
        }
        Ok(())
    }

    /// A vector for each text, in their order; fewer when the server fails, which is noted. Texts that are refused together are
    /// asked for in halves. One that is refused alone by a server that takes other texts has an empty vector, so that it is not
    /// asked for again.
    pub(super) async fn made_for_index(self: &Arc<Self>, texts: Vec<String>) -> Vec<Vec<u8>> {
        let mut made = Vec::with_capacity(texts.len());
        // The last part is the next one.
        let mut parts = vec![texts];
        while let Some(mut part) = parts.pop() {
            let fault = match self.made(part.clone(), TimeLimit::Index).await {
                Ok(vectors) => {
                    made.extend(vectors);
                    continue;
                }
                Err(fault) => fault,
            };
            let of_texts = matches!(fault, EmbedFault::Texts(_));
            if of_texts && part.len() > 1 {
                let second = part.split_off(part.len() / 2);
                parts.extend([second, part]);
                continue;
            }
            let fault = Fault::from(fault);
            if !of_texts || !self.takes_texts().await {
                self.failed(&fault);
                break;
            }
            // A fault that has passed meanwhile costs no text its vector.
            let again =
                self.made(part, TimeLimit::Index).await.ok().and_then(|vectors| vectors.into_iter().next());
            if again.is_none() {
                tracing::warn!(fault = fault.0, "a text has no vector");
            }
            made.push(again.unwrap_or_default());
        }
        made
    }

    /// Whether the server makes a vector of a plain text.
    async fn takes_texts(self: &Arc<Self>) -> bool {
        self.made(vec![PROBE.to_owned()], TimeLimit::Index).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room_tests::scratch;

    #[test]
    fn a_run_that_ended_with_its_runtime_lets_the_next_one_begin() {
        let (_dir, store) = scratch();
        let finder = Arc::new(Finder::new(store, None));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { finder.refresh() });
        drop(runtime);
        assert!(!finder.indexing.load(Ordering::Acquire));
    }
}
