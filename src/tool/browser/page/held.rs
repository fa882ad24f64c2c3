//! A pressed button of the mouse, which is released in any case.

use std::sync::Arc;

use super::Page;
use super::act::event;
use super::element::Point;

/// A pressed button. Dropped before it was released, by an error or since the call was stopped, it is released where it was
/// pressed: the next call would drag otherwise.
pub(super) struct Held<'a> {
    page: &'a Page,
    at: Point,
    button: &'static str,
    count: u32,
    over: bool,
}

impl<'a> Held<'a> {
    pub(super) async fn press(
        page: &'a Page,
        at: Point,
        button: &'static str,
        count: u32,
    ) -> Result<Self, String> {
        let held = Self { page, at, button, count, over: false };
        page.mouse("mousePressed", at, button, count).await?;
        Ok(held)
    }

    pub(super) async fn release(mut self, at: Point) -> Result<(), String> {
        self.over = true;
        self.page.mouse("mouseReleased", at, self.button, self.count).await
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let (cdp, session) = (Arc::clone(&self.page.cdp), self.page.session.clone());
        let release = event("mouseReleased", self.at, self.button, self.count);
        // A runtime that is gone has no browser.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { cdp.post(Some(&session), "Input.dispatchMouseEvent", release).await });
        }
    }
}
