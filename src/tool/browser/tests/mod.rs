//! A real browser on pages of this machine. Where none is installed, the tests say so and pass.

mod dialogs;
mod drags;
mod faults;
mod outlet;
mod pages;
mod remote;
mod site;
mod stopped;
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

/// The reference of the first element of a report that has all of these words in its line. Where a line has several elements, it is
/// the one with the words; those that do not name their role have that of the one before them.
fn reference(report: &str, words: &[&str]) -> String {
    let found = report.lines().find_map(|line| {
        let elements = elements(line);
        let has = |text: &str| words.iter().all(|word| text.contains(word));
        let one = elements.iter().find(|(_, text)| has(text));
        one.or_else(|| elements.first().filter(|_| elements.len() == 1 && has(line)))
            .map(|(name, _)| name.clone())
    });
    found.unwrap_or_else(|| panic!("no element with {words:?} in:\n{report}"))
}

/// The elements of a line: the reference of each, and its text with its role.
fn elements(line: &str) -> Vec<(String, String)> {
    let mut begins: Vec<(usize, usize)> = Vec::new();
    for (at, _) in line.match_indices('e') {
        let digits = line[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let end = at + 1 + digits;
        let alone = (at == 0 || line[..at].ends_with([' ', '[']))
            && (end == line.len() || line[end..].starts_with(' '));
        if digits > 0 && alone {
            begins.push((at, end));
        }
    }
    let (mut role, mut elements) = ("", Vec::new());
    for (n, (at, end)) in begins.iter().enumerate() {
        let text = &line[*end..begins.get(n + 1).map_or(line.len(), |(next, _)| *next)];
        let said = text.trim_start().split(' ').next().unwrap_or_default();
        let inside = line[..*at].ends_with('[');
        role = if inside {
            "link"
        } else if said.starts_with('"') {
            role
        } else {
            said
        };
        elements.push((line[*at..*end].to_owned(), format!("{role} {text}")));
    }
    elements
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
