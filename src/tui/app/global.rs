//! Global actions, available everywhere. One small function each; the table below is the whole list.

use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::{AgentCommand, AgentId, CommandBody, EntryId, Origin, Profile};

use crate::app::App;
use crate::app::effect::{Effect, External, Navigation, Task};
use crate::app::state::Owner;
use crate::dialog::confirm::Confirm;
use crate::input::escape::{self, BreakStep, EscapeContext, EscapeStep};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::model::Model;
use crate::model::conversation::Body;
use crate::panel::{PanelInput, Reply, View};
use crate::terminal::terminal_owner::{WorkSummary, rests};

/// Names and help.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "global.leader",
        "more",
        "Start a key sequence; a box shows the keys that can follow",
    ),
    ActionSpec::key_only("global.which_key", "all keys", "Show the keys that can follow right away"),
    ActionSpec::key_only("global.literal", "literal", "Send the leader key itself to the pane"),
    ActionSpec::key_only("global.escape", "back", "One step back: close, leave, or stop what is running"),
    ActionSpec::key_only(
        "global.break",
        "stop",
        "Copy a selection, else stop the turn, else clear the draft, else quit",
    ),
    ActionSpec::new("global.stop", "stop", "Stop the running turn").menu(Menu::Agents).ending(),
    ActionSpec::new("global.try_now", "retry now", "Retry the failed request now instead of waiting")
        .menu(Menu::Agents),
    ActionSpec::new("global.quit", "quit", "Save and quit").menu(Menu::Session).ending(),
    ActionSpec::new(
        "global.detach",
        "detach",
        "Detach: leave the screen while work continues; `tiller` reattaches",
    )
    .menu(Menu::Session)
    .ending(),
    ActionSpec::new("global.suspend", "suspend", "Suspend Tiller and return to the shell")
        .menu(Menu::Session)
        .ending(),
    ActionSpec::new("global.redraw", "redraw", "Redraw the whole screen").menu(Menu::View),
    ActionSpec::key_only("global.repeat", "repeat", "Repeat the last action").menu(Menu::View),
    ActionSpec::new("global.answer", "answer", "Answer the next question").menu(Menu::Agents),
    ActionSpec::new("global.aside", "answer later", "Close the question and answer it later")
        .menu(Menu::Agents),
    ActionSpec::new("global.profile", "mode", "Next permission mode").menu(Menu::Agents).ending(),
    ActionSpec::new(
        "global.effort",
        "effort",
        "Next thinking effort; after the highest, the model's default",
    )
    .menu(Menu::Agents),
    ActionSpec::new("tour.open", "tour", "Start the guided tour"),
    ActionSpec::new("tour.next", "next step", "Next step of the guided tour"),
    ActionSpec::new("tour.end", "end tour", "End the guided tour"),
    ActionSpec::new("session.new", "new", "Start a new session").menu(Menu::Session).ending(),
    ActionSpec::new(
        "session.rewind",
        "rewind",
        "Select an earlier message to inspect, restore or branch from",
    )
    .menu(Menu::Session),
    ActionSpec::new("session.fork", "fork", "Branch before the last message; nothing is lost")
        .menu(Menu::Session)
        .ending(),
    ActionSpec::new("session.undo", "undo", "Undo the last operation of this session")
        .menu(Menu::Session)
        .ending(),
    ActionSpec::new("session.redo", "redo", "Redo the last undone operation").menu(Menu::Session).ending(),
];

/// Performs a global action; `None`: it is no global action, or it cannot be performed now.
pub(crate) fn run(app: &mut App, action: Action) -> Option<Vec<Effect>> {
    Some(match action.0 {
        "global.leader" => leader(app),
        "global.which_key" => which_key(app),
        "global.literal" => literal(app),
        "global.escape" => escape(app),
        "global.break" => break_(app),
        "global.stop" => stop(app)?,
        "global.try_now" => {
            app.model.agent.turn.retry.as_ref()?;
            vec![Effect::send(CommandBody::Turn(TurnCommand::SkipWait))]
        }
        "global.quit" => quit(app)?,
        "global.detach" => vec![Effect::Task(Task::Leave)],
        "global.suspend" => vec![Effect::Task(Task::Suspend(External::Stop))],
        "global.redraw" => vec![Effect::Task(Task::Repaint)],
        "global.repeat" => vec![Effect::Act(app.keys.last?)],
        "global.answer" => answer(app),
        "global.aside" => {
            app.put_folded_aside();
            app.put_asks_aside();
            Vec::new()
        }
        "global.profile" | "global.effort" => next_level(app, action),
        "tour.open" | "tour.next" | "tour.end" => tour(app, action.0),
        "session.new" => vec![Effect::send(CommandBody::Session(SessionCommand::New))],
        "session.rewind" => vec![Effect::Focus(View::Sessions)],
        "session.fork" => fork(app),
        "session.undo" => vec![Effect::send(CommandBody::Session(SessionCommand::UndoOp { redo: false }))],
        "session.redo" => vec![Effect::send(CommandBody::Session(SessionCommand::UndoOp { redo: true }))],
        "crew.home" | "crew.next" | "crew.needs" => crate::view::agent_view::run(app, action)?,
        _ => crate::view::arrange::run(app, action)?,
    })
}

/// Why an action cannot be performed now; `None`: it can, or it is not one of this file's.
pub(crate) fn disabled(app: &App, action: Action) -> Option<String> {
    let why = match action.0 {
        "global.stop"
            if !app.model.agent.stoppable() && app.model.agent.conversation.running_line().is_none() =>
        {
            "Nothing is running"
        }
        "global.try_now" if app.model.agent.turn.retry.is_none() => {
            "No failed request is waiting for a retry"
        }
        "global.answer" if app.model.questions.open.is_empty() => "No question is waiting",
        "global.aside" if !app.dialogs().any(|l| l.question(&app.model).is_some()) => {
            "No question is on the screen"
        }
        "tour.open" if !app.model.tour.exists() => "The tour is part of `tiller demo`",
        "tour.next" | "tour.end" if app.model.tour.step().is_none() => "No tour is running",
        "session.fork" if app.model.agent.turn.running => "A turn is running; stop it first",
        "session.fork" if app.model.agent.session.read_only => "This session is open read-only",
        "session.fork" if last_prompt(app).is_none() => "No messages yet",
        "global.profile" | "global.effort" if app.model.agent.session.read_only => {
            "This session is open read-only"
        }
        "global.effort" if app.model.agent.session.effort.offered.is_empty() => {
            "This model does not support thinking"
        }
        _ => crate::view::arrange::disabled(app, action)
            .or_else(|| crate::view::agent_view::disabled(app, action))?,
    };
    Some(why.into())
}

/// The current value of what an action changes; empty if it has none.
pub(crate) fn state(app: &App, action: Action) -> &'static str {
    match action.0 {
        "global.profile" | "profile.open" => app.model.agent.session.profile.word(),
        "global.effort" => app.model.agent.session.effort.chosen.word(),
        _ => crate::view::arrange::state(app, action),
    }
}

fn leader(app: &mut App) -> Vec<Effect> {
    app.keys.pending = vec![app.keys.map.leader];
    app.keys.since = app.model.mono;
    Vec::new()
}

fn which_key(app: &mut App) -> Vec<Effect> {
    leader(app);
    app.keys.which = true;
    Vec::new()
}

fn literal(app: &mut App) -> Vec<Effect> {
    let (top, key) = (app.top(), app.keys.map.leader.event());
    match app.with(top, |p, m| p.input(PanelInput::Key(&key), m)) {
        Some(Reply::Done(list)) => list,
        _ => Vec::new(),
    }
}

/// Returns what Escape would do now.
pub(crate) fn escape_step(app: &App) -> EscapeStep {
    let armed = |at: Option<std::time::Duration>| {
        at.is_some_and(|t| app.model.mono.saturating_sub(t) <= escape::DOUBLE)
    };
    escape::step(&EscapeContext {
        prefix: !app.keys.pending.is_empty(),
        inside: app.status_of(app.top()).and_then(|s| s.escape),
        layer: !app.layers.is_empty() || app.is_folded_in_sight(),
        pane: app.screen.focus != View::Composer || app.screen.main != View::Conversation,
        child: app.model.shown.is_some(),
        line: app.model.agent.conversation.running_line().is_some(),
        running: app.model.agent.stoppable(),
        agents: app.outside.stopped_main
            && app.outside.stop.is_some_and(|t| app.model.mono.saturating_sub(t) < escape::AGENTS)
            && working(&app.model) > 0,
        empty: app.is_empty(Owner::View(View::Composer)),
        armed: armed(app.keys.escape),
    })
}

fn escape(app: &mut App) -> Vec<Effect> {
    let escape_step = escape_step(app);
    app.keys.escape = None;
    match escape_step {
        EscapeStep::Prefix => app.keys.pending.clear(),
        EscapeStep::Layer if app.layers.is_empty() => app.put_folded_aside(),
        EscapeStep::Popup
        | EscapeStep::Search
        | EscapeStep::Selection
        | EscapeStep::CopyMode
        | EscapeStep::VimInsert
        | EscapeStep::Layer => {
            let top = app.top();
            let question = app.status_of(top).and_then(|s| s.question);
            match app.with(top, |p, m| p.input(PanelInput::Escape(escape_step), m)) {
                Some(Reply::Done(list)) => app.effects(top, list),
                Some(Reply::Ignored) if escape_step == EscapeStep::Layer => {
                    app.effects(top, vec![Effect::Pop]);
                }
                _ => {}
            }
            // A question that was closed without an answer is put aside.
            let open = app.layers.iter().any(|l| Owner::Layer(l.id) == top);
            if escape_step == EscapeStep::Layer && !open {
                app.questions.aside.extend(question);
            }
        }
        EscapeStep::Pane => return vec![Effect::Focus(View::Composer)],
        EscapeStep::Home => {
            return vec![Effect::Navigate(Navigation::Agent(tiller_protocol::AgentId::main()))];
        }
        EscapeStep::Line | EscapeStep::Stop => return stop(app).unwrap_or_default(),
        EscapeStep::Agents => return end_agents(app),
        EscapeStep::Arm => app.keys.escape = Some(app.model.mono),
        EscapeStep::Rewind => return vec![Effect::Act(Action("session.rewind"))],
        EscapeStep::Nothing => {}
    }
    Vec::new()
}

fn break_(app: &mut App) -> Vec<Effect> {
    let top = app.top();
    if let Some(Reply::Done(list)) = app.with(top, |p, m| p.input(PanelInput::CopySelection, m)) {
        app.effects(top, list);
        return Vec::new();
    }
    let armed = app.keys.breaks.take().is_some_and(|t| app.model.mono.saturating_sub(t).as_secs() < 2);
    let empty = app.is_empty(Owner::View(View::Composer));
    let stops = app.model.agent.stoppable() || app.model.agent.conversation.running_line().is_some();
    match escape::break_step(false, stops, empty, armed) {
        BreakStep::Copy => Vec::new(),
        BreakStep::Stop => stop(app).unwrap_or_default(),
        BreakStep::Clear => vec![Effect::Act(Action("composer.clear"))],
        BreakStep::Quit => quit(app).unwrap_or_default(),
        BreakStep::Arm => {
            app.keys.breaks = Some(app.model.mono);
            app.say("Press Ctrl-C again to quit");
            Vec::new()
        }
    }
}

/// Stops the shell line that runs, else the turn. The second stop within two seconds kills the tools; a shell line is
/// killed by each stop after the first.
fn stop(app: &mut App) -> Option<Vec<Effect>> {
    if let Some(id) = app.model.agent.conversation.running_line() {
        return Some(vec![Effect::send(CommandBody::Turn(TurnCommand::StopTool { id: id.into() }))]);
    }
    if !app.model.agent.stoppable() {
        return None;
    }
    let main = app.model.shown.is_none();
    let hard = app.outside.stopped(app.model.mono, main);
    // The others are asked about after the turn of main only.
    if !main {
        return Some(vec![Effect::send(CommandBody::Turn(TurnCommand::Interrupt { hard }))]);
    }
    let mut list = stop_main(&app.model, hard);
    if hard {
        list.extend(end_agents(app));
    }
    Some(list)
}

/// Stops the turn of main alone: agents that it waits for go on in the background. `hard`: with them and its commands.
pub(crate) fn stop_main(model: &Model, hard: bool) -> Vec<Effect> {
    let release = CommandBody::Agent(AgentCommand::BackgroundAll);
    let stop = CommandBody::Turn(TurnCommand::Interrupt { hard });
    let released = (!hard && model.main_waits_for_agents()).then_some(release);
    released.into_iter().chain([stop]).map(|body| Effect::send_to(AgentId::main(), body)).collect()
}

/// Agents at work besides the main one.
fn working(model: &Model) -> usize {
    model.crew.agents.iter().filter(|a| !a.id.is_main() && a.state.at_work()).count()
}

/// Asks whether the agents that go on after a stop are ended, too; nothing where none does.
fn end_agents(app: &mut App) -> Vec<Effect> {
    app.outside.stop = None;
    let (title, text, label) = match working(&app.model) {
        0 => return Vec::new(),
        1 => (
            "End the agent?".to_owned(),
            "The turn was stopped; 1 agent still works. Its changes are kept.",
            "end the agent".to_owned(),
        ),
        n => (
            format!("End {n} agents?"),
            "The turn was stopped; the agents still work. Their changes are kept.",
            format!("end {n} agents"),
        ),
    };
    let go = vec![Effect::send_to(AgentId::main(), CommandBody::Agent(AgentCommand::CancelAll))];
    vec![Effect::Push(Box::new(Confirm::new(&title, text, &label, go)))]
}

/// Asks when something runs.
fn quit(app: &mut App) -> Option<Vec<Effect>> {
    let go = vec![Effect::send(CommandBody::Session(SessionCommand::Quit))];
    if !app.model.engine.ready {
        app.tasks.push(Task::Quit);
        return Some(Vec::new());
    }
    let text = ending(&app.model);
    if text.is_empty() {
        return Some(go);
    }
    let mut ask = Confirm::new("Quit?", text.trim_end(), "quit", go);
    if app.model.environment.detachable && WorkSummary::of(&app.model).at_work() {
        ask = ask.otherwise("detach", vec![Effect::Task(Task::Leave)]);
    }
    Some(vec![Effect::Push(Box::new(ask))])
}

/// Returns what quitting would stop, and what happens to it; empty: nothing runs.
fn ending(model: &Model) -> String {
    let mut text = String::new();
    if model.main_runs() {
        text.push_str("A turn is running. Quitting stops it; what has arrived so far is kept. ");
    }
    if model.main_line_runs() {
        text.push_str("One of your commands is running. Quitting ends it. ");
    }
    let crew = || model.crew.agents.iter().filter(|a| !a.id.is_main() && a.state.at_work());
    let paused = crew().filter(|a| rests(a)).count();
    match crew().count() - paused {
        0 => {}
        1 => text.push_str("One agent is working. Quitting interrupts it; you can continue it later. "),
        n => text.push_str(&format!(
            "{n} agents are working. Quitting interrupts them; you can continue them later. "
        )),
    }
    match paused {
        0 => {}
        1 => text.push_str("One agent is paused; you can continue it later. "),
        n => text.push_str(&format!("{n} agents are paused; you can continue them later. ")),
    }
    let background: Vec<&str> =
        model.workspace.processes.iter().filter(|p| p.state.runs()).map(|p| p.command.as_str()).collect();
    match background.as_slice() {
        [] => {}
        [one] => text.push_str(&format!("Quitting ends one background process: {one}")),
        all => {
            text.push_str(&format!("Quitting ends {} background processes: {}", all.len(), all.join("; ")))
        }
    }
    text
}

fn answer(app: &mut App) -> Vec<Effect> {
    if !app.open_ask(true) {
        let shown = app.layers.iter().any(|l| l.question(&app.model).is_some());
        app.say(if shown { "Answer the question on the screen first" } else { "No question is waiting" });
    }
    Vec::new()
}

/// The last message of the person's.
fn last_prompt(app: &App) -> Option<EntryId> {
    app.model.agent.conversation.end().rev().find_map(|c| match c.body {
        Body::User { origin: Origin::Prompt, .. } => c.entry,
        _ => None,
    })
}

/// Branches before the last message; its text returns to the composer.
fn fork(app: &mut App) -> Vec<Effect> {
    if let Some(why) = disabled(app, Action("session.fork")) {
        app.say(why);
        return Vec::new();
    }
    let fork = |entry| Effect::send(CommandBody::Session(SessionCommand::Fork { entry }));
    let mut all: Vec<Effect> = last_prompt(app).map(fork).into_iter().collect();
    all.push(Effect::Focus(View::Composer));
    all
}

fn tour(app: &mut App, id: &str) -> Vec<Effect> {
    match id {
        _ if !app.model.tour.exists() => app.say("The tour is part of `tiller demo`"),
        "tour.open" => app.model.tour.begin(),
        "tour.next" => app.model.tour.next(),
        _ => app.model.tour.end(),
    }
    Vec::new()
}

/// Changes to the next permission mode or level of effort, or says why that is not possible now.
fn next_level(app: &mut App, action: Action) -> Vec<Effect> {
    if let Some(why) = disabled(app, action) {
        app.say(why);
        return Vec::new();
    }
    match action.0 {
        "global.effort" => effort(app),
        // The key counts once the engine has reported the present mode.
        _ if !app.model.agent.session.profile_known => {
            app.keys.next_mode = true;
            Vec::new()
        }
        _ => profile(app),
    }
}

/// The model's next level of effort; after the highest comes the vendor's default.
fn effort(app: &App) -> Vec<Effect> {
    let view = &app.model.agent.session.effort;
    let next = view.offered.iter().copied().find(|e| *e > view.chosen).unwrap_or_default();
    vec![Effect::send(CommandBody::Session(SessionCommand::SetEffort { effort: next }))]
}

/// The next permission mode. `AUTO` needs a confirmation.
fn profile(app: &mut App) -> Vec<Effect> {
    let at = Profile::ALL.iter().position(|p| *p == app.model.agent.session.profile).unwrap_or(0);
    let next = Profile::ALL[(at + 1) % Profile::ALL.len()];
    let set = |p| Effect::send(CommandBody::Session(SessionCommand::SetProfile { profile: p }));
    if next != Profile::Full {
        return vec![set(next)];
    }
    let text =
        "Runs everything in this folder without asking; dangerous actions and writing elsewhere still ask.";
    let back = vec![set(Profile::ReadOnly)];
    vec![Effect::Push(Box::new(
        Confirm::new("Switch to AUTO mode?", text, "yes, AUTO", vec![set(next)]).otherwise("use READ", back),
    ))]
}
