//! Who runs tasks: a tool call, or a workflow of the engine's.

use std::sync::Arc;

use async_trait::async_trait;

use super::port::{Brief, CrewAsk, CrewReply, Report};
use crate::ToolCx;

/// What tasks are run with. A workflow keeps what comes of each step; a call has nothing to keep.
#[async_trait]
pub trait Ask: Send + Sync {
    /// Asks the crew.
    ///
    /// # Errors
    /// In a sentence for who asked.
    async fn ask(&self, ask: CrewAsk) -> Result<CrewReply, String>;

    /// Nothing more is to be started.
    fn stopped(&self) -> bool;

    /// The person does not want this step any more.
    fn given_up(&self, _step: &str) -> bool {
        false
    }

    /// What a step brought before, when it is not to be run again.
    fn kept(&self, _step: &str) -> Option<Report> {
        None
    }

    /// A step begins. The name of the agent that was interrupted at it, when it can go on.
    async fn begins(&self, _step: &str, _brief: &mut Brief) -> Option<String> {
        None
    }

    /// A step has ended, or was left out.
    async fn ends(&self, _step: &str, _report: &Report) {}
}

/// Shared by tasks that run side by side.
pub type Asker = Arc<dyn Ask>;

#[async_trait]
impl Ask for ToolCx {
    async fn ask(&self, ask: CrewAsk) -> Result<CrewReply, String> {
        self.ports.crew(self, ask).await
    }

    fn stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// That of a call.
pub(super) fn of(cx: &ToolCx) -> Asker {
    Arc::new(cx.clone())
}
