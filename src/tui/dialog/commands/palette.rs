//! Everything that can be done, by name: open questions, actions, commands, settings, sessions, models,
//! themes. What waits, what the focused panel offers and what was used last come first, the rest in groups. Shows the key
//! and the state of each, and why it cannot be done now.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::mcp::McpPromptView;
use tiller_protocol::skill::{CommandRow, SkillQuery, SkillReply};
use tiller_protocol::view::ModelChoice;
use tiller_protocol::{AskId, CommandBody, Event, EventBody, SessionSummary};

use crate::app::App;
use crate::app::effect::{ComposerInput, Effect, Navigation, SettingsChange, Token};
use crate::app::state::Owner;
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Picker, Source};
use crate::dialog::settings::screen;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::View;
use crate::registry::{Dialog, Opener, Registry};
use crate::slash::{self, PromptCommand, SlashCommand};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("palette.open", "palette", "Find and run any action", |app| {
        Ok(Box::new(open(app)))
    })
    .menu(Menu::Go)
    .keys(&["ctrl-p", "alt-x", "leader space"])],
    scopes: &[Scope::new("palette", Some("picker"), "Palette", true)],
    ..Dialog::NONE
};

const SESSIONS: Token = Token(1);
const MODELS: Token = Token(2);
const PROMPTS: Token = Token(3);
const COMMANDS: Token = Token(4);

/// The entry, its state, and its key or command.
const COLUMNS: &[Column] = &[Column::text("").grows(), Column::right("").rank(1), Column::key("")];

/// Groups before those of [`Menu`], and behind them.
const WAITING: &str = "Waiting for you";
const RECENT: &str = "Recent";
const SUGGESTED: &str = "Suggested";
const MORE: &str = "More";
const NOT_NOW: &str = "Not available now";
/// Rows of [`RECENT`] and of what the focused panel offers, at most.
const FEW: usize = 5;

/// The palette's rows, and what they are made from.
struct PaletteSource {
    registry: &'static Registry,
    /// Actions and commands, in groups: those that can be done, and those that cannot be done now.
    possible: Vec<Item>,
    not_now: Vec<Item>,
    themes: Vec<String>,
    theme: String,
    /// The key that answers the next question.
    answer: String,
    sessions: Vec<SessionSummary>,
    models: Vec<ModelChoice>,
    /// Prompts of MCP servers.
    prompts: Vec<McpPromptView>,
    /// Commands from files, as the engine read them when the palette opened.
    own: Vec<PromptCommand>,
}

/// Makes the palette with the actions that are available now.
pub(crate) fn open(app: &App) -> Picker {
    let mut rows = actions(app);
    add_commands(app, &mut rows);
    let order = Order::of(app);
    for row in &mut rows {
        if row.disabled.is_some() {
            row.group = NOT_NOW.into();
        } else if let Some(group) = order.group(&row.id) {
            row.group = group;
        }
    }
    // What ends or takes something away stands last in its group; it is never selected by itself.
    // Panels are seen, and have a digit: what is not seen stands before them.
    rows.sort_by_key(|i| (order.rank(i), i.id.starts_with("action view."), i.decides));
    let (possible, not_now) = rows.into_iter().partition(|i| i.disabled.is_none());
    let key =
        |a| app.keys.map.describe(a, &app.scopes()).or_else(|| app.keys.map.anywhere(a).map(|(_, k)| k));
    Picker::new(PaletteSource {
        registry: app.registry,
        possible,
        not_now,
        themes: app.themes.names(),
        theme: app.themes.choice().to_owned(),
        answer: key(Action("global.answer")).unwrap_or_default(),
        sessions: Vec::new(),
        models: Vec::new(),
        prompts: Vec::new(),
        own: Vec::new(),
    })
}

/// The order of the groups, and the rows that stand in one of the first.
struct Order {
    /// The name of the focused panel, and its actions.
    here: (String, Vec<String>),
    recent: Vec<String>,
    suggested: Vec<String>,
}

impl Order {
    fn of(app: &App) -> Self {
        let row = |a: &Action| format!("action {}", a.0);
        let here: Vec<String> = here(app).iter().map(row).collect();
        let used = |id: &&String| !here.contains(id);
        let recent: Vec<String> = app.keys.recent.iter().filter(used).take(FEW).cloned().collect();
        let new = |id: &String| !here.contains(id) && !recent.contains(id);
        let suggested = suggested(app).iter().map(row).filter(new).collect();
        let title = app.panel(app.top()).map_or_else(String::new, |p| p.title(&app.model));
        Self { here: (title, here), recent, suggested }
    }

    /// The heading of a row that stands in one of the first groups.
    fn group(&self, id: &str) -> Option<String> {
        let is = |list: &[String]| list.iter().any(|r| r == id);
        match () {
            () if is(&self.here.1) => Some(self.here.0.clone()),
            () if is(&self.recent) => Some(RECENT.into()),
            () if is(&self.suggested) => Some(SUGGESTED.into()),
            () => None,
        }
    }

    fn rank(&self, item: &Item) -> (usize, usize) {
        let at = |list: &[String]| list.iter().position(|r| *r == item.id);
        if item.disabled.is_some() {
            return (20, 0);
        }
        if let Some(n) = at(&self.here.1) {
            return (0, n);
        }
        if let Some(n) = at(&self.recent) {
            return (1, n);
        }
        if let Some(n) = at(&self.suggested) {
            return (2, n);
        }
        let menu = Menu::ALL.iter().position(|m| m.title() == item.group);
        (menu.map_or(10, |n| 3 + n), 0)
    }
}

/// Returns what the panel or dialog with the focus offers in its hints. The composer's actions are about a text that the palette
/// hides; they stand in their own group.
fn here(app: &App) -> Vec<Action> {
    let top = app.top();
    if top == Owner::View(View::Composer) {
        return Vec::new();
    }
    let hints = app.panel(top).map_or_else(Vec::new, |p| p.hints(&app.model));
    // A list is about its own rows.
    if app.scopes().contains(&"picker") {
        return Vec::new();
    }
    // Moving and marking is the same in every panel.
    let named = |a: &Action| !a.0.starts_with("list.") && app.keys.map.words().find(a.0).is_some();
    let mine = |a: &Action| named(a) && app.disabled(*a).is_none();
    hints.into_iter().map(|h| h.action).filter(mine).take(FEW).collect()
}

/// Returns what helps in this state, and what a newcomer looks for.
fn suggested(app: &App) -> Vec<Action> {
    let model = &app.model;
    let mut all = Vec::new();
    if model.agent.session.model.0.is_empty() {
        all.push(Action("setup.open"));
    }
    if model.agent.turn.retry.is_some() {
        all.push(Action("global.try_now"));
    }
    if model.agent.conversation.last_turn_changed_files() {
        all.push(Action("review.open"));
    }
    all.extend(["sessions.open", "model.open", "help.open", "session.new"].map(Action));
    all
}

/// Every action that the palette offers, with its state and its key.
fn actions(app: &App) -> Vec<Item> {
    let (scopes, map) = (app.scopes(), &app.keys.map);
    let key = |a| map.describe(a, &scopes).or_else(|| map.anywhere(a).map(|(_, k)| k)).unwrap_or_default();
    let here = here(app);
    let mut rows: Vec<Item> = Vec::new();
    for (group, s) in app.registry.words().actions().filter(|(_, s)| s.palette || here.contains(&s.action)) {
        if s.action.0 == "palette.open" {
            continue;
        }
        // Two names of the same thing are one row.
        if let Some(same) = rows.iter_mut().find(|i| i.text == s.help) {
            same.more = format!("{} {} {}", same.more, s.action.0, s.label);
            continue;
        }
        rows.push(row(app, group, s, key(s.action)));
    }
    rows
}

fn row(app: &App, group: &str, spec: &ActionSpec, key: String) -> Item {
    Item {
        more: format!("{} {} {group}", spec.action.0, spec.label),
        disabled: app.disabled(spec.action),
        decides: spec.ends || spec.decides,
        ..Item::new(format!("action {}", spec.action.0), spec.help)
            .group(spec.menu.map_or(MORE, Menu::title))
            .detail(crate::app::global::state(app, spec.action))
            .cell(Cell::new(key, Role::Accent))
    }
}

/// Adds the `/` commands. A command that only does what an action does is another name of that row.
fn add_commands(app: &App, rows: &mut Vec<Item>) {
    for c in app.registry.commands().0 {
        // With the arguments that it must have.
        let name = c
            .usage()
            .split('[')
            .next()
            .filter(|u| !u.is_empty())
            .map_or(format!("/{}", c.name()), |u| u.trim().into());
        let id = c.action().map(|a| format!("action {}", a.0));
        if let Some(row) = rows.iter_mut().find(|i| id.as_ref() == Some(&i.id)) {
            row.more = format!("{} {name} {} {}", row.more, c.help(), slash::others(c.name()));
            if let Some(key) = row.cells.last_mut().filter(|k| k.text.is_empty()) {
                *key = Cell::dim(name);
            }
            continue;
        }
        rows.push(Item {
            more: format!("/{} command {}", c.name(), slash::others(c.name())),
            disabled: c.run("", &app.model).err().filter(|_| !needs_words(*c)),
            decides: c.ends(),
            ..Item::new(format!("slash {}", c.name()), c.help()).group(MORE).detail("").detail(name)
        });
    }
}

/// The row of a command from a file.
fn own_item(command: &PromptCommand) -> Item {
    let written = command.written();
    let name = written.split('[').next().map(str::trim).filter(|name| !name.is_empty());
    let name = name.map_or_else(|| format!("/{}", command.name), str::to_owned);
    Item {
        more: format!("/{} command", command.name),
        decides: true,
        ..Item::new(format!("slash {}", command.name), command.help()).group(MORE).detail("").detail(name)
    }
}

/// Sends a command from a file; one that needs arguments is put into the composer.
fn call(command: &PromptCommand) -> Vec<Effect> {
    match command.usage.trim() {
        usage if usage.is_empty() || usage.starts_with('[') => vec![slash::call(&command.name, "")],
        _ => compose(&command.name),
    }
}

/// True when the command needs arguments.
fn needs_words(c: &dyn SlashCommand) -> bool {
    c.usage().split_once(' ').is_some_and(|(_, args)| !args.starts_with('['))
}

impl PaletteSource {
    /// Replaces the commands from files by those that the engine has read now.
    fn take_commands(&mut self, rows: &[CommandRow]) {
        let commands = self.registry.commands();
        let is_other = |name: &str| commands.find(name).is_some_and(|c| !c.of_file());
        let of_file = |item: &Item| item.id.strip_prefix("slash ").is_some_and(|name| !is_other(name));
        let mut rest = std::mem::take(&mut self.possible);
        // One that was used before keeps its place while its file is there.
        let stays = |item: &Item| {
            let named = |row: &CommandRow| row.unused.is_empty() && item.id == format!("slash {}", row.name);
            item.group != MORE && rows.iter().any(named)
        };
        rest.retain(|item| !of_file(item) || stays(item));
        self.own.clear();
        let mut added = Vec::new();
        for row in rows.iter().filter(|row| !is_other(&row.name)) {
            let command = PromptCommand {
                name: row.name.clone(),
                about: row.description.clone(),
                usage: row.hint.clone(),
            };
            let mut item = own_item(&command);
            if !row.unused.is_empty() {
                item.disabled = Some(tiller_protocol::notice::sentence(&row.unused));
                self.not_now.push(item.group(NOT_NOW));
                continue;
            }
            self.own.push(command);
            match rest.iter_mut().find(|other| other.id == item.id) {
                Some(other) => *other = Item { group: other.group.clone(), ..item },
                None => added.push(item),
            }
        }
        // What ends or takes something away stands last in its group.
        let last = rest.iter().position(|item| item.decides && item.group == MORE).unwrap_or(rest.len());
        rest.splice(last..last, added);
        self.possible = rest;
    }

    /// The questions that wait for an answer.
    fn questions(&self, model: &Model) -> Vec<Item> {
        let row = |(i, ask): (usize, &tiller_protocol::Ask)| {
            let text = format!("Answer: {}", crate::view::notice_bar::sentence(model, ask));
            let key = if i == 0 { self.answer.as_str() } else { "" };
            let mut item = Item::new(format!("ask {}", ask.id), text)
                .group(WAITING)
                .cell(Cell::new("waiting", Role::Waiting))
                .cell(Cell::new(key, Role::Accent));
            item.more = "question approval".into();
            item
        };
        model.questions.open.iter().enumerate().map(row).collect()
    }

    /// The running agents, the sessions of this folder, the models and the themes.
    fn things(&self, model: &Model) -> Vec<Item> {
        let mut all = Vec::new();
        for a in &model.crew.agents {
            let label = if a.label.is_empty() { a.id.0.as_str() } else { a.label.as_str() };
            let mut item = Item::new(format!("agent {}", a.id), format!("Agent: {label}"));
            item = item.group("Running agents").detail(a.act.to_string());
            item.more = format!("{} {}", a.id, a.model);
            all.push(item);
        }
        for prompt in &self.prompts {
            let about = if prompt.summary.is_empty() { &prompt.name } else { &prompt.summary };
            let mut item = Item::new(format!("prompt {}", prompt.command()), about.clone());
            item = item.group("Prompts of MCP servers").detail("").detail(prompt.usage());
            item.more = format!("/{} mcp prompt", prompt.command());
            all.push(item);
        }
        let current = model.agent.session.summary.as_ref().map(|s| s.id);
        for s in &self.sessions {
            let state =
                if current == Some(s.id) { "open".into() } else { ago(model.now.millis() - s.used.millis()) };
            let mut item = Item::new(format!("session {}", s.id), format!("Session: {}", s.title));
            item = item.group("Sessions").detail(state);
            item.more.clone_from(&s.preview);
            all.push(item);
        }
        for m in &self.models {
            let used = m.model == model.agent.session.model;
            let state = if used { "in use".into() } else { m.source.to_string() };
            let mut item = Item::new(format!("model {}", m.model), format!("Model: {}", m.model));
            item = item.group("Models").detail(state);
            item.disabled.clone_from(&m.unavailable);
            all.push(item);
        }
        all.extend(self.themes.iter().map(|t| {
            let state = if *t == self.theme { "in use" } else { "" };
            Item::new(format!("theme {t}"), format!("Theme: {t}")).group("Themes").detail(state)
        }));
        all
    }
}

impl Source for PaletteSource {
    fn title(&self) -> String {
        "Palette".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "palette",
            columns: COLUMNS,
            verb: "run",
            prompt: "Type what you want to do",
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        let sessions =
            Query::Sessions { everywhere: false, filter: String::new(), archived: false, trashed: false };
        vec![
            (CommandBody::Query(sessions), SESSIONS),
            (CommandBody::Query(Query::Models), MODELS),
            (CommandBody::Query(Query::Mcp), PROMPTS),
            (CommandBody::Query(Query::Skills { query: SkillQuery::Commands }), COMMANDS),
        ]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::SessionsReply { sessions } => self.sessions.clone_from(sessions),
            ReplyEvent::ModelsReply { models } => self.models.clone_from(models),
            ReplyEvent::McpReply { prompts, .. } => self.prompts.clone_from(prompts),
            ReplyEvent::SkillsReply { reply: SkillReply::Commands { rows } } => self.take_commands(rows),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let mut all = self.questions(model);
        all.extend(self.possible.iter().cloned());
        all.extend(screen::rows(&model.ui));
        all.extend(self.things(model));
        all.extend(self.not_now.iter().cloned());
        all
    }

    fn choose(&mut self, item: &Item, model: &Model) -> Vec<Effect> {
        let Some((kind, id)) = item.id.split_once(' ') else { return Vec::new() };
        let used = || Effect::Settings(SettingsChange::PaletteRow(item.id.clone()));
        match kind {
            "action" => self
                .registry
                .words()
                .find(id)
                .map(|s| [used(), Effect::Act(s.action)])
                .into_iter()
                .flatten()
                .collect(),
            "slash" => {
                let mut all = match self.own.iter().find(|command| command.name == id) {
                    Some(command) => call(command),
                    None => self.registry.commands().find(id).map_or_else(Vec::new, |c| run(c, model)),
                };
                all.insert(0, used());
                all
            }
            "prompt" => compose(id),
            "setting" => screen::change(id, &model.ui).into_iter().collect(),
            "agent" => vec![
                Effect::Focus(View::Agents),
                Effect::Tell(View::Agents, Box::new(tiller_protocol::AgentId(id.into()))),
            ],
            "theme" => vec![Effect::Settings(SettingsChange::Theme { name: Some(id.into()), keep: true })],
            "ask" => {
                id.parse::<AskId>().map(|id| Effect::Navigate(Navigation::Question(id))).into_iter().collect()
            }
            "session" => match id.parse() {
                Ok(id) => vec![Effect::send(CommandBody::Session(SessionCommand::Open { id }))],
                Err(_) => Vec::new(),
            },
            _ => {
                let model = tiller_protocol::ModelRef(id.into());
                vec![Effect::send(CommandBody::Session(SessionCommand::SetModel { model }))]
            }
        }
    }
}

/// Runs a command that needs no arguments; a command that needs some is put into the composer.
fn run(c: &dyn SlashCommand, model: &Model) -> Vec<Effect> {
    if needs_words(c) {
        return compose(c.name());
    }
    c.run("", model).unwrap_or_default()
}

/// Puts the beginning of a command into the composer.
fn compose(name: &str) -> Vec<Effect> {
    let text = format!("/{name} ");
    vec![Effect::Act(Action("view.composer")), Effect::Compose(ComposerInput::Text { text, replace: true })]
}

/// `2 h ago`.
pub(crate) fn ago(ms: i64) -> String {
    let s = (ms / 1000).max(0);
    match s {
        0..60 => "now".into(),
        60..3600 => format!("{} min ago", s / 60),
        3600..86_400 => format!("{} h ago", s / 3600),
        _ => format!("{} d ago", s / 86_400),
    }
}

#[cfg(test)]
#[path = "palette_tests.rs"]
mod tests;
