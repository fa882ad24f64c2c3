use super::super::tests::ids;
use super::*;
use crate::Append;
use crate::testing::*;

/// Which entries a part holds, how many come before and after it, and the next one.
fn part(
    store: &crate::Store,
    before: u128,
    at: PathPlace,
    count: u32,
) -> (Vec<u128>, u64, u64, Option<u128>) {
    let part = store.paths().part(entry_id(before), at, count).unwrap();
    let next = part.next.map(|id| id.0.as_u128() & 0xffff_ffff);
    (ids(&part.tail.entries), part.tail.earlier, part.later, next)
}

#[test]
fn parts_of_a_path_join_without_gap_or_overlap() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    grow(&store, session, 1, 40);
    let at = |n: u128| entry_id(n);
    let start = part(&store, 31, PathPlace::Start {}, 10);
    assert_eq!(start, ((1..=10).collect(), 0, 20, Some(11)));
    let from = part(&store, 31, PathPlace::From { entry: at(11) }, 10);
    assert_eq!(from, ((11..=20).collect(), 10, 10, Some(21)));
    let last = part(&store, 31, PathPlace::From { entry: at(21) }, 10);
    assert_eq!(last, ((21..=30).collect(), 20, 0, None), "it ends where the known entries begin");
    assert_eq!(part(&store, 31, PathPlace::From { entry: at(21) }, 99), last);
    let around = part(&store, 31, PathPlace::Around { entry: at(15) }, 4);
    assert_eq!(around, ((13..=17).collect(), 12, 13, Some(18)));
    assert_eq!(part(&store, 31, PathPlace::Around { entry: at(1) }, 4).0, vec![1, 2, 3]);
    assert_eq!(part(&store, 31, PathPlace::Around { entry: at(30) }, 4), ((28..=30).collect(), 27, 0, None));
    for place in [PathPlace::Before { entry: at(13) }, PathPlace::Search { entry: at(13) }] {
        assert_eq!(part(&store, 31, place, 5), ((8..=12).collect(), 7, 18, None));
    }
    // Nothing is there.
    let none = (Vec::new(), 0, 0, None);
    assert_eq!(part(&store, 1, PathPlace::Start {}, 5), none);
    assert_eq!(part(&store, 31, PathPlace::Before { entry: at(1) }, 5), none);
    assert_eq!(part(&store, 31, PathPlace::Around { entry: at(35) }, 5), none, "it is below");
    assert_eq!(
        store.paths().part(at(31), PathPlace::From { entry: at(99) }, 1),
        Err(StoreError::NoEntry(at(99)))
    );
    assert_eq!(store.paths().part(at(99), PathPlace::Start {}, 1), Err(StoreError::NoEntry(at(99))));
}

/// Of several children the one is taken that leads to the known entry.
#[test]
fn a_part_follows_the_path_where_it_forks() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    grow(&store, session, 1, 20);
    store.heads().set(session, "b", Some(entry_id(5)), None).wait().unwrap();
    let side = |n: u128, parent: u128| user(session, entry_id(n), Some(entry_id(parent)), "other way");
    let more = (100..120).map(|n| side(n, if n == 100 { 5 } else { n - 1 })).collect();
    store.entries().append(Append::new(session, "b").entries(more)).wait().unwrap();
    let from = |before, first| part(&store, before, PathPlace::From { entry: entry_id(first) }, 4);
    assert_eq!(from(20, 4), (vec![4, 5, 6, 7], 3, 12, Some(8)));
    assert_eq!(from(115, 4), (vec![4, 5, 100, 101], 3, 13, Some(102)));
    let around = |before, entry| part(&store, before, PathPlace::Around { entry: entry_id(entry) }, 2).0;
    assert_eq!(around(115, 100), vec![5, 100, 101]);
    assert_eq!(around(20, 100), Vec::<u128>::new(), "it is on the other path");
    assert_eq!(part(&store, 115, PathPlace::Start {}, 7).0, vec![1, 2, 3, 4, 5, 100, 101]);
}
