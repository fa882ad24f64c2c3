//! The HTTP client for servers of the revision 2025-03-26, which may answer with a list of messages: the library's own client
//! reads one message from a body of JSON. All other requests are those of the library.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};
use tiller_http::read;

use super::client::{Event, Failed, Headers};
use crate::bounds::batch;
use crate::oauth::parameter;
use crate::read::words::line;

/// The revision of the protocol with lists.
const REVISION: &str = "2025-03-26";
/// The header that names a session, and the one that names the revision.
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Headers that requests have by themselves.
const OWN: [&str; 3] = ["accept", SESSION, "last-event-id"];

/// The client.
#[derive(Clone)]
pub(super) struct Lists(pub(super) reqwest::Client);

impl Lists {
    /// Posts a message as the library does, and reads an answer that may be a list.
    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        (token, headers): (Option<String>, Headers),
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        if let Some(name) = headers.keys().find(|name| OWN.contains(&name.as_str())) {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        let request = self.0.post(uri).header(ACCEPT, "text/event-stream, application/json").json(message);
        let request = session.into_iter().fold(request, |request, id| request.header(SESSION, id));
        let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
        let response = request.headers(headers.into_iter().collect()).send().await?;
        let (status, about) = (response.status(), response.headers());
        if let Some(refusal) = refusal(status, about) {
            return Err(refusal);
        }
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session.is_some() => return Err(StreamableHttpError::SessionExpired),
            _ => {}
        }
        let named = about.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let kind = media(about);
        let is_json = kind == "application/json";
        if !status.is_success() {
            let error = failure(response, is_json, limits).await?;
            return Ok(StreamableHttpPostResponse::Json(error, named));
        }
        if kind == "text/event-stream" {
            return Ok(StreamableHttpPostResponse::Sse(events(response, limits.max_sse_event_size), named));
        }
        let waits = matches!(message, ClientJsonRpcMessage::Request(_));
        if !is_json && waits {
            return Err(StreamableHttpError::UnexpectedContentType((!kind.is_empty()).then_some(kind)));
        }
        if !is_json {
            // Nothing of the answer is needed.
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let most = limits.max_json_response_size;
        let (body, more) = read(response, most).await?;
        if more {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: most });
        }
        if let Ok(one) = serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            return Ok(StreamableHttpPostResponse::Json(one, named));
        }
        match batch(&body) {
            Some(messages) => Ok(StreamableHttpPostResponse::Sse(each(&messages), named)),
            None if !waits => Ok(StreamableHttpPostResponse::Accepted),
            None => {
                let text = line(&String::from_utf8_lossy(&body), 200);
                Err(StreamableHttpError::UnexpectedServerResponse(
                    format!("no message, or too many in a list: {text}").into(),
                ))
            }
        }
    }
}

/// The error of the protocol in the body of an answer that is no success. As in the library, a refused login is none: the call
/// is made again with another token.
///
/// # Errors
/// The status, with the beginning of the body; all answers without such an error.
async fn failure(
    response: reqwest::Response,
    is_json: bool,
    limits: StreamableHttpResponseLimits,
) -> Result<ServerJsonRpcMessage, Failed> {
    let status = response.status();
    let is_read = is_json
        && !matches!(
            status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
        );
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let later = response.headers().get(RETRY_AFTER).and_then(|time| time.to_str().ok()).map(str::to_owned);
    let most = if is_read { limits.max_json_response_size } else { limits.max_error_response_size };
    let (body, more) = match is_busy && !is_read {
        true => (Vec::new(), true),
        // The status counts, also where the body cannot be read.
        false => read(response, most).await.unwrap_or_default(),
    };
    if is_read
        && !more
        && let Ok(error @ ServerJsonRpcMessage::Error(_)) =
            serde_json::from_slice::<ServerJsonRpcMessage>(&body)
    {
        return Ok(error);
    }
    if is_busy {
        return Err(HttpStatusError::new(status.as_u16(), later).into());
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(limits.max_error_response_size)]);
    Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {text}").into()))
}

/// The refusal of a login, with the reason that the server gives; `None`: the answer is none.
fn refusal(status: StatusCode, about: &HeaderMap) -> Option<Failed> {
    let challenge = String::from_utf8_lossy(about.get(WWW_AUTHENTICATE)?.as_bytes()).into_owned();
    match status {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        StatusCode::FORBIDDEN => {
            let scope = parameter(&challenge, "scope");
            Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, scope)))
        }
        _ => None,
    }
}

/// The kind of a body, without its parameters; empty: it is not named.
fn media(about: &HeaderMap) -> String {
    let kind = about.get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
    kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Messages, one a line, as events.
fn each(messages: &[u8]) -> BoxStream<'static, Event> {
    let messages = String::from_utf8_lossy(messages);
    let event = |line: &str| Ok(Sse { data: Some(line.to_owned()), ..Sse::default() });
    stream::iter(messages.lines().map(event).collect::<Vec<_>>()).boxed()
}

/// The events of an answer. One of more than `most` bytes ends them.
fn events(response: reqwest::Response, most: usize) -> BoxStream<'static, Event> {
    let (mut of_event, mut of_line, mut over) = (0, 0, false);
    let pieces = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        for byte in piece.iter().filter(|byte| **byte != b'\r') {
            (of_event, of_line) = match (*byte, of_line) {
                (b'\n', 0) => (0, 0),
                (b'\n', _) => (of_event + 1, 0),
                _ => (of_event + 1, of_line + 1),
            };
            over |= of_event > most;
        }
        if over { Err(std::io::Error::other("an event of the server is too long")) } else { Ok(piece) }
    });
    SseStream::from_bytes_stream(pieces).boxed()
}

impl StreamableHttpClient for Lists {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        if headers
            .get(&HeaderName::from_static(VERSION))
            .is_some_and(|revision| revision.as_bytes() == REVISION.as_bytes())
        {
            return self.post(&uri, &message, session.as_deref(), (token, headers), limits).await;
        }
        self.0.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Event>, Failed> {
        self.0.get_stream(uri, session, last, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Event>, Failed> {
        self.0.get_stream_with_max_sse_event_size(uri, session, last, token, headers, most).await
    }
}

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
