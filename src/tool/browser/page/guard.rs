//! Which requests of a page are refused: those to private addresses from pages that are not there themselves.
//!
//! A page's own address was judged by the permission rules when the agent navigated to it. What the page then loads,
//! sends and opens was not, and must not reach services of this machine and its network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use reqwest::Url;
use tiller_protocol::lock;

use crate::web::{Resolver, address};

/// Hosts whose kind is remembered.
const KNOWN: usize = 1024;

/// Decides about requests of pages.
pub(crate) struct Guard {
    /// Private addresses are allowed.
    private: bool,
    resolver: Arc<dyn Resolver>,
    /// Whether a host is private: why, or `None`.
    known: Mutex<HashMap<String, Option<&'static str>>>,
}

impl Guard {
    /// `private`: pages may reach private addresses.
    pub(crate) fn new(private: bool, resolver: Arc<dyn Resolver>) -> Self {
        Self { private, resolver, known: Mutex::default() }
    }

    /// Why a request is refused; `None`: it is not. `from`: the page that asks, and the address that the agent asked for
    /// when the request is for the page itself.
    pub(crate) async fn refusal(&self, url: &str, from: &[&str]) -> Option<String> {
        let Ok(url) = Url::parse(url) else { return Some("its address cannot be read".into()) };
        match url.scheme() {
            "http" | "https" | "ws" | "wss" => {}
            // They hold what they show, and reach nothing.
            "data" | "blob" | "about" => return None,
            other => return Some(format!("{other}: addresses are not opened")),
        }
        if self.private {
            return None;
        }
        let what = self.private_kind(&url).await?;
        let host = url.host_str().unwrap_or_default();
        let same = |page: &&str| Url::parse(page).is_ok_and(|p| p.host_str() == url.host_str());
        // A page of this machine may use what its own host serves. A name that leads here is not this machine's own.
        if what == LOOPBACK && names_loopback(&url) && from.iter().any(same) {
            return None;
        }
        Some(format!("{host} is {what}, not a public address"))
    }

    /// What kind of private address the host of a URL is; `None`: it is public, or unknown to the resolver.
    pub(crate) async fn private_kind(&self, url: &Url) -> Option<&'static str> {
        if let Some(ip) = address::literal(url) {
            return address::check(ip).err();
        }
        let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        if names_loopback(url) {
            return Some(LOOPBACK);
        }
        if let Some(known) = lock(&self.known).get(&host) {
            return *known;
        }
        let found: Vec<IpAddr> = self.resolver.resolve(&host).await.unwrap_or_default();
        let kind = found.iter().find_map(|ip| address::check(*ip).err());
        let mut known = lock(&self.known);
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(host, kind);
        kind
    }
}

/// As [`address::check`] says it.
const LOOPBACK: &str = "this machine";

/// Whether a URL names this machine itself, by an address or as `localhost`.
pub(crate) fn names_loopback(url: &Url) -> bool {
    if let Some(ip) = address::literal(url) {
        return address::check(ip) == Err(LOOPBACK);
    }
    let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    #[async_trait::async_trait]
    impl Resolver for Fixed {
        async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
            Ok(match host {
                "rebinding.example" => {
                    vec!["93.184.216.34".parse().unwrap(), "169.254.169.254".parse().unwrap()]
                }
                "local.example" => vec!["127.0.0.1".parse().unwrap()],
                _ => vec!["93.184.216.34".parse().unwrap()],
            })
        }
    }

    #[tokio::test]
    async fn pages_reach_public_hosts_and_their_own_and_no_service_of_this_machine() {
        let guard = Guard::new(false, Arc::new(Fixed));
        for (url, from, refused) in [
            ("https://example.com/a.js", "https://example.org/", false),
            ("http://127.0.0.1:2375/containers/create", "https://example.org/", true),
            ("http://localhost:2375/", "https://example.org/", true),
            ("ws://localhost:2375/", "https://example.org/", true),
            ("http://[::1]:8080/", "https://example.org/", true),
            ("http://2130706433/", "https://example.org/", true),
            ("http://local.example/", "https://example.org/", true),
            ("http://local.example/", "http://local.example/", true),
            ("http://rebinding.example/", "http://rebinding.example/", true),
            ("http://169.254.169.254/latest/meta-data", "http://127.0.0.1:3000/", true),
            ("http://10.0.0.1/", "http://127.0.0.1:3000/", true),
            ("http://127.0.0.1:8000/api", "http://127.0.0.1:3000/", false),
            ("http://localhost:3000/", "http://localhost:3000/", false),
            ("http://192.168.1.1/", "http://192.168.1.1/", true),
            ("file:///etc/passwd", "file:///etc/passwd", true),
            ("chrome://settings", "", true),
            ("data:text/html,x", "https://example.org/", false),
        ] {
            assert_eq!(guard.refusal(url, &[from]).await.is_some(), refused, "{url} from {from}");
        }
        let open = Guard::new(true, Arc::new(Fixed));
        assert_eq!(open.refusal("http://192.168.1.1/", &[]).await, None);
        assert!(open.refusal("file:///etc/passwd", &[]).await.is_some());
    }
}
