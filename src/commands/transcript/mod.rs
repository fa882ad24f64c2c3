//! Sessions as files: `export` writes them for people and other programs, `import` reads transcripts of other programs
//! and sessions of other machines.

pub(crate) mod export;
pub(crate) mod import;
