//! Name, archive state, model, profile and budget of the open session.

use crate::bus::agent_view;
use crate::context::effort;
use crate::money;
use crate::questions::planning;
use crate::session::change;
use crate::session::model;
use crate::session::model_choices;
use tiller_protocol::event::StateEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{CommandId, Cost, ModelRef, Notice, NoticeKind, Profile, SessionId};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::saves::{After, Then};

pub(crate) fn rename(core: &mut Core, client: ClientId, cause: CommandId, id: SessionId, title: &str) {
    let title = title.trim().to_owned();
    if title.is_empty() {
        return core.refuse(
            client,
            cause,
            Notice::new(NoticeKind::User, "a title needs at least one letter"),
        );
    }
    if let Some(why) = change::cannot_change(core, id) {
        return core.refuse(client, cause, why);
    }
    // The store fills in the old name.
    let before = String::new();
    let op = change::op(core, id, cause, "rename", OpChange::Title { before, after: title.clone() });
    let ticket = core.services.store.sessions().set_title(id, &title, true, Some(op));
    if id == core.session.id {
        core.session.info.title.clone_from(&title);
        core.session.info.titled = true;
        change::after(core, ticket, cause, StateEvent::TitleChanged { title });
    } else {
        let then = Then::ReplyOnError { client, cause };
        core.saves.push(ticket, After { events: Vec::new(), then });
    }
}

pub(crate) fn archive(core: &mut Core, client: ClientId, cause: CommandId, id: SessionId, archived: bool) {
    if let Some(why) = change::cannot_change(core, id) {
        return core.refuse(client, cause, why);
    }
    let change = OpChange::Archived { before: !archived, after: archived };
    let op = change::op(core, id, cause, if archived { "archive" } else { "unarchive" }, change);
    let ticket = core.services.store.sessions().set_archived(id, archived, Some(op));
    if id == core.session.id {
        core.session.info.archived = archived;
    }
    core.saves.push(ticket, After { events: Vec::new(), then: Then::ReplyOnError { client, cause } });
}

/// Moves a session to the trash for 30 days, or restores it.
pub(crate) fn trash(core: &mut Core, client: ClientId, cause: CommandId, id: SessionId, trashed: bool) {
    let open = (id == core.session.id).then(|| {
        Notice::new(NoticeKind::User, "the open session cannot be deleted").hint("open another session first")
    });
    if let Some(why) = open.or_else(|| change::cannot_change(core, id)) {
        return core.refuse(client, cause, why);
    }
    let ticket = core.services.store.trash().set_trashed(id, trashed);
    core.saves.push(ticket, After { events: Vec::new(), then: Then::ReplyOnError { client, cause } });
}

pub(crate) fn set_model(core: &mut Core, client: ClientId, cause: CommandId, model: ModelRef) {
    if let Some(why) = change::cannot_change(core, core.session.id) {
        return core.refuse(client, cause, why);
    }
    if core.external_driver().set_model(client, cause, &model) {
        return;
    }
    // The choice replaces the model of an own command as well.
    crate::turn::hold::over(core);
    model::accept_local(core, &model);
    if model.model().is_empty() && model::provider(core, &model).is_ok() {
        // A server without a model: the client gets the list of its models.
        return model_choices::models(core, client, cause);
    }
    if let Err(error) = model::provider(core, &model) {
        return core.refuse(client, cause, crate::bus::notices::provider(&error));
    }
    if model == core.session.model {
        return;
    }
    if core.session.has_words() {
        core.context.news.set("model", format!("the model is now {model}"));
    }
    core.session.model = model.clone();
    let window = model::window(core);
    let ticket = core.services.store.sessions().set_model(core.session.id, &model);
    change::after(core, ticket, cause, StateEvent::ModelChanged { model, window });
    effort::announce(core);
    agent_view::agent_changed(core);
}

pub(crate) fn set_profile(core: &mut Core, client: ClientId, cause: CommandId, profile: Profile) {
    if let Some(why) = change::cannot_change(core, core.session.id) {
        return core.refuse(client, cause, why);
    }
    if profile == core.session.profile {
        return;
    }
    planning::planning_begins(core, profile);
    core.session.profile = profile;
    core.crew.profile_changed(profile);
    if core.session.has_words() {
        core.context.news.set("profile", crate::questions::planning::news(profile));
    }
    let ticket = core.services.store.sessions().set_profile(core.session.id, profile);
    change::after(core, ticket, cause, StateEvent::ProfileChanged { profile });
}

pub(crate) fn set_budget(core: &mut Core, client: ClientId, cause: CommandId, usd: f64) {
    if let Some(why) = change::cannot_change(core, core.session.id) {
        return core.refuse(client, cause, why);
    }
    if !usd.is_finite() || usd < 0.0 {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, "a budget is an amount in dollars"));
    }
    let limit = Cost::from_usd(usd);
    core.money.limits.set_session(limit);
    money::tell_budget(core);
    crate::money::spending::limit_money(core);
    let ticket = core.services.store.sessions().set_budget(core.session.id, Some(limit));
    let notice = Notice::new(NoticeKind::Budget, format!("the budget of this session is ${usd:.2}"));
    change::after(core, ticket, cause, StateEvent::Notice { notice });
}
