//! The decision about one call.
//!
//! Order: protected names, `deny` rules (on the raw text and on every part), the profile's own limits, then what
//! allows. Any other call asks; without a user who can answer, it is denied.

pub(crate) mod always;
pub mod approval;
pub(crate) mod command;
mod covers;
pub mod describe;
pub(crate) mod guarded;
pub(crate) mod input;
mod instructions;
mod path;
mod reach;
pub(crate) mod secret;
mod sending;
mod upload;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_protocol::{Access, AskReason, Profile, Risk, ToolCatalog, Touch};

use crate::paths::Roots;
use crate::protected::Protected;
use crate::rules::{Effect, PathUse, Rule, RuleSet, Subject};
use crate::surroundings::{ShellState, Surroundings, Variables};

pub use covers::covers;
pub use instructions::held::{HeldPath, HeldVerdict, held, held_effects};
pub use instructions::{COMMIT_RUNS, INSTRUCTS, is_of_instructions};
pub use reach::{CallReach, reach};
pub(crate) use sending::host_of;
pub use sending::{Heard, sending};

/// Whether a person can answer a question. Always passed down, never inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Human {
    Present,
    Absent,
}

/// What is in force.
#[derive(Clone, Debug)]
pub struct Policy {
    pub rules: RuleSet,
    pub protected: Protected,
    pub roots: Roots,
    /// The tools of this program; a call of any other tool is a foreign program's.
    pub tools: ToolCatalog,
    /// Reads what is around a command. Without it no command is known to be read-only.
    pub around: Option<Arc<dyn Surroundings>>,
    /// Whether [`ReadOnlyRun`]s run in the sandbox's profile `read`. Commands that are harmless only there ask
    /// otherwise. Called when one of these is judged, since looking for the means of the system takes a while.
    pub sandboxed: fn() -> bool,
    /// Folders outside the workspace where `full` writes too, absolute: the user's settings let commands write there.
    pub writable: Vec<PathBuf>,
    /// Hosts that the settings let commands reach, in lower case: `example.com`, or `*.example.com` for those below.
    pub hosts: Vec<String>,
}

impl Policy {
    /// Without rules.
    pub fn new(roots: Roots, tools: ToolCatalog) -> Self {
        Self {
            rules: RuleSet::default(),
            protected: Protected::new(roots.clone()),
            roots,
            tools,
            around: None,
            sandboxed: || false,
            writable: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// With a reader of what is around a command.
    #[must_use]
    pub fn within(mut self, around: Arc<dyn Surroundings>) -> Self {
        self.around = Some(around);
        self
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub profile: Profile,
    pub human: Human,
    /// Path of the agent, for instance `main/a2`.
    pub agent: &'a str,
    pub tool: &'a str,
    pub touch: Touch,
    /// What the tool declared for this call. An empty list is not trusted: it is judged as unknown.
    pub access: &'a [Access],
    /// The arguments as text, for tools that declare nothing that is understood.
    pub raw: &'a str,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow {
        /// The rule in words, for the audit.
        rule: String,
        /// How a command runs that was allowed because it is read-only.
        unasked: Option<ReadOnlyRun>,
    },
    Deny {
        rule: String,
        /// For the model and the person.
        reason: String,
    },
    Ask {
        /// Why it is asked.
        rule: AskReason,
        risk: Risk,
        effects: Vec<String>,
        /// Pattern that could be allowed for good.
        always: Option<String>,
    },
}

/// A read-only command, and the variables that keep it from running other programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOnlyRun {
    /// Set over the environment of this command alone.
    pub variables: Variables,
    /// It was allowed because of the sandbox: outside of it, it must not run without a question.
    pub needs_sandbox: bool,
}

impl Verdict {
    /// How strict it is: allow 0, ask 1, deny 2.
    pub fn strictness(&self) -> u8 {
        match self {
            Self::Allow { .. } => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        }
    }

    /// The verdict with a question for this reason, which no rule answers for good. A denial stays.
    #[must_use]
    pub fn at_least_asks(self, reason: &str) -> Self {
        match self {
            Self::Deny { .. } => self,
            Self::Ask { rule, mut effects, .. } => {
                effects.push(reason.to_owned());
                Self::Ask { rule, risk: Risk::High, effects, always: None }
            }
            Self::Allow { .. } => {
                Self::Ask { rule: reason.into(), risk: Risk::High, effects: Vec::new(), always: None }
            }
        }
    }
}

/// What one access needs.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    Ok(String),
    /// A read-only command, with what it needs.
    ReadOnly(ReadOnlyRun),
    No {
        rule: String,
        reason: String,
    },
    Ask {
        rule: AskReason,
        risk: Risk,
        effects: Vec<String>,
        always: Option<String>,
    },
}

/// Judges a call that no shell of this program runs.
pub fn decide(policy: &Policy, request: &Request<'_>) -> Verdict {
    decide_in(policy, request, None)
}

/// Judges a call. `shell` is the shell of this program that runs its command; it obeys [`ReadOnlyRun::variables`].
pub fn decide_in(policy: &Policy, request: &Request<'_>, shell: Option<&ShellState>) -> Verdict {
    let needs: Vec<Need> = if request.access.is_empty() {
        vec![unknown(policy, request)]
    } else {
        let instructions = instructions::Instructions::of(policy);
        request.access.iter().map(|a| one(&instructions, request, a, shell)).collect()
    };
    join(needs, request.human)
}

/// The rules of the person's file by which the command of this call runs outside the sandbox, in words; `None`: it runs
/// inside. `shell`: as in [`decide_in`].
pub fn outside(policy: &Policy, request: &Request<'_>, shell: Option<&ShellState>) -> Option<String> {
    let [Access::Run { command, folder, .. }] = request.access else { return None };
    command::outside(policy, request, command, Path::new(folder), shell)
}

/// The strictest need wins; questions are asked together.
fn join(needs: Vec<Need>, human: Human) -> Verdict {
    let mut allowed = Vec::new();
    let mut unasked: Option<ReadOnlyRun> = None;
    let mut asks: Vec<(AskReason, Risk, Vec<String>, Option<String>)> = Vec::new();
    for need in needs {
        match need {
            Need::No { rule, reason } => return Verdict::Deny { rule, reason },
            Need::Ask { rule, risk, effects, always } => asks.push((rule, risk, effects, always)),
            Need::ReadOnly(run) => {
                let rule = command::LOOKS.to_owned();
                let all = unasked.get_or_insert_default();
                all.variables.extend(run.variables);
                all.needs_sandbox |= run.needs_sandbox;
                if !allowed.contains(&rule) {
                    allowed.push(rule);
                }
            }
            Need::Ok(rule) => {
                if !allowed.contains(&rule) {
                    allowed.push(rule);
                }
            }
        }
    }
    let Some((rule, mut risk, mut effects, mut always)) = asks.first().cloned() else {
        return Verdict::Allow { rule: allowed.join("; "), unasked };
    };
    for (_, more_risk, more, _) in &asks[1..] {
        risk = risk.max(*more_risk);
        for text in more {
            if !effects.contains(text) {
                effects.push(text.clone());
            }
        }
        // One rule cannot answer several questions, but several files may be named.
        always = None;
    }
    if asks.iter().all(|(rule, ..)| is_of_instructions(rule.text())) {
        let rules: Option<Vec<String>> = asks.into_iter().map(|(.., always)| always).collect();
        always = rules.map(|rules| always::joined(&rules));
    }
    match human {
        Human::Present => Verdict::Ask { rule, risk, effects, always },
        Human::Absent => {
            let what = if effects.is_empty() { String::new() } else { format!(" ({})", effects.join("; ")) };
            Verdict::Deny {
                reason: format!("this needs an approval, and no one can answer{what}"),
                rule: rule.into(),
            }
        }
    }
}

fn one(
    instructions: &instructions::Instructions<'_>,
    request: &Request<'_>,
    access: &Access,
    shell: Option<&ShellState>,
) -> Need {
    let policy = instructions.policy();
    match access {
        Access::Free => free(policy, request),
        Access::Script { code } => script(policy, request, code),
        Access::Store { path, .. } => store(policy, request, access, path.as_deref().map(Path::new)),
        Access::Read { path, inside } => path::read(policy, request, Path::new(path), *inside),
        Access::Write { path, inside } => path::write(instructions, request, Path::new(path), *inside),
        Access::Run { command, folder, background } => {
            command::judge(policy, request, command, Path::new(folder), *background, shell)
        }
        Access::Process { what } => process(policy, request, what),
        Access::Input { process, command, before, text, folder } => {
            let typed = input::ProcessInput { process, command, before, text, folder: Path::new(folder) };
            input::judge(policy, request, &typed)
        }
        Access::Net { url, host, local } => match upload::files(policy, request).as_slice() {
            [] => net(policy, request, url, host, *local),
            files => upload::judge(policy, request, access, url, host, files),
        },
        Access::Mcp { server, tool, arguments } => mcp(policy, request, server, tool, arguments),
    }
}

/// The common end: a `deny` rule forbids, an `ask` rule asks, an `allow` rule or `default` allows, the
/// rest asks.
fn settle(
    policy: &Policy,
    request: &Request<'_>,
    subject: &Subject<'_>,
    access: &Access,
    default: Option<&str>,
    always: Option<String>,
) -> Need {
    let said = policy.rules.matching(request.agent, request.tool, subject, &policy.roots);
    if let Some(rule) = said.deny {
        return Need::No { rule: rule.words(), reason: format!("denied by the rule {}", rule.words()) };
    }
    let read_only_profile = request.profile.only_looks();
    let (effects, risk) = describe::access(access).map_or((vec![], Risk::Low), |(t, r)| (vec![t], r));
    if let Some(rule) = said.ask {
        return if read_only_profile && default.is_none() {
            read_only(request.profile)
        } else {
            Need::Ask { rule: rule.words().into(), risk, effects, always: None }
        };
    }
    match (default, said.allow) {
        (Some(default), _) => Need::Ok(default.to_owned()),
        (None, _) if read_only_profile => read_only(request.profile),
        (None, Some(rule)) => Need::Ok(rule.words()),
        (None, None) => Need::Ask { rule: AskReason::NoRule, risk, effects, always },
    }
}

pub(crate) fn read_only(profile: Profile) -> Need {
    let reason = if profile == Profile::Plan {
        "plan mode is on: only reading inside the workspace and planning are allowed; submit the plan with \
         write_plan, and start work when the user approves it"
    } else {
        "read-only mode is on: only reading inside the workspace and planning are allowed"
    };
    Need::No { rule: format!("{} mode", profile.name()), reason: reason.into() }
}

fn free(policy: &Policy, request: &Request<'_>) -> Need {
    let subject = Subject::Other(request.raw);
    // Asking the person and keeping the plan need no permission, but may be denied by name.
    settle(policy, request, &subject, &Access::Free, Some("needs no permission"), None)
}

/// A change of what Tiller keeps. The settings of the store decide about it where neither a mode that only looks, nor a rule
/// about the tool or the file does.
fn store(policy: &Policy, request: &Request<'_>, access: &Access, path: Option<&Path>) -> Need {
    let default = (!request.profile.only_looks()).then_some("the settings of the store");
    let tool = settle(policy, request, &Subject::Other(request.raw), access, default, None);
    let Some(path) = path else { return tool };
    let met = |effect| narrowing(&policy.rules, &policy.roots, request.agent, path, PathUse::Write, effect);
    match (tool, met(Effect::Deny), met(Effect::Ask)) {
        (no @ Need::No { .. }, ..) => no,
        (_, Some(rule), _) => {
            Need::No { rule: rule.words(), reason: format!("denied by the rule {}", rule.words()) }
        }
        (Need::Ok(_) | Need::ReadOnly(_), _, Some(rule)) => {
            let (effects, risk) =
                describe::access(access).map_or((vec![], Risk::High), |(t, r)| (vec![t], r));
            Need::Ask { rule: rule.words().into(), risk, effects, always: None }
        }
        (other, ..) => other,
    }
}

/// A script runs unasked where the sandbox lets it only read; a rule for its tool, and `full`, let it also write in the
/// workspace. Where a rule denies or asks about reading files it asks, since what it reads by itself is not judged. The calls
/// that it makes are judged one by one in any case; the commands that its code shows are judged as those of `python3 -c`.
fn script(policy: &Policy, request: &Request<'_>, code: &str) -> Need {
    match (script_alone(policy, request, code), command::of_code(policy, request, code)) {
        (no @ Need::No { .. }, _) | (_, Some(no @ Need::No { .. })) => no,
        (Need::Ask { rule, risk, mut effects, .. }, Some(Need::Ask { rule: more, .. })) => {
            effects.extend(Some(more.to_string()).filter(|more| rule.text() != more));
            Need::Ask { rule, risk, effects, always: None }
        }
        (_, Some(ask)) => ask,
        (alone, None) => alone,
    }
}

fn script_alone(policy: &Policy, request: &Request<'_>, code: &str) -> Need {
    let access = Access::Script { code: code.to_owned() };
    let full = (request.profile == Profile::Full).then_some("full mode");
    let always = Some(request.tool.to_owned());
    let need = settle(policy, request, &Subject::Other(code), &access, full, always);
    let instructs = || instructions::question(policy, &instructions::in_code(policy, request, code));
    let Need::Ask { rule: AskReason::NoRule, risk, effects, always } = need else {
        return instructions::beside(need, instructs);
    };
    let rule = match narrowed_reads(policy, request.agent) {
        _ if !(policy.sandboxed)() => "this system has no sandbox for scripts".to_owned(),
        Some(rule) => format!("{}: a script could read these files", rule.words()),
        None => return Need::ReadOnly(ReadOnlyRun { needs_sandbox: true, ..ReadOnlyRun::default() }),
    };
    instructions::beside(Need::Ask { rule: rule.into(), risk, effects, always }, instructs)
}

/// The first rule by which not every file of the workspace is read without a question. What runs unasked and reads files that
/// its words do not name, asks then.
pub(crate) fn narrowed_reads<'p>(policy: &'p Policy, agent: &str) -> Option<&'p Rule> {
    let narrows = |r: &&Rule| {
        matches!(r.effect, Effect::Deny | Effect::Ask) && r.is_for(agent) && r.narrows_paths(PathUse::Read)
    };
    policy.rules.rules().iter().find(narrows)
}

/// Looking at a process that Tiller started, or ending it, is free; writing to it is like running a command.
fn process(policy: &Policy, request: &Request<'_>, what: &str) -> Need {
    let first = what.split_whitespace().next().unwrap_or_default().to_lowercase();
    let read_only = matches!(first.as_str(), "list" | "poll" | "log" | "read" | "wait" | "status" | "output");
    let default = if read_only {
        Some("reading a process of this session")
    } else if request.profile.only_looks() {
        None
    } else if first == "kill" || first == "stop" {
        Some("ending a process of this session")
    } else if request.profile == Profile::Full {
        Some("full mode")
    } else {
        None
    };
    let access = Access::Process { what: what.to_owned() };
    settle(policy, request, &Subject::Other(what), &access, default, None)
}

/// `local`: a server of this machine. No mode allows it, since such servers trust every client.
fn net(policy: &Policy, request: &Request<'_>, url: &str, host: &str, local: bool) -> Need {
    let access = Access::Net { url: url.to_owned(), host: host.to_owned(), local };
    let host = host.to_ascii_lowercase();
    let default = (request.profile == Profile::Full && !local).then_some("full mode");
    let always = sending::is_plain(&host).then(|| format!("{}(domain:{host})", request.tool));
    settle(policy, request, &Subject::Net { url, host: &host }, &access, default, always)
}

/// A call of an MCP server's tool: what it does is not known, and the server's own word on that does not count. Rules name
/// it as `mcp:SERVER:TOOL`; a rule about the tool that carries it narrows it as well.
fn mcp(policy: &Policy, request: &Request<'_>, server: &str, tool: &str, arguments: &str) -> Need {
    let access =
        Access::Mcp { server: server.to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() };
    let subject = Subject::Other(arguments);
    let name = format!("{}{server}:{tool}", crate::rules::names::MCP);
    let judged = |tool: &str| {
        let request = Request { tool, ..*request };
        let default = (request.profile == Profile::Full).then_some("full mode");
        settle(policy, &request, &subject, &access, default, Some(name.clone()))
    };
    let need = match (judged(&name), judged(request.tool)) {
        (no @ Need::No { .. }, _) | (_, no @ Need::No { .. }) => no,
        // Where no rule is about one of the two names, the other one decides.
        (Need::Ask { rule: AskReason::NoRule, .. }, other) => other,
        (other, Need::Ask { rule: AskReason::NoRule, .. }) => other,
        (ask @ Need::Ask { .. }, _) | (_, ask @ Need::Ask { .. }) => ask,
        (ok, _) => ok,
    };
    let files = || instructions::mcp::named(policy, request, tool, arguments);
    instructions::beside(need, || instructions::question(policy, &files()))
}

/// A tool that declares nothing: judged by its kind and its name.
fn unknown(policy: &Policy, request: &Request<'_>) -> Need {
    let subject = Subject::Other(request.raw);
    let access = Access::Process { what: request.tool.to_owned() };
    let default = (request.profile == Profile::Full).then_some("full mode");
    let ours = policy.tools.contains(request.tool);
    // The effects of a program's tool are not known: a rule for it would open all of them.
    let always = ours.then(|| request.tool.to_owned());
    let need = settle(policy, request, &subject, &access, default, always);
    match need {
        Need::Ask { rule, always, .. } => Need::Ask {
            rule,
            risk: Risk::High,
            effects: vec![match request.touch {
                Touch::Write if ours => "it changes what agents are told in later sessions".to_owned(),
                _ => format!("{} does not declare what it touches", request.tool),
            }],
            always,
        },
        other => other,
    }
}

/// The rule that forbids `agent` to read `path` (absolute), in words. It holds for every reader.
pub fn unreadable(rules: &RuleSet, roots: &Roots, agent: &str, path: &Path) -> Option<String> {
    denied(rules, roots, agent, path, PathUse::Read)
}

/// The rule that forbids `agent` to write `path` (absolute), in words.
pub fn unwritable(policy: &Policy, agent: &str, path: &Path) -> Option<String> {
    denied(&policy.rules, &policy.roots, agent, path, PathUse::Write)
}

/// The rule that forbids `agent` to reach an address that a page opens, in words. A rule about a tool alone is none.
pub fn unreachable(policy: &Policy, agent: &str, url: &str, host: &str) -> Option<String> {
    let host = host.to_ascii_lowercase();
    let subject = Subject::Net { url, host: &host };
    let mut denied = policy.rules.rules().iter().filter(|r| r.effect == Effect::Deny && !r.is_whole());
    // To reach an address is the same by each tool that does it.
    let tool = policy.tools.iter().find(|t| t.rule == tiller_protocol::RuleArgument::Address)?.name;
    denied.find(|r| r.matches(agent, tool, &subject, &policy.roots)).map(Rule::words)
}

fn denied(rules: &RuleSet, roots: &Roots, agent: &str, path: &Path, how: PathUse) -> Option<String> {
    narrowing(rules, roots, agent, path, how, Effect::Deny).map(Rule::words)
}

/// The rule with this effect that is about doing `how` to `path` (absolute). One about a tool alone is none.
fn narrowing<'r>(
    rules: &'r RuleSet,
    roots: &Roots,
    agent: &str,
    path: &Path,
    how: PathUse,
    effect: Effect,
) -> Option<&'r Rule> {
    let subject = Subject::Path(path, how);
    let mut rules = rules.rules().iter().filter(|r| r.effect == effect && r.narrows_paths(how));
    rules.find(|r| r.matches(agent, how.tool(), &subject, roots))
}

/// Why a path without links is not read as one of many: by a search, or because the project names it. In words, as
/// [`unreadable`].
pub fn secret(roots: &Roots, path: &Path) -> Option<String> {
    roots.secret_real(path).map(|entry| secret::words(&entry))
}

/// The deny rule or the danger that a text would meet if it were a command, run in `folder`. For words of another
/// program that do not say for certain what they are: the answer makes a judgement stricter, never laxer.
pub fn suspected(policy: &Policy, request: &Request<'_>, text: &str, folder: &Path) -> Option<Verdict> {
    match command::suspected(policy, request, text, folder)? {
        need @ (Need::No { .. } | Need::Ask { .. }) => Some(join(vec![need], request.human)),
        Need::Ok(_) | Need::ReadOnly(_) => None,
    }
}

/// The rule that forbids `agent` to read what a command, run in `folder`, surely reads, in words.
pub fn unreadable_by(policy: &Policy, agent: &str, command: &str, folder: &Path) -> Option<String> {
    let analysis = tiller_shell::analyse(command);
    let places = folders(&policy.roots, &analysis, folder);
    match command::by_path(policy, agent, &analysis, &places) {
        (Some(Need::No { reason, .. }), _) => Some(reason),
        _ => None,
    }
}

/// Folders in which the command may run.
pub(crate) fn folders(roots: &Roots, analysis: &tiller_shell::Analysis, folder: &Path) -> Vec<PathBuf> {
    roots.folders(analysis, folder)
}

/// Whether an access changes no file by its words: a read, or a read-only command. Decides whether a snapshot is taken
/// around a call that ran without a question. It is not a permission: what is around the command is not checked.
pub fn is_read_only(policy: &Policy, access: &Access) -> bool {
    match access {
        // A store keeps its own earlier states.
        Access::Free | Access::Read { .. } | Access::Store { .. } => true,
        Access::Run { command, folder, background: false } => {
            command::is_read_only(policy, command, Path::new(folder))
        }
        _ => false,
    }
}

/// The pattern that "always" would allow for a command that starts in the workspace. For a text that the
/// person edited in the dialog.
pub fn always_pattern(policy: &Policy, text: &str) -> Option<String> {
    let analysis = tiller_shell::analyse(text);
    let places = folders(&policy.roots, &analysis, &policy.roots.workspace);
    if !crate::danger::dangers(&analysis, &policy.roots, &places, false).is_empty() {
        return None;
    }
    let open = command::open_parts(policy, "", "terminal", &analysis, &places, None);
    command::offer(policy, &analysis, &places, &open).ok()
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod script_tests;
#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;

#[cfg(test)]
mod instructions_tests;

#[cfg(test)]
#[path = "written_tests.rs"]
mod written_tests;
