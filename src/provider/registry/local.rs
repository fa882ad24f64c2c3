//! Model servers on this machine: their usual ports, and which of them are open.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A server that answers on loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Name of the provider that it would become.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    pub port: u16,
}

impl Local {
    /// The base URL.
    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

/// The usual ports of local model servers.
pub const LOCALS: [Local; 4] = [
    Local { name: "ollama", title: "Ollama", port: 11434 },
    Local { name: "lmstudio", title: "LM Studio", port: 1234 },
    Local { name: "llamacpp", title: "llama.cpp", port: 8080 },
    Local { name: "vllm", title: "vLLM", port: 8000 },
];

/// Which of `locals` accept a connection. Only connects: nothing is sent before the person's yes.
pub async fn probe_ports(locals: &[Local], limit: Duration) -> Vec<Local> {
    let tries = locals.iter().map(|local| async move {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, local.port));
        let open = tokio::time::timeout(limit, tokio::net::TcpStream::connect(address)).await;
        matches!(open, Ok(Ok(_))).then(|| local.clone())
    });
    futures_util::future::join_all(tries).await.into_iter().flatten().collect()
}

/// `OLLAMA_HOST` is an address to listen on: `host`, `:port`, `host:port`, with or without a scheme.
pub(crate) fn ollama(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let rest = rest.trim_end_matches('/');
    let (rest, path) = rest.split_once('/').map_or((rest, "v1"), |(h, p)| (h, p));
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) && !port.is_empty() => (host, port),
        _ => (rest, if scheme == "https" { "443" } else { "11434" }),
    };
    let host = if matches!(host, "" | "0.0.0.0" | "[::]") { "127.0.0.1" } else { host };
    format!("{scheme}://{host}:{port}/{path}")
}
