//! A limit on processes that holds where they start: a supervisor of the sandbox asks before each.

use std::sync::{Arc, Mutex};

use tiller_protocol::lock;

use crate::shell::processes::proc_fs::Family;

/// Decides whether a family may have another process. Clones share it. Without a family everything is permitted.
#[derive(Clone, Debug, Default)]
pub struct ForkLimit(Arc<Mutex<Forks>>);

#[derive(Debug, Default)]
struct Forks {
    family: Option<Family>,
    /// Processes at once.
    most: u64,
    /// Those that may start before the family is counted again.
    left: u64,
    /// The limit was reached: nothing of it may start any more, so that it can be ended.
    passed: bool,
}

impl ForkLimit {
    /// Limits this family to `most` processes at once from here on; 0: no limit.
    pub(crate) fn set(&self, family: Family, most: u64) {
        *lock(&self.0) = Forks { family: Some(family).filter(|_| most > 0), most, left: 0, passed: false };
    }

    /// True if another process may start. Counts the family now and then, which reads `/proc`.
    pub fn permits(&self) -> bool {
        let mut forks = lock(&self.0);
        if forks.passed {
            return false;
        }
        let Some(family) = &forks.family else { return true };
        if forks.left == 0 {
            forks.left = forks.most.saturating_sub(family.living().len() as u64);
        }
        forks.passed = forks.left == 0;
        forks.left = forks.left.saturating_sub(1);
        !forks.passed
    }

    /// True if the limit was reached.
    pub(crate) fn passed(&self) -> bool {
        lock(&self.0).passed
    }
}
