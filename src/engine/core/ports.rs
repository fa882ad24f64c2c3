//! What the engine does for tools. Each call has ports of its own, so that a question names its call.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tiller_protocol::{
    AgentId, AskBody, AskReply, Cost, Decision, EntryId, RestorePreview, SearchPage, SearchQuery, SessionId,
    TodoItem,
};
use tiller_store::Store;
use tiller_store::search::Lookup;
use tiller_tool::code::{CallForScript, InnerReply, ScriptPorts};
use tiller_tool::crew::{CrewReply, CrewRequest, Delegation, SharedCrew};
use tiller_tool::shell::{Deletion, HeldAnswer, HeldWrite};
use tiller_tool::{
    AskedWrite, CommandPorts, MemoryOrigin, MemoryPorts, Ports, ServerCost, ServerPorts, Tool, ToolCx,
};
use tokio::sync::{mpsc, oneshot};

use crate::context::msg::{ContextMsg, SideMsg};
use crate::context::todo::Todo;
use crate::core::msg::{ENDED, Msg};
use crate::crew::{CrewMailbox, CrewMsg, RequestGuard};
use crate::decision::held::HeldJudge;
use crate::files::msg::FilesMsg;
use crate::files::msg::FilesRequest;
use crate::lock::lock;
use crate::memory::msg::MemoryMsg;
use crate::prompts::msg::PromptMsg;
use crate::questions::asking;
use crate::questions::permission::{deletion_ask, memory_ask};
use crate::turn::msg::{InnerRequest, TurnMsg};
use crate::watching::Writes;

pub(crate) struct CallPorts {
    pub(crate) call: Option<String>,
    /// The engine holds the other end; it closes when the engine ends.
    pub(crate) tx: mpsc::Sender<Msg>,
    pub(crate) todo: Arc<Mutex<Todo>>,
    pub(crate) writes: Writes,
    pub(crate) store: Store,
    pub(crate) search: Option<Arc<tiller_search::Finder>>,
    /// The agent may see memory and learnings.
    pub(crate) remembers: bool,
    /// To the crew of the main agent.
    pub(crate) main: CrewMailbox,
    /// The main agent's session.
    pub(crate) root: SessionId,
    /// The entry that holds the call.
    pub(crate) entry: Option<EntryId>,
    /// The message that began the turn of the call.
    pub(crate) prompt: Option<EntryId>,
    pub(crate) delegation: Arc<dyn Delegation>,
    /// The turn of the call.
    pub(crate) turn: Option<u64>,
    /// The tools of the agent, for scripts.
    pub(crate) tools: Vec<&'static dyn Tool>,
    /// Decides about files that a command wrote.
    pub(crate) held: HeldJudge,
}

impl CallPorts {
    async fn files<T>(
        &self,
        asked: impl FnOnce(oneshot::Sender<Result<T, String>>) -> FilesRequest,
    ) -> Result<T, String> {
        let (reply, done) = oneshot::channel();
        self.tx.send(Msg::Files(FilesMsg::FilesRequest(asked(reply)))).await.map_err(|_| ENDED.to_owned())?;
        done.await.map_err(|_| ENDED.to_owned())?
    }
}

impl CallPorts {
    async fn side<T>(
        &self,
        asked: impl FnOnce(oneshot::Sender<Result<T, String>>) -> SideMsg,
    ) -> Result<T, String> {
        let (reply, done) = oneshot::channel();
        let msg = Msg::Context(ContextMsg::SideCall(asked(reply)));
        self.tx.send(msg).await.map_err(|_| ENDED.to_owned())?;
        done.await.map_err(|_| ENDED.to_owned())?
    }

    async fn question(
        &self,
        agent: &AgentId,
        call: Option<String>,
        body: AskBody,
    ) -> Result<AskReply, String> {
        asking::request(&self.tx, agent, call, body).await
    }
}

#[async_trait]
impl Ports for CallPorts {
    async fn ask(&self, agent: &AgentId, body: AskBody) -> Result<AskReply, String> {
        self.question(agent, self.call.clone(), body).await
    }

    fn scripts(&self) -> Option<&dyn ScriptPorts> {
        Some(self)
    }

    async fn confirm_deletion(&self, agent: &AgentId, deletion: Deletion) -> bool {
        let Some(ask) = deletion_ask(&deletion) else { return false };
        let hash = ask.hash.clone();
        // Without the call: it runs already, and is not to be asked about after a restart.
        match self.question(agent, None, AskBody::Permission(ask)).await {
            Ok(AskReply::Permission { decision: Decision::Once, hash: answered }) => answered == hash,
            _ => false,
        }
    }

    fn todos(&self, _agent: &AgentId) -> (Vec<TodoItem>, u32) {
        let t = lock(&self.todo);
        (t.items.clone(), t.calls)
    }

    async fn set_todos(&self, _agent: &AgentId, todos: Vec<TodoItem>) -> Result<(), String> {
        let (reply, done) = oneshot::channel();
        self.tx
            .send(Msg::Prompt(PromptMsg::Todos { items: todos, reply }))
            .await
            .map_err(|_| ENDED.to_owned())?;
        done.await.map_err(|_| ENDED.to_owned())?
    }

    async fn search_sessions(&self, query: SearchQuery) -> Result<SearchPage, String> {
        let mut page = if let Some(finder) = &self.search {
            let found = finder.search(query, Lookup::prompt(), None).await;
            let mut page = found.map_err(|e| e.notice().message)?;
            if page.behind > 0 {
                finder.refresh();
            }
            page.documents.retain(|d| self.remembers || d.kind == tiller_protocol::DocumentKind::Skill);
            page
        } else {
            let store = self.store.clone();
            let found =
                tokio::task::spawn_blocking(move || store.search().look_up(&query, &Lookup::prompt())).await;
            found.map_err(|_| "the search failed".to_owned())?.map_err(|e| e.notice().message)?
        };
        // The words that are searched stand there, and the model has both before it.
        page.hits.retain(|hit| Some(hit.entry) != self.entry && Some(hit.entry) != self.prompt);
        Ok(page)
    }

    async fn checkpoint(&self, name: &str) -> Result<String, String> {
        let (name, call) = (name.to_owned(), self.call.clone().unwrap_or_default());
        self.files(|reply| FilesRequest::Name { name, call, reply }).await
    }

    async fn restore_preview(&self, name: &str) -> Result<(EntryId, RestorePreview), String> {
        let name = name.to_owned();
        self.files(|reply| FilesRequest::Preview { name, reply }).await
    }

    async fn restore(&self, entry: EntryId) -> Result<String, String> {
        let call = self.call.clone().unwrap_or_default();
        self.files(|reply| FilesRequest::Restore { entry, call, reply }).await
    }

    async fn crew(&self, cx: &ToolCx, mut ask: CrewRequest) -> Result<CrewReply, String> {
        let crew = || -> SharedCrew { Arc::new(cx.clone()) };
        // Only the engine sets the workflow step that an agent works on.
        match &mut ask {
            CrewRequest::Tasks(tasks) => {
                return Ok(CrewReply::Reports(self.delegation.tasks(std::mem::take(tasks), crew()).await));
            }
            CrewRequest::Goal(goal) => {
                return self.delegation.goal(goal.clone(), crew()).await.map(CrewReply::Reports);
            }
            CrewRequest::Run(brief) => brief.step = None,
            CrewRequest::Start(briefs) => briefs.iter_mut().for_each(|b| b.step = None),
            CrewRequest::Workflow(flow) => flow.steps.iter_mut().for_each(|s| s.brief.step = None),
            _ => {}
        }
        let (reply, answer) = oneshot::channel();
        let (by, call) = (cx.agent.clone(), self.call.clone().unwrap_or_default());
        // Tells the crew on every way out, a dropped future included, that the call no longer waits.
        let _over = RequestGuard(&self.main);
        let asked = CrewMsg::Request { by, call, entry: self.entry, request: ask, reply };
        let asked = CrewMsg::Session { root: self.root, msg: Box::new(asked) };
        self.main.send(asked).await.map_err(|e| e.to_string())?;
        answer.await.map_err(|_| ENDED.to_owned())?
    }

    fn writing(&self, agent: &AgentId, paths: &[PathBuf]) {
        self.writes.writing(agent, paths);
    }

    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]) {
        self.writes.wrote(agent, paths);
    }
}

#[async_trait]
impl CommandPorts for CallPorts {
    async fn confirm_held(&self, agent: &AgentId, files: Vec<HeldWrite>, more: usize) -> HeldAnswer {
        self.held.confirm(&self.tx, agent, &files, more).await
    }
}

#[async_trait]
impl MemoryPorts for CallPorts {
    async fn memory_origin(&self, _agent: &AgentId, text: &str) -> Result<MemoryOrigin, String> {
        let (reply, answer) = oneshot::channel();
        let msg = MemoryMsg::Origin { text: text.to_owned(), entry: self.entry, reply };
        self.tx.send(Msg::Context(ContextMsg::Memory(msg))).await.map_err(|_| ENDED.to_owned())?;
        answer.await.map_err(|_| ENDED.to_owned())
    }

    async fn confirm_memory(&self, agent: &AgentId, write: AskedWrite) -> Option<bool> {
        let ask = memory_ask(&write)?;
        let hash = ask.hash.clone();
        // Without the call: it runs already, and is not to be asked about after a restart.
        match self.question(agent, None, AskBody::Permission(ask)).await.ok()? {
            AskReply::Permission { decision: Decision::Once, hash: answered } => Some(answered == hash),
            _ => Some(false),
        }
    }
}

#[async_trait]
impl ServerPorts for CallPorts {
    async fn may_spend(&self, price: Option<Cost>) -> Result<(), String> {
        self.side(|reply| SideMsg::MaySpend { price, reply }).await
    }

    fn server_cost(&self, cost: ServerCost) {
        let msg = Msg::Context(ContextMsg::SideCall(SideMsg::ServerCost(Box::new(cost))));
        if let Err(mpsc::error::TrySendError::Full(msg)) = self.tx.try_send(msg)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let tx = self.tx.clone();
            runtime.spawn(async move { tx.send(msg).await });
        }
    }

    async fn attached_image(&self, number: usize) -> Result<Arc<str>, String> {
        self.side(|reply| SideMsg::AttachedImage { number, reply }).await
    }
}

#[async_trait]
impl ScriptPorts for CallPorts {
    fn tools(&self) -> Vec<&'static dyn Tool> {
        self.tools.clone()
    }

    /// The engine makes the call; the task of the outer call runs it, and stops it when it is dropped.
    async fn call(&self, cx: &ToolCx, call: CallForScript) -> Result<InnerReply, String> {
        let turn = self.turn.ok_or("no turn runs")?;
        let (reply, made) = oneshot::channel();
        let request = InnerRequest { cx: cx.clone(), call, reply };
        let asked = Msg::Turn(TurnMsg::InnerCall { turn, request: Box::new(request) });
        self.tx.send(asked).await.map_err(|_| ENDED.to_owned())?;
        let (reply, done) = made.await.map_err(|_| ENDED.to_owned())??.await;
        let told = Msg::Turn(TurnMsg::InnerDone { turn, done: Box::new(done) });
        self.tx.send(told).await.map_err(|_| ENDED.to_owned())?;
        Ok(reply)
    }

    async fn ask(&self, agent: &AgentId, body: AskBody) -> Result<AskReply, String> {
        self.question(agent, None, body).await
    }
}
