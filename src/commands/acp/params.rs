//! Parameters of requests.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tiller_rpc::{Error, NOT_FOUND};

/// Reads the parameters of a method.
///
/// # Errors
/// When they do not fit.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params)
        .map_err(|e| Error::invalid_params(format!("the parameters cannot be read: {e}")))
}

/// They name a session that does not exist.
pub(super) fn no_session(id: &str) -> Error {
    let id: String = id.chars().filter(|c| !c.is_control()).take(100).collect();
    Error::new(NOT_FOUND, format!("there is no session '{id}'"))
}
