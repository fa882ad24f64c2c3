//! Locks of plain data.

pub(crate) use tiller_protocol::lock;
