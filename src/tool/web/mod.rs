//! Tools that fetch from the network. What they bring is untrusted text, and is marked as such.

pub mod address;
mod client;
mod fetch;
mod html;

pub use client::{Net, Reply, Resolver};
pub use fetch::WebFetch;
pub(crate) use fetch::framed;

use std::sync::{Arc, OnceLock};

/// What the web tools keep: the client, made at the first fetch.
#[derive(Default)]
pub struct WebState {
    net: OnceLock<Arc<dyn Net>>,
    resolver: OnceLock<Arc<dyn Resolver>>,
}

impl WebState {
    /// Finds the addresses of names.
    pub(crate) fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(self.resolver.get_or_init(|| Arc::new(client::SystemResolver)))
    }

    /// With other ways out, for tests.
    pub fn with(net: Arc<dyn Net>, resolver: Arc<dyn Resolver>) -> Self {
        Self { net: OnceLock::from(net), resolver: OnceLock::from(resolver) }
    }
}
