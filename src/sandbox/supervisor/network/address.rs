//! Socket addresses in the memory of a caller, and what becomes of them: nothing but loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;

use crate::supervisor::caller::Caller;

const UNSPECIFIED: u16 = 0;
const IPV4: u16 = 2;
const IPV6: u16 = 10;
const NETLINK: u16 = 16;
/// The longest address that the kernel reads.
const LONGEST: i32 = 128;

/// The bytes of an address, read once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    bytes: [u8; 24],
    /// As far as the caller gave them.
    length: usize,
}

impl Address {
    /// Reads it from the arguments of bind(2) or connect(2).
    ///
    /// # Errors
    /// As the kernel answers a call with such an address.
    pub(super) fn read(caller: &Caller, pointer: u64, length: u64) -> Result<Self, Errno> {
        // The kernel reads the lower half as a number with a sign.
        let length = (length & 0xffff_ffff) as u32 as i32;
        if !(0..=LONGEST).contains(&length) {
            return Err(Errno::INVAL);
        }
        let length = usize::try_from(length).unwrap_or_default();
        let mut bytes = [0; 24];
        match length {
            24.. => bytes = caller.bytes(pointer)?,
            16.. => bytes[..16].copy_from_slice(&caller.bytes::<16>(pointer)?),
            12.. => bytes[..12].copy_from_slice(&caller.bytes::<12>(pointer)?),
            _ => return Err(Errno::INVAL),
        }
        Ok(Self { bytes, length })
    }

    fn family(&self) -> u16 {
        u16::from_ne_bytes([self.bytes[0], self.bytes[1]])
    }

    /// As that of an internet socket. `v6`: the socket is one of IPv6.
    ///
    /// # Errors
    /// As the kernel answers. To undo a connection, which is asked for by an address without a family, is not offered.
    pub(super) fn internet(&self, v6: bool) -> Result<SocketAddr, Errno> {
        let b = &self.bytes;
        let port = u16::from_be_bytes([b[2], b[3]]);
        match (self.family(), v6) {
            (IPV4, false) if self.length >= 16 => {
                Ok(SocketAddr::from((Ipv4Addr::new(b[4], b[5], b[6], b[7]), port)))
            }
            (IPV6, true) if self.length >= 24 => {
                let ip = <[u8; 16]>::try_from(&b[8..24]).map_err(|_| Errno::INVAL)?;
                Ok(SocketAddr::from((Ipv6Addr::from(ip), port)))
            }
            (IPV4, false) | (IPV6, true) => Err(Errno::INVAL),
            (UNSPECIFIED, _) => Err(Errno::AFNOSUPPORT),
            _ => Err(Errno::AFNOSUPPORT),
        }
    }

    /// As that of an internet socket of either family.
    ///
    /// # Errors
    /// As the kernel answers.
    pub(super) fn any_internet(&self) -> Result<SocketAddr, Errno> {
        self.internet(self.family() == IPV6)
    }

    /// Whether it asks for a connection to be undone.
    pub(super) fn is_unspecified(&self) -> bool {
        self.family() == UNSPECIFIED
    }

    /// As that of a netlink socket.
    ///
    /// # Errors
    /// `INVAL` when it is another one.
    pub(super) fn netlink(&self) -> Result<SocketAddrNetlink, Errno> {
        let number = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|n| self.bytes[at + n]));
        match self.family() {
            NETLINK => Ok(SocketAddrNetlink::new(number(4), number(8))),
            _ => Err(Errno::INVAL),
        }
    }
}

fn mapped(ip: Ipv4Addr) -> IpAddr {
    IpAddr::V6(ip.to_ipv6_mapped())
}

/// Where a server listens that asks for this address: every address becomes loopback. `only_v6`: the socket takes no
/// connections of IPv4. `None`: an address that is not of loopback.
pub(super) fn to_serve(asked: SocketAddr, only_v6: bool) -> Option<SocketAddr> {
    let v4 = |ip: Ipv4Addr| match ip {
        Ipv4Addr::UNSPECIFIED => Some(Ipv4Addr::LOCALHOST),
        ip => ip.is_loopback().then_some(ip),
    };
    let ip = match asked.ip() {
        IpAddr::V4(ip) => IpAddr::V4(v4(ip)?),
        // One socket can have one of the two loopback addresses. Connections to the other one are led there.
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) if !only_v6 => mapped(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED | Ipv6Addr::LOCALHOST) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(ip) => mapped(v4(ip.to_ipv4_mapped()?)?),
    };
    Some(SocketAddr::new(ip, asked.port()))
}

/// Where a connection to this address leads. `None`: not to loopback.
pub(super) fn to_reach(asked: SocketAddr) -> Option<SocketAddr> {
    // The kernel takes the address of nothing for that of this machine.
    to_serve(asked, true)
}

/// The other address of a server on every address of IPv6: see [`to_serve`].
pub(super) fn other(at: SocketAddr) -> Option<SocketAddr> {
    (at.ip() == Ipv6Addr::LOCALHOST).then(|| SocketAddr::new(mapped(Ipv4Addr::LOCALHOST), at.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_loopback_is_served_or_reached() {
        for (asked, only_v6, serves, reaches) in [
            ("0.0.0.0:80", false, Some("127.0.0.1:80"), Some("127.0.0.1:80")),
            ("127.0.0.1:80", false, Some("127.0.0.1:80"), Some("127.0.0.1:80")),
            ("127.8.0.1:80", false, Some("127.8.0.1:80"), Some("127.8.0.1:80")),
            ("192.0.2.1:80", false, None, None),
            ("255.255.255.255:80", false, None, None),
            ("[::]:80", false, Some("[::ffff:127.0.0.1]:80"), Some("[::1]:80")),
            ("[::]:80", true, Some("[::1]:80"), Some("[::1]:80")),
            ("[::1]:80", false, Some("[::1]:80"), Some("[::1]:80")),
            ("[::ffff:0.0.0.0]:80", false, Some("[::ffff:127.0.0.1]:80"), Some("[::ffff:127.0.0.1]:80")),
            ("[::ffff:127.0.0.1]:80", false, Some("[::ffff:127.0.0.1]:80"), Some("[::ffff:127.0.0.1]:80")),
            ("[::ffff:192.0.2.1]:80", false, None, None),
            ("[::127.0.0.1]:80", false, None, None),
            ("[64:ff9b::7f00:1]:80", false, None, None),
            ("[fe80::1]:80", false, None, None),
        ] {
            let address = |text: &str| text.parse::<SocketAddr>().unwrap();
            assert_eq!(to_serve(address(asked), only_v6), serves.map(address), "{asked}");
            assert_eq!(to_reach(address(asked)), reaches.map(address), "{asked}");
        }
    }
}
