//! A real browser on pages of this machine. Where none is installed, the tests say so and pass.

mod dialogs;
mod drags;
mod faults;
mod outlet;
mod pages;
mod remote;
mod site;
mod story;
mod tabs;
mod transfer;

use serde_json::{Value, json};

use super::{BrowserSettings, tools};
use crate::Tool;
use crate::testing::Bench;
use site::Site;

/// The tools over a real browser, and a context to call them in.
struct World {
    bench: Bench,
    tools: [&'static dyn Tool; 11],
}

impl World {
    /// `None`: no browser is installed.
    fn new() -> Option<Self> {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut BrowserSettings)) -> Option<Self> {
        let mut settings = BrowserSettings::local("/usr/local/bin:/usr/bin:/bin");
        if settings.program.is_none() {
            eprintln!("skipped: no Chromium is installed");
            return None;
        }
        change(&mut settings);
        Some(Self { bench: Bench::new(), tools: tools(settings) })
    }

    async fn call(&self, name: &str, args: Value) -> String {
        let name = format!("browser_{name}");
        let tool = self.tools.iter().find(|t| t.name() == name).unwrap();
        self.bench.say(*tool, args).await
    }

    async fn open(&self, site: &Site, path: &str) -> String {
        self.call("navigate", json!({"url": site.url(path)})).await
    }

    /// Clicks the element whose line of `page` has these words.
    async fn click(&self, page: &str, words: &[&str]) -> String {
        self.call("click", json!({"ref": reference(page, words)})).await
    }

    async fn end(self) {
        self.bench.cx.state.browser.end().await;
    }
}

/// The reference in the first line of a report that has all of these words.
fn reference(report: &str, words: &[&str]) -> String {
    let line = report.lines().find(|l| words.iter().all(|w| l.contains(w)));
    let line = line.unwrap_or_else(|| panic!("no line with {words:?} in:\n{report}"));
    let found = line
        .split_whitespace()
        .find(|w| w.len() > 1 && w.starts_with('e') && w[1..].chars().all(|c| c.is_ascii_digit()));
    found.unwrap_or_else(|| panic!("no reference in {line:?}")).to_owned()
}

#[test]
fn the_schemas_of_all_tools_cost_at_most_1500_tokens() {
    let specs = tools(BrowserSettings::default()).map(|t| t.spec());
    let bytes: usize = specs
        .iter()
        .map(|s| s.name.len() + s.description.len() + serde_json::to_string(&s.schema).unwrap().len())
        .sum();
    assert!(bytes / 4 <= 1_500, "{bytes} bytes");
    eprintln!("schemas of the browser tools: {bytes} bytes, about {} tokens", bytes / 4);
}
