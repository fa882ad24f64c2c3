//! A question never answers to a sentence. While the person writes, it opens folded: all of it stands above the composer,
//! and keys go to the draft until an action or a click unfolds it. In an unfolded question a letter acts after a silence: a
//! held key or a second letter is writing. What is written at a question goes to the draft, and folds it again.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};
use tiller_protocol::AskId;

use crate::app::App;
use crate::app::state::{HeldLetter, Layer, Owner};
use crate::keymap::action::Action;
use crate::keymap::{Chord, Lookup};
use crate::panel::{Letters, Panel, PanelEvent, PanelInput, Reply, View};
use crate::view::layout::Zoom;

/// No question takes keys by itself within this time after a printable key.
pub(crate) const QUIET: Duration = Duration::from_secs(2);

/// A letter acts after so long without another key.
const SILENCE: Duration = Duration::from_millis(150);

const COMPOSER: Owner = Owner::View(View::Composer);

impl App {
    /// Whether the person writes: a question that opens now takes no keys.
    pub(crate) fn is_writing(&self) -> bool {
        self.typing() || !self.is_empty(COMPOSER)
    }

    /// Whether a printable key was pressed just now.
    pub(crate) fn typing(&self) -> bool {
        self.keys.typed.is_some_and(|t| self.model.mono.saturating_sub(t) < QUIET)
    }

    /// Shows the dialog of a question above the composer.
    pub(crate) fn open_folded(&mut self, mut panel: Box<dyn Panel>) {
        let id = self.router.fresh();
        let reply = panel.handle(PanelEvent::Opened, &self.model);
        self.questions.folded = Some(Layer::new(id, panel));
        if let Reply::Done(list) = reply {
            self.effects(Owner::Layer(id), list);
        }
    }

    /// The question that is folded.
    pub(crate) fn folded_question(&self) -> Option<AskId> {
        self.questions.folded.as_ref()?.question(&self.model)
    }

    /// Whether Escape in the composer is about a question that is folded.
    pub(crate) fn is_folded_in_sight(&self) -> bool {
        self.questions.folded.is_some() && self.screen.focus == View::Composer
    }

    /// Gives the keys to the folded question; `false`: there is none.
    pub(crate) fn unfold(&mut self) -> bool {
        let Some(mut layer) = self.questions.folded.take() else { return false };
        layer.delay.restart();
        self.keys.pending.clear();
        self.layers.push(layer);
        self.questions.answering = true;
        true
    }

    /// Closes the folded question until it is asked for.
    pub(crate) fn put_folded_aside(&mut self) {
        let Some(layer) = self.questions.folded.take() else { return };
        self.questions.aside.extend(layer.question(&self.model));
        self.keep_ask(layer.into_panel());
    }

    /// Takes a key that is not for the question on top, if one is, and holds back one that may be. `false`: the key goes
    /// its usual way.
    pub(crate) fn at_question(&mut self, key: &KeyEvent) -> bool {
        let chord = Chord::of(key);
        let letter = chord.text().filter(|_| self.keys.pending.is_empty());
        // Enter would send what was never read.
        if self.write_held() && key.code == KeyCode::Enter {
            return true;
        }
        let Some(layer) = self.layers.last().filter(|l| l.question(&self.model).is_some()) else {
            if letter.is_some() {
                self.wrote();
            }
            return false;
        };
        self.questions.used = Some(self.model.mono);
        let Some(letter) = letter else { return false };
        let status = layer.panel().status(&self.model);
        let deaf = status.deaf || !layer.delay.is_over(&self.model);
        let numbered = |of: usize| letter.to_digit(10).is_some_and(|n| (1..=of).contains(&(n as usize)));
        let acts = match status.letters {
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
            self.keys.held = Some(HeldLetter { key: *key, layer: layer.id, until });
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

    /// Lets a letter act that no other key followed. When its question is gone or takes no input, it is writing.
    pub(crate) fn release_letter(&mut self) {
        let Some(held) = self.keys.held.take_if(|held| held.until <= self.model.mono) else { return };
        self.frame.dirty = true;
        let takes = |l: &&Layer| {
            l.id == held.layer && l.delay.is_over(&self.model) && !l.panel().status(&self.model).deaf
        };
        if self.layers.last().filter(takes).is_some() {
            self.questions.answering = true;
            self.press(&held.key);
        } else {
            self.write(&held.key);
        }
    }

    /// Puts a key at a question into the draft: the question is folded.
    fn write(&mut self, key: &KeyEvent) {
        if !self.fold_top() {
            return self.typed_elsewhere(PanelInput::Key(key));
        }
        self.press(key);
        self.say_where_it_went();
    }

    /// Puts text that was pasted at a question into the draft.
    pub(crate) fn paste_at_question(&mut self, text: &str) {
        self.fold_top();
        self.typed_elsewhere(PanelInput::Paste(text));
        self.say_where_it_went();
    }

    /// Whether pasted text is not for the question on top, if one is.
    pub(crate) fn pastes_past(&self) -> bool {
        self.layers.last().filter(|l| l.question(&self.model).is_some()).is_some_and(|l| {
            let status = l.panel().status(&self.model);
            match status.letters {
                Letters::Write => false,
                Letters::Filter(_) => status.deaf || !l.delay.is_over(&self.model),
                Letters::Press | Letters::Number(_) => true,
            }
        })
    }

    /// Folds the question on top, and gives the keys to the composer. `false`: another dialog lies below it.
    fn fold_top(&mut self) -> bool {
        self.wrote();
        if self.layers.last().is_some_and(|l| l.question(&self.model).is_some())
            && let Some(layer) = self.layers.pop()
        {
            self.put_folded_aside();
            self.questions.folded = Some(layer);
        }
        if self.screen.focus != View::Composer {
            self.screen.focus = View::Composer;
            self.screen.zoom = Zoom::Normal;
        }
        self.layers.is_empty()
    }

    /// Notes a printable key that was not for a question.
    pub(crate) fn wrote(&mut self) {
        self.keys.typed = Some(self.model.mono);
        self.questions.answering = false;
    }

    fn say_where_it_went(&mut self) {
        let key = self.keys.map.describe(Action("global.answer"), &self.scopes());
        let answer = key.map_or_else(String::new, |key| format!(": {key} answers the question"));
        self.say_of_keys(format!("You write a message{answer}"));
    }
}

#[cfg(test)]
#[path = "folded_tests.rs"]
mod tests;
