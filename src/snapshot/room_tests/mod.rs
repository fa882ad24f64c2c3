//! The room as its callers see it, and as kills, full disks and other people's hands treat it.

mod basics;
mod bench;
mod git;
mod kills;
mod random;
mod world;
