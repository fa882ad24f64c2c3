use reqwest::header::HeaderValue;
use serde_json::json;

use super::*;

fn at(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn now() -> Time {
    at("2026-11-21T20:00:00Z")
}

fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
    list.iter()
        .map(|(n, v)| (reqwest::header::HeaderName::from_static(n), HeaderValue::from_str(v).unwrap()))
        .collect()
}

fn class(e: &ProviderError) -> &'static str {
    match e {
        ProviderError::Auth(_) => "auth",
        ProviderError::TooLong(_) => "long",
        ProviderError::TooLarge(_) => "large",
        ProviderError::Wait { .. } => "wait",
        ProviderError::Network(_) => "network",
        ProviderError::Unanswered(_) => "unanswered",
        ProviderError::Rejected(_) => "rejected",
    }
}

#[test]
fn p1_p2_p9_refusals_are_classed_by_remedy() {
    let openai = |code: &str, text: &str| {
        json!({"error": {"message": text, "type": "invalid_request_error", "code": code}}).to_string()
    };
    let anthropic = |kind: &str, text: &str| {
        json!({"type": "error", "error": {"type": kind, "message": text}}).to_string()
    };
    let google = |status: &str, text: &str| {
        json!({"error": {"code": 400, "message": text, "status": status}}).to_string()
    };
    let table: Vec<(u16, String, &str)> = vec![
        (
            429,
            openai(
                "rate_limit_exceeded",
                "Rate limit reached for gpt on tokens per min (TPM): Limit 30000, Requested 90000",
            ),
            "wait",
        ),
        (
            429,
            openai(
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            "rejected",
        ),
        (
            429,
            anthropic(
                "rate_limit_error",
                "This request would exceed your organization's rate limit of 50 requests per minute",
            ),
            "wait",
        ),
        (
            429,
            anthropic(
                "rate_limit_error",
                "You have reached your specified API usage limits. You will regain access on 2026-12-01",
            ),
            "rejected",
        ),
        (429, anthropic("rate_limit_error", "Your workspace has reached its spend limit"), "rejected"),
        (429, google("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."), "wait"),
        (
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
            "rejected",
        ),
        (402, json!({"error": {"message": "Insufficient credits", "code": 402}}).to_string(), "rejected"),
        (401, anthropic("authentication_error", "invalid x-api-key"), "auth"),
        (400, google("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), "auth"),
        (403, String::new(), "auth"),
        (404, openai("model_not_found", "The model `x` does not exist"), "rejected"),
        (
            400,
            anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            "long",
        ),
        (
            400,
            openai("context_length_exceeded", "This model's maximum context length is 128000 tokens."),
            "long",
        ),
        (
            400,
            google(
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            "long",
        ),
        (413, anthropic("request_too_large", "Request exceeds the maximum size"), "large"),
        (413, "<html>too big</html>".into(), "large"),
        (400, openai("", "messages: roles must alternate"), "rejected"),
        (422, json!({"detail": "bad field"}).to_string(), "rejected"),
        (408, String::new(), "wait"),
        (504, String::new(), "unanswered"),
        (524, String::new(), "unanswered"),
        (409, String::new(), "wait"),
        (500, anthropic("api_error", "Internal server error"), "wait"),
        (502, "<html>Bad gateway</html>".into(), "wait"),
        (503, String::new(), "wait"),
        (529, anthropic("overloaded_error", "Overloaded"), "wait"),
        (301, String::new(), "rejected"),
        (418, "teapot".into(), "rejected"),
    ];
    for (status, body, want) in table {
        let e = refusal("p", status, &HeaderMap::new(), body.as_bytes(), now());
        assert_eq!(class(&e), want, "{status} {body}: {e}");
        let text = e.to_string();
        assert!(text.starts_with("p ") && text.contains(&status.to_string()), "{text}");
        assert!(!text.contains('<'), "{text}");
    }
}

#[test]
fn p1_retry_after_in_all_forms() {
    type Headers = &'static [(&'static str, &'static str)];
    let table: &[(Headers, Option<u64>)] = &[
        (&[("retry-after", "7")], Some(7_000)),
        (&[("retry-after", "1.5")], Some(1_500)),
        (&[("retry-after-ms", "250"), ("retry-after", "7")], Some(250)),
        (&[("retry-after", "Sat, 21 Nov 2026 20:00:30 GMT")], Some(30_000)),
        (&[("retry-after", "Sat, 21 Nov 2026 19:00:00 GMT")], Some(0)),
        (&[("retry-after", "-5")], None),
        (&[("retry-after", "soon")], None),
        (&[], None),
    ];
    for (list, want) in table {
        assert_eq!(retry_after(&headers(list), now()).map(|d| d.as_millis() as u64), *want, "{list:?}");
    }
    let e = refusal("p", 503, &headers(&[("retry-after", "999999999999")]), b"", now());
    assert_eq!(e, ProviderError::Wait { message: "p is overloaded (503).".into(), after: Some(WAIT_LIMIT) });
    let google = json!({"error": {"code": 429, "message": "slow", "details": [
        {"@type": "x"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}});
    let e = refusal("p", 429, &HeaderMap::new(), google.to_string().as_bytes(), now());
    assert!(matches!(e, ProviderError::Wait { after: Some(d), .. } if d == Duration::from_millis(34_500)));
}

#[test]
fn p6_error_events_are_classed() {
    let table = [
        ("overloaded_error", "Overloaded", "wait"),
        ("rate_limit_error", "too many requests", "wait"),
        ("api_error", "Internal server error", "wait"),
        ("server_error", "An error occurred", "wait"),
        ("502", "Upstream error", "wait"),
        ("429", "rate limited", "wait"),
        ("invalid_request_error", "prompt is too long: 5 > 4", "long"),
        ("context_length_exceeded", "Your input exceeds the context window", "long"),
        ("insufficient_quota", "You exceeded your current quota", "rejected"),
        ("authentication_error", "bad", "auth"),
        ("400", "bad request", "rejected"),
        ("", "", "rejected"),
    ];
    for (code, text, want) in table {
        assert_eq!(class(&event("p", code, text)), want, "{code} {text}");
    }
}

#[test]
fn a_servers_words_are_short_one_line_and_without_the_key() {
    let key = Secret::new("sk-secret-123");
    let body =
        json!({"error": {"message": format!("bad key sk-secret-123\n\u{1b}[31m {}", "x".repeat(5_000))}});
    let e = refusal("p", 401, &HeaderMap::new(), body.to_string().as_bytes(), now());
    let text = scrub(e, Some(&key)).to_string();
    assert!(text.contains("bad key [key]") && !text.contains("sk-secret"), "{text}");
    assert!(text.chars().count() < 800 && !text.chars().any(char::is_control), "{text}");
}

/// Row P17: no body hides its reason.
#[test]
fn p17_the_reason_is_quoted_from_any_body() {
    for (body, words) in [
        (r#"{"detail": "no such model"}"#, "no such model"),
        (
            r#"{"detail": [{"loc": ["body", "messages", 0], "msg": "field required"}]}"#,
            "body.messages.0: field required",
        ),
        (r#"{"errors": [{"message": "first"}, {"message": "second"}]}"#, "first; second"),
        (r#"{"errors": ["plain"]}"#, "plain"),
        (r#"{"error": "words"}"#, "words"),
        (r#"{"error": {"error": {"message": "deep"}}}"#, "deep"),
        (r#"{"error": null, "message": "beside"}"#, "beside"),
        (r#"{"error": {"code": 7}, "message": "outside"}"#, "outside"),
        (
            r#"{"statusCode": 400, "error": "Bad Request", "message": "the reason"}"#,
            "Bad Request: the reason",
        ),
        (r#"{"error_msg": "of another"}"#, "of another"),
        (r#"[{"error": {"message": "in a list"}}]"#, "in a list"),
        (r#"{"detail": {"error": {"message": "below detail"}}}"#, "below detail"),
        (r#"{"object": "error", "message": "of vLLM", "type": "BadRequestError", "code": 400}"#, "of vLLM"),
        (r#"{"fault": {"faultstring": "of a gateway"}}"#, "of a gateway"),
        (r#"{"Message": "of Bedrock"}"#, "of Bedrock"),
        (r#"{"errors": {"model": ["is not served"]}}"#, "model: is not served"),
        ("<html><head><title>502 Bad Gateway</title></head></html>", "web page (\"502 Bad Gateway\")"),
        (r#"{"success": false, "why": 3}"#, r#""why":3"#),
        ("plain text", "plain text"),
        ("  \n ", "(400)."),
        ("{}", "(400)."),
        ("null", "(400)."),
    ] {
        let text = refusal("p", 400, &HeaderMap::new(), body.as_bytes(), now()).to_string();
        assert!(text.contains(words), "{body}: {text}");
    }
}

#[test]
fn p12_a_redirect_names_the_host_and_says_what_to_do() {
    let h = headers(&[("location", "https://evil.example.test/steal?key=1")]);
    let text = refusal("p", 307, &h, b"", now()).to_string();
    assert!(
        text.contains("evil.example.test") && !text.contains("steal") && text.contains("base_url"),
        "{text}"
    );
}

/// Bodies as servers and gateways send them, with the reason in the place of `MARK`.
const BODIES: &[&str] = &[
    r#"{"error":{"message":"MARK","type":"x"}}"#,
    r#"{"error":"MARK"}"#,
    r#"{"message":"MARK"}"#,
    r#"{"Message":"MARK"}"#,
    r#"{"detail":"MARK"}"#,
    r#"{"detail":[{"loc":["body"],"msg":"MARK","type":"value_error"}]}"#,
    r#"{"detail":{"error":"MARK"}}"#,
    r#"{"detail":{"message":"MARK"}}"#,
    r#"{"errors":["MARK"]}"#,
    r#"{"errors":[{"message":"MARK"}]}"#,
    r#"{"errors":{"model":["MARK"]}}"#,
    r#"{"error":{"errors":[{"message":"MARK"}]}}"#,
    r#"[{"error":{"message":"MARK"}}]"#,
    r#"{"error":{"code":400,"message":"MARK","details":[{"@type":"x"}]}}"#,
    r#"{"error":{"message":{"text":"MARK"}}}"#,
    r#"{"error":{"details":"MARK"}}"#,
    r#"{"error":{"metadata":{"raw":"MARK"},"message":"Provider returned error"}}"#,
    r#"{"error":{"metadata":{"raw":"<html><head><title>MARK</title></head>"},"message":"Provider returned error"}}"#,
    r#"{"error":{"metadata":{"raw":"{\"error\":{\"message\":\"MARK\"}}"},"message":"Provider returned error"}}"#,
    r#"{"error":"x","message":null,"error_description":"MARK"}"#,
    "<Error><MessageId>7</MessageId><Message>MARK</Message></Error>",
    r#"{"msg":"MARK"}"#,
    r#"{"error_msg":"MARK","error_code":1}"#,
    r#"{"error_message":"MARK"}"#,
    r#"{"errorMessage":"MARK"}"#,
    r#"{"error":"invalid_request","error_description":"MARK"}"#,
    r#"{"fault":{"faultstring":"MARK"}}"#,
    r#"{"reason":"MARK"}"#,
    r#"{"err":"MARK"}"#,
    r#"{"status":"error","data":"MARK"}"#,
    r#"{"status":"failed","result":{"message":"MARK"}}"#,
    r#"{"base_resp":{"status_code":1004,"status_msg":"MARK"}}"#,
    r#"{"type":"about:blank","title":"Bad Request","detail":"MARK"}"#,
    r#"{"title":"MARK","status":400}"#,
    r#"{"success":false,"errors":[{"code":1,"message":"MARK"}]}"#,
    r#"{"ResponseMetadata":{"Error":{"Code":"x","Message":"MARK"}}}"#,
    r#"{"code":"InvalidParameter","message":"MARK","request_id":"1"}"#,
    r#"{"Response":{"Error":{"Code":"x","Message":"MARK"}}}"#,
    r#"{"object":"error","message":"MARK","type":"BadRequestError"}"#,
    r#"{"statusCode":400,"error":"Bad Request","message":"MARK"}"#,
    r#"{"error":{"inner":{"error":{"message":"MARK"}}}}"#,
    r#"{"response":{"error":{"message":"MARK"}}}"#,
    r#"{"data":{"error":{"message":"MARK"}}}"#,
    r#"{"output":{"message":"MARK"},"code":"x"}"#,
    r#"{"description":"MARK"}"#,
    r#"{"exception":"MARK"}"#,
    r#"{"error":{"error_message":"MARK"}}"#,
    r#"{"error":{"description":"MARK"}}"#,
    r#"{"__type":"ValidationException","message":"MARK"}"#,
    "MARK",
    "Error: MARK",
    "<html><head><title>MARK</title></head><body>x</body></html>",
    "<Error><Code>x</Code><Message>MARK</Message></Error>",
    r#""MARK""#,
    r#"["MARK"]"#,
    r#"{"error":["MARK"]}"#,
    r#"{"error":{"message":["MARK"]}}"#,
];

#[test]
fn p17_the_reason_is_quoted_in_words_whatever_the_body_is() {
    for body in BODIES {
        for status in [400_u16, 500] {
            let said = refusal("p", status, &HeaderMap::new(), body.as_bytes(), now()).to_string();
            let plain = said.contains("MARK") && !said.contains(['{', '<']);
            assert!(plain, "{status} {body}: {said}");
        }
    }
}
