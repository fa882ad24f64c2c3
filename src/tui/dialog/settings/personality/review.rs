//! The question whether a text is put in force: its difference to the present one, with keys to accept, edit and decline.

use std::any::Any;
use std::path::PathBuf;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::NoticeKind;

use super::{Character, say};
use crate::app::effect::{Effect, External, Job, Task, Token};
use crate::dialog::confirm;
use crate::dialog::reader::text::Text;
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply};

const EDIT: ActionSpec =
    ActionSpec::key_only("personality.edit", "edit", "Edit what an agent proposes, before you accept it");
const DECLINE: ActionSpec =
    ActionSpec::key_only("personality.decline", "decline", "Decline what an agent proposes").deciding();

/// The actions of a proposal alone.
pub(super) const PROPOSAL_ACTIONS: &[ActionSpec] = &[EDIT, DECLINE];

/// Actions of the question about a proposal.
const ACTIONS: &[ActionSpec] = &[confirm::ACTIONS[0], confirm::ACTIONS[1], EDIT, DECLINE];

/// Names the job that changes files, and the one that reads them.
const DONE: Token = Token(1);
const READ: Token = Token(2);

/// The text of a proposal and that in force, or why they cannot be read.
type TextsRead = Result<(String, String), String>;

/// When a change shows: the prefix stays as it is between two compactions.
const WHEN: &str = "It takes effect in the next session, or when this one is compacted";

/// The change of a file as a unified difference, with the whole file.
fn difference(old: &str, new: &str) -> String {
    let lines = old.lines().count().max(new.lines().count());
    similar::TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(lines)
        .missing_newline_hint(false)
        .to_string()
}

/// The question whether the change is written.
pub(super) struct CharacterReview {
    config: PathBuf,
    /// The text in force.
    now: String,
    chosen: Character,
    shown: Text,
    /// True when something is done with it already.
    working: bool,
}

impl CharacterReview {
    pub(super) fn new(config: PathBuf, now: String, chosen: Character) -> Self {
        let shown = Self::shown(&now, &chosen);
        Self { config, now, chosen, shown, working: false }
    }

    fn shown(now: &str, chosen: &Character) -> Text {
        Text::diff(&format!("Write {}", chosen.label()), &difference(now, &chosen.text))
    }

    /// Does something with the files on a thread of its own. Its sentence is shown when it worked.
    fn work(&mut self, work: impl FnOnce() -> Result<String, String> + Send + 'static) -> Reply {
        if self.working {
            return Reply::done();
        }
        self.working = true;
        let job: Job = Box::new(move || Box::new(work()) as Box<dyn Any + Send>);
        Reply::with(Effect::Task(Task::Job(job, DONE)))
    }

    fn write(&mut self) -> Reply {
        let (config, now, chosen) = (self.config.clone(), self.now.clone(), self.chosen.clone());
        let said = format!("{} is written. {WHEN}", chosen.label());
        self.work(move || match &chosen.proposal {
            Some(proposal) => Ok(match proposal.accept(&config, &now, &chosen.text)? {
                None => said,
                Some(why) => format!("{said}. The proposal still waits, because it cannot be removed: {why}"),
            }),
            None => chosen.file.replace(&now, &chosen.text).map(|()| said),
        })
    }

    fn decline(&mut self) -> Reply {
        let Some(proposal) = self.chosen.proposal.clone() else { return Reply::Ignored };
        let config = self.config.clone();
        let said = "The proposal is declined: nothing has changed".to_owned();
        self.work(move || proposal.remove(&config).map(|()| said))
    }

    /// Reads the texts again after an editor has closed.
    fn edited(&mut self, result: Result<(), String>) -> Reply {
        let Some(proposal) = self.chosen.proposal.clone() else { return Reply::Ignored };
        if let Err(why) = result {
            return Reply::with(say(NoticeKind::User, why));
        }
        // Until then the texts are not those that would be written.
        self.working = true;
        let (config, file) = (self.config.clone(), self.chosen.file.clone());
        let read = move || -> TextsRead { Ok((proposal.text_now(&config)?, file.text()?)) };
        let job: Job = Box::new(move || Box::new(read()) as Box<dyn Any + Send>);
        Reply::with(Effect::Task(Task::Job(job, READ)))
    }

    /// Shows the texts that were read.
    fn read(&mut self, result: TextsRead) -> Reply {
        self.working = false;
        match result {
            Ok((text, now)) => {
                (self.chosen.text, self.now) = (text, now);
                self.shown = Self::shown(&self.now, &self.chosen);
                Reply::done()
            }
            Err(why) => Reply::with(say(NoticeKind::User, why)),
        }
    }
}

/// Leaves the review as it is: another text may be chosen.
fn back_to_list() -> Reply {
    Reply::Done(vec![Effect::Pop, Effect::Act(Action("personality.open"))])
}

impl Panel for CharacterReview {
    fn status(&self, model: &Model) -> PanelStatus {
        let inner = self.shown.status(model);
        match inner.scope {
            "text" => PanelStatus { scope: "personality", ..inner },
            _ => inner,
        }
    }

    fn title(&self, _model: &Model) -> String {
        match &self.chosen.proposal {
            Some(_) => format!("Proposal for {}", self.chosen.label()),
            None => format!("Write {}: {}", self.chosen.label(), self.chosen.name.to_lowercase()),
        }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        if self.chosen.proposal.is_some() { ACTIONS } else { confirm::ACTIONS }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            "confirm.yes" => self.write(),
            "confirm.no" => back_to_list(),
            "personality.decline" => self.decline(),
            "personality.edit" => match &self.chosen.proposal {
                Some(proposal) => {
                    let file = proposal.file(&self.config);
                    Reply::with(Effect::Task(Task::Suspend(External::Editor { file, line: None })))
                }
                None => Reply::Ignored,
            },
            _ => self.shown.act(action, model),
        }
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Escape(EscapeStep::Layer) => back_to_list(),
            input => self.shown.input(input, model),
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        let result = match event {
            PanelEvent::Edited(result) => return self.edited(result),
            PanelEvent::JobDone(READ, result) => {
                return result.downcast().map_or(Reply::Ignored, |read| self.read(*read));
            }
            PanelEvent::JobDone(_, result) => result,
            _ => return Reply::Ignored,
        };
        let Ok(result) = result.downcast::<Result<String, String>>() else { return Reply::Ignored };
        let told = match *result {
            Ok(said) => say(NoticeKind::Info, said),
            Err(why) => say(NoticeKind::User, format!("Nothing was changed: {why}")),
        };
        Reply::Done(vec![Effect::Pop, told])
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        let mut all = match self.chosen.proposal {
            Some(_) => vec![
                Hint::as_("confirm.yes", "accept"),
                Hint::of("personality.edit"),
                Hint::of("personality.decline"),
                Hint::as_("confirm.no", "later"),
            ],
            None => vec![Hint::as_("confirm.yes", "write"), Hint::as_("confirm.no", "cancel")],
        };
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
