//! Everything that a page can open (`faults` has links and popups), against a service of this machine that the agent did not open.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tiller_protocol::lock;

use super::World;
use super::site::{Answer, Site, html};
use crate::Workspace;

const LIMIT: Duration = Duration::from_secs(120);

/// Kinds of what a page opens: a name, and a script that opens `T` (`HOST:PORT`) and returns a promise of the end.
const KINDS: &[(&str, &str)] = &[
    ("fetch", "fetch(`http://${T}/fetch`, {mode: 'no-cors'})"),
    ("fetch over TLS", "fetch(`https://${T}/fetch`, {mode: 'no-cors'})"),
    ("post", "fetch(`http://${T}/post`, {method: 'POST', mode: 'no-cors', body: 'x'})"),
    (
        "request",
        "new Promise(r => { const x = new XMLHttpRequest(); x.open('GET', `http://${T}/xhr`); x.onloadend = r; x.send(); })",
    ),
    ("beacon", "navigator.sendBeacon(`http://${T}/beacon`, 'x')"),
    ("keepalive", "fetch(`http://${T}/keep`, {keepalive: true, mode: 'no-cors'})"),
    ("WebSocket", "socket(new WebSocket(`ws://${T}/ws`))"),
    ("WebSocket over TLS", "socket(new WebSocket(`wss://${T}/ws`))"),
    ("WebSocket by name", "socket(new WebSocket(`ws://rebinding.example:${P}/ws`))"),
    (
        "WebSocket of a frame",
        "framed(`<script>new WebSocket('ws://${T}/ws').onerror = () => parent.postMessage(1, '*')<\\/script>`)",
    ),
    ("WebSocket of a worker", "worker(`new WebSocket('ws://${T}/ws').onerror = () => postMessage(1)`)"),
    (
        "WebSocket of a shared worker",
        "shared(`new WebSocket('ws://${T}/ws').onerror = () => p.postMessage(1)`)",
    ),
    ("WebSocketStream", "window.WebSocketStream ? new WebSocketStream(`ws://${T}/ws`).opened : 0"),
    ("EventSource", "socket(new EventSource(`http://${T}/events`))"),
    ("WebTransport", "new WebTransport(`https://${T}/`).ready"),
    (
        "fetch of a worker",
        "worker(`fetch('http://${T}/w', {mode: 'no-cors'}).finally(() => postMessage(1))`)",
    ),
    (
        "fetch of a shared worker",
        "shared(`fetch('http://${T}/w', {mode: 'no-cors'}).finally(() => p.postMessage(1))`)",
    ),
    ("script of a worker", "worker(`try { importScripts('http://${T}/i.js') } catch {} postMessage(1)`)"),
    ("module", "import(`http://${T}/m.js`)"),
    ("image", "element('img', {src: `http://${T}/img`})"),
    ("script", "element('script', {src: `http://${T}/s.js`})"),
    ("style", "element('link', {rel: 'stylesheet', href: `http://${T}/s.css`})"),
    ("prefetch", "element('link', {rel: 'prefetch', href: `http://${T}/prefetch`})"),
    ("preload", "element('link', {rel: 'preload', as: 'image', href: `http://${T}/preload`})"),
    ("preconnect", "quiet('link', {rel: 'preconnect', href: `http://${T}/`})"),
    ("DNS prefetch", "quiet('link', {rel: 'dns-prefetch', href: `http://${T}/`})"),
    ("icon", "quiet('link', {rel: 'icon', href: `http://${T}/icon`})"),
    (
        "speculation",
        "quiet('script', {type: 'speculationrules', text: JSON.stringify({prefetch: [{source: 'list', urls: [`http://${T}/spec`]}]})})",
    ),
    ("frame", "element('iframe', {src: `http://${T}/frame`})"),
    ("file in a frame", "quiet('iframe', {src: 'file:///etc/passwd'})"),
    ("object", "quiet('object', {data: `http://${T}/object`})"),
    ("video", "element('video', {src: `http://${T}/video`})"),
    ("track", "element('img', {srcset: `http://${T}/set 2x`})"),
    ("redirect", "fetch('/redirect', {mode: 'no-cors'})"),
    ("redirect of a frame", "element('iframe', {src: '/redirect'})"),
    ("form", "form(`http://${T}/form`)"),
    (
        "download",
        "quiet('iframe', {name: 'd'}) && quiet('a', {href: `http://${T}/download`, download: 'x', target: 'd'}).click()",
    ),
    ("ping", "quiet('a', {href: '#here', ping: `http://${T}/ping`}).click()"),
    ("WebRTC over UDP", "rtc([`stun:${T}`, `turn:${T}?transport=udp`])"),
    ("WebRTC over TCP", "rtc([`turn:${T}?transport=tcp`, `turns:${T}?transport=tcp`])"),
];

/// What the scripts use. The page is done when each kind has ended.
const PRELUDE: &str = "
const socket = s => new Promise(r => { s.onerror = s.onclose = s.onopen = () => { r(); s.close(); }; });
const quiet = (n, a) => document.body.appendChild(Object.assign(document.createElement(n), a));
const element = (n, a) => new Promise(r => { const e = document.createElement(n);
  e.onload = e.onerror = r; Object.assign(e, a); document.body.append(e); });
const framed = html => new Promise(r => { addEventListener('message', r); quiet('iframe', {srcdoc: html}); });
const worker = code => new Promise(r => { const w = new Worker(URL.createObjectURL(new Blob([code]))); w.onmessage = w.onerror = r; });
const shared = code => new Promise(r => { const w = new SharedWorker(URL.createObjectURL(new Blob([`onconnect = e => { const p = e.ports[0]; ${code} }`])));
  w.port.onmessage = w.onerror = r; w.port.start(); });
const form = action => { quiet('iframe', {name: 'f'}); quiet('form', {action, method: 'post', target: 'f'}).submit(); };
const rtc = urls => new Promise(r => { const c = new RTCPeerConnection({iceServers: [{urls, username: 'u', credential: 'c'}]});
  c.createDataChannel('d'); c.onicegatheringstatechange = () => c.iceGatheringState === 'complete' && r();
  c.createOffer().then(o => c.setLocalDescription(o)); });
";

/// A page that opens all kinds. `target`: `HOST:PORT`.
fn page(target: &str, kinds: &[(&str, &str)]) -> String {
    let port = target.rsplit(':').next().unwrap();
    let calls: Vec<String> =
        kinds.iter().map(|(name, code)| format!("[{name:?}, async () => {{ await ({code}) }}]")).collect();
    format!(
        "<p id=out>at work</p><script>{PRELUDE} const T = '{target}', P = '{port}'; const left = new Set();\
         const told = () => out.textContent = left.size ? 'waits for ' + [...left].join(', ') : 'all kinds ended';\
         for (const [name, run] of [{}]) {{ left.add(name); run().catch(() => {{}}).finally(() => {{ left.delete(name); told(); }}); }}\
         </script>",
        calls.join(", ")
    )
}

/// Opens a page of `a.localhost` and waits until all that it does has ended.
async fn all_ended(world: &World, site: &Site, path: &str) -> String {
    let mut told =
        world.call("navigate", json!({"url": format!("http://a.localhost:{}{path}", site.port())})).await;
    let until = Instant::now() + LIMIT;
    while !told.contains("all kinds ended") {
        assert!(Instant::now() < until, "{told}");
        told.push_str(&world.call("snapshot", json!({})).await);
    }
    told
}

fn redirect(to: &str) -> Answer {
    Answer::Raw(
        format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .into_bytes(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_page_opens_reaches_a_service_that_the_agent_did_not_open() {
    let Some(world) = World::new() else { return };
    let inner = Site::new(&[("/own", html("own"))]);
    let target = format!("127.0.0.1:{}", inner.port());
    // The same number, so that one target serves both.
    let datagrams = UdpSocket::bind(&target).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let site = Site::new(&[
        ("/redirect", redirect(&format!("http://{target}/redirected"))),
        ("/", html(&page(&target, KINDS))),
    ]);
    let told = all_ended(&world, &site, "/").await;
    assert!(told.contains("refused: 127.0.0.1 is this machine"), "{told}");
    let reached = lock(&inner.seen).clone();
    assert!(reached.is_empty(), "not even a connection: {reached:?}");
    assert!(datagrams.recv_from(&mut [0; 2000]).is_err(), "a datagram came");
    // Once the agent has opened that service itself, pages of other hosts still reach nothing there.
    let own = world.call("navigate", json!({"url": format!("http://{target}/own")})).await;
    assert!(own.contains("own"), "{own}");
    all_ended(&world, &site, "/").await;
    let reached = lock(&inner.seen).clone();
    let others: Vec<&String> = reached
        .iter()
        .filter(|line| !line.starts_with("GET /own ") && !line.starts_with("GET /favicon.ico "))
        .collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(datagrams.recv_from(&mut [0; 2000]).is_err(), "a datagram came");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_reaches_its_own_host_but_for_what_a_rule_denies() {
    let Some(mut world) = World::new() else { return };
    let (allowed, denied) = (Site::new(&[("/", html("x"))]), Site::new(&[("/", html("x"))]));
    let port = denied.port();
    let rule: crate::Unreachable =
        Arc::new(move |url| (url.port() == Some(port)).then(|| "deny web_fetch(x)".into()));
    world.bench.cx.workspace = Arc::new(Workspace::new(&world.bench.root).unwrap().bar(rule));
    let kinds = &KINDS[..13];
    let at = |site: &Site| format!("a.localhost:{}", site.port());
    let site =
        Site::new(&[("/denied", html(&page(&at(&denied), kinds))), ("/", html(&page(&at(&allowed), kinds)))]);
    all_ended(&world, &site, "/").await;
    let seen = lock(&allowed.seen).clone();
    for path in ["GET /fetch", "POST /post", "GET /ws"] {
        assert!(seen.iter().any(|line| line.starts_with(path)), "{path}: {seen:?}");
    }
    let told = all_ended(&world, &site, "/denied").await;
    assert!(told.contains("denied by the rule deny web_fetch(x)"), "{told}");
    assert!(lock(&denied.seen).is_empty(), "{:?}", lock(&denied.seen));
    world.end().await;
}
