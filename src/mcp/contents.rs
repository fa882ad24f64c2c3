//! Resources and prompts of servers.

use rmcp::model::{ContentBlock, PromptMessage, Role};
use serde_json::{Map, Value};
use tiller_tool::text::{clean, visible};

use crate::hub::Hub;
use crate::result::contents;
use crate::server::{Failure, Server};

/// Maximum bytes of a resource or a prompt that goes into a message.
const TEXT: usize = 200 << 10;

/// A resource, as a person chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    pub server: String,
    pub uri: String,
    pub name: String,
}

/// A prompt, as a person chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptInfo {
    pub server: String,
    pub name: String,
    /// The first line of its description.
    pub summary: String,
    /// Its arguments, in order; whether each is required.
    pub arguments: Vec<(String, bool)>,
}

impl Hub {
    fn server(&self, name: &str) -> Result<std::sync::Arc<Server>, Failure> {
        self.find(name)
            .ok_or_else(|| Failure::new(format!("there is no MCP server {}", name.escape_default())))
    }

    /// The resources of a server. Starts it where it does not run; asks nothing.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn resources(&self, server: &str) -> Result<Vec<ResourceInfo>, Failure> {
        let connection = self.server(server)?.ready(None).await?;
        let all = connection.resources().await.map_err(|e| Failure::new(e.to_string()))?;
        let info = |resource: rmcp::model::Resource| ResourceInfo {
            server: server.to_owned(),
            uri: resource.uri,
            name: visible(&resource.name).into_owned(),
        };
        // One whose address cannot be typed cannot be named.
        let plain = |uri: &str| {
            !uri.is_empty()
                && uri.len() < 1000
                && !uri.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        Ok(all.into_iter().filter(|resource| plain(&resource.uri)).map(info).collect())
    }

    /// The text of a resource, cleaned, cut at [`TEXT`]. Starts the server where it does not run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(&self, server: &str, uri: &str) -> Result<String, Failure> {
        let server = self.server(server)?;
        let connection = server.ready(None).await?;
        let reading = tokio::time::timeout(server.settings.call, connection.resource(uri));
        let read = reading.await.map_err(|_| Failure::new("it does not answer"))?;
        let read = read.map_err(|e| Failure::new(e.to_string()))?;
        let texts: Vec<String> = read.contents.iter().map(contents).collect();
        Ok(cut(texts.join("\n")))
    }

    /// The prompts of a server. Starts it where it does not run; asks nothing.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn prompts(&self, server: &str) -> Result<Vec<PromptInfo>, Failure> {
        let connection = self.server(server)?.ready(None).await?;
        let all = connection.prompts().await.map_err(|e| Failure::new(e.to_string()))?;
        let info = |prompt: rmcp::model::Prompt| PromptInfo {
            server: server.to_owned(),
            name: prompt.name,
            summary: crate::known::first_line(prompt.description.as_deref().unwrap_or_default()),
            arguments: prompt
                .arguments
                .unwrap_or_default()
                .into_iter()
                .map(|a| (a.name, a.required == Some(true)))
                .collect(),
        };
        Ok(all.into_iter().filter(|prompt| crate::is_name(&prompt.name)).map(info).collect())
    }

    /// The text of a prompt. Starts the server where it does not run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, Failure> {
        let server = self.server(server)?;
        let connection = server.ready(None).await?;
        let reading = tokio::time::timeout(server.settings.call, connection.prompt(name, arguments));
        let read = reading.await.map_err(|_| Failure::new("it does not answer"))?;
        let read = read.map_err(|e| Failure::new(e.to_string()))?;
        let texts: Vec<String> = read.messages.iter().map(said).collect();
        Ok(cut(texts.join("\n\n")))
    }
}

fn said(message: &PromptMessage) -> String {
    let text = match &message.content {
        ContentBlock::Text(it) => clean(it.text.as_bytes()),
        ContentBlock::Resource(it) => contents(&it.resource),
        _ => "[content that is no text]".into(),
    };
    if message.role == Role::Assistant { format!("(an example of an answer) {text}") } else { text }
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT {
        let left = text.len() - TEXT;
        text.truncate(text.floor_char_boundary(TEXT));
        text.push_str(&format!("\n[{} more were cut]", tiller_tool::output::human(left as u64)));
    }
    text
}
