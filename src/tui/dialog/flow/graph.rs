//! The graph of a workflow: one row per step, layer by layer, with edges at the left.
//!
//! ```text
//! v        build
//! ├─~      test
//! v │      docs
//! .─╯      ship
//! ```
//! A step stands in a lane. The lane goes down from it until the last step that needs it; there it ends, or that step
//! takes its place.

use std::collections::{BTreeMap, BTreeSet};

use tiller_protocol::StepView;

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GraphRow {
    /// Index of the step in the definition; `None`: a row of edges only.
    pub(super) step: Option<usize>,
    /// A character a column; the step's own mark is [`NODE`].
    pub(super) cells: Vec<char>,
}

/// Stands where a step's mark belongs.
pub(super) const NODE: char = '\0';

/// Places of what a step needs, each once; names that are not there are left out.
pub(super) fn needs(steps: &[StepView]) -> Vec<Vec<usize>> {
    let at: BTreeMap<&str, usize> = steps.iter().enumerate().map(|(i, s)| (s.id.as_str(), i)).collect();
    let of = |(i, s): (usize, &StepView)| {
        let all: BTreeSet<usize> = s.needs.iter().filter_map(|n| at.get(n.as_str()).copied()).collect();
        all.into_iter().filter(|n| *n != i).collect()
    };
    steps.iter().enumerate().map(of).collect()
}

/// Layers from the top, in the order of the definition within each. (Steps that wait for each other cannot come
/// from the engine; they would come last.)
pub(super) fn order(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut layer: Vec<Option<usize>> = vec![None; needs.len()];
    for depth in 0..needs.len() {
        let ready =
            |i: &usize| layer[*i].is_none() && needs[*i].iter().all(|n| layer[*n].is_some_and(|l| l < depth));
        let now: Vec<usize> = (0..needs.len()).filter(ready).collect();
        if now.is_empty() {
            break;
        }
        for i in now {
            layer[i] = Some(depth);
        }
    }
    let mut all: Vec<usize> = (0..needs.len()).collect();
    all.sort_by_key(|i| layer[*i].unwrap_or(usize::MAX));
    all
}

/// A vertical edge: the steps below that it still leads to.
type Lane = BTreeSet<usize>;

/// The rows of the graph. `airy`: with a row of edges between steps.
pub(super) fn rows(needs: &[Vec<usize>], airy: bool) -> Vec<GraphRow> {
    let order = order(needs);
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    let mut lanes: Vec<Option<Lane>> = Vec::new();
    // A step without successors frees its column one row later: a step right below it would look as if it depended on
    // it.
    let mut shut: Option<usize> = None;
    let mut rows = Vec::new();
    for (nth, step) in order.iter().enumerate() {
        seen.insert(*step);
        let mut into: Vec<usize> = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        for (at, lane) in lanes.iter_mut().enumerate() {
            if let Some(lane) = lane
                && lane.remove(step)
            {
                into.push(at);
                if lane.is_empty() {
                    ends.push(at);
                }
            }
        }
        for at in &ends {
            lanes[*at] = None;
        }
        let free = || (0..).find(|at| lanes.get(*at).is_none_or(Option::is_none) && Some(*at) != shut);
        let column = ends.first().copied().or_else(free).unwrap_or(0);
        if lanes.len() <= column {
            lanes.resize(column + 1, None);
        }
        rows.push(GraphRow { step: Some(*step), cells: across(&lanes, column, &into, &ends) });
        let on: Lane = (0..needs.len()).filter(|i| !seen.contains(i) && needs[*i].contains(step)).collect();
        shut = on.is_empty().then_some(column);
        lanes[column] = (!on.is_empty()).then_some(on);
        while lanes.last().is_some_and(Option::is_none) {
            lanes.pop();
        }
        if airy && nth + 1 < order.len() {
            let mut cells: Vec<char> = Vec::new();
            for lane in &lanes {
                cells.extend([if lane.is_some() { '│' } else { ' ' }, ' ']);
            }
            cells.pop();
            rows.push(GraphRow { step: None, cells });
        }
    }
    rows
}

/// The row of a step in `column`, with its incoming edges.
fn across(lanes: &[Option<Lane>], column: usize, into: &[usize], ends: &[usize]) -> Vec<char> {
    let from = into.iter().copied().min().unwrap_or(column).min(column);
    let to = into.iter().copied().max().unwrap_or(column).max(column);
    let mut cells = Vec::new();
    for (at, lane) in lanes.iter().enumerate() {
        let (first, last, over) = (at == from, at == to, ends.contains(&at));
        cells.push(match () {
            () if at == column => NODE,
            () if into.contains(&at) => match (first, last, over) {
                (true, _, true) => '╰',
                (true, _, false) => '├',
                (_, true, true) => '╯',
                (_, true, false) => '┤',
                (_, _, true) => '┴',
                (_, _, false) => '┼',
            },
            () if lane.is_some() => '│',
            () if from < at && at < to => '─',
            () => ' ',
        });
        cells.push(if from <= at && at < to { '─' } else { ' ' });
    }
    while cells.last() == Some(&' ') {
        cells.pop();
    }
    cells
}

/// The same character where only plain ones can be shown.
pub(super) fn plain(c: char) -> char {
    match c {
        '│' => '|',
        '─' => '-',
        '├' | '┤' | '┼' | '┴' | '╰' | '╯' => '+',
        c => c,
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
