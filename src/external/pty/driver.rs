//! Steers a program by its screen: looks at it, sees when a turn is over, ends it. `dialogs` and `deliver` are the rest.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::answer::{answer, since};
use super::deliver::Typing;
use super::dialogs::{Open, RESIZED, STEP, answered};
use super::hands::HOLD;
use super::scan::Scan;
use super::state::Claims;
use super::still::Still;
use super::typing::keys;
use super::{Pane, Run};
use crate::adapter::{Means, Pty};
use crate::job::Transport;
use crate::out::Gone;
use crate::said::{Doing, Ending, Said, Source, Status};

/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(50);
/// For a paste to show on the screen.
pub(super) const ECHO: Duration = Duration::from_secs(8);
/// From the echo to Enter: some take an Enter that follows at once for part of the paste.
pub(super) const BEFORE_ENTER: Duration = Duration::from_millis(500);
/// For a dialog to go after its answer.
pub(super) const DIALOG: Duration = Duration::from_secs(10);
/// Of a screen that stays as it is, before it is typed into, after the first time.
pub(super) const STILL: Duration = Duration::from_millis(300);
/// Lines of history that are searched for an answer.
const BACK: usize = 2000;

pub(super) struct Driver {
    pub(super) run: Run,
    pub(super) pane: Pane,
    pub(super) pty: Pty,
    pub(super) claims: Claims,
    pub(super) typing: Typing,
    pub(super) dialog: Open,
    /// Messages that wait: id (`None`: the prompt), text.
    pub(super) queue: Vec<(Option<u64>, String)>,
    /// When the last message came.
    pub(super) came: Instant,
    /// When a person last pressed a key.
    pub(super) touched: Option<Instant>,
    /// A person is in it.
    pub(super) attached: bool,
    /// A person typed into it, and has not said that they need it no more: it does not end by itself.
    pub(super) held: bool,
    /// The person said so.
    pub(super) finish: bool,
    /// It was given another size since it began, and when last.
    pub(super) sized: bool,
    pub(super) resized: Option<Instant>,
    /// When the screen last changed.
    pub(super) changed: Instant,
    pub(super) scan: Arc<Scan>,
    /// The picture of which `scan` is; `None`: it has to be looked at.
    pub(super) scanned: Option<u64>,
    /// Since when the screen says what it says.
    pub(super) still: Still,
    /// What stands before the text in its composer.
    pub(super) mark: String,
    /// It did not read what was typed.
    pub(super) unread: bool,
    /// It was ready once.
    pub(super) ready: bool,
    /// The message of the running turn, and when it was sent.
    pub(super) turn: Option<(String, Instant)>,
    pub(super) worked: bool,
    /// What stood after the message when it was sent.
    pub(super) before: Vec<String>,
    /// The notice about silence was sent.
    pub(super) doubted: bool,
    /// Turns that are over.
    pub(super) turns: u32,
    pub(super) text: String,
    pub(super) wall: Instant,
    pub(super) started: Instant,
}

/// Why it is over.
pub(super) enum Stop {
    Done,
    Failed(String),
    Cancelled,
    TimedOut(String),
    /// The program ended.
    Exit,
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Cancelled
    }
}

/// From start to end.
pub(crate) async fn drive(run: Run, pane: Pane) -> Ending {
    let Some(pty) = run.job.adapter.pty.clone() else {
        return Ending::new(Status::Failed, "its adapter has no pty section");
    };
    let now = Instant::now();
    let mut d = Driver {
        wall: now + run.job.limits.wall,
        queue: vec![(None, run.job.prompt.clone())]
            .into_iter()
            .filter(|(_, p)| !p.trim().is_empty())
            .collect(),
        run,
        pane,
        pty,
        claims: Claims::default(),
        typing: Typing::Nothing,
        dialog: Open::None,
        came: now - Duration::from_secs(3600),
        touched: None,
        attached: false,
        held: false,
        finish: false,
        sized: false,
        resized: None,
        changed: now,
        scan: Arc::default(),
        scanned: None,
        still: Still::new(now),
        mark: String::new(),
        unread: false,
        ready: false,
        turn: None,
        worked: false,
        before: Vec::new(),
        doubted: false,
        turns: 0,
        text: String::new(),
        started: now,
    };
    let stop = match d.serve().await {
        Ok(()) => Stop::Done,
        Err(stop) => stop,
    };
    d.close(stop).await
}

pub(super) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::from_secs(60))
}

impl Driver {
    async fn serve(&mut self) -> Result<(), Stop> {
        let pid = self.pane.hosted.pid;
        self.run.out.send(Said::Started { pid, transport: Transport::Pty }).await?;
        let mut drawn = self.pane.drawn.clone();
        let (mut open, mut changed) = (true, false);
        let mut last = Instant::now();
        loop {
            // What is drawn is seen at the next look; without anything, when a time is due.
            let wake = if changed { last + LOOK } else { self.due(last) };
            tokio::select! {
                biased;
                () = self.run.reins.hard.cancelled() => return Err(Stop::Cancelled),
                () = self.run.reins.soft.cancelled() => return Err(Stop::Cancelled),
                () = self.run.out.closed() => return Err(Stop::Cancelled),
                () = sleep_until(self.wall), if !self.attached && !self.held => {
                    let s = self.run.job.limits.wall.as_secs();
                    return Err(Stop::TimedOut(format!("it ran for longer than {s} s")));
                }
                _ = self.pane.hosted.ended() => return Err(Stop::Exit),
                Some(order) = self.run.reins.orders.recv() => {
                    self.order(order);
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

    /// The next look though nothing is drawn: when the next thing is due, and at rest never.
    fn due(&self, last: Instant) -> Instant {
        let (quiet, limits) = (seconds(self.pty.quiet), self.run.job.limits);
        let mut all = vec![self.changed + STILL, self.changed + quiet];
        match &self.typing {
            Typing::Echo { until, .. } => all.push(*until),
            Typing::Enter { at, .. } => all.extend([*at, *at + DIALOG]),
            Typing::Nothing if self.turn.is_none() && !self.queue.is_empty() => {
                all.extend([self.changed + seconds(self.pty.settle), self.came + limits.coalesce]);
                all.extend(self.touched.map(|t| t + limits.typing));
            }
            Typing::Nothing => {}
        }
        match &self.dialog {
            Open::Answered { at, .. } => all.push(*at + DIALOG),
            Open::Moving { at, .. } => all.push(*at + STEP),
            Open::None | Open::Asked { .. } => {}
        }
        all.extend(self.unknown_due());
        all.extend(self.resized.map(|t| t + RESIZED));
        if let Some((_, sent)) = &self.turn {
            all.extend([
                *sent + 3 * quiet,
                *sent + DIALOG,
                self.changed + DIALOG,
                self.changed + limits.idle,
            ]);
        }
        if !self.ready {
            all.push(self.started.max(self.changed) + seconds(self.pty.start));
        }
        all.extend(self.touched.filter(|_| self.held && !self.attached).map(|t| t + HOLD));
        let next = all.into_iter().filter(|t| *t > last).min();
        // Not less than this, should a time be forgotten here.
        let busy = self.turn.is_some() || !self.ready || !self.queue.is_empty();
        let rest =
            if busy { last + Duration::from_secs(10) } else { self.wall.max(last + Duration::from_secs(10)) };
        next.map_or(rest, |t| t.min(rest))
    }

    /// What is on the screen; looked at only when it was drawn.
    fn scan(&mut self, now: Instant) -> Arc<Scan> {
        let drawn = *self.pane.drawn.borrow();
        if self.scanned.replace(drawn) == Some(drawn) {
            return Arc::clone(&self.scan);
        }
        let screen = self.pane.screen.visible();
        if screen != self.scan.text {
            self.changed = now;
            self.still.drawn(&screen, now);
            self.scan = Arc::new(Scan::new(screen, &self.pty));
            // One at a time; a reader gets the latest.
            if !self.pane.screen.told.swap(true, Ordering::AcqRel) && !self.run.out.try_send(Said::Screen) {
                self.pane.screen.told.store(false, Ordering::Release);
            }
        }
        Arc::clone(&self.scan)
    }

    /// One look. True: all is done.
    async fn look(&mut self) -> Result<bool, Stop> {
        let now = Instant::now();
        let scan = self.scan(now);
        let screen = scan.text.as_str();
        let news = self.pane.screen.news();
        if let Some(title) = news.title {
            self.run.out.send(Said::Title(title)).await?;
        }
        if news.bell {
            self.run.out.send(Said::Bell).await?;
        }
        if let Some(mark) = news.mark {
            self.claims.set(Source::Escape, mark);
        }
        if std::mem::take(&mut self.unread) {
            let note = "it is not reading its input: the last keys are lost; it may have hung";
            self.run.out.send(Said::Note(note.into())).await?;
        }
        self.dialogs(&scan, now).await?;
        self.claim(&scan)?;
        self.unknown(now).await?;
        let guess = self.claims.best();
        if guess.what == Doing::Working && self.turn.is_some() {
            self.worked = true;
        }
        self.run.out.state(guess.what, guess.source).await?;
        self.type_next(screen, guess.what, now).await?;
        self.patience(now)?;
        self.turn_over(screen, guess.what, now).await
    }

    /// What to do about a login that is missing, with the screen's own words for it: they may name a variable.
    fn not_logged_in(&self, screen: &str) -> String {
        let auth = &self.run.job.adapter.auth;
        let said = screen.lines().map(str::trim).find(|l| auth.missing.iter().any(|p| p.found(l)));
        let said = said.map(|l| format!(" ({})", l.chars().take(300).collect::<String>()));
        format!("it is not logged in{}: {}", said.unwrap_or_default(), auth.fix)
    }

    /// What the screen says.
    fn claim(&mut self, scan: &Scan) -> Result<(), Stop> {
        let claim = if !matches!(self.dialog, Open::None) {
            Some(Doing::Blocked)
        } else {
            match scan.rule {
                Some(Means::Failed) => return Err(Stop::Failed(self.not_logged_in(&scan.text))),
                Some(Means::Blocked) => Some(Doing::Blocked),
                Some(Means::Working) => Some(Doing::Working),
                Some(Means::Idle) => Some(Doing::Idle),
                None if scan.works => Some(Doing::Working),
                None if scan.ready || self.composing(&scan.text) => Some(Doing::Idle),
                None if !self.ready => Some(Doing::Starting),
                None => None,
            }
        };
        self.claims.set(Source::Screen, claim);
        if claim == Some(Doing::Idle) {
            self.ready = true;
        }
        Ok(())
    }

    /// When an unknown screen counts as waiting for the person.
    fn unknown_due(&self) -> Option<Instant> {
        let known = matches!(self.claims.of(Source::Screen), Some(Doing::Blocked | Doing::Idle));
        if self.attached || known {
            return None;
        }
        self.still.due(&self.scan.text, self.scan.works, seconds(self.pty.unknown))
    }

    /// An unknown screen that does not change needs the person, even if a spinner runs on it.
    async fn unknown(&mut self, now: Instant) -> Result<(), Stop> {
        if self.unknown_due().is_none_or(|due| now < due) {
            return Ok(());
        }
        self.claims.set(Source::Screen, Some(Doing::Blocked));
        if !std::mem::replace(&mut self.still.told, true) {
            let note = "its screen shows an unknown state and may be waiting for you; open it to check";
            self.run.out.send(Said::Note(note.into())).await?;
        }
        Ok(())
    }

    /// Limits of time without a turn's end.
    fn patience(&self, now: Instant) -> Result<(), Stop> {
        if !matches!(self.dialog, Open::None) || self.attached || self.held {
            return Ok(());
        }
        let start = seconds(self.pty.start);
        let last = || {
            let lines: Vec<&str> = self.scan.text.lines().filter(|l| !l.trim().is_empty()).collect();
            lines[lines.len().saturating_sub(5)..].join("\n")
        };
        if !self.ready && !self.still.told && now.duration_since(self.started.max(self.changed)) > start {
            let s = start.as_secs();
            return Err(Stop::TimedOut(format!(
                "it did not show its prompt within {s} s; screen:\n{}",
                last()
            )));
        }
        let idle = self.run.job.limits.idle;
        if self.turn.is_some() && now.duration_since(self.changed) > idle {
            let s = idle.as_secs();
            return Err(Stop::TimedOut(format!("its screen did not change for {s} s; screen:\n{}", last())));
        }
        Ok(())
    }

    /// Whether the turn is over, and then all of it.
    async fn turn_over(&mut self, screen: &str, doing: Doing, now: Instant) -> Result<bool, Stop> {
        if self.held && !self.attached && self.touched.is_none_or(|t| now.duration_since(t) >= HOLD) {
            self.held = false;
        }
        let Some((prompt, sent)) = self.turn.clone() else {
            let idle = self.queue.is_empty() && matches!(self.typing, Typing::Nothing);
            // What a person began there may go on.
            let calm = self.touched.is_none()
                || doing == Doing::Idle && now.duration_since(self.changed) >= seconds(self.pty.quiet);
            let over = self.turns > 0 || self.finish;
            return Ok(over && idle && calm && !self.run.job.stay && !self.attached && !self.held);
        };
        let shown: Vec<String> = screen.lines().map(str::to_owned).collect();
        let marked =
            self.pty.done.as_ref().is_some_and(|p| since(&shown, &prompt).iter().any(|l| p.found(l)));
        let quiet = if marked { STILL } else { seconds(self.pty.quiet) };
        // Some work too quickly to be seen at it, and have no mark of the end; but then what follows the message is
        // another text than before.
        let other = self.pty.done.is_none() && since(&shown, &prompt) != self.before;
        let acted = self.worked || marked || other && now.duration_since(sent) > 3 * quiet;
        if !acted
            && !self.doubted
            && now.duration_since(sent) > DIALOG
            && now.duration_since(self.changed) > DIALOG
        {
            self.doubted = true;
            let note = "it may not have received the message: nothing has happened since; check its screen";
            self.run.out.send(Said::Note(note.into())).await?;
        }
        if doing != Doing::Idle || !acted || now.duration_since(self.changed) < quiet {
            return Ok(false);
        }
        let lines = self.pane.screen.lock().lines(BACK);
        self.text = answer(&lines, &prompt, &self.pty);
        self.turn = None;
        self.turns += 1;
        self.run.out.send(Said::Text(self.text.clone())).await?;
        self.run.out.send(Said::Break).await?;
        while let Some(order) = self.run.reins.orders.try_recv() {
            self.order(order);
        }
        let more = !self.queue.is_empty();
        if self.run.job.stay || self.attached || self.held {
            if !more {
                self.run.out.send(Said::TurnDone { text: self.text.clone() }).await?;
            }
            return Ok(false);
        }
        Ok(!more)
    }

    /// Ends the program and tells the ending.
    async fn close(mut self, stop: Stop) -> Ending {
        if matches!(stop, Stop::Done) && !self.pty.quit.is_empty() {
            self.press(keys(&self.pty.quit));
            let _ = timeout(Duration::from_secs(1), self.pane.hosted.ended()).await;
        }
        let exit = self.pane.hosted.exited().map(|e| e.code);
        if matches!(stop, Stop::Exit) {
            // Its last words may still be in the terminal.
            let mut drawn = self.pane.drawn.clone();
            while let Ok(Ok(())) = timeout(Duration::from_millis(100), drawn.changed()).await {}
        }
        let lines = self.pane.screen.lock().lines(BACK);
        if let Some((prompt, _)) = &self.turn {
            self.text = answer(&lines, prompt, &self.pty);
        }
        let shown = lines[lines.len().saturating_sub(5)..].join("\n");
        let asked = self.turn.is_some() || !self.queue.is_empty() || !matches!(self.typing, Typing::Nothing);
        let login = self.run.job.adapter.auth.missing.iter().any(|p| p.found(&shown));
        let (status, why) = match (stop, exit) {
            (Stop::Done, _) => (Status::Done, String::new()),
            (Stop::Failed(why), _) => (Status::Failed, why),
            (Stop::Cancelled, _) => (Status::Cancelled, "stopped".into()),
            (Stop::TimedOut(why), _) => (Status::TimedOut, why),
            (Stop::Exit, Some(0)) if !asked || self.attached || self.held => (Status::Done, String::new()),
            (Stop::Exit, Some(code)) if code > 128 => {
                (Status::Crashed, format!("it was ended by signal {}; screen:\n{shown}", code - 128))
            }
            (Stop::Exit, _) if login => (Status::Failed, self.not_logged_in(&shown)),
            (Stop::Exit, Some(0)) => {
                (Status::Failed, format!("it ended before its turn was over; screen:\n{shown}"))
            }
            (Stop::Exit, code) => {
                let code = code.map_or_else(|| "?".into(), |c| c.to_string());
                (Status::Failed, format!("it ended with exit code {code}; screen:\n{shown}"))
            }
        };
        let Pane { hosted, keys: _keys, resizer: _resizer, .. } = self.pane;
        let excess = hosted.excess();
        hosted.end(self.run.job.limits.grace, &self.run.reins.hard).await;
        let waiting = self.queue.into_iter().filter_map(|(id, text)| Some((id?, text)));
        self.run.missed.extend(waiting);
        self.run.miss_all("it ended first").await;
        let ended = matches!(status, Status::Failed | Status::Crashed | Status::Done);
        let ending = Ending { text: self.text, exit: exit.filter(|_| ended), ..Ending::new(status, why) };
        self.run.bounded(ending, excess).await
    }
}
