//! Layered settings: built-in < user file < project file (can only narrow) < environment < flags.
//!
//! Reading never panics and never half-applies: a bad file gives [`Problem`]s with file, line and the nearest
//! right name, and the last good configuration stays in use.
//!
//! | file | holds |
//! | --- | --- |
//! | `schema` | the typed form, by subject; the JSON schema is derived from it |
//! | `places` | the four folders |
//! | `text`, `check` | one file: values with their places, checked against the schema |
//! | `narrow` | what a project's file may do |
//! | `load` | the layers, origins, live reading |
//! | [`agents`] | agent definitions: Markdown files with front matter |
//! | [`workflows`] | files of workflows: TOML or YAML |
//! | [`soul`] | SOUL.md, what it was before, ready-made characters |
//! | [`proposals`] | what agents propose for SOUL.md and their own definitions |
//! | `edit`, `keyfile`, `write` | changing a setting, keeping keys, whole-file writes |
//!
//! It may use `protocol` and `fs`. What is not here: keymaps and themes (`tui`), permission rules (`permit`), the tools
//! and API formats that files may name (`tool`, `provider`; their names are handed in), and reactions to a change
//! (`app/settings`).

pub mod agents;
mod check;
mod edit;
mod keyfile;
mod load;
mod narrow;
pub mod places;
mod problem;
pub mod proposals;
pub mod schema;
pub mod soul;
mod text;
pub mod workflows;
mod write;

pub use check::schema as json_schema;
pub use edit::{set_entry, set_member, set_tables, set_value};
pub use keyfile::{KeyFile, Secret};
pub use load::{
    FILE, Fingerprint, Flags, Layer, Live, LoadedConfig, PROJECT, SettingOrigin, Sources, load, problems_of,
};
pub use places::{Places, PluginPlace};
pub use problem::{ConfigError, Problem};
pub use schema::{
    Config, Embeddings, McpCompany, McpLogin, McpLoginKind, McpServer, McpTransport, PackageCache, Sandbox,
    SearchEngine, Web,
};
pub use text::may_restrict;
pub use write::{change_private, write_private};

#[cfg(test)]
mod testing;
