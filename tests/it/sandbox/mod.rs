//! The sandbox with the whole program: what gets out of it, and what works in it.

#[cfg(target_os = "linux")]
mod battery;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
mod hostile_session;
#[cfg(target_os = "linux")]
mod injections;
mod screen;
#[cfg(target_os = "linux")]
mod scripts;
#[cfg(target_os = "linux")]
mod witness;
