//! Deltas, including malformed ones that git would refuse.

use proptest::prelude::*;

use super::{apply, encode, target_len};

fn round(base: &[u8], target: &[u8]) -> usize {
    let delta = encode(base, target, usize::MAX).unwrap();
    assert_eq!(apply(base, &delta).as_deref(), Some(target));
    assert_eq!(target_len(&delta), Some(target.len()));
    delta.len()
}

#[test]
fn a_change_in_the_middle_of_much_costs_little() {
    let base: Vec<u8> = (0..200_000_u32).flat_map(|n| super::spread(u64::from(n)).to_le_bytes()).collect();
    let mut target = base.clone();
    target[70_000..70_032].fill(7);
    target.splice(900_000..900_000, *b"a line of text that is new");
    // Copies of 64 KiB each take about five bytes.
    assert!(round(&base, &target) < 300);
    assert!(round(&base, &base) < 200);
    assert_eq!(round(&[], &[]), 2);
    round(&base, &[]);
    round(&[], &base[..5000]);
}

#[test]
fn what_is_not_worth_it_is_not_made() {
    let base = vec![1; 5000];
    let target: Vec<u8> = (0..5000_u32).flat_map(|n| super::spread(u64::from(n)).to_le_bytes()).collect();
    assert_eq!(encode(&base, &target, target.len() / 2), None);
}

proptest! {
    #[test]
    fn every_pair_comes_back(
        base in prop::collection::vec(0_u8..4, 0..400),
        cuts in prop::collection::vec((0_usize..400, 0_usize..400, prop::collection::vec(0_u8..4, 0..40)), 0..6),
    ) {
        let mut target = Vec::new();
        for (from, upto, new) in cuts {
            target.extend_from_slice(&new);
            target.extend_from_slice(base.get(from..upto).unwrap_or_default());
        }
        round(&base, &target);
    }

    #[test]
    fn no_bytes_make_it_fail_or_take_much_room(
        base in prop::collection::vec(any::<u8>(), 0..100),
        delta in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        if let Some(made) = apply(&base, &delta) {
            prop_assert_eq!(target_len(&delta), Some(made.len()));
        }
    }
}
