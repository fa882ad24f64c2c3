//! The port to MCP servers. The room `mcp` is behind it.

use async_trait::async_trait;
use tiller_protocol::Part;
use tiller_protocol::mcp::{McpAct, McpPromptView, McpResourceView, McpServerView};

/// The MCP servers of a process.
#[async_trait]
pub trait McpServers: Send + Sync {
    /// All of them, sorted by name. Starts none.
    fn views(&self) -> Vec<McpServerView>;

    /// Whether a server may write files on this machine by itself: its program runs here, and nothing confines it.
    fn writes_files(&self, name: &str) -> bool;

    /// The names of all that are not turned off. Starts none.
    fn names(&self) -> Vec<String>;

    /// The resources that are known, those that each server listed last. Starts none.
    fn resources(&self) -> Vec<McpResourceView>;

    /// The prompts that are known. Starts none.
    fn prompts(&self) -> Vec<McpPromptView>;

    /// The content of a resource, as the person's message holds it. Starts the server where it does not run.
    ///
    /// # Errors
    /// Why it cannot be read; a sentence without a full stop.
    async fn resource(&self, server: &str, uri: &str) -> Result<Vec<Part>, String>;

    /// The content of a prompt. `words`: its arguments as the person typed them. Starts the server where it does not run.
    ///
    /// # Errors
    /// Why there is none; a sentence without a full stop. A missing argument is named.
    async fn prompt(&self, server: &str, name: &str, words: &str) -> Result<Vec<Part>, String>;

    /// Does what the person wants with one of them. Waits until it is done.
    ///
    /// # Errors
    /// Why it could not be done; a sentence without a full stop.
    async fn act(&self, name: &str, act: McpAct, shown: Option<&str>) -> Result<(), String>;

    /// Ends all that run.
    async fn end(&self);
}
