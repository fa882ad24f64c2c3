//! An agent is taken on: limits, role, model.

use crate::session::model;
use std::sync::Arc;

use tiller_config::agents::{Definition, Pick, Tier};
use tiller_config::schema::Agents;
use tiller_external::{Adapter, Transport};
use tiller_protocol::{AgentId, AgentLimits, Cost, EntryId, ModelRef, Profile, SessionId};
use tiller_tool::crew::Brief;

use super::member::{Member, Order};
use crate::core::Core;
use crate::crew::state::READING;

/// Hint for agents that have no permission to delegate.
const YOURSELF: &str = "do the work yourself";
/// Characters of a label.
const LABEL: usize = 40;

impl Core {
    /// Takes an agent on, which starts when there is a place. `from`: the call of `by`'s that asks for it, and the
    /// entry with that call.
    ///
    /// # Errors
    /// In a sentence for the model (or the person) that asked.
    pub(crate) fn recruit(
        &mut self,
        by: &AgentId,
        from: (Option<String>, Option<EntryId>),
        brief: Brief,
        background: bool,
    ) -> Result<AgentId, String> {
        let config = self.services.config();
        let caps = &config.agents;
        if self.session.read_only {
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
        self.crew.reservations.limit_money(self.money.limits.left(self.spent_so_far()));
        if let Some(why) = self.crew.reservations.empty() {
            return Err(format!("{why}: {YOURSELF}"));
        }
        if brief.goal.trim().is_empty() {
            return Err("the goal is empty".into());
        }
        self.tools_known(&brief.tools)?;
        let roles = self.services.roles();
        if let Some(why) = roles.skills().wrong(&brief.skills) {
            return Err(why);
        }
        let brief = self.settled(brief);
        let role = match &brief.agent {
            Some(name) => Some(roles.get(name).cloned().ok_or_else(|| self.no_such_kind(name))?),
            None => None,
        };
        if let Some(role) = &role
            && let Some(why) = roles.skills().wrong(&role.skills)
        {
            let kind = &role.name;
            return Err(format!("{kind} uses a skill that does not exist here: {why}"));
        }
        let pick = role.as_ref().map(|r| &r.pick);
        let model = match &brief.cli {
            Some(cli) => {
                let (adapter, _) = self.program(cli)?;
                ModelRef(format!("{}/{}", adapter.name, brief.model.as_deref().unwrap_or("its own")))
            }
            None => self.model_for(by, brief.model.as_deref(), pick)?,
        };
        let parent = self.crew.members.get(by);
        let above = parent.map_or(self.session.profile, |p| narrowed(p.order.profile, self.session.profile));
        let profile = profile_of(role.as_deref(), above);
        let runs = self.services.tools_of(&self.crew.chain(by)).iter().any(|t| t.name() == "terminal");
        if brief.cli.is_some() && (profile < Profile::Ask || !runs) {
            // Nothing would keep it from what its parent may not do.
            return Err(format!("an external program may run commands, and you may not: {YOURSELF}"));
        }
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
            spawned_by: from.1.or(self.session.head),
            call: from.0,
            brief,
            fresh: true,
            ..Order::default()
        };
        let session = SessionId::fresh(&*self.services.ids, self.services.clock.now());
        self.crew.reservations.limit(&id, order.limits);
        let mut member = Member::new(id.clone(), session, order, self.services.clock.now());
        member.role = role;
        self.crew.members.insert(id.clone(), member);
        self.crew.line.push_back(id.clone());
        self.keep_member(&id);
        Ok(id)
    }

    /// A task as it is kept: who does it is said in one way.
    pub(super) fn settled(&self, mut brief: Brief) -> Brief {
        let roles = self.services.roles();
        // A program of another vendor may stand where a role does: `@claude`, `@codex:headless`.
        if brief.cli.is_none()
            && let Some(name) = brief.agent.clone().filter(|a| roles.get(a).is_none())
            && self.program(&name).is_ok()
        {
            (brief.cli, brief.agent) = (Some(name), None);
        }
        let role = brief.agent.as_ref().and_then(|name| roles.get(name));
        brief.cli = brief.cli.or_else(|| role.and_then(|r| r.cli.clone())).filter(|c| !c.is_empty());
        brief
    }

    /// The adapter of a program, and the transport if one is named: `claude`, `codex:headless`.
    pub(super) fn program(&self, name: &str) -> Result<(Arc<Adapter>, Option<Transport>), String> {
        let (name, how) = name.split_once(':').map_or((name, None), |(n, how)| (n, Some(how)));
        let Some(programs) = &self.services.crew.programs else {
            return Err("external programs cannot be run here".into());
        };
        let adapter = programs.adapters.get(name).ok_or_else(|| {
            let known: Vec<&str> = programs.adapters.iter().map(|a| a.name.as_str()).collect();
            format!("there is no adapter for {name}; available: {}", known.join(", "))
        })?;
        let transport = match how {
            None => None,
            Some("acp") => Some(Transport::Acp),
            Some("headless") => Some(Transport::Headless),
            Some("pty") => Some(Transport::Pty),
            Some(other) => return Err(format!("unknown transport {other}: use acp, headless or pty")),
        };
        Ok((adapter, transport))
    }

    /// A task that names tools which are none would be done with none at all.
    fn tools_known(&self, named: &[String]) -> Result<(), String> {
        let more: Vec<&str> = self.services.all_tools.iter().map(|t| t.name()).collect();
        let wrong = named.iter().find_map(|name| tiller_config::agents::no_such_tool(name, &more));
        wrong.map_or(Ok(()), Err)
    }

    /// A name that is no kind of agent: the nearest of them, and of the programs of other vendors.
    fn no_such_kind(&self, name: &str) -> String {
        let roles = self.services.roles();
        let program = name.split(':').next().unwrap_or(name);
        let adapters =
            self.services.crew.programs.iter().flat_map(|p| p.adapters.iter()).map(|a| a.name.clone());
        let programs: Vec<String> = adapters.collect();
        let kinds = roles.iter().map(|r| r.name.as_str());
        match tiller_protocol::nearest::nearest(program, kinds.chain(programs.iter().map(String::as_str))) {
            Some(near) => format!("there is no agent `{name}`; did you mean `{near}`?"),
            None => format!("{}; external programs are {}", roles.no_such(name), programs.join(", ")),
        }
    }

    fn label(&self, brief: &Brief) -> String {
        let named = brief.label.clone().filter(|l| !l.trim().is_empty());
        let text = named.unwrap_or_else(|| brief.goal.clone());
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = self.redact(&line);
        match line.char_indices().nth(LABEL) {
            Some((end, _)) => format!("{}…", line[..end].trim_end()),
            None => line,
        }
    }

    /// The model of an agent of `by`'s: what was asked for, what its role says, or that of `by`.
    fn model_for(&self, by: &AgentId, asked: Option<&str>, pick: Option<&Pick>) -> Result<ModelRef, String> {
        let config = self.services.config();
        let tiers = &config.tiers;
        let parents = match self.crew.members.get(by) {
            Some(member) => member.order.model.clone(),
            None => self.session.model.clone(),
        };
        let tier = |t: &Option<String>| t.clone().map(ModelRef);
        let model = match (asked.map(str::trim).filter(|a| !a.is_empty()), pick) {
            (Some("fast"), _) | (None, Some(Pick::Tier(Tier::Fast))) => tier(&tiers.fast),
            (Some("main"), _) | (None, Some(Pick::Tier(Tier::Main))) => tier(&tiers.main),
            (Some("deep"), _) | (None, Some(Pick::Tier(Tier::Deep))) => tier(&tiers.deep),
            (Some(name), _) => Some(ModelRef(name.into())),
            (None, Some(Pick::Model(name))) => Some(ModelRef(name.clone())),
            (None, _) => None,
        };
        let Some(model) = model else { return Ok(parents) };
        match model::provider(self, &model) {
            Ok(_) => Ok(model),
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

/// The limits of a fresh agent: the stricter ones of the settings and its role.
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

/// The profile of an agent of this kind below one that has `above`.
pub(super) fn profile_of(role: Option<&Definition>, above: Profile) -> Profile {
    role.and_then(|r| r.permissions.profile).map_or(above, |p| p.min(above))
}

/// The least of what an agent may have: its parent's now, and what it was given.
pub(super) fn narrowed(given: Profile, parent: Profile) -> Profile {
    given.min(parent)
}
