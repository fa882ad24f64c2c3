//! HTTP for servers that the user names in the settings: one POST of JSON with a key, and an answer of bounded size. No
//! redirect is followed, since the key would go along; a server on this machine is reached without a proxy; what a server
//! says of an error is shown without the key.
//!
//! May use: nothing of this project. Not here: the streams of model servers with their proxies and retries (`provider`), and
//! pages of the web (`tool/web`).

use std::error::Error;
use std::net::IpAddr;
use std::sync::Once;
use std::time::Duration;

use reqwest::{Client, Response, Url, header, redirect};
use serde_json::Value;

/// Bytes of an error that are read.
const ERROR_BYTES: usize = 16 << 10;
/// What stands in place of the key in an error.
const MASK: &str = "(the key)";

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The key has characters that no header can hold.
    Key,
    /// There is no connection, so that nothing was sent: the innermost cause.
    Unsent(String),
    /// The transfer failed: the innermost cause.
    Ended(String),
    /// The server answered with another status than 200 to 299. `said`: its error message, not cleaned; may be empty.
    Refused { status: u16, said: String },
    /// The answer is larger than was asked for.
    TooLarge,
}

/// Selects the cryptography provider, once for each process. Harmless when it was done before.
pub fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Whether an address names this machine by `localhost` or a loopback address.
pub fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        host == "localhost"
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

/// Returns true for an address on this machine: loopback, an unspecified address, `localhost` and names below it. Any other may be
/// that of a gateway to a server that charges, also in the local network. No name is looked up.
pub fn is_local(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.trim_matches(['[', ']']).parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(ip) => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// A client that sends keys: it follows no redirect and keeps no connection. The system's proxy is used, except for a server
/// on this machine. Loads certificates, which takes some milliseconds.
///
/// # Errors
/// When it cannot be made; the end of a sentence.
pub fn client(url: &Url, connect: Duration) -> Result<Client, String> {
    install_crypto();
    let builder = Client::builder()
        .user_agent(concat!("tiller/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(0)
        .connect_timeout(connect);
    let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
    builder.build().map_err(|e| format!("no HTTP client: {e}"))
}

/// Sends one request, and reads at most `most` bytes of its answer. No error contains the key.
///
/// # Errors
/// [`PostError`]: what went wrong.
pub async fn post(
    client: &Client,
    url: Url,
    key: Option<&str>,
    body: &Value,
    most: usize,
) -> Result<Vec<u8>, PostError> {
    let masked = |text: String| match key {
        Some(key) if !key.is_empty() => text.replace(key, MASK),
        _ => text,
    };
    let mut request = client
        .post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "*/*")
        .body(body.to_string());
    if let Some(key) = key {
        let value = header::HeaderValue::from_str(&format!("Bearer {key}"));
        let mut value = value.map_err(|_| PostError::Key)?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    let response = request.send().await.map_err(|e| {
        let cause = masked(cause(&e));
        if e.is_connect() || e.is_builder() { PostError::Unsent(cause) } else { PostError::Ended(cause) }
    })?;
    let status = response.status().as_u16();
    if !(200..300).contains(&status) {
        let said = read(response, ERROR_BYTES).await.map(|(body, _)| said(&body)).unwrap_or_default();
        return Err(PostError::Refused { status, said: masked(said) });
    }
    match read(response, most).await {
        Ok((body, false)) => Ok(body),
        Ok((_, true)) => Err(PostError::TooLarge),
        Err(e) => Err(PostError::Ended(masked(cause(&e)))),
    }
}

/// Reads at most `most` bytes of the body of an answer; true: there are more.
///
/// # Errors
/// When the connection ends before.
pub async fn read(mut response: Response, most: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        let room = most - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

/// The innermost cause, which is the most specific.
fn cause(e: &reqwest::Error) -> String {
    let mut cause: &dyn Error = e;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The error message of an answer: that of its JSON, or its text when that is no page.
fn said(body: &[u8]) -> String {
    let message = serde_json::from_slice::<Value>(body).ok().and_then(|v| {
        let paths = ["/error/message", "/message", "/error"];
        paths.iter().find_map(|path| v.pointer(path)?.as_str().map(str::to_owned))
    });
    message.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body).into_owned();
        if text.trim_start().starts_with('<') { String::new() } else { text }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wiremock::matchers::{header, method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    const KEY: &str = "sk-very-secret";

    async fn asked(server: &MockServer, most: usize) -> Result<Vec<u8>, PostError> {
        let url = Url::parse(&format!("{}/x", server.uri())).unwrap();
        let client = client(&url, Duration::from_secs(5)).unwrap();
        post(&client, url, Some(KEY), &json!({"a": 1}), most).await
    }

    #[tokio::test]
    async fn an_answer_is_bounded_and_an_error_has_no_key() {
        let server = MockServer::start().await;
        let answer = |answer: ResponseTemplate| Mock::given(method("POST")).respond_with(answer);
        let authorised = Mock::given(header("authorization", &*format!("Bearer {KEY}")));
        let authorised = authorised.respond_with(ResponseTemplate::new(200).set_body_string("12345"));
        let mock = authorised.mount_as_scoped(&server).await;
        assert_eq!(asked(&server, 5).await.unwrap(), b"12345");
        assert_eq!(asked(&server, 4).await, Err(PostError::TooLarge));
        drop(mock);
        let body = json!({"error": {"message": format!("{KEY} is unknown")}});
        for (answered, want) in [
            (ResponseTemplate::new(401).set_body_json(body), "(the key) is unknown"),
            (ResponseTemplate::new(401).set_body_json(json!({"error": "no"})), "no"),
            (ResponseTemplate::new(401).set_body_string("plain"), "plain"),
            (ResponseTemplate::new(401).set_body_string("<html>page"), ""),
        ] {
            let _mock = answer(answered).mount_as_scoped(&server).await;
            let want = PostError::Refused { status: 401, said: want.into() };
            assert_eq!(asked(&server, 5).await, Err(want));
        }
    }

    #[tokio::test]
    async fn a_key_goes_to_no_other_host() {
        let server = MockServer::start().await;
        let to = ResponseTemplate::new(307).insert_header("location", format!("{}/y", server.uri()).as_str());
        Mock::given(path("/x")).respond_with(to).mount(&server).await;
        Mock::given(path("/y")).respond_with(ResponseTemplate::new(200)).expect(0).mount(&server).await;
        assert!(matches!(asked(&server, 5).await, Err(PostError::Refused { status: 307, .. })));
    }

    #[tokio::test]
    async fn without_a_server_nothing_is_sent() {
        let url = Url::parse("http://127.0.0.1:1/x").unwrap();
        let client = client(&url, Duration::from_secs(5)).unwrap();
        let failed = post(&client, url.clone(), None, &json!({}), 5).await;
        assert!(matches!(failed, Err(PostError::Unsent(_))), "{failed:?}");
        let bad = post(&client, url, Some("a\nb"), &json!({}), 5).await;
        assert_eq!(bad, Err(PostError::Key));
    }

    #[test]
    fn this_machine_has_several_names() {
        for (text, want) in [
            ("http://localhost:1/", true),
            ("http://127.0.0.9/", true),
            ("http://[::1]:80/", true),
            ("https://example.com/", false),
            ("http://localhost.example/", false),
            ("http://192.168.1.2/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(text).unwrap()), want, "{text}");
        }
    }

    #[test]
    fn the_address_says_whether_a_server_is_local() {
        let local = [
            "http://localhost:8000/v1",
            "http://LOCALHOST./",
            "http://gpu.localhost/",
            "https://127.0.0.1/",
            "http://127.1:11434/",
            "http://2130706433/",
            "http://0.0.0.0:8000/",
            "http://[::1]/",
            "http://[::]:8000/",
            "http://[::ffff:127.0.0.1]/",
        ];
        let elsewhere = [
            "https://api.example.com/v1",
            "http://10.1.2.3/",
            "http://172.16.0.1/",
            "https://192.168.1.2:8443/v1",
            "http://169.254.7.7/",
            "http://gpu.local:8000/v1",
            "http://[fd12::1]/",
            "http://[fe80::1]/",
            "http://[::ffff:192.168.1.2]/",
            "http://gpu-box:8000/v1",
            "http://localhost.example/",
            "http://notlocalhost/",
            "http://local/",
            "http://mylocal/",
            "http://gpu.local.example/",
            "http://gpu.lan/",
            "http://100.64.0.1/",
            "http://8.8.8.8/",
            "http://[2001:db8::1]/",
            "http://[::ffff:8.8.8.8]/",
            "http://127.0.0.1.example.com/",
            "https://localhost@api.example.com/",
            "data:text/plain,localhost",
        ];
        for text in local {
            assert!(is_local(&Url::parse(text).unwrap()), "{text}");
        }
        for text in elsewhere {
            assert!(!is_local(&Url::parse(text).unwrap()), "{text}");
        }
    }
}
