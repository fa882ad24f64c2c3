//! Dialogs that answer a question of the engine.

mod answer_state;
pub mod approval;
pub mod clarify;
pub(crate) mod input_delay;
pub mod program;
