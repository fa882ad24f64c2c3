//! The MCP servers: how far each has come, what its tools cost, and why it failed. Enter shows its tools and what it
//! printed; keys restart it, turn it off or on, and approve it.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::mcp::{McpAct, McpServerView, McpState, McpToolView};
use tiller_protocol::{CommandBody, Event, EventBody};

use crate::app::effect::{Effect, Token};
use crate::dialog::picker::{self, EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::dialog::reader::text::Text;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("mcp.open", "servers", "MCP servers: tools, state, restart", |_| {
        Ok(Box::new(Picker::new(Servers { rows: Vec::new(), loaded: false })))
    })
    .menu(Menu::Go)],
    groups: &[("MCP servers", ACTIONS)],
    scopes: &[Scope::new("mcp", Some("picker"), "MCP servers", true).keys(KEYS)],
    samples: &[("MCP servers", || Box::new(sample()))],
    ..Dialog::NONE
};

const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("mcp.restart", "restart", "Restart the server").deciding(),
    ActionSpec::key_only("mcp.switch", "off or on", "Turn the server off or on").deciding(),
    ActionSpec::key_only("mcp.approve", "approve", "Approve the server and its tools as they are now")
        .deciding(),
];

const KEYS: &[DefaultKey] =
    &[("leader a", "mcp.approve"), ("leader r", "mcp.restart"), ("leader x", "mcp.switch")];

const COLUMNS: &[Column] = &[
    Column::text("Server").grows(),
    Column::text("State"),
    Column::text("Over").rank(2),
    Column::text("From").rank(3),
    Column::number("Tools").rank(1),
    Column::number("Tokens"),
];

/// Rows of the preview.
const PREVIEW: u16 = 5;
/// Token of the list, and of a change.
const LIST: Token = Token(1);
const CHANGE: Token = Token(2);

struct Servers {
    rows: Vec<McpServerView>,
    loaded: bool,
}

/// With rows, for the tests that visit all dialogs.
fn sample() -> Picker {
    let row = |name: &str, state| McpServerView { name: name.into(), state, ..McpServerView::default() };
    Picker::new(Servers {
        rows: vec![row("files", McpState::Started), row("notes", McpState::Failed)],
        loaded: true,
    })
}

/// The role of a state.
fn role(state: &McpState) -> Role {
    match state {
        McpState::Started | McpState::Used => Role::Ok,
        McpState::Starting => Role::Running,
        McpState::Failed => Role::Error,
        McpState::Unapproved | McpState::Changed | McpState::LoggedOut => Role::Waiting,
        _ => Role::Dim,
    }
}

/// Returns what the row does not say, with the names of the tools.
fn about(view: &McpServerView) -> String {
    let names =
        |tools: &Vec<McpToolView>| tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    let tools = view.tools.as_ref().filter(|_| view.error.is_empty()).map(names);
    tools.map_or_else(|| facts(view), |tools| format!("{}\n{tools}", facts(view)))
}

/// How it is reached, and what is wrong with it.
fn facts(view: &McpServerView) -> String {
    let mut lines = vec![view.command.clone()];
    if !view.given.is_empty() {
        lines.push(format!("Given: {}", view.given.join(", ")));
    }
    if !view.error.is_empty() {
        lines.push(view.error.clone());
    }
    lines.extend(view.notes.iter().cloned());
    if let Some(last) = view.tail.lines().last().filter(|_| !view.error.is_empty()) {
        lines.push(format!("Printed last: {last}"));
    }
    lines.join("\n")
}

/// All of it, to read.
fn whole(view: &McpServerView) -> String {
    let mut text = facts(view);
    let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    if view.resources + view.prompts > 0 {
        let (resources, prompts) = (count(view.resources, "resource"), count(view.prompts, "prompt"));
        text.push_str(&format!("\nOffers {resources} (@{0}:...) and {prompts} (/{0}:...)", view.name));
    }
    if !view.revision.is_empty() {
        text.push_str(&format!("\nProtocol {}", view.revision));
    }
    if let Some(tools) = &view.tools {
        text.push_str(&format!(
            "\n\nTools: {}, about {} tokens when all are read\n",
            tools.len(),
            view.tokens
        ));
        let widest = tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default().min(32);
        for tool in tools {
            let own = if tool.own.is_empty() { String::new() } else { format!("{}: ", tool.own) };
            text.push_str(&format!("  {:widest$}  {:>6}  {own}{}\n", tool.name, tool.tokens, tool.summary));
        }
    }
    if !view.tail.is_empty() {
        text.push_str(&format!("\nStandard error, its end:\n{}\n", view.tail));
    }
    text
}

/// The servers, one a line, for plain mode.
pub(crate) fn lines(rows: &[McpServerView]) -> String {
    let line = |view: &McpServerView| {
        let tools = view
            .tools
            .as_ref()
            .map_or(String::new(), |tools| format!(", {} tools, {} tokens", tools.len(), view.tokens));
        let error = if view.error.is_empty() { String::new() } else { format!(": {}", view.error) };
        format!("{}, {}, {}{tools}{error}", view.name, view.transport, view.state)
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    format!("MCP servers: {}\n{}", rows.len(), lines.join("\n"))
}

impl Servers {
    fn row(&self, item: Option<&Item>) -> Option<&McpServerView> {
        let name = &item?.id;
        self.rows.iter().find(|row| row.name == *name)
    }

    fn act_on(view: &McpServerView, act: McpAct) -> Outcome {
        let shown = Some(view.shown.clone()).filter(|_| act == McpAct::Approve);
        let command = SessionCommand::Mcp { server: view.name.clone(), act, shown };
        // The list is read at once, so that a start is seen, and again when it is over.
        let effects = vec![
            Effect::ask(CommandBody::Session(command), CHANGE),
            Effect::ask(CommandBody::Query(Query::Mcp), LIST),
        ];
        Outcome::Stay { effects, reload: false }
    }
}

impl Source for Servers {
    fn title(&self) -> String {
        "MCP servers".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "mcp",
            actions: picker::ACTIONS,
            verb: "show",
            columns: COLUMNS,
            table: Some(PREVIEW),
            empty: match (self.loaded, self.rows.is_empty()) {
                (false, _) => "Loading...",
                (true, true) => "No MCP servers: `tiller mcp add NAME -- COMMAND` adds one",
                (true, false) => "No server matches",
            },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Mcp), LIST)]
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::McpReply { servers, .. } => {
                self.rows.clone_from(servers);
                self.loaded = true;
                Some(Vec::new())
            }
            // It could not be done: the row says why.
            ReplyEvent::ErrorReply { .. } if token == CHANGE => Some(self.queries()),
            _ => None,
        }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let item = |view: &McpServerView| {
            let tools = view.tools.as_ref();
            Item { more: about(view), ..Item::new(&view.name, &view.name) }
                .cell(Cell::new(view.state.word(), role(&view.state)))
                .detail(view.transport.clone())
                .detail(view.origin.clone())
                .cell(tools.map_or(Cell::dim("-"), |tools| Cell::number(tools.len().to_string(), "")))
                .cell(tools.map_or(Cell::dim("-"), |_| Cell::count(view.tokens)))
        };
        self.rows.iter().map(item).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        let Some(view) = self.row(Some(item)) else { return Vec::new() };
        vec![Effect::Push(Box::new(Text::prose(&view.name, &whole(view))))]
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        let view = self.row(item)?;
        match action.0 {
            "mcp.restart" => Some(Self::act_on(view, McpAct::Restart)),
            "mcp.approve" => Some(Self::act_on(view, McpAct::Approve)),
            "mcp.switch" if view.state == McpState::Disabled => Some(Self::act_on(view, McpAct::Enable)),
            "mcp.switch" => Some(Self::act_on(view, McpAct::Disable)),
            _ => None,
        }
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let waits = self.rows.iter().any(|row| matches!(row.state, McpState::Unapproved | McpState::Changed));
        let all = [(true, "mcp.restart"), (true, "mcp.switch"), (waits, "mcp.approve")];
        all.into_iter().filter(|(shown, _)| any && *shown).map(|(_, id)| Hint::of(id)).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        self.row(Some(item)).map(about)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::testing::Robot;

    fn view(name: &str, state: McpState, tools: u64, error: &str) -> McpServerView {
        let tool = |n| McpToolView {
            name: format!("tool_{n}"),
            own: String::new(),
            summary: "Does\u{1b} it".into(),
            tokens: 120,
            read_only: false,
        };
        McpServerView {
            name: name.into(),
            state,
            transport: "stdio".into(),
            origin: "config.toml".into(),
            command: format!("npx -y @example/{name}"),
            given: vec!["TOKEN".into()],
            tools: (tools > 0).then(|| (0..tools).map(tool).collect()),
            tokens: tools * 120,
            resources: 2,
            prompts: 1,
            notes: Vec::new(),
            shown: "m1".into(),
            error: error.into(),
            tail: if error.is_empty() { String::new() } else { "Traceback\nno such option".into() },
            revision: "2025-11-25".into(),
        }
    }

    #[test]
    fn servers_are_listed_with_state_and_price_and_restarted_by_key() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = Robot::new(width, height);
            r.run("type /mcp; enter; wait 1");
            let servers = vec![
                view("github", McpState::Used, 26, ""),
                view("linear", McpState::Known, 23, ""),
                view("notes", McpState::Failed, 0, "it ended with exit code 1 before it answered"),
                view("shared", McpState::Unapproved, 0, ""),
            ];
            let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Mcp)));
            r.clear()
                .cause(id, EventBody::Reply(Box::new(ReplyEvent::McpReply { servers, prompts: Vec::new() })));
            r.run("down; down; wait 1000");
            insta::assert_snapshot!(format!("mcp_at_{width}x{height}"), r.screen());
            r.run("ctrl-x; r");
            let restarts = |c: &CommandBody| matches!(c, CommandBody::Session(SessionCommand::Mcp { server, act: McpAct::Restart, .. }) if server == "notes");
            assert!(r.commands().iter().any(|c| restarts(c)), "{:?}", r.commands());
            r.run("up; up; enter; wait 1");
            let screen = r.screen();
            assert!(
                screen.contains("tool_0") && screen.contains("Does") && !screen.contains('\u{1b}'),
                "{screen}"
            );
        }
    }
}
