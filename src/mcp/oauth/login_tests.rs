//! A server at an address that wants a login: streamable HTTP, registration, PKCE, refresh after a 401, a 403 for more rights.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tiller_config::McpServer;
use tiller_protocol::lock;
use tiller_protocol::mcp::McpState;
use tiller_testkit::{Recorded, Reply, ScriptServer};

use crate::hub::{Hub, NoResult};
use crate::testing::hub_with;

/// What the server has given out.
#[derive(Default)]
struct Issued {
    /// The token that is accepted now.
    token: Option<String>,
    count: u32,
    refreshed: u32,
    /// Registrations, and the credentials that came with requests for tokens.
    registered: u32,
    credentials: Vec<String>,
    verifiers: Vec<String>,
    /// Answer calls with 403.
    wants_more: bool,
}

pub(super) fn parameter(text: &str, name: &str) -> String {
    let value =
        text.split(['?', '&']).find_map(|pair| pair.strip_prefix(&format!("{name}="))).unwrap_or_default();
    let mut out = Vec::new();
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let hex: String = bytes.by_ref().take(2).map(char::from).collect();
                out.push(u8::from_str_radix(&hex, 16).unwrap());
            }
            other => out.push(other),
        }
    }
    String::from_utf8(out).unwrap()
}

fn answer(request: &Recorded, issued: &Mutex<Issued>) -> Reply {
    let base = format!("http://{}", request.header("host").unwrap_or_default());
    let path = request.path.split('?').next().unwrap_or_default();
    if path.starts_with("/.well-known/oauth-protected-resource") {
        return Reply::status(200).json(&json!({
            "resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["read"]
        }));
    }
    if path.starts_with("/.well-known/") {
        return Reply::status(200).json(&json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"), "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"]
        }));
    }
    let mut issued = lock(issued);
    match path {
        "/register" => {
            issued.registered += 1;
            let asked = request.json();
            Reply::status(201)
                .json(&json!({"client_id": "client-1", "redirect_uris": asked["redirect_uris"]}))
        }
        "/token" => {
            let text = request.text();
            issued.count += 1;
            let basic = request.header("authorization").unwrap_or_default();
            let post = format!("{}:{}", parameter(&text, "client_id"), parameter(&text, "client_secret"));
            issued.credentials.push(if basic.is_empty() { post } else { basic.to_owned() });
            match parameter(&text, "grant_type").as_str() {
                "refresh_token" => issued.refreshed += 1,
                _ => issued.verifiers.push(parameter(&text, "code_verifier")),
            }
            let token = format!("token-{}", issued.count);
            issued.token = Some(token.clone());
            Reply::status(200).json(&json!({
                "access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "again", "scope": "read"
            }))
        }
        "/mcp" => {
            let wanted = issued.token.as_ref().map(|token| format!("Bearer {token}"));
            let metadata = format!("{base}/.well-known/oauth-protected-resource");
            if wanted.is_none() || request.header("authorization") != wanted.as_deref() {
                return Reply::status(401).header(
                    "www-authenticate",
                    &format!("Bearer resource_metadata=\"{metadata}\", scope=\"read\""),
                );
            }
            if request.method != "POST" {
                return Reply::status(405);
            }
            speak(&request.json(), issued.wants_more, &metadata)
        }
        _ => Reply::status(404),
    }
}

/// The protocol itself.
pub(super) fn speak(message: &Value, wants_more: bool, metadata: &str) -> Reply {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}
        }),
        "tools/list" => {
            json!({"tools": [{"name": "echo", "description": "d", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" if wants_more => {
            let challenge = format!(
                "Bearer error=\"insufficient_scope\", scope=\"write\", resource_metadata=\"{metadata}\""
            );
            return Reply::status(403).header("www-authenticate", &challenge);
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "called"}]}),
        _ if message.get("id").is_none() => return Reply::status(202),
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}});
            return Reply::status(200).json(&error);
        }
    };
    Reply::status(200).json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

/// What a browser does with the server's page: it comes back with a code.
pub(super) fn browse(page: &str) {
    let known = ["client_id=client-1", "client_id=https%3A%2F%2Fclient.example%2F"];
    assert!(
        page.contains("code_challenge_method=S256") && known.iter().any(|id| page.contains(id)),
        "{page}"
    );
    let back = parameter(page, "redirect_uri");
    let address = back.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let request = format!(
        "GET /callback?code=c0de&state={} HTTP/1.1\r\nhost: {address}\r\n\r\n",
        parameter(page, "state")
    );
    std::thread::spawn(move || {
        // Another page of the machine comes first, and gets nothing.
        let get = |request: &str| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        assert!(get("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(get(&request).contains("You can close this page"));
    });
}

fn hub(folder: &std::path::Path, url: &str) -> Arc<Hub> {
    hub_with(folder, McpServer { url: Some(format!("{url}/mcp")), ..McpServer::default() })
}

/// True when logins go through a proxy, with words: the SDK has clients of its own for them, which use the system's proxy for
/// this machine too.
pub(super) fn proxied() -> bool {
    let set = |names: [&str; 2]| {
        names.into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
    };
    let except = set(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let excepted = except.split(',').any(|part| matches!(part.trim(), "*" | "127.0.0.1" | "127.0.0.0/8"));
    let proxy = set(["HTTP_PROXY", "http_proxy"]).or_else(|| set(["ALL_PROXY", "all_proxy"]));
    let proxied = proxy.is_some() && !excepted;
    if proxied {
        println!("skipped: a proxy is set, and NO_PROXY does not name 127.0.0.1");
    }
    proxied
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_gives_tokens_that_are_refreshed_and_asked_for_again_when_rights_are_missing() {
    if proxied() {
        return;
    }
    let issued = Arc::new(Mutex::new(Issued::default()));
    let shared = Arc::clone(&issued);
    let server = ScriptServer::with(move |request, _| answer(request, &shared));
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path(), &server.url());
    let remote = hub.find("remote").unwrap();
    let failure = remote.check().await.unwrap_err();
    assert!(failure.login && failure.why.contains("tiller mcp login remote"), "{failure:?}");
    assert_eq!(remote.view().state, McpState::LoggedOut);
    remote.log_in(&browse).await.unwrap();
    let call = || hub.call("remote", "echo", serde_json::Map::new(), None);
    assert!(!call().await.unwrap().failed);
    assert_eq!(lock(&issued).verifiers.len(), 1, "the code was exchanged with its verifier");
    assert!(lock(&issued).verifiers[0].len() >= 43, "{:?}", lock(&issued).verifiers);
    // The token is taken back in mid-session: it is refreshed, and nobody notices.
    lock(&issued).token = Some("another".into());
    assert!(!call().await.unwrap().failed);
    assert_eq!(lock(&issued).refreshed, 1);
    // Another session reads the tokens of this one.
    let other = self::hub(folder.path(), &server.url());
    assert!(!other.call("remote", "echo", serde_json::Map::new(), None).await.unwrap().failed);
    assert_eq!(lock(&issued).count, 2, "no other token was needed");
    // More rights are wanted: the person has to log in for them.
    lock(&issued).wants_more = true;
    let refused = call().await.unwrap_err();
    assert!(matches!(&refused, NoResult::Unusable(failure) if failure.login), "{refused:?}");
    lock(&issued).wants_more = false;
    let scopes = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&scopes);
    let show = move |page: &str| {
        *lock(&seen) = parameter(page, "scope");
        browse(page);
    };
    remote.log_in(&show).await.unwrap();
    assert!(lock(&scopes).contains("write"), "{}", lock(&scopes));
    assert!(!call().await.unwrap().failed);
    // A call of one tool does not show that the rights are enough for the one that was refused.
    let challenge = || Some("Bearer error=\"insufficient_scope\", scope=\"write\"".to_owned());
    remote.logged_out(challenge(), Some("wipe"));
    remote.log_in(&browse).await.unwrap();
    assert!(!call().await.unwrap().failed);
    let still = remote.logged_out(challenge(), Some("wipe"));
    assert!(still.why.contains("it still wants rights that your last login asked for"), "{still:?}");
    hub.end().await;
    other.end().await;
}

/// Servers that do not know the request of the newest revision answer it in many ways; an empty result is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_the_probe_with_an_empty_result_is_spoken_to_as_an_older_one() {
    let server = ScriptServer::with(|request, _| {
        if request.method != "POST" {
            return Reply::status(405);
        }
        let message = request.json();
        if message["method"] == "server/discover" {
            return Reply::status(200).json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}));
        }
        speak(&message, false, "")
    });
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path(), &server.url());
    assert!(!hub.call("remote", "echo", serde_json::Map::new(), None).await.unwrap().failed);
    assert_eq!(hub.find("remote").unwrap().revision(), "2025-11-25");
    hub.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_id_that_the_operator_gave_is_used_instead_of_a_registration() {
    if proxied() {
        return;
    }
    let issued = Arc::new(Mutex::new(Issued::default()));
    let shared = Arc::clone(&issued);
    let server = ScriptServer::with(move |request, _| answer(request, &shared));
    let folder = tempfile::tempdir().unwrap();
    let settings = |id: &str| McpServer {
        url: Some(format!("{}/mcp", server.url())),
        client_id: Some(id.into()),
        client_secret: Some("the-secret".into()),
        ..McpServer::default()
    };
    let hub = hub_with(folder.path(), settings("client-1"));
    let remote = hub.find("remote").unwrap();
    assert!(remote.check().await.unwrap_err().login);
    remote.log_in(&browse).await.unwrap();
    let call = || hub.call("remote", "echo", serde_json::Map::new(), None);
    assert!(!call().await.unwrap().failed);
    // A new process refreshes with the secret, which is not stored with the tokens.
    hub.end().await;
    lock(&issued).token = Some("another".into());
    let other = hub_with(folder.path(), settings("client-1"));
    assert!(!other.call("remote", "echo", serde_json::Map::new(), None).await.unwrap().failed);
    {
        let issued = lock(&issued);
        assert_eq!((issued.registered, issued.refreshed), (0, 1));
        let all = &issued.credentials;
        assert!(all.len() == 2 && all[0] == all[1] && !all[0].is_empty(), "{all:?}");
        use base64::Engine;
        let basic = base64::engine::general_purpose::STANDARD.encode("client-1:the-secret");
        assert!(all[0] == format!("Basic {basic}") || all[0] == "client-1:the-secret", "{all:?}");
    }
    for file in std::fs::read_dir(folder.path().join("state")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("the-secret"));
    }
    other.end().await;
    // Tokens of another client id are not used.
    let third = hub_with(folder.path(), settings("client-2"));
    let failure = third.find("remote").unwrap().check().await.unwrap_err();
    assert!(failure.login, "{failure:?}");
    third.end().await;
    // An id that is an address is used as it is: this server does not say that it reads documents about clients.
    let folder = tempfile::tempdir().unwrap();
    let settings = McpServer {
        url: Some(format!("{}/mcp", server.url())),
        client_id: Some("https://client.example/id.json".into()),
        ..McpServer::default()
    };
    let fourth = hub_with(folder.path(), settings);
    fourth.find("remote").unwrap().log_in(&browse).await.unwrap();
    assert!(!fourth.call("remote", "echo", serde_json::Map::new(), None).await.unwrap().failed);
    assert_eq!(lock(&issued).registered, 0);
    fourth.end().await;
}
