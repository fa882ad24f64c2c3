//! The order of a ranked search. What is scored is an entry with its neighbours in the tree: words of the entries beside it
//! count half, those of the next ones less. A rare word counts more than a common one, a word of a long entry
//! less than one of a short entry, and what is old a little less.
//!
//! Only rows of the index are read, never a text: so its cost depends on the number of rows, which is limited. Of a word
//! that too many entries contain, the newest count.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::SearchQuery;
use uuid::Uuid;

use crate::error::Result;
use crate::search::lookup::{Cancel, bounds};
use crate::search::statistics::{fading, inverse_frequency};
use crate::search::words::{Term, Words};

/// Rows that are read for one term, and for a query.
const ROWS: usize = 4_000;
const ROWS_ALL: usize = 12_000;
/// Entries that are scored: those with the best words of their own.
const SCORED: usize = 1_000;
/// Of these, those whose neighbours may be hits too.
const SPREAD: usize = 300;
/// Share of a word of the entry before or after, and of the one beyond it.
const NEIGHBOUR: f32 = 0.5;
const BEYOND: f32 = 0.3;
/// Share of a word that means nearly the same.
const NEAR: f32 = 0.3;
/// How quickly more of a word stops to matter, and how much the length of an entry matters (k1 and b of BM25).
const SATURATION: f32 = 2.0;
const LENGTH: f32 = 0.3;
/// A longer entry than this number of average ones counts as one of this length.
const LONGEST: f32 = 8.0;
/// Share of the score that fades, and the days after which half of it is gone.
const FADES: f32 = 0.1;
const HALF_LIFE: f32 = 60.0;

/// An entry and how well it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Its row.
    pub seq: i64,
    pub entry: Uuid,
    pub session: Uuid,
    /// Milliseconds since 1970.
    pub time: i64,
    /// Greater is better; comparable within one query only.
    pub score: f32,
}

/// What a ranked query finds in the index.
pub(crate) struct Ranked {
    /// Best first.
    pub(crate) scored: Vec<Scored>,
    /// Words that no entry contains.
    pub(crate) unknown: Vec<String>,
}

/// How an entry is scored; a measurement compares several.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// Share of a word of a neighbour; 0: an entry alone.
    pub neighbour: f32,
    /// Share of a word of a neighbour's neighbour.
    pub beyond: f32,
    pub saturation: f32,
    pub length: f32,
    pub fades: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { neighbour: NEIGHBOUR, beyond: BEYOND, saturation: SATURATION, length: LENGTH, fades: FADES }
    }
}

impl Weights {
    /// An entry without its neighbours.
    pub fn alone() -> Self {
        Self { neighbour: 0.0, beyond: 0.0, ..Self::default() }
    }
}

/// A row of the index.
#[derive(Clone, Copy)]
struct Doc {
    entry: Uuid,
    session: Uuid,
    time: i64,
    prev: Option<i64>,
    next: Option<i64>,
    len: f32,
}

struct Docs<'a> {
    index: &'a Connection,
    known: HashMap<i64, Option<Doc>>,
}

impl Docs<'_> {
    /// The row, read with those beside it: mostly they are its neighbours, which are needed next.
    fn get(&mut self, seq: i64) -> Result<Option<Doc>> {
        if let Some(doc) = self.known.get(&seq) {
            return Ok(*doc);
        }
        let mut statement = self.index.prepare_cached(
            "SELECT entry, session, time, prev, next, len, seq FROM docs WHERE seq BETWEEN ?1 AND ?2",
        )?;
        let mut rows = statement.query([seq.saturating_sub(1), seq.saturating_add(1)])?;
        while let Some(r) = rows.next()? {
            let len: i64 = r.get(5)?;
            #[allow(clippy::cast_precision_loss, reason = "a length is rounded")]
            let len = len as f32;
            let (entry, session, time) = (r.get(0)?, r.get(1)?, r.get(2)?);
            let doc = Doc { entry, session, time, prev: r.get(3)?, next: r.get(4)?, len };
            self.known.insert(r.get(6)?, Some(doc));
        }
        Ok(*self.known.entry(seq).or_insert(None))
    }
}

/// What a search of the index asks beside it.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) cancel: &'a Cancel,
    /// Whether the entry of a row has a word with its signs, which may go on.
    pub(crate) holds: &'a dyn Fn(i64, &str, bool) -> Result<bool>,
}

/// Ranks the entries that contain any of the terms.
pub(crate) fn rank(
    index: &Connection,
    words: &Words,
    terms: &[Term],
    query: &SearchQuery,
    (weights, now, look): (Weights, i64, Look<'_>),
) -> Result<Ranked> {
    let total: i64 = index.query_row("SELECT coalesce(max(seq), 0) FROM docs", [], |r| r.get(0))?;
    let (found, rarity, unknown) = candidates(index, words, terms, query, (total, look))?;
    let own = |has: &TermMask| rarity.iter().enumerate().map(|(n, r)| r * has.share(n)).sum::<f32>();
    let mut best: Vec<(f32, i64)> = found.iter().map(|(seq, has)| (own(has), *seq)).collect();
    let order = |a: &(f32, i64), b: &(f32, i64)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1));
    if best.len() > SCORED {
        best.select_nth_unstable_by(SCORED, order);
        best.truncate(SCORED);
    }
    best.sort_unstable_by(order);

    let mut docs = Docs { index, known: HashMap::new() };
    let mut pool: Vec<i64> = best.iter().map(|(_, seq)| *seq).collect();
    // A neighbour without a word of its own is a hit only where nothing else is asked of a hit.
    let plain = words.without.is_empty()
        && !words.with.iter().any(|w| w.quoted)
        && query.roles.is_empty()
        && query.agent.is_none();
    if plain && weights.neighbour > 0.0 {
        for (_, seq) in best.iter().take(SPREAD) {
            let doc = docs.get(*seq)?;
            pool.extend(doc.into_iter().flat_map(|d| [d.prev, d.next]).flatten());
        }
        pool.sort_unstable();
        pool.dedup();
    }
    let scored = score(&mut docs, &pool, &found, &rarity, (weights, now, query))?;
    Ok(Ranked { scored, unknown })
}

/// Which terms an entry contains, and near words of which terms: a bit each.
#[derive(Clone, Copy, Default)]
struct TermMask {
    own: u32,
    near: u32,
}

impl TermMask {
    /// How much it has of a term, from 0 to 1.
    fn share(self, term: usize) -> f32 {
        match (self.own & (1 << term) != 0, self.near & (1 << term) != 0) {
            (true, _) => 1.0,
            (false, true) => NEAR,
            (false, false) => 0.0,
        }
    }
}

/// Which terms each entry contains, the weight of each term, and the words that nothing contains.
type Candidates = (HashMap<i64, TermMask>, Vec<f32>, Vec<String>);

fn candidates(
    index: &Connection,
    words: &Words,
    terms: &[Term],
    query: &SearchQuery,
    (total, look): (i64, Look<'_>),
) -> Result<Candidates> {
    let (since, until) = bounds(query);
    let timed = query.since.is_some() || query.until.is_some();
    let sql = match timed {
        true => {
            "SELECT words.rowid FROM words JOIN docs d ON d.seq = words.rowid
             WHERE words MATCH ?1 AND d.time >= ?3 AND d.time < ?4 ORDER BY words.rowid DESC LIMIT ?2"
        }
        false => "SELECT rowid FROM words WHERE words MATCH ?1 AND ?3 < ?4 ORDER BY rowid DESC LIMIT ?2",
    };
    // Rare words first, so that the limit cuts common ones. A word of no message is rare as far as is known.
    let mut order: Vec<(i64, usize)> = Vec::with_capacity(terms.len());
    for (n, term) in terms.iter().enumerate() {
        let known = index
            .prepare_cached("SELECT n FROM vocabulary WHERE word = ?1")?
            .query_row([&term.word], |r| r.get(0))
            .optional()?;
        order.push((known.unwrap_or(0), n));
    }
    order.sort_unstable();
    let mut found: HashMap<i64, TermMask> = HashMap::new();
    let mut rarity = vec![0.0; terms.len()];
    let mut unknown = Vec::new();
    let mut left = ROWS_ALL;
    let required = words.required();
    for (_, n) in order {
        look.cancel.check()?;
        let limit = ROWS.min(left).max(500);
        // The matching rows, those of them that have the word's signs, and the last row.
        let mut read = |matching: &str,
                        limit: usize,
                        take: &mut dyn FnMut(&mut TermMask)|
         -> Result<(usize, usize, i64)> {
            let matching = match &required {
                Some(required) => format!("({matching}) AND {required}"),
                None => matching.to_owned(),
            };
            let matching = words.narrowed(&matching, query);
            let mut statement = index.prepare_cached(sql)?;
            let mut rows =
                statement.query(params![matching, i64::try_from(limit).unwrap_or(0), since, until])?;
            let (mut count, mut holding, mut last) = (0usize, 0usize, total);
            while let Some(row) = rows.next()? {
                last = row.get(0)?;
                count += 1;
                let holds = match &terms[n].signed {
                    Some((signed, open)) => {
                        look.cancel.check()?;
                        (look.holds)(last, signed, *open)?
                    }
                    None => true,
                };
                if holds {
                    take(found.entry(last).or_default());
                    holding += 1;
                }
            }
            Ok((count, holding, last))
        };
        let (count, holding, last) = read(&terms[n].matching, limit, &mut |has| has.own |= 1 << n)?;
        // Near words matter for a rare word; a common one has enough entries of its own.
        let room = limit.saturating_sub(count) / 2;
        if !terms[n].near.is_empty() && room > 0 {
            let (more, ..) = read(&terms[n].near, room, &mut |has| has.near |= 1 << n)?;
            left = left.saturating_sub(more);
        }
        left = left.saturating_sub(count);
        if holding == 0 {
            unknown.push(terms[n].word.clone());
        }
        rarity[n] = weight(total, holding, (count == limit).then_some(last));
    }
    Ok((found, rarity, unknown))
}

/// The weight of a term: greater when fewer entries contain it. With `last` the count ended at this row, and is
/// extrapolated.
#[allow(clippy::cast_precision_loss, reason = "a frequency is rounded")]
fn weight(total: i64, count: usize, last: Option<i64>) -> f32 {
    let all = total.max(1) as f32;
    let with = match last {
        Some(last) => count as f32 * all / (total - last + 1).max(1) as f32,
        None => count as f32,
    };
    inverse_frequency(all, with).max(0.01)
}

fn score(
    docs: &mut Docs<'_>,
    pool: &[i64],
    found: &HashMap<i64, TermMask>,
    rarity: &[f32],
    (weights, now, query): (Weights, i64, &SearchQuery),
) -> Result<Vec<Scored>> {
    struct Unit {
        seq: i64,
        doc: Doc,
        /// Itself, the entries beside it, and those beyond them.
        has: [TermMask; 5],
        len: f32,
    }
    let (since, until) = bounds(query);
    let has = |seq: Option<i64>| seq.and_then(|s| found.get(&s)).copied().unwrap_or_default();
    let mut units = Vec::with_capacity(pool.len());
    for seq in pool {
        let Some(doc) = docs.get(*seq)? else { continue };
        if doc.time < since || doc.time >= until {
            continue;
        }
        let (prev, next) = match weights.neighbour > 0.0 {
            true => (doc.prev, doc.next),
            false => (None, None),
        };
        let (mut len, mut beyond) = (doc.len, [None; 2]);
        if let Some(before) = prev.map(|prev| docs.get(prev)).transpose()?.flatten() {
            len += before.len;
            beyond[0] = before.prev;
        }
        if let Some(after) = next.map(|next| docs.get(next)).transpose()?.flatten() {
            len += after.len;
            beyond[1] = after.next;
        }
        let has = [Some(*seq), prev, next, beyond[0], beyond[1]].map(has);
        units.push(Unit { seq: *seq, doc, has, len });
    }
    #[allow(clippy::cast_precision_loss, reason = "an average is rounded")]
    let average = (units.iter().map(|u| u.len).sum::<f32>() / units.len().max(1) as f32).max(1.0);
    let scored = units.iter().map(|u| {
        let long = 1.0 - weights.length + weights.length * (u.len / average).min(LONGEST);
        let fit = rarity.iter().enumerate().map(|(n, rarity)| {
            let [own, prev, next, before, after] = u.has.map(|has| has.share(n));
            let count = own + weights.neighbour * (prev + next) + weights.beyond * (before + after);
            rarity * count * (weights.saturation + 1.0) / (count + weights.saturation * long)
        });
        let score = fit.sum::<f32>() * fading(weights.fades, HALF_LIFE, now, u.doc.time);
        Scored { seq: u.seq, entry: u.doc.entry, session: u.doc.session, time: u.doc.time, score }
    });
    let mut scored: Vec<Scored> = scored.filter(|s| s.score > 0.0).collect();
    sort(&mut scored);
    Ok(scored)
}

/// Best first; the newer of equal ones.
pub fn sort(scored: &mut [Scored]) {
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.seq.cmp(&a.seq)));
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
