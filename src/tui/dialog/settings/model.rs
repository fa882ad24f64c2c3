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
    /// As the engine listed them: what can be chosen first, and what is in use before all.
    models: Vec<ModelChoice>,
    loaded: bool,
    /// For this agent, which has this model now; `None`: for the one on the screen.
    of: Option<(AgentId, ModelRef)>,
}

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Models { models: Vec::new(), loaded: false, of: None })
}

/// The list for this agent, whichever agent is on the screen.
pub(crate) fn open_for(agent: AgentId, now: ModelRef) -> Picker {
    Picker::new(Models { models: Vec::new(), loaded: false, of: Some((agent, now)) })
}

impl Source for Models {
    fn title(&self) -> String {
        self.of.as_ref().map_or("Model".into(), |(agent, _)| format!("Model of {}", agent.name()))
    }

    fn spec(&self) -> ListSpec {
        ListSpec { columns: COLUMNS, table: Some(4), empty: self.empty_text(), ..ListSpec::default() }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Models), Token(1))]
    }

    fn reply(&mut self, _token: Token, event: &Event, model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::ModelsReply { models } = reply.as_ref() else { return None };
        self.loaded = true;
        let used = self.used(model).clone();
        self.models.clone_from(models);
        self.models.sort_by_key(|m| (m.model != used, m.unavailable.is_some()));
        Some(Vec::new())
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let used = self.used(model);
        self.models.iter().map(|m| row(m, used)).collect()
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
        self.models.iter().find(|m| m.model.0 == item.id).map(about)
    }
}

impl Models {
    /// The model in use, of the agent that the list is for.
    fn used<'a>(&'a self, model: &'a Model) -> &'a ModelRef {
        self.of.as_ref().map_or(&model.agent.session.model, |(_, now)| now)
    }

    /// Returns what the list says while it has no rows.
    fn empty_text(&self) -> &'static str {
        match (self.loaded, self.models.is_empty()) {
            (false, _) => "Loading...",
            (true, true) => "Models appear here once a provider is set up; /setup does that",
            (true, false) => "No model matches",
        }
    }
}

/// A figure that is not known.
const UNKNOWN: &str = "-";

fn row(m: &ModelChoice, used: &ModelRef) -> Item {
    let price = |of: fn((f64, f64)) -> f64| {
        m.price.map_or(Cell::dim(UNKNOWN), |p| Cell::number(format!("${:.2}", of(p)), ""))
    };
    Item {
        more: about(m),
        disabled: m.unavailable.clone(),
        ..Item::new(m.model.0.clone(), m.model.0.clone())
            .cell(m.window.map_or(Cell::dim(UNKNOWN), Cell::count))
            .cell(price(|p| p.0))
            .cell(price(|p| p.1))
            .current(m.model == *used)
    }
}

/// Returns what the row does not say: where the model is from, and prices of long prompts. The row of a model that cannot be
/// used says why in place of its figures, so they stand here.
fn about(m: &ModelChoice) -> String {
    let mut lines = vec![format!("Source   {}", m.source)];
    if m.model.is_demo() {
        lines.push("Kind     a script, not a language model".into());
    }
    if m.unavailable.is_some() {
        lines.extend(m.window.map(|w| format!("Context  {}k tokens", w / 1000)));
        lines.extend(m.price.map(|(i, o)| format!("Price    ${i:.2} in, ${o:.2} out per million tokens")));
    }
    let long = |(over, i, o): &(u64, f64, f64)| {
        format!("Above {}k prompt tokens   ${i:.2} in, ${o:.2} out per million tokens", over / 1000)
    };
    lines.extend(m.long.iter().map(long));
    lines.join("\n")
}
