//! Errors of the SDK in words: no names of types, one line each, nothing that could act on a terminal.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};
use tiller_tool::foreign::seen;
use tiller_tool::text::visible;

/// Maximum number of characters of an error.
const LONGEST: usize = 500;

/// Text of a server or a library in one line of at most `most` characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let one = seen(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let one = visible(&one);
    let mut cut: String = one.chars().take(most).collect();
    if cut.len() < one.len() {
        cut.push('…');
    }
    cut
}

/// Why a request failed.
pub(crate) fn of_request(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => said(&error.message, error.code.0),
        ServiceError::TransportSend(error) => of_cause(error.error.as_ref()),
        ServiceError::TransportClosed => "the connection ended".into(),
        ServiceError::UnexpectedResponse => "the answer has a form that the protocol does not have".into(),
        ServiceError::Cancelled { .. } => "it was stopped".into(),
        ServiceError::Timeout { timeout } => format!("no answer for {} s", timeout.as_secs()),
        ServiceError::InputRequiredRoundsExceeded { max_rounds } => {
            format!("it asked for input more than {max_rounds} times")
        }
        ServiceError::SubscriptionLagged { .. } => "it sent messages faster than they could be read".into(),
        other => of_cause(other),
    }
}

/// Why there is no connection.
pub(crate) fn of_start(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_start(fallback),
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "its first answer is none of the protocol".into()
        }
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "its first answer belongs to no request".into()
        }
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection before it answered".into(),
        ClientInitializeError::TransportError { error, .. } => of_cause(error.error.as_ref()),
        ClientInitializeError::JsonRpcError(error) => said(&error.message, error.code.0),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let theirs: Vec<String> =
                server_supported.iter().take(8).map(|v| line(&v.to_string(), 20)).collect();
            format!("it speaks only revisions of the protocol that Tiller does not: {}", theirs.join(", "))
        }
        ClientInitializeError::NoPreferredProtocolVersion => "no revision of the protocol was named".into(),
        ClientInitializeError::Cancelled => "it was stopped".into(),
        other => of_cause(other),
    }
}

/// Why there are no tokens.
pub(crate) fn of_login(error: &AuthError) -> String {
    let text = match error {
        AuthError::AuthorizationRequired => "the server wants you to log in".to_owned(),
        AuthError::AuthorizationFailed(why) => format!("the login was refused: {why}"),
        AuthError::TokenExchangeFailed(why) => format!("the server gave no token for the login: {why}"),
        AuthError::TokenRefreshFailed(why) => format!("the token could not be renewed: {why}"),
        AuthError::TokenRefreshRejected(why) => format!("the server renews the token no more: {why}"),
        AuthError::CredentialStoreError(why) => format!("the tokens could not be kept: {why}"),
        AuthError::HttpError(error) => of_http(error),
        AuthError::OAuthError(why) => format!("the login failed: {why}"),
        AuthError::MetadataError(why) => {
            format!("what the server says about its login cannot be used: {why}")
        }
        AuthError::DiscoveryRequestFailed { url, source } => {
            format!("{url} could not be read: {}", of_cause(source.as_ref()))
        }
        AuthError::ProtectedResourceMetadataInvalid { url, reason } => {
            format!("what {url} says about the login cannot be used: {reason}")
        }
        AuthError::AuthorizationServersUnavailable { resource_metadata_url, authorization_servers } => {
            format!(
                "{resource_metadata_url} names servers for the login, but none of them says how: {}",
                authorization_servers.join(", ")
            )
        }
        AuthError::PkceUnsupported => {
            "the server's login has no code challenge (S256), which is needed".into()
        }
        AuthError::UrlError(error) => format!("an address of the login is not valid: {error}"),
        AuthError::NoAuthorizationSupport => "the server has no login".into(),
        AuthError::InvalidTokenType(kind) => {
            format!("the server gave a token of a kind that is not known: {kind}")
        }
        AuthError::TokenExpired => "the login is over".into(),
        AuthError::InvalidScope(scope) => {
            format!("the server refuses the rights that were asked for: {scope}")
        }
        AuthError::RegistrationFailed(why) => {
            format!(
                "the server registers no client ({why}); set client_id in [mcp.NAME] to one of its operator"
            )
        }
        AuthError::InsufficientScope { required_scope, .. } => {
            format!("the server wants more rights than you logged in with: {required_scope}")
        }
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => format!(
            "the login was answered by another server than the one that was asked: {received_issuer} in place of {expected_issuer}"
        ),
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            format!("the answer to the login does not say that it comes from {expected_issuer}")
        }
        AuthError::ClientCredentialsError(why) => format!("the server refuses the client: {why}"),
        AuthError::InternalError(why) => format!("the login failed: {why}"),
        other => of_cause(other),
    };
    line(&without_types(&text), LONGEST)
}

/// A server's own words.
fn said(message: &str, code: i32) -> String {
    match line(message, LONGEST) {
        empty if empty.is_empty() => format!("it answered with error {code} and no words"),
        words => words,
    }
}

/// Why an HTTP request failed, without its address.
pub(crate) fn of_http(error: &reqwest::Error) -> String {
    let deepest = || {
        let (mut last, mut cause) = (String::new(), error.source());
        while let Some(inner) = cause {
            last = inner.to_string();
            cause = inner.source();
        }
        line(&without_types(&last), LONGEST)
    };
    match () {
        () if error.is_timeout() => "no connection within the time limit".into(),
        () if error.is_connect() => format!("no connection: {}", deepest()),
        () if error.is_status() => {
            format!("HTTP {}", error.status().map_or_else(String::new, |status| status.as_u16().to_string()))
        }
        () if error.is_decode() => "an answer is not what its headers say".into(),
        () => match deepest() {
            empty if empty.is_empty() => "the request could not be sent".into(),
            why => format!("the connection failed: {why}"),
        },
    }
}

fn of_streamable(error: &StreamableHttpError<reqwest::Error>) -> String {
    match error {
        StreamableHttpError::Client(error) => of_http(error),
        StreamableHttpError::Io(error) => of_cause(error),
        StreamableHttpError::HttpStatus(status) => of_cause(status),
        StreamableHttpError::Auth(error) => of_login(error),
        StreamableHttpError::UnexpectedEndOfStream => "the answer ended before its end".into(),
        StreamableHttpError::ResponseBodyTooLarge { max_size } => {
            format!("the answer has more than {} MB", max_size >> 20)
        }
        StreamableHttpError::UnexpectedContentType(kind) => match kind {
            Some(kind) => format!("it answered with {}, which is none of the protocol", line(kind, 60)),
            None => "it answered with nothing of the protocol".into(),
        },
        StreamableHttpError::UnexpectedServerResponse(why) => {
            format!("it answered with what is none of the protocol: {}", line(&without_types(why), 200))
        }
        StreamableHttpError::Sse(_) => "its stream of events cannot be read".into(),
        StreamableHttpError::ServerDoesNotSupportSse => "it has no stream of events".into(),
        StreamableHttpError::ServerDoesNotSupportDeleteSession => "it ends no sessions".into(),
        StreamableHttpError::Deserialize(_) => "an answer is no JSON of the protocol".into(),
        StreamableHttpError::TransportChannelClosed | StreamableHttpError::TokioJoinError(_) => {
            "the connection ended".into()
        }
        StreamableHttpError::MissingSessionIdInResponse => "it named no session".into(),
        StreamableHttpError::AuthRequired(_) => "it wants you to log in".into(),
        StreamableHttpError::InsufficientScope(_) => "it wants more rights than you logged in with".into(),
        StreamableHttpError::ReservedHeaderConflict(name) => {
            format!("the header {} is the protocol's own and cannot be set", line(name, 60))
        }
        StreamableHttpError::SessionExpired => "it has ended the session".into(),
        StreamableHttpError::SessionRecoveryTimeout => {
            "it ended the session and did not open another one in time; what was asked may have been done"
                .into()
        }
        StreamableHttpError::ReinitializationFailed(error) => said(&error.message, error.code.0),
        StreamableHttpError::ControlRequestTimeout => "it did not take a message in time".into(),
        _ => "the connection failed".into(),
    }
}

/// An error of any kind: that of its causes which has words, else the deepest one, without names of types.
fn of_cause(error: &(dyn Error + 'static)) -> String {
    let (mut deepest, mut next) = (error, Some(error));
    while let Some(inner) = next {
        if let Some(error) = inner.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return of_streamable(error);
        }
        if let Some(error) = inner.downcast_ref::<HttpStatusError>() {
            return format!("HTTP {}", error.status);
        }
        if let Some(error) = inner.downcast_ref::<reqwest::Error>() {
            return of_http(error);
        }
        if let Some(error) = inner.downcast_ref::<AuthError>() {
            return of_login(error);
        }
        deepest = inner;
        next = inner.source();
    }
    match line(&without_types(&deepest.to_string()), LONGEST) {
        empty if empty.is_empty() => "the connection failed".into(),
        words => words,
    }
}

/// Words without paths of types: they say nothing to a person.
fn without_types(text: &str) -> String {
    let kept: Vec<&str> = text.split_whitespace().filter(|word| !is_path(word)).collect();
    kept.join(" ").trim_matches([':', ',', ' ']).to_owned()
}

/// Returns true for a path of a type, as Rust writes it: an address or a name with colons is none.
fn is_path(word: &str) -> bool {
    let mark = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let path = word.trim_start_matches(mark).split('<').next().unwrap_or_default().trim_end_matches(mark);
    let name =
        |part: &str| part.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) && !part.contains(mark);
    path.contains("::") && path.split("::").all(name)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion, RequestId, ServerResult};
    use rmcp::transport::DynamicTransportError;
    use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};

    use super::*;

    type Streamable = StreamableHttpError<reqwest::Error>;

    fn hostile() -> String {
        "core::option::Option<a::B> \u{1b}[2Jline one\nline two\r\n\u{202e}x".repeat(40)
    }

    /// Words of a server, which are its own: they are bounded and cannot act, and keep their colons.
    fn theirs() -> String {
        "\u{1b}[2Jline one\nline two\r\n\u{202e}x".repeat(40)
    }

    fn data() -> ErrorData {
        ErrorData::new(ErrorCode(-32000), theirs(), None)
    }

    fn http_error() -> reqwest::Error {
        reqwest::Client::new().get("http://[").build().unwrap_err()
    }

    fn streamable() -> Vec<Streamable> {
        tiller_http::install_crypto();
        let challenge = || format!("Bearer error=\"x\", scope=\"{}\"", hostile());
        vec![
            Streamable::Io(std::io::Error::other(hostile())),
            Streamable::Client(http_error()),
            Streamable::UnexpectedEndOfStream,
            Streamable::UnexpectedServerResponse(Cow::Owned(hostile())),
            Streamable::ResponseBodyTooLarge { max_size: 4 << 20 },
            Streamable::UnexpectedContentType(Some(theirs())),
            Streamable::UnexpectedContentType(None),
            Streamable::ServerDoesNotSupportSse,
            Streamable::ServerDoesNotSupportDeleteSession,
            Streamable::Deserialize(serde_json::from_str::<u8>("x").unwrap_err()),
            Streamable::TransportChannelClosed,
            Streamable::MissingSessionIdInResponse,
            Streamable::Auth(AuthError::AuthorizationFailed(hostile())),
            Streamable::AuthRequired(AuthRequiredError::new(challenge())),
            Streamable::InsufficientScope(InsufficientScopeError::new(challenge(), None)),
            Streamable::ReservedHeaderConflict(theirs()),
            Streamable::SessionExpired,
            Streamable::SessionRecoveryTimeout,
            Streamable::ReinitializationFailed(data()),
            Streamable::ControlRequestTimeout,
        ]
    }

    fn transport(error: impl Error + Send + Sync + 'static) -> DynamicTransportError {
        let name = "rmcp::transport::worker::WorkerTransport<reqwest::async_impl::client::Client>";
        DynamicTransportError::from_parts(name, std::any::TypeId::of::<()>(), Box::new(error))
    }

    /// Every error that the SDK can give, with hostile words inside.
    fn all() -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let url = || reqwest::Url::parse("https://a.example/x").unwrap();
        for error in streamable() {
            all.push(of_request(&ServiceError::TransportSend(transport(error))));
        }
        for error in streamable() {
            let context = "send initialize request".into();
            all.push(of_start(&ClientInitializeError::TransportError { error: transport(error), context }));
        }
        all.extend(
            [
                ServiceError::McpError(data()),
                ServiceError::McpError(ErrorData::new(ErrorCode(-32601), "", None)),
                ServiceError::TransportSend(transport(std::io::Error::other(hostile()))),
                ServiceError::TransportClosed,
                ServiceError::UnexpectedResponse,
                ServiceError::SubscriptionLagged { capacity: 4 },
                ServiceError::Cancelled { reason: Some(hostile()) },
                ServiceError::Timeout { timeout: std::time::Duration::from_secs(7) },
                ServiceError::InputRequiredRoundsExceeded { max_rounds: 4 },
            ]
            .iter()
            .map(of_request),
        );
        let id = || RequestId::Number(1);
        let closed = || ClientInitializeError::ConnectionClosed(hostile());
        all.extend(
            [
                ClientInitializeError::ExpectedInitResponse(None),
                ClientInitializeError::ExpectedInitResult(Some(ServerResult::empty(()))),
                ClientInitializeError::ConflictInitResponseId(id(), id()),
                ClientInitializeError::UncorrelatedErrorResponse { expected: id(), received: id() },
                closed(),
                ClientInitializeError::JsonRpcError(data()),
                ClientInitializeError::NoCompatibleProtocolVersion {
                    client_supported: vec![ProtocolVersion::V_2026_07_28],
                    server_supported: vec![ProtocolVersion::V_2026_07_28],
                },
                ClientInitializeError::NoPreferredProtocolVersion,
                ClientInitializeError::Cancelled,
                ClientInitializeError::LegacyFallbackFailed {
                    discover: Box::new(closed()),
                    fallback: Box::new(closed()),
                },
            ]
            .iter()
            .map(of_start),
        );
        all.extend(
            [
                AuthError::AuthorizationRequired,
                AuthError::AuthorizationFailed(hostile()),
                AuthError::TokenExchangeFailed(hostile()),
                AuthError::TokenRefreshFailed(hostile()),
                AuthError::TokenRefreshRejected(hostile()),
                AuthError::CredentialStoreError(hostile()),
                AuthError::HttpError(http_error()),
                AuthError::OAuthError(hostile()),
                AuthError::MetadataError(hostile()),
                AuthError::AuthorizationServersUnavailable {
                    resource_metadata_url: url(),
                    authorization_servers: vec![hostile()],
                },
                AuthError::PkceUnsupported,
                AuthError::NoAuthorizationSupport,
                AuthError::InternalError(hostile()),
                AuthError::InvalidTokenType(hostile()),
                AuthError::TokenExpired,
                AuthError::InvalidScope(hostile()),
                AuthError::RegistrationFailed(hostile()),
                AuthError::InsufficientScope { required_scope: hostile(), upgrade_url: None },
                AuthError::AuthorizationServerMismatch {
                    expected_issuer: hostile(),
                    received_issuer: hostile(),
                },
                AuthError::AuthorizationServerMissingIssuer { expected_issuer: hostile() },
                AuthError::ClientCredentialsError(hostile()),
            ]
            .iter()
            .map(of_login),
        );
        all
    }

    #[test]
    fn no_error_has_names_of_types_marks_of_lines_or_anything_that_acts() {
        for words in all() {
            assert!(!words.is_empty() && words.chars().count() <= LONGEST + 60, "{words}");
            for mark in [
                "::",
                "\\n",
                "rmcp",
                "WorkerTransport",
                "Mcp error",
                "Some(",
                "JSON-RPC error",
                "Transport [",
            ] {
                assert!(!words.contains(mark), "{mark}: {words}");
            }
            assert!(words.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{words:?}");
            let first = words.chars().next().unwrap();
            assert!(!first.is_uppercase() || words.starts_with("HTTP "), "{words}");
            assert!(!words.ends_with('.'), "{words}");
        }
    }

    #[test]
    fn only_paths_of_types_are_taken_out() {
        for (text, kept) in [
            ("Client error: rmcp::transport::Worker<reqwest::Client>: refused", "Client error: refused"),
            ("(core::option::Option<a::B, c::D>) gone", "gone"),
            ("http://[::1]:3000/mcp is not there", "http://[::1]:3000/mcp is not there"),
            ("arn:aws:iam::1:role/x may not", "arn:aws:iam::1:role/x may not"),
            ("https://a.example/x::y", "https://a.example/x::y"),
        ] {
            assert_eq!(without_types(text), kept);
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_named_by_what_happened() {
        let refused = std::io::Error::other("Connection refused");
        assert_eq!(of_request(&ServiceError::TransportSend(transport(refused))), "Connection refused");
    }
}
