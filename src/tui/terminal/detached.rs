//! Detaching the screen while the work goes on, waiting without a terminal, and attaching another one.

use std::time::Duration;

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::app::msg::Msg;
use crate::app::run::Loop;
use crate::app::state::Owner;
use crate::app::ui::{Exit, UiError};
use crate::input::burst::Bursts;
use crate::input::reader::HANGUP;
use crate::output::Encoder;
use crate::output::writer::Writer;
use crate::terminal::observers::Observer;
use crate::terminal::terminal_owner::{
    Attachment, DetachReport, LOOK, OwnerEvent, OwnerMsg, Presence, REST, WorkSummary,
};
use crate::terminal::{Modes, QUERIES, Terminal};

impl Loop {
    /// Takes a message of the client, or a request of another process.
    pub(crate) fn owner_message(&mut self, msg: OwnerMsg) {
        match msg {
            OwnerMsg::From(id, said) if self.attached.owner.as_ref().is_some_and(|s| s.id() == id) => {
                self.said(said);
            }
            OwnerMsg::From(id, said) if self.attached.observers.has(id) => match said {
                OwnerEvent::Resized => {
                    self.attached.observers.resized(id);
                    self.app.redraw();
                }
                OwnerEvent::Look(columns, rows) => {
                    self.attached.observers.look(id, Some((columns, rows)));
                    self.app.frame.dirty = true;
                }
                OwnerEvent::Follow => {
                    self.attached.observers.look(id, None);
                    self.app.frame.dirty = true;
                }
                OwnerEvent::Gone | OwnerEvent::Signal(_) => self.attached.observers.remove(id),
                OwnerEvent::Continued(_) | OwnerEvent::Stop => {}
            },
            // From a client that was detached; it has ended, or is about to.
            OwnerMsg::From(..) => {}
            OwnerMsg::Arrive(arrival) => self.arrive(arrival),
            OwnerMsg::Watch(seat, terminal) => self.watch(seat, terminal),
            OwnerMsg::WorkSummary(tell) => tell(self.facts()),
            OwnerMsg::Leave(tell) => {
                let may = if self.attached.presence == Presence::Away {
                    Err("No screen is attached.".to_owned())
                } else {
                    self.may_leave()
                };
                tell(may.map(|()| self.facts()));
            }
        }
    }

    fn facts(&self) -> WorkSummary {
        let lines = self.attached.lines.len();
        WorkSummary { lines, ended: self.attached.ended, ..WorkSummary::of(&self.app.model) }
    }

    fn watch(
        &mut self,
        seat: std::sync::Arc<dyn crate::terminal::terminal_owner::TerminalOwner>,
        terminal: std::os::fd::OwnedFd,
    ) {
        if self.attached.presence == Presence::Away {
            return seat.leave("it has no attached terminal, so there is nothing to watch");
        }
        match Observer::new(std::sync::Arc::clone(&seat), terminal, self.tx.clone()) {
            Ok(watcher) => {
                self.attached.observers.add(watcher);
                self.app.redraw();
                self.app.say("another terminal is watching");
            }
            Err(e) => seat.leave(&format!("cannot use the terminal: {e}")),
        }
    }

    fn said(&mut self, said: OwnerEvent) {
        match said {
            OwnerEvent::Resized if self.attached.here() => self.take(Msg::Resize(0, 0)),
            OwnerEvent::Resized => {}
            OwnerEvent::Continued(stopped) if self.attached.presence == Presence::Stopped => {
                self.attached.presence = Presence::Here;
                self.back();
                if !stopped {
                    self.app.say("Cannot suspend: Tiller was not started from a shell with job control");
                }
            }
            // The shell has used the terminal without the screen having left it.
            OwnerEvent::Continued(_) => {
                if self.io.restore_modes().is_err() {
                    return self.lost();
                }
                self.again();
            }
            OwnerEvent::Stop if self.attached.here() => self.stop(false),
            // The attached terminal shows all of it.
            OwnerEvent::Stop | OwnerEvent::Look(..) | OwnerEvent::Follow => {}
            OwnerEvent::Signal(HANGUP) | OwnerEvent::Gone => self.hang_up(),
            OwnerEvent::Signal(n) => self.exit = Some(Exit::Signal(n)),
        }
    }

    /// The terminal cannot be used. Ignored when another terminal has been attached since.
    pub(crate) fn lost(&mut self) {
        if self.attached.host.is_none() || self.io.terminal.as_ref().is_none_or(Terminal::gone) {
            self.hang_up();
        }
    }

    /// The window was closed, or the line broke: by the person's setting what works goes on.
    pub(crate) fn hang_up(&mut self) {
        if self.attached.presence == Presence::Away {
            return;
        }
        let goes_on = self.attached.host.as_ref().is_some_and(|h| {
            h.on_hangup == tiller_config::schema::OnHangup::Work && self.works() && (h.may_leave)().is_ok()
        });
        if goes_on {
            self.away("");
        } else {
            self.exit = Some(Exit::Signal(HANGUP));
        }
    }

    /// True when something is working here, or about to.
    fn works(&self) -> bool {
        self.app.model.engine.ready && (!self.outbox.is_empty() || self.facts().at_work())
    }

    /// Why the screen cannot be left, as a sentence.
    fn may_leave(&mut self) -> Result<(), String> {
        let Some(host) = &self.attached.host else {
            return Err("This workbench cannot be detached; it ends with its screen.".into());
        };
        (host.may_leave)()?;
        if !self.works() {
            return Err("Nothing is running, so there is nothing to detach.".into());
        }
        let words = format!(
            "{} still running\n  `tiller` in this folder reattaches, `tiller stop` ends it",
            self.facts().words()
        );
        self.away(&words);
        Ok(())
    }

    /// Detaches on a key of the person's; says why when it cannot.
    pub(crate) fn leave_at_work(&mut self) {
        if let Err(why) = self.may_leave() {
            self.app.say(why.trim_end_matches('.'));
        }
    }

    /// Detaches the terminal. Everything else goes on.
    fn away(&mut self, words: &str) {
        if self.attached.here() {
            self.io.leave();
        }
        self.attached.presence = Presence::Away;
        (self.attached.idle, self.attached.ended) = (None, None);
        self.io.terminal = None;
        // What comes for it from now on goes nowhere.
        if let Ok(nowhere) = Writer::start(std::io::sink(), self.tx.clone()) {
            self.io.writer = nowhere;
        }
        if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
        if let (Some(seat), Some(host)) = (self.attached.owner.take(), &self.attached.host) {
            (host.left)(DetachReport::By(seat.id()));
            seat.leave(words);
        }
        self.attached.observers.dismiss("detached");
        self.app.model.window.away = true;
    }

    /// Time until the detached screen must check its work again; `None`: until a message arrives.
    pub(crate) fn resting(&self) -> Option<Duration> {
        if self.attached.presence != Presence::Away {
            return None;
        }
        let since = |t: Duration| REST.saturating_sub(self.clock.mono().saturating_sub(t));
        let living = self.app.model.workspace.processes.iter().any(|p| p.state.runs());
        self.attached.idle.filter(|_| !self.attached.ending).map(since).or(living.then_some(LOOK))
    }

    /// Asks the engine about background processes while no terminal is attached.
    pub(crate) fn look(&mut self) {
        if self.attached.idle.is_none() && self.attached.presence == Presence::Away {
            self.take(Msg::Tick);
        }
    }

    /// Ends the detached program when nothing works any more.
    pub(crate) fn rest(&mut self) {
        if self.attached.presence != Presence::Away || self.attached.ending || self.exit.is_some() {
            return;
        }
        if self.works() {
            self.attached.idle = None;
            return;
        }
        let now = self.clock.mono();
        let since = *self.attached.idle.get_or_insert(now);
        if now.saturating_sub(since) < REST {
            return;
        }
        self.attached.ending = true;
        let facts = self.facts();
        if let Some(host) = &self.attached.host {
            (host.left)(DetachReport::Ended(&facts));
        }
        self.app.effects(Owner::Shell, vec![Effect::send(CommandBody::Session(SessionCommand::Quit))]);
        self.tasks();
    }

    /// Attaches another terminal, and detaches the present one.
    fn arrive(&mut self, arrival: Attachment) {
        if self.attached.ending || self.exit.is_some() {
            return arrival.owner.leave("the workbench is shutting down");
        }
        if self.attached.presence != Presence::Away {
            self.away(&arrival.words);
        }
        let (seat, said) = (std::sync::Arc::clone(&arrival.owner), arrival.said.clone());
        match self.sit_down(arrival) {
            Ok(()) => {
                if let Some(said) = said {
                    self.app.say(said);
                }
            }
            Err(e) => {
                self.attached.owner = Some(seat);
                self.away(&format!("{e}"));
            }
        }
    }

    fn sit_down(&mut self, arrival: Attachment) -> Result<(), UiError> {
        rustix::stdio::dup2_stdin(&arrival.input).map_err(std::io::Error::from)?;
        rustix::stdio::dup2_stdout(&arrival.output).map_err(std::io::Error::from)?;
        rustix::stdio::dup2_stderr(&arrival.output).map_err(std::io::Error::from)?;
        let (no_mouse, inline) =
            self.options.as_ref().map_or((false, false), |o| (o.mode.no_mouse, o.mode.inline));
        let terminal = Terminal::open(Modes::of(&self.app.model.ui, no_mouse, inline))?;
        self.io.writer = Writer::start(terminal.output()?, self.tx.clone())?;
        self.io.writer.direct(terminal.direct());
        // Nothing is known of what the new terminal shows.
        self.io.encoder = Encoder::default();
        if let Some(o) = &self.options {
            self.io.read_environment(&o.env);
            self.app.themes.depth(crate::theme::Depth::of_env(&*o.env));
        }
        self.io.bursts = Bursts::default();
        let (w, h) = terminal.size();
        self.io.terminal = Some(terminal);
        let mut out = self.io.enter()?;
        self.ask_colours(&mut out);
        self.attached.owner = Some(arrival.owner);
        self.attached.presence = Presence::Here;
        (self.attached.idle, self.attached.ended) = (None, None);
        self.app.model.window.away = false;
        self.app.keys.pending.clear();
        self.app.outside.forget();
        self.take(Msg::Resize(w, h));
        self.app.redraw();
        // As at the start: the first frame and the switches in one write, then the terminal is asked.
        let cursor = self.app.draw(&mut self.buf);
        self.io.encoder.frame(&self.buf, self.app.drawn(), cursor, &mut out);
        out.push_str(self.io.ask_pictures());
        out.push_str(QUERIES);
        self.io.writer.write(out);
        Ok(())
    }
}
