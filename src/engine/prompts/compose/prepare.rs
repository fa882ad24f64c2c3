//! Prepares messages away from the engine's own task: reads what they name, and adds what hooks and learnings have to say.

use std::sync::Arc;

use tiller_memory::Learnings;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    Attachment, EventBody, HookEvent, Message, Notice, NoticeKind, Part, QueueId, SessionId, Taint,
};
use tiller_store::Store;
use tiller_tool::Workspace;
use tokio::task::JoinHandle;

use crate::bus::{Bus, EventScope};
use crate::context::compaction::shorten;
use crate::context::mentions;
use crate::core::Core;
use crate::core::hooks::{self, HookJob, OpenedHooks};
use crate::core::msg::Msg;
use crate::learning::pairing::read_before;
use crate::learning::{for_message, set_mode};
use crate::money;
use crate::prompts::msg::{
    Destination, MessageJob, NamedText, PreparedItem, PreparedMessage, PromptMsg, Texts,
};
use crate::prompts::named;
use crate::prompts::servers::Servers;
use crate::prompts::skills::{self, Taken};
use crate::turn::terms::TurnTerms;

/// A message, and what it names.
struct NamedMessage {
    id: Option<QueueId>,
    message: Message,
    /// The message with the text of its own command, and without the names that are not those of files.
    files: Message,
    /// It is text of others, which loads no skill, calls no command, and attaches nothing.
    of_others: bool,
    texts: Texts,
    terms: TurnTerms,
    taken: Taken,
}

/// What is sent of a message.
struct Content {
    parts: Vec<Part>,
    /// The least trusted text of others in it.
    taint: Option<Taint>,
}

/// What a message is prepared with.
struct Preparation {
    workspace: Arc<Workspace>,
    store: Store,
    servers: Option<Servers>,
    /// The hooks of the message.
    hook: Option<HookJob>,
    learnings: Option<Arc<Learnings>>,
    bus: Arc<Bus>,
    scope: EventScope,
    session: SessionId,
}

/// Prepares the messages of a job, waits for the prefix, and hands them back.
pub(super) fn start(core: &mut Core, job: MessageJob) -> JoinHandle<()> {
    let MessageJob { goal, messages, no } = job;
    // Which files may be read depends on the present rules.
    core.services.permit.refresh().into_iter().for_each(|n| core.notice(n));
    // A program of another vendor has a prompt of its own.
    let ours = core.identity.external().is_none();
    let prefix = (ours && !core.session.has_prefix()).then(|| core.turn.prefix.clone());
    let fast = shorten::fast(core);
    let (bus, scope) = (Arc::clone(&core.bus), core.scope());
    let books = money::day_matters(core).then(|| Arc::clone(&core.services));
    let (tx, writes, me) = (core.tx.clone(), core.watching.writes.clone(), core.identity.id.clone());
    let servers = Servers::of(core);
    let messages = named_messages(core, &goal, servers.as_ref(), messages);
    let preparation = Preparation::new(core, servers);
    let prompt = matches!(goal, Destination::Prompt { .. });
    let mut opened = if prompt { core.prompts.opened.take() } else { None };
    tokio::spawn(async move {
        let mut items = Vec::new();
        for message in messages {
            items.push(preparation.item(message, opened.take()).await);
        }
        let prefix = match prefix {
            Some(p) => {
                let layers = p.await;
                for notice in layers.withheld() {
                    bus.publish(&scope, EventBody::State(StateEvent::Notice { notice }));
                }
                Some(shorten::prefix(&layers, fast).await)
            }
            None => None,
        };
        let today = match books {
            // When the day's spending cannot be read, the known one stays.
            Some(services) => tokio::task::spawn_blocking(move || money::today::today(&services))
                .await
                .ok()
                .and_then(Result::ok),
            None => None,
        };
        writes.ready().await;
        writes.look(&me, &preparation.workspace).await;
        let prepared = PreparedMessage { goal, items, prefix, today, no };
        // The engine may have ended.
        let _ = tx.send(Msg::Prompt(PromptMsg::PreparedMessage(Box::new(prepared)))).await;
    })
}

/// Takes out of the messages what they name. A notice lists the names that cannot be used.
fn named_messages(
    core: &Core,
    goal: &Destination,
    servers: Option<&Servers>,
    messages: Vec<(Option<QueueId>, Message)>,
) -> Vec<NamedMessage> {
    // Programs of other vendors have skills of their own.
    let ours = core.identity.external().is_none();
    // The task that another agent gives a child: the user's messages to a child have a client.
    let gives_task = matches!(goal, Destination::Prompt { client: None })
        && core.identity.child().is_some_and(|child| !child.assignment.task_of_user);
    let root = core.services.workspace.root.clone();
    let names = servers.map_or_else(Vec::new, |servers| servers.names.clone());
    let mut all = Vec::new();
    for (id, message) in messages {
        let queued_of_others = core.prompts.queue.iter().any(|q| Some(q.id) == id && q.taint.is_some());
        let of_others = queued_of_others || (gives_task && id.is_none());
        let (mut files, mut nothing) = (message.clone(), Message::default());
        let taken = skills::take(core, if of_others { &mut nothing } else { &mut files });
        for hint in taken.hints().into_iter().filter(|_| ours) {
            core.notice(hint);
        }
        let named = if of_others { Vec::new() } else { named::take(&mut files, &root, &names) };
        let (texts, terms) = (named::texts(core, named), taken.terms(core));
        all.push(NamedMessage { id, message, files, of_others, texts, terms, taken });
    }
    all
}

impl Preparation {
    fn new(core: &Core, servers: Option<Servers>) -> Self {
        // The task of an agent that begins is no message of the user's.
        let begins = core.identity.is_child() && core.session.last_message().is_none();
        let event = if begins { HookEvent::AgentStart } else { HookEvent::UserPrompt };
        let may_learn = core.identity.external().is_none() && core.services.user.may_learn;
        let learnings = core.services.user.learnings.clone().filter(|_| may_learn);
        if let Some(learnings) = &learnings {
            set_mode(learnings, &core.services.config());
            read_before(core);
        }
        Self {
            workspace: Arc::clone(&core.services.workspace),
            store: core.services.store.clone(),
            servers,
            hook: hooks::job(core, event),
            learnings,
            bus: Arc::clone(&core.bus),
            scope: core.scope(),
            session: core.session.id,
        }
    }

    /// Prepares a message. `opened`: the hooks of a session that was opened before it.
    async fn item(&self, named: NamedMessage, opened: Option<OpenedHooks>) -> PreparedItem {
        let NamedMessage { id, message, files, of_others, texts, terms, mut taken } = named;
        let commands = std::mem::take(&mut taken.runs);
        let read = self.read(&message, files, of_others, &texts, taken).await;
        let mut content = self.with_hooks(&message.text, read, opened).await;
        let learnings = match &mut content {
            Ok(content) => self.add_learnings(&message.text, content).await,
            Err(_) => Vec::new(),
        };
        let (content, taint) = match content {
            Ok(Content { parts, taint }) => (Ok(parts), taint),
            Err(why) => (Err(why), None),
        };
        PreparedItem { id, message, content, taint, learnings, terms, commands }
    }

    /// The typed words, and what they name: files, skills, and what MCP servers have.
    async fn read(
        &self,
        message: &Message,
        files: Message,
        of_others: bool,
        texts: &Texts,
        taken: Taken,
    ) -> Result<Content, Notice> {
        let mut content = self.attached(files, of_others, texts).await?;
        content.taint = content.taint.max(taken.taint());
        taken.add_to(&mut content.parts).await?;
        if let Some(servers) = self.servers.as_ref().filter(|_| !of_others) {
            let before = content.parts.clone();
            servers.add_to(&mut content.parts, message, texts).await?;
            content.taint = content.taint.max((content.parts != before).then_some(Taint::Web));
        }
        Ok(content)
    }

    /// The typed words with the files and texts that are attached.
    async fn attached(&self, files: Message, of_others: bool, texts: &Texts) -> Result<Content, Notice> {
        let freeze = if of_others { mentions::freeze_unnamed } else { mentions::freeze };
        let typed = files.text.clone();
        // Text typed by hand may name a file as well.
        let reads =
            typed.contains('@') || files.attachments.iter().any(|a| matches!(a, Attachment::File { .. }));
        let parts = if reads {
            let (workspace, store, texts) = (Arc::clone(&self.workspace), self.store.clone(), texts.clone());
            let read = move || -> Result<Vec<Part>, Notice> {
                let mut parts = freeze(&files, &workspace)?;
                named::attach(&mut parts, &texts, &store)?;
                Ok(parts)
            };
            tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| {
                Err(Notice::new(NoticeKind::Internal, "the attachments could not be read"))
            })?
        } else {
            freeze(&files, &self.workspace)?
        };
        // What is more than the typed words was read.
        let taint = (!is_text(&parts, &typed)).then(|| {
            let sessions = texts.iter().any(|(what, _)| matches!(what, NamedText::Session(_)));
            if sessions { Taint::Web } else { Taint::ToolOutput }
        });
        Ok(Content { parts, taint })
    }

    /// Lets the hooks of the message check it, and adds what they and those of the opened session say.
    async fn with_hooks(
        &self,
        text: &str,
        read: Result<Content, Notice>,
        opened: Option<OpenedHooks>,
    ) -> Result<Content, Notice> {
        let before = read.as_ref().map_or(0, |content| content.parts.len());
        let checked = match (read, &self.hook) {
            (Ok(Content { parts, taint }), Some(hook)) => {
                hook.message(text, parts).await.map(|parts| Content { parts, taint })
            }
            (read, _) => read,
        };
        let added = match opened {
            Some(opened) => opened.await,
            None => Vec::new(),
        };
        let Content { parts, mut taint } = checked?;
        let parts = hooks::with_texts(parts, added);
        if parts.len() > before {
            // Hooks print what they read.
            taint = taint.max(Some(Taint::ToolOutput));
        }
        Ok(Content { parts, taint })
    }

    /// Adds the learnings that the message concerns. Returns their numbers.
    async fn add_learnings(&self, text: &str, content: &mut Content) -> Vec<i64> {
        let Some(learnings) = self.learnings.clone() else { return Vec::new() };
        let (bus, scope) = (Arc::clone(&self.bus), self.scope.clone());
        let added = for_message(learnings, bus, scope, self.session, text.to_owned()).await;
        content.taint = content.taint.max(added.taint);
        content.parts.extend(added.texts);
        added.numbers
    }
}

/// Whether a content is this text and nothing else.
fn is_text(content: &[Part], typed: &str) -> bool {
    matches!(content, [Part::Text { text }] if text == typed)
}
