//! The room as its callers see it, and as kills, full disks and other people's hands treat it.

mod basics;
mod bench;
mod collecting;
mod git;
mod kills;
mod random;
mod scale;
mod world;
