//! Tools that fetch from the network. What they bring is untrusted text, and is marked as such.

pub mod address;
mod client;
mod extract;
mod fetch;
mod html;
mod page;
mod readable;
mod search;

pub use client::{Net, Reply, Resolver, Sent};
pub use extract::WebExtract;
pub use fetch::WebFetch;
pub(crate) use page::download;
pub use search::{KeyedEngine, SearchChoice, SearchKey, SearchSettings, WebSearch};

use std::sync::{Arc, OnceLock};

use client::{HttpNet, SystemResolver};

use crate::Limits;

/// What the web tools keep: the client, made at the first fetch.
#[derive(Default)]
pub struct WebState {
    net: OnceLock<Arc<dyn Net>>,
    resolver: OnceLock<Arc<dyn Resolver>>,
}

impl WebState {
    /// Finds the addresses of names.
    pub(crate) fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(self.resolver.get_or_init(|| Arc::new(SystemResolver)))
    }

    /// With other ways out, for tests.
    pub fn with(net: Arc<dyn Net>, resolver: Arc<dyn Resolver>) -> Self {
        Self { net: OnceLock::from(net), resolver: OnceLock::from(resolver) }
    }

    /// The client, which takes some milliseconds to make.
    fn net(&self, limits: &Limits) -> Result<Arc<dyn Net>, String> {
        if let Some(net) = self.net.get() {
            return Ok(Arc::clone(net));
        }
        let made: Arc<dyn Net> = Arc::new(HttpNet::new(limits.fetch_proxy)?);
        Ok(Arc::clone(self.net.get_or_init(|| made)))
    }

    /// The answer of a server that the person's settings name, which may be one of a private network. Redirects are not
    /// followed: a key could go with them.
    async fn ask(&self, sent: &Sent, limits: &Limits) -> Result<Reply, String> {
        let (net, resolver) = (self.net(limits)?, self.resolver());
        let host = sent.url.host_str().unwrap_or_default();
        let addresses = match address::literal(&sent.url) {
            Some(ip) => vec![ip],
            None => match resolver.resolve(host).await {
                Ok(found) => found,
                // Behind a proxy there is often no resolver for the outside.
                Err(_) if limits.fetch_proxy => Vec::new(),
                Err(e) => return Err(format!("{host} was not found: {e}")),
            },
        };
        net.send(sent, &addresses, limits.fetch_bytes).await
    }
}
