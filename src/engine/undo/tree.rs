//! Queries of the tree browser. The store is read away from the engine's task; states of files are compared by their
//! own thread.

use crate::bus::read;
use crate::files::written;
use std::sync::Arc;

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tree::{EntryPreview, TreeQuery, TreeReply};
use tiller_protocol::{CommandId, EntryBody, EntryId, Notice, NoticeKind};
use tiller_snapshot::{Change, Id, UnkeptChange};
use tiller_store::{Result, Store};

use crate::bus::ClientId;
use crate::bus::queries::INDEXED;
use crate::core::Core;
use crate::files::did;
use crate::files::restore::back;

/// Characters of an entry in a preview; most rows of one query.
const TEXT: usize = 16_000;
const ROWS: usize = 500;

pub(crate) fn tree_query(core: &mut Core, client: ClientId, cause: CommandId, query: TreeQuery) {
    let store = core.services.store.clone();
    let here = (core.session.id, core.session.head.name.clone());
    let project = tiller_protocol::names::written(&core.services.workspace.root);
    match query {
        TreeQuery::Nodes { session } => tree_read(core, client, cause, move || {
            let mut tree = store.tree().load(session.unwrap_or(here.0))?;
            if tree.session == here.0 {
                // Another window may have moved to another branch since.
                tree.heads.iter_mut().for_each(|h| h.current = h.name == here.1);
            }
            Ok(TreeReply::Nodes { tree: Arc::new(tree) })
        }),
        // The files that the last calls changed are stored after their turn has ended.
        TreeQuery::Marks { session } => {
            read::read_after(core, client, cause, written::written(core), move || {
                let marks = store.tree().marks(session)?;
                Ok(ReplyEvent::TreeReply { reply: TreeReply::Marks { session, marks } })
            })
        }
        TreeQuery::Lines { entries } => tree_read(core, client, cause, move || {
            let some = &entries[..entries.len().min(ROWS)];
            Ok(TreeReply::Lines { lines: store.tree().lines(some)? })
        }),
        TreeQuery::Find { text, everywhere } => tree_read(core, client, cause, move || {
            let project = (!everywhere).then_some(project.as_str());
            let found = store.search().find_in_trees(&text, project, INDEXED)?;
            Ok(TreeReply::Find { text, everywhere, found })
        }),
        TreeQuery::Preview { entry } => tree_preview(core, client, cause, entry, project),
    }
}

fn tree_read(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    work: impl FnOnce() -> Result<TreeReply> + Send + 'static,
) {
    read::read(core, client, cause, move || Ok(ReplyEvent::TreeReply { reply: work()? }));
}

fn tree_preview(core: &mut Core, client: ClientId, cause: CommandId, entry: EntryId, project: String) {
    let (bus, scope, store) =
        (Arc::clone(&core.bus), core.scope_of(Some(cause)), core.services.store.clone());
    let (keeper, written) = (core.services.snapshots.workspace.clone(), written::written(core));
    core.spawn(async move {
        written.await;
        let read = tokio::task::spawn_blocking(move || words(&store, entry, &project)).await;
        let (mut preview, states) = match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                return bus.reply(client, &scope, ReplyEvent::ErrorReply { notice: error.notice() });
            }
            Err(_) => {
                let notice = Notice::new(NoticeKind::Internal, "the entry could not be read");
                return bus.reply(client, &scope, ReplyEvent::ErrorReply { notice });
            }
        };
        match (keeper, states) {
            (Some(keeper), Some((from, to))) if from != to => {
                let compared = keeper.run(move |s| {
                    let diffs = s.compare(from, to)?;
                    let known = || diffs.iter().filter(|d| d.change != Change::Unknown);
                    let files: Vec<_> = known().take(back::LISTED).map(|d| back::compared(s, d)).collect();
                    let unkept: Vec<_> =
                        s.unkept(from, to)?.into_iter().filter(UnkeptChange::is_loss).collect();
                    Ok((known().count() - files.len(), files, back::unkept_files(&unkept)))
                });
                match compared.await {
                    Ok((more, files, unkept)) => {
                        (preview.more, preview.files) = (more, files);
                        let note = |files| format!("changed, but not covered by checkpoints: {files}");
                        preview.notes.extend(unkept.map(note));
                    }
                    Err(error) => preview.notes.push(error.notice().message),
                }
            }
            (None, Some((from, to))) if from != to => {
                preview.notes.push("no snapshots are kept for this folder".into());
            }
            _ => {}
        }
        let reply = TreeReply::Preview { preview: Box::new(preview) };
        bus.reply(client, &scope, ReplyEvent::TreeReply { reply });
    });
}

/// The text of an entry, and the states to compare.
fn words(store: &Store, id: EntryId, project: &str) -> Result<(EntryPreview, Option<(Id, Id)>)> {
    let entry = store.entries().get(id)?;
    let all = entry.body.search_text();
    let text: String = all.chars().take(TEXT).collect();
    let cut = text.len() < all.len();
    let mut preview = EntryPreview { entry: id, text, cut, files: Vec::new(), more: 0, notes: Vec::new() };
    if matches!(entry.body, EntryBody::Prefix { .. }) {
        return Ok((preview, None));
    }
    let elsewhere = store.sessions().get(entry.session)?.summary.project;
    if elsewhere != project {
        preview.notes.push(format!("its files are in {elsewhere}: start Tiller there to compare them"));
        return Ok((preview, None));
    }
    preview.notes = did::others(store, &entry)?;
    let states = did::states(store, &entry)?;
    if states.is_none() {
        preview.notes.push("there is no snapshot of the files at that point".into());
    }
    Ok((preview, states))
}
