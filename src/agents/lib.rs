//! Work that is given to several agents: tasks that depend on each other, retries, reviews, answers that must match a
//! schema, goals that are split into parts, and workflows.
//!
//! The tools `delegate_task` and `orchestrate` parse and check their input and hand it to [`Delegation`]; a workflow of the
//! engine is run by the same code. [`Delegation`] starts no agent itself: it asks for agents through the
//! [`CrewPort`](tiller_tool::crew::CrewPort) that each call brings, and the engine answers.
//!
//! | folder | contents |
//! | --- | --- |
//! | `delegation` | the tasks of one call: order, retries, reviews, schema checks, splitting of a goal |
//!
//! May use: `tool` (tasks, reports, ports). Not here: limits, budgets and sessions of agents (`engine`), the input
//! of the tools and its checks (`tool`), files of workflows (`app`).

mod delegation;

pub use delegation::Delegation;
