//! Rules for every layer that asks for a decision. An action that grants, ends or removes something is accepted only
//! after the layer was readable for a moment, as with approvals; and the key that presses the focused button (Enter,
//! Space) never approves. They hold for each new dialog without code of its own.

use crate::app::App;
use crate::dialog::question::input_delay::TYPED;
use crate::keymap::action::Action;
use crate::keymap::vocabulary::Vocabulary;
use crate::panel::{Availability, Letters};

/// Whether an action decides something: [`crate::keymap::action::ActionSpec::decides`].
pub(crate) fn decides(words: &Vocabulary, action: Action) -> bool {
    words.find(action.0).is_some_and(|s| s.decides)
}

impl App {
    /// Whether the layer on top refuses this action now: it presses a deciding button, or comes before the layer could
    /// be read.
    pub(crate) fn withheld(&mut self, action: Action) -> bool {
        let words = self.registry.words();
        let Some(layer) = self.layers.last_mut() else { return false };
        let mine = layer.panel().actions().iter().any(|s| s.action == action);
        // A list hands actions on to its source, and does not name all of them itself.
        if layer.question(&self.model).is_some() {
            // Dialogs for questions of the engine apply these rules themselves, with a message for each case. This one
            // was covered.
            let field = layer.panel().status(&self.model).letters == Letters::Write;
            return mine && !field && !layer.delay.take(&self.model);
        }
        if !(mine || decides(words, action)) {
            return false;
        }
        let meaning = layer.panel().availability(action, &self.model);
        if matches!(meaning, Availability::Presses(a) if decides(words, a)) {
            self.say("To approve, press the key of the button");
            return true;
        }
        let decides = decides(words, action) || meaning == Availability::Decides;
        decides && !layer.delay.take(&self.model)
    }

    /// Notes a letter that the layer on top has no use for: more of the same word may follow.
    pub(crate) fn typed_past(&mut self) {
        let (now, words) = (self.model.mono, self.registry.words());
        let Some(layer) = self.layers.last_mut() else { return };
        if layer.question(&self.model).is_none()
            && layer.panel().actions().iter().any(|s| decides(words, s.action))
        {
            layer.delay.note_typed(now);
            self.say(TYPED);
        }
    }
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod tests;
