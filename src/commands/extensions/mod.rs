//! Commands about what extends Tiller: hooks, plugins, skills, and the MCP server of the demo; and how they ask for a yes.

pub(super) mod consent;
pub(super) mod demo_server;
pub(super) mod hooks;
pub(super) mod plugins;
pub(super) mod skills;
