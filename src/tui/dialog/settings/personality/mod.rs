//! `/personality`: what agents propose for SOUL.md and for their own definitions, ready-made characters, and earlier texts.
//! The difference is shown before anything is written.

mod review;

use std::any::Any;
use std::path::{Path, PathBuf};

use tiller_config::proposals::{self, Proposal};
use tiller_config::soul::{self, CharacterFile, PERSONALITIES};
use tiller_protocol::notice::capital;
use tiller_protocol::{Notice, NoticeKind, Taint};

use crate::app::App;
use crate::app::effect::{Effect, Job, Task, Token};
use crate::dialog::picker::{Item, LateRows, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::Panel;
use crate::registry::{Dialog, Opener};

use review::CharacterReview;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("personality.open", "personality", "Choose how the agent speaks: SOUL.md", open)
        .menu(Menu::View)],
    groups: &[("Personality", review::PROPOSAL_ACTIONS)],
    scopes: &[Scope::new("personality", Some("text"), "Personality", false).keys(&[
        ("y", "confirm.yes"),
        ("n", "confirm.no"),
        ("e", "personality.edit"),
        ("d", "personality.decline"),
    ])],
    ..Dialog::NONE
};

/// A text for SOUL.md or for the definition of an agent.
#[derive(Clone, Debug)]
struct Character {
    id: String,
    name: String,
    about: String,
    text: String,
    file: CharacterFile,
    /// The proposal that it is; `None`: a text of the user's, or a ready-made one.
    proposal: Option<Proposal>,
}

impl Character {
    /// Of its file, for people.
    fn label(&self) -> String {
        if self.file.is_soul() { "SOUL.md".into() } else { self.file.path.display().to_string() }
    }
}

struct Characters {
    config: PathBuf,
    texts: Texts,
    loaded: bool,
}

/// The texts of the files.
#[derive(Default)]
struct Texts {
    /// SOUL.md as it is in force.
    now: String,
    all: Vec<Character>,
}

/// The files that a job has read.
enum FilesRead {
    /// All texts of the list.
    List(Result<Texts, String>),
    /// A chosen text, as its file has it now.
    Chosen(Box<Character>, Result<String, String>),
}

fn open(app: &App) -> Result<Box<dyn Panel>, String> {
    let config = app.model.environment.folders.config.clone();
    let config = config.ok_or("There is no settings folder, so nothing can be kept")?;
    Ok(Box::new(Picker::new(Characters { config, texts: Texts::default(), loaded: false })))
}

/// Proposals, the ready-made characters, none, and those that were in force. Blocks.
fn characters(config: &Path) -> Result<Texts, String> {
    let soul = CharacterFile::soul(config);
    let now = soul.text()?;
    let character = |id: &str, name: &str, about: &str, text: String| Character {
        id: id.into(),
        name: name.into(),
        about: about.into(),
        text,
        file: soul.clone(),
        proposal: None,
    };
    let made = PERSONALITIES
        .iter()
        .map(|p| character(p.name, &capital(&p.name.replace('-', " ")), "", p.text.into()));
    let none = character("none", "None", "as built in", String::new());
    let mut all: Vec<Character> = made.chain([none]).collect();
    if !now.trim().is_empty() && !all.iter().any(|c| c.text == now) {
        all.insert(0, character("yours", "Yours", "SOUL.md as it is", now.clone()));
    }
    let proposed = proposals::waiting(config).into_iter().enumerate();
    all.splice(0..0, proposed.map(|(n, p)| proposal_row(config, n + 1, p)).collect::<Vec<_>>());
    let old = |file: &CharacterFile, (n, text): (u32, String)| {
        let of = if file.is_soul() { String::new() } else { format!(" {}", stem(file)) };
        Character {
            id: format!("earlier{of} {n} {}", file.path.display()),
            name: format!("Earlier{of} {n}"),
            file: file.clone(),
            ..character("", "", "kept", text)
        }
    };
    for file in [soul.clone()].into_iter().chain(soul::changed_agents(config)) {
        all.extend(file.earlier().into_iter().map(|text| old(&file, text)));
    }
    Ok(Texts { now, all })
}

fn proposal_row(config: &Path, number: usize, proposal: Proposal) -> Character {
    let file = proposal.from.target(config);
    let of = if file.is_soul() { "SOUL.md".to_owned() } else { stem(&file) };
    Character {
        id: format!("proposal {}", proposal.id),
        name: format!("Proposal {number}: {of}"),
        about: "waits".into(),
        text: proposal.text.clone(),
        file,
        proposal: Some(proposal),
    }
}

/// The name of an agent, by its file.
fn stem(file: &CharacterFile) -> String {
    file.path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Where a proposal comes from, and why, for people.
fn origin(proposal: &Proposal) -> String {
    let from = &proposal.from;
    let agent = match from.agent.parent() {
        Some(_) => from.agent.name().to_owned(),
        None => "the agent".to_owned(),
    };
    let read = match from.taint {
        Taint::Person | Taint::Agent => "",
        Taint::ToolOutput => ", after it had read files or output of commands",
        Taint::Web => ", after it had read pages or servers of others",
    };
    let why = if from.why.is_empty() { String::new() } else { format!("\nWhy: {}", from.why) };
    format!("Proposed by {agent}{read}.{why}\n\n")
}

impl Characters {
    fn row(&self, item: &Item) -> Option<&Character> {
        self.texts.all.iter().find(|c| c.id == item.id)
    }
}

/// Leaves the list open, and says why nothing can be reviewed.
fn stay(kind: NoticeKind, text: impl Into<String>) -> Outcome {
    Outcome::Stay { effects: vec![say(kind, text)], reload: false }
}

impl Source for Characters {
    fn late(&mut self) -> Option<&mut dyn LateRows> {
        Some(self)
    }

    fn title(&self) -> String {
        "Personality".into()
    }

    fn spec(&self) -> ListSpec {
        let empty = if self.loaded { "Nothing found" } else { "Loading..." };
        ListSpec { verb: "look at the change", empty, ..ListSpec::default() }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let mut in_force = false;
        let row = |c: &Character| {
            // An earlier text may be that of a ready-made one: one row is the current one.
            let of_soul = c.proposal.is_none() && c.file.is_soul();
            let current = !in_force && of_soul && c.text.trim() == self.texts.now.trim();
            in_force |= current;
            Item::new(&c.id, &c.name).detail(&c.about).current(current)
        };
        self.texts.all.iter().map(row).collect()
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 != "picker.choose" {
            return None;
        }
        let chosen = Box::new(self.row(item?)?.clone());
        let job: Job = Box::new(move || {
            let now = chosen.file.text();
            Box::new(FilesRead::Chosen(chosen, now))
        });
        Some(Outcome::Stay { effects: vec![Effect::Task(Task::Job(job, Token(1)))], reload: false })
    }

    fn preview(&self, item: &Item) -> Option<String> {
        let chosen = self.row(item)?;
        let from = chosen.proposal.as_ref().map(origin).unwrap_or_default();
        Some(match chosen.text.is_empty() {
            true => "Removes SOUL.md: the agent is as it was built.".into(),
            false => format!("{from}{}", chosen.text),
        })
    }
}

impl LateRows for Characters {
    fn work(&mut self, _model: &Model) -> Option<Job> {
        let config = self.config.clone();
        Some(Box::new(move || Box::new(FilesRead::List(characters(&config)))))
    }

    fn worked(&mut self, result: Box<dyn Any + Send>, _model: &Model) -> Outcome {
        match result.downcast::<FilesRead>().map(|read| *read) {
            Ok(FilesRead::List(Ok(texts))) => {
                (self.texts, self.loaded) = (texts, true);
                Outcome::none()
            }
            Ok(FilesRead::List(Err(why))) => Outcome::Close(vec![say(NoticeKind::User, why)]),
            Ok(FilesRead::Chosen(_, Err(why))) => stay(NoticeKind::User, why),
            Ok(FilesRead::Chosen(chosen, Ok(now))) if chosen.text == now && chosen.proposal.is_none() => {
                stay(NoticeKind::Info, format!("{} is in force already", chosen.name))
            }
            Ok(FilesRead::Chosen(chosen, Ok(now))) => {
                let review = CharacterReview::new(self.config.clone(), now, *chosen);
                Outcome::Close(vec![Effect::Push(Box::new(review))])
            }
            Err(_) => Outcome::none(),
        }
    }
}

fn say(kind: NoticeKind, text: impl Into<String>) -> Effect {
    Effect::Toast(Notice::new(kind, text.into()))
}

#[cfg(test)]
mod tests;
