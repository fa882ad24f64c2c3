//! Which addresses may be fetched. Everything that is not plainly a public host is refused: private and
//! shared networks, this machine, neighbours, cloud metadata, and every way to write one of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Refuses an address that is not public; the error says what it is.
///
/// # Errors
/// The kind of address, in words.
pub fn check(ip: IpAddr) -> Result<(), &'static str> {
    match ip {
        IpAddr::V4(ip) => check_v4(ip),
        IpAddr::V6(ip) => check_v6(ip),
    }
}

/// The IANA special-purpose registry for IPv4, and two clouds' metadata addresses.
fn check_v4(ip: Ipv4Addr) -> Result<(), &'static str> {
    Err(match ip.octets() {
        [0, ..] => "this network",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private network",
        [100, 64..=127, ..] => "a shared network",
        [127, ..] => "this machine",
        [169, 254, ..] => "link-local or cloud metadata",
        [168, 63, 129, 16] => "cloud metadata",
        [192, 0, 0, _] => "reserved for protocols",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "documentation",
        [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] => "reserved for a service",
        [192, 88, 99, _] => "a relay",
        [198, 18..=19, ..] => "a test network",
        [224..=239, ..] => "multicast",
        [240..=255, ..] => "reserved",
        _ => return Ok(()),
    })
}

/// Only global unicast (2000::/3) without the parts that hold other addresses; and NAT64 of a public
/// address, which is how IPv6-only networks reach IPv4.
fn check_v6(ip: Ipv6Addr) -> Result<(), &'static str> {
    let s = ip.segments();
    let tail = Ipv4Addr::from(((u32::from(s[6])) << 16) | u32::from(s[7]));
    Err(match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => "no address",
        [0, 0, 0, 0, 0, 0, 0, 1] => "this machine",
        // ::ffff:a.b.c.d and ::ffff:0:a.b.c.d
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => return check_v4(tail),
        [0, 0, 0, 0, 0, 0, ..] => "an old form of IPv4",
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => return check_v4(tail),
        [0x64, 0xff9b, ..] => "a local translation",
        [0x100, ..] => "the discard network",
        [0x2001, 0..=0x1ff, ..] => "Teredo or another tunnel",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "documentation",
        [0x2002, ..] => "a 6to4 tunnel",
        [0xfc00..=0xfdff, ..] => "a private network",
        [0xfe80..=0xfebf, ..] => "link-local",
        [0xfec0..=0xfeff, ..] => "site-local",
        [0xff00..=0xffff, ..] => "multicast",
        // ISATAP: an IPv4 address behind a fixed mark.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] if check_v4(tail).is_err() => "a tunnel to a private network",
        [0x2000..=0x3fff, ..] => return Ok(()),
        _ => "not a public address",
    })
}

/// Reads a URL that is to be fetched. The one parser of it: what is checked here is what is connected to.
///
/// # Errors
/// What is wrong with it.
pub fn parse(raw: &str, private: bool) -> Result<Url, String> {
    if raw.chars().any(|c| c.is_control() || c == '\\') {
        return Err("the URL contains control characters or backslashes".into());
    }
    let url = Url::parse(raw.trim()).map_err(|e| {
        let bare = !raw.contains("://");
        if bare {
            "not a URL: one begins with https:// or http://".to_owned()
        } else {
            format!("not a URL: {e}")
        }
    })?;
    check_url(&url, private)?;
    Ok(url)
}

/// The rules for a parsed URL, also for each redirect.
///
/// # Errors
/// What is wrong with it.
pub fn check_url(url: &Url, private: bool) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("'{}:' is not fetched, only http and https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL that contains a user name or password is not fetched".into());
    }
    let host = url.host_str().filter(|h| !h.is_empty()).ok_or("the URL has no host")?;
    if let Some(ip) = literal(url) {
        return if private { Ok(()) } else { check(ip).map_err(|what| refusal(host, what)) };
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name.is_empty() || host.ends_with("..") {
        return Err("the host name is invalid".into());
    }
    // Names that mean this machine or this network wherever they are resolved.
    let local = [
        "localhost",
        "local",
        "internal",
        "intranet",
        "lan",
        "home",
        "corp",
        "private",
        "home.arpa",
        "localdomain",
    ];
    let is_local =
        local.iter().any(|l| name == *l || name.ends_with(&format!(".{l}"))) || !name.contains('.');
    if is_local && !private {
        return Err(refusal(host, "a local name"));
    }
    Ok(())
}

/// The address, when the host is one.
pub fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(v6) => v6.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

/// The words of a refusal.
pub fn refusal(host: &str, what: &str) -> String {
    format!("{host} is not fetched: {what}. Only public addresses are (unless the user allows private ones).")
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
