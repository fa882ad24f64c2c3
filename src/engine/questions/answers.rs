//! The person's answers, and what the engine does with those to questions of its own.

use tiller_protocol::event::AskEvent;
use tiller_protocol::{AskBody, AskId, AskReply, CommandId, EventBody, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::questions::about::About;
use crate::turn::{Input, Prepared};

impl Core {
    /// The person's answer to a question.
    pub(crate) fn answer(&mut self, client: ClientId, cause: CommandId, id: AskId, reply: AskReply) {
        let said = reply.clone();
        match self.asks.answer(id, reply.clone()) {
            Err(wrong) => self.refuse(client, cause, Notice::new(NoticeKind::User, wrong.words())),
            Ok(ask) => {
                let mut place = self.place();
                place.cause = Some(cause);
                let event = match (&ask.body, &reply) {
                    (AskBody::Permission(p), AskReply::Permission { decision, .. }) => {
                        AskEvent::PermissionDecided {
                            id: Some(id),
                            tool: p.tool.clone(),
                            what: self.redact(&p.shown),
                            decision: decision_word(decision).into(),
                            by: "person".into(),
                        }
                    }
                    _ => AskEvent::QuestionAnswered { id, reply },
                };
                self.bus.publish(&place, EventBody::Ask(event));
                if matches!(
                    (&ask.body, &said),
                    (AskBody::Plan { .. }, AskReply::Yes { .. } | AskReply::Never)
                ) {
                    self.stop_planning(client, cause);
                }
                self.asks_changed();
            }
        }
    }

    /// An answer to a question of the engine's own.
    pub(crate) fn answered(&mut self, about: About, reply: Result<AskReply, String>) {
        let yes = match &reply {
            Ok(AskReply::Yes { value }) => Some(value.clone()),
            _ => None,
        };
        match about {
            About::Busy { session, head } => self.busy_answered(session, &head, &reply),
            About::Leave { client, cause, id } => self.leave_answered(client, cause, id, &reply),
            About::Budget { turn, which } if self.is_live(turn) => {
                if let Some(value) = yes {
                    let all = self.spent_by_all();
                    let spent = match which {
                        crate::money::budget::Which::Session => all.session,
                        crate::money::budget::Which::Day => all.day,
                    };
                    let typed = value.and_then(|v| v.trim().trim_start_matches('$').parse::<f64>().ok());
                    // A yes without a number: as much again, and room for the next request.
                    let next = self.over_budget().and_then(|o| o.next).unwrap_or_default();
                    let to = typed.map_or(
                        tiller_protocol::Cost(spent.0.saturating_add(next.0).saturating_mul(2)),
                        tiller_protocol::Cost::from_usd,
                    );
                    self.money.limits.raise(which, to);
                    self.prepare(false);
                    self.pump();
                } else if let Some(over) = self.over_budget() {
                    let stop = Prepared::Stop {
                        status: tiller_protocol::event::TurnStatus::Limit,
                        notice: over.notice(),
                    };
                    self.feed(Input::Prepared(stop));
                } else {
                    self.prepare(false);
                    self.pump();
                }
            }
            About::Deep { turn } if self.is_live(turn) => {
                if yes.is_some() {
                    self.session.deep_allowed = true;
                    self.prepare(true);
                    self.pump();
                } else {
                    let notice = Notice::new(NoticeKind::Denied, "the expensive model was not approved")
                        .hint("choose another model with /model, then continue");
                    let stop = Prepared::Stop { status: tiller_protocol::event::TurnStatus::Limit, notice };
                    self.feed(Input::Prepared(stop));
                }
            }
            About::Unpriced { turn } if self.is_live(turn) => {
                if yes.is_some() {
                    self.session.unpriced_allowed.insert(self.session.model.clone());
                } else if let Some(unpriced) = self.unpriced(&self.session.model, self.tier()) {
                    let status = tiller_protocol::event::TurnStatus::Limit;
                    let stop = Prepared::Stop { status, notice: unpriced.notice() };
                    return self.feed(Input::Prepared(stop));
                }
                self.prepare(true);
                self.pump();
            }
            About::Repeats { turn } if self.is_live(turn) => {
                self.feed(Input::Repeats { go_on: yes.is_some() });
            }
            About::Budget { .. } | About::Deep { .. } | About::Unpriced { .. } | About::Repeats { .. } => {}
        }
    }
}

fn decision_word(d: &tiller_protocol::Decision) -> &'static str {
    use tiller_protocol::Decision as D;
    match d {
        D::Once => "once",
        D::Session { .. } => "session",
        D::Always { .. } => "always",
        D::Edit { .. } => "edit",
        D::Deny { .. } => "deny",
    }
}
