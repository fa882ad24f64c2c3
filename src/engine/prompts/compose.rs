//! From what the person typed to an entry: attachments are read, the prefix is waited for, and the message
//! goes out, waits in the queue, or comes back with a reason.

use std::sync::Arc;

use futures_util::FutureExt;
use tiller_protocol::event::{StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::view::LayerCost;
use tiller_protocol::{
    Attachment, CommandId, Entry, EntryBody, EventBody, Message, Notice, NoticeKind, Origin, Part, QueueId,
    SendMode, StopReason,
};
use tokio_util::task::AbortOnDropHandle;

use crate::bus::{ClientId, Place};
use crate::context::layers::{self, Facts, Layers};
use crate::context::mentions;
use crate::context::shorten::{self};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::core::services::Services;
use crate::money;
use crate::prompts::doing::Doing;
use crate::prompts::msg::{Composed, Goal, Item, PrefixTask, PromptMsg};
use crate::prompts::named;
use crate::turn::Input;

/// Before a session is open.
pub(crate) fn no_prefix() -> PrefixTask {
    async { Arc::new(Layers::bare()) }.boxed().shared()
}

/// Starts to make the prefix.
pub(crate) fn prefix(w: &Services, facts: Facts) -> PrefixTask {
    let settings = w.config().context.clone();
    let (specs, tools) = (Arc::clone(&w.specs), w.tools.clone());
    let made = tokio::task::spawn_blocking(move || {
        // Asked for with the first message, which should not have to wait for them.
        specs.of(&tools);
        layers::layers(&facts, &settings)
    });
    async move {
        // A panic while files are read leaves the agent its own prompt.
        Arc::new(made.await.unwrap_or_else(|_| Layers::bare()))
    }
    .boxed()
    .shared()
}

impl Core {
    pub(crate) fn deliver_steer(&mut self, turn: u64) {
        let waiting: Vec<_> = self
            .prompts
            .queue
            .iter()
            .filter(|q| q.mode == SendMode::Steer)
            .map(|q| (Some(q.id), q.message.clone()))
            .collect();
        self.compose(Goal::Steer { turn }, waiting);
    }

    /// Goes on with a turn that was interrupted, cut or parked.
    pub(crate) fn go_on(&mut self, client: ClientId, cause: CommandId) {
        let why = if self.session.read_only {
            "this session is open read-only"
        } else if self.occupied() {
            "a turn is already running"
        } else if self.session.last_message().is_none() {
            "there is nothing to continue"
        } else {
            return self.compose(Goal::Continue { cause }, Vec::new());
        };
        self.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }

    /// Reads attachments and waits for the prefix, away from the engine's own task.
    pub(crate) fn compose(&mut self, goal: Goal, messages: Vec<(Option<QueueId>, Message)>) {
        // What may be read is what the rules say now.
        self.services.permit.refresh().into_iter().for_each(|n| self.notice(n));
        // A program of another vendor has a prompt of its own.
        let ours = self.outside().is_none();
        let prefix = (ours && !self.session.has_prefix()).then(|| self.turn.prefix.clone());
        let fast = self.fast();
        let (tx, workspace) = (self.tx.clone(), Arc::clone(&self.services.workspace));
        let books = self.day_matters().then(|| Arc::clone(&self.services));
        let (root, writes) = (workspace.root.clone(), self.watching.writes.clone());
        let doing = match (&goal, messages.first()) {
            (Goal::Steer { .. }, _) => None,
            (Goal::Continue { cause }, _) => Some(Doing::Continue { cause: *cause }),
            (Goal::Prompt { .. }, None) => return,
            (Goal::Prompt { client }, Some((_, message))) => {
                Some(Doing::Message { client: *client, message: message.clone() })
            }
        };
        let no = if doing.is_some() { self.next_job() } else { 0 };
        let messages: Vec<_> = messages
            .into_iter()
            .map(|(id, message)| {
                let mut files = message.clone();
                let texts = self.texts(named::take(&mut files, &root));
                (id, message, files, texts)
            })
            .collect();
        let (store, me) = (self.services.store.clone(), self.identity.id.clone());
        let task = async move {
            let mut items = Vec::new();
            for (id, message, files, texts) in messages {
                // What was written by hand may name a file as well.
                let reads = files.text.contains('@')
                    || files.attachments.iter().any(|a| matches!(a, Attachment::File { .. }));
                let content = if reads {
                    let (workspace, store) = (Arc::clone(&workspace), store.clone());
                    let read = move || {
                        let mut parts = mentions::freeze(&files, &workspace)?;
                        named::attach(&mut parts, &texts, &store)?;
                        Ok(parts)
                    };
                    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| {
                        Err(Notice::new(NoticeKind::Internal, "the attachments could not be read"))
                    })
                } else {
                    mentions::freeze(&files, &workspace)
                };
                items.push(Item { id, message, content });
            }
            let prefix = match prefix {
                Some(p) => Some(shorten::prefix(&*p.await, fast).await),
                None => None,
            };
            let today = match books {
                // What cannot be read now is what was known before.
                Some(w) => tokio::task::spawn_blocking(move || money::today::today(&w))
                    .await
                    .ok()
                    .and_then(Result::ok),
                None => None,
            };
            writes.look(&me, &workspace).await;
            // The engine may have ended.
            let _ = tx
                .send(Msg::Prompt(PromptMsg::Composed(Box::new(Composed { goal, items, prefix, today, no }))))
                .await;
        };
        let task = tokio::spawn(task);
        if let Some(doing) = doing {
            self.busy_with(no, doing, task);
        } else if let Some(live) = &mut self.turn.live {
            // An interrupt drops the turn and this with it.
            live.timer = Some(AbortOnDropHandle::new(task));
        }
    }

    pub(crate) fn composed(&mut self, c: Composed) {
        if let Some(today) = c.today {
            self.day_read(today);
        }
        match c.goal {
            Goal::Steer { turn } if self.is_live(turn) => self.steer_composed(turn, c.items),
            Goal::Steer { .. } => {}
            // Stopped meanwhile: the waiting task was notified.
            Goal::Prompt { .. } | Goal::Continue { .. } if !self.job_done(c.no) => {}
            Goal::Prompt { client } => self.prompt_composed(client, c.items, c.prefix.as_deref()),
            Goal::Continue { cause } => self.continue_composed(cause, c.prefix.as_deref()),
        }
    }

    fn prompt_composed(
        &mut self,
        client: Option<(ClientId, CommandId)>,
        items: Vec<Item>,
        prefix: Option<&(String, Vec<LayerCost>)>,
    ) {
        let Some(item) = items.into_iter().next() else { return };
        let content = match item.content {
            Ok(content) => content,
            Err(notice) => {
                self.child_over(TurnStatus::Failed, String::new(), Some(notice.clone()));
                match client {
                    // The client still holds the draft.
                    Some((client, cause)) => self.refuse(client, cause, notice),
                    // It stays in the queue, to be mended there.
                    None => self.notice(notice),
                }
                return;
            }
        };
        if let Some(id) = item.id {
            // Taken back or changed while its files were read.
            let unchanged = self.prompts.queue.iter().any(|q| q.id == id && q.message == item.message);
            if !unchanged {
                return;
            }
            self.prompts.queue.retain(|q| q.id != id);
        }
        let cause = client.map(|(_, cause)| cause);
        let place = self.place_of(cause);
        let (mut entries, mut events) = self.prefix_entries(prefix, &place);
        let mut content = content;
        content.extend(self.news_part());
        let message = item.message;
        let text = message.text.clone();
        let (entry, event) = self.user_entry(message, Origin::Prompt, content);
        events.push((place.clone(), event));
        let direct = cause.and_then(|cause| self.delivery(cause));
        events.extend(direct.or_else(|| item.id.and_then(|id| self.delivered(id))));
        entries.push(entry);
        if item.id.is_some() {
            events.push((
                place.clone(),
                EventBody::State(StateEvent::QueueChanged { queue: self.prompts.queue.clone() }),
            ));
        }
        self.begin(place, text.clone(), entries, events, item.id.is_some(), Some(text), Vec::new());
    }

    fn continue_composed(&mut self, cause: CommandId, prefix: Option<&(String, Vec<LayerCost>)>) {
        let place = self.place_of(Some(cause));
        let (mut entries, mut events) = self.prefix_entries(prefix, &place);
        let last = self.session.last_message().map(|e| e.body.clone());
        if let Some(EntryBody::Assistant { stop, .. }) = last {
            let text = match stop {
                StopReason::Cut(_) | StopReason::MaxTokens => {
                    "Your last reply was cut off. Continue where it stopped."
                }
                StopReason::Interrupted => "Continue where you were interrupted.",
                _ => "Continue.",
            };
            let mut content = vec![Part::Text { text: text.into() }];
            content.extend(self.news_part());
            let (entry, event) = self.user_entry(Message::text(text), Origin::Engine, content);
            events.push((place.clone(), event));
            entries.push(entry);
        }
        self.begin(place, String::new(), entries, events, false, None, Vec::new());
    }

    /// What must stand before a message: the prefix of a fresh session, and the output of the person's own
    /// commands.
    fn prefix_entries(
        &mut self,
        prefix: Option<&(String, Vec<LayerCost>)>,
        place: &Place,
    ) -> (Vec<Entry>, Vec<(Place, EventBody)>) {
        let mut bodies = Vec::new();
        if let Some((system, layers)) = prefix
            && !self.session.has_prefix()
        {
            bodies.push(self.prefix_body(system.clone(), layers.clone()));
        }
        bodies.append(&mut self.prompts.pending);
        let mut entries = Vec::new();
        let mut events = Vec::new();
        for body in bodies {
            let entry = self.grow_pending(body);
            events.push((place.clone(), Self::added(&entry)));
            entries.push(entry);
        }
        (entries, events)
    }

    pub(crate) fn prefix_body(&self, system: String, layers: Vec<LayerCost>) -> EntryBody {
        let tools = self.services.specs.of(&self.services.tools);
        EntryBody::Prefix { system, tools, layers }
    }

    /// The event of an entry by its kind.
    pub(crate) fn added(entry: &Entry) -> EventBody {
        match &entry.body {
            EntryBody::User { message, .. } => EventBody::Turn(TurnEvent::UserMessage {
                entry: entry.id,
                text: message.text.clone(),
                node: Box::new(entry.clone()),
            }),
            _ => Self::entry_event(entry),
        }
    }

    fn user_entry(&mut self, message: Message, origin: Origin, content: Vec<Part>) -> (Entry, EventBody) {
        let entry = self.session.grow(&self.services, EntryBody::User { message, origin, content });
        let event = Self::added(&entry);
        (entry, event)
    }

    fn steer_composed(&mut self, turn: u64, items: Vec<Item>) {
        let place = self.place();
        let mut entries = Vec::new();
        let mut events = Vec::new();
        let mut prompts = Vec::new();
        for body in std::mem::take(&mut self.prompts.pending) {
            let entry = self.grow_pending(body);
            events.push((place.clone(), Self::added(&entry)));
            entries.push(entry);
        }
        for item in items {
            // Taken back or changed while its files were read: then it waits for the next chance.
            let Some(at) =
                self.prompts.queue.iter().position(|q| Some(q.id) == item.id && q.message == item.message)
            else {
                continue;
            };
            match item.content {
                Ok(mut content) => {
                    self.prompts.queue.remove(at);
                    content.extend(self.news_part());
                    prompts.push(item.message.text.clone());
                    let (entry, event) = self.user_entry(item.message, Origin::Steer, content);
                    events.extend(item.id.and_then(|id| self.delivered(id)));
                    events.push((place.clone(), event));
                    entries.push(entry);
                }
                Err(notice) => {
                    // Not lost: it waits as a turn of its own until it is mended.
                    self.prompts.queue[at].mode = SendMode::Queue;
                    self.notice(notice);
                }
            }
        }
        let steering = self.steering();
        self.feed(Input::Steer(steering));
        if entries.is_empty() {
            self.state(None, StateEvent::QueueChanged { queue: self.prompts.queue.clone() });
            return self.feed(Input::Steered);
        }
        events
            .push((place, EventBody::State(StateEvent::QueueChanged { queue: self.prompts.queue.clone() })));
        let spoken = Self::spoken(&entries);
        let mut append = self.append().entries(entries);
        append.queue = Some(self.prompts.queue.clone());
        append.pending = Some(self.prompts.pending.clone());
        append.prompt = (!prompts.is_empty()).then(|| prompts.join("\n"));
        self.save(append, events, Then::Steered(turn));
        self.keep_points(spoken);
    }

    /// Words of the engine's to the model, in the middle of a turn.
    pub(crate) fn tell_model(&mut self, text: &str) {
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        let place = self.place();
        let mut content = vec![Part::Text { text: text.to_owned() }];
        content.extend(self.news_part());
        let (entry, event) = self.user_entry(Message::text(text), Origin::Engine, content);
        let append = self.append().entries(vec![entry]);
        self.save(append, vec![(place, event)], Then::Steered(turn));
    }
}
