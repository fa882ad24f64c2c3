//! Classifies refusals and words their messages.
//!
//! Vendors use the same status for transient errors (too many requests) and permanent ones (no credit left), so the
//! text is examined too. Messages say what happened, why and what to do; they never contain a key.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use tiller_protocol::Time;

use crate::error::ProviderError;
use crate::registry::key::Secret;
use crate::transport::{answer, overflow};

/// Maximum characters of a server's message that are kept.
const WORDS_LIMIT: usize = 600;
/// The longest wait that a server can request; longer ones are shortened to it.
const WAIT_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Phrases of a 429 (or 400, 402, 403) that waiting does not resolve.
const SPENT: &[&str] = &[
    "insufficient_quota",
    "exceeded your current quota",
    "spend limit",
    "spending limit",
    "spend_limit",
    "usage limits",
    "credit balance",
    "insufficient credits",
    "insufficient balance",
    "insufficient funds",
    "out of credits",
    "requires more credits",
    "billing",
    "payment required",
    "budget has been exceeded",
];

/// Phrases of a 400 or 403 that refer to the key.
const KEY: &[&str] =
    &["api key not valid", "api_key_invalid", "invalid api key", "incorrect api key", "invalid x-api-key"];

fn has(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|p| text.contains(p))
}

/// Classes a refusal by its status, headers and body.
pub(crate) fn refusal(
    provider: &str,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: Time,
) -> ProviderError {
    let said = words(body);
    let all = format!("{} {}", said.code, said.text).to_lowercase();
    let text = |head: &str, todo: &str| sentence(provider, head, status, &said.text, todo);
    // The caller adds what to do, since it knows whether the conversation can be shortened.
    if status == 413 {
        return ProviderError::TooLarge(text("says the request is too long", ""));
    }
    if matches!(status, 400 | 422 | 429 | 500)
        && overflow::is_overflow(&said.code, &said.text)
        && !per_minute(&all)
    {
        return ProviderError::TooLong(text("says the request is too long", ""));
    }
    let spent = status == 402 || has(&all, SPENT) && !per_minute(&all) && !(status == 429 && said.passes);
    if matches!(status, 400 | 402 | 403 | 429) && spent {
        return ProviderError::Rejected(text(
            "reports that its spending limit is used up",
            "Raise it or add credit there, or choose another model.",
        ));
    }
    if status == 401 || (matches!(status, 400 | 403) && has(&all, KEY)) {
        return ProviderError::Auth(text("did not accept the key", "Check the key, then send again."));
    }
    let body = String::from_utf8_lossy(body);
    let is_page = body.trim_start().starts_with('<') && answer::element(&body, "message").is_none();
    if matches!(status, 400 | 403 | 405 | 406 | 451) && is_page {
        return answer::page(provider, &body, Some(status));
    }
    match status {
        // A gateway gave up waiting: the server behind it may still be computing.
        504 | 524 => ProviderError::Unanswered(text(
            "gave no answer in time",
            "It may still be computing the reply, so the request was not sent again. Send it again, or raise the \
             time limit of the gateway.",
        )),
        403 => ProviderError::Auth(text(
            "does not allow this",
            "Check that the key may use this model, then send again.",
        )),
        404 => ProviderError::Rejected(text(
            "does not know this model or address",
            "Choose another model, or check the base URL.",
        )),
        408 | 409 | 425 | 429 | 500..=599 => ProviderError::Wait {
            message: text(
                match status {
                    429 => "reports too many requests",
                    529 | 503 => "is overloaded",
                    _ => "failed",
                },
                "",
            ),
            after: retry_after(headers, now).or(said.delay).map(|d| d.min(WAIT_LIMIT)),
        },
        300..=399 => ProviderError::Rejected(redirect(provider, status, headers)),
        _ => ProviderError::Rejected(text("refused the request", "")),
    }
}

/// Limits per minute mention tokens and quotas too, but are transient.
fn per_minute(text: &str) -> bool {
    text.contains("per minute")
        || text.contains("perminute")
        || text.contains("(tpm)")
        || text.contains("per day")
}

fn sentence(provider: &str, head: &str, status: u16, said: &str, todo: &str) -> String {
    let mut out = format!("{provider} {head} ({status})");
    if !said.is_empty() {
        out.push_str(": ");
        out.push_str(said.trim_end_matches('.'));
    }
    out.push('.');
    if !todo.is_empty() {
        out.push(' ');
        out.push_str(todo);
    }
    out
}

fn redirect(provider: &str, status: u16, headers: &HeaderMap) -> String {
    let target = headers
        .get(reqwest::header::LOCATION)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| reqwest::Url::parse(v).ok())
        .and_then(|u| u.host_str().map(str::to_owned));
    let to = target.map_or_else(|| "elsewhere".to_owned(), |host| format!("to the host {}", clip(&host)));
    format!(
        "{provider} redirects {to} ({status}). The key is not sent there. If that is right, set the provider's \
         base_url to the new address."
    )
}

/// Classes an error event in the middle of a stream. `code` is the vendor's type or number.
pub(crate) fn event(provider: &str, code: &str, text: &str) -> ProviderError {
    let all = format!("{code} {text}").to_lowercase();
    let said = clip(if text.is_empty() { code } else { text });
    let said = said.trim_end_matches('.');
    let of = |head: &str| format!("{provider} {head}: {said}.");
    if overflow::is_overflow(code, text) && !per_minute(&all) {
        return ProviderError::TooLong(of("says the request is too long"));
    }
    if has(&all, SPENT) && !per_minute(&all) {
        return ProviderError::Rejected(of("reports that its spending limit is used up"));
    }
    if has(&all, KEY) || has(&all, &["authentication", "permission"]) {
        return ProviderError::Auth(of("did not accept the key"));
    }
    let number = code.split_whitespace().find_map(|word| word.parse::<u16>().ok());
    let passing = [
        "overloaded",
        "rate_limit",
        "rate limit",
        "server_error",
        "api_error",
        "timeout",
        "timed out",
        "unavailable",
        "internal",
        "try again",
        "resource_exhausted",
    ];
    if number.is_some_and(|n| n == 408 || n == 429 || n >= 500) || has(&all, &passing) {
        return ProviderError::Wait { message: of("failed in the middle of the reply"), after: None };
    }
    ProviderError::Rejected(of("ended the reply with an error"))
}

/// Classes an error in the middle of a stream by its JSON, in any of the shapes that servers use.
pub(crate) fn stated(provider: &str, data: &str) -> ProviderError {
    let said = words(data.as_bytes());
    event(provider, said.code.trim(), &said.text)
}

/// The reply ended before it was complete.
pub(crate) fn cut(provider: &str) -> ProviderError {
    ProviderError::Network(format!("the connection to {provider} ended in the middle of the reply."))
}

/// The stream contained data that is not of its format.
pub(crate) fn garbled(provider: &str) -> ProviderError {
    ProviderError::Network(format!("{provider} sent an event that could not be read."))
}

/// The proxy requires a name and a password: the vendor was not reached.
pub(crate) fn proxy_login(proxy: Option<&str>) -> ProviderError {
    let which = proxy.map(|p| format!(" {}", clip(p))).unwrap_or_default();
    ProviderError::Rejected(format!(
        "the proxy{which} requires a user name and a password (407); the model server was not reached. \
        Put them into HTTPS_PROXY (or http_proxy) as http://NAME:PASSWORD@HOST:PORT, then restart."
    ))
}

/// A failure below HTTP. `proxy`: the proxy for the host, if there is one.
pub(crate) fn network(
    provider: &str,
    host: &str,
    proxy: Option<&str>,
    error: &reqwest::Error,
) -> ProviderError {
    // The causes are chained; the innermost are the most specific. URLs may contain keys, so the outermost, which
    // contains the URL, is left out.
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(e) = next {
        causes.push(e.to_string());
        next = e.source();
    }
    let chain = causes.join(": ");
    let low = chain.to_lowercase();
    let place = clip(host);
    if low.contains("proxy authorization required") {
        return proxy_login(proxy);
    }
    if low.contains("tunnel error") {
        let which = proxy.map(|p| format!(" {}", clip(p))).unwrap_or_default();
        return ProviderError::Network(format!(
            "the proxy{which} did not connect to {provider} at {place}. Check HTTPS_PROXY, and \
            NO_PROXY for hosts that need no proxy."
        ));
    }
    // A retry does not resolve these.
    if low.contains("certificate") || low.contains("unknownissuer") {
        return ProviderError::Rejected(format!(
            "could not reach {provider} at {place}: its certificate was not accepted ({}). Behind a company proxy, set \
             SSL_CERT_FILE to the proxy's certificate.",
            clip(causes.last().map_or("", String::as_str))
        ));
    }
    if low.contains("corrupt message") || low.contains("invalidcontenttype") {
        return ProviderError::Rejected(format!(
            "could not reach {provider} at {place}: the encrypted connection could not be \
            established. Check that the address is right and uses https."
        ));
    }
    let why = if error.is_timeout() || low.contains("timed out") {
        "it did not answer in time".to_owned()
    } else if low.contains("tls") {
        "the encrypted connection could not be established. Check that the address is right and uses https"
            .to_owned()
    } else if low.contains("dns") || low.contains("lookup") || low.contains("name or service") {
        "its name could not be resolved. Check the address and the network".to_owned()
    } else if low.contains("connection refused") {
        match proxy {
            Some(proxy) => {
                format!("the proxy {} does not answer. Check HTTPS_PROXY and http_proxy", clip(proxy))
            }
            None => "connection refused. Check the address and that the server is running".to_owned(),
        }
    } else if let Some(last) = causes.last() {
        clip(last)
    } else {
        "the connection failed".to_owned()
    };
    ProviderError::Network(format!("could not reach {provider} at {place}: {why}."))
}

/// A server's error message.
#[derive(Debug, Default)]
struct ServerMessage {
    code: String,
    text: String,
    delay: Option<Duration>,
    /// A quota per minute is used up, though the text is that of a permanent quota.
    passes: bool,
}

fn words(body: &[u8]) -> ServerMessage {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        // Of an HTML page only the title says something, of XML its message.
        let page = text.trim_start().starts_with('<');
        let said = || answer::element(&text, "message").or_else(|| answer::title(&text)).unwrap_or_default();
        return ServerMessage {
            text: if page { said() } else { clip(text.trim()) },
            ..ServerMessage::default()
        };
    };
    let value = if let Value::Array(mut a) = value { a.pop().unwrap_or(Value::Null) } else { value };
    let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(&value);
    let text = message(error).or_else(|| message(&value)).unwrap_or_else(|| match error {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    });
    // A status in words, with the reason beside it.
    let reason = ["message", "error_description"].into_iter().find_map(|name| value.get(name)?.as_str());
    let beside = reason.filter(|_| error.is_string());
    let mut text = beside.map_or(text.clone(), |reason| format!("{text}: {reason}"));
    let mut code = String::new();
    for key in ["type", "code", "status"] {
        match error.get(key) {
            Some(Value::String(s)) => code.push_str(s),
            Some(Value::Number(n)) => code.push_str(&n.to_string()),
            _ => continue,
        }
        code.push(' ');
    }
    // OpenRouter nests the vendor's message.
    if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
        code.push_str(raw);
        let inner = words(raw.as_bytes()).text;
        if !inner.is_empty() && !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
    }
    // llama.cpp states its window in a field only.
    let window = error.get("n_ctx").and_then(Value::as_u64).filter(|_| !text.contains("n_ctx"));
    let text = window.map_or_else(|| text.clone(), |tokens| format!("{text} (n_ctx {tokens})"));
    let details = error.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let delay = details.iter().find_map(|d| {
        let seconds: f64 = d.get("retryDelay")?.as_str()?.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    });
    // Google mentions plan and billing for every quota; the violated one is in the details.
    let violations = details.iter().filter_map(|d| d.get("violations")?.as_array()).flatten();
    let quotas: Vec<&str> = violations.filter_map(|v| v.get("quotaId")?.as_str()).collect();
    let passes = (delay.is_some() || quotas.iter().any(|q| q.contains("PerMinute")))
        && !quotas.iter().any(|q| q.contains("PerDay"))
        // A plan without any such quota.
        && !text.contains("limit: 0");
    ServerMessage { code, text: clip(&text), delay, passes }
}

/// The words of an error in any of the usual fields; several of a list are joined.
fn message(error: &Value) -> Option<String> {
    let text = match error {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(all) => all.iter().filter_map(message).collect::<Vec<_>>().join("; "),
        Value::Object(fields) => {
            let names = [
                "message",
                "detail",
                "msg",
                "errors",
                "error",
                "error_msg",
                "error_message",
                "reason",
                "title",
                "Message",
                "fault",
                "faultstring",
                "description",
                "errorMessage",
                "status_msg",
                "exception",
                "err",
                "text",
                "details",
                "Error",
                "base_resp",
                "Response",
                "ResponseMetadata",
                "response",
                "result",
                "output",
                "inner",
                "data",
            ];
            let found =
                names.iter().find_map(|name| message(fields.get(*name)?)).or_else(|| lists(fields))?;
            // The field that a fault is about, as validators write it.
            let path = fields.get("loc").and_then(Value::as_array).map(|parts| {
                let part = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
                parts.iter().map(part).collect::<Vec<_>>().join(".")
            });
            path.map_or(found.clone(), |path| format!("{path}: {found}"))
        }
        _ => String::new(),
    };
    (!text.is_empty()).then_some(text)
}

/// The words of a table of fields with the faults of each, as validators write it.
fn lists(fields: &serde_json::Map<String, Value>) -> Option<String> {
    let all =
        fields.values().all(|value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string)));
    let named = |(name, value): (&String, &Value)| Some(format!("{name}: {}", message(value)?));
    let words: Vec<String> = fields.iter().filter(|_| all).filter_map(named).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Shortens a server's message to one line.
pub(crate) fn clip(text: &str) -> String {
    let mut out: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_LIMIT + 1).collect();
    if out.chars().count() > WORDS_LIMIT {
        out.pop();
        out.push('…');
    }
    out
}

/// `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.
pub(crate) fn retry_after(headers: &HeaderMap, now: Time) -> Option<Duration> {
    let get = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    if let Some(ms) = get("retry-after-ms").and_then(|v| v.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let value = get("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    let ms = date.timestamp().as_millisecond().saturating_sub(now.millis());
    Some(Duration::from_millis(ms.max(0).unsigned_abs()))
}

/// `text` without the key, should a server have repeated it.
pub(crate) fn without(text: &str, key: Option<&Secret>) -> String {
    match key {
        Some(key) if key.reveal().len() >= 6 => text.replace(key.reveal(), "[key]"),
        _ => text.to_owned(),
    }
}

/// The same error without the key.
pub(crate) fn scrub(error: ProviderError, key: Option<&Secret>) -> ProviderError {
    let clean = |text: String| without(&text, key);
    match error {
        ProviderError::Auth(t) => ProviderError::Auth(clean(t)),
        ProviderError::TooLong(t) => ProviderError::TooLong(clean(t)),
        ProviderError::TooLarge(t) => ProviderError::TooLarge(clean(t)),
        ProviderError::Wait { message, after } => ProviderError::Wait { message: clean(message), after },
        ProviderError::Network(t) => ProviderError::Network(clean(t)),
        ProviderError::Unanswered(t) => ProviderError::Unanswered(clean(t)),
        ProviderError::Rejected(t) => ProviderError::Rejected(clean(t)),
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
