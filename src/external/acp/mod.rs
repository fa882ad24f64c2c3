//! Client for the Agent Client Protocol, version 1, over the program's standard streams.
//!
//! One task reads and answers everything; pending answers (of a person, of a file) run beside it.

mod client;
mod ending;
mod files;
mod mode;
mod session;
pub(crate) mod updates;

use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use tiller_tool::shell::HostedProgram;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use self::client::{Client, RequestFailure};
use self::ending::judge;
use self::mode::Mode;
use self::updates::Updates;
use super::event::{AgentEvent, Ending, Status};
use super::pipes::{self, PipedProgram};
use super::run::Run;
use tiller_protocol::Transport;
use tiller_protocol::{Activity, ActivitySource};

/// Runs the whole conversation.
pub(crate) async fn run(mut run: Run) -> Ending {
    let Some(acp) = run.job.adapter.acp.clone() else {
        return Ending::new(Status::Failed, "its adapter has no acp section");
    };
    let limits = run.job.limits;
    let piped = match pipes::start(&run.host, run.launch.clone(), limits) {
        Ok(piped) => piped,
        Err(e) => {
            let why = format!("{} could not be started: {e}", run.launch.program.display());
            run.miss_all("it was not started").await;
            return Ending::new(Status::Failed, why);
        }
    };
    let PipedProgram { mut hosted, mut stdin, lines, errors } = piped;
    let (to, mut from) = mpsc::channel::<String>(64);
    let writer = tokio::spawn(async move {
        while let Some(line) = from.recv().await {
            if stdin.write_all(line.as_bytes()).await.is_err() {
                break;
            }
        }
    });
    let _ = run.out.send(AgentEvent::Started { pid: hosted.pid, transport: Transport::Acp }).await;
    let _ = run.out.state(Activity::Starting, ActivitySource::Report).await;
    let wall = Instant::now() + limits.wall;
    let mut client = Client {
        run,
        acp,
        lines,
        to,
        next: 0,
        updates: Updates::default(),
        session: String::new(),
        muted: false,
        pending: FuturesUnordered::new(),
        wall,
        busy: false,
        mode: Mode::default(),
    };
    let result = client.talk().await;
    // Closing its input asks it to end, and gives it time to save its session.
    let Client { mut run, updates, to, .. } = client;
    drop(to);
    let over = match &result {
        Err(RequestFailure::Ended) | Ok(_) => tokio::select! {
            biased;
            () = run.control.hard.cancelled() => None,
            over = leave(&mut hosted) => over,
        },
        Err(_) => hosted.exited().map(|e| e.code),
    };
    let excess = hosted.excess();
    hosted.end(limits.grace, &run.control.hard).await;
    writer.abort();
    let errors = errors.text().await;
    let mut ending = judge(result, over, &errors, &run);
    ending.text = updates.text;
    let ending = run.bounded(ending, excess).await;
    run.miss_all("it ended first").await;
    ending
}

async fn leave(hosted: &mut HostedProgram) -> Option<i32> {
    timeout(Duration::from_secs(2), hosted.ended()).await.ok().map(|e| e.code)
}

#[cfg(test)]
#[path = "lies_tests.rs"]
mod lies_tests;
#[cfg(test)]
#[path = "mode_tests.rs"]
mod mode_tests;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
