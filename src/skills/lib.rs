//! Skills: folders with a `SKILL.md` that say how a kind of task is done, and the packs that bring them.
//!
//! It may use `protocol`, `fs`, `config`, `store` and `tool`. What is not here: which of them a model sees (`engine`), and
//! whether a person agrees to a change (`permit`).
