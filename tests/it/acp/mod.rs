//! `tiller acp`, driven by a client over standard input and output: with the demo model and with scripted ones.

mod client;
mod crew;
mod ends;
mod questions;
mod servers;
mod sessions;
mod turns;
mod wire;
