//! The skills that ship with the program: each is tried once by a scripted model, which does what the skill says in a scratch
//! project.
//!
//! A case is a file of `cases/`, named after its skill. `run` must stand in the skill word for word; its words in capitals are
//! replaced by `vars`.
//!
//! `withheld` is about what the user has not agreed to, and about packs.

mod case;
mod shipped;
mod withheld;
