//! An agent is taken on: limits, role, model.

use std::sync::Arc;

use tiller_config::agents::{Definition, Pick, Tier};
use tiller_config::schema::Agents;
use tiller_engine::crew::{
    HostBudget, HostEvents, HostSession, HostSettings, HostStorage, narrowed, profile_of,
};
use tiller_external::{Adapter, Transport};
use tiller_protocol::{AgentId, AgentLimits, Cost, EntryId, ModelRef, Profile};
use tiller_tool::crew::Brief;

use crate::driver::CrewDriver;
use crate::roster::READING;
use crate::roster::member::{Member, Order};

/// Hint for agents that have no permission to delegate.
const YOURSELF: &str = "do the work yourself";
/// Longest label, in characters.
const LABEL: usize = 40;

/// Where the task of a new agent comes from.
#[derive(Default)]
pub(crate) struct TaskSource {
    /// The call of a model that gave it.
    pub(crate) call: Option<String>,
    /// The entry of that call.
    pub(crate) entry: Option<EntryId>,
    /// The user wrote all of it.
    pub(crate) of_user: bool,
}

impl CrewDriver<'_> {
    /// Adds an agent to the line of those that wait to be started. `from`: the call of `by` that asks for it, and the
    /// entry with that call.
    ///
    /// # Errors
    /// A sentence for the model or the user that asked.
    pub(crate) fn recruit(
        &mut self,
        by: &AgentId,
        from: TaskSource,
        brief: Brief,
        background: bool,
    ) -> Result<AgentId, String> {
        let config = self.host.config();
        let caps = &config.agents;
        if self.host.read_only() {
            return Err("this session is open read-only".into());
        }
        if self.crew.reading {
            return Err(READING.into());
        }
        if by.depth() >= caps.depth {
            let depth = caps.depth;
            return Err(format!("agents can be nested at most {depth} deep (agents.depth): {YOURSELF}"));
        }
        if self.crew.members.len() >= caps.total {
            let total = caps.total;
            return Err(format!(
                "this session has reached its limit of {total} agents (agents.total): {YOURSELF}"
            ));
        }
        self.host.limit_money();
        if let Some(why) = self.crew.reservations.empty() {
            return Err(format!("{why}: {YOURSELF}"));
        }
        if brief.goal.trim().is_empty() {
            return Err("the goal is empty".into());
        }
        self.check_tools(&brief.tools)?;
        let (roles, skills) = (self.host.roles(), self.host.skills());
        if let Some(why) = skills.wrong(&brief.skills) {
            return Err(why);
        }
        let brief = self.resolve_backend(brief);
        let role = match &brief.agent {
            Some(name) => Some(roles.get(name).cloned().ok_or_else(|| self.unknown_role(name))?),
            None => None,
        };
        if let Some(role) = &role
            && let Some(why) = skills.wrong(&role.skills)
        {
            let kind = &role.name;
            return Err(format!("the agent {kind} uses a skill that does not exist here: {why}"));
        }
        let pick = role.as_ref().map(|r| &r.pick);
        let model = match &brief.cli {
            Some(cli) => {
                let (adapter, _) = self.find_program(cli)?;
                ModelRef(format!("{}/{}", adapter.name, brief.model.as_deref().unwrap_or("its own")))
            }
            None => self.choose_model(by, brief.model.as_deref(), pick)?,
        };
        // Agents of another model may be cheaper.
        let like = |id: &AgentId| self.crew.members.get(id).is_some_and(|m| m.order.model == model);
        if let Some(why) = self.crew.reservations.too_little(like) {
            return Err(format!("{why}: {YOURSELF}"));
        }
        let parent = self.crew.members.get(by);
        let above = parent.map_or(self.host.profile(), |p| narrowed(p.order.profile, self.host.profile()));
        let profile = profile_of(role.as_deref(), above);
        let runs = self.host.has_tool(&self.crew.grants(by), "terminal");
        if brief.cli.is_some() && (profile < Profile::Ask || !runs) {
            // An external program could do what its parent may not.
            return Err(format!("an external program may run commands, and you may not: {YOURSELF}"));
        }
        let brief = self.resolve_terminal(brief, role.as_deref(), parent)?;
        let folder = parent.filter(|_| !brief.isolated).map(|p| p.order.folder.clone()).unwrap_or_default();
        self.crew.names += 1;
        let id = by.child(&format!("a{}", self.crew.names));
        let order = Order {
            label: self.label(&brief),
            model,
            profile,
            folder,
            limits: limits(caps, role.as_ref().map(|r| &r.limits)),
            background,
            spawned_by: from.entry.or(self.host.head()),
            call: from.call,
            of_user: from.of_user,
            brief,
            fresh: true,
            ..Order::default()
        };
        let session = self.host.new_session_id();
        self.crew.reservations.limit(&id, order.limits);
        let mut member = Member::new(id.clone(), session, order, self.host.now());
        member.role = role;
        self.crew.members.insert(id.clone(), member);
        self.crew.line.push_back(id.clone());
        self.store_member(&id);
        Ok(id)
    }

    /// A brief that names the terminal where its commands run, when that is not the main agent's.
    fn resolve_terminal(
        &self,
        mut brief: Brief,
        role: Option<&Definition>,
        parent: Option<&Member>,
    ) -> Result<Brief, String> {
        let own = brief.terminal.take().filter(|name| !name.is_empty());
        if let Some(name) = &own {
            if brief.cli.is_some() {
                return Err("an external program runs on this machine: leave terminal out".into());
            }
            self.host.check_terminal(name)?;
        }
        let role = role.and_then(|r| r.terminal.clone());
        if let Some(name) = role.as_ref().filter(|_| own.is_none()) {
            self.host.check_terminal(name)?;
        }
        brief.terminal = own.or(role).or_else(|| parent.and_then(|p| p.order.brief.terminal.clone()));
        Ok(brief)
    }

    /// A brief in its normal form: either a role or an external program.
    pub(crate) fn resolve_backend(&self, mut brief: Brief) -> Brief {
        let roles = self.host.roles();
        // An external program can be named in place of a role: `@claude`, `@codex:headless`.
        if brief.cli.is_none()
            && let Some(name) = brief.agent.clone().filter(|a| roles.get(a).is_none())
            && self.find_program(&name).is_ok()
        {
            (brief.cli, brief.agent) = (Some(name), None);
        }
        let role = brief.agent.as_ref().and_then(|name| roles.get(name));
        brief.cli = brief.cli.or_else(|| role.and_then(|r| r.cli.clone())).filter(|c| !c.is_empty());
        brief
    }

    /// The adapter of a program, and the transport if one is named: `claude`, `codex:headless`.
    pub(crate) fn find_program(&self, name: &str) -> Result<(Arc<Adapter>, Option<Transport>), String> {
        let (name, how) = name.split_once(':').map_or((name, None), |(n, how)| (n, Some(how)));
        let Some(programs) = &self.host.crew_config().programs else {
            return Err("external programs cannot be run here".into());
        };
        let adapter = programs.adapters.get(name).ok_or_else(|| {
            let known: Vec<&str> = programs.adapters.iter().map(|a| a.name.as_str()).collect();
            format!("there is no adapter for {name}; available: {}", known.join(", "))
        })?;
        let transport = match how {
            None => None,
            Some(how) => Some(
                Transport::of(how)
                    .ok_or_else(|| format!("unknown transport {how}: use acp, headless or pty"))?,
            ),
        };
        Ok((adapter, transport))
    }

    /// Rejects unknown tool names; otherwise the agent would start with no tools.
    pub(crate) fn check_tools(&self, named: &[String]) -> Result<(), String> {
        let tools = self.host.all_tools();
        let wrong = named.iter().find_map(|name| tiller_config::agents::no_such_tool(name, &tools));
        wrong.map_or(Ok(()), Err)
    }

    /// The error for an unknown role, with the nearest role or external program.
    pub(crate) fn unknown_role(&self, name: &str) -> String {
        let roles = self.host.roles();
        let program = name.split(':').next().unwrap_or(name);
        let adapters =
            self.host.crew_config().programs.iter().flat_map(|p| p.adapters.iter()).map(|a| a.name.clone());
        let programs: Vec<String> = adapters.collect();
        let kinds = roles.iter().map(|r| r.name.as_str());
        match tiller_protocol::nearest::nearest(program, kinds.chain(programs.iter().map(String::as_str))) {
            Some(near) => format!("there is no agent `{name}`; did you mean `{near}`?"),
            None => format!("{}; external programs are {}", roles.no_such(name), programs.join(", ")),
        }
    }

    pub(crate) fn label(&self, brief: &Brief) -> String {
        let named = brief.label.clone().filter(|l| !l.trim().is_empty());
        let text = named.unwrap_or_else(|| brief.goal.clone());
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = self.host.redact(&line);
        match line.char_indices().nth(LABEL) {
            Some((end, _)) => format!("{}…", line[..end].trim_end()),
            None => line,
        }
    }

    /// The model of an agent below `by`: the requested one, that of its role, or that of `by`.
    pub(crate) fn choose_model(
        &self,
        by: &AgentId,
        asked: Option<&str>,
        pick: Option<&Pick>,
    ) -> Result<ModelRef, String> {
        let config = self.host.config();
        let tiers = &config.tiers;
        let parents = match self.crew.members.get(by) {
            Some(member) => member.order.model.clone(),
            None => self.host.model(),
        };
        let tier = |tier: Tier| {
            let named = match tier {
                Tier::Fast => &tiers.fast,
                Tier::Main => &tiers.main,
                Tier::Deep => &tiers.deep,
            };
            named.clone().map(ModelRef)
        };
        let model = match (asked.map(str::trim).filter(|a| !a.is_empty()), pick) {
            (Some(name), _) => match Tier::of(name) {
                Some(named) => tier(named),
                None => Some(ModelRef(name.into())),
            },
            (None, Some(Pick::Tier(named))) => tier(*named),
            (None, Some(Pick::Model(name))) => Some(ModelRef(name.clone())),
            (None, _) => None,
        };
        let Some(model) = model else { return Ok(parents) };
        match self.host.check_model(&model) {
            Ok(()) => Ok(model),
            Err(e) => {
                let e = e.to_string();
                Err(format!(
                    "the model {model} cannot be used: {}. Leave the model out",
                    e.trim_end_matches('.')
                ))
            }
        }
    }
}

/// The limits of a new agent: the stricter ones of the settings and its role.
fn limits(caps: &Agents, role: Option<&AgentLimits>) -> AgentLimits {
    fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    let role = role.copied().unwrap_or_default();
    AgentLimits {
        turns: least(Some(caps.turns), role.turns),
        seconds: least(Some(caps.seconds), role.seconds),
        tokens: least(caps.tokens, role.tokens),
        cost: least(caps.cost.map(Cost::from_usd), role.cost),
    }
}
