//! Entries of memory files whose matcher cannot be read: the user gets one notice of each.

use std::sync::Arc;

use tiller_protocol::event::StateEvent;
use tiller_protocol::{EventBody, Notice, NoticeKind};

use crate::core::Core;

/// Looks for matchers that cannot be read, and shows the user a notice about those that are new.
pub(crate) fn notice_of_faults(core: &mut Core) {
    let Some(learnings) = core.services.user.learnings.clone().filter(|_| core.identity.owns_session())
    else {
        return;
    };
    let (bus, scope) = (Arc::clone(&core.bus), core.scope());
    core.spawn(async move {
        let read = tokio::task::spawn_blocking(move || learnings.rules().map(|rules| rules.new_faults()));
        let faults = read.await.ok().flatten().unwrap_or_default();
        let Some(first) = faults.first() else { return };
        let more = match faults.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let notice =
            Notice::new(NoticeKind::Config, format!("{first}{more}")).hint("/memory shows it at the entry");
        bus.publish(&scope, EventBody::State(StateEvent::Notice { notice }));
    });
}
