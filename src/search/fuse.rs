//! The order of words and the order of meaning as one: to the score of an entry by its words, as a share of the best one, a
//! share for its meaning is added. The weight is low: words decide, meaning breaks ties and finds what has none of the words.

use std::collections::HashMap;

use tiller_store::search::rank::{Scored, sort};

use crate::embedder::cosine;

/// Entries that are added for their meaning alone, before the filters.
pub(crate) const NEAREST: usize = 200;

/// A likeness counts when it stands out from that of all entries: from 2.5 standard deviations above the mean on, and
/// wholly from 6 on. A model that finds everything alike then changes nothing.
const USUAL: f32 = 2.5;
const CLEAR: f32 = 6.0;
/// Of fewer entries the spread says nothing: then these cosines count.
const FEW: usize = 60;
const USUAL_COSINE: f32 = 0.5;
const CLEAR_COSINE: f32 = 0.9;

/// Vectors in memory, in the order of their rows.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    pub(crate) model: String,
    pub(crate) rows: Vec<i64>,
    /// All of one length, one after the other.
    numbers: Vec<u8>,
    length: usize,
}

impl Vectors {
    pub(crate) fn of(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    /// Adds a vector whose row is above all others. One of another length is left out.
    pub(crate) fn add(&mut self, row: i64, vector: &[u8]) {
        if self.length == 0 {
            self.length = vector.len();
        }
        if vector.len() == self.length && self.rows.last().is_none_or(|last| *last < row) {
            self.rows.push(row);
            self.numbers.extend_from_slice(vector);
        }
    }

    pub(crate) fn last(&self) -> i64 {
        self.rows.last().copied().unwrap_or(0)
    }

    /// The likeness of each row to `wanted`, in the order of rows.
    pub(crate) fn likeness(&self, wanted: &[u8]) -> Vec<f32> {
        if self.length == 0 || wanted.len() != self.length {
            return vec![0.0; self.rows.len()];
        }
        self.numbers.chunks_exact(self.length).map(|v| cosine(wanted, v)).collect()
    }

    /// Rows by likeness, the most alike first.
    pub(crate) fn nearest(&self, likeness: &[f32]) -> Vec<i64> {
        let mut order: Vec<usize> =
            (0..likeness.len().min(self.rows.len())).filter(|n| likeness[*n] > 0.0).collect();
        let by = |a: &usize, b: &usize| likeness[*b].total_cmp(&likeness[*a]).then(b.cmp(a));
        if order.len() > NEAREST {
            order.select_nth_unstable_by(NEAREST, by);
            order.truncate(NEAREST);
        }
        order.sort_unstable_by(by);
        order.into_iter().map(|n| self.rows[n]).collect()
    }
}

/// The likeness from which on one counts, and from which on it counts wholly; the second is greater.
#[allow(clippy::cast_precision_loss, reason = "a mean is rounded")]
fn bounds(all: &[f32]) -> (f32, f32) {
    if all.len() < FEW {
        return (USUAL_COSINE, CLEAR_COSINE);
    }
    let count = all.len() as f32;
    let mean = all.iter().sum::<f32>() / count;
    let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
    let deviation = variance.sqrt().max(0.01);
    (mean + USUAL * deviation, mean + CLEAR * deviation)
}

/// Joins the entries with the words, and those of a near meaning that the filters admit.
pub(crate) fn join(
    worded: &[Scored],
    meant: &[Scored],
    (vectors, likeness): (&Vectors, &[f32]),
    weight: f32,
) -> Vec<Scored> {
    let best = worded.iter().map(|s| s.score).fold(0.0f32, f32::max).max(f32::EPSILON);
    let (usual, clear) = bounds(likeness);
    let alike = |row: i64| {
        let at = vectors.rows.binary_search(&row).ok();
        at.and_then(|at| likeness.get(at)).map_or(0.0, |l| ((l - usual) / (clear - usual)).clamp(0.0, 1.0))
    };
    let mut all: HashMap<i64, Scored> = HashMap::new();
    for entry in meant {
        all.insert(entry.seq, Scored { score: 0.0, ..entry.clone() });
    }
    for entry in worded {
        all.insert(entry.seq, Scored { score: entry.score / best, ..entry.clone() });
    }
    let mut joined: Vec<Scored> = all.into_values().collect();
    for entry in &mut joined {
        entry.score += weight * alike(entry.seq);
    }
    joined.retain(|entry| entry.score > 0.0);
    sort(&mut joined);
    joined
}
