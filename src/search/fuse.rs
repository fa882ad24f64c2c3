//! The order of words and the order of meaning as one: to the score of an entry by its words, as a share of the best one, a
//! share for its meaning is added. The weight is low: words decide, meaning breaks ties and finds what has none of the words.

use std::collections::{HashMap, HashSet};

use tiller_protocol::{SearchQuery, SearchRole, SessionId};
use tiller_store::search::EntryVector;
use tiller_store::search::rank::{Scored, sort};
use tiller_store::search::statistics::mean_and_deviation;

use crate::embedder::cosine;

/// Entries that are added for their meaning alone, after the filters.
pub(crate) const NEAREST: usize = 200;
/// Entries that are looked at for these, since only the index has their words and their agent.
const WALKED: usize = 1_000;

/// A likeness counts when it stands out from that of all entries that the query may find: from this number of standard deviations
/// above the mean on, and wholly from the second on. A model that finds everything alike then changes nothing.
const USUAL: f32 = 2.5;
const CLEAR: f32 = 6.0;
/// Of fewer entries the spread says nothing: then these cosines count.
const FEW: usize = 60;
const USUAL_COSINE: f32 = 0.5;
const CLEAR_COSINE: f32 = 0.9;
/// Share of a neighbour's vector, as of its words.
const NEIGHBOUR: f32 = 0.5;

/// Vectors in memory, in the order of their rows. What is compared is an entry with its neighbours, as with words.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    pub(crate) model: String,
    pub(crate) rows: Vec<i64>,
    /// All of one length, one after the other.
    numbers: Vec<u8>,
    length: usize,
    near: Vec<Near>,
    about: Vec<About>,
    /// The session of each number in `about`.
    sessions: Vec<SessionId>,
    numbered: HashMap<SessionId, u32>,
}

/// Fields of the entry of a vector that the filters of a query compare.
#[derive(Clone, Copy, Debug)]
struct About {
    /// The number of its session.
    session: u32,
    /// Milliseconds since 1970.
    time: i64,
    role: Option<SearchRole>,
}

/// How much alike to a query its entries are.
#[derive(Debug)]
pub(crate) struct Meant {
    /// Of each row.
    likeness: Vec<f32>,
    /// From which likeness on one counts, and from which on it counts wholly.
    bounds: (f32, f32),
    /// Rows that count and that the query may find, the most alike first. Of many the first.
    pub(crate) nearest: Vec<i64>,
}

/// The neighbours of a vector, by their places.
#[derive(Clone, Copy, Debug, Default)]
struct Near {
    prev: Option<u32>,
    next: Option<u32>,
    /// Cosines with the vector before it, and with the one before that.
    first: f32,
    second: f32,
}

impl Vectors {
    pub(crate) fn of(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    /// Adds a vector whose row is above all others. One of another length is left out.
    pub(crate) fn add(&mut self, entry: &EntryVector) {
        if self.length == 0 {
            self.length = entry.numbers.len();
        }
        let rising = self.rows.last().is_none_or(|last| *last < entry.row);
        let (Ok(at), true) = (u32::try_from(self.rows.len()), rising && entry.numbers.len() == self.length)
        else {
            return;
        };
        let prev = entry.prev.and_then(|prev| self.rows.binary_search(&prev).ok());
        let before = prev.and_then(|prev| self.near[prev].prev);
        let with =
            |place: Option<usize>| place.map_or(0.0, |place| cosine(&entry.numbers, self.vector(place)));
        let (first, second) = (with(prev), with(before.map(|n| n as usize)));
        if let Some(prev) = prev {
            self.near[prev].next.get_or_insert(at);
        }
        let prev = prev.and_then(|prev| u32::try_from(prev).ok());
        self.near.push(Near { prev, next: None, first, second });
        let session = self.number(entry.session);
        self.about.push(About { session, time: entry.time, role: entry.role });
        self.rows.push(entry.row);
        self.numbers.extend_from_slice(&entry.numbers);
    }

    fn number(&mut self, session: SessionId) -> u32 {
        let sessions = &mut self.sessions;
        *self.numbered.entry(session).or_insert_with(|| {
            sessions.push(session);
            u32::try_from(sessions.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Whether a query may find each row, by its session, role and time; `None`: all. `project`: the sessions of the project
    /// that it asks for.
    fn scope(&self, query: &SearchQuery, project: Option<&HashSet<SessionId>>) -> Option<Vec<bool>> {
        let timed = query.since.is_some() || query.until.is_some();
        if project.is_none() && query.session.is_none() && query.roles.is_empty() && !timed {
            return None;
        }
        let meant = |session: &SessionId| {
            project.is_none_or(|project| project.contains(session))
                && query.session.is_none_or(|wanted| wanted == *session)
        };
        let here: Vec<bool> = self.sessions.iter().map(meant).collect();
        let admits = |about: &About| {
            here.get(about.session as usize).is_some_and(|here| *here)
                && (query.roles.is_empty() || about.role.is_some_and(|role| query.roles.contains(&role)))
                && query.since.is_none_or(|since| about.time >= since.millis())
                && query.until.is_none_or(|until| about.time < until.millis())
        };
        Some(self.about.iter().map(admits).collect())
    }

    /// How much alike the entries are to the vector of a query. `project`: the sessions of the project that it asks for.
    pub(crate) fn meant(
        &self,
        wanted: &[u8],
        query: &SearchQuery,
        project: Option<&HashSet<SessionId>>,
    ) -> Meant {
        let likeness = self.likeness(wanted);
        let (bounds, nearest) = match self.scope(query, project) {
            None => {
                let bounds = bounds(&likeness);
                (bounds, self.nearest(&likeness, bounds.0, |_| true))
            }
            Some(scope) => {
                let inside = likeness.iter().zip(&scope).filter(|(_, inside)| **inside);
                let bounds = bounds(&inside.map(|(likeness, _)| *likeness).collect::<Vec<_>>());
                (bounds, self.nearest(&likeness, bounds.0, |n| scope[n]))
            }
        };
        Meant { likeness, bounds, nearest }
    }

    fn vector(&self, at: usize) -> &[u8] {
        &self.numbers[at * self.length..(at + 1) * self.length]
    }

    /// Whether these vectors can be compared with one of this length.
    pub(crate) fn fits(&self, length: usize) -> bool {
        self.length == 0 || self.length == length
    }

    pub(crate) fn last(&self) -> i64 {
        self.rows.last().copied().unwrap_or(0)
    }

    /// The likeness of each row with its neighbours to `wanted`, in the order of rows.
    pub(crate) fn likeness(&self, wanted: &[u8]) -> Vec<f32> {
        if self.length == 0 || wanted.len() != self.length {
            return vec![0.0; self.rows.len()];
        }
        let own = cosines(wanted, &self.numbers);
        let unit = |(at, near): (usize, &Near)| {
            let (mut dot, mut square) = (own[at], 1.0);
            if let Some(prev) = near.prev {
                dot += NEIGHBOUR * own[prev as usize];
                square += NEIGHBOUR * (NEIGHBOUR + 2.0 * near.first);
            }
            if let Some(next) = near.next {
                let after = self.near[next as usize];
                dot += NEIGHBOUR * own[next as usize];
                square += NEIGHBOUR * (NEIGHBOUR + 2.0 * after.first);
                if near.prev.is_some() {
                    square += 2.0 * NEIGHBOUR * NEIGHBOUR * after.second;
                }
            }
            dot / square.max(0.01).sqrt()
        };
        self.near.iter().enumerate().map(unit).collect()
    }

    /// Rows with more than this likeness, the most alike first; `admits` tells which may be among them.
    fn nearest(&self, likeness: &[f32], above: f32, admits: impl Fn(usize) -> bool) -> Vec<i64> {
        let least = above.max(0.0);
        let mut order: Vec<usize> =
            (0..likeness.len().min(self.rows.len())).filter(|n| likeness[*n] > least && admits(*n)).collect();
        let by = |a: &usize, b: &usize| likeness[*b].total_cmp(&likeness[*a]).then(b.cmp(a));
        if order.len() > WALKED {
            order.select_nth_unstable_by(WALKED, by);
            order.truncate(WALKED);
        }
        order.sort_unstable_by(by);
        order.into_iter().map(|n| self.rows[n]).collect()
    }
}

/// Bytes of vectors from which on a second thread compares one half of them: some milliseconds of work.
const HALVED: usize = 16 << 20;

/// The cosine of a vector with each vector in `all`: vectors of the same length, one after the other.
fn cosines(wanted: &[u8], all: &[u8]) -> Vec<f32> {
    let each = |some: &[u8]| -> Vec<f32> {
        some.chunks_exact(wanted.len().max(1)).map(|one| cosine(wanted, one)).collect()
    };
    if all.len() < HALVED {
        return each(all);
    }
    let middle = all.len() / wanted.len().max(1) / 2 * wanted.len();
    let (first, second) = all.split_at(middle);
    std::thread::scope(|scope| {
        // Without a second thread this one does all.
        let other = std::thread::Builder::new().spawn_scoped(scope, || each(second));
        let mut made = each(first);
        made.extend(other.ok().and_then(|other| other.join().ok()).unwrap_or_else(|| each(second)));
        made
    })
}

/// The likeness from which on one counts, and from which on it counts wholly; the second is greater.
fn bounds(all: &[f32]) -> (f32, f32) {
    if all.len() < FEW {
        return (USUAL_COSINE, CLEAR_COSINE);
    }
    let (mean, deviation) = mean_and_deviation(all);
    let deviation = deviation.max(0.01);
    (mean + USUAL * deviation, mean + CLEAR * deviation)
}

/// The share from 0 to 1 that each likeness counts with.
pub(crate) fn shares(all: &[f32]) -> Vec<f32> {
    let (usual, clear) = bounds(all);
    all.iter().map(|l| share(*l, (usual, clear))).collect()
}

fn share(likeness: f32, (usual, clear): (f32, f32)) -> f32 {
    ((likeness - usual) / (clear - usual)).clamp(0.0, 1.0)
}

/// Joins the entries with the words, and those of a near meaning that the filters admit.
pub(crate) fn join(
    worded: &[Scored],
    admitted: &[Scored],
    (vectors, meant): (&Vectors, &Meant),
    weight: f32,
) -> Vec<Scored> {
    let best = worded.iter().map(|s| s.score).fold(0.0f32, f32::max).max(f32::EPSILON);
    let alike = |row: i64| {
        let at = vectors.rows.binary_search(&row).ok();
        at.and_then(|at| meant.likeness.get(at)).map_or(0.0, |l| share(*l, meant.bounds))
    };
    let mut all: HashMap<i64, Scored> = HashMap::new();
    for entry in admitted {
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

#[cfg(test)]
mod tests {
    use tiller_protocol::{IdSource, SeqIds, Time};

    use super::*;
    use crate::embedder::packed;

    /// A vector of the only session.
    fn vector_of(row: i64, prev: Option<i64>, vector: &[f32]) -> EntryVector {
        let session = SessionId(SeqIds::default().next(Time(0)));
        let (time, role) = (row, Some(SearchRole::User));
        EntryVector { row, prev, session, time, role, numbers: packed(vector) }
    }

    #[test]
    fn a_scope_is_made_of_sessions_roles_and_times() {
        let (ids, mut vectors) = (SeqIds::default(), Vectors::default());
        let sessions = [(); 3].map(|()| SessionId(ids.next(Time(0))));
        for (row, session) in (1..).zip([sessions[0], sessions[1], sessions[0], sessions[2]]) {
            let role = Some(if row == 3 { SearchRole::Tool } else { SearchRole::User });
            vectors.add(&EntryVector { session, role, ..vector_of(row, None, &[1.0, 0.0]) });
        }
        let all = SearchQuery::default();
        let near = |query: &SearchQuery, project: Option<&[SessionId]>| {
            let project: Option<HashSet<SessionId>> = project.map(|all| all.iter().copied().collect());
            vectors.meant(&packed(&[1.0, 0.0]), query, project.as_ref()).nearest
        };
        assert_eq!(near(&all, None), [4, 3, 2, 1]);
        assert_eq!(near(&all, Some(&sessions[..2])), [3, 2, 1]);
        assert_eq!(near(&SearchQuery { session: Some(sessions[0]), ..all.clone() }, None), [3, 1]);
        let people = SearchQuery { roles: vec![SearchRole::User], ..all.clone() };
        assert_eq!(near(&people, Some(&sessions[..1])), [1]);
        let timed = SearchQuery { since: Some(Time(2)), until: Some(Time(4)), ..all.clone() };
        assert_eq!(near(&timed, None), [3, 2]);
        assert!(near(&all, Some(&[])).is_empty());
    }

    #[test]
    fn two_threads_compare_as_one_does() {
        let wanted: Vec<u8> = (0..=255).collect();
        let all: Vec<u8> = (0..HALVED + 3 * 256).map(|n| (n * 31 % 251) as u8).collect();
        let alone: Vec<f32> = all.chunks_exact(256).map(|one| cosine(&wanted, one)).collect();
        assert_eq!(cosines(&wanted, &all), alone);
        assert_eq!(cosines(&wanted, &all[..7 * 256]), alone[..7]);
    }

    #[test]
    fn a_likeness_is_that_of_the_entry_with_half_of_its_neighbours() {
        let all = [[1.0, 0.2, 0.0], [0.0, 1.0, 0.3], [0.5, 0.0, 1.0], [0.3, 0.3, 0.3]];
        let mut vectors = Vectors::default();
        // Rows 1, 2, 3 follow each other; row 4 is another answer to row 1.
        for (row, prev, vector) in
            [(1, None, all[0]), (2, Some(1), all[1]), (3, Some(2), all[2]), (4, Some(1), all[3])]
        {
            vectors.add(&vector_of(row, prev, &vector));
        }
        let unit = |v: [f32; 3]| {
            let length = v.iter().map(|x| x * x).sum::<f32>().sqrt();
            v.map(|x| x / length)
        };
        let wanted = unit([0.4, 0.9, 0.1]);
        let expected = |own: usize, others: &[usize]| -> f32 {
            let mut sum = unit(all[own]);
            for other in others {
                let other = unit(all[*other]);
                (0..3).for_each(|n| sum[n] += 0.5 * other[n]);
            }
            unit(sum).iter().zip(wanted).map(|(a, b)| a * b).sum()
        };
        let found = vectors.likeness(&packed(&wanted));
        for (n, others) in [(0, &[1][..]), (1, &[0, 2]), (2, &[1]), (3, &[0])] {
            assert!((found[n] - expected(n, others)).abs() < 0.02, "{n}: {found:?}");
        }
        assert!(vectors.fits(3) && !vectors.fits(4));
        assert_eq!(vectors.likeness(&[1; 4]), [0.0; 4]);
    }
}
