//! Pages and browsers that do harm, or do nothing.

use std::time::{Duration, Instant};

use serde_json::json;

use super::site::{Answer, Site, html};
use super::{World, reference};

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_are_results_and_are_answered_as_the_call_says() {
    let Some(world) = World::new() else { return };
    let body = "<button onclick=\"alert('Mind\\nthe gap')\">Alert</button>\
        <button onclick=\"out.textContent = confirm('Sure?') ? 'yes' : 'no'\">Confirm</button>\
        <button onclick=\"out.textContent = 'name ' + prompt('Name?')\">Prompt</button><p id=out></p>";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    let button = |name: &str| reference(&page, &["button", name]);
    let alert = world.call("click", json!({"ref": button("Alert")})).await;
    assert!(alert.contains("dialog (alert): \"Mind the gap\""), "{alert}");
    let no = world.call("click", json!({"ref": button("Confirm")})).await;
    assert!(no.contains("dismissed") && no.contains("\"no\""), "{no}");
    let yes = world.call("click", json!({"ref": button("Confirm"), "dialog": "accept"})).await;
    assert!(yes.contains("accepted") && yes.contains("\"yes\""), "{yes}");
    let named =
        world.call("click", json!({"ref": button("Prompt"), "dialog": "accept", "dialog_text": "Ada"})).await;
    assert!(named.contains("\"name Ada\""), "{named}");
    world.end().await;
}

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
async fn a_page_that_never_ends_its_script_does_not_hang_the_call() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html("<button onclick=\"for(;;){}\">Spin</button>"))]);
    let page = world.open(&site, "/").await;
    let spin = world.call("click", json!({"ref": reference(&page, &["button"])})).await;
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
    world.call("click", json!({"ref": reference(&page, &["link", "Go"])})).await;
    let page = world.call("navigate", json!({"url": format!("http://a.localhost:{}/", site.port())})).await;
    world.call("click", json!({"ref": reference(&page, &["button", "Popup"])})).await;
    let seen = tiller_protocol::lock(&inner.seen).clone();
    // It may connect to find out where the address is; it sends nothing.
    let reached: Vec<&String> = seen.iter().filter(|line| !line.is_empty()).collect();
    assert!(reached.is_empty(), "{reached:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_go_to_the_session_and_are_bounded() {
    let Some(world) = World::with(|s| s.download_bytes = 1_000_000) else { return };
    let head = |length: usize| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-disposition: attachment; filename=../../evil.sh\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    let small = [head(5).into_bytes(), b"hello".to_vec()].concat();
    let large = [head(8_000_000).into_bytes(), vec![b'x'; 8_000_000]].concat();
    let site = Site::new(&[
        ("/small", Answer::Raw(small)),
        ("/large", Answer::Raw(large)),
        ("/", html("<a href='/small'>Small</a> <a href='/large'>Large</a>")),
    ]);
    let page = world.open(&site, "/").await;
    let mut told = world.call("click", json!({"ref": reference(&page, &["link", "Small"])})).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    while !told.contains("is complete") && Instant::now() < deadline {
        told.push_str(&world.call("snapshot", json!({"changes": true})).await);
    }
    assert!(told.contains("evil.sh") && told.contains("is complete"), "{told}");
    let folder = world.bench.cx.folders.spill.join("downloads");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(std::fs::read(files[0].path()).unwrap(), b"hello");
    let mut told = world.call("click", json!({"ref": reference(&page, &["link", "Large"])})).await;
    while !told.contains("was stopped") && !told.contains("was cancelled") && Instant::now() < deadline {
        told.push_str(&world.call("snapshot", json!({"changes": true})).await);
    }
    assert!(told.contains("larger than"), "{told}");
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
