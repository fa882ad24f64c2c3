//! What the loop does with each report about memory.

use tiller_protocol::{Notice, NoticeKind};

use crate::core::Core;
use crate::memory::msg::MemoryMsg;
use crate::memory::{late, origin};

pub(crate) fn handle(core: &mut Core, msg: MemoryMsg) {
    match msg {
        MemoryMsg::Origin { text, entry, reply } => {
            let work = origin::origin(core, text, entry);
            core.spawn(async move {
                // After a panic the call is answered that its origin is not known.
                if let Ok(origin) = tokio::task::spawn_blocking(work).await {
                    // A call that was dropped does not wait for it.
                    let _ = reply.send(origin);
                }
            });
        }
        MemoryMsg::Ended(sessions) => late::found(core, sessions),
        MemoryMsg::LateChance(chance) => late::over(core, chance),
        MemoryMsg::Moved(Ok(moved)) => {
            if !moved.is_empty() {
                let hint = "/memory and /learnings list them";
                core.notice(Notice::new(NoticeKind::Info, moved.join("; ")).hint(hint));
            }
        }
        MemoryMsg::Moved(Err(error)) => core.notice(
            Notice::new(NoticeKind::User, format!("memory did not follow the branch: {error}"))
                .hint("/memory shows the files"),
        ),
    }
}
