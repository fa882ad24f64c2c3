//! Rows in the store, with their times and ids.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{AgentView, EventBody, SessionId, Time};
use tiller_store::{Store, Ticket};

use super::CrewHost;
use crate::bus::EventScope;
use crate::core::saves::{After, Then};

/// Rows in the store, with their times and ids.
pub trait HostStorage {
    /// Where sessions are stored.
    fn store(&self) -> &Store;

    /// Publishes these events when a write is on disk.
    fn save<T: Send + 'static>(&mut self, ticket: Ticket<T>, events: Vec<(EventScope, EventBody)>);

    /// Publishes the row of an agent when its write is on disk; [`Crew::stored`](crate::crew::Crew::stored) is called in any
    /// case.
    fn save_row<T: Send + 'static>(&mut self, ticket: Ticket<T>, session: SessionId, view: AgentView);

    /// The time of day.
    fn now(&self) -> Time;

    /// An id for a new session.
    fn new_session_id(&self) -> SessionId;
}

impl HostStorage for CrewHost<'_> {
    fn store(&self) -> &Store {
        &self.core.services.store
    }

    fn save<T: Send + 'static>(&mut self, ticket: Ticket<T>, events: Vec<(EventScope, EventBody)>) {
        self.core.saves.push(ticket, After { events, then: Then::Nothing });
    }

    fn save_row<T: Send + 'static>(&mut self, ticket: Ticket<T>, session: SessionId, view: AgentView) {
        let scope = EventScope { session, agent: view.id.clone(), cause: None };
        let event = EventBody::State(StateEvent::AgentChanged { view: view.clone() });
        let then = Then::AgentCreated { session, view: Box::new(view) };
        self.core.saves.push(ticket, After { events: vec![(scope, event)], then });
    }

    fn now(&self) -> Time {
        self.core.services.clock.now()
    }

    fn new_session_id(&self) -> SessionId {
        SessionId::fresh(&*self.core.services.ids, self.now())
    }
}
