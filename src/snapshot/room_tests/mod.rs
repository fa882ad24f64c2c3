//! Tests of the whole room through its public interface, with kills, full disks and concurrent writers.

mod basics;
mod calls;
mod collecting;
mod covered;
mod figures;
mod git;
mod ignored;
pub(crate) mod kills;
mod many;
mod mixed;
mod odd;
mod protected;
mod random;
mod scale;
pub(crate) mod world;
