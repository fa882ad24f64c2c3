//! Hooks for what is no call of a tool: sessions, prompts, answers, agents, files, questions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use serde_json::{Map, Value, json};
use tiller_hooks::{HookAnswer, HookScene, Hooks};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentId, AskBody, CommandId, EventBody, FileChange, HookEvent, Notice, NoticeKind, Part, SessionId, Who,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::{Bus, ClientId, EventScope};
use crate::core::Core;

/// Time that the hooks of a session's end have when Tiller ends.
const LAST: Duration = Duration::from_millis(2500);
/// Time after a run for changed files in which changes run no hook: they may be its own.
const OWN_CHANGES: Duration = Duration::from_secs(1);
/// Most changed files in the input of one run.
const CHANGES: usize = 500;

/// Texts of hooks for the end of a message, each with its hook.
pub(crate) type AddedTexts = Vec<(String, String)>;

/// The hooks of a session that was opened, at work: what they add to its first message.
pub(crate) type OpenedHooks = Shared<BoxFuture<'static, AddedTexts>>;

/// A run of the hooks of one event, on a task that may wait.
pub(crate) struct HookJob {
    hooks: Hooks,
    event: HookEvent,
    session: SessionId,
    agent: AgentId,
    folder: PathBuf,
    bus: Arc<Bus>,
    scope: EventScope,
}

impl HookJob {
    /// Runs them. `about`: an object with the fields of the event. Dropping the future ends the running hook.
    pub(crate) async fn run(&self, about: Value) -> HookAnswer {
        let about = if let Value::Object(fields) = about { fields } else { Map::new() };
        let scene = HookScene {
            event: self.event,
            session: self.session,
            agent: &self.agent,
            folder: &self.folder,
            profile: None,
        };
        let mut answer = self.hooks.fire(scene, about, &CancellationToken::new()).await;
        for notice in std::mem::take(&mut answer.notices) {
            self.bus.publish(&self.scope, EventBody::State(StateEvent::Notice { notice }));
        }
        answer
    }

    /// The content of a message after the hooks: denied, or with their texts at its end.
    pub(crate) async fn message(&self, text: &str, content: Vec<Part>) -> Result<Vec<Part>, Notice> {
        let about = match self.event {
            HookEvent::AgentStart => json!({ "task": text }),
            _ => json!({ "prompt": text }),
        };
        let answer = self.run(about).await;
        if let Some(denial) = answer.deny {
            return Err(Notice::new(NoticeKind::Denied, denial.words()));
        }
        Ok(with_texts(content, answer.add))
    }
}

/// Text of a hook, at the end of a result or a message.
pub(crate) fn added_text(hook: &str, text: &str) -> String {
    format!("[Hook {hook}: {text}]")
}

/// Adds texts of hooks at the end.
pub(crate) fn with_texts(mut content: Vec<Part>, added: AddedTexts) -> Vec<Part> {
    content.extend(added.iter().map(|(hook, text)| Part::Text { text: added_text(hook, text) }));
    content
}

/// The hooks of an event, for a task; `None`: there are none.
pub(crate) fn job(core: &Core, event: HookEvent) -> Option<HookJob> {
    let hooks = core.services.hooks.clone();
    hooks.any(event).then(|| HookJob {
        hooks,
        event,
        session: core.session.id,
        agent: core.identity.id.clone(),
        folder: core.services.workspace.root.clone(),
        bus: Arc::clone(&core.bus),
        scope: core.scope(),
    })
}

/// Runs the hooks of an event whose answer changes nothing. They end with the engine.
pub(crate) fn fire(core: &mut Core, event: HookEvent, about: Value) {
    if let Some(job) = job(core, event) {
        core.spawn(async move { drop(job.run(about).await) });
    }
}

/// A session was opened: its hooks begin.
pub(crate) fn opened(core: &mut Core, resumed: bool) {
    let source = if resumed { "resumed" } else { "new" };
    core.prompts.opened = job(core, HookEvent::SessionStart).map(|job| {
        let about = json!({ "source": source });
        let task = AbortOnDropHandle::new(tokio::spawn(async move { job.run(about).await.add }));
        async move { task.await.unwrap_or_default() }.boxed().shared()
    });
}

/// The session is left for another one.
pub(crate) fn left(core: &mut Core) {
    fire(core, HookEvent::SessionEnd, json!({ "reason": "other session" }));
}

/// The engine ends: the hooks of the session's end have a moment.
pub(crate) fn last(core: &Core) -> impl Future<Output = ()> + use<> {
    let job = job(core, HookEvent::SessionEnd).filter(|_| core.identity.owns_session());
    async move {
        if let Some(job) = job
            && tokio::time::timeout(LAST, job.run(json!({ "reason": "quit" }))).await.is_err()
        {
            tracing::warn!("the hooks of session-end took too long");
        }
    }
}

/// Turns a hook off or on.
pub(crate) fn switch(core: &mut Core, client: ClientId, cause: CommandId, id: &str, on: bool) {
    if !core.services.hooks.switch(id, on) {
        core.refuse(client, cause, Notice::new(NoticeKind::User, "there is no such hook any more"));
    }
}

/// A question is shown to the user.
pub(crate) fn asked(core: &mut Core, agent: &AgentId, body: &AskBody) {
    let message = match body {
        AskBody::Permission(ask) => format!("{}: a call of {} needs your approval", agent.name(), ask.tool),
        AskBody::Clarify { question, .. } => question.clone(),
        _ => format!("{} has a question", agent.name()),
    };
    fire(core, HookEvent::Notification, json!({ "kind": "question", "message": message }));
}

/// Files were changed. Changes during a run, and shortly after it, run no hook: they may be its own. Where the watcher is
/// there for hooks alone, those by agents are kept for the next run, or for the end.
pub(crate) fn files_changed(core: &mut Core, changes: &[FileChange]) {
    let Some(job) = job(core, HookEvent::FileChanged) else { return };
    if !core.services.hooks.follows(changes.iter().map(|c| c.path.as_str())) {
        return;
    }
    let busy: Arc<AtomicBool> = Arc::clone(&core.watching.hook_busy);
    if busy.swap(true, Ordering::AcqRel) {
        return keep_missed(core, changes);
    }
    let mut all = std::mem::take(&mut core.watching.hook_missed);
    all.extend_from_slice(changes);
    let about = changes_of(&all);
    let at_work = Arc::clone(&core.watching.hook_run).try_lock_owned().ok();
    core.spawn(async move {
        let _free = Free(busy);
        drop(job.run(about).await);
        drop(at_work);
        tokio::time::sleep(OWN_CHANGES).await;
    });
}

fn changes_of(changes: &[FileChange]) -> Value {
    json!({ "changes": &changes[..changes.len().min(CHANGES)] })
}

/// Keeps the changes by agents that came during a run, the last one of each file.
fn keep_missed(core: &mut Core, changes: &[FileChange]) {
    if !core.watching.writes.is_for_hooks() {
        return;
    }
    for change in changes {
        let by_agent = matches!(change.who, Who::Agent { .. } | Who::Shell { .. });
        if by_agent && core.services.hooks.follows(std::iter::once(change.path.as_str())) {
            let missed = &mut core.watching.hook_missed;
            missed.retain(|kept| kept.path != change.path);
            if missed.len() < CHANGES {
                missed.push(change.clone());
            }
        }
    }
}

/// The run for changes that no run has had, at the end; `None`: there are none.
pub(crate) fn last_run(core: &mut Core) -> Option<impl Future<Output = ()> + use<>> {
    let missed = std::mem::take(&mut core.watching.hook_missed);
    let job = job(core, HookEvent::FileChanged).filter(|_| !missed.is_empty())?;
    Some(async move { drop(job.run(changes_of(&missed)).await) })
}

/// Lets the next changes run hooks when it is dropped.
struct Free(Arc<AtomicBool>);

impl Drop for Free {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
