//! One search over everything, and the work in the background that keeps the index up to date.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tiller_protocol::{SearchMeaning, SearchOrder, SearchPage, SearchQuery, Time};
use tiller_store::search::rank::Weights;
use tiller_store::search::{Cancel, Lookup, Ranking};
use tiller_store::{Store, StoreError};

use crate::documents::{self, Source};
use crate::embedder::{Embedder, spoken};
use crate::endpoint::{Fault, Patience};
use crate::fuse::{Vectors, join};

/// The weight of meaning beside words, unless the settings say another: fitted on the questions in `tests/search`.
pub const WEIGHT: f32 = 0.3;
/// Documents of a page.
const DOCUMENTS: usize = 5;
/// Entries that are indexed before the index is free for a search.
const STEP: u64 = 500;
/// How long an endpoint that failed is left alone.
const REST: Duration = Duration::from_secs(60);
/// Texts of queries whose vectors are kept.
const KEPT: usize = 64;

/// Finds what was said, remembered, learned and written down.
pub struct Finder {
    store: Store,
    embedder: Option<Embedder>,
    weight: f32,
    sources: RwLock<Vec<Arc<dyn Source>>>,
    vectors: Mutex<Vectors>,
    /// Vectors of the last queries.
    asked: Mutex<Vec<(String, Vec<u8>)>>,
    /// The running search of each client that types.
    running: Mutex<HashMap<u64, Cancel>>,
    indexing: AtomicBool,
    /// Since when and why there are no vectors.
    fault: Mutex<Option<(Instant, Fault)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Finder {
    /// Searches this store. Without an embedder by keywords only.
    pub fn new(store: Store, embedder: Option<Embedder>) -> Self {
        Self {
            store,
            embedder,
            weight: WEIGHT,
            sources: RwLock::default(),
            vectors: Mutex::default(),
            asked: Mutex::default(),
            running: Mutex::default(),
            indexing: AtomicBool::new(false),
            fault: Mutex::default(),
        }
    }

    /// With another weight of meaning: 0 to 1.
    #[must_use]
    pub fn weighted(mut self, weight: f32) -> Self {
        self.weight = if weight.is_finite() { weight.clamp(0.0, 1.0) } else { WEIGHT };
        self
    }

    /// Adds a source of documents.
    pub fn add(&self, source: Arc<dyn Source>) {
        self.sources.write().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// Searches. With a `typist` an earlier search of the same one is cancelled: by this call, not by the future that it
    /// returns, which may be polled after that of a later call.
    ///
    /// # Errors
    /// When a database cannot be read, or the search was cancelled.
    pub fn search(
        self: &Arc<Self>,
        query: SearchQuery,
        mut lookup: Lookup,
        typist: Option<u64>,
    ) -> impl Future<Output = Result<SearchPage, StoreError>> + Send + use<> {
        if let Some(typist) = typist {
            lookup.cancel = Cancel::new();
            let before = lock(&self.running).insert(typist, lookup.cancel.clone());
            before.iter().for_each(Cancel::cancel);
        }
        let finder = Arc::clone(self);
        async move {
            let wanted = match query.order {
                SearchOrder::Best => finder.vector_of(&query.text).await,
                SearchOrder::Newest => Ok(None),
            };
            let page = tokio::task::spawn_blocking(move || finder.page(&query, &lookup, wanted)).await;
            page.map_err(|_| StoreError::Internal("the search ended early".into()))?
        }
    }

    /// Searches and waits, for a thread without a runtime. A server for vectors is asked, too.
    ///
    /// # Errors
    /// As [`Finder::search`]; also when no runtime can be made.
    pub fn search_blocking(
        self: &Arc<Self>,
        query: &SearchQuery,
        lookup: &Lookup,
    ) -> Result<SearchPage, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| StoreError::Internal(e.to_string()))?;
        runtime.block_on(self.search(query.clone(), lookup.clone(), None))
    }

    /// Indexes everything that is new and waits, for a thread without a runtime.
    ///
    /// # Errors
    /// When no runtime can be made.
    pub fn index_blocking(self: &Arc<Self>) -> Result<(), StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|e| StoreError::Internal(e.to_string()))?.block_on(self.index());
        Ok(())
    }

    /// How it searches, as a sentence.
    pub fn described(&self) -> String {
        match &self.embedder {
            None => "Search is by keywords only: there is no [embeddings] server and no imported table."
                .to_owned(),
            Some(Embedder::Endpoint(_)) => {
                "Search is by keywords and by vectors of the [embeddings] server.".to_owned()
            }
            Some(Embedder::Table(table)) => {
                let (rows, dimensions) = table.size();
                format!(
                    "Search is by keywords and by a table of {rows} vectors with {dimensions} dimensions."
                )
            }
        }
    }

    /// The vector of a query. `None`: there is no model, or it knows no word of it.
    async fn vector_of(&self, text: &str) -> Result<Option<Vec<u8>>, Fault> {
        let Some(embedder) = &self.embedder else { return Ok(None) };
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if let Some((_, vector)) = lock(&self.asked).iter().find(|(t, _)| t == text) {
            return Ok(Some(vector.clone()));
        }
        if let Some(fault) = self.resting() {
            return Err(fault);
        }
        let rarity = self.rarity(&[text.to_owned()]);
        let made = embedder.embed(&[text.to_owned()], &rarity, Patience::Search).await;
        let made = made.inspect_err(|fault| self.failed(fault))?;
        let vector = made.into_iter().next().filter(|v| !v.is_empty());
        if let Some(vector) = &vector {
            let mut asked = lock(&self.asked);
            asked.insert(0, (text.to_owned(), vector.clone()));
            asked.truncate(KEPT);
        }
        Ok(vector)
    }

    /// How rare the words of these texts are.
    fn rarity(&self, texts: &[String]) -> impl Fn(&str) -> f32 + Sync + use<> {
        let mut known = HashMap::new();
        let mut all = 0;
        if matches!(self.embedder, Some(Embedder::Table(_))) {
            let mut words: Vec<String> = texts.iter().flat_map(|t| spoken(t)).collect();
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
            (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln().max(0.1)
        }
    }

    fn resting(&self) -> Option<Fault> {
        lock(&self.fault).as_ref().filter(|(since, _)| since.elapsed() < REST).map(|(_, fault)| fault.clone())
    }

    fn failed(&self, fault: &Fault) {
        tracing::warn!(fault = fault.0, "no vectors for the search");
        *lock(&self.fault) = Some((Instant::now(), fault.clone()));
    }

    /// One page; `wanted`: the vector of the query. Blocks.
    fn page(
        &self,
        query: &SearchQuery,
        lookup: &Lookup,
        wanted: Result<Option<Vec<u8>>, Fault>,
    ) -> Result<SearchPage, StoreError> {
        let search = self.store.search();
        let ranking = match query.order {
            SearchOrder::Best => search.rank(query, lookup, Weights::default())?,
            SearchOrder::Newest => None,
        };
        let mut page = match ranking {
            // The index has no answer: signs, scripts without spaces, a folder without room.
            None => search.look_up(&SearchQuery { order: SearchOrder::Newest, ..query.clone() }, lookup)?,
            Some(ranking) => {
                let ranking = match &wanted {
                    Ok(Some(wanted)) => self.joined(query, ranking, wanted, &lookup.cancel)?,
                    _ => ranking,
                };
                search.page(query, &ranking, &lookup.cancel)?
            }
        };
        page.meaning = match (wanted, &self.embedder) {
            (Err(fault), _) => SearchMeaning::Failed { why: fault.0 },
            (Ok(Some(_)), _) => SearchMeaning::Used,
            (Ok(None), _) => SearchMeaning::Keywords,
        };
        if query.offset == 0 && query.session.is_none() && query.roles.is_empty() {
            page.documents = self.documents(&query.text, query.project.as_deref(), DOCUMENTS);
        }
        Ok(page)
    }

    /// Memory, learnings and skills that fit a text, best first. Blocks.
    pub fn documents(
        &self,
        text: &str,
        project: Option<&str>,
        most: usize,
    ) -> Vec<tiller_protocol::DocumentHit> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner).clone();
        let sources: Vec<&dyn Source> = sources.iter().map(AsRef::as_ref).collect();
        documents::find(&sources, text, (project, self.now(), most))
    }

    fn now(&self) -> Time {
        self.store.search().now()
    }

    fn joined(
        &self,
        query: &SearchQuery,
        ranking: Ranking,
        wanted: &[u8],
        cancel: &Cancel,
    ) -> Result<Ranking, StoreError> {
        let search = self.store.search();
        let mut vectors = lock(&self.vectors);
        let model = self.embedder.as_ref().map(Embedder::identity).unwrap_or_default();
        if vectors.model != model {
            *vectors = Vectors::of(model);
        }
        for (row, vector) in search.vectors(&vectors.model, vectors.last())? {
            vectors.add(row, &vector);
        }
        let likeness = vectors.likeness(wanted);
        let nearest = vectors.nearest(&likeness);
        // The index may have been made anew, with other rows.
        let meant = search.admitted(query, &nearest, cancel)?;
        let scored = join(&ranking.scored, &meant, (&vectors, &likeness), self.weight);
        Ok(Ranking { scored, ..ranking })
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
        if let Err(error) = self.index_vectors().await {
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
                // Another process works with another model.
                break;
            }
        }
        Ok(())
    }
}
