//! Search for a client that types: a later search of the same client cancels the one before.

use std::sync::Arc;

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, SearchPage, SearchQuery};
use tiller_store::StoreError;
use tiller_store::search::Lookup;

use crate::bus::ClientId;
use crate::bus::queries::{INDEXED, ROWS};
use crate::core::Core;

/// Searches and replies. A search that was cancelled is answered, too, with a page that says so.
pub(crate) fn search(core: &mut Core, client: ClientId, cause: CommandId, query: SearchQuery) {
    let Some(finder) = core.services.user.search.clone() else { return };
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    let query = SearchQuery { limit: query.limit.min(ROWS), ..query };
    let lookup = Lookup { most: INDEXED, ..Lookup::prompt() };
    // Called here: tasks may begin in another order than that of the keystrokes.
    let found = finder.search(query.clone(), lookup, Some(client.0));
    core.spawn(async move {
        let reply = match found.await {
            Ok(page) => {
                if page.behind > 0 {
                    finder.refresh();
                }
                ReplyEvent::SearchReply { query, page }
            }
            Err(StoreError::Cancelled) => {
                let page = SearchPage { cancelled: true, ..SearchPage::default() };
                ReplyEvent::SearchReply { query, page }
            }
            Err(error) => ReplyEvent::ErrorReply { notice: error.notice() },
        };
        bus.reply(client, &scope, reply);
    });
}
