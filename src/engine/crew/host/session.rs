//! The session of the main agent.

use tiller_protocol::{EntryBody, EntryId, ModelRef, Profile, SessionId};

use super::CrewHost;
use crate::core::Core;
use crate::core::saves::Then;

/// The session of the main agent.
pub trait HostSession {
    /// Its id.
    fn session_id(&self) -> SessionId;

    /// Nothing may be written to it.
    fn read_only(&self) -> bool;

    /// Its profile.
    fn profile(&self) -> Profile;

    /// Its model.
    fn model(&self) -> ModelRef;

    /// Its last entry.
    fn head(&self) -> Option<EntryId>;

    /// Adds a note to the conversation. It is not part of requests.
    fn add_note(&mut self, text: String);

    /// Tells the main agent something with its next entry.
    fn tell_model(&mut self, text: String);
}

impl HostSession for CrewHost<'_> {
    fn session_id(&self) -> SessionId {
        self.core.session.id
    }

    fn read_only(&self) -> bool {
        self.core.session.read_only
    }

    fn profile(&self) -> Profile {
        self.core.session.profile
    }

    fn model(&self) -> ModelRef {
        self.core.session.model.clone()
    }

    fn head(&self) -> Option<EntryId> {
        self.core.session.head.id
    }

    fn add_note(&mut self, text: String) {
        let entry = self.core.session.grow(&self.core.services, EntryBody::Note { text });
        let shown = (self.core.scope(), Core::entry_event(&entry));
        let append = self.core.append().entries(vec![entry]);
        self.core.save(append, vec![shown], Then::Nothing);
    }

    fn tell_model(&mut self, text: String) {
        self.core.context.news.must(text);
    }
}
