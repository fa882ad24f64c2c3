//! Steers a program by its screen: answers its dialogs, pastes messages when it is ready, sees when a turn is over.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::answer::{answer, since};
use super::state::Claims;
use super::typing::{echoed, keys, paste};
use super::{Pane, Run};
use crate::external::adapter::{Dialog, DialogOption, Kind, Means, Pty};
use crate::external::choice::choose;
use crate::external::control::Order;
use crate::external::job::Transport;
use crate::external::out::Gone;
use crate::external::said::{
    Answer, Choice, ChoiceKind, Doing, Ending, Question, Said, Source, Status, ToolUse,
};

/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(50);
/// For a paste to show on the screen.
const ECHO: Duration = Duration::from_secs(8);
/// From the echo to Enter: some take an Enter that follows at once for part of the paste.
const BEFORE_ENTER: Duration = Duration::from_millis(300);
/// For a dialog to go after its answer.
const DIALOG: Duration = Duration::from_secs(10);
/// Of a screen that stays as it is, before it is typed into, after the first time.
const STILL: Duration = Duration::from_millis(300);
/// Lines of history that are searched for an answer.
const BACK: usize = 2000;

/// What is being done with a message.
#[derive(Debug)]
enum Typing {
    Nothing,
    /// Pasted; its echo is waited for. The ids are those of its messages.
    /// `covered`: a dialog came meanwhile, which may have taken it.
    Echo {
        ids: Vec<u64>,
        text: String,
        until: Instant,
        covered: bool,
    },
    /// Echoed; Enter is due.
    Enter {
        ids: Vec<u64>,
        text: String,
        at: Instant,
    },
}

/// A dialog that is on the screen.
#[derive(Debug)]
enum Open {
    None,
    /// Asked of the engine.
    Asked {
        name: String,
        shown: String,
        answer: oneshot::Receiver<Answer>,
    },
    /// Answered; it has to go. There is no second try.
    Answered {
        name: String,
        shown: String,
        at: Instant,
    },
}

struct Driver {
    run: Run,
    pane: Pane,
    pty: Pty,
    claims: Claims,
    typing: Typing,
    dialog: Open,
    /// Messages that wait: id (`None`: the prompt), text.
    queue: Vec<(Option<u64>, String)>,
    /// When the last message came.
    came: Instant,
    /// When a person last pressed a key.
    touched: Option<Instant>,
    attached: bool,
    /// When the screen last changed.
    changed: Instant,
    seen: String,
    /// It was ready once.
    ready: bool,
    /// The message of the running turn, and when it was sent.
    turn: Option<(String, Instant)>,
    worked: bool,
    /// Turns that are over.
    turns: u32,
    text: String,
    wall: Instant,
    started: Instant,
}

/// Why it is over.
enum Stop {
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
        changed: now,
        seen: String::new(),
        ready: false,
        turn: None,
        worked: false,
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

fn seconds(s: f64) -> Duration {
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
                () = sleep_until(self.wall) => {
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

    /// The next look though nothing is drawn: soon while something is under way, rarely while a turn runs on a still
    /// screen, and at rest never.
    fn due(&self, last: Instant) -> Instant {
        let since = last.duration_since(self.changed);
        let under_way = since < (4 * seconds(self.pty.quiet)).max(Duration::from_secs(10))
            || !self.queue.is_empty()
            || !matches!(self.typing, Typing::Nothing)
            || matches!(self.dialog, Open::Answered { .. });
        if under_way {
            last + LOOK
        } else if self.turn.is_some() || !self.ready {
            last + Duration::from_secs(10)
        } else {
            self.wall
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Say { id, text } => {
                self.came = Instant::now();
                self.queue.push((Some(id), text));
            }
            Order::Keys(bytes) => {
                self.touched = Some(Instant::now());
                if self.pane.keys.try_send(bytes).is_err() {
                    tracing::debug!("a program in a terminal does not read its keys");
                }
            }
            Order::Resize(cols, rows) => {
                let (cols, rows) = (cols.clamp(20, 1000), rows.clamp(5, 500));
                self.pane.screen.lock().resize(cols, rows);
                self.pane.resizer.resize(cols, rows);
            }
            Order::Attach(on) => {
                self.attached = on;
                // A look follows: it may be what its end waited for.
                self.changed = Instant::now();
            }
        }
    }

    fn press(&self, bytes: Vec<u8>) {
        let _ = self.pane.keys.try_send(bytes);
    }

    /// One look. True: all is done.
    async fn look(&mut self) -> Result<bool, Stop> {
        let now = Instant::now();
        let screen = self.pane.screen.lock().visible();
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
        if screen != self.seen {
            self.changed = now;
            self.seen.clone_from(&screen);
            // One at a time; who is told of it looks at the latest.
            if !self.pane.screen.told.swap(true, Ordering::AcqRel) && !self.run.out.try_send(Said::Screen) {
                self.pane.screen.told.store(false, Ordering::Release);
            }
        }
        self.dialogs(&screen, now).await?;
        self.claim(&screen)?;
        let guess = self.claims.best();
        if guess.what == Doing::Working && self.turn.is_some() {
            self.worked = true;
        }
        self.run.out.state(guess.what, guess.source).await?;
        self.type_next(&screen, guess.what, now).await?;
        self.patience(now)?;
        self.turn_over(&screen, guess.what, now).await
    }

    /// What the screen says.
    fn claim(&mut self, screen: &str) -> Result<(), Stop> {
        let found = |p: &Option<_>| {
            let p: &Option<crate::external::adapter::Pattern> = p;
            p.as_ref().is_some_and(|p| p.found(screen))
        };
        let rule = self.pty.state.iter().find(|r| r.on.found(screen)).map(|r| r.means);
        let claim = if !matches!(self.dialog, Open::None) {
            Some(Doing::Blocked)
        } else {
            match rule {
                Some(Means::Failed) => {
                    let fix = &self.run.job.adapter.auth.fix;
                    return Err(Stop::Failed(format!("it is not logged in: {fix}")));
                }
                Some(Means::Blocked) => Some(Doing::Blocked),
                Some(Means::Working) => Some(Doing::Working),
                Some(Means::Idle) => Some(Doing::Idle),
                None if found(&self.pty.working) => Some(Doing::Working),
                None if self.pty.ready.found(screen) => Some(Doing::Idle),
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

    /// Dialogs: answered by rule, or asked; each once.
    async fn dialogs(&mut self, screen: &str, now: Instant) -> Result<(), Stop> {
        let found = self.pty.dialog.iter().find(|d| d.all.iter().all(|p| p.found(screen))).cloned();
        let Some(dialog) = found else {
            // It went: by our answer, or by a person's keys; a question that waits is withdrawn.
            self.dialog = Open::None;
            return Ok(());
        };
        let shown = part(screen, &dialog);
        match &self.dialog {
            Open::Asked { name, shown: before, .. } if *name == dialog.name && same(before, &shown) => {
                return Ok(());
            }
            Open::Answered { name, shown: before, at } if *name == dialog.name && same(before, &shown) => {
                if now.duration_since(*at) < DIALOG {
                    return Ok(());
                }
                let note = format!("its dialog \"{name}\" did not take the answer; it waits for you");
                self.run.out.send(Said::Note(note)).await?;
            }
            // It is still being drawn.
            _ if now.duration_since(self.changed) < STILL => return Ok(()),
            Open::None | Open::Asked { .. } => {
                let auto = dialog.auto.as_ref().filter(|_| self.run.job.auto_approve);
                let rule = dialog.rule.as_ref().or(auto);
                if let Some(option) = rule.and_then(|id| dialog.option.iter().find(|o| o.id == *id)) {
                    self.press(keys(&option.keys));
                    self.dialog = Open::Answered { name: dialog.name.clone(), shown, at: now };
                    return Ok(());
                }
            }
            Open::Answered { .. } => {}
        }
        let options: Vec<Choice> = dialog.option.iter().map(choice).collect();
        let what = if dialog.permission {
            let tool = ToolUse { name: dialog.name.clone(), verb: "tool".into(), ..ToolUse::default() };
            Question::Permission { tool, shown: shown.clone(), diffs: Vec::new(), options }
        } else {
            Question::Choose { text: shown.clone(), options, free_text: false }
        };
        let answer = self.run.out.ask(None, what).await?;
        self.dialog = Open::Asked { name: dialog.name, shown, answer };
        Ok(())
    }

    /// The engine's answer to a dialog. It is typed only while that very dialog is on the screen.
    async fn answer(&mut self, answer: Answer) -> Result<(), Stop> {
        let Open::Asked { name, shown, .. } = std::mem::replace(&mut self.dialog, Open::None) else {
            return Ok(());
        };
        let screen = self.pane.screen.lock().visible();
        let dialog = self.pty.dialog.iter().find(|d| d.all.iter().all(|p| p.found(&screen))).cloned();
        let Some(dialog) = dialog.filter(|d| d.name == name && same(&part(&screen, d), &shown)) else {
            let note = format!("its dialog \"{name}\" changed before it was answered; nothing was typed");
            self.run.out.send(Said::Note(note)).await?;
            return Ok(());
        };
        let options: Vec<Choice> = dialog.option.iter().map(choice).collect();
        let chosen = choose(&options, &answer).and_then(|c| dialog.option.iter().find(|o| o.id == c.id));
        let typed = chosen.map_or_else(|| "<esc>".to_owned(), |o| o.keys.clone());
        self.press(keys(&typed));
        self.dialog = Open::Answered { name, shown, at: Instant::now() };
        Ok(())
    }

    /// Pastes what waits, when it is safe: it is idle, its screen is still, no person types.
    async fn type_next(&mut self, screen: &str, doing: Doing, now: Instant) -> Result<(), Stop> {
        match std::mem::replace(&mut self.typing, Typing::Nothing) {
            Typing::Nothing => {}
            Typing::Echo { ids, text, .. } if doing == Doing::Blocked => {
                self.typing = Typing::Echo { ids, text, until: now + ECHO, covered: true };
                return Ok(());
            }
            Typing::Echo { ids, text, until, covered } => {
                if echoed(screen, &text) {
                    self.typing = Typing::Enter { ids, text, at: now + BEFORE_ENTER };
                } else if now < until {
                    self.typing = Typing::Echo { ids, text, until, covered };
                } else if covered && ids.is_empty() {
                    // The dialog took it: it was never sent.
                    self.queue.insert(0, (None, text));
                } else {
                    let why = "its screen did not show what was typed, so it was not sent; look at it";
                    for id in &ids {
                        self.run.out.send(Said::Missed { id: *id, why: why.into() }).await?;
                    }
                    if ids.is_empty() && self.turn.is_none() {
                        return Err(Stop::Failed(why.into()));
                    }
                }
                return Ok(());
            }
            // A dialog came between: it must not get the Enter.
            Typing::Enter { ids, text, .. } if doing == Doing::Blocked => {
                let why = "a dialog came while it was typed; it may be in the composer, and was not sent";
                for id in &ids {
                    self.run.out.send(Said::Missed { id: *id, why: why.into() }).await?;
                }
                if ids.is_empty() {
                    // The prompt itself: the dialog swallowed it, so nothing was sent and nothing can be doubled
                    // but when the composer still shows it.
                    self.typing = Typing::Enter { ids, text, at: now + DIALOG };
                }
                return Ok(());
            }
            Typing::Enter { ids, text, at } => {
                if now < at {
                    self.typing = Typing::Enter { ids, text, at };
                    return Ok(());
                }
                if !echoed(screen, &text) && ids.is_empty() {
                    // A dialog took its place and went: it was never sent, so it is pasted once more.
                    self.queue.insert(0, (None, text));
                    return Ok(());
                }
                self.press(b"\r".to_vec());
                for id in &ids {
                    self.run.out.send(Said::Delivered { id: *id }).await?;
                }
                self.turn = Some((text, now));
                self.worked = false;
                self.changed = now;
                return Ok(());
            }
        }
        let first = self.turns == 0;
        let still = if first { seconds(self.pty.settle) } else { STILL };
        let limits = self.run.job.limits;
        let free = doing == Doing::Idle
            && now.duration_since(self.changed) >= still
            && now.duration_since(self.came) >= limits.coalesce
            && self.touched.is_none_or(|t| now.duration_since(t) >= limits.typing);
        if self.queue.is_empty() || self.turn.is_some() || !free {
            return Ok(());
        }
        let (ids, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue).into_iter().unzip();
        let text = texts.join("\n\n");
        let brackets = self.pane.screen.lock().brackets();
        self.press(paste(&text, brackets));
        let ids = ids.into_iter().flatten().collect();
        self.typing = Typing::Echo { ids, text, until: now + ECHO, covered: false };
        Ok(())
    }

    /// Limits of time without a turn's end.
    fn patience(&self, now: Instant) -> Result<(), Stop> {
        if !matches!(self.dialog, Open::None) || self.attached {
            return Ok(());
        }
        let start = seconds(self.pty.start);
        let last = || {
            let lines: Vec<&str> = self.seen.lines().filter(|l| !l.trim().is_empty()).collect();
            lines[lines.len().saturating_sub(5)..].join("\n")
        };
        if !self.ready && now.duration_since(self.started.max(self.changed)) > start {
            let s = start.as_secs();
            return Err(Stop::TimedOut(format!(
                "it did not come to its prompt within {s} s; it shows:\n{}",
                last()
            )));
        }
        let idle = self.run.job.limits.idle;
        if self.turn.is_some() && now.duration_since(self.changed) > idle {
            let s = idle.as_secs();
            return Err(Stop::TimedOut(format!(
                "its screen did not change for {s} s; it shows:\n{}",
                last()
            )));
        }
        Ok(())
    }

    /// Whether the turn is over, and then all of it.
    async fn turn_over(&mut self, screen: &str, doing: Doing, now: Instant) -> Result<bool, Stop> {
        let Some((prompt, sent)) = self.turn.clone() else {
            let idle = self.queue.is_empty() && matches!(self.typing, Typing::Nothing);
            return Ok(self.turns > 0 && idle && !self.run.job.stay && !self.attached);
        };
        let shown: Vec<String> = screen.lines().map(str::to_owned).collect();
        let marked =
            self.pty.done.as_ref().is_some_and(|p| since(&shown, &prompt).iter().any(|l| p.found(l)));
        let quiet = if marked { STILL } else { seconds(self.pty.quiet) };
        let acted = self.worked || marked || now.duration_since(sent) > 3 * quiet;
        if doing != Doing::Idle || !acted || now.duration_since(self.changed) < quiet {
            return Ok(false);
        }
        let lines = self.pane.screen.lock().lines(BACK);
        self.text = answer(&lines, &prompt, &self.pty);
        self.turn = None;
        self.turns += 1;
        self.run.out.send(Said::Text(self.text.clone())).await?;
        self.run.out.send(Said::Break).await?;
        while let Ok(order) = self.run.reins.orders.try_recv() {
            self.order(order);
        }
        let more = !self.queue.is_empty();
        if self.run.job.stay || self.attached {
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
            (Stop::Exit, Some(0)) if !asked || self.attached => (Status::Done, String::new()),
            (Stop::Exit, Some(code)) if code > 128 => {
                (Status::Crashed, format!("it was ended by signal {}; it showed:\n{shown}", code - 128))
            }
            (Stop::Exit, _) if login => {
                (Status::Failed, format!("it is not logged in: {}", self.run.job.adapter.auth.fix))
            }
            (Stop::Exit, Some(0)) => {
                (Status::Failed, format!("it ended before its turn was over; it showed:\n{shown}"))
            }
            (Stop::Exit, code) => {
                let code = code.map_or_else(|| "?".into(), |c| c.to_string());
                (Status::Failed, format!("it ended with code {code}; it showed:\n{shown}"))
            }
        };
        let Pane { hosted, keys: _keys, resizer: _resizer, .. } = self.pane;
        let grace = if exit.is_some() { Duration::ZERO } else { self.run.job.limits.grace };
        hosted.end(grace, &self.run.reins.hard).await;
        let waiting = self.queue.into_iter().filter_map(|(id, text)| Some((id?, text)));
        self.run.missed.extend(waiting);
        self.run.miss_all("it ended first").await;
        let ended = matches!(status, Status::Failed | Status::Crashed | Status::Done);
        Ending { text: self.text, exit: exit.filter(|_| ended), ..Ending::new(status, why) }
    }
}

/// The answer of the engine to the open dialog. When nobody will answer: no.
async fn answered(dialog: &mut Open) -> Answer {
    match dialog {
        Open::Asked { answer, .. } => answer.await.unwrap_or(Answer::Kind(ChoiceKind::RejectOnce)),
        _ => std::future::pending().await,
    }
}

/// What a dialog shows: from the paragraph before its first line to its end, without what is below the options.
fn part(screen: &str, dialog: &Dialog) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let first = lines.iter().position(|l| dialog.all.iter().any(|p| p.found(l))).unwrap_or(0);
    let from = first.saturating_sub(12);
    let shown = lines[from..].iter().map(|l| l.trim_end()).collect::<Vec<_>>().join("\n");
    shown.trim().to_owned()
}

/// Whether two looks show the same dialog: spinners and clocks around it do not count.
fn same(a: &str, b: &str) -> bool {
    let letters = |s: &str| s.chars().filter(|c| c.is_alphabetic()).collect::<String>();
    letters(a) == letters(b)
}

fn choice(o: &DialogOption) -> Choice {
    let kind = match o.kind {
        Kind::AllowOnce => ChoiceKind::AllowOnce,
        Kind::AllowAlways => ChoiceKind::AllowAlways,
        Kind::RejectOnce => ChoiceKind::RejectOnce,
        Kind::RejectAlways => ChoiceKind::RejectAlways,
        Kind::Other => ChoiceKind::Other,
    };
    Choice { id: o.id.clone(), name: o.name.clone(), kind }
}
