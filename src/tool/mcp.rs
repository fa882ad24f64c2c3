//! The port to MCP servers. The room `mcp` is behind it.

use async_trait::async_trait;
use tiller_protocol::mcp::{McpAct, McpServerView};

/// The MCP servers of a process.
#[async_trait]
pub trait McpServers: Send + Sync {
    /// All of them, sorted by name. Starts none.
    fn views(&self) -> Vec<McpServerView>;

    /// Does what the person wants with one of them. Waits until it is done.
    ///
    /// # Errors
    /// Why it could not be done; a sentence without a full stop.
    async fn act(&self, name: &str, act: McpAct) -> Result<(), String>;

    /// Ends all that run.
    async fn end(&self);
}
