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
const PATIENCE: Duration = Duration::from_secs(20);

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
    timeout(PATIENCE, both).await.expect("the proxy goes on");
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
    let [own, killed, lives, made, other] =
        ["tiller-net-own", "tiller-net-killed", "tiller-net-lives", "tiller-net-made", "precious"]
            .map(folder);
    // A socket stays in the file system when its listener is closed, as after a kill.
    for left in [&killed, &other] {
        drop(UnixListener::bind(socket(left)).unwrap());
    }
    let _listener = UnixListener::bind(socket(&lives)).unwrap();
    let target = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(socket(target.path())).unwrap());
    std::os::unix::fs::symlink(target.path(), tmp.path().join("tiller-net-link")).unwrap();
    listen::sweep(&own);
    assert!(!killed.exists());
    assert!([&own, &lives, &made, &other].iter().all(|path| path.exists()) && target.path().exists());
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
    let long = format!("GET http://good.test/ HTTP/1.1\r\nX: {}", "y".repeat(2 * request::LONGEST));
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
    set_variables(&mut env);
    assert!(env.iter().all(|(_, value)| !value.contains("corporate") && value != "*"), "{env:?}");
    for name in VARIABLES {
        assert_eq!(env.iter().filter(|(n, _)| n == name).count(), 1, "{name}");
    }
    assert!(env.contains(&("PATH".to_owned(), "/bin".to_owned())));
}

/// Curl, git and pip in the sandbox, against servers of the test.
#[cfg(target_os = "linux")]
mod programs {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::confine::{Confined, Method};
    use crate::policy::{Network, Profile};
    use crate::testing::{Place, methods};

    /// Ends a server with the test.
    struct Server(Child);

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Runs `script` in a shell and requires success.
    fn sh(folder: &Path, script: &str) {
        let out = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
        assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
    }

    fn free_port() -> u16 {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    /// Starts a server and waits until it takes connections.
    fn server(folder: &Path, program: &str, args: &[&str], port: u16) -> Server {
        let child = Command::new(program)
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Server(child);
        let until = std::time::Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(std::time::Instant::now() < until, "{program} does not listen");
            std::thread::yield_now();
        }
        server
    }

    fn has(program: &str) -> bool {
        let found = Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
        if !found {
            println!("skipped: {program} does not run here");
        }
        found
    }

    struct Net {
        place: Place,
        confined: Confined,
        proxy: Proxy,
        /// Port of a server on this machine, which the command must not reach.
        port: u16,
        _servers: Vec<Server>,
    }

    /// `None`: this machine lacks something.
    fn net() -> Option<Net> {
        if !methods().contains(&Method::Bubblewrap) || !has("curl") || !has("python3") {
            return None;
        }
        let place = Place::new();
        let site = place.top.join("site");
        std::fs::create_dir_all(site.join("simple/demo")).unwrap();
        std::fs::write(site.join("hello"), "walnut\n").unwrap();
        let port = free_port();
        let serve = ["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()];
        let mut servers = vec![server(&site, "python3", &serve, port)];
        let mut world = World::new(&[("good.test", &[PUBLIC]), ("private.test", &["127.0.0.1"])]);
        world.servers.insert(80, ([127, 0, 0, 1], port).into());
        if Command::new("openssl").arg("version").output().is_ok_and(|out| out.status.success()) {
            sh(
                &place.top,
                "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 -subj /CN=good.test 2>/dev/null",
            );
            let port = free_port();
            let args =
                ["s_server", "-accept", &format!("127.0.0.1:{port}"), "-cert", "c", "-key", "k", "-www"];
            servers.push(server(&place.top, "openssl", &args, port));
            world.servers.insert(443, ([127, 0, 0, 1], port).into());
        }
        let proxy = Proxy::start(Domains::new(&["good.test", "private.test"]), Box::new(world)).unwrap();
        let mut confined = place.confined(Profile::Workspace, Method::Bubblewrap);
        confined.policy.network = Network::Domains;
        confined.policy.proxy = Some(proxy.socket());
        Some(Net { place, confined, proxy, port, _servers: servers })
    }

    impl Net {
        fn works(&self, script: &str) {
            let out = self.place.run(&self.confined, script);
            let said = [out.stdout, out.stderr].concat();
            assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&said));
        }

        fn fails(&self, script: &str) {
            let out = self.place.run(&self.confined, script);
            assert!(!out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stdout));
        }
    }

    #[test]
    fn curl_reaches_listed_domains_only() {
        let Some(net) = net() else { return };
        net.works("curl -sS -m 20 http://good.test/hello | grep -x walnut");
        net.works("for i in 1 2 3 4 5; do curl -sS -m 20 http://good.test/hello & done; wait");
        if has("openssl") || net.place.top.join("c").exists() {
            net.works("curl -ksS -m 20 https://good.test/ | grep -q s_server");
        }
        assert_eq!(net.proxy.refused(), []);
        net.works("curl -sS -m 20 http://evil.test/ | grep 'not listed'");
        net.fails("curl -ksS -m 20 https://evil.test/");
        net.works("curl -sS -m 20 http://private.test/ | grep 'not public'");
        net.fails("curl -ksS -m 20 https://private.test/");
        let hosts: Vec<_> = net.proxy.refused().into_iter().map(|refusal| refusal.host).collect();
        assert_eq!(hosts, ["evil.test", "private.test"]);
        // Around the proxy there is nothing.
        net.fails(&format!("curl -sS -m 5 --noproxy '*' http://{PUBLIC}/"));
        net.fails(&format!("curl -sS -m 5 --noproxy '*' http://127.0.0.1:{}/hello", net.port));
        net.fails(&format!(
            "curl -sS -m 5 -x http://127.0.0.1:{PORT} http://127.0.0.1:{}/hello | grep walnut",
            net.port
        ));
        let socket = net.proxy.socket();
        net.fails(&format!(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")'",
            socket.display()
        ));
    }

    #[test]
    fn a_server_of_the_command_itself_is_reached_without_the_proxy() {
        let Some(net) = net() else { return };
        net.works(
            "echo own > index.html; python3 -m http.server 8123 >/dev/null 2>&1 & server=$!; \
             for i in $(seq 100); do curl -s -m 5 http://127.0.0.1:8123/ | grep -x own && ok=1 && break; sleep 0.1; done; \
             kill $server; [ \"$ok\" = 1 ]",
        );
    }

    #[test]
    fn git_clones_from_a_listed_domain() {
        let Some(net) = net().filter(|_| has("git")) else { return };
        let make = "mkdir src && cd src && git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty \
                    -m walnut && cd .. && git clone -q --bare src site/repo.git && cd site/repo.git && \
                    git update-server-info";
        sh(&net.place.top, make);
        net.works("git clone http://good.test/repo.git clone && git -C clone log | grep walnut");
        net.fails("git clone http://evil.test/repo.git other");
        assert_eq!(net.proxy.refused().len(), 1);
    }

    #[test]
    fn pip_downloads_from_a_listed_domain() {
        let Some(net) = net().filter(|_| has("pip")) else { return };
        let wheel = "import zipfile\nz = zipfile.ZipFile('site/simple/demo/demo-1.0-py3-none-any.whl', 'w')\n\
                     i = 'demo-1.0.dist-info/'\n\
                     z.writestr('demo.py', 'x = 1\\n')\n\
                     z.writestr(i + 'METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')\n\
                     z.writestr(i + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
                     z.writestr(i + 'RECORD', '')\nz.close()\n";
        std::fs::write(net.place.top.join("make.py"), wheel).unwrap();
        sh(&net.place.top, "python3 make.py");
        let pip = "HOME=$TMPDIR pip --disable-pip-version-check --no-cache-dir download --no-deps -d got --retries 0 \
                   --timeout 20 --trusted-host good.test --trusted-host evil.test";
        net.works(&format!("{pip} -i http://good.test/simple demo && ls got/demo-1.0-py3-none-any.whl"));
        net.fails(&format!("{pip} -i http://evil.test/simple demo"));
        assert_eq!(net.proxy.refused().first().map(|r| r.host.clone()).as_deref(), Some("evil.test"));
    }

    #[test]
    fn npm_installs_from_a_listed_domain() {
        let Some(net) = net().filter(|_| has("npm")) else { return };
        let make = r#"mkdir -p package site/npm && cd package && echo 'module.exports = "walnut"' >index.js &&
            echo '{"name": "demo", "version": "1.0.0"}' >package.json && cd .. && tar czf site/npm/demo-1.0.0.tgz package &&
            echo '{"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "demo",
                "version": "1.0.0", "dist": {"tarball": "http://good.test/npm/demo-1.0.0.tgz"}}}}' >site/npm/demo"#;
        sh(&net.place.top, make);
        let npm = "export HOME=$TMPDIR; npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 \
                   --cache $TMPDIR/npm --registry";
        net.works(&format!(
            "{npm} http://good.test/npm/ demo && node -p 'require(\"demo\")' | grep -x walnut"
        ));
        net.fails(&format!("rm -rf node_modules $TMPDIR/npm; {npm} http://evil.test/npm/ demo"));
        assert_eq!(net.proxy.refused().first().map(|r| r.host.clone()).as_deref(), Some("evil.test"));
    }

    /// The socket of the proxy ends with it, and a command that finds none is not started.
    #[test]
    fn without_its_proxy_a_command_does_not_start() {
        let Some(net) = net() else { return };
        let Net { place, confined, proxy, .. } = net;
        let socket = proxy.socket();
        drop(proxy);
        assert!(!socket.exists());
        let out = place.run(&confined, "echo started > mark");
        assert!(!out.status.success() && !place.top.join("work/mark").exists(), "{out:?}");
    }
}
