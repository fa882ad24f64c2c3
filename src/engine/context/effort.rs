//! The reasoning effort of the session's model: chosen for the session, for one message, by a flag, the configuration
//! or the agent's definition. It changes no byte of the prefix: system prompt and tools stay as they were.

use crate::session::change;
use crate::session::model;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{CommandId, Effort, EffortView, EntryBody, EventBody, Notice, NoticeKind};
use tiller_provider::models::effort;

use crate::bus::ClientId;
use crate::core::Core;

/// The effort of the next request: that of the message which is answered, else the session's.
pub(crate) fn effort(core: &Core) -> Effort {
    for entry in core.session.history.path.iter().rev() {
        if let EntryBody::User { message, origin, .. } = &entry.body {
            if let Some(effort) = message.effort {
                return effort;
            }
            if origin.begins_turn() {
                break;
            }
        }
    }
    core.session.effort
}

pub(crate) fn effort_view(core: &Core) -> EffortView {
    let info = model::model_info(core, &core.session.model);
    let chosen = core.session.effort;
    EffortView { chosen, used: effort::used(chosen, &info), offered: effort::offered(&info) }
}

pub(crate) fn set_effort(core: &mut Core, client: ClientId, cause: CommandId, chosen: Effort) {
    if let Some(why) = change::cannot_change(core, core.session.id) {
        return core.refuse(client, cause, why);
    }
    if core.identity.external().is_some() {
        let why = "this program chooses its effort itself";
        return core.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }
    core.session.effort = chosen;
    let view = effort_view(core);
    if chosen != Effort::Default && view.used != chosen {
        let model = core.session.model.model();
        let word = chosen.word();
        core.notice(Notice::new(
            NoticeKind::Info,
            match view.used {
                Effort::Default => {
                    format!("{model} does not support thinking, so the effort {word} has no effect")
                }
                used => format!("{model} does not support effort {word}; {} is used", used.word()),
            },
        ));
    }
    let ticket = keep_effort(core);
    change::after(core, ticket, cause, StateEvent::EffortChanged { effort: view });
}

/// Publishes the effort after a change of something that it depends on. The event names no command as its cause: none
/// was about the effort.
pub(crate) fn announce(core: &Core) {
    let effort = effort_view(core);
    core.bus.publish(&core.scope_of(None), EventBody::State(StateEvent::EffortChanged { effort }));
}

/// Stores the effort for the next time that the session is opened.
pub(crate) fn keep_effort(core: &Core) -> tiller_store::Ticket<()> {
    let word = Some(core.session.effort)
        .filter(|e| *e != core.services.config().effort)
        .map(|e| e.word().to_owned());
    core.services.store.set_meta(&crate::session::kept::effort_key(core.session.id), word)
}
