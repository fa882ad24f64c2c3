//! Controls a program by its screen: reads it at intervals, and ends the program. `dialogs` answers dialogs, `deliver`
//! types messages, `input` carries out commands, `turn` detects the end of a turn.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::answer::answer;
use super::claims::Claims;
use super::deliver::{Delivery, Typing};
use super::dialogs::{DialogState, RESIZED, STEP, answered};
use super::input::{HOLD, PersonInput};
use super::scan::Scan;
use super::stability::Stability;
use super::turn::Turn;
use super::typing::keys;
use super::{Pane, Run};
use crate::adapter::{Means, Pty};
use crate::event::{AgentEvent, Ending, Status};
use crate::out::Disconnected;
use tiller_protocol::Transport;
use tiller_protocol::{Activity, ActivitySource};

/// Minimum time between two reads of the screen.
const LOOK: Duration = Duration::from_millis(50);
/// Time limit for a paste to appear on the screen.
pub(super) const ECHO: Duration = Duration::from_secs(8);
/// Time from the echo to Enter: some programs take an immediate Enter for part of the paste.
pub(super) const BEFORE_ENTER: Duration = Duration::from_millis(500);
/// Time limit for a dialog to disappear after its answer.
pub(super) const DIALOG: Duration = Duration::from_secs(10);
/// Time limit for reading the last output of a program that has ended.
const LAST: Duration = Duration::from_secs(3);
/// How long the screen must not change before text is typed, after the first time.
pub(super) const STILL: Duration = Duration::from_millis(300);
/// Lines of history that are searched for an answer.
pub(super) const BACK: usize = 2000;

/// One program, its terminal, and the state of both.
pub(super) struct Driver {
    pub(super) run: Run,
    pub(super) pane: Pane,
    pub(super) pty: Pty,
    pub(super) claims: Claims,
    pub(super) dialog: DialogState,
    pub(super) delivery: Delivery,
    pub(super) person: PersonInput,
    pub(super) view: LastScreen,
    pub(super) turn: Turn,
    /// The program has shown its prompt once.
    ready: bool,
    started: Instant,
    /// When the run ends in any case.
    wall: Instant,
}

/// The screen as the driver last read it.
pub(super) struct LastScreen {
    pub(super) scan: Arc<Scan>,
    /// Number of the drawing that `scan` belongs to; `None`: it must be read again.
    pub(super) scanned: Option<u64>,
    /// When the text last changed.
    pub(super) changed: Instant,
    pub(super) stability: Stability,
    /// Whether the terminal was resized since the start, and when last.
    pub(super) sized: bool,
    pub(super) resized: Option<Instant>,
}

impl LastScreen {
    fn new(now: Instant) -> Self {
        Self {
            scan: Arc::default(),
            scanned: None,
            changed: now,
            stability: Stability::new(now),
            sized: false,
            resized: None,
        }
    }
}

/// Why the run is over.
pub(super) enum RunEnd {
    Done,
    Failed(String),
    Cancelled,
    TimedOut(String),
    /// The program ended.
    Exit,
}

impl From<Disconnected> for RunEnd {
    fn from(_: Disconnected) -> Self {
        Self::Cancelled
    }
}

/// Runs the driver to its end.
pub(crate) async fn drive(run: Run, pane: Pane) -> Ending {
    let Some(pty) = run.job.adapter.pty.clone() else {
        return Ending::new(Status::Failed, "its adapter has no pty section");
    };
    let now = Instant::now();
    let mut d = Driver {
        wall: now + run.job.limits.wall,
        delivery: Delivery::new(&run.job.prompt, now),
        run,
        pane,
        pty,
        claims: Claims::default(),
        dialog: DialogState::None,
        person: PersonInput::default(),
        view: LastScreen::new(now),
        turn: Turn::default(),
        ready: false,
        started: now,
    };
    let stop = match d.serve().await {
        Ok(()) => RunEnd::Done,
        Err(stop) => stop,
    };
    d.close(stop).await
}

pub(super) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::from_secs(60))
}

impl Driver {
    async fn serve(&mut self) -> Result<(), RunEnd> {
        let pid = self.pane.hosted.pid;
        self.run.out.send(AgentEvent::Started { pid, transport: Transport::Pty }).await?;
        let mut drawn = self.pane.drawn.clone();
        let (mut open, mut changed) = (true, false);
        let mut last = Instant::now();
        loop {
            // New output is read at the next interval; without output, when a timer is due.
            let wake = if changed { last + LOOK } else { self.due(last) };
            tokio::select! {
                biased;
                () = self.run.control.hard.cancelled() => return Err(RunEnd::Cancelled),
                () = self.run.control.soft.cancelled() => return Err(RunEnd::Cancelled),
                () = self.run.out.closed() => return Err(RunEnd::Cancelled),
                () = sleep_until(self.wall), if !self.person.attached && !self.person.in_use => {
                    let s = self.run.job.limits.wall.as_secs();
                    return Err(RunEnd::TimedOut(format!("it ran for longer than {s} s")));
                }
                _ = self.pane.hosted.ended() => return Err(RunEnd::Exit),
                Some(command) = self.run.control.commands.recv() => {
                    self.carry_out(command);
                    continue;
                }
                answer = answered(&mut self.dialog) => self.answer(answer).await?,
                more = drawn.changed(), if open && !changed => {
                    (open, changed) = (more.is_ok(), true);
                    continue;
                }
                () = sleep_until(wake) => {}
            }
            (last, changed) = (Instant::now(), false);
            if self.look().await? {
                return Ok(());
            }
        }
    }

    /// The next read without output: when the next timer is due, and never at rest.
    fn due(&self, last: Instant) -> Instant {
        let (quiet, limits) = (seconds(self.pty.quiet), self.run.job.limits);
        let still = self.view.changed + seconds(self.pty.still);
        let mut all = vec![self.view.changed + STILL, still, self.view.changed + quiet];
        match &self.delivery.typing {
            Typing::Echo { until, .. } => all.push(*until),
            Typing::Enter { at, .. } => all.extend([*at, *at + DIALOG]),
            Typing::Nothing if self.turn.current.is_none() && !self.delivery.queue.is_empty() => {
                all.extend([
                    self.view.changed + seconds(self.pty.settle),
                    self.delivery.last_message + limits.coalesce,
                ]);
                all.extend(self.person.last_key.map(|t| t + limits.typing));
            }
            Typing::Nothing => {}
        }
        match &self.dialog {
            DialogState::Answered { at, .. } => all.push(*at + DIALOG),
            DialogState::Moving { at, .. } => all.push(*at + STEP),
            DialogState::None | DialogState::Asked { .. } => {}
        }
        all.extend(self.unknown_due());
        all.extend(self.view.resized.map(|t| t + RESIZED));
        if let Some((_, sent)) = &self.turn.current {
            all.extend([
                *sent + 3 * quiet,
                *sent + DIALOG,
                self.view.changed + DIALOG,
                self.view.changed + limits.idle,
            ]);
        }
        if !self.ready {
            all.push(self.started.max(self.view.changed) + seconds(self.pty.start));
        }
        all.extend(
            self.person.last_key.filter(|_| self.person.in_use && !self.person.attached).map(|t| t + HOLD),
        );
        let next = all.into_iter().filter(|t| *t > last).min();
        // An upper bound, in case a timer is missing here.
        let busy = self.turn.current.is_some() || !self.ready || !self.delivery.queue.is_empty();
        let rest =
            if busy { last + Duration::from_secs(10) } else { self.wall.max(last + Duration::from_secs(10)) };
        next.map_or(rest, |t| t.min(rest))
    }

    /// Scans the screen, if it was drawn since the last scan.
    fn scan(&mut self, now: Instant) -> Arc<Scan> {
        let drawn = *self.pane.drawn.borrow();
        if self.view.scanned.replace(drawn) == Some(drawn) {
            return Arc::clone(&self.view.scan);
        }
        let screen = self.pane.screen.visible();
        if screen != self.view.scan.text {
            self.view.changed = now;
            self.view.stability.drawn(&screen, now);
            self.view.scan = Arc::new(Scan::new(screen, &self.pty));
            // One event at a time; a reader gets the latest state.
            if self.pane.screen.notify() && !self.run.out.try_send(AgentEvent::Screen) {
                self.pane.screen.notice_gone();
            }
        }
        Arc::clone(&self.view.scan)
    }

    /// One iteration. True: everything is done.
    async fn look(&mut self) -> Result<bool, RunEnd> {
        let now = Instant::now();
        let scan = self.scan(now);
        let screen = scan.text.as_str();
        let signals = self.pane.screen.signals();
        if let Some(title) = signals.title {
            self.run.out.send(AgentEvent::Title(title)).await?;
        }
        if signals.bell {
            self.run.out.send(AgentEvent::Bell).await?;
        }
        if let Some(mark) = signals.mark {
            self.claims.set(ActivitySource::Escape, mark);
        }
        if std::mem::take(&mut self.delivery.keys_lost) {
            let note = "it is not reading its input: the last keys are lost; it may have hung";
            self.run.out.send(AgentEvent::Note(note.into())).await?;
        }
        self.dialogs(&scan, now).await?;
        self.claim(&scan)?;
        self.unknown(now).await?;
        let guess = self.claims.best();
        if guess.what == Activity::Working && self.turn.current.is_some() {
            self.turn.worked = true;
        }
        self.run.out.state(guess.what, guess.source).await?;
        self.type_next(screen, guess.what, now).await?;
        self.patience(now)?;
        self.turn_over(screen, guess.what, now).await
    }

    /// What to do about a missing login, with the screen's own text: it may name a variable.
    fn not_logged_in(&self, screen: &str) -> String {
        let auth = &self.run.job.adapter.auth;
        let said = screen.lines().map(str::trim).find(|l| auth.missing.iter().any(|p| p.found(l)));
        let said = said.map(|l| format!(" ({})", l.chars().take(300).collect::<String>()));
        format!("it is not logged in{}: {}", said.unwrap_or_default(), auth.fix)
    }

    /// Updates the claims from the screen.
    fn claim(&mut self, scan: &Scan) -> Result<(), RunEnd> {
        let claim = if !matches!(self.dialog, DialogState::None) {
            Some(Activity::Blocked)
        } else {
            match scan.rule {
                Some(Means::Failed) => return Err(RunEnd::Failed(self.not_logged_in(&scan.text))),
                Some(Means::Blocked) => Some(Activity::Blocked),
                Some(Means::Working) => Some(Activity::Working),
                Some(Means::Idle) => Some(Activity::Idle),
                None if scan.works => Some(Activity::Working),
                None if scan.ready || self.composing(&scan.text) => Some(Activity::Idle),
                None if !self.ready => Some(Activity::Starting),
                None => None,
            }
        };
        self.claims.set(ActivitySource::Screen, claim);
        if claim == Some(Activity::Idle) {
            self.ready = true;
        }
        Ok(())
    }

    /// When an unknown screen counts as waiting for the person.
    fn unknown_due(&self) -> Option<Instant> {
        let known =
            matches!(self.claims.of(ActivitySource::Screen), Some(Activity::Blocked | Activity::Idle));
        if self.person.attached || known {
            return None;
        }
        self.view.stability.due(&self.view.scan.text, self.view.scan.works, seconds(self.pty.unknown))
    }

    /// An unknown screen that does not change needs the person, even if it shows a spinner.
    async fn unknown(&mut self, now: Instant) -> Result<(), RunEnd> {
        if self.unknown_due().is_none_or(|due| now < due) {
            return Ok(());
        }
        self.claims.set(ActivitySource::Screen, Some(Activity::Blocked));
        if !std::mem::replace(&mut self.view.stability.reported, true) {
            let note = "its screen shows an unknown state and may be waiting for you; open it to check";
            self.run.out.send(AgentEvent::Note(note.into())).await?;
        }
        Ok(())
    }

    /// Checks the time limits of an unfinished turn.
    fn patience(&self, now: Instant) -> Result<(), RunEnd> {
        if !matches!(self.dialog, DialogState::None) || self.person.attached || self.person.in_use {
            return Ok(());
        }
        let start = seconds(self.pty.start);
        let last = || {
            let lines: Vec<&str> = self.view.scan.text.lines().filter(|l| !l.trim().is_empty()).collect();
            lines[lines.len().saturating_sub(5)..].join("\n")
        };
        if !self.ready
            && !self.view.stability.reported
            && now.duration_since(self.started.max(self.view.changed)) > start
        {
            let s = start.as_secs();
            return Err(RunEnd::TimedOut(format!(
                "it did not show its prompt within {s} s; screen:\n{}",
                last()
            )));
        }
        let idle = self.run.job.limits.idle;
        if self.turn.current.is_some() && now.duration_since(self.view.changed) > idle {
            let s = idle.as_secs();
            return Err(RunEnd::TimedOut(format!(
                "its screen did not change for {s} s; screen:\n{}",
                last()
            )));
        }
        Ok(())
    }

    /// Ends the program and returns the ending.
    async fn close(mut self, stop: RunEnd) -> Ending {
        if matches!(stop, RunEnd::Done) && !self.pty.quit.is_empty() {
            self.press(keys(&self.pty.quit));
            let _ = timeout(Duration::from_secs(1), self.pane.hosted.ended()).await;
        }
        let exit = self.pane.hosted.exited().map(|e| e.code);
        if matches!(stop, RunEnd::Exit) {
            // Its last output may still be in the terminal, which ends with it.
            let mut drawn = self.pane.drawn.clone();
            let _ = timeout(LAST, async { while drawn.changed().await.is_ok() {} }).await;
        }
        let lines = self.pane.screen.lock().lines(BACK);
        if let Some((prompt, _)) = &self.turn.current {
            self.turn.answer = answer(&lines, prompt, &self.pty);
        }
        let shown = lines[lines.len().saturating_sub(5)..].join("\n");
        let asked = self.turn.current.is_some()
            || !self.delivery.queue.is_empty()
            || !matches!(self.delivery.typing, Typing::Nothing);
        let login = self.run.job.adapter.auth.missing.iter().any(|p| p.found(&shown));
        let (status, why) = match (stop, exit) {
            (RunEnd::Done, _) => (Status::Done, String::new()),
            (RunEnd::Failed(why), _) => (Status::Failed, why),
            (RunEnd::Cancelled, _) => (Status::Cancelled, "stopped".into()),
            (RunEnd::TimedOut(why), _) => (Status::TimedOut, why),
            (RunEnd::Exit, Some(0)) if !asked || self.person.attached || self.person.in_use => {
                (Status::Done, String::new())
            }
            (RunEnd::Exit, Some(code)) if code > 128 => {
                (Status::Crashed, format!("it was ended by signal {}; screen:\n{shown}", code - 128))
            }
            (RunEnd::Exit, _) if login => (Status::Failed, self.not_logged_in(&shown)),
            (RunEnd::Exit, Some(0)) => {
                (Status::Failed, format!("it ended before its turn was over; screen:\n{shown}"))
            }
            (RunEnd::Exit, code) => {
                let code = code.map_or_else(|| "?".into(), |c| c.to_string());
                (Status::Failed, format!("it ended with exit code {code}; screen:\n{shown}"))
            }
        };
        let Pane { hosted, keys: _keys, resizer: _resizer, .. } = self.pane;
        let excess = hosted.excess();
        hosted.end(self.run.job.limits.grace, &self.run.control.hard).await;
        let waiting = self.delivery.queue.into_iter().filter_map(|(id, text)| Some((id?, text)));
        self.run.missed.extend(waiting);
        self.run.miss_all("it ended first").await;
        let ended = matches!(status, Status::Failed | Status::Crashed | Status::Done);
        let ending =
            Ending { text: self.turn.answer, exit: exit.filter(|_| ended), ..Ending::new(status, why) };
        self.run.bounded(ending, excess).await
    }
}
