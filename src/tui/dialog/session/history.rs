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
}

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(History { scope: HistoryScope::Session, filter: String::new(), prompts: Vec::new() })
}

impl History {
    fn query(&self) -> CommandBody {
        CommandBody::Query(Query::History { scope: self.scope, filter: self.filter.clone(), limit: LIMIT })
    }
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

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::HistoryReply { prompts } = reply.as_ref() else { return None };
        self.prompts.clone_from(prompts);
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
        vec![Effect::Compose(ComposerInput::Text { text: item.id.clone(), replace: true })]
    }

    fn act(&mut self, action: Action, _item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 != "history.wider" {
            return None;
        }
        self.scope = match self.scope {
            HistoryScope::Session => HistoryScope::Project,
            HistoryScope::Project => HistoryScope::All,
            HistoryScope::All => HistoryScope::Session,
        };
        Some(Outcome::Stay { effects: vec![Effect::ask(self.query(), Token(1))], reload: true })
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
        vec![(self.query(), Token(1))]
    }
}
