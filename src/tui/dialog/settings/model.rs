//! Choose the model: what is configured, found in the environment, or running on this machine.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::ModelChoice;
use tiller_protocol::{AgentId, CommandBody, Event, EventBody, ModelRef};

use crate::app::effect::{Effect, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Picker, Source};
use crate::keymap::action::Menu;
use crate::model::Model;
use crate::registry::{Dialog, Opener};
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("model.open", "model", "Choose the model", |_| Ok(Box::new(open())))
        .menu(Menu::Agents)
        .keys(&["leader m"])],
    samples: &[("models", || Box::new(open()))],
    ..Dialog::NONE
};

/// Prices are in dollars per million tokens.
const COLUMNS: &[Column] = &[
    Column::text("Model").grows(),
    Column::number("Context").rank(1),
    Column::number("Input $/M"),
    Column::number("Output $/M"),
];

struct Models {
    items: Vec<Item>,
    loaded: bool,
    /// For this agent, which has this model now; `None`: for the one on the screen.
    of: Option<(AgentId, ModelRef)>,
}

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Models { items: Vec::new(), loaded: false, of: None })
}

/// The list for this agent, whichever agent is on the screen.
pub(crate) fn open_for(agent: AgentId, now: ModelRef) -> Picker {
    Picker::new(Models { items: Vec::new(), loaded: false, of: Some((agent, now)) })
}

impl Source for Models {
    fn title(&self) -> String {
        self.of.as_ref().map_or("Model".into(), |(agent, _)| format!("Model of {}", agent.name()))
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            columns: COLUMNS,
            table: Some(5),
            empty: if self.loaded { "No model matches" } else { "Loading..." },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Models), Token(1))]
    }

    fn reply(&mut self, _token: Token, event: &Event, model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::ModelsReply { models } = reply.as_ref() else { return None };
        self.loaded = true;
        let used = self.of.as_ref().map_or(&model.agent.session.model, |(_, now)| now);
        let mut models: Vec<&ModelChoice> = models.iter().collect();
        // What can be chosen stands first, and what is in use before all.
        models.sort_by_key(|m| (m.model != *used, m.unavailable.is_some()));
        self.items = models
            .into_iter()
            .map(|m| {
                let price = |of: fn((f64, f64)) -> f64| {
                    m.price.map_or(Cell::dim("unknown"), |p| Cell::number(format!("${:.2}", of(p)), ""))
                };
                let mut more = vec![m.model.0.clone()];
                more.extend(m.window.map(|w| format!("window: {}k tokens", w / 1000)));
                more.push(match m.price {
                    Some((i, o)) => format!("per million tokens: ${i} in, ${o} out"),
                    None => "price unknown".into(),
                });
                let long = |(over, i, o): &(u64, f64, f64)| {
                    format!("above {}k prompt tokens: ${i} in, ${o} out", over / 1000)
                };
                more.extend(m.long.iter().map(long));
                more.push(format!("from: {}", m.source));
                more.extend(m.unavailable.iter().map(|why| format!("cannot be used: {why}")));
                Item {
                    more: more.join("\n"),
                    disabled: m.unavailable.clone(),
                    ..Item::new(m.model.0.clone(), m.model.0.clone())
                        .cell(m.window.map_or(Cell::dim(""), Cell::count))
                        .cell(price(|p| p.0))
                        .cell(price(|p| p.1))
                        .current(m.model == *used)
                }
            })
            .collect();
        Some(Vec::new())
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.items.clone()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        let model = ModelRef(item.id.clone());
        let set = CommandBody::Session(SessionCommand::SetModel { model });
        match &self.of {
            Some((agent, _)) => vec![Effect::send_to(agent.clone(), set)],
            None => vec![Effect::send(set)],
        }
    }

    fn preview(&self, item: &Item) -> Option<String> {
        Some(item.more.clone())
    }
}
