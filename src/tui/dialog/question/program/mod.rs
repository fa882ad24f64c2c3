//! Questions of the program itself: trust, a plan, a budget, an expensive model or one without a price, a session that
//! is open elsewhere, a store that cannot be written. The dialog has text, buttons, and a field for a new limit or for
//! changes to a plan.

mod actions;
mod panel;
mod plan;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::ask::{TrustItem, TrustKind, budget_words};
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
use crate::theme::Role;
use crate::widget::buttons::{self, Face};
use crate::widget::edit::Edit;
use crate::widget::scroll::Scroll;
use crate::widget::{draw, input};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Other questions", ACTIONS)],
    scopes: &[
        Scope::new("trust", Some("question"), "Trust", false)
            .keys(&[("t", "question.trust"), ("n", "question.never")]),
        Scope::new("plan", Some("question"), "Plan", false).keys(&[
            ("a", "question.approve"),
            ("c", "question.change"),
            ("e", "question.editor"),
            ("d", "question.drop"),
        ]),
        Scope::new("question", None, "Other questions", false).keys(KEYS),
        Scope::new("question_text", Some("input"), "Other questions, text", true).keys(&[
            ("enter", "question.send"),
            ("pagedown", "list.page_down"),
            ("pageup", "list.page_up"),
        ]),
    ],
    samples: &[
        ("trust", || sample(0)),
        ("budget", || sample(1)),
        ("deep tier", || sample(2)),
        ("session in use", || sample(3)),
        ("not saving", || sample(4)),
        ("plan", || sample(5)),
        ("no price", || sample(6)),
    ],
    answers: Some(|ask| Some(Box::new(Question::of(ask)?))),
    ..Dialog::NONE
};

const ANSWER: Token = Token(1);
const NOT_YET: &str = "Not yet: read to the end first";

/// A button: action, label, answer. `None`: it opens the field or the editor.
pub(crate) struct QuestionButton(
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) Option<AskReply>,
);

/// The dialog.
pub struct Question {
    ask: Ask,
    scope: &'static str,
    title: String,
    /// The answer that Escape gives; `None` puts it aside.
    escape: Option<AskReply>,
    choices: Vec<QuestionButton>,
    lines: Vec<Line>,
    rows: TextRows,
    text: Scroll,
    field: Edit,
    writing: bool,
    focus: usize,
    answer_state: AnswerState,
    spots: Vec<Rect>,
}

fn line(text: &str, role: Role) -> Line {
    Line::strict(text, Look::of(role), Wrap::Word)
}

/// Returns what these items have in common, as the beginning of their list.
fn what_it_contains(items: &[TrustItem]) -> &'static str {
    let all = |kinds: &[TrustKind]| items.iter().all(|i| kinds.contains(&i.kind));
    if all(&[TrustKind::UnenforcedRule]) {
        "Some of your rules would not apply to an external program:"
    } else if all(&[TrustKind::Memory]) {
        "It contains memory files: models read them in each session, and their rules concern calls:"
    } else if all(&[TrustKind::Memory, TrustKind::Style]) {
        "It contains texts that models follow:"
    } else {
        "It contains settings that run programs or loosen rules:"
    }
}

/// Settings and rules that a folder contains, each with its effect.
fn brings(folder: &str, items: &[TrustItem], changed: bool) -> Vec<Line> {
    let mut all = vec![line(folder, Role::Strong)];
    if changed {
        all.push(line("! It has changed since you trusted it.", Role::Waiting));
    }
    let rules = items.iter().filter(|i| i.kind == TrustKind::UnenforcedRule).count();
    all.push(line(what_it_contains(items), Role::Text));
    for item in items {
        let mut row = Line::new(Wrap::Word);
        row.push_strict(&item.title(), Look::of(Role::Dim));
        row.push("  ", Look::of(Role::Text));
        row.push_strict(&item.path, Look::of(Role::Strong));
        all.push(row.gutter(Gutter::blank(2)));
        if !item.detail.is_empty() {
            all.push(line(&item.detail, Role::Text).gutter(Gutter::blank(6)));
        }
    }
    let programs = items.iter().any(|i| i.kind == TrustKind::ProgramSettings);
    let without = match programs {
        _ if rules == items.len() => "Unless you agree, the program does not start.",
        true => "External programs use these files. Without trust, the program does not start.",
        false => "Without trust, none of it is used. Everything else works.",
    };
    all.push(line(without, Role::Dim));
    all
}

impl Question {
    /// Makes the dialog; `None`: the question is of another kind.
    pub(crate) fn of(ask: &Ask) -> Option<Self> {
        let yes = || Some(AskReply::Yes { value: None });
        let no = || Some(AskReply::Declined);
        let mut field = String::new();
        let mut escape = None;
        let mut scope = "question";
        let (title, lines, choices) = match &ask.body {
            AskBody::Trust { folder, brings: items, changed } => {
                scope = "trust";
                escape = no();
                (
                    "Trust this folder?".to_owned(),
                    brings(folder, items, *changed),
                    vec![
                        QuestionButton("question.never", "never", Some(AskReply::Never)),
                        QuestionButton("question.trust", "trust", yes()),
                    ],
                )
            }
            AskBody::Budget { what, spent, limit, next } => {
                field = proposal(limit);
                let state = budget_words(spent, limit, next.as_deref());
                (
                    format!("Limit reached: {what}"),
                    vec![
                        line(&format!("{state}."), Role::Strong),
                        line(
                            "Continue with a higher limit, or stop here. Stopping loses nothing.",
                            Role::Text,
                        ),
                    ],
                    vec![
                        QuestionButton("question.stop", "stop", no()),
                        QuestionButton("question.raise", "raise the limit", None),
                    ],
                )
            }
            AskBody::Plan { file, plan } => {
                scope = "plan";
                ("Approve this plan?".to_owned(), plan::lines(file, plan), plan::choices())
            }
            AskBody::DeepTier { model, why } => (
                "Use this expensive model?".to_owned(),
                vec![line(model, Role::Strong), line(why, Role::Text)],
                vec![
                    QuestionButton("question.no", "no", no()),
                    QuestionButton("question.yes", "use it", yes()),
                ],
            ),
            AskBody::Repeats { calls, rounds } => (
                "The agent repeats the same calls".to_owned(),
                vec![
                    line(
                        &format!("The same calls gave the same results {rounds} times in a row."),
                        Role::Strong,
                    ),
                    line(calls, Role::Text),
                    line("Stop it and write what it should do instead, or let it continue.", Role::Dim),
                ],
                vec![
                    QuestionButton("question.stop", "stop", no()),
                    QuestionButton("question.yes", "continue", yes()),
                ],
            ),
            AskBody::Unpriced { model, why } => (
                "Use a model without a known price?".to_owned(),
                vec![
                    line(model, Role::Strong),
                    line(why, Role::Text),
                    line(
                        "\"Use it\" applies to this session. To keep the budget, add its price to \
                        config.toml or choose another model.",
                        Role::Dim,
                    ),
                ],
                vec![
                    QuestionButton("question.no", "no", no()),
                    QuestionButton("question.yes", "use it", yes()),
                ],
            ),
            AskBody::SessionBusy { holder } => (
                "Session already open".to_owned(),
                vec![
                    line(
                        &format!("The session is open in {holder}. Two writers would mix their messages."),
                        Role::Text,
                    ),
                    line("A branch continues from here on its own.", Role::Dim),
                ],
                vec![
                    QuestionButton("question.no", "cancel", no()),
                    QuestionButton("question.branch", "branch", Some(AskReply::Branch)),
                    QuestionButton("question.read_only", "read only", Some(AskReply::ReadOnly)),
                ],
            ),
            AskBody::NotSaving { why } => (
                "Continue without saving?".to_owned(),
                vec![
                    line(&format!("Tiller cannot save: {why}"), Role::Error),
                    line("Everything from now on is lost when Tiller ends.", Role::Text),
                ],
                vec![
                    QuestionButton("question.no", "no, stop", no()),
                    QuestionButton("question.yes", "continue without saving", yes()),
                ],
            ),
            AskBody::Permission(_) | AskBody::Clarify { .. } => return None,
        };
        let mut text = Scroll::default();
        text.set(lines.clone());
        let (escape_first, choices_len) = (escape.is_some(), choices.len());
        Some(Self {
            ask: ask.clone(),
            scope,
            title,
            escape,
            choices,
            lines,
            rows: TextRows::default(),
            text,
            field: Edit::with(&field),
            writing: false,
            // The last button is "not now", where there is one: it is where a folder's trust begins.
            focus: if escape_first { choices_len } else { 0 },
            answer_state: AnswerState::default(),
            spots: Vec::new(),
        })
    }

    fn answer(&mut self, reply: AskReply) -> Reply {
        self.answer_state.sent = true;
        let body = CommandBody::Ask(AskCommand::Answer { id: self.ask.id, reply });
        Reply::with(Effect::ask(body, ANSWER))
    }

    /// Answers as Escape does, and closes the dialog.
    fn put_off(&mut self, reply: AskReply) -> Reply {
        let body = CommandBody::Ask(AskCommand::Answer { id: self.ask.id, reply });
        Reply::Done(vec![Effect::send(body), Effect::Pop])
    }

    fn press(&mut self, n: usize) -> Reply {
        let Some(choice) = self.choices.get(n) else {
            return self.escape.clone().map_or(Reply::Ignored, |reply| self.put_off(reply));
        };
        // What a folder brings is read before it is trusted.
        if self.unread(n) {
            self.answer_state.feedback = Some(NOT_YET.into());
            return Reply::done();
        }
        if choice.0 == "question.editor" {
            return plan::editor(&self.ask.body).map_or(Reply::Ignored, Reply::with);
        }
        match choice.2.clone() {
            Some(reply) => self.answer(reply),
            None => {
                self.writing = true;
                self.answer_state.feedback = None;
                Reply::done()
            }
        }
    }

    /// Number of buttons, including the button that does what Escape does.
    fn count(&self) -> usize {
        self.choices.len() + usize::from(self.escape.is_some())
    }

    /// True when a button counts only after everything was on the screen, which it was not.
    fn unread(&self, n: usize) -> bool {
        self.choices.get(n).is_some_and(|c| c.0 == "question.trust") && !self.text.read(self.lines.len())
    }

    /// True when a button says yes to something.
    fn says_yes(&self, n: usize) -> bool {
        self.choices.get(n).is_some_and(|c| ACTIONS.iter().any(|s| s.action.0 == c.0 && s.yes))
    }

    fn send(&mut self) -> Reply {
        if self.scope == "plan" {
            let text = self.field.text().trim().to_owned();
            if text.is_empty() {
                self.answer_state.feedback = Some("Write what to change".into());
                return Reply::done();
            }
            return self.answer(AskReply::Choice { answers: vec![text] });
        }
        let typed = self.field.text().trim().trim_start_matches('$').to_owned();
        match typed.parse::<f64>() {
            Ok(n) if n.is_finite() && n > 0.0 => self.answer(AskReply::Yes { value: Some(typed) }),
            _ => {
                self.answer_state.feedback = Some("Enter an amount in dollars, for example 5 or 2.50".into());
                Reply::done()
            }
        }
    }

    fn labels(&self, key: impl Fn(&'static str) -> String) -> Vec<String> {
        let mut all: Vec<String> = self.choices.iter().map(|c| buttons::label(&key(c.0), c.1)).collect();
        if self.escape.is_some() {
            all.push(buttons::label(&key("global.escape"), "not now"));
        }
        all
    }

    /// Text, words, buttons or field.
    fn parts(&self, area: Rect, labels: &[String]) -> [Rect; 3] {
        let below = if self.writing { 1 } else { buttons::rows(labels, area.width) };
        let below = below.min(area.height.saturating_sub(2)).max(1);
        let text = area.height.saturating_sub(below + 1);
        let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
        [row(0, text), row(text, 1.min(area.height)), row(text + 1, below)]
    }
}

/// Twice the limit, as a first word in the field.
fn proposal(limit: &str) -> String {
    let number: String = limit.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse::<f64>().map(|n| format!("{:.2}", n * 2.0)).unwrap_or_default()
}

/// For tests that walk all dialogs: one of each kind.
pub(crate) fn samples() -> Vec<Ask> {
    let item = |kind: &str, path: &str, detail: &str| TrustItem {
        kind: kind.into(),
        change: None,
        path: path.into(),
        detail: detail.into(),
        hash: "00".into(),
    };
    let brings = vec![
        item("permissions", ".tiller/permissions.yaml", "allows terminal(cargo test*)"),
        item("mcp server", ".mcp.json", "runs npx some-server"),
    ];
    let (spent, limit) = ("$5.02".into(), "$5.00".into());
    [
        AskBody::Trust { folder: "/home/a/api".into(), brings, changed: true },
        AskBody::Budget { what: "session budget".into(), spent, limit, next: None },
        AskBody::DeepTier { model: "anthropic/deep".into(), why: "it costs about ten times as much".into() },
        AskBody::SessionBusy { holder: "process 4711".into() },
        AskBody::NotSaving { why: "the disk is full".into() },
        AskBody::Plan {
            file: "/home/a/.local/state/tiller/plans/01.md".into(),
            plan:
                "# Retry logic\n\n1. Find every caller\n2. Move the wait into the client\n3. Run the tests\n"
                    .into(),
        },
        AskBody::Repeats { calls: "terminal, read_file".into(), rounds: 6 },
        AskBody::Unpriced {
            model: "local/m".into(),
            why: "its price is not known, so the budget of the session ($5.00) cannot be kept with it".into(),
        },
    ]
    .into_iter()
    .map(|body| {
        let agent = tiller_protocol::AgentId::main();
        Ask { id: crate::dialog::sample_id(), agent, call: None, body }
    })
    .collect()
}

/// Sample number `n` as a dialog.
pub(crate) fn sample(n: usize) -> Box<dyn Panel> {
    let ask = samples().swap_remove(n);
    Question::of(&ask)
        .map_or_else(|| Box::new(crate::dialog::confirm::sample()) as Box<dyn Panel>, |d| Box::new(d))
}

#[cfg(test)]
mod tests;
