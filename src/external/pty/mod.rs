//! A program in a terminal of ours: its screen is emulated and shown, messages are pasted into it, its dialogs are
//! recognised by rules of the adapter.
//!
//! A thread feeds the screen, one types; the driver looks at the screen at most every 50 ms, so that a flood costs no
//! more than a trickle, and only the latest screen counts.

mod answer;
mod asks;
mod bounds;
mod changes;
mod deliver;
mod dialogs;
mod driver;
mod emulator;
mod encode;
mod hands;
mod keyboard;
mod keys;
mod scan;
mod state;
mod still;
mod typing;

use std::future::Future;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiller_protocol::{Grid, GridRun, ScreenView};
use tiller_tool::shell::{Hosted, Resizer};
use tokio::sync::watch;

use self::changes::Changes;
use self::emulator::Emulator;
use self::keyboard::Keyboard;
use self::state::Marks;
use super::adapter::Pty;
use super::control::View;
use super::job::{Job, StartError};
use super::run::{Run, fill};
use super::said::{Doing, Ending};

/// Read at once.
const CHUNK: usize = 64 << 10;

pub(crate) fn arguments(p: &Pty, job: &Job) -> Vec<String> {
    let none = &Vec::new();
    let resume = if job.resume.is_some() { &p.resume } else { none };
    let model = if job.model.is_some() { &p.model } else { none };
    let how = if job.auto_approve { &p.auto } else { p.careful.as_ref().unwrap_or(none) };
    let args: Vec<String> = [&p.args, resume, model, how].into_iter().flatten().cloned().collect();
    let mut args = fill(&args, job, "", job.resume.as_deref());
    args.extend(job.denied_arguments());
    args
}

/// What came besides pictures; the driver takes it at each look.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub title: Option<String>,
    pub bell: bool,
    pub mark: Option<Option<Doing>>,
}

/// The screen, shared by the thread that feeds it, the driver, and who looks.
pub(crate) struct Screen {
    emulator: Mutex<Emulator>,
    /// The last published state; locked after the emulator.
    changes: Mutex<Changes>,
    news: Mutex<News>,
    /// Counts what was drawn; closed when the terminal is.
    drawn: watch::Receiver<u64>,
    /// A [`super::Said::Screen`] waits in the channel, or nobody has looked since.
    told: AtomicBool,
    /// How often the driver looked at it.
    #[cfg(test)]
    scans: std::sync::atomic::AtomicUsize,
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, Emulator> {
        self.emulator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is on it, as text. For the driver, which looks only when it was drawn.
    fn visible(&self) -> String {
        #[cfg(test)]
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.lock().visible()
    }

    fn news(&self) -> News {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl View for Screen {
    fn grid(&self) -> Grid {
        self.told.store(false, Ordering::Release);
        self.lock().grid()
    }

    fn scrollback(&self, lines: usize) -> Vec<String> {
        self.lock().lines(lines)
    }

    fn history(&self, lines: usize) -> Vec<Vec<GridRun>> {
        self.lock().history(lines)
    }

    fn since(&self, since: u64) -> Option<ScreenView> {
        let mut emulator = self.lock();
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.take(&mut emulator);
        changes.since(since)
    }

    fn drawn(&self) -> watch::Receiver<u64> {
        self.drawn.clone()
    }
}

/// The terminal as the driver holds it.
pub(crate) struct Pane {
    pub hosted: Hosted,
    pub screen: Arc<Screen>,
    pub keys: Keyboard,
    pub resizer: Resizer,
    /// Counts what was drawn; closed when the terminal is.
    pub drawn: watch::Receiver<u64>,
}

/// Starts it. The future is the driver.
///
/// # Errors
/// When the system refuses.
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
    let screen = Arc::new(Screen {
        emulator: Mutex::new(Emulator::new(cols, rows)),
        changes: Mutex::default(),
        news: Mutex::default(),
        drawn: drawn.clone(),
        told: AtomicBool::new(false),
        #[cfg(test)]
        scans: Default::default(),
    });
    let keys = Keyboard::new(writer).map_err(refused)?;
    feeder(reader, screen.clone(), keys.clone(), tx).map_err(refused)?;
    let pane = Pane { hosted, screen: screen.clone(), keys, resizer, drawn };
    Ok((driver::drive(run, pane), screen))
}

/// Feeds the screen. Ends when the terminal does: when the last program on it is gone.
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
            let fed = screen.lock().feed(&chunk[..n]);
            let mark = marks.feed(&chunk[..n]);
            if fed.title.is_some() || fed.bell || mark.is_some() {
                let mut news = screen.news.lock().unwrap_or_else(PoisonError::into_inner);
                news.title = fed.title.or(news.title.take());
                news.bell |= fed.bell;
                news.mark = mark.or(news.mark);
            }
            if !fed.answers.is_empty() {
                // Full: it asks and does not read; it gets no more.
                let _ = keys.press(&fed.answers);
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
