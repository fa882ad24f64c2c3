//! Tabs that pages open, close and lose.

use std::time::{Duration, Instant};

use serde_json::json;

use super::site::{Site, html};
use super::{World, reference};

/// Far longer than a tab needs to open, and shorter than a call of the browser that gets no answer.
const STALL: Duration = Duration::from_secs(25);
/// A condition that is waited for has come by then, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Ways in which a page opens a tab: a name, and the body of the page with a button "Go" that opens `/second`.
const WAYS: &[(&str, &str)] = &[
    ("link", "<a href=/second target=_blank role=button>Go</a>"),
    ("link with an opener", "<a href=/second target=_blank rel=opener role=button>Go</a>"),
    ("named target", "<a href=/second target=other role=button>Go</a>"),
    ("script", "<button onclick=\"window.open('/second')\">Go</button>"),
    (
        "window of a size",
        "<button onclick=\"window.open('/second', 'w', 'width=300,height=200')\">Go</button>",
    ),
    (
        "blank first",
        "<button onclick=\"const w = window.open('about:blank'); w.location = '/second'\">Go</button>",
    ),
    ("form", "<form action=/second target=_blank><button>Go</button></form>"),
    (
        "after an answer",
        "<button onclick=\"fetch('/second').then(() => window.open('/second'))\">Go</button>",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_a_click_opens_is_told_and_seen_at_once_and_the_old_one_stays() {
    let Some(world) = World::new() else { return };
    for (way, body) in WAYS {
        let site =
            Site::new(&[("/second", html("<h1>Second</h1>")), ("/", html(&format!("<h1>First</h1>{body}")))]);
        let page = world.open(&site, "/").await;
        let began = Instant::now();
        let opened = world.click(&page, &["button", "Go"]).await;
        assert!(began.elapsed() < STALL, "{way}: {:?}", began.elapsed());
        assert!(opened.contains("h1 \"Second\""), "{way}: {opened}");
        assert!(opened.contains("opened") && opened.contains(&site.url("/second")), "{way}: {opened}");
        assert!(opened.contains("\"Test page\""), "the titles are told: {way}: {opened}");
        let first =
            world.call("snapshot", json!({"tab": number(&opened, &format!("{} ", site.url("/")))})).await;
        assert!(first.contains("h1 \"First\""), "{way}: {first}");
        let second = world.call("snapshot", json!({"tab": number(&opened, &site.url("/second"))})).await;
        assert!(second.contains("h1 \"Second\""), "{way}: {second}");
        let closed = world.call("close", json!({})).await;
        assert!(closed.contains("h1 \"First\""), "{way}: {closed}");
        world.call("close", json!({"all": true})).await;
    }
    world.end().await;
}

/// The number of the tab in a list of tabs whose entry has these words.
fn number(report: &str, words: &str) -> u32 {
    let list =
        report.lines().find_map(|l| l.strip_prefix("[tabs: ")).unwrap_or_else(|| panic!("no list: {report}"));
    let entry = list.split("; ").find(|e| format!("{e} ").replace("; ", " ").contains(words));
    let entry = entry.unwrap_or_else(|| panic!("no {words}: {list}"));
    entry.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_of_a_host_that_was_not_opened_is_held_and_the_call_that_opens_it_is_told() {
    let Some(world) = World::new() else { return };
    let other = Site::new(&[("/", html("<h1>Other</h1>"))]);
    let to = format!("http://localhost:{}/", other.port());
    let site = Site::new(&[("/", html(&format!("<a href='{to}' target=_blank>Go</a>")))]);
    let page = world.open(&site, "/").await;
    let held = world.click(&page, &["link", "Go"]).await;
    assert!(held.contains(&to) && held.contains("not opened") && held.contains("browser_navigate"), "{held}");
    assert!(!held.contains("h1 \"Other\""), "{held}");
    let still = world.call("snapshot", json!({})).await;
    assert!(still.contains("link \"Go\""), "the agent still sees the page: {still}");
    assert!(!still.contains("[tabs:"), "the held tab is closed: {still}");
    let seen = tiller_protocol::lock(&other.seen).clone();
    assert!(seen.iter().all(|line| line.is_empty()), "{seen:?}");
    let opened = world.call("navigate", json!({"url": to})).await;
    assert!(opened.contains("h1 \"Other\""), "{opened}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tabs_are_bounded_and_told() {
    let Some(world) = World::with(|s| s.arguments.push("--disable-popup-blocking".into())) else { return };
    let body = "<h1>First</h1><button onclick=\"for (let n = 0; n < 100; n++) window.open('/tab' + n)\">Storm</button>";
    let site = Site::new(&[("/tab", html("<h1>Tab</h1>")), ("/", html(body))]);
    let page = world.open(&site, "/").await;
    let storm = world.click(&page, &["button", "Storm"]).await;
    assert!(storm.contains("more tabs") && storm.contains("closed"), "{storm}");
    let list = storm.lines().find(|l| l.starts_with("[tabs: ")).unwrap().to_owned();
    assert!((2..=8).contains(&list.matches("/tab").count()), "{list}");
    let first = world.call("snapshot", json!({"tab": 1})).await;
    assert!(first.contains("h1 \"First\""), "the agent's own tab is never closed: {first}");
    let again = world.click(&first, &["button", "Storm"]).await;
    assert!(again.contains("more tabs"), "{again}");
    let first = world.call("snapshot", json!({"tab": 1})).await;
    assert!(first.contains("h1 \"First\""), "{first}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_that_the_browser_holds_back_are_told() {
    let Some(world) = World::new() else { return };
    let body = "<button onclick=\"for (let n = 0; n < 100; n++) window.open('/tab' + n)\">Storm</button>";
    let site = Site::new(&[("/tab", html("<h1>Tab</h1>")), ("/", html(body))]);
    let page = world.open(&site, "/").await;
    let storm = world.click(&page, &["button", "Storm"]).await;
    assert!(storm.contains("h1 \"Tab\"") && storm.contains("99 more windows"), "{storm}");
    assert!(storm.contains("/tab1") && storm.len() < 4_000, "{storm}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_closes_itself_is_told_and_the_one_before_is_seen() {
    let Some(world) = World::new() else { return };
    let second = "<h1>Second</h1><button onclick='window.close()'>Bye</button>\
        <button onclick=\"document.title = 'Closing'; setTimeout(() => window.close(), 1500)\">Later</button>";
    let site = Site::new(&[
        ("/second", html(second)),
        ("/", html("<h1>First</h1><button onclick=\"window.open('/second')\">Go</button>")),
    ]);
    let page = world.open(&site, "/").await;
    let go = reference(&page, &["button", "Go"]);
    let opened = world.call("click", json!({"ref": go})).await;
    let began = Instant::now();
    let closed = world.click(&opened, &["button", "Bye"]).await;
    assert!(began.elapsed() < STALL, "{:?}", began.elapsed());
    assert!(closed.contains("closed by its page") && closed.contains("you see tab 1 now"), "{closed}");
    // Between two calls: what was meant for the tab that is gone happens in no other one.
    let opened = world.call("click", json!({"ref": go})).await;
    world.click(&opened, &["button", "Later"]).await;
    let until = Instant::now() + LIMIT;
    loop {
        let told = world.call("press", json!({"key": "Escape"})).await;
        if told.contains("closed by its page") {
            break;
        }
        assert!(Instant::now() < until, "{told}");
    }
    let first = world.call("snapshot", json!({})).await;
    assert!(first.contains("h1 \"First\""), "{first}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_opens_after_the_call_is_told_and_takes_no_one_away() {
    let Some(world) = World::with(|s| s.arguments.push("--disable-popup-blocking".into())) else { return };
    let body = "<h1>First</h1><button onclick=\"setTimeout(() => window.open('/second'), 3000)\">Go</button>\
        <button onclick=\"said.textContent = 'pressed'\">Stay</button><p id=said></p>";
    let site = Site::new(&[
        ("/third", html("<h1>Third</h1>")),
        ("/second", html("<h1>Second</h1><a href=/third target=_blank>Next</a>")),
        ("/", html(body)),
    ]);
    let page = world.open(&site, "/").await;
    world.click(&page, &["button", "Go"]).await;
    let until = Instant::now() + LIMIT;
    let told = loop {
        let told = world.call("snapshot", json!({"changes": true})).await;
        if told.contains("/second") {
            break told;
        }
        assert!(Instant::now() < until, "{told}");
    };
    let stay = world.click(&page, &["button", "Stay"]).await;
    assert!(stay.contains("\"pressed\""), "{stay}");
    let second = world.call("snapshot", json!({"tab": number(&told, "/second")})).await;
    assert!(second.contains("h1 \"Second\""), "{second}");
    // A tab that a tab opens.
    let third = world.click(&second, &["link", "Next"]).await;
    assert!(third.contains("h1 \"Third\""), "{third}");
    let none = world.call("snapshot", json!({"tab": 77})).await;
    assert!(none.ends_with("there is no tab 77; there are: 1, 2, 3"), "no words of pages: {none}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_with_the_middle_button_opens_a_tab() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/second", html("<h1>Second</h1>")), ("/", html("<a href=/second>Go</a>"))]);
    let page = world.open(&site, "/").await;
    let go = json!({"ref": reference(&page, &["link", "Go"]), "button": "middle"});
    let mut told = world.call("click", go).await;
    let until = Instant::now() + LIMIT;
    while !told.contains("/second") {
        assert!(Instant::now() < until, "{told}");
        told = world.call("snapshot", json!({})).await;
    }
    let second = world.call("snapshot", json!({"tab": number(&told, "/second")})).await;
    assert!(second.contains("h1 \"Second\""), "{second}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_crashes_is_told_and_the_others_stay() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[
        ("/second", html("<h1>Second</h1>")),
        ("/", html("<h1>First</h1><a href=/second target=_blank>Go</a>")),
    ]);
    let page = world.open(&site, "/").await;
    let opened = world.click(&page, &["link", "Go"]).await;
    assert!(opened.contains("h1 \"Second\""), "{opened}");
    world.bench.cx.state.browser.crash_for_test(&world.bench.cx.agent).await;
    let told = world.call("press", json!({"key": "Escape"})).await;
    assert!(told.contains("crashed") && told.contains("tab 1"), "{told}");
    let first = world.call("snapshot", json!({})).await;
    assert!(first.contains("h1 \"First\""), "{first}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_see_no_tabs_of_each_other() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[
        ("/second", html("<h1>Second</h1>")),
        ("/", html("<h1>First</h1><a href=/second target=_blank>Go</a>")),
    ]);
    let mut cx = world.bench.cx.clone();
    cx.agent = tiller_protocol::AgentId("helper".into());
    let other = |name: &'static str, args| {
        let tool = *world.tools.iter().find(|t| t.name() == name).unwrap();
        let cx = cx.clone();
        async move {
            match crate::run_guarded(tool, args, &cx).await {
                Ok(out) => crate::testing::text_of(&out.content),
                Err(error) => format!("error: {error:?}"),
            }
        }
    };
    let their_site = Site::new(&[
        ("/second", html("<h1>Theirs</h1>")),
        ("/", html("<h1>First</h1><a href=/second target=_blank>Go</a>")),
    ]);
    let page = world.open(&site, "/").await;
    let theirs = other("browser_navigate", json!({"url": their_site.url("/")})).await;
    let opened = world.click(&page, &["link", "Go"]).await;
    assert!(opened.contains("h1 \"Second\""), "{opened}");
    let seen = other("browser_snapshot", json!({})).await;
    assert!(seen.contains("h1 \"First\"") && !seen.contains("[tabs:"), "{seen}");
    let tab = number(&opened, "/second");
    let refused = other("browser_snapshot", json!({"tab": tab})).await;
    assert!(refused.contains("there is no tab"), "{refused}");
    let their = other("browser_click", json!({"ref": reference(&theirs, &["link", "Go"])})).await;
    assert!(their.contains("h1 \"Theirs\""), "{their}");
    // Both have a tab of this number now.
    assert_eq!(tab, number(&their, "/second"));
    let mine = world.call("snapshot", json!({"tab": tab})).await;
    assert!(mine.contains("h1 \"Second\""), "{mine}");
    let theirs = other("browser_snapshot", json!({"tab": tab})).await;
    assert!(theirs.contains("h1 \"Theirs\""), "{theirs}");
    let mine = world.call("snapshot", json!({"tab": 1})).await;
    assert!(mine.contains("h1 \"First\""), "{mine}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_meant_for_one_tab_happens_in_no_other() {
    let Some(world) = World::new() else { return };
    let second = format!(
        "<h1>Second</h1>{}",
        "<button onclick=\"said.textContent = 'wrong'\">Any</button>".repeat(20)
    );
    let first = "<h1>First</h1><button onclick=\"window.open('/second')\">Go</button>\
        <button onclick=\"said.textContent = 'right'\">Stay</button><p id=said></p>";
    let site = Site::new(&[("/second", html(&format!("{second}<p id=said></p>"))), ("/", html(first))]);
    let page = world.open(&site, "/").await;
    // Two calls of one message: the second one was written before the tab was there.
    let opened = world.click(&page, &["button", "Go"]).await;
    assert!(opened.contains("h1 \"Second\""), "{opened}");
    let stay = json!({"ref": reference(&page, &["button", "Stay"])});
    let stale = world.call("click", stay.clone()).await;
    assert!(stale.contains("there is no element"), "{stale}");
    let second = world.call("snapshot", json!({})).await;
    assert!(!second.contains("wrong"), "{second}");
    world.call("snapshot", json!({"tab": 1})).await;
    let right = world.call("click", stay).await;
    assert!(right.contains("\"right\""), "{right}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_and_downloads_of_frames_of_another_site_are_told() {
    let Some(mut world) = World::with(|s| s.arguments.push("--site-per-process".into())) else { return };
    let file = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-disposition: attachment; \
        filename=a.bin\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx";
    let body = "<button onclick=\"for (let n = 0; n < 3; n++) window.open('/tab' + n)\">Storm</button><a href=/file>File</a>";
    let inner = Site::new(&[
        ("/tab", html("<h1>Tab</h1>")),
        ("/file", super::site::Answer::Raw(file.into())),
        ("/frame", html(body)),
    ]);
    let host = format!("http://localhost:{}", inner.port());
    let outer = html(&format!("<iframe src='{host}/frame' width=400 height=200></iframe>"));
    let site = Site::new(&[("/", outer)]);
    let limits = crate::Limits { fetch_private: true, ..(*world.bench.cx.limits).clone() };
    world.bench.cx.limits = std::sync::Arc::new(limits);
    let page = world.open(&site, "/").await;
    let mut told = world.click(&page, &["link", "File"]).await;
    let until = Instant::now() + LIMIT;
    while !told.contains("a.bin\" is complete") {
        assert!(Instant::now() < until, "{told}");
        told.push_str(&world.call("snapshot", json!({})).await);
    }
    let storm = world.click(&page, &["button", "Storm"]).await;
    assert!(storm.contains("2 more windows"), "{storm}");
    world.end().await;
}
