//! The order of rows and what is summed up.

use super::super::forest::made;
use super::*;

#[test]
fn what_went_on_stands_below_the_branches_that_were_left() {
    // 0 u - 1 a - 2 u - 3 a; from 1 also 4 u - 5 a (the current one) and 6 u.
    let shape = Shape::new(made("uauauau", &[None, Some(0), Some(1), Some(2), Some(1), Some(4), Some(1)], 5));
    assert_eq!(shape.order, [0, 1, 2, 3, 6, 4, 5]);
    assert_eq!(shape.depth, [0, 0, 1, 1, 0, 0, 1]);
    assert_eq!(shape.first, [false, false, true, false, false, false, true]);
    assert_eq!(shape.path, [true, true, false, false, true, true, false]);
    assert_eq!(shape.turn, [0, 0, 2, 2, 4, 4, 6]);
    assert_eq!(
        shape.sums[0],
        TurnTotals { tokens: 10, cost: Some(Cost(2)), model: Some(0) },
        "a turn has the sum of its replies"
    );
}

#[test]
fn without_a_current_branch_the_newest_goes_straight_on() {
    let mut tree = made("uaua", &[None, Some(0), Some(0), Some(1)], 3);
    tree.heads.clear();
    let shape = Shape::new(tree);
    assert_eq!(shape.order, [0, 2, 1, 3], "below 1 is the newest");
    assert_eq!(shape.path, [false; 4]);
}

#[test]
fn what_is_only_on_branches_that_were_put_away_is_away() {
    let mut tree = made("uauaua", &[None, Some(0), Some(1), Some(2), Some(1), Some(4)], 3);
    tree.heads.push(tiller_protocol::tree::TreeHead {
        name: "b".into(),
        label: String::new(),
        node: Some(5),
        archived: true,
        current: false,
        open_in: None,
    });
    assert_eq!(Shape::new(tree.clone()).away, [false, false, false, false, true, true]);
    tree.heads[1].archived = false;
    assert_eq!(Shape::new(tree).away, [false; 6]);
}

#[test]
fn marks_name_entries_by_number() {
    let mut shape = Shape::new(made("utut", &[None, Some(0), Some(0), Some(2)], 1));
    shape.mark(&TreeMarks { files: vec![(10, 3), (13, 2), (99, 1)], failed: vec![11], within: Vec::new() });
    assert_eq!(shape.files, [3, 0, 0, 2]);
    assert_eq!(shape.failed, [false, true, false, false]);
    assert_eq!(shape.changed, [true; 4]);
    let mut shape = Shape::new(made("utut", &[None, Some(0), Some(0), Some(2)], 1));
    shape.mark(&TreeMarks { files: vec![(13, 2)], failed: Vec::new(), within: Vec::new() });
    assert_eq!(shape.changed, [false, false, true, true], "only the branch that was left changed something");
    assert_eq!(shape.among(&[1, 11, 12, 50]), [false, true, true, false]);
}

#[test]
fn a_broken_tree_is_drawn_as_far_as_it_goes() {
    let mut tree = made("uuu", &[None, Some(7), Some(2)], 1);
    tree.heads[0].node = Some(40);
    let shape = Shape::new(tree);
    assert_eq!(shape.order.len(), 3);
    assert!(!shape.path.contains(&true));
    assert!(Shape::new(made("", &[], 0)).order.is_empty());
}

/// A message that steers belongs to the turn that was running, with all that follows it.
#[test]
fn a_message_within_a_turn_begins_none() {
    let mut shape = Shape::new(made("uauaua", &[None, Some(0), Some(1), Some(2), Some(3), Some(4)], 5));
    assert_eq!(shape.turn, [0, 0, 2, 2, 4, 4]);
    let marks = |within| TreeMarks { files: Vec::new(), failed: Vec::new(), within };
    assert!(shape.mark(&marks(vec![12])));
    assert_eq!(shape.turn, [0, 0, 0, 0, 4, 4]);
    assert_eq!((shape.sums[0].tokens, shape.sums[0].cost), (20, Some(Cost(4))));
    assert_eq!((shape.sums[2], shape.sums[4].tokens), (TurnTotals::default(), 10));
    assert!(!shape.mark(&marks(vec![12])), "nothing new");
    // Before the first turn there is none to belong to.
    assert!(shape.mark(&marks(vec![10, 14])));
    assert_eq!(shape.turn, [0, 0, 2, 2, 2, 2]);
}
