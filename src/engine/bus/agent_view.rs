//! The row of this engine's agent in lists of agents, and the event that reports a change of it.

use crate::core::Core;
use crate::session::model;
use crate::turn::Phase;
use tiller_protocol::EventBody;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{Act, AgentState, AgentView, ChildView};

pub(crate) fn agent_view(core: &Core) -> AgentView {
    let (state, act) = match &core.turn.live {
        // The agent counts as working between two turns of a goal.
        None if core.identity.is_child() && core.session.checks_goal() => {
            (AgentState::Running, Act::CheckingGoal)
        }
        None => (AgentState::Idle, Act::Nothing),
        Some(l) => {
            let own = l.calls.running.values().map(|c| c.act.as_str()).min().map(str::to_owned);
            let act = own.or_else(|| core.identity.external_act()).map_or(Act::Nothing, Act::Call);
            let child = core.identity.child();
            if child.is_some_and(|c| c.pause.active) {
                // A stream that was started before the pause may still be ending.
                let streams = matches!(l.machine.phase(), Phase::Streaming) && l.tasks.stream.is_some();
                (AgentState::Paused, if streams && act.is_nothing() { Act::Thinking } else { act })
            } else if core.asks.wait(&core.identity.id)
                || child.is_some_and(|c| c.open_questions > 0)
                || core.identity.pane_needs_input()
            {
                (AgentState::Waiting, act)
            } else if l.end.over {
                (AgentState::Running, Act::Nothing)
            } else {
                let doing = match l.machine.phase() {
                    Phase::Streaming if act.is_nothing() => Act::Thinking,
                    Phase::Waiting => Act::WaitingToRetry,
                    Phase::Compacting { .. } => Act::Compacting,
                    _ => act,
                };
                (AgentState::Running, doing)
            }
        }
    };
    AgentView {
        id: core.identity.id.clone(),
        parent: core.identity.id.parent(),
        label: core.identity.child().map_or_else(|| "main".into(), |c| c.assignment.label.clone()),
        state,
        act,
        model: core.session.model.clone(),
        usage: core.session.totals.usage,
        cost: core.session.totals.cost,
        context: core.session.context_tokens().0,
        window: model::window(core),
        since: core.turn.live.as_ref().map(|l| l.since),
        child: child_view(core),
    }
}

/// The part of a child's row that the child's own engine knows; the main agent adds the rest.
pub(crate) fn child_view(core: &Core) -> Option<Box<ChildView>> {
    core.identity.child()?;
    let goal = core.session.goal.as_ref().map(|p| Box::new(p.view().clone()));
    let (pane, exit) = (core.identity.pane_view(), core.identity.program_exit());
    let known = goal.is_some() || pane.is_some() || exit.is_some();
    known.then(|| Box::new(ChildView { pane, exit, goal, ..ChildView::default() }))
}

/// Publishes that the agent's row changed.
pub(crate) fn agent_changed(core: &mut Core) {
    let view = agent_view(core);
    if core.identity.is_child() {
        return core.child_driver().report_view(view);
    }
    core.bus.publish(&core.scope(), EventBody::State(StateEvent::AgentChanged { view }));
}
