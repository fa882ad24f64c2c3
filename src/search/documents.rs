//! What is searched besides sessions: memory entries, learnings, skills. They are few, so that they are read and scored in
//! each search, and are never out of date.

use std::collections::{HashMap, HashSet};

use tiller_protocol::{DocumentHit, DocumentKind, EntryId, SessionId, Time};
use tiller_store::search::preview_of;
use tiller_store::search::stem::{stem, words};
use tiller_store::search::words::is_stop;

/// Documents of one source that are searched, and bytes of one.
const DOCUMENTS: usize = 20_000;
const BYTES: usize = 64 << 10;
/// A hit has at least this share of the meaning of the query's words.
const LEAST: f32 = 0.4;
/// Days after which half of what fades is gone, and how much fades.
const HALF_LIFE: f32 = 90.0;
const FADES: f32 = 0.2;

/// Something to find that is no entry of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// What its source knows it by.
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

/// Documents that fit a query, best first.
pub(crate) fn find(
    sources: &[&dyn Source],
    text: &str,
    (project, now, most): (Option<&str>, Time, usize),
) -> Vec<DocumentHit> {
    let mut all: Vec<(DocumentKind, Document)> = Vec::new();
    for source in sources {
        let here = |d: &Document| match (&d.project, project) {
            (Some(of), Some(project)) => of == project,
            _ => true,
        };
        let documents = source.documents().into_iter().filter(here).take(DOCUMENTS);
        all.extend(documents.map(|d| (source.kind(), d)));
    }
    let wanted = Wanted::of(text);
    if wanted.stems.is_empty() && wanted.phrases.is_empty() {
        return Vec::new();
    }
    let found: Vec<Option<HashSet<usize>>> = all.iter().map(|(_, d)| wanted.found(d)).collect();
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for n in found.iter().flatten().flatten() {
        *counts.entry(*n).or_default() += 1;
    }
    #[allow(clippy::cast_precision_loss, reason = "a frequency is rounded")]
    let rarity: Vec<f32> = (0..wanted.stems.len())
        .map(|n| {
            let with = counts.get(&n).copied().unwrap_or(0) as f32;
            (1.0 + (all.len() as f32 - with + 0.5) / (with + 0.5)).ln()
        })
        .collect();
    let whole = rarity.iter().sum::<f32>().max(f32::EPSILON);
    let mut hits: Vec<(f32, usize)> = Vec::new();
    for (at, found) in found.iter().enumerate() {
        let Some(found) = found else { continue };
        let share = found.iter().map(|n| rarity[*n]).sum::<f32>() / whole;
        let score = if wanted.stems.is_empty() { 1.0 } else { share };
        if score >= LEAST {
            hits.push((score * age(&all[at].1, now), at));
        }
    }
    hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    hits.truncate(most);
    let hit = |(_, at): (f32, usize)| {
        let (kind, d) = &all[at];
        let (preview, mark) = preview_of(&d.text, text);
        let (session, entry) = d.from.unzip();
        DocumentHit { kind: *kind, key: d.key.clone(), title: d.title.clone(), preview, mark, session, entry }
    };
    hits.into_iter().map(hit).collect()
}

fn age(document: &Document, now: Time) -> f32 {
    let Some(time) = document.time.filter(|_| !document.lasting) else { return 1.0 };
    #[allow(clippy::cast_precision_loss, reason = "an age is rounded")]
    let days = now.millis().saturating_sub(time.millis()).max(0) as f32 / 86_400_000.0;
    1.0 - FADES + FADES * (-days / HALF_LIFE).exp2()
}

/// A query for documents.
struct Wanted {
    stems: Vec<String>,
    phrases: Vec<String>,
    without: Vec<String>,
}

impl Wanted {
    fn of(text: &str) -> Self {
        let (mut plain, mut phrases, mut without) = (String::new(), Vec::new(), Vec::new());
        for (n, part) in text.split('"').enumerate() {
            if n % 2 == 1 {
                phrases.push(part.trim().to_lowercase());
                continue;
            }
            for word in part.split_whitespace() {
                match word.strip_prefix('-').filter(|w| w.starts_with(char::is_alphanumeric)) {
                    Some(word) => without.push(word.to_lowercase()),
                    None => plain = plain + " " + word,
                }
            }
        }
        phrases.retain(|p| !p.is_empty());
        let all: Vec<String> = words(&plain).map(|(a, b)| plain[a..b].to_lowercase()).collect();
        let spoken: Vec<&String> = all.iter().filter(|w| !is_stop(w)).collect();
        let mut stems: Vec<String> = match spoken.is_empty() {
            true => all.iter().map(|w| stem(w)).collect(),
            false => spoken.into_iter().map(|w| stem(w)).collect(),
        };
        stems.sort();
        stems.dedup();
        stems.truncate(32);
        Self { stems, phrases, without }
    }

    /// Which stems a document has; `None`: it is out of the question.
    fn found(&self, document: &Document) -> Option<HashSet<usize>> {
        let text = &document.text[..document.text.floor_char_boundary(BYTES)];
        let lower = format!("{}\n{}", document.title, text).to_lowercase();
        let has = |part: &String| lower.contains(part.as_str());
        if !self.phrases.iter().all(has) || self.without.iter().any(has) {
            return None;
        }
        let stems: HashSet<String> = words(&lower).map(|(a, b)| stem(&lower[a..b])).collect();
        Some(self.stems.iter().enumerate().filter(|(_, s)| stems.contains(*s)).map(|(n, _)| n).collect())
    }
}
