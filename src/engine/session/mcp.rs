//! MCP servers: what the person does to one.

use std::sync::Arc;

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::mcp::{McpAct, McpPromptView, McpServerView};
use tiller_protocol::{CommandId, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::services::Redact;

/// Does it away from the engine's task: a start takes its time.
pub(crate) fn act(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    server: String,
    act: McpAct,
    shown: Option<String>,
) {
    let Some(mcp) = core.services.user.mcp.clone() else {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, "there are no MCP servers"));
    };
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    let redact = Arc::clone(&core.services.redaction.redact);
    core.spawn(async move {
        let reply = match mcp.act(&server, act, shown.as_deref()).await {
            Ok(()) => {
                let (servers, prompts) =
                    (masked(mcp.views(), &redact), masked_prompts(mcp.prompts(), &redact));
                ReplyEvent::McpReply { servers, prompts }
            }
            Err(why) => {
                let notice = Notice::new(NoticeKind::User, format!("{server}: {}", redact(&why)));
                ReplyEvent::ErrorReply { notice }
            }
        };
        bus.reply(client, &scope, reply);
    });
}

/// All servers, as a client shows them.
pub(crate) fn views(core: &Core) -> Vec<McpServerView> {
    let views = core.services.user.mcp.as_ref().map_or_else(Vec::new, |mcp| mcp.views());
    masked(views, &core.services.redaction.redact)
}

/// The prompts that are known, as a client shows them.
pub(crate) fn prompts(core: &Core) -> Vec<McpPromptView> {
    let prompts = core.services.user.mcp.as_ref().map_or_else(Vec::new, |mcp| mcp.prompts());
    masked_prompts(prompts, &core.services.redaction.redact)
}

fn masked_prompts(mut prompts: Vec<McpPromptView>, redact: &Redact) -> Vec<McpPromptView> {
    for prompt in &mut prompts {
        prompt.summary = redact(&prompt.summary);
    }
    prompts
}

/// Masks secrets in what a server prints, and in its command line.
fn masked(mut views: Vec<McpServerView>, redact: &Redact) -> Vec<McpServerView> {
    for view in &mut views {
        let texts = [&mut view.command, &mut view.error, &mut view.tail];
        for text in texts.into_iter().chain(&mut view.notes) {
            *text = redact(text);
        }
    }
    views
}
