//! The HTTP client of a connection. The token of a login without a person goes with each request, another one where it is refused,
//! and an event that is a list of messages (revision 2025-03-26) is taken apart.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::Sse;

use crate::bounds::{MESSAGE, batch};
use crate::oauth::Tokens;

pub(super) type Failed = StreamableHttpError<reqwest::Error>;
pub(super) type Event = Result<Sse, sse_stream::Error>;
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

/// A client of the library with both.
#[derive(Clone)]
pub(super) struct Client<C> {
    pub(super) inner: C,
    /// `None`: no login, or one that the library handles.
    pub(super) tokens: Option<Arc<Tokens>>,
}

impl<C: Sync> Client<C> {
    /// Runs `call` with a token, once more with another one where the server refuses it.
    async fn authorized<T, F>(
        &self,
        own: Option<String>,
        call: impl Fn(Option<String>) -> F + Send,
    ) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>> + Send,
        T: Send,
    {
        let Some(tokens) = &self.tokens else { return call(own).await };
        let failed = |why| StreamableHttpError::Auth(AuthError::InternalError(why));
        let token = tokens.token(None).await.map_err(failed)?;
        let refused = match call(Some(token.clone())).await {
            Err(refused) if is_refused(&refused) => refused,
            Err(refused @ StreamableHttpError::InsufficientScope(_)) if tokens.may_widen() => refused,
            other => return other,
        };
        let challenge = refused.auth_challenge().unwrap_or_default();
        let other = tokens.token(Some((&token, challenge))).await.map_err(failed)?;
        call(Some(other)).await
    }
}

/// Returns true if the server takes no request with this token. Some do not say in a header what they want instead.
fn is_refused(error: &Failed) -> bool {
    match error {
        StreamableHttpError::AuthRequired(_) => true,
        StreamableHttpError::UnexpectedServerResponse(said) => said.starts_with("HTTP 401"),
        // So it is for a request to listen, or to end the session.
        StreamableHttpError::Client(error) => error.status() == Some(StatusCode::UNAUTHORIZED),
        _ => false,
    }
}

/// The messages of an event, each as an event. The last one has its id: what follows an id was not received yet.
fn apart(event: Event) -> Vec<Event> {
    let Ok(event) = event else { return vec![event] };
    let messages = event.data.as_deref().and_then(|data| batch(data.as_bytes()));
    let Some(messages) = messages else { return vec![Ok(event)] };
    let messages = String::from_utf8_lossy(&messages);
    let lines: Vec<&str> = messages.lines().collect();
    let last = lines.len().saturating_sub(1);
    let one = |(at, line): (usize, &&str)| {
        Ok(Sse {
            event: event.event.clone(),
            data: Some((*line).to_owned()),
            id: event.id.clone().filter(|_| at == last),
            retry: event.retry,
        })
    };
    lines.iter().enumerate().map(one).collect()
}

fn all_apart(events: BoxStream<'static, Event>) -> BoxStream<'static, Event> {
    events.flat_map(|event| stream::iter(apart(event))).boxed()
}

impl<C: StreamableHttpClient<Error = reqwest::Error> + Sync> StreamableHttpClient for Client<C> {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        own: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, own, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        own: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let posted = self.authorized(own, |token| {
            let (uri, message, session, headers) =
                (uri.clone(), message.clone(), session.clone(), headers.clone());
            self.inner.post_message_with_response_limits(uri, message, session, token, headers, limits)
        });
        Ok(match posted.await? {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(all_apart(events), session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        own: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.authorized(own, |token| {
            self.inner.delete_session(uri.clone(), session.clone(), token, headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        own: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Event>, Failed> {
        self.get_stream_with_max_sse_event_size(uri, session, last, own, headers, MESSAGE).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        own: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Event>, Failed> {
        let events = self.authorized(own, |token| {
            let (uri, session, last, headers) = (uri.clone(), session.clone(), last.clone(), headers.clone());
            self.inner.get_stream_with_max_sse_event_size(uri, session, last, token, headers, most)
        });
        Ok(all_apart(events.await?))
    }
}

#[cfg(test)]
mod tests {
    use tiller_testkit::{Reply, ScriptServer};

    use super::*;

    /// A token that is refused to a request without a message is replaced as for one with a message.
    #[tokio::test]
    async fn a_token_may_be_refused_to_the_end_of_a_session() {
        for (status, refused) in
            [(401, true), (400, false), (403, false), (404, false), (429, false), (500, false)]
        {
            let server = ScriptServer::with(move |_, _| Reply::status(status));
            let client = super::super::http::client(&server.url()).unwrap();
            let url: Arc<str> = server.url().into();
            let ended = client.delete_session(url.clone(), "s".into(), None, Headers::new()).await;
            let ended = ended.err().unwrap();
            assert_eq!(is_refused(&ended), refused, "{status}: {ended:?}");
            let listens = client.get_stream(url, None, None, None, Headers::new()).await;
            let listens = listens.err().unwrap();
            assert_eq!(is_refused(&listens), refused, "{status}: {listens:?}");
        }
    }

    #[test]
    fn an_event_with_a_list_of_messages_is_one_event_for_each() {
        let event = |data: &str| Sse {
            event: Some("message".into()),
            data: Some(data.into()),
            id: Some("7".into()),
            retry: Some(5),
        };
        let said = |data: &str| -> Vec<(String, Option<String>)> {
            let all = apart(Ok(event(data))).into_iter().map(Result::unwrap);
            all.map(|event| (event.data.unwrap(), event.id)).collect()
        };
        let id = || Some("7".to_owned());
        let (one, two) = (r#"{"jsonrpc":"2.0","id":1}"#, r#"{"jsonrpc":"2.0","id":2}"#);
        assert_eq!(said(&format!(" [{one},\n{two}]")), [(one.into(), None), (two.into(), id())]);
        assert_eq!(said(&format!("[{one}]")), [(one.into(), id())]);
        // All else goes on as it is.
        for other in [one, "[]", "[1]", "[{\"a\":1}]", "[", "x", ""] {
            assert_eq!(said(other), [(other.to_owned(), id())], "{other}");
        }
        let empty = apart(Ok(Sse { data: None, ..event("") }));
        assert!(empty.len() == 1 && empty[0].as_ref().unwrap().data.is_none());
    }
}
