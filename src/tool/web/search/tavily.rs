//! The API of Tavily.

use serde_json::json;

use super::{Engine, Hit, SearchKey, address, hits};
use crate::web::client::Sent;

pub(super) const ADDRESS: &str = "https://api.tavily.com";

/// With its key.
pub(super) struct Tavily {
    pub address: String,
    pub key: SearchKey,
}

impl Engine for Tavily {
    fn name(&self) -> &'static str {
        "Tavily"
    }

    fn request(&self, query: &str, count: usize) -> Result<Sent, String> {
        let body =
            json!({"query": query, "max_results": count, "search_depth": "basic", "include_answer": false});
        let sent = Sent::post(address(&self.address, "/search", &[])?, body.to_string().into_bytes());
        Ok(sent.secret("authorization", &format!("Bearer {}", self.key.0)))
    }

    fn read(&self, body: &str) -> Result<Vec<Hit>, String> {
        hits(body, "/results")
    }

    fn refusal(&self, status: u16) -> Option<&'static str> {
        match status {
            432 | 433 => Some("its plan allows no more searches"),
            _ => None,
        }
    }
}
