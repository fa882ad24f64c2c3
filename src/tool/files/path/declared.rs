//! What was judged, by call. Between the judging of a call and its run a folder can be swapped for a
//! link; the run compares its resolved path with the path that was declared when the call was judged. The engine asks for
//! the access of a call after that, too (for rules, hooks, snapshots): the answer must not become what is allowed.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tiller_protocol::lock;

/// Calls that are remembered. The engine forgets each call when it is over; what others leave goes oldest first.
const CALLS: usize = 4096;

/// The paths that one call may touch.
#[derive(Debug)]
struct DeclaredCall {
    call: String,
    /// `None`: nothing was declared yet.
    paths: Option<Vec<PathBuf>>,
    /// It is judged by what it declares first. What is declared after that decides nothing.
    judged: bool,
}

/// Declared paths of calls that are not over.
#[derive(Debug, Default)]
pub(crate) struct DeclaredPaths(Mutex<VecDeque<DeclaredCall>>);

impl DeclaredPaths {
    /// Begins a judgement: the call may touch what it declares next, until the next judgement.
    pub(crate) fn judge(&self, call: &str) {
        self.put(DeclaredCall { call: call.to_owned(), paths: None, judged: true });
    }

    /// Declares what `call` may touch. A call that was judged keeps what it was judged for.
    pub(crate) fn declare(&self, call: &str, paths: Vec<PathBuf>) {
        let known = lock(&self.0).iter().find(|c| c.call == call).map(|c| (c.judged, c.paths.is_some()));
        match known {
            Some((true, true)) => {}
            Some((judged, _)) => {
                self.put(DeclaredCall { call: call.to_owned(), paths: Some(paths), judged });
            }
            None => self.put(DeclaredCall { call: call.to_owned(), paths: Some(paths), judged: false }),
        }
    }

    /// Forgets a call that is over.
    pub(crate) fn forget(&self, call: &str) {
        lock(&self.0).retain(|c| c.call != call);
    }

    /// True if `call` declared `path`; `None` when it declared nothing at all, and was not judged.
    pub(crate) fn holds(&self, call: &str, path: &Path) -> Option<bool> {
        let calls = lock(&self.0);
        let declared = calls.iter().find(|c| c.call == call)?;
        Some(declared.paths.iter().flatten().any(|p| p == path))
    }

    fn put(&self, declared: DeclaredCall) {
        let mut calls = lock(&self.0);
        calls.retain(|c| c.call != declared.call);
        while calls.len() >= CALLS {
            calls.pop_front();
        }
        calls.push_back(declared);
    }
}
