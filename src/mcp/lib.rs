//! MCP: servers that bring tools, resources and prompts. The protocol itself is the official SDK's (`rmcp`).
//!
//! | file | its job |
//! | --- | --- |
//! | `settings/` | servers of config.toml and of a project's `.mcp.json`; variables and logins in them |
//! | `connect/` | a connection over a program's pipes, streamable HTTP, or the older SSE |
//! | `bounds` | what a server sends, within limits: lines, junk, standard error |
//! | `handler/` | what a server may ask of Tiller: forms for the user, roots, progress |
//! | `server/` | one server: started when it is needed, restarted with a delay, ended as a whole |
//! | `session` | requests over a connection: lists, calls, their time limit and cancellation |
//! | `known` | what is kept of a server between sessions: approval, tools, revision of the protocol |
//! | `hub` | all servers of a process, and what the screen and commands are told of them |
//! | `oauth/` | tokens of servers at an address, and the logins, with a person and without |
//! | `offers` | the lists of resources and prompts, kept between sessions |
//! | `shared` | tools that change a server's state for all agents: the main agent's alone |
//! | `contents` | resources and prompts, read for a message |
//! | `skills` | skills of servers: their list, and whether a file is the one that it says |
//! | `read/` | what servers send, part by part: names, results, errors in words |
//! | `tools/` | the tools `tool_search` and `mcp_call`, and tools by their own names |
//!
//! Everything that a server sends is hostile until it is cleaned: odd names get safe ones ([`is_name`]), texts are
//! shown as plain cells, and no hint of a server loosens a permission.
//!
//! It may use `protocol`, `http`, `config` and `tool`. What is not here: permission rules (`permit`), the sandbox (`sandbox`; a
//! confiner is handed in), and where settings come from (`app`).

mod bounds;
mod connect;
mod contents;
mod handler;
mod hub;
mod known;
mod oauth;
mod offers;
mod read;
mod server;
mod session;
mod settings;
mod shared;
mod skills;
mod tools;

pub use hub::{CallResult, Confine, Confined, Hub, HubConfig, Learned, NoResult, ServerRights};
pub use known::{KnownTool, tokens};
pub use read::names::is_name;
pub use server::{Failure, Seen, Server};
pub use session::CallError;
pub use settings::{
    Origin, ServerSettings, StartCheck, Started, Transport, is_server_name, project_servers, variables,
};
pub use tools::{McpCall, NamedTool, ToolSearch, named_tools};

#[cfg(test)]
mod skills_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
