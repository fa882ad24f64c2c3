//! What the loop does with each report about the context.

use crate::context::compaction;
use crate::context::msg::ContextMsg;
use crate::context::side_call;
use crate::core::Core;
use crate::memory;
use crate::prompts::aside;
use crate::prompts::titles;

pub(crate) fn handle(core: &mut Core, msg: ContextMsg) {
    match msg {
        ContextMsg::Compacted(done) => compaction::compacted(core, *done),
        ContextMsg::Aside(done) => aside::aside_done(core, *done),
        ContextMsg::TitleFound { session, title } => titles::title_found(core, session, &title),
        ContextMsg::Memory(msg) => memory::handle::handle(core, msg),
        ContextMsg::SideCall(msg) => side_call::side_msg(core, msg),
    }
}
