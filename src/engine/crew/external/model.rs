//! The choice of another model of the program.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{CommandId, ModelRef, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::bus::agent_view;
use crate::crew::driver::ExternalDriver;
use crate::crew::msg::MemberMsg;
use crate::session::change;
use crate::session::model;

impl ExternalDriver<'_> {
    /// Sets the model for the next turn. True: this agent is an external program, and the command is done or refused.
    pub(crate) fn set_model(&mut self, client: ClientId, cause: CommandId, model: &ModelRef) -> bool {
        let Some(o) = self.core.identity.external_mut() else { return false };
        let (name, title) = (o.adapter.name.clone(), o.adapter.title.clone());
        let wanted = (model.provider() == name).then(|| model.model().trim()).filter(|m| !m.is_empty());
        let Some(wanted) = wanted else {
            let text = format!("this agent is {title}, which only uses its own models");
            let notice = Notice::new(NoticeKind::User, text);
            let hint = format!("write {name}/MODEL, with the model name that {title} uses");
            self.core.refuse(client, cause, notice.hint(hint));
            return true;
        };
        o.session.model = Some(wanted.to_owned());
        self.core.session.model = ModelRef(format!("{name}/{wanted}"));
        let (model, window) = (self.core.session.model.clone(), model::window(self.core));
        self.core.child_driver().report(MemberMsg::ProgramModel(wanted.to_owned()));
        let ticket = self.core.services.store.sessions().set_model(self.core.session.id, &model);
        change::after(self.core, ticket, cause, StateEvent::ModelChanged { model, window });
        agent_view::agent_changed(self.core);
        true
    }
}
