//! The head of a request to the proxy. What two programs could read in two ways is refused.

use std::net::IpAddr;

/// Bytes of a head at most.
pub const LONGEST: usize = 16 << 10;
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

/// Which hosts a client of the proxy may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Names, on the ports 80 and 443.
    Names,
    /// Names and addresses, on any port.
    Any,
}

/// What a request asks of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// Lower case, without a dot at its end; an address without brackets, as [`IpAddr`] shows it.
    pub host: String,
    pub port: u16,
    pub way: Way,
}

/// The form of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// A connection whose bytes are passed on.
    Tunnel,
    /// One request for the host: its new head, and how long its body is.
    Forward {
        head: Vec<u8>,
        body: Body,
        /// Its `Sec-Fetch-Site` header in lower case, which a browser sets and no page can.
        site: Option<String>,
    },
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// In bytes.
    Length(u64),
    /// As its own chunks say.
    Chunked,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It cannot be read in one way only; what is wrong with it.
    Malformed(&'static str),
    /// It names a host that cannot be reached: host and reason.
    Refused(String, &'static str),
}

use Wrong::{Malformed, Refused};

/// Reads a head, from its first byte to the empty line.
///
/// # Errors
/// When it can be read in two ways, or names a host that is not among `may`.
pub fn read(head: &[u8], may: Hosts) -> Result<Request, Wrong> {
    // A page may keep any text in a cookie.
    let ascii = |text: &&str| may == Hosts::Any || text.is_ascii();
    let text = std::str::from_utf8(head).ok().filter(ascii).ok_or(Malformed("not ASCII"))?;
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
        || target.bytes().any(|b| b <= b' ' || b >= 0x7f)
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
        let (host, port) = authority(target, None, may)?;
        same(&hosts, &host, port, None, may)?;
        return Ok(Request { host, port, way: Way::Tunnel });
    }
    let rest = target.get(..7).filter(|s| s.eq_ignore_ascii_case("http://")).and_then(|_| target.get(7..));
    let rest = rest.ok_or(Malformed("not a request to a proxy: an http:// address or CONNECT is needed"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (named_host, path) = rest.split_at(end);
    if path.contains('#') {
        return Err(Malformed("a fragment in the address"));
    }
    let (host, port) = authority(named_host, Some(80), may)?;
    if may == Hosts::Names && port != 80 {
        return Err(Refused(format!("{host}:{port}"), "only ports 80 and 443 can be reached"));
    }
    same(&hosts, &host, port, Some(80), may)?;
    let body = body(&named("transfer-encoding"), &named("content-length"))?;
    let dropped: Vec<String> = named("connection")
        .iter()
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let named_port = if port == 80 { String::new() } else { format!(":{port}") };
    let mut new =
        format!("{method} {slash}{path} HTTP/1.1\r\nHost: {bracketed}{named_port}\r\nConnection: close\r\n");
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
    let site = match named("sec-fetch-site")[..] {
        [] => None,
        [one] => Some(one.to_ascii_lowercase()),
        _ => return Err(Malformed("several of one header")),
    };
    let way = Way::Forward { head: new.into_bytes(), body: body.unwrap_or(Body::Length(0)), site };
    Ok(Request { host, port, way })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// `host:port`; without a port the given one.
fn authority(text: &str, port: Option<u16>, may: Hosts) -> Result<(String, u16), Wrong> {
    let shown = || shown(text);
    if text.contains('@') {
        return Err(Malformed("a user name in the address"));
    }
    let bracketed = text.starts_with('[');
    if bracketed && may == Hosts::Names {
        return Err(Refused(shown(), "an address, not a name"));
    }
    let (name, digits) = split(text);
    let port = match (digits, port) {
        (Some(digits), _) => {
            let digits = Some(digits).filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
            let number = digits.and_then(|d| d.parse::<u16>().ok()).filter(|n| *n > 0);
            number.ok_or(Malformed("not a port"))?
        }
        (None, Some(port)) => port,
        (None, None) => return Err(Malformed("no port")),
    };
    let host = match may {
        Hosts::Names => host_name(name),
        Hosts::Any => host_name(name).or_else(|| literal(name)),
    };
    let host = host.ok_or_else(|| Refused(shown(), "an address, not a name"))?;
    if may == Hosts::Names && !matches!(port, 80 | 443) {
        return Err(Refused(format!("{host}:{port}"), "only ports 80 and 443 can be reached"));
    }
    Ok((host, port))
}

/// A host and what stands behind its colon.
fn split(text: &str) -> (&str, Option<&str>) {
    let within = text.rfind(']').map_or(0, |at| at + 1);
    let (_, behind) = text.split_at(within);
    match behind.find(':') {
        Some(at) => (&text[..within + at], Some(&behind[at + 1..])),
        None => (text, None),
    }
}

/// An address in the one spelling of browsers: four numbers, or an IPv6 address in brackets.
fn literal(text: &str) -> Option<String> {
    let ip: IpAddr = match text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Some(six) => IpAddr::V6(six.parse().ok()?),
        None => IpAddr::V4(text.parse().ok()?),
    };
    Some(ip.to_string())
}

/// The name of a host as it is compared, resolved and shown: lower case, without a dot at its end. `None`: it is no name,
/// but an address in one of its spellings, or malformed.
pub fn host_name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let character = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let label = |l: &str| !l.is_empty() && l.len() <= 63 && l.bytes().all(character);
    if text.len() > 253 || !text.split('.').all(label) {
        return None;
    }
    // As in the URL standard: a last label that is a number, in hexadecimal too, makes it an address.
    let last = text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let number = last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    (!number).then(|| text.to_ascii_lowercase())
}

/// A host as a command wrote it, for people: cut, printable.
fn shown(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(100).collect()
}

/// The `Host` header, if there is one, must name the host of the request line.
fn same(hosts: &[&str], host: &str, port: u16, usual: Option<u16>, may: Hosts) -> Result<(), Wrong> {
    let Some(header) = hosts.first() else { return Ok(()) };
    let (name, digits) = split(header);
    let port_fits = match digits {
        None => usual.is_none_or(|usual| usual == port),
        Some(digits) => digits == port.to_string(),
    };
    let named = host_name(name).or_else(|| literal(name).filter(|_| may == Hosts::Any));
    if named.as_deref() == Some(host) && port_fits {
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
        read(head.as_bytes(), Hosts::Names).expect_err(head)
    }

    #[test]
    fn a_tunnel_and_a_request_are_read() {
        let tunnel =
            read(b"CONNECT Crates.IO.:443 HTTP/1.1\r\nHost: crates.io:443\r\n\r\n", Hosts::Names).unwrap();
        assert_eq!(tunnel, Request { host: "crates.io".into(), port: 443, way: Way::Tunnel });
        let text = "POST http://a.example:80?q=1 HTTP/1.1\r\nhost: A.example\r\nX: y\r\nConnection: keep-alive, x-hop\r\n\
                    X-Hop: 1\r\nProxy-Authorization: secret\r\nContent-Length: 3\r\n\r\n";
        let request = read(text.as_bytes(), Hosts::Names).unwrap();
        let Way::Forward { head, body, .. } = request.way else { panic!("{request:?}") };
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

    #[test]
    fn a_browser_may_name_addresses_and_ports_in_one_spelling_only() {
        let read = |text: &str| super::read(text.as_bytes(), Hosts::Any);
        for (target, host, port) in [
            ("127.0.0.1:8080", "127.0.0.1", 8080),
            ("[::1]:3000", "::1", 3000),
            ("[0:0::1]:3000", "::1", 3000),
            ("Localhost:443", "localhost", 443),
            ("a.example.:22", "a.example", 22),
        ] {
            let read = read(&format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).unwrap();
            assert_eq!(read, Request { host: host.into(), port, way: Way::Tunnel }, "{target}");
        }
        let text =
            "GET http://[::1]:3000/x HTTP/1.1\r\nHost: [::1]:3000\r\nSec-Fetch-Site: Cross-Site\r\n\r\n";
        let Way::Forward { head, site, .. } = read(text).unwrap().way else { panic!() };
        assert!(head.starts_with(b"GET /x HTTP/1.1\r\nHost: [::1]:3000\r\n"));
        assert_eq!(site.as_deref(), Some("cross-site"));
        for target in [
            "0x7f.1:80",
            "127.1:80",
            "[::1:80",
            "::1:80",
            "[127.0.0.1]:80",
            "[fe80::1%25lo]:80",
            "1:80",
            "a:b:80",
        ] {
            assert!(read(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).is_err(), "{target}");
        }
        for head in
            ["Host: [::2]:3000\r\n", "Host: [::1]\r\n", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: none\r\n"]
        {
            assert!(read(&format!("GET http://[::1]:3000/ HTTP/1.1\r\n{head}\r\n")).is_err(), "{head}");
        }
    }
}
