//! Learnings and rules: what failed and what worked instead, and what came of the rules of memory files. Enter goes to the
//! message that a learning comes from; keys accept, edit, retire and undo, and make a permission rule or a hook of a rule.

use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::notice::counted;
use tiller_protocol::{
    CommandBody, EntryId, Event, EventBody, Learning, LearningCommand, LearningState, LearningText,
    LearningsQuery, LearningsReply, PromotionKind, RuleView, SessionId,
};

use super::list_state::{self, LIST, ListState, ListUpdate, TO_SOURCE, toast, visit};
use crate::app::effect::{Effect, Token};
use crate::dialog::commands::palette::ago;
use crate::dialog::picker::{self, EngineQuery, Enter, Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("learnings.open", "learnings", "Learnings: what failed, and what worked", |_| {
        Ok(Box::new(Picker::new(List::default())))
    })
    .menu(Menu::Go)],
    groups: &[("Learnings", ACTIONS)],
    scopes: &[Scope::new("learnings", Some("picker"), "Learnings", true).keys(KEYS)],
    samples: &[("learnings", || Box::new(sample()))],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("learnings.accept", "accept", "Use the learning from now on").deciding(),
    ActionSpec::key_only("learnings.retire", "it was wrong", "Retire the learning: it was wrong").deciding(),
    ActionSpec::key_only("learnings.edit", "edit", "Edit what to do instead"),
    ActionSpec::key_only("learnings.undo", "undo", "Undo the last change of this row").deciding(),
    ActionSpec::key_only("learnings.promote", "forbid", "Write a permission rule of what the rule forbids")
        .deciding(),
    ActionSpec::key_only("learnings.hook", "hook", "Write a hook of the rule").deciding(),
];

/// Default keys of the section `learnings`.
const KEYS: &[DefaultKey] = &[
    ("leader a", "learnings.accept"),
    ("leader x", "learnings.retire"),
    ("leader e", "learnings.edit"),
    ("leader z", "learnings.undo"),
    ("leader p", "learnings.promote"),
    ("leader h", "learnings.hook"),
];

const COLUMNS: &[Column] = &[
    Column::text("Tried, or rule").grows(),
    Column::text("State"),
    Column::number("Used"),
    Column::text("From").rank(2),
    Column::right("When").rank(1),
];

/// Rows of the preview.
const PREVIEW: u16 = 9;
/// Most learnings of the list.
const ROWS: u32 = 500;
/// The list.
#[derive(Default)]
struct List {
    page: LearningsReply,
    state: ListState,
    /// The text of the memory entry whose rule the list starts on.
    start: Option<String>,
}

/// With the cursor on the rule of the memory entry with this text.
pub(super) fn open_at(entry: &str) -> Picker {
    Picker::new(List { start: Some(entry.to_owned()), ..List::default() })
}

/// True when `entry` has all words of `rule` in their order: it has its matchers between them.
fn has_words(entry: &str, rule: &str) -> bool {
    let mut words = entry.split_whitespace();
    rule.split_whitespace().all(|word| words.any(|own| own == word))
}

/// The learning or rule of a row.
enum Row<'a> {
    Learning(&'a Learning),
    Rule(&'a RuleView),
}

/// With rows, for the tests that visit all dialogs.
fn sample() -> Picker {
    Picker::new(List { state: ListState::loaded(), ..List::default() })
}

impl List {
    /// Returns what a row stands for: its id is the kind, and the number of the learning or the text of the rule.
    fn row(&self, item: Option<&Item>) -> Option<Row<'_>> {
        self.by_id(&item?.id)
    }

    fn by_id(&self, id: &str) -> Option<Row<'_>> {
        match id.split_once(' ')? {
            ("rule", text) => self.page.rules.iter().find(|rule| rule.text == text).map(Row::Rule),
            (_, number) => {
                let number: i64 = number.parse().ok()?;
                self.page.learnings.iter().find(|l| l.id == number).map(Row::Learning)
            }
        }
    }

    fn send(command: LearningCommand) -> Outcome {
        list_state::send(CommandBody::Learning(command))
    }

    /// Makes a permission rule or a hook of a rule, as its preview shows it.
    fn promote(rule: &RuleView, kind: PromotionKind) -> Outcome {
        let offer = rule.offers.iter().find(|offer| offer.kind == kind);
        match (rule.refusal(kind), offer) {
            (None, Some(offer)) => {
                let (rule, text) = (rule.text.clone(), offer.text.clone());
                Self::send(LearningCommand::Promote { rule, kind, text })
            }
            (why, _) => toast(why.unwrap_or_default()),
        }
    }
}

/// The message that a learning comes from.
fn source(learning: &Learning) -> Option<(SessionId, EntryId)> {
    learning.source.session.zip(learning.source.entry)
}

fn learning_item(l: &Learning, model: &Model) -> Item {
    let (group, role) = match l.state {
        LearningState::Proposed => ("Waiting for you", Role::Waiting),
        LearningState::Active => ("In use", Role::Text),
        LearningState::Aside => ("Of another branch", Role::Dim),
        _ => ("Retired", Role::Dim),
    };
    let when = l.last_used_at.unwrap_or(l.created_at);
    Item::new(format!("learning {}", l.id), &l.pattern)
        .group(group)
        .cell(Cell::new(l.state.word(), role))
        .cell(Cell::number(l.times_used.to_string(), ""))
        .detail(l.source.taint.label())
        .detail(ago(model.now.millis() - when.millis()))
}

fn rule_item(rule: &RuleView) -> Item {
    let counts = rule.receipts;
    let (word, role) = match rule.promoted.as_ref().map(|made| made.kind) {
        Some(PromotionKind::Permission) => ("forbidden".to_owned(), Role::Ok),
        Some(PromotionKind::Hook) => ("hook".to_owned(), Role::Ok),
        None if counts.violated > 0 => (format!("violated {}", counts.violated), Role::Waiting),
        None if counts.followed > 0 => (format!("followed {}", counts.followed), Role::Text),
        None if counts.shown > 0 => ("shown".to_owned(), Role::Text),
        None => ("not shown".to_owned(), Role::Text),
    };
    Item::new(format!("rule {}", rule.text), &rule.text)
        .group("Rules")
        .cell(Cell::new(word, role))
        .cell(Cell::number(counts.shown.to_string(), ""))
        .detail(rule.origin.clone())
        .detail("")
}

/// All of a learning, for the preview.
fn about(l: &Learning) -> String {
    let mut text = format!("Tried: {}\nInstead: {}", l.pattern, l.fix);
    if !l.context.is_empty() {
        text.push_str(&format!("\n{}", l.context));
    }
    if !l.shown_error().is_empty() {
        text.push_str(&format!("\n\nError: {}", l.shown_error()));
    }
    if !l.tags.is_empty() {
        text.push_str(&format!("\nTags: {}", l.tags.join(", ")));
    }
    text
}

/// All of a rule, with the exact text that a key would write, and where.
fn about_rule(rule: &RuleView) -> String {
    let counts = rule.receipts;
    let mut text = format!(
        "Shown {}, followed {}, violated {}\nWith: {}",
        counted(u64::from(counts.shown), "time"),
        counts.followed,
        counts.violated,
        rule.when.iter().chain(&rule.never).cloned().collect::<Vec<_>>().join(", ")
    );
    if let Some(made) = &rule.promoted {
        text.push_str(&format!("\nIn {}:\n{}", made.file, made.shown()));
        return text;
    }
    for offer in &rule.offers {
        text.push_str(&format!("\n{} in {}:\n{}", offer.kind.label(), offer.file, offer.shown()));
    }
    text
}

impl List {
    /// True when one of its own actions can be done now, for the row under the cursor.
    fn available(&self, action: Action) -> bool {
        match (self.state.at().and_then(|at| self.by_id(at)), action.0) {
            (Some(Row::Learning(l)), "learnings.accept") => l.state != LearningState::Active,
            (Some(Row::Learning(l)), "learnings.retire") => l.state != LearningState::Retired,
            (Some(Row::Learning(_)), "learnings.edit" | "learnings.undo") => true,
            (Some(Row::Rule(rule)), "learnings.promote" | "learnings.hook") => {
                let kind = match action.0 {
                    "learnings.hook" => PromotionKind::Hook,
                    _ => PromotionKind::Permission,
                };
                rule.refusal(kind).is_none()
            }
            (Some(Row::Rule(rule)), "learnings.undo") => rule.promoted.is_some(),
            (_, id) => !id.starts_with("learnings."),
        }
    }
}

impl Source for List {
    fn title(&self) -> String {
        "Learnings".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "learnings",
            actions: picker::ACTIONS,
            verb: TO_SOURCE,
            columns: COLUMNS,
            table: Some(PREVIEW),
            refused: ListSpec::refused(ACTIONS, |action| self.available(action)),
            empty: match (self.state.loaded, self.page.learnings.is_empty() && self.page.rules.is_empty()) {
                (false, _) => "Loading...",
                (true, true) => {
                    "Nothing was learned yet: a call that failed, and what worked later, appear here"
                }
                (true, false) => "No learning matches",
            },
            decides_on_text: &["learnings.accept", "learnings.promote", "learnings.hook"],
            changed_by: |event| matches!(&event.body, EventBody::State(StateEvent::LearningNews { .. })),
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        let query = LearningsQuery { limit: ROWS, ..LearningsQuery::default() };
        vec![(CommandBody::Query(Query::Learnings { query }), LIST)]
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::LearningsReply { reply } => {
                self.page = reply.clone();
                // What waits for the user comes first, what is retired last.
                let rank = |l: &Learning| match l.state {
                    LearningState::Proposed => 0,
                    LearningState::Active => 1,
                    LearningState::Aside => 2,
                    _ => 3,
                };
                self.page.learnings.sort_by_key(rank);
                self.state.loaded = true;
                Some(Vec::new())
            }
            other => Some(match self.state.reply(token, other)? {
                ListUpdate::Again => self.queries(),
                ListUpdate::Stay => Vec::new(),
            }),
        }
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.state.hover(item)
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let learnings = self.page.learnings.iter().map(|l| {
            let enter = source(l).map(|_| TO_SOURCE).into();
            Item { enter, ..learning_item(l, model) }
        });
        let named = |entry: &String| {
            let rules = self.page.rules.iter().filter(|rule| has_words(entry, &rule.text));
            rules.max_by_key(|rule| rule.text.len()).map(|rule| rule.text.as_str())
        };
        let start = self.start.as_ref().and_then(named);
        let rules = self.page.rules.iter().map(|rule| {
            let current = start == Some(rule.text.as_str());
            Item { enter: Enter::Nothing, current, ..rule_item(rule) }
        });
        learnings.chain(rules).collect()
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        let decide = |id, state| Some(Self::send(LearningCommand::Decide { id, state }));
        match (action.0, self.row(item)?) {
            ("picker.choose", Row::Learning(l)) => {
                Some(visit(source(l), "It comes from no message: it was imported, or saved by a call"))
            }
            ("learnings.accept", Row::Learning(l)) if l.state == LearningState::Active => {
                Some(toast("The learning is in use already"))
            }
            ("learnings.accept", Row::Learning(l)) => decide(l.id, LearningState::Active),
            ("learnings.retire", Row::Learning(l)) if l.state == LearningState::Retired => {
                Some(toast("The learning is retired already"))
            }
            ("learnings.retire", Row::Learning(l)) => decide(l.id, LearningState::Retired),
            ("learnings.edit", Row::Learning(l)) => {
                Some(Outcome::Input { label: "instead", text: self.state.editable(&l.fix) })
            }
            ("learnings.undo", Row::Learning(l)) => Some(Self::send(LearningCommand::Undo { id: l.id })),
            ("learnings.undo", Row::Rule(rule)) => {
                Some(Self::send(LearningCommand::Demote { rule: rule.text.clone() }))
            }
            ("learnings.promote", Row::Rule(rule)) => Some(Self::promote(rule, PromotionKind::Permission)),
            ("learnings.hook", Row::Rule(rule)) => Some(Self::promote(rule, PromotionKind::Hook)),
            ("learnings.promote" | "learnings.hook", Row::Learning(_)) => {
                Some(toast("A learning forbids nothing"))
            }
            ("learnings.accept" | "learnings.retire" | "learnings.edit" | "picker.choose", Row::Rule(_)) => {
                Some(toast("Edit the rule in its memory file"))
            }
            _ => None,
        }
    }

    fn submit(&mut self, item: &Item, text: &str, _model: &Model) -> Outcome {
        let Some(Row::Learning(l)) = self.row(Some(item)) else {
            return Outcome::Refuse("The learning is gone: copy your text, and press Esc");
        };
        let l = l.clone();
        let Some(fix) = self.state.edited(&l.fix, text) else { return Outcome::none() };
        let text = LearningText { pattern: l.pattern, fix, context: l.context };
        Self::send(LearningCommand::Edit { id: l.id, text })
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let waits = |l: &Learning| l.state == LearningState::Proposed;
        let waiting =
            matches!(self.state.at().and_then(|at| self.by_id(at)), Some(Row::Learning(l)) if waits(l));
        let ids = [
            "learnings.accept",
            "learnings.retire",
            "learnings.edit",
            "learnings.undo",
            "learnings.promote",
            "learnings.hook",
        ];
        let hint = |id| match id {
            // What was never used cannot have been wrong, and there is room for the other keys.
            "learnings.retire" if waiting => Hint::as_(id, "decline"),
            _ => Hint::of(id),
        };
        ids.into_iter().filter(|id| any && self.available(Action(id))).map(hint).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        self.row(Some(item)).map(|row| match row {
            Row::Learning(l) => about(l),
            Row::Rule(rule) => about_rule(rule),
        })
    }
}

#[cfg(test)]
#[path = "learnings_tests.rs"]
mod tests;
