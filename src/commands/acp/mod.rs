//! `tiller acp`: Tiller as an agent of the Agent Client Protocol (version 1), for editors and for other clients that
//! host agents: JSON-RPC, one message a line, on standard input and output.
//!
//! | file | does |
//! | --- | --- |
//! | `hub` | routes messages to the open sessions |
//! | `input`, `outlet`, `params` | reading lines, writing messages, parameters of requests |
//! | `open` | an engine for a session |
//! | `servers` | MCP servers that the client brings for a session |
//! | `session` | one session: its prompts and its end; events of the engine, its questions |
//! | `prompt` | the client's prompt as a message |
//! | `view`, `history`, `call`, `hunks` | events and entries as updates |
//! | `ask` | questions as requests to the client |
//! | `modes` | profiles and models to choose from |
//! | `slash` | slash commands in prompts |
//!
//! May use: every crate. Each session has an engine of its own. Standard output carries the protocol and nothing else.
//! When standard input closes, or on a signal, every session is saved and ended, with all processes that it started.

mod ask;
mod call;
mod history;
mod hub;
mod hunks;
mod input;
mod modes;
mod open;
mod outlet;
mod params;
mod prompt;
mod servers;
mod session;
mod slash;
mod view;

use std::time::Duration;

use tiller_config::Flags;
use tiller_protocol::{Notice, NoticeKind};
use tiller_store::OnFailure;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use outlet::Ending;

use crate::app::Setup;
use crate::commands::Exit;
use crate::commands::args::Common;
use crate::commands::exec::printer::Printer;

/// Time limit for writing the last bytes.
const LAST: Duration = Duration::from_secs(1);

/// Serves until standard input ends.
pub(super) fn run(common: &Common) -> Result<Exit, Notice> {
    let setup = Setup::read(common, Flags::default())?;
    let store = setup.try_store(OnFailure::Keep).map_err(|e| e.at_start())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .thread_name("acp")
        .enable_all()
        .build()
        .map_err(|e| Notice::new(NoticeKind::Internal, format!("No thread could be started: {e}.")))?;
    let exit = runtime.block_on(async {
        let mut printer = Printer::start()?;
        // Set by the input and by signals; read by each task that waits for the client.
        let (tell, ending) = watch::channel(Ending::No);
        signals(tell.clone())?;
        let lines = input::lines(tell)?;
        let Some(out) = printer.sender() else { return Ok(Exit::Done) };
        let out = outlet::Outlet::new(out, ending.clone());
        let exit = hub::Hub::new(common.clone(), store, out).serve(lines, ending).await;
        // A client that does not read is not waited for.
        let printed = tokio::time::timeout(LAST, printer.finish()).await;
        printed.unwrap_or(Ok(())).map(|()| exit)
    });
    // Hanging tasks are abandoned.
    runtime.shutdown_timeout(LAST);
    exit
}

/// Handles Ctrl-C, TERM and HUP: everything ends regularly. The runtime owns the task that listens.
fn signals(tell: watch::Sender<Ending>) -> Result<(), Notice> {
    let listen = |kind| {
        signal(kind)
            .map_err(|e| Notice::new(NoticeKind::Internal, format!("Cannot listen for signals: {e}.")))
    };
    let (mut int, mut term, mut hup) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
        tell.send_replace(Ending::Signal);
        std::future::pending::<()>().await;
    });
    Ok(())
}
