//! What waits for the user's decision when Tiller starts, in one notice.

use tiller_protocol::{Notice, NoticeKind};
use tiller_store::Store;

use crate::app::Setup;

/// One kind of what can wait.
struct Kind {
    /// The slash command that shows it.
    command: &'static str,
    /// How many there are. What cannot be read counts as none: its dialog shows the error.
    count: fn(&Setup, &Store) -> usize,
}

/// Everything that waits across sessions. Changes of skills do not: each is asked about while its call waits.
const KINDS: &[Kind] = &[
    Kind {
        command: "/personality",
        count: |setup, _| tiller_config::proposals::waiting(&setup.places.config).len(),
    },
    Kind { command: "/memory", count: |setup, _| setup.services.memory.pending().unwrap_or(0) },
    Kind {
        command: "/learnings",
        count: |_, store| store.learnings().pending().map_or(0, |n| usize::try_from(n).unwrap_or(0)),
    },
];

/// `Waiting for you: 2 in /memory, 1 in /learnings`; `None`: nothing waits. Reads the database and some small files.
pub(crate) fn notice(setup: &Setup, store: &Store) -> Option<Notice> {
    let counted = KINDS.iter().map(|kind| ((kind.count)(setup, store), kind.command));
    let parts: Vec<String> =
        counted.filter(|(n, _)| *n > 0).map(|(n, command)| format!("{n} in {command}")).collect();
    (!parts.is_empty())
        .then(|| Notice::new(NoticeKind::Info, format!("waiting for you: {}", parts.join(", "))))
}
