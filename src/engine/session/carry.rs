//! What was done on another branch, carried over to the open one in few words.

use std::sync::Arc;

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, Entry, EntryBody, EntryId, Notice, NoticeKind};

use super::load::blocking;
use crate::bus::ClientId;
use crate::context::compaction::summarise;
use crate::context::{compact, request};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::prompts::doing::Doing;
use crate::session::msg::{Carried, SessionMsg};

/// The prompt of the summariser.
const PROMPT: &str = include_str!("../../../assets/prompts/branch.md");

impl Core {
    pub(crate) fn carry_over(
        &mut self,
        client: ClientId,
        cause: CommandId,
        from: EntryId,
        focus: Option<String>,
    ) {
        let model = self.summariser();
        let demo = self.is_demo(&model);
        let why = if self.session.read_only {
            Some(Notice::new(NoticeKind::User, "this session is open read-only"))
        } else if self.occupied() {
            Some(Notice::new(NoticeKind::User, "a turn is running: stop it first"))
        } else {
            self.may_ask(&model).err()
        };
        let provider = match (why, self.provider(&model)) {
            (Some(why), _) => return self.refuse(client, cause, why),
            (None, Err(e)) if !demo => return self.refuse(client, cause, crate::bus::notices::provider(&e)),
            (None, provider) => provider,
        };
        let focus = focus.map(|f| self.redact(f.trim())).filter(|f| !f.is_empty());
        let (no, store, session, head) =
            (self.next_job(), self.services.store.clone(), self.session.id, self.session.head);
        let tx = self.tx.clone();
        let side = provider.map(|p| self.side_call(p, &model));
        let task = tokio::spawn(async move {
            let read = blocking(move || {
                let tip = store.entry(from)?;
                if tip.session != session {
                    return Err(tiller_store::StoreError::NoEntry(from));
                }
                let own = match head {
                    Some(head) => store.apart(from, head)?.left,
                    None => u64::MAX,
                };
                let most = u32::try_from(own).unwrap_or(u32::MAX);
                Ok(if own == 0 { Vec::new() } else { store.tail_at(from, most)?.entries })
            });
            let result = match read.await.map(said) {
                Err(e) => Err(e.notice()),
                Ok(entries) if entries.is_empty() => {
                    Err(Notice::new(NoticeKind::User, "that branch has no messages that this branch lacks"))
                }
                Ok(entries) if demo => Ok(compact::extract(&entries)),
                Ok(entries) => match side {
                    Err(e) => Err(crate::bus::notices::provider(&e)),
                    Ok(side) => summarise(&side, PROMPT, &entries, focus.as_deref()).await,
                },
            };
            let done = Carried { no, client, cause, from, focus, result };
            let _ = tx.send(Msg::Session(SessionMsg::Carried(Box::new(done)))).await;
        });
        self.busy_with(no, Doing::Other { client, cause }, task);
    }

    pub(crate) fn carried(&mut self, c: Carried) {
        let waited = self.job_done(c.no);
        let summary = match c.result {
            Ok(summary) if waited => summary,
            Ok(_) => return,
            Err(notice) => {
                if waited {
                    self.refuse(c.client, c.cause, notice);
                    self.next_queued(tiller_protocol::event::TurnStatus::Interrupted);
                }
                return;
            }
        };
        let body = EntryBody::BranchSummary { summary, from: c.from, focus: c.focus };
        let node = self.session.grow(&self.services, body);
        let place = self.place_of(Some(c.cause));
        let events = vec![(place, Self::entry_event(&node))];
        let append = self.append().entries(vec![node]);
        // The client receives the reply when the entry is on disk: it may read the session at once.
        let said = "The summary of that branch was added.".to_owned();
        let reply = Box::new(ReplyEvent::DoneReply { said });
        self.save(append, events, Then::Tell { client: c.client, cause: c.cause, reply });
        self.next_queued(tiller_protocol::event::TurnStatus::Done);
    }
}

/// What a model would see of it.
fn said(entries: Vec<Entry>) -> Vec<Arc<Entry>> {
    let said = |e: &Entry| request::is_message(e) || matches!(e.body, EntryBody::Compaction { .. });
    entries.into_iter().filter(said).map(Arc::new).collect()
}
