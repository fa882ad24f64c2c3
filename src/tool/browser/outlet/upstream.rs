//! The proxy of the person's own, which the browser's arguments name: public hosts are reached through it, once they are judged.
//! It finds their addresses itself, so the check of names is only as good as that proxy.

use std::io::{Error, Result};
use std::time::Duration;

use base64::Engine as _;
use reqwest::Url;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::proxy::head;
use crate::proxy::request::{Request, Way};

/// Longest time for it to connect and to answer.
const WAIT: Duration = Duration::from_secs(30);
/// Arguments that would lead the browser, or a part of it, past the proxy of this program.
const PAST: [&str; 8] = [
    "--proxy-bypass-list",
    "--no-proxy-server",
    "--host-resolver-rules",
    "--host-rules",
    "--enable-quic",
    "--origin-to-force-quic-on",
    "--webrtc-ip-handling-policy",
    "--force-webrtc-ip-handling-policy",
];
/// Arguments that name proxies in a way that is not read.
const UNREAD: [&str; 2] = ["--proxy-pac-url", "--proxy-auto-detect"];

/// An HTTP proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upstream {
    host: String,
    port: u16,
    /// Value of `Proxy-Authorization`.
    login: Option<String>,
}

/// The person's arguments without those that concern proxies, and the proxy that they name.
///
/// # Errors
/// In words: it is none that can be used.
pub(crate) fn taken_out(
    arguments: &[String],
) -> std::result::Result<(Vec<String>, Option<Upstream>), String> {
    let (mut kept, mut upstream) = (Vec::new(), None);
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        // With one dash as well, and in any case: so the browser reads them.
        let name = format!("--{}", name.trim_start_matches('-').to_ascii_lowercase());
        if UNREAD.contains(&name.as_str()) {
            return Err(format!(
                "browser.arguments: {name} is not supported; name one proxy with --proxy-server=http://HOST:PORT"
            ));
        } else if name == "--proxy-server" {
            let read = Upstream::read(value)
                .ok_or("browser.arguments: --proxy-server names one HTTP proxy, as http://HOST:PORT")?;
            upstream = Some(read);
        } else if !PAST.contains(&name.as_str()) {
            kept.push(argument.clone());
        }
    }
    Ok((kept, upstream))
}

impl Upstream {
    /// `http://HOST:PORT` or `HOST:PORT`.
    fn read(value: &str) -> Option<Self> {
        let value = value.trim().trim_matches('"');
        let text = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let url = Url::parse(&text).ok().filter(|url| url.scheme() == "http" && url.path() == "/")?;
        let login = (!url.username().is_empty()).then(|| {
            let pair = format!("{}:{}", url.username(), url.password().unwrap_or_default());
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
        });
        Some(Self {
            host: url.host_str()?.trim_matches(['[', ']']).to_owned(),
            port: url.port_or_known_default()?,
            login,
        })
    }

    /// Connects to the proxy; for a tunnel, through it to the host.
    pub(super) async fn connect(&self, request: &Request) -> Result<TcpStream> {
        let late = |_| Error::from(std::io::ErrorKind::TimedOut);
        let connect = TcpStream::connect((self.host.as_str(), self.port));
        let mut proxy = timeout(WAIT, connect).await.map_err(late)??;
        if request.way != Way::Tunnel {
            return Ok(proxy);
        }
        let host =
            if request.host.contains(':') { format!("[{}]", request.host) } else { request.host.clone() };
        let at = format!("{host}:{}", request.port);
        let login = self.login.as_ref().map(|l| format!("Proxy-Authorization: {l}\r\n")).unwrap_or_default();
        proxy.write_all(format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{login}\r\n").as_bytes()).await?;
        let said = timeout(WAIT, head(&mut proxy)).await.map_err(late)??;
        match said {
            Some((head, rest)) if rest.is_empty() && head.split(|b| *b == b' ').nth(1) == Some(b"200") => {
                Ok(proxy)
            }
            _ => Err(Error::other("the proxy of browser.arguments refused the connection")),
        }
    }

    /// The head of a request with its whole address, as a proxy reads it.
    pub(super) fn head(&self, head: &[u8], url: &Url) -> Vec<u8> {
        let at = head.iter().position(|b| *b == b' ').map_or(0, |at| at + 1);
        let (method, rest) = head.split_at(at);
        let mut new = [method, url.origin().ascii_serialization().as_bytes(), rest].concat();
        if let Some(login) = &self.login {
            let end = new.len().saturating_sub(2);
            new.splice(end..end, format!("Proxy-Authorization: {login}\r\n").into_bytes());
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lead_no_part_of_the_browser_past_the_proxy() {
        let list = |all: &[&str]| all.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>();
        let (kept, upstream) = taken_out(&list(&[
            "--lang=de",
            "--proxy-bypass-list=*",
            "--no-proxy-server",
            "-no-proxy-server",
            "--HOST-RESOLVER-RULES=MAP * 127.0.0.1",
            "--proxy-server=http://a:b@proxy.example:8080",
        ]))
        .unwrap();
        assert_eq!(kept, ["--lang=de"]);
        let upstream = upstream.unwrap();
        assert_eq!((upstream.host.as_str(), upstream.port), ("proxy.example", 8080));
        let url = Url::parse("http://a.example:81/x").unwrap();
        let head = upstream.head(b"GET /x HTTP/1.1\r\nHost: a.example:81\r\n\r\n", &url);
        let want = "GET http://a.example:81/x HTTP/1.1\r\nHost: a.example:81\r\nProxy-Authorization: Basic YTpi\r\n\r\n";
        assert_eq!(String::from_utf8(head).unwrap(), want);
        for bad in [
            "--proxy-server=socks5://a:1",
            "--proxy-server=",
            "--proxy-server=http=a:1;https=b:2",
            "--proxy-pac-url=http://a/",
            "--proxy-auto-detect",
        ] {
            assert!(taken_out(&list(&[bad])).is_err(), "{bad}");
        }
    }
}
