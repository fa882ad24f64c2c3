//! Checks whether a goal is reached, by a command or by another model.

use crate::context::side_call;
use crate::goal;
use crate::money;
use crate::session::model;
use crate::tool_call::calls;
use std::sync::Arc;

use tiller_protocol::tool::Display;
use tiller_protocol::{GoalCheck, GoalState, ModelRef, Notice, NoticeKind};
use tokio_util::sync::CancellationToken;

use crate::context::compaction::compact;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::goal::pursuit::GoalReport;
use crate::prompts::doing::JobKind;
use crate::prompts::msg::PromptMsg;
use crate::tool_call::text_of;

const PROMPT: &str = include_str!("../../../assets/prompts/goal.md");
/// Characters of the end of the conversation that the checking model reads.
const READ: usize = 60_000;
/// Tokens of its answer.
const ANSWER: u64 = 1_000;

/// The model that checks, where no command does.
pub(super) fn judge(core: &Core) -> Result<(ModelRef, Arc<dyn tiller_provider::Provider>), Notice> {
    let model = model::fast_or_session(core);
    if model::is_demo(core, &model) {
        let notice = Notice::new(NoticeKind::User, "the demo model follows a script and cannot judge a goal");
        return Err(notice.hint("add a command that checks it: /goal TEXT -- COMMAND"));
    }
    money::may_ask(core, &model)?;
    let provider = model::provider(core, &model).map_err(|e| crate::bus::notices::provider(&e))?;
    Ok((model, provider))
}

pub(super) fn check_goal(core: &mut Core) {
    let Some(p) = &mut core.session.goal else { return };
    p.view.state = GoalState::Checking;
    let goal = p.view.goal.clone();
    goal::goal_changed(core);
    let no = core.next_job();
    let cancel = match goal.check {
        GoalCheck::Command { line } => run_check(core, no, line),
        GoalCheck::Judge => match judge(core) {
            Ok(judge) => ask_judge(core, no, &goal.text, judge),
            Err(notice) => return goal::goal_failed(core, &notice.message),
        },
    };
    // The check is stopped by its token, and its result has an outdated number then.
    core.busy_with(no, JobKind::Goal { cancel }, tokio::spawn(async {}));
}

fn run_check(core: &mut Core, no: u64, line: String) -> CancellationToken {
    let (cx, mut live) = calls::tool_cx(core, "goal", None);
    let (cancel, tx) = (cx.cancel.clone(), core.tx.clone());
    core.spawn(async move {
        let typed = line.clone();
        let run = tiller_tool::shell::run_line(&cx, &typed);
        tokio::pin!(run);
        let result = loop {
            tokio::select! {
                result = &mut run => break result,
                // The output is reported when the command has ended.
                Some(_) = live.recv() => {}
            }
        };
        let (said, exit) = match result {
            Ok(out) => {
                let exit = if let Some(Display::Output { exit, .. }) = &out.display { *exit } else { None };
                (text_of(&out.content), exit)
            }
            Err(e) => (e.to_string(), None),
        };
        let checked = GoalReport { no, holds: exit == Some(0), said, ran: Some((line, exit)) };
        let _ = tx.send(Msg::Prompt(PromptMsg::GoalChecked(Box::new(checked)))).await;
    });
    cancel
}

fn ask_judge(
    core: &mut Core,
    no: u64,
    goal: &str,
    (model, provider): (ModelRef, Arc<dyn tiller_provider::Provider>),
) -> CancellationToken {
    let cancel = CancellationToken::new();
    let (stopped, tx, side) = (cancel.clone(), core.tx.clone(), side_call::side_call(core, provider, &model));
    let said = compact::transcript(&core.session.history.path.clone(), None, READ);
    let text = format!("{said}\n\n[the goal]\n{goal}");
    core.spawn(async move {
        let got = tokio::select! {
            got = side.ask(PROMPT, text, Some(ANSWER)) => Some(got),
            () = stopped.cancelled() => None,
        };
        let (holds, said) = match got {
            Some(Ok(answer)) if answer.cut && answer.text.trim().is_empty() => {
                (false, "the judging model reached its output limit before it answered".into())
            }
            Some(Ok(answer)) => verdict(&answer.text),
            Some(Err(e)) => (false, format!("the judging model failed: {e}")),
            None => (false, String::new()),
        };
        let checked = GoalReport { no, holds, said, ran: None };
        let _ = tx.send(Msg::Prompt(PromptMsg::GoalChecked(Box::new(checked)))).await;
    });
    cancel
}

/// Reads yes or no from the first word; the rest is the reason.
fn verdict(answer: &str) -> (bool, String) {
    let answer = answer.trim();
    let word: String = answer.chars().take_while(|c| c.is_alphabetic()).collect();
    let why = answer[word.len()..].trim_start_matches([':', ',', '.', '-', ' ', '\n', '*']).trim();
    (word.eq_ignore_ascii_case("yes"), if why.is_empty() { answer.to_owned() } else { why.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        assert_eq!(verdict("Yes."), (true, "Yes.".into()));
        assert_eq!(verdict("yes: all of it\n"), (true, "all of it".into()));
        assert_eq!(verdict("No, the tests fail"), (false, "the tests fail".into()));
        for answer in ["", "yesterday", "It says yes", "**yes**", "ja"] {
            assert!(!verdict(answer).0, "{answer}");
        }
    }
}
