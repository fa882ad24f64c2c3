//! `/context`: what takes up the model's context, layer by layer. Enter shows the text that is sent; keys edit the file of a layer and
//! set its budget.

use std::any::Any;
use std::path::{Path, PathBuf};

use tiller_protocol::command::ContextCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::notice::capital;
use tiller_protocol::view::{ContextReport, LayerCost};
use tiller_protocol::{CommandBody, Event, EventBody, Notice, NoticeKind};

use crate::app::effect::{Effect, External, Job, SettingEdit, Task, Token};
use crate::dialog::confirm::Confirm;
use crate::dialog::picker::{EngineQuery, Item, LateRows, ListSpec, Outcome, Picker, Source};
use crate::dialog::reader::text::Text;
use crate::dialog::reader::viewer;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::widget::table::Cell;
use rows::{COLUMNS, Row, file_of};

mod rows;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("context.open", "context", "What takes up the model's context", |_| {
        Ok(Box::new(open()))
    })
    .menu(Menu::Go)],
    groups: &[("Context", ACTIONS)],
    scopes: &[Scope::new("context", Some("picker"), "Context", true)
        .keys(&[("ctrl-b", "context.budget"), ("leader e", "context.edit")])],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("context.budget", "budget", "Set the budget of this layer"),
    ActionSpec::key_only("context.edit", "edit", "Edit the file of this layer"),
];

/// Largest budget that can be set, in tokens.
const LARGEST: u64 = 1_000_000;
/// When a change of a layer shows: the prefix stays as it is between two compactions.
const WHEN: &str = "It takes effect in the next session, or when this one is compacted";

/// A file that the user can make.
struct OwnFile {
    layer: &'static str,
    name: &'static str,
    about: &'static str,
    place: Place,
}

/// The folder of such a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Settings,
    Data,
    /// The project's: shown only while it exists and this session began without it.
    Project,
}

const FILES: &[OwnFile] = &[
    OwnFile {
        layer: "prompt",
        name: "SOUL.md",
        about: "Who the agent is. `/personality` has ready-made ones",
        place: Place::Settings,
    },
    OwnFile {
        layer: "user",
        name: "USER.md",
        about: "Who you are: what the agent should know of you in every project",
        place: Place::Data,
    },
    OwnFile {
        layer: "memory",
        name: "MEMORY.md",
        about: "What agents should know in every project; a message that begins with # goes there",
        place: Place::Data,
    },
    OwnFile {
        layer: "project",
        name: "AGENTS.md",
        about: "What agents should know of this project",
        place: Place::Project,
    },
];

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(ContextSource::default())
}

#[derive(Default)]
struct ContextSource {
    report: Option<ContextReport>,
    /// The user's folders of settings and of data, and the project's.
    config: Option<PathBuf>,
    data: Option<PathBuf>,
    project: Option<PathBuf>,
    /// Which of [`FILES`] have a text now.
    written: [bool; FILES.len()],
    /// The content of each item; the id of an item is its index.
    rows: Vec<Row>,
    /// The row under the cursor is a layer, which has a budget.
    has_budget: bool,
    /// The row under the cursor has a file.
    has_file: bool,
}

impl ContextSource {
    fn row(&self, item: &Item) -> Row {
        item.id.parse().ok().and_then(|at: usize| self.rows.get(at).copied()).unwrap_or(Row::Other)
    }

    /// The layer that a row shows.
    fn layer(&self, item: &Item) -> Option<&LayerCost> {
        match self.row(item) {
            Row::Layer(at) => self.report.as_ref()?.layers.get(at),
            _ => None,
        }
    }

    /// The file that a row can open.
    fn file(&self, item: &Item) -> Option<PathBuf> {
        match self.row(item) {
            Row::Layer(_) => self.layer(item).and_then(file_of),
            Row::Missing(at) => self.own(&FILES[at]),
            Row::Tools | Row::Messages | Row::Other => None,
        }
    }

    /// The name of the layer that a row belongs to.
    fn name(&self, item: &Item) -> Option<String> {
        match self.row(item) {
            Row::Layer(_) => self.layer(item).map(|l| l.name.clone()),
            Row::Missing(at) => Some(FILES[at].layer.to_owned()),
            Row::Tools | Row::Messages | Row::Other => None,
        }
    }

    /// The text of a layer as it is sent.
    fn text(&self, layer: &LayerCost) -> String {
        let system = self.report.as_ref().map_or("", |report| report.system.as_str());
        match layer.part.and_then(|(from, to)| system.get(from..to)) {
            Some(text) => text.to_owned(),
            None if layer.tokens == 0 || system.is_empty() => {
                format!("The prompt has no text of this layer. Source: {}", layer.source)
            }
            None => format!("This prompt is not divided into its layers. The whole of it:\n\n{system}"),
        }
    }

    /// Shows what a row stands for; a file that is not sent yet is edited.
    fn show(&self, item: &Item, model: &Model) -> Outcome {
        let read = |text: &str| Effect::Push(Box::new(Text::prose(&item.text, text)));
        let effect = match self.row(item) {
            Row::Missing(_) => return self.edit(item),
            Row::Layer(_) => self.layer(item).map(|layer| read(&self.text(layer))),
            Row::Tools => self.report.as_ref().map(|report| read(&report.tool_texts)),
            Row::Messages => Some(viewer::open(model).map_or_else(say, Effect::Push)),
            Row::Other => None,
        };
        Outcome::Stay { effects: effect.into_iter().collect(), reload: false }
    }

    /// Opens the file of a row in the editor.
    fn edit(&self, item: &Item) -> Outcome {
        match self.file(item) {
            Some(file) => {
                let editor = Effect::Task(Task::Suspend(External::Editor { file, line: None }));
                Outcome::Close(vec![say(WHEN), editor])
            }
            None => Outcome::Stay {
                effects: vec![say(format!("{} has no file to edit", item.text))],
                reload: false,
            },
        }
    }

    /// Where such a file is.
    fn own(&self, file: &OwnFile) -> Option<PathBuf> {
        let folder = match file.place {
            Place::Settings => &self.config,
            Place::Data => &self.data,
            Place::Project => &self.project,
        };
        Some(folder.as_ref()?.join(file.name))
    }

    /// Files that do not exist yet, are empty, or were made since the session began.
    fn missing(&self, report: &ContextReport) -> Vec<(Row, Item)> {
        // USER.md may be in either folder.
        let mine = |path: &Path| {
            path.parent().is_some_and(|f| {
                [&self.config, &self.data, &self.project].iter().any(|own| own.as_deref() == Some(f))
            })
        };
        let has = |name: &str| {
            let of = |l: &LayerCost| file_of(l).is_some_and(|path| path.ends_with(name) && mine(&path));
            report.layers.iter().any(of)
        };
        let row = |(at, file): (usize, &OwnFile)| {
            let path = self.own(file)?;
            let (state, more) = match self.written[at] {
                true => (
                    "next session",
                    format!("From {}\nIt was made since this session began. {WHEN}.", path.display()),
                ),
                false if file.place == Place::Project => return None,
                false => ("none yet", format!("{}\nEnter makes {}", file.about, path.display())),
            };
            let item = Item::new("", format!("{}: {}", capital(file.layer), file.name));
            let item = Item { more, ..item }.detail(state).detail("").cell(Cell::number("0", "")).detail("");
            Some((Row::Missing(at), item))
        };
        FILES.iter().enumerate().filter(|(_, file)| !has(file.name)).filter_map(row).collect()
    }
}

fn say(text: impl Into<String>) -> Effect {
    Effect::Toast(Notice::new(NoticeKind::Info, text.into()))
}

impl ContextSource {
    /// True when one of its own actions can be done now, for the row under the cursor.
    fn available(&self, action: Action) -> bool {
        match action.0 {
            "context.budget" => self.has_budget,
            "context.edit" => self.has_file,
            _ => true,
        }
    }
}

impl Source for ContextSource {
    fn late(&mut self) -> Option<&mut dyn LateRows> {
        Some(self)
    }

    fn title(&self) -> String {
        "Context".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "context",
            verb: "read",
            columns: COLUMNS,
            table: Some(2),
            refused: ListSpec::refused(ACTIONS, |action| self.available(action)),
            empty: if self.report.is_some() { "Nothing found" } else { "Loading..." },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Context(ContextCommand::Report), Token(1))]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::ContextReply { report } = &**reply else { return None };
        self.report = Some(report.clone());
        Some(Vec::new())
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let Some(report) = &self.report else { return Vec::new() };
        let mut all = rows::of_report(report);
        let at = report.layers.len();
        all.splice(at..at, self.missing(report));
        let (kinds, items): (Vec<Row>, Vec<Item>) = all.into_iter().unzip();
        self.rows = kinds;
        let with = |(at, item): (usize, Item)| {
            let item = Item { id: at.to_string(), ..item };
            let verb = match self.row(&item) {
                Row::Layer(_) | Row::Tools | Row::Messages => Some("read"),
                Row::Missing(at) => self.file(&item).map(|_| if self.written[at] { "edit" } else { "make" }),
                Row::Other => None,
            };
            Item { enter: verb.into(), ..item }
        };
        items.into_iter().enumerate().map(with).collect()
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, model: &Model) -> Option<Outcome> {
        match action.0 {
            "picker.choose" => return item.map(|item| self.show(item, model)),
            "context.edit" => return item.map(|item| self.edit(item)),
            "context.budget" => {}
            _ => return None,
        }
        let name = item.and_then(|i| self.name(i));
        Some(match (item, name) {
            (Some(item), Some(_)) => {
                let text = self.layer(item).map_or(String::new(), |l| l.budget.to_string());
                Outcome::Input { label: "Tokens", text }
            }
            _ => {
                Outcome::Stay { effects: vec![say("Only layers of the prompt have a budget")], reload: false }
            }
        })
    }

    fn submit(&mut self, item: &Item, text: &str, _model: &Model) -> Outcome {
        let Some(name) = self.name(item) else { return Outcome::none() };
        let digits: String = text.chars().filter(|c| !matches!(c, ',' | '_' | ' ')).collect();
        let Some(budget) = digits.parse::<u64>().ok().filter(|n| (1..=LARGEST).contains(n)) else {
            return Outcome::Refuse("A budget is a number of tokens from 1 to 1,000,000");
        };
        if self.config.is_none() {
            return Outcome::Refuse("There is no settings folder to keep it in");
        }
        let line = format!("config.toml gets this line:\n\n[context.layers]\n{name} = {budget}\n\n{WHEN}.");
        let save = Task::SaveSetting {
            key: format!("context.layers.{name}"),
            value: SettingEdit::Value(budget.into()),
        };
        let ask = Confirm::new("Change the budget", &line, "write", vec![Effect::Task(save)]);
        Outcome::Stay { effects: vec![Effect::Push(Box::new(ask))], reload: false }
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.has_budget = item.and_then(|item| self.name(item)).is_some();
        self.has_file = item.and_then(|item| self.file(item)).is_some();
        Vec::new()
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let edit = (any && self.has_file).then(|| Hint::of("context.edit"));
        let budget = (any && self.has_budget).then(|| Hint::of("context.budget"));
        edit.into_iter().chain(budget).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        (!item.more.is_empty()).then(|| item.more.clone())
    }
}

impl LateRows for ContextSource {
    fn work(&mut self, model: &Model) -> Option<Job> {
        self.config.clone_from(&model.environment.folders.config);
        self.data.clone_from(&model.environment.folders.data);
        self.project = model.agent.session.summary.as_ref().map(|s| PathBuf::from(&s.project));
        let files: [Option<PathBuf>; FILES.len()] = std::array::from_fn(|at| self.own(&FILES[at]));
        // The report is of the session's beginning; files may have been made since.
        let filled = |path: PathBuf| std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() > 0);
        Some(Box::new(move || Box::new(files.map(|path| path.is_some_and(filled)))))
    }

    fn worked(&mut self, result: Box<dyn Any + Send>, _model: &Model) -> Outcome {
        if let Ok(written) = result.downcast() {
            self.written = *written;
        }
        Outcome::none()
    }
}

#[cfg(test)]
mod tests;
