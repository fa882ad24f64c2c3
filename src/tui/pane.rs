//! Which agent's terminal is shown, and when: only the shown terminal receives updates.

use tiller_protocol::AgentId;

use crate::app::App;
use crate::app::state::Owner;
use crate::panel::terminal::visibility::Visibility;
use crate::panel::{PanelEvent, Reply, View, terminal};
use crate::view::layout::Zoom;

/// Shows an agent's terminal.
pub(crate) fn show(app: &mut App, agent: &AgentId) {
    if *agent != app.model.shown_agent() {
        app.show_agent(agent);
    }
    app.model.crew.pane = Some(agent.clone());
    app.focus(View::Terminals);
}

/// Selects the terminal to show when none was named: that of the agent on the screen, else the last one shown, else the
/// first.
pub(crate) fn pick(app: &mut App) {
    let has = |id: &AgentId| terminal::will(&app.model, id);
    let here = app.model.shown_agent();
    let before = app.model.crew.pane.clone();
    let first = app.model.crew.agents.iter().map(|a| &a.id).find(|id| has(id)).cloned();
    let pick = Some(here).filter(has).or(before.clone().filter(has)).or(first).or(before);
    if app.model.crew.pane != pick {
        app.model.crew.pane = pick;
    }
}

/// The terminal of the next agent that has one.
pub(crate) fn next(app: &mut App) {
    let all: Vec<AgentId> = app.model.crew.agents.iter().map(|a| a.id.clone()).collect();
    let all: Vec<&AgentId> = all.iter().filter(|id| terminal::of(&app.model, id).is_some()).collect();
    let at = all.iter().position(|id| Some(*id) == app.model.crew.pane.as_ref());
    let next = at.map_or(0, |at| at + 1);
    match all.get(next).or(all.first()) {
        Some(id) => show(app, &(*id).clone()),
        None => app.say("No agent runs in a terminal"),
    }
}

/// Toggles the terminal between the whole screen and its part of the layout.
pub(crate) fn full_screen(app: &mut App) {
    app.screen.zoom = if app.screen.zoom == Zoom::Full { Zoom::Normal } else { Zoom::Full };
}

/// Reports to the panel, after each message, whether it is on the screen.
pub(crate) fn settle(app: &mut App) {
    let view = View::Terminals;
    let shown = app.screen.main == view;
    if shown && (!app.outside.pane.shown || app.model.crew.pane.is_none()) {
        pick(app);
    }
    let focus = shown && app.top() == Owner::View(view);
    let covered = !app.layers.is_empty();
    let away = app.model.window.away;
    let now = Visibility { shown, focus, covered, away, agent: app.model.crew.pane.clone() };
    // The person is in the pane, or has just left it, and has noticed the bell.
    let inside = focus && app.status_of(app.top()).is_some_and(|s| s.is_raw());
    let before = &app.outside.pane;
    let left = before.shown && (!shown || before.agent != now.agent);
    for id in
        [before.agent.clone().filter(|_| left), now.agent.clone().filter(|_| inside)].into_iter().flatten()
    {
        let bells = terminal::of(&app.model, &id).map_or(0, |p| p.bells);
        if app.model.bells_seen(Some(&id)) != bells {
            app.model.crew.bells.insert(id, bells);
        }
    }
    if now == app.outside.pane {
        return;
    }
    let reply = app.with(Owner::View(view), |p, m| p.handle(PanelEvent::Visibility(&now), m));
    app.outside.pane = now;
    if let Some(Reply::Done(list)) = reply {
        app.effects(Owner::View(view), list);
    }
}
