//! Names, branches, models, profiles and budgets of the open session.

use tiller_protocol::event::StateEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{
    CommandId, Cost, EventBody, ModelRef, Notice, NoticeKind, Op, OpId, Profile, SessionId,
};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::saves::{After, Then};

impl Core {
    /// For the log of operations. The store knows which one was the last.
    pub(crate) fn op(
        &self,
        session: SessionId,
        cause: impl Into<Option<CommandId>>,
        title: &str,
        change: OpChange,
    ) -> Op {
        let time = self.services.clock.now();
        let id = OpId::fresh(&*self.services.ids, time);
        Op {
            id,
            session,
            time,
            parent: None,
            cause: cause.into(),
            title: title.into(),
            of: None,
            with: None,
            change,
        }
    }

    /// Why a session's own row must not be written from here.
    pub(crate) fn cannot_change(&self, id: SessionId) -> Option<Notice> {
        let ours = id == self.session.id;
        (self.identity.look_only || (ours && self.session.read_only)).then(|| {
            Notice::new(NoticeKind::User, "this session is open read-only")
                .hint("fork it, or close it in the other process")
        })
    }

    pub(crate) fn after(&mut self, ticket: tiller_store::Ticket<()>, cause: CommandId, event: StateEvent) {
        let events = vec![(self.place_of(Some(cause)), EventBody::State(event))];
        self.saves.push(ticket, After { events, then: Then::Nothing });
    }

    pub(crate) fn rename(&mut self, client: ClientId, cause: CommandId, id: SessionId, title: &str) {
        let title = title.trim().to_owned();
        if title.is_empty() {
            return self.refuse(
                client,
                cause,
                Notice::new(NoticeKind::User, "a title needs at least one letter"),
            );
        }
        if let Some(why) = self.cannot_change(id) {
            return self.refuse(client, cause, why);
        }
        // What it was called before, the store knows.
        let before = String::new();
        let op = self.op(id, cause, "rename", OpChange::Title { before, after: title.clone() });
        let ticket = self.services.store.set_title(id, &title, true, Some(op));
        if id == self.session.id {
            self.session.title.clone_from(&title);
            self.session.titled = true;
            self.after(ticket, cause, StateEvent::TitleChanged { title });
        } else {
            let then = Then::Told { client, cause };
            self.saves.push(ticket, After { events: Vec::new(), then });
        }
    }

    pub(crate) fn archive(&mut self, client: ClientId, cause: CommandId, id: SessionId, archived: bool) {
        if let Some(why) = self.cannot_change(id) {
            return self.refuse(client, cause, why);
        }
        let change = OpChange::Archived { before: !archived, after: archived };
        let op = self.op(id, cause, if archived { "archive" } else { "unarchive" }, change);
        let ticket = self.services.store.set_archived(id, archived, Some(op));
        if id == self.session.id {
            self.session.archived = archived;
        }
        self.saves.push(ticket, After { events: Vec::new(), then: Then::Told { client, cause } });
    }

    /// Throws a session away for 30 days, or takes it back.
    pub(crate) fn trash(&mut self, client: ClientId, cause: CommandId, id: SessionId, trashed: bool) {
        let open = (id == self.session.id).then(|| {
            Notice::new(NoticeKind::User, "the open session cannot be deleted")
                .hint("open another session first")
        });
        if let Some(why) = open.or_else(|| self.cannot_change(id)) {
            return self.refuse(client, cause, why);
        }
        let ticket = self.services.store.set_trashed(id, trashed);
        self.saves.push(ticket, After { events: Vec::new(), then: Then::Told { client, cause } });
    }

    pub(crate) fn set_model(&mut self, client: ClientId, cause: CommandId, model: ModelRef) {
        if let Some(why) = self.cannot_change(self.session.id) {
            return self.refuse(client, cause, why);
        }
        if self.set_outside_model(client, cause, &model) {
            return;
        }
        self.accept_local(&model);
        if model.model().is_empty() && self.provider(&model).is_ok() {
            // A server without a model named: the client gets what it offers, and chooses again.
            return self.models(client, cause);
        }
        if let Err(error) = self.provider(&model) {
            return self.refuse(client, cause, crate::bus::notices::provider(&error));
        }
        if model == self.session.model {
            return;
        }
        if self.has_words() {
            self.context.news.set("model", format!("the model is now {model}"));
        }
        self.session.model = model.clone();
        let window = self.window();
        let ticket = self.services.store.set_model(self.session.id, &model);
        self.after(ticket, cause, StateEvent::ModelChanged { model, window });
        let effort = self.effort_view();
        self.bus.publish(&self.place_of(Some(cause)), EventBody::State(StateEvent::EffortChanged { effort }));
        self.agent_changed();
    }

    pub(crate) fn set_profile(&mut self, client: ClientId, cause: CommandId, profile: Profile) {
        if let Some(why) = self.cannot_change(self.session.id) {
            return self.refuse(client, cause, why);
        }
        if profile == self.session.profile {
            return;
        }
        self.planning_begins(profile);
        self.session.profile = profile;
        self.tell_profile();
        if self.has_words() {
            self.context.news.set("profile", crate::questions::planning::news(profile));
        }
        let ticket = self.services.store.set_profile(self.session.id, profile);
        self.after(ticket, cause, StateEvent::ProfileChanged { profile });
    }

    pub(crate) fn set_budget(&mut self, client: ClientId, cause: CommandId, usd: f64) {
        if let Some(why) = self.cannot_change(self.session.id) {
            return self.refuse(client, cause, why);
        }
        if !usd.is_finite() || usd < 0.0 {
            return self.refuse(
                client,
                cause,
                Notice::new(NoticeKind::User, "a budget is an amount in dollars"),
            );
        }
        let limit = Cost::from_usd(usd);
        self.money.limits.set_session(limit);
        self.tell_budget();
        self.tell_money();
        let ticket = self.services.store.set_budget(self.session.id, Some(limit));
        let notice = Notice::new(NoticeKind::Budget, format!("the budget of this session is ${usd:.2}"));
        self.after(ticket, cause, StateEvent::Notice { notice });
    }
}
