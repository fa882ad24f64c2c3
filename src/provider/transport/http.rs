//! HTTP clients, built on first use and shared by all providers.
//!
//! An `http` address gets a client without certificates, and without proxies for loopback; loading certificates takes
//! many milliseconds, which a local server or a test must not pay for.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, Client, NoProxy, Proxy, Url};
use tiller_http::{install_crypto, is_loopback};

use crate::error::ProviderError;

/// Maximum number of redirects that are followed, all on the same host.
const REDIRECTS: usize = 3;

/// Proxies and certificates from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetEnv {
    pub https_proxy: Option<String>,
    pub http_proxy: Option<String>,
    pub no_proxy: Option<String>,
    /// Certificates to trust instead of the system's: a PEM file.
    pub cert_file: Option<String>,
}

impl NetEnv {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` (either case) and `SSL_CERT_FILE`.
    pub fn read(var: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |names: &[&str]| names.iter().find_map(|n| var(n).filter(|v| !v.trim().is_empty()));
        Self {
            https_proxy: set(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
            // Upper-case `HTTP_PROXY` is ignored on purpose: a CGI server sets it from a request header.
            http_proxy: set(&["http_proxy", "ALL_PROXY", "all_proxy"]),
            no_proxy: set(&["NO_PROXY", "no_proxy"]),
            cert_file: set(&["SSL_CERT_FILE"]),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ClientKind {
    tls: bool,
    direct: bool,
    connect: Duration,
}

/// The shared clients.
#[derive(Debug, Default)]
pub struct Http {
    env: NetEnv,
    clients: Mutex<HashMap<ClientKind, Client>>,
}

impl Http {
    /// Clients for this environment. Builds nothing yet.
    pub fn new(env: NetEnv) -> Self {
        Self { env, clients: Mutex::default() }
    }

    /// Host and port of the proxy for an address, without the credentials in the setting. For messages: address ranges
    /// in `NO_PROXY` are not evaluated.
    pub(crate) fn proxy_of(&self, url: &Url) -> Option<String> {
        let host = url.host_str()?;
        if is_loopback(url) {
            return None;
        }
        let except = self.env.no_proxy.as_deref().unwrap_or_default().split(',').map(str::trim);
        let direct = |e: &str| {
            let bare = e.trim_start_matches('.');
            e == "*" || !bare.is_empty() && (host == bare || host.ends_with(&format!(".{bare}")))
        };
        if except.into_iter().any(direct) {
            return None;
        }
        let setting = if url.scheme() == "https" {
            self.env.https_proxy.as_ref()
        } else {
            self.env.http_proxy.as_ref()
        }?;
        let whole = if setting.contains("://") { setting.clone() } else { format!("http://{setting}") };
        let proxy = Url::parse(&whole).ok()?;
        let port = proxy.port_or_known_default().map(|p| format!(":{p}")).unwrap_or_default();
        Some(format!("{}{port}", proxy.host_str()?))
    }

    /// The client for an address. The first one for `https` loads certificates, on a separate thread.
    ///
    /// # Errors
    /// [`ProviderError::Rejected`] when a proxy or certificate setting cannot be used.
    pub async fn client(&self, url: &Url, connect: Duration) -> Result<Client, ProviderError> {
        let kind = ClientKind { tls: url.scheme() == "https", direct: is_loopback(url), connect };
        let known = self.clients.lock().unwrap_or_else(PoisonError::into_inner).get(&kind).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let env = self.env.clone();
        let built = if kind.tls {
            tokio::task::spawn_blocking(move || build(&env, kind)).await.unwrap_or_else(|_| {
                Err(ProviderError::Rejected("the HTTP client could not be created.".into()))
            })
        } else {
            build(&env, kind)
        };
        let client = built?;
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, client.clone());
        Ok(client)
    }
}

fn build(env: &NetEnv, kind: ClientKind) -> Result<Client, ProviderError> {
    install_crypto();
    let mut builder = Client::builder()
        .user_agent(concat!("tiller/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(kind.connect)
        .redirect(Policy::custom(redirect))
        .pool_idle_timeout(Duration::from_secs(90))
        .tcp_keepalive(Duration::from_secs(30))
        .no_proxy();
    if !kind.direct {
        let except = env.no_proxy.as_deref().and_then(NoProxy::from_string);
        let bad = |_| {
            ProviderError::Rejected(
                "the proxy address in HTTPS_PROXY or http_proxy is not valid. Correct it or unset it.".into(),
            )
        };
        if let Some(address) = &env.https_proxy {
            builder = builder.proxy(Proxy::https(address).map_err(bad)?.no_proxy(except.clone()));
        }
        if let Some(address) = &env.http_proxy {
            builder = builder.proxy(Proxy::http(address).map_err(bad)?.no_proxy(except));
        }
    }
    if !kind.tls {
        // No certificates: an https proxy is then refused instead of trusted.
        builder = builder.tls_certs_only([]);
    } else if let Some(path) = &env.cert_file {
        let certificates = std::fs::read(path)
            .map_err(|e| e.to_string())
            .and_then(|pem| Certificate::from_pem_bundle(&pem).map_err(|e| e.to_string()))
            .map_err(|e| {
                ProviderError::Rejected(format!(
                    "the certificates in SSL_CERT_FILE ({path}) cannot be read: {e}. Correct it or unset it."
                ))
            })?;
        builder = builder.tls_certs_only(certificates);
    }
    builder
        .build()
        .map_err(|e| ProviderError::Rejected(format!("the HTTP client could not be created: {e}.")))
}

/// Follows only on the same scheme, host and port, and only where the method is kept: no other host ever receives the
/// key, and a POST does not become a GET.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    let keeps = matches!(attempt.status().as_u16(), 307 | 308);
    if same && keeps && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
