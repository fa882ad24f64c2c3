//! Everything that can be done, by name: open questions, actions, commands, settings, sessions, models,
//! themes. Shows the key and the state of each, and why it cannot be done now.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::ModelChoice;
use tiller_protocol::{AskId, CommandBody, Event, EventBody, SessionSummary};

use crate::app::App;
use crate::app::effect::{ComposerInput, Effect, Navigation, SettingsChange, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Picker, Source};
use crate::dialog::settings::screen;
use crate::keymap::action::Action;
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::View;
use crate::registry::{Dialog, Opener, Registry};
use crate::slash::{self, SlashCommand};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("palette.open", "palette", "Find and run any action", |app| {
        Ok(Box::new(open(app)))
    })
    .keys(&["ctrl-p", "alt-x", "leader space"])],
    scopes: &[Scope::new("palette", Some("picker"), "Palette", true)],
    ..Dialog::NONE
};

const SESSIONS: Token = Token(1);
const MODELS: Token = Token(2);

/// The palette's rows, and what they are made from.
struct PaletteSource {
    registry: &'static Registry,
    /// Actions and commands.
    fixed: Vec<Item>,
    themes: Vec<String>,
    theme: String,
    /// The key that answers the next question.
    answer: String,
    sessions: Vec<SessionSummary>,
    models: Vec<ModelChoice>,
}

/// Makes the palette with the actions that are available now.
pub(crate) fn open(app: &App) -> Picker {
    let scopes = app.scopes();
    let map = &app.keys.map;
    let key = |a| map.describe(a, &scopes).or_else(|| map.anywhere(a).map(|(_, k)| k));
    let mut fixed: Vec<Item> = Vec::new();
    for (group, s) in app.registry.words().actions().filter(|(_, s)| s.palette) {
        let key = key(s.action).unwrap_or_else(|| "--".into());
        // Two names of the same thing are one row.
        if let Some(same) = fixed.iter_mut().find(|i| i.text == s.help) {
            same.detail = both(&key, &same.detail);
            same.more = format!("{} {} {}", same.more, s.action.0, s.label);
            continue;
        }
        fixed.push(Item {
            id: format!("action {}", s.action.0),
            text: s.help.into(),
            detail: both(&key, &crate::widget::draw::cut(crate::app::global::state(app, s.action), STATE)),
            more: format!("{} {} {group}", s.action.0, s.label),
            decides: false,
            disabled: app.disabled(s.action),
        });
    }
    let commands = app.registry.commands();
    for c in commands.0 {
        let name = if c.usage().is_empty() { format!("/{}", c.name()) } else { c.usage().to_owned() };
        // A command that only does what an action does stands in the action's row.
        if let Some(a) = stands_for(*c, &app.model)
            && let Some(row) = fixed.iter_mut().find(|i| i.id.strip_prefix("action ") == Some(a.0))
        {
            row.detail = both(&row.detail, &name);
            row.more = format!("{} {name} {} {}", row.more, c.help(), slash::others(c.name()));
            continue;
        }
        let mut item = Item::new(format!("slash {}", c.name()), c.help()).detail(name);
        item.more = format!("/{} command {}", c.name(), slash::others(c.name()));
        item.disabled = c.run("", &app.model).err().filter(|_| !needs_words(*c));
        fixed.push(item);
    }
    // What was used last comes first, below what waits for an answer.
    let recent = |i: &Item| app.keys.recent.iter().position(|r| *r == i.id).unwrap_or(usize::MAX);
    // What cannot be done now stands at the end, with its reason.
    // What ends or takes something away is found by its name, and is never what lies under the cursor by itself.
    fixed.sort_by_key(|i| (i.disabled.is_some(), ends(&i.id), recent(i)));
    Picker::new(PaletteSource {
        registry: app.registry,
        fixed,
        themes: app.themes.names(),
        theme: app.themes.choice().to_owned(),
        answer: key(Action("global.answer")).unwrap_or_default(),
        sessions: Vec::new(),
        models: Vec::new(),
    })
}

/// Whether a row ends, stops or takes away something, or lets more run.
pub(super) fn ends(row: &str) -> bool {
    const ENDS: &[&str] = &[
        "action global.quit",
        "action global.detach",
        "action global.suspend",
        "action global.stop",
        "action global.profile",
        "action session.new",
        "action session.fork",
        "action session.undo",
        "action session.redo",
        "action composer.clear",
        "action composer.now",
        "action composer.queue",
        "action agents.resume_all",
        "slash quit",
        "slash exit",
        "slash new",
        "slash clear",
        "slash undo",
        "slash redo",
        "slash stop",
        "slash compact",
        "slash detach",
    ];
    ENDS.contains(&row) || row.strip_prefix("setting ").is_some_and(screen::guards)
}

/// Columns of a state beside a key, at most: the key is what the row is read for.
const STATE: usize = 20;

/// Key and state side by side; a missing key says nothing beside something else.
fn both(a: &str, b: &str) -> String {
    match (a, b) {
        (a, "") => a.into(),
        ("--" | "", b) => b.into(),
        (a, b) if b == "--" || a == b => a.into(),
        (a, b) => format!("{b}  {a}"),
    }
}

/// Whether the command needs arguments.
fn needs_words(c: &dyn SlashCommand) -> bool {
    c.usage().split_once(' ').is_some_and(|(_, args)| !args.starts_with('['))
}

/// Commands that do by themselves what an action does.
const TWINS: &[(&str, &str)] =
    &[("compact", "compact.open"), ("new", "session.new"), ("stop", "global.stop"), ("todo", "view.todo")];

/// The one action that a command without arguments does.
fn stands_for(c: &dyn SlashCommand, model: &Model) -> Option<Action> {
    if let Some((_, id)) = TWINS.iter().find(|(name, _)| *name == c.name()) {
        return Some(Action(id));
    }
    match c.run("", model).ok()?.as_slice() {
        [Effect::Act(a)] => Some(*a),
        _ => None,
    }
}

impl Source for PaletteSource {
    fn title(&self) -> String {
        "Palette".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { scope: "palette", ..ListSpec::default() }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        let sessions =
            Query::Sessions { everywhere: false, filter: String::new(), archived: false, trashed: false };
        vec![(CommandBody::Query(sessions), SESSIONS), (CommandBody::Query(Query::Models), MODELS)]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::SessionsReply { sessions } => self.sessions.clone_from(sessions),
            ReplyEvent::ModelsReply { models } => self.models.clone_from(models),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let mut all = Vec::new();
        for (i, ask) in model.questions.open.iter().enumerate() {
            let text = format!("Answer: {}", crate::view::notice_bar::sentence(model, ask));
            let key = if i == 0 { self.answer.as_str() } else { "" };
            let mut item = Item::new(format!("ask {}", ask.id), text).detail(both(key, "waiting"));
            item.more = "question approval".into();
            all.push(item);
        }
        all.extend(self.fixed.iter().cloned());
        all.extend(screen::rows(&model.ui));
        for a in &model.crew.agents {
            let label = if a.label.is_empty() { a.id.0.as_str() } else { a.label.as_str() };
            let mut item = Item::new(format!("agent {}", a.id), format!("Agent: {label}"));
            item.detail = a.act.to_string();
            item.more = format!("{} {}", a.id, a.model);
            all.push(item);
        }
        let current = model.agent.session.summary.as_ref().map(|s| s.id);
        for s in &self.sessions {
            let mut item = Item::new(format!("session {}", s.id), format!("Session: {}", s.title));
            let here = current == Some(s.id);
            item.detail = if here { "open".into() } else { ago(model.now.millis() - s.used.millis()) };
            item.more.clone_from(&s.preview);
            all.push(item);
        }
        for m in &self.models {
            let mut item = Item::new(format!("model {}", m.model), format!("Model: {}", m.model));
            item.detail =
                if m.model == model.agent.session.model { "in use".into() } else { m.source.to_string() };
            item.disabled.clone_from(&m.unavailable);
            all.push(item);
        }
        all.extend(self.themes.iter().map(|t| {
            let state = if *t == self.theme { "in use" } else { "" };
            Item::new(format!("theme {t}"), format!("Theme: {t}")).detail(state)
        }));
        for item in &mut all {
            item.decides = ends(&item.id);
        }
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
                let mut all = self.registry.commands().find(id).map_or_else(Vec::new, |c| run(c, model));
                all.insert(0, used());
                all
            }
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
        let text = format!("/{} ", c.name());
        return vec![
            Effect::Act(Action("view.composer")),
            Effect::Compose(ComposerInput::Text { text, replace: true }),
        ];
    }
    c.run("", model).unwrap_or_default()
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
