//! The chance to save of sessions that ended without it: they were quit, or their process was killed. They get it at the next start
//! in the same folder, one after the other, while no turn of the user's runs: a request ends when one begins, and is made
//! again after it.

use tiller_protocol::{SessionId, Time, names};
use tiller_store::{Filter, MadeBy, Store};

use crate::context::msg::ContextMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::memory::msg::{LateChance, MemoryMsg};
use crate::memory::save::{self, MemorySave};

/// Sessions that get their chance at one start, at most, and those that are looked at for it.
const SESSIONS: usize = 5;
const LOOKED_AT: u32 = 50;
/// Requests in a row that no model answered, after which no more are made until the next start.
const FAILURES: usize = 2;
/// A session that was used longer ago has lost its chance, in milliseconds.
const LATEST: i64 = 7 * 24 * 3_600 * 1_000;

/// Looks for sessions of this folder that ended lately. Does not wait for it.
pub(crate) fn begin(core: &mut Core) {
    if chance(core).is_none() {
        return;
    }
    let (store, tx, open) = (core.services.store.clone(), core.tx.clone(), core.session.id);
    let project = names::written(&core.services.workspace.root);
    let since = Time(core.services.clock.now().millis().saturating_sub(LATEST));
    core.spawn(async move {
        let found = tokio::task::spawn_blocking(move || ended(&store, project, open, since)).await;
        // After a panic the sessions keep their chances.
        let found = found.unwrap_or_default();
        if !found.is_empty() {
            let _ = tx.send(Msg::Context(ContextMsg::Memory(MemoryMsg::Ended(found)))).await;
        }
    });
}

/// Sessions of a folder that were used since a time and are not open anywhere, the latest first.
fn ended(store: &Store, project: String, open: SessionId, since: Time) -> Vec<SessionId> {
    let filter = Filter { project: Some(project), limit: LOOKED_AT, ..Filter::default() };
    let all = store.sessions().list(&filter).unwrap_or_default();
    let ended = all.into_iter().filter(|s| s.id != open && s.open_in.is_none() && s.used >= since);
    ended.map(|s| s.id).collect()
}

/// The request, without a session yet. `None`: there is no model for it, or its budget is used up.
fn chance(core: &mut Core) -> Option<MemorySave> {
    let by_person = core.services.made_by == MadeBy::Person && core.lifecycle.quitting.is_none();
    if by_person { save::prepare(core, Vec::new(), save::is_worthwhile) } else { None }
}

/// The sessions that may get their chance are known.
pub(crate) fn found(core: &mut Core, sessions: Vec<SessionId>) {
    let late = &mut core.context.late;
    (late.waiting, late.left) = (sessions.into(), SESSIONS);
    next(core);
}

/// Gives the next session its chance, unless one is being asked about, or a turn or a job runs: their end calls this again.
pub(crate) fn next(core: &mut Core) {
    if core.context.late.asking.is_some() || core.occupied() {
        return;
    }
    let open = core.session.id;
    let late = &mut core.context.late;
    if late.left == 0 {
        late.waiting.clear();
    }
    late.waiting.retain(|session| *session != open);
    let Some(session) = late.waiting.pop_front() else { return finish(core) };
    // The budget may be used up since the last one.
    let Some(save) = chance(core) else {
        core.context.late.waiting.clear();
        return finish(core);
    };
    core.context.late.asking = Some(save.canceller());
    let tx = core.tx.clone();
    core.spawn(async move {
        let came = given(save, session).await;
        let _ = tx.send(Msg::Context(ContextMsg::Memory(MemoryMsg::LateChance(came)))).await;
    });
}

async fn given(save: MemorySave, session: SessionId) -> LateChance {
    let (store, now) = (save.store(), save.now());
    let ended = tokio::task::spawn_blocking(move || save::ended(&store, session, now)).await;
    let Ok(Some(ended)) = ended else { return LateChance::Skipped };
    save.of(ended).ask().await
}

/// One session had its chance, or was skipped, or keeps it.
pub(crate) fn over(core: &mut Core, came: LateChance) {
    let late = &mut core.context.late;
    late.asking = None;
    match came {
        LateChance::Skipped => {}
        LateChance::Asked(kept) => {
            late.left = late.left.saturating_sub(1);
            late.failures = 0;
            late.kept.extend(kept);
        }
        // The next start asks about it again.
        LateChance::Failed => {
            late.failures += 1;
            if late.failures >= FAILURES {
                late.waiting.clear();
            }
        }
        // The request may have a price: it counts as one.
        LateChance::Cancelled(session) => {
            late.left = late.left.saturating_sub(1);
            late.waiting.push_front(session);
        }
    }
    next(core);
}

/// Shows what was kept of all sessions in one notice.
fn finish(core: &mut Core) {
    let kept = std::mem::take(&mut core.context.late.kept);
    if let Some(notice) = save::notice(&kept) {
        core.notice(notice);
    }
}
