//! Limits of output and time.

use std::time::Duration;

use crate::code::CodeLimits;
use crate::shell::Bounds;

/// Limits of output and time.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a result that the model sees.
    pub output_bytes: usize,
    /// Bytes of one page of `read_file`.
    pub page_bytes: usize,
    /// Bytes of a spill file.
    pub spill_bytes: u64,
    /// Default and longest time of a command.
    pub command: Duration,
    pub command_max: Duration,
    /// From TERM to KILL.
    pub grace: Duration,
    /// What a command may take of the machine.
    pub bounds: Bounds,
    /// Files that a command may lose without a question.
    pub deletions: usize,
    /// Of scripts.
    pub code: CodeLimits,
    /// Bytes of one fetched page.
    pub fetch_bytes: u64,
    pub fetch_redirects: usize,
    /// Longest time of one fetch, redirects included.
    pub fetch_time: Duration,
    /// Whether private addresses may be fetched.
    pub fetch_private: bool,
    /// Fetch through the system's proxy (`HTTPS_PROXY`, ...). The proxy then finds the addresses itself, so the
    /// check of names is only as good as the proxy.
    pub fetch_proxy: bool,
    /// Where `web_search` searches.
    pub search: crate::web::SearchSettings,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output_bytes: 30_000,
            page_bytes: 50_000,
            spill_bytes: 64 << 20,
            command: Duration::from_secs(120),
            command_max: Duration::from_secs(3600),
            grace: Duration::from_secs(5),
            bounds: Bounds::default(),
            deletions: crate::shell::DELETIONS,
            code: CodeLimits::default(),
            fetch_bytes: 5 << 20,
            fetch_redirects: 5,
            fetch_time: Duration::from_secs(30),
            fetch_private: false,
            fetch_proxy: false,
            search: crate::web::SearchSettings::default(),
        }
    }
}
