//! Tables to look at, the error log, the hooks, the MCP servers, the skills, and the state of the sandbox.

use crate::registry::Dialog;

pub(crate) mod context;
pub mod errors;
pub(crate) mod hooks;
pub(crate) mod mcp;
pub(crate) mod operations;
pub(crate) mod sandbox;
pub(crate) mod skill_versions;
pub(crate) mod skills;
pub mod tables;

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] = &[
    errors::DIALOG,
    context::DIALOG,
    tables::DIALOG,
    sandbox::DIALOG,
    hooks::DIALOG,
    mcp::DIALOG,
    skills::DIALOG,
    skill_versions::DIALOG,
];
