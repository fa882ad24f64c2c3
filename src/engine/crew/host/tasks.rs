//! Tasks beside the loop, and processes.

use tiller_protocol::ProcessRow;
use tokio_util::task::AbortOnDropHandle;

use super::CrewHost;
use crate::crew::mailbox::CrewMailbox;
use crate::lock::lock;

/// Tasks beside the loop, and processes.
pub trait HostTasks {
    /// Runs a task that ends with the engine.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static);

    /// For tasks that report to the crew.
    fn mailbox(&self) -> CrewMailbox;

    /// The engine ends: no agent may be started.
    fn ending(&self) -> bool;

    /// Hands over the task of an agent that ends. The engine waits for it before it ends itself.
    fn await_end(&mut self, task: AbortOnDropHandle<()>);

    /// The row of a background process; a colon after its name is ignored.
    fn process_row(&self, name: &str) -> Option<ProcessRow>;
}

impl HostTasks for CrewHost<'_> {
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.core.spawn(task);
    }

    fn mailbox(&self) -> CrewMailbox {
        CrewMailbox::new(self.core.tx.clone())
    }

    fn ending(&self) -> bool {
        self.core.lifecycle.stop || self.core.lifecycle.quitting.is_some()
    }

    fn await_end(&mut self, task: AbortOnDropHandle<()>) {
        self.core.lifecycle.agents.push(task);
    }

    fn process_row(&self, name: &str) -> Option<ProcessRow> {
        let rows = lock(&self.core.services.tools.state).shells.rows();
        rows.into_iter().find(|r| r.id == name.trim_end_matches(':'))
    }
}
