//! Whether the sandbox is why a command failed.
//!
//! A supervisor sees what the sandbox refuses, reads of hidden files and signals excepted. For those, and where there is
//! no supervisor, the output of the command has to tell.

use crate::ToolCx;
use crate::shell::confined::blocked::{BlockedAction, Refusals};

/// What programs print when the kernel refuses something, and what was needed then.
const REFUSED: &[(&str, &str)] = &[
    ("permission denied", FILE),
    ("operation not permitted", "access to a file or a process"),
    ("read-only file system", "writing a file"),
    ("device or resource busy", "writing a file"),
    ("network is unreachable", NETWORK),
    ("could not resolve host", NETWORK),
    ("temporary failure in name resolution", NETWORK),
    ("eai_again", NETWORK),
];
/// What programs print where a file is not there.
const MISSING: &[&str] = &["no such file", "enoent"];
const FILE: &str = "access to a file";
const NETWORK: &str = "the network";

/// Further words of programs that were refused something: alone they say too little.
const HINTS: &[&str] = &[
    "denied",
    "eacces",
    "eperm",
    "erofs",
    "readonly",
    "read-only",
    "not permitted",
    "network",
    "connect",
    "socket",
    "resolve",
    "getaddrinfo",
    "enotfound",
    "unreachable",
    "os error 1",
];

/// What the output of a failed command shows to have been refused.
fn shown(output: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(words, _)| output.contains(words)).map(|(_, what)| *what)
}

/// Whether one of these can be why a command with this output failed. Programs that fail for other reasons often go on
/// after a refusal, for instance of a cache.
fn explains(actions: &[BlockedAction], output: &str) -> bool {
    let named = |action: &BlockedAction| {
        let target = action.target.to_lowercase();
        let name = target.rsplit('/').next().unwrap_or_default();
        output.contains(&target) || name.len() > 2 && output.contains(name)
    };
    output.trim().is_empty()
        || shown(output).is_some()
        || HINTS.iter().any(|hint| output.contains(hint))
        || actions.iter().any(named)
}

/// What the sandbox refused to a command of this call that failed. Where that is why it failed, as far as can be seen,
/// the call counts as blocked. `connections`: those that the proxy refused.
pub(crate) fn find(
    cx: &ToolCx,
    output: &str,
    refusals: &Refusals,
    connections: &[String],
) -> Vec<BlockedAction> {
    let Some(confiner) = cx.confiner() else { return Vec::new() };
    let text = output.to_lowercase();
    let mut actions = refusals.serious();
    if actions.is_empty() && shown(&text).is_some() {
        // What programs usually do without may be what this one needs.
        actions.clone_from(&refusals.blocked);
    }
    cx.run.refused.extend(actions.iter().cloned());
    if !actions.is_empty() && explains(&actions, &text) || !connections.is_empty() {
        cx.block();
        return actions;
    }
    let hidden = || {
        let folder = cx.state.shells.folder(cx);
        let path = confiner.hidden_in(output, &cx.workspace.root, &folder);
        path.map(|path| format!("reading {path}"))
    };
    let likely = match shown(&text) {
        Some(FILE) if refusals.known => hidden(),
        // In namespaces of its own a command does not find what it does not see.
        None if MISSING.iter().any(|words| text.contains(words)) => hidden(),
        Some(NETWORK) if refusals.known => None,
        what => what.map(str::to_owned),
    };
    if let Some(what) = likely.filter(|_| actions.is_empty()) {
        cx.run.seems_refused(what);
        cx.block();
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::confined::blocked::BlockedKind;

    fn action(kind: BlockedKind, target: &str) -> BlockedAction {
        BlockedAction { kind, target: target.into(), program: "x".into(), minor: false }
    }

    #[test]
    fn a_refusal_that_the_output_does_not_bear_out_explains_no_failure() {
        let cache = [action(BlockedKind::Write, "/home/p/.cargo/.package-cache")];
        assert!(!explains(&cache, "error[e0308]: mismatched types\n"));
        assert!(explains(&cache, "error: could not open /home/p/.cargo/.package-cache\n"));
        assert!(explains(&cache, "error: cannot lock .package-cache\n"), "by its name alone");
        assert!(explains(&cache, "failed to open: permission denied (os error 13)\n"));
        assert!(explains(&cache, "\n"), "nothing else explains it");
        let network = [action(BlockedKind::Socket, "the network")];
        assert!(explains(&network, "curl: (7) couldn't connect to server"));
        assert!(!explains(&network, "2 tests failed: expected 1, got 2"));
    }
}
