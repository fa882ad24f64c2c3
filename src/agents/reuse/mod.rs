//! An earlier result is used again for a task that is the same, or alike, while the files that it comes from are unchanged.
//!
//! | file | contents |
//! | --- | --- |
//! | `likeness` | how alike two tasks are |
//!
//! Off unless the settings (`agents.reuse`) or the task itself say otherwise; a task with `reuse: false` is always done.

mod likeness;

use std::path::PathBuf;

use tiller_config::schema::Reuse;
use tiller_engine::crew::{HostChildren, HostSettings, HostTasks, stamp};
use tiller_protocol::{AgentId, AgentState, EntryId, names};
use tiller_tool::crew::{Brief, CrewReply, Report};

use crate::driver::CrewDriver;
use crate::msg::{MemberTaskMsg, TaskMsg};
use crate::roster::member::Member;
use crate::workflow::state::CrewReplySender;

/// A request to run a task, which waits until it is known whether an earlier result still holds.
pub(crate) struct ReuseCheck {
    pub(crate) by: AgentId,
    pub(crate) from: (String, Option<EntryId>),
    pub(crate) brief: Brief,
    pub(crate) reply: CrewReplySender,
    pub(crate) holds: bool,
}

/// How far an earlier result may be used for this task.
fn reuse_of(driver: &CrewDriver<'_>, brief: &Brief) -> Reuse {
    let set = driver.host.config().agents.reuse;
    match brief.reuse {
        Some(false) => Reuse::Off,
        Some(true) => set.max(Reuse::Same),
        // Critics and steps of workflows are asked because something changed.
        None if brief.bare || brief.step.is_some() => Reuse::Off,
        None => set,
    }
}

/// Runs a task: looks for an earlier result first, where that may be used.
pub(crate) fn run_or_reuse(
    driver: &mut CrewDriver<'_>,
    by: &AgentId,
    from: (String, Option<EntryId>),
    brief: Brief,
    reply: CrewReplySender,
) {
    let Some(earlier) = earlier(driver, by, &brief) else { return driver.run_brief(by, from, brief, reply) };
    let Some(member) = driver.crew.members.get(&earlier) else { return };
    let (inputs, before) = (member.order.inputs.clone().unwrap_or_default(), member.order.stamp.clone());
    let (folder, session) = (folder_of(driver, member), member.session);
    let mailbox = driver.mailbox();
    let by = by.clone();
    driver.host.spawn(async move {
        let holds = tokio::task::spawn_blocking(move || inputs.hold(&folder, before.as_deref())).await;
        let holds = holds.unwrap_or(false);
        let check = Box::new(ReuseCheck { by, from, brief, reply, holds });
        let msg = TaskMsg::Member { id: earlier, session, msg: MemberTaskMsg::Reuse(check) };
        let _ = mailbox.send(msg).await;
    });
}

/// It is known whether the earlier result of `id` holds.
pub(crate) fn reuse_checked(driver: &mut CrewDriver<'_>, id: &AgentId, check: ReuseCheck) {
    let ReuseCheck { by, from, brief, reply, holds } = check;
    if reply.is_closed() {
        // The call has ended meanwhile.
        return;
    }
    match driver.crew.members.get(id).and_then(|m| m.report.clone()).filter(|r| holds && r.done()) {
        Some(report) => {
            let label = driver.label(&brief);
            let report = Report { reused: true, label, ..report };
            let _ = reply.send(Ok(CrewReply::Report(Box::new(report))));
            driver.start_waiting();
        }
        None => driver.run_brief(&by, from, brief, reply),
    }
}

/// The agent that did this task, or one that is alike enough; of several the one whose task is most alike, then the newest.
fn earlier(driver: &CrewDriver<'_>, by: &AgentId, brief: &Brief) -> Option<AgentId> {
    let how = reuse_of(driver, brief);
    if how == Reuse::Off || brief.isolated || brief.board.is_some() {
        return None;
    }
    let least =
        if how == Reuse::Alike { driver.host.config().agents.reuse_likeness.clamp(0.5, 1.0) } else { 1.0 };
    let wanted = driver.resolve_backend(brief.clone());
    let model = match &wanted.cli {
        Some(_) => None,
        None => {
            let role = wanted.agent.as_ref().and_then(|name| driver.host.roles().get(name).cloned());
            Some(driver.choose_model(by, wanted.model.as_deref(), role.as_ref().map(|r| &r.pick)).ok()?)
        }
    };
    let rest = |b: &Brief| Brief {
        goal: String::new(),
        context: String::new(),
        label: None,
        todo: None,
        reuse: None,
        step: None,
        // The model that it comes to is compared.
        model: b.model.clone().filter(|_| b.cli.is_some()),
        terminal: b.terminal.clone().filter(|name| name != "local"),
        ..b.clone()
    };
    let text = |b: &Brief| format!("{}\n{}", b.goal.trim(), b.context.trim());
    let (same, words) = (rest(&wanted), text(&wanted));
    let alike = |m: &Member| -> Option<f64> {
        let usable = m.state() == AgentState::Done && m.report.is_some() && !m.stopping;
        if !usable
            || rest(&m.order.brief) != same
            || model.as_ref().is_some_and(|model| *model != m.order.model)
        {
            return None;
        }
        let theirs = text(&m.order.brief);
        // Without likeness the words must be the same, all of them.
        if how != Reuse::Alike && !theirs.split_whitespace().eq(words.split_whitespace()) {
            return None;
        }
        let likeness = likeness::likeness(&theirs, &words);
        (likeness >= least).then_some(likeness)
    };
    let rated = driver.crew.members.values().filter_map(|m| Some((alike(m)?, m.created, &m.id)));
    rated.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, _, id)| id.clone())
}

/// The folder that a member works in.
fn folder_of(driver: &CrewDriver<'_>, member: &Member) -> PathBuf {
    match member.order.folder.as_str() {
        "" => driver.host.workspace(),
        folder => names::path(folder),
    }
}

/// Whether the state of its folder is noted before a member starts, so that its result can be used again.
pub(crate) fn needs_stamp(driver: &CrewDriver<'_>, member: &Member) -> bool {
    let brief = &member.order.brief;
    member.order.fresh
        && member.order.stamp.is_none()
        && !brief.isolated
        && reuse_of(driver, brief) != Reuse::Off
}

/// Notes the state of a member's folder, then starts it.
pub(crate) fn note_stamp(driver: &mut CrewDriver<'_>, id: AgentId) {
    let Some(member) = driver.crew.members.get(&id) else { return };
    let (folder, session, mailbox) = (folder_of(driver, member), member.session, driver.mailbox());
    driver.set_state(&id, AgentState::Running);
    driver.host.spawn(async move {
        let made = tokio::task::spawn_blocking(move || stamp(&folder)).await.ok().flatten();
        let msg = MemberTaskMsg::Stamp(made.unwrap_or_default());
        let _ = mailbox.send(TaskMsg::Member { id, session, msg }).await;
    });
}

/// The state of a member's folder is noted; an empty one could not be.
pub(crate) fn stamp_noted(driver: &mut CrewDriver<'_>, id: &AgentId, stamp: String) {
    let Some(member) = driver.crew.members.get_mut(id) else { return };
    let waits = member.handle.is_none() && member.state() == AgentState::Running;
    member.order.stamp = Some(stamp);
    if waits {
        driver.launch(id);
    }
}
