//! A program in one of Tiller's terminals: its screen is emulated and shown, messages are pasted into it, its dialogs
//! are recognised by rules of the adapter.
//!
//! One thread feeds the screen, another writes input; the driver reads the screen at most every 50 ms, so that the
//! amount of output does not matter: only the latest screen counts.

mod answer;
mod claims;
mod deliver;
mod dialogs;
mod driver;
mod input;
mod keyboard;
mod scan;
mod screen;
mod stability;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod testing;
mod turn;
mod typing;

use std::future::Future;
use std::io::Read;
use std::sync::Arc;

use tiller_tool::shell::{HostedProgram, Resizer};
use tokio::sync::watch;

use self::keyboard::Keyboard;
use self::screen::Screen;
use self::screen::marks::Marks;
use super::adapter::Pty;
use super::event::Ending;
use super::job::{Job, StartError};
use super::run::{Run, fill};

/// Maximum bytes of one read.
const CHUNK: usize = 64 << 10;

pub(crate) fn arguments(p: &Pty, job: &Job) -> Vec<String> {
    let none = &Vec::new();
    let resume = if job.resume.session.is_some() { &p.resume } else { none };
    let model = if job.model.is_some() { &p.model } else { none };
    let how = if job.auto_approve { &p.auto } else { p.careful.as_ref().unwrap_or(none) };
    let args: Vec<String> = [&p.args, resume, model, how].into_iter().flatten().cloned().collect();
    let mut args = fill(&args, job, "", job.resume.session.as_deref());
    args.extend(job.denied_arguments());
    args
}

/// The terminal as the driver uses it.
pub(crate) struct Pane {
    pub hosted: HostedProgram,
    pub screen: Arc<Screen>,
    pub keys: Keyboard,
    pub resizer: Resizer,
    /// Counts drawings; closed with the terminal. The feeding thread holds the sender.
    pub drawn: watch::Receiver<u64>,
}

/// Starts the program. The returned future is the driver.
///
/// # Errors
/// When the operating system refuses.
pub(crate) fn start(
    run: Run,
) -> Result<(impl Future<Output = Ending> + Send + 'static, Arc<Screen>), StartError> {
    let refused = |e: std::io::Error| StartError::System {
        program: run.launch.program.display().to_string(),
        why: e.to_string(),
    };
    let (cols, rows) = (run.job.size.0.max(20), run.job.size.1.max(5));
    let started = run.host.start_in_terminal(run.launch.clone(), cols, rows);
    let (mut hosted, terminal) = started.map_err(refused)?;
    hosted.bound(run.job.limits.bounds);
    let (reader, writer, resizer) = terminal.split();
    let (tx, drawn) = watch::channel(0_u64);
    let screen = Arc::new(Screen::new(cols, rows, drawn.clone()));
    let keys = Keyboard::new(writer).map_err(refused)?;
    feeder(reader, screen.clone(), keys.clone(), tx).map_err(refused)?;
    let pane = Pane { hosted, screen: screen.clone(), keys, resizer, drawn };
    Ok((driver::drive(run, pane), screen))
}

/// Feeds the screen. Ends with the terminal, when the last program on it is gone.
fn feeder(
    mut reader: Box<dyn Read + Send>,
    screen: Arc<Screen>,
    keys: Keyboard,
    tx: watch::Sender<u64>,
) -> std::io::Result<()> {
    let feed = move || {
        let mut chunk = vec![0; CHUNK];
        let mut marks = Marks::default();
        while let Ok(n @ 1..) = reader.read(&mut chunk) {
            let answers = screen.feed(&chunk[..n], &mut marks);
            if !answers.is_empty() {
                // A full input buffer means that the program queries without reading: it gets no more answers.
                let _ = keys.press(&answers);
            }
            tx.send_modify(|n| *n = n.wrapping_add(1));
        }
    };
    std::thread::Builder::new().name("tiller-pane".into()).stack_size(256 << 10).spawn(feed)?;
    Ok(())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
