//! One server: started when it is needed, restarted with a growing delay, ended as a whole.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tiller_protocol::mcp::{McpPromptView, McpResourceView, McpServerView, McpState, McpToolView};
use tiller_protocol::{AskBody, AskReply, lock};
use tiller_tool::ToolCx;
use tiller_tool::text::visible;

use crate::connect::{Connection, Environment, NoConnection, connect};
use crate::known::{Known, KnownFile, KnownTool, changes, first_line, tokens};
use crate::offers::Offers;
use crate::session::CallError;
use crate::settings::{Origin, ServerSettings, Transport};

/// Delay before a server that failed is tried again, by the number of failures.
const DELAYS: [u64; 6] = [0, 2, 5, 15, 30, 60];
/// Changes of tools that a question shows.
const SHOWN: usize = 8;
/// Tools that a question names.
const NAMED: usize = 12;
/// The answer that starts a server, or takes its new tools.
const YES: &str = "Yes";
const NO: &str = "Not now";

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A sentence without a full stop.
    pub why: String,
    /// The end of its standard error.
    pub tail: String,
    /// The person has to log in.
    pub login: bool,
    /// No person could be asked.
    pub unanswered: bool,
}

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), tail: String::new(), login: false, unanswered: false }
    }

    /// In words, with the end of what the program printed.
    pub fn words(&self) -> String {
        if self.tail.is_empty() {
            return self.why.clone();
        }
        format!("{}\nits standard error ends with:\n{}", self.why, self.last_lines())
    }

    /// The last lines of its standard error.
    pub fn last_lines(&self) -> String {
        let lines: Vec<&str> = self.tail.lines().rev().take(12).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// Makes what a server is connected with. Called away from the screen's thread.
pub(crate) type MakeEnvironment = Arc<dyn Fn(&ServerSettings) -> Environment + Send + Sync>;

/// One server.
pub struct Server {
    pub(crate) settings: ServerSettings,
    file: KnownFile,
    /// Its resources and prompts.
    pub(crate) offers: Arc<Offers>,
    environment: MakeEnvironment,
    /// Whether nothing confines its program, once that was asked.
    free: OnceLock<bool>,
    state: Mutex<ServerState>,
    /// Held while it is started: all that wait for it share one start.
    starting: tokio::sync::Mutex<()>,
    /// Held while a person is asked about it: one question at a time.
    asking: tokio::sync::Mutex<()>,
}

struct ServerState {
    connection: Option<Arc<Connection>>,
    known: Known,
    /// Tools that differ from the approved ones.
    changed: Option<Vec<KnownTool>>,
    failure: Option<Failure>,
    failures: usize,
    failed_at: Option<Instant>,
    starting: bool,
    used: bool,
    disabled: bool,
}

impl Server {
    /// Whether it may write files on this machine by itself. The first time it finds out what confines it, which may take some
    /// 20 ms.
    pub(crate) fn writes_files(&self) -> bool {
        match &self.settings.transport {
            Transport::Stdio { .. } => {
                *self.free.get_or_init(|| (self.environment)(&self.settings).confined.is_none())
            }
            Transport::Http { url, .. } => {
                reqwest::Url::parse(url).is_ok_and(|url| tiller_http::is_loopback(&url))
            }
        }
    }

    pub(crate) fn new(settings: ServerSettings, file: KnownFile, environment: MakeEnvironment) -> Self {
        let disabled = settings.disabled;
        let state = ServerState {
            connection: None,
            known: file.read(),
            changed: None,
            failure: None,
            failures: 0,
            failed_at: None,
            starting: false,
            used: false,
            disabled,
        };
        let offers = Offers::new(&settings.name, &settings.hash, &file);
        Self {
            settings,
            file,
            offers,
            environment,
            free: OnceLock::new(),
            state: Mutex::new(state),
            starting: tokio::sync::Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// What it was made from.
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Its tools as they were approved; `None`: they were not read yet, or with other settings.
    pub fn tools(&self) -> Option<Vec<KnownTool>> {
        let state = lock(&self.state);
        let same = state.known.hash == self.settings.hash;
        state.known.tools.clone().filter(|_| same && state.changed.is_none())
    }

    /// The revision of the protocol that was agreed on; empty: not known.
    pub fn revision(&self) -> String {
        lock(&self.state).known.revision.clone().unwrap_or_default()
    }

    /// Whether the person has turned it off.
    pub fn is_disabled(&self) -> bool {
        lock(&self.state).disabled
    }

    /// Whether it comes from the project and the person has not said yes to its command.
    pub fn needs_approval(&self) -> bool {
        self.settings.origin == Origin::Project
            && lock(&self.state).known.approved.as_deref() != Some(self.settings.hash.as_str())
    }

    /// As a client shows it.
    pub fn view(&self) -> McpServerView {
        let unapproved = self.needs_approval();
        let lists = self.offers.lists();
        let state = lock(&self.state);
        let alive = state.connection.as_ref().is_some_and(|c| c.is_alive());
        let died = state.connection.as_ref().filter(|c| !c.is_alive());
        let failure = state
            .failure
            .clone()
            .or_else(|| died.map(|c| Failure { tail: c.tail.text(), ..Failure::new(c.why_ended()) }));
        let known = state.known.tools.as_ref().filter(|_| state.known.hash == self.settings.hash);
        let row = match () {
            () if state.disabled => McpState::Disabled,
            () if state.starting => McpState::Starting,
            () if unapproved => McpState::Unapproved,
            () if state.changed.is_some() => McpState::Changed,
            () if alive && state.used => McpState::Used,
            () if alive => McpState::Started,
            () if failure.as_ref().is_some_and(|f| f.login) => McpState::LoggedOut,
            () if failure.is_some() => McpState::Failed,
            () if known.is_some() => McpState::Known,
            () => McpState::Configured,
        };
        let changed = state
            .changed
            .as_ref()
            .map(|now| changes(known.map_or(&[], |known| known.as_slice()), now, SHOWN).join("; "));
        McpServerView {
            name: self.settings.name.clone(),
            state: row,
            transport: self.settings.transport_word().into(),
            origin: self.settings.origin.word().into(),
            command: visible(&self.settings.words()).into_owned(),
            given: self.settings.given().into_iter().map(|name| visible(name).into_owned()).collect(),
            tools: known.map(|tools| {
                let view = |tool: &KnownTool| McpToolView {
                    name: tool.name.clone(),
                    summary: first_line(&tool.description),
                    tokens: tokens(std::slice::from_ref(tool)),
                    read_only: tool.read_only,
                };
                tools.iter().map(view).collect()
            }),
            tokens: known.map_or(0, |tools| tokens(tools)),
            resources: lists.resources.len(),
            prompts: lists.prompts.len(),
            error: changed.or_else(|| failure.as_ref().map(|f| f.why.clone())).unwrap_or_default(),
            tail: match &state.connection {
                Some(connection) if alive => connection.tail.text(),
                _ => failure.map(|f| f.tail).unwrap_or_default(),
            },
            revision: state.known.revision.clone().unwrap_or_default(),
        }
    }

    /// Starts it, and reads its tools. Asks nothing.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn check(&self) -> Result<(), Failure> {
        self.ready(None).await.map(|_| ())
    }

    /// Its resources and prompts, once they have been read. To be called when it runs.
    pub async fn listed(&self) -> (Vec<McpResourceView>, Vec<McpPromptView>) {
        self.offers.first_reading().await;
        let lists = self.offers.lists();
        (lists.resources, lists.prompts)
    }

    /// Whether its tools differ from the approved ones.
    pub fn has_changes(&self) -> bool {
        lock(&self.state).changed.is_some()
    }

    /// Turns it off or on for this run. One that runs is ended.
    pub async fn enable(&self, on: bool) {
        lock(&self.state).disabled = !on;
        if !on {
            self.end().await;
        }
    }

    /// Ends it; the next use starts it again.
    pub async fn end(&self) {
        let connection = lock(&self.state).connection.take();
        // Others may be in a call: it ends for them, too, when they let go of it.
        if let Some(connection) = connection {
            match Arc::try_unwrap(connection) {
                Ok(connection) => connection.end().await,
                Err(shared) => shared.running.cancellation_token().cancel(),
            }
        }
    }

    /// Ends it, and forgets that it failed.
    pub async fn reset(&self) {
        self.end().await;
        let mut state = lock(&self.state);
        (state.failure, state.failures, state.failed_at) = (None, 0, None);
    }

    /// Takes the person's yes to its command, and to its tools as they are now.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn approve(&self) -> Result<(), String> {
        let known = {
            let mut state = lock(&self.state);
            state.known.approved = Some(self.settings.hash.clone());
            if let Some(tools) = state.changed.take() {
                state.known.tools = Some(tools);
                state.known.hash.clone_from(&self.settings.hash);
            }
            state.known.clone()
        };
        self.file.write(&known)
    }

    /// Forgets what is kept of it.
    pub fn forget(&self) {
        self.file.remove();
        self.offers.forget();
        lock(&self.state).known = Known::default();
    }

    /// The living connection, with tools that the person has approved. `cx`: the call that needs it, whose person is asked
    /// where that is needed; `None`: nothing is asked.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) async fn ready(&self, cx: Option<&ToolCx>) -> Result<Arc<Connection>, Failure> {
        if self.is_disabled() {
            return Err(Failure::new("it is turned off; /mcp turns it on"));
        }
        if self.needs_approval() {
            let _one = self.asking.lock().await;
            // Another call may have asked meanwhile.
            if self.needs_approval() {
                self.ask_start(cx).await?;
            }
        }
        let connection = self.connected().await?;
        if connection.changed.swap(false, Ordering::AcqRel) {
            self.read_tools(&connection).await?;
        }
        if lock(&self.state).changed.is_some() {
            let _one = self.asking.lock().await;
            if lock(&self.state).changed.is_some() {
                self.ask_changed(cx).await?;
            }
        }
        Ok(connection)
    }

    /// Notes that it wants a login, for the next one.
    pub(crate) fn logged_out(&self, challenge: Option<String>) -> Failure {
        let known = {
            let mut state = lock(&self.state);
            state.known.challenge = challenge;
            state.known.clone()
        };
        if let Err(error) = self.file.write(&known) {
            tracing::warn!(
                server = self.name(),
                error,
                "what an MCP server wants of a login could not be kept"
            );
        }
        let why = format!("it wants you to log in: `tiller mcp login {}`", self.name());
        Failure { login: true, ..Failure::new(why) }
    }

    /// Lets the person log in at the server. `show` gets the address of the page to open.
    ///
    /// # Errors
    /// Why there is no login; a sentence without a full stop.
    pub async fn log_in(&self, show: &(dyn Fn(&str) + Send + Sync)) -> Result<(), String> {
        let Transport::Http { url, client, .. } = &self.settings.transport else {
            return Err("it is a program of this machine, which needs no login".into());
        };
        let challenge = lock(&self.state).known.challenge.clone();
        crate::oauth::log_in(
            (self.environment)(&self.settings).state.as_path(),
            (url, client.as_ref()),
            challenge.as_deref(),
            show,
        )
        .await?;
        self.reset().await;
        Ok(())
    }

    /// Notes that a tool of it was called.
    pub(crate) fn used(&self) {
        lock(&self.state).used = true;
    }

    /// The connection; starts it where there is none.
    async fn connected(&self) -> Result<Arc<Connection>, Failure> {
        if let Some(connection) = self.living() {
            return Ok(connection);
        }
        let _one = self.starting.lock().await;
        if let Some(connection) = self.living() {
            return Ok(connection);
        }
        self.wait_over()?;
        let revision = {
            let mut state = lock(&self.state);
            state.starting = true;
            state.used = false;
            state.connection = None;
            state.known.revision.clone()
        };
        let _mark = StartingMark(self);
        let environment = {
            let (make, settings) = (Arc::clone(&self.environment), self.settings.clone());
            tokio::task::spawn_blocking(move || {
                settings.check.as_ref().map_or(Ok(()), |check| (check.0)())?;
                Ok::<_, String>(make(&settings))
            })
            .await
        };
        let environment = environment
            .unwrap_or_else(|e| Err(e.to_string()))
            .map_err(|why| Failure::new(format!("it could not be started: {why}")))?;
        let made = match connect(&self.settings, &environment, revision.as_deref()).await {
            Ok((connection, lists)) => {
                let connection = Arc::new(connection);
                let read = self.read_tools(&connection).await;
                if read.is_ok() {
                    let [_, prompts, resources] = connection.offers();
                    let (offers, peer) = (Arc::clone(&self.offers), connection.peer().clone());
                    // It ends with the connection.
                    tokio::spawn(offers.follow(peer, [prompts, resources], lists));
                }
                read.map(|()| connection)
            }
            Err(NoConnection { tail, login: true, challenge, .. }) => {
                Err(Failure { tail, ..self.logged_out(challenge) })
            }
            Err(NoConnection { why, tail, .. }) => Err(Failure { tail, ..Failure::new(why) }),
        };
        let mut state = lock(&self.state);
        match &made {
            Ok(connection) => {
                (state.failure, state.failures, state.failed_at) = (None, 0, None);
                state.connection = Some(Arc::clone(connection));
            }
            Err(failure) => {
                state.failure = Some(failure.clone());
                state.failures += 1;
                state.failed_at = Some(Instant::now());
            }
        }
        made
    }

    fn living(&self) -> Option<Arc<Connection>> {
        let mut state = lock(&self.state);
        let connection = state.connection.clone()?;
        if connection.is_alive() {
            return Some(connection);
        }
        // It ended by itself: that counts as a failure, so that one that crashes at each call is not started without end.
        state.failure =
            Some(Failure { tail: connection.tail.text(), ..Failure::new(connection.why_ended()) });
        state.failures += 1;
        state.failed_at = Some(Instant::now());
        state.connection = None;
        None
    }

    /// Refuses a start that follows too soon on a failure.
    fn wait_over(&self) -> Result<(), Failure> {
        let state = lock(&self.state);
        let (Some(failure), Some(at)) = (&state.failure, state.failed_at) else { return Ok(()) };
        let delay = Duration::from_secs(DELAYS[(state.failures.saturating_sub(1)).min(DELAYS.len() - 1)]);
        let left = delay.saturating_sub(at.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let why =
            format!("{}; it is tried again in {} s, or at once by /mcp", failure.why, left.as_secs() + 1);
        Err(Failure { why, ..failure.clone() })
    }

    /// Reads the tools, and compares them with the approved ones.
    async fn read_tools(&self, connection: &Connection) -> Result<(), Failure> {
        let reading = tokio::time::timeout(self.settings.start, connection.tools());
        let (tools, dropped) = match reading.await {
            Err(_) => {
                let why = format!("it did not list its tools within {} s", self.settings.start.as_secs());
                return Err(Failure { tail: connection.tail.text(), ..Failure::new(why) });
            }
            Ok(Err(CallError::Login(challenge))) => return Err(self.logged_out(challenge)),
            Ok(Err(error)) => {
                let why = format!("its tools cannot be listed: {error}");
                return Err(Failure { tail: connection.tail.text(), ..Failure::new(why) });
            }
            Ok(Ok(tools)) => tools,
        };
        if dropped > 0 {
            tracing::warn!(
                server = self.name(),
                dropped,
                "tools of an MCP server are left out: their names cannot be used"
            );
        }
        let known = {
            let mut state = lock(&self.state);
            state.known.revision = Some(connection.revision()).filter(|r| !r.is_empty());
            let before = state.known.tools.as_ref().filter(|_| state.known.hash == self.settings.hash);
            if before.is_some_and(|before| *before != tools) {
                state.changed = Some(tools);
            } else {
                state.changed = None;
                state.known.tools = Some(tools);
                state.known.hash.clone_from(&self.settings.hash);
            }
            state.known.clone()
        };
        if let Err(error) = self.file.write(&known) {
            tracing::warn!(server = self.name(), error, "the tools of an MCP server could not be kept");
        }
        Ok(())
    }

    async fn ask_start(&self, cx: Option<&ToolCx>) -> Result<(), Failure> {
        let view = self.view();
        let what = if view.transport == "stdio" { "Start" } else { "Connect to" };
        let mut question =
            format!("{what} the MCP server {} of this project's .mcp.json?\n{}", self.name(), view.command);
        if !view.given.is_empty() {
            question.push_str(&format!("\nIt is given: {}", view.given.join(", ")));
        }
        question.push_str(&match &view.tools {
            Some(tools) => {
                format!("\n{}", price(tools.iter().map(|t| t.name.as_str()), tools.len(), view.tokens))
            }
            None => "\nIts tools are not known before it runs".to_owned(),
        });
        self.ask(cx, question, "it has not been approved").await
    }

    async fn ask_changed(&self, cx: Option<&ToolCx>) -> Result<(), Failure> {
        let (lines, cost, names) = {
            let state = lock(&self.state);
            let Some(now) = &state.changed else { return Ok(()) };
            let before = state.known.tools.as_deref().unwrap_or_default();
            let names: Vec<String> = now.iter().map(|tool| tool.name.clone()).collect();
            (changes(before, now, SHOWN), tokens(now), names)
        };
        let question = format!(
            "The tools of the MCP server {} have changed since you approved them. Use them as they are now?\n{}\n{}",
            self.name(),
            lines.join("\n"),
            price(names.iter().map(String::as_str), names.len(), cost)
        );
        self.ask(cx, question, "its tools have changed since they were approved").await
    }

    /// Asks, and keeps a yes.
    async fn ask(&self, cx: Option<&ToolCx>, mut question: String, refused: &str) -> Result<(), Failure> {
        let hint = format!("`tiller mcp test {} --approve` shows and approves it", self.name());
        let Some(cx) = cx else {
            return Err(Failure { unanswered: true, ..Failure::new(format!("{refused}; {hint}")) });
        };
        question.truncate(question.floor_char_boundary(3900));
        let body = AskBody::Clarify {
            question,
            choices: vec![YES.into(), NO.into()],
            allow_freetext: false,
            multiple: false,
            default: None,
            decides: vec![0],
        };
        let answer = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(Failure::new("the question was withdrawn")),
            answer = cx.ports.ask(&cx.agent, body) => answer,
        };
        match answer {
            Ok(AskReply::Choice { answers }) if answers.iter().any(|answer| answer == YES) => {
                self.approve().map_err(|e| Failure::new(format!("the approval could not be kept: {e}")))
            }
            Ok(_) => Err(Failure::new(format!("{refused}: the user said no"))),
            Err(why) => {
                Err(Failure { unanswered: true, ..Failure::new(format!("{refused}, and {why}; {hint}")) })
            }
        }
    }
}

/// Tools with their price.
fn price<'a>(names: impl Iterator<Item = &'a str>, count: usize, tokens: u64) -> String {
    let shown: Vec<&str> = names.take(NAMED).collect();
    let more = if count > shown.len() { format!(" and {} more", count - shown.len()) } else { String::new() };
    let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
    format!("{tools}, about {tokens} tokens when all are read: {}{more}", shown.join(", "))
}

/// Set while a start runs, also when it is given up.
struct StartingMark<'a>(&'a Server);

impl Drop for StartingMark<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).starting = false;
    }
}
