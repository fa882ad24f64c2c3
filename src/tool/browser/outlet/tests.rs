//! The proxy without a browser: what a client sends to it, and what a server of this machine gets of that.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_protocol::lock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::web::Resolver;

const LIMIT: Duration = Duration::from_secs(60);

/// Names with their addresses; of `flip.example` another one each time.
struct Names(AtomicUsize);

#[async_trait::async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        let ip = match host {
            "here.example" => "127.0.0.1",
            "flip.example" if count > 0 => "127.0.0.1",
            "flip.example" | "public.example" => "93.184.216.34",
            _ => return Err(std::io::ErrorKind::NotFound.into()),
        };
        Ok(vec![ip.parse().unwrap()])
    }
}

/// A server that keeps what it gets, until two empty lines or `END`, and answers `ok`.
struct Server {
    at: SocketAddr,
    got: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, got) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let log = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut all = Vec::new();
                while !all.ends_with(b"\r\n\r\n") && !all.ends_with(b"END") {
                    if stream.read_buf(&mut all).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                lock(&log).push(String::from_utf8_lossy(&all).into_owned());
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        });
        Self { at, got }
    }
}

fn guard(private: bool) -> Guard {
    let denied = |url: &reqwest::Url| (url.path() == "/denied").then(|| "a rule".to_owned());
    Guard::new(private, Arc::new(Names(AtomicUsize::new(0))), Arc::new(denied))
}

/// What a client gets that sends `first` and, once the tunnel is there, `then`.
async fn ask(outlet: &Outlet, first: &str, then: &[u8]) -> String {
    let mut client = TcpStream::connect(("127.0.0.1", outlet.port)).await.unwrap();
    client.write_all(first.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    if first.starts_with("CONNECT") {
        while !all.ends_with(b"\r\n\r\n") {
            if timeout(LIMIT, client.read_buf(&mut all)).await.unwrap().unwrap_or(0) == 0 {
                return String::from_utf8_lossy(&all).into_owned();
            }
        }
        client.write_all(then).await.unwrap();
    }
    // A connection that is closed with bytes unread is reset.
    let _ = timeout(LIMIT, client.read_to_end(&mut all)).await.unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn a_server_of_this_machine_gets_what_its_own_pages_send_and_nothing_else() {
    let server = Server::start().await;
    let port = server.at.port();
    let get = |host: &str, more: &str| {
        format!("GET http://{host}:{port}/x HTTP/1.1\r\nHost: {host}:{port}\r\n{more}\r\n")
    };
    let tunnel = |host: &str| format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    let socket = |headers: &str| {
        format!("GET /s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n{headers}\r\n").into_bytes()
    };
    let same = "Sec-Fetch-Site: same-origin\r\n";
    let own = "Origin: http://localhost:3000\r\n";
    // Opened by the agent: localhost. `others`: a page of another host is there.
    for (first, then, others, reached) in [
        (get("localhost", same), vec![], true, true),
        (get("localhost", "Sec-Fetch-Site: same-site\r\n"), vec![], true, true),
        (get("localhost", "Sec-Fetch-Site: none\r\n"), vec![], true, true),
        (get("localhost", "Sec-Fetch-Site: cross-site\r\n"), vec![], false, false),
        (get("localhost", ""), vec![], false, false),
        (get("localhost", &format!("{same}{same}")), vec![], false, false),
        (get("localhost", same).replace("/x", "/denied"), vec![], false, false),
        (get("127.0.0.1", same), vec![], false, false),
        (get("a.localhost", same), vec![], false, false),
        (get("here.example", same), vec![], false, false),
        (get("unknown.example", same), vec![], false, false),
        (tunnel("localhost"), socket(own), true, true),
        (tunnel("localhost"), socket("Origin: https://evil.example\r\n"), false, false),
        (tunnel("localhost"), socket("Origin: null\r\n"), false, false),
        (tunnel("localhost"), socket(""), false, false),
        (tunnel("localhost"), socket(&format!("{own}{own}")), false, false),
        (tunnel("localhost"), socket(own).split_off(4), false, false),
        (
            tunnel("localhost"),
            b"PUT /containers HTTP/1.1\r\nOrigin: http://localhost\r\n\r\n".to_vec(),
            false,
            false,
        ),
        (tunnel("localhost"), b"\x16\x03\x01 END".to_vec(), false, true),
        (tunnel("localhost"), b"\x16\x03\x01 END".to_vec(), true, false),
        (tunnel("127.0.0.1"), socket("Origin: http://127.0.0.1\r\n"), false, false),
        (tunnel("here.example"), b"\x16\x03\x01 END".to_vec(), false, false),
        ("GET http://localhost/ HTTP/1.1\r\nHost: other\r\n\r\n".into(), vec![], false, false),
    ] {
        let pages: &[&str] = match others {
            true => &["https://public.example/", "http://a.localhost:3000/", "http://127.0.0.1:3000/"],
            false => &["http://localhost:3000/"],
        };
        for page in pages {
            let guard = guard(false);
            guard.open("http://localhost:3000/");
            guard.loads("tab", page, true);
            let outlet = Outlet::start(guard, None).await.unwrap();
            let said = ask(&outlet, &first, &then).await;
            let got = std::mem::take(&mut *lock(&server.got));
            assert_eq!(!got.is_empty(), reached, "{page}, {first}{}: {said}", String::from_utf8_lossy(&then));
            assert_eq!(said.ends_with("ok"), reached, "{page}, {first}: {said}");
        }
    }
}

#[tokio::test]
async fn where_private_addresses_are_allowed_names_are_connected_as_they_were_resolved() {
    let server = Server::start().await;
    let at = format!("here.example:{}", server.at.port());
    let outlet = Outlet::start(guard(true), None).await.unwrap();
    let get = ask(&outlet, &format!("GET http://{at}/a HTTP/1.1\r\nHost: {at}\r\nX: y\r\n\r\n"), b"").await;
    assert!(get.ends_with("ok"), "{get}");
    assert_eq!(
        *lock(&server.got),
        [format!("GET /a HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nX: y\r\n\r\n")]
    );
    let tunnel = ask(&outlet, &format!("CONNECT {at} HTTP/1.1\r\n\r\n"), b"anything END").await;
    assert!(tunnel.ends_with("ok"), "{tunnel}");
    assert_eq!(lock(&server.got)[1], "anything END");
    let denied = ask(&outlet, &format!("GET http://{at}/denied HTTP/1.1\r\n\r\n"), b"").await;
    assert_eq!(denied, "");
    assert_eq!(
        outlet.guard.take_notes(),
        ["a connection was refused: here.example is denied by the rule a rule"]
    );
}

#[tokio::test]
async fn a_name_that_turns_to_a_private_address_is_judged_each_time() {
    let guard = guard(false);
    let url = reqwest::Url::parse("https://flip.example/").unwrap();
    let way = guard.way(&url).await.unwrap();
    assert_eq!(way.addresses, ["93.184.216.34".parse::<IpAddr>().unwrap()]);
    assert!(guard.way(&url).await.is_err(), "the second answer is this machine");
}

#[tokio::test]
async fn public_hosts_are_reached_through_the_proxy_of_the_arguments_once_they_are_judged() {
    let server = Server::start().await;
    let (_, upstream) =
        taken_out(&[format!("--proxy-server=http://127.0.0.1:{}", server.at.port())]).unwrap();
    for (host, reached) in [
        ("public.example", true),
        ("behind.example", true),
        ("here.example", false),
        ("10.0.0.1", false),
        ("localhost", false),
    ] {
        let outlet = Outlet::start(guard(false), upstream.clone()).await.unwrap();
        let get = format!("GET http://{host}/a HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: none\r\n\r\n");
        let said = ask(&outlet, &get, b"").await;
        let got = std::mem::take(&mut *lock(&server.got));
        assert_eq!(
            got.iter().any(|got| got.starts_with(&format!("GET http://{host}/a HTTP/1.1"))),
            reached,
            "{host}: {said} {got:?}"
        );
    }
}

/// Another user of this machine gets nothing from the proxy.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_of_other_users_are_closed_unanswered() {
    use std::os::unix::process::CommandExt;

    let server = Server::start().await;
    let guard = guard(true);
    let outlet = Outlet::start(guard, None).await.unwrap();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'GET http://{}/ HTTP/1.1\\r\\nHost: {}\\r\\n\\r\\n' >&3; cat <&3",
        outlet.port, server.at, server.at
    );
    let ask = |user: Option<u32>| {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script]).current_dir("/");
        user.map(|user| command.uid(user));
        tokio::task::spawn_blocking(move || command.output())
    };
    let own = ask(None).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&own.stdout).contains("200"), "{own:?}");
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only an administrator can be another user");
        return;
    }
    let other = ask(Some(65_534)).await.unwrap().unwrap();
    assert!(other.stdout.is_empty(), "{other:?}");
    assert_eq!(lock(&server.got).len(), 1);
}
