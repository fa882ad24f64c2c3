//! What the loop does with each report about the questions.

use crate::core::Core;
use crate::questions::answers;
use crate::questions::asking;
use crate::questions::keys;
use crate::questions::msg::QuestionMsg;
use crate::questions::skill_offer;
use crate::questions::trust;
use crate::session::settings;
use tiller_protocol::EventBody;
use tiller_protocol::event::AskEvent;

pub(crate) fn handle(core: &mut Core, msg: QuestionMsg) {
    match msg {
        QuestionMsg::Ask { agent, call, body, reply } => asking::ask(core, agent, call, *body, reply),
        QuestionMsg::Answered { about, reply } => answers::answered(core, about, reply),
        QuestionMsg::Closed => core.child_driver().question_closed(),
        QuestionMsg::Decided { tool, what, decision, by, allow, change } => {
            let decided = AskEvent::PermissionDecided { id: None, tool, what, decision, by, allow, change };
            core.bus.publish(&core.scope(), EventBody::Ask(decided));
        }
        QuestionMsg::TrustLost { settings } => trust::lost(core, settings),
        QuestionMsg::Trusted { yes, result } => trust::trusted(core, yes, result),
        QuestionMsg::SkillOffer => skill_offer::ask(core),
        QuestionMsg::KeyTried(tried) => keys::key_tried(core, *tried),
        QuestionMsg::SettingsRead(read) => settings::settings_read(core, *read),
    }
}
