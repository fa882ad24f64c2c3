//! Dialogs that pages open, and the answers of calls.

use serde_json::{Value, json};

use super::site::{Site, html};
use super::{World, reference};

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_are_results_and_are_answered_as_the_call_says() {
    let Some(world) = World::new() else { return };
    let body = "<button onclick=\"alert('Mind\\nthe gap')\">Alert</button>\
        <button onclick=\"out.textContent = confirm('Sure?') ? 'yes' : 'no'\">Confirm</button>\
        <button onclick=\"out.textContent = 'name ' + prompt('Name?')\">Prompt</button><p id=out></p>";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    let on = |name: &str, answer: Value| {
        let mut args = json!({"ref": reference(&page, &["button", name])});
        args.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        args
    };
    for (name, answer, told) in [
        ("Alert", json!({}), vec!["dialog (alert): \"Mind the gap\"", "closed"]),
        ("Confirm", json!({}), vec!["dialog (confirm): \"Sure?\"", "dismissed", "dialog: \"accept\""]),
        ("Confirm", json!({"dialog": "accept"}), vec!["accepted", "\"yes\""]),
        ("Confirm", json!({"dialog": "dismiss"}), vec!["dismissed", "\"no\""]),
        ("Prompt", json!({}), vec!["dismissed", "dialog_text", "\"name null\""]),
        (
            "Prompt",
            json!({"dialog": "accept", "dialog_text": "Ada"}),
            vec!["accepted with \"Ada\"", "\"name Ada\""],
        ),
        ("Prompt", json!({"dialog_text": "Grace Hopper"}), vec!["\"name Grace Hopper\""]),
        ("Prompt", json!({"dialog_text": ""}), vec!["accepted with \"\"", "\"name\""]),
        ("Prompt", json!({"dialog": "accept"}), vec!["accepted"]),
        ("Prompt", json!({"dialog": "dismiss", "dialog_text": "x"}), vec!["takes no dialog_text"]),
        ("Prompt", json!({"dialog_text": "[redacted api key]"}), vec!["error", "mask"]),
        ("Alert", json!({"dialog": "maybe"}), vec!["error"]),
    ] {
        let said = world.call("click", on(name, answer.clone())).await;
        for words in told {
            assert!(said.contains(words), "{name} {answer}: no {words:?} in {said}");
        }
    }
    // An answer is for its call alone, also where that fails, and also for what the page does after it.
    let refused = world.call("click", json!({"ref": "e9999", "dialog": "accept"})).await;
    assert!(refused.contains("there is no element"), "{refused}");
    let agent = &world.bench.cx.agent;
    assert_eq!(world.bench.cx.state.browser.dialog_for_test(agent), None);
    world.call("click", on("Confirm", json!({"dialog": "accept"}))).await;
    assert_eq!(world.bench.cx.state.browser.dialog_for_test(agent), None);
    let later = world.call("click", on("Confirm", json!({}))).await;
    assert!(later.contains("dismissed"), "{later}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_forms_are_answered_too() {
    let Some(world) = World::new() else { return };
    let body = "<button autofocus onclick=\"out.textContent = 'key ' + prompt('?')\">Ask</button>\
        <form onsubmit=\"event.preventDefault(); out.textContent = 'form ' + prompt('?')\"><label>Name <input></label></form>\
        <p id=out></p>";
    let site = Site::new(&[("/", html(body))]);
    let page = world.open(&site, "/").await;
    let key = world.call("press", json!({"key": "Enter", "dialog_text": "one"})).await;
    assert!(key.contains("\"key one\""), "{key}");
    let field = reference(&page, &["textbox"]);
    let form = json!({"ref": field, "text": "x", "submit": true, "dialog_text": "two"});
    let form = world.call("type", form).await;
    assert!(form.contains("\"form two\""), "{form}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_warns_before_it_is_left_is_left_or_kept_as_the_call_says() {
    let Some(world) = World::new() else { return };
    let body = "<h1>First</h1><label>Text <input></label><a href=/second>Go</a>\
        <script>addEventListener('beforeunload', e => { e.preventDefault(); e.returnValue = 'x' })</script>";
    let site = Site::new(&[("/second", html("<h1>Second</h1>")), ("/", html(body))]);
    let page = world.open(&site, "/").await;
    // A page warns only after it was used.
    world.call("type", json!({"ref": reference(&page, &["textbox"]), "text": "x"})).await;
    let kept = json!({"ref": reference(&page, &["link", "Go"]), "dialog": "dismiss"});
    let kept = world.call("click", kept).await;
    assert!(kept.contains("beforeunload") && kept.contains("was not left"), "{kept}");
    assert!(!kept.contains("still loading"), "{kept}");
    let left = world.click(&page, &["link", "Go"]).await;
    assert!(left.contains("it was left") && left.contains("h1 \"Second\""), "{left}");
    let page = world.open(&site, "/").await;
    world.call("type", json!({"ref": reference(&page, &["textbox"]), "text": "x"})).await;
    let away = world.open(&site, "/second").await;
    assert!(away.contains("it was left") && away.contains("h1 \"Second\""), "{away}");
    world.end().await;
}
