//! The chance to save of sessions that ended without it: they were quit, or their process was killed. They get it at the next start
//! in the same folder, one after the other, while no turn of the user's runs: a request ends when one begins, and is made
//! again after it.

use tiller_protocol::{SessionId, Time, names};
use tiller_store::{Filter, MadeBy, Store};

use crate::context::msg::ContextMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::memory::msg::{EndedSession, LateChance, MemoryMsg};
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
    let by_person = core.services.made_by == MadeBy::Person && core.lifecycle.quitting.is_none();
    if !by_person || !save::is_on(core) {
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
fn ended(store: &Store, project: String, open: SessionId, since: Time) -> Vec<EndedSession> {
    let filter = Filter { project: Some(project), limit: LOOKED_AT, ..Filter::default() };
    let all = store.sessions().list(&filter).unwrap_or_default();
    let ended = all.into_iter().filter(|s| s.id != open && s.open_in.is_none() && s.used >= since);
    ended.map(|s| EndedSession { id: s.id, model: s.model }).collect()
}

/// The request, without the words of the session yet. `None`: its model cannot be asked, or the budget is used up.
fn chance(core: &mut Core, session: &EndedSession) -> Option<MemorySave> {
    if core.lifecycle.quitting.is_some() {
        return None;
    }
    save::prepare(core, &session.model, Vec::new(), save::is_worthwhile)
}

/// The sessions that may get their chance are known.
pub(crate) fn found(core: &mut Core, sessions: Vec<EndedSession>) {
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
    late.waiting.retain(|session| session.id != open);
    // A session whose model cannot be asked now keeps its chance: another model does not get to see it.
    let (session, save) = loop {
        let Some(session) = core.context.late.waiting.pop_front() else { return finish(core) };
        if let Some(save) = chance(core, &session) {
            break (session, save);
        }
    };
    let id = session.id;
    core.context.late.asking = Some((session, save.canceller()));
    let tx = core.tx.clone();
    core.spawn(async move {
        let came = given(save, id).await;
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
    let asked = late.asking.take();
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
        LateChance::Cancelled => {
            late.left = late.left.saturating_sub(1);
            if let Some((session, _)) = asked {
                late.waiting.push_front(session);
            }
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
