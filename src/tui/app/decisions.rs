//! Rules for every layer that asks for a decision. An action that grants, ends or removes something is accepted only
//! after the layer was readable for a moment, as with approvals; and the key that presses the focused button (Enter,
//! Space) never approves. They hold for each new dialog without code of its own. In a question a letter acts after a
//! silence: a second letter, or a key that repeats, is writing, goes to the draft, and folds the question.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use crate::app::App;
use crate::app::state::HeldLetter;
use crate::dialog::question::input_delay::TYPED;
use crate::keymap::action::Action;
use crate::keymap::vocabulary::Vocabulary;
use crate::keymap::{Chord, Lookup};
use crate::panel::{Availability, Letters, PanelInput};

/// A letter acts after so long without another key.
const SILENCE: Duration = Duration::from_millis(150);

/// True when an action decides something: [`crate::keymap::action::ActionSpec::decides`].
pub(crate) fn decides(words: &Vocabulary, action: Action) -> bool {
    words.find(action.0).is_some_and(|s| s.decides)
}

impl App {
    /// True when the layer on top refuses this action now: it presses a deciding button, or comes before the layer could
    /// be read.
    pub(crate) fn withheld(&mut self, action: Action) -> bool {
        let words = self.registry.words();
        let Some(layer) = self.layers.last_mut() else { return false };
        let mine = layer.panel().actions().iter().any(|s| s.action == action);
        // A list hands actions on to its source, and does not name all of them itself.
        if layer.question(&self.model).is_some() {
            // Dialogs for questions of the engine apply these rules themselves, with a message for each case, but for the
            // time after another dialog lay over them. An edit of a text that was begun is always taken.
            let field = layer.panel().status(&self.model).letters == Letters::Write;
            let edits = field && (action.0.ends_with(".newline") || action.0 == "clarify.mark");
            return mine && !edits && !layer.delay.take(&self.model);
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

    /// Takes a key that is not for the question on top, if one is, and holds back one that may be. `false`: the key goes
    /// its usual way.
    pub(crate) fn at_question(&mut self, key: &KeyEvent) -> bool {
        let chord = Chord::of(key);
        let letter = chord.text().filter(|_| self.keys.pending.is_empty());
        // Enter would send a message of one letter.
        if self.write_held() && key.code == KeyCode::Enter {
            return true;
        }
        let Some((layer, letters, deaf)) = self.top_question() else {
            if letter.is_some() {
                self.wrote();
            }
            return false;
        };
        let Some(letter) = letter else { return false };
        let numbered = |of: usize| letter.to_digit(10).is_some_and(|n| (1..=of).contains(&(n as usize)));
        let acts = match letters {
            Letters::Write => return false,
            _ if deaf => false,
            Letters::Filter(of) if !numbered(of) => return false,
            Letters::Filter(_) => true,
            Letters::Number(of) => numbered(of),
            Letters::Press => match self.keys.map.lookup(&self.scopes(), &[chord]) {
                Lookup::Prefix => return false,
                Lookup::Actions(_) => true,
                Lookup::Nothing | Lookup::None => false,
            },
        };
        if acts {
            let until = self.model.mono + SILENCE;
            self.keys.held = Some(HeldLetter { key: *key, layer, until });
        } else {
            self.write(key);
        }
        true
    }

    /// Writes a letter that another key followed; `false`: there is none.
    pub(crate) fn write_held(&mut self) -> bool {
        let Some(held) = self.keys.held.take() else { return false };
        self.write(&held.key);
        true
    }

    /// True when a letter has waited long enough.
    pub(crate) fn has_due_letter(&self) -> bool {
        self.keys.held.as_ref().is_some_and(|held| held.until <= self.clock.mono())
    }

    /// Lets a letter act that no other key followed. When its question is gone or takes no input, it is writing.
    pub(crate) fn release_letter(&mut self) {
        let Some(held) = self.keys.held.take_if(|held| held.until <= self.model.mono) else { return };
        self.frame.dirty = true;
        if self.top_question().is_some_and(|(layer, _, deaf)| layer == held.layer && !deaf) {
            self.press(&held.key);
        } else {
            self.write(&held.key);
        }
    }

    /// Puts a letter at a question into the draft, whatever it is bound to there: the question is folded.
    fn write(&mut self, key: &KeyEvent) {
        if let Some(c) = Chord::of(key).text() {
            self.paste_at_question(c.encode_utf8(&mut [0; 4]));
        }
    }

    /// Puts text at a question into the draft.
    pub(crate) fn paste_at_question(&mut self, text: &str) {
        self.fold_top();
        self.typed_elsewhere(PanelInput::Paste(text));
        let key = self.keys.map.describe(Action("global.answer"), &self.scopes());
        let waits = !self.model.questions.open.is_empty() && self.layers.is_empty();
        let answer =
            key.filter(|_| waits).map_or_else(String::new, |key| format!(": {key} answers the question"));
        self.say_of_keys(format!("You write a message{answer}"));
    }

    /// True when pasted text is not for the question on top, if one is.
    pub(crate) fn pastes_past(&self) -> bool {
        self.top_question().is_some_and(|(_, letters, deaf)| match letters {
            Letters::Write => false,
            Letters::Filter(_) => deaf,
            Letters::Press | Letters::Number(_) => true,
        })
    }

    /// The layer of the question on top, what letters do in it, and whether it takes no input now.
    fn top_question(&self) -> Option<(u64, Letters, bool)> {
        let layer = self.layers.last()?;
        let status = layer.panel().status(&self.model);
        let deaf = status.deaf || !layer.delay.is_over(&self.model);
        status.question.map(|_| (layer.id, status.letters, deaf))
    }
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "typing_tests.rs"]
mod typing_tests;
