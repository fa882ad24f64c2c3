//! The crew: the tree of agents that work for one session.
//!
//! Each child of Tiller's own is a [`crate::core::Core`] like the main one, on a task of its own, with a session of
//! its own that hangs off the entry which started it. So whatever works for the main agent works for a child:
//! steering, interrupting, compaction, branches, restore. The main agent's task keeps the books.
//!
//! | file | holds |
//! | --- | --- |
//! | `me` | who a core is, and what only children know of themselves |
//! | `member`, `roster` | an agent as the main one knows it; all of them |
//! | `reservations` | tokens and money: reserved before a call, settled after it |
//! | `recruit`, `launch`, `world` | an agent is taken on; it starts; what it may use |
//! | `asked`, `waits` | what tools ask; who waits for whom |
//! | `child` | what a child tells the main agent |
//! | `over`, `announce` | an agent has ended; its parent hears of it |
//! | `command`, `route`, `pause`, `changes` | what the person asks; commands to one agent; rest; what one changed |
//! | `outside`, `outside_ask`, `outside_say`, `pane` | programs of other vendors as agents; messages to them, their terminal |
//! | `keep` | over a restart |
//! | `flow`, `flow_run`, `flow_port` | a workflow as it is kept; it starts, stops, goes on; what its steps are run with |
//! | `flow_steer` | what the person does with it |

mod announce;
mod asked;
mod changes;
mod child;
mod command;
pub(crate) mod external;
mod flow;
mod flow_port;
mod flow_run;
pub(crate) mod flow_state;
mod flow_steer;
mod identity;
mod keep;
mod launch;
mod member;
pub(crate) mod msg;
mod outbox;
mod outside;
mod outside_ask;
mod outside_say;
mod outside_words;
mod over;
mod pane;
mod pause;
mod recruit;
mod reservations;
mod roster;
mod route;
pub(crate) mod state;
mod waits;
mod world;

pub(crate) use crate::crew::external::FilesTrust;
pub use crate::crew::external::{ProgramTrust, Programs};
pub(crate) use crate::crew::state::Resting;
pub(crate) use crate::crew::state::limit;
pub use flow_run::no_such_model;
pub(crate) use identity::{AgentIdentity, Child};
pub use member::from_elsewhere;
pub(crate) use msg::CrewMsg;
pub(crate) use reservations::{Answer, Reservations, Tiers};
pub(crate) use roster::Crew;
pub(crate) use world::identity;
