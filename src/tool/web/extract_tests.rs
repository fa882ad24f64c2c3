use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::testing::Bench;
use crate::web::{Net, Reply, Resolver, Sent, WebState};

/// Pages by their addresses; every name is a public address.
struct Pages(HashMap<String, Reply>);

#[async_trait]
impl Net for Pages {
    async fn send(&self, sent: &Sent, _: &[IpAddr], cap: u64) -> Result<Reply, String> {
        let mut reply = self.0.get(sent.url.as_str()).cloned().ok_or("no such page")?;
        reply.capped = reply.body.len() as u64 > cap;
        reply.body.truncate(cap as usize);
        Ok(reply)
    }
}

struct Public;

#[async_trait]
impl Resolver for Public {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        let address = if host == "inside.example" { "10.0.0.7" } else { "93.184.216.34" };
        Ok(vec![address.parse().unwrap()])
    }
}

fn bench(pages: &[(&str, &str)]) -> Bench {
    let page = |body: &str| Reply {
        status: 200,
        content_type: Some("text/plain".into()),
        body: body.into(),
        ..Reply::default()
    };
    let pages = pages.iter().map(|(url, body)| ((*url).to_owned(), page(body))).collect();
    let mut bench = Bench::new();
    #[allow(clippy::needless_update, reason = "other tools add their fields")]
    let state = crate::state::ToolState {
        web: WebState::with(Arc::new(Pages(pages)), Arc::new(Public)),
        ..Default::default()
    };
    bench.cx.state = Arc::new(state);
    bench
}

#[tokio::test]
async fn several_pages_come_in_their_order_each_marked() {
    let b = bench(&[("https://a.example/", "first\u{1b}[2J page"), ("https://b.example/x", "second page")]);
    let urls = ["https://a.example/", "https://none.example/", "https://b.example/x", "https://a.example/"];
    let said = b.say(&WebExtract, json!({"urls": urls})).await;
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    assert!(at("from https://a.example/;") < at("first"));
    assert!(at("first") < at("https://none.example/: no such page"));
    assert!(at("no such page") < at("second page"));
    assert_eq!(said.matches("[untrusted text ").count(), 2, "the same page once: {said}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[tokio::test]
async fn all_pages_together_are_as_long_as_one_result() {
    let long = "word ".repeat(4_000);
    let b = bench(&[("https://a.example/", &long), ("https://b.example/", "short")]);
    let b = b.limits(|l| l.output_bytes = 6_000);
    let said = b.say(&WebExtract, json!({"urls": ["https://a.example/", "https://b.example/"]})).await;
    assert!(said.len() < 6_000, "{}", said.len());
    assert!(said.contains("its first 3.0 KB of 20 KB, web_fetch shows more"), "{said}");
    assert!(said.contains("short"), "{said}");
}

#[tokio::test]
async fn no_address_of_a_private_network_is_reached() {
    let b = bench(&[("http://inside.example/", "secret"), ("https://a.example/", "public")]);
    // One in the list refuses the whole call before it runs.
    for inside in ["http://127.0.0.1/", "http://169.254.169.254/latest", "file:///etc/passwd"] {
        let args = json!({"urls": ["https://a.example/", inside]});
        assert!(WebExtract.access(&args, &b.cx).is_err(), "{inside}");
    }
    // A name that leads there is found out when it is looked up.
    let said = b.say(&WebExtract, json!({"urls": ["https://a.example/", "http://inside.example/"]})).await;
    assert!(said.contains("public") && !said.contains("secret"), "{said}");
    assert!(said.contains("a private network"), "{said}");
}

#[test]
fn every_address_is_declared_and_the_number_is_limited() {
    let b = bench(&[]);
    let args = json!({"urls": ["https://a.example/x", "https://b.example/"]});
    let hosts: Vec<String> = WebExtract
        .access(&args, &b.cx)
        .unwrap()
        .into_iter()
        .map(|access| match access {
            Access::Net { host, .. } => host,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(hosts, ["a.example", "b.example"]);
    let many: Vec<String> = (0..9).map(|n| format!("https://a.example/{n}")).collect();
    for (urls, why) in [(json!([]), "is empty"), (json!(many), "at most 8")] {
        let error = WebExtract.access(&json!({"urls": urls}), &b.cx).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!((INFO.target)(&args), "https://a.example/x and 1 more");
}
