//! The interface to `tiller-permit`: the policy in force, and the rules that the user added.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tiller_protocol::ToolVerb;

use serde_json::Value;
use tiller_config::agents::Narrowing;
use tiller_permit::decide::approval::Call;
use tiller_permit::{
    CallReach, Effect, HeldPath, HeldVerdict, Policy, Request, Roots, Rule, RuleSet, Source, Verdict,
};
use tiller_protocol::ask::{PermissionAsk, Risk};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    Access, AgentId, EventBody, Notice, NoticeKind, Profile, ShellState, TerminalPlace, ToolCatalog, Touch,
    names,
};
use tiller_tool::shell::Deletion;

use super::heard::SessionHeard;
use super::rule_writes::RuleWrites;
use crate::lock::lock;

/// Adds a pattern to the user's `permissions.yaml`.
pub type AlwaysWriter = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The rules of the user's file (`None`: the earlier ones stay in force), and the faults in it.
pub type FreshRules = (Option<Vec<Rule>>, Vec<Notice>);

/// Reads the user's `permissions.yaml`; `None`: it is unchanged since the last call. May read the file.
pub type RulesReader = Arc<dyn Fn() -> Option<FreshRules> + Send + Sync>;

/// The policy of an agent. Shared by the engine and running calls.
#[derive(Clone)]
pub struct Permit {
    policy: Arc<RwLock<Policy>>,
    /// The rules without those of the session.
    base: Arc<RwLock<RuleSet>>,
    always: AlwaysWriter,
    /// What `always` is writing, for any agent.
    writes: Arc<RuleWrites>,
    reader: Option<RulesReader>,
    /// Rules that restrict this agent further.
    narrow: Arc<Vec<Rule>>,
    /// The agent's own folder, where it has one.
    moved: Option<Roots>,
    /// What skills and own commands let the present turn use.
    limits: Arc<RwLock<Vec<ToolLimit>>>,
    /// The same of the turn that started this agent.
    inherited: Arc<Vec<ToolLimit>>,
    /// What all agents of the session have read.
    pub(super) heard: Arc<Mutex<SessionHeard>>,
}

/// The only calls that a skill or an own command lets its turn make.
#[derive(Clone, Debug)]
struct ToolLimit {
    /// What says so.
    of: String,
    /// As it is written, for people.
    words: String,
    rules: Vec<Rule>,
}

/// One call, as it would run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) tool: &'a str,
    pub(crate) verb: &'a ToolVerb,
    pub(crate) target: &'a str,
    pub(crate) touch: Touch,
    pub(crate) args: &'a Value,
    pub(crate) access: &'a [Access],
    pub(crate) profile: Profile,
    /// State of the shell that runs its command.
    pub(crate) shell: Option<&'a ShellState>,
    /// The terminal elsewhere where its command runs.
    pub(crate) terminal: Option<&'a TerminalPlace>,
}

impl Permit {
    /// `policy` as files and flags make it; `always` writes to the user's file.
    pub fn new(policy: Policy, always: AlwaysWriter) -> Self {
        Self {
            base: Arc::new(RwLock::new(policy.rules.clone())),
            policy: Arc::new(RwLock::new(policy)),
            always,
            writes: Arc::default(),
            reader: None,
            narrow: Arc::default(),
            moved: None,
            limits: Arc::default(),
            inherited: Arc::default(),
            heard: Arc::default(),
        }
    }

    /// The tools that rules may name.
    fn tools(&self) -> ToolCatalog {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).tools.clone()
    }

    /// The policy of a child agent: the same rules, now and later, and those of its definition, which only restrict.
    pub(crate) fn child(&self, rules: Option<&Narrowing>) -> Self {
        let tools = self.tools();
        let parse = |effect: Effect, list: &[String]| -> Vec<Rule> {
            // Faulty patterns were reported when the definition was read.
            list.iter().filter_map(|p| Rule::parse(effect, Source::Agent, p, &tools).ok()).collect()
        };
        let mut narrow = (*self.narrow).clone();
        if let Some(rules) = rules {
            narrow.extend(parse(Effect::Ask, &rules.ask));
            narrow.extend(parse(Effect::Deny, &rules.deny));
        }
        let mut inherited = (*self.inherited).clone();
        inherited.extend(self.limits.read().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        Self {
            narrow: Arc::new(narrow),
            inherited: Arc::new(inherited),
            limits: Arc::default(),
            ..self.clone()
        }
    }

    /// From now on only calls that one of `entries` covers are made, until the turn's limits are cleared. `of`: what says so.
    pub(crate) fn limit(&self, of: &str, entries: &[String]) {
        let tools = self.tools();
        // They are compared with calls only, and never become rules of the policy.
        let parse = |pattern: &String| Rule::parse(Effect::Allow, Source::Session, pattern, &tools).ok();
        let rules = tiller_skills::patterns(entries).iter().filter_map(parse).collect();
        let limit = ToolLimit { of: of.to_owned(), words: entries.join(", "), rules };
        self.limits.write().unwrap_or_else(PoisonError::into_inner).push(limit);
    }

    /// The turn's limits end.
    pub(crate) fn clear_limits(&self) {
        self.limits.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The refusal of a call that a skill or an own command does not let its turn make.
    fn beyond(&self, question: &Question<'_>) -> Option<Verdict> {
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.inherited.iter().chain(limits.iter()).peekable();
        all.peek()?;
        // Asking the user, keeping the plan and reading a skill are always possible.
        if !question.access.is_empty() && question.access.iter().all(|access| *access == Access::Free) {
            return None;
        }
        let limit = all.find(|limit| {
            !self.with_request(question, |policy, request| {
                tiller_permit::covers(policy, request, question.shell, &limit.rules)
            })
        })?;
        let ToolLimit { of, words, .. } = limit;
        Some(Verdict::Deny {
            rule: format!("allowed-tools of {of}"),
            reason: format!("while the task of {of} lasts, only these tools are used: {words}"),
        })
    }

    /// The policy of an agent that works in a folder of its own.
    pub(crate) fn moved(self, root: &std::path::Path) -> Self {
        let roots = self.policy.read().unwrap_or_else(PoisonError::into_inner).roots.at(root);
        Self { moved: Some(roots), ..self }
    }

    /// The names that no call may write, for a workspace at `root`.
    pub(crate) fn protection(&self, root: &std::path::Path) -> tiller_tool::Protected {
        let roots = self.policy.read().unwrap_or_else(PoisonError::into_inner).roots.at(root);
        tiller_permit::Protected::new(roots).as_fn()
    }

    /// Tells why `agent` may not read a path, by the rules in force at each call.
    pub(crate) fn unreadable(&self, agent: &AgentId) -> tiller_tool::Unreadable {
        let (this, agent) = (self.clone(), agent.0.clone());
        Arc::new(move |path| {
            let policy = this.policy.read().unwrap_or_else(PoisonError::into_inner);
            let roots = this.moved.as_ref().unwrap_or(&policy.roots);
            let narrow = || {
                let mut own = RuleSet::default();
                own.add(this.narrow.iter().cloned(), false);
                tiller_permit::unreadable(&own, roots, &agent, path)
            };
            tiller_permit::unreadable(&policy.rules, roots, &agent, path)
                .or_else(|| if this.narrow.is_empty() { None } else { narrow() })
        })
    }

    /// Tells why `agent` may not write a path, by the rules in force at each call.
    pub(crate) fn unwritable(&self, agent: &AgentId) -> tiller_tool::Unreadable {
        let (this, agent) = (self.clone(), agent.0.clone());
        Arc::new(move |path| this.in_force(|policy| tiller_permit::unwritable(policy, &agent, path)))
    }

    /// Tells why a page may not reach an address for `agent`, by the rules in force at each call.
    pub(crate) fn unreachable(&self, agent: &AgentId) -> tiller_tool::Unreachable {
        let (this, agent) = (self.clone(), agent.0.clone());
        Arc::new(move |url| {
            let host = url.host_str().unwrap_or_default();
            this.in_force(|policy| tiller_permit::unreachable(policy, &agent, url.as_str(), host))
        })
    }

    /// Tells why a path without links is read only by a call that names it.
    pub(crate) fn secret(&self) -> tiller_tool::Unreadable {
        // The home folder is the same for each agent.
        let roots = self.policy.read().unwrap_or_else(PoisonError::into_inner).roots.clone();
        Arc::new(move |path| tiller_permit::secret(&roots, path))
    }

    /// The rules that deny reading to `agent`, with the files that they name.
    pub(crate) fn denied_reads(&self, agent: &AgentId) -> Vec<tiller_permit::DeniedRead> {
        self.in_force(|policy| tiller_permit::denied_reads(&policy.rules, &policy.roots, &agent.0))
    }

    /// Why the output of a command line of the user's may not be shared with the model.
    pub(crate) fn unshared(&self, agent: &AgentId, line: &str, folder: &std::path::Path) -> Option<String> {
        self.in_force(|policy| tiller_permit::unreadable_by(policy, &agent.0, line, folder))
    }

    /// Reads the rules again when their file changes.
    #[must_use]
    pub fn live(mut self, reader: RulesReader) -> Self {
        self.reader = Some(reader);
        self
    }

    /// Applies the present rules of the user's file and returns its faults. Blocks while the file is checked, or read
    /// when it was changed.
    pub fn refresh(&self) -> Vec<Notice> {
        let Some((rules, notices)) = self.reader.as_ref().and_then(|read| read()) else { return Vec::new() };
        let Some(rules) = rules else { return notices };
        self.base
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(Source::User, rules.iter().cloned());
        self.policy.write().unwrap_or_else(PoisonError::into_inner).rules.replace(Source::User, rules);
        notices
    }

    /// True if a call with this access changes no file, as far as is known.
    pub(crate) fn only_looks(&self, access: &[Access]) -> bool {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        access.iter().all(|a| tiller_permit::is_read_only(&policy, a))
    }

    /// Checks a call against the rules. Whether a user can answer is not considered: where none can, the question is
    /// refused where it would be opened.
    pub(crate) fn judge(&self, question: &Question<'_>) -> Verdict {
        if let Some(refusal) = self.beyond(question) {
            return refusal;
        }
        self.with_request(question, |policy, request| {
            let verdict = tiller_permit::decide_in(policy, request, question.shell);
            lock(&self.heard).sending(policy, request, verdict)
        })
    }

    /// Returns true if a deny rule of this text is for the call, perhaps at least: a hook with this `match` runs then.
    pub(crate) fn is_for(&self, question: &Question<'_>, rule: &Rule) -> bool {
        // In a mode that only looks, everything else is denied by the mode.
        let question = Question { profile: Profile::Full, ..*question };
        self.with_request(&question, |policy, request| {
            let mut alone = Policy { around: None, ..policy.clone() };
            alone.rules = RuleSet::default();
            alone.rules.push(rule.clone());
            matches!(tiller_permit::decide_in(&alone, request, question.shell), Verdict::Deny { .. })
                || tiller_permit::reach(&alone, request).may_meet(rule)
        })
    }

    /// Judges files that a command of `agent` wrote and that are held back.
    pub(crate) fn held(&self, agent: &AgentId, profile: Profile, files: &[HeldPath]) -> Vec<HeldVerdict> {
        self.in_force(|policy| {
            files.iter().map(|file| tiller_permit::held(policy, &agent.0, profile, file)).collect()
        })
    }

    /// Returns what keeping held files comes to, and the rule that lets those of instructions stay.
    pub(crate) fn held_effects(&self, files: &[HeldPath]) -> (Vec<String>, Option<String>) {
        self.in_force(|policy| tiller_permit::held_effects(policy, files))
    }

    /// What the call comes to, for comparing it with many rules.
    pub(crate) fn reach(&self, question: &Question<'_>) -> CallReach {
        self.with_request(question, tiller_permit::reach)
    }

    /// The rules of the user's file by which the call's command runs outside the sandbox, in words.
    pub(crate) fn outside(&self, question: &Question<'_>) -> Option<String> {
        self.with_request(question, |policy, request| tiller_permit::outside(policy, request, question.shell))
    }

    /// What a deny rule or the list of dangerous commands says of text that may be a command, run in `folder`.
    pub(crate) fn suspected(&self, question: &Question<'_>, text: &str, folder: &Path) -> Option<Verdict> {
        self.with_request(question, |policy, request| tiller_permit::suspected(policy, request, text, folder))
    }

    pub(super) fn with_request<T>(
        &self,
        q: &Question<'_>,
        look: impl FnOnce(&Policy, &Request<'_>) -> T,
    ) -> T {
        let raw = q.args.to_string();
        let request = Request {
            profile: q.profile,
            human: tiller_permit::Human::Present,
            agent: &q.agent.0,
            tool: q.tool,
            touch: q.touch,
            access: q.access,
            raw: &raw,
        };
        self.in_force(|policy| look(policy, &request))
    }

    /// The policy with what narrows it for this agent, in its folder.
    pub(super) fn in_force<T>(&self, look: impl FnOnce(&Policy) -> T) -> T {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        if self.narrow.is_empty() && self.moved.is_none() {
            return look(&policy);
        }
        let mut own = policy.clone();
        drop(policy);
        own.rules.add(self.narrow.iter().cloned(), false);
        if let Some(roots) = &self.moved {
            own.protected = tiller_permit::Protected::new(roots.clone());
            own.roots = roots.clone();
        }
        look(&own)
    }

    /// Allows `patterns` (one, or several joined by ` && `) until the session ends.
    pub(crate) fn allow_session(&self, patterns: &str) -> Result<(), String> {
        let rules = rules_of(patterns, Source::Session, &self.tools())?;
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        rules.into_iter().for_each(|rule| policy.rules.push(rule));
        Ok(())
    }

    /// Allows `patterns` (one, or several joined by ` && `) for good. The file is written on a thread that may block: another
    /// process may hold it for a moment, and events go on meanwhile.
    pub(crate) async fn allow_always(&self, patterns: &str) -> Result<(), String> {
        let (permit, write) = (self.clone(), self.writes.begin(patterns));
        let job = move || write.run(|patterns| permit.write_always(patterns));
        let written = tokio::task::spawn_blocking(job).await;
        let written = written.unwrap_or_else(|_| Err("the file could not be written".to_owned()));
        if written.is_err() {
            self.writes.reported(patterns);
        }
        written
    }

    /// The rules of answers that are being written.
    pub(crate) fn writes(&self) -> &Arc<RuleWrites> {
        &self.writes
    }

    /// As [`Self::allow_always`]; blocks.
    fn write_always(&self, patterns: &str) -> Result<(), String> {
        // Parsed first: a pattern that cannot be parsed must not be written.
        for rule in rules_of(patterns, Source::User, &self.tools())? {
            (self.always)(rule.text())?;
            // Also holds for sessions that are opened later.
            self.base.write().unwrap_or_else(PoisonError::into_inner).push(rule.clone());
            self.policy.write().unwrap_or_else(PoisonError::into_inner).rules.push(rule);
        }
        Ok(())
    }

    /// Adds the rules of a project that the user trusts from now on.
    pub(crate) fn add_project(&self, rules: &[Rule]) {
        for set in [
            &mut *self.base.write().unwrap_or_else(PoisonError::into_inner),
            &mut self.policy.write().unwrap_or_else(PoisonError::into_inner).rules,
        ] {
            set.add(rules.iter().cloned(), true);
        }
    }

    /// Removes the rules of a project that the user no longer trusts.
    pub(crate) fn drop_project(&self) {
        for set in [
            &mut *self.base.write().unwrap_or_else(PoisonError::into_inner),
            &mut self.policy.write().unwrap_or_else(PoisonError::into_inner).rules,
        ] {
            set.replace(Source::Project, []);
        }
    }

    /// Replaces the session's patterns when another session was opened.
    pub(crate) fn restore(&self, patterns: &[String]) {
        let mut rules = self.base.read().unwrap_or_else(PoisonError::into_inner).clone();
        let tools = self.tools();
        for p in patterns {
            match Rule::parse(Effect::Allow, Source::Session, p, &tools) {
                Ok(rule) => rules.push(rule),
                Err(why) => tracing::warn!(why, "a rule of the session cannot be read and is not applied"),
            }
        }
        self.policy.write().unwrap_or_else(PoisonError::into_inner).rules = rules;
    }
}

fn rules_of(patterns: &str, source: Source, tools: &ToolCatalog) -> Result<Vec<Rule>, String> {
    tiller_permit::split_patterns(patterns)
        .into_iter()
        .map(|p| Rule::parse(Effect::Allow, source, p, tools))
        .collect()
}

/// The notice that a rule of an answer could not be saved.
pub(crate) fn rule_not_saved(why: &str) -> EventBody {
    let notice = Notice::new(NoticeKind::Config, format!("the rule could not be saved: {why}"))
        .hint("this call is approved once");
    EventBody::State(StateEvent::Notice { notice })
}

/// The text of a question: everything that the call touches, one to a line. `name`: how a path is written.
fn shown(q: &Question<'_>, name: impl Fn(&str) -> String) -> String {
    let text = |access: &Access| match access {
        Access::Run { command: text, .. }
        | Access::Net { url: text, .. }
        | Access::Process { what: text }
        | Access::Input { text, .. }
        | Access::Store { what: text, .. }
        | Access::Script { code: text } => Some(text.clone()),
        Access::Write { path, .. } => Some(name(path)),
        Access::Mcp { server, tool, arguments } if arguments == "{}" => Some(format!("{server} {tool}")),
        Access::Mcp { server, tool, arguments } => Some(format!("{server} {tool}\n{arguments}")),
        Access::Read { .. } | Access::Free => None,
    };
    let lines: Vec<String> = q.access.iter().filter_map(text).collect();
    if lines.is_empty() { name(q.target) } else { lines.join("\n") }
}

/// The files that a call reads and may send: no other line of the question names those of the workspace.
fn sent(q: &Question<'_>, name: impl Fn(&str) -> String) -> Option<String> {
    let host =
        q.access.iter().find_map(|a| if let Access::Net { host, .. } = a { Some(host) } else { None })?;
    let file = |a: &Access| if let Access::Read { path, .. } = a { Some(name(path)) } else { None };
    let files: Vec<String> = q.access.iter().filter_map(file).collect();
    (!files.is_empty()).then(|| format!("gives {} to {host}", files.join(", ")))
}

impl Permit {
    /// Writes a path as questions do: relative in the user's workspace. An agent with a folder of its own works outside of it.
    pub(crate) fn named(&self) -> impl Fn(&str) -> String + use<> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        let folder = &policy.roots.workspace;
        let roots = [folder.clone(), policy.roots.real(folder)].map(|root| names::written(&root));
        move |path| tiller_text::path::below(&roots, path).to_owned()
    }

    /// The question for the dialog. The hash ties the answer to exactly what runs, with absolute paths.
    pub(crate) fn ask(
        &self,
        q: &Question<'_>,
        verdict: Verdict,
        diff: Option<String>,
    ) -> Option<PermissionAsk> {
        let exact = shown(q, str::to_owned);
        let folder = q.access.iter().find_map(|a| match a {
            Access::Run { folder, .. } => Some(folder),
            _ => None,
        });
        let folder = folder.map(|folder| match q.terminal {
            Some(terminal) => format!("{}:{folder}", terminal.name),
            None => folder.clone(),
        });
        let runs =
            matches!(q.access, [Access::Run { .. }]) && q.args.get("command").is_some_and(Value::is_string);
        let why =
            ["why", "reason", "description"].iter().find_map(|k| q.args.get(k)?.as_str()).unwrap_or_default();
        let call = Call {
            tool: q.tool,
            verb: q.verb,
            shown: &exact,
            arguments: q.args,
            folder: folder.as_deref().unwrap_or_default(),
            diff: diff.as_deref(),
            why,
            editable: runs,
        };
        let mut ask = call.ask(&verdict)?;
        let named = self.named();
        ask.shown = shown(q, &named);
        for effect in &mut ask.effects {
            if let Some(path) = effect.strip_prefix("writes ") {
                *effect = format!("writes {}", named(path));
            }
        }
        ask.effects.extend(sent(q, &named));
        // The sandbox of this machine does not reach there.
        ask.effects.extend(q.terminal.filter(|_| folder.is_some()).map(TerminalPlace::words));
        Some(ask)
    }
}

/// The question about a change of a memory file. Shown is the file, with the difference.
pub(crate) fn memory_ask(write: &tiller_tool::AskedWrite) -> Option<PermissionAsk> {
    let (effect, rule) = match write.rule {
        true => (
            "a rule is shown with each call that it matches",
            "an agent asks before it makes, changes or removes a rule",
        ),
        false => ("models see it in later sessions", "memory.approve is \"ask\""),
    };
    let (effects, rule) = (vec![effect.to_owned()], rule.into());
    let call = Call {
        tool: "memory",
        verb: &ToolVerb::Memory,
        shown: &write.path,
        arguments: &serde_json::json!({ "diff": write.diff }),
        folder: "",
        diff: Some(&write.diff),
        why: "",
        editable: false,
    };
    call.ask(&Verdict::Ask { rule, risk: Risk::Low, effects, always: None })
}

/// Files that the question names in full.
const LISTED: usize = 200;

/// The question before a command loses more files. Shown is the list of them. `None`: there are none.
pub(crate) fn deletion_ask(deletion: &Deletion) -> Option<PermissionAsk> {
    let names =
        |files: &[PathBuf]| -> Vec<String> { files.iter().map(|f| f.display().to_string()).collect() };
    let (removed, next) = (names(&deletion.removed), names(&deletion.next));
    let first = next.first()?;
    let more = match next.len() {
        1 => format!("{first} is next"),
        n => format!("{n} files are next"),
    };
    let effects = vec![
        format!("files that nothing brings back: {} are removed, {more}", removed.len()),
        "without your yes the command can remove no more of them".to_owned(),
    ];
    let verdict =
        Verdict::Ask { rule: "many files are removed".into(), risk: Risk::High, effects, always: None };
    let mut shown: Vec<String> = next.iter().map(|file| format!("next: {file}")).collect();
    shown.extend(removed.iter().map(|file| format!("removed: {file}")));
    if shown.len() > LISTED {
        let rest = shown.len() - LISTED;
        shown.truncate(LISTED);
        shown.push(format!("and {rest} more"));
    }
    let call = Call {
        tool: "terminal",
        verb: &ToolVerb::Shell,
        shown: &shown.join("\n"),
        arguments: &serde_json::json!({ "removed": removed, "next": next }),
        folder: &deletion.folder.display().to_string(),
        diff: None,
        why: "",
        editable: false,
    };
    call.ask(&verdict)
}
