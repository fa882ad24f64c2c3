//! A browser elsewhere, reached by its address: a real one with its DevTools on loopback, and servers that are none.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tiller_protocol::lock;

use super::site::{Answer, Site, html};
use super::{BrowserSettings, World, reference};

/// Longer than a browser takes to start on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// A browser that listens on a port of loopback. Dropping it kills it.
struct Elsewhere {
    child: Child,
    _profile: tempfile::TempDir,
    /// `127.0.0.1:PORT`, and the path of its WebSocket.
    host: String,
    path: String,
}

impl Elsewhere {
    /// `None`: no browser is installed.
    fn start() -> Option<Self> {
        let Some(program) = BrowserSettings::local("/usr/local/bin:/usr/bin:/bin").program else {
            eprintln!("skipped: no Chromium is installed");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        command.args([
            "--headless=new",
            "--remote-debugging-port=0",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap();
        let (said, until) = (profile.path().join("DevToolsActivePort"), Instant::now() + DEADLINE);
        loop {
            let text = std::fs::read_to_string(&said).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n').filter(|(_, path)| path.len() > 20) {
                let (host, path) = (format!("127.0.0.1:{port}"), path.trim().to_owned());
                return Some(Self { child, _profile: profile, host, path });
            }
            assert!(child.try_wait().unwrap().is_none(), "the browser ended");
            assert!(Instant::now() < until, "the browser opens no port");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        let group = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.kill();
    }
}

fn world(address: &str) -> World {
    World::with(|settings| settings.remote = Some(address.to_owned())).expect("a browser is installed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_elsewhere_is_driven_by_either_of_its_addresses_and_stays() {
    let Some(mut there) = Elsewhere::start() else { return };
    let site = Site::new(&[
        ("/", html("<h1>Start</h1><a href='/second'>Second page</a><input id=who>")),
        ("/second", html("<h2>There</h2>")),
    ]);
    for address in [format!("ws://{}{}", there.host, there.path), format!("http://{}", there.host)] {
        let world = world(&address);
        let page = world.open(&site, "/").await;
        assert!(page.contains("h1 \"Start\""), "{page}");
        let typed = world.call("type", json!({"ref": reference(&page, &["textbox"]), "text": "Ada"})).await;
        assert!(typed.contains("\"Ada\""), "{typed}");
        let second = world.click(&page, &["link"]).await;
        assert!(second.contains("h2 \"There\"") && second.contains("/second"), "{second}");
        let whole = world.call("snapshot", json!({})).await;
        assert!(whole.contains("There") && !whole.contains("/second"), "named once: {whole}");
        world.end().await;
    }
    assert!(there.child.try_wait().unwrap().is_none(), "it is not ours to end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_elsewhere_that_goes_in_a_call_is_a_result() {
    let Some(mut there) = Elsewhere::start() else { return };
    let slow = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9999\r\n\r\n<h1>Begun</h1>";
    let site = Site::new(&[("/", html("<h1>Start</h1>")), ("/slow", Answer::Slow(slow.into()))]);
    let world = world(&format!("ws://{}{}", there.host, there.path));
    assert!(world.open(&site, "/").await.contains("Start"));
    let call = world.open(&site, "/slow");
    let seen = Arc::clone(&site.seen);
    let kill = tokio::task::spawn_blocking(move || {
        let until = Instant::now() + DEADLINE;
        while !lock(&seen).iter().any(|line| line.contains("/slow")) && Instant::now() < until {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        there.kill();
        there
    });
    let (said, there) = tokio::join!(call, kill);
    assert!(said.starts_with("error: "), "{said}");
    drop(there);
    let began = Instant::now();
    let again = world.open(&site, "/").await;
    assert!(again.contains("browser.url is not reached"), "{again}");
    assert!(began.elapsed() < DEADLINE);
    world.end().await;
}

/// A server that does this with each connection.
fn server(answer: impl Fn(&mut std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            answer(&mut stream);
            // A silent one keeps the connection.
            all.push(stream);
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_browser_is_told_of_in_bounded_time() {
    if World::new().is_none() {
        return;
    }
    let site = Site::new(&[("/", html("x"))]);
    let reply = |text: &'static str| {
        server(move |stream| {
            let _ = stream.write_all(text.as_bytes());
            let _ = stream.shutdown(std::net::Shutdown::Both);
        })
    };
    let refuses = reply("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let junk = reply("\x1b[2Jnot HTTP\r\n\r\n");
    let liar = reply(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n",
    );
    let silent = server(|_| {});
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    for (address, want) in [
        (format!("ws://{refuses}/?token=secret"), "HTTP 403, no WebSocket"),
        (format!("http://{refuses}"), "does not answer as a browser does"),
        (format!("ws://{junk}/"), "browser.url is not reached"),
        (format!("ws://{liar}/"), "WebSocket's key is wrong"),
        (format!("ws://{silent}/?token=secret"), "no answer within 15 s"),
        (format!("ws://{closed}/?token=secret"), "no connection"),
        ("ftp://a.example/".to_owned(), "starts with ftp:"),
    ] {
        let world = world(&address);
        let said = tokio::time::timeout(DEADLINE, world.open(&site, "/")).await.expect("an answer in time");
        assert!(said.starts_with("error: ") && said.contains(want), "{address}: {said}");
        assert!(said.contains("the setting is theirs") && !said.contains("secret"), "{address}: {said}");
        assert!(!said.contains('\u{1b}'), "{said}");
        world.end().await;
    }
}
