//! JSON-RPC 2.0 with one message on each line, for both sides: [`external`](../tiller_external/index.html) is a client of
//! agent programs, `tiller acp` a server of editors.
//!
//! | file | its job |
//! | --- | --- |
//! | `lines` | bytes to lines of bounded length |
//! | `message` | a line to a request, notification or response, and back |
//! | `error` | codes, message and data of a refusal |
//!
//! May use: `protocol`. Not here: methods and their parameters, which request waits for which id, and the pipes.

mod error;
mod lines;
mod message;

pub use error::{
    Error, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, PARSE_ERROR,
};
pub use lines::{Line, LineBuffer};
pub use message::{Encoder, Malformed, Message};
