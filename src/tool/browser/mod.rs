//! Tools that drive a browser: a Chromium of this machine over a pipe, or one elsewhere over a WebSocket.
//!
//! | folder | its job |
//! | --- | --- |
//! | `cdp` | the DevTools protocol |
//! | `chromium` | finding, starting and ending a browser of this machine |
//! | `outlet` | which requests and connections are made: the proxy that the browser goes through |
//! | `page` | one tab: its state, its requests, acting on it |
//! | `snapshot` | a page as lines of text with references |
//! | `lease` | which agent has which tabs |
//! | `tabs` | which tabs the browser reports, and whose they are |
//! | `download`, `upload` | files from pages and for pages |
//! | `orphans` | downloads that no page has reported |
//! | `report` | what a call tells the model of the page |
//! | `tools` | the eleven tools |
//!
//! A session has one browser, started by the first call and ended with the session. Each agent has tabs of its own, with
//! cookies of their own, so that no two agents act on one page.

mod cdp;
mod chromium;
mod download;
mod lease;
mod orphans;
mod outlet;
mod page;
mod recording;
mod report;
mod settings;
mod snapshot;
mod state;
mod tabs;
#[cfg(test)]
mod tests;
mod tools;
mod upload;

pub use settings::BrowserSettings;
pub use state::BrowserState;
pub use tools::tools;
