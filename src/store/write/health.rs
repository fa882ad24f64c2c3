//! Whether writes reach the disk.

use tokio::sync::watch;

use crate::error::StoreError;

/// The state of saving, for the banner and for waiting callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// All acknowledged writes are on disk, and saving works.
    #[default]
    Ok,
    /// Nothing is acknowledged; jobs are kept in memory and tried again.
    Failing(StoreError),
    /// The person agreed to continue without saving: everything is in memory only.
    NotSaving(String),
}

impl Health {
    /// True while writes reach the disk.
    pub fn ok(&self) -> bool {
        matches!(self, Self::Ok)
    }

    /// The reason, in one line; empty when saving works.
    pub fn why(&self) -> String {
        match self {
            Self::Ok => String::new(),
            Self::Failing(error) => error.to_string(),
            Self::NotSaving(why) => why.clone(),
        }
    }
}

/// The writer thread holds the sender; readers see its end as a closed channel.
pub(crate) fn channel(start: Health) -> (watch::Sender<Health>, watch::Receiver<Health>) {
    watch::channel(start)
}
