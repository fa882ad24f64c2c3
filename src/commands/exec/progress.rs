//! Progress on standard error: a line for each event that takes time or is important.

use std::io::Write;

use tiller_protocol::event::{AskEvent, StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::{Event, EventBody, NoticeKind, PermissionOutcome};

use crate::commands::sessions::one_line;

/// A line for the calls and the end of a delegated agent.
pub(crate) fn progress_of(event: &Event) {
    let name = event.agent.name();
    let line = match &event.body {
        EventBody::Tool(ToolEvent::ToolStarted { verb, target, .. }) => {
            format!("~ {name}: {verb} {}", one_line(target))
        }
        EventBody::State(StateEvent::AgentChanged { view })
            if !view.state.at_work() && view.since.is_none() =>
        {
            let label = one_line(&view.label);
            format!("  {name} {label}: {}", view.state.word())
        }
        _ => return,
    };
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// One line on standard error for each event that takes time or is important.
pub(crate) fn progress(body: &EventBody) {
    let line = match body {
        EventBody::Tool(ToolEvent::ToolStarted { verb, target, .. }) => {
            format!("~ {verb} {}", one_line(target))
        }
        EventBody::Tool(ToolEvent::ToolFinished { name, ok: false, output, node, .. }) => {
            let own = node.body.own_text();
            format!("x {name}: {}", one_line(own.as_deref().unwrap_or(output)))
        }
        EventBody::Turn(TurnEvent::Retrying { attempt, of, seconds, why, .. }) => {
            format!("! {}; retry {attempt} of {of} in {seconds:.0} s", one_line(why))
        }
        EventBody::Turn(TurnEvent::Awaiting { seconds, limit, setting, progress }) => {
            let read =
                progress.map(|p| format!("; the server has read {p} % of the prompt")).unwrap_or_default();
            let limit = limit.map(|l| format!("; {setting} allows {l:.0} s")).unwrap_or_default();
            format!("~ waiting for the first token, {seconds:.0} s{read}{limit}")
        }
        // Its result says so, and the end of the run what would allow it.
        EventBody::Ask(AskEvent::PermissionDecided { decision: PermissionOutcome::Nobody, .. }) => return,
        EventBody::Ask(AskEvent::PermissionDecided { tool, what, decision, by, .. }) if decision.denies() => {
            format!("- {tool} {} was denied: {}", one_line(what), one_line(by))
        }
        // It ends the turn, and the end of the turn reports it.
        EventBody::State(StateEvent::Notice { notice }) if notice.kind == NoticeKind::Store => return,
        EventBody::State(StateEvent::Notice { notice }) => format!("! {}", one_line(&notice.message)),
        _ => return,
    };
    // Standard error may be closed; the answer is still printed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
