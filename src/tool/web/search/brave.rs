//! The API of Brave Search.

use super::{Engine, Hit, SearchKey, address, hits};
use crate::web::client::Sent;

pub(super) const ADDRESS: &str = "https://api.search.brave.com";

/// With its key.
pub(super) struct Brave {
    pub address: String,
    pub key: SearchKey,
}

impl Engine for Brave {
    fn name(&self) -> &'static str {
        "Brave Search"
    }

    fn request(&self, query: &str, count: usize) -> Result<Sent, String> {
        let count = count.to_string();
        let query = [("q", query), ("count", count.as_str()), ("text_decorations", "false")];
        let url = address(&self.address, "/res/v1/web/search", &query)?;
        Ok(Sent::get(url).header("accept", "application/json").secret("x-subscription-token", &self.key.0))
    }

    fn read(&self, body: &str) -> Result<Vec<Hit>, String> {
        hits(body, "/web/results")
    }

    fn refusal(&self, status: u16) -> Option<&'static str> {
        // Its answer to a token that it does not know.
        (status == 422).then_some("it refused the key or the query")
    }
}
