//! What a snapshot says of pages that are more than forms: drawings, hidden parts, labels, lists, paragraphs; and what
//! the mouse does there.

use serde_json::json;

use super::site::{Answer, Site, html};
use super::{World, reference};

/// The lines of a report that are of the page.
fn lines(report: &str) -> Vec<&str> {
    let page = |line: &&str| !line.is_empty() && !line.starts_with('[') && !line.starts_with("Page ");
    report.lines().filter(page).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_drawn_is_not_shown() {
    let Some(world) = World::new() else { return };
    let body = "<p>Here</p><div onclick='1' style='display:none'>Gone</div><div onclick='1' class='box'></div>\
        <ul style='display:none'><li onclick='1'>Item</li></ul><div onclick='1' style='visibility:hidden'>Dark</div>\
        <style>.box { width: 30px; height: 20px; background: rgb(0, 128, 255) }</style>";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    assert_eq!(lines(&page), ["\"Here\"", "e1 clickable <div class=box #0080ff> 30x20"], "{page}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_and_its_field_are_one_line_and_paragraphs_are_lines_of_their_own() {
    let Some(world) = World::new() else { return };
    let body = "<p>One <b>and</b> a half</p><p>Two</p><div>Three<div>Four</div></div>\
        <label onclick='1' style='cursor:pointer'><input type=checkbox> Agree</label>\
        <div style='cursor:pointer'><span onclick='1'>Yes</span> <span onclick='1'>No</span></div>\
        <div role=tablist><div role=tab tabindex=0 aria-label=First><a href='#a'>First</a></div></div>";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    let texts: Vec<String> = lines(&page)
        .iter()
        .map(|l| {
            l.trim_start().trim_start_matches(|c: char| c == 'e' || c.is_ascii_digit()).trim().to_owned()
        })
        .collect();
    let wanted = [
        "\"One and a half\"",
        "\"Two\"",
        "\"Three\"",
        "\"Four\"",
        "checkbox \"Agree\"",
        "clickable \"Yes\" e5 \"No\"",
        "tab \"First\"",
    ];
    assert_eq!(texts, wanted, "{page}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_signs_and_headings_that_are_links_are_short() {
    let Some(world) = World::new() else { return };
    let body = "<h1>Tasks</h1><ul><li><input type=checkbox aria-label='Done: Scrub'> <label>Scrub</label> \
        <button aria-label='Delete Scrub'>\u{d7}</button></li><li>Two <b>words</b></li><li></li></ul>\
        <ul aria-label=Named><li>In it</li></ul><h3><a href='/x'>A title</a></h3>\
        <h3><a href='/y'>Part</a> of it</h3><input aria-label=Name> Text";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    let wanted = [
        "h1 \"Tasks\"",
        "-",
        " e1 checkbox \"Done: Scrub\"",
        " e2 button \"Delete Scrub\" \"\u{d7}\"",
        "- \"Two words\"",
        "list \"Named\"",
        " - \"In it\"",
        "e3 link \"A title\" h3",
        "h3 \"Part of it\"",
        " e4 link \"Part\"",
        "e5 textbox \"Name\"",
        "\"Text\"",
    ];
    assert_eq!(lines(&page), wanted, "{page}");
    world.end().await;
}

/// Pages of the usual kinds, and the bytes that a snapshot of Playwright's MCP server (0.0.83) has of each, without what it says of
/// its console. `tests/browser/miniwob.py --compare` measures both.
const SMALL: [(&str, usize, &str); 12] = [
    ("article", 1_533, include_str!("../../../../tests/browser/small/article.html")),
    ("cart", 1_512, include_str!("../../../../tests/browser/small/cart.html")),
    ("dialog", 856, include_str!("../../../../tests/browser/small/dialog.html")),
    ("empty", 112, include_str!("../../../../tests/browser/small/empty.html")),
    ("error", 649, include_str!("../../../../tests/browser/small/error.html")),
    ("form", 1_338, include_str!("../../../../tests/browser/small/form.html")),
    ("list", 1_230, include_str!("../../../../tests/browser/small/list.html")),
    ("login", 1_097, include_str!("../../../../tests/browser/small/login.html")),
    ("menu", 716, include_str!("../../../../tests/browser/small/menu.html")),
    ("search", 1_530, include_str!("../../../../tests/browser/small/search.html")),
    ("settings", 1_342, include_str!("../../../../tests/browser/small/settings.html")),
    ("table", 1_949, include_str!("../../../../tests/browser/small/table.html")),
];

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_of_small_pages_take_two_fifths_of_those_of_others() {
    let Some(world) = World::new() else { return };
    let pages: Vec<(String, Answer)> =
        SMALL.iter().map(|(name, _, page)| (format!("/{name}"), Answer::Html((*page).to_owned()))).collect();
    let pages: Vec<(&str, Answer)> = pages.iter().map(|(path, page)| (path.as_str(), page.clone())).collect();
    let site = Site::new(&pages);
    let mut long = Vec::new();
    for (name, theirs, _) in SMALL {
        world.open(&site, &format!("/{name}")).await;
        let page = world.call("snapshot", json!({})).await;
        if page.len() * 5 > theirs * 2 {
            long.push(format!("{name}: {} of {theirs} bytes\n{page}", page.len()));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn menus_navigation_and_texts_with_links_are_short_and_can_be_acted_on() {
    let Some(world) = World::new() else { return };
    let body = "<nav aria-label=Site><ul><li><a href=/a>Home</a><li><a href=/b>Shop</a></ul></nav>\
        <main><article><h2>Heights</h2><p>Counted from the <a href='#datum'>chart datum</a>, <em>not <code>zero</code></em>.</p>\
        <p><a href='#one'>One</a> <a href='#two'>Two</a></p><ul><li>See <a href='#x'>this</a>.</ul></article></main>\
        <div role=menu aria-label=File><button role=menuitem>New</button><button role=menuitem disabled>Save</button>\
        <button role=menuitemcheckbox aria-checked=true>Auto</button></div>\
        <div role=tablist><button role=tab aria-selected=true>A</button><button role=tab onclick=\"out.textContent = 'B is there'\">B</button></div>\
        <p id=out></p>";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    let wanted = [
        "nav \"Site\"",
        " e1 \"Home\" e2 \"Shop\"",
        "h2 \"Heights\"",
        "\"Counted from the [e3 chart datum], not zero.\"",
        "e4 link \"One\" e5 \"Two\"",
        "- \"See [e6 this].\"",
        "menu \"File\"",
        " e7 \"New\" e8 \"Save\" disabled e9 menuitemcheckbox \"Auto\" checked",
        "tablist",
        " e10 \"A\" selected e11 \"B\"",
    ];
    assert_eq!(lines(&page), wanted, "{page}");
    let tab = world.click(&page, &["\"B\""]).await;
    // The difference names each element in full.
    assert!(tab.contains("+  e11 tab \"B\" focused") && tab.contains("+ \"B is there\""), "{tab}");
    let datum = world.click(&page, &["chart datum"]).await;
    assert!(datum.contains("link \"chart datum\" focused"), "{datum}");
    world.end().await;
}

const DRAWING: &str = "<svg width=120 height=100 onclick='said.textContent = event.offsetX + \",\" + event.offsetY'>\
    <circle cx=30 cy=40 r=10 fill=red /><rect x=60 y=20 width=30 height=40 style='fill:#00ff00'/>\
    <text x=5 y=90>A</text></svg><p id=said></p>\
    <button><svg width=16 height=16><path d='M0 0L9 9'/></svg>Icon</button>";

#[tokio::test(flavor = "multi_thread")]
async fn the_shapes_of_a_drawing_have_places_and_a_point_of_it_can_be_clicked() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html(DRAWING))]);
    let page = world.open(&site, "/").await;
    for words in [["shape", "<circle fill=red> 20x20 at 20,30"], ["shape", "<rect #00ff00> 30x40 at 60,20"]] {
        reference(&page, &words);
    }
    assert!(page.contains("shape \"A\" <text"), "{page}");
    assert!(!page.contains("<path"), "an icon is no drawing: {page}");
    let drawing = reference(&page, &["<svg", "120x100"]);
    let clicked = world.call("click", json!({"ref": drawing, "x": 70, "y": 30})).await;
    assert!(clicked.contains("+ \"70,30\""), "{clicked}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_list_that_listens_can_be_dragged_by_pixels_and_hovered() {
    let Some(world) = World::new() else { return };
    let body = "<style>li { height: 20px } #menu div { display: none } #menu:hover div { display: block }</style>\
        <ul id=list><li>First<li>Second</ul><p id=said></p>\
        <div id=menu onmouseenter='said.textContent = \"over\"'>Menu<div onclick='1'>Entry</div></div>\
        <script>let from; list.onmousedown = e => { e.preventDefault(); from = e.clientY };\
        onmouseup = e => said.textContent = 'moved ' + (e.clientY - from); list.onclick = () => 1</script>";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    let dragged = json!({"ref": reference(&page, &["listitem", "First"]), "drag_by": [0, 25]});
    let moved = world.call("click", dragged).await;
    assert!(moved.contains("\"moved 25\""), "{moved}");
    let page = world.call("snapshot", json!({})).await;
    assert!(!page.contains("Entry"), "{page}");
    // The menu has no listener of a click, so it is aimed at by its place.
    let over = world.call("click", json!({"x": 20, "y": 115, "button": "none"})).await;
    let opened = world.call("snapshot", json!({})).await;
    assert!(over.contains("over") && opened.contains("clickable \"Entry\""), "{over}\n{opened}");
    let both = json!({"ref": "e1", "drag_to": "e2", "drag_by": [1, 1]});
    let both = world.call("click", both).await;
    assert!(both.contains("not both"), "{both}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_the_mouse_exchanges_is_there_before_the_click() {
    let Some(world) = World::new() else { return };
    let body = "<style>#b { content: url(/one) } #b:hover { content: url(/two) }</style>\
        <span id=b onclick='said.textContent = \"hit\"'></span><p id=said></p>";
    let picture = b"<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'/>";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: image/svg+xml\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        picture.len()
    );
    let answer = Answer::Raw([head.as_bytes(), picture].concat());
    let site = Site::new(&[("/one", answer.clone()), ("/two", answer), ("/", html(body))]);
    let page = world.open(&site, "/").await;
    let hit = world.click(&page, &["<span"]).await;
    assert!(hit.contains("\"hit\""), "{hit}");
    world.end().await;
}
