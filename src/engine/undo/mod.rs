//! Undo and redo of operations of every kind. The log only grows: an undo is a row that names the operation that it
//! undoes. How many rows an operation has says how it stands: an odd number, it is in force; an even one, it is
//! undone. So an undo of an undo makes no chain.
//!
//! ```text
//! log:   fork   rename   undo rename   redo rename   undo rename
//! rows:  1      1        2             3             4
//! ```

pub(crate) mod before;
pub(crate) mod changed;
pub(crate) mod export;
pub mod review;
pub mod title;
pub(crate) mod tree;
pub(crate) mod undoing;

use std::collections::HashMap;

pub use title::{Inverse, OpTitle};

use tiller_protocol::op::OpChange;
use tiller_protocol::{Op, OpId};

/// Operations that are looked through for the next one.
pub const OPS: u32 = 20_000;

/// The operation that the next undo or redo applies to.
#[derive(Clone, Debug)]
pub struct Next {
    /// The first row of the operation.
    pub root: OpId,
    /// The row that is to be inverted.
    pub row: Op,
    /// Its title.
    pub title: String,
    /// Another operation that is undone with it.
    pub with: Option<OpId>,
}

/// The operation that began last of those in force (or, with `redo`, the operation that was undone last).
/// `ops` are newest first; those that do not `fit` are passed over.
pub fn next(ops: &[Op], redo: bool, fit: impl Fn(&Op) -> bool) -> Option<Next> {
    let mut by_root: HashMap<OpId, Vec<usize>> = HashMap::new();
    for (at, op) in ops.iter().enumerate() {
        by_root.entry(op.root()).or_default().push(at);
    }
    let mut found: Vec<(usize, Next)> = Vec::new();
    for (began, root) in ops.iter().enumerate().filter(|(_, op)| op.root() == op.id) {
        let rows: Vec<&Op> = by_root.get(&root.id).into_iter().flatten().map(|at| &ops[*at]).collect();
        let Some(row) = to_invert(&rows, redo) else { continue };
        let undone = rows.len().is_multiple_of(2);
        if undone == redo && fit(row) {
            let next = Next { root: root.id, row: row.clone(), title: root.title.clone(), with: root.with };
            let last = by_root.get(&root.id).and_then(|rows| rows.first()).copied();
            found.push((if redo { last.unwrap_or(began) } else { began }, next));
        }
    }
    let (_, mut next) = found.iter().min_by_key(|(at, _)| *at).cloned()?;
    if redo {
        // An operation that belongs to it follows it in the log.
        let partner = |(_, n): &&(usize, Next)| n.with == Some(next.root);
        next.with = found.iter().find(partner).map(|(_, n)| n.root).or(next.with);
    }
    Some(next)
}

/// The row that an undo or redo inverts, of the rows of one operation, newest first: the last row that changed
/// something. Where that led to the wanted state already, the last row, which changed nothing and needs no inverse.
fn to_invert<'a>(rows: &[&'a Op], redo: bool) -> Option<&'a Op> {
    let last = rows.first()?;
    let Some((newer, row)) = rows.iter().enumerate().find(|(_, op)| changes_something(op)) else {
        return Some(last);
    };
    let does = !(rows.len() - newer).is_multiple_of(2);
    Some(if does == redo { last } else { row })
}

/// Whether a row changed anything. A row that did not is in the log as well, so that the next undo passes it.
fn changes_something(op: &Op) -> bool {
    match &op.change {
        OpChange::Files { before, after, .. }
        | OpChange::Title { before, after }
        | OpChange::Label { before, after, .. } => before != after,
        OpChange::Archived { before, after } | OpChange::BranchArchived { before, after, .. } => {
            before != after
        }
        OpChange::Tag { before, after, .. } => before != after,
        // A branch may begin where another one is.
        OpChange::Head { .. } | OpChange::Compaction { .. } => true,
    }
}

/// The change of an undo or redo of a value that could not be made: everything stays as it was.
pub(crate) fn still(mut change: OpChange) -> OpChange {
    match &mut change {
        OpChange::Title { before, after } | OpChange::Label { before, after, .. } => after.clone_from(before),
        OpChange::Archived { before, after } | OpChange::BranchArchived { before, after, .. } => {
            *after = *before
        }
        OpChange::Tag { before, after, .. } => *after = *before,
        OpChange::Head { .. } | OpChange::Compaction { .. } | OpChange::Files { .. } => {}
    }
    change
}

/// The last row of operation `root`, when it can be undone (or redone).
pub fn of(ops: &[Op], root: OpId, redo: bool) -> Option<Next> {
    let next = next(ops, redo, |op| op.root() == root)?;
    Some(Next { with: None, ..next })
}

/// Whether a row can be inverted from branch `head`. A move of the conversation concerns only the window that made it.
pub fn fits(op: &Op, head: &str) -> bool {
    match &op.change {
        OpChange::Head { name, .. } | OpChange::Compaction { name, .. } => name == head,
        // So does a turn.
        OpChange::Files { turn: Some(turn), .. } => turn.head == head,
        // The open branch cannot be archived.
        OpChange::BranchArchived { name, before: true, .. } => name != head,
        _ => true,
    }
}

/// The opposite of a change that is only a value.
pub fn inverse(change: &OpChange) -> Option<OpChange> {
    Some(match change.clone() {
        OpChange::Title { before, after } => OpChange::Title { before: after, after: before },
        OpChange::Archived { before, after } => OpChange::Archived { before: after, after: before },
        OpChange::Label { name, before, after } => OpChange::Label { name, before: after, after: before },
        OpChange::BranchArchived { name, before, after } => {
            OpChange::BranchArchived { name, before: after, after: before }
        }
        OpChange::Tag { name, before, after } => OpChange::Tag { name, before: after, after: before },
        OpChange::Head { .. } | OpChange::Compaction { .. } | OpChange::Files { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{SessionId, Time};
    use uuid::Uuid;

    use super::*;

    fn op(n: u128, of: Option<u128>) -> Op {
        let id = |n: u128| OpId(Uuid::from_u128(n));
        Op {
            id: id(n),
            session: SessionId(Uuid::from_u128(99)),
            time: Time(0),
            parent: None,
            cause: None,
            title: format!("op {n}"),
            of: of.map(id),
            with: None,
            change: OpChange::Title { before: "a".into(), after: "b".into() },
        }
    }

    /// The titles of what is undone and redone next, after these rows (each with what it undoes).
    fn both(rows: &[(u128, Option<u128>)]) -> (String, String) {
        let ops: Vec<Op> = rows.iter().rev().map(|(n, of)| op(*n, *of)).collect();
        let title = |redo| next(&ops, redo, |_| true).map_or("-".to_owned(), |n| n.title);
        (title(false), title(true))
    }

    #[test]
    fn undo_walks_back_and_redo_forth_and_neither_makes_a_chain() {
        let is = |rows: &[(u128, Option<u128>)], undo: &str, redo: &str| {
            assert_eq!(both(rows), (undo.to_owned(), redo.to_owned()), "{rows:?}");
        };
        is(&[], "-", "-");
        is(&[(1, None), (2, None)], "op 2", "-");
        is(&[(1, None), (2, None), (3, Some(2))], "op 1", "op 2");
        is(&[(1, None), (2, None), (3, Some(2)), (4, Some(1))], "-", "op 1");
        is(&[(1, None), (2, None), (3, Some(2)), (4, Some(1)), (5, Some(1))], "op 1", "op 2");
        is(&[(1, None), (2, None), (3, Some(2)), (4, Some(2))], "op 2", "-");
        is(&[(1, None), (2, None), (3, Some(2)), (6, None)], "op 6", "op 2");
        // The beginning of it is not in sight: how it stands is not known.
        is(&[(5, Some(1))], "-", "-");
    }

    /// A row that went from a state to another one.
    fn files(n: u128, of: Option<u128>, states: [&str; 2]) -> Op {
        let [before, after] = states.map(str::to_owned);
        let of_files = of.map(|n| OpId(Uuid::from_u128(n)));
        Op {
            change: OpChange::Files { before, after, files: Vec::new(), of: of_files, turn: None },
            ..op(n, of)
        }
    }

    #[test]
    fn w17_a_row_that_changed_nothing_is_behind_us_and_what_it_stands_for_is_not_lost() {
        let row = |ops: &[Op], redo: bool| next(ops, redo, |_| true).map(|n| (n.root, n.row.id));
        let id = |n: u128| OpId(Uuid::from_u128(n));
        let (older, restore) = (op(1, None), files(2, None, ["a", "b"]));
        // The undo found nothing to do: the older one is next.
        let undo = files(3, Some(2), ["c", "c"]);
        let ops = [undo.clone(), restore.clone(), older.clone()];
        assert_eq!(row(&ops, false), Some((id(1), id(1))));
        // Its redo has nothing to do either, and the undo after that inverts the restore itself.
        assert_eq!(row(&ops, true), Some((id(2), id(3))));
        let redo = files(4, Some(2), ["d", "d"]);
        let ops = [redo, undo, restore.clone(), older.clone()];
        assert_eq!(row(&ops, false), Some((id(2), id(2))));
        // The undo did its work, the redo did not: the files are undone already.
        let ops = [files(4, Some(2), ["d", "d"]), files(3, Some(2), ["b", "a"]), restore, older];
        assert_eq!(row(&ops, false), Some((id(2), id(4))));
    }

    #[test]
    fn a_long_log_is_looked_through_at_once() {
        let ops: Vec<Op> = (0..20_000).rev().map(|n| op(n + 1, None)).collect();
        let mut undone: Vec<Op> = (0..9_999).map(|n| op(30_000 + n, Some(20_000 - n))).collect();
        undone.reverse();
        undone.extend(ops);
        assert_eq!(next(&undone, false, |_| true).unwrap().title, "op 10001");
    }

    #[test]
    fn what_was_done_in_one_is_undone_in_one() {
        let (first, mut second) = (op(1, None), op(2, None));
        second.with = Some(first.id);
        let ops = [second.clone(), first.clone()];
        let undo = next(&ops, false, |_| true).unwrap();
        assert_eq!((undo.root, undo.with), (second.id, Some(first.id)));
        let ops = [op(4, Some(1)), op(3, Some(2)), second.clone(), first.clone()];
        let redo = next(&ops, true, |_| true).unwrap();
        assert_eq!((redo.root, redo.with), (first.id, Some(second.id)));
        assert_eq!(of(&ops, second.id, true).unwrap().row.id, op(3, None).id);
        assert!(of(&ops, second.id, false).is_none());
    }

    #[test]
    fn a_window_takes_back_only_its_own_moves() {
        let mut fork = op(1, None);
        fork.change =
            OpChange::Head { name: "b".into(), before: None, after: None, from: Some("main".into()) };
        assert!(fits(&fork, "b") && !fits(&fork, "main") && fits(&op(2, None), "main"));
    }
}
