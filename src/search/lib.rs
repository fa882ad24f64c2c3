//! Search over sessions, memory, learnings and skills: keywords and vectors, joined into one order.
//!
//! | module | holds |
//! | --- | --- |
//! | `finder` | [`Finder`]: one search, and the work in the background that keeps the index up to date |
//! | `fuse` | the order of words and the order of meaning as one |
//! | `near` | words that mean nearly the same, by a table |
//! | `documents` | what is not a session: memory, learnings, skills, as a [`Source`] lists them |
//! | `embedder` | which model makes vectors, and how they are stored |
//! | `endpoint` | a server with the embeddings API of OpenAI |
//! | `table` | a local table of vectors for pieces of words, and its import |
//!
//! Without an endpoint or a table there are keywords only, and a page says so ([`tiller_protocol::SearchMeaning`]).
//!
//! It may use `protocol`, `http`, `config` and `store`. What is not here: the full-text index (`store`), and the tools and screens
//! that ask (`tool`, `tui`).

pub mod documents;
pub mod embedder;
pub mod endpoint;
pub mod finder;
mod fuse;
mod near;
#[cfg(test)]
mod room_tests;
pub mod table;
#[cfg(test)]
mod testing;

pub use documents::rank::Ranked;
pub use documents::{Document, Source};
pub use embedder::Embedder;
pub use endpoint::Endpoint;
pub use finder::Finder;
pub use table::Table;
