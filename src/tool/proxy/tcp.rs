//! The TCP sockets of this network namespace, from the tables in /proc.

use std::fs::File;
use std::io::{BufRead, BufReader, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// State of a socket that listens. The tables begin with these.
const LISTENS: u8 = 0x0a;

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    local: SocketAddr,
    remote: SocketAddr,
    state: u8,
    user: u32,
    inode: u64,
}

impl Row {
    /// Addresses as they are on the wire: an IPv4 one of an IPv6 socket is IPv4. `None`: not a line of a socket.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, state, _, _, _, user, _, inode, ..] = words[..] else { return None };
        Some(Self {
            local: address(local)?,
            remote: address(remote)?,
            state: u8::from_str_radix(state, 16).ok()?,
            user: user.parse().ok()?,
            inode: inode.parse().ok()?,
        })
    }
}

/// `0100007F:0BB8`: groups of four bytes in the order of this processor, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (part, at) in bytes.chunks_exact_mut(4).zip((0..32).step_by(8)) {
                part.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Calls `see` for each socket of a table until it returns that no more are needed.
fn each(table: &str, mut see: impl FnMut(Row) -> bool) -> Result<()> {
    let file = match File::open(table) {
        Ok(file) => file,
        // A kernel without IPv6.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && table == TABLES[1] => return Ok(()),
        Err(e) => return Err(e),
    };
    for line in BufReader::new(file).lines().skip(1) {
        if let Some(row) = Row::read(&line?)
            && !see(row)
        {
            break;
        }
    }
    Ok(())
}

/// Inodes of the sockets that a connection to this address leads to: those that listen on it, or else on every address of
/// its family.
///
/// # Errors
/// When a table cannot be read.
pub fn listeners(at: SocketAddr) -> Result<Vec<u64>> {
    let (mut exact, mut any) = (Vec::new(), Vec::new());
    for (table, v6) in TABLES.into_iter().zip([false, true]) {
        each(table, |row| {
            if row.state == LISTENS && row.local.port() == at.port() {
                // One on every address of IPv6 usually takes connections of IPv4, too.
                let every = row.local.ip().is_unspecified() && (v6 || at.is_ipv4());
                match row.local.ip() == at.ip() {
                    true => exact.push(row.inode),
                    false if every => any.push(row.inode),
                    false => {}
                }
            }
            row.state == LISTENS
        })?;
    }
    Ok(if exact.is_empty() { any } else { exact })
}

/// The user whose socket is connected from `local` to `remote`; `None`: there is none.
///
/// # Errors
/// When a table cannot be read.
pub fn user_of(local: SocketAddr, remote: SocketAddr) -> Result<Option<u32>> {
    let mut user = None;
    for table in TABLES {
        each(table, |row| {
            if (row.local, row.remote) == (local, remote) {
                user = Some(row.user);
            }
            user.is_none()
        })?;
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn inode(fd: impl AsFd) -> u64 {
        rustix::fs::fstat(fd).unwrap().st_ino
    }

    #[test]
    fn who_listens_is_found_by_address_and_port() {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = one.local_addr().unwrap();
        assert_eq!(listeners(at).unwrap(), [inode(&one)]);
        let other = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), at.port()));
        assert_eq!(listeners(other).unwrap(), [0; 0], "another address");
        let every = TcpListener::bind("0.0.0.0:0").unwrap();
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, every.local_addr().unwrap().port()));
        assert_eq!(listeners(at).unwrap(), [inode(&every)]);
        drop(every);
        // A process that another test starts may have a copy of it for a moment.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !listeners(at).unwrap().is_empty() {
            assert!(std::time::Instant::now() < until);
            std::thread::yield_now();
        }
        if let Ok(mapped) = TcpListener::bind("[::ffff:127.0.0.1]:0") {
            let at = SocketAddr::from((Ipv4Addr::LOCALHOST, mapped.local_addr().unwrap().port()));
            assert_eq!(listeners(at).unwrap(), [inode(&mapped)]);
        }
        if let Ok(six) = TcpListener::bind("[::1]:0") {
            assert_eq!(listeners(six.local_addr().unwrap()).unwrap(), [inode(&six)]);
        }
    }

    #[test]
    fn the_user_of_a_connection_is_that_of_its_socket() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        let client = TcpStream::connect(at).unwrap();
        let from = client.local_addr().unwrap();
        assert_eq!(user_of(from, at).unwrap(), Some(rustix::process::getuid().as_raw()));
        assert_eq!(user_of(SocketAddr::new(from.ip(), 1), at).unwrap(), None);
    }

    #[test]
    fn lines_that_are_none_of_sockets_are_passed_over() {
        for line in [
            "",
            "  sl  local_address rem_address   st",
            "0: 00:00 00:00 0A 0 0 0 0 0 1",
            "0: ÄÄÄÄ:0 0:0 0A 0 0 0 0 0 1",
        ] {
            assert_eq!(Row::read(line), None, "{line}");
        }
    }
}
