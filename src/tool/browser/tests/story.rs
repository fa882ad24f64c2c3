//! What an agent does with a browser.

use serde_json::json;
use tiller_protocol::Part;

use super::site::{Site, html};
use super::{World, reference};

const FORM: &str = r#"<h1>Order</h1><p>Choose <b>what</b> you want.</p>
<form onsubmit="event.preventDefault(); done.textContent = 'Ordered ' + what.value + ' for ' + who.value + ' ' + (fast.checked ? 'fast' : 'slow')">
<label>Name <input id="who"></label>
<label>What <select id="what"><option value="tea">Tea</option><option value="coffee">Coffee</option></select></label>
<label><input type="checkbox" id="fast"> Fast</label>
<label>Day <input type="date" id="day"></label>
<button>Order</button></form><p id="done"></p>
<div id="box" style="cursor:pointer" onclick="done.textContent='box'">A box</div>
<a href="/second">Second page</a>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_filled_in_by_references_and_each_report_holds_what_changed() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[("/", html(FORM)), ("/second", html("<h2>Second</h2>"))]);
    let page = world.open(&site, "/").await;
    assert!(page.contains("h1 \"Order\"") && page.contains("Choose what you want."), "{page}");
    assert!(page.contains("untrusted text"), "{page}");
    let typed =
        world.call("type", json!({"ref": reference(&page, &["textbox", "Name"]), "text": "Ada"})).await;
    assert!(typed.contains("+ ") && typed.contains("\"Ada\"") && !typed.contains("h1 "), "{typed}");
    let chosen = world.call("type", json!({"ref": reference(&page, &["combobox"]), "text": "coffee"})).await;
    assert!(chosen.contains("Coffee"), "{chosen}");
    let checked = world.click(&page, &["checkbox"]).await;
    assert!(checked.contains("checked"), "{checked}");
    let day = world.call("type", json!({"ref": reference(&page, &["Date"]), "text": "2026-11-30"})).await;
    assert!(day.contains("2026") || day.contains("30"), "{day}");
    let ordered = world.click(&page, &["button", "Order"]).await;
    assert!(ordered.contains("+ ") && ordered.contains("Ordered coffee for Ada fast"), "{ordered}");
    let clicked = world.click(&page, &["clickable", "A box"]).await;
    assert!(clicked.contains("\"box\""), "{clicked}");
    let second = world.click(&page, &["link", "Second"]).await;
    assert!(second.contains("h2 \"Second\"") && second.contains("/second"), "{second}");
    let back = world.call("back", json!({})).await;
    assert!(back.contains("h1 \"Order\""), "{back}");
    let old = world.click(&page, &["button", "Order"]).await;
    assert!(old.contains("browser_snapshot"), "a reference of a page that is gone: {old}");
    let closed = world.call("close", json!({})).await;
    assert!(closed.contains("Playwright"), "{closed}");
    let test = closed.rsplit(' ').next().unwrap().trim();
    let test = std::fs::read_to_string(test).unwrap();
    assert!(test.contains("page.getByRole(\"textbox\", { name: \"Name\" }).fill(\"Ada\")"), "{test}");
    assert!(
        test.contains("page.getByRole(\"combobox\", { name: \"What\" }).selectOption(\"coffee\")"),
        "{test}"
    );
    assert!(test.contains("page.getByLabel(\"Day\").fill(\"2026-11-30\")"), "{test}");
    assert!(test.contains("page.getByText(\"A box\").click()"), "{test}");
    assert!(test.contains("page.goto(") && test.contains("page.goBack()"), "{test}");
    let none = world.call("snapshot", json!({})).await;
    assert!(none.contains("browser_navigate"), "{none}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_attached_and_pictures_are_listed() {
    let Some(world) = World::new() else { return };
    let image = "<img alt='A dot' src='data:image/gif;base64,R0lGODlhAgACAIAAAP///wAAACH5BAAAAAAALAAAAAACAAIAAAIDRAIFADs='>";
    let site = Site::new(&[("/", html(image))]);
    world.open(&site, "/").await;
    let listed = world.call("get_images", json!({})).await;
    assert!(listed.contains("2x2 \"A dot\" data:image/gif"), "{listed}");
    let vision = world.tools.iter().find(|t| t.name() == "browser_vision").unwrap();
    let picture = world.bench.call(*vision, json!({})).await.unwrap();
    assert!(matches!(picture.content.as_slice(), [Part::Text { .. }, Part::Image { .. }]), "{picture:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_page_fits_its_budget_and_its_whole_is_in_a_file() {
    let Some(world) = World::new() else { return };
    let rows: String =
        (0..900).map(|n| format!("<p>Paragraph {n} with words.</p><a href='#{n}'>Link {n}</a>")).collect();
    let site = Site::new(&[("/", html(&rows))]);
    let page = world.open(&site, "/").await;
    assert!(page.len() < 9_000, "{}", page.len());
    let file = page.split("the whole page: ").nth(1).unwrap().split(']').next().unwrap();
    let whole = std::fs::read_to_string(file).unwrap();
    assert!(whole.contains("Paragraph 899") && whole.contains("link \"Link 899\""));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_part_of_the_page() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&[
        ("/inner", html("<button onclick=\"this.textContent='Pressed'\">Inside</button>")),
        ("/", html("<h1>Outside</h1><iframe src='/inner' title='Frame'></iframe>")),
    ]);
    let page = world.open(&site, "/").await;
    let pressed = world.click(&page, &["button", "Inside"]).await;
    assert!(pressed.contains("\"Pressed\""), "{pressed}");
    // As another site, drawn by another process.
    let other = Site::new(&[("/", html("<button onclick=\"this.textContent='Pushed'\">Elsewhere</button>"))]);
    let address = format!("http://localhost:{}/", other.port());
    let outer =
        html(&format!("<h1>Around</h1><p style='height:300px'>Space</p><iframe src='{address}'></iframe>"));
    let site = Site::new(&[("/", outer)]);
    // Both are this machine; the page itself is named as the frame is.
    let page = world.call("navigate", json!({"url": format!("http://a.localhost:{}/", site.port())})).await;
    assert!(page.contains("Around"), "{page}");
    assert!(
        page.contains("a request was refused: localhost is this machine"),
        "another host of this machine: {page}"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_have_tabs_and_cookies_of_their_own() {
    let Some(world) = World::new() else { return };
    let body = "<p id=c></p><script>c.textContent = 'cookie: ' + document.cookie; document.cookie = 'who=first'</script>";
    let site = Site::new(&[("/", html(body))]);
    world.open(&site, "/").await;
    let again = world.open(&site, "/").await;
    assert!(again.contains("cookie: who=first"), "{again}");
    let mut cx = world.bench.cx.clone();
    cx.agent = tiller_protocol::AgentId("helper".into());
    let navigate = world.tools[0];
    let other = crate::run_guarded(navigate, json!({"url": site.url("/")}), &cx).await.unwrap();
    let other = crate::testing::text_of(&other.content);
    assert!(other.contains("cookie:") && !other.contains("who=first"), "{other}");
    assert_eq!(cx.state.browser.url(&cx.agent).as_deref(), Some(site.url("/").as_str()));
    world.end().await;
}
