//! The entry point of this crate: [`Ui`] runs the screen, [`UiSender`] sends to it from other threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tiller_config::schema;
use tiller_protocol::{Clock, Command, Event, Notice, NoticeKind, ToolCatalog};

use crate::app::App;
use crate::app::inbox::{EventSource, Inbox, Post, Waker, inbox};
use crate::app::msg::{ConfigMsg, Msg, SignalMsg};
use crate::app::run::Loop;
use crate::keymap::{self, Keymap};
use crate::shipped;
use crate::slash::PromptCommand;
use crate::terminal::terminal_owner::{AttachState, DetachHooks, OwnerMsg};
use crate::terminal::{Modes, Terminal, install_panic_hook};
use crate::theme::{Depth, Themes};

/// Messages that may wait. The loop drains them all before it draws.
const WAITING: usize = 4096;

/// Reads a variable of the environment.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Opens the person's editor on a file at a line and waits for it; an error is a sentence. Made by the room that may
/// start processes.
pub type Editor = Box<dyn Fn(&Path, Option<u32>) -> Result<(), String> + Send>;

/// Runs `tiller skills try` for a skill or the folder of one, and waits for its end; an error is a sentence.
pub type Trial = Box<dyn Fn(&str) -> Result<(), String> + Send>;

/// Shows what changed in a pack, or in the folder where there is none, and asks whether it is trusted; an error is a sentence.
pub type TrustQuestion = Box<dyn Fn(Option<&str>) -> Result<(), String> + Send>;

/// Reads the settings again after they changed on disk.
pub type Settings = Box<dyn Fn() -> Result<schema::Ui, Notice> + Send>;

/// Changes one setting (`ui.ascii`) in the user's file; an error is a sentence.
pub type SaveSetting = Box<dyn Fn(&str, &crate::app::effect::SettingEdit) -> Result<(), String> + Send>;

/// Sets up a provider: tries the key or the server, keeps it, and makes it ready; an error is a sentence. Called on a
/// thread of its own; may block.
pub type SetUp =
    Arc<dyn Fn(crate::app::effect::Connect) -> Result<crate::app::effect::Connected, String> + Send + Sync>;

/// The options that the screen is made from.
pub struct UiOptions {
    pub config: schema::Ui,
    pub mode: ScreenMode,
    pub folders: UiFolders,
    pub env: Env,
    pub clock: Arc<dyn Clock>,
    pub hooks: Hooks,
    pub found: Found,
    /// The tools of this program: how calls are described.
    pub tools: ToolCatalog,
    pub start: Start,
    /// `/` commands from files.
    pub commands: Vec<PromptCommand>,
    /// The folder contains settings or rules that are not trusted; read at the start and at each reload.
    pub restricted: Arc<AtomicBool>,
    /// The screen is in a process of its own, and can be left; `None`: it ends with its terminal.
    pub host: Option<DetachHooks>,
}

/// How the screen uses the terminal.
#[derive(Clone, Copy, Default)]
pub struct ScreenMode {
    /// Draw in the main screen, without the alternate one.
    pub inline: bool,
    /// Linear text, nothing is drawn.
    pub plain: bool,
    /// Never ask the terminal for mouse events.
    pub no_mouse: bool,
}

/// Folders that the screen reads and writes.
pub struct UiFolders {
    /// The person's configuration: `keys.toml`, `themes/`. `None`: only what is built in.
    pub config: Option<PathBuf>,
    /// The person's data: memory files. `None`: there are none.
    pub data: Option<PathBuf>,
    /// Folders of plugins, which may bring themes and keymaps.
    pub plugins: Vec<PathBuf>,
    /// Reports of internal errors.
    pub state: Option<PathBuf>,
    /// Drafts of this workspace: each window has a file of its own there.
    pub draft: Option<PathBuf>,
    /// Files for the external editor.
    pub scratch: PathBuf,
    /// The workspace; `None`: there is none.
    pub workspace: Option<PathBuf>,
}

/// Functions of other rooms that the screen calls. `None`: what needs the function is not possible.
#[derive(Default)]
pub struct Hooks {
    pub editor: Option<Editor>,
    pub trial: Option<Trial>,
    pub trust: Option<TrustQuestion>,
    pub settings: Option<Settings>,
    pub save_setting: Option<SaveSetting>,
    /// Runs the command of `ui.statusline`.
    pub statusline: Option<crate::app::state::Runner>,
    pub connect: Option<SetUp>,
}

/// The programs and keys found on this machine, which can be offered.
#[derive(Default)]
pub struct Found {
    /// Keys of the environment, by name.
    pub keys: Vec<crate::model::kinds::FoundKey>,
    /// Names of agent programs on the path.
    pub agents: Vec<String>,
}

/// The first steps at the start.
#[derive(Default)]
pub struct Start {
    /// No model was found: offer to set one up, once the engine has answered.
    pub first_run: bool,
    /// Sent as soon as the engine takes it.
    pub prompt: Option<String>,
    /// An action to begin with (`tour.open`, `sessions.open`).
    pub action: Option<&'static str>,
    /// Steps of the guided tour: title, text, ids of actions with commas between them.
    pub tour: Vec<(String, String, String)>,
}

impl UiOptions {
    /// With the built-in settings, the real clock and this environment.
    pub fn new(env: Env) -> Self {
        let folders = UiFolders {
            config: None,
            data: None,
            plugins: Vec::new(),
            state: None,
            draft: None,
            scratch: tempfile::env::temp_dir(),
            workspace: None,
        };
        Self {
            config: schema::Ui::default(),
            mode: ScreenMode::default(),
            folders,
            env,
            clock: Arc::new(tiller_protocol::SystemClock::default()),
            hooks: Hooks::default(),
            found: Found::default(),
            tools: ToolCatalog::default(),
            start: Start::default(),
            commands: Vec::new(),
            restricted: Arc::default(),
            host: None,
        }
    }
}

/// Why the screen could not run.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// Standard input or output is no terminal.
    #[error("standard input and output must be a terminal; use `tiller exec` in scripts")]
    NoTerminal(#[source] std::io::Error),
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] std::io::Error),
}

/// How the screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The person quit, or the engine stopped.
    Quit,
    /// By this signal, or because the terminal is gone (1).
    Signal(i32),
}

/// Sends to the screen from any thread. Never fails: after the screen has ended, messages are dropped.
#[derive(Clone)]
pub struct UiSender(pub(crate) Post);

impl UiSender {
    /// Sends an event. Waits while too many messages wait; `false` when the screen has ended.
    pub fn event(&self, event: Event) -> bool {
        self.0.send(Msg::Engine(Box::new(event))).is_ok()
    }

    /// Makes the screen fetch events from `source` itself. [`UiSender::waker`] must be called for each event.
    pub fn source(&self, source: EventSource) {
        let _ = self.0.send(Msg::Source(source));
    }

    /// Wakes the screen for its [`UiSender::source`].
    pub fn waker(&self) -> Waker {
        self.0.waker()
    }

    /// Ends the screen because of this signal.
    pub fn terminate(&self, signal: i32) {
        let _ = self.0.send(Msg::Signal(SignalMsg::Terminate(signal)));
    }

    /// Sends a message of the terminal's owner, or of a process that wants to attach; `false` when the screen has ended.
    pub fn owner(&self, msg: OwnerMsg) -> bool {
        self.0.send(Msg::Owner(Box::new(msg))).is_ok()
    }

    /// Shows a notice on the screen.
    pub fn notice(&self, notice: Notice) {
        let _ = self.0.send(Msg::Notice(Box::new(notice)));
    }

    /// Sends the kinds of agents that are defined now.
    pub fn kinds(&self, kinds: Vec<crate::model::kinds::AgentKind>) {
        let _ = self.0.send(Msg::Config(ConfigMsg::Kinds(kinds)));
    }

    /// Settings, keys or themes changed on disk.
    pub fn reload(&self) {
        let _ = self.0.send(Msg::Config(ConfigMsg::Changed));
    }
}

/// The screen, not yet running.
pub struct Ui {
    options: UiOptions,
    /// The loop holds the receiving end; senders: engine, input, signals, jobs, writer. When the loop is gone they end,
    /// or their messages are dropped.
    messages: (Post, Inbox),
}

/// How long a lone Escape waits for the rest of a sequence: longer over a network line.
pub(crate) fn escape_wait(env: &Env) -> Duration {
    let ssh = ["SSH_CONNECTION", "SSH_TTY"].iter().any(|k| env(k).is_some_and(|v| !v.is_empty()));
    Duration::from_millis(if ssh { 60 } else { 25 })
}

impl Ui {
    /// Makes the screen without starting it. Does nothing slow and draws nothing.
    pub fn new(options: UiOptions) -> (Self, UiSender) {
        let messages = inbox(WAITING);
        let sender = UiSender(messages.0.clone());
        (Self { options, messages }, sender)
    }

    /// Why plain mode is used instead of the full screen; `None`: the full screen is used.
    pub fn plain_because(&self) -> Option<&'static str> {
        let o = &self.options;
        plain_because(o.mode.plain, &o.config, &*o.env)
    }

    /// Runs until the person quits. `commands` takes a command to the engine; `false` means "not yet":
    /// the command is kept, in order, and offered again.
    ///
    /// # Errors
    /// When there is no terminal, or it cannot be set up.
    pub fn run(self, commands: Box<dyn Fn(Command) -> bool + Send>) -> Result<Exit, UiError> {
        if let Some(why) = self.plain_because() {
            return crate::plain::run(self.options, self.messages, why, commands);
        }
        let o = self.options;
        let modes = Modes::of(&o.config, o.mode.no_mouse, o.mode.inline);
        let terminal = Terminal::open(modes).map_err(UiError::NoTerminal)?;
        let tell = UiSender(self.messages.0.clone());
        install_panic_hook(o.folders.state.clone(), move |line| {
            // A panic hook must not wait: the panic may be in the loop.
            let notice = Notice::new(NoticeKind::Internal, line).hint("You can continue; please report this");
            let _ = tell.0.try_send(Msg::Notice(Box::new(notice)));
        });
        let (app, notices) = make_app(&o);
        let mut run = Loop::new(app, self.messages, commands, Some(terminal), &o)?;
        for n in notices {
            run.app.notice(n);
        }
        run.io.read_environment(&o.env);
        run.attached = AttachState::new(o.host.clone());
        run.app.model.environment.detachable = o.host.is_some();
        run.options = Some(o);
        run.run()
    }
}

/// Why plain mode would be used; `None`: a screen is drawn.
pub fn plain_because(
    asked: bool,
    config: &schema::Ui,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    if asked {
        return Some("--plain");
    }
    if config.plain {
        return Some("the setting `ui.plain`");
    }
    match env("TERM").as_deref() {
        None | Some("" | "dumb") => Some("TERM names a terminal that cannot show a full screen"),
        _ => None,
    }
}

/// Makes the app from the options, with a notice for each error in the person's files.
pub(crate) fn make_app(o: &UiOptions) -> (App, Vec<Notice>) {
    let mut notices = Vec::new();
    let depth = Depth::of_env(&*o.env);
    let folder = o.folders.config.as_ref().map(|f| f.join("themes"));
    let (themes, error) = match o.folders.plugins.as_slice() {
        [] => Themes::new(&o.config, depth, folder),
        plugins => Themes::with_plugins(&o.config, depth, folder, plugins),
    };
    notices.extend(error.map(|e| Notice::new(NoticeKind::Config, format!("theme: {e}"))));
    let map = match load_keys(&o.config, o.folders.config.as_deref(), &o.folders.plugins) {
        Ok(map) => map,
        Err(n) => {
            notices.push(n);
            builtin_keys()
        }
    };
    crate::text::width::set_ambiguous_wide(o.config.ambiguous_wide);
    let mut app = App::new(
        Arc::new(o.config.clone()),
        shipped::registry_with(&o.commands),
        Arc::new(map),
        themes,
        Arc::clone(&o.clock),
    );
    app.model.environment.folders.draft.clone_from(&o.folders.draft);
    app.model.environment.folders.scratch.clone_from(&o.folders.scratch);
    app.model.environment.folders.config.clone_from(&o.folders.config);
    app.model.environment.folders.data.clone_from(&o.folders.data);
    app.model.environment.folders.workspace = named(o.folders.workspace.as_deref());
    app.model.set_tools(&o.tools);
    app.outside.status.runner.clone_from(&o.hooks.statusline);
    app.questions.first_run = o.start.first_run;
    app.model.environment.restricted = o.restricted.load(Ordering::Acquire);
    app.model.environment.found_keys.clone_from(&o.found.keys);
    app.model.environment.found_agents.clone_from(&o.found.agents);
    *app.model.tour = crate::model::tour::Tour::new(&o.start.tour);
    (app, notices)
}

#[expect(clippy::expect_used, reason = "the built-in keymap is compiled in, and a test loads it")]
fn builtin_keys() -> Keymap {
    keymap::preset(shipped::registry().words(), "default").expect("the built-in keymap")
}

/// The names that a folder has in paths.
fn named(folder: Option<&Path>) -> Vec<String> {
    let Some(folder) = folder else { return Vec::new() };
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut names: Vec<String> =
        [folder, &real].iter().filter_map(|f| Some(f.to_str()?.to_owned())).collect();
    names.dedup();
    names
}

/// The keymap of the settings with the person's overlay.
///
/// # Errors
/// With file and line; the caller keeps the last good one.
pub fn load_keys(ui: &schema::Ui, folder: Option<&Path>, plugins: &[PathBuf]) -> Result<Keymap, Notice> {
    let path = folder.map(|f| f.join("keys.toml"));
    let name = path.as_ref().map(|p| p.display().to_string()).unwrap_or_default();
    let text = match path.as_ref().map(std::fs::read_to_string) {
        None => None,
        Some(Ok(text)) => Some(text),
        Some(Err(e)) if e.kind() == std::io::ErrorKind::NotFound => None,
        Some(Err(e)) => {
            return Err(Notice::new(NoticeKind::Config, format!("Keys: cannot read {name}: {e}"))
                .hint("The last valid key bindings stay in use"));
        }
    };
    let overlay = text.as_deref().map(|t| (name.as_str(), t));
    keymap::load_with(shipped::registry().words(), &ui.keymap, overlay, plugins).map_err(|e| {
        // Without a file of keys the preset's name can be wrong, which stands in the settings, or the keymap of a plugin.
        let what = if e.in_settings { format!("ui.keymap: {}", e.message) } else { e.to_string() };
        Notice::new(NoticeKind::Config, format!("keys: {what}"))
            .hint("The last valid key bindings stay in use")
    })
}
