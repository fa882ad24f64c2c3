//! Model servers on this machine: their usual ports, and which of them are open.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use reqwest::Url;

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

/// Endings of names that mean this machine or this network wherever they are resolved.
const LOCAL_NAMES: [&str; 9] =
    ["localhost", "local", "lan", "home", "internal", "intranet", "corp", "localdomain", "home.arpa"];

/// True for an address on this machine or in a private network, where a server reads long prompts for minutes and nothing
/// is paid for waiting. By the address alone: nothing is resolved.
pub(crate) fn is_near(base: &str) -> bool {
    let Ok(url) = Url::parse(base) else { return false };
    let Some(host) = url.host_str() else { return false };
    match host.trim_matches(['[', ']']).parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V4(ip)) => {
            // 100.64.0.0/10 is the range of networks that span private ones.
            let shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || shared
        }
        Ok(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        Err(_) => {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            let ends = |local: &&str| {
                name.strip_suffix(*local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            !name.contains('.') || LOCAL_NAMES.iter().any(ends)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p17_what_is_near_is_told_by_the_address() {
        for (base, near) in [
            ("http://127.0.0.1:8080/v1", true),
            ("http://localhost:1234", true),
            ("http://[::1]:8000/v1", true),
            ("http://[::ffff:192.168.1.7]:8000/v1", true),
            ("http://0.0.0.0:11434/v1", true),
            ("http://192.168.1.7:11434/v1", true),
            ("http://10.0.0.9/v1", true),
            ("http://172.31.0.1/v1", true),
            ("http://100.101.102.103:8000", true),
            ("http://[fd00::7]:8000", true),
            ("http://gpu:8000/v1", true),
            ("https://llm.home.arpa/v1", true),
            ("https://llm.lan./v1", true),
            ("https://api.openai.com/v1", false),
            ("http://172.32.0.1/v1", false),
            ("http://100.128.0.1/v1", false),
            ("http://[2606:4700::1]/v1", false),
            ("https://localhost.example.com/v1", false),
            ("https://10.example.com/v1", false),
            ("no address", false),
        ] {
            assert_eq!(is_near(base), near, "{base}");
        }
    }
}
