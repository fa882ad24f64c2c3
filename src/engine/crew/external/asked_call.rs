//! A call that an external program asks for, as rules and hooks see it.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tiller_external::{FileDiff, ToolUse};
use tiller_permit::decide::ReadOnlyRun;
use tiller_permit::{Rule, Verdict};
use tiller_protocol::view::{AuditOutcome, AuditRow};
use tiller_protocol::{
    Access, AgentId, AskBody, AskReply, Decision, PermissionOutcome, SessionId, Time, ToolVerb, Touch,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, EventScope};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::Services;
use crate::crew::external::calls::diff_of;
use crate::crew::external::command_texts;
use crate::crew::external::msg::JudgedBy;
use crate::decision::{
    AskedAs, CallDecision, CallView, DecidedCall, Decider, HookedCall, Reading, Refusal, consent,
};
use crate::questions::asking;

/// The engine of the agent that the program is.
struct Origin {
    services: Arc<Services>,
    bus: Arc<Bus>,
    tx: mpsc::Sender<Msg>,
    scope: EventScope,
    /// The main agent's session.
    root: SessionId,
    session: SessionId,
    agent: AgentId,
    /// Never cancelled: the answer is dropped when the program no longer waits.
    cancel: CancellationToken,
}

/// A call that the program asks for.
pub(crate) struct AskedCall {
    origin: Origin,
    /// The name of the program.
    program: String,
    /// The program's id of the call.
    call: Option<String>,
    tool: ToolUse,
    /// Everything that the program shows about it.
    shown: String,
    diffs: Vec<FileDiff>,
    /// It was read from a screen, which may show less than what runs.
    by_screen: bool,
    reading: Reading,
    args: Value,
    asked: Time,
    pub(crate) judged: JudgedBy,
    hooked: HookedCall,
}

impl AskedCall {
    pub(crate) fn new(
        core: &Core,
        call: Option<String>,
        tool: ToolUse,
        shown: String,
        diffs: Vec<FileDiff>,
        by_screen: bool,
    ) -> Self {
        let services = Arc::clone(&core.services);
        let program = core.identity.external().map_or_else(String::new, |o| o.adapter.name.clone());
        let reading = reading(&program, &services.workspace.root, &tool, &diffs);
        let args = args_of(&reading.tool, &tool, &shown);
        Self {
            asked: services.clock.now(),
            origin: Origin {
                services,
                bus: Arc::clone(&core.bus),
                tx: core.tx.clone(),
                scope: core.scope(),
                root: core.identity.child().map_or(core.session.id, |c| c.root),
                session: core.session.id,
                agent: core.identity.id.clone(),
                cancel: CancellationToken::new(),
            },
            program,
            call,
            tool,
            shown,
            diffs,
            by_screen,
            reading,
            args,
            judged: JudgedBy::default(),
            hooked: HookedCall::default(),
        }
    }

    /// Its row of the audit. `decided`: `None` when it ended before that.
    pub(crate) fn audit(&self, decided: Option<CallDecision>) -> AuditRow {
        let ended = || CallDecision {
            decision: PermissionOutcome::Undecided,
            by: "it ended before an answer".into(),
        };
        let CallDecision { decision, by } = decided.unwrap_or_else(ended);
        AuditRow {
            time: self.asked,
            session: self.origin.session,
            agent: self.origin.agent.0.clone(),
            tool: self.reading.tool.clone(),
            what: crate::tool_call::what(&self.origin.services.redaction.redact, &self.args),
            decision,
            by,
            seconds: 0.0,
            outcome: AuditOutcome::None,
        }
    }

    fn root(&self) -> &Path {
        &self.origin.services.workspace.root
    }

    /// The call by the program's own name for it, of which nothing is known.
    fn unknown(&self) -> Reading {
        Reading { tool: named(&self.program, &self.tool), touch: Touch::Execute, access: Vec::new() }
    }

    /// The call as a command of this machine's shell.
    fn run(&self, run: Access) -> Reading {
        Reading { tool: "terminal".into(), touch: Touch::Execute, access: vec![run] }
    }

    /// Texts that may be commands; none where the program names what it does.
    fn texts(&self) -> Vec<String> {
        if self.reading.access.is_empty() { command_texts::of(&self.tool, &self.shown) } else { Vec::new() }
    }

    /// The text for people: all that the program shows, where no command, file or address is known.
    fn words(&self) -> String {
        let all = [&self.shown, &self.tool.target, &self.tool.name];
        let mut said = all.into_iter().filter(|words| !words.trim().is_empty());
        if self.reading.access.is_empty() {
            said.next().cloned().unwrap_or_default()
        } else {
            self.tool.target.clone()
        }
    }

    fn seen(&self, args: &Value) -> CallView {
        // A screen may show less than what runs.
        let unknown = (self.by_screen && !self.reading.access.is_empty()).then(|| self.unknown());
        let beside = run_beside(self.root(), &self.tool, &self.reading.access).map(|run| self.run(run));
        CallView {
            reading: self.reading.clone(),
            more: unknown.into_iter().chain(beside).collect(),
            texts: self.texts(),
            folder: self.root().to_owned(),
            verb: self.tool.verb.clone(),
            target: self.words(),
            args: args.clone(),
            profile: self.judged.profile,
            // The program's own shell runs it, in which Tiller can set nothing.
            shell: None,
            terminal: None,
            unkept: self.judged.unkept && self.reading.touch != Touch::Read,
        }
    }
}

impl DecidedCall for AskedCall {
    fn decider(&self) -> Decider<'_> {
        let Origin { services, bus, tx, scope, root, session, agent, cancel } = &self.origin;
        Decider {
            services,
            bus,
            tx,
            permit: &services.permit,
            scope,
            root: *root,
            session: *session,
            agent,
            folder: self.root(),
            profile: self.judged.profile,
            cancel,
        }
    }

    fn tool(&self) -> &str {
        &self.reading.tool
    }

    fn target(&self) -> String {
        self.tool.target.clone()
    }

    fn args(&self) -> &Value {
        &self.args
    }

    fn hooked(&mut self) -> &mut HookedCall {
        &mut self.hooked
    }

    fn about(&self) -> Map<String, Value> {
        let call = json!({
            "id": self.call,
            "tool": self.reading.tool,
            "program_tool": self.tool.name,
            "target": self.tool.target,
            "arguments": tiller_tool::aliases::canonical(&self.reading.tool, &self.args),
        });
        Map::from_iter([("call".to_owned(), call)])
    }

    /// A hook runs if it is for one of the readings of the call.
    fn is_for(&self, rule: &Rule, args: &Value) -> bool {
        let view = self.seen(args);
        let folder = self.root().display().to_string();
        let texts = view.texts.iter().map(|text| {
            self.run(Access::Run { command: text.clone(), folder: folder.clone(), background: false })
        });
        let mut all =
            [view.reading.clone(), self.unknown()].into_iter().chain(view.more.clone()).chain(texts);
        all.any(|reading| {
            self.origin.services.permit.is_for(&view.read_as(&self.origin.agent, &reading), rule)
        })
    }

    fn replace(&mut self, _args: Value) -> Result<(), &'static str> {
        Err("it changed the arguments, and an external program runs its own")
    }

    fn view(&mut self) -> Result<CallView, Refusal> {
        Ok(self.seen(&self.args))
    }

    async fn allowed(
        &mut self,
        _view: &CallView,
        rule: String,
        _unasked: Option<ReadOnlyRun>,
    ) -> Result<CallDecision, Refusal> {
        Ok(CallDecision { decision: PermissionOutcome::Allowed, by: rule })
    }

    async fn ask(&mut self, view: &CallView, verdict: Verdict) -> Option<Result<CallDecision, Refusal>> {
        let root = self.root();
        let all: Vec<String> = self.diffs.iter().map(|d| diff_of(d, root).diff).collect();
        let diff = (!all.is_empty()).then(|| all.concat());
        let Origin { services, tx, agent, .. } = &self.origin;
        let mut ask = services.permit.ask(&view.question(agent), verdict, diff)?;
        // The program runs its own command: an edited one cannot replace it, and nothing confines it.
        ask.editable = false;
        let (rule, always) = (ask.rule.clone(), ask.always.clone());
        let mut answer = asking::request(tx, agent, self.call.clone(), AskBody::Permission(ask)).await;
        // Tiller confines its calls nowhere.
        if let Ok(AskReply::Permission { decision: decision @ Decision::Outside, .. }) = &mut answer {
            *decision = Decision::Once;
        }
        Some(consent(self, answer, AskedAs { rule: rule.text(), by: "you", always: always.as_deref() }).await)
    }
}

/// The tool, kind and access of a program's call in Tiller's terms. They are taken from
/// fields with that meaning: a command, paths, changes; never from titles and descriptions. A call without such
/// fields has no known access, and the user is asked.
fn reading(program: &str, root: &Path, tool: &ToolUse, diffs: &[FileDiff]) -> Reading {
    let mut paths: Vec<&str> = tool.paths.iter().map(String::as_str).collect();
    paths.extend(diffs.iter().map(|d| d.path.as_str()).filter(|p| !p.is_empty()));
    paths.dedup();
    let place = |path: &str| {
        let inside = root.join(path).starts_with(root) && !path.split('/').any(|p| p == "..");
        (root.join(path).display().to_string(), inside)
    };
    let read = |path: &&str| {
        let (path, inside) = place(path);
        Access::Read { path, inside }
    };
    let read_as = |tool: String, touch: Touch, access: Vec<Access>| Reading { tool, touch, access };
    let unknown = || read_as(named(program, tool), Touch::Execute, Vec::new());
    match &tool.verb {
        ToolVerb::Shell => {
            let Some(command) = command_of(tool) else { return unknown() };
            let folder = root.display().to_string();
            read_as(
                "terminal".into(),
                Touch::Execute,
                vec![Access::Run { command, folder, background: false }],
            )
        }
        // With changes it counts as a write, whatever its kind.
        verb if !paths.is_empty() && (*verb == ToolVerb::Edit || !diffs.is_empty()) => {
            let write = |path: &&str| {
                let (path, inside) = place(path);
                Access::Write { path, inside }
            };
            read_as("edit_file".into(), Touch::Write, paths.iter().map(write).collect())
        }
        // A search is judged by its own tool name, so that a folder counts with all below it.
        ToolVerb::Search if !paths.is_empty() => {
            // It does not have the name of a Tiller tool: those skip files that may not be read.
            let name = named(program, tool);
            // Its further effects are unknown, so the user is asked.
            let rest = Access::Process { what: format!("run {name}") };
            read_as(name, Touch::Read, paths.iter().map(read).chain([rest]).collect())
        }
        ToolVerb::Read if !paths.is_empty() => {
            read_as("read_file".into(), Touch::Read, paths.iter().map(read).collect())
        }
        _ => unknown(),
    }
}

/// The name of a program's own tool in rules, behind `program:`.
fn named(program: &str, tool: &ToolUse) -> String {
    format!("{program}:{}", tool.name)
}

/// The command of a call that is reported as reading.
fn run_beside(root: &Path, tool: &ToolUse, access: &[Access]) -> Option<Access> {
    let reads = matches!(tool.verb, ToolVerb::Read | ToolVerb::Search) && !access.is_empty();
    let command = reads.then(|| command_of(tool)).flatten()?;
    Some(Access::Run { command, folder: root.display().to_string(), background: false })
}

/// The whole command line: one line, or a list of words.
fn command_of(tool: &ToolUse) -> Option<String> {
    let told = tool.args.get("command").or_else(|| tool.args.get("cmd"))?;
    let words: Vec<&str> = match told {
        Value::String(line) => return Some(line.clone()).filter(|l| !l.trim().is_empty()),
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    match words.as_slice() {
        [] => None,
        ["bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh" | "/bin/zsh", "-c" | "-lc", line] => {
            Some((*line).to_owned())
        }
        // Each word is quoted.
        words => Some(
            words.iter().map(|w| format!("'{}'", w.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "),
        ),
    }
}

fn args_of(name: &str, tool: &ToolUse, shown: &str) -> Value {
    match name {
        "terminal" => json!({"command": command_of(tool).unwrap_or_default()}),
        "edit_file" | "read_file" => json!({"path": tool.target}),
        _ => json!({"what": shown}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, verb: &str, args: Value, paths: &[&str]) -> ToolUse {
        let paths = paths.iter().map(|p| (*p).to_owned()).collect();
        ToolUse { id: "1".into(), name: name.into(), verb: verb.into(), args, paths, ..ToolUse::default() }
    }

    fn write(path: &str, inside: bool) -> Access {
        Access::Write { path: path.into(), inside }
    }

    #[test]
    fn what_is_touched_is_taken_from_fields_and_never_from_words() {
        let root = Path::new("/w");
        let of = |tool: &ToolUse, diffs: &[FileDiff]| reading("claude", root, tool, diffs).access;
        let run = |args: Value| of(&tool("Bash", "shell", args, &[]), &[]);
        let line = |command: &str| {
            let (command, folder) = (command.to_owned(), "/w".to_owned());
            vec![Access::Run { command, folder, background: false }]
        };
        assert_eq!(run(json!({"command": "ls", "description": "x"})), line("ls"));
        assert_eq!(run(json!({"cmd": ["bash", "-lc", "ls; rm x"]})), line("ls; rm x"));
        assert_eq!(run(json!({"command": ["ls", "a; rm b"]})), line("'ls' 'a; rm b'"));
        let long = format!("true {}; rm -rf x", "a".repeat(5000));
        assert_eq!(run(json!({"command": ["sh", "-c", long]})), line(&long));
        // A description that looks like a command is none.
        for args in
            [json!({"script": "rm -rf x", "description": "ls"}), json!({"command": ["ls", 1]}), json!({})]
        {
            assert_eq!(run(args), []);
        }
        // Each file that it says it changes, and not only the first; a title is no path.
        let change = |path: &str| FileDiff { path: path.into(), old: None, new: Some("x".into()) };
        let edit = tool("Edit", "edit", json!({}), &["/w/a"]);
        let all = [write("/w/a", true), write("/etc/b", false), write("/w/../c", false)];
        assert_eq!(of(&edit, &[change("/etc/b"), change("../c")]), all);
        let titled = ToolUse { target: "a.txt: old => new".into(), ..tool("edit", "edit", json!({}), &[]) };
        assert_eq!(of(&titled, &[]), []);
        // A call that is named a read and shows changes writes.
        assert_eq!(of(&tool("Read", "read", json!({}), &[]), &[change("/w/a")]), [write("/w/a", true)]);
        assert_eq!(of(&tool("create_thread", "tool", json!({"path": "x"}), &["x"]), &[]), []);
    }
}
