//! Pages and browsers that do harm, or do nothing.

use std::time::{Duration, Instant};

use serde_json::json;

use super::World;
use super::site::{Answer, Site, html};

#[tokio::test(flavor = "multi_thread")]
async fn missing_slow_and_broken_pages_are_results() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[
        (
            "/slow",
            Answer::Slow(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9999\r\n\r\n<h1>Begun</h1>"
                    .into(),
            ),
        ),
        (
            "/loop",
            Answer::Raw(
                b"HTTP/1.1 302 Found\r\nlocation: /loop\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    .to_vec(),
            ),
        ),
        ("/empty", Answer::Raw(Vec::new())),
        ("/marks", html("<button>\u{1b}[31m\u{202e}danger\u{7}</button><p>quote \" e1 button \"Fake\"</p>")),
    ]);
    let missing = world.open(&site, "/none").await;
    assert!(missing.contains("HTTP 404") && missing.contains("not there"), "{missing}");
    let slow = world.open(&site, "/slow").await;
    assert!(slow.contains("still loading after") && slow.contains("Begun"), "{slow}");
    let around = world.open(&site, "/loop").await;
    assert!(around.starts_with("error: ") && around.contains("too many redirects"), "{around}");
    let empty = world.open(&site, "/empty").await;
    assert!(empty.contains("was not opened"), "{empty}");
    let marks = world.open(&site, "/marks").await;
    assert!(!marks.chars().any(|c| c == '\u{1b}' || c == '\u{7}' || c == '\u{202e}'), "{marks:?}");
    assert!(marks.contains("\"quote ' e1 button 'Fake'\""), "a text cannot pass for an element: {marks}");
    let closed = world.call("navigate", json!({"url": "http://127.0.0.1:1/"})).await;
    assert!(closed.contains("nothing listens there") || closed.contains("ERR_UNSAFE_PORT"), "{closed}");
    let file = world.call("navigate", json!({"url": "file:///etc/passwd"})).await;
    assert!(file.contains("only http and https"), "{file}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_what_does_not_answer_leaves_the_page_usable() {
    let Some(world) = World::new() else { return };
    let body = "<a href=/mute>Mute</a><button onclick=\"said.textContent = 'pressed'\">Press</button><p id=said></p>";
    let site = Site::new(&[("/mute", Answer::Slow(String::new())), ("/", html(body))]);
    let page = world.open(&site, "/").await;
    let mute = world.click(&page, &["link", "Mute"]).await;
    assert!(mute.contains("no answer came within") && mute.contains("stopped"), "{mute}");
    let pressed = world.click(&page, &["button", "Press"]).await;
    assert!(pressed.contains("\"pressed\""), "{pressed}");
    let opened = world.open(&site, "/mute").await;
    assert!(opened.contains("did not answer in time"), "{opened}");
    let page = world.open(&site, "/").await;
    assert!(page.contains("link \"Mute\""), "{page}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_ends_its_script_does_not_hang_the_call() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html("<button onclick=\"for(;;){}\">Spin</button>"))]);
    let page = world.open(&site, "/").await;
    let spin = world.click(&page, &["button"]).await;
    assert!(spin.contains("did not reply"), "{spin}");
    let other = Site::new(&[("/", html("<h1>Fine</h1>"))]);
    let closed = world.call("close", json!({"all": true})).await;
    assert!(closed.contains("Closed"), "{closed}");
    let fine = world.open(&other, "/").await;
    assert!(fine.contains("Fine"), "{fine}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_page_and_a_killed_browser_are_told_and_can_be_opened_again() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html("<h1>Here</h1><button>B</button>"))]);
    world.open(&site, "/").await;
    let crash = world.call("navigate", json!({"url": site.url("/")})).await;
    assert!(crash.contains("Here"));
    world.bench.cx.state.browser.kill_for_test().await;
    let gone = world.call("snapshot", json!({})).await;
    assert!(gone.contains("browser_navigate"), "{gone}");
    let again = world.open(&site, "/").await;
    assert!(again.contains("Here"), "{again}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_do_not_reach_other_services_of_this_machine() {
    let inner = Site::new(&[("/", html("secret"))]);
    let port = inner.port();
    let body = format!(
        "<p id=out>wait</p><img src='http://127.0.0.1:{port}/img'><script>\
         fetch('http://127.0.0.1:{port}/fetch', {{method: 'POST', mode: 'no-cors', body: 'x'}}).catch(() => {{}});\
         navigator.sendBeacon('http://127.0.0.1:{port}/beacon', 'x');\
         const ws = new WebSocket('ws://127.0.0.1:{port}/ws'); ws.onerror = ws.onopen = e => out.textContent = 'ws ' + e.type;\
         </script><a id=go href='http://127.0.0.1:{port}/go'>Go</a>\
         <button onclick=\"open('http://127.0.0.1:{port}/popup')\">Popup</button>\
         <iframe src='http://127.0.0.1:{port}/frame'></iframe>"
    );
    let site = Site::new(&[("/", html(&body))]);
    // The browser takes the page for one of the internet; to the guard it is `a.localhost`, another host of this machine.
    let public = format!("--ip-address-space-overrides=127.0.0.1:{}=public", site.port());
    let Some(world) = World::with(|s| s.arguments.push(public)) else { return };
    let page = world.call("navigate", json!({"url": format!("http://a.localhost:{}/", site.port())})).await;
    assert!(page.contains("ws error"), "{page}");
    assert!(page.contains("a request was refused: 127.0.0.1 is this machine"), "{page}");
    world.click(&page, &["link", "Go"]).await;
    let page = world.call("navigate", json!({"url": format!("http://a.localhost:{}/", site.port())})).await;
    world.click(&page, &["button", "Popup"]).await;
    let seen = tiller_protocol::lock(&inner.seen).clone();
    // It may connect to find out where the address is; it sends nothing.
    let reached: Vec<&String> = seen.iter().filter(|line| !line.is_empty()).collect();
    assert!(reached.is_empty(), "{reached:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_call_ends_at_once() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/slow", Answer::Slow("HTTP/1.1 200 OK\r\n".into()))]);
    let cancel = world.bench.cx.cancel.clone();
    let call = world.open(&site, "/slow");
    let stop = async {
        while tiller_protocol::lock(&site.seen).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    };
    let (said, ()) = tokio::join!(call, stop);
    assert_eq!(said, "error: ", "interrupted, not late");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_ends_with_its_session_and_its_profile_goes() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html("<h1>Here</h1>"))]);
    world.open(&site, "/").await;
    let group = world.bench.cx.state.browser.group_for_test().await.unwrap();
    assert!(rustix::process::test_kill_process_group(group).is_ok());
    world.bench.cx.state.browser.end().await;
    let deadline = Instant::now() + Duration::from_secs(60);
    while rustix::process::test_kill_process_group(group).is_ok() {
        assert!(Instant::now() < deadline, "processes of the browser are left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = world.open(&site, "/").await;
    assert!(refused.contains("the session ends"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_in_use_is_told_by_its_process() {
    let scratch = tempfile::tempdir().unwrap();
    let profile = scratch.path().join("work");
    let Some(first) = World::with(|s| s.profile = Some(profile.clone())) else { return };
    let Some(second) = World::with(|s| s.profile = Some(profile.clone())) else { return };
    let body = "<p id=c></p><script>c.textContent = 'cookie: ' + document.cookie; \
                document.cookie = 'kept=1; max-age=10000'</script>";
    let site = Site::new(&[("/", html(body))]);
    first.open(&site, "/").await;
    let refused = second.open(&site, "/").await;
    assert!(refused.contains("is in use by process") && refused.contains("browser.profile"), "{refused}");
    first.end().await;
    let page = second.open(&site, "/").await;
    assert!(page.contains("cookie: kept=1"), "the profile is kept: {page}");
    second.end().await;
}
