//! The terminal of an external program: observers get its changes, and input of the user
//! is sent to it.

use std::time::Duration;

use tiller_external::AgentEvent;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    Activity, CommandId, Notice, NoticeKind, PaneCommand, PaneView, ScreenView, TerminalInput,
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::ClientId;
use crate::bus::agent_view;
use crate::core::msg::Msg;
use crate::crew::child::identity::AgentIdentity;
use crate::crew::driver::ExternalDriver;
use crate::crew::external::Pane;
use crate::crew::external::msg::ExternalMsg;

/// Shortest time between two screens for one observer.
const FRAME: Duration = Duration::from_millis(16);
/// Shortest time between two titles: some programs animate their titles.
const TITLES: Duration = Duration::from_secs(1);
/// Most rows of history in one reply.
const HISTORY: usize = 5_000;
/// Most keys of one command.
const KEYS: usize = 1_024;
/// Most bytes of one paste.
const PASTE: usize = 4 << 20;

impl ExternalDriver<'_> {
    pub(crate) fn pane(&mut self) -> Option<&mut Pane> {
        Some(&mut self.core.identity.external_mut()?.pane)
    }

    /// Carries out a command of the user to the terminal; ignored when the program has ended.
    pub(crate) fn terminal_command(&mut self, command: PaneCommand) {
        let Some(control) = self.core.identity.external_mut().and_then(|o| o.control().cloned()) else {
            return;
        };
        let Some(pane) = self.pane() else { return };
        let (entered, touched) = (pane.view.entered, pane.view.touched);
        let mut lost = None;
        match command {
            PaneCommand::Size { cols, rows } => {
                control.resize(cols, rows);
            }
            PaneCommand::Enter { on } => {
                pane.view.entered = on;
                control.attach(on);
            }
            PaneCommand::Type { typed } => {
                // All keys or none: a part of them would mean something else.
                let large =
                    |t: &TerminalInput| matches!(t, TerminalInput::Paste { text } if text.len() > PASTE);
                if typed.iter().any(large) {
                    lost = Some(format!(
                        "a paste of more than {} MB is not sent to the program; put it into a file",
                        PASTE >> 20
                    ));
                } else if typed.len() > KEYS {
                    lost = Some(format!(
                        "more than {KEYS} keys at once are not sent to the program; paste them"
                    ));
                } else {
                    pane.view.touched |= typed.iter().any(|t| !matches!(t, TerminalInput::Mouse { .. }));
                    let hands = typed
                        .iter()
                        .any(|t| !matches!(t, TerminalInput::Mouse { .. } | TerminalInput::Focus { .. }));
                    if !control.typed(typed) && hands {
                        lost = Some(
                            "the program is not reading keys: what you typed is lost; it may \
                                have hung or ended"
                                .into(),
                        );
                    }
                }
            }
            PaneCommand::Finish => {
                (pane.view.entered, pane.view.touched) = (false, false);
                control.finish();
            }
        }
        if let Some(why) = lost {
            let text = format!("{}: {why}", self.core.identity.id.name());
            self.core.notice(Notice::new(NoticeKind::User, text));
        }
        if self.pane().is_some_and(|p| (p.view.entered, p.view.touched) != (entered, touched)) {
            agent_view::agent_changed(self.core);
        }
    }

    /// Replies when the screen has changed since revision `since`.
    pub(crate) fn await_screen(&mut self, client: ClientId, cause: CommandId, since: u64) {
        let (bus, scope) = (std::sync::Arc::clone(&self.core.bus), self.core.scope_of(Some(cause)));
        let looker = self.core.identity.external_mut().and_then(|o| o.control()).and_then(|c| c.looker());
        let Some(looker) = looker else {
            let screen = ScreenView { rev: since.max(1), ended: true, ..ScreenView::default() };
            return bus.reply(client, &scope, ReplyEvent::ScreenReply { screen });
        };
        let Some(pane) = self.pane() else { return };
        let now = Instant::now();
        let from = pane.from.map_or(now, |f| f.max(now));
        // The next one is asked for when this one is drawn; a new look begins at once.
        pane.from = (since != 0).then(|| now + FRAME);
        let wait = async move {
            let screen = looker.next(since, from).await;
            bus.reply(client, &scope, ReplyEvent::ScreenReply { screen });
        };
        pane.observers.retain(|_, task| !task.is_finished());
        pane.observers.insert(client, AbortOnDropHandle::new(tokio::spawn(wait)));
    }

    /// Replies with the scrollback and the screen.
    pub(crate) fn scrollback(&mut self, client: ClientId, cause: CommandId, lines: u32) {
        let lines = usize::try_from(lines).unwrap_or(HISTORY).min(HISTORY);
        let rows = self
            .core
            .identity
            .external_mut()
            .and_then(|o| o.control())
            .and_then(|c| c.history(lines))
            .unwrap_or_default();
        self.core.bus.reply(client, &self.core.scope_of(Some(cause)), ReplyEvent::ScrollbackReply { rows });
    }

    /// A state, title or bell of the terminal.
    pub(crate) fn terminal_message(&mut self, turn: u64, said: AgentEvent) {
        let redacted = match &said {
            AgentEvent::Title(title) => self.core.redact(title),
            _ => String::new(),
        };
        let tx = self.core.tx.clone();
        if let AgentEvent::State(guess) = &said
            && self.core.identity.external_mut().and_then(|o| o.control()?.looker()).is_some()
        {
            // An unknown screen counts as working.
            self.set_working(matches!(guess.what, Activity::Working | Activity::Unknown));
        }
        let Some(pane) = self.pane() else { return };
        match said {
            AgentEvent::State(guess) => {
                (pane.view.doing, pane.view.source) = (guess.what, guess.source);
            }
            AgentEvent::Bell => pane.view.bells = pane.view.bells.saturating_add(1),
            AgentEvent::Title(_) if pane.view.title == redacted => return,
            AgentEvent::Title(_) => {
                pane.view.title = redacted;
                if let Some(waits) = &mut pane.titled {
                    *waits = true;
                    return;
                }
                pane.titled = Some(false);
                self.core.spawn(async move {
                    tokio::time::sleep(TITLES).await;
                    let _ = tx.send(Msg::External(ExternalMsg::Titled { turn })).await;
                });
            }
            _ => return,
        }
        agent_view::agent_changed(self.core);
    }

    /// Publishes a title that came in the interval.
    pub(crate) fn title_interval_over(&mut self) {
        if self.pane().and_then(|p| p.titled.take()) == Some(true) {
            agent_view::agent_changed(self.core);
        }
    }
}

impl AgentIdentity {
    /// The terminal for its row, while it runs in one.
    pub(crate) fn pane_view(&self) -> Option<Box<PaneView>> {
        let outside = self.external()?;
        outside.control()?.looker()?;
        Some(Box::new(outside.pane.view.clone()))
    }

    /// The exit code of the program's last run, once it has ended by itself.
    pub(crate) fn program_exit(&self) -> Option<i32> {
        self.external()?.exit
    }

    /// Whether its screen waits for input while the user looks at another view.
    pub(crate) fn pane_needs_input(&self) -> bool {
        let outside = self.external();
        outside.is_some_and(|o| o.pane.view.doing == Activity::Blocked && !o.pane.view.entered)
    }
}
