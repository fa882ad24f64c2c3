//! Work in the background that keeps the index up to date.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tiller_store::StoreError;

use super::Finder;
use crate::endpoint::Patience;

/// Entries that are indexed before the index is free for a search.
const STEP: u64 = 500;

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

    /// Indexes what is new, in the background and step by step; once at a time. Call it after entries were written, within
    /// a runtime.
    pub fn refresh(self: &Arc<Self>) {
        if self.indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let finder = Arc::clone(self);
        drop(tokio::spawn(async move {
            finder.index().await;
            finder.indexing.store(false, Ordering::Release);
        }));
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
        if let Err(error) = self.index_vectors().await.and(self.index_texts().await) {
            tracing::warn!(%error, "vectors could not be stored");
        }
    }

    async fn index_vectors(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(embedder) = &self.embedder else { return Ok(()) };
        let model = embedder.identity();
        while self.resting().is_none() {
            let (finder, of, most) = (Arc::clone(self), model.clone(), embedder.batch());
            let rows =
                tokio::task::spawn_blocking(move || finder.store.search().without_vector(&of, most)).await;
            let rows = rows.map_err(|_| StoreError::Internal("indexing ended early".into()))??;
            if rows.is_empty() {
                break;
            }
            let (rows, texts): (Vec<i64>, Vec<String>) = rows.into_iter().unzip();
            let rarity = self.rarity(&texts);
            let vectors = match embedder.embed(&texts, &rarity, Patience::Index).await {
                Ok(vectors) => vectors,
                Err(fault) => {
                    self.failed(&fault);
                    break;
                }
            };
            let finder = Arc::clone(self);
            let (of, pairs) = (model.clone(), rows.into_iter().zip(vectors).collect::<Vec<_>>());
            let kept =
                tokio::task::spawn_blocking(move || finder.store.search().put_vectors(&of, &pairs)).await;
            if !kept.map_err(|_| StoreError::Internal("indexing ended early".into()))?? {
                // Another process works with another model, or all are made again with the next call.
                break;
            }
        }
        Ok(())
    }
}
