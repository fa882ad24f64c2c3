//! What confines commands on this machine: found out shortly after the start, told to clients.

use std::time::Duration;

use tiller_protocol::event::StateEvent;
use tiller_protocol::{Notice, NoticeKind, Profile};

use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::{Human, SandboxFindings, SandboxTest};

/// With a person at the screen, the self-test waits this long: the first frame and the first keys come before it.
const AFTER: Duration = Duration::from_millis(400);

/// Starts the self-test beside the loop. `present`: a person is at the screen.
pub(crate) fn start(core: &mut Core, test: SandboxTest, present: bool) {
    let tx = core.tx.clone();
    core.spawn(async move {
        if present {
            tokio::time::sleep(AFTER).await;
        }
        // After a panic there, nothing is known of the sandbox, and clients go on saying nothing.
        if let Ok(found) = tokio::task::spawn_blocking(move || test()).await {
            // The engine may have ended meanwhile.
            let _ = tx.send(Msg::Sandbox(Box::new(found))).await;
        }
    });
}

/// The self-test has ended.
pub(crate) fn tested(core: &mut Core, found: SandboxFindings) {
    for notice in found.notices {
        core.notice(notice);
    }
    let Some(state) = found.state else { return };
    if state.is_missing() && core.session.profile == Profile::Full {
        let why = state.lacks.join("; ");
        core.notice(
            Notice::new(
                NoticeKind::Config,
                "This machine has no sandbox: in AUTO mode, commands can write and send everything that you can.",
            )
            .hint("use ASK mode (Shift-Tab), or run Tiller in a container or a virtual machine")
            .hint("`tiller doctor` says what the sandbox needs")
            .detail(why),
        );
    }
    // A run without a person says only what went wrong.
    if core.services.user.human == Human::Absent {
        return;
    }
    core.state(None, StateEvent::SandboxTested { sandbox: Box::new(state.clone()) });
    core.lifecycle.sandbox = Some(state);
}
