//! The question whether to trust a folder's own files. Until the user says yes, none of them is loaded.

use std::sync::Arc;

use crate::questions::asking;
use crate::session::settings;
use tiller_protocol::{AskBody, AskReply, Notice, NoticeKind};
use tokio::sync::{mpsc, oneshot};

use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::{Services, TrustCheck, TrustGrant, TrustOffer};
use crate::questions::msg::QuestionMsg;

/// Opens the question. No answer and "not now" change nothing.
pub(crate) fn ask_trust(core: &mut Core, offer: TrustOffer) {
    let TrustOffer { folder, items, changed, decide, never: _ } = offer;
    let (reply, answer) = oneshot::channel();
    asking::ask(
        core,
        core.identity.id.clone(),
        None,
        AskBody::Trust { folder, brings: items, changed },
        reply,
    );
    let tx = core.tx.clone();
    core.spawn(async move {
        let yes = match answer.await {
            Ok(Ok(AskReply::Yes { .. })) => true,
            Ok(Ok(AskReply::Never)) => false,
            _ => return,
        };
        let result = tokio::task::spawn_blocking(move || decide(yes))
            .await
            .unwrap_or_else(|_| Err("internal error; this is a bug in Tiller".into()));
        // The engine may have ended; the decision is stored regardless.
        let _ = tx.send(Msg::Question(QuestionMsg::Trusted { yes, result })).await;
    });
}

/// The decision is stored: rules and settings apply from now on.
pub(crate) fn trusted(core: &mut Core, yes: bool, result: Result<TrustGrant, String>) {
    match result {
        Ok(TrustGrant { rules, settings, roles, agents, skills, workflows, hooks, faults }) => {
            core.services.permit.add_project(&rules);
            if let Some(roles) = roles {
                core.services.crew.roles.replace(roles);
            }
            let notice = if yes {
                let used = [(agents, "agent"), (skills, "skill"), (workflows, "workflow")];
                let holds = holds(rules.len(), settings, hooks, &used);
                Notice::new(NoticeKind::Info, format!("folder trusted: {holds}"))
            } else {
                let said = "this folder's own settings and rules are not loaded, and you will not be \
                    asked again";
                Notice::new(NoticeKind::Info, said).hint("`tiller trust` changes that")
            };
            core.notice(notice);
            for notice in faults {
                core.notice(notice);
            }
            if settings {
                settings::reload(core, None);
            }
        }
        Err(why) => core.notice(
            Notice::new(
                NoticeKind::Store,
                format!("your decision about this folder could not be saved: {why}"),
            )
            .hint("the folder's settings are not loaded; `tiller trust` asks again"),
        ),
    }
}

/// Looks whether the user still trusts the folder. Where that was taken back, nothing of the folder is used any more when this
/// returns, by no agent; the loop behind `tx`, the main agent's, reports it. Blocks.
pub(crate) fn check(services: &Services, tx: &mpsc::Sender<Msg>) {
    let Some(loss) = services.user.trust.as_ref().and_then(|check| check()) else { return };
    // Reported from here: the caller may be stopped, and the check finds the loss only once. The engine may have ended.
    let _ = tx.blocking_send(Msg::Question(QuestionMsg::TrustLost { settings: loss.settings }));
}

/// The check for the engines of children: what one finds holds for all agents, and the main agent reports it.
pub(crate) fn check_of_children(main: &Core) -> Option<TrustCheck> {
    main.services.user.trust.as_ref()?;
    let (services, tx) = (Arc::clone(&main.services), main.tx.clone());
    Some(Arc::new(move || {
        check(&services, &tx);
        None
    }))
}

/// The user has taken the trust back.
pub(crate) fn lost(core: &mut Core, settings: bool) {
    let said = "you no longer trust this folder: its settings, rules, hooks, agents, skills, commands, MCP servers \
        and memory are not used from now on";
    let notice = Notice::new(NoticeKind::Info, said)
        .hint("what this conversation holds of them already stays in it; a new session begins without them");
    core.notice(notice);
    if settings {
        settings::reload(core, None);
    }
}

/// Describes what is loaded after a yes.
fn holds(rules: usize, settings: bool, hooks: usize, used: &[(usize, &str)]) -> String {
    let many = |n: usize, one: &str| match n {
        0 => None,
        1 => Some(format!("its {one}")),
        n => Some(format!("its {n} {one}s")),
    };
    let settings = settings.then(|| "its settings".to_owned());
    let held: Vec<String> = [many(rules, "rule"), settings.clone()].into_iter().flatten().collect();
    let used: Vec<String> = used.iter().filter_map(|(n, one)| many(*n, one)).collect();
    let one = held.len() == 1 && rules <= 1 && settings.is_none();
    let held = (!held.is_empty())
        .then(|| format!("{} {} from now on", held.join(" and "), if one { "applies" } else { "apply" }));
    let used = (!used.is_empty()).then(|| format!("{} can be used now", used.join(" and ")));
    let hooks = many(hooks, "hook")
        .map(|own| format!("{own} {} from now on", if hooks == 1 { "runs" } else { "run" }));
    let used = [hooks, used].into_iter().flatten().reduce(|a, b| format!("{a}; {b}"));
    match (held, used) {
        (None, None) => "what was listed can be used now".into(),
        (held, used) => held.into_iter().chain(used).collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn what_a_yes_brings_in_is_told_in_a_sentence() {
        for (given, said) in [
            ((0, false, 0, 0), "what was listed can be used now"),
            ((1, false, 0, 0), "its rule applies from now on"),
            ((2, true, 0, 0), "its 2 rules and its settings apply from now on"),
            ((0, true, 0, 1), "its settings apply from now on; its workflow can be used now"),
            ((0, false, 2, 3), "its 2 agents and its 3 workflows can be used now"),
        ] {
            let (rules, settings, agents, workflows) = given;
            assert_eq!(holds(rules, settings, 0, &[(agents, "agent"), (workflows, "workflow")]), said);
        }
        assert_eq!(holds(0, false, 1, &[]), "its hook runs from now on");
        assert_eq!(holds(1, false, 2, &[]), "its rule applies from now on; its 2 hooks run from now on");
    }
}
