//! Hits of a page: filters that the index cannot apply, previews, and the pages before.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};
use tiller_protocol::{AgentId, EntryId, SearchHit, SearchPage, SearchQuery, SearchRole, SessionId, Time};
use uuid::Uuid;

use crate::error::Result;
use crate::open::Store;
use crate::search::SCANNED;
use crate::search::lookup::Cancel;
use crate::search::preview::preview;
use crate::search::words::{Words, holds};
use crate::tree::entries;
use crate::tree::heads;

/// Maximum number of results in a page.
const PAGE: u32 = 1000;

/// Facts about a hit's session.
pub(crate) struct About {
    title: String,
    project: String,
    /// Entries on the requested branch, if there is one.
    branch: Option<HashSet<Uuid>>,
}

/// Applies the filters that the index cannot, skips the pages before, and creates previews.
pub(crate) struct Collector<'a> {
    store: &'a Store,
    query: &'a SearchQuery,
    words: &'a Words,
    /// The rows are from a scan, not from the index: every filter is applied here.
    pub(crate) literal: bool,
    /// Words with signs that a text must have, and those that it must not have: the index has neither.
    must: Vec<(String, bool)>,
    must_not: Vec<String>,
    /// Texts that were read before.
    pub(crate) read: HashMap<Uuid, EntryText>,
    skipped: u32,
    /// Texts that may still be read to see whether they fit.
    pub(crate) left: usize,
    cancel: &'a Cancel,
    sessions: HashMap<Uuid, Option<About>>,
    pub(crate) page: SearchPage,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        store: &'a Store,
        query: &'a SearchQuery,
        words: &'a Words,
        (must, must_not): (Vec<(String, bool)>, Vec<String>),
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            store,
            query,
            words,
            literal: false,
            must,
            must_not,
            read: HashMap::new(),
            skipped: 0,
            left: SCANNED,
            cancel,
            sessions: HashMap::new(),
            page: SearchPage::default(),
        }
    }

    /// Processes one row; `false`: the page is full, or as many texts were read as may be.
    ///
    /// # Errors
    /// When a database cannot be read, or the search is cancelled.
    pub(crate) fn take(&mut self, entry: Uuid, session: Uuid) -> Result<bool> {
        self.cancel.check()?;
        if !self.sessions.contains_key(&session) {
            let about = about(self.store, session, self.query.branch.as_deref())?;
            self.sessions.insert(session, about);
        }
        let Some(Some(about)) = self.sessions.get(&session) else { return Ok(true) };
        if about.branch.as_ref().is_some_and(|b| !b.contains(&entry)) {
            return Ok(true);
        }
        // Signs are not in the index: the text is read for them.
        let late = self.literal || !self.must.is_empty() || !self.must_not.is_empty();
        if !late && self.skipped < self.query.offset {
            self.skipped += 1;
            return Ok(true);
        }
        let full = self.page.hits.len() >= self.query.limit.min(PAGE) as usize;
        if full && !late {
            self.page.more = true;
            return Ok(false);
        }
        if late {
            let Some(left) = self.left.checked_sub(1) else { return Ok(false) };
            self.left = left;
        }
        let read = match self.read.remove(&entry) {
            Some(read) => Some(read),
            None => EntryText::read(self.store, entry)?,
        };
        // Removed or damaged since, or of a kind that is not searched.
        let Some((role, read)) = read.and_then(|read| Some((read.role?, read))) else { return Ok(true) };
        let EntryText { agent, time, text, .. } = read;
        if late {
            let literal = !self.literal || self.fits(&text, role, &agent.0, about, session);
            if !literal || !self.has_signs(&text) {
                return Ok(true);
            }
            if self.skipped < self.query.offset {
                self.skipped += 1;
                return Ok(true);
            }
            if full {
                self.page.more = true;
                return Ok(false);
            }
        }
        let (preview, mark) = preview(&text, &self.words.with);
        self.page.hits.push(SearchHit {
            session: SessionId(session),
            title: about.title.clone(),
            project: about.project.clone(),
            entry: EntryId(entry),
            role,
            agent,
            time,
            preview,
            mark,
        });
        Ok(true)
    }

    fn has_signs(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        self.must.iter().all(|(word, open)| holds(&lower, word, *open))
            && !self.must_not.iter().any(|word| holds(&lower, word, false))
    }

    fn fits(&self, text: &str, role: SearchRole, agent: &str, about: &About, session: Uuid) -> bool {
        let lower = text.to_lowercase();
        let has = |w: &str| lower.contains(&w.to_lowercase());
        let q = self.query;
        self.words.with.iter().all(|w| has(&w.text))
            && !self.words.without.iter().any(|w| has(w))
            && (q.roles.is_empty() || q.roles.contains(&role))
            && q.project.as_ref().is_none_or(|p| *p == about.project)
            && q.session.is_none_or(|s| s.0 == session)
            && q.agent.as_deref().is_none_or(|a| a == agent)
    }
}

/// What is searched and shown of an entry.
pub(crate) struct EntryText {
    agent: AgentId,
    time: Time,
    /// `None`: its kind is not searched.
    role: Option<SearchRole>,
    pub(crate) text: String,
}

impl EntryText {
    /// `None`: the entry was removed or is damaged.
    pub(crate) fn read(store: &Store, entry: Uuid) -> Result<Option<Self>> {
        let raw = store.read(|conn| Ok(entries::one(conn, entry)?))?;
        let Some(entry) = raw.and_then(|raw| raw.decode().ok()) else { return Ok(None) };
        let (role, text) = (SearchRole::of_kind(entry.body.kind()), entry.body.search_text());
        Ok(Some(Self { agent: entry.agent, time: entry.time, role, text }))
    }
}

/// `None`: the session is in the trash or gone, or has no such branch.
fn about(store: &Store, session: Uuid, branch: Option<&str>) -> Result<Option<About>> {
    store.read(|conn| {
        let found = conn
            .prepare_cached("SELECT title, project FROM sessions WHERE id = ?1 AND trashed IS NULL")?
            .query_row([session], |r| Ok(About { title: r.get(0)?, project: r.get(1)?, branch: None }))
            .optional()?;
        let Some(mut about) = found else { return Ok(None) };
        let Some(name) = branch else { return Ok(Some(about)) };
        let Some(head) = heads::get(conn, SessionId(session), name)?.and_then(|h| h.entry) else {
            return Ok(None);
        };
        about.branch = Some(path(conn, head)?);
        Ok(Some(about))
    })
}

/// All entries from `head` to the root.
fn path(conn: &Connection, head: Uuid) -> Result<HashSet<Uuid>> {
    let mut statement = conn.prepare_cached(
        "WITH RECURSIVE up(id) AS (
           SELECT ?1 UNION ALL SELECT e.parent FROM up JOIN entries e ON e.id = up.id WHERE e.parent IS NOT NULL)
         SELECT id FROM up",
    )?;
    let rows = statement.query_map([head], |r| r.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
