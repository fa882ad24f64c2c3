//! How much the session's model thinks: chosen for the session, for one message, by a flag, the configuration or the
//! kind of agent. It changes no byte of the prefix: system prompt and tools stay as they were.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{CommandId, Effort, EffortView, EntryBody, Notice, NoticeKind, Origin};
use tiller_provider::models::effort;

use crate::bus::ClientId;
use crate::core::Core;

impl Core {
    /// The effort of the next request: of the message that is answered, else of the session.
    pub(crate) fn effort(&self) -> Effort {
        for entry in self.session.path.iter().rev() {
            if let EntryBody::User { message, origin, .. } = &entry.body {
                if let Some(effort) = message.effort {
                    return effort;
                }
                if *origin == Origin::Prompt {
                    break;
                }
            }
        }
        self.session.effort
    }

    pub(crate) fn effort_view(&self) -> EffortView {
        let info = self.model_info(&self.session.model);
        let chosen = self.session.effort;
        EffortView { chosen, used: effort::used(chosen, &info), offered: effort::offered(&info) }
    }

    pub(crate) fn set_effort(&mut self, client: ClientId, cause: CommandId, chosen: Effort) {
        if let Some(why) = self.cannot_change(self.session.id) {
            return self.refuse(client, cause, why);
        }
        if self.outside().is_some() {
            let why = "this program chooses its effort itself";
            return self.refuse(client, cause, Notice::new(NoticeKind::User, why));
        }
        self.session.effort = chosen;
        let view = self.effort_view();
        if chosen != Effort::Default && view.used != chosen {
            let model = self.session.model.model();
            let word = chosen.word();
            self.notice(Notice::new(
                NoticeKind::Info,
                match view.used {
                    Effort::Default => {
                        format!("{model} does not support thinking, so the effort {word} has no effect")
                    }
                    used => format!("{model} does not support effort {word}; {} is used", used.word()),
                },
            ));
        }
        let ticket = self.keep_effort();
        self.after(ticket, cause, StateEvent::EffortChanged { effort: view });
    }

    /// Keeps it for the next time that the session is opened.
    pub(crate) fn keep_effort(&self) -> tiller_store::Ticket<()> {
        let word = Some(self.session.effort)
            .filter(|e| *e != self.services.config().effort)
            .map(|e| e.word().to_owned());
        self.services.store.set_meta(&crate::session::kept::effort_key(self.session.id), word)
    }
}
