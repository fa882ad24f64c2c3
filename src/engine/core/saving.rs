//! Starts writes, and handles their answers.

use crate::core::turn_over;
use crate::prompts::queue;
use crate::session::branch::names;
use crate::turn::begin;
use crate::turn::driver;
use crate::turn::prepare;
use crate::undo::undoing;
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnStatus};
use tiller_protocol::{AgentView, EventBody, SessionId};
use tiller_store::{Append, Health, ModelCall, StoreError};

use crate::bus::EventScope;
use crate::core::Core;
use crate::core::saves::{After, Then, WriteReport};
use crate::crew::StoreReport;
use crate::session::TAIL;
use crate::turn::Input;

impl Core {
    /// An append to the open session, under its lease.
    pub(crate) fn append(&self) -> Append {
        let mut a = Append::new(self.session.id, self.session.head.name.as_str());
        a.lease.clone_from(&self.session.lease);
        a
    }

    /// Starts a write. Its events are published when it is on disk.
    pub(crate) fn save(&mut self, append: Append, events: Vec<(EventScope, EventBody)>, then: Then) {
        if self.session.read_only {
            // Without a lease no entry can be written, but costs are recorded and the end of a turn is reported.
            self.book_only(append.calls);
            if let Then::TurnOver { turn, status } = then {
                events.iter().for_each(|(scope, body)| self.bus.publish(scope, body.clone()));
                turn_over::turn_over(self, turn, status);
            }
            return;
        }
        let mut append = append;
        let (agents, workflows) = (&mut self.saves.ended.agents, &mut self.saves.ended.workflows);
        let told = !agents.is_empty() || !workflows.is_empty();
        if told && !append.entries.is_empty() {
            let root = self.identity.child().map_or(self.session.id, |c| c.root);
            let (agents, workflows) = (std::mem::take(agents), std::mem::take(workflows));
            append.announced = Some(tiller_store::ReportedEnds { root, agents, workflows });
        }
        let calls = append.calls.clone();
        let ticket = self.services.store.entries().append(append);
        self.saves.push_paid(ticket, After { events, then }, calls);
    }

    /// Records calls whose replies could not be stored because another process has the lease; the server has charged
    /// for them.
    pub(crate) fn book_unsaved(&mut self, error: &StoreError, calls: Vec<ModelCall>) {
        if let StoreError::Held { .. } | StoreError::Conflict(_) = error {
            self.book_only(calls);
        }
    }

    /// Records calls without their entries. This needs no lease.
    fn book_only(&mut self, calls: Vec<ModelCall>) {
        for call in calls {
            let ticket = self.services.store.costs().record(self.session.id, call);
            self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        }
    }

    pub(crate) fn saved(&mut self, saved: WriteReport) {
        let WriteReport { result, after, calls } = saved;
        if let Err(error) = result {
            self.book_unsaved(&error, calls);
            self.save_failed(&error, &after.then);
            return;
        }
        // The end of a turn implies that all of it is on disk. The write of the end may succeed after the write of the
        // reply failed.
        if let (Then::TurnOver { .. }, Some(error)) = (&after.then, self.saves.failed.clone()) {
            return self.save_failed(&error, &after.then);
        }
        for (scope, body) in after.events {
            self.bus.publish(&scope, body);
        }
        match after.then {
            Then::Nothing | Then::SessionCreated | Then::ReplyOnError { .. } => {}
            Then::Reply { client, cause, reply } => {
                self.bus.reply(client, &self.scope_of(Some(cause)), *reply);
            }
            Then::ValueUndone { client, cause, label, title, .. } => {
                names::named_now(self, label);
                let said = undoing::said(&title, "");
                self.bus.reply(client, &self.scope_of(Some(cause)), ReplyEvent::DoneReply { said });
            }
            Then::BranchNamed { client, cause, label, said } => {
                names::named_now(self, label);
                if let Some(said) = said {
                    self.bus.reply(client, &self.scope_of(Some(cause)), ReplyEvent::DoneReply { said });
                }
            }
            Then::StartTurn(turn) if self.is_live(turn) => begin::turn_started(self),
            Then::Steered(turn) if self.is_live(turn) => self.feed(Input::Steered),
            Then::StartTurn(_) | Then::Steered(_) => {}
            Then::TurnOver { turn, status } => {
                if let Some(finder) = &self.services.user.search {
                    finder.refresh();
                }
                turn_over::turn_over(self, turn, status);
            }
            Then::Accepted(write) => queue::accepted(self, write),
            Then::AgentCreated { session, view } => self.row_stored(session, view, true),
            Then::Leased(lease)
                if (lease.session, &lease.head) == (self.session.id, &self.session.head.name) =>
            {
                self.session.lease = Some(lease);
            }
            // Another session was opened meanwhile, or another branch.
            Then::Leased(lease) => {
                let (session, head) = (lease.session, lease.head.clone());
                drop(self.services.store.leases().release(lease));
                // This process held it until now, so no other process took it.
                drop(self.services.store.heads().drop_bare(session, &head));
            }
        }
    }

    /// The row of an agent was stored (`written`), or could not be.
    fn row_stored(&mut self, session: SessionId, view: Box<AgentView>, written: bool) {
        let report = StoreReport::Row { session, view, written };
        self.with_crew(|crew, host| crew.stored(host, report));
    }

    /// A write failed permanently: its events are not published.
    fn save_failed(&mut self, error: &StoreError, then: &Then) {
        // The first error is the cause: without its row nothing of a session can be saved.
        let follows = matches!(error, StoreError::NoEntry(_) | StoreError::Conflict(_));
        let error = match (&self.saves.unmade, &self.saves.failed) {
            (Some(first), _) if *error == StoreError::NoSession(self.session.id) => &first.clone(),
            // The entry that it builds on was not saved either.
            (_, Some(first)) if follows => &first.clone(),
            _ => error,
        };
        let for_good =
            matches!(error, StoreError::Corrupt { .. } | StoreError::Internal(_) | StoreError::Record(_));
        if error.is_trouble() || for_good {
            self.saves.failed.get_or_insert_with(|| error.clone());
        }
        let mut notice = error.notice();
        if let Then::SessionCreated = then {
            self.saves.unmade = Some(error.clone());
        }
        if let Then::AgentCreated { session, view } = then {
            self.row_stored(*session, view.clone(), false);
        }
        if let Then::ValueUndone { client, cause, title, closes, .. } = then
            && self.saves.failed.is_none()
            && error.is_absent()
        {
            return undoing::close_undo(self, *client, *cause, title, closes, &notice);
        }
        if let (
            Then::ReplyOnError { client, cause }
            | Then::BranchNamed { client, cause, .. }
            | Then::ValueUndone { client, cause, .. },
            false,
        ) = (then, error.is_trouble())
        {
            return self.refuse(*client, *cause, notice);
        }
        if let StoreError::Held { .. } = error {
            self.session.read_only = true;
            self.session.lease = None;
            notice = notice.hint("this window is now read-only");
        }
        self.state(None, StateEvent::Saving { ok: false, why: notice.message.clone() });
        match then {
            Then::TurnOver { turn, status } => {
                // The end of a turn is reported in any case.
                let status = if *status == TurnStatus::Done { TurnStatus::Store } else { *status };
                if let Some(live) = &self.turn.live {
                    let scope = live.scope.clone();
                    let body = driver::finished_event(self, status, String::new(), Some(notice));
                    self.bus.publish(&scope, body);
                }
                self.agree();
                turn_over::turn_over(self, *turn, status);
            }
            _ => {
                self.notice(notice.clone());
                driver::halt(self, TurnStatus::Store, notice);
                if self.turn.live.is_none() && self.saves.is_empty() {
                    self.agree();
                }
            }
        }
    }

    /// After a permanent failure: forgets what was not saved, so that the next entry builds on an entry that is on disk.
    /// Reads only the end of the path.
    pub(crate) fn agree(&mut self) {
        if self.saves.failed.is_none() {
            return;
        }
        let (store, id, head) = (&self.services.store, self.session.id, self.session.head.name.as_str());
        let tail = u32::try_from(TAIL).unwrap_or(u32::MAX);
        match store.paths().context(id, head).and_then(|path| Ok((path, store.paths().tail(id, head, tail)?)))
        {
            Ok((path, tail)) => {
                self.session.head.id = tail.entries.last().map(|e| e.id);
                let turns = std::mem::take(&mut self.session.history.turns);
                let path = crate::session::path_of(path);
                self.session.history = crate::session::History::new(path, tail, turns);
                self.saves.failed = None;
                self.agree_on_names();
            }
            // It is tried again before the next turn.
            Err(error) => tracing::warn!(%error, "the saved data cannot be read"),
        }
    }

    /// Title, archive state and the branch's name as they are on disk. What cannot be read stays.
    fn agree_on_names(&mut self) {
        if let Ok(row) = self.services.store.sessions().get(self.session.id) {
            self.session.info.title = row.summary.title;
            self.session.info.archived = row.summary.archived;
        }
        if let Ok(branches) = self.services.store.branches().list(self.session.id)
            && let Some(branch) = branches.into_iter().find(|b| b.name == self.session.head.name)
        {
            self.session.head.label = branch.label;
        }
    }

    /// The store's health changed: saving stopped or works again.
    pub(crate) fn saving(&mut self, health: &Health) {
        self.state(None, StateEvent::Saving { ok: health.ok(), why: health.why() });
        if let Health::Failing(error) = health {
            self.notice(error.notice());
        }
        if health.ok() {
            self.with_crew(|crew, host| crew.stored(host, StoreReport::Recovered));
        }
        if health.ok()
            && let Some(live) = &mut self.turn.live
            && let Some(may_compact) = live.deferred_check.take()
        {
            prepare::prepare(self, may_compact);
        }
    }
}
