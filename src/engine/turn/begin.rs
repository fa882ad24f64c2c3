//! Begins a turn.

use crate::bus::agent_view;
use crate::files::record;
use crate::learning::pairing;
use crate::session::model;
use std::sync::Arc;

use tiller_protocol::event::TurnEvent;
use tiller_protocol::{Entry, EventBody, HookEvent, ToolCall};
use tiller_skills::Skill;

use crate::bus::EventScope;
use crate::context::prefix::layers::{AgentRole, KeptFacts, PromptFacts, SkillFacts, skill_list_budget};
use crate::core::Core;
use crate::core::saves::Then;
use crate::core::services::Human;
use crate::prompts::message_commands::held::HeldMessage;
use crate::prompts::message_commands::waiting;
use crate::turn::part::{Deltas, RunningTurn, TurnCalls, TurnEnd, TurnTasks};
use crate::turn::record::TurnRecord;
use crate::turn::{CallResult, Input, ToolTable, Turn, TurnLimits};

/// The tool that loads skills.
const LOAD_SKILL: &str = "skill_view";

/// Answers of a turn that hooks may send back; the next one ends the turn.
const CHECKS: u32 = 3;

/// A turn to begin, and what is stored with it in one commit.
pub(crate) struct TurnStart {
    pub(crate) scope: EventScope,
    /// The text of the user's message; empty where there is none.
    pub(crate) prompt: String,
    /// Text of others is in that message: it calls no skill.
    pub(crate) of_others: bool,
    pub(crate) entries: Vec<Entry>,
    pub(crate) events: Vec<(EventScope, EventBody)>,
    /// Stores the message queue: the message was in it.
    pub(crate) from_queue: bool,
    /// Adds `prompt` to the user's prompt history.
    pub(crate) in_history: bool,
    /// Calls that it begins with, of an interrupted reply or of `message`, each with its result when it has one.
    pub(crate) calls: Vec<(ToolCall, Option<CallResult>)>,
    /// The message that is sent after the calls, which are its commands.
    pub(crate) message: Option<Box<HeldMessage>>,
}

impl TurnStart {
    /// A turn that continues from the last entry.
    pub(crate) fn new(scope: EventScope) -> Self {
        Self {
            scope,
            prompt: String::new(),
            of_others: false,
            entries: Vec::new(),
            events: Vec::new(),
            from_queue: false,
            in_history: false,
            calls: Vec::new(),
            message: None,
        }
    }
}

/// Begins a turn once its entries are on disk.
pub(crate) fn begin(core: &mut Core, start: TurnStart) {
    let TurnStart { scope, prompt, of_others, entries, events, from_queue, in_history, calls, message } =
        start;
    core.turn.begun += 1;
    core.context.pairs.turn_began();
    pairing::read_before(core);
    let no = core.turn.begun;
    let config = core.services.config();
    let l = &config.limits;
    let limits = TurnLimits {
        requests: core.turn.max_requests.unwrap_or(l.turns),
        attempts: l.attempts.max(1),
        longest_wait: model::longest_wait(core),
        repeats: l.repeats,
        parallel: l.parallel,
        calls_per_reply: l.calls_per_reply,
        checks: if core.services.hooks.any(HookEvent::BeforeResponse) { CHECKS } else { 0 },
        ..TurnLimits::default()
    };
    let tools =
        ToolTable(core.services.tools.visible.iter().map(|t| (t.name().to_owned(), t.touch())).collect());
    let args = calls.iter().map(|(c, _)| (c.id.clone(), c.arguments.clone())).collect();
    let machine = Turn::new(limits, tools, core.session.model.provider(), core.session.call_ids())
        .with_calls(calls)
        .before_message(message.is_some());
    // A message of another agent is not part of the user's prompt history.
    let history = (in_history && core.identity.talks_to_user()).then(|| prompt.clone());
    core.turn.live = Some(RunningTurn {
        no,
        machine,
        scope,
        prompt,
        of_others,
        root: message.as_ref().map(|held| held.entry).or_else(|| core.session.last_prompt()),
        since: core.services.clock.now(),
        tasks: TurnTasks::default(),
        calls: TurnCalls { args, ..TurnCalls::default() },
        deltas: Deltas::new(&core.services.redaction),
        deferred_check: None,
        end: TurnEnd::default(),
        record: TurnRecord::default(),
        message,
    });
    core.session.interrupted = None;
    crate::memory::unconfined_programs::turn_began(core);
    core.context.late.turn_began();
    crate::learning::notice_of_faults(core);
    crate::learning::consolidate_if_due(core);
    let spoken = record::spoken(&entries);
    let mut append = core.append().entries(entries);
    append.running = Some(Some(core.running(format!("a reply of {}", core.session.model))));
    append.prompt = history;
    // The waiting entries are written with the message.
    append.pending = Some(core.prompts.pending.clone());
    if from_queue {
        append.queue = Some(core.prompts.queue.clone());
    }
    core.save(append, events, Then::StartTurn(no));
    // Connects to the provider while the entries are being written.
    let ours = core.identity.external().is_none();
    if let Some(provider) = model::provider(core, &core.session.model).ok().filter(|_| ours) {
        core.spawn(async move { provider.prepare().await });
    }
    record::keep_points(core, spoken);
}

/// The entries are on disk: the turn starts.
pub(crate) fn turn_started(core: &mut Core) {
    let scope = core.scope();
    core.bus.publish(&scope, EventBody::Turn(TurnEvent::TurnStarted {}));
    crate::watching::feed::keep_branch(core);
    core.child_driver().turn_started();
    agent_view::agent_changed(core);
    waiting::hold_back(core);
    let steering = core.prompts.steering();
    core.turn.inputs.push_back(Input::Steer(steering));
    core.feed(Input::Start);
}

/// The facts for the layers of a new prefix.
pub(crate) fn facts(core: &Core) -> PromptFacts {
    PromptFacts {
        folder: core.services.workspace.root.clone(),
        config: core.services.places.config.clone(),
        plugins: core.services.places.plugins.clone(),
        now: core.services.clock.now(),
        alone: core.services.user.human == Human::Absent,
        profile: core.session.profile,
        git: core.watching.git.clone(),
        budget_left: core.money.limits.left(crate::money::spending::spent_so_far(core)),
        role: role(core),
        kept: KeptFacts {
            memory: core.services.user.memory.clone(),
            learnings: core.services.user.learnings.clone(),
        },
        skills: SkillFacts {
            list: skill_index(core),
            style: (!core.identity.is_child()).then(|| crate::prompts::skills::current_style(core)).flatten(),
        },
        unreadable: Some(core.services.workspace.forbidden()),
        terminal: core.services.workspace.terminal().map(|t| t.describe()),
        ..PromptFacts::default()
    }
}

/// The list of skills, for an agent that can load them.
fn skill_index(core: &Core) -> String {
    if core.services.tool(LOAD_SKILL).is_none() {
        return String::new();
    }
    // About 2.5 bytes of text are a token.
    let tokens = skill_list_budget(&core.services.config().context);
    let bytes = usize::try_from(tokens.saturating_mul(5) / 2).unwrap_or(usize::MAX);
    tiller_skills::index(&core.services.skills(), bytes)
}

/// Definition and identity of the agent, for the prompt.
fn role(core: &Core) -> Option<AgentRole> {
    let identity = core.identity.child().map(|c| {
        let name = core.identity.role.as_ref().map(|r| r.name.as_str());
        crate::crew::rights::identity(&core.identity.id, &c.assignment.label, name, model::tier(core).word())
    });
    let definition = core.identity.role.clone();
    (identity.is_some() || definition.is_some()).then(|| AgentRole {
        skills: skills(core),
        definition,
        identity: identity.unwrap_or_default(),
    })
}

/// The skills that its definition and its task name, each once. Deleted skills are left out.
pub(crate) fn skills(core: &Core) -> Vec<Arc<Skill>> {
    let known = core.services.skills();
    let kind = core.identity.role.iter().flat_map(|r| &r.skills);
    let task = core.identity.child().into_iter().flat_map(|c| &c.assignment.skills);
    let mut all: Vec<Arc<Skill>> = Vec::new();
    for name in kind.chain(task) {
        // With what each requires, before it.
        for skill in known.with_required(name).unwrap_or_default() {
            if !all.contains(&skill) {
                all.push(skill);
            }
        }
    }
    all
}
