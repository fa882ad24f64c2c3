//! Tools over what is kept across sessions.

mod memory;
mod propose_change;
mod save_learning;
mod search_learnings;

use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec};
use tiller_tool::{Tool, ToolError, schema};

use crate::Learnings;
use crate::files::{Memory, OrderTexts};

pub use propose_change::{ProposalSettings, ScreenProposal};

/// The learnings of the process, once its database is open.
#[derive(Clone, Default)]
pub struct LearningsSlot {
    learnings: Arc<OnceLock<Arc<Learnings>>>,
    order: Arc<OnceLock<OrderTexts>>,
}

impl LearningsSlot {
    /// Gives the tools their learnings. False: they have some already.
    pub fn set(&self, learnings: Arc<Learnings>) -> bool {
        self.learnings.set(learnings).is_ok()
    }

    /// Searches learnings by this from now on; without it, by words that they all contain. Only the first call counts.
    pub fn order_by(&self, order: OrderTexts) {
        let _ = self.order.set(order);
    }

    fn get(&self) -> Result<Arc<Learnings>, ToolError> {
        self.learnings.get().cloned().ok_or_else(|| ToolError::Tell("no learnings are kept here".into()))
    }
}

/// What a model reads of a tool over learnings.
fn learning_spec<Args: JsonSchema>(info: &ToolInfo, description: &str) -> ToolSpec {
    ToolSpec {
        name: info.name.into(),
        description: description.trim_end().into(),
        schema: schema::of::<Args>(),
    }
}

/// The settings decide about learnings: no permission rule asks about them.
fn learning_access<Args: DeserializeOwned + JsonSchema>(args: &Value) -> Result<Vec<Access>, ToolError> {
    schema::read::<Args>(args)?;
    Ok(vec![Access::Free])
}

/// Does work that blocks.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ToolError::Tell("the work was ended by an error of this program".into()))
}

/// The tools over learnings. They are made before the database is open.
pub fn learning_tools(slot: &LearningsSlot) -> [&'static dyn Tool; 2] {
    [
        Box::leak(Box::new(save_learning::SaveLearning(slot.clone()))),
        Box::leak(Box::new(search_learnings::SearchLearnings(slot.clone()))),
    ]
}

/// The tools over memory files. They live as long as the process; the composition root makes them once.
pub fn tools(memory: Arc<Memory>) -> Vec<&'static dyn Tool> {
    vec![Box::leak(Box::new(memory::MemoryTool(memory)))]
}

/// The tool by which agents propose changes of SOUL.md and of their own definitions.
pub fn proposal_tool(settings: ProposalSettings) -> &'static dyn Tool {
    Box::leak(Box::new(propose_change::ProposeChange(settings)))
}
