//! The environment of children as it is now: another screen may bring another agent of ssh, another display.

use std::sync::{Arc, Mutex};
use tiller_protocol::lock;

/// Names and values of an environment.
pub type Vars = Vec<(String, String)>;

/// Shared by all that start children.
#[derive(Debug, Default)]
pub struct ChildEnv(Mutex<Arc<Vars>>);

impl ChildEnv {
    /// As it is at the start.
    pub fn new(vars: Vars) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Arc::new(vars))))
    }

    /// For a child that is started now. The same as before as long as nothing has changed.
    pub fn now(&self) -> Arc<Vars> {
        Arc::clone(&lock(&self.0))
    }

    /// For all that are started from now on.
    pub fn set(&self, vars: Vars) {
        let mut now = lock(&self.0);
        if **now != vars {
            *now = Arc::new(vars);
        }
    }
}
