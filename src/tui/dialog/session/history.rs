//! Find an earlier prompt. The same key goes from this session to this project to everywhere; Enter puts
//! it into the composer and never sends.

use tiller_protocol::command::{HistoryScope, Query};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Event, EventBody};

use crate::app::effect::{ComposerInput, Effect, Token};
use crate::dialog::picker::{EngineQuery, Item, LateRows, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::widget::table::Cell;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("history.open", "history", "Find an earlier prompt", |_| Ok(Box::new(open())))
        .menu(Menu::Write)
        .keys(&["leader h"])],
    groups: &[("History search", ACTIONS)],
    scopes: &[
        Scope::new("history", Some("picker"), "History search", true).keys(&[("ctrl-r", "history.wider")])
    ],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
pub const ACTIONS: &[ActionSpec] = &[ActionSpec::key_only(
    "history.wider",
    "widen scope",
    "Widen the scope: this session, this project, everywhere",
)];

/// Prompts shown at most.
const LIMIT: u32 = 500;

struct History {
    scope: HistoryScope,
    filter: String,
    prompts: Vec<String>,
    /// Number of the last question to the engine.
    asked: u64,
    /// The answer to it is here.
    answered: bool,
    /// Enter was pressed before it: the first prompt of the answer is inserted.
    wanted: bool,
}

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(History {
        scope: HistoryScope::Session,
        filter: String::new(),
        prompts: Vec::new(),
        asked: 0,
        answered: false,
        wanted: false,
    })
}

impl History {
    fn query(&self) -> CommandBody {
        CommandBody::Query(Query::History { scope: self.scope, filter: self.filter.clone(), limit: LIMIT })
    }

    /// The question for the present words and scope. Answers to those before are dropped.
    fn ask(&mut self) -> EngineQuery {
        self.asked += 1;
        (self.answered, self.wanted) = (false, false);
        (self.query(), Token(self.asked))
    }
}

fn insert(item: &Item) -> Effect {
    Effect::Compose(ComposerInput::Text { text: item.id.clone(), replace: true })
}

impl Source for History {
    fn late(&mut self) -> Option<&mut dyn LateRows> {
        Some(self)
    }

    fn title(&self) -> String {
        match self.scope {
            HistoryScope::Session => "Prompts of this session".into(),
            HistoryScope::Project => "Prompts of this project".into(),
            HistoryScope::All => "Prompts of all projects".into(),
        }
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "history",
            verb: "insert",
            empty: match self.filter.is_empty() {
                true => "Messages appear here once you have sent one",
                false => "No earlier prompt matches here; widen the scope",
            },
            filtered: false,
            ..ListSpec::default()
        }
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::HistoryReply { prompts } = reply.as_ref() else { return None };
        if token != Token(self.asked) {
            return None;
        }
        self.prompts.clone_from(prompts);
        self.answered = true;
        Some(Vec::new())
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let item = |p: &String| {
            let more = p.lines().count().saturating_sub(1);
            let more = if more > 0 { format!("+{more}") } else { String::new() };
            Item::new(p, p.lines().next().unwrap_or("")).cell(Cell::dim(more))
        };
        self.prompts.iter().map(item).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        vec![insert(item)]
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        let wanted = std::mem::take(&mut self.wanted) && self.answered;
        item.filter(|_| wanted).map_or_else(Vec::new, |item| vec![Effect::Pop, insert(item)])
    }

    fn act(&mut self, action: Action, _item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 == "picker.choose" && !self.answered {
            // The rows are those of other words, or there are none yet.
            self.wanted = true;
            return Some(Outcome::none());
        }
        if action.0 != "history.wider" {
            return None;
        }
        self.scope = match self.scope {
            HistoryScope::Session => HistoryScope::Project,
            HistoryScope::Project => HistoryScope::All,
            HistoryScope::All => HistoryScope::Session,
        };
        let (body, token) = self.ask();
        Some(Outcome::Stay { effects: vec![Effect::ask(body, token)], reload: true })
    }

    fn hints(&self, _any: bool) -> Vec<Hint> {
        vec![Hint::of("history.wider")]
    }

    fn preview(&self, item: &Item) -> Option<String> {
        Some(item.id.clone())
    }
}

impl LateRows for History {
    fn filter(&mut self, text: &str) -> Vec<EngineQuery> {
        self.filter = text.to_owned();
        vec![self.ask()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Robot;

    /// Answers the question for these words.
    fn answer(r: &mut Robot, words: &str, prompts: &[&str]) {
        let id =
            r.asked(|c| matches!(c, CommandBody::Query(Query::History { filter, .. }) if filter == words));
        assert!(id.is_some(), "{words} is asked for: {:?}", r.commands());
        let prompts = prompts.iter().map(|prompt| (*prompt).to_owned()).collect();
        r.cause(id, EventBody::Reply(Box::new(ReplyEvent::HistoryReply { prompts })));
    }

    /// Keys come faster than answers: Enter is about the words that were typed, not about a prompt of the words before.
    #[test]
    fn enter_before_the_answer_inserts_the_first_prompt_of_the_typed_words() {
        let mut r = Robot::new(118, 25);
        r.run("ctrl-x h");
        answer(&mut r, "", &["find the cause", "fix the test"]);
        assert!(r.screen().contains("Prompts of this session"), "{}", r.screen());
        r.run("f i x; enter");
        answer(&mut r, "f", &["find the cause", "fix the test"]);
        assert!(r.screen().contains("Prompts of this session"), "an answer to other words: {}", r.screen());
        answer(&mut r, "fix", &["fix the test"]);
        let screen = r.screen();
        assert!(screen.contains("fix the test") && !screen.contains("find the cause"), "{screen}");
        assert!(!screen.contains("Prompts of this session"), "{screen}");
    }
}
