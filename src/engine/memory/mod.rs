//! Memory across sessions: where an entry that an agent writes comes from, the person's changes, and following the branches of
//! the session. The files themselves are in the room `memory`.
//!
//! | module | holds |
//! | --- | --- |
//! | `origin` | where an entry comes from: what the agent has read, and whose words it has |
//! | `commands` | what the user changes, and what the browser lists |
//! | `branches` | memory and learnings follow the session to another place of its tree |
//! | `condense` | entries over a file's budget move into its archive |
//! | `save` | the request to keep what a session learned, before a compaction and at its end |
//! | `claim` | of several windows one takes the chance of a session |
//! | `late` | that request for sessions that ended without it, at the next start |
//! | `unconfined`, `unconfined_programs` | what programs that nothing confines write into memory files |
//! | `watching` | reports changes to clients that list memory |
//! | `msg`, `handle` | messages of this room to the engine's loop, and what they do |

pub(crate) mod branches;
pub(crate) mod claim;
pub(crate) mod commands;
pub(crate) mod condense;
pub(crate) mod handle;
pub(crate) mod late;
pub(crate) mod msg;
pub(crate) mod origin;
pub(crate) mod save;
pub(crate) mod unconfined;
pub(crate) mod unconfined_programs;
pub(crate) mod watching;
