//! Questions of the program itself: trust, a plan, budget, a dear model or one without a price, a session that is
//! open elsewhere, a store that cannot be written. Text, buttons, and a field for a new limit or for what to change in a plan.

#[path = "ask_face.rs"]
mod face;

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::ask::TrustItem;
use tiller_protocol::command::AskCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{Ask, AskBody, AskId, AskReply, CommandBody, Event, EventBody};

use super::deaf::Deaf;
use crate::action::{Action, ActionSpec};
use crate::effect::{Effect, Token};
use crate::keymap::Chord;
use crate::ladder::Rung;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, Place, Reply};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::widget::buttons::{self, Face};
use crate::widget::edit::Edit;
use crate::widget::scroll::Scroll;
use crate::widget::{draw, input};

/// What they can do.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::yes("question.yes", "yes", "Yes, go on"),
    ActionSpec::key_only("question.no", "no", "No, leave it"),
    ActionSpec::yes("question.trust", "trust", "Trust what the folder brings, as it is now"),
    ActionSpec::key_only("question.never", "never", "Do not trust it, and do not ask again"),
    ActionSpec::key_only("question.raise", "raise the limit", "Write a new limit"),
    ActionSpec::key_only("question.stop", "stop", "Leave the limit as it is, and stop"),
    ActionSpec::key_only("question.branch", "branch", "Open a branch of the session"),
    ActionSpec::key_only("question.read_only", "only read", "Open the session to look at it"),
    ActionSpec::yes("question.approve", "approve", "Approve the plan: the agent works by it"),
    ActionSpec::key_only("question.change", "change", "Say what to change in the plan"),
    ActionSpec::key_only("question.editor", "editor", "Change the plan in your editor"),
    ActionSpec::key_only("question.drop", "drop", "Drop the plan, and plan no more"),
    ActionSpec::key_only("question.next", "next", "Next button"),
    ActionSpec::key_only("question.previous", "previous", "Button before"),
    ActionSpec::key_only("question.press", "press", "Press the button that has the focus; never a yes"),
    ActionSpec::key_only("question.send", "done", "Done with the text"),
];

const ANSWER: Token = Token(1);

/// A button: action, what it is called, what it answers. `None`: it opens the field, or the editor.
pub(super) struct Choice(pub(super) &'static str, pub(super) &'static str, pub(super) Option<AskReply>);

/// The dialog.
pub struct Question {
    ask: Ask,
    scope: &'static str,
    title: String,
    /// What Escape does; `None` puts it aside.
    escape: Option<AskReply>,
    choices: Vec<Choice>,
    lines: Vec<Line>,
    text: Scroll,
    field: Edit,
    writing: bool,
    focus: usize,
    deaf: Deaf,
    sent: bool,
    said: Option<String>,
    spots: Vec<Rect>,
}

fn line(text: &str, role: Role) -> Line {
    Line::strict(text, Look::of(role), Wrap::Word)
}

/// What a folder brings, each with what it would do.
fn brings(folder: &str, items: &[TrustItem], changed: bool) -> Vec<Line> {
    let mut all = vec![line(folder, Role::Strong)];
    if changed {
        all.push(line("! it has changed since you trusted it", Role::Waiting));
    }
    all.push(line("It brings things that run programs or loosen rules:", Role::Text));
    for item in items {
        let mut row = Line::new(Wrap::Word);
        row.push_strict(&item.kind, Look::of(Role::Accent));
        row.push("  ", Look::of(Role::Text));
        row.push_strict(&item.path, Look::of(Role::Strong));
        all.push(row.gutter(Gutter::blank(2)));
        if !item.detail.is_empty() {
            all.push(line(&item.detail, Role::Text).gutter(Gutter::blank(6)));
        }
    }
    all.push(line("Without trust none of it is used. Everything else works.", Role::Dim));
    all
}

impl Question {
    /// For one of these questions.
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
                    "trust this folder?".to_owned(),
                    brings(folder, items, *changed),
                    vec![
                        Choice("question.never", "never", Some(AskReply::Never)),
                        Choice("question.trust", "trust", yes()),
                    ],
                )
            }
            AskBody::Budget { what, spent, limit } => {
                field = proposal(limit);
                (
                    format!("{what}: the limit is reached"),
                    vec![
                        line(&format!("{spent} of {limit} is spent."), Role::Strong),
                        line(
                            "Go on with a higher limit, or stop here; nothing is lost by stopping.",
                            Role::Text,
                        ),
                    ],
                    vec![
                        Choice("question.stop", "stop", no()),
                        Choice("question.raise", "raise the limit", None),
                    ],
                )
            }
            AskBody::Plan { file, plan } => {
                scope = "plan";
                ("work by this plan?".to_owned(), super::plan::lines(file, plan), super::plan::choices())
            }
            AskBody::DeepTier { model, why } => (
                "use the expensive model?".to_owned(),
                vec![line(model, Role::Strong), line(why, Role::Text)],
                vec![Choice("question.no", "no", no()), Choice("question.yes", "yes, use it", yes())],
            ),
            AskBody::Unpriced { model, why } => (
                "use a model whose price is not known?".to_owned(),
                vec![
                    line(model, Role::Strong),
                    line(why, Role::Text),
                    line(
                        "Yes holds for this session. To keep the budget, write its price into config.toml, or \
                         choose another model.",
                        Role::Dim,
                    ),
                ],
                vec![Choice("question.no", "no", no()), Choice("question.yes", "yes, use it", yes())],
            ),
            AskBody::SessionBusy { holder } => (
                "this session is open elsewhere".to_owned(),
                vec![
                    line(&format!("It is open in {holder}. Two writers would mix their words."), Role::Text),
                    line("A branch is a copy that goes its own way from here.", Role::Dim),
                ],
                vec![
                    Choice("question.no", "cancel", no()),
                    Choice("question.branch", "branch", Some(AskReply::Branch)),
                    Choice("question.read_only", "only read", Some(AskReply::ReadOnly)),
                ],
            ),
            AskBody::NotSaving { why } => (
                "go on without saving?".to_owned(),
                vec![
                    line(&format!("Nothing can be saved: {why}"), Role::Error),
                    line("What happens from here on is lost when Tiller ends.", Role::Text),
                ],
                vec![
                    Choice("question.no", "no, stop", no()),
                    Choice("question.yes", "yes, go on without saving", yes()),
                ],
            ),
            AskBody::Permission(_) | AskBody::Clarify { .. } => return None,
        };
        let mut text = Scroll::default();
        text.set(lines.clone());
        Some(Self {
            ask: ask.clone(),
            scope,
            title,
            escape,
            choices,
            lines,
            text,
            field: Edit::with(&field),
            writing: false,
            focus: 0,
            deaf: Deaf::default(),
            sent: false,
            said: None,
            spots: Vec::new(),
        })
    }

    fn answer(&mut self, reply: AskReply) -> Reply {
        self.sent = true;
        let body = CommandBody::Ask(AskCommand::Answer { id: self.ask.id, reply });
        Reply::with(Effect::Ask(body, ANSWER))
    }

    fn press(&mut self, n: usize) -> Reply {
        let Some(choice) = self.choices.get(n) else { return Reply::Ignored };
        // What a folder brings is read before it is trusted.
        if choice.0 == "question.trust" && !self.text.read(self.lines.len()) {
            self.said = Some("not yet: read to the end first".into());
            return Reply::done();
        }
        if choice.0 == "question.editor" {
            return super::plan::editor(&self.ask.body).map_or(Reply::Ignored, Reply::with);
        }
        match choice.2.clone() {
            Some(reply) => self.answer(reply),
            None => {
                self.writing = true;
                self.said = None;
                Reply::done()
            }
        }
    }

    /// Whether a button says yes to something.
    fn says_yes(&self, n: usize) -> bool {
        self.choices.get(n).is_some_and(|c| crate::action::find(c.0).is_some_and(|s| s.yes))
    }

    fn send(&mut self) -> Reply {
        if self.scope == "plan" {
            let text = self.field.text().trim().to_owned();
            if text.is_empty() {
                self.said = Some("write what to change".into());
                return Reply::done();
            }
            return self.answer(AskReply::Choice { answers: vec![text] });
        }
        let typed = self.field.text().trim().trim_start_matches('$').to_owned();
        match typed.parse::<f64>() {
            Ok(n) if n.is_finite() && n > 0.0 => self.answer(AskReply::Yes { value: Some(typed) }),
            _ => {
                self.said = Some("write an amount in dollars, for instance 5 or 2.50".into());
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
        AskBody::Budget { what: "session budget".into(), spent, limit },
        AskBody::DeepTier { model: "anthropic/deep".into(), why: "it costs about ten times as much".into() },
        AskBody::SessionBusy { holder: "process 4711".into() },
        AskBody::NotSaving { why: "the disk is full".into() },
        AskBody::Plan {
            file: "/home/a/.local/state/tiller/plans/01.md".into(),
            plan:
                "# Retry logic\n\n1. Find every caller\n2. Move the wait into the client\n3. Run the tests\n"
                    .into(),
        },
        AskBody::Unpriced {
            model: "local/m".into(),
            why: "its price is not known, so the budget of the session ($5.00) cannot be kept with it".into(),
        },
    ]
    .into_iter()
    .map(|body| {
        let agent = tiller_protocol::AgentId::main();
        Ask { id: super::sample_id(), agent, call: None, body }
    })
    .collect()
}

/// The n-th of them as a dialog.
pub(crate) fn sample(n: usize) -> Box<dyn Panel> {
    let ask = samples().swap_remove(n);
    Question::of(&ask).map_or_else(|| Box::new(super::confirm::sample()) as Box<dyn Panel>, |d| Box::new(d))
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
