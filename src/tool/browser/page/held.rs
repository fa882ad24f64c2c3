//! States of a browser that a call begins and must not leave behind: a pressed button or key, drags that are taken over.

use serde_json::Value;

use super::Page;
use crate::browser::cdp::CdpError;

/// A state of the browser that a call began. Dropped before it was ended, by an error or since the call was stopped, the message
/// that ends it is sent: the next call would go on in that state otherwise.
pub(super) struct Held<'a> {
    page: &'a Page,
    method: &'static str,
    end: Value,
    over: bool,
}

impl<'a> Held<'a> {
    /// Calls `method` with `begin`. With `end` it ends what that begins.
    ///
    /// # Errors
    /// As [`Page::call`].
    pub(super) async fn begin(
        page: &'a Page,
        method: &'static str,
        begin: Value,
        end: Value,
    ) -> Result<Self, CdpError> {
        // Before the call: it may be stopped while the browser has taken it already.
        let held = Self { page, method, end, over: false };
        page.call(method, begin).await?;
        Ok(held)
    }

    /// Ends it.
    ///
    /// # Errors
    /// As [`Page::call`].
    pub(super) async fn end(mut self) -> Result<(), CdpError> {
        let end = std::mem::take(&mut self.end);
        self.end_with(end).await
    }

    /// Ends it with other parameters than those for a call that is stopped.
    ///
    /// # Errors
    /// As [`Page::call`].
    pub(super) async fn end_with(mut self, end: Value) -> Result<(), CdpError> {
        self.over = true;
        self.page.call(self.method, end).await.map(|_| ())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.over {
            let end = std::mem::take(&mut self.end);
            self.page.cdp.post_now(Some(&self.page.session), self.method, end);
        }
    }
}
