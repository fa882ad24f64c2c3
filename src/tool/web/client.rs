//! The way out: names are resolved once, by us, and the connection goes to exactly those addresses.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tiller_protocol::lock;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url, header, redirect};

/// Hosts whose checked addresses are remembered.
const PINS: usize = 512;
const CONNECT: Duration = Duration::from_secs(10);
/// Longest silence in the middle of a body.
const IDLE: Duration = Duration::from_secs(15);

/// Finds the addresses of a name.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of `host`.
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
pub(crate) struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|a| a.ip()).collect())
    }
}

/// One answer, redirects not followed.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub location: Option<String>,
    pub content_type: Option<String>,
    /// Decompressed; at most the cap.
    pub body: Vec<u8>,
    /// The body was longer than the cap.
    pub capped: bool,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Sent {
    pub url: Url,
    /// Names in lower case. `accept` has a usual value.
    pub(crate) headers: Vec<(&'static str, header::HeaderValue)>,
    /// JSON that is posted; `None`: a request for the page.
    pub body: Option<Vec<u8>>,
}

impl Sent {
    /// A request for the page.
    pub fn get(url: Url) -> Self {
        Self { url, headers: Vec::new(), body: None }
    }

    /// JSON for this address.
    pub fn post(url: Url, body: Vec<u8>) -> Self {
        Self { url, headers: Vec::new(), body: Some(body) }.header("content-type", "application/json")
    }

    /// With another header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, header::HeaderValue::from_static(value)));
        self
    }

    /// With a header that is never shown. A value that cannot be one is left out: the server refuses the request then.
    #[must_use]
    pub fn secret(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(mut value) = header::HeaderValue::from_str(value) {
            value.set_sensitive(true);
            self.headers.push((name, value));
        }
        self
    }
}

/// Sends one request to given addresses.
#[async_trait]
pub trait Net: Send + Sync {
    /// Connects to one of `addresses` only. Reads at most `cap` bytes of the body, after decompression.
    async fn send(&self, sent: &Sent, addresses: &[IpAddr], cap: u64) -> Result<Reply, String>;
}

/// The real one.
pub(crate) struct HttpNet {
    client: Client,
    pins: Pins,
}

/// Checked addresses by host. The client's resolver uses only these.
#[derive(Clone, Default)]
struct Pins {
    known: Arc<Mutex<HashMap<String, Vec<IpAddr>>>>,
    /// Only a proxy may be found without being checked: it is the person's own.
    proxy: bool,
}

impl Resolve for Pins {
    fn resolve(&self, name: Name) -> Resolving {
        let known = lock(&self.known);
        let found = known.get(name.as_str()).cloned();
        let proxy = self.proxy;
        Box::pin(async move {
            let ips = match found {
                Some(ips) => ips,
                None if proxy => SystemResolver.resolve(name.as_str()).await?,
                None => return Err("the address was not checked".into()),
            };
            let addrs: Addrs = Box::new(ips.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addrs)
        })
    }
}

impl HttpNet {
    /// Builds the client (some milliseconds: loads the certificates).
    pub(crate) fn new(proxy: bool) -> Result<Self, String> {
        tiller_http::install_crypto();
        let pins = Pins { proxy, ..Pins::default() };
        let mut builder = Client::builder()
            .user_agent(concat!("tiller/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .dns_resolver(pins.clone())
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT)
            .read_timeout(IDLE);
        if !proxy {
            // It would resolve the name again, possibly to an address that was not checked.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|e| format!("no HTTP client: {e}"))?;
        Ok(Self { client, pins })
    }
}

#[async_trait]
impl Net for HttpNet {
    async fn send(&self, sent: &Sent, addresses: &[IpAddr], cap: u64) -> Result<Reply, String> {
        if let Some(host) = sent.url.host_str() {
            let mut pins = lock(&self.pins.known);
            if pins.len() >= PINS {
                pins.clear();
            }
            pins.insert(host.to_owned(), addresses.to_vec());
        }
        let accept = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";
        let request = match &sent.body {
            Some(body) => self.client.post(sent.url.clone()).body(body.clone()),
            None => self.client.get(sent.url.clone()),
        };
        let mut headers =
            header::HeaderMap::from_iter([(header::ACCEPT, header::HeaderValue::from_static(accept))]);
        for (name, value) in &sent.headers {
            headers.insert(*name, value.clone());
        }
        let mut response = request.headers(headers).send().await.map_err(|e| words(&e))?;
        let text = |name| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut reply = Reply {
            status: response.status().as_u16(),
            location: text(header::LOCATION),
            content_type: text(header::CONTENT_TYPE),
            ..Reply::default()
        };
        if (300..400).contains(&reply.status) && reply.location.is_some() {
            return Ok(reply);
        }
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        while let Some(piece) = response.chunk().await.map_err(|e| words(&e))? {
            let room = cap - reply.body.len();
            reply.body.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                reply.capped = true;
                break;
            }
        }
        Ok(reply)
    }
}

/// The innermost cause, which is the most specific.
fn words(e: &reqwest::Error) -> String {
    use std::error::Error;
    let mut cause: &dyn Error = e;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let what = if e.is_connect() { "no connection" } else { "the transfer failed" };
    format!("{what}: {cause}")
}
