//! A call as rules see it, and the verdict about it.

use std::path::PathBuf;

use serde_json::Value;
use tiller_permit::Verdict;
use tiller_protocol::ask::Risk;
use tiller_protocol::{Access, AgentId, Profile, ShellState, TerminalPlace, ToolVerb, Touch};

use super::Decider;
use crate::questions::permission::{Permit, Question};

/// One reading of a call: the tool that it is, and what it touches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) tool: String,
    pub(crate) touch: Touch,
    pub(crate) access: Vec<Access>,
}

/// A call as rules see it.
#[derive(Clone, Debug)]
pub(crate) struct CallView {
    /// The reading that people are shown.
    pub(crate) reading: Reading,
    /// Other readings of a call whose maker may say less than it does. They make the verdict stricter, never laxer.
    pub(crate) more: Vec<Reading>,
    /// Texts that may be commands, run in `folder`; also only stricter.
    pub(crate) texts: Vec<String>,
    pub(crate) folder: PathBuf,
    pub(crate) verb: ToolVerb,
    pub(crate) target: String,
    pub(crate) args: Value,
    pub(crate) profile: Profile,
    /// State of the shell that runs its command, where that shell sets variables as [`tiller_permit::ReadOnlyRun`] asks.
    pub(crate) shell: Option<ShellState>,
    /// The terminal elsewhere where its command runs.
    pub(crate) terminal: Option<TerminalPlace>,
    /// Its changes cannot be undone, and the settings demand a question then.
    pub(crate) unkept: bool,
}

impl CallView {
    /// The question whether `agent` may make the call, by the reading that people are shown.
    pub(crate) fn question<'q>(&'q self, agent: &'q AgentId) -> Question<'q> {
        self.read_as(agent, &self.reading)
    }

    /// True if it changes something, or may: a file, a store, or anything that a command reaches.
    pub(crate) fn changes(&self, permit: &Permit) -> bool {
        let Reading { touch, access, .. } = &self.reading;
        let store = |a: &Access| matches!(a, Access::Store { .. });
        let looks = !access.is_empty() && permit.only_looks(access);
        access.iter().any(store) || matches!(touch, Touch::Write | Touch::Execute) && !looks
    }

    /// The same by another reading.
    pub(crate) fn read_as<'q>(&'q self, agent: &'q AgentId, reading: &'q Reading) -> Question<'q> {
        Question {
            agent,
            tool: &reading.tool,
            verb: &self.verb,
            target: &self.target,
            touch: reading.touch,
            args: &self.args,
            access: &reading.access,
            profile: self.profile,
            shell: self.shell.as_ref(),
            terminal: self.terminal.as_ref(),
        }
    }
}

impl Decider<'_> {
    /// The call runs: what it reads decides where later ones may send something. `asked`: the user has agreed to it.
    pub(super) fn hears(self, view: &CallView, asked: bool) {
        self.permit.hear_call(&view.question(self.agent), asked);
    }

    /// The strictest verdict about all readings of the call. `asks`: the reason of a hook for a question to the user.
    pub(super) fn judge(self, view: &CallView, asks: Option<&str>) -> Verdict {
        let question = view.question(self.agent);
        let more = view.more.iter().map(|reading| self.permit.judge(&view.read_as(self.agent, reading)));
        let texts = view.texts.iter().filter_map(|text| self.permit.suspected(&question, text, &view.folder));
        let first = self.permit.judge(&question);
        let stricter = |a: Verdict, b: Verdict| if b.strictness() > a.strictness() { b } else { a };
        let mut verdict = more.chain(texts).fold(first, stricter);
        if view.unkept {
            verdict = not_undone(verdict);
        }
        match asks {
            Some(why) => verdict.at_least_asks(why),
            None => verdict,
        }
    }
}

/// Turns a permission into a question when the changes of the call cannot be undone, in every profile.
fn not_undone(verdict: Verdict) -> Verdict {
    let effect = "the changes of this call cannot be undone: no snapshot was taken".to_owned();
    match verdict {
        Verdict::Deny { .. } => verdict,
        Verdict::Ask { rule, risk, mut effects, .. } => {
            effects.push(effect);
            Verdict::Ask { rule, risk, effects, always: None }
        }
        Verdict::Allow { .. } => Verdict::Ask {
            rule: "no snapshot could be taken before this call".into(),
            risk: Risk::High,
            effects: vec![effect],
            always: None,
        },
    }
}
