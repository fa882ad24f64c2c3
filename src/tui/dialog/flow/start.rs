//! Workflows of files, to start one.

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{AgentCommand, CommandBody, Event, EventBody, WorkflowFile};

use crate::app::effect::{Effect, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Picker, Source};
use crate::model::Model;
use crate::text::clean;

const LIST: Token = Token(1);

#[derive(Default)]
struct WorkflowFiles {
    rows: Vec<WorkflowFile>,
    loaded: bool,
}

/// Makes it.
pub(super) fn open() -> Picker {
    Picker::new(WorkflowFiles::default())
}

impl WorkflowFiles {
    fn row(&self, item: &Item) -> Option<&WorkflowFile> {
        self.rows.iter().find(|f| f.name == item.id)
    }
}

impl Source for WorkflowFiles {
    fn title(&self) -> String {
        "Start a workflow".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { empty: self.empty_text(), ..ListSpec::default() }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Workflows), LIST)]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::WorkflowsReply { files } = reply.as_ref() else { return None };
        self.loaded = true;
        self.rows.clone_from(files);
        Some(Vec::new())
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let item = |f: &WorkflowFile| {
            let about = if f.description.is_empty() { String::new() } else { format!("  {}", f.description) };
            let n = f.steps.len();
            let steps = if n == 1 { "1 step".into() } else { format!("{n} steps") };
            Item {
                more: f.path.clone(),
                // Its agents begin to work.
                decides: true,
                disabled: (!f.wrong.is_empty()).then(|| "has an error".into()),
                ..Item::new(&f.name, format!("{}{about}", f.name)).detail(steps)
            }
        };
        self.rows.iter().map(item).collect()
    }

    fn choose(&mut self, item: &Item, model: &Model) -> Vec<Effect> {
        let start = AgentCommand::Workflow { name: item.id.clone() };
        let mut then = vec![Effect::send(CommandBody::Agent(start))];
        // With a picture of another one below this list, that stays; the new one is in it by key.
        if model.crew.workflows.is_empty() {
            then.push(Effect::Focus(crate::panel::View::Composer));
        }
        then
    }

    fn preview(&self, item: &Item) -> Option<String> {
        let f = self.row(item)?;
        let steps: String = f.steps.iter().map(|s| format!("- {s}\n")).collect();
        let text = match f.wrong.is_empty() {
            true => format!("{}\n\n{}\n\n{steps}", f.path, f.description),
            false => format!("{}\n\n{}", f.path, f.wrong),
        };
        Some(clean::plain_lines(&text))
    }
}

impl WorkflowFiles {
    /// Returns what the list says while it has no rows.
    fn empty_text(&self) -> &'static str {
        match (self.loaded, self.rows.is_empty()) {
            (false, _) => "Loading...",
            (true, true) => "No workflow: add NAME.toml or NAME.yaml to .tiller/workflows",
            (true, false) => "No workflow matches",
        }
    }
}
