//! The user's answers, and what the engine does with those to its own questions.

use crate::money;
use crate::questions::asking;
use crate::questions::planning;
use crate::questions::skill_offer;
use crate::session::model;
use crate::session::open;
use crate::turn::prepare;
use tiller_protocol::event::AskEvent;
use tiller_protocol::{AskBody, AskId, AskReply, CommandId, EventBody, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::questions::about::About;
use crate::turn::{Input, Prepared};

/// Takes the user's answer to a question.
pub(crate) fn answer(core: &mut Core, client: ClientId, cause: CommandId, id: AskId, reply: AskReply) {
    let said = reply.clone();
    match core.asks.answer(id, reply.clone()) {
        Err(wrong) => core.refuse(client, cause, Notice::new(NoticeKind::User, wrong.words())),
        Ok(ask) => {
            let mut scope = core.scope();
            scope.cause = Some(cause);
            let event = match (&ask.body, &reply) {
                (AskBody::Permission(p), AskReply::Permission { decision, .. }) => {
                    AskEvent::PermissionDecided {
                        id: Some(id),
                        tool: p.tool.clone(),
                        what: core.redact(&p.shown),
                        decision: decision.into(),
                        by: "person".into(),
                        allow: None,
                        change: false,
                    }
                }
                _ => AskEvent::QuestionAnswered { id, reply },
            };
            core.bus.publish(&scope, EventBody::Ask(event));
            if matches!((&ask.body, &said), (AskBody::Plan { .. }, AskReply::Yes { .. } | AskReply::Never)) {
                planning::stop_planning(core, client, cause);
            }
            asking::asks_changed(core);
        }
    }
}

/// Applies the answer to a question of the engine itself.
pub(crate) fn answered(core: &mut Core, about: About, reply: Result<AskReply, String>) {
    let yes = match &reply {
        Ok(AskReply::Yes { value }) => Some(value.clone()),
        _ => None,
    };
    match about {
        About::SkillOffer => skill_offer::answered(core, &reply),
        About::Busy { session, head } => open::busy_answered(core, session, &head, &reply),
        About::Leave { client, cause, id } => open::leave_answered(core, client, cause, id, &reply),
        About::Budget { turn, which } if core.is_live(turn) => {
            if let Some(value) = yes {
                let all = crate::money::spending::spent_and_reserved(core);
                let spent = match which {
                    crate::money::budget::LimitScope::Session => all.session,
                    crate::money::budget::LimitScope::Day => all.day,
                };
                let typed = value.and_then(|v| v.trim().trim_start_matches('$').parse::<f64>().ok());
                // A yes without a number allows as much again, and room for the next request.
                let next = prepare::over_budget(core).and_then(|o| o.next).unwrap_or_default();
                let to = typed.map_or(
                    tiller_protocol::Cost(spent.0.saturating_add(next.0).saturating_mul(2)),
                    tiller_protocol::Cost::from_usd,
                );
                core.money.limits.raise(which, to);
                prepare::prepare(core, false);
            } else if let Some(over) = prepare::over_budget(core) {
                let stop = Prepared::Stop {
                    status: tiller_protocol::event::TurnStatus::Limit,
                    notice: over.notice(),
                };
                core.feed(Input::Prepared(stop));
            } else {
                prepare::prepare(core, false);
            }
        }
        About::Deep { turn } if core.is_live(turn) => {
            if yes.is_some() {
                core.session.approvals.deep = true;
                prepare::prepare(core, true);
            } else {
                let notice = Notice::new(NoticeKind::Denied, "the expensive model was not approved")
                    .hint("choose another model with /model, then continue");
                let stop = Prepared::Stop { status: tiller_protocol::event::TurnStatus::Limit, notice };
                core.feed(Input::Prepared(stop));
            }
        }
        About::Unpriced { turn } if core.is_live(turn) => {
            if yes.is_some() {
                core.money.reservations.approve(core.session.model.clone());
            } else if let Some(unpriced) = money::unpriced(core, &core.session.model, model::tier(core)) {
                let status = tiller_protocol::event::TurnStatus::Limit;
                let stop = Prepared::Stop { status, notice: unpriced.notice() };
                return core.feed(Input::Prepared(stop));
            }
            prepare::prepare(core, true);
        }
        About::Repeats { turn } if core.is_live(turn) => {
            core.feed(Input::Repeats { go_on: yes.is_some() });
        }
        About::Budget { .. } | About::Deep { .. } | About::Unpriced { .. } | About::Repeats { .. } => {}
    }
}
