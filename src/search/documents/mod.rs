//! What is searched besides sessions: memory entries, learnings, skills. They are few, so that they are read and scored in
//! each search, and are never out of date.

pub(crate) mod rank;

use tiller_protocol::{DocumentHit, DocumentKind, EntryId, SearchQuery, SessionId, Time};
use tiller_store::search::preview_of;
use tiller_store::search::statistics::fading;

use rank::Text;

/// Documents of one source that are searched.
const DOCUMENTS: usize = 20_000;
/// Days after which half of what fades is gone, and how much fades.
const HALF_LIFE: f32 = 90.0;
const FADES: f32 = 0.2;

/// Something to find that is no entry of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Its key in its source.
    pub key: String,
    pub title: String,
    pub text: String,
    /// When it was written.
    pub time: Option<Time>,
    /// The entry that it came from.
    pub from: Option<(SessionId, EntryId)>,
    /// Its age does not matter: rules, MEMORY.md.
    pub lasting: bool,
    /// The folder whose work it concerns; `None`: all.
    pub project: Option<String>,
}

/// A list of documents.
pub trait Source: Send + Sync {
    /// What its documents are.
    fn kind(&self) -> DocumentKind;

    /// All of them, as they are now. May read files; called on a thread that may block.
    fn documents(&self) -> Vec<Document>;
}

/// The documents of all sources that a query may find.
pub(crate) struct Library(Vec<(DocumentKind, Document)>);

impl Library {
    /// Reads the sources. Blocks.
    pub(crate) fn read(sources: &[std::sync::Arc<dyn Source>]) -> Self {
        let mut all = Vec::new();
        for source in sources {
            all.extend(source.documents().into_iter().take(DOCUMENTS).map(|d| (source.kind(), d)));
        }
        Self(all)
    }

    /// Those of the query's folder and time. None where it asks for what only entries have: an author, an agent, a branch.
    pub(crate) fn narrowed(mut self, query: &SearchQuery) -> Self {
        let entries_only = query.session.is_some()
            || !query.roles.is_empty()
            || query.agent.is_some()
            || query.branch.is_some();
        let timed = query.since.is_some() || query.until.is_some();
        self.0.retain(|(_, d)| {
            let here = match (&d.project, &query.project) {
                (Some(of), Some(project)) => of == project,
                _ => true,
            };
            let then = d.time.map_or(!timed, |time| {
                query.since.is_none_or(|since| time >= since) && query.until.is_none_or(|until| time < until)
            });
            !entries_only && here && then
        });
        self
    }

    /// The texts that are scored, by their age at this time.
    pub(crate) fn texts(&self, now: Time) -> Vec<Text> {
        self.0
            .iter()
            .map(|(_, d)| Text { text: format!("{}\n{}", d.title, d.text), age: age(d, now) })
            .collect()
    }

    /// A document as a hit of this query.
    pub(crate) fn hit(&self, at: usize, text: &str) -> Option<DocumentHit> {
        let (kind, d) = self.0.get(at)?;
        let (preview, mark) = preview_of(&d.text, text);
        let (session, entry) = d.from.unzip();
        Some(DocumentHit {
            kind: *kind,
            key: d.key.clone(),
            title: d.title.clone(),
            preview,
            mark,
            session,
            entry,
        })
    }
}

/// The factor for the age of a document.
fn age(document: &Document, now: Time) -> f32 {
    let Some(time) = document.time.filter(|_| !document.lasting) else { return 1.0 };
    fading(FADES, HALF_LIFE, now.millis(), time.millis())
}
