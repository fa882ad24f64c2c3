//! What follows the end of a turn: its files, a title, the next message, the goal.

use crate::bus::agent_view;
use crate::core::Core;
use crate::core::hooks;
use crate::files::record;
use crate::files::turn::ended;
use crate::goal;
use crate::prompts::queue;
use crate::prompts::titles;
use crate::questions::skill_offer;
use serde_json::json;
use tiller_protocol::HookEvent;
use tiller_protocol::event::TurnStatus;

/// The end is on disk and shown.
pub(crate) fn turn_over(core: &mut Core, turn: u64, status: TurnStatus) {
    if !core.is_live(turn) {
        return;
    }
    let live = core.turn.live.take();
    if let Some(live) = &live {
        skill_offer::turn_over(core, live, status);
    }
    let (prompt, text, why) = live.map(|l| (l.prompt, l.end.text, l.end.notice)).unwrap_or_default();
    core.turn.inputs.clear();
    crate::memory::unconfined_programs::turn_over(core);
    crate::turn::hold::over(core);
    ended::turn_ended(core);
    record::settle_files(core);
    agent_view::agent_changed(core);
    if core.lifecycle.quitting.is_some() {
        return core.quit_now();
    }
    if status == TurnStatus::Done {
        titles::title_after(core, &prompt);
    }
    if core.identity.owns_session() {
        let about = json!({ "kind": "turn-finished", "message": core.session.info.title, "status": status });
        hooks::fire(core, HookEvent::Notification, about);
    }
    queue::next_queued(core, status);
    goal::goal_after(core, status);
    if !core.occupied() {
        crate::memory::late::next(core);
        core.child_driver().turn_ended(status, text, why);
    }
}
