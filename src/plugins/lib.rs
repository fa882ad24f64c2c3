//! Plugins: folders with a `plugin.toml` that bring hooks, tools, MCP servers, agents, skills, commands, themes, keymaps
//! and prompt sections.
//!
//! | file | contents |
//! | --- | --- |
//! | `manifest` | `plugin.toml`, and what a folder brings |
//! | `installed` | the plugins in their folder, and whether they are as the user agreed to them |
//! | `copy`, `archive` | bringing a plugin in, from a folder or an archive |
//! | `tool` | tools of plugins: a command that reads a call and writes its result |
//!
//! A plugin is used only in exactly the form that the user agreed to: all of its files are hashed. Nothing of it runs at
//! its installation.
//!
//! It may use `protocol`, `fs`, `config`, `tool`, `permit` and `hooks`. What is not here: the decisions of the user (`store`), who loads
//! what a plugin brings (`app`), and how MCP is spoken (`mcp`).

mod archive;
mod copy;
mod installed;
mod manifest;
mod tool;

pub use archive::unpack;
pub use copy::bring;
pub use installed::{Installed, PluginState, all, decision_name, is_decision, look};
pub use manifest::{Brought, MANIFEST, Manifest, PluginTool, brought, new_plugin, read, valid_name};
pub use tool::{ToolServices, tools};
