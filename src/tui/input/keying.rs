//! Routes keys: to a program's terminal, to the action that the key is bound to, else to the panel on top as text.

use crossterm::event::{KeyCode, KeyEvent};

use tiller_protocol::{Notice, NoticeKind};

use crate::app::App;
use crate::app::decisions::decides;
use crate::app::state::Owner;
use crate::input::burst::KeyUse;
use crate::input::dropped;
use crate::keymap::action::Action;
use crate::keymap::{Chord, Keymap, Lookup, show};
use crate::panel::composer::Composer;
use crate::panel::composer::content::is_block;
use crate::panel::composer::request::ComposerRequest;
use crate::panel::{KeyRouting, Letters, PanelEvent, PanelInput, Reply, View};

/// Actions that only move in a list.
const MOVES: &[&str] = &["list.down", "list.up", "list.page_down", "list.page_up", "list.first", "list.last"];

/// A key that a person presses to do something. Terminals also report locks, modifiers and media keys.
fn named(key: &KeyEvent) -> bool {
    matches!(
        key.code,
        KeyCode::Char(_)
            | KeyCode::F(_)
            | KeyCode::Enter
            | KeyCode::Tab
            | KeyCode::BackTab
            | KeyCode::Insert
            | KeyCode::Delete
            | KeyCode::Backspace
    )
}

impl App {
    /// A key was pressed.
    pub(crate) fn key(&mut self, key: &KeyEvent) {
        self.attended();
        if !self.at_question(key) {
            self.press(key);
        }
    }

    /// A key that is not held back: see [`crate::app::decisions`].
    pub(crate) fn press(&mut self, key: &KeyEvent) {
        let chord = Chord::of(key);
        if let Some(KeyRouting::Raw { release }) = self.status_of(self.top()).map(|s| s.keys) {
            self.keys.pending.clear();
            let bound = |m: &Keymap, scopes: &[&'static str], a| matches!(m.lookup(scopes, &[chord]), Lookup::Actions(all) if all.contains(&a));
            return match release.filter(|a| bound(&self.keys.map, &self.scopes(), *a)) {
                Some(action) => {
                    self.act(action);
                }
                None => {
                    self.text_key(key);
                }
            };
        }
        let scopes = self.scopes();
        // A letter that is a command in a list or a dialog is no draft.
        let field = scopes.first().and_then(|s| self.registry.words().scope(s)).is_some_and(|s| s.text);
        if field && chord.text().is_some() && self.layers.is_empty() {
            self.unhold();
        }
        let which = std::mem::take(&mut self.keys.which);
        self.keys.pending.push(chord);
        match self.keys.map.lookup(&scopes, &self.keys.pending) {
            Lookup::Prefix => {
                self.keys.since = self.model.mono;
                self.keys.which = which;
            }
            Lookup::Actions(actions) => {
                let keys = std::mem::take(&mut self.keys.pending);
                let mut all = actions.iter().copied();
                let done = all.any(|a| self.act(a)) || (keys.len() == 1 && self.text_key(key));
                if !done {
                    self.nothing_done(&actions, &keys);
                }
            }
            Lookup::Nothing => self.keys.pending.clear(),
            Lookup::None => {
                let keys = std::mem::take(&mut self.keys.pending);
                if keys.len() == 1 {
                    if !self.text_key(key) && named(key) {
                        self.unused(&keys);
                    }
                } else if !which && !self.is_escape(&scopes, chord) {
                    self.unused(&keys);
                }
            }
        }
    }

    /// True when this key alone is Escape here: it drops a sequence and does nothing else.
    fn is_escape(&self, scopes: &[&str], chord: Chord) -> bool {
        matches!(self.keys.map.lookup(scopes, &[chord]), Lookup::Actions(a) if a.contains(&Action("global.escape")))
    }

    /// The panel on top takes the key as text; `false`: it has no use for it.
    fn text_key(&mut self, key: &KeyEvent) -> bool {
        let top = self.top();
        match self.with(top, |p, m| p.input(PanelInput::Key(key), m)) {
            Some(Reply::Done(list)) => {
                self.effects(top, list);
                true
            }
            _ => {
                if Chord::of(key).text().is_some() {
                    self.typed_past();
                }
                false
            }
        }
    }

    /// Says why a bound key did nothing, with the reason of the panel that owns the action. A caret or list at its end
    /// needs no message.
    fn nothing_done(&mut self, actions: &[Action], keys: &[Chord]) {
        let seen = |a: &Action| {
            a.0.starts_with("edit.")
                || a.0.starts_with("composer.") && a.0 != "composer.now" && a.0 != "composer.queue"
        };
        if actions.iter().all(seen) {
            return;
        }
        match actions.iter().find_map(|a| self.disabled(*a)) {
            Some(why) => self.say_of_keys(why),
            None => self.unused(keys),
        }
    }

    fn unused(&mut self, keys: &[Chord]) {
        self.say_of_keys(format!("{} has no function here", show(keys)));
    }

    /// Shows a notice about a key in place of the last one.
    pub(crate) fn say_of_keys(&mut self, text: String) {
        self.toasts.push_about(self.model.mono, "keys", Notice::new(NoticeKind::Info, text));
    }

    /// Text was pasted, already cleaned.
    pub(crate) fn paste(&mut self, text: &str) {
        self.keys.pending.clear();
        self.write_held();
        if self.pastes_past() {
            return self.paste_at_question(text);
        }
        let top = self.top();
        if top == Owner::View(View::Composer) {
            self.wrote();
        }
        let reply = self.with(top, |p, m| p.input(PanelInput::Paste(text), m));
        if let Some(Reply::Done(list)) = reply {
            self.effects(top, list);
        } else if matches!(top, Owner::Layer(_)) {
            // A dialog that has no use for it.
            self.paste_at_question(text);
        } else if matches!(top, Owner::View(v) if v != View::Composer) {
            // Pasting with the focus in a pane means the composer: nothing else takes text.
            self.focus_composer();
            self.wrote();
            if let Some(Reply::Done(list)) =
                self.with(Owner::View(View::Composer), |p, m| p.input(PanelInput::Paste(text), m))
            {
                self.effects(Owner::View(View::Composer), list);
            }
        }
    }

    /// Keys came as fast as a paste: `typed` acted as keys, `text` is the rest, and `enter` may be one.
    pub(crate) fn burst(&mut self, typed: String, text: &str, enter: Option<KeyEvent>) {
        self.write_held();
        let composing = match self.top() {
            Owner::View(view) => view == View::Composer,
            top => self.status_of(top).is_some_and(|s| s.question.is_some() && s.letters != Letters::Write),
        };
        // A long one is a block, and the path of a picture is a picture: all of it, not all but its begin.
        let whole = typed.clone() + text;
        let block = composing && !typed.is_empty() && (is_block(&whole) || dropped::paths(&whole).is_some());
        let request = Box::new(ComposerRequest::TakeBack(typed));
        let taken = block
            && matches!(
                self.with(Owner::View(View::Composer), |p, m| p.handle(PanelEvent::Message(request), m)),
                Some(Reply::Done(_))
            );
        let text = if taken { &whole } else { text };
        if !text.is_empty() {
            self.paste(text);
        }
        let composer = self.panel(Owner::View(View::Composer)).map(|p| p as &dyn std::any::Any);
        let composer = composer.and_then(|p| p.downcast_ref::<Composer>());
        let command = composing && composer.is_some_and(Composer::is_command);
        if let Some(key) = enter.filter(|_| !command) {
            return self.key(&key);
        }
        if (enter.is_some() || text.ends_with('\n')) && self.top() == Owner::View(View::Composer) {
            let key = self.keys.map.describe(Action("composer.send"), &self.scopes());
            let key = key.unwrap_or_else(|| "Enter".into());
            self.say_of_keys(format!("Taken for a paste, as the keys came that fast: {key} sends it"));
        }
    }

    /// Returns what a key that stands for text does now: see [`crate::input::burst`].
    pub(crate) fn key_use(&self, key: &KeyEvent) -> KeyUse {
        let top = self.top();
        let Some(status) = self.status_of(top) else { return KeyUse::Text };
        if status.is_raw() {
            return KeyUse::Program;
        }
        let chord = Chord::of(key);
        let letter = chord.text().is_some();
        if !self.keys.pending.is_empty() {
            return KeyUse::Command;
        }
        // A letter at a question waits there.
        if status.question.is_some() {
            return if letter { KeyUse::Text } else { KeyUse::Decision };
        }
        let words = self.registry.words();
        let scope = words.scope(status.scope);
        let list = scope.is_some_and(|s| s.parent.is_some());
        let decides_here = self.layers.last().filter(|_| !list);
        let decides_here =
            decides_here.is_some_and(|l| l.panel().actions().iter().any(|s| decides(words, s.action)));
        let composer = top == Owner::View(View::Composer);
        let field = scope.is_some_and(|s| s.text) && status.scope != "vim";
        match self.keys.map.lookup(&self.scopes(), &[chord]) {
            _ if composer && (!letter || field && !status.empty) => KeyUse::Text,
            Lookup::None if field => KeyUse::Text,
            _ if composer && field || decides_here => KeyUse::Decision,
            Lookup::Actions(all) if all.iter().any(|a| decides(words, *a)) => KeyUse::Decision,
            Lookup::Actions(all) if all.iter().all(|a| MOVES.contains(&a.0)) => KeyUse::Move,
            _ => KeyUse::Command,
        }
    }
}
