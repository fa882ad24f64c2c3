//! Tools that look back: what was said and done before, in this session and others.

mod session_search;

pub use session_search::SessionSearch;
