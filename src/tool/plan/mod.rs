//! Tools that keep the plan and ask the person. They never need permission.

mod clarify;
mod todo;
mod todo_read;
mod todo_write;
mod write_plan;

pub use clarify::Clarify;
pub use todo_read::TodoRead;
pub use todo_write::TodoWrite;
pub use write_plan::WritePlan;
