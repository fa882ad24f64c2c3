//! Whether what is given to the store reaches the disk.

use tokio::sync::watch;

use crate::error::StoreError;

/// The state of saving, for the banner and for callers that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Everything that was acknowledged is on disk, and so will the next be.
    #[default]
    Ok,
    /// Nothing is acknowledged; what was given is kept in memory and tried again.
    Failing(StoreError),
    /// The person agreed to go on without saving: all is kept in memory only.
    NotSaving(String),
}

impl Health {
    /// True while writes reach the disk.
    pub fn ok(&self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Why not, in one line; empty when all is well.
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
