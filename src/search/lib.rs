//! Search over sessions, memory, learnings and skills: keywords and vectors, joined into one order.
//!
//! It may use `protocol`, `config` and `store`. What is not here: the full-text index (`store`), and the tools and screens
//! that ask (`tool`, `tui`).
