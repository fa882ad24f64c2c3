//! Signals as messages: the window changed, the shell wants us to stop or let us go on, the system wants
//! us to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator;

use crate::app::inbox::Post;
use crate::app::msg::{Msg, SignalMsg};

/// How long a stop may take to begin. It comes at once, unless there is no shell that could let us go on.
const BEGINS: Duration = Duration::from_millis(150);

/// The signal that stops us. SIGTSTP itself is caught, so that the screen can be left first. This one has
/// the same meaning for the shell, and like it does nothing when no shell waits: SIGSTOP would then stop
/// us for ever.
const STOP: Signal = Signal::TTIN;

/// The state that the thread and the loop share.
#[derive(Default)]
struct SignalState {
    /// Another program uses the terminal, or plain mode, which changes no modes.
    away: AtomicBool,
    /// Number of SIGCONT received.
    continued: Mutex<u32>,
    /// Notified when the number changes.
    changed: Condvar,
}

impl SignalState {
    fn count(&self) -> MutexGuard<'_, u32> {
        self.continued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that waits for signals. Dropping it ends the thread.
pub(crate) struct Signals {
    handle: iterator::Handle,
    thread: Option<JoinHandle<()>>,
    shared: Arc<SignalState>,
}

impl Signals {
    /// Starts waiting. The thread holds the sender.
    pub(crate) fn start(to: Post) -> std::io::Result<Self> {
        let mut signals = iterator::Signals::new([SIGWINCH, SIGCONT, SIGTSTP, SIGTERM, SIGHUP, SIGINT])?;
        let handle = signals.handle();
        let shared = Arc::new(SignalState::default());
        let mine = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("tiller-signals".into()).spawn(move || {
            for n in signals.forever() {
                let away = mine.away.load(Ordering::SeqCst);
                let msg = match n {
                    // The loop asks for the size itself: of many signals only the last one counts.
                    SIGWINCH => Msg::Resize(0, 0),
                    SIGCONT => {
                        *mine.count() += 1;
                        mine.changed.notify_all();
                        Msg::Signal(SignalMsg::Continued)
                    }
                    // The loop waits for the editor and the editor has stopped: stop with it.
                    SIGTSTP if away => {
                        let _ = kill_process(getpid(), STOP);
                        continue;
                    }
                    SIGTSTP => Msg::Signal(SignalMsg::Stop),
                    n => Msg::Signal(SignalMsg::Terminate(n)),
                };
                if to.send(msg).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { handle, thread: Some(thread), shared })
    }

    /// Sets whether another program uses the terminal: a stop then needs no preparation.
    pub(crate) fn away(&self, away: bool) {
        self.shared.away.store(away, Ordering::SeqCst);
    }

    /// How many times the shell let us go on.
    pub(crate) fn continued(&self) -> u32 {
        *self.shared.count()
    }

    /// Stops this process (`all`: and those that were started with it) until the shell lets it go on.
    /// `false`: the process was not stopped, because no shell waits for that.
    pub(crate) fn stop(&self, all: bool) -> bool {
        let before = self.continued();
        let sent = if all { kill_current_process_group(STOP) } else { kill_process(getpid(), STOP) };
        // Another thread may receive the signal, so that this one continues for a moment. The clock runs while the
        // process is stopped, so that the first wait may end before the count arrives: wait once more.
        for _ in 0..2 {
            if sent.is_ok() {
                let count = self.shared.count();
                let wait = self.shared.changed.wait_timeout_while(count, BEGINS, |n| *n == before);
                drop(wait.unwrap_or_else(PoisonError::into_inner));
            }
        }
        self.continued() != before
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}
