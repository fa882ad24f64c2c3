//! Connects the screen with an engine that may not have started yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use tiller_config::agents::Definition;
use tiller_engine::{EngineHandle, Human, Open};
use tiller_protocol::command::{AskCommand, KeyText, SessionCommand};
use tiller_protocol::event::{AskEvent, ReplyEvent, StateEvent};
use tiller_protocol::{
    AgentId, Ask, AskBody, AskId, AskReply, Clock, Command, CommandBody, CommandId, Event, EventBody, Notice,
    NoticeKind, SessionId, SystemClock,
};
use tiller_store::{OnFailure, Store, StoreError};
use tiller_tui::UiSender;
use tiller_tui::model::kinds::AgentKind;

use crate::app::screen::folder;
use crate::app::settings::SharedSettings;
use crate::app::{Running, Setup, Start, definitions};
use crate::commands::args;
use crate::commands::workbench::slow_start::SlowStartMonitor;

/// Maximum number of commands that are kept while a question is open. The screen keeps the rest.
const MAX_WAITING: usize = 256;

/// The screen sends commands here; the thread that owns the engine runs [`SessionLink::run`].
#[derive(Default)]
pub(crate) struct SessionLink {
    handle: OnceLock<EngineHandle>,
    /// The folder's files are not in use; a yes to them ends that.
    restricted: Arc<AtomicBool>,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// The screen has ended.
    ended: bool,
    /// A question that is asked before the engine runs.
    asking: Option<AskId>,
    reply: Option<AskReply>,
    /// Commands that came before its answer.
    waiting: Vec<Command>,
    /// The person does not want a session that cannot be saved.
    declined: bool,
}

impl SessionLink {
    pub(crate) fn new(restricted: Arc<AtomicBool>) -> Self {
        Self { restricted, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False: the engine does not run yet.
    pub(crate) fn send(&self, command: Command) -> bool {
        if let Some(handle) = self.handle.get() {
            return handle.send(command).is_ok();
        }
        let mut state = self.state();
        if state.asking.is_none() || state.waiting.len() >= MAX_WAITING {
            return false;
        }
        match command.body {
            CommandBody::Ask(AskCommand::Answer { id, reply }) if Some(id) == state.asking => {
                state.reply = Some(reply);
                self.wake.notify_all();
            }
            // The screen sends its commands in order, so the commands before the answer are kept here.
            _ => state.waiting.push(command),
        }
        true
    }

    /// Sends a key to the engine, which tests and stores it; waits for the result.
    pub(crate) fn store_key(&self, provider: String, key: String) -> Result<String, String> {
        self.ask(SessionCommand::StoreKey { provider, key: KeyText(key) })
    }

    /// Makes the engine read the settings again; waits until they apply.
    pub(crate) fn reload(&self) -> Result<(), String> {
        self.ask(SessionCommand::Reload).map(drop)
    }

    /// As a separate client, so that the answer does not go to the screen as well.
    fn ask(&self, what: SessionCommand) -> Result<String, String> {
        let Some(handle) = self.handle.get().map(EngineHandle::client) else {
            return Err("Tiller is still starting. Try again in a moment.".into());
        };
        let mut events = handle.subscribe();
        let id = CommandId(1);
        let command = Command::new(id, CommandBody::Session(what));
        handle.send(command).map_err(|e| format!("{e}. Try again in a moment."))?;
        while let Some(event) = events.recv() {
            let EventBody::Reply(reply) = &event.body else { continue };
            match reply.as_ref() {
                _ if event.cause != Some(id) => {}
                ReplyEvent::DoneReply { said } => return Ok(said.clone()),
                ReplyEvent::ErrorReply { notice } => {
                    let hints = notice.hints.iter().map(|h| format!(" {h}")).collect::<String>();
                    return Err(format!("{}.{hints}", notice.message.trim_end_matches('.')));
                }
                _ => {}
            }
        }
        Err("Tiller is shutting down.".into())
    }

    /// The settings changed on disk. The screen reports errors in them.
    fn changed(&self) {
        let Some(handle) = self.handle.get().map(EngineHandle::client) else { return };
        let body = CommandBody::Session(SessionCommand::Reload);
        // If the queue is full, they are read at the next change; if the engine has ended, not at all.
        let _ = handle.send(Command::new(CommandId(1), body));
    }

    /// The screen has ended.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.wake.notify_all();
    }

    /// Starts the engine, passes its events to the screen, and ends it after the screen.
    pub(crate) fn run(
        self: &Arc<Self>,
        setup: Setup,
        shared: &Arc<SharedSettings>,
        open: &args::Open,
        sender: &UiSender,
    ) -> Result<(), Notice> {
        let (screen, link) = (sender.clone(), Arc::clone(self));
        let kinds = kinds(&setup, sender);
        let again = Arc::clone(&kinds);
        let restricted = Arc::clone(&self.restricted);
        let _folder = folder::watch(&setup.places.config, move |what| {
            if what.screen {
                screen.reload();
            }
            again(!restricted.load(Ordering::Acquire));
            link.changed();
        });
        kinds(!self.restricted.load(Ordering::Acquire));
        let started = self.start(setup, shared, open, sender, kinds);
        let (mut engine, notices) = match started {
            Ok(pair) => pair,
            Err(notice) => {
                let declined = self.state().declined;
                if declined {
                    // The screen ends, and the error is printed afterwards.
                    tell(sender, EventBody::State(StateEvent::Stopped {}));
                } else {
                    // The screen shows the error; it stays until the person leaves it.
                    tell(sender, EventBody::State(StateEvent::Notice { notice: notice.clone() }));
                }
                self.wait(|s| s.ended.then_some(()));
                return Err(notice);
            }
        };
        let mut events = engine.events();
        let handle = engine.handle();
        {
            let mut state = self.state();
            for command in state.waiting.drain(..) {
                // Fewer than the capacity of the engine's channel, which is empty.
                let _ = handle.send(command);
            }
            // Before the first event, which makes the screen send what was typed meanwhile. There is only one.
            let _ = self.handle.set(handle);
        }
        // The screen reads the events itself.
        let broke = Arc::new(AtomicBool::new(false));
        let (mut stopped, tells) = (false, Arc::clone(&broke));
        let waker = sender.waker();
        events.on_event(Box::new(move || waker.wake()));
        sender.source(Box::new(move || {
            let ended = events.ended();
            match events.try_next() {
                Some(event) => {
                    stopped |= matches!(event.body, EventBody::State(StateEvent::Stopped {}));
                    Some(Box::new(Arc::unwrap_or_clone(event)))
                }
                // The engine failed. A screen without an engine would be useless.
                None if ended && !stopped => {
                    stopped = true;
                    tells.store(true, Ordering::Release);
                    Some(Box::new(ours(EventBody::State(StateEvent::Stopped {}))))
                }
                None => None,
            }
        }));
        for notice in notices {
            tell(sender, EventBody::State(StateEvent::Notice { notice }));
        }
        self.wait(|s| s.ended.then_some(()));
        let mut unsaved = engine.stop().into_iter();
        let unsaved = unsaved.next().map(|first| unsaved.fold(first, |all, more| all.hint(more.message)));
        match unsaved {
            _ if broke.load(Ordering::Acquire) => Err(broken()),
            Some(unsaved) => Err(unsaved),
            None => Ok(()),
        }
    }

    fn start(
        &self,
        setup: Setup,
        shared: &Arc<SharedSettings>,
        open: &args::Open,
        sender: &UiSender,
        kinds: Kinds,
    ) -> Result<(Running, Vec<Notice>), Notice> {
        let screen = sender.clone();
        let waits = move |what: &str| {
            let notice = Notice::new(NoticeKind::Store, what.to_owned());
            tell(&screen, EventBody::State(StateEvent::Notice { notice }));
        };
        let store = match setup.try_store_telling(OnFailure::Keep, Arc::new(waits)) {
            Ok(store) => store,
            Err(error) => self.without(&error, &setup, sender)?,
        };
        let _waiting = SlowStartMonitor::of(&store, sender);
        let which = setup.which_session(&store, open.cont, open.session.as_deref())?;
        let demo = setup.common.model.as_deref() == Some("demo/demo");
        let start = Start {
            made_by: tiller_store::MadeBy::Person,
            human: Human::Present,
            read_only: open.read_only,
            watch: true,
            trust: crate::app::FolderTrust { given: false, ask: true },
            exporter: Some(Arc::new(crate::commands::export_file)),
            titles: !demo,
            shared: Some(Arc::clone(shared)),
            on_trust: Some({
                let (screen, restricted) = (sender.clone(), Arc::clone(&self.restricted));
                Arc::new(move || {
                    restricted.store(false, Ordering::Release);
                    kinds(true);
                    screen.reload();
                })
            }),
            ..Start::headless(if open.session.is_some() || open.cont { which } else { Open::New })
        };
        let mut engine = Running::start(setup, store, start)?;
        let notices = std::mem::take(&mut engine.notices);
        Ok((engine, notices))
    }

    /// Nothing can be saved: the person decides whether to continue.
    fn without(&self, error: &StoreError, setup: &Setup, sender: &UiSender) -> Result<Store, Notice> {
        let may = matches!(
            error,
            StoreError::ReadOnly { .. }
                | StoreError::Foreign { .. }
                | StoreError::Full { .. }
                | StoreError::Io { .. }
                | StoreError::Network { .. }
        );
        let id = AskId::fresh(&*setup.ids, setup.clock.now());
        if !may {
            return Err(error.at_start());
        }
        if !self.agreed(id, error.to_string(), sender) {
            self.state().declined = true;
            return Err(error.at_start());
        }
        Store::not_saving(&error.to_string(), setup.store_options()).map_err(|e| e.notice())
    }

    /// Asks the question, and waits for its answer or for the end of the screen.
    fn agreed(&self, id: AskId, why: String, sender: &UiSender) -> bool {
        self.state().asking = Some(id);
        let ask = Ask { id, agent: AgentId::main(), call: None, body: AskBody::NotSaving { why } };
        tell(sender, EventBody::Ask(AskEvent::QuestionAsked { ask }));
        let reply = self.wait(|s| if s.ended { Some(None) } else { s.reply.take().map(Some) });
        self.state().asking = None;
        let Some(reply) = reply else { return false };
        let yes = matches!(reply, AskReply::Yes { .. });
        tell(sender, EventBody::Ask(AskEvent::QuestionAnswered { id, reply }));
        yes
    }

    fn wait<T>(&self, done: impl Fn(&mut State) -> Option<T>) -> T {
        let mut state = self.state();
        loop {
            if let Some(value) = done(&mut state) {
                return value;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Reads the agent definitions for the screen; the folder's only when it is trusted. Blocks.
type Kinds = Arc<dyn Fn(bool) + Send + Sync>;

fn kinds(setup: &Setup, sender: &UiSender) -> Kinds {
    let (places, folder_config, sender) = (setup.places.clone(), setup.folder_config.clone(), sender.clone());
    let (first, tools) = (AtomicBool::new(true), setup.tools.catalog());
    Arc::new(move |trusted| {
        let (all, wrong) = definitions::read(&places, &folder_config, trusted, &tools);
        // Errors at the start are reported together with all others.
        if let Some(notice) =
            definitions::problem_notice(&wrong).filter(|_| !first.swap(false, Ordering::AcqRel))
        {
            tell(&sender, EventBody::State(StateEvent::Notice { notice }));
        }
        let kind = |d: &Arc<Definition>| AgentKind { name: d.name.clone(), about: d.description.clone() };
        sender.kinds(all.iter().map(kind).collect());
    })
}

/// The notice that the engine failed.
pub(crate) fn broken() -> Notice {
    Notice::new(NoticeKind::Internal, "The engine stopped because of an internal error.")
        .hint("The conversation is saved: `tiller -c` continues it.")
        .hint("The report is in a file crash-*.txt in the state folder.")
}

/// An event that does not come from the engine, with the present time: the list of notices shows how old each one is.
fn ours(body: EventBody) -> Event {
    let session = SessionId(uuid::Uuid::nil());
    Event { seq: 0, time: SystemClock::default().now(), session, agent: AgentId::main(), cause: None, body }
}

pub(crate) fn tell(sender: &UiSender, body: EventBody) {
    // Fails only when the screen has ended.
    let _ = sender.event(ours(body));
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use tiller_protocol::command::Query;
    use tiller_tui::{Ui, UiOptions};

    use super::*;

    fn query(id: u64) -> Command {
        Command::new(CommandId(id), CommandBody::Query(Query::Snapshot))
    }

    #[expect(clippy::disallowed_methods, reason = "polls with a deadline")]
    /// Asks on a separate thread; returns the result of `answer`, and the number of commands before it.
    fn asked(answer: impl FnOnce(&SessionLink, AskId)) -> (bool, usize) {
        let (_ui, sender) = Ui::new(UiOptions::new(Arc::new(|_| None)));
        let link = Arc::new(SessionLink::default());
        assert!(!link.send(query(1)), "nobody is there yet");
        let id = AskId(uuid::Uuid::from_u128(7));
        let asking = Arc::clone(&link);
        let thread = thread::spawn(move || asking.agreed(id, "the disk is full".into(), &sender));
        let end = Instant::now() + Duration::from_secs(90);
        while link.state().asking.is_none() {
            assert!(Instant::now() < end);
            thread::sleep(Duration::from_millis(1));
        }
        answer(&link, id);
        let yes = thread.join().unwrap();
        let waiting = link.state().waiting.len();
        (yes, waiting)
    }

    fn answer(link: &SessionLink, id: AskId, reply: AskReply) -> bool {
        let body = CommandBody::Ask(AskCommand::Answer { id, reply });
        link.send(Command::new(CommandId(9), body))
    }

    #[test]
    fn a_notice_of_the_start_has_the_present_time() {
        let before = SystemClock::default().now();
        let event = ours(EventBody::State(StateEvent::Notice { notice: broken() }));
        assert!(event.time >= before && before.millis() > 0, "{:?}", event.time);
    }

    #[test]
    fn the_question_before_the_engine_is_answered_and_what_came_before_is_kept() {
        let yes = AskReply::Yes { value: None };
        let got = asked(|link, id| {
            assert!(link.send(query(1)), "the answer must not wait behind it");
            assert!(answer(link, AskId(uuid::Uuid::nil()), yes.clone()), "an answer to something else");
            assert!(answer(link, id, yes.clone()));
        });
        assert_eq!(got, (true, 2));
        assert_eq!(asked(|link, id| assert!(answer(link, id, AskReply::Declined))), (false, 0));
        assert_eq!(asked(|link, _| link.end()), (false, 0), "the screen was closed instead");
    }
}
