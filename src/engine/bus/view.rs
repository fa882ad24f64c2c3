//! Whole states for clients: the snapshot, the summary of the session, the use of the context.

use crate::bus::agent_view;
use crate::context::clean;
use crate::context::compaction;
use crate::context::effort;
use crate::session::model;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::{ContextReport, LayerCost};
use tiller_protocol::{CommandId, EntryBody, SessionSummary, Snapshot, ToolSpec};

use crate::bus::ClientId;
use crate::context::compaction::compact;
use crate::context::prefix::layers;
use crate::context::{request, tokens};
use crate::core::Core;
use crate::lock::lock;
use crate::session::TAIL;

pub(crate) fn summary(core: &Core) -> SessionSummary {
    SessionSummary {
        id: core.session.id,
        title: core.session.info.title.clone(),
        project: core.session.info.project.clone(),
        created: core.session.info.created,
        used: core.session.history.tail.back().map_or(core.session.info.created, |e| e.time),
        entries: core.session.history.earlier + core.session.history.tail.len() as u64,
        model: core.session.model.clone(),
        cost: core.session.totals.cost,
        archived: core.session.info.archived,
        exec: core.session.info.exec,
        open_in: None,
        interrupted: core.session.interrupted.clone(),
        preview: String::new(),
        git_branch: core.session.info.git_branch.clone(),
    }
}

/// What has arrived of the reply in flight.
fn partial(core: &Core) -> Vec<tiller_protocol::Block> {
    let mut blocks = core.turn.live.as_ref().map(|l| l.machine.partial()).unwrap_or_default();
    crate::context::clean::blocks(&core.services.redaction.redact, &mut blocks);
    blocks
}

pub(crate) fn snapshot(core: &Core) -> Snapshot {
    let crew = core.crew.rows();
    let skip = core.session.history.tail.len().saturating_sub(TAIL);
    Snapshot {
        seq: core.bus.seq(),
        session: summary(core),
        model: core.session.model.clone(),
        profile: core.session.profile,
        effort: Box::new(effort::effort_view(core)),
        read_only: core.session.read_only,
        head: core.head_id(),
        branch: core.session.branch(),
        entries: core.session.history.tail.iter().skip(skip).map(|e| (**e).clone()).collect(),
        earlier: core.session.history.earlier + skip as u64,
        turns: core.session.history.turns.clone(),
        partial: partial(core),
        todo: lock(&core.context.todo).items.clone(),
        agents: std::iter::once(agent_view::agent_view(core)).chain(crew.agents).collect(),
        workflows: crew.workflows,
        queue: core.prompts.queue.clone(),
        asks: core.asks.list(),
        feed: core.watching.feed.iter().cloned().collect(),
        usage: core.session.totals.usage,
        cost: core.session.totals.cost,
        running: core.turn.live.is_some(),
        git: core.watching.git.clone(),
        sandbox: core.lifecycle.sandbox.clone().map(Box::new),
        goal: core.session.goal.as_ref().map(|p| Box::new(p.view().clone())),
        shell_lines: core.prompts.typed.views(),
    }
}

/// `/context`. Before the first message the layers are those that the first request will have.
pub(crate) fn context_report(core: &mut Core, client: ClientId, cause: CommandId) {
    let live = request::live(&core.session.history.path);
    let (used, exact) = tokens::of_path(&live);
    let frozen = live.first().and_then(|e| match &e.body {
        EntryBody::Prefix { system, tools, layers } => Some((system.clone(), layers.clone(), tools.clone())),
        _ => None,
    });
    let messages: u64 = live.iter().skip(1).map(|e| tokens::of_entry(e)).sum();
    let mut report = ContextReport {
        model: core.session.model.clone(),
        window: model::window(core),
        used,
        layers: Vec::new(),
        system: String::new(),
        tools: 0,
        tool_texts: String::new(),
        messages,
        exact,
    };
    let learns = core.services.user.learnings.is_some() && core.services.user.may_learn;
    let settings = core.services.config();
    let add = move |layers: &mut Vec<LayerCost>| {
        if learns {
            layers::add_learnings(layers, &settings.context);
        }
    };
    if let Some((system, layers, tools)) = frozen {
        (report.system, report.layers) = (system, layers);
        add(&mut report.layers);
        (report.tools, report.tool_texts) = (tokens::of_tools(&tools), tool_texts(&tools));
        return core.bus.reply(client, &core.scope_of(Some(cause)), ReplyEvent::ContextReply { report });
    }
    let specs = core.services.tools.specs.of(&core.services.tools.visible);
    (report.tools, report.tool_texts) = (tokens::of_tools(&specs), tool_texts(&specs));
    let redact = std::sync::Arc::clone(&core.services.redaction.redact);
    let (prefix, bus, scope) =
        (core.turn.prefix.clone(), std::sync::Arc::clone(&core.bus), core.scope_of(Some(cause)));
    core.spawn(async move {
        (report.system, report.layers) = prefix.await.render();
        clean::prefix(&redact, &mut report.system, &mut report.layers);
        add(&mut report.layers);
        report.used = report.tools + report.layers.iter().map(|l| l.tokens).sum::<u64>();
        bus.reply(client, &scope, ReplyEvent::ContextReply { report });
    });
}

/// The tools as a person reads them: name, description and schema of each.
fn tool_texts(specs: &[ToolSpec]) -> String {
    let text = |spec: &ToolSpec| {
        let schema = serde_json::to_string_pretty(&spec.schema).unwrap_or_default();
        format!("{}\n{}\n{schema}", spec.name, spec.description.trim_end())
    };
    specs.iter().map(text).collect::<Vec<_>>().join("\n\n")
}

pub(crate) fn compact_preview(core: &mut Core, client: ClientId, cause: CommandId) {
    let keep = compaction::keep(core);
    match compact::plan(&core.session.history.path, keep) {
        Some(plan) => {
            let reply = ReplyEvent::CompactPreviewReply { preview: compact::preview(&plan) };
            core.bus.reply(client, &core.scope_of(Some(cause)), reply);
        }
        None => {
            let notice = tiller_protocol::Notice::new(
                tiller_protocol::NoticeKind::User,
                compact::nothing_to_do(&core.session.history.path),
            );
            core.refuse(client, cause, notice);
        }
    }
}
