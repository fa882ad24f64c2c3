//! Vectors of texts that are no entries: memory, learnings, skills. The key of a text is its hash, so that one that changed has
//! none until it gets its own.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Result;
use crate::handles::Search;
use crate::search::index::writing;
use crate::search::lookup::Cancel;

/// The hash of a text.
pub type TextHash = [u8; 16];

/// Vectors that are kept; of more the oldest are removed.
const KEPT: i64 = 50_000;

impl Search<'_> {
    /// The vectors of texts by this model, in their order; `None`: it has none yet. An empty one: it has no words.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn text_vectors(&self, model: &str, hashes: &[TextHash]) -> Result<Vec<Option<Vec<u8>>>> {
        self.store.inner.index.read(self.store, &Cancel::default(), |index| {
            let mut get =
                index.prepare_cached("SELECT v FROM text_vectors WHERE model = ?1 AND hash = ?2")?;
            let get = |hash: &TextHash| get.query_row(params![model, hash], |r| r.get(0)).optional();
            Ok(hashes.iter().map(get).collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Keeps vectors of texts.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn put_text_vectors(&self, model: &str, vectors: &[(TextHash, Vec<u8>)]) -> Result<()> {
        self.store
            .inner
            .index
            .with(self.store, &Cancel::default(), |index| writing(index, || put(index, model, vectors)))
    }
}

fn put(index: &Connection, model: &str, vectors: &[(TextHash, Vec<u8>)]) -> Result<()> {
    let mut put =
        index.prepare_cached("INSERT OR REPLACE INTO text_vectors(model, hash, v) VALUES(?1, ?2, ?3)")?;
    for (hash, vector) in vectors {
        put.execute(params![model, hash, vector])?;
    }
    index.execute("DELETE FROM text_vectors WHERE id <= (SELECT max(id) FROM text_vectors) - ?1", [KEPT])?;
    Ok(())
}
