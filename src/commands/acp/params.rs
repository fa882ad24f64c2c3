//! Parameters of requests.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tiller_rpc::{Error, NOT_FOUND};

/// Parses the parameters of a method.
///
/// # Errors
/// When they are invalid.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params)
        .map_err(|e| Error::invalid_params(format!("the parameters cannot be read: {e}")))
}

/// The error for parameters that name an unknown session.
pub(super) fn no_session(id: &str) -> Error {
    let id: String = id.chars().filter(|c| !c.is_control()).take(100).collect();
    Error::new(NOT_FOUND, format!("there is no session '{id}'"))
}
