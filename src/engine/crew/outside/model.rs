//! Another model for a program: one of its own, in its own spelling.

use crate::bus::agent_view;
use crate::session::change;
use crate::session::model;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{CommandId, ModelRef, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::crew::CrewMsg;

impl Core {
    /// From its next turn on. True: this agent is a program, and it is done, or refused.
    pub(crate) fn set_outside_model(&mut self, client: ClientId, cause: CommandId, model: &ModelRef) -> bool {
        let Some(o) = self.outside() else { return false };
        let (name, title) = (o.adapter.name.clone(), o.adapter.title.clone());
        let wanted = (model.provider() == name).then(|| model.model().trim()).filter(|m| !m.is_empty());
        let Some(wanted) = wanted else {
            let text = format!("this agent is {title}, which only uses its own models");
            let notice = Notice::new(NoticeKind::User, text);
            let hint = format!("write {name}/MODEL, with the model name that {title} uses");
            self.refuse(client, cause, notice.hint(hint));
            return true;
        };
        o.model = Some(wanted.to_owned());
        self.session.model = ModelRef(format!("{name}/{wanted}"));
        let (id, model, window) = (self.identity.id.clone(), self.session.model.clone(), model::window(self));
        self.tell_main(CrewMsg::TheirModel { id, model: wanted.to_owned() });
        let ticket = self.services.store.sessions().set_model(self.session.id, &model);
        change::after(self, ticket, cause, StateEvent::ModelChanged { model, window });
        agent_view::agent_changed(self);
        true
    }
}
