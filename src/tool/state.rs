//! What tools keep between the calls of a session: one field per tool that needs it. Dropping it ends
//! every process that it owns.

/// Shared state of a session's tools.
#[derive(Default)]
pub struct ToolState {
    /// The HTTP client of `web_fetch`, made at its first call.
    pub web: crate::web::WebState,
    /// The browser and its tabs.
    pub browser: crate::browser::BrowserState,
    /// Shells and background processes.
    pub shells: crate::shell::ShellPool,
    /// Scripts that keep variables.
    pub code: crate::code::CodeSessions,
}
