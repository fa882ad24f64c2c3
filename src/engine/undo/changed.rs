//! The files that entries of the session changed.

use tiller_protocol::{ChangeKind, Entry};

/// Paths that the edit tools changed, each once, in order.
pub(crate) fn changed_paths<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for e in entries {
        for f in e.body.files() {
            // A moved file is missing at its old path.
            let from = (f.kind == ChangeKind::Renamed).then(|| f.diff.lines().next()?.strip_prefix("--- a/"));
            for path in from.flatten().into_iter().chain([f.path.as_str()]) {
                if !out.iter().any(|p| p == path) {
                    out.push(path.to_owned());
                }
            }
        }
    }
    out
}
