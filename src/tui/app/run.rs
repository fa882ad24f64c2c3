//! The loop: blocks until something happens, takes in everything that waits, does what was asked for, and
//! draws when something changed. A key is drawn at once; a flood of events at most every 16 ms.

use std::collections::VecDeque;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{Clock, Command, Event, EventBody};

use crate::app::App;
use crate::app::inbox::{Inbox, Post, Wake};
use crate::app::msg::{Msg, TerminalFact};
use crate::app::task::Task;
use crate::app::ui::{Exit, UiError, UiOptions};
use crate::input::reader::{HANGUP, Reader};
use crate::output::Encoder;
use crate::output::writer::Writer;
use crate::terminal::notify::Window;
use crate::terminal::signals::Signals;
use crate::terminal::{QUERIES, Terminal};

/// Least time between frames under load.
const FRAME: Duration = Duration::from_millis(16);

/// Words come in with a spacing of about a frame; see the pace of the engine's streams.
const NEARLY: Duration = Duration::from_millis(2);

/// Frames that may come faster after a pause: the first words, and what comes of a command, are not kept waiting.
const BURST: u32 = 8;

/// Of frames that change nothing, one of so many counts.
const EMPTY: u32 = 4;

/// How long a command that the engine did not take waits for the next try. After [`TRIES`] of them (a few
/// seconds) the engine will not come soon: then only once a minute, and when something is heard.
const RETRY: Duration = Duration::from_millis(5);
const TRIES: u32 = 600;
const SELDOM: Duration = Duration::from_secs(60);

/// Messages taken in before a frame is considered.
const DRAIN: usize = 8192;

/// The running face.
pub(crate) struct Loop {
    pub(crate) app: App,
    pub(crate) tx: Post,
    inbox: Inbox,
    commands: Box<dyn Fn(Command) -> bool + Send>,
    /// Commands that the engine has not taken yet, in order.
    pub(crate) outbox: VecDeque<Command>,
    /// Tries in vain since the engine took something last.
    tries: u32,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) reader: Option<Reader>,
    pub(crate) signals: Option<Signals>,
    /// How many times the shell had let us go on when the screen was set up last.
    pub(crate) resumed: u32,
    pub(crate) seating: crate::terminal::terminal_owner::Seating,
    pub(crate) writer: Writer,
    pub(crate) encoder: Encoder,
    pub(crate) buf: Buffer,
    pub(crate) clock: std::sync::Arc<dyn Clock>,
    /// When the last frame was made, and how many more may follow at once.
    last: Duration,
    credit: u32,
    /// How many frames in a row have changed nothing.
    empty: u32,
    /// Something that a person did waits to be seen, or the first words of a reply.
    pub(crate) urgent: bool,
    /// Words of the model are coming in.
    flowing: bool,
    pub(crate) exit: Option<Exit>,
    pub(crate) window: Window,
    pub(crate) escape: Duration,
    pub(crate) bursts: bool,
    pub(crate) options: Option<UiOptions>,
    prompt: Option<String>,
}

impl Loop {
    pub(crate) fn new(
        app: App,
        (tx, inbox): (Post, Inbox),
        commands: Box<dyn Fn(Command) -> bool + Send>,
        terminal: Option<Terminal>,
        o: &UiOptions,
    ) -> Result<Self, UiError> {
        let out: Box<dyn std::io::Write + Send> = match &terminal {
            Some(t) => Box::new(t.output()?),
            None => Box::new(std::io::sink()),
        };
        let direct = terminal.as_ref().and_then(Terminal::direct);
        let mut made = Self::with_output(app, (tx, inbox), commands, terminal, o, out)?;
        made.writer.direct(direct);
        Ok(made)
    }

    /// With the bytes going elsewhere; for tests.
    pub(crate) fn with_output(
        app: App,
        (tx, inbox): (Post, Inbox),
        commands: Box<dyn Fn(Command) -> bool + Send>,
        terminal: Option<Terminal>,
        o: &UiOptions,
        out: Box<dyn std::io::Write + Send>,
    ) -> Result<Self, UiError> {
        let writer = Writer::start(out, tx.clone())?;
        Ok(Self {
            app,
            tx,
            inbox,
            commands,
            outbox: VecDeque::new(),
            tries: 0,
            terminal,
            reader: None,
            signals: None,
            resumed: 0,
            seating: crate::terminal::terminal_owner::Seating::default(),
            writer,
            encoder: Encoder::default(),
            buf: Buffer::empty(Rect::new(0, 0, 80, 24)),
            clock: std::sync::Arc::clone(&o.clock),
            last: Duration::ZERO,
            credit: BURST,
            empty: 0,
            urgent: true,
            flowing: false,
            exit: None,
            window: Window::of_env(&*o.env),
            escape: Duration::from_millis(25),
            bursts: false,
            options: None,
            prompt: o.prompt.clone(),
        })
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) -> Result<Exit, UiError> {
        if let Some(t) = &self.terminal {
            let (w, h) = t.size();
            self.buf = Buffer::empty(Rect::new(0, 0, w, h));
        }
        // Before anything is drawn: a person who sees the screen may quit, which must restore the terminal.
        if self.terminal.is_some() {
            self.signals = Some(Signals::start(self.tx.clone())?);
        }
        // The first frame and the switches in one write; only then is the terminal asked anything.
        let mut out = self.enter()?;
        let cursor = self.app.draw(&mut self.buf);
        self.encoder.frame(&self.buf, self.app.drawn(), cursor, &mut out);
        if self.terminal.is_some() {
            out.push_str(QUERIES);
        }
        self.writer.write(out);
        self.app.start();
        let first =
            self.options.as_ref().and_then(|o| o.first).and_then(|id| self.app.registry.words().find(id));
        if let Some(first) = first {
            self.app.act(first.action);
        }
        if let Some(text) = self.prompt.take() {
            self.app.submit(text);
        }
        self.tasks();
        while self.exit.is_none() {
            self.turn();
        }
        self.close();
        Ok(self.exit.unwrap_or(Exit::Quit))
    }

    /// One turn: wait, take in, do, draw.
    fn turn(&mut self) {
        let rest = self.reader.as_ref().and_then(Reader::rest);
        let limit = self.patience().into_iter().chain(rest).min();
        let heard = self.inbox.wait(self.reader.as_ref().map(Reader::fd), limit);
        let read = heard.input || rest.is_some_and(|_| self.given_up());
        let ready = heard.input;
        match heard {
            Wake { disconnected: true, .. } => self.exit = Some(Exit::Quit),
            Wake { msg: Some(msg), .. } => {
                self.take(msg);
                for _ in 0..DRAIN {
                    match self.inbox.try_recv() {
                        Ok(msg) => self.take(msg),
                        Err(_) => break,
                    }
                }
            }
            _ if read => {}
            // A moment that the app named has come: a question may be shown now.
            _ if !self.seating.here() => self.look(),
            _ if self.app.due() => self.take(Msg::Tick),
            _ => {}
        }
        if read {
            self.read(ready);
        }
        self.offer();
        self.rest();
        if self.exit.is_none() && self.seating.here() && self.app.due() && self.wait().is_none() {
            self.draw();
        }
    }

    /// The rest of a sequence did not come in time.
    fn given_up(&self) -> bool {
        self.reader.as_ref().and_then(Reader::rest).is_some_and(|t| t.is_zero())
    }

    /// Takes in what the terminal says; `ready`: it has bytes.
    fn read(&mut self, ready: bool) {
        // A message may have given the terminal away just now.
        let Some(reader) = &mut self.reader else { return };
        match reader.read(ready) {
            Ok(inputs) => inputs.into_iter().for_each(|i| self.take(i.into())),
            Err(e) => {
                tracing::debug!(error = %e, "the terminal can no longer be read");
                self.reader = None;
                self.take(Msg::Lost);
            }
        }
    }

    /// How long to block; `None`: until something happens.
    fn patience(&self) -> Option<Duration> {
        let often = if self.tries < TRIES { RETRY } else { SELDOM };
        let retry = (!self.outbox.is_empty()).then_some(often);
        if !self.seating.here() {
            return [self.resting(), retry].into_iter().flatten().min();
        }
        let frame =
            if self.app.due() { Some(self.wait().unwrap_or(Duration::ZERO)) } else { self.app.sleep() };
        // While the terminal has stalled only its answer helps; the writer sends it.
        let frame =
            if self.app.due() && self.wait().is_none() && !self.writer.ready() { None } else { frame };
        [frame, retry].into_iter().flatten().min()
    }

    /// How long the next frame has to wait; `None`: not at all.
    fn wait(&self) -> Option<Duration> {
        if self.urgent || self.credit > 0 {
            return None;
        }
        let since = self.clock.mono().saturating_sub(self.last);
        // What is nearly due is not waited for: the wait would cost more than the frame.
        FRAME.checked_sub(since).filter(|w| *w > NEARLY)
    }

    pub(crate) fn take(&mut self, msg: Msg) {
        match &msg {
            Msg::Key(_) | Msg::Paste(_) | Msg::Mouse(_) => self.urgent = true,
            Msg::Engine(event) => {
                self.seating.heard(event);
                let flowing = is_words(event);
                self.urgent |= flowing && !self.flowing;
                self.flowing = flowing;
            }
            Msg::Resize(w, h) => self.resize(*w, *h),
            Msg::Terminate(HANGUP) => return self.hang_up(),
            Msg::Lost => return self.lost(),
            Msg::Terminate(n) => {
                self.exit = Some(Exit::Signal(*n));
                return;
            }
            Msg::Out(_) => {
                if let Msg::Out(bytes) = msg {
                    self.writer.write(bytes);
                }
                return;
            }
            Msg::Continued => self.resume(),
            Msg::Stop => self.stop(false),
            Msg::Seat(_) => {
                if let Msg::Seat(said) = msg {
                    self.seated(*said);
                }
                return;
            }
            Msg::Terminal(TerminalFact::Mode(2026, state)) => {
                self.encoder.sync = Some(matches!(state, 1 | 2))
            }
            Msg::Terminal(TerminalFact::Mode(69, state)) => self.encoder.sides = matches!(state, 1 | 2),
            Msg::Terminal(TerminalFact::Mode(2004, 0)) => self.no_pastes(),
            _ => {}
        }
        let written = matches!(msg, Msg::Written);
        self.app.update(msg);
        if written && self.seating.watchers.behind() {
            self.app.redraw();
        }
        self.tasks();
    }

    pub(crate) fn resize(&mut self, w: u16, h: u16) {
        // Of a storm only the last size counts; ask for it.
        let (w, h) = self.terminal.as_ref().map_or((w, h), Terminal::size);
        let area = Rect::new(0, 0, w.clamp(1, 4096), h.clamp(1, 4096));
        self.urgent = true;
        if area != self.buf.area {
            self.buf = Buffer::empty(area);
            self.encoder.repaint();
        }
    }

    fn draw(&mut self) {
        if !self.writer.ready() {
            return;
        }
        let now = self.clock.mono();
        self.urgent = false;
        self.app.model.sides = self.encoder.sides;
        let cursor = self.app.draw(&mut self.buf);
        self.seating.watchers.show(&self.buf, cursor);
        self.encoder.text = self.app.text_columns();
        let mut out = self.writer.spare();
        self.encoder.frame(&self.buf, self.app.drawn(), cursor, &mut out);
        // Frames that changed nothing do not keep the next one waiting, but for many of them.
        self.empty = if out.is_empty() { self.empty + 1 } else { 0 };
        if self.empty.is_multiple_of(EMPTY) {
            let passed = now.saturating_sub(self.last).as_millis() / FRAME.as_millis();
            self.credit = (self.credit + u32::try_from(passed).unwrap_or(BURST)).min(BURST).saturating_sub(1);
            self.last = now;
        }
        self.writer.write(out);
    }

    /// Offers waiting commands to the engine, in order.
    fn offer(&mut self) {
        while let Some(c) = self.outbox.front() {
            if !(self.commands)(c.clone()) {
                self.tries = self.tries.saturating_add(1);
                return;
            }
            self.outbox.pop_front();
        }
        self.tries = 0;
    }

    /// Runs a job on a thread of its own.
    fn spawn(&mut self, job: crate::app::effect::Job, token: crate::app::effect::Token) {
        let tx = self.tx.clone();
        // It holds only its end of the channel, and ends by itself.
        let made = std::thread::Builder::new().name("tiller-job".into()).spawn(move || {
            let _ = tx.send(Msg::Job(token, job()));
        });
        if let Err(e) = made {
            self.app.say(format!("cannot start a thread: {e}"));
        }
    }

    pub(crate) fn tasks(&mut self) {
        for task in self.app.take_tasks() {
            match task {
                Task::Send(c) => {
                    self.seating.sent(&c);
                    self.outbox.push_back(c);
                }
                Task::Copy { text, what } => self.copy(&text, what),
                Task::Suspend(external, owner) => self.suspend(external, owner),
                Task::Job(job, token) => self.spawn(job, token),
                Task::Connect(what, token) => {
                    let connect = self.options.as_ref().and_then(|o| o.connect.clone());
                    let none = || Err("providers are set up in config.toml".to_owned());
                    let job = move || -> Box<dyn std::any::Any + Send> {
                        let result: Result<crate::app::effect::Connected, String> =
                            connect.map_or_else(none, |c| c(what));
                        Box::new(result)
                    };
                    self.spawn(Box::new(job), token);
                }
                Task::Notify(text) => self.writer.write(self.window.notify(&text)),
                Task::Title(text) => {
                    let mut out = Window::title(&text);
                    out.push_str(&self.window.busy(self.app.model.running));
                    self.writer.write(out);
                }
                Task::Repaint => {
                    self.encoder.repaint();
                    self.app.redraw();
                }
                Task::Setting { key, value } => {
                    let save = self.options.as_ref().and_then(|o| o.save_setting.as_ref());
                    let kept =
                        save.map_or(Err("Applies until Tiller ends".into()), |save| save(&key, &value));
                    if let Err(why) = kept {
                        self.app.say(format!("{key} was not saved: {why}"));
                    }
                    if !key.starts_with("ui.") {
                        continue;
                    }
                    if let Err(n) = self.carry_out() {
                        self.app.notice(n);
                    }
                    self.app.settings_changed();
                }
                Task::Reload => self.reload(),
                Task::Ended(status) => self.seating.ended = Some(status),
                Task::Leave => self.leave_at_work(),
                Task::Quit => self.exit = self.exit.or(Some(Exit::Quit)),
            }
        }
        self.offer();
    }
}

/// The model's words, piece by piece.
fn is_words(event: &Event) -> bool {
    matches!(&event.body, EventBody::Turn(TurnEvent::TextDelta { .. }))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
