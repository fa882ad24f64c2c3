//! Ids are found in an index of any size and distribution.

use std::fs;

use super::*;

/// A pack that has only an index, with these ids in order; object `n` begins at `n`.
fn pack(dir: &Path, ids: &[[u8; 32]]) -> Pack {
    let mut index = INDEX_MAGIC.to_vec();
    for byte in 0..256 {
        let upto = ids.iter().take_while(|id| usize::from(id[0]) <= byte).count() as u32;
        index.extend(upto.to_be_bytes());
    }
    index.extend(ids.iter().flatten());
    index.extend(vec![0; ids.len() * 4]);
    index.extend((0..ids.len() as u32).flat_map(u32::to_be_bytes));
    index.extend([0; 64]);
    fs::write(dir.join("p.idx"), index).unwrap();
    fs::write(dir.join("p.pack"), "").unwrap();
    Pack::open(dir, "p", None, &Handles::default()).unwrap()
}

/// Each id is found at its place; an id that differs in one bit is not found.
fn all_are_found(mut ids: Vec<[u8; 32]>) {
    ids.sort_unstable();
    ids.dedup();
    let dir = tempfile::tempdir().unwrap();
    let pack = pack(dir.path(), &ids);
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(pack.find(&Id(*id)).unwrap(), Some(n as u32));
        let mut other = *id;
        other[31] ^= 1;
        assert_eq!(pack.find(&Id(other)).unwrap().is_some(), ids.binary_search(&other).is_ok());
    }
    for byte in [0, 255] {
        assert_eq!(pack.find(&Id([byte; 32])).unwrap(), None);
    }
}

/// Evenly distributed, as hashes are (SplitMix64).
fn hash(n: u32) -> [u8; 32] {
    let mut state = u64::from(n) << 8;
    let mut out = [0; 32];
    for part in out.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        part.copy_from_slice(&(z ^ (z >> 31)).to_be_bytes());
    }
    out
}

#[test]
fn each_name_is_found_in_small_and_large_indexes() {
    for count in [0, 1, 2, 127, 128, 129, 800, 40_000] {
        all_are_found((0..count).map(hash).collect());
    }
}

/// The store of another program may hold ids that are not hashes.
#[test]
fn each_name_is_found_however_unevenly_they_are_spread() {
    let with = |fixed: usize, byte: u8| -> Vec<[u8; 32]> {
        let one = |n| {
            let mut id = hash(n);
            id[..fixed].fill(byte);
            id
        };
        (0..20_000).map(one).collect()
    };
    for fixed in [1, 4, 8] {
        for byte in [0, 7, 255] {
            all_are_found(with(fixed, byte));
        }
    }
    all_are_found([with(6, 9), vec![[9; 32]], (0..50).map(hash).collect()].concat());
}
