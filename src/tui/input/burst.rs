//! Tells a paste that the terminal does not mark from typing: its keys follow each other faster than a person types, with
//! more behind a line end. Then all of it is one paste, and no key in it acts. A line end behind a single line is the
//! Enter of a script, unless the line is a command: that one waits for the Enter of a person. Many ways to paste have no marks: mosh,
//! `tmux paste-buffer`, dictation. Once a marked paste has come, each key is itself.
//!
//! Keys that a person types are not delayed. A key of a text acts at once, since a paste would insert it as well; a line end
//! waits only directly behind a fast key, and a key that decides in a dialog for a moment. Times are given: [`Bursts`] is
//! pure.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};

use super::Input;

/// Keys that follow each other faster belong together. A fast typist needs 30 ms, a paste over ssh up to 20 ms a key.
const GAP: Duration = Duration::from_millis(28);

/// Silence that ends a paste: its keys may come in pieces, and a person needs longer to
/// go on.
const TAIL: Duration = Duration::from_millis(100);

/// A single line that comes so soon behind a paste is the rest of it: a slow connection parts it.
const REST: Duration = Duration::from_millis(1000);

/// Keys of one piece, at most, that are expected to have been on their way one behind the other.
const PIECE: usize = 5;

/// A key that is held down comes again within this time.
const REPEAT: Duration = Duration::from_millis(700);

/// Keys that have waited while the program was busy were typed when there was at least so much time for each.
const TYPIST: Duration = Duration::from_millis(60);

/// So many keys without a line end are one paste, where they are text and where they are commands.
const LONG: usize = 32;
const WORDS: usize = 8;

/// Bytes of one paste that are kept.
const MOST: usize = 64 << 20;

/// The use of a key that stands for text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// It goes to a program's own terminal.
    Program,
    /// It is inserted into a text; a line end acts.
    Text,
    /// It moves in a list.
    Move,
    /// It does something else in a list or pane.
    Command,
    /// It may decide something.
    Decision,
}

/// When a key came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The earliest time at which it may have come, and the latest (monotonic).
    pub(crate) since: Duration,
    pub(crate) at: Duration,
    /// Keys that stand for text and came together with it, itself and those behind it.
    pub(crate) together: usize,
}

/// When these came that were read together at `now`, the first not before `since`.
pub(crate) fn arrivals(inputs: &[Input], since: Duration, now: Duration) -> Vec<Arrival> {
    let is_text = |i: &Input| matches!(i, Input::Key(key) if character(key).is_some());
    let count = inputs.iter().filter(|i| is_text(i)).count();
    // What has a line end inside may be a paste: nothing tells that its keys did not come at once.
    let ends = |i: &Input| matches!(i, Input::Key(key) if character(key) == Some('\n'));
    let inside = inputs.iter().skip_while(|i| !ends(i)).any(|i| is_text(i) && !ends(i));
    let each = now.saturating_sub(since) / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    let (mut left, mut first) = (count, since);
    let one = |input: &Input| {
        let together = left;
        left -= usize::from(is_text(input));
        if each >= TYPIST && !inside {
            let at = now.saturating_sub(each * u32::try_from(left).unwrap_or(u32::MAX));
            return Arrival { since: at, at, together: 1 };
        }
        Arrival { since: std::mem::replace(&mut first, now), at: now, together }
    };
    inputs.iter().map(one).collect()
}

/// Keys that came fast, one behind the other.
#[derive(Debug, Default)]
struct Burst {
    count: usize,
    first: Option<KeyEvent>,
    /// They are not all the same key.
    varied: bool,
    /// The last one is a line end or a tab.
    ends: Option<KeyEvent>,
    /// Something came behind a line end or a tab.
    inside: bool,
    commands: bool,
    decides: bool,
    /// When the last one came.
    last: Duration,
    /// Those that acted at once.
    typed: String,
    /// They moved in a list, and are in no text.
    moved: bool,
    /// Those that wait; behind a text they are keys that are none, and act when no more of it comes.
    held: Vec<KeyEvent>,
    /// It is a paste: the text of those that wait.
    text: Option<PastedText>,
}

impl Burst {
    /// A key comes, which stands for `c`.
    fn follow(&mut self, key: &KeyEvent, c: char) {
        // A carriage return and a line feed are one line end.
        if key.code == KeyCode::Char('j') && c == '\n' && self.ends.is_some_and(|e| e.code == KeyCode::Enter)
        {
            return;
        }
        self.inside |= self.ends.is_some();
        self.ends = matches!(c, '\n' | '\t').then_some(*key);
    }

    fn is_paste(&self) -> bool {
        let enough = match self {
            Self { decides: true, .. } => 2,
            Self { inside: true, .. } => 3,
            Self { commands: true, .. } => WORDS,
            _ => LONG,
        };
        self.count >= enough && (self.varied || self.decides)
    }

    /// Those that wait are text from now on. Control characters in it are dropped.
    fn begin(&mut self) {
        let pasted = self.text.get_or_insert_default();
        for key in self.held.drain(..).map(|key| plain(&key)) {
            if let Some(c) = character(&key) {
                pasted.push(c, &key);
            }
        }
    }

    /// It is a paste for sure: no line that waits for its Enter.
    fn is_pasted(&self) -> bool {
        self.text.is_some() && self.enter().is_none()
    }

    /// A key that is no text may be a part of it: what comes behind it tells.
    fn takes(&self, key: &KeyEvent) -> bool {
        let waits = self.text.is_some() || !self.held.is_empty();
        !edits(key) && (self.is_pasted() || waits && (is_control(key) || character(&plain(key)).is_some()))
    }

    /// Takes such a key, or one of a text that has begun.
    fn add(&mut self, key: KeyEvent, at: Duration) {
        self.last = at;
        let text = plain(&key);
        match character(&text) {
            // An escape before it is a control character of the text.
            Some(c) if self.text.is_some() && (text == key || self.is_pasted()) => {
                self.count += 1;
                self.follow(&text, c);
                self.held.push(text);
                self.begin();
            }
            None if self.is_pasted() && is_control(&key) => {}
            _ => self.held.push(key),
        }
    }

    /// True when the next input belongs to a text, whatever it is.
    fn is_text(&self) -> bool {
        self.text.is_some() || self.enter().is_some()
    }

    /// The line end behind a single line, of a text: a script sends its message so.
    fn enter(&self) -> Option<KeyEvent> {
        let line = !self.inside && !self.decides && !self.commands && self.count >= 3 && self.varied;
        self.ends.filter(|key| line && key.code == KeyCode::Enter)
    }

    /// How long the keys that wait still wait after the last one.
    fn wait(&self) -> Duration {
        let surely =
            self.text.is_some() || self.decides || self.count > 1 && (self.inside || self.ends.is_some());
        if surely { TAIL } else { GAP }
    }

    /// How soon after the last key the next one must come to belong to it.
    fn reach(&self, next: &Arrival) -> Duration {
        // A person types two keys so, and a key behind which nothing of the text came.
        let key = self.held.last().is_some_and(|key| character(key).is_none());
        let surely = self.is_text() && (self.count > 2 || self.inside) && !key;
        let pieces = if self.count > 1 || self.decides { next.together.clamp(1, PIECE) } else { 1 };
        let piece = GAP * u32::try_from(pieces).unwrap_or(1);
        if surely { TAIL.max(piece) } else { piece }
    }
}

/// Keys as the text that they stand for.
#[derive(Debug, Default)]
struct PastedText {
    text: String,
    /// The last one was a carriage return.
    carriage: bool,
}

impl PastedText {
    fn push(&mut self, c: char, key: &KeyEvent) {
        let feed = key.code == KeyCode::Char('j') && c == '\n';
        if !(feed && self.carriage) && self.text.len() < MOST {
            self.text.push(c);
        }
        self.carriage = key.code == KeyCode::Enter;
    }
}

/// The keys of one terminal.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// A marked paste has come: the terminal marks them.
    marked: bool,
    burst: Burst,
    /// The last key, if no other one belonged to it, and when it came: it may be held down.
    alone: Option<(KeyEvent, Duration)>,
    /// When the last paste of several lines ended.
    pasted: Option<Duration>,
}

impl Bursts {
    /// When the keys that wait are over (monotonic); `None`: none waits.
    pub(crate) fn due(&self) -> Option<Duration> {
        let waits = self.burst.text.is_some() || !self.burst.held.is_empty();
        waits.then(|| self.burst.last + self.burst.wait())
    }

    /// Returns what has ended before this input came. It is to be carried out before [`Bursts::take`].
    pub(crate) fn before(&mut self, input: &Input, arrival: &Arrival) -> Vec<Input> {
        let silence = arrival.since.saturating_sub(self.burst.last);
        let over = match input {
            Input::Key(key) if key.kind == KeyEventKind::Release => false,
            Input::Key(key) if character(key).is_some() => silence >= self.burst.reach(arrival),
            // A program that dictates corrects itself.
            Input::Key(key) => silence >= GAP || !self.burst.takes(key),
            Input::Mouse(mouse) => matches!(mouse.kind, MouseEventKind::Down(_)),
            Input::Paste(_) => true,
            _ => false,
        };
        // What is corrected goes on.
        let goes_on = matches!(input, Input::Key(key) if edits(key)) && self.burst.inside && silence < GAP;
        let ended = if over { self.end() } else { Vec::new() };
        if goes_on {
            (self.burst.inside, self.burst.last) = (true, arrival.at);
        }
        ended
    }

    /// Takes an input; returns what is to be carried out. `use_of`: what a key does now.
    pub(crate) fn take(
        &mut self,
        input: Input,
        arrival: &Arrival,
        use_of: impl FnOnce(&KeyEvent) -> KeyUse,
    ) -> Vec<Input> {
        self.marked |= matches!(input, Input::Paste(_));
        let Input::Key(key) = input else { return vec![input] };
        if self.marked || key.kind == KeyEventKind::Release {
            return vec![input];
        }
        let c = character(&key);
        let taken = if c.is_none() { self.burst.takes(&key) } else { self.burst.text.is_some() };
        if taken {
            self.burst.add(key, arrival.at);
            return Vec::new();
        }
        let Some(c) = c else { return vec![input] };
        let means = use_of(&key);
        if means == KeyUse::Program {
            let mut all = self.end();
            all.push(input);
            return all;
        }
        let breaks = matches!(c, '\n' | '\t');
        let b = &mut self.burst;
        b.follow(&key, c);
        b.varied |= b.first.is_some_and(|first| first != key);
        let again = |(alone, at): &(KeyEvent, Duration)| {
            !b.varied && *alone == key && arrival.since.saturating_sub(*at) < REPEAT
        };
        self.alone = self.alone.filter(again).map(|_| (key, arrival.at));
        b.first.get_or_insert(key);
        (b.count, b.last) = (b.count + 1, arrival.at);
        b.decides |= means == KeyUse::Decision;
        b.commands |= matches!(means, KeyUse::Move | KeyUse::Command);
        let acts = match means {
            _ if self.alone.is_some() => true,
            KeyUse::Text if breaks => b.count == 1 && arrival.together <= 1,
            KeyUse::Text => !b.is_paste(),
            KeyUse::Move => arrival.together <= 1 && !b.is_paste(),
            _ => false,
        };
        if acts && b.held.is_empty() {
            b.moved |= means == KeyUse::Move;
            b.typed.extend((!breaks).then_some(c));
            return vec![input];
        }
        b.held.push(key);
        if !b.is_paste() {
            return Vec::new();
        }
        b.begin();
        vec![Input::BurstBegins]
    }

    /// Ends what waits: no more came, or something else did.
    pub(crate) fn end(&mut self) -> Vec<Input> {
        let mut behind = Vec::new();
        if self.burst.is_text() {
            let held = std::mem::take(&mut self.burst.held).into_iter();
            (self.burst.held, behind) = held.partition(|key| character(key).is_some());
        }
        let soon = self.pasted.is_some_and(|at| self.burst.last.saturating_sub(at) < REST);
        if soon && self.burst.enter().is_some() {
            // It does not count as a paste itself: else lines that come steadily would never be sent.
            self.burst.inside = true;
            self.burst.begin();
        } else if self.burst.inside && self.burst.text.is_some() {
            self.pasted = Some(self.burst.last);
        }
        let enter = self.burst.enter();
        let Burst { first, varied, last, typed, moved, held, text, .. } = std::mem::take(&mut self.burst);
        if let Some(key) = first {
            self.alone = (!varied).then_some((key, last));
        }
        let mut ended = match text.map(|pasted| pasted.text) {
            Some(text) if moved => {
                vec![Input::Burst { typed: String::new(), text: typed + &text, enter: None }]
            }
            Some(mut text) => {
                enter.and_then(|_| text.pop());
                vec![Input::Burst { typed, text, enter }]
            }
            None if enter.is_some() => vec![Input::Burst { typed, text: String::new(), enter }],
            None => held.into_iter().map(Input::Key).collect(),
        };
        ended.extend(behind.into_iter().map(Input::Key));
        ended
    }
}

/// The character that a key stands for in a text.
fn character(key: &KeyEvent) -> Option<char> {
    match (key.code, key.modifiers) {
        (KeyCode::Char('j'), KeyModifiers::CONTROL) => Some('\n'),
        (KeyCode::Char(c), KeyModifiers::NONE | KeyModifiers::SHIFT) => Some(c),
        (KeyCode::Enter, KeyModifiers::NONE) => Some('\n'),
        (KeyCode::Tab, KeyModifiers::NONE) => Some('\t'),
        _ => None,
    }
}

/// The key without the escape before it.
fn plain(key: &KeyEvent) -> KeyEvent {
    KeyEvent { modifiers: key.modifiers - KeyModifiers::ALT, ..*key }
}

/// Control characters of a text come as these.
fn is_control(key: &KeyEvent) -> bool {
    matches!(key.code, KeyCode::Char(_)) && key.modifiers == KeyModifiers::CONTROL
}

/// Keys that edit where they stand, and do nothing else.
fn edits(key: &KeyEvent) -> bool {
    let plain = matches!(
        key.code,
        KeyCode::Backspace | KeyCode::Delete | KeyCode::Left | KeyCode::Right | KeyCode::Home | KeyCode::End
    );
    plain || key.code == KeyCode::Char('h') && key.modifiers == KeyModifiers::CONTROL
}

#[cfg(test)]
#[path = "burst_tests.rs"]
mod tests;
