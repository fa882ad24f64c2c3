//! Files from pages and for pages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tiller_protocol::{Access, lock};

use super::site::{Answer, Site, html};
use super::{World, reference};
use crate::Workspace;
use crate::shell::{SessionTmp, ShownInTmp, TmpFolder};

/// A condition that is waited for has come by then, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// An answer that is a file.
fn file(name: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-disposition: attachment; filename={name}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.into_bytes(), body.to_vec()].concat()
}

/// Looks until the words are told.
async fn until(world: &World, mut told: String, words: &str) -> String {
    let limit = Instant::now() + LIMIT;
    while !told.contains(words) {
        assert!(Instant::now() < limit, "no {words}: {told}");
        told.push_str(&world.call("snapshot", json!({"changes": true})).await);
    }
    told
}

/// The path after the words.
fn path_of(told: &str) -> std::path::PathBuf {
    told.split("is complete: ").nth(1).unwrap().split(" (").next().unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_are_files_with_safe_names_of_bounded_size() {
    let Some(world) = World::with(|s| s.download_bytes = 1_000_000) else { return };
    let site = Site::new(&[
        ("/small", Answer::Raw(file("../../evil.sh", 5, b"hello"))),
        ("/large", Answer::Raw(file("large.bin", 8_000_000, &vec![b'x'; 8_000_000]))),
        ("/broken", Answer::Raw(file("broken.bin", 500_000, b"begin"))),
        ("/slow", Answer::Slow(String::from_utf8(file("slow.bin", 900_000, &[b's'; 4_000])).unwrap())),
        (
            "/",
            html(
                "<a href='/small'>Small</a> <a href='/large'>Large</a> <a href=/broken>Broken</a> <a href=/slow>Slow</a>\
                 <a href=/small target=_blank>Tab</a> <a download='made.txt' href='data:text/plain,made'>Made</a>",
            ),
        ),
    ]);
    let page = world.open(&site, "/").await;
    let click = |name: &str| world.call("click", json!({"ref": reference(&page, &["link", name])}));
    for (name, kept, bytes) in [
        ("Small", "_.._evil.sh", "hello"),
        ("Small", "_.._evil-2.sh", "hello"),
        ("Tab", "_.._evil-3.sh", "hello"),
        ("Made", "made.txt", "made"),
    ] {
        let told = until(&world, click(name).await, "is complete").await;
        let path = path_of(&told);
        assert!(path.ends_with(format!("downloads/{kept}")), "{told}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bytes);
        assert!(
            told.contains(&format!("({} B)", bytes.len()))
                || told.contains(&format!("({} bytes)", bytes.len())),
            "{told}"
        );
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let seen = world.call("snapshot", json!({})).await;
        assert!(seen.contains("link \"Small\""), "{name}: {seen}");
    }
    let told = until(&world, click("Large").await, "was stopped").await;
    assert!(told.contains("larger than") && told.contains("large.bin"), "{told}");
    let told = until(&world, click("Broken").await, "broken.bin\" was cancelled").await;
    assert!(told.contains("broken.bin"), "{told}");
    let told = until(&world, click("Slow").await, "slow.bin\" runs").await;
    assert!(told.contains("of 879 KB") || told.contains("of 900") || told.contains("of 878"), "{told}");
    let closed = world.call("close", json!({"all": true})).await;
    assert!(closed.contains("slow.bin\" was cancelled"), "{closed}");
    let folder = world.bench.cx.folders.spill.join("downloads");
    let left: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!left.iter().any(|name| name.contains("large") || name.contains("broken")), "{left:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_lie_in_the_tmp_of_the_session_where_there_is_one() {
    let Some(mut world) = World::new() else { return };
    let folder = TmpFolder::default();
    let shown: ShownInTmp = Arc::new(|_, _| Some(Vec::new()));
    let tmp = SessionTmp { folder: folder.clone(), shown };
    world.bench.cx.workspace = Arc::new(Workspace::new(&world.bench.root).unwrap().tmp(Some(tmp)));
    let site = Site::new(&[
        ("/report", Answer::Raw(file("report.csv", 4, b"a,b\n"))),
        ("/", html("<a href=/report>Report</a>")),
    ]);
    let page = world.open(&site, "/").await;
    let told = world.click(&page, &["link", "Report"]).await;
    let told = until(&world, told, "is complete").await;
    assert!(told.contains("is complete: /tmp/downloads/report.csv (4 "), "{told}");
    let kept = std::fs::read(folder.path().unwrap().join("downloads/report.csv")).unwrap();
    assert_eq!(kept, b"a,b\n");
    let read = world.bench.say(&crate::files::ReadFile, json!({"path": "/tmp/downloads/report.csv"})).await;
    assert!(read.contains("a,b"), "{read}");
    world.end().await;
}

const FORM: &str = "<form action=/sent method=post enctype=multipart/form-data>\
    <label>One <input type=file name=one></label><input type=file name=many multiple aria-label=Many>\
    <button>Send</button></form>\
    <button type=button onclick='pick.click()'>Choose</button><input id=pick type=file style='display:none' \
     onchange=\"out.textContent = [...this.files].map(f => f.name + ' ' + f.size).join()\">\
    <button type=button onclick='1'>Other</button><p id=out></p>";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_workspace_is_given_to_a_field_as_it_was_judged() {
    let Some(world) = World::new() else { return };
    std::fs::write(world.bench.root.join("a.txt"), "first").unwrap();
    std::fs::write(world.bench.root.join("b.txt"), "second").unwrap();
    let site = Site::new(&[("/sent", html("<h1>Sent</h1>")), ("/", html(FORM))]);
    let page = world.open(&site, "/").await;
    let at = |words: &[&str]| reference(&page, words);
    let (one, many) = (at(&["One"]), at(&["Many"]));
    let asks = world.call("click", json!({"ref": at(&["button", "\"Choose\""])})).await;
    assert!(asks.contains("asks for a file") && asks.contains("browser_upload"), "{asks}");
    let chosen = json!({"ref": at(&["button", "\"Choose\""]), "paths": ["a.txt"]});
    let chosen = world.call("upload", chosen).await;
    assert!(chosen.contains("Gave the page a.txt") && chosen.contains("\"a.txt 5\""), "{chosen}");
    for (args, words) in [
        (json!({"ref": one, "paths": ["a.txt", "b.txt"]}), "takes one file"),
        (json!({"ref": one, "paths": []}), "pass 1 to 10"),
        (json!({"ref": one, "paths": ["none.txt"]}), "does not exist"),
        (json!({"ref": one, "paths": ["."]}), "a folder"),
        (json!({"ref": at(&["button", "Other"]), "paths": ["a.txt"]}), "no file field"),
    ] {
        let refused = world.call("upload", args.clone()).await;
        assert!(refused.contains(words), "{args}: {refused}");
    }
    world.call("upload", json!({"ref": one, "paths": ["a.txt"]})).await;
    world.call("upload", json!({"ref": many, "paths": ["a.txt", "b.txt"]})).await;
    // What is sent is what was judged.
    std::fs::write(world.bench.root.join("a.txt"), "changed").unwrap();
    let sent = world.call("click", json!({"ref": at(&["button", "Send"])})).await;
    assert!(sent.contains("h1 \"Sent\""), "{sent}");
    let bodies = lock(&site.bodies).clone();
    let body = bodies.iter().find(|b| b.contains("name=\"one\"")).unwrap();
    for words in ["filename=\"a.txt\"", "filename=\"b.txt\"", "first", "second"] {
        assert!(body.contains(words), "{words}: {body}");
    }
    assert!(!body.contains("changed"), "{body}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_in_a_frame_of_another_origin_gets_no_file() {
    let Some(mut world) = World::new() else { return };
    let limits = crate::Limits { fetch_private: true, ..(*world.bench.cx.limits).clone() };
    world.bench.cx.limits = Arc::new(limits);
    std::fs::write(world.bench.root.join("a.txt"), "first").unwrap();
    let field = "<input type=file aria-label=Field>";
    // The page's own words of where its field is.
    let lies = format!(
        "{field}<script>Object.defineProperty(document.querySelector('input'), 'ownerDocument', \
         {{value: {{location: {{hostname: '127.0.0.1'}}}}}})</script>"
    );
    let inner = Site::new(&[
        ("/nested", html(&format!("<iframe srcdoc='{field}' width=300 height=100></iframe>"))),
        ("/lies", html(&lies)),
        ("/", html(field)),
    ]);
    let other = format!("http://localhost:{}", inner.port());
    for (frame, given) in [
        (format!("src='{other}/'"), false),
        (format!("src='{other}/nested'"), false),
        (format!("src='{other}/lies'"), false),
        (format!("sandbox=allow-scripts srcdoc='{field}'"), false),
        (format!("src='data:text/html,{field}'"), false),
        (format!("srcdoc='{field}'"), true),
        ("src='/own'".to_owned(), true),
    ] {
        let body = format!("<iframe {frame} width=400 height=200></iframe>");
        let site = Site::new(&[("/own", html(field)), ("/", html(&body))]);
        let page = world.open(&site, "/").await;
        let upload = json!({"ref": reference(&page, &["Field"]), "paths": ["a.txt"]});
        let told = world.call("upload", upload).await;
        let words = if given { "Gave the page a.txt" } else { "frame of another origin" };
        assert!(told.contains(words), "{frame}: {page}\n{told}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_went_to_another_host_after_it_was_judged_gets_no_file() {
    let Some(world) = World::new() else { return };
    std::fs::write(world.bench.root.join("a.txt"), "first").unwrap();
    let site = Site::new(&[(
        "/",
        html("<input type=file aria-label=Field><a href='about:blank' target=_blank rel=opener>Blank</a>"),
    )]);
    let upload = *world.tools.iter().find(|t| t.name() == "browser_upload").unwrap();
    let cx = &world.bench.cx;
    let page = world.open(&site, "/").await;
    let args = |page: &str| json!({"ref": reference(page, &["Field"]), "paths": ["a.txt"]});
    cx.workspace.declared.judge(&cx.call_id);
    upload.access(&args(&page), cx).unwrap();
    let page = world.call("navigate", json!({"url": format!("http://localhost:{}/", site.port())})).await;
    let refused = crate::run_guarded(upload, args(&page), cx).await.unwrap_err();
    assert!(format!("{refused:?}").contains("no longer of the host"), "{refused:?}");
    // Judged again, for where it is now.
    cx.workspace.declared.judge(&cx.call_id);
    let given = world.call("upload", args(&page)).await;
    assert!(given.contains("Gave the page a.txt"), "{given}");
    let blank = world.click(&page, &["Blank"]).await;
    assert!(blank.contains("about:blank"), "{blank}");
    let nowhere = world.call("upload", args(&page)).await;
    assert!(nowhere.contains("this page has no host"), "{nowhere}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_declares_the_host_and_each_file() {
    let Some(world) = World::new() else { return };
    std::fs::write(world.bench.root.join("a.txt"), "first").unwrap();
    let spilled = world.bench.cx.folders.spill.join("out.txt");
    std::fs::create_dir_all(spilled.parent().unwrap()).unwrap();
    std::fs::write(&spilled, "x").unwrap();
    let site = Site::new(&[("/", html(FORM))]);
    world.open(&site, "/").await;
    let upload = world.tools.iter().find(|t| t.name() == "browser_upload").unwrap();
    let needs =
        upload.access(&json!({"ref": "e1", "paths": ["a.txt", ".env", spilled]}), &world.bench.cx).unwrap();
    let [
        Access::Net { host, local: true, .. },
        Access::Read { path, inside: true },
        Access::Read { path: env, .. },
        Access::Read { inside: false, .. },
    ] = needs.as_slice()
    else {
        panic!("{needs:?}")
    };
    assert!(host == "127.0.0.1" && path.ends_with("a.txt") && env.ends_with(".env"), "{needs:?}");
    world.end().await;
}
