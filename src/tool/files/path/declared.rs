//! What was judged, by call. Between the judging of a call and its run a folder can be swapped for a
//! link; the run compares its resolved path with the declared path.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tiller_protocol::lock;

/// Calls that are remembered; a refused call is never collected, so the oldest go first.
const CALLS: usize = 256;

/// Declared paths of calls that have not run yet.
#[derive(Debug, Default)]
pub(crate) struct DeclaredPaths(Mutex<VecDeque<(String, Vec<PathBuf>)>>);

impl DeclaredPaths {
    /// Replaces what `call` declared.
    pub(crate) fn declare(&self, call: &str, paths: Vec<PathBuf>) {
        let mut calls = lock(&self.0);
        calls.retain(|(c, _)| c != call);
        while calls.len() >= CALLS {
            calls.pop_front();
        }
        calls.push_back((call.to_owned(), paths));
    }

    /// Whether `call` declared `path`; `None` when it declared nothing at all.
    pub(crate) fn holds(&self, call: &str, path: &Path) -> Option<bool> {
        let calls = lock(&self.0);
        calls.iter().find(|(c, _)| c == call).map(|(_, paths)| paths.iter().any(|p| p == path))
    }
}
