//! Which requests and connections of pages are refused: those to private addresses from pages that are not there themselves,
//! and those to hosts that a rule denies.
//!
//! A page's own address was judged by the permission rules when the agent navigated to it. What the page then loads,
//! sends and opens was not, and must not reach services of this machine and its network.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use reqwest::Url;
use tiller_protocol::lock;

use crate::Unreachable;
use crate::web::{Resolver, address};

/// Hosts whose kind is remembered.
const KNOWN: usize = 1024;
/// Connections without success that are remembered.
const FAILED: usize = 64;

/// Decides about requests and connections of an agent's pages.
pub(crate) struct Guard {
    /// Private addresses are allowed.
    private: bool,
    resolver: Arc<dyn Resolver>,
    /// Says which rule denies an address.
    denied: Unreachable,
    /// Whether a host is private: why, or `None`.
    known: Mutex<HashMap<String, Option<&'static str>>>,
    /// Hosts of this machine that the agent opened, which the permission rules allowed.
    opened: Mutex<HashSet<String>>,
    /// Hosts of documents, by tab.
    tabs: Mutex<HashMap<String, TabDocuments>>,
    failed: Mutex<Failed>,
}

/// Hosts of the documents that a tab may show.
#[derive(Clone, Debug, Default)]
struct TabDocuments {
    now: Hosts,
    /// The same, once the document that loads has taken the place of the present one.
    next: Hosts,
}

/// Hosts of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Hosts {
    #[default]
    None,
    One(String),
    Several,
}

impl Hosts {
    fn add(&mut self, host: &str) {
        match self {
            Self::None => *self = Self::One(host.to_owned()),
            Self::One(known) if known != host => *self = Self::Several,
            Self::One(_) | Self::Several => {}
        }
    }

    fn add_all(&mut self, others: &Self) {
        match others {
            Self::None => {}
            Self::One(host) => self.add(host),
            Self::Several => *self = Self::Several,
        }
    }

    /// Returns true if there is another one than `host`.
    fn has_other(&self, host: &str) -> bool {
        match self {
            Self::None => false,
            Self::One(known) => known != host,
            Self::Several => true,
        }
    }
}

/// Connections that were not made.
#[derive(Default)]
struct Failed {
    /// Why, by `HOST:PORT`; oldest first.
    all: VecDeque<(String, String)>,
    /// Refusals that no result has told of.
    notes: Vec<String>,
}

/// Where a connection may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The addresses that were judged, never empty.
    pub(crate) addresses: Vec<IpAddr>,
    /// A server of this machine: which page may connect is still to be judged.
    pub(crate) own: bool,
}

impl Way {
    /// Returns true if a proxy elsewhere could not reach it.
    pub(crate) fn is_local(&self) -> bool {
        self.addresses.iter().any(|ip| address::check(*ip).is_err())
    }
}

/// Why no connection is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoWay {
    /// It may not be.
    Refused(String),
    /// It cannot be.
    Gone(String),
}

impl Guard {
    /// `private`: pages may reach private addresses.
    pub(crate) fn new(private: bool, resolver: Arc<dyn Resolver>, denied: Unreachable) -> Self {
        Self {
            private,
            resolver,
            denied,
            known: Mutex::default(),
            opened: Mutex::default(),
            tabs: Mutex::default(),
            failed: Mutex::default(),
        }
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
        let host = url.host_str().unwrap_or_default();
        if let Some(rule) = (self.denied)(&url) {
            return Some(format!("{host} is denied by the rule {rule}"));
        }
        if self.private {
            return None;
        }
        let what = self.private_kind(&url).await?;
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

    /// The addresses to which a connection to the host of `url` may go. Names are resolved for each connection, and the
    /// connection goes to what was judged.
    ///
    /// # Errors
    /// When it may not be made, or the host is not found.
    pub(crate) async fn way(&self, url: &Url) -> Result<Way, NoWay> {
        let host = url.host_str().unwrap_or_default();
        if let Some(rule) = (self.denied)(url) {
            return Err(NoWay::Refused(format!("{host} is denied by the rule {rule}")));
        }
        let own = !self.private && names_loopback(url);
        if own && !lock(&self.opened).contains(host.trim_end_matches('.')) {
            return Err(NoWay::Refused(format!("{host} is {LOOPBACK}, and the agent did not open it")));
        }
        if !own && !self.private {
            address::check_url(url, false).map_err(NoWay::Refused)?;
        }
        if let Some(ip) = address::literal(url) {
            return Ok(Way { addresses: vec![ip], own });
        }
        if own {
            return Ok(Way { addresses: vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], own });
        }
        let found = self.resolver.resolve(host.trim_end_matches('.')).await;
        let addresses = match found {
            Ok(found) if !found.is_empty() => found,
            Ok(_) => return Err(NoWay::Gone(format!("{host} was not found"))),
            Err(e) => return Err(NoWay::Gone(format!("{host} was not found: {e}"))),
        };
        for ip in addresses.iter().filter(|_| !self.private) {
            if let Err(what) = address::check(*ip) {
                return Err(NoWay::Refused(format!("{host} is {what} ({ip}), not a public address")));
            }
        }
        Ok(Way { addresses, own })
    }

    /// Notes that the agent opens an address, which the permission rules allowed.
    pub(crate) fn open(&self, url: &str) {
        if let Some(url) = Url::parse(url).ok().filter(names_loopback)
            && let Some(host) = url.host_str()
        {
            lock(&self.opened).insert(host.trim_end_matches('.').to_owned());
        }
    }

    /// Notes that a document of `url` is about to load in a tab. `main`: in place of the one that the tab shows.
    pub(crate) fn loads(&self, tab: &str, url: &str, main: bool) {
        let Ok(url) = Url::parse(url) else { return };
        let mut tabs = lock(&self.tabs);
        let tab = tabs.entry(tab.to_owned()).or_default();
        if main {
            tab.next = Hosts::None;
        }
        if let Some(host) = host_of(&url) {
            tab.next.add(host);
            tab.now.add(host);
        }
    }

    /// Notes that a page opened a tab: what is blank in it belongs to that page, or to one of its frames.
    pub(crate) fn opens(&self, opener: &str, tab: &str) {
        let mut tabs = lock(&self.tabs);
        if let Some(TabDocuments { mut now, next }) = tabs.get(opener).cloned() {
            now.add_all(&next);
            tabs.insert(tab.to_owned(), TabDocuments { next: now.clone(), now });
        }
    }

    /// Notes that a tab shows another document now.
    pub(crate) fn shows(&self, tab: &str, url: &str) {
        // A blank document can belong to the page that opened it.
        if let Some(tab) = lock(&self.tabs).get_mut(tab).filter(|_| !url.starts_with("about:")) {
            tab.now = tab.next.clone();
        }
    }

    /// Notes that a tab was emptied or closed.
    pub(crate) fn empty(&self, tab: &str) {
        lock(&self.tabs).remove(tab);
    }

    /// Returns true if a tab may show a document of another host than that of `url`, be it of this machine or not.
    pub(crate) fn shows_others(&self, url: &Url) -> bool {
        let host = host_of(url).unwrap_or_default();
        lock(&self.tabs).values().any(|tab| tab.now.has_other(host) || tab.next.has_other(host))
    }

    /// Notes why a connection was not made. `at`: `HOST:PORT`.
    pub(crate) fn fail(&self, at: &str, why: &NoWay) {
        let mut failed = lock(&self.failed);
        let words = match why {
            NoWay::Refused(why) => {
                let note = format!("a connection was refused: {why}");
                if failed.notes.len() < FAILED && !failed.notes.contains(&note) {
                    failed.notes.push(note);
                }
                why
            }
            NoWay::Gone(why) => why,
        };
        failed.all.retain(|(known, _)| known != at);
        if failed.all.len() >= FAILED {
            failed.all.pop_front();
        }
        failed.all.push_back((at.to_owned(), words.clone()));
    }

    /// Takes why the last connection to the host of `url` was not made; `None`: it was.
    pub(crate) fn why(&self, url: &Url) -> Option<String> {
        let at = place(url);
        let mut failed = lock(&self.failed);
        let found = failed.all.iter().position(|(known, _)| *known == at)?;
        failed.all.remove(found).map(|(_, why)| why)
    }

    /// Takes the refusals that no result has told of.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.failed).notes)
    }
}

/// The host of an address, without the dot that may end it; `None`: it has none.
fn host_of(url: &Url) -> Option<&str> {
    url.host_str().map(|host| host.trim_end_matches('.')).filter(|host| !host.is_empty())
}

/// `HOST:PORT` of an address.
pub(crate) fn place(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
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

    fn rules() -> Unreachable {
        Arc::new(|url| {
            (url.host_str() == Some("denied.example")).then(|| "deny web_fetch(domain:denied.example)".into())
        })
    }

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
        let guard = Guard::new(false, Arc::new(Fixed), rules());
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
            ("https://denied.example/a", "https://denied.example/", true),
            ("wss://denied.example/a", "https://example.org/", true),
            ("data:text/html,x", "https://example.org/", false),
        ] {
            assert_eq!(guard.refusal(url, &[from]).await.is_some(), refused, "{url} from {from}");
        }
        let open = Guard::new(true, Arc::new(Fixed), rules());
        assert_eq!(open.refusal("http://192.168.1.1/", &[]).await, None);
        assert!(open.refusal("file:///etc/passwd", &[]).await.is_some());
    }

    #[tokio::test]
    async fn connections_go_to_public_hosts_and_to_those_of_this_machine_that_the_agent_opened() {
        let guard = Guard::new(false, Arc::new(Fixed), rules());
        guard.open("http://127.0.0.1:3000/x");
        guard.open("http://a.localhost:3000/x");
        guard.open("http://c.localhost.:3000/x");
        guard.open("http://local.example/");
        for (url, reached) in [
            ("https://example.com/", true),
            ("http://93.184.216.34/", true),
            ("http://127.0.0.1:9000/", true),
            ("http://a.localhost/", true),
            ("http://a.localhost./", true),
            ("http://c.localhost/", true),
            ("http://localhost/", false),
            ("http://b.localhost/", false),
            ("http://127.0.0.2/", false),
            ("http://[::1]/", false),
            ("http://[::ffff:127.0.0.1]/", false),
            ("http://0.0.0.0/", false),
            ("http://local.example/", false),
            ("http://rebinding.example/", false),
            ("http://denied.example/", false),
            ("http://router.lan/", false),
            ("http://router/", false),
            ("http://169.254.169.254/", false),
            ("http://[fd00::1]/", false),
        ] {
            let way = guard.way(&Url::parse(url).unwrap()).await;
            assert_eq!(way.is_ok(), reached, "{url}: {way:?}");
        }
        let open = Guard::new(true, Arc::new(Fixed), rules());
        for (url, reached) in
            [("http://10.0.0.1/", true), ("http://local.example/", true), ("http://denied.example/", false)]
        {
            assert_eq!(open.way(&Url::parse(url).unwrap()).await.is_ok(), reached, "{url}");
        }
    }

    #[test]
    fn a_tab_shows_others_until_a_document_of_the_host_has_taken_their_place() {
        // Another host of this machine is another one, too.
        for other in ["https://example.com/", "http://a.localhost:3000/", "http://127.0.0.1:3000/"] {
            shows_others_until("https://localhost/", other);
        }
    }

    fn shows_others_until(own: &str, other: &str) {
        let guard = Guard::new(false, Arc::new(Fixed), rules());
        let abroad = |guard: &Guard| guard.shows_others(&Url::parse(own).unwrap());
        guard.loads("a", own, true);
        guard.shows("a", own);
        assert!(!abroad(&guard));
        guard.loads("a", other, false);
        assert!(abroad(&guard), "a frame");
        guard.loads("a", own, true);
        assert!(abroad(&guard), "it is not there yet");
        guard.shows("a", "about:blank");
        assert!(abroad(&guard), "a blank document of the page's own");
        guard.shows("a", own);
        assert!(!abroad(&guard));
        guard.loads("b", other, true);
        assert!(abroad(&guard), "another tab");
        guard.empty("b");
        assert!(!abroad(&guard));
        guard.loads("a", own, true);
        guard.loads("a", other, false);
        guard.shows("a", own);
        assert!(abroad(&guard), "the frame may be one of the new document");
        // A blank tab belongs to the page that opened it.
        for (address, others) in [(other, true), (own, false)] {
            let guard = Guard::new(false, Arc::new(Fixed), rules());
            guard.loads("page", address, true);
            guard.shows("page", address);
            guard.opens("page", "tab");
            guard.empty("page");
            assert_eq!(abroad(&guard), others, "{address}");
            // Where a tab is found to be says nothing of what it showed before.
            guard.loads("tab", "about:blank", false);
            guard.shows("tab", "about:blank");
            guard.loads("tab", own, false);
            assert_eq!(abroad(&guard), others, "{address}");
            guard.loads("tab", own, true);
            guard.shows("tab", own);
            assert!(!abroad(&guard), "{address}: its own document took the place of that");
        }
    }
}
