//! Tools over what is kept across sessions.

mod memory;

use std::sync::Arc;

use tiller_tool::Tool;

use crate::files::Memory;

/// The tools over memory files. They live as long as the process; the composition root makes them once.
pub fn tools(memory: Arc<Memory>) -> Vec<&'static dyn Tool> {
    vec![Box::leak(Box::new(memory::MemoryTool(memory)))]
}
