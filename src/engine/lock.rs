//! A lock for plain data: a panic of another holder does not spread.

pub(crate) use tiller_protocol::lock;
