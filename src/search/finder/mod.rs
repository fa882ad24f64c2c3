//! One search over everything, and the work in the background that keeps the index up to date.
//!
//! | file | holds |
//! | --- | --- |
//! | `meaning` | vectors of queries and of texts that are no entries |
//! | `indexing` | work in the background |

mod indexing;
mod meaning;

#[cfg(test)]
pub(crate) use indexing::PROBE;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use tiller_protocol::{SearchMeaning, SearchOrder, SearchPage, SearchQuery, Time};
use tiller_store::search::rank::{Scored, Weights};
use tiller_store::search::{Cancel, Lookup, Ranking, TextHash};
use tiller_store::{Store, StoreError};

use crate::documents::rank::{Ranked, Text, rank};
use crate::documents::{Library, Source};
use crate::embedder::Embedder;
use crate::endpoint::Fault;
use crate::fuse::{Meant, NEAREST, Vectors, join};
use crate::near::Vocabulary;

/// The weight of meaning beside words, unless the settings say another: fitted on the questions in `tests/search`.
pub const WEIGHT: f32 = 0.3;
/// Documents of a page.
const DOCUMENTS: usize = 5;

/// Finds what was said, remembered, learned and written down.
pub struct Finder {
    store: Store,
    embedder: Option<Embedder>,
    weight: f32,
    sources: RwLock<Vec<Arc<dyn Source>>>,
    vectors: Mutex<Vectors>,
    /// Vectors of documents by the hash of their text; empty: it has no words.
    texts: Mutex<HashMap<TextHash, Vec<u8>>>,
    /// Words of the index, for near ones.
    words: Mutex<Vocabulary>,
    /// Vectors of the last queries.
    asked: Mutex<Vec<(String, Vec<u8>)>>,
    /// The running search of each client that types.
    running: Mutex<HashMap<u64, Cancel>>,
    indexing: AtomicBool,
    /// When the model of the server was last compared with the one that made the stored vectors, and the vector of that.
    compared: Mutex<Option<(Instant, Vec<u8>)>>,
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
            texts: Mutex::default(),
            words: Mutex::default(),
            asked: Mutex::default(),
            running: Mutex::default(),
            indexing: AtomicBool::new(false),
            compared: Mutex::default(),
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

    /// Searches. With a `client` an earlier search of the same one is cancelled: by this call, not by the future that it
    /// returns, which may be polled after that of a later call.
    ///
    /// # Errors
    /// When a database cannot be read, or the search was cancelled.
    pub fn search(
        self: &Arc<Self>,
        query: SearchQuery,
        mut lookup: Lookup,
        client: Option<u64>,
    ) -> impl Future<Output = Result<SearchPage, StoreError>> + Send + use<> {
        if let Some(client) = client {
            lookup.cancel = Cancel::new();
            let before = lock(&self.running).insert(client, lookup.cancel.clone());
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

    /// One page; `wanted`: the vector of the query. Where nothing is found, that of the nearest words is. Blocks.
    fn page(
        &self,
        query: &SearchQuery,
        lookup: &Lookup,
        wanted: Result<Option<Vec<u8>>, Fault>,
    ) -> Result<SearchPage, StoreError> {
        let page = self.page_as_asked(query, lookup, wanted)?;
        let nothing = |page: &SearchPage| page.hits.is_empty() && page.documents.is_empty();
        if !nothing(&page) {
            return Ok(page);
        }
        let first = |order| SearchQuery { order, offset: 0, limit: 1, ..query.clone() };
        // A page behind the last one is empty, too.
        if query.offset > 0 && !nothing(&self.page_as_asked(&first(query.order), lookup, Ok(None))?) {
            return Ok(page);
        }
        // By time there are no spellings.
        let near = match query.order {
            SearchOrder::Best => page.suggestion.clone(),
            SearchOrder::Newest => {
                self.page_as_asked(&first(SearchOrder::Best), lookup, Ok(None))?.suggestion
            }
        };
        let Some(near) = near else { return Ok(page) };
        let other = SearchQuery { text: near.clone(), ..query.clone() };
        let found = self.page_as_asked(&other, lookup, Ok(None))?;
        if nothing(&found) && query.offset == 0 {
            return Ok(SearchPage { suggestion: Some(near), ..page });
        }
        Ok(SearchPage { instead: Some(near), suggestion: None, meaning: page.meaning, ..found })
    }

    /// One page of the query as it stands.
    fn page_as_asked(
        &self,
        query: &SearchQuery,
        lookup: &Lookup,
        mut wanted: Result<Option<Vec<u8>>, Fault>,
    ) -> Result<SearchPage, StoreError> {
        let search = self.store.search();
        let (ranking, mut by_meaning) = match query.order {
            SearchOrder::Best => self.order_of(query, lookup, &mut wanted)?,
            SearchOrder::Newest => (None, false),
        };
        let mut page = match ranking {
            // The index has no answer: signs, scripts without spaces, a folder without room.
            None => search.look_up(&SearchQuery { order: SearchOrder::Newest, ..query.clone() }, lookup)?,
            Some(ranking) => search.page(query, &ranking, &lookup.cancel)?,
        };
        if query.offset == 0 {
            let wanted = wanted.as_ref().ok().and_then(|w| w.as_deref());
            let compared = self.add_documents(query, wanted, &mut page);
            by_meaning |= compared && page.hits.is_empty();
        }
        page.meaning = match wanted {
            Err(fault) => SearchMeaning::Failed { why: fault.0 },
            Ok(Some(_)) if by_meaning => SearchMeaning::Used,
            // Without a vector of the query, or of anything to compare it with.
            Ok(_) => SearchMeaning::Keywords,
        };
        Ok(page)
    }

    /// Adds memory, learnings and skills that fit, best first; returns whether vectors of them were compared. Blocks.
    fn add_documents(&self, query: &SearchQuery, wanted: Option<&[u8]>, page: &mut SearchPage) -> bool {
        let library = self.library().narrowed(query);
        let found = self.ranked(&library.texts(self.now()), &query.text, wanted);
        let most = DOCUMENTS.min(query.limit as usize);
        page.documents =
            found.best.iter().take(most).filter_map(|at| library.hit(*at, &query.text)).collect();
        // A word that a document contains is no typing error; a word that is in neither may be one of the documents'.
        let nothing = page.hits.is_empty() && page.documents.is_empty();
        page.suggestion = match page.suggestion.take() {
            Some(_) if found.knows_all && !page.documents.is_empty() => None,
            None if nothing => found.suggestion,
            other => other,
        };
        found.by_meaning
    }

    /// Orders texts by how well they fit a query, by words and meaning. Blocks; asks a server for the vector of the query.
    pub fn order(self: &Arc<Self>, query: &str, texts: Vec<String>) -> Ranked {
        let texts: Vec<Text> = texts.into_iter().map(|text| Text { text, age: 1.0 }).collect();
        // Without a vector there are words.
        let wanted = self.vector_blocking(query).unwrap_or_default();
        self.ranked(&texts, query, wanted.as_deref())
    }

    fn ranked(&self, texts: &[Text], query: &str, wanted: Option<&[u8]>) -> Ranked {
        let all = || texts.iter().map(|t| t.text.as_str()).collect::<Vec<_>>();
        let meant = wanted.map_or_else(Vec::new, |wanted| self.meant(wanted, &all()));
        rank(texts, query, (&meant, self.weight))
    }

    /// All documents, as they are now. Blocks.
    fn library(&self) -> Library {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner).clone();
        Library::read(&sources)
    }

    fn now(&self) -> Time {
        self.store.search().now()
    }

    /// Removes all vectors of a model, which makes others now. Blocks.
    fn forget(&self, model: &str) -> Result<(), StoreError> {
        self.store.search().forget_vectors(model)?;
        self.forget_in_memory();
        Ok(())
    }

    /// Drops the vectors that this process holds: of entries, of documents and of queries.
    fn forget_in_memory(&self) {
        *lock(&self.vectors) = Vectors::default();
        lock(&self.texts).clear();
        lock(&self.asked).clear();
    }

    /// The order by words and by meaning, which are looked for at the same time, and whether there are vectors of entries. `None`:
    /// the index has no answer. `wanted` becomes none where the vectors there are of another length, since the model of this name
    /// is another one now: they are removed, and made again in the background.
    fn order_of(
        &self,
        query: &SearchQuery,
        lookup: &Lookup,
        wanted: &mut Result<Option<Vec<u8>>, Fault>,
    ) -> Result<(Option<Ranking>, bool), StoreError> {
        let search = self.store.search();
        let by_words = || search.rank_near(query, lookup, Weights::default(), &self.near(&query.text)?);
        let Ok(Some(vector)) = wanted.as_ref() else { return Ok((by_words()?, false)) };
        let mut vectors = lock(&self.vectors);
        let all: &mut Vectors = &mut vectors;
        let (worded, meant) = std::thread::scope(|scope| {
            let meant = scope.spawn(|| self.meant_entries(all, vector, query));
            (by_words(), meant.join())
        });
        let Some(worded) = worded? else { return Ok((None, false)) };
        let ended = |_| StoreError::Internal("the comparison of vectors ended early".into());
        let Some(mut meant) = meant.map_err(ended)?? else {
            let model = vectors.model.clone();
            drop(vectors);
            self.forget(&model)?;
            *wanted = Ok(None);
            return Ok((Some(worded), false));
        };
        let known: HashSet<i64> = worded.scored.iter().map(|entry| entry.seq).collect();
        meant.nearest.retain(|row| !known.contains(row));
        let admitted = self.admitted(query, &meant.nearest, &lookup.cancel)?;
        let scored = join(&worded.scored, &admitted, (&vectors, &meant), self.weight);
        Ok((Some(Ranking { scored, ..worded }), !vectors.rows.is_empty()))
    }

    /// Of these rows the first that a query admits, [`NEAREST`] at most. The index may have been made anew, with other rows.
    fn admitted(
        &self,
        query: &SearchQuery,
        rows: &[i64],
        cancel: &Cancel,
    ) -> Result<Vec<Scored>, StoreError> {
        let mut admitted = Vec::new();
        for part in rows.chunks(NEAREST) {
            admitted.extend(self.store.search().admitted(query, part, cancel)?);
            if admitted.len() >= NEAREST {
                break;
            }
        }
        admitted.truncate(NEAREST);
        Ok(admitted)
    }

    /// How much alike the entries are to a vector. `None`: the vectors there are of another length.
    fn meant_entries(
        &self,
        vectors: &mut Vectors,
        wanted: &[u8],
        query: &SearchQuery,
    ) -> Result<Option<Meant>, StoreError> {
        let model = self.embedder.as_ref().map(Embedder::identity).unwrap_or_default();
        if vectors.model != model {
            *vectors = Vectors::of(model);
        }
        for entry in self.store.search().vectors(&vectors.model, vectors.last())? {
            vectors.add(&entry);
        }
        if !vectors.fits(wanted.len()) {
            return Ok(None);
        }
        let project = query.project.as_ref().map(|project| self.store.search().sessions_of(project));
        Ok(Some(vectors.meant(wanted, query, project.transpose()?.as_ref())))
    }
}
