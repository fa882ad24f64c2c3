//! Checks, records and publishes a change of the session.

use crate::core::Core;
use crate::core::saves::{After, Then};
use tiller_protocol::event::StateEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{CommandId, EventBody, Notice, NoticeKind, Op, OpId, SessionId};

/// An operation for the log. The store links it to the last one.
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

/// Why a session's row must not be written from here.
pub(crate) fn cannot_change(core: &Core, id: SessionId) -> Option<Notice> {
    let ours = id == core.session.id;
    (core.identity.look_only || (ours && core.session.read_only)).then(|| {
        Notice::new(NoticeKind::User, "this session is open read-only")
            .hint("fork it, or close it in the other process")
    })
}

pub(crate) fn after(core: &mut Core, ticket: tiller_store::Ticket<()>, cause: CommandId, event: StateEvent) {
    let events = vec![(core.scope_of(Some(cause)), EventBody::State(event))];
    core.saves.push(ticket, After { events, then: Then::Nothing });
}
