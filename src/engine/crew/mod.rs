//! The crew: the tree of agents that work for one session.
//!
//! Each child of Tiller's own is a [`crate::core::Core`] like the main one, on a task of its own, with a session of
//! its own below the entry which started it. So steering, interrupting, compaction, branches and restore work for a child
//! as for the main agent. The main agent's loop holds the state of all agents (`Crew`).
//!
//! | module | contents |
//! | --- | --- |
//! | `driver` | the types whose methods the modules below implement |
//! | `roster` | all agents of a session as the main agent's loop knows them; their rows in the store |
//! | `start` | an agent is taken on: limits, role, model; it starts with the services that it may use |
//! | `requests` | requests of tools; callers that wait for agents; notes that agents share |
//! | `commands` | commands of the user to the crew, and to one agent |
//! | `ended` | an agent has ended; its parent and the user are notified |
//! | `workflow` | workflows: they start, pause, continue and end |
//! | `child` | what a child reports to the main agent's loop; its limits; pauses |
//! | `external` | programs of other vendors as agents |
//! | `reservations`, `spending` | tokens and money: reserved before a call, settled after it; sums of all agents |

pub(crate) mod child;
mod commands;
mod driver;
mod ended;
pub(crate) mod external;
pub(crate) mod msg;
mod requests;
mod reservations;
mod roster;
mod spending;
mod start;
mod workflow;

pub(crate) use child::identity::{AgentIdentity, Resting};
pub use external::{ProgramTrust, Programs};
pub(crate) use msg::CrewMsg;
pub(crate) use reservations::{Answer, Reservations, Tiers, limit};
pub(crate) use roster::Crew;
pub use roster::member::from_elsewhere;
pub(crate) use spending::{limit_money, spent_and_reserved, spent_so_far};
pub(crate) use start::services::identity;
pub use workflow::run::no_such_model;
