//! Gives each report to the concern that it is about.

use crate::crew::{child, external};
use crate::watching::feed;
use crate::{context, files, prompts, questions, session, turn};

use crate::core::msg::Msg;
use crate::core::{Core, sandbox};

impl Core {
    pub(super) fn message(&mut self, msg: Msg) {
        match msg {
            // A report about an older turn is dropped.
            Msg::Turn(msg) if self.is_live(msg.turn()) => turn::handle::handle(self, msg),
            Msg::Turn(_) => {}
            Msg::Context(msg) => context::handle::handle(self, msg),
            Msg::Prompt(msg) => prompts::handle::handle(self, msg),
            Msg::Question(msg) => questions::handle::handle(self, msg),
            Msg::Session(msg) => session::handle::handle(self, msg),
            Msg::Files(msg) => files::handle::handle(self, msg),
            Msg::Crew(msg) => self.with_crew(|crew, host| crew.message(host, msg)),
            Msg::Child(msg) => child::handle::handle(self, msg),
            Msg::External(msg) => external::handle::handle(self, msg),
            Msg::Watch(seen) => feed::seen(self, seen),
            Msg::Sandbox(found) => sandbox::tested(self, *found),
            Msg::Quit => self.quit_pressed(),
        }
    }
}
