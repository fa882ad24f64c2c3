//! What is fuzzed: one file and one line each.

mod clean;
mod edit;
mod harmless;
mod markdown;
mod pane;
mod patch;
mod permit;
mod programs;
mod redact;
mod reply;
mod rpc;
mod settings;
mod shell;
mod words;

use crate::Target;

/// Every target.
pub const TARGETS: &[Target] = &[
    clean::TARGET,
    edit::TARGET,
    harmless::TARGET,
    markdown::TARGET,
    pane::TARGET,
    patch::TARGET,
    permit::TARGET,
    programs::TARGET,
    redact::TARGET,
    reply::TARGET,
    rpc::TARGET,
    settings::TARGET,
    shell::TARGET,
];

/// No seeds besides the kept inputs and these.
fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|t| t.as_bytes().to_vec()).collect()
}
