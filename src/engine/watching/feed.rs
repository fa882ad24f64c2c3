//! Changes that the watcher reports go to the feed; changes by others also go to the model.

use crate::prompts::comments;
use std::sync::Arc;

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{ChangeKind, CommandId, Notice, NoticeKind, Who};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::hooks;
use crate::core::services::WatchReport;
use crate::watching::{DURING, FEED};

pub(crate) fn seen(core: &mut Core, mut seen: WatchReport) {
    if let Some(notice) = seen.notice {
        core.notice(notice);
    }
    if let Some(git) = seen.git
        && core.watching.git.as_ref() != Some(&git)
    {
        let before = core.watching.git.replace(git.clone());
        if let Some(before) = before
            && before.branch != git.branch
            && core.session.has_words()
        {
            core.context.news.set("git", format!("the git branch is now {}", git.branch));
        }
        core.state(None, StateEvent::GitChanged { git });
        keep_branch(core);
    }
    if seen.changes.is_empty() {
        return;
    }
    for change in &mut seen.changes {
        // One line of the command, without secrets.
        change.during = change.during.take().map(|d| {
            crate::tool_call::cut(&core.redact(&d).split_whitespace().collect::<Vec<_>>().join(" "), DURING)
        });
    }
    if seen.changes.iter().any(|c| c.kind != ChangeKind::Modified) {
        core.prompts.finder.stir();
    }
    for change in &seen.changes {
        // The model gets changes of files that it knows from `Watcher::stale`, even where the feed has none.
        let others = matches!(change.who, Who::You | Who::Git);
        if others && change.kind == ChangeKind::Storm && core.session.has_words() {
            core.context.news.set(
                "storm",
                format!("{} files under {} were changed by someone else", change.count, change.path),
            );
        }
    }
    core.with_crew(|crew, host| crew.files_changed(host, &seen.changes));
    hooks::files_changed(core, &seen.changes);
    comments::look_for_comments(core, &seen.changes);
    core.watching.feed.extend(seen.changes.iter().cloned());
    let new = seen.changes.len();
    if core.turn.live.is_none()
        && let Some(last) = core.session.history.turns.last()
    {
        // A change of the turn that has ended, seen late: its figures are in the feed already.
        last.settle(&core.identity.id, core.watching.feed.iter_mut());
        let late = core.watching.feed.iter().skip(core.watching.feed.len() - new);
        seen.changes = late.cloned().collect();
    }
    let over = core.watching.feed.len().saturating_sub(FEED);
    core.watching.feed.drain(..over);
    core.state(None, StateEvent::WorkspaceChanged { changes: seen.changes });
}

/// Stores the git branch for the lists of sessions, once the session has a message.
pub(crate) fn keep_branch(core: &mut Core) {
    let Some(git) = &core.watching.git else { return };
    let own = core.identity.owns_session() && !core.session.read_only && core.session.has_words();
    if own && core.session.info.git_branch != git.branch {
        core.session.info.git_branch.clone_from(&git.branch);
        // A failure is reported by the writes of the turn.
        drop(core.services.store.sessions().set_git_branch(core.session.id, &git.branch));
    }
}

pub(crate) fn watch_diff(core: &mut Core, client: ClientId, cause: CommandId, path: String) {
    let Some(watcher) = core.watching.writes.watcher.clone() else {
        let notice = Notice::new(NoticeKind::User, "watching is turned off");
        return core.refuse(client, cause, notice);
    };
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    core.spawn(async move {
        let asked = path.clone();
        let diff = tokio::task::spawn_blocking(move || watcher.diff(&asked)).await;
        let reply = match diff {
            Ok(Ok(diff)) => ReplyEvent::DiffReply { path, diff },
            Ok(Err(why)) => ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, why) },
            Err(_) => ReplyEvent::ErrorReply {
                notice: Notice::new(NoticeKind::Internal, "the difference could not be computed"),
            },
        };
        bus.reply(client, &scope, reply);
    });
}
