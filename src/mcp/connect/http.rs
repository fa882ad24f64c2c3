//! Streamable HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::client::Client;
use super::lists::Lists;
use super::{Connection, NoConnection, words};
use crate::bounds::{MESSAGE, Tail};
use crate::handler::Handler;
use crate::oauth::{self, Tokens};

/// Time limit of a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an error page that are read.
const ERROR: usize = 16 << 10;

/// What is connected to.
pub(super) struct Address<'a> {
    pub(super) url: &'a str,
    pub(super) headers: &'a [(String, String)],
    pub(super) client: Option<&'a crate::settings::LoginClient>,
    pub(super) grant: Option<&'a crate::settings::Grant>,
    /// The folder with tokens.
    pub(super) state: &'a std::path::Path,
}

pub(super) async fn connect(
    address: &Address<'_>,
    handler: Handler,
    mode: ClientLifecycleMode,
) -> Result<Connection, NoConnection> {
    let client = client(address.url)?;
    let config = StreamableHttpClientTransportConfig::with_uri(address.url)
        .custom_headers(header_map(address.headers)?)
        .max_sse_event_size(MESSAGE)
        .max_json_response_size(MESSAGE)
        .max_error_response_size(ERROR);
    let (calls, changed) = (handler.calls.clone(), handler.changed.clone());
    let own = address.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let tokens = address.grant.map(|grant| Tokens::new(address.state, address.url, address.client, grant));
    if let Some(tokens) = &tokens {
        // A login that fails is not tried again with each request of the start.
        tokens.token(None).await.map_err(NoConnection::of_server)?;
    }
    let manager = if own || tokens.is_some() {
        None
    } else {
        oauth::manager(address.state, address.url, address.client).await.map_err(NoConnection::of_server)?
    };
    let served = match manager {
        Some(manager) => {
            let client = Client { inner: AuthClient::new(Lists(client), manager), tokens: None };
            handler
                .serve_with_lifecycle(StreamableHttpClientTransport::with_client(client, config), mode)
                .await
        }
        None => {
            let client = Client { inner: Lists(client), tokens: tokens.map(Arc::new) };
            handler
                .serve_with_lifecycle(StreamableHttpClientTransport::with_client(client, config), mode)
                .await
        }
    };
    let running = served.map_err(|error| words(&error))?;
    Ok(Connection { running, calls, changed, tail: Tail::default(), program: None })
}

/// A client that follows no redirect: headers may hold a key, and another host has not been approved. The system's proxy is
/// used, except for a server on this machine.
pub(super) fn client(url: &str) -> Result<reqwest::Client, NoConnection> {
    tiller_http::install_crypto();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("tiller/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT);
    let here = reqwest::Url::parse(url).is_ok_and(|url| tiller_http::is_loopback(&url));
    let builder = if here { builder.no_proxy() } else { builder };
    builder.build().map_err(|e| NoConnection::new(format!("no HTTP client: {e}")))
}

pub(super) fn header_map(
    headers: &[(String, String)],
) -> Result<HashMap<HeaderName, HeaderValue>, NoConnection> {
    let invalid =
        |name: &str| NoConnection::new(format!("the header {} is not valid", name.escape_default()));
    let pair = |(name, value): &(String, String)| {
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(name))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid(name))?;
        value.set_sensitive(true);
        Ok((key, value))
    };
    headers.iter().map(pair).collect()
}
