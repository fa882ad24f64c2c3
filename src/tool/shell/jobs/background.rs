//! Starting what runs beside the conversation, and commands under a pseudo-terminal.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use crate::shell::backend::{ShellError, Start};
use crate::shell::confined::deletion;
use crate::shell::confined::watch::CommandWatch;
use crate::shell::elsewhere::ProcessThere;
use crate::shell::jobs::{Job, Kind, Output, Running, drain};
use crate::shell::local::assignments;
use crate::shell::output::leftover::Leftover;
use crate::shell::output::progress::Live;
use crate::shell::output::screen::{COLS, ROWS, Screen};
use crate::shell::pool::ShellPool;
use crate::shell::processes::bounds;
use crate::shell::processes::end;
use crate::shell::processes::environment;
use crate::shell::processes::launch::{self, Confiner, Exit, Launch};
use crate::shell::processes::mark;
use crate::shell::processes::proc_fs::Family;
use crate::shell::protected::Runs;
use crate::{CommandProfile, ToolCx};
use tiller_protocol::lock;

/// A command of its own, before its start.
struct PreparedCommand {
    launch: Launch,
    /// Value of `TILLER_CHILD` in its environment.
    marker: String,
    /// What it will be refused.
    watch: CommandWatch,
}

impl ShellPool {
    /// The launch of a command of its own: a fresh shell with the exported variables of the agent's.
    async fn command(
        &self,
        command: &str,
        folder: &Path,
        mut env: Vec<(String, String)>,
        confiner: Option<&Arc<dyn Confiner>>,
        cx: &ToolCx,
    ) -> Result<PreparedCommand, ShellError> {
        self.check_open()?;
        if let Some(place) = cx.workspace.terminal() {
            self.uses(place);
            let launch = place.on_terminal(self.start_there(folder, cx).await, command).await?;
            return Ok(PreparedCommand {
                launch,
                marker: self.fresh_marker(),
                watch: CommandWatch::default(),
            });
        }
        let own = environment::outside(&env, &cx.workspace.root);
        let program = environment::find("bash", &own)
            .or_else(|| environment::find("sh", &own))
            .ok_or(ShellError::Missing)?;
        // What ran in the sandbox could have set variables by which other programs would run outside.
        let fresh =
            cx.run.profile == CommandProfile::Outside && cx.workspace.confines(CommandProfile::Workspace);
        let exports = if fresh { Vec::new() } else { self.exports(cx).await };
        let exports = String::from_utf8_lossy(&exports).into_owned();
        let marker = self.fresh_marker();
        env.push(("TILLER_CHILD".into(), marker.clone()));
        // The exports are handed over in a variable, so that the command stays exactly what was approved.
        // TERM and its size stay those of this command's own terminal, or lack of one. All is one line: the
        // shell counts the lines of a command from there.
        const TAKE_OVER: &str = "__tiller_t=$TERM; __tiller_m=$TILLER_CHILD; __tiller_f=$PWD; \
eval \"$__tiller_exports\" 2>/dev/null; export TERM=\"$__tiller_t\" TILLER_CHILD=\"$__tiller_m\"; PWD=$__tiller_f; \
unset __tiller_exports __tiller_t __tiller_m __tiller_f; ";
        // Variables of this command alone come last, so that nothing that is exported hides them.
        let text = if cx.variables().is_empty() {
            format!("{TAKE_OVER}eval \"$1\"")
        } else {
            format!("{TAKE_OVER}eval \"$2 command eval \\\"\\$1\\\"\"")
        };
        env.push(("__tiller_exports".into(), exports));
        let mut args: Vec<String> = Vec::new();
        if program.ends_with("bash") {
            args.extend(["--noprofile".into(), "--norc".into()]);
        }
        args.extend(["-c".into(), text, "sh".into(), command.into(), assignments(cx.variables())]);
        let launch = Launch { program, args, env, folder: folder.to_owned() };
        let watch = CommandWatch::default().guarded(deletion::guard(cx));
        watch.attend(&cx.witness);
        let launch = match confiner {
            Some(confiner) => confiner.confine_watched(launch, &cx.workspace.root, &self.scratch()?, &watch),
            None => self.sandbox().wrap(launch),
        };
        Ok(PreparedCommand { launch, marker, watch })
    }

    /// Starts `command` in the background and puts it on the list.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) async fn start_piped(
        &self,
        command: &str,
        folder: &Path,
        cx: &ToolCx,
    ) -> Result<Arc<Job>, ShellError> {
        let system = ShellError::system;
        if let Some(place) = cx.workspace.terminal() {
            self.uses(place);
            let started = place.start(self.start_there(folder, cx).await, command).await?;
            return self.list_there(started, command, cx);
        }
        let env = environment::environment(&cx.child_env);
        let confiner = cx.confiner().map(launch::apart);
        let PreparedCommand { launch, marker, watch } =
            self.command(command, folder, env, confiner.as_ref(), cx).await?;
        let (stdin, input) = std::io::pipe().map_err(system("a pipe"))?;
        let (out, stdout) = std::io::pipe().map_err(system("a pipe"))?;
        let stderr = stdout.try_clone().map_err(system("a pipe"))?;
        // A program that does not read its input must not block the writer.
        rustix::io::ioctl_fionbio(&input, true).map_err(|e| system("a pipe")(e.into()))?;
        let pipe = Receiver::from_owned_fd(OwnedFd::from(out)).map_err(system("a pipe"))?;
        let files = self.guard(confiner, cx).await?;
        files.iter().for_each(|files| files.stays());
        self.prepare(&environment::outside(&cx.child_env, &cx.workspace.root));
        let leader = launch::start(&launch, stdin.into(), stdout.into(), stderr.into())
            .map_err(system("the command could not be started"))?;
        let root = (leader.pid, leader.start);
        self.adopt(root);
        let output = Output::new(cx);
        let reader = drain(pipe, output.clone(), None);
        let family = Family { roots: vec![root], marker, ..Family::default() };
        bounds::apply(root.0, cx.limits.bounds);
        let kind = Kind::Piped { input: Some(input) };
        let mut job = Job::new(command, Running { kind, output, family, exit: leader.exit, watch }, cx);
        job.restored = self.guard_until(files, job.exit.clone(), Runs::Background);
        job.reader = Some(reader);
        let job = self.list_job(|id| job.with_id(id));
        self.recheck()?;
        Ok(job)
    }

    /// What a command elsewhere begins with.
    async fn start_there(&self, folder: &Path, cx: &ToolCx) -> Start {
        Start {
            folder: folder.to_owned(),
            workspace: cx.workspace.root.clone(),
            exports: self.exports(cx).await,
            ..Start::default()
        }
    }

    /// Puts a command that runs elsewhere on the list.
    fn list_there(&self, started: ProcessThere, command: &str, cx: &ToolCx) -> Result<Arc<Job>, ShellError> {
        let ProcessThere { output: out, input, exit, end } = started;
        let pipe = Receiver::from_owned_fd(out).map_err(ShellError::system("a pipe"))?;
        let output = Output::new(cx);
        let reader = drain(pipe, output.clone(), None);
        // For the end of the session.
        self.session_marker();
        let cancel = end.clone();
        let kind = Kind::Piped { input: Some(input) };
        let mut job = Job::new(
            command,
            Running { kind, output, family: Family::default(), exit, watch: CommandWatch::default() },
            cx,
        );
        job.there = Some(end);
        job.reader = Some(reader);
        let job = self.list_job(|id| job.with_id(id));
        self.check_open().inspect_err(|_| cancel.cancel())?;
        Ok(job)
    }

    /// Starts `command` under a pseudo-terminal of 120 x 40. `live`: where its output is shown; without, it goes on the
    /// list of processes.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) async fn start_pty(
        &self,
        command: &str,
        folder: &Path,
        live: Option<Arc<Live>>,
        cx: &ToolCx,
    ) -> Result<Arc<Job>, ShellError> {
        let env = environment::terminal_environment(&cx.child_env, COLS, ROWS);
        let confiner = cx.terminal_confiner().as_ref().map(launch::apart);
        let PreparedCommand { launch, marker, watch } =
            self.command(command, folder, env, confiner.as_ref(), cx).await?;
        let files = self.guard(confiner, cx).await?;
        files.iter().filter(|_| live.is_none()).for_each(|files| files.stays());
        let size = PtySize { rows: ROWS, cols: COLS, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).map_err(other("a pseudo-terminal"))?;
        let mut builder = CommandBuilder::new(&launch.program);
        builder.args(&launch.args);
        builder.env_clear();
        // The crate would look the person's own shell up.
        builder.env("SHELL", &launch.program);
        launch.env.iter().for_each(|(k, v)| builder.env(k, v));
        builder.cwd(&launch.folder);
        let reader = pty.master.try_clone_reader().map_err(other("a pseudo-terminal"))?;
        let writer = pty.master.take_writer().map_err(other("a pseudo-terminal"))?;
        let keys = input_writer(writer).map_err(ShellError::system("a thread"))?;
        let start = || {
            let child =
                pty.slave.spawn_command(builder).map_err(other("the command could not be started"))?;
            let pid = child.process_id().map_or(0, u32::cast_signed);
            Ok::<_, ShellError>((child, pid))
        };
        self.prepare(&environment::outside(&cx.child_env, &cx.workspace.root));
        let (mut child, root) = mark::starting(start)?;
        // Ours must close, or the terminal never ends.
        drop(pty.slave);
        self.adopt(root);
        let (tx, exit) = watch::channel(None);
        let output = Output::new(cx);
        let thread = std::thread::Builder::new().name("tiller-pty-wait".into()).stack_size(128 << 10);
        let news = output.news.clone();
        // Held by this thread until the process ends.
        let waiter = move || {
            let code = child.wait().map_or(-1, |s| s.exit_code().cast_signed());
            let _ = tx.send(Some(Exit { code }));
            news.notify_waiters();
        };
        thread.spawn(waiter).map_err(ShellError::system("a thread"))?;
        let screen = Arc::new(Mutex::new(Screen::default()));
        let kind = Kind::Pty { screen: screen.clone(), keys: keys.clone(), _master: pty.master };
        let family = Family { roots: vec![root], marker, ..Family::default() };
        bounds::apply(root.0, cx.limits.bounds);
        let mut job = Job::new(command, Running { kind, output: output.clone(), family, exit, watch }, cx);
        let runs = if live.is_some() { Runs::Foreground } else { Runs::Background };
        job.restored = self.guard_until(files, job.exit.clone(), runs);
        let job = if live.is_none() { self.list_job(|id| job.with_id(id)) } else { Arc::new(job) };
        let pump = Pump { keys, screen, output, live };
        let thread = std::thread::Builder::new().name("tiller-pty".into()).stack_size(256 << 10);
        thread.spawn(move || pump.run(reader)).map_err(ShellError::system("a thread"))?;
        self.recheck()?;
        Ok(job)
    }

    /// A shutdown during a start has not seen what was started.
    fn recheck(&self) -> Result<(), ShellError> {
        self.check_open().inspect_err(|_| end::kill_now(&self.everything()))
    }

    /// Takes over the output that a command left open. Returns its number.
    pub(crate) fn leave(&self, left: Leftover, command: &str, cx: &ToolCx) -> String {
        let output = Output::new(cx);
        let (tx, exit) = watch::channel(None);
        // The writers are not known yet: `kill` then looks for the processes that hold the pipe.
        let reader = drain(left.pipe, output.clone(), Some(tx));
        let family = Family { pipes: left.name.into_iter().collect(), ..Family::default() };
        let mut job = Job::new(
            command,
            Running { kind: Kind::Leftover, output, family, exit, watch: CommandWatch::default() },
            cx,
        );
        job.reader = Some(reader);
        self.list_job(|id| job.with_id(id)).id.clone()
    }
}

/// Moves the terminal's output into the screen and answers its queries. Runs on its own thread, since the
/// terminal blocks; ends when the last holder of the terminal is gone.
struct Pump {
    keys: SyncSender<Vec<u8>>,
    screen: Arc<Mutex<Screen>>,
    output: Output,
    live: Option<Arc<Live>>,
}

impl Pump {
    fn run(self, mut reader: Box<dyn Read + Send>) {
        let mut buffer = vec![0; 32 << 10];
        loop {
            // On Linux, EIO: no process holds the other end.
            let n = match reader.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(n) => n,
            };
            let replies = lock(&self.screen).feed(&buffer[..n]);
            if !replies.is_empty() {
                // Full: the program asks and does not read; it gets no more.
                let _ = self.keys.try_send(replies);
            }
            if let Some(live) = &self.live {
                live.push(&buffer[..n]);
            }
            self.output.push(&buffer[..n]);
        }
        self.output.end();
    }
}

/// Types into a terminal from a thread of its own: a program that does not read would block the writer.
/// The thread ends when the job and its pump, which hold the senders, are gone.
fn input_writer(mut writer: Box<dyn Write + Send>) -> std::io::Result<SyncSender<Vec<u8>>> {
    let (tx, rx) = sync_channel::<Vec<u8>>(64);
    let thread = std::thread::Builder::new().name("tiller-pty-keys".into()).stack_size(128 << 10);
    thread.spawn(move || {
        while let Ok(bytes) = rx.recv() {
            if writer.write_all(&bytes).is_err() {
                break;
            }
        }
    })?;
    Ok(tx)
}

fn other<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> ShellError {
    move |e| ShellError::system(what)(std::io::Error::other(e.to_string()))
}
