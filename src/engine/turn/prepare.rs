//! May the next request go out? Budgets, tiers and the size of the context say so; the person where they do not.

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AskBody, Cost, Notice, NoticeKind};
use tiller_provider::models;

use super::{Input, Prepared};
use crate::context::{compact, request};
use crate::core::Core;
use crate::core::services::Human;
use crate::crew::{Answer, limit};
use crate::money::budget::Over;
use crate::questions::about::About;

impl Core {
    /// Budgets, tiers, the size of the context: may the next request go out?
    pub(crate) fn prepare(&mut self, may_compact: bool) {
        if let tiller_store::Health::Failing(_) = &*self.services.store.health().borrow() {
            // The turn rests until saving works again; the banner says why.
            self.with_live(|l| l.held = Some(may_compact));
            return;
        }
        if self.rests(crate::crew::Resting::Prepare { may_compact }) {
            return;
        }
        if self.outside().is_some() {
            // Its model, its prices and its context are its own.
            return match self.take_out(false) {
                Answer::Go => self.turn.inputs.push_back(Input::Prepared(Prepared::Go)),
                Answer::Wait => self.wait_for_purse(may_compact),
                Answer::Over(why) => {
                    let stop = Prepared::Stop { status: TurnStatus::Limit, notice: limit(why) };
                    self.turn.inputs.push_back(Input::Prepared(stop));
                }
            };
        }
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        self.roll_day();
        self.tell_money();
        // Session and day are the main agent's: the reservations have what these leave for the other agents.
        let mains = self.identity.child.is_none();
        if let Some(notice) = mains.then(|| self.money.limits.warning(self.spent_by_all())).flatten() {
            self.notice(notice);
        }
        if let Some(over) = self.over_budget().filter(|_| mains) {
            if self.services.human == Human::Absent {
                let stop = Prepared::Stop { status: TurnStatus::Limit, notice: over.notice() };
                return self.turn.inputs.push_back(Input::Prepared(stop));
            }
            let dollars = |c: Cost| c.to_string();
            let body = AskBody::Budget {
                what: over.which.words().into(),
                spent: dollars(over.spent),
                limit: dollars(over.limit),
                next: over.next.map(dollars),
            };
            return self.ask_self(About::Budget { turn, which: over.which }, body);
        }
        let config = self.services.config();
        let tiers = &config.tiers;
        let tier = self.tier();
        if let Some(limit) = self.tier_over(tier) {
            let notice = Notice::new(
                NoticeKind::Budget,
                format!("today's budget for the tier {tier} is used up: {limit}"),
            )
            .hint("choose another model with /model, then continue");
            let stop = Prepared::Stop { status: TurnStatus::Limit, notice };
            return self.turn.inputs.push_back(Input::Prepared(stop));
        }
        if let Some(unpriced) = self
            .unpriced(&self.session.model, tier)
            .filter(|u| !self.session.unpriced_allowed.contains(&u.model))
        {
            if self.services.human == Human::Absent {
                let stop = Prepared::Stop { status: TurnStatus::Limit, notice: unpriced.notice() };
                return self.turn.inputs.push_back(Input::Prepared(stop));
            }
            let body = AskBody::Unpriced { model: unpriced.model.0.clone(), why: unpriced.why() };
            return self.ask_self(About::Unpriced { turn }, body);
        }
        if self.tier() == "deep" && !tiers.deep_allowed && !self.session.deep_allowed {
            if self.services.human == Human::Absent {
                let notice = Notice::new(
                    NoticeKind::Denied,
                    "the expensive model needs an approval, and no one is available to give it",
                )
                .hint("set tiers.deep_allowed in config.toml");
                let stop = Prepared::Stop { status: TurnStatus::Refused, notice };
                return self.turn.inputs.push_back(Input::Prepared(stop));
            }
            let why = "this session uses it as its model".into();
            let body = AskBody::DeepTier { model: self.session.model.0.clone(), why };
            return self.ask_self(About::Deep { turn }, body);
        }
        let due =
            may_compact && compact::due(&self.session.path, &self.services.config().context, self.window());
        let go = if due { Prepared::Compact } else { Prepared::Go };
        match self.take_out(due) {
            Answer::Go => self.turn.inputs.push_back(Input::Prepared(go)),
            // The agent waits until others have settled their reservations.
            Answer::Wait => self.wait_for_purse(may_compact),
            // An agent paid for something meanwhile.
            Answer::Over(_) if mains && self.over_budget().is_some() => {
                self.prepare(may_compact);
            }
            Answer::Over(why) => {
                let stop = Prepared::Stop { status: TurnStatus::Limit, notice: limit(why) };
                self.turn.inputs.push_back(Input::Prepared(stop));
            }
        }
    }

    /// The hard limit of session or day that does not allow the next request.
    pub(crate) fn over_budget(&self) -> Option<Over> {
        let input = models::cost(&self.next_request(), &self.model_info(&self.session.model));
        self.money.limits.over_with(self.spent_so_far(), input.unwrap_or_default())
    }

    /// `fast`, `main` or `deep`: the tier that the session's model stands for.
    pub(crate) fn tier(&self) -> &'static str {
        let config = self.services.config();
        let tiers = &config.tiers;
        let is = |t: &Option<String>| t.as_deref() == Some(self.session.model.0.as_str());
        if is(&tiers.main) {
            "main"
        } else if is(&tiers.deep) {
            "deep"
        } else if is(&tiers.fast) {
            "fast"
        } else {
            "main"
        }
    }

    /// The longest wait that a server may ask for, where no person can skip it.
    pub(crate) fn longest_wait(&self) -> Option<std::time::Duration> {
        let seconds = self.services.config().limits.longest_wait;
        (self.services.human == Human::Absent && seconds > 0).then(|| std::time::Duration::from_secs(seconds))
    }

    pub(crate) fn window(&self) -> Option<u64> {
        self.model_info(&self.session.model).window
    }

    pub(crate) fn settings(&self) -> request::Settings {
        request::Settings {
            model: self.session.model.clone(),
            session: self.session.id,
            max_output: None,
            effort: self.effort(),
        }
    }
}
