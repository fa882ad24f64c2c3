//! The proxy against hosts and names of the tests, alone and with real programs in the sandbox.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;

/// A public address, which is connected to a server of the test.
const PUBLIC: &str = "93.184.215.14";
const TIMEOUT: Duration = Duration::from_secs(90);

/// Names with their addresses. All connections go to servers of the test, by port.
#[derive(Clone, Default)]
struct World {
    names: HashMap<&'static str, Vec<&'static str>>,
    servers: HashMap<u16, SocketAddr>,
    resolved: Arc<AtomicUsize>,
    connected: Arc<Mutex<Vec<SocketAddr>>>,
}

impl World {
    fn new(names: &[(&'static str, &[&'static str])]) -> Self {
        Self { names: names.iter().map(|(n, a)| (*n, a.to_vec())).collect(), ..Self::default() }
    }

    fn connected(&self) -> Vec<SocketAddr> {
        self.connected.lock().unwrap().clone()
    }
}

#[async_trait]
impl Outside for World {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        self.resolved.fetch_add(1, Ordering::Relaxed);
        let found = self.names.get(host).ok_or(std::io::ErrorKind::NotFound)?;
        Ok(found.iter().map(|a| a.parse().unwrap()).collect())
    }

    async fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        self.connected.lock().unwrap().push(to);
        let server = self.servers.get(&to.port()).ok_or(std::io::ErrorKind::ConnectionRefused)?;
        TcpStream::connect(server).await
    }
}

/// A host that answers `ok` once it has read an empty line or `END`, and returns all that it got.
async fn host() -> (SocketAddr, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let got = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") && !all.ends_with(b"END") {
            if stream.read_buf(&mut all).await.unwrap() == 0 {
                break;
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        stream.shutdown().await.unwrap();
        // The proxy may close with bytes unread.
        let _ = stream.read_to_end(&mut all).await;
        String::from_utf8(all).unwrap()
    });
    (address, got)
}

/// What a command gets that sends `bytes` to the proxy, and what was refused.
async fn ask(world: &World, domains: &[&str], bytes: &[u8]) -> (String, Vec<Refusal>) {
    let shared = Shared {
        domains: Domains::new(domains),
        outside: Box::new(world.clone()),
        refusals: Mutex::default(),
        reached: Mutex::default(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    let mut said = Vec::new();
    let talk = async {
        client.write_all(bytes).await.unwrap();
        // A proxy that closes with bytes unread resets the connection.
        let _ = client.read_to_end(&mut said).await;
        let _ = client.shutdown().await;
    };
    let both = async { tokio::join!(talk, serve::serve(server, &shared)) };
    timeout(TIMEOUT, both).await.expect("the proxy goes on");
    let refused = shared.refusals.lock().unwrap().iter().cloned().collect();
    (String::from_utf8(said).unwrap(), refused)
}

/// The folder of a killed process is removed at the next start; the folder of a living process, and what is no proxy's, is
/// not.
#[test]
fn what_a_killed_process_left_is_removed() {
    use std::os::unix::net::UnixListener;
    let tmp = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let path = tmp.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let names = ["own", "killed", "lives", "made", "binds"].map(|name| format!("tiller-net-{name}"));
    let [own, killed, lives, made, binds] = names.each_ref().map(|name| folder(name));
    let other = folder("precious");
    // A socket stays in the file system when its listener is closed, as after a kill.
    // Another process has named its socket and listens a moment later.
    for left in [&killed, &other, &binds] {
        drop(UnixListener::bind(socket(left)).unwrap());
    }
    for old in [&killed, &other] {
        let hour = std::time::Duration::from_secs(3_600);
        std::fs::File::open(old).unwrap().set_modified(std::time::SystemTime::now() - hour).unwrap();
    }
    let _listener = UnixListener::bind(socket(&lives)).unwrap();
    let target = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(socket(target.path())).unwrap());
    std::os::unix::fs::symlink(target.path(), tmp.path().join("tiller-net-link")).unwrap();
    listen::sweep(&own);
    assert!(!killed.exists());
    assert!([&own, &lives, &made, &binds, &other].iter().all(|path| path.exists()) && target.path().exists());
}

#[tokio::test]
async fn a_tunnel_reaches_the_checked_address_and_passes_bytes_on() {
    let (address, got) = host().await;
    let mut world = World::new(&[("good.test", &[PUBLIC])]);
    world.servers.insert(443, address);
    let (said, refused) =
        ask(&world, &["*.test", "good.test"], b"CONNECT Good.Test.:443 HTTP/1.1\r\n\r\nhello END").await;
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("ok"), "{said}");
    assert_eq!(got.await.unwrap(), "hello END");
    assert_eq!(world.connected(), [format!("{PUBLIC}:443").parse().unwrap()]);
    assert!(refused.is_empty());
}

#[tokio::test]
async fn a_request_is_passed_on_alone() {
    let (address, got) = host().await;
    let mut world = World::new(&[("good.test", &[PUBLIC])]);
    world.servers.insert(80, address);
    let smuggled = "POST http://good.test/a HTTP/1.1\r\nHost: good.test\r\nProxy-Connection: keep-alive\r\n\
                    Content-Length: 3\r\n\r\nENDGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    let (said, _) = ask(&world, &["good.test"], smuggled.as_bytes()).await;
    assert!(said.contains("200 OK") && said.contains("ok"), "{said}");
    let got = got.await.unwrap();
    assert!(
        got.starts_with("POST /a HTTP/1.1\r\nHost: good.test\r\n") && got.ends_with("\r\n\r\nEND"),
        "{got}"
    );
    assert!(!got.contains("evil") && !got.contains("Proxy"), "{got}");
}

#[tokio::test]
async fn hosts_that_are_not_listed_are_neither_resolved_nor_connected() {
    let world = World::new(&[("evil.test", &[PUBLIC])]);
    for head in [
        "CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT good.test.evil.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT 93.184.215.14:443 HTTP/1.1\r\n\r\n",
        "CONNECT [2606:4700::1111]:443 HTTP/1.1\r\n\r\n",
        "CONNECT good.test:22 HTTP/1.1\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\n\r\n",
        "GET http://good.test:8080/ HTTP/1.1\r\n\r\n",
    ] {
        let (said, refused) = ask(&world, &["good.test"], head.as_bytes()).await;
        assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("the sandbox refused"), "{head}: {said}");
        assert_eq!(refused.len(), 1, "{head}: {refused:?}");
    }
    for head in [
        "GET http://good.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n",
        "CONNECT good.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n",
        "\u{16}\u{3}\u{1}\r\n\r\n",
    ] {
        let (said, _) = ask(&world, &["good.test"], head.as_bytes()).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{head}: {said}");
    }
    assert_eq!(world.resolved.load(Ordering::Relaxed), 0);
    assert!(world.connected().is_empty());
}

/// A listed name that leads to this machine, its network or a cloud's metadata: also if only one of its addresses does.
#[tokio::test]
async fn private_addresses_are_refused_whatever_name_they_have() {
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fe80::1",
        "fd00::1",
        "ff02::1",
    ] {
        let mut world = World::new(&[]);
        for addresses in [vec![address], vec![PUBLIC, address]] {
            world.names.insert("rebind.test", addresses);
            let (said, refused) =
                ask(&world, &["rebind.test"], b"CONNECT rebind.test:443 HTTP/1.1\r\n\r\n").await;
            assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("not public"), "{address}: {said}");
            assert_eq!(refused.len(), 1, "{address}");
        }
        assert!(world.connected().is_empty(), "{address}");
    }
}

/// One question and one answer: a second one, which could differ, is never asked for.
#[tokio::test]
async fn a_name_is_resolved_once_for_a_connection() {
    let world = World::new(&[("good.test", &[PUBLIC, "93.184.215.15"])]);
    let (said, _) = ask(&world, &["good.test"], b"CONNECT good.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 502 "), "no server listens: {said}");
    assert_eq!(world.resolved.load(Ordering::Relaxed), 1);
    assert_eq!(world.connected().len(), 2, "both addresses of the one answer were tried");
}

#[tokio::test]
async fn a_head_without_end_is_not_read_for_ever() {
    let world = World::new(&[]);
    let long = format!(
        "GET http://good.test/ HTTP/1.1\r\nX: {}",
        "y".repeat(2 * tiller_tool::proxy::request::LONGEST)
    );
    let (said, _) = ask(&world, &["good.test"], long.as_bytes()).await;
    assert!(said.starts_with("HTTP/1.1 431 ") || said.is_empty(), "{said}");
    let split = format!("CONNECT {}.test:443 HTTP/1.1\r\n\r\n", "x".repeat(60));
    let (said, refused) = ask(&world, &["good.test"], split.as_bytes()).await;
    assert!(said.starts_with("HTTP/1.1 403 ") && refused[0].host.len() < 253, "{said}");
}

/// No other user may hand it sockets.
#[cfg(target_os = "linux")]
#[test]
fn the_folder_of_the_socket_is_private_and_ends_with_the_proxy() {
    use std::os::unix::fs::PermissionsExt;
    let proxy = Proxy::start(Domains::new(&["good.test"]), Box::new(World::new(&[]))).unwrap();
    let folder = proxy.socket().parent().unwrap().to_owned();
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    drop(proxy);
    assert!(!folder.exists());
}

#[test]
fn variables_of_another_proxy_are_replaced() {
    let mut env = vec![
        ("https_proxy".to_owned(), "http://user:secret@corporate:8080".to_owned()),
        ("NO_PROXY".to_owned(), "*".to_owned()),
        ("PATH".to_owned(), "/bin".to_owned()),
    ];
    set_variables(&mut env, PORT);
    assert!(env.iter().all(|(_, value)| !value.contains("corporate") && value != "*"), "{env:?}");
    for name in VARIABLES {
        assert_eq!(env.iter().filter(|(n, _)| n == name).count(), 1, "{name}");
    }
    assert!(env.contains(&("PATH".to_owned(), "/bin".to_owned())));
}

#[cfg(target_os = "linux")]
#[path = "program_tests.rs"]
mod programs;
