//! `/goal`: turns that follow each other until a check succeeds, a limit is reached, or the user stops them.

use crate::bus::agent_view;
use crate::core::follow_up::FollowUp;
use crate::prompts::queue;
use tiller_protocol::command::GoalCommand;
use tiller_protocol::event::{StateEvent, ToolEvent, TurnStatus};
use tiller_protocol::{
    CommandId, Cost, EventBody, Goal, GoalCheck, GoalState, GoalView, Notice, NoticeKind, QueueId, Queued,
    Taint,
};

use crate::bus::ClientId;
use crate::core::Core;
use crate::goal::pursuit::{Pursuit, key};

pub(crate) mod check;
pub(crate) mod pursuit;

pub(crate) use crate::goal::pursuit::GoalReport;

/// Most turns of a goal.
const TURNS: u32 = 1_000;
/// Characters of the goal, and of a check's output for the model.
const TEXT: usize = 8_000;
const SAID: usize = 4_000;

pub(crate) fn goal_command(core: &mut Core, client: ClientId, cause: CommandId, command: GoalCommand) {
    let result = match command {
        GoalCommand::Set { goal } => set_goal(core, goal),
        GoalCommand::Stop => match core.session.goal.as_ref().map(|p| p.view.state) {
            None => Err(Notice::new(NoticeKind::User, "no goal is set")),
            Some(state) if state.active() => {
                stop_goal(core, "stopped by you");
                core.follow_up(FollowUp::Interrupt { hard: false });
                Ok("goal stopped; /goal go resumes it".into())
            }
            Some(_) => {
                core.session.goal = None;
                goal_changed(core);
                Ok("goal removed".into())
            }
        },
        GoalCommand::Go => take_up(core),
    };
    match result {
        Ok(said) => core.done(client, cause, said),
        Err(notice) => core.refuse(client, cause, notice),
    }
}

fn set_goal(core: &mut Core, mut goal: Goal) -> Result<String, Notice> {
    let wrong = |what: &str| Err(Notice::new(NoticeKind::User, what));
    if core.session.read_only {
        return wrong("this session is open read-only");
    }
    goal.text = core.redact(goal.text.trim());
    if goal.text.is_empty() || goal.text.chars().count() > TEXT {
        return wrong("a goal must have 1 to 8,000 characters");
    }
    if !(1..=TURNS).contains(&goal.turns) {
        return wrong("a goal can take 1 to 1,000 turns");
    }
    if goal.usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
        return wrong("the cost limit of a goal is an amount in dollars above 0");
    }
    match &goal.check {
        GoalCheck::Command { line } if line.trim().is_empty() => {
            return wrong("the check command is empty");
        }
        GoalCheck::Command { .. } if core.services.tool("terminal").is_none() => {
            return wrong("commands are turned off, so no command can check the goal");
        }
        GoalCheck::Command { .. } => {}
        GoalCheck::Judge => drop(crate::goal::check::judge(core)?),
    }
    drop_waiting(core);
    core.drop_check();
    let view =
        GoalView { goal, state: GoalState::Working, done: 0, spent: Some(Cost(0)), last: String::new() };
    let text = first(&view.goal);
    core.session.goal = Some(Pursuit { view, from: cost_of_all(core).unwrap_or_default(), queued: None });
    next_turn(core, text, None);
    Ok("the agent works towards it on its own; Esc stops it".into())
}

/// Resumes a stopped goal at the user's request.
fn take_up(core: &mut Core) -> Result<String, Notice> {
    let Some(p) = &mut core.session.goal else {
        return Err(Notice::new(NoticeKind::User, "no goal is set"));
    };
    if p.view.state.active() {
        return Err(Notice::new(NoticeKind::User, "the agent is already working on it"));
    }
    if p.view.done >= p.view.goal.turns {
        let text = format!("its {} turns are used up", p.view.goal.turns);
        return Err(
            Notice::new(NoticeKind::Budget, text).hint("set it again with more turns: /goal --turns N ...")
        );
    }
    p.view.state = GoalState::Working;
    p.view.last = String::new();
    let text = format!("Continue with the goal: {}", p.view.goal.text);
    next_turn(core, text, None);
    Ok("the agent continues with the goal".into())
}

/// Cost of the session, its agents included; `None`: not known.
fn cost_of_all(core: &Core) -> Option<Cost> {
    let reservations = &core.money.reservations;
    match core.identity.child() {
        None => core.session.totals.cost.map(|c| c.plus(reservations.spent().session)),
        // The branch includes the agent's own cost.
        Some(_) => core.session.totals.cost.map(|_| reservations.branch(&core.identity.id)),
    }
}

/// The goal ended between two turns, and with it the agent's work, unless more messages wait.
pub(crate) fn goal_over(core: &mut Core, status: TurnStatus, why: Option<Notice>) {
    if core.identity.is_child() && !core.occupied() {
        let text = core.session.last_words();
        core.child_driver().report_end(status, text, why);
    }
}

/// Queues the message of the goal's next turn; it is sent as soon as nothing else runs. `taint`: that of the text of others in it.
fn next_turn(core: &mut Core, text: String, taint: Option<Taint>) {
    let id = QueueId::fresh(&*core.services.ids, core.services.clock.now());
    core.prompts.queue.push(Queued::task(id, text, taint));
    if let Some(p) = &mut core.session.goal {
        p.queued = Some(id);
        p.view.state = GoalState::Working;
    }
    goal_changed(core);
    queue::queue_changed(core, None);
    if !core.occupied() {
        core.follow_up(FollowUp::NextQueued(TurnStatus::Done));
    }
}

/// Continues the goal after a turn, once waiting messages were sent.
pub(crate) fn goal_after(core: &mut Core, status: TurnStatus) {
    let waits = core.session.goal.as_ref().is_some_and(|p| core.prompts.queue.iter().any(|q| p.owns(q)));
    let cost = cost_of_all(core);
    let Some(p) = core.session.goal.as_mut().filter(|p| p.view.state == GoalState::Working) else {
        return;
    };
    let why = match status {
        TurnStatus::Done | TurnStatus::Refused => None,
        TurnStatus::Interrupted => Some("stopped by you"),
        TurnStatus::Failed => Some("the model failed"),
        TurnStatus::Limit => Some("a limit was reached"),
        TurnStatus::Store => Some("nothing can be saved"),
    };
    if let Some(why) = why {
        return stop_goal(core, why);
    }
    if waits {
        // That turn was not the goal's.
        return;
    }
    p.view.done += 1;
    p.view.spent = cost.map(|c| Cost(c.0.saturating_sub(p.from.0)));
    if core.occupied() {
        // Messages of the user have priority; the goal continues after them.
        return goal_changed(core);
    }
    crate::goal::check::check_goal(core);
}

pub(crate) fn goal_checked(core: &mut Core, checked: GoalReport) {
    let GoalReport { no, holds, said, ran } = checked;
    if !core.job_done(no) {
        return;
    }
    crate::questions::skill_offer::checked(core, holds);
    let said = core.redact(&said);
    if let Some((line, exit)) = ran {
        let (line, output) = (core.redact(&line), said.clone());
        let event = ToolEvent::ShellLine { line, output, exit, shared: false, call_id: String::new() };
        core.bus.publish(&core.scope_of(None), EventBody::Tool(event));
    }
    let cost = cost_of_all(core);
    let Some(p) = &mut core.session.goal else { return };
    p.view.spent = cost.map(|c| Cost(c.0.saturating_sub(p.from.0)));
    p.view.last = last_line(&said);
    let over = p.view.goal.usd.and_then(|usd| match p.view.spent {
        Some(spent) if spent.usd() < usd => None,
        Some(spent) => Some(format!("{spent} of {} is spent", Cost::from_usd(usd))),
        None => Some("its cost is not known, so its budget cannot be enforced".to_owned()),
    });
    let (done, turns) = (p.view.done, p.view.goal.turns);
    if holds {
        p.view.state = GoalState::Reached;
        let whose = whose_goal(core);
        let text = format!("{whose} is reached, after {done} turn{}", if done == 1 { "" } else { "s" });
        goal_changed(core);
        core.notice(Notice::new(NoticeKind::Info, text));
    } else if done >= turns {
        return goal_failed(core, &format!("not reached in {turns} turns"));
    } else if let Some(why) = over {
        return goal_failed(core, &why);
    } else {
        let tail: String = tail(&said, SAID);
        next_turn(
            core,
            format!(
                "The goal is not reached yet (turn {done} of {turns}). The check says:\n{tail}\n\nContinue."
            ),
            Some(Taint::ToolOutput),
        );
        return;
    }
    core.follow_up(FollowUp::NextQueued(TurnStatus::Done));
    core.follow_up(FollowUp::GoalOver { status: TurnStatus::Done, why: None });
}

/// The check failed: the goal stops.
fn goal_failed(core: &mut Core, why: &str) {
    stop_goal(core, why);
    let why = Notice::new(NoticeKind::Budget, format!("the goal stopped: {why}"));
    goal_over(core, TurnStatus::Limit, Some(why));
}

fn whose_goal(core: &Core) -> String {
    match core.identity.child() {
        None => "the goal".to_owned(),
        Some(_) => format!("the goal of {}", core.identity.id.name()),
    }
}

/// Stops the goal until the user resumes it.
pub(crate) fn stop_goal(core: &mut Core, why: &str) {
    drop_waiting(core);
    let Some(p) = &mut core.session.goal else { return };
    if !p.view.state.active() {
        return;
    }
    p.view.state = GoalState::Stopped;
    why.clone_into(&mut p.view.last);
    goal_changed(core);
    let notice = Notice::new(NoticeKind::Budget, format!("{} stopped: {why}", whose_goal(core)));
    core.notice(notice.hint("/goal shows its state; /goal go resumes it"));
}

/// Removes the goal's message from the queue.
fn drop_waiting(core: &mut Core) {
    let Some(id) = core.session.goal.as_mut().and_then(|p| p.queued.take()) else { return };
    let before = core.prompts.queue.len();
    core.prompts.queue.retain(|q| q.id != id);
    if core.prompts.queue.len() != before {
        queue::queue_changed(core, None);
    }
}

/// Publishes and stores the goal's state.
fn goal_changed(core: &mut Core) {
    let kept = core.session.goal.as_ref().and_then(|p| serde_json::to_string(p).ok());
    drop(core.services.store.set_meta(&key(core.session.id), kept));
    let goal = core.session.goal.as_ref().map(|p| p.view.clone());
    core.state(None, StateEvent::GoalChanged { goal });
    if core.identity.is_child() {
        agent_view::agent_changed(core);
    }
}

/// The goal's text in the prompt.
fn first(goal: &Goal) -> String {
    let check = match &goal.check {
        GoalCheck::Command { line } => format!("it is reached when `{line}` exits with 0"),
        GoalCheck::Judge => "another model judges whether it is reached".to_owned(),
    };
    format!(
        "Goal: {}\n\nWork until it is reached, without asking what you can decide yourself. After each turn it is \
         checked: {check}. There are {} turns.",
        goal.text, goal.turns
    )
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    line.chars().take(200).collect()
}

/// The end of a text.
fn tail(text: &str, most: usize) -> String {
    let text = text.trim_end();
    let skip = text.chars().count().saturating_sub(most);
    text.chars().skip(skip).collect()
}
