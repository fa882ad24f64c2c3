//! A Chromium of this machine: finding its program, starting it, ending it.

mod find;
mod launch;
mod profile;

pub(crate) use find::program;
pub(crate) use launch::{Launch, Running, profile_folder, start};
