//! The subcommands, one file or folder each, their arguments ([`args`]), and the exit codes that scripts rely on.
//!
//! `workbench` starts the screen, `exec` runs one turn without it, `acp` serves editors, `transcript` exports and
//! imports sessions.
//!
//! May use: every crate and [`crate::app`], which creates what all commands need. Not here: the composition of the
//! engine (`app`), and separating the workbench from its terminal (`detach`).

mod acp;
mod agents;
pub mod args;
mod audit;
mod batch;
mod checkpoint;
mod compare;
mod complete;
mod costs;
mod detach;
mod doctor;
mod exec;
mod extensions;
mod knowledge;
mod mcp;
mod memory;
mod sandbox;
mod search;
mod sessions;
mod show;
mod transcript;
mod trust;
mod workbench;
mod workflow;

pub use transcript::export::{Export, Format, to_file as export_file};
pub use transcript::import::Import;

use std::io::Write;
use std::process::ExitCode;

use tiller_config::Flags;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::notice::sentence;
use tiller_protocol::{Notice, NoticeKind};
use tiller_text::clean;

use crate::app::Setup;
use crate::commands::args::{Cli, Common, Sub};
use crate::detach::connection::AttachMode;

/// Exit codes, as `contract.md` promises them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Model,
    Usage,
    Refused,
    Limit,
    Store,
    Interrupted,
    /// Ended by this signal.
    Signal(u8),
    /// The exit code of another process of Tiller's.
    Code(u8),
}

impl Exit {
    /// The code for the shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Model => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Limit => 4,
            Self::Store => 5,
            Self::Interrupted => 130,
            Self::Signal(n) => 128u8.saturating_add(n),
            Self::Code(n) => n,
        }
    }
}

impl From<TurnStatus> for Exit {
    fn from(s: TurnStatus) -> Self {
        match s {
            TurnStatus::Done => Self::Done,
            TurnStatus::Interrupted => Self::Interrupted,
            TurnStatus::Failed => Self::Model,
            TurnStatus::Refused => Self::Refused,
            TurnStatus::Limit => Self::Limit,
            TurnStatus::Store => Self::Store,
        }
    }
}

impl From<NoticeKind> for Exit {
    fn from(k: NoticeKind) -> Self {
        match k {
            NoticeKind::Info => Self::Done,
            NoticeKind::User | NoticeKind::Config => Self::Usage,
            NoticeKind::Denied => Self::Refused,
            NoticeKind::Network | NoticeKind::Internal => Self::Model,
            NoticeKind::Budget => Self::Limit,
            NoticeKind::Store => Self::Store,
        }
    }
}

/// Runs the command.
pub fn run(cli: Cli) -> ExitCode {
    if let Err(e) = crate::app::process::core_dumps::disable() {
        tracing::debug!(error = %e, "core dumps could not be turned off");
    }
    crate::app::process::temporary::settle();
    let exit = dispatch(cli);
    ExitCode::from(exit.unwrap_or_else(|n| fail(&n)).code())
}

/// Runs the workbench with a setup that was read already: an embedding program may have changed its clock or
/// environment.
pub fn workbench(setup: Setup, open: crate::commands::args::Open) -> ExitCode {
    ExitCode::from(workbench::show(setup, open, None, None).unwrap_or_else(|n| fail(&n)).code())
}

fn dispatch(cli: Cli) -> Result<Exit, Notice> {
    let plain = |common: &Common| Setup::read(common, Flags::default());
    let here = || plain(&Common::default());
    match cli.command {
        None => workbench::run(cli.open),
        Some(Sub::Demo(demo)) => workbench::demo(demo),
        Some(Sub::DemoServer) => extensions::demo_server::run(),
        Some(Sub::Resume { common }) => workbench::resume(common),
        Some(Sub::Acp { common }) => acp::run(&common),
        Some(Sub::Exec(exec)) => exec::run(plain(&exec.common)?, &exec, None),
        Some(Sub::Sessions { what, json }) => sessions::run(&here()?, what, json),
        Some(Sub::Export(what)) => {
            sessions::run(&here()?, crate::commands::args::Sessions::Export(what), false)
        }
        Some(Sub::Import(what)) => {
            sessions::run(&here()?, crate::commands::args::Sessions::Import(what), false)
        }
        Some(Sub::Checkpoint(what)) => checkpoint::run(&here()?, &what),
        Some(Sub::Agents { what: crate::commands::args::Agents::Run { name, exec } }) => {
            agents::run(&name, *exec)
        }
        Some(Sub::Agents { what: crate::commands::args::Agents::List { json } }) => {
            agents::list(&here()?, json)
        }
        Some(Sub::Batch(what)) => batch::run(plain, &what),
        Some(Sub::Workflow { what }) => workflow::run(plain, &what),
        Some(Sub::Audit { filter, limit, json }) => audit::run(&here()?, filter.as_deref(), limit, json),
        Some(Sub::Learnings { what, json }) => knowledge::learnings::run(&here()?, &what, json),
        Some(Sub::Costs { by, json }) => costs::run(&here()?, by, json),
        Some(Sub::Trust { dir, list, revoke, yes }) => trust::run(dir, list, revoke, yes),
        Some(Sub::Doctor { json }) => doctor::run(&here()?, json),
        Some(Sub::Plugin { what }) => extensions::plugins::run(&here()?, &what),
        Some(Sub::Skills(args)) => extensions::skills::run(&plain(&args.common())?, &args),
        Some(Sub::Hooks { what }) => extensions::hooks::run(&here()?, &what),
        Some(Sub::Sandbox { what }) => sandbox::run(&what),
        Some(Sub::Mcp { what }) => mcp::run(&here()?, &what),
        Some(Sub::Memory { what }) => memory::run(&here()?, &what),
        Some(Sub::Keys { json }) => show::keys(&here()?, json),
        Some(Sub::Themes { import, json }) => show::themes(&here()?, import.as_deref(), json),
        Some(Sub::Config { schema, origin }) => show::config(&here()?, schema, origin),
        Some(Sub::Completions { shell }) => complete::completions(shell),
        Some(Sub::Man) => complete::man(),
        Some(Sub::Ps { json }) => detach::list(&here()?, json),
        Some(Sub::Attach { session, take, watch }) => {
            let mode = match (take, watch) {
                (true, _) => AttachMode::TakeOver,
                (_, true) => AttachMode::Watch,
                _ => AttachMode::Attach,
            };
            detach::attach(&here()?, session.as_deref(), mode)
        }
        Some(Sub::Detach { session }) => detach::detach(&here()?, session.as_deref()),
        Some(Sub::Stop { session, all }) => {
            detach::stop(&here()?, &detach::Selection { session: session.as_deref(), all })
        }
    }
}

/// One JSON line. Every protocol value can be serialised.
fn json_line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).map_or_else(
        |_| String::new(),
        |mut s| {
            s.push('\n');
            s
        },
    )
}

/// Prints the last message of a workbench's client, and returns its exit code.
fn ended(exit: crate::detach::ClientExit) -> Exit {
    if let Some(words) = &exit.words {
        // Standard error may be closed; the exit code still says it.
        let _ = writeln!(std::io::stderr().lock(), "tiller: {}", clean::plain_lines(words));
    }
    Exit::Code(exit.code)
}

/// Prints what happened, why, and what to do on standard error.
fn fail(n: &Notice) -> Exit {
    let mut err = std::io::stderr().lock();
    // Standard error may be closed; the exit code still says it.
    let _ = writeln!(err, "tiller: {}", clean::plain(&sentence(&n.message)));
    for hint in &n.hints {
        for line in clean::plain_lines(&sentence(&without_screen(hint))).lines() {
            let _ = writeln!(err, "  {line}");
        }
    }
    n.kind.into()
}

/// Rewrites a hint that names a key or a command of the workbench, for commands without a screen.
fn without_screen(hint: &str) -> String {
    const GO_ON: &str = "`tiller exec --continue PROMPT` continues this session; `tiller -c` opens it.";
    match tiller_protocol::notice::says_continue(hint) {
        true => GO_ON.to_owned(),
        false => hint
            .replace("with /model", "with -m PROVIDER/MODEL")
            .replace("with /budget, then continue", "with --max-cost, or [budget] in config.toml")
            .replace(
                "compact with /compact, then continue",
                "`tiller -c` opens this session; `/compact` shortens it",
            ),
    }
}

/// Opens the store for a command without a screen. Prints every notice of the opening once.
fn opened(setup: &crate::app::Setup) -> Result<tiller_store::Store, Notice> {
    let store = setup.open_store()?;
    say_opening(&store);
    Ok(store)
}

/// Prints the notices of the store's opening, with each loss by name.
fn say_opening(store: &tiller_store::Store) {
    for notice in store.notices() {
        fail(notice);
        for line in notice.detail.iter().flat_map(|detail| detail.lines()) {
            let _ = writeln!(std::io::stderr().lock(), "  {}", sessions::one_line(line));
        }
    }
    store.mark_notices_shown();
}

/// Prints one line on standard error, in addition to the output of a command.
fn say_beside(text: &str) {
    // Standard error may be gone.
    let _ = writeln!(std::io::stderr().lock(), "tiller: {}", sessions::one_line(&sentence(text)));
}

/// Writes to standard output. A closed pipe is not an error.
fn say(text: &str) -> Result<Exit, Notice> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Exit::Done),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(e) => Err(Notice::new(NoticeKind::User, format!("Standard output could not be written: {e}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::without_screen;

    /// Every hint of the engine that names a command of the workbench is rewritten.
    #[test]
    fn no_hint_sends_who_has_no_screen_to_its_commands() {
        for (hint, word) in [
            ("set or correct the key, or choose another model with /model", "with -m PROVIDER/MODEL"),
            ("then continue: the turn resumes where it stopped", "tiller exec --continue"),
            ("continue to retry, or send another message", "tiller exec --continue"),
            ("raise it with /budget, then continue", "--max-cost"),
            ("compact with /compact, then continue", "`tiller -c` opens"),
        ] {
            assert!(without_screen(hint).contains(word), "{hint}");
        }
        assert_eq!(without_screen("rephrase the message"), "rephrase the message");
    }
}
