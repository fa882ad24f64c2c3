//! What a message takes from MCP servers: resources that it names (`@server:uri`), and the prompt that it begins with
//! (`/server:prompt words`). They are read away from the engine's task; a server may have to be started for them.

use std::sync::Arc;

use tiller_protocol::mcp::McpResourceView;
use tiller_protocol::nearest::nearest;
use tiller_protocol::view::{Mention, MentionKind};
use tiller_protocol::{Attachment, Message, Notice, NoticeKind, Part};
use tiller_tool::mcp::McpServers;

use crate::context::tokens;
use crate::core::Core;
use crate::core::services::Redact;
use crate::prompts::finder::is_picture;
use crate::prompts::msg::{NamedText, Texts};
use crate::prompts::named;

/// Resources that the list offers at most.
const OFFERED: usize = 20;

/// The servers, and how secrets in what they send are masked.
#[derive(Clone)]
pub(crate) struct Servers {
    mcp: Arc<dyn McpServers>,
    redact: Redact,
    pub(crate) names: Vec<String>,
}

impl Servers {
    /// `None`: there are none.
    pub(crate) fn of(core: &Core) -> Option<Self> {
        let mcp = core.services.user.mcp.clone()?;
        let names = mcp.names();
        (!names.is_empty()).then(|| Self { mcp, redact: Arc::clone(&core.services.redaction.redact), names })
    }

    /// Adds what the message takes from servers to its content.
    ///
    /// # Errors
    /// When a part of it cannot be read; nothing is sent then.
    pub(crate) async fn add_to(
        &self,
        content: &mut Vec<Part>,
        message: &Message,
        texts: &Texts,
    ) -> Result<(), Notice> {
        if let Some(call) = prompt_of(message) {
            self.add_prompt(content, &call).await?;
        }
        for (what, _) in texts {
            let NamedText::Resource { server, uri } = what else { continue };
            let read = self.mcp.resource(server, uri).await.map_err(|why| {
                let why = format!(
                    "@{server}:{uri} cannot be attached: the MCP server {server}: {}",
                    (self.redact)(&why)
                );
                Notice::new(NoticeKind::User, why).hint("remove or correct the mention, and send again")
            })?;
            self.add(content, read);
        }
        Ok(())
    }

    async fn add_prompt(&self, content: &mut Vec<Part>, call: &PromptCall) -> Result<(), Notice> {
        let PromptCall { server, name, words } = call;
        if !self.names.contains(server) {
            // Text that only looks like it goes to the model.
            let near = nearest(server, self.names.iter().map(String::as_str));
            return near.map_or(Ok(()), |near| {
                Err(Notice::new(NoticeKind::User, format!("there is no MCP server {server}"))
                    .hint(format!("did you mean /{near}:{name}?")))
            });
        }
        let read = self.mcp.prompt(server, name, words).await.map_err(|why| {
            Notice::new(NoticeKind::User, format!("/{server}:{name} was not sent: {}", (self.redact)(&why)))
        })?;
        self.add(content, read);
        Ok(())
    }

    /// Adds the texts to the message's own, and the pictures behind it.
    fn add(&self, content: &mut Vec<Part>, more: Vec<Part>) {
        for part in more {
            match (part, content.first_mut()) {
                (Part::Text { text }, Some(Part::Text { text: all })) => {
                    all.push_str("\n\n");
                    all.push_str(&(self.redact)(&text));
                }
                (Part::Text { text }, _) => content.insert(0, Part::Text { text: (self.redact)(&text) }),
                (picture, _) => content.push(picture),
            }
        }
    }
}

/// A prompt of a server, as a message calls it.
#[derive(Debug, PartialEq, Eq)]
struct PromptCall {
    server: String,
    name: String,
    words: String,
}

/// The prompt that a message begins with.
fn prompt_of(message: &Message) -> Option<PromptCall> {
    let text = message.text.trim_start().strip_prefix('/')?;
    let (command, words) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (server, name) = command.split_once(':')?;
    let plain = |text: &str, more: &[char]| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
    };
    if !plain(server, &['-', '_']) || !plain(name, &['-', '_', '.', '/']) {
        return None;
    }
    let mut words = words.to_owned();
    for attachment in &message.attachments {
        if let Attachment::Paste { label, text } = attachment {
            words = words.replacen(label.as_str(), text, 1);
        }
    }
    Some(PromptCall { server: server.into(), name: name.into(), words })
}

/// What the list after `@` offers of servers for these letters: before the files, and behind them.
pub(crate) fn offers(core: &Core, text: &str) -> (Vec<Mention>, Vec<Mention>) {
    let Some(servers) = Servers::of(core) else { return Default::default() };
    let redact = &servers.redact;
    let mention = |resource: &McpResourceView| {
        let about = if resource.summary.is_empty() { &resource.uri } else { &resource.summary };
        Mention {
            kind: MentionKind::Described(redact(&resource.name)),
            name: format!("{}:{}", resource.server, resource.uri),
            size: resource.size,
            // The pixels of a picture are not known before it is read.
            tokens: resource.size.filter(|_| !is_picture(&resource.uri)).map(tokens::of_bytes),
            preview: redact(about),
        }
    };
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let letters = text.to_lowercase();
    for resource in servers.mcp.resources() {
        let name = format!("{}:{}", resource.server, resource.uri);
        if !letters.is_empty() && name.to_lowercase().starts_with(&letters) {
            first.push(mention(&resource));
        } else if name.to_lowercase().contains(&letters) || resource.name.to_lowercase().contains(&letters) {
            last.push(mention(&resource));
        }
    }
    // An address that no list has may exist: servers make some from templates.
    if named::resource(text, &servers.names).is_some() && !first.iter().any(|mention| mention.name == text) {
        first.push(Mention {
            kind: MentionKind::Described("resource, not in the server's list".into()),
            name: text.into(),
            size: None,
            tokens: None,
            preview: String::new(),
        });
    }
    first.truncate(OFFERED);
    last.truncate(OFFERED);
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_named_at_the_beginning_and_pasted_text_is_an_argument() {
        let call = |text: &str| prompt_of(&Message::text(text)).map(|c| (c.server, c.name, c.words));
        let some = |server: &str, name: &str, words: &str| Some((server.into(), name.into(), words.into()));
        assert_eq!(call("/notes:review a.rs  now"), some("notes", "review", "a.rs  now"));
        assert_eq!(call("/notes:a.b/c"), some("notes", "a.b/c", ""));
        for text in [
            "see /notes:review",
            "/compact it",
            "/usr/bin:x",
            "/:x",
            "/notes:",
            "/notes:\u{202e}x",
            "@notes:x",
        ] {
            assert_eq!(call(text), None, "{text}");
        }
        let mut message = Message::text("/notes:review [paste 1: 2 lines]");
        message
            .attachments
            .push(Attachment::Paste { label: "[paste 1: 2 lines]".into(), text: "a\nb".into() });
        assert_eq!(prompt_of(&message).unwrap().words, "a\nb");
    }
}
