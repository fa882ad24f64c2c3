//! Near-duplicates are merged and their uses add up; unused learnings are retired. Nothing is deleted.

use std::collections::{BTreeSet, HashMap};

use tiller_protocol::memory::has_matcher;
use tiller_protocol::{Learning, LearningState, Time};
use tiller_store::Retirement;

use super::words::{likeness, words};

/// Days without use after which a learning that was never used is retired; each use adds as many again.
pub const FADE_DAYS: i64 = 90;
/// Longest life without use, in days.
const LONGEST_DAYS: i64 = 730;
/// Days that a proposal waits.
const PROPOSAL_DAYS: i64 = 60;
const DAY: i64 = 24 * 3_600 * 1_000;
/// Least likeness of errors and of fixes that are the same.
const SAME: f64 = 0.8;
/// Most learnings of one kind that each is compared with.
const COMPARED: usize = 200;

/// Why a learning was retired whose time without use was over, and, before a number, that another one has taken over its uses.
const FADED: &str = "not used for long";
const MERGED: &str = "merged into";

/// A learning that others are merged into.
struct Leader<'a> {
    learning: &'a Learning,
    error: BTreeSet<String>,
    fix: BTreeSet<String>,
}

/// The learnings to retire, each as it was when that was decided.
pub fn consolidate(learnings: &[Learning], now: Time) -> Vec<Retirement> {
    let mut retired = Vec::new();
    let mut groups: HashMap<(&str, &str, &str), Vec<&Learning>> = HashMap::new();
    for learning in learnings {
        if !matches!(learning.state, LearningState::Proposed | LearningState::Active) {
            continue;
        }
        // A rule is counted by its receipts, and its matcher is not what makes two learnings alike.
        let matches = has_matcher(&learning.fix) || has_matcher(&learning.context);
        if learning.state == LearningState::Active && matches {
            continue;
        }
        if faded(learning, now) {
            retired.push(retirement(learning, None));
            continue;
        }
        // A proposal is never merged into what the person accepted, nor the other way round.
        let key = (learning.kind.tool.as_str(), learning.kind.subject.as_str(), learning.state.word());
        groups.entry(key).or_default().push(learning);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(key, _)| *key);
    for (_, mut group) in groups {
        // The most used one stays, of equals the oldest.
        group.sort_by_key(|l| (std::cmp::Reverse(l.times_used), l.id));
        let mut leaders: Vec<Leader<'_>> = Vec::new();
        for learning in group {
            let (error, fix) = (words(&learning.kind.error_type), words(&learning.fix));
            let same = leaders.iter().take(COMPARED).find(|leader| {
                let details = &leader.learning.kind.details;
                likeness(&leader.error, &error) >= SAME
                    && likeness(&leader.fix, &fix) >= SAME
                    && (details == &learning.kind.details
                        || details.is_empty()
                        || learning.kind.details.is_empty())
            });
            match same {
                Some(leader) => retired.push(retirement(learning, Some(leader.learning.id))),
                None => leaders.push(Leader { learning, error, fix }),
            }
        }
    }
    retired
}

/// Whether its time without use is over: it is retired.
fn faded(learning: &Learning, now: Time) -> bool {
    let days = match learning.state {
        LearningState::Proposed => PROPOSAL_DAYS,
        _ => (FADE_DAYS * (1 + i64::from(learning.times_used))).min(LONGEST_DAYS),
    };
    let since = learning.last_used_at.unwrap_or(learning.created_at).max(learning.created_at);
    now.millis().saturating_sub(since.millis()) > days * DAY
}

/// Whether it was retired because it was not used for long, and not because it was wrong.
pub(super) fn has_faded(learning: &Learning) -> bool {
    learning.state == LearningState::Retired && reason(&learning.context) == FADED
}

/// Whether it was retired because another one has the same content.
pub(super) fn is_merged(learning: &Learning) -> bool {
    let number = reason(&learning.context).strip_prefix(MERGED).map(str::trim);
    learning.state == LearningState::Retired && number.is_some_and(|id| id.parse::<i64>().is_ok())
}

/// The reason at the end of the context of a learning that a consolidation retired.
fn reason(context: &str) -> &str {
    let end = context.rsplit_once(" (").and_then(|(_, end)| end.strip_suffix(')'));
    end.unwrap_or(context)
}

fn retirement(learning: &Learning, into: Option<i64>) -> Retirement {
    let why = match into {
        Some(id) => format!("{MERGED} {id}"),
        None => FADED.to_owned(),
    };
    let context = if learning.context.is_empty() { why } else { format!("{} ({why})", learning.context) };
    Retirement { seen: learning.clone(), into, context }
}
