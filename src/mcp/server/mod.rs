//! One server: started when it is needed, restarted with a growing delay, ended as a whole.
//!
//! | file | its job |
//! | --- | --- |
//! | `start` | the connection: made, made again after a delay, its tools read and compared |
//! | `failure` | why it cannot be used, in words for people and for models |
//! | `approval` | what the person has to agree to before it is used, and the questions about it |

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use tiller_protocol::lock;
use tiller_protocol::mcp::{McpPromptView, McpResourceView, McpServerView, McpState, McpToolView};
use tiller_tool::text::visible;
use tiller_tool::{CommandProfile, ToolCx};

use crate::connect::{Connection, Environment};
use crate::hub::ServerRights;
use crate::known::{ApprovedCommand, Known, KnownFile, KnownTool, ToolChanges, changes, first_line, tokens};
use crate::oauth::Tokens;
use crate::offers::Offers;
use crate::read::names;
use crate::read::words::line;
use crate::settings::{Origin, ServerSettings, Transport};

mod approval;
mod failure;
mod start;

pub use approval::Seen;
pub use failure::Failure;

/// Logins in a row that ask for the same rights.
const LOGINS: u32 = 2;
/// Changes of tools that a question shows, and their bytes.
const SHOWN: (usize, usize) = (8, 2_500);

/// Makes what a server is connected with. Called away from the screen's thread.
pub(crate) type MakeEnvironment = Arc<dyn Fn(&ServerSettings, ServerRights) -> Environment + Send + Sync>;

/// One server.
pub struct Server {
    pub(crate) settings: ServerSettings,
    file: KnownFile,
    /// Its resources and prompts.
    pub(crate) offers: Arc<Offers>,
    environment: MakeEnvironment,
    /// True if nothing confines its program, once that was asked.
    free: OnceLock<bool>,
    state: Mutex<ServerState>,
    /// Held while it is started: all that wait for it share one start.
    starting: tokio::sync::Mutex<()>,
    /// Held while a person is asked about it: one question at a time.
    asking: tokio::sync::Mutex<()>,
}

struct ServerState {
    connection: Option<Arc<Connection>>,
    /// Those of the connection's program.
    rights: ServerRights,
    known: Known,
    /// Its tools as this process read them last; `None`: not yet.
    now: Option<Vec<KnownTool>>,
    /// What was left out of them.
    left_out: Vec<String>,
    failure: Option<Failure>,
    failures: usize,
    failed_at: Option<Instant>,
    starting: bool,
    used: bool,
    disabled: bool,
    /// The user took the trust in the folder that names it back.
    revoked: bool,
}

impl ServerState {
    /// The approved tools; `None`: there are none of these settings.
    fn approved(&self, hash: &str) -> Option<&[KnownTool]> {
        self.known.tools.as_deref().filter(|_| self.known.hash == hash)
    }

    fn usable(&self, hash: &str) -> Option<Vec<KnownTool>> {
        let approved = self.approved(hash)?;
        Some(match &self.now {
            Some(now) => now.iter().filter(|tool| is_among(tool, approved)).cloned().collect(),
            None => approved.to_vec(),
        })
    }

    fn held(&self, hash: &str) -> Vec<KnownTool> {
        let (Some(approved), Some(now)) = (self.approved(hash), &self.now) else { return Vec::new() };
        now.iter().filter(|tool| !is_among(tool, approved)).cloned().collect()
    }

    /// The changes of its tools, with the tools that a yes to them approves. `first`: the tool whose changes are the first
    /// ones.
    fn tool_changes(&self, hash: &str, most: (usize, usize), first: Option<&str>) -> Seen {
        let (Some(approved), Some(now)) = (self.approved(hash), &self.now) else {
            return Seen { lines: Vec::new(), tools: self.now.clone() };
        };
        let mut now = now.clone();
        now.sort_by_key(|tool| first != Some(tool.name.as_str()));
        let ToolChanges { lines, after } = changes(approved, &now, most);
        Seen { lines, tools: Some(after) }
    }

    /// The changes of its command, and of its tools as [`Self::tool_changes`] has them.
    fn seen(&self, settings: &ServerSettings, most: (usize, usize)) -> Seen {
        let mut lines = self.command_changes(settings);
        let Seen { lines: more, tools } = self.tool_changes(&settings.hash, most, None);
        lines.extend(more);
        Seen { lines, tools }
    }

    /// Fails where it is turned off, or the folder that names it is not trusted.
    fn on(&self) -> Result<(), Failure> {
        match (self.revoked, self.disabled) {
            (true, _) => Err(Failure::revoked()),
            (_, true) => Err(Failure::new("it is turned off; /mcp turns it on")),
            _ => Ok(()),
        }
    }

    /// What differs from the command that was approved; none where it is that one, or where none was.
    fn command_changes(&self, settings: &ServerSettings) -> Vec<String> {
        if settings.origin != Origin::Project
            || self.known.approved.as_ref().is_none_or(|hash| *hash == settings.hash)
        {
            return Vec::new();
        }
        match &self.known.approved_as {
            Some(before) => before.changes(&ApprovedCommand::of(settings)),
            None => {
                vec!["its command has changed since an earlier version of Tiller kept your approval".into()]
            }
        }
    }
}

/// Returns true if a tool is one of these, as it was. Both are sorted by name.
fn is_among(tool: &KnownTool, approved: &[KnownTool]) -> bool {
    let at = approved.binary_search_by(|known| known.name.as_str().cmp(&tool.name));
    at.is_ok_and(|at| approved.get(at) == Some(tool))
}

/// That tools are held back.
fn held_words(n: usize) -> String {
    match n {
        1 => "1 tool is held back until you approve it: it is new or has changed".into(),
        n => format!("{n} tools are held back until you approve them: they are new or have changed"),
    }
}

impl Server {
    /// True if it may write files on this machine by itself. The first time it finds out what confines it, which may take some
    /// 20 ms.
    pub(crate) fn writes_files(&self) -> bool {
        match &self.settings.transport {
            Transport::Stdio { .. } => *self
                .free
                .get_or_init(|| (self.environment)(&self.settings, ServerRights::Write).confined.is_none()),
            Transport::Http { url, .. } => {
                reqwest::Url::parse(url).is_ok_and(|url| tiller_http::is_loopback(&url))
            }
        }
    }

    pub(crate) fn new(settings: ServerSettings, file: KnownFile, environment: MakeEnvironment) -> Self {
        let disabled = settings.disabled;
        let state = ServerState {
            connection: None,
            rights: ServerRights::Read,
            known: file.read(),
            now: None,
            left_out: Vec::new(),
            failure: None,
            failures: 0,
            failed_at: None,
            starting: false,
            used: false,
            disabled,
            revoked: false,
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

    /// Its tools that are as they were approved; `None`: they were not read yet, or with other settings.
    pub fn tools(&self) -> Option<Vec<KnownTool>> {
        lock(&self.state).usable(&self.settings.hash)
    }

    /// Its tools that are new or changed since they were approved: each is held back, the others can be called.
    pub fn held(&self) -> Vec<KnownTool> {
        lock(&self.state).held(&self.settings.hash)
    }

    /// The name that models and rules know a tool by, where this is its own name or that one.
    pub(crate) fn safe_name(&self, name: &str) -> Option<String> {
        let all = self.tools().unwrap_or_default().into_iter().chain(self.held());
        let mut fit: Vec<KnownTool> =
            all.filter(|tool| tool.name == name || tool.own_name() == name).collect();
        fit.sort_by_key(|tool| tool.name != name);
        fit.into_iter().next().map(|tool| tool.name)
    }

    /// The revision of the protocol that was agreed on; empty: not known.
    pub fn revision(&self) -> String {
        lock(&self.state).known.revision.clone().unwrap_or_default()
    }

    /// True if the person has turned it off, or no longer trusts the folder that names it.
    pub fn is_disabled(&self) -> bool {
        let state = lock(&self.state);
        state.disabled || state.revoked
    }

    /// True if the person no longer trusts the folder that names it.
    pub(crate) fn is_revoked(&self) -> bool {
        lock(&self.state).revoked
    }

    /// Ends it, and refuses every further use: the person no longer trusts the folder that names it.
    pub(crate) fn revoke(&self) {
        let connection = {
            let mut state = lock(&self.state);
            state.revoked = true;
            state.failure = Some(Failure::revoked());
            state.connection.take()
        };
        // A program ends once no call uses its connection; calls end now.
        if let Some(connection) = connection {
            connection.running.cancellation_token().cancel();
        }
    }

    /// As a client shows it.
    pub fn view(&self) -> McpServerView {
        let unapproved = self.needs_approval();
        let (resources, prompts) = (self.offers.resources().len(), self.offers.prompts().len());
        let left_out = self.offers.left_out();
        let state = lock(&self.state);
        let alive = state.connection.as_ref().is_some_and(|c| c.is_alive());
        let died = state.connection.as_ref().filter(|c| !c.is_alive());
        let failure = state
            .failure
            .clone()
            .or_else(|| died.map(|c| Failure { tail: c.tail.text(), ..Failure::new(c.why_ended()) }));
        let known = state.usable(&self.settings.hash);
        let held = state.held(&self.settings.hash);
        let row = match () {
            () if state.disabled || state.revoked => McpState::Disabled,
            () if state.starting => McpState::Starting,
            () if unapproved => McpState::Unapproved,
            () if !held.is_empty() => McpState::Changed,
            () if alive && state.used => McpState::Used,
            () if alive => McpState::Started,
            () if failure.as_ref().is_some_and(|f| f.login) => McpState::LoggedOut,
            () if failure.is_some() => McpState::Failed,
            () if known.is_some() => McpState::Known,
            () => McpState::Configured,
        };
        let seen = state.seen(&self.settings, SHOWN);
        let shown = seen.mark(&self.settings);
        let mut notes = seen.lines;
        let left = state.left_out.iter().chain(&left_out);
        notes.extend(left.map(|note| visible(note).into_owned()));
        McpServerView {
            name: self.settings.name.clone(),
            state: row,
            transport: self.settings.transport_word().into(),
            origin: self.settings.origin.word().into(),
            command: visible(&self.settings.words()).into_owned(),
            given: self.settings.given().into_iter().map(|name| visible(name).into_owned()).collect(),
            tools: known.as_ref().map(|tools| {
                let view = |tool: &KnownTool| McpToolView {
                    name: tool.name.clone(),
                    own: if tool.own.is_empty() { String::new() } else { names::shown(&tool.own) },
                    summary: first_line(&tool.description),
                    tokens: tokens(std::slice::from_ref(tool)),
                    read_only: tool.read_only,
                };
                tools.iter().map(view).collect()
            }),
            tokens: known.as_ref().map_or(0, |tools| tokens(tools)),
            resources,
            prompts,
            error: match held.len() {
                0 => failure.as_ref().map(|f| f.why.clone()).unwrap_or_default(),
                n => held_words(n),
            },
            notes,
            shown,
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
        (self.offers.resources(), self.offers.prompts())
    }

    /// The differences to what was approved; none where nothing was approved.
    pub fn differences(&self) -> Seen {
        lock(&self.state).seen(&self.settings, (usize::MAX, usize::MAX))
    }

    /// The differences as its row in a list shows them. `mark`: that of the row at which the person said yes.
    ///
    /// # Errors
    /// When they are others by now.
    pub(crate) fn shown(&self, mark: Option<&str>) -> Result<Seen, String> {
        let seen = lock(&self.state).seen(&self.settings, SHOWN);
        if mark.is_none_or(|mark| mark == seen.mark(&self.settings)) {
            return Ok(seen);
        }
        Err("it has changed again since the list was read: nothing was approved; look at it once more".into())
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

    /// Forgets what is kept of it, the token of a login without a person too.
    pub fn forget(&self) {
        self.file.remove();
        if let Some(tokens) = self.tokens() {
            tokens.forget();
        }
        self.offers.forget();
        lock(&self.state).known = Known::default();
    }

    /// The living connection, with tools that the person has approved. `cx`: the call that needs it, whose person is asked
    /// where that is needed; `None`: nothing is asked.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) async fn ready(&self, cx: Option<&ToolCx>) -> Result<Arc<Connection>, Failure> {
        self.permitted(cx).await?;
        self.open(cx).await
    }

    /// Asks the user for what a start needs.
    ///
    /// # Errors
    /// When it may not be used.
    pub(crate) async fn permitted(&self, cx: Option<&ToolCx>) -> Result<(), Failure> {
        self.on()?;
        if self.needs_approval() {
            let _one = self.asking.lock().await;
            // Another call may have asked meanwhile.
            if self.needs_approval() {
                self.ask_start(cx).await?;
            }
        }
        Ok(())
    }

    /// Fails where it is turned off, or the folder that names it is not trusted.
    fn on(&self) -> Result<(), Failure> {
        lock(&self.state).on()
    }

    /// Returns true while it is being started.
    pub(crate) fn is_starting(&self) -> bool {
        lock(&self.state).starting
    }

    /// Waits until no start of it runs.
    pub(crate) async fn started(&self) {
        drop(self.starting.lock().await);
    }

    /// Why its last start failed.
    pub(crate) fn failure(&self) -> Option<Failure> {
        lock(&self.state).failure.clone()
    }

    /// The living connection of a server that is permitted; starts it where there is none.
    pub(crate) async fn open(&self, cx: Option<&ToolCx>) -> Result<Arc<Connection>, Failure> {
        let reads = cx.is_some_and(|cx| cx.run.profile == CommandProfile::Read);
        let rights = if reads { ServerRights::Read } else { ServerRights::Write };
        let connection = self.connected(rights).await?;
        if connection.changed.swap(false, Ordering::AcqRel) {
            self.read_tools(&connection).await?;
        }
        Ok(connection)
    }

    /// Notes that it wants a login, for the next one. `refused`: the tool or the address that it refused.
    pub(crate) fn logged_out(&self, challenge: Option<String>, refused: Option<&str>) -> Failure {
        let wanted = challenge.as_deref().map(crate::oauth::wanted_rights).unwrap_or_default();
        let (known, asked) = {
            let mut state = lock(&self.state);
            state.known.challenge = challenge;
            state.known.refused = refused.map(str::to_owned);
            let asked =
                state.known.logins > 0 && wanted.iter().all(|right| state.known.scopes.contains(right));
            (state.known.clone(), asked)
        };
        if let Err(error) = self.file.write(&known) {
            tracing::warn!(
                server = self.name(),
                error,
                "what an MCP server wants of a login could not be kept"
            );
        }
        let login = format!("`tiller mcp login {}`", self.name());
        let rights = line(&wanted.join(" "), 200);
        let theirs = Some(rights.clone()).filter(|rights| !rights.is_empty());
        let alone = matches!(&self.settings.transport, Transport::Http { grant: Some(_), .. });
        let why = match (wanted.is_empty(), alone, asked) {
            (true, false, _) => format!("it wants you to log in: {login}"),
            (true, true, _) => format!(
                "it refuses the token of its login, and another one too: its operator has to let it in, or [mcp.{0}.login] is \
                 of another server; {login} tries it again",
                self.name()
            ),
            (false, true, _) => format!(
                "it wants more rights than its login has ({rights}): add them to scopes in [mcp.{0}.login]",
                self.name()
            ),
            (false, false, false) => {
                format!(
                    "it wants more rights than you logged in with ({rights}): {login} asks for them and for those you have"
                )
            }
            (false, false, true) => format!(
                "it still wants rights that your last login asked for ({rights}): its operator has to grant them; after that, {login}"
            ),
        };
        Failure { login: true, theirs, ..Failure::new(why) }
    }

    /// The tokens of its login without a person.
    fn tokens(&self) -> Option<Tokens> {
        let Transport::Http { url, client, grant: Some(grant), .. } = &self.settings.transport else {
            return None;
        };
        let folder = (self.environment)(&self.settings, ServerRights::Write).state;
        Some(Tokens::new(&folder, url, client.as_ref(), grant))
    }

    /// Lets the person log in at the server. `show` gets the address of the page to open. A login that needs no person is made
    /// anew, and shows none.
    ///
    /// # Errors
    /// Why there is no login; a sentence without a full stop.
    pub async fn log_in(&self, show: &(dyn Fn(&str) + Send + Sync)) -> Result<(), String> {
        let Transport::Http { url, client, .. } = &self.settings.transport else {
            return Err("it is a program of this machine, which needs no login".into());
        };
        if let Some(tokens) = self.tokens() {
            tokens.renew().await?;
            self.reset().await;
            return Ok(());
        }
        let (challenge, before, logins) = {
            let known = &lock(&self.state).known;
            (known.challenge.clone(), known.scopes.clone(), known.logins)
        };
        let folder = (self.environment)(&self.settings, ServerRights::Write).state;
        let rights = crate::oauth::rights(&folder, url, &before, challenge.as_deref()).await;
        let again = !rights.is_empty() && rights.iter().all(|right| before.contains(right));
        if again && logins >= LOGINS {
            // The next try is the user's own: its operator may have granted them.
            self.keep_rights(before, 0);
            return Err(format!(
                "{LOGINS} logins asked for the rights that the server wants ({}), and it still refuses: its operator has to \
                 grant them; after that, log in again",
                line(&rights.join(" "), 200)
            ));
        }
        crate::oauth::log_in(&folder, (url, client.as_ref()), (challenge.as_deref(), &rights), show).await?;
        if !rights.is_empty() {
            self.keep_rights(rights, if again { logins + 1 } else { 1 });
        }
        self.reset().await;
        Ok(())
    }

    /// Keeps the rights that logins asked for, and how many in a row did.
    fn keep_rights(&self, scopes: Vec<String>, logins: u32) {
        let known = {
            let mut state = lock(&self.state);
            (state.known.scopes, state.known.logins) = (scopes, logins);
            state.known.clone()
        };
        if let Err(error) = self.file.write(&known) {
            tracing::warn!(
                server = self.name(),
                error,
                "the rights of a login at an MCP server could not be kept"
            );
        }
    }

    /// Notes that a tool of it was called.
    pub(crate) fn used(&self) {
        lock(&self.state).used = true;
    }

    /// Notes that a call of a tool, or of an address, passed: the rights of the login are enough where it is what was refused.
    pub(crate) fn rights_are_enough(&self, passed: &str) {
        let (scopes, logins, refused) = {
            let known = &lock(&self.state).known;
            (known.scopes.clone(), known.logins, known.refused.clone())
        };
        if logins > 0 && refused.is_none_or(|refused| refused == passed) {
            self.keep_rights(scopes, 0);
        }
    }
}

#[cfg(test)]
mod held_tests;
