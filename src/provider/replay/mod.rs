//! Recordings of requests and replies, and replaying them.

pub mod record;
pub(crate) mod redact;

use std::sync::Arc;

use crate::codec::format::ApiFormat;

/// Plays a recording back.
pub(crate) const FORMAT: ApiFormat = ApiFormat::local("replay", |of| {
    let path = of.recording().ok_or("a replay needs `recording`, the file to play back")?;
    Ok(Arc::new(record::Replay::open(of.name, path, false, of.redact.clone())?))
})
.reads_recording();
