//! A cache of delta bases, since neighbouring objects share their bases.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tiller_protocol::lock;

use crate::objects::id::Sort;

/// Maximum bytes of the cache, and number of contents.
const ROOM: usize = 4 << 20;
const MOST: usize = 128;

#[derive(Debug)]
struct Base {
    pack: String,
    offset: u32,
    sort: Sort,
    data: Arc<[u8]>,
}

/// The contents that were read last, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Bases(Mutex<(VecDeque<Base>, usize)>);

impl Bases {
    pub(crate) fn get(&self, pack: &str, offset: u32) -> Option<(Sort, Arc<[u8]>)> {
        let kept = lock(&self.0);
        let found = kept.0.iter().rev().find(|b| b.offset == offset && b.pack == pack)?;
        Some((found.sort, Arc::clone(&found.data)))
    }

    pub(crate) fn put(&self, pack: &str, offset: u32, sort: Sort, data: &[u8]) {
        if data.len() > ROOM / 4 || self.get(pack, offset).is_some() {
            return;
        }
        let mut kept = lock(&self.0);
        let (list, used) = &mut *kept;
        *used += data.len();
        list.push_back(Base { pack: pack.to_owned(), offset, sort, data: data.into() });
        while (*used > ROOM || list.len() > MOST)
            && let Some(oldest) = list.pop_front()
        {
            *used -= oldest.data.len();
        }
    }
}
