//! `tiller workflow`: checks a workflow file, or runs it to its end without a screen.

use std::io::Write;
use std::path::Path;

use tiller_config::Problem;
use tiller_engine::{EventStream, Open};
use tiller_external::Adapters;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    AgentCommand, Command, CommandBody, CommandId, EventBody, Notice, NoticeKind, StepState, WorkflowView,
};
use tiller_store::OnFailure;
use tiller_tool::crew::NameCheck;

use crate::app::definitions::workflows::{ParsedWorkflow, cli, read};
use crate::app::{RuleFlags, Running, Setup, Start, child_env, definitions};
use crate::commands::args::Workflow;
use crate::commands::exec::ends::was_refused;
use crate::commands::exec::prepare::check_model;
use crate::commands::exec::stop::{self, Stop};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Checks or runs a workflow.
pub(super) fn run(
    setup: impl Fn(&crate::commands::args::Common) -> Result<Setup, Notice>,
    what: &Workflow,
) -> Result<Exit, Notice> {
    match what {
        Workflow::Check { file } => check(&setup(&crate::commands::args::Common::default())?, file),
        Workflow::Run { file, json, allow, deny, common } => {
            let setup = setup(common)?;
            let start = Start {
                rules: RuleFlags { allow: allow.clone(), deny: deny.clone(), ..RuleFlags::default() },
                ..Start::headless(Open::New)
            };
            start_it(setup, file, *json, start)
        }
    }
}

/// Reads a file and checks all of it: its format, its steps, the roles and programs that they name.
fn read_workflow(setup: &Setup, file: &Path) -> Result<ParsedWorkflow, Notice> {
    let bytes = read(file).map_err(|why| Notice::new(NoticeKind::User, format!("{why}.")))?;
    let (filed, mut wrong) = ParsedWorkflow::read(file, &bytes).map_err(|wrong| problem_notice(&[wrong]))?;
    let status = setup.trust(&setup.open_store()?);
    let (roles, _) =
        definitions::read(&setup.places, &setup.folder_config, status.may_load(), &setup.tools.catalog());
    let (adapters, env) = (Adapters::new(&[setup.places.config.join("adapters")]), child_env(setup));
    let role = |name: &str| roles.get(name).is_none().then(|| roles.no_such(name));
    let disabled = &setup.config.config.skills.disabled;
    let (skills, _) =
        definitions::skills::read(&setup.places, &setup.folder_config, status.may_load(), disabled);
    let skill = |name: &str| skills.wrong([name]);
    let tools = setup.tools.catalog();
    let tool = |name: &str| tiller_config::agents::no_such_tool(name, &tools);
    let of = std::sync::Arc::clone(&setup.env);
    let providers = tiller_provider::build(
        &setup.config.config,
        &setup.formats,
        &|n| of(n),
        Some(&setup.key_file()),
        &setup.redact(),
    );
    let model = |name: &str| tiller_agents::no_such_model(name, |provider| providers.get(provider).map(drop));
    let cli = |name: &str| cli(&adapters, name, &env);
    let terminal = |name: &str| setup.config.config.no_such_terminal(name);
    let known =
        NameCheck { role: &role, cli: &cli, skill: &skill, model: &model, tool: &tool, terminal: &terminal };
    wrong.extend(filed.check(&known));
    wrong.sort_by_key(|w| w.at);
    if wrong.is_empty() { Ok(filed) } else { Err(problem_notice(&wrong)) }
}

/// All errors, one on each line.
fn problem_notice(wrong: &[Problem]) -> Notice {
    let mut lines = wrong.iter().map(Problem::to_string);
    let notice = Notice::new(NoticeKind::User, lines.next().unwrap_or_default());
    lines.fold(notice, Notice::hint)
}

fn check(setup: &Setup, file: &Path) -> Result<Exit, Notice> {
    let flow = read_workflow(setup, file)?.flow;
    let mut text = format!("{}: {} steps\n", one_line(&flow.name), flow.steps.len());
    for step in &flow.steps {
        let by = step.brief.cli.as_deref().or(step.brief.agent.as_deref()).unwrap_or("-");
        let after = match step.depends_on.as_slice() {
            [] => String::new(),
            needs => format!("after {}", needs.join(", ")),
        };
        let line = format!("  {:20} {by:12} {after}", step.id.as_deref().unwrap_or_default());
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    say(&text)
}

fn start_it(setup: Setup, file: &Path, json: bool, start: Start) -> Result<Exit, Notice> {
    let flow = read_workflow(&setup, file)?.flow;
    setup.check_config()?;
    // As with `exec`: a failed write ends the run.
    let store = setup.try_store(OnFailure::Answer).map_err(|e| e.at_start())?;
    crate::commands::say_opening(&store);
    check_model(&setup, true)?;
    let name = flow.name.clone();
    let mut engine = Running::start(setup, store, Start { workflow: Some(flow), ..start })?;
    for notice in std::mem::take(&mut engine.notices) {
        crate::commands::fail(&notice);
    }
    let (mut events, handle) = (engine.events(), engine.handle());
    let send = |id, body| {
        let sent = handle.send(Command::new(CommandId(id), body));
        sent.map_err(|e| {
            Notice::new(NoticeKind::Internal, format!("The engine does not accept commands: {e}."))
        })
    };
    let mut refused = false;
    let exit = engine.block_on(async {
        let mut stop = Stop::listen()?;
        stop::heed(&engine)?;
        send(1, CommandBody::Agent(AgentCommand::Workflow { name }))?;
        let ended = tokio::select! {
            ended = follow(&mut events, json, &mut refused) => Some(ended?),
            () = stop.next() => None,
        };
        let Some(view) = ended else {
            // Running steps are interrupted, and can be continued.
            send(2, CommandBody::Session(SessionCommand::Quit))?;
            return Ok(Exit::Interrupted);
        };
        if !json {
            for step in &view.steps {
                // Text of models and programs is printed without control characters.
                let said = tiller_text::clean::plain_lines(step.said.trim());
                say(&format!("{} {}\n{}\n", step.id, step.state.word(), said.trim_end()))?;
            }
        }
        // A refusal of an agent of the run counts for the run.
        Ok(match view.state {
            _ if refused => Exit::Refused,
            StepState::Done => Exit::Done,
            _ => Exit::Model,
        })
    });
    for unsaved in engine.stop() {
        crate::commands::fail(&unsaved);
    }
    exit
}

/// Prints each change of a step, until the end.
async fn follow(events: &mut EventStream, json: bool, refused: &mut bool) -> Result<WorkflowView, Notice> {
    let gone = || Notice::new(NoticeKind::Internal, "The engine ended before the workflow did.");
    let mut last = WorkflowView::default();
    loop {
        let event = events.next().await.ok_or_else(gone)?;
        if json {
            say(&json_line(&*event))?;
        }
        match &event.body {
            EventBody::State(StateEvent::AgentChanged { view }) => *refused |= was_refused(view),
            EventBody::Reply(reply) => {
                if let ReplyEvent::ErrorReply { notice } = &**reply {
                    return Err(notice.clone());
                }
            }
            EventBody::State(StateEvent::WorkflowChanged { view }) => {
                for step in &view.steps {
                    let before = last.steps.iter().find(|s| s.id == step.id).map(|s| s.state);
                    if !json && before != Some(step.state) && step.state != StepState::Waiting {
                        // Standard error may be closed; the exit code still says it.
                        let _ = writeln!(std::io::stderr().lock(), "{} {}", step.id, step.state.word());
                    }
                }
                last = view.clone();
                if !matches!(last.state, StepState::Running | StepState::Waiting) {
                    return Ok(last);
                }
            }
            _ => {}
        }
    }
}
