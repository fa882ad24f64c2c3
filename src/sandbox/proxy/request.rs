//! The head of a request to the proxy. What two programs could read in two ways is refused.

use super::domains;

/// Bytes of a head at most.
pub(crate) const LONGEST: usize = 16 << 10;
/// Headers at most.
const HEADERS: usize = 100;

/// Headers that concern one connection, or the proxy: they are not passed on.
const HOP: &[&str] = &[
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "transfer-encoding",
    "content-length",
    "host",
];

/// What a request asks of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub host: String,
    pub port: u16,
    pub way: Way,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A connection whose bytes are passed on.
    Tunnel,
    /// One request for the host: its new head, and how long its body is.
    Forward { head: Vec<u8>, body: Body },
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Length(u64),
    Chunked,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It cannot be read in one way only; what is wrong with it.
    Malformed(&'static str),
    /// It names a host that cannot be reached: host and reason.
    Refused(String, &'static str),
}

use Wrong::{Malformed, Refused};

/// Reads a head, from its first byte to the empty line.
pub(crate) fn read(head: &[u8]) -> Result<Request, Wrong> {
    let text = std::str::from_utf8(head).ok().filter(|t| t.is_ascii()).ok_or(Malformed("not ASCII"))?;
    let text = text.strip_suffix("\r\n\r\n").ok_or(Malformed("no end"))?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut parts = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Malformed("not a request line"));
    };
    let token = |t: &str| !t.is_empty() && t.bytes().all(is_token);
    if !token(method)
        || !matches!(version, "HTTP/1.1" | "HTTP/1.0")
        || target.bytes().any(|b| b <= b' ' || b == 0x7f)
    {
        return Err(Malformed("not a request line"));
    }
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(Malformed("a header without a colon"))?;
        if !token(name) || value.bytes().any(|b| (b < b' ' && b != b'\t') || b == 0x7f) {
            return Err(Malformed("a malformed header"));
        }
        headers.push((name, value.trim_matches([' ', '\t'])));
        if headers.len() > HEADERS {
            return Err(Malformed("too many headers"));
        }
    }
    let named = |wanted: &str| -> Vec<&str> {
        headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| *value)
            .collect()
    };
    let hosts = named("host");
    if hosts.len() > 1 {
        return Err(Malformed("several hosts"));
    }
    if method.eq_ignore_ascii_case("connect") {
        if method != "CONNECT" {
            return Err(Malformed("not a method"));
        }
        let (host, port) = authority(target, None)?;
        same(&hosts, &host, port, None)?;
        return Ok(Request { host, port, way: Way::Tunnel });
    }
    let rest = target.get(..7).filter(|s| s.eq_ignore_ascii_case("http://")).and_then(|_| target.get(7..));
    let rest = rest.ok_or(Malformed("not a request to a proxy: an http:// address or CONNECT is needed"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (named_host, path) = rest.split_at(end);
    if path.contains('#') {
        return Err(Malformed("a fragment in the address"));
    }
    let (host, port) = authority(named_host, Some(80))?;
    if port != 80 {
        return Err(Refused(format!("{host}:{port}"), "only ports 80 and 443 can be reached"));
    }
    same(&hosts, &host, port, Some(80))?;
    let body = body(&named("transfer-encoding"), &named("content-length"))?;
    let dropped: Vec<String> = named("connection")
        .iter()
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut new = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in &headers {
        let lower = name.to_ascii_lowercase();
        if !HOP.contains(&lower.as_str()) && !dropped.contains(&lower) {
            new.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    match body {
        Some(Body::Length(length)) => new.push_str(&format!("Content-Length: {length}\r\n")),
        Some(Body::Chunked) => new.push_str("Transfer-Encoding: chunked\r\n"),
        None => {}
    }
    new.push_str("\r\n");
    let way = Way::Forward { head: new.into_bytes(), body: body.unwrap_or(Body::Length(0)) };
    Ok(Request { host, port, way })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// `host:port`; without a port the given one.
fn authority(text: &str, port: Option<u16>) -> Result<(String, u16), Wrong> {
    let shown = || shown(text);
    if text.contains('@') {
        return Err(Malformed("a user name in the address"));
    }
    if text.starts_with('[') {
        return Err(Refused(shown(), "an address, not a name"));
    }
    let (name, port) = match (text.split_once(':'), port) {
        (Some((name, digits)), _) => {
            let digits = Some(digits).filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
            let number = digits.and_then(|d| d.parse::<u16>().ok()).filter(|n| *n > 0);
            (name, number.ok_or(Malformed("not a port"))?)
        }
        (None, Some(port)) => (text, port),
        (None, None) => return Err(Malformed("no port")),
    };
    let host = domains::host(name).ok_or_else(|| Refused(shown(), "an address, not a name"))?;
    if !matches!(port, 80 | 443) {
        return Err(Refused(format!("{host}:{port}"), "only ports 80 and 443 can be reached"));
    }
    Ok((host, port))
}

/// A host as a command wrote it, for people: cut, printable.
fn shown(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(100).collect()
}

/// The `Host` header, if there is one, must name the host of the request line.
fn same(hosts: &[&str], host: &str, port: u16, usual: Option<u16>) -> Result<(), Wrong> {
    let Some(header) = hosts.first() else { return Ok(()) };
    let (name, digits) = header.split_once(':').map_or((*header, None), |(name, d)| (name, Some(d)));
    let port_fits = match digits {
        None => usual.is_none_or(|usual| usual == port),
        Some(digits) => digits == port.to_string(),
    };
    if domains::host(name).as_deref() == Some(host) && port_fits {
        return Ok(());
    }
    Err(Malformed("the Host header names another host"))
}

/// How long the body is; `None`: the head does not say that there is one.
fn body(codings: &[&str], lengths: &[&str]) -> Result<Option<Body>, Wrong> {
    match (codings, lengths) {
        ([], []) => Ok(None),
        ([coding], []) if coding.eq_ignore_ascii_case("chunked") => Ok(Some(Body::Chunked)),
        ([], [length]) => {
            let digits =
                !length.is_empty() && length.len() <= 18 && length.bytes().all(|b| b.is_ascii_digit());
            let length = length.parse().ok().filter(|_| digits).ok_or(Malformed("not a length"))?;
            Ok(Some(Body::Length(length)))
        }
        _ => Err(Malformed("the length of the body is ambiguous")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(head: &str) -> Wrong {
        read(head.as_bytes()).expect_err(head)
    }

    #[test]
    fn a_tunnel_and_a_request_are_read() {
        let tunnel = read(b"CONNECT Crates.IO.:443 HTTP/1.1\r\nHost: crates.io:443\r\n\r\n").unwrap();
        assert_eq!(tunnel, Request { host: "crates.io".into(), port: 443, way: Way::Tunnel });
        let text = "POST http://a.example:80?q=1 HTTP/1.1\r\nhost: A.example\r\nX: y\r\nConnection: keep-alive, x-hop\r\n\
                    X-Hop: 1\r\nProxy-Authorization: secret\r\nContent-Length: 3\r\n\r\n";
        let request = read(text.as_bytes()).unwrap();
        let Way::Forward { head, body } = request.way else { panic!("{request:?}") };
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "POST /?q=1 HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nX: y\r\nContent-Length: 3\r\n\r\n"
        );
        assert_eq!((request.host.as_str(), request.port, body), ("a.example", 80, Body::Length(3)));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let get = |rest: &str| format!("GET http://a.example/ HTTP/1.1\r\n{rest}\r\n");
        for head in [
            get("Host: a.example\r\nHost: b.example\r\n"),
            get("Host: b.example\r\n"),
            get("Host: a.example:8080\r\n"),
            get("Host: a.example@b.example\r\n"),
            get("Host : a.example\r\n"),
            get("X: y\r\n folded\r\n"),
            get("X: y\nHost: b.example\r\n"),
            get("X: y\rHost: b.example\r\n"),
            get("X: \0\r\n"),
            get("no colon\r\n"),
            get("Content-Length: 1\r\nContent-Length: 2\r\n"),
            get("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            get("Content-Length: +1\r\n"),
            get("Content-Length: 1, 1\r\n"),
            get("Content-Length: 99999999999999999999\r\n"),
            get("Transfer-Encoding: gzip, chunked\r\n"),
            get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            get("Transfer-Encoding: xchunked\r\n"),
            get(&"X: y\r\n".repeat(HEADERS + 1)),
            "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".into(),
            "GET https://a.example/ HTTP/1.1\r\n\r\n".into(),
            "GET http://a.example/ HTTP/1.1 \r\n\r\n".into(),
            "GET  http://a.example/ HTTP/1.1\r\n\r\n".into(),
            "GET http://a.example/ HTTP/2\r\n\r\n".into(),
            "GET http://u@a.example/ HTTP/1.1\r\n\r\n".into(),
            "GET http://a.example/#x HTTP/1.1\r\n\r\n".into(),
            "GET http://a.example\\@b.example/ HTTP/1.1\r\n\r\n".into(),
            "GET http://ä.example/ HTTP/1.1\r\n\r\n".into(),
            "connect a.example:443 HTTP/1.1\r\n\r\n".into(),
            "CONNECT a.example HTTP/1.1\r\n\r\n".into(),
            "CONNECT a.example: HTTP/1.1\r\n\r\n".into(),
            "CONNECT a.example:+443 HTTP/1.1\r\n\r\n".into(),
            "CONNECT a.example:443:443 HTTP/1.1\r\n\r\n".into(),
            "CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n".into(),
            "CONNECT http://a.example:443 HTTP/1.1\r\n\r\n".into(),
            "\r\n\r\n".into(),
        ] {
            let _ = refused(&head);
        }
    }

    #[test]
    fn addresses_and_other_ports_are_refused_by_name() {
        for (target, shown) in [
            ("127.0.0.1:443", "127.0.0.1:443"),
            ("[::1]:443", "[::1]:443"),
            ("0x7f.1:443", "0x7f.1:443"),
            ("a.example:22", "a.example:22"),
            ("a.example:8080", "a.example:8080"),
        ] {
            let wrong = refused(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
            assert!(matches!(&wrong, Refused(host, _) if host == shown), "{wrong:?}");
        }
        let wrong = refused("GET http://a.example:443/ HTTP/1.1\r\n\r\n");
        assert!(matches!(wrong, Refused(..)), "plain text to port 443");
    }
}
