//! `/context`: what takes up the model's context, layer by layer. Enter edits the file of a layer; a key sets its budget.

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
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::view::words::grouped;
use crate::widget::table::{Cell, Column};
use crate::widget::{draw, sign};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("context.open", "context", "What takes up the model's context", |_| {
        Ok(Box::new(open()))
    })
    .menu(Menu::Go)],
    groups: &[("Context", ACTIONS)],
    scopes: &[Scope::new("context", Some("picker"), "Context", true).keys(&[("ctrl-b", "context.budget")])],
    ..Dialog::NONE
};

/// Its action, besides those of a picker.
pub(crate) const ACTIONS: &[ActionSpec] =
    &[ActionSpec::key_only("context.budget", "budget", "Set the budget of this layer")];

/// Cells of the gauge of a share.
const BAR: usize = 20;
/// Largest budget that can be set, in tokens.
const LARGEST: u64 = 1_000_000;
/// When a change of a layer shows: the prefix stays as it is between two compactions.
const WHEN: &str = "It takes effect in the next session, or when this one is compacted";

const COLUMNS: &[Column] = &[
    Column::text("Part").grows(),
    Column::text("").rank(1),
    Column::number("Share"),
    Column::number("Tokens"),
    Column::number("Budget").rank(2),
];

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

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// A layer of the report.
    Layer(usize),
    /// A file of [`FILES`] that is not in the report: it does not exist yet, or was made since the session began.
    Missing(usize),
    /// Tools, messages, sums.
    Other,
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
    /// What each item shows; the id of an item is its index.
    rows: Vec<Row>,
    /// The row under the cursor is a layer, which has a budget.
    has_budget: bool,
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
            Row::Other => None,
        }
    }

    /// The name of the layer that a row belongs to.
    fn name(&self, item: &Item) -> Option<String> {
        match self.row(item) {
            Row::Layer(_) => self.layer(item).map(|l| l.name.clone()),
            Row::Missing(at) => Some(FILES[at].layer.to_owned()),
            Row::Other => None,
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

/// The file of a layer; `None`: it is built in.
fn file_of(layer: &LayerCost) -> Option<PathBuf> {
    let path = Path::new(&layer.source);
    path.is_absolute().then(|| path.to_owned())
}

fn file_name(layer: &LayerCost) -> Option<String> {
    file_of(layer)?.file_name().map(|n| n.to_string_lossy().into_owned())
}

/// The name of a layer with that of its file. The project's own memory has its folder with it, as in the memory browser.
fn title(layer: &LayerCost) -> String {
    let name = capital(&layer.name);
    let Some(file) = file_name(layer) else { return name };
    let of_project =
        file_of(layer).and_then(|path| Some(path.parent()?.ends_with(".tiller"))).unwrap_or(false);
    if of_project { format!("{name}: .tiller/{file}") } else { format!("{name}: {file}") }
}

fn rows(r: &ContextReport) -> Vec<(Row, Item)> {
    let row = |name: String, n: u64, budget: Option<u64>, note: String| {
        let share = |w: u64| n as f64 * 100.0 / w.max(1) as f64;
        let percent = r.window.map_or(Cell::dim(""), |w| Cell::number(format!("{:.1}", share(w)), " %"));
        let bar = r.window.map_or(String::new(), |w| sign::gauge(n, w, BAR, draw::ascii()));
        Item { more: note, ..Item::new("", name) }
            .cell(Cell::new(bar, Role::Dim))
            .cell(percent)
            .cell(Cell::number(grouped(n), ""))
            .cell(budget.map_or(Cell::dim(""), |b| Cell::number(grouped(b), "")))
    };
    let layer = |(at, l): (usize, &LayerCost)| {
        let cut = if l.shortened { ", shortened to fit" } else { "" };
        (Row::Layer(at), row(title(l), l.tokens, Some(l.budget), format!("From {}{cut}", l.source)))
    };
    let mut rows: Vec<(Row, Item)> = r.layers.iter().enumerate().map(layer).collect();
    let plain = |name: &str, n, note: String| (Row::Other, row(capital(name), n, None, note));
    rows.push(plain("tools", r.tools, "Descriptions and schemas of the tools".into()));
    rows.push(plain("messages", r.messages, "The conversation since the last compaction".into()));
    let all = if r.exact { "total, counted by the provider" } else { "total, estimated" };
    let of = r.window.map_or("The model's context window is not known".into(), |w| {
        format!("The model's context window has {} tokens", grouped(w))
    });
    let (kind, sum) = plain(all, r.used, of.clone());
    rows.push((kind, sum.strong()));
    rows.extend(r.window.map(|w| plain("free", w.saturating_sub(r.used), of)));
    rows
}

fn say(text: impl Into<String>) -> Effect {
    Effect::Toast(Notice::new(NoticeKind::Info, text.into()))
}

impl ContextSource {
    /// Whether one of its own actions can be done now, for the row under the cursor.
    fn available(&self, action: Action) -> bool {
        action.0 != "context.budget" || self.has_budget
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
            verb: "edit",
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
        let mut all = rows(report);
        let at = report.layers.len();
        all.splice(at..at, self.missing(report));
        let (kinds, items): (Vec<Row>, Vec<Item>) = all.into_iter().unzip();
        self.rows = kinds;
        let with = |(at, item): (usize, Item)| {
            let item = Item { id: at.to_string(), ..item };
            let made = matches!(self.row(&item), Row::Missing(at) if !self.written[at]);
            let verb = self.file(&item).map(|_| if made { "make" } else { "edit" });
            Item { enter: verb.into(), ..item }
        };
        items.into_iter().enumerate().map(with).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        match self.file(item) {
            Some(file) => {
                vec![say(WHEN), Effect::Task(Task::Suspend(External::Editor { file, line: None }))]
            }
            None => vec![say(format!("{} has no file to edit", item.text))],
        }
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 != "context.budget" {
            return None;
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
        Vec::new()
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        (any && self.has_budget).then(|| Hint::of("context.budget")).into_iter().collect()
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
mod tests {
    use std::time::Duration;

    use tiller_protocol::ModelRef;

    use super::*;
    use crate::testing::Robot;

    fn report() -> ContextReport {
        let layer = |name: &str, source: &str, tokens, budget| LayerCost {
            name: name.into(),
            source: source.into(),
            tokens,
            budget,
            shortened: name == "project",
        };
        ContextReport {
            model: ModelRef("fake/m".into()),
            window: Some(100_000),
            used: 20_000,
            layers: vec![
                layer("prompt", "built in", 700, 4_000),
                layer("project", "/w/AGENTS.md", 9_000, 12_000),
            ],
            tools: 2_000,
            messages: 8_300,
            exact: false,
        }
    }

    fn opened(width: u16, height: u16) -> Robot {
        let mut r = Robot::new(width, height);
        r.app.model.environment.folders.config = Some("/home/me/.config/tiller".into());
        r.app.model.environment.folders.data = Some("/home/me/.local/share/tiller".into());
        assert!(r.app.act(Action("context.open")));
        r.wait(Duration::from_secs(1));
        r.reply(ReplyEvent::ContextReply { report: report() });
        r
    }

    fn editor(r: &Robot) -> Option<&Path> {
        r.tasks.iter().find_map(|t| match t {
            Task::Suspend(External::Editor { file, .. }) => Some(file.as_path()),
            _ => None,
        })
    }

    #[test]
    fn each_layer_shows_its_cost_its_budget_and_its_file() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = opened(width, height);
            let screen = r.screen();
            let row = screen.lines().find(|l| l.contains("Project: AGENTS.md")).unwrap();
            assert!(row.contains("9.0 %") && row.contains("9,000"), "{screen}");
            assert!(width < 100 || row.contains("12,000"), "{screen}");
            for name in ["Prompt: SOUL.md", "User: USER.md", "Memory: MEMORY.md"] {
                assert!(screen.contains(name), "{name}: {screen}");
            }
            r.run("down");
            assert!(r.screen().contains("From /w/AGENTS.md, shortened to fit"), "{}", r.screen());
        }
    }

    #[test]
    fn files_of_one_name_are_told_apart_and_one_made_since_says_when_it_counts() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("USER.md"), "- likes tabs\n").unwrap();
        let mut report = report();
        let memory = |source: String| LayerCost {
            name: "memory".into(),
            source,
            tokens: 10,
            budget: 3_000,
            shortened: false,
        };
        report.layers.push(memory(tmp.path().join("MEMORY.md").display().to_string()));
        report.layers.push(memory("/w/.tiller/MEMORY.md".into()));
        let mut r = Robot::new(80, 24);
        r.app.model.environment.folders.config = Some("/home/me/.config/tiller".into());
        r.app.model.environment.folders.data = Some(tmp.path().to_owned());
        assert!(r.app.act(Action("context.open")));
        r.wait(Duration::from_secs(1));
        let at = r.tasks.iter().position(|t| matches!(t, Task::Job(..))).unwrap();
        let Task::Job(job, token) = r.tasks.remove(at) else { panic!() };
        r.reply(ReplyEvent::ContextReply { report });
        r.msg(crate::app::msg::Msg::Job(token, job()));
        let screen = r.screen();
        assert!(
            screen.contains("Memory: MEMORY.md") && screen.contains("Memory: .tiller/MEMORY.md"),
            "{screen}"
        );
        r.run("type USER.md; wait 1");
        let screen = r.screen();
        assert!(screen.contains("next session") && !screen.contains("none yet"), "{screen}");
        assert!(screen.contains("made since this session began"), "{screen}");
        assert!(r.footer().contains("Enter edit"), "{}", r.footer());
    }

    #[test]
    fn a_budget_that_cannot_be_used_stays_in_its_field() {
        let mut r = opened(118, 25);
        r.run("down; ctrl-b; ctrl-u; type 99999999; enter");
        let screen = r.screen();
        assert!(screen.contains("Tokens: 99999999") && screen.contains("from 1 to 1,000,000"), "{screen}");
        r.run("backspace; backspace; backspace; backspace; enter; wait 1");
        assert!(r.screen().contains("project = 9999"), "{}", r.screen());
        // A row without a budget does not offer its key.
        let mut r = opened(118, 25);
        r.run("type Free");
        assert!(!r.footer().contains("budget"), "{}", r.footer());
    }

    #[test]
    fn enter_edits_the_file_of_a_layer_and_says_when_the_change_shows() {
        let mut r = opened(118, 25);
        r.run("down; enter");
        assert_eq!(editor(&r), Some(Path::new("/w/AGENTS.md")));
        assert!(r.screen().contains("takes effect in the next session"), "{}", r.screen());
        // A file that does not exist yet is made by the editor.
        for name in ["USER", "MEMORY"] {
            let mut r = opened(118, 25);
            r.run(&format!("type {name}"));
            assert!(r.footer().contains("Enter make"), "{}", r.footer());
            r.run("enter");
            let file = format!("/home/me/.local/share/tiller/{name}.md");
            assert_eq!(editor(&r), Some(Path::new(&file)));
        }
        let mut r = opened(118, 25);
        assert!(!r.footer().contains("edit"), "what is built in has no file: {}", r.footer());
        r.run("down");
        assert!(r.footer().contains("Enter edit"), "{}", r.footer());
        let mut r = opened(118, 25);
        r.run("enter");
        assert_eq!(editor(&r), None);
        assert!(r.screen().contains("Prompt has no file to edit"), "{}", r.screen());
    }

    #[test]
    fn a_budget_is_written_after_its_line_was_shown() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = opened(width, height);
            r.run("down; ctrl-b");
            assert!(r.screen().contains("12000"), "the present one: {}", r.screen());
            r.run("ctrl-u; type 9,500; enter");
            let screen = r.screen();
            assert!(screen.contains("[context.layers]") && screen.contains("project = 9500"), "{screen}");
            let saved = |r: &Robot| {
                r.tasks.iter().find_map(|t| match t {
                    Task::SaveSetting { key, value } => Some((key.clone(), value.clone())),
                    _ => None,
                })
            };
            assert_eq!(saved(&r), None);
            r.wait(Duration::from_secs(5)).run("y");
            assert_eq!(
                saved(&r),
                Some(("context.layers.project".to_owned(), SettingEdit::Value(9_500.into())))
            );
        }
        for wrong in ["0", "-1", "many", "99999999"] {
            let mut r = opened(118, 25);
            r.run(&format!("down; ctrl-b; ctrl-u; type {wrong}; enter"));
            assert!(r.screen().contains("A budget is a number of tokens"), "{wrong}: {}", r.screen());
        }
        let mut r = opened(118, 25);
        r.run("type Messages; ctrl-b");
        assert!(r.screen().contains("Only layers of the prompt have a budget"), "{}", r.screen());
    }
}
