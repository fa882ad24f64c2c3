//! Leaving the screen while the work goes on, resting without one, and taking it again on another terminal.

use std::time::Duration;

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::app::msg::Msg;
use crate::app::run::Loop;
use crate::app::state::Owner;
use crate::app::ui::{Exit, UiError};
use crate::input::reader::HANGUP;
use crate::output::Encoder;
use crate::output::writer::Writer;
use crate::terminal::terminal_owner::{Arrival, Facts, LOOK, Left, Presence, REST, Said, SeatMsg};
use crate::terminal::watchers::Watcher;
use crate::terminal::{Modes, QUERIES, Terminal};

impl Loop {
    /// Messages of the client, and requests of other processes.
    pub(crate) fn seated(&mut self, msg: SeatMsg) {
        match msg {
            SeatMsg::From(id, said) if self.seating.seat.as_ref().is_some_and(|s| s.id() == id) => {
                self.said(said);
            }
            SeatMsg::From(id, said) if self.seating.watchers.has(id) => match said {
                Said::Resized => {
                    self.seating.watchers.resized(id);
                    self.app.redraw();
                }
                Said::Look(columns, rows) => {
                    self.seating.watchers.look(id, Some((columns, rows)));
                    self.app.frame.dirty = true;
                }
                Said::Follow => {
                    self.seating.watchers.look(id, None);
                    self.app.frame.dirty = true;
                }
                Said::Gone | Said::Signal(_) => self.seating.watchers.remove(id),
                Said::Continued(_) | Said::Stop => {}
            },
            // A client that was sent away; it has ended, or is about to.
            SeatMsg::From(..) => {}
            SeatMsg::Arrive(arrival) => self.arrive(arrival),
            SeatMsg::Watch(seat, terminal) => self.watch(seat, terminal),
            SeatMsg::Facts(tell) => tell(self.facts()),
            SeatMsg::Leave(tell) => {
                let may = if self.seating.presence == Presence::Away {
                    Err("No screen is attached.".to_owned())
                } else {
                    self.may_leave()
                };
                tell(may.map(|()| self.facts()));
            }
        }
    }

    fn facts(&self) -> Facts {
        let lines = self.seating.lines.len();
        Facts { lines, ended: self.seating.ended, ..Facts::of(&self.app.model) }
    }

    fn watch(
        &mut self,
        seat: std::sync::Arc<dyn crate::terminal::terminal_owner::Seat>,
        terminal: std::os::fd::OwnedFd,
    ) {
        if self.seating.presence == Presence::Away {
            return seat.leave("it has no attached terminal, so there is nothing to watch");
        }
        match Watcher::new(std::sync::Arc::clone(&seat), terminal, self.tx.clone()) {
            Ok(watcher) => {
                self.seating.watchers.add(watcher);
                self.app.redraw();
                self.app.say("another terminal is watching");
            }
            Err(e) => seat.leave(&format!("cannot use the terminal: {e}")),
        }
    }

    fn said(&mut self, said: Said) {
        match said {
            Said::Resized if self.seating.here() => self.take(Msg::Resize(0, 0)),
            Said::Resized => {}
            Said::Continued(stopped) if self.seating.presence == Presence::Stopped => {
                self.seating.presence = Presence::Here;
                self.back();
                if !stopped {
                    self.app.say("Cannot suspend: Tiller was not started from a shell with job control");
                }
            }
            // The shell has had the terminal without our having left it.
            Said::Continued(_) => {
                if self.io.restore_modes().is_err() {
                    return self.lost();
                }
                self.again();
            }
            Said::Stop if self.seating.here() => self.stop(false),
            // The attached terminal shows all of it.
            Said::Stop | Said::Look(..) | Said::Follow => {}
            Said::Signal(HANGUP) | Said::Gone => self.hang_up(),
            Said::Signal(n) => self.exit = Some(Exit::Signal(n)),
        }
    }

    /// The terminal cannot be used. Old news when somebody has come with another one since.
    pub(crate) fn lost(&mut self) {
        if self.seating.host.is_none() || self.io.terminal.as_ref().is_none_or(Terminal::gone) {
            self.hang_up();
        }
    }

    /// The window was closed, or the line broke: by the person's setting what works goes on.
    pub(crate) fn hang_up(&mut self) {
        if self.seating.presence == Presence::Away {
            return;
        }
        let goes_on = self.seating.host.as_ref().is_some_and(|h| {
            h.on_hangup == tiller_config::schema::OnHangup::Work && self.works() && (h.may_leave)().is_ok()
        });
        if goes_on {
            self.away("");
        } else {
            self.exit = Some(Exit::Signal(HANGUP));
        }
    }

    /// Something works here, or is about to.
    fn works(&self) -> bool {
        self.app.model.engine.ready && (!self.outbox.is_empty() || self.facts().at_work())
    }

    /// Why the screen cannot be left, as a sentence.
    fn may_leave(&mut self) -> Result<(), String> {
        let Some(host) = &self.seating.host else {
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

    /// By key.
    pub(crate) fn leave_at_work(&mut self) {
        if let Err(why) = self.may_leave() {
            self.app.say(why.trim_end_matches('.'));
        }
    }

    /// Gives the terminal back for good. Everything else goes on.
    fn away(&mut self, words: &str) {
        if self.seating.here() {
            self.io.leave();
        }
        self.seating.presence = Presence::Away;
        (self.seating.idle, self.seating.ended) = (None, None);
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
        if let (Some(seat), Some(host)) = (self.seating.seat.take(), &self.seating.host) {
            (host.left)(Left::By(seat.id()));
            seat.leave(words);
        }
        self.seating.watchers.dismiss("detached");
        self.app.model.window.away = true;
    }

    /// How long nobody has to look; `None`: until something happens.
    pub(crate) fn resting(&self) -> Option<Duration> {
        if self.seating.presence != Presence::Away {
            return None;
        }
        let since = |t: Duration| REST.saturating_sub(self.clock.mono().saturating_sub(t));
        let living = self.app.model.workspace.processes.iter().any(crate::model::Process::lives);
        self.seating.idle.filter(|_| !self.seating.ending).map(since).or(living.then_some(LOOK))
    }

    /// A moment of resting has come: living processes are looked at.
    pub(crate) fn look(&mut self) {
        if self.seating.idle.is_none() && self.seating.presence == Presence::Away {
            self.take(Msg::Tick);
        }
    }

    /// Nobody sits there: when nothing works any more it ends.
    pub(crate) fn rest(&mut self) {
        if self.seating.presence != Presence::Away || self.seating.ending || self.exit.is_some() {
            return;
        }
        if self.works() {
            self.seating.idle = None;
            return;
        }
        let now = self.clock.mono();
        let since = *self.seating.idle.get_or_insert(now);
        if now.saturating_sub(since) < REST {
            return;
        }
        self.seating.ending = true;
        let facts = self.facts();
        if let Some(host) = &self.seating.host {
            (host.left)(Left::Ended(&facts));
        }
        self.app.effects(Owner::Shell, vec![Effect::send(CommandBody::Session(SessionCommand::Quit))]);
        self.tasks();
    }

    /// Another terminal attaches. The one that was attached before is detached.
    fn arrive(&mut self, arrival: Arrival) {
        if self.seating.ending || self.exit.is_some() {
            return arrival.seat.leave("the workbench is ending");
        }
        if self.seating.presence != Presence::Away {
            self.away(&arrival.words);
        }
        let (seat, said) = (std::sync::Arc::clone(&arrival.seat), arrival.said.clone());
        match self.sit_down(arrival) {
            Ok(()) => {
                if let Some(said) = said {
                    self.app.say(said);
                }
            }
            Err(e) => {
                self.seating.seat = Some(seat);
                self.away(&format!("{e}"));
            }
        }
    }

    fn sit_down(&mut self, arrival: Arrival) -> Result<(), UiError> {
        rustix::stdio::dup2_stdin(&arrival.input).map_err(std::io::Error::from)?;
        rustix::stdio::dup2_stdout(&arrival.output).map_err(std::io::Error::from)?;
        rustix::stdio::dup2_stderr(&arrival.output).map_err(std::io::Error::from)?;
        let (no_mouse, inline) =
            self.options.as_ref().map_or((false, false), |o| (o.mode.no_mouse, o.mode.inline));
        let terminal = Terminal::open(Modes::of(&self.app.model.ui, no_mouse, inline))?;
        self.io.writer = Writer::start(terminal.output()?, self.tx.clone())?;
        self.io.writer.direct(terminal.direct());
        if let Some(o) = &self.options {
            self.io.read_environment(&o.env);
            self.app.themes.depth(crate::theme::Depth::of_env(&*o.env));
        }
        self.io.encoder = Encoder::default();
        self.io.bursts = false;
        let (w, h) = terminal.size();
        self.io.terminal = Some(terminal);
        let mut out = self.io.enter()?;
        self.seating.seat = Some(arrival.seat);
        self.seating.presence = Presence::Here;
        (self.seating.idle, self.seating.ended) = (None, None);
        self.app.model.window.away = false;
        self.app.keys.pending.clear();
        self.app.outside.forget();
        self.take(Msg::Resize(w, h));
        self.app.redraw();
        // As at the start: the first frame and the switches in one write, then the terminal is asked.
        let cursor = self.app.draw(&mut self.buf);
        self.io.encoder.frame(&self.buf, self.app.drawn(), cursor, &mut out);
        out.push_str(QUERIES);
        self.io.writer.write(out);
        Ok(())
    }
}
