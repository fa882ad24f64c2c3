//! What the loop does with each report about memory.

use tiller_protocol::{Notice, NoticeKind};

use crate::core::Core;
use crate::memory::msg::MemoryMsg;
use crate::memory::origin;

pub(crate) fn handle(core: &mut Core, msg: MemoryMsg) {
    match msg {
        MemoryMsg::Origin { text, entry, reply } => {
            // A call that was dropped does not wait for it.
            let _ = reply.send(origin::origin(core, &text, entry));
        }
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
