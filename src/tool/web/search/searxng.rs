//! A SearXNG server.

use super::{Engine, Hit, address, hits};
use crate::web::client::Sent;

/// At an address of the person's settings.
pub(super) struct Searxng {
    pub address: String,
}

impl Engine for Searxng {
    fn name(&self) -> &'static str {
        "SearXNG"
    }

    fn request(&self, query: &str, _count: usize) -> Result<Sent, String> {
        // It knows pages of results, no counts.
        let url = address(&self.address, "/search", &[("q", query), ("format", "json")])?;
        Ok(Sent::get(url).header("accept", "application/json"))
    }

    fn read(&self, body: &str) -> Result<Vec<Hit>, String> {
        hits(body, "/results")
    }

    fn refusal(&self, status: u16) -> Option<&'static str> {
        (status == 403).then_some("it gives no JSON: `search.formats` in its settings.yml needs `json`")
    }
}
