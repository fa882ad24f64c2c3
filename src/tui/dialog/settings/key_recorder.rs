//! Binds another key to an action: pick the action, press the key, see which binding it replaces, save it. The person's
//! own `keys.toml` is written only when the map that results is right.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_config::ConfigError;
use tiller_protocol::{Notice, NoticeKind};

use crate::app::App;
use crate::app::effect::{Effect, Task, Token};
use crate::dialog::confirm;
use crate::dialog::picker::{Item, ListSpec, Picker, Source};
use crate::dialog::question::input_delay::InputDelay;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::keymap::{self, BindingTarget, Chord, Keymap, show};
use crate::model::Model;
use crate::panel::{
    DrawCx, Hint, KeyRouting, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply,
};
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::table::{Cell, Column};
use crate::widget::wrap::wrap;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("keys.open", "keys", "Bind another key to an action", |app| {
        Ok(Box::new(open(app)))
    })
    .menu(Menu::View)
    .keys(&["leader K"])],
    ..Dialog::NONE
};

/// Keys of one sequence at most.
const LONGEST: usize = 3;

/// The action, where it holds, and its keys.
const COLUMNS: &[Column] = &[Column::text("").grows(), Column::right("").rank(1), Column::key("")];

struct Actions {
    items: Vec<Item>,
    map: Arc<Keymap>,
}

/// The list of everything that can have a key.
pub(crate) fn open(app: &App) -> Picker {
    let map = Arc::clone(&app.keys.map);
    let mut items = Vec::new();
    for (group, s) in map.words().actions() {
        let homes = homes(&map, group, s.action);
        for home in homes {
            let place = map.words().scope(home).map_or(home, |s| s.title);
            let keys: Vec<String> = map
                .scope(home)
                .iter()
                .filter(|b| matches!(&b.does, BindingTarget::Actions(a) if a.contains(&s.action)))
                .map(|b| show(&b.keys))
                .collect();
            let mut item = Item::new(format!("{home} {}", s.action.0), s.help);
            item = item.group(group).detail(place).cell(Cell::new(keys.join(", "), Role::Accent));
            item.more = format!("{} {} {group}", s.action.0, s.label);
            items.push(item);
        }
    }
    Picker::new(Actions { items, map })
}

/// Sections in which the action has keys; without any, everywhere.
fn homes(map: &Keymap, group: &str, action: Action) -> Vec<&'static str> {
    let bound = |s: &&Scope| {
        map.scope(s.name).iter().any(|b| matches!(&b.does, BindingTarget::Actions(a) if a.contains(&action)))
    };
    let mut all: Vec<&'static str> = map.words().scopes().iter().filter(bound).map(|s| s.name).collect();
    if all.is_empty() {
        all.push(if group == "Composer" { "composer" } else { "global" });
    }
    all
}

impl Source for Actions {
    fn title(&self) -> String {
        "Rebind which action?".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { columns: COLUMNS, verb: "rebind", ..ListSpec::default() }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.items.clone()
    }

    fn choose(&mut self, item: &Item, model: &Model) -> Vec<Effect> {
        let Some((home, id)) = item.id.split_once(' ') else { return Vec::new() };
        let (Some(home), Some(spec)) = (self.map.words().scope(home), self.map.words().find(id)) else {
            return Vec::new();
        };
        let file = model.environment.folders.config.as_ref().map(|f| f.join("keys.toml"));
        vec![Effect::Push(Box::new(Recorder::new(home, *spec, Arc::clone(&self.map), file)))]
    }
}

/// The dialog.
pub struct Recorder {
    home: &'static Scope,
    spec: ActionSpec,
    map: Arc<Keymap>,
    file: Option<PathBuf>,
    keys: Vec<Chord>,
    /// Keys are recorded; afterwards they are commands of the dialog.
    listening: bool,
    /// The action of the key, or why it cannot be bound.
    says: Result<String, String>,
    writing: bool,
    /// Counts from the frame that shows what the key would do.
    delay: InputDelay,
    /// Enter was pressed, which keeps nothing.
    enter: bool,
}

impl Recorder {
    fn new(home: &'static Scope, spec: ActionSpec, map: Arc<Keymap>, file: Option<PathBuf>) -> Self {
        let says = Ok(String::new());
        let (keys, delay) = (Vec::new(), InputDelay::default());
        Self { home, spec, map, file, keys, listening: true, says, writing: false, delay, enter: false }
    }

    /// As in a key file: the leader by its name, so that it may be another one some day.
    fn text(&self) -> String {
        let mut words: Vec<String> = self.keys.iter().map(Chord::to_string).collect();
        if let Some(first) = words.first_mut().filter(|_| self.keys[0] == self.map.leader) {
            *first = "leader".into();
        }
        words.join(" ")
    }

    /// Tells what these keys do now, and what binding them changes.
    fn look(&self) -> Result<String, String> {
        if let [one] = self.keys[..]
            && self.home.text
            && one.text().is_some()
        {
            return Err(format!("'{}' types a letter there; use a key with Ctrl or Alt", one.shown()));
        }
        let names = |does: &BindingTarget| match does {
            BindingTarget::Actions(a) => a
                .iter()
                .map(|a| self.map.words().find(a.0).map_or(a.0, |s| s.help))
                .collect::<Vec<_>>()
                .join(", then "),
            BindingTarget::Nothing => "nothing".into(),
        };
        for (n, name) in self.map.words().chain(self.home.name).into_iter().enumerate() {
            let Some(b) = self.map.scope(name).iter().find(|b| b.keys == self.keys) else { continue };
            if matches!(&b.does, BindingTarget::Actions(a) if a.first() == Some(&self.spec.action)) {
                return Err("That key is already bound to this action".into());
            }
            let place = self.map.words().scope(name).map_or(name, |s| s.title);
            return Ok(match n {
                0 => format!("This replaces: {}.", names(&b.does)),
                _ => format!("This hides: {} ({place}).", names(&b.does)),
            });
        }
        Ok("This key is free.".into())
    }

    fn finish(&mut self) -> Reply {
        let Some(file) = self.file.clone() else {
            self.says = Err("There is no configuration folder".into());
            return Reply::done();
        };
        if self.writing || self.says.is_err() {
            return Reply::done();
        }
        self.writing = true;
        let (map, home) = (Arc::clone(&self.map), self.home.name);
        let (keys, id) = (self.text(), self.spec.action.0);
        let job = move || Box::new(keep(&map, &file, home, &keys, id)) as Box<dyn Any + Send>;
        Reply::with(Effect::Task(Task::Job(Box::new(job), Token(1))))
    }
}

/// Writes the binding into the person's file, if the map that results is right. Slow: only in a job.
fn keep(map: &Keymap, file: &Path, home: &str, keys: &str, id: &str) -> Result<(), String> {
    let name = file.display().to_string();
    let changed = tiller_config::change_private(file, |old| {
        let load = |overlay| keymap::load_with(map.words(), &map.preset, Some(overlay), &map.plugins);
        load((&name, old)).map_err(|e| ConfigError::Refused(format!("the key file has an error: {e}")))?;
        let new = tiller_config::set_entry(old, home, keys, &id.into())?;
        load((&name, &new)).map_err(|e| ConfigError::Refused(e.message))?;
        Ok(Some(new))
    });
    changed.map_err(|e| e.to_string())
}

impl Panel for Recorder {
    fn status(&self, _model: &Model) -> PanelStatus {
        let keys = if self.listening { KeyRouting::Raw { release: None } } else { KeyRouting::Bound };
        PanelStatus { keys, ..PanelStatus::new("confirm") }
    }

    fn title(&self, _model: &Model) -> String {
        format!("Bind a key to: {}", self.spec.label)
    }

    fn actions(&self) -> &'static [ActionSpec] {
        confirm::ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Center { width: 64, height: 9 }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            // What the key would take away is read first.
            "confirm.yes" if !self.delay.is_over(model) => {}
            "confirm.yes" => return self.finish(),
            // The keys were typed without looking, perhaps; Enter is part of that.
            "confirm.press" => self.enter = true,
            "confirm.no" => return Reply::with(Effect::Pop),
            "confirm.other" if !self.writing => {
                self.keys.clear();
                self.listening = true;
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::JobDone(_, result) => self.on_job(result),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.listening {
            return Vec::new();
        }
        let mut all = Vec::new();
        if self.says.is_ok() {
            all.push(Hint::as_("confirm.yes", "keep"));
        }
        all.extend([Hint::as_("confirm.other", "another key"), Hint::as_("confirm.no", "cancel")]);
        all
    }

    fn measure(&mut self, _area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.delay.note_drawn(cx);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        let home = format!("{} ({}, {})", self.spec.help, self.home.title, self.spec.action.0);
        let pressed = if self.keys.is_empty() { String::new() } else { show(&self.keys) };
        let mut rows: Vec<(String, Role)> =
            wrap(&home, usize::from(area.width)).into_iter().take(2).map(|l| (l, Role::Text)).collect();
        rows.push((String::new(), Role::Text));
        if self.listening {
            let more = if pressed.is_empty() { "Press the key" } else { "Press the next key" };
            rows.push((format!("{pressed}  {more}   (Esc: cancel)"), Role::Strong));
        } else {
            rows.push((pressed, Role::Strong));
            let (words, role) = match &self.says {
                Ok(words) => (words, Role::Text),
                Err(words) => (words, Role::Error),
            };
            rows.extend(wrap(words, usize::from(area.width)).into_iter().map(|l| (l, role)));
            if self.enter && self.says.is_ok() {
                rows.push((format!("To keep it, press {}", cx.key("confirm.yes")), Role::Waiting));
            }
        }
        for (y, (words, role)) in rows.iter().take(usize::from(area.height)).enumerate() {
            let row = Rect { y: area.y + y as u16, height: 1, ..area };
            draw::text(buf, row, words, cx.theme.style(*role));
        }
    }
}

impl Recorder {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        if !self.listening {
            return Reply::Ignored;
        }
        if key.code == KeyCode::Esc {
            return Reply::with(Effect::Pop);
        }
        self.keys.push(Chord::of(key));
        // A key that begins others waits for the next one.
        let scopes = self.map.words().chain(self.home.name);
        let prefix = self.map.lookup(&scopes, &self.keys) == keymap::Lookup::Prefix;
        self.listening = self.keys.len() < LONGEST && (prefix || self.keys[..] == [self.map.leader]);
        if !self.listening {
            self.says = self.look();
            self.enter = false;
            self.delay.restart();
        }
        Reply::done()
    }

    fn on_job(&mut self, result: Box<dyn Any + Send>) -> Reply {
        let Ok(result) = result.downcast::<Result<(), String>>() else { return Reply::Ignored };
        self.writing = false;
        match *result {
            Ok(()) => {
                let text = format!("{} is now: {}", show(&self.keys), self.spec.help);
                let said = Notice::new(NoticeKind::Info, text);
                Reply::Done(vec![Effect::Pop, Effect::Task(Task::Reload), Effect::Toast(said)])
            }
            Err(why) => {
                self.says = Err(why);
                Reply::done()
            }
        }
    }
}

#[cfg(test)]
#[path = "key_recorder_tests.rs"]
mod tests;
