//! Reads of the store that answer one client.

use crate::bus::ClientId;
use crate::core::Core;
use std::sync::Arc;
use std::time::Duration;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, Notice, NoticeKind};
use tiller_store::{Health, StoreError};

/// Longest wait for the writes before a read. After it, the reply holds what is stored until then.
const WRITES: Duration = Duration::from_secs(1);

/// Reads on a thread that may block, and replies to the client. The reply holds what was handed to the store before.
pub(crate) fn read(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    work: impl FnOnce() -> Result<ReplyEvent, StoreError> + Send + 'static,
) {
    read_after(core, client, cause, std::future::ready(()), work);
}

/// Like [`read`], once `before` is done.
pub(crate) fn read_after(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    before: impl Future<Output = ()> + Send + 'static,
    work: impl FnOnce() -> Result<ReplyEvent, StoreError> + Send + 'static,
) {
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    let store = &core.services.store;
    let (written, mut health) = (store.settled(), store.health());
    core.spawn(async move {
        let mut saves = health.clone();
        tokio::select! {
            () = before => {}
            // Writes wait for as long as nothing can be saved; reads do not.
            _ = saves.wait_for(|health| matches!(health, Health::Failing(_))) => {}
        }
        tokio::select! {
            () = written => {}
            _ = health.wait_for(|health| matches!(health, Health::Failing(_))) => {}
            () = tokio::time::sleep(WRITES) => {}
        }
        let reply = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => ReplyEvent::ErrorReply { notice: error.notice() },
            Err(_) => ReplyEvent::ErrorReply {
                notice: Notice::new(NoticeKind::Internal, "the query could not be answered"),
            },
        };
        bus.reply(client, &scope, reply);
    });
}
