//! The terminal of an agent that is a program: observers get what changes, and what the person does there
//! reaches it.

use crate::bus::agent_view;
use std::time::Duration;

use tiller_external::{Activity, AgentEvent, Source};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, Notice, NoticeKind, PaneCommand, PaneView, ScreenView, Typed};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::crew::external::Pane;
use crate::crew::msg::ExternalMsg;

/// Between two pictures for one who looks: a frame.
const FRAME: Duration = Duration::from_millis(16);
/// Between two titles: some programs turn a wheel there.
const TITLES: Duration = Duration::from_secs(1);
/// Rows of history that are given out at once.
const HISTORY: usize = 5_000;
/// Keys that come together.
const KEYS: usize = 1_024;
/// Bytes of one paste.
const PASTE: usize = 4 << 20;

impl Core {
    fn pane(&mut self) -> Option<&mut Pane> {
        Some(&mut self.outside()?.pane)
    }

    /// For its row, while it runs in a terminal.
    pub(crate) fn pane_view(&self) -> Option<Box<PaneView>> {
        let outside = self.identity.child.as_ref()?.outside.as_ref()?;
        outside.control()?.looker()?;
        Some(Box::new(outside.pane.view.clone()))
    }

    /// Its screen waits for input while the person looks at another view.
    pub(crate) fn pane_needs(&self) -> bool {
        let outside = self.identity.child.as_ref().and_then(|c| c.outside.as_ref());
        outside.is_some_and(|o| o.pane.view.doing == "blocked" && !o.pane.view.entered)
    }

    /// What the person does at the terminal. One that has none by now has ended: there is nothing to do it to.
    pub(crate) fn pane_command(&mut self, command: PaneCommand) {
        let Some(control) = self.outside().and_then(|o| o.control().cloned()) else { return };
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
                // All of it or nothing: half of what was typed is another thing.
                let large = |t: &Typed| matches!(t, Typed::Paste { text } if text.len() > PASTE);
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
                    pane.view.touched |= typed.iter().any(|t| !matches!(t, Typed::Mouse { .. }));
                    let hands = typed.iter().any(|t| !matches!(t, Typed::Mouse { .. } | Typed::Focus { .. }));
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
            let text = format!("{}: {why}", self.identity.id.name());
            self.notice(Notice::new(NoticeKind::User, text));
        }
        if self.pane().is_some_and(|p| (p.view.entered, p.view.touched) != (entered, touched)) {
            agent_view::agent_changed(self);
        }
    }

    /// Answers when the screen is another than at `since`.
    pub(crate) fn look(&mut self, client: ClientId, cause: CommandId, since: u64) {
        let (bus, place) = (std::sync::Arc::clone(&self.bus), self.place_of(Some(cause)));
        let looker = self.outside().and_then(|o| o.control()).and_then(|c| c.looker());
        let Some(looker) = looker else {
            let screen = ScreenView { rev: since.max(1), ended: true, ..ScreenView::default() };
            return bus.reply(client, &place, ReplyEvent::ScreenReply { screen });
        };
        let Some(pane) = self.pane() else { return };
        let now = Instant::now();
        let from = pane.from.map_or(now, |f| f.max(now));
        // The next one is asked for when this one is drawn; a new look begins at once.
        pane.from = (since != 0).then(|| now + FRAME);
        let wait = async move {
            let screen = looker.next(since, from).await;
            bus.reply(client, &place, ReplyEvent::ScreenReply { screen });
        };
        pane.lookers.retain(|_, task| !task.is_finished());
        pane.lookers.insert(client, AbortOnDropHandle::new(tokio::spawn(wait)));
    }

    /// What scrolled away, and the screen.
    pub(crate) fn scrolled(&mut self, client: ClientId, cause: CommandId, lines: u32) {
        let lines = usize::try_from(lines).unwrap_or(HISTORY).min(HISTORY);
        let rows =
            self.outside().and_then(|o| o.control()).and_then(|c| c.history(lines)).unwrap_or_default();
        self.bus.reply(client, &self.place_of(Some(cause)), ReplyEvent::ScrollbackReply { rows });
    }

    /// How the program seems to stand, its title, its bell.
    pub(crate) fn pane_heard(&mut self, turn: u64, said: AgentEvent) {
        let redacted = match &said {
            AgentEvent::Title(title) => self.redact(title),
            _ => String::new(),
        };
        let tx = self.tx.clone();
        if let AgentEvent::State(guess) = &said
            && self.outside().and_then(|o| o.control()?.looker()).is_some()
        {
            // Of a screen that says nothing known it is not known that it rests.
            self.cover_all(matches!(guess.what, Activity::Working | Activity::Unknown));
        }
        let Some(pane) = self.pane() else { return };
        match said {
            AgentEvent::State(guess) => {
                pane.view.doing = guess.what.name().into();
                pane.view.source = source(guess.source).into();
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
                self.spawn(async move {
                    tokio::time::sleep(TITLES).await;
                    let _ = tx.send(Msg::External(ExternalMsg::Titled { turn })).await;
                });
            }
            _ => return,
        }
        agent_view::agent_changed(self);
    }

    /// Titles may be told again.
    pub(crate) fn titled(&mut self) {
        if self.pane().and_then(|p| p.titled.take()) == Some(true) {
            agent_view::agent_changed(self);
        }
    }
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Process => "process",
        Source::Silence => "silence",
        Source::Screen => "screen",
        Source::Escape => "escape",
        Source::Report => "report",
    }
}
