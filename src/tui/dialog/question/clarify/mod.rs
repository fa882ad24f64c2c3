//! The model's question: pick with arrows or digits, type to filter, Tab to write an answer of one's own.
//! Escape puts it aside; an action declines to answer.

mod actions;
mod panel;

use std::collections::BTreeSet;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::AskCommand;
use tiller_protocol::{Ask, AskBody, AskReply, CommandBody, Event};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use crate::app::effect::{Effect, Token};
use crate::dialog::question::TextRows;
use crate::dialog::question::answer_state::{AnswerState, which_of};
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{
    DrawCx, Hint, Letters, Panel, PanelEvent, PanelInput, PanelStatus, Placement, QuestionState, Refresh,
    Reply,
};
use crate::registry::Dialog;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::paint;
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::scroll::Scroll;
use crate::widget::{draw, field, input, sign, surface};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Questions", ACTIONS)],
    scopes: &[Scope::new("clarify", Some("input"), "Questions", true).keys(KEYS)],
    samples: &[
        ("clarify", || Box::new(sample())),
        ("program's question", || {
            Clarify::of(&granting_sample()).map_or_else(|| Box::new(sample()), Box::new)
        }),
    ],
    answers: Some(|ask| Some(Box::new(Clarify::of(ask)?))),
    ..Dialog::NONE
};

const ANSWER: Token = Token(1);
/// A width at which no line wraps: Up and Down move by lines.
const COLUMNS: usize = 10_000;
/// Most rows of an answer of one's own.
const FIELD: u16 = 5;

/// The answers that the question permits.
struct Options {
    choices: Vec<String>,
    /// An answer in the person's own words is possible.
    free: bool,
    /// Several choices can be answered at once.
    multiple: bool,
    /// Index of the declared default.
    default: Option<usize>,
    /// Indices of choices that grant or end something: only their digit selects them.
    decides: BTreeSet<usize>,
}

/// The dialog.
pub struct Clarify {
    ask: Ask,
    options: Options,
    /// The digit of such a choice was pressed last.
    numbered: bool,
    question: Scroll,
    /// The question, for its height at another width.
    words: String,
    rows: TextRows,
    filter: Edit,
    own: Edit,
    /// The person writes an answer.
    writing: bool,
    /// Choices that match the filter.
    found: Vec<usize>,
    chosen: usize,
    marked: BTreeSet<usize>,
    /// First row of the list that is shown.
    top: usize,
    sheet: Sheet,
    answer_state: AnswerState,
}

fn lines(words: &str) -> Vec<Line> {
    words
        .trim_end()
        .split('\n')
        .map(|l| {
            let mut line = Line::new(Wrap::Word);
            line.push(l, Look::of(Role::Strong));
            line
        })
        .collect()
}

impl Clarify {
    /// Makes the dialog; `None`: the question is of another kind.
    pub(crate) fn of(ask: &Ask) -> Option<Self> {
        let AskBody::Clarify { question, choices, allow_freetext, multiple, default, decides } = &ask.body
        else {
            return None;
        };
        let how = (*allow_freetext, *multiple, *default);
        let mut all = Self::new(ask.clone(), question, choices.clone(), how);
        all.options.decides = decides.iter().copied().collect();
        if all.options.decides.contains(&all.chosen) {
            all.chosen = (0..choices.len()).find(|i| !all.options.decides.contains(i)).unwrap_or(0);
        }
        Some(all)
    }

    /// `how`: own words are allowed, several answers are, the declared default.
    fn new(ask: Ask, question: &str, choices: Vec<String>, how: (bool, bool, Option<usize>)) -> Self {
        let mut text = Scroll::default();
        text.set(lines(question));
        let (free, multiple, default) = how;
        Self {
            ask,
            numbered: false,
            question: text,
            words: question.to_owned(),
            rows: TextRows::default(),
            filter: Edit::default(),
            own: Edit::default(),
            writing: choices.is_empty(),
            found: (0..choices.len()).collect(),
            chosen: default.filter(|d| *d < choices.len()).unwrap_or(0),
            // A question without choices can only be answered in words.
            options: Options {
                free: free || choices.is_empty(),
                multiple,
                default,
                decides: BTreeSet::new(),
                choices,
            },
            marked: BTreeSet::new(),
            top: 0,
            sheet: Sheet::default(),
            answer_state: AnswerState::default(),
        }
    }

    /// Takes another text under the same question in; what was written stays.
    fn renew(&mut self, model: &Model) -> bool {
        let now = model.questions.open.iter().find(|a| a.id == self.ask.id).filter(|a| **a != self.ask);
        let Some(mut new) = now.and_then(Self::of) else { return false };
        new.own = std::mem::take(&mut self.own);
        *self = new;
        true
    }

    fn search(&mut self) {
        let text = self.filter.text().trim().to_lowercase();
        self.found = (0..self.options.choices.len())
            .filter(|i| self.options.choices[*i].to_lowercase().contains(&text))
            .collect();
        self.chosen = 0;
    }

    fn answer(&mut self, reply: AskReply) -> Reply {
        self.answer_state.sent = true;
        let body = CommandBody::Ask(AskCommand::Answer { id: self.ask.id, reply });
        Reply::with(Effect::ask(body, ANSWER))
    }

    /// True when Enter would select a choice that only its digit may select.
    fn withheld(&self) -> bool {
        !self.writing && self.found.get(self.chosen).is_some_and(|i| self.options.decides.contains(i))
    }

    /// True when letters filter the list. Where a choice decides something they are part of a message that was meant
    /// for the composer.
    fn filters(&self) -> bool {
        self.options.decides.is_empty()
    }

    /// `numbered`: by its digit.
    fn choose(&mut self, numbered: bool) -> Reply {
        if self.withheld() && !numbered {
            self.answer_state.feedback = Some("To approve, press the number of the answer".into());
            return Reply::done();
        }
        let own = self.own.text().trim().to_owned();
        let mut all: BTreeSet<usize> = self.marked.clone();
        if all.is_empty() && !self.writing {
            all.extend(self.found.get(self.chosen));
        }
        let mut answers: Vec<String> = Vec::new();
        if !self.writing || self.options.multiple {
            answers.extend(all.iter().filter_map(|i| self.options.choices.get(*i)).cloned());
        }
        if self.writing && !own.is_empty() {
            answers.push(own);
        }
        if answers.is_empty() {
            self.answer_state.feedback =
                Some(if self.writing { "Nothing typed yet" } else { "No answer matches" }.into());
            return Reply::done();
        }
        self.answer(AskReply::Choice { answers })
    }

    fn mark(&mut self, choice: usize) {
        if !self.marked.remove(&choice) {
            self.marked.insert(choice);
        }
    }

    /// A digit, when it names a choice.
    fn digit(&mut self, c: char) -> Option<Reply> {
        let n = c.to_digit(10)? as usize;
        let choice =
            n.checked_sub(1).filter(|i| *i < self.options.choices.len() && self.filter.is_empty())?;
        if self.options.multiple {
            self.mark(choice);
            self.chosen = self.found.iter().position(|f| *f == choice).unwrap_or(self.chosen);
            return Some(Reply::done());
        }
        self.chosen = self.found.iter().position(|f| *f == choice)?;
        self.numbered = true;
        // Counts as chosen by key, so that the tour sees the action.
        Some(Reply::with(Effect::Act(Action("clarify.choose"))))
    }

    /// Question, list, words, field.
    fn parts(&self, area: Rect) -> [Rect; 4] {
        let filters = !self.options.choices.is_empty() && self.filters();
        let fields = match self.writing {
            true => field::rows(&self.own, area.width.saturating_sub(2)).clamp(1, FIELD),
            false => u16::from(filters),
        };
        let fields = fields.min(area.height.saturating_sub(2));
        let words = u16::from(area.height > fields + 2);
        let room = area.height.saturating_sub(fields + words);
        let want = (self.sheet.rows.len() as u16).min(room);
        // The question keeps a third at least, and gets what the list does not need.
        let question = (self.question.rows() as u16).min((room - want).max(room.div_ceil(3)));
        let list = room - question;
        let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
        [
            row(0, question),
            row(question, list),
            row(question + list, words),
            row(question + list + words, fields),
        ]
    }

    /// The choices that match, cut for a width.
    fn list(&self, columns: u16) -> Sheet {
        let rows = self.found.iter().filter_map(|i| {
            let text = self.options.choices.get(*i)?;
            let mark = match (self.options.multiple, self.marked.contains(i)) {
                (false, _) => "",
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
            };
            let mut line = Line::new(Wrap::Word);
            line.push(text, Look::of(Role::Text));
            if self.options.default == Some(*i) {
                line.push("  (default)", Look::of(Role::Dim));
            }
            Some(line.gutter(Gutter::new(format!("  {} {mark}", i + 1), Role::Accent)))
        });
        Sheet::new(rows.collect(), usize::from(columns))
    }

    /// Rows of the chosen choice.
    fn span(&self) -> (usize, usize) {
        let n = self.chosen as u32;
        let from = self.sheet.rows.partition_point(|r| r.line < n);
        (from, self.sheet.rows.partition_point(|r| r.line <= n).max(from + 1))
    }

    fn status(&self, cx: &DrawCx<'_>) -> (String, Role) {
        if self.answer_state.sent {
            return ("Sent; waiting for the engine".into(), Role::Dim);
        }
        if let Some(said) = &self.answer_state.feedback {
            return (said.clone(), Role::Waiting);
        }
        if self.question.below() > 0 {
            let text = format!("{} ({})", draw::below(self.question.below()), cx.key("clarify.page_down"));
            return (text, Role::Dim);
        }
        // The footer names the other keys.
        let numbers = !self.writing && !self.options.multiple && !self.options.free && !self.filters();
        (if numbers { "Press the number of an answer".into() } else { String::new() }, Role::Dim)
    }
}

/// The dialog with plausible content, for the tests that visit all dialogs.
pub(crate) fn sample() -> Clarify {
    let choices: Vec<String> = ["the old one", "the new one", "both, behind a flag"].map(Into::into).to_vec();
    let question = "Which of the two clients should keep the retry logic?";
    let body = AskBody::Clarify {
        question: question.into(),
        choices: choices.clone(),
        allow_freetext: true,
        multiple: true,
        default: Some(1),
        decides: Vec::new(),
    };
    let agent = tiller_protocol::AgentId::main();
    let ask = Ask { id: crate::dialog::sample_id(), agent, call: None, body };
    Clarify::new(ask, question, choices, (true, true, Some(1)))
}

/// For the same tests: a dialog of a program in a terminal, whose first choice grants something.
pub(crate) fn granting_sample() -> Ask {
    let choices: Vec<String> = ["Yes, I trust this folder", "No, exit"].map(Into::into).to_vec();
    let question = "Do you trust the files in this folder?";
    let body = AskBody::Clarify {
        question: question.into(),
        choices,
        allow_freetext: false,
        multiple: false,
        default: Some(1),
        decides: vec![0],
    };
    let agent = tiller_protocol::AgentId::main();
    Ask { id: crate::dialog::sample_id(), agent, call: None, body }
}

#[cfg(test)]
mod tests;
