//! The tool descriptions in requests. Deriving a schema costs more than the rest of a first request, so it is done
//! once for all agents, and before the first request needs it.

use std::collections::HashMap;
use std::sync::Mutex;

use tiller_protocol::ToolSpec;
use tiller_tool::{Tool, deferred};

use crate::lock::lock;

/// Specs by the tools' names.
#[derive(Default)]
pub(crate) struct Specs(Mutex<HashMap<String, ToolSpec>>);

impl Specs {
    /// What a model with these tools gets, sorted by name.
    pub(crate) fn of(&self, tools: &[&'static dyn Tool]) -> Vec<ToolSpec> {
        let mut known = lock(&self.0);
        deferred::specs(tools, |tool| {
            known.entry(tool.name().to_owned()).or_insert_with(|| tool.spec()).clone()
        })
    }
}
