//! What follows for skills from the end of a turn: the skills that it used are counted, and after a long task that
//! succeeded the user is asked once whether to save how it was done as a skill.

use tiller_config::schema::{SkillApproval, SkillOffer};
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AskBody, AskReply, CommandId, Notice, NoticeKind, QueueId, Queued};
use tiller_store::{MadeBy, SkillUse, SkillUseKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::follow_up::FollowUp;
use crate::core::msg::Msg;
use crate::core::services::Human;
use crate::prompts::queue;
use crate::questions::about::About;
use crate::questions::asking;
use crate::questions::msg::QuestionMsg;
use crate::turn::part::RunningTurn;
use crate::turn::record::{SKILLS, TurnRecord};

/// Successful calls of a turn after which the offer is made.
const CALLS: u32 = 5;
/// The name of the fact that holds a refusal for good.
const KEY: &str = "skill-offer";
const NEVER: &str = "never";
/// The tool that writes a skill.
const WRITE: &str = "skill_manage";

const SAVE: &str = "Save it: the agent writes a draft, and you see it before it is stored";
const NOT_NOW: &str = "Not now";
const NEVER_AGAIN: &str = "Never offer this again";

/// The message to the model after a yes.
const TASK: &str = "Save how this task was done as a skill with skill_manage, so that the next task of this kind goes \
                    faster. Say in its description when to use it. Give the exact steps, commands and pitfalls that \
                    mattered, and how to know that it is done. Leave out what was particular to this case.";

/// The turn has ended.
pub(crate) fn turn_over(core: &mut Core, turn: &RunningTurn, status: TurnStatus) {
    count(core, turn, status);
    if offers(core, &turn.record, status) {
        core.turn.offered = Some(core.session.id);
        let (tx, store) = (core.tx.clone(), core.services.store.clone());
        core.spawn(async move {
            let kept = tokio::task::spawn_blocking(move || store.meta(KEY)).await;
            if matches!(kept, Ok(Ok(None))) {
                let _ = tx.send(Msg::Question(QuestionMsg::SkillOffer)).await;
            }
        });
    }
}

/// Stores which skills the turn used, how it ended and what it cost.
fn count(core: &mut Core, turn: &RunningTurn, status: TurnStatus) {
    // A run that leaves no trace, such as that of a trial.
    if core.services.made_by == MadeBy::Ephemeral {
        return;
    }
    let skills = core.services.skills();
    let known = |name: &str| skills.get(name).is_some();
    // Text of others calls no skill, so that it counts none.
    let prompt = if turn.of_others { "" } else { turn.prompt.as_str() };
    let named = prompt.split_whitespace().filter_map(|word| word.strip_prefix('$'));
    let mut named: Vec<&str> = named.map(|word| word.trim_end_matches([',', '.', ':', '?', '!'])).collect();
    named.retain(|name| known(name));
    named.sort_unstable();
    named.dedup();
    let person = named.iter().map(|name| ((*name).to_owned(), SkillUseKind::Person));
    let own = turn.record.skills.iter().filter(|name| known(name) && !named.contains(&name.as_str()));
    let own = own.map(|name| (name.clone(), SkillUseKind::Agent));
    let session = core.session.id;
    let sum = turn.end.sum.clone().unwrap_or_default();
    let row = |(skill, kind)| SkillUse {
        skill,
        session,
        kind,
        done: status == TurnStatus::Done,
        checked: turn.record.checked,
        cost: sum.cost(),
        tokens: sum.usage.context().saturating_add(sum.usage.output),
    };
    let rows: Vec<SkillUse> = person.take(SKILLS).chain(own).map(row).collect();
    core.turn.uses_skills = !rows.is_empty();
    if !rows.is_empty() {
        // Only a count is lost when it cannot be stored.
        drop(core.services.store.skill_uses().add(rows));
    }
}

/// Notes how the check of the newest turn ended, which decides over the checks that the agent ran in it.
pub(crate) fn checked(core: &Core, passed: bool) {
    if core.turn.uses_skills {
        // Only a count is lost when it cannot be stored.
        drop(core.services.store.skill_uses().checked(core.session.id, passed));
    }
}

/// Whether the question is asked.
fn offers(core: &Core, record: &TurnRecord, status: TurnStatus) -> bool {
    let settings = &core.services.config().skills;
    status == TurnStatus::Done
        && record.calls >= CALLS
        && !record.wrote
        && record.skills.is_empty()
        && settings.offer != SkillOffer::Never
        && settings.approve != SkillApproval::Never
        && core.identity.owns_session()
        && core.identity.external().is_none()
        && !core.session.read_only
        && core.services.user.human == Human::Present
        // Its tasks are a tour.
        && core.session.model.provider() != "demo"
        && core.services.tools.all.find(WRITE).is_some()
        && core.session.goal.as_ref().is_none_or(|goal| !goal.view.state.active())
        && core.turn.offered != Some(core.session.id)
}

/// Asks, unless the user is already at the next thing.
pub(crate) fn ask(core: &mut Core) {
    if core.occupied() || !core.prompts.queue.is_empty() || !core.asks.is_empty() {
        return;
    }
    if core.services.config().skills.offer == SkillOffer::Hint {
        let text = "this task can be saved as a skill: `/save-skill` (never again: `/save-skill never`)";
        return core.notice(Notice::new(NoticeKind::Info, text));
    }
    let body = AskBody::Clarify {
        question: "This task took several steps and succeeded. Save how it was done as a skill, for the next one like it?"
            .into(),
        choices: vec![SAVE.into(), NOT_NOW.into(), NEVER_AGAIN.into()],
        allow_freetext: false,
        multiple: false,
        default: Some(1),
        decides: vec![2],
    };
    asking::ask_self(core, About::SkillOffer, body);
}

/// Applies the answer.
pub(crate) fn answered(core: &mut Core, reply: &Result<AskReply, String>) {
    let Ok(AskReply::Choice { answers }) = reply else { return };
    if answers.iter().any(|answer| answer == NEVER_AGAIN) {
        drop(core.services.store.set_meta(KEY, Some(NEVER.into())));
        let notice = Notice::new(NoticeKind::Info, "skills are not offered after tasks any more");
        return core.notice(notice.hint("`/save-skill` saves how a task was done whenever you like"));
    }
    if answers.iter().any(|answer| answer == SAVE) {
        save(core);
    }
}

/// `/save-skill`
pub(crate) fn save_command(core: &mut Core, client: ClientId, cause: CommandId) {
    if core.session.read_only {
        let why = "this session is open read-only, so no skill can be saved from it";
        let notice = Notice::new(NoticeKind::User, why).hint("fork it, and use `/save-skill` there");
        return core.refuse(client, cause, notice);
    }
    let why = if core.services.config().skills.approve == SkillApproval::Never {
        Some("agents may not write skills here")
    } else if core.services.tools.all.find(WRITE).is_none() {
        Some("this agent cannot write skills")
    } else {
        None
    };
    if let Some(why) = why {
        let notice =
            Notice::new(NoticeKind::User, why).hint("`approve` in [skills] of config.toml decides over it");
        return core.refuse(client, cause, notice);
    }
    save(core);
    core.done(client, cause, "The agent writes a draft of a skill; you see it before it is stored".into());
}

/// `/save-skill never`, and back.
pub(crate) fn offer_command(core: &mut Core, client: ClientId, cause: CommandId, on: bool) {
    drop(core.services.store.set_meta(KEY, (!on).then(|| NEVER.into())));
    core.turn.offered = None;
    let said = if on {
        "Skills are offered after tasks again"
    } else {
        "Skills are not offered after tasks any more; /save-skill still saves one"
    };
    core.done(client, cause, said.into());
}

/// Sends the task of writing a skill to the agent, after what it does now.
fn save(core: &mut Core) {
    let id = QueueId::fresh(&*core.services.ids, core.services.clock.now());
    core.prompts.queue.push(Queued::task(id, TASK.into(), None));
    queue::queue_changed(core, None);
    if !core.occupied() {
        core.follow_up(FollowUp::NextQueued(TurnStatus::Done));
    }
}
