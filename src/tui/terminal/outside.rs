//! What the terminal's window shows besides the screen: its title, and a notification when the person is
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

impl App {
    /// The title, when it has changed.
    pub(crate) fn outside(&mut self) {
        let title = title(self);
        if title != self.told.title {
            self.told.title.clone_from(&title);
            self.tasks.push(Task::Window(WindowTask::Title(title)));
        }
    }

    /// A notification, when one is due.
    pub(crate) fn tell_outside(&mut self, event: &Event) {
        let text = match &event.body {
            EventBody::Turn(TurnEvent::TurnStarted {}) => {
                self.told.turn = Some(self.model.mono);
                return;
            }
            EventBody::Turn(TurnEvent::TurnFinished { status, .. }) => {
                let took = self.told.turn.take().map(|t| self.model.mono.saturating_sub(t));
                if self.model.environment.detachable {
                    self.tasks.push(Task::Ended(*status));
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
        if self.model.window.away && self.model.ui.notifications {
            self.tasks.push(Task::Window(WindowTask::Notify(text.into())));
        }
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
