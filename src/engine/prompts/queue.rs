//! Messages of the user: sent at once, or queued, edited, moved and removed.

use crate::crew::msg::CrewMsg;
use crate::prompts::compose;
use crate::prompts::message_commands::waiting;
use tiller_protocol::command::QueueCommand;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{CommandId, Message, Notice, NoticeKind, QueueId, Queued, QueuedState, SendMode};
use tiller_store::MadeBy;

use crate::bus::ClientId;
use crate::context::clean;
use crate::core::Core;
use crate::prompts::msg::Destination;
pub(crate) use crate::prompts::pending::queue_changed;
use crate::turn::Input;

/// Messages that may wait.
const QUEUE: usize = 100;

pub(crate) fn submit(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    mut message: Message,
    mode: SendMode,
) {
    clean::message(&core.services.redaction.redact, &mut message);
    if let Some(why) = cannot_send(core, &message) {
        core.refuse(client, cause, why.clone());
        if !core.occupied() {
            // A child counts as running from the moment of its command.
            core.child_driver().report_end(TurnStatus::Failed, String::new(), Some(why));
        }
        return;
    }
    adopt(core);
    if !core.occupied() {
        return compose::compose(
            core,
            Destination::Prompt { client: Some((client, cause)) },
            vec![(None, message)],
        );
    }
    if core.prompts.queue.len() >= QUEUE {
        let notice = Notice::new(NoticeKind::User, format!("{QUEUE} messages are already waiting"));
        return core.refuse(client, cause, notice);
    }
    let id = QueueId::fresh(&*core.services.ids, core.services.clock.now());
    let mode = waiting::mode(core, &message, mode);
    let queued = Queued::new(id, message, mode);
    if core.turn.live.is_none() && !core.turn_begins() {
        core.prompts.behind_job.push(id);
    }
    if let Some(child) = core.identity.child_mut() {
        child.receipts.insert(id, cause);
    }
    if mode == SendMode::Now {
        core.prompts.queue.insert(0, queued)
    } else {
        core.prompts.queue.push(queued)
    }
    queue_changed(core, Some(cause));
    core.external_driver().offer_queue();
    send_by_mode(core, mode);
}

/// A session of a run without a screen becomes the user's own with the user's first message in it.
fn adopt(core: &mut Core) {
    if core.session.info.exec && core.services.made_by == MadeBy::Person && core.identity.talks_to_user() {
        core.session.info.exec = false;
        // A failure is reported by the writes of the turn.
        drop(core.services.store.sessions().adopt(core.session.id));
    }
}

fn cannot_send(core: &Core, message: &Message) -> Option<Notice> {
    if core.session.read_only {
        return Some(
            Notice::new(NoticeKind::User, "this session is open read-only")
                .hint("fork it, or start a new one"),
        );
    }
    if message.text.trim().is_empty() && message.attachments.is_empty() {
        return Some(Notice::new(NoticeKind::User, "there is nothing to send"));
    }
    if core.session.model.0.is_empty() {
        return Some(
            Notice::new(NoticeKind::Config, "no model is set up yet, so nothing was sent")
                .hint("choose one with /model, or set one up with /setup"),
        );
    }
    None
}

fn send_by_mode(core: &mut Core, mode: SendMode) {
    match mode {
        SendMode::Now if core.turn.live.is_some() => stop_turn(core),
        SendMode::Steer if core.turn.live.is_some() => core.feed(Input::Steer(true)),
        _ => {}
    }
}

/// Stops the turn alone: agents that it waits for go on in the background.
fn stop_turn(core: &mut Core) {
    core.with_crew(|crew, host| crew.message(host, CrewMsg::Released));
    core.feed(Input::Interrupt { hard: false });
}

/// A write of the queue is done. `write`: its number.
pub(crate) fn accepted(core: &mut Core, write: u64) {
    let ids = core.prompts.queue_writes.done(write);
    let mut changed = false;
    for q in core.prompts.queue.iter_mut().filter(|q| ids.contains(&q.id) && q.state == QueuedState::Queued) {
        q.state = QueuedState::Accepted;
        changed = true;
    }
    if changed {
        core.state(None, StateEvent::QueueChanged { queue: core.prompts.queue.clone() });
    }
}

pub(crate) fn queue_command(core: &mut Core, client: ClientId, cause: CommandId, command: QueueCommand) {
    let id = match &command {
        QueueCommand::Edit { id, .. }
        | QueueCommand::Remove { id }
        | QueueCommand::Move { id, .. }
        | QueueCommand::Mode { id, .. } => *id,
    };
    let Some(at) = core.prompts.queue.iter().position(|q| q.id == id) else {
        return core.refuse(
            client,
            cause,
            Notice::new(NoticeKind::User, "this message is no longer waiting"),
        );
    };
    let mut mode = None;
    // The commands of this message are running: they are stopped.
    let ends = matches!(command, QueueCommand::Edit { .. } | QueueCommand::Remove { .. })
        && waiting::is_held(core, id);
    match command {
        QueueCommand::Edit { mut message, .. } => {
            clean::message(&core.services.redaction.redact, &mut message);
            if let Some(why) = cannot_send(core, &message) {
                return core.refuse(client, cause, why);
            }
            let before = core.prompts.queue[at].mode;
            // The edited message is sent when the turn has been stopped.
            core.prompts.queue[at].mode =
                if ends { SendMode::Now } else { waiting::mode(core, &message, before) };
            core.prompts.queue[at].message = message;
            core.prompts.queue[at].state = QueuedState::Queued;
            core.prompts.queue_writes.edited(id);
            mode = (!core.occupied()).then_some(core.prompts.queue[at].mode);
        }
        QueueCommand::Remove { .. } => {
            core.prompts.queue.remove(at);
        }
        QueueCommand::Move { to, .. } => {
            let q = core.prompts.queue.remove(at);
            let to = to.min(core.prompts.queue.len());
            core.prompts.queue.insert(to, q);
        }
        // It is sent as soon as its commands have run.
        QueueCommand::Mode { .. } if waiting::is_held(core, id) => {}
        QueueCommand::Mode { mode: m, .. } => {
            let m = waiting::mode(core, &core.prompts.queue[at].message, m);
            core.prompts.queue[at].mode = m;
            if m == SendMode::Now {
                let q = core.prompts.queue.remove(at);
                core.prompts.queue.insert(0, q);
            }
            mode = Some(m);
        }
    }
    queue_changed(core, Some(cause));
    core.external_driver().offer_queue();
    if ends {
        stop_turn(core);
    }
    match mode {
        Some(m) if core.occupied() => send_by_mode(core, m),
        Some(SendMode::Steer | SendMode::Now) => send_queued(core, id, None),
        _ => {}
    }
    let steering = core.prompts.steering();
    if core.turn.live.is_some() {
        core.feed(Input::Steer(steering));
    }
}

/// Sends the next waiting message after a turn, if one is due.
pub(crate) fn next_queued(core: &mut Core, status: TurnStatus) {
    let by_itself = matches!(status, TurnStatus::Done | TurnStatus::Refused);
    let next = core.prompts.queue.iter().find(|q| by_itself || q.mode == SendMode::Now).map(|q| q.id);
    if let Some(id) = next {
        send_queued(core, id, None);
    }
}

/// After a job that changed nothing and began no turn: sends the first message that arrived during it. Messages that
/// waited before the job keep waiting. Does nothing while another job or a turn runs.
pub(crate) fn send_behind_job(core: &mut Core) {
    let behind = std::mem::take(&mut core.prompts.behind_job);
    if let Some(id) = behind.into_iter().find(|id| core.prompts.queue.iter().any(|q| q.id == *id)) {
        send_queued(core, id, None);
    }
}

/// Sends a message that waits, unless something runs. `client`: the client that asked for it, with its command; events of the
/// turn have that command.
pub(crate) fn send_queued(core: &mut Core, id: QueueId, client: Option<(ClientId, CommandId)>) {
    if core.occupied() || core.lifecycle.quitting.is_some() || core.session.read_only {
        return;
    }
    if let Some(q) = core.prompts.queue.iter().find(|q| q.id == id) {
        let message = q.message.clone();
        compose::compose(core, Destination::Prompt { client }, vec![(Some(id), message)]);
    }
}
