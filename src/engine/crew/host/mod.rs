//! The loop of the main agent's engine, as its crew uses it: one trait for each concern, so that a file of the crew names the
//! parts of the loop that it touches.
//!
//! | trait | concern |
//! | --- | --- |
//! | [`HostSettings`] | what agents are made of |
//! | [`HostSession`] | the session of the main agent |
//! | [`HostEvents`] | events, notices, replies |
//! | [`HostStorage`] | rows in the store |
//! | [`HostBudget`] | limits of money and tokens |
//! | [`HostTasks`] | tasks beside the loop, and processes |
//! | [`HostChildren`] | engines of children |

mod budget;
mod children;
mod events;
mod session;
mod settings;
mod storage;
mod tasks;

use std::path::Path;
use std::sync::Arc;

use tiller_tool::shell::Elsewhere;

pub use budget::HostBudget;
pub use children::{FolderTask, HostChildren};
pub use events::HostEvents;
pub use session::HostSession;
pub use settings::HostSettings;
pub use storage::HostStorage;
pub use tasks::HostTasks;

use crate::core::Core;

/// The loop, for the length of one call. It has no state of its own.
pub struct CrewHost<'a> {
    core: &'a mut Core,
}

impl<'a> CrewHost<'a> {
    pub(crate) fn new(core: &'a mut Core) -> Self {
        Self { core }
    }

    /// The same loop, for a shorter time.
    pub fn reborrow(&mut self) -> CrewHost<'_> {
        CrewHost { core: self.core }
    }

    /// The terminal of this name for a folder; `None`: this machine's own.
    fn terminal(&self, name: &str, root: &Path) -> Result<Option<Arc<dyn Elsewhere>>, String> {
        match &self.core.services.crew.terminals {
            Some(terminals) => terminals.find(name, root),
            None if name == "local" => Ok(None),
            None => Err("there are no other terminals here".into()),
        }
    }
}
