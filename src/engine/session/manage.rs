//! Names, branches, models, profiles and budgets of the open session.

use crate::bus::queries;
use crate::context::effort;
use crate::core::settings;
use crate::money;
use crate::questions::planning;
use crate::session::open;
use crate::turn::driver;
use crate::turn::prepare;
use tiller_protocol::event::StateEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{
    CommandId, Cost, EventBody, ModelRef, Notice, NoticeKind, Op, OpId, Profile, SessionId,
};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::saves::{After, Then};

/// For the log of operations. The store knows which one was the last.
pub(crate) fn op(
    core: &Core,
    session: SessionId,
    cause: impl Into<Option<CommandId>>,
    title: &str,
    change: OpChange,
) -> Op {
    let time = core.services.clock.now();
    let id = OpId::fresh(&*core.services.ids, time);
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
pub(crate) fn cannot_change(core: &Core, id: SessionId) -> Option<Notice> {
    let ours = id == core.session.id;
    (core.identity.look_only || (ours && core.session.read_only)).then(|| {
        Notice::new(NoticeKind::User, "this session is open read-only")
            .hint("fork it, or close it in the other process")
    })
}

pub(crate) fn after(core: &mut Core, ticket: tiller_store::Ticket<()>, cause: CommandId, event: StateEvent) {
    let events = vec![(core.place_of(Some(cause)), EventBody::State(event))];
    core.saves.push(ticket, After { events, then: Then::Nothing });
}

pub(crate) fn rename(core: &mut Core, client: ClientId, cause: CommandId, id: SessionId, title: &str) {
    let title = title.trim().to_owned();
    if title.is_empty() {
        return core.refuse(
            client,
            cause,
            Notice::new(NoticeKind::User, "a title needs at least one letter"),
        );
    }
    if let Some(why) = cannot_change(core, id) {
        return core.refuse(client, cause, why);
    }
    // What it was called before, the store knows.
    let before = String::new();
    let op = op(core, id, cause, "rename", OpChange::Title { before, after: title.clone() });
    let ticket = core.services.store.sessions().set_title(id, &title, true, Some(op));
    if id == core.session.id {
        core.session.title.clone_from(&title);
        core.session.titled = true;
        after(core, ticket, cause, StateEvent::TitleChanged { title });
    } else {
        let then = Then::Told { client, cause };
        core.saves.push(ticket, After { events: Vec::new(), then });
    }
}

pub(crate) fn archive(core: &mut Core, client: ClientId, cause: CommandId, id: SessionId, archived: bool) {
    if let Some(why) = cannot_change(core, id) {
        return core.refuse(client, cause, why);
    }
    let change = OpChange::Archived { before: !archived, after: archived };
    let op = op(core, id, cause, if archived { "archive" } else { "unarchive" }, change);
    let ticket = core.services.store.sessions().set_archived(id, archived, Some(op));
    if id == core.session.id {
        core.session.archived = archived;
    }
    core.saves.push(ticket, After { events: Vec::new(), then: Then::Told { client, cause } });
}

/// Throws a session away for 30 days, or takes it back.
pub(crate) fn trash(core: &mut Core, client: ClientId, cause: CommandId, id: SessionId, trashed: bool) {
    let open = (id == core.session.id).then(|| {
        Notice::new(NoticeKind::User, "the open session cannot be deleted").hint("open another session first")
    });
    if let Some(why) = open.or_else(|| cannot_change(core, id)) {
        return core.refuse(client, cause, why);
    }
    let ticket = core.services.store.trash().set_trashed(id, trashed);
    core.saves.push(ticket, After { events: Vec::new(), then: Then::Told { client, cause } });
}

pub(crate) fn set_model(core: &mut Core, client: ClientId, cause: CommandId, model: ModelRef) {
    if let Some(why) = cannot_change(core, core.session.id) {
        return core.refuse(client, cause, why);
    }
    if core.set_outside_model(client, cause, &model) {
        return;
    }
    settings::accept_local(core, &model);
    if model.model().is_empty() && money::provider(core, &model).is_ok() {
        // A server without a model named: the client gets what it offers, and chooses again.
        return queries::models(core, client, cause);
    }
    if let Err(error) = money::provider(core, &model) {
        return core.refuse(client, cause, crate::bus::notices::provider(&error));
    }
    if model == core.session.model {
        return;
    }
    if open::has_words(core) {
        core.context.news.set("model", format!("the model is now {model}"));
    }
    core.session.model = model.clone();
    let window = prepare::window(core);
    let ticket = core.services.store.sessions().set_model(core.session.id, &model);
    after(core, ticket, cause, StateEvent::ModelChanged { model, window });
    let effort = effort::effort_view(core);
    core.bus.publish(&core.place_of(Some(cause)), EventBody::State(StateEvent::EffortChanged { effort }));
    driver::agent_changed(core);
}

pub(crate) fn set_profile(core: &mut Core, client: ClientId, cause: CommandId, profile: Profile) {
    if let Some(why) = cannot_change(core, core.session.id) {
        return core.refuse(client, cause, why);
    }
    if profile == core.session.profile {
        return;
    }
    planning::planning_begins(core, profile);
    core.session.profile = profile;
    core.tell_profile();
    if open::has_words(core) {
        core.context.news.set("profile", crate::questions::planning::news(profile));
    }
    let ticket = core.services.store.sessions().set_profile(core.session.id, profile);
    after(core, ticket, cause, StateEvent::ProfileChanged { profile });
}

pub(crate) fn set_budget(core: &mut Core, client: ClientId, cause: CommandId, usd: f64) {
    if let Some(why) = cannot_change(core, core.session.id) {
        return core.refuse(client, cause, why);
    }
    if !usd.is_finite() || usd < 0.0 {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, "a budget is an amount in dollars"));
    }
    let limit = Cost::from_usd(usd);
    core.money.limits.set_session(limit);
    money::tell_budget(core);
    core.tell_money();
    let ticket = core.services.store.sessions().set_budget(core.session.id, Some(limit));
    let notice = Notice::new(NoticeKind::Budget, format!("the budget of this session is ${usd:.2}"));
    after(core, ticket, cause, StateEvent::Notice { notice });
}
