//! The signs of the terminal's window besides the screen: its title, and a notification when the person is
//! away. The words are generic: never a model's text, a path or a secret.

use std::time::Duration;

use tiller_protocol::event::{AskEvent, TurnEvent, TurnStatus};
use tiller_protocol::{Event, EventBody};

use crate::app::App;
use crate::app::effect::{Task, WindowTask};
use crate::view::words::needs_you;
use crate::widget::draw;

/// A turn that took longer than this is worth a notification.
const LONG: Duration = Duration::from_secs(20);

/// The title, when it has changed.
pub(crate) fn show_title(app: &mut App) {
    let title = title(app);
    if title != app.outside.title {
        app.outside.title.clone_from(&title);
        app.tasks.push(Task::Window(WindowTask::Title(title)));
    }
}

/// A notification, when one is due.
pub(crate) fn notify(app: &mut App, event: &Event) {
    let text = match &event.body {
        EventBody::Turn(TurnEvent::TurnStarted {}) => {
            app.outside.turn = Some(app.model.mono);
            return;
        }
        EventBody::Turn(TurnEvent::TurnFinished { status, .. }) => {
            let took = app.outside.turn.take().map(|t| app.model.mono.saturating_sub(t));
            if app.model.environment.detachable {
                app.tasks.push(Task::Ended(*status));
            }
            match status {
                TurnStatus::Done if took.is_some_and(|t| t >= LONG) => "Turn finished",
                TurnStatus::Failed | TurnStatus::Store => "Turn failed",
                TurnStatus::Limit => "Budget or limit reached",
                _ => return,
            }
        }
        EventBody::Ask(AskEvent::PermissionAsked { .. } | AskEvent::QuestionAsked { .. }) => "needs you",
        _ => return,
    };
    if app.model.window.away && app.model.ui.notifications {
        app.tasks.push(Task::Window(WindowTask::Notify(text.into())));
    }
}

/// `! 1 · api — tiller`.
fn title(app: &App) -> String {
    let m = &app.model;
    let needs = needs_you(m);
    let project = m
        .agent
        .session
        .summary
        .as_ref()
        .map_or("", |s| s.project.rsplit('/').find(|p| !p.is_empty()).unwrap_or(""));
    let mark = match (needs, m.agent.turn.running || m.main_runs()) {
        (0, false) => String::new(),
        (0, true) => "~ · ".into(),
        (n, _) => format!("! {n} · "),
    };
    if project.is_empty() {
        return format!("{mark}tiller");
    }
    format!("{mark}{} — tiller", draw::cut_middle(project, 40))
}
