//! Exports a session to a file that the user names. The writer is a port of the engine.

use crate::files::written;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, Notice, NoticeKind, SessionId};

use crate::bus::ClientId;
use crate::core::Core;

/// The path of the file from the typed text.
fn place(root: &Path, home: Option<&str>, file: &str) -> Result<PathBuf, Notice> {
    let file = file.trim();
    if file.is_empty() {
        return Err(Notice::new(NoticeKind::User, "an export needs a file name")
            .hint("Use a name that ends in .md, .html or .jsonl."));
    }
    Ok(match (file.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => root.join(file),
    })
}

pub(crate) fn export(core: &mut Core, client: ClientId, cause: CommandId, id: SessionId, file: &str) {
    let Some(exporter) = core.services.user.exporter.clone() else {
        let notice = Notice::new(NoticeKind::User, "sessions cannot be exported here");
        return core.refuse(client, cause, notice.hint("Use 'tiller sessions export'."));
    };
    let home = core.services.tools.env.now();
    let home = home.iter().find(|(n, _)| n == "HOME").map(|(_, v)| v.as_str());
    let path = match place(&core.services.workspace.root, home, file) {
        Ok(path) => path,
        Err(why) => return core.refuse(client, cause, why),
    };
    let (bus, place, store) =
        (Arc::clone(&core.bus), core.scope_of(Some(cause)), core.services.store.clone());
    let written = written::written(core);
    core.spawn(async move {
        // Waits until all entries are on disk.
        written.await;
        let done = tokio::task::spawn_blocking(move || exporter(&store, id, &path)).await;
        let reply = match done {
            Ok(Ok(said)) => ReplyEvent::DoneReply { said },
            Ok(Err(notice)) => ReplyEvent::ErrorReply { notice },
            Err(_) => ReplyEvent::ErrorReply {
                notice: Notice::new(NoticeKind::Internal, "the session could not be exported"),
            },
        };
        bus.reply(client, &place, reply);
    });
}
