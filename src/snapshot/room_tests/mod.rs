//! The room as its callers see it, and as kills, full disks and other people's hands treat it.

mod basics;
mod calls;
mod collecting;
mod covered;
mod figures;
mod git;
pub(crate) mod kills;
mod many;
mod odd;
mod protected;
mod random;
mod scale;
pub(crate) mod world;
