//! The agents of a session, on top of the engine: which there are, when each starts, what its result is, and work that is
//! given to several of them.
//!
//! [`Roster`] implements the [`Crew`](tiller_engine::crew::Crew) that the main agent's engine calls from its loop; each call
//! lends the loop as a [`CrewHost`](tiller_engine::crew::CrewHost). Children are engines, too: the host makes them, and the
//! roster holds their handles.
//!
//! The tools `delegate_task` and `orchestrate` parse and check their input and hand it to [`Delegation`]; workflows are run by
//! the same code. [`Delegation`] starts no agent itself: it asks for agents through the
//! [`CrewPort`](tiller_tool::crew::CrewPort) that each call or workflow brings.
//!
//! | module | contents |
//! | --- | --- |
//! | `crew` | what the engine calls |
//! | `driver` | the types whose methods the modules below implement; each message, given to the module that it is about |
//! | `msg` | messages of the crew's own tasks |
//! | `roster` | all agents of a session and their rows in the store; loading them; interrupting them |
//! | `start` | an agent is taken on: limits, role, model; it starts when the settings permit |
//! | `requests` | requests of tools; callers that wait for agents; notes that agents share |
//! | `reuse` | an earlier result is used again for a task that is the same, or alike |
//! | `commands` | commands of the user to the crew, and to one agent |
//! | `ended` | an agent has ended; its parent and the user are notified |
//! | `workflow` | workflows: they start, pause, continue and end |
//! | `delegation` | the tasks of one call: order, retries, reviews, schema checks, splitting of a goal |
//!
//! May use: `engine` and what that uses. Not here: one agent's side of it (its limits, pauses, reports, external program) and
//! the reservations of tokens and money that all engines of a session share (`engine`), the input of the tools and its checks
//! (`tool`), files of workflows (`app`).

mod commands;
mod crew;
mod delegation;
mod driver;
mod ended;
mod msg;
mod requests;
mod reuse;
mod roster;
mod start;
mod text;
mod workflow;

pub use delegation::Delegation;
pub use roster::Roster;
pub use roster::member::from_elsewhere;
pub use workflow::run::no_such_model;
