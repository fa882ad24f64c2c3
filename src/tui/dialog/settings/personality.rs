//! `/personality`: a ready-made character, or an earlier one, for SOUL.md. The difference is shown before it is written.

use std::any::Any;
use std::path::{Path, PathBuf};

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_config::soul::{self, PERSONALITIES};
use tiller_protocol::{Notice, NoticeKind};

use crate::app::App;
use crate::app::effect::{Effect, Job, Task, Token};
use crate::dialog::confirm;
use crate::dialog::picker::{Item, ListSpec, Picker, Source};
use crate::dialog::reader::text::Text;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply};
use crate::registry::{Dialog, Opener};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("personality.open", "personality", "Choose how the agent speaks: SOUL.md", open)
        .menu(Menu::View)],
    scopes: &[Scope::new("personality", Some("text"), "Personality", false)
        .keys(&[("y", "confirm.yes"), ("n", "confirm.no")])],
    ..Dialog::NONE
};

/// When a change shows: the prefix stays as it is between two compactions.
const WHEN: &str = "SOUL.md is written. It takes effect in the next session, or when this one is compacted";

/// A text for SOUL.md.
#[derive(Clone, Debug)]
struct Character {
    id: String,
    name: String,
    about: String,
    text: String,
}

struct Characters {
    config: PathBuf,
    /// The text in force.
    now: String,
    all: Vec<Character>,
}

fn open(app: &App) -> Result<Box<dyn Panel>, String> {
    let config = app.model.environment.folders.config.clone();
    let config = config.ok_or("There is no settings folder, so nothing can be kept")?;
    Ok(Box::new(Picker::new(characters(&config)?)))
}

/// The ready-made characters, none, and those that were in force. Reads some small files of the settings folder, as the
/// reading of keys and themes does.
fn characters(config: &Path) -> Result<Characters, String> {
    let now = soul::soul(config)?;
    let made = PERSONALITIES.iter().map(|p| Character {
        id: p.name.into(),
        name: capital(&p.name.replace('-', " ")),
        about: String::new(),
        text: p.text.into(),
    });
    let none = Character {
        id: "none".into(),
        name: "None".into(),
        about: "as built in".into(),
        text: String::new(),
    };
    let earlier = soul::earlier(config).into_iter().map(|(n, text)| Character {
        id: format!("earlier {n}"),
        name: format!("Earlier {n}"),
        about: "kept".into(),
        text,
    });
    let mut all: Vec<Character> = made.chain([none]).collect();
    if !now.trim().is_empty() && !all.iter().any(|c| c.text == now) {
        let (id, name) = ("yours".to_owned(), "Yours".to_owned());
        all.insert(0, Character { id, name, about: "SOUL.md as it is".into(), text: now.clone() });
    }
    all.extend(earlier);
    Ok(Characters { config: config.to_owned(), now, all })
}

/// With a capital letter.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

impl Source for Characters {
    fn title(&self) -> String {
        "Personality".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { verb: "look at the change", ..ListSpec::default() }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let mut in_force = false;
        let row = |c: &Character| {
            // An earlier text may be that of a ready-made one: one row is the current one.
            let current = !in_force && c.text.trim() == self.now.trim();
            in_force |= current;
            Item::new(&c.id, &c.name).detail(&c.about).current(current)
        };
        self.all.iter().map(row).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        let Some(chosen) = self.all.iter().find(|c| c.id == item.id) else { return Vec::new() };
        if chosen.text == self.now {
            return vec![say(NoticeKind::Info, format!("{} is in force already", chosen.name))];
        }
        let review = SoulReview::new(self.config.clone(), self.now.clone(), chosen.clone());
        vec![Effect::Push(Box::new(review))]
    }

    fn preview(&self, item: &Item) -> Option<String> {
        let chosen = self.all.iter().find(|c| c.id == item.id)?;
        Some(match chosen.text.is_empty() {
            true => "Removes SOUL.md: the agent is as it was built.".into(),
            false => chosen.text.clone(),
        })
    }
}

fn say(kind: NoticeKind, text: impl Into<String>) -> Effect {
    Effect::Toast(Notice::new(kind, text.into()))
}

/// The change of SOUL.md as a unified difference.
fn difference(old: &str, new: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let from = |n: usize| usize::from(n > 0);
    let mut out =
        format!("@@ -{},{} +{},{} @@\n", from(before.len()), before.len(), from(after.len()), after.len());
    before.iter().for_each(|l| out.push_str(&format!("-{l}\n")));
    after.iter().for_each(|l| out.push_str(&format!("+{l}\n")));
    out
}

/// The question whether the change is written.
struct SoulReview {
    config: PathBuf,
    now: String,
    chosen: Character,
    shown: Text,
    writing: bool,
}

impl SoulReview {
    fn new(config: PathBuf, now: String, chosen: Character) -> Self {
        let diff = difference(&now, &chosen.text);
        let shown = Text::diff("Write SOUL.md", &diff);
        Self { config, now, chosen, shown, writing: false }
    }

    fn write(&mut self) -> Reply {
        if self.writing {
            return Reply::done();
        }
        self.writing = true;
        let (config, now, text) = (self.config.clone(), self.now.clone(), self.chosen.text.clone());
        let job: Job = Box::new(move || Box::new(soul::replace(&config, &now, &text)) as Box<dyn Any + Send>);
        Reply::with(Effect::Task(Task::Job(job, Token(1))))
    }
}

impl Panel for SoulReview {
    fn status(&self, model: &Model) -> PanelStatus {
        let inner = self.shown.status(model);
        match inner.scope {
            "text" => PanelStatus { scope: "personality", ..inner },
            _ => inner,
        }
    }

    fn title(&self, _model: &Model) -> String {
        format!("Write SOUL.md: {}", self.chosen.name.to_lowercase())
    }

    fn actions(&self) -> &'static [ActionSpec] {
        confirm::ACTIONS
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            "confirm.yes" => self.write(),
            "confirm.no" => Reply::with(Effect::Pop),
            _ => self.shown.act(action, model),
        }
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        self.shown.input(input, model)
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        let PanelEvent::JobDone(_, result) = event else { return Reply::Ignored };
        let Ok(result) = result.downcast::<Result<(), String>>() else { return Reply::Ignored };
        let told = match *result {
            Ok(()) => say(NoticeKind::Info, WHEN),
            Err(why) => say(NoticeKind::User, format!("SOUL.md was not written: {why}")),
        };
        Reply::Done(vec![Effect::Pop, told])
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        let mut all = vec![Hint::as_("confirm.yes", "write"), Hint::as_("confirm.no", "cancel")];
        all.extend(self.shown.hints(model));
        all
    }

    fn placement(&self, columns: u16, model: &Model) -> Placement {
        self.shown.placement(columns, model)
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.shown.measure(area, cx)
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.shown.draw(cx, area, buf);
    }

    fn cursor(&self, area: Rect, model: &Model) -> Option<Position> {
        self.shown.cursor(area, model)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::app::msg::Msg;
    use crate::testing::Robot;

    fn opened(config: &Path, width: u16, height: u16) -> Robot {
        let mut r = Robot::new(width, height);
        r.app.model.environment.folders.config = Some(config.to_owned());
        assert!(r.app.act(Action("personality.open")));
        r.wait(Duration::from_secs(5));
        r
    }

    /// Runs the job that was requested.
    fn work(r: &mut Robot) {
        let at = r.tasks.iter().position(|t| matches!(t, Task::Job(..))).expect("a job");
        let Task::Job(job, token) = r.tasks.remove(at) else { panic!() };
        r.msg(Msg::Job(token, job()));
    }

    #[test]
    fn a_character_is_shown_then_its_change_and_then_written_and_can_be_undone() {
        for (width, height) in [(118, 25), (80, 24)] {
            let tmp = tempfile::tempdir().unwrap();
            std::fs::write(tmp.path().join("SOUL.md"), "Speak like a sailor.\n").unwrap();
            let mut r = opened(tmp.path(), width, height);
            assert!(
                r.screen().contains("Yours") && r.screen().contains("Speak like a sailor"),
                "{}",
                r.screen()
            );
            r.run("type teacher");
            assert!(r.screen().contains("You are a patient teacher"), "{}", r.screen());
            r.run("enter").wait(Duration::from_secs(5));
            let screen = r.screen();
            assert!(
                screen.contains("Speak like a sailor.") && screen.contains("You are a patient teacher"),
                "{screen}"
            );
            assert!(r.footer().contains("write"), "{}", r.footer());
            // Nothing is written before the answer, and nothing by no.
            let now = || std::fs::read_to_string(tmp.path().join("SOUL.md")).unwrap();
            r.run("n");
            assert!(now().contains("sailor") && r.app.layers.is_empty());
            let mut r = opened(tmp.path(), width, height);
            r.run("type teacher; enter").wait(Duration::from_secs(5)).run("y");
            work(&mut r);
            assert!(now().contains("patient teacher"));
            assert!(r.screen().contains("takes effect in the next session"), "{}", r.screen());
            // Undone by choosing the earlier one.
            let mut r = opened(tmp.path(), width, height);
            r.run("type Earlier; enter").wait(Duration::from_secs(5)).run("y");
            work(&mut r);
            assert_eq!(now(), "Speak like a sailor.\n");
        }
    }

    #[test]
    fn none_removes_the_file_and_a_change_from_outside_is_not_overwritten() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("SOUL.md");
        std::fs::write(&file, "one\n").unwrap();
        let mut r = opened(tmp.path(), 118, 25);
        r.run("type None; enter").wait(Duration::from_secs(5)).run("y");
        std::fs::write(&file, "two\n").unwrap();
        work(&mut r);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
        assert!(r.screen().contains("has changed meanwhile"), "{}", r.screen());
        let mut r = opened(tmp.path(), 118, 25);
        r.run("type None; enter").wait(Duration::from_secs(5)).run("y");
        work(&mut r);
        assert!(!file.exists());
        assert_eq!(soul::earlier(tmp.path()), [(1, "two\n".to_owned())]);
    }
}
