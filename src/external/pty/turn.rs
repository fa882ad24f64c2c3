//! Detects the end of a turn, and extracts its answer.

use tokio::time::Instant;

use super::answer::{answer, since};
use super::deliver::Typing;
use super::driver::{BACK, DIALOG, Driver, RunEnd, seconds};
use super::input::HOLD;
use crate::event::AgentEvent;
use tiller_protocol::Activity;

/// The running turn and those before it.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The message of the running turn, and when it was sent.
    pub(super) current: Option<(String, Instant)>,
    /// The program was seen working in this turn.
    pub(super) worked: bool,
    /// Lines after the message when it was sent.
    pub(super) before: Vec<String>,
    /// The notice that nothing happens was sent.
    pub(super) doubted: bool,
    /// Number of finished turns.
    pub(super) finished: u32,
    /// The answer of the last turn.
    pub(super) answer: String,
}

impl Driver {
    /// Whether the turn is over; if so, finishes it.
    pub(super) async fn turn_over(
        &mut self,
        screen: &str,
        doing: Activity,
        now: Instant,
    ) -> Result<bool, RunEnd> {
        if self.person.in_use
            && !self.person.attached
            && self.person.last_key.is_none_or(|t| now.duration_since(t) >= HOLD)
        {
            self.person.in_use = false;
        }
        let Some((prompt, sent)) = self.turn.current.clone() else {
            let idle = self.delivery.queue.is_empty() && matches!(self.delivery.typing, Typing::Nothing);
            // Input that a person began may continue.
            let calm = self.person.last_key.is_none()
                || doing == Activity::Idle
                    && now.duration_since(self.view.changed) >= seconds(self.pty.quiet);
            let over = self.turn.finished > 0 || self.person.finish;
            return Ok(over
                && idle
                && calm
                && !self.run.job.stay
                && !self.person.attached
                && !self.person.in_use);
        };
        let shown: Vec<String> = screen.lines().map(str::to_owned).collect();
        let marked =
            self.pty.done.as_ref().is_some_and(|p| since(&shown, &prompt).iter().any(|l| p.found(l)));
        let quiet = seconds(if marked { self.pty.still } else { self.pty.quiet });
        // Some programs work too quickly to be seen working, and have no mark of the end; but then the text after the
        // message has changed.
        let other = self.pty.done.is_none() && since(&shown, &prompt) != self.turn.before;
        let acted = self.turn.worked || marked || other && now.duration_since(sent) > 3 * quiet;
        if !acted
            && !self.turn.doubted
            && now.duration_since(sent) > DIALOG
            && now.duration_since(self.view.changed) > DIALOG
        {
            self.turn.doubted = true;
            let note = "it may not have received the message: nothing has happened since; check its screen";
            self.run.out.send(AgentEvent::Note(note.into())).await?;
        }
        if doing != Activity::Idle || !acted || now.duration_since(self.view.changed) < quiet {
            return Ok(false);
        }
        let lines = self.pane.screen.lock().lines(BACK);
        self.turn.answer = answer(&lines, &prompt, &self.pty);
        self.turn.current = None;
        self.turn.finished += 1;
        self.run.out.send(AgentEvent::Text(self.turn.answer.clone())).await?;
        self.run.out.send(AgentEvent::Break).await?;
        while let Some(command) = self.run.control.commands.try_recv() {
            self.carry_out(command);
        }
        let more = !self.delivery.queue.is_empty();
        if self.run.job.stay || self.person.attached || self.person.in_use {
            if !more {
                self.run.out.send(AgentEvent::TurnDone { text: self.turn.answer.clone() }).await?;
            }
            return Ok(false);
        }
        Ok(!more)
    }
}
