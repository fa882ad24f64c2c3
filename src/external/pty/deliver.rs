//! Delivers messages: pasted when it is safe, sent when their echo is visible, never tried twice.

use std::time::Duration;

use tokio::time::Instant;

use super::answer::since;
use super::driver::{BEFORE_ENTER, DIALOG, Driver, ECHO, RunEnd, STILL, seconds};
use super::scan::{composes, prompt_mark};
use super::typing::{echoed, paste};
use crate::event::AgentEvent;
use tiller_protocol::Activity;

const LONG_AGO: Duration = Duration::from_secs(3600);

/// Progress of typing a message.
#[derive(Debug)]
pub(super) enum Typing {
    Nothing,
    /// Pasted; waits for the echo. The ids are those of its messages. `covered`: a dialog appeared meanwhile, which may
    /// have taken it.
    Echo {
        ids: Vec<u64>,
        text: String,
        until: Instant,
        covered: bool,
    },
    /// Echoed; Enter follows.
    Enter {
        ids: Vec<u64>,
        text: String,
        at: Instant,
    },
}

/// Messages to be delivered to the program.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Waiting messages: id (`None`: the prompt), text.
    pub(super) queue: Vec<(Option<u64>, String)>,
    /// When the last message was queued.
    pub(super) last_message: Instant,
    pub(super) typing: Typing,
    /// The mark before the text in the program's composer.
    pub(super) mark: String,
    /// The program does not read its input, so keys were lost.
    pub(super) keys_lost: bool,
}

impl Delivery {
    /// With the prompt as the first message, unless it is empty.
    pub(super) fn new(prompt: &str, now: Instant) -> Self {
        let first = Some((None, prompt.to_owned())).filter(|(_, p)| !p.trim().is_empty());
        Self {
            queue: first.into_iter().collect(),
            // Long enough ago that the prompt is not delayed.
            last_message: now - LONG_AGO,
            typing: Typing::Nothing,
            mark: String::new(),
            keys_lost: false,
        }
    }
}

impl Driver {
    /// Whether the composer contains the message that is being typed.
    pub(super) fn composing(&self, screen: &str) -> bool {
        match &self.delivery.typing {
            Typing::Nothing => false,
            Typing::Echo { text, .. } | Typing::Enter { text, .. } => {
                composes(screen, &self.delivery.mark, text)
            }
        }
    }

    /// Pastes waiting messages when it is safe: the program is idle, its screen is still, no person types.
    pub(super) async fn type_next(
        &mut self,
        screen: &str,
        doing: Activity,
        now: Instant,
    ) -> Result<(), RunEnd> {
        let composing = self.composing(screen);
        match std::mem::replace(&mut self.delivery.typing, Typing::Nothing) {
            Typing::Nothing => {}
            Typing::Echo { ids, text, .. } if doing == Activity::Blocked => {
                self.delivery.typing = Typing::Echo { ids, text, until: now + ECHO, covered: true };
                return Ok(());
            }
            Typing::Echo { ids, text, until, covered } => {
                if echoed(screen, &text) {
                    self.delivery.typing = Typing::Enter { ids, text, at: now + BEFORE_ENTER };
                } else if now < until {
                    self.delivery.typing = Typing::Echo { ids, text, until, covered };
                } else if covered && ids.is_empty() {
                    // The dialog took it: it was never sent.
                    self.delivery.queue.insert(0, (None, text));
                } else {
                    let why = "its screen did not show the typed text, so it was not sent; check its screen";
                    for id in &ids {
                        self.run
                            .out
                            .send(AgentEvent::Missed { id: *id, why: why.into(), tried: true })
                            .await?;
                    }
                    if ids.is_empty() && self.turn.current.is_none() {
                        return Err(RunEnd::Failed(why.into()));
                    }
                }
                return Ok(());
            }
            // A dialog appeared in between: it must not get the Enter.
            Typing::Enter { ids, text, .. } if doing == Activity::Blocked => {
                let why = "a dialog appeared while the text was typed; the text may be in its composer \
                    and was not sent";
                for id in &ids {
                    self.run.out.send(AgentEvent::Missed { id: *id, why: why.into(), tried: true }).await?;
                }
                if ids.is_empty() {
                    // The prompt itself: the dialog took it, so nothing was sent, and it cannot be sent twice unless
                    // the composer still shows it.
                    self.delivery.typing = Typing::Enter { ids, text, at: now + DIALOG };
                }
                return Ok(());
            }
            Typing::Enter { ids, text, at } => {
                // Enter is only sent to a composer that contains the message: not while the program works, and not when
                // its screen is unknown.
                let safe = doing == Activity::Idle && composing;
                if now < at || !safe && now < at + DIALOG {
                    self.delivery.typing = Typing::Enter { ids, text, at };
                    return Ok(());
                }
                if !safe && (echoed(screen, &text) || !ids.is_empty()) {
                    let why = "the state of its screen is unknown, so the typed text was not sent; check its screen";
                    for id in &ids {
                        self.run
                            .out
                            .send(AgentEvent::Missed { id: *id, why: why.into(), tried: true })
                            .await?;
                    }
                    if ids.is_empty() {
                        return Err(RunEnd::Failed(why.into()));
                    }
                    return Ok(());
                }
                if !echoed(screen, &text) && ids.is_empty() {
                    // A dialog covered it and closed: it was never sent, so it is pasted once more.
                    self.delivery.queue.insert(0, (None, text));
                    return Ok(());
                }
                self.press(b"\r".to_vec());
                for id in &ids {
                    self.run.out.send(AgentEvent::Delivered { id: *id }).await?;
                }
                let shown: Vec<String> = screen.lines().map(str::to_owned).collect();
                self.turn.before = since(&shown, &text).to_vec();
                self.turn.current = Some((text, now));
                self.turn.worked = false;
                self.turn.doubted = false;
                self.view.changed = now;
                return Ok(());
            }
        }
        let first = self.turn.finished == 0;
        let still = if first { seconds(self.pty.settle) } else { STILL };
        let limits = self.run.job.limits;
        let free = doing == Activity::Idle
            && now.duration_since(self.view.changed) >= still
            && now.duration_since(self.delivery.last_message) >= limits.coalesce
            && self.person.last_key.is_none_or(|t| now.duration_since(t) >= limits.typing);
        if self.delivery.queue.is_empty() || self.turn.current.is_some() || !free {
            return Ok(());
        }
        let (ids, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.delivery.queue).into_iter().unzip();
        let text = texts.join("\n\n");
        let brackets = self.pane.screen.lock().modes().brackets;
        self.delivery.mark = prompt_mark(screen, &self.pty);
        self.press(paste(&text, brackets));
        let ids = ids.into_iter().flatten().collect();
        self.delivery.typing = Typing::Echo { ids, text, until: now + ECHO, covered: false };
        Ok(())
    }
}
