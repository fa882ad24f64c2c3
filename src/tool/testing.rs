//! For tests of tools and of the engine: a world in a scratch folder. Behind the feature `testing`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::lock;
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{
    AgentId, AskBody, AskReply, Cost, EntryId, IdSource, ManualClock, Part, RestorePreview, SearchPage,
    SearchQuery, SeqIds, SessionId, Time, TodoItem,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::code::{CallConsent, CallForScript, InnerReply, InnerResult, ScriptPorts, WaitingCall};
use crate::crew::{CrewReply, CrewRequest, Delegation};
use crate::{
    CommandPorts, Limits, MemoryPorts, Ports, ServerCost, ServerPorts, Tool, ToolCx, ToolError, ToolFolders,
    ToolOutput, Workspace,
};

pub mod bombs;

/// Ports that remember what was asked of them.
#[derive(Debug, Default)]
pub struct FakePorts {
    /// Every question, in order.
    pub asked: Mutex<Vec<AskBody>>,
    /// The next answers; when empty, a question fails.
    pub replies: Mutex<VecDeque<Result<AskReply, String>>>,
    /// The list, and the calls since its last change.
    pub todos: Mutex<(Vec<TodoItem>, u32)>,
    /// Paths that were announced.
    pub writing: Mutex<Vec<PathBuf>>,
    /// Paths that were reported.
    pub wrote: Mutex<Vec<PathBuf>>,
    /// What was looked for, and what each search gives.
    pub searched: Mutex<Vec<SearchQuery>>,
    pub found: Mutex<SearchPage>,
    /// What going back would do; `None`: there is no such checkpoint.
    pub preview: Mutex<Option<(EntryId, RestorePreview)>>,
    /// How often it was done.
    pub restored: Mutex<u32>,
    pub crew: Mutex<CrewScript>,
    /// What scripts can call, and what they have called.
    pub tools: ToolList,
    pub calls: Mutex<Vec<CallForScript>>,
    /// What requests to servers of the settings cost, and the prices that the budget was asked about.
    pub costs: Mutex<Vec<ServerCost>>,
    pub prices: Mutex<Vec<Option<Cost>>>,
    /// Why the budget allows nothing more.
    pub broke: Mutex<Option<String>>,
    /// Images that the person attached, in base64.
    pub images: Mutex<Vec<String>>,
    /// Where memory entries come from, and the answers to questions about them; when empty, none can answer.
    pub memory: Mutex<(crate::MemoryOrigin, VecDeque<bool>)>,
    /// Changes of memory that were asked about.
    pub writes: Mutex<Vec<crate::AskedWrite>>,
    /// Tools whose calls would ask.
    pub asking: Mutex<Vec<&'static str>>,
}

/// Tools for scripts.
#[derive(Default)]
pub struct ToolList(pub Mutex<Vec<&'static dyn Tool>>);

impl std::fmt::Debug for ToolList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToolList")
    }
}

type CrewPlay = Box<dyn FnMut(CrewRequest) -> Result<CrewReply, String> + Send>;

/// A scripted crew.
#[derive(Default)]
pub struct CrewScript {
    /// Answers requests; `None`: there is no crew.
    pub play: Option<CrewPlay>,
    /// Runs tasks and goals; `None`: `play` answers these requests, too.
    pub delegation: Option<Arc<dyn Delegation>>,
}

impl std::fmt::Debug for CrewScript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CrewScript")
    }
}

impl FakePorts {
    /// Adds an answer.
    pub fn reply(&self, reply: AskReply) {
        lock(&self.replies).push_back(Ok(reply));
    }
}

#[async_trait]
impl Ports for FakePorts {
    async fn ask(&self, _agent: &AgentId, body: AskBody) -> Result<AskReply, String> {
        lock(&self.asked).push(body);
        lock(&self.replies).pop_front().unwrap_or_else(|| Err("nobody is there to answer".into()))
    }

    fn todos(&self, _agent: &AgentId) -> (Vec<TodoItem>, u32) {
        lock(&self.todos).clone()
    }

    async fn set_todos(&self, _agent: &AgentId, todos: Vec<TodoItem>) -> Result<(), String> {
        *lock(&self.todos) = (todos, 0);
        Ok(())
    }

    async fn search_sessions(&self, query: SearchQuery) -> Result<SearchPage, String> {
        lock(&self.searched).push(query);
        Ok(lock(&self.found).clone())
    }

    async fn checkpoint(&self, name: &str) -> Result<String, String> {
        Ok(format!("named {name}"))
    }

    async fn restore_preview(&self, name: &str) -> Result<(EntryId, RestorePreview), String> {
        lock(&self.preview).clone().ok_or_else(|| format!("there is no checkpoint {name}"))
    }

    async fn restore(&self, _entry: EntryId) -> Result<String, String> {
        *lock(&self.restored) += 1;
        Ok("restored".into())
    }

    async fn crew(&self, cx: &ToolCx, request: CrewRequest) -> Result<CrewReply, String> {
        let delegation = lock(&self.crew).delegation.clone();
        match (request, delegation) {
            (CrewRequest::Tasks(tasks), Some(d)) => {
                Ok(CrewReply::Reports(d.tasks(tasks, Arc::new(cx.clone())).await))
            }
            (CrewRequest::Goal(goal), Some(d)) => {
                d.goal(goal, Arc::new(cx.clone())).await.map(CrewReply::Reports)
            }
            (request, _) => {
                let answer = lock(&self.crew).play.as_mut().map(|play| play(request));
                answer.unwrap_or_else(|| Err("there are no agents here".into()))
            }
        }
    }

    fn scripts(&self) -> Option<&dyn ScriptPorts> {
        Some(self)
    }

    fn writing(&self, _agent: &AgentId, paths: &[PathBuf]) {
        lock(&self.writing).extend_from_slice(paths);
    }

    fn wrote(&self, _agent: &AgentId, paths: &[PathBuf]) {
        lock(&self.wrote).extend_from_slice(paths);
    }
}

impl CommandPorts for FakePorts {}

#[async_trait]
impl MemoryPorts for FakePorts {
    async fn memory_origin(&self, _agent: &AgentId, _text: &str) -> Result<crate::MemoryOrigin, String> {
        Ok(lock(&self.memory).0.clone())
    }

    async fn confirm_memory(&self, _agent: &AgentId, write: crate::AskedWrite) -> Option<bool> {
        lock(&self.writes).push(write);
        lock(&self.memory).1.pop_front()
    }
}

#[async_trait]
impl ServerPorts for FakePorts {
    async fn may_spend(&self, price: Option<Cost>) -> Result<(), String> {
        lock(&self.prices).push(price);
        lock(&self.broke).clone().map_or(Ok(()), Err)
    }

    fn server_cost(&self, cost: ServerCost) {
        lock(&self.costs).push(cost);
    }

    async fn attached_image(&self, number: usize) -> Result<Arc<str>, String> {
        let images = lock(&self.images);
        let found = number.checked_sub(1).and_then(|at| images.get(at));
        found.map(|data| data.as_str().into()).ok_or_else(|| "there is no such image".into())
    }
}

#[async_trait]
impl ScriptPorts for FakePorts {
    fn tools(&self) -> Vec<&'static dyn Tool> {
        lock(&self.tools.0).clone()
    }

    async fn call(&self, cx: &ToolCx, call: CallForScript) -> Result<InnerReply, String> {
        lock(&self.calls).push(call.clone());
        let found = lock(&self.tools.0).iter().copied().find(|tool| tool.name() == call.tool);
        let tool = found.ok_or("there is no such tool")?;
        let asks = lock(&self.asking).contains(&tool.name());
        let read = tool.touch() == tiller_protocol::Touch::Read;
        let mut row = InnerCall {
            number: call.number,
            name: call.tool.clone(),
            verb: tool.verb(),
            target: tool.target(&call.args),
            outcome: None,
            waits: true,
            seconds: 0.0,
            arguments: call.args.clone(),
            output: String::new(),
            files: Vec::new(),
            decision: None,
            by: String::new(),
        };
        let given = matches!(call.consent, CallConsent::Given(_));
        if asks && !given || call.consent == CallConsent::Reads && !read {
            let ask = PermissionAsk {
                tool: call.tool.clone(),
                verb: tool.verb(),
                shown: tool.target(&call.args),
                hash: call.args.to_string(),
                diff: None,
                folder: String::new(),
                why: String::new(),
                rule: tiller_protocol::AskReason::NoRule,
                effects: Vec::new(),
                risk: tiller_protocol::ask::Risk::Low,
                always: None,
                editable: false,
                outside: tiller_protocol::ask::OutsideAnswer::No,
                calls: Vec::new(),
                draft: None,
                source: None,
            };
            return Ok(InnerReply::Waits(Box::new(WaitingCall { ask, allowed: !asks, row })));
        }
        let mut inner = cx.clone();
        inner.call_id = format!("{}.{}", cx.call_id, call.number);
        inner.run = Arc::new(crate::CommandRun::over(cx.run.script.drafts()));
        inner.cancel = cx.cancel.child_token();
        let done = crate::guard::access_guarded(tool, &call.args, &inner);
        let done = match done {
            Ok(_) => crate::guard::run_guarded(tool, call.args, &inner).await,
            Err(e) => Err(e),
        };
        row.waits = false;
        let (text, exit) = match done {
            Ok(out) => {
                row.outcome = Some(out.outcome);
                let exit = match out.display {
                    Some(Display::Output { exit, .. }) => exit,
                    _ => None,
                };
                (text_of(&out.content), exit)
            }
            Err(e) => {
                row.outcome = Some(tiller_protocol::ToolOutcome::Error);
                let words = match &e {
                    ToolError::Tell(words) => words.clone(),
                    other => other.to_string(),
                };
                (words, None)
            }
        };
        Ok(InnerReply::Ran(Box::new(InnerResult { text, exit, read, row })))
    }

    async fn ask(&self, agent: &AgentId, body: AskBody) -> Result<AskReply, String> {
        Ports::ask(self, agent, body).await
    }
}

/// A context over a fresh workspace. `scratch/work` is the workspace; `scratch` is outside of it.
pub struct Bench {
    pub cx: ToolCx,
    pub ports: Arc<FakePorts>,
    pub clock: Arc<ManualClock>,
    /// Live output. Held here so that the sender never finds it closed.
    pub progress: mpsc::Receiver<String>,
    /// The workspace folder, links resolved.
    pub root: PathBuf,
    /// Removed with its content when the bench goes.
    pub scratch: tempfile::TempDir,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// An empty workspace.
    #[expect(clippy::expect_used, reason = "test support: no test can go on without a folder")]
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let root = scratch.path().join("work");
        std::fs::create_dir(&root).expect("a workspace folder");
        let workspace = Arc::new(Workspace::new(&root).expect("a workspace"));
        let root = workspace.root.clone();
        let ports = Arc::new(FakePorts::default());
        let clock = Arc::new(ManualClock::new(Time(1_795_000_000_000)));
        let (tx, progress) = mpsc::channel(1024);
        let cx = ToolCx {
            session: SessionId(SeqIds::default().next(Time(0))),
            agent: AgentId::main(),
            call_id: "call-1".into(),
            workspace,
            cancel: CancellationToken::new(),
            hard: CancellationToken::new(),
            progress: tx,
            ports: ports.clone(),
            clock: clock.clone(),
            limits: Arc::new(Limits::default()),
            folders: ToolFolders {
                spill: scratch.path().join("spill"),
                plans: scratch.path().join("plans/session"),
            },
            child_env: Arc::new(vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                ("LANG".into(), "C.UTF-8".into()),
                ("TERM".into(), "dumb".into()),
                ("HOME".into(), scratch.path().display().to_string()),
            ]),
            run: Arc::default(),
            witness: crate::shell::Witness::default(),
            state: Arc::default(),
        };
        Self { cx, ports, clock, progress, root, scratch }
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = (*self.cx.limits).clone();
        change(&mut limits);
        self.cx.limits = Arc::new(limits);
        self
    }

    /// With protected names.
    #[must_use]
    #[expect(clippy::expect_used, reason = "test support: the folder was just made")]
    pub fn protect(mut self, f: impl Fn(&Path) -> Option<String> + Send + Sync + 'static) -> Self {
        let workspace = Workspace::new(&self.root).expect("a workspace").protect(Arc::new(f));
        self.cx.workspace = Arc::new(workspace);
        self
    }

    /// With masks for what this finds.
    #[must_use]
    #[expect(clippy::expect_used, reason = "test support: the folder was just made")]
    pub fn mask(mut self, secrets: crate::Secrets) -> Self {
        self.cx.workspace = Arc::new(Workspace::new(&self.root).expect("a workspace").mask(secrets));
        self
    }

    /// Writes a file of the workspace, with its folders.
    #[expect(clippy::expect_used, reason = "test support")]
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Declares and runs one call, as the engine does, and gives its result.
    pub async fn call(&self, tool: &dyn Tool, args: Value) -> Result<ToolOutput, ToolError> {
        crate::guard::access_guarded(tool, &args, &self.cx)?;
        crate::guard::run_guarded(tool, args, &self.cx).await
    }

    /// As [`Bench::call`]; the text of the result, or of the error after `error: `.
    pub async fn say(&self, tool: &dyn Tool, args: Value) -> String {
        match self.call(tool, args).await {
            Ok(out) => text_of(&out.content),
            // The words of the variants that carry some; the engine shows these.
            Err(
                ToolError::Tell(e)
                | ToolError::Interrupted(e)
                | ToolError::TimedOut(e)
                | ToolError::Declined(e)
                | ToolError::Unanswered(e),
            ) => format!("error: {e}"),
        }
    }
}

/// All text parts of a result, without the note on how long a command took: each takes long on a busy machine.
pub fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|p| match p {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    let all = texts.collect::<Vec<_>>().join("\n");
    match all.rsplit_once('\n') {
        Some((before, last)) if last.starts_with("[took") && crate::output::is_duration_note(last) => {
            before.to_owned()
        }
        _ => all,
    }
}
