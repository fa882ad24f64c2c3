//! The dialog that asks whether a call may run. It lies in place of the composer, whose draft is kept. A call cannot be
//! approved by accident: see [`Approval::yes`].

mod actions;
mod calls;
mod content;
mod draft;
mod draw;
mod panel;
mod title;

use std::cell::Cell;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::ask::{OutsideAnswer, PermissionAsk, Risk};
use tiller_protocol::command::AskCommand;
use tiller_protocol::{Ask, AskBody, AskId, AskReply, CommandBody, Decision, Event};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use crate::app::effect::{Effect, External, Task, Token};
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
use crate::text::line::Line;
use crate::text::path::below;
use crate::text::sheet::Highlight;
use crate::widget::diff::DiffColours;
use crate::widget::draw::ascii;
use crate::widget::edit::Edit;
use crate::widget::field;
use crate::widget::scroll::Scroll;
use title::TitleFacts;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Approval", ACTIONS)],
    scopes: &[
        Scope::new("approval", None, "Approval", false).keys(KEYS),
        Scope::new("approval_text", Some("input"), "Approval, texts", true).keys(&[
            ("enter", "approval.send"),
            ("ctrl-j", "approval.newline"),
            ("alt-enter", "approval.newline"),
            ("shift-enter", "approval.newline"),
            ("pagedown", "list.page_down"),
            ("pageup", "list.page_up"),
        ]),
    ],
    samples: &[("approval", || Box::new(sample()))],
    answers: Some(|ask| Some(Box::new(Approval::of(ask)?))),
    ..Dialog::NONE
};

const ANSWER: Token = Token(1);

/// Feedback on a yes that came before everything was on the screen.
const NOT_YET: &str = "Not yet";

/// A button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    No,
    Comment,
    Once,
    /// Outside the sandbox.
    Outside,
    Session,
    Edit,
    Always,
    /// Shows each of the calls.
    Calls,
    /// Tries the skill that the call writes.
    Try,
}

impl Button {
    /// As they are drawn.
    const ALL: [(Self, &'static str, &'static str); 9] = [
        (Self::Once, "approval.once", "once"),
        (Self::Outside, "approval.outside", "outside the sandbox"),
        (Self::Session, "approval.session", "session"),
        (Self::Always, "approval.always", "always"),
        (Self::No, "approval.no", "no"),
        (Self::Comment, "approval.comment", "say why"),
        (Self::Edit, "approval.edit", "edit"),
        (Self::Calls, "approval.calls", "each call"),
        (Self::Try, "approval.try", "try it"),
    ];
}

/// Where keys go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyTarget {
    Buttons,
    /// The comment of a "no" is written.
    Comment,
    /// The command is changed.
    Command,
    /// The rule is changed.
    Rule,
}

/// The texts that can be written in place of the buttons.
struct TextFields {
    mode: KeyTarget,
    comment: Edit,
    command: Edit,
    rule: Edit,
    /// The draft is in the user's editor.
    in_editor: bool,
}

impl TextFields {
    fn new(command: &str) -> Self {
        let (comment, rule) = (Edit::default(), Edit::default());
        Self { mode: KeyTarget::Buttons, comment, command: Edit::with(command), rule, in_editor: false }
    }

    /// The text that takes keys; `None`: the buttons do.
    fn active(&self) -> Option<&Edit> {
        match self.mode {
            KeyTarget::Buttons => None,
            KeyTarget::Comment => Some(&self.comment),
            KeyTarget::Command => Some(&self.command),
            KeyTarget::Rule => Some(&self.rule),
        }
    }

    fn active_mut(&mut self) -> Option<&mut Edit> {
        match self.mode {
            KeyTarget::Buttons => None,
            KeyTarget::Comment => Some(&mut self.comment),
            KeyTarget::Command => Some(&mut self.command),
            KeyTarget::Rule => Some(&mut self.rule),
        }
    }
}

/// The dialog.
pub struct Approval {
    ask: Ask,
    p: PermissionAsk,
    text: Scroll,
    /// Lines of the text before its difference, and the first one after it.
    must: (usize, usize),
    colours: DiffColours,
    fields: TextFields,
    facts: TitleFacts,
    /// The rule that "session" and "always" would allow, as it is shown.
    pattern: Option<String>,
    /// The rule was shown: the next press of "always" saves it.
    armed: bool,
    focus: Button,
    answer_state: AnswerState,
    /// Where the buttons were drawn.
    spots: Vec<(Button, Rect)>,
    /// The target stands in the title, and the rule on its button: not in the text.
    elsewhere: (bool, bool),
    /// Rows of the text by width and by whether the title has the target, so that placing costs nothing.
    height: Cell<Option<((u16, bool), u16)>>,
    /// The same call of other agents: one answer is for all that the dialog names.
    same: Vec<(AskId, String)>,
}

impl Approval {
    /// Makes the dialog; `None`: the question is no approval.
    pub(crate) fn of(ask: &Ask) -> Option<Self> {
        let AskBody::Permission(p) = &ask.body else { return None };
        Some(Self::new(ask.clone(), p.clone()))
    }

    fn new(ask: Ask, p: PermissionAsk) -> Self {
        let mut new = Self {
            fields: TextFields::new(&p.shown),
            pattern: p.always.clone(),
            focus: if p.risk == Risk::Low && p.outside != OutsideAnswer::Only {
                Button::Once
            } else {
                Button::No
            },
            facts: TitleFacts::of(&p),
            ask,
            p,
            text: Scroll::default(),
            must: (0, 0),
            colours: DiffColours::default(),
            armed: false,
            answer_state: AnswerState::default(),
            spots: Vec::new(),
            elsewhere: (false, false),
            height: Cell::new(None),
            same: Vec::new(),
        };
        new.fill();
        new
    }

    /// Takes another text under the same question. It must be read from the start again; a comment stays.
    fn renew(&mut self, model: &Model) -> bool {
        let now = model.questions.open.iter().find(|a| a.id == self.ask.id).filter(|a| **a != self.ask);
        let Some(mut new) = now.and_then(Self::of) else { return false };
        new.fields.comment = std::mem::take(&mut self.fields.comment);
        *self = new;
        true
    }

    /// Names the folder of a command as rows name paths: the folder of the session needs no path.
    fn name_folder(&mut self, workspace: &[String]) {
        const HERE: &str = "this folder";
        let folder = &mut self.p.folder;
        let named = match below(workspace, folder) {
            _ if workspace.contains(folder) => HERE,
            // A folder of this name within it is named in full.
            HERE => folder,
            short => short,
        }
        .to_owned();
        if named != *folder {
            *folder = named;
            self.fill();
        }
    }

    /// Collects other agents that ask for exactly this call. One more makes it another question, which must be read
    /// again.
    fn gather(&mut self, model: &Model) -> bool {
        self.name_folder(&model.environment.folders.workspace);
        let same = |a: &&Ask| match &a.body {
            AskBody::Permission(p) => {
                a.agent != self.ask.agent
                    && p.tool == self.p.tool
                    && p.hash == self.p.hash
                    && p.outside == self.p.outside
                    && p.shown == self.p.shown
            }
            _ => false,
        };
        let same: Vec<(AskId, String)> =
            model.questions.open.iter().filter(same).map(|a| (a.id, model.path_of(&a.agent))).collect();
        if self.answer_state.sent || same == self.same {
            return false;
        }
        if same.iter().any(|s| !self.same.contains(s)) {
            self.answer_state.delay.restart();
        }
        self.same = same;
        self.fill();
        true
    }

    /// The lines. `titled`: the title names the target; `rule`: no button names the rule.
    fn content(&self, titled: bool, rule: bool, colours: &mut impl Highlight) -> content::Content {
        let also: Vec<&str> = self.same.iter().map(|(_, name)| name.as_str()).collect();
        let rule = self.pattern.as_deref().filter(|_| rule);
        let elsewhere = content::Elsewhere { target: titled, rule, also: &also, ascii: ascii() };
        content::content(&self.p, elsewhere, colours)
    }

    /// Sets the text anew: it must be read again.
    fn fill(&mut self) {
        self.colours.begin();
        let lines = self.lines();
        self.text.set(lines);
        self.height.set(None);
    }

    /// Takes in the colours of code; nothing else changes.
    fn colour(&mut self) {
        let lines = self.lines();
        self.text.recolour(lines);
    }

    fn lines(&mut self) -> Vec<Line> {
        let mut colours = std::mem::take(&mut self.colours);
        let c = self.content(self.elsewhere.0, !self.elsewhere.1, &mut colours);
        colours.note(&c.text);
        self.colours = colours;
        self.must = (c.head, c.tail);
        c.text.lines
    }

    /// True when there is such a button.
    fn has(&self, b: Button) -> bool {
        match b {
            Button::Edit => self.p.editable || self.p.draft.is_some(),
            Button::Session | Button::Always => self.pattern.is_some(),
            Button::Outside => self.p.outside != OutsideAnswer::No,
            Button::Once => self.p.outside != OutsideAnswer::Only,
            Button::Calls => !self.p.calls.is_empty(),
            Button::Try => self.p.draft.is_some(),
            Button::No | Button::Comment => true,
        }
    }

    /// True when the button is a yes, which counts only after everything was on the screen.
    fn unread(&self, b: Button) -> bool {
        let yes = matches!(b, Button::Once | Button::Outside | Button::Session | Button::Always);
        yes && !self.is_read()
    }

    /// Everything that must be read has been on the screen.
    fn is_read(&self) -> bool {
        self.text.read_around(self.must.0, self.must.1)
    }

    fn buttons(&self) -> impl Iterator<Item = (Button, &'static str, &'static str)> + '_ {
        Button::ALL.into_iter().filter(|b| self.has(b.0))
    }

    /// Returns to the buttons. Letters that are still being typed must not press one.
    fn leave_text(&mut self) {
        self.fields.mode = KeyTarget::Buttons;
        self.answer_state.delay.restart();
        self.height.set(None);
    }

    fn write(&mut self, mode: KeyTarget) -> Reply {
        self.fields.mode = mode;
        self.answer_state.feedback = None;
        self.height.set(None);
        Reply::done()
    }

    fn answer(&mut self, decision: Decision) -> Reply {
        self.answer_state.sent = true;
        self.answer_state.feedback = None;
        let reply = AskReply::Permission { decision: decision.clone(), hash: self.p.hash.clone() };
        let body = |id, reply| CommandBody::Ask(AskCommand::Answer { id, reply });
        let mut all = vec![Effect::ask(body(self.ask.id, reply.clone()), ANSWER)];
        // Another command is for one agent only; the others are asked about theirs.
        if !matches!(decision, Decision::Edit { .. }) {
            all.extend(self.same.iter().map(|(id, _)| Effect::send(body(*id, reply.clone()))));
        }
        Reply::Done(all)
    }

    /// A yes, by its own key and after everything was on the screen; else the reason why not.
    fn yes(&mut self, b: Button) -> Reply {
        if !self.is_read() {
            self.answer_state.feedback = Some(NOT_YET.into());
            return Reply::done();
        }
        match (b, self.pattern.clone()) {
            (Button::Once, _) if self.has(b) => self.answer(Decision::Once),
            (Button::Outside, _) if self.has(b) => self.answer(Decision::Outside),
            (Button::Once, _) => {
                self.answer_state.feedback = Some("It failed in the sandbox: it can only run outside".into());
                Reply::done()
            }
            (Button::Outside, _) => {
                self.answer_state.feedback = Some("This call does not run in the sandbox".into());
                Reply::done()
            }
            (Button::Session, Some(pattern)) => self.answer(Decision::Session { pattern }),
            (Button::Always, Some(pattern)) if self.armed => self.answer(Decision::Always { pattern }),
            (Button::Always, Some(pattern)) => {
                self.fields.rule = Edit::with(&pattern);
                self.write(KeyTarget::Rule)
            }
            _ => {
                self.answer_state.feedback = Some("No rule can cover exactly this command".into());
                Reply::done()
            }
        }
    }

    fn press(&mut self, b: Button) -> Reply {
        match b {
            Button::No => self.answer(Decision::Deny { comment: None }),
            Button::Comment => self.write(KeyTarget::Comment),
            Button::Edit if self.p.editable => self.write(KeyTarget::Command),
            Button::Edit if self.p.draft.is_some() => {
                self.fields.in_editor = true;
                let file = draft::file(&self.p).unwrap_or_default();
                Reply::with(Effect::Task(Task::Suspend(External::Editor { file, line: None })))
            }
            Button::Edit => {
                self.answer_state.feedback = Some("This call cannot be edited".into());
                Reply::done()
            }
            Button::Calls if self.p.calls.is_empty() => {
                self.answer_state.feedback = Some("This is about a single call".into());
                Reply::done()
            }
            Button::Calls => Reply::with(Effect::Push(calls::AskedCalls::list(&self.p.calls))),
            Button::Try => match &self.p.draft {
                Some(skill) => {
                    let trial = External::Trial { skill: skill.clone() };
                    Reply::with(Effect::Task(Task::Suspend(trial)))
                }
                None => {
                    self.answer_state.feedback = Some("There is no skill to try here".into());
                    Reply::done()
                }
            },
            b => self.yes(b),
        }
    }

    /// Enter in a text.
    fn send(&mut self) -> Reply {
        match self.fields.mode {
            KeyTarget::Buttons => Reply::Ignored,
            KeyTarget::Comment => {
                let text = self.fields.comment.text().trim().to_owned();
                self.answer(Decision::Deny { comment: (!text.is_empty()).then_some(text) })
            }
            KeyTarget::Command => {
                let text = self.fields.command.text().to_owned();
                if text.trim().is_empty() || text == self.p.shown {
                    self.leave_text();
                    self.answer_state.feedback = Some("Nothing was changed".into());
                    return Reply::done();
                }
                self.answer(Decision::Edit { text })
            }
            KeyTarget::Rule => {
                let text = self.fields.rule.text().trim().to_owned();
                self.armed = !text.is_empty();
                if self.armed {
                    self.pattern = Some(text);
                    self.fill();
                }
                self.leave_text();
                Reply::done()
            }
        }
    }

    fn step(&mut self, forward: bool) {
        let all: Vec<Button> = self.buttons().map(|b| b.0).collect();
        let at = all.iter().position(|b| *b == self.focus).unwrap_or(0);
        let next = if forward { at + 1 } else { at + all.len() - 1 };
        self.focus = all[next % all.len()];
    }

    fn buttons_act(&mut self, id: &str) -> Reply {
        if let Some((b, ..)) = Button::ALL.into_iter().find(|b| b.1 == id) {
            return self.press(b);
        }
        match id {
            "approval.next" => self.step(true),
            "approval.previous" => self.step(false),
            "approval.press" => {
                return match self.focus {
                    Button::No | Button::Comment | Button::Edit | Button::Calls | Button::Try => {
                        self.press(self.focus)
                    }
                    Button::Once if self.p.risk == Risk::Low => self.press(Button::Once),
                    _ => {
                        self.answer_state.feedback = Some("To approve, press the key of the button".into());
                        Reply::done()
                    }
                };
            }
            id if self.text.act(id) => self.answer_state.feedback = None,
            _ => return Reply::Ignored,
        }
        Reply::done()
    }
}

/// Time until the words for the time that is left change.
fn tick(left: Duration) -> Duration {
    let step = if left > Duration::from_secs(90) { 10_000 } else { 1000 };
    let into = left.as_millis() as u64 % step;
    Duration::from_millis(if into == 0 { step } else { into })
}

/// The dialog with plausible content, for the tests that visit all dialogs.
pub(crate) fn sample() -> Approval {
    Approval::new(sample_ask(), sample_permission())
}

/// Its question.
pub(crate) fn sample_ask() -> Ask {
    let agent = tiller_protocol::AgentId("main/a2".into());
    let body = AskBody::Permission(sample_permission());
    Ask { id: crate::dialog::sample_id(), agent, call: None, body }
}

fn sample_permission() -> PermissionAsk {
    PermissionAsk {
        tool: "terminal".into(),
        verb: "shell".into(),
        shown: "git push origin docs".into(),
        hash: "00".into(),
        diff: None,
        folder: "~/api".into(),
        why: "publish the docs branch".into(),
        rule: "no permission rule matches".into(),
        effects: vec!["writes to remote \"origin\"".into(), "cannot be undone by a checkpoint".into()],
        risk: Risk::High,
        always: Some("terminal(git push origin <branch>)".into()),
        editable: true,
        outside: tiller_protocol::ask::OutsideAnswer::No,
        calls: Vec::new(),
        draft: None,
        source: None,
    }
}

#[cfg(test)]
mod accidents;
#[cfg(test)]
mod look_tests;
#[cfg(test)]
mod tests;
