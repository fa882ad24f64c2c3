//! Learnings and rules: what failed and what worked instead, and what came of the rules of memory files. Enter goes to the
//! message that a learning comes from; keys accept, edit, retire and undo, and make a permission rule of a rule.

use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    CommandBody, Event, EventBody, Learning, LearningCommand, LearningState, LearningText, LearningsQuery,
    LearningsReply, Notice, NoticeKind, RuleView,
};

use crate::app::effect::{Effect, EntryAction, Navigation, Token};
use crate::dialog::commands::palette::ago;
use crate::dialog::picker::{self, EngineQuery, Item, ListSpec, Outcome, Picker, Source};
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
];

/// Default keys of the section `learnings`.
const KEYS: &[DefaultKey] = &[
    ("leader a", "learnings.accept"),
    ("leader x", "learnings.retire"),
    ("leader e", "learnings.edit"),
    ("leader z", "learnings.undo"),
    ("leader p", "learnings.promote"),
];

const COLUMNS: &[Column] = &[
    Column::text("Tried, or rule").grows(),
    Column::text("State"),
    Column::number("Used"),
    Column::text("From").rank(2),
    Column::right("When").rank(1),
];

/// Rows of the preview.
const PREVIEW: u16 = 7;
/// Most learnings of the list.
const ROWS: u32 = 500;
/// Violations from which a rule may become a permission rule.
const VIOLATED: u32 = 2;

/// Token of the list, and of a change.
const LIST: Token = Token(1);
const CHANGE: Token = Token(2);

/// The list.
#[derive(Default)]
struct List {
    page: LearningsReply,
    loaded: bool,
    /// What the last change did, until it is shown.
    said: Option<String>,
}

/// What a row is about.
enum Row<'a> {
    Learning(&'a Learning),
    Rule(&'a RuleView),
}

/// With rows, for the tests that visit all dialogs.
fn sample() -> Picker {
    Picker::new(List { page: LearningsReply::default(), loaded: true, said: None })
}

impl List {
    /// What a row stands for: its id is the kind and the place in the list.
    fn row(&self, item: Option<&Item>) -> Option<Row<'_>> {
        let (kind, at) = item?.id.split_once(' ')?;
        let at: usize = at.parse().ok()?;
        match kind {
            "rule" => self.page.rules.get(at).map(Row::Rule),
            _ => self.page.learnings.get(at).map(Row::Learning),
        }
    }

    fn send(command: LearningCommand) -> Outcome {
        Outcome::Stay { effects: vec![Effect::ask(CommandBody::Learning(command), CHANGE)], reload: false }
    }

    /// Makes a permission rule of what a rule forbids, as its preview shows it.
    fn promote(rule: &RuleView) -> Outcome {
        if rule.never.is_empty() {
            return toast("The rule forbids nothing: add [never: ...] to it");
        }
        if rule.receipts.violated < VIOLATED {
            return toast("The rule was not violated twice yet");
        }
        Self::send(LearningCommand::Promote { rule: rule.text.clone(), line: rule.never.join(" && ") })
    }
}

fn toast(words: &str) -> Outcome {
    let notice = Notice::new(NoticeKind::Info, words);
    Outcome::Stay { effects: vec![Effect::Toast(notice)], reload: false }
}

/// Goes to the message that a learning comes from.
fn visit(learning: &Learning) -> Outcome {
    match learning.source.session.zip(learning.source.entry) {
        Some((session, entry)) => {
            let to = Navigation::Entry { session, entry, then: EntryAction::Show };
            Outcome::Close(vec![Effect::Navigate(to)])
        }
        None => toast("It comes from no message: it was imported, or saved by a call"),
    }
}

fn learning_item(at: usize, l: &Learning, model: &Model) -> Item {
    let (group, role) = match l.state {
        LearningState::Proposed => ("Waiting for you", Role::Waiting),
        LearningState::Active => ("In use", Role::Text),
        _ => ("Retired", Role::Dim),
    };
    let when = l.last_used_at.unwrap_or(l.created_at);
    Item::new(format!("learning {at}"), &l.pattern)
        .group(group)
        .cell(Cell::new(l.state.word(), role))
        .cell(Cell::number(l.times_used.to_string(), ""))
        .detail(l.source.taint.label())
        .detail(ago(model.now.millis() - when.millis()))
}

fn rule_item(at: usize, rule: &RuleView) -> Item {
    let (word, role) = match (&rule.promoted, rule.receipts.violated) {
        (Some(_), _) => ("forbidden", Role::Ok),
        (None, 0) => ("followed", Role::Text),
        (None, _) => ("violated", Role::Waiting),
    };
    let word = if rule.receipts.shown == 0 && rule.promoted.is_none() { "not shown" } else { word };
    Item::new(format!("rule {at}"), &rule.text)
        .group("Rules")
        .cell(Cell::new(word, role))
        .cell(Cell::number(rule.receipts.shown.to_string(), ""))
        .detail(rule.origin.clone())
        .detail("")
}

/// All of a learning, for the preview.
fn about(l: &Learning) -> String {
    let mut text = format!("Instead: {}", l.fix);
    if !l.context.is_empty() {
        text.push_str(&format!("\n{}", l.context));
    }
    if !l.kind.error_type.is_empty() {
        text.push_str(&format!("\n\nError: {}", l.kind.error_type));
    }
    if !l.tags.is_empty() {
        text.push_str(&format!("\nTags: {}", l.tags.join(", ")));
    }
    text
}

/// All of a rule, with the exact line that a key would write, and where.
fn about_rule(rule: &RuleView, file: &str) -> String {
    let counts = rule.receipts;
    let mut text = format!(
        "Shown {} times, followed {}, violated {}\nWith: {}",
        counts.shown,
        counts.followed,
        counts.violated,
        rule.when.iter().chain(&rule.never).cloned().collect::<Vec<_>>().join(", ")
    );
    match &rule.promoted {
        Some(line) => text.push_str(&format!("\n\nIn {file}:\ndeny {line}")),
        None if !rule.never.is_empty() => {
            text.push_str(&format!("\n\nWould be written to {file}:\ndeny {}", rule.never.join(" && ")));
        }
        None => {}
    }
    text
}

impl Source for List {
    fn title(&self) -> String {
        "Learnings".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "learnings",
            actions: picker::ACTIONS,
            verb: "go to source",
            columns: COLUMNS,
            table: Some(PREVIEW),
            empty: match (self.loaded, self.page.learnings.is_empty() && self.page.rules.is_empty()) {
                (false, _) => "Loading...",
                (true, true) => {
                    "Nothing was learned yet: a failed call and a later one that works appear here"
                }
                (true, false) => "No learning matches",
            },
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
                // What waits for the person comes first, what is retired last.
                let rank = |l: &Learning| match l.state {
                    LearningState::Proposed => 0,
                    LearningState::Active => 1,
                    _ => 2,
                };
                self.page.learnings.sort_by_key(rank);
                self.loaded = true;
                Some(Vec::new())
            }
            ReplyEvent::DoneReply { said } if token == CHANGE => {
                self.said = Some(said.clone());
                Some(self.queries())
            }
            // The list may be old: the notice says why it was refused.
            ReplyEvent::ErrorReply { .. } => {
                self.loaded = true;
                Some(if token == CHANGE { self.queries() } else { Vec::new() })
            }
            _ => None,
        }
    }

    /// Says what the last change did.
    fn hover(&mut self, _item: Option<&Item>) -> Vec<Effect> {
        let said = self.said.take().map(|said| Effect::Toast(Notice::new(NoticeKind::Info, said)));
        said.into_iter().collect()
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let learnings = self.page.learnings.iter().enumerate().map(|(at, l)| learning_item(at, l, model));
        let rules = self.page.rules.iter().enumerate().map(|(at, rule)| rule_item(at, rule));
        learnings.chain(rules).collect()
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        let decide = |id, state| Some(Self::send(LearningCommand::Decide { id, state }));
        match (action.0, self.row(item)?) {
            ("picker.choose", Row::Learning(l)) => Some(visit(l)),
            ("learnings.accept", Row::Learning(l)) => decide(l.id, LearningState::Active),
            ("learnings.retire", Row::Learning(l)) => decide(l.id, LearningState::Retired),
            ("learnings.edit", Row::Learning(l)) => {
                Some(Outcome::Input { label: "instead", text: l.fix.replace('\n', " ") })
            }
            ("learnings.undo", Row::Learning(l)) => Some(Self::send(LearningCommand::Undo { id: l.id })),
            ("learnings.undo", Row::Rule(rule)) => {
                Some(Self::send(LearningCommand::Demote { rule: rule.text.clone() }))
            }
            ("learnings.promote", Row::Rule(rule)) => Some(Self::promote(rule)),
            ("learnings.promote", Row::Learning(_)) => Some(toast("A learning forbids nothing")),
            ("learnings.accept" | "learnings.retire" | "learnings.edit" | "picker.choose", Row::Rule(_)) => {
                Some(toast("Edit the rule in its memory file"))
            }
            _ => None,
        }
    }

    fn submit(&mut self, item: &Item, text: &str, _model: &Model) -> Outcome {
        let Some(Row::Learning(l)) = self.row(Some(item)) else { return Outcome::none() };
        if text.is_empty() || text == l.fix {
            return Outcome::none();
        }
        let text =
            LearningText { pattern: l.pattern.clone(), fix: text.to_owned(), context: l.context.clone() };
        Self::send(LearningCommand::Edit { id: l.id, text })
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let learnings = !self.page.learnings.is_empty();
        let rules = self.page.rules.iter().any(|r| r.receipts.violated >= VIOLATED && r.promoted.is_none());
        let all = [
            (learnings, "learnings.accept"),
            (learnings, "learnings.retire"),
            (learnings, "learnings.edit"),
            (rules, "learnings.promote"),
            (true, "learnings.undo"),
        ];
        all.into_iter().filter(|(shown, _)| any && *shown).map(|(_, id)| Hint::of(id)).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        self.row(Some(item)).map(|row| match row {
            Row::Learning(l) => about(l),
            Row::Rule(rule) => about_rule(rule, &self.page.rule_file),
        })
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{FailureKind, LearningSource, RuleReceipts, Taint, Time};

    use super::*;
    use crate::testing::Robot;

    fn page(now: i64) -> LearningsReply {
        let learning = |id: i64, pattern: &str, fix: &str, state: LearningState, times_used| Learning {
            id,
            kind: FailureKind {
                error_type: "error failed to push some refs".into(),
                ..FailureKind::default()
            },
            pattern: pattern.into(),
            fix: fix.into(),
            context: "added: --rebase".into(),
            tags: vec!["git".into()],
            state,
            created_at: Time(now - 90_000),
            last_used_at: None,
            times_used,
            source: LearningSource {
                session: None,
                entry: None,
                agent: "main".into(),
                branch: "main".into(),
                taint: Taint::ToolOutput,
            },
        };
        LearningsReply {
            learnings: vec![
                learning(4, "`git push`", "`git pull --rebase`, then `git push`", LearningState::Active, 3),
                learning(7, "`npm install`", "`npm install --legacy-peer-deps`", LearningState::Proposed, 0),
            ],
            rules: vec![RuleView {
                text: "Nothing is pushed to main, the bot does that.".into(),
                when: vec!["terminal(git push*)".into()],
                never: vec!["terminal(git push* main*)".into()],
                origin: "MEMORY.md".into(),
                receipts: RuleReceipts { shown: 4, followed: 1, violated: 2 },
                promoted: None,
            }],
            rule_file: "/home/ada/.config/tiller/permissions.yaml".into(),
        }
    }

    #[test]
    fn learnings_and_rules_are_listed_and_decided() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = Robot::new(width, height);
            assert!(r.app.act(Action("learnings.open")));
            r.run("wait 1");
            let reply = page(r.app.model.now.millis());
            let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
            r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
            r.run("wait 1");
            insta::assert_snapshot!(format!("learnings_at_{width}x{height}"), r.screen());
            // The proposal stands first.
            r.run("wait 1000; ctrl-x a");
            let sent = |r: &mut Robot| -> Vec<LearningCommand> {
                let learning = |c: &CommandBody| match c {
                    CommandBody::Learning(l) => Some(l.clone()),
                    _ => None,
                };
                r.commands().into_iter().filter_map(learning).collect()
            };
            let accept = LearningCommand::Decide { id: 7, state: LearningState::Active };
            assert!(sent(&mut r).contains(&accept));
            // The rule shows the exact line, and where it is written.
            r.run("down; down; wait 1000");
            let screen = r.screen();
            assert!(screen.contains("deny terminal(git push* main*)"), "{screen}");
            assert!(screen.contains("permissions.yaml"), "{screen}");
            r.run("ctrl-x p");
            let promote = LearningCommand::Promote {
                rule: "Nothing is pushed to main, the bot does that.".into(),
                line: "terminal(git push* main*)".into(),
            };
            assert!(sent(&mut r).contains(&promote));
        }
    }
}
