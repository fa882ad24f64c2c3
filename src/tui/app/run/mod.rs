//! The loop: blocks until something happens, takes in all waiting messages, performs the tasks of the app, and draws
//! when something changed.

pub(crate) mod outbox;
pub(crate) mod pacing;
pub(crate) mod pictures;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{Clock, Event, EventBody};

use crate::app::App;
use crate::app::effect::{Task, WindowTask};
use crate::app::inbox::{Inbox, Post, Wake};
use crate::app::msg::{Msg, OutputMsg, SignalMsg};
use crate::app::ui::{Exit, UiError, UiOptions};
use crate::dialog::reader::picture::Picture;
use crate::input::reader::{Arrived, HANGUP, Reader};
use crate::input::{Input, TerminalFact, burst};
use crate::output::graphics::Shown;
use crate::terminal::notify::TerminalWindow;
use crate::terminal::signals::Signals;
use crate::terminal::terminal_io::TerminalIo;
use crate::terminal::{ASK_COLOURS, QUERIES, Terminal};
use crate::theme::Depth;
use outbox::{Engine, Outbox};
use pacing::FramePacing;

/// Messages taken in before a frame is considered.
const DRAIN: usize = 8192;

/// A wait that ends within this time did not wait: there was something already.
const AT_ONCE: Duration = Duration::from_millis(1);

/// The running screen.
pub(crate) struct Loop {
    pub(crate) app: App,
    /// Sends messages to this loop from other threads.
    pub(crate) tx: Post,
    inbox: Inbox,
    pub(crate) outbox: Outbox,
    pub(crate) io: TerminalIo,
    pub(crate) attached: crate::terminal::terminal_owner::AttachState,
    /// The frame that is on the screen.
    pub(crate) buf: Buffer,
    pub(crate) pacing: FramePacing,
    pub(crate) clock: std::sync::Arc<dyn Clock>,
    /// If set, the loop ends with this result.
    pub(crate) exit: Option<Exit>,
    /// `None` in tests.
    pub(crate) options: Option<UiOptions>,
    /// Sent when the loop starts.
    prompt: Option<String>,
    /// When the last wait for input ended (monotonic).
    listened: Duration,
}

impl Loop {
    pub(crate) fn new(
        app: App,
        (tx, inbox): (Post, Inbox),
        engine: Engine,
        terminal: Option<Terminal>,
        o: &UiOptions,
    ) -> Result<Self, UiError> {
        let out: Box<dyn std::io::Write + Send> = match &terminal {
            Some(t) => Box::new(t.output()?),
            None => Box::new(std::io::sink()),
        };
        let direct = terminal.as_ref().and_then(Terminal::direct);
        let mut made = Self::with_output(app, (tx, inbox), engine, terminal, o, out)?;
        made.io.writer.direct(direct);
        Ok(made)
    }

    /// Makes the loop; bytes for the terminal go to `out`.
    pub(crate) fn with_output(
        app: App,
        (tx, inbox): (Post, Inbox),
        engine: Engine,
        terminal: Option<Terminal>,
        o: &UiOptions,
        out: Box<dyn std::io::Write + Send>,
    ) -> Result<Self, UiError> {
        Ok(Self {
            app,
            io: TerminalIo::new(terminal, out, tx.clone(), o)?,
            tx,
            inbox,
            outbox: Outbox::new(engine),
            attached: crate::terminal::terminal_owner::AttachState::default(),
            buf: Buffer::empty(Rect::new(0, 0, 80, 24)),
            pacing: FramePacing::new(),
            clock: std::sync::Arc::clone(&o.clock),
            exit: None,
            options: None,
            prompt: o.start.prompt.clone(),
            listened: o.clock.mono(),
        })
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) -> Result<Exit, UiError> {
        if let Some((w, h)) = self.io.size() {
            self.buf = Buffer::empty(Rect::new(0, 0, w, h));
        }
        // Before anything is drawn: a person who sees the screen may quit, which must restore the terminal.
        if self.io.terminal.is_some() {
            self.io.signals = Some(Signals::start(self.tx.clone())?);
        }
        // The first frame and the switches in one write; only then is the terminal asked anything.
        let mut out = self.io.enter()?;
        self.ask_colours(&mut out);
        let cursor = self.app.draw(&mut self.buf);
        self.io.encoder.frame(&self.buf, self.app.drawn(), cursor, &mut out);
        if self.io.terminal.is_some() {
            out.push_str(self.io.ask_pictures());
            out.push_str(QUERIES);
        }
        self.io.writer.write(out);
        self.app.start();
        let first = self
            .options
            .as_ref()
            .and_then(|o| o.start.action)
            .and_then(|id| self.app.registry.words().find(id));
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

    /// Asks how many colours the terminal shows, unless the environment says so.
    pub(crate) fn ask_colours(&self, out: &mut String) {
        let open = self.options.as_ref().is_some_and(|o| Depth::is_open(&*o.env));
        if open && self.io.terminal.is_some() {
            out.push_str(ASK_COLOURS);
        }
    }

    /// One iteration: wait, take in messages, perform tasks, draw.
    fn turn(&mut self) {
        let rest = self.io.reader.as_ref().and_then(Reader::rest);
        let begun = self.clock.mono();
        let burst = self.io.bursts.due().map(|due| due.saturating_sub(begun));
        let limit = self.patience().into_iter().chain(rest).chain(burst).min();
        let heard = self.inbox.wait(self.io.reader.as_ref().map(Reader::fd), limit);
        let woken = self.clock.mono();
        // Bytes that were there already may have come at any moment since the wait before, as far as no note says more.
        let since = if woken.saturating_sub(begun) < AT_ONCE { self.listened } else { woken };
        self.listened = woken;
        let read = heard.input || rest.is_some_and(|_| self.given_up());
        let ready = heard.input;
        if !read && self.io.bursts.due().is_some_and(|due| due <= woken) {
            let ended = self.io.bursts.end();
            ended.into_iter().for_each(|input| self.take(Msg::Input(input)));
        }
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
            // A time that the app waits for has come: a question may be shown now.
            _ if !self.attached.here() => self.look(),
            _ if self.app.ticks() => self.take(Msg::Tick),
            _ => {}
        }
        if read {
            self.read(ready, since);
        } else if self.app.has_due_letter() {
            self.take(Msg::Tick);
        }
        self.outbox.offer();
        self.rest();
        if self.exit.is_none() && self.attached.here() && self.app.due() && self.wait().is_none() {
            self.draw();
        }
    }

    /// True when the rest of an input sequence has not arrived in time.
    fn given_up(&self) -> bool {
        self.io.reader.as_ref().and_then(Reader::rest).is_some_and(|t| t.is_zero())
    }

    /// Reads the terminal's input; `ready`: it has bytes, which came not before `since`.
    fn read(&mut self, ready: bool, since: Duration) {
        // A message may have detached the terminal just now.
        let Some(reader) = &mut self.io.reader else { return };
        match reader.read(ready, since) {
            Ok(all) => all.into_iter().for_each(|arrived| self.hear(arrived)),
            Err(e) => {
                tracing::debug!(error = %e, "the terminal can no longer be read");
                self.io.reader = None;
                self.take(Msg::Output(OutputMsg::Lost));
            }
        }
    }

    /// Takes inputs that came together.
    fn hear(&mut self, arrived: Arrived) {
        let arrivals = burst::arrivals(&arrived.inputs, arrived.since, arrived.at);
        for (input, arrival) in arrived.inputs.into_iter().zip(arrivals) {
            let ended = self.io.bursts.before(&input, &arrival);
            ended.into_iter().for_each(|input| self.take(Msg::Input(input)));
            let now = self.io.bursts.take(input, &arrival, |key| self.app.key_use(key));
            now.into_iter().for_each(|input| self.take(Msg::Input(input)));
        }
    }

    /// How long to block; `None`: until a message or input arrives.
    fn patience(&self) -> Option<Duration> {
        let retry = self.outbox.retry_after();
        if !self.attached.here() {
            return [self.resting(), retry].into_iter().flatten().min();
        }
        let frame =
            if self.app.due() { Some(self.wait().unwrap_or(Duration::ZERO)) } else { self.app.sleep() };
        // While the terminal has stalled, the writer sends a message when it is ready again.
        let frame =
            if self.app.due() && self.wait().is_none() && !self.io.writer.ready() { None } else { frame };
        [frame, retry].into_iter().flatten().min()
    }

    /// Time until the next frame may be drawn; `None`: now.
    fn wait(&self) -> Option<Duration> {
        self.pacing.wait(self.clock.mono())
    }

    pub(crate) fn take(&mut self, mut msg: Msg) {
        match &mut msg {
            Msg::Input(Input::Key(_) | Input::Paste(_) | Input::Burst { .. } | Input::Mouse(_)) => {
                self.pacing.hurry()
            }
            Msg::Engine(event) => {
                self.attached.heard(event);
                self.pacing.event(is_words(event));
            }
            // The signal does not say how large the terminal is.
            Msg::Resize(w, h) => (*w, *h) = self.resize(*w, *h),
            Msg::Signal(SignalMsg::Terminate(HANGUP)) => return self.hang_up(),
            Msg::Output(OutputMsg::Lost) => return self.lost(),
            Msg::Signal(SignalMsg::Terminate(n)) => {
                self.exit = Some(Exit::Signal(*n));
                return;
            }
            Msg::Output(OutputMsg::Bytes(_)) => {
                if let Msg::Output(OutputMsg::Bytes(bytes)) = msg {
                    self.io.writer.write(bytes);
                }
                return;
            }
            Msg::Signal(SignalMsg::Continued) => self.resume(),
            Msg::Signal(SignalMsg::Stop) => self.stop(false),
            Msg::Owner(_) => {
                if let Msg::Owner(said) = msg {
                    self.owner_message(*said);
                }
                return;
            }
            Msg::Output(OutputMsg::Picture(_)) => {
                if let Msg::Output(OutputMsg::Picture(picture)) = msg {
                    self.io.pictures.encoded(*picture);
                    self.app.redraw();
                }
                return;
            }
            Msg::Input(Input::Fact(TerminalFact::Pictures)) => {
                self.io.pictures.answered_kitty();
                self.picture_changed();
            }
            Msg::Input(Input::Fact(TerminalFact::Attributes { sixel })) => {
                self.io.pictures.answered_attributes(*sixel);
                self.picture_changed();
            }
            Msg::Input(Input::Fact(TerminalFact::Mode(2026, state))) => {
                self.io.encoder.sync = Some(matches!(state, 1 | 2));
            }
            Msg::Input(Input::Fact(TerminalFact::Mode(69, state))) => {
                self.io.encoder.sides = matches!(state, 1 | 2)
            }
            _ => {}
        }
        let written = matches!(msg, Msg::Output(OutputMsg::Ready));
        self.app.update(msg);
        if written && self.attached.observers.behind() {
            self.app.redraw();
        }
        self.tasks();
    }

    /// Draws again where a picture is shown: the terminal may show it in another way now.
    fn picture_changed(&mut self) {
        if wanted_picture(&self.app).is_some() {
            self.app.redraw();
        }
    }

    pub(crate) fn resize(&mut self, w: u16, h: u16) -> (u16, u16) {
        // Only the last of many sizes counts; ask for it.
        let (w, h) = self.io.size().unwrap_or((w, h));
        let area = Rect::new(0, 0, w.clamp(1, 4096), h.clamp(1, 4096));
        self.pacing.hurry();
        if area != self.buf.area {
            self.buf = Buffer::empty(area);
            self.io.encoder.repaint();
        }
        (area.width, area.height)
    }

    fn draw(&mut self) {
        if !self.io.writer.ready() {
            return;
        }
        let now = self.clock.mono();
        if self.app.model.window.sides != self.io.encoder.sides {
            self.app.model.window.sides = self.io.encoder.sides;
        }
        self.app.model.window.pictures = self.io.picture_cells(self.app.model.ui.images);
        let cursor = self.app.draw(&mut self.buf);
        self.attached.observers.show(&self.buf, cursor);
        self.io.encoder.text = self.app.text_columns();
        let mut out = self.io.writer.spare();
        let wanted = wanted_picture(&self.app).filter(|_| self.app.model.window.pictures.is_some());
        self.io.pictures.before(wanted.as_ref(), &mut self.io.encoder, &mut out);
        self.io.encoder.frame(&self.buf, self.app.drawn(), cursor, &mut out);
        let ground = self.app.themes.current().ground();
        self.io.pictures.after(wanted, ground, (&mut self.io.encoder, &self.tx), &mut out);
        self.pacing.drawn(now, !out.is_empty());
        self.io.writer.write(out);
    }

    /// Runs a job on a thread of its own.
    fn spawn(&mut self, job: crate::app::effect::Job, token: crate::app::effect::Token) {
        let tx = self.tx.clone();
        // The thread holds only its end of the channel, and ends by itself.
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
                    self.attached.sent(&c);
                    self.outbox.push(c);
                }
                Task::Copy { text, what } => self.copy(&text, what),
                Task::Suspend(external) => self.suspend(external),
                Task::Job(job, token) => self.spawn(job, token),
                Task::Connect(what, token) => {
                    let connect = self.options.as_ref().and_then(|o| o.hooks.connect.clone());
                    let none = || Err("providers are set up in config.toml".to_owned());
                    let job = move || -> Box<dyn std::any::Any + Send> {
                        let result: Result<crate::app::effect::Connected, String> =
                            connect.map_or_else(none, |c| c(what));
                        Box::new(result)
                    };
                    self.spawn(Box::new(job), token);
                }
                Task::Window(WindowTask::Notify(text)) => self.io.writer.write(self.io.window.notify(&text)),
                Task::Window(WindowTask::Title(text)) => {
                    let mut out = TerminalWindow::title(&text);
                    out.push_str(&self.io.window.busy(self.app.model.agent.turn.running));
                    self.io.writer.write(out);
                }
                Task::Repaint => {
                    self.io.encoder.repaint();
                    self.app.redraw();
                }
                Task::SaveSetting { key, value } => {
                    let save = self.options.as_ref().and_then(|o| o.hooks.save_setting.as_ref());
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
                Task::Ended(status) => self.attached.ended = Some(status),
                Task::Leave => self.leave_at_work(),
                Task::Quit => self.exit = self.exit.or(Some(Exit::Quit)),
            }
        }
        self.outbox.offer();
    }
}

/// The picture that the dialog on top shows.
fn wanted_picture(app: &App) -> Option<Shown> {
    let panel: &dyn std::any::Any = app.layers.last()?.panel();
    let (image, place) = panel.downcast_ref::<Picture>()?.shown()?;
    (place.area() > 0).then_some(Shown { image, place })
}

/// True when the event is a piece of a streamed reply.
fn is_words(event: &Event) -> bool {
    matches!(&event.body, EventBody::Turn(TurnEvent::TextDelta { .. }))
}

#[cfg(test)]
mod tests;
