//! Search in entries through the full-text index, newest first.

pub(crate) mod index;

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{EntryId, SearchHit, SearchPage, SearchQuery, SearchRole, SessionId, Time};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Search;
use crate::open::Store;
use crate::search::index::{catch_up, role_tag, tag};
use crate::tree::entries::{COLUMNS, Raw};
use crate::tree::heads;

/// Characters of a preview on each side of the match.
const AROUND: usize = 60;
/// Maximum number of results in a page.
const PAGE: u32 = 1000;
/// Maximum number of rows that are scanned for a query that the index cannot answer (signs, scripts without spaces).
const SCANNED: usize = 50_000;

impl Search<'_> {
    /// A page of matching entries. Up to `most` new entries are indexed first; [`SearchPage::behind`] counts the rest.
    ///
    /// # Errors
    /// When a database cannot be read.
    pub fn find(&self, query: &SearchQuery, most: u64) -> Result<SearchPage> {
        let words = Words::parse(&query.text);
        if words.is_empty() {
            return Ok(SearchPage::default());
        }
        let Some(matching) = words.query(query) else { return self.scan(query, &words) };
        let page = self.store.inner.index.with(self.store, |index| {
            let behind = catch_up(self.store, index, most)?;
            let mut statement = index.prepare_cached(
                "SELECT d.entry, d.session FROM words JOIN docs d ON d.seq = words.rowid
                 WHERE words MATCH ?1 AND d.time >= ?2 AND d.time < ?3 ORDER BY words.rowid DESC",
            )?;
            let (since, until) = bounds(query);
            let mut rows = statement.query(params![matching, since, until])?;
            let mut found = Collector::new(self.store, query, &words);
            while let Some(row) = rows.next()? {
                if !found.take(row.get(0)?, row.get(1)?)? {
                    break;
                }
            }
            Ok(SearchPage { behind, ..found.page })
        });
        match page {
            // No space or permission for an index here.
            Err(e) if e.is_trouble() || matches!(e, StoreError::ReadOnly { .. }) => {
                tracing::warn!(error = %e, "searched without an index");
                self.scan(query, &words)
            }
            page => page,
        }
    }

    /// Indexes all new entries.
    ///
    /// # Errors
    /// When a database cannot be read, or the index cannot be written.
    pub fn index(&self) -> Result<()> {
        self.store.inner.index.with(self.store, |index| catch_up(self.store, index, u64::MAX)).map(|_| ())
    }

    /// Without the index: scans the newest entries one by one.
    fn scan(&self, query: &SearchQuery, words: &Words) -> Result<SearchPage> {
        let (since, until) = bounds(query);
        let ids: Vec<(Uuid, Uuid)> = self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT id, session FROM entries WHERE time >= ?1 AND time < ?2 AND kind != 'prefix'
                   AND payload LIKE ?3 ESCAPE '\\' ORDER BY seq DESC LIMIT ?4",
            )?;
            let rows = statement.query_map(
                params![
                    since,
                    until,
                    crate::session::sessions::like(words.plainest()),
                    i64::try_from(SCANNED).unwrap_or(0)
                ],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut found = Collector::new(self.store, query, words);
        found.literal = true;
        for (entry, session) in ids {
            if !found.take(entry, session)? {
                break;
            }
        }
        Ok(found.page)
    }
}

fn bounds(query: &SearchQuery) -> (i64, i64) {
    (query.since.map_or(i64::MIN, Time::millis), query.until.map_or(i64::MAX, Time::millis))
}

/// A parsed query.
pub(crate) struct Words {
    /// Required words and phrases, as written; the last may be unfinished.
    with: Vec<String>,
    without: Vec<String>,
    /// The last of `with` may be a prefix.
    open: bool,
}

impl Words {
    pub(crate) fn parse(text: &str) -> Self {
        let mut words = Self { with: Vec::new(), without: Vec::new(), open: false };
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let minus =
                rest.strip_prefix('-').filter(|r| r.starts_with(|c: char| c == '"' || c.is_alphanumeric()));
            rest = minus.unwrap_or(rest);
            let (word, after, quoted) = match rest.strip_prefix('"') {
                Some(inner) => match inner.split_once('"') {
                    Some((word, after)) => (word, after, true),
                    None => (inner, "", false),
                },
                None => {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    (&rest[..end], &rest[end..], false)
                }
            };
            let list = if minus.is_some() { &mut words.without } else { &mut words.with };
            if !word.trim().is_empty() {
                list.push(word.trim().to_owned());
                words.open = minus.is_none() && !quoted && after.is_empty();
            }
            rest = after.trim_start();
        }
        words
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.with.is_empty()
    }

    /// The most selective part for a scan: the longest one without characters that JSON escapes.
    pub(crate) fn plainest(&self) -> &str {
        let parts = self
            .with
            .iter()
            .flat_map(|w| w.split(|c: char| c == '"' || c == '\\' || c == '/' || c.is_control()));
        parts.max_by_key(|w| w.len()).unwrap_or_default()
    }

    /// The query in the index's syntax; `None` when the index cannot answer it.
    pub(crate) fn query(&self, query: &SearchQuery) -> Option<String> {
        let known = |w: &String| w.chars().any(char::is_alphanumeric) && !w.chars().any(unspaced);
        if !self.with.iter().chain(&self.without).all(known) {
            return None;
        }
        let quote = |w: &str| format!("\"{}\"", w.replace('"', " "));
        let last = self.with.len() - 1;
        let mut text: Vec<String> = Vec::new();
        for (n, word) in self.with.iter().enumerate() {
            text.push(format!("{}{}", quote(word), if n == last && self.open { "*" } else { "" }));
        }
        let mut all = format!("text : ({})", text.join(" AND "));
        let mut tags = Vec::new();
        tags.extend(query.project.as_deref().map(|p| tag('p', p)));
        tags.extend(query.session.map(|s| tag('s', &s.0.to_string())));
        tags.extend(query.agent.as_deref().map(|a| tag('a', a)));
        if !query.roles.is_empty() {
            let roles: Vec<String> = query.roles.iter().map(|r| role_tag(*r)).collect();
            tags.push(format!("({})", roles.join(" OR ")));
        }
        if !tags.is_empty() {
            all = format!("({all}) AND (tags : ({}))", tags.join(" AND "));
        }
        for word in &self.without {
            all = format!("({all}) NOT (text : {})", quote(word));
        }
        Some(all)
    }
}

/// Scripts without spaces between words (Chinese, Japanese, Thai): the index holds whole sentences of them.
fn unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Facts about a hit's session.
struct About {
    title: String,
    project: String,
    /// Entries on the requested branch, if there is one.
    branch: Option<HashSet<Uuid>>,
}

/// Applies the filters that the index cannot, skips the pages before, and creates previews.
struct Collector<'a> {
    store: &'a Store,
    query: &'a SearchQuery,
    words: &'a Words,
    /// The rows are from a scan, not from the index: every filter is applied here.
    literal: bool,
    skipped: u32,
    sessions: HashMap<Uuid, Option<About>>,
    page: SearchPage,
}

impl<'a> Collector<'a> {
    fn new(store: &'a Store, query: &'a SearchQuery, words: &'a Words) -> Self {
        let (sessions, page) = (HashMap::new(), SearchPage::default());
        Self { store, query, words, literal: false, skipped: 0, sessions, page }
    }

    /// Processes one row; `false`: the page is full.
    fn take(&mut self, entry: Uuid, session: Uuid) -> Result<bool> {
        if !self.sessions.contains_key(&session) {
            let about = about(self.store, session, self.query.branch.as_deref())?;
            self.sessions.insert(session, about);
        }
        let Some(Some(about)) = self.sessions.get(&session) else { return Ok(true) };
        if about.branch.as_ref().is_some_and(|b| !b.contains(&entry)) {
            return Ok(true);
        }
        if !self.literal && self.skipped < self.query.offset {
            self.skipped += 1;
            return Ok(true);
        }
        let full = self.page.hits.len() >= self.query.limit.min(PAGE) as usize;
        if full && !self.literal {
            self.page.more = true;
            return Ok(false);
        }
        let raw = self.store.read(|conn| {
            let found = conn
                .prepare_cached(&format!("SELECT {COLUMNS} FROM entries WHERE id = ?1"))?
                .query_row([entry], Raw::from_row)
                .optional()?;
            Ok(found)
        })?;
        // Removed or damaged since.
        let Some(entry) = raw.and_then(|raw| raw.decode().ok()) else { return Ok(true) };
        let Some(role) = SearchRole::of_kind(entry.body.kind()) else { return Ok(true) };
        let text = entry.body.search_text();
        if self.literal {
            if !self.fits(&text, role, &entry.agent.0, about, session) {
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
            entry: EntryId(entry.id.0),
            role,
            agent: entry.agent,
            time: entry.time,
            preview,
            mark,
        });
        Ok(true)
    }

    fn fits(&self, text: &str, role: SearchRole, agent: &str, about: &About, session: Uuid) -> bool {
        let lower = text.to_lowercase();
        let has = |w: &String| lower.contains(&w.to_lowercase());
        let q = self.query;
        self.words.with.iter().all(has)
            && !self.words.without.iter().any(has)
            && (q.roles.is_empty() || q.roles.contains(&role))
            && q.project.as_ref().is_none_or(|p| *p == about.project)
            && q.session.is_none_or(|s| s.0 == session)
            && q.agent.as_deref().is_none_or(|a| a == agent)
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

/// The first match with its surroundings: the words together if they are adjacent, else the first word that occurs.
/// Lower case may be longer than the original, so positions are counted in characters of the original.
fn preview(text: &str, words: &[String]) -> (String, (usize, usize)) {
    let chars: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lower = String::with_capacity(text.len());
    // For each byte of `lower`: the index of its character in `text`.
    let mut from = Vec::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        let start = lower.len();
        lower.extend(c.to_lowercase());
        from.extend(std::iter::repeat_n(n, lower.len() - start));
    }
    let together = words.join(" ");
    let wanted = std::iter::once(&together).chain(words).map(|w| w.to_lowercase());
    let hit = wanted.filter(|w| !w.is_empty()).find_map(|w| lower.find(&w).map(|at| (at, w.len())));
    // Spelled differently (accents): the beginning.
    let (first, end) = hit.map_or((0, 0), |(at, long)| (from[at], from[at + long - 1] + 1));
    let (begin, stop) = (first.saturating_sub(AROUND), (end + AROUND).min(chars.len()));
    let before: String = chars[begin..first].iter().collect();
    let found: String = chars[first..end].iter().collect();
    let after: String = chars[end..stop].iter().collect();
    let mark = (before.len(), before.len() + found.len());
    (format!("{before}{found}{after}"), mark)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
