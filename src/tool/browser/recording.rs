//! The actions of an agent as a test of Playwright.

use std::fmt::Write;

use serde_json::json;

use super::snapshot::{RefElement, Role};

/// Actions that are kept.
const ACTIONS: usize = 1_000;

/// What was done, in order.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// Lines of the test's body.
    lines: Vec<String>,
    /// Actions that were dropped.
    dropped: usize,
}

impl Recording {
    fn add(&mut self, line: String) {
        if self.lines.len() < ACTIONS {
            self.lines.push(line);
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn goto(&mut self, url: &str) {
        self.add(format!("await page.goto({});", json!(url)));
    }

    pub(super) fn back(&mut self) {
        self.add("await page.goBack();".into());
    }

    pub(super) fn press(&mut self, key: &str) {
        self.add(format!("await page.keyboard.press({});", json!(key)));
    }

    pub(super) fn click_at(&mut self, x: f64, y: f64) {
        self.add(format!("await page.mouse.click({x}, {y});"));
    }

    /// `done`: the call on the element, such as `click()`.
    pub(super) fn on(&mut self, element: &RefElement, done: &str) {
        self.add(format!("await {}.{done};", locator(element)));
    }

    pub(super) fn drag(&mut self, from: &RefElement, to: &RefElement) {
        self.add(format!("await {}.dragTo({});", locator(from), locator(to)));
    }

    /// The whole test; `None`: nothing was done.
    pub(super) fn script(&self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        let mut script = String::from(
            "import { test } from '@playwright/test';\n\ntest('recorded', async ({ page }) => {\n",
        );
        for line in &self.lines {
            // A string takes what it is given.
            let _ = writeln!(script, "  {line}");
        }
        if self.dropped > 0 {
            let _ = writeln!(script, "  // {} more actions were not recorded", self.dropped);
        }
        script.push_str("});\n");
        Some(script)
    }
}

/// The element by its role and name; one without a role, by its text; one with a role that only Chromium has (it begins with a
/// capital, such as `Date`), by its label.
fn locator(element: &RefElement) -> String {
    if matches!(element.role, Role::Clickable | Role::Shape) {
        return format!("page.getByText({})", json!(element.name));
    }
    if element.name.is_empty() {
        return format!("page.getByRole({})", json!(element.role.word()));
    }
    if element.role.word().starts_with(|c: char| c.is_ascii_uppercase()) {
        return format!("page.getByLabel({})", json!(element.name));
    }
    format!("page.getByRole({}, {{ name: {} }})", json!(element.role.word()), json!(element.name))
}
