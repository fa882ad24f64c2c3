//! Commands about what extends Tiller: hooks, plugins, skills, and the MCP server of the demo.

pub(super) mod demo_server;
pub(super) mod hooks;
pub(super) mod plugins;
pub(super) mod skills;
