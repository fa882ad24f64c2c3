//! Identifiers. All of them sort by time of creation (UUID version 7), except agent paths.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::clock::Time;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(s).map(Self)
            }
        }

        impl $name {
            /// Takes a fresh identifier from `ids`, stamped with `now`.
            pub fn fresh(ids: &dyn IdSource, now: Time) -> Self {
                Self(ids.next(now))
            }
        }
    };
}

uuid_id!(
    /// One conversation with all of its branches.
    SessionId
);
uuid_id!(
    /// One node of a session tree.
    EntryId
);
uuid_id!(
    /// One question to the person that waits for an answer.
    AskId
);
uuid_id!(
    /// One message that waits to be delivered.
    QueueId
);
uuid_id!(
    /// One row of the operation log.
    OpId
);

/// Names one command of one client; events that it caused carry it back. Chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandId(pub u64);

/// Path of an agent in the tree of agents: `main`, `main/a1`, `main/a1/a2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(pub String);

impl AgentId {
    /// The main agent, which the person talks to.
    pub fn main() -> Self {
        Self("main".into())
    }

    /// Whether it is the main agent.
    pub fn is_main(&self) -> bool {
        self.0 == "main"
    }

    /// A child by its name, which is unique in the session: `a1`, `a2`, ...
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}/{name}", self.0))
    }

    /// The agent that started it; `None` for the main agent.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.into()))
    }

    /// Its own name, without those above it.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }

    /// Its depth in the tree; 0 for the main agent.
    pub fn depth(&self) -> u32 {
        u32::try_from(self.0.matches('/').count()).unwrap_or(u32::MAX)
    }

    /// Whether it is `other` or a descendant of `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes identifiers. A port, so that tests get the same ones each time.
pub trait IdSource: Send + Sync {
    /// A fresh UUID (version 7) for the moment `now`. Two calls never give the same value.
    fn next(&self, now: Time) -> Uuid;
}

/// The real source: version 7 with random low bits.
#[derive(Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next(&self, now: Time) -> Uuid {
        let ms = now.millis().max(0).unsigned_abs();
        let ts =
            uuid::Timestamp::from_unix(uuid::ContextV7::new(), ms / 1000, ((ms % 1000) * 1_000_000) as u32);
        Uuid::new_v7(ts)
    }
}

/// For tests: counts from 1, so the n-th identifier is always the same.
#[derive(Debug, Default)]
pub struct SeqIds(AtomicU64);

impl IdSource for SeqIds {
    fn next(&self, _now: Time) -> Uuid {
        let n = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | u128::from(n))
    }
}
