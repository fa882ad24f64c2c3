//! The beginning of a turn, once its words are on disk.

use crate::files::record;
use crate::money;
use crate::prompts::queue;
use crate::turn::driver;
use crate::turn::prepare;
use std::sync::Arc;

use tiller_config::skills::Skill;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{Entry, EventBody};

use crate::bus::Place;
use crate::context::clean;
use crate::context::layers::{Facts, Role};
use crate::core::saves::Then;
use crate::core::services::Human;
use crate::core::{Core, Live};
use crate::turn::{Input, ToolTable, Turn, TurnLimits};

impl Core {
    /// Begins a turn with these entries, once they are on disk.
    #[expect(clippy::too_many_arguments, reason = "each is one part of the same commit")]
    pub(crate) fn begin(
        &mut self,
        place: Place,
        prompt: String,
        entries: Vec<Entry>,
        events: Vec<(Place, EventBody)>,
        queue: bool,
        history: Option<String>,
        calls: Vec<(tiller_protocol::ToolCall, Option<crate::turn::CallResult>)>,
    ) {
        self.turn.begun += 1;
        let no = self.turn.begun;
        let config = self.services.config();
        let l = &config.limits;
        let limits = TurnLimits {
            requests: self.turn.max_requests.unwrap_or(l.turns),
            attempts: l.attempts.max(1),
            longest_wait: prepare::longest_wait(self),
            repeats: l.repeats,
            parallel: l.parallel,
            calls_per_reply: l.calls_per_reply,
            ..TurnLimits::default()
        };
        let tools = ToolTable(self.services.tools.iter().map(|t| (t.name().to_owned(), t.touch())).collect());
        let args = calls.iter().map(|(c, _)| (c.id.clone(), c.arguments.clone())).collect();
        let turn = Turn::new(limits, tools, self.session.model.provider(), self.session.call_ids())
            .with_calls(calls);
        self.turn.live = Some(Live {
            no,
            turn,
            place,
            prompt,
            root: self.session.last_prompt(),
            stream: None,
            timer: None,
            compaction: None,
            calls: std::collections::HashMap::new(),
            args,
            audits: std::collections::HashMap::new(),
            usage: tiller_protocol::Usage::default(),
            cost: None,
            unpriced: false,
            words: [
                clean::Stream::new(&self.services.redact, &self.services.growing),
                clean::Stream::new(&self.services.redact, &self.services.growing),
            ],
            since: self.services.clock.now(),
            held: None,
            ending: None,
            over: false,
            text: String::new(),
            why: None,
        });
        self.session.interrupted = None;
        let spoken = record::spoken(&entries);
        let mut append = self.append().entries(entries);
        append.running = Some(Some(self.running(format!("a reply of {}", self.session.model))));
        // What an agent says to another is not what the person typed.
        append.prompt = history.filter(|_| self.identity.child.is_none());
        // What waited stands before the words now.
        append.pending = Some(self.prompts.pending.clone());
        if queue {
            append.queue = Some(self.prompts.queue.clone());
        }
        self.save(append, events, Then::StartTurn(no));
        // Beside the disk's work.
        let ours = self.outside().is_none();
        if let Some(provider) = money::provider(self, &self.session.model).ok().filter(|_| ours) {
            self.spawn(async move { provider.prepare().await });
        }
        record::keep_points(self, spoken);
    }

    /// The words are on disk: the turn goes.
    pub(crate) fn turn_started(&mut self) {
        let place = self.place();
        self.bus.publish(&place, EventBody::Turn(TurnEvent::TurnStarted {}));
        self.child_begins();
        driver::agent_changed(self);
        let steering = queue::steering(self);
        self.turn.inputs.push_back(Input::Steer(steering));
        driver::feed(self, Input::Start);
    }

    /// What the layers of a fresh prefix are made of, now.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            folder: self.services.workspace.root.clone(),
            config: self.services.places.config.clone(),
            now: self.services.clock.now(),
            alone: self.services.human == Human::Absent,
            profile: self.session.profile,
            git: self.watching.git.clone(),
            budget_left: self.money.limits.left(self.spent_so_far()),
            role: self.role(),
            unreadable: Some(self.services.workspace.forbidden()),
            ..Facts::default()
        }
    }

    /// What the prompt says of who it is.
    fn role(&self) -> Option<Role> {
        let identity = self.identity.child.as_ref().map(|c| {
            let name = self.identity.role.as_ref().map(|r| r.name.as_str());
            crate::crew::identity(&self.identity.id, &c.label, name, prepare::tier(self))
        });
        let definition = self.identity.role.clone();
        (identity.is_some() || definition.is_some()).then(|| Role {
            skills: self.skills(),
            definition,
            identity: identity.unwrap_or_default(),
        })
    }

    /// What its kind and its task name, each once. A skill that went since then is not there.
    pub(crate) fn skills(&self) -> Vec<Arc<Skill>> {
        let roles = self.services.roles();
        let kind = self.identity.role.iter().flat_map(|r| &r.skills);
        let task = self.identity.child.iter().flat_map(|c| &c.skills);
        let mut all: Vec<Arc<Skill>> = Vec::new();
        for name in kind.chain(task) {
            if let Some(skill) = roles.skills().get(name)
                && !all.contains(skill)
            {
                all.push(Arc::clone(skill));
            }
        }
        all
    }
}
