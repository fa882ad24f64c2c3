//! `tiller mcp serve`: Tiller's sessions, agents and todo lists as an MCP server, for other agents. The protocol itself is
//! the official SDK's (`rmcp`).
//!
//! | file | its job |
//! | --- | --- |
//! | `connection` | messages over two streams: lines of bounded length, junk answered with an error |
//! | `handler` | the SDK's side: the list of tools, and calls |
//! | `library` | the store, opened when it is needed, and which of its sessions may be read |
//! | `page` | results of bounded size |
//! | `tools/` | one file for each tool |
//!
//! Every tool only reads. Everything in its results was written by models, tools and other people: it is marked as such,
//! secrets are masked, and control characters are made visible.
//!
//! May use: `protocol`, `permit`, `rpc`, `store`, `text`. Not here: standard input and output, and where the store is
//! (`commands`).

mod connection;
mod handler;
mod library;
mod page;
mod tools;

pub use connection::serve;
pub use library::{Library, LibraryConfig};

#[cfg(test)]
mod tests;
