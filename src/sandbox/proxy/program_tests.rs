//! Curl, git, pip, npm and cargo in the sandbox, against servers of the test.

use std::process::{Child, Command, Stdio};

use super::*;
use tiller_tool::shell::CommandWatch;

use crate::confine::{Confined, Method};
use crate::confinement::Confinement;
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
    let mut sh = Command::new("sh");
    let out = tiller_testkit::plain_git(sh.args(["-c", script]).current_dir(folder)).output().unwrap();
    assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a server at a free port, which `args` get, and waits until it takes connections.
fn server(folder: &Path, program: &str, args: impl Fn(u16) -> Vec<String>) -> (Server, u16) {
    let until = std::time::Instant::now() + TIMEOUT;
    loop {
        let port = free_port();
        let child = Command::new(program)
            .args(args(port))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server(child);
        // It ends where another program has taken the port.
        while server.0.try_wait().unwrap().is_none() {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return (server, port);
            }
            assert!(std::time::Instant::now() < until, "{program} does not listen");
            std::thread::yield_now();
        }
        assert!(std::time::Instant::now() < until, "{program} ends");
    }
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
    /// Port of the proxy for the command.
    proxy_port: u16,
    /// Port of a server on this machine, which the command must not reach.
    port: u16,
    _servers: Vec<Server>,
}

/// One for each way to confine; none where this machine lacks something.
fn nets() -> Vec<Net> {
    if !has("curl") || !has("python3") {
        return Vec::new();
    }
    let supervised = Confinement::find().notification;
    let usable = |method: &Method| *method == Method::Bubblewrap || supervised;
    methods().into_iter().filter(usable).map(net).collect()
}

fn net(method: Method) -> Net {
    let place = Place::new();
    let site = place.top.join("site");
    std::fs::create_dir_all(site.join("simple/demo")).unwrap();
    std::fs::write(site.join("hello"), "walnut\n").unwrap();
    let serve = |port: u16| {
        ["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()].map(str::to_owned).to_vec()
    };
    let (own, port) = server(&site, "python3", serve);
    let mut servers = vec![own];
    let mut world = World::new(&[("good.test", &[PUBLIC]), ("private.test", &["127.0.0.1"])]);
    world.servers.insert(80, ([127, 0, 0, 1], port).into());
    if Command::new("openssl").arg("version").output().is_ok_and(|out| out.status.success()) {
        sh(
            &place.top,
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 -subj /CN=good.test 2>/dev/null",
        );
        let args = |port: u16| {
            let at = format!("127.0.0.1:{port}");
            ["s_server", "-accept", &at, "-cert", "c", "-key", "k", "-www"].map(str::to_owned).to_vec()
        };
        let (https, port) = server(&place.top, "openssl", args);
        servers.push(https);
        world.servers.insert(443, ([127, 0, 0, 1], port).into());
    }
    let proxy = Proxy::start(Domains::new(&["good.test", "private.test"]), Box::new(world)).unwrap();
    let mut confined = place.confined(Profile::Workspace, method);
    confined.policy.network = Network::Domains;
    confined.policy.proxy = Some(proxy.socket());
    if method == Method::Landlock {
        confined.policy.proxy_port = proxy.port();
    }
    let proxy_port = confined.policy.proxy_port.map_or(PORT, |proxy| proxy.port);
    Net { place, confined, proxy, proxy_port, port, _servers: servers }
}

impl Net {
    fn run(&self, script: &str) -> std::process::Output {
        self.place.run_watched(&self.confined, script, &CommandWatch::default())
    }

    fn works(&self, script: &str) {
        let out = self.run(script);
        let said = [out.stdout, out.stderr].concat();
        let method = self.confined.method;
        assert!(out.status.success(), "{method:?}: {script}: {}", String::from_utf8_lossy(&said));
    }

    fn fails(&self, script: &str) {
        let out = self.run(script);
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(!out.status.success(), "{:?}: {script}: {said}", self.confined.method);
    }
}

#[test]
fn curl_reaches_listed_domains_only() {
    for net in nets() {
        net.works("curl -sS -m 20 http://good.test/hello | grep -x walnut");
        net.works("for i in 1 2 3 4 5; do curl -sS -m 20 http://good.test/hello & done; wait");
        if has("openssl") || net.place.top.join("c").exists() {
            net.works("curl -ksS -m 20 https://good.test/ | grep -q s_server");
        }
        assert_eq!(net.proxy.refused(), []);
        let before = net.proxy.connections();
        assert!(before >= 6 && net.proxy.reached(0) == ["good.test"] && net.proxy.reached(before).is_empty());
        net.works("curl -sS -m 20 http://evil.test/ | grep 'not listed'");
        net.fails("curl -ksS -m 20 https://evil.test/");
        net.works("curl -sS -m 20 http://private.test/ | grep 'not public'");
        net.fails("curl -ksS -m 20 https://private.test/");
        let hosts: Vec<_> = net.proxy.refused().into_iter().map(|refusal| refusal.host).collect();
        assert_eq!(hosts, ["evil.test", "private.test"]);
        assert_eq!(net.proxy.connections(), before, "nothing was reached");
        // Around the proxy there is nothing.
        net.fails(&format!("curl -sS -m 5 --noproxy '*' http://{PUBLIC}/"));
        net.fails(&format!("curl -sS -m 5 --noproxy '*' http://127.0.0.1:{}/hello", net.port));
        net.fails(&format!(
            "curl -sS -m 5 -x http://127.0.0.1:{} http://127.0.0.1:{}/hello | grep walnut",
            net.proxy_port, net.port
        ));
        let socket = net.proxy.socket();
        net.fails(&format!(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")'",
            socket.display()
        ));
    }
}

#[test]
fn a_server_of_the_command_itself_is_reached_without_the_proxy() {
    for net in nets() {
        // At a port of its own.
        let serve = "import http.server, os, socketserver\n\
            s = socketserver.TCPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
            open('new', 'w').write(str(s.server_address[1])); os.rename('new', 'port'); s.serve_forever()\n";
        std::fs::write(net.place.top.join("work/serve.py"), serve).unwrap();
        net.works(
            "echo own > index.html; python3 serve.py >/dev/null 2>&1 & server=$!; \
             while kill -0 $server && [ ! -s port ]; do sleep 0.05; done; \
             curl -s -m 20 http://127.0.0.1:$(cat port)/ | grep -x own && ok=1; \
             kill $server; [ \"$ok\" = 1 ]",
        );
    }
}

#[test]
fn git_clones_from_a_listed_domain() {
    for net in nets().into_iter().filter(|_| has("git")) {
        let make = "mkdir src && cd src && git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty \
                    -m walnut && cd .. && git clone -q --bare src site/repo.git && cd site/repo.git && \
                    git update-server-info";
        sh(&net.place.top, make);
        net.works("git clone http://good.test/repo.git clone && git -C clone log | grep walnut");
        net.fails("git clone http://evil.test/repo.git other");
        assert_eq!(net.proxy.refused().len(), 1);
    }
}

#[test]
fn pip_downloads_from_a_listed_domain() {
    for net in nets().into_iter().filter(|_| has("pip")) {
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
}

#[test]
fn npm_installs_from_a_listed_domain() {
    for net in nets().into_iter().filter(|_| has("npm")) {
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
}

#[test]
fn cargo_fetches_from_a_listed_domain() {
    for net in nets().into_iter().filter(|_| has("cargo")) {
        let make = r#"mkdir -p demo-1.0.0/src site/index/de/mo site/crates/demo/1.0.0 && echo >demo-1.0.0/src/lib.rs &&
            printf '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n' >demo-1.0.0/Cargo.toml &&
            tar czf site/crates/demo/1.0.0/download demo-1.0.0 && rm -r demo-1.0.0 &&
            sum=$(sha256sum site/crates/demo/1.0.0/download | cut -d' ' -f1) &&
            echo '{"dl": "http://good.test/crates"}' >site/index/config.json &&
            echo '{"name":"demo","vers":"1.0.0","deps":[],"cksum":"'$sum'","features":{},"yanked":false}' >site/index/de/mo/demo &&
            cd work && mkdir -p src .cargo && echo >src/lib.rs &&
            printf '[registries.own]\nindex = "sparse+http://good.test/index/"\n' >.cargo/config.toml &&
            printf '[package]\nname = "own"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\ndemo = { version = "1", registry = "own" }\n[workspace]\n' >Cargo.toml"#;
        sh(&net.place.top, make);
        let cargo = "export CARGO_HOME=$TMPDIR/cargo CARGO_NET_RETRY=0; cargo fetch";
        net.works(&format!("{cargo} && ls $TMPDIR/cargo/registry/cache/*/demo-1.0.0.crate"));
        net.fails(&format!(
            "sed -i s/good.test/evil.test/ .cargo/config.toml; rm -rf $TMPDIR/cargo; {cargo}"
        ));
        assert_eq!(net.proxy.refused().first().map(|r| r.host.clone()).as_deref(), Some("evil.test"));
    }
}

/// The port on the machine's own loopback ends with the proxy, and what comes to its port then is not reached.
#[test]
fn the_port_of_a_proxy_that_ended_is_not_reached() {
    for net in nets().into_iter().filter(|net| net.confined.method == Method::Landlock) {
        let Net { place, confined, proxy, proxy_port, .. } = net;
        drop(proxy);
        let until = std::time::Instant::now() + TIMEOUT;
        let taken = loop {
            match std::net::TcpListener::bind(("127.0.0.1", proxy_port)) {
                Ok(taken) => break taken,
                Err(e) => assert!(std::time::Instant::now() < until, "{e}"),
            }
            std::thread::yield_now();
        };
        taken.set_nonblocking(true).unwrap();
        let out = place.run_watched(&confined, "curl -m 20 http://good.test/", &CommandWatch::default());
        assert!(!out.status.success() && taken.accept().is_err(), "{out:?}");
    }
}

/// The socket of the proxy ends with it, and a command that finds none is not started.
#[test]
fn without_its_proxy_a_command_does_not_start() {
    for net in nets() {
        if net.confined.method == Method::Landlock {
            continue;
        }
        let Net { place, confined, proxy, .. } = net;
        let socket = proxy.socket();
        drop(proxy);
        assert!(!socket.exists());
        let out = place.run(&confined, "echo started > mark");
        assert!(!out.status.success() && !place.top.join("work/mark").exists(), "{out:?}");
    }
}
