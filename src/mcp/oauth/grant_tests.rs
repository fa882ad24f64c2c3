//! Logins without a person, and those at servers of the revision of March 2025, against a server that checks what it gets.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use tiller_config::McpServer;
use tiller_protocol::lock;
use tiller_protocol::mcp::McpState;
use tiller_testkit::{Recorded, Reply, ScriptServer};

use super::login_tests::{browse, parameter, proxied, speak};
use super::sign::testing::{new_key, verifies};
use crate::hub::{CallResult, Hub, NoResult};
use crate::testing::hub_with;

/// A login server at which nothing listens.
const OTHER: &str = "https://127.0.0.1:1";

/// The behaviour of the server, and the requests that it got.
struct World {
    /// How clients may show their secret.
    methods: &'static str,
    /// The address of its tokens; empty: its own.
    token_endpoint: String,
    /// The path of the login server that the description of the server names.
    login: &'static str,
    /// Seconds for which a token holds.
    holds: u64,
    /// Why it gives none.
    refuses: Option<&'static str>,
    /// The right without which a call gets a 403.
    wants: Option<&'static str>,
    /// Its login server, and that of the company, have a page for persons.
    pages: bool,
    /// It refuses tokens without a word about what it wants.
    silent: bool,
    /// The client that the company allows.
    allowed: &'static str,
    /// Bodies of the requests for tokens, with what stood in their header.
    asked: Vec<(String, String)>,
    /// Bodies of the requests to the company.
    company: Vec<String>,
    /// The token that is taken now, and the rights that it has.
    token: Option<(String, String)>,
}

impl World {
    fn new() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            methods: "client_secret_basic",
            token_endpoint: String::new(),
            login: "",
            holds: 3600,
            refuses: None,
            wants: None,
            pages: true,
            silent: false,
            allowed: "me",
            asked: Vec::new(),
            company: Vec::new(),
            token: None,
        }))
    }

    fn give_token(&mut self, request: &Recorded) -> Reply {
        let text = request.text();
        let header = request.header("authorization").unwrap_or_default().to_owned();
        self.asked.push((text.clone(), header));
        if let Some(error) = self.refuses {
            let why = "ask \u{202e}the operator";
            return Reply::status(400).json(&json!({"error": error, "error_description": why}));
        }
        let token = format!("token-{}", self.asked.len());
        self.token = Some((token.clone(), parameter(&text, "scope").replace('+', " ")));
        Reply::status(200)
            .json(&json!({"access_token": token, "token_type": "bearer", "expires_in": self.holds}))
    }

    /// The company's permission for the server, for the client that it allows.
    fn allow(&mut self, base: &str, text: &str) -> Reply {
        self.company.push(text.to_owned());
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({
            "iss": format!("{base}/company"), "sub": "ada", "aud": parameter(text, "audience"),
            "resource": parameter(text, "resource"), "client_id": self.allowed, "jti": "1",
            "scope": parameter(text, "scope").replace('+', " "), "iat": super::grant::now(), "exp": super::grant::now() + 300
        });
        let header = json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"});
        Reply::status(200).json(&json!({
            "access_token": format!("{}.{}.c2ln", part(header), part(claims)), "token_type": "N_A",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"
        }))
    }

    fn speaks_mcp(&self, request: &Recorded, base: &str) -> Reply {
        let metadata = format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
        let sent = request.header("authorization");
        let Some((token, rights)) =
            self.token.as_ref().filter(|(t, _)| sent == Some(format!("Bearer {t}").as_str()))
        else {
            return match self.silent {
                true => Reply::status(401),
                false => Reply::status(401).header("www-authenticate", &format!("Bearer {metadata}")),
            };
        };
        assert!(!token.is_empty());
        if request.method != "POST" {
            return Reply::status(405);
        }
        let message = request.json();
        match self.wants.filter(|right| !rights.split(' ').any(|has| has == *right)) {
            Some(right) if message["method"] == "tools/call" => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{right}\", {metadata}");
                Reply::status(403).header("www-authenticate", &challenge)
            }
            _ => speak(&message, false, &metadata),
        }
    }
}

fn answer(request: &Recorded, world: &Mutex<World>) -> Reply {
    let base = format!("http://{}", request.header("host").unwrap_or_default());
    let mut world = lock(world);
    let page = if world.pages { "authorization_endpoint" } else { "x_no_page" };
    match request.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => Reply::status(200).json(&json!({
            "resource": format!("{base}/mcp"), "authorization_servers": [format!("{base}{}", world.login)],
            "scopes_supported": ["read"]
        })),
        // The name of another login server, at an address without data about it.
        "/.well-known/other" => Reply::status(200).json(&json!({
            "issuer": OTHER, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token")
        })),
        "/.well-known/oauth-authorization-server" => {
            let own = format!("{base}/token");
            let token = if world.token_endpoint.is_empty() { &own } else { &world.token_endpoint };
            Reply::status(200).json(&json!({
                "issuer": base, page: format!("{base}/authorize"), "token_endpoint": token,
                // It has no login for persons.
                "response_types_supported": ["none"], "token_endpoint_auth_methods_supported": [world.methods],
                "token_endpoint_auth_signing_alg_values_supported": ["ES256"]
            }))
        }
        "/.well-known/oauth-authorization-server/company" => Reply::status(200).json(&json!({
            "issuer": format!("{base}/company"), page: format!("{base}/company/authorize"),
            "token_endpoint": format!("{base}/company/token")
        })),
        "/company/token" if world.refuses == Some("company") => {
            Reply::status(400).json(&json!({"error": "invalid_grant"}))
        }
        "/company/token" => world.allow(&base, &request.text()),
        "/token" => world.give_token(request),
        "/mcp" => world.speaks_mcp(request, &base),
        _ => Reply::status(404),
    }
}

struct Rig {
    world: Arc<Mutex<World>>,
    server: ScriptServer,
    folder: tempfile::TempDir,
}

/// `None`, with words: see [`proxied`].
fn rig() -> Option<Rig> {
    if proxied() {
        return None;
    }
    let world = World::new();
    let shared = Arc::clone(&world);
    let server = ScriptServer::with(move |request, _| answer(request, &shared));
    Some(Rig { world, server, folder: tempfile::tempdir().unwrap() })
}

impl Rig {
    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// A new process with these settings of the server.
    fn hub(&self, more: &Value) -> Arc<Hub> {
        let mut server = json!({"url": format!("{}/mcp", self.server.url())});
        for (key, value) in more.as_object().unwrap() {
            server[key] = value.clone();
        }
        let server: McpServer = serde_json::from_value(server).unwrap();
        hub_with(self.folder.path(), server)
    }
}

async fn call(hub: &Hub) -> Result<CallResult, NoResult> {
    hub.call("remote", "echo", Map::new(), None).await
}

/// A call that has to pass.
async fn passes(hub: &Hub) {
    let result = call(hub).await.unwrap();
    assert!(!result.failed, "{result:?}");
}

/// Why a call cannot pass.
async fn fails(hub: &Hub) -> crate::Failure {
    match call(hub).await.unwrap_err() {
        NoResult::Unusable(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn kept(folder: &Path) -> String {
    let files = std::fs::read_dir(folder.join("state")).unwrap();
    files
        .map(|file| {
            String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap_or_default()).into_owned()
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_logs_in_with_its_secret_as_the_server_wants_it_and_again_when_the_token_is_refused() {
    for methods in ["client_secret_basic", "client_secret_post"] {
        let Some(rig) = rig() else { return };
        rig.world().methods = methods;
        let settings = json!({"client_id": "me", "client_secret": "the secret/1", "login": {}});
        let hub = rig.hub(&settings);
        passes(&hub).await;
        {
            let world = rig.world();
            let (text, header) = &world.asked[0];
            assert_eq!(parameter(text, "grant_type"), "client_credentials");
            assert_eq!(parameter(text, "scope"), "read", "the server says so");
            assert_eq!(parameter(text, "resource"), format!("{}/mcp", rig.server.url()));
            let basic = format!("Basic {}", STANDARD.encode("me:the%20secret%2F1"));
            let given = (parameter(text, "client_id"), parameter(text, "client_secret"), header.as_str());
            match methods {
                "client_secret_basic" => assert_eq!(given, (String::new(), String::new(), basic.as_str())),
                _ => assert_eq!(given, ("me".into(), "the secret/1".into(), "")),
            }
            assert_eq!(world.asked.len(), 1, "one token is enough for a start and a call");
        }
        // The token is taken back in mid-session: another one comes, and the call passes.
        rig.world().token = None;
        rig.world().silent = methods == "client_secret_post";
        passes(&hub).await;
        assert_eq!(rig.world().asked.len(), 2);
        // Another process uses the kept one.
        let other = rig.hub(&settings);
        passes(&other).await;
        assert_eq!(rig.world().asked.len(), 2);
        let kept = kept(rig.folder.path());
        assert!(kept.contains("token-2") && !kept.contains("the secret"), "{kept}");
        // The person may ask for another one: no page is shown.
        other.find("remote").unwrap().log_in(&|page: &str| panic!("{page}")).await.unwrap();
        assert_eq!(rig.world().asked.len(), 3);
        // Other rights are another login.
        let scoped =
            json!({"client_id": "me", "client_secret": "the secret/1", "login": {"scopes": ["a", "b"]}});
        let scoped = rig.hub(&scoped);
        passes(&scoped).await;
        assert_eq!(parameter(&rig.world().asked[3].0, "scope").replace('+', " "), "a b");
        for hub in [hub, other, scoped] {
            hub.end().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_key_signs_and_sends_no_secret() {
    let Some(rig) = rig() else { return };
    rig.world().methods = "private_key_jwt";
    let (pem, public) = new_key();
    let file = rig.folder.path().join("key.pem");
    std::fs::write(&file, pem).unwrap();
    let hub = rig.hub(&json!({"client_id": "me", "login": {"key_file": file}}));
    passes(&hub).await;
    {
        let world = rig.world();
        let (text, header) = &world.asked[0];
        let assertion = parameter(text, "client_assertion");
        assert!(verifies(&assertion, &public), "{assertion}");
        let claims = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1).unwrap()).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["iss"], &claims["aud"]), (&json!("me"), &json!(rig.server.url())));
        assert!(header.is_empty() && parameter(text, "client_id").is_empty(), "{text}");
    }
    hub.end().await;
    // A key that is gone, or none: the reason names the file, and nothing is sent.
    std::fs::write(&file, "no key").unwrap();
    let other = rig.hub(&json!({"client_id": "other", "login": {"key_file": file}}));
    assert!(fails(&other).await.why.contains("must be a private key as PEM"));
    std::fs::remove_file(&file).unwrap();
    other.find("remote").unwrap().reset().await;
    assert!(fails(&other).await.why.contains("key.pem with the key cannot be read"));
    assert_eq!(rig.world().asked.len(), 1);
    other.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_shows_the_token_that_its_platform_has_now() {
    let Some(rig) = rig() else { return };
    rig.world().methods = "none";
    let file = rig.folder.path().join("token");
    std::fs::write(&file, "first.of.platform\n").unwrap();
    let hub = rig.hub(&json!({"client_id": "job", "login": {"kind": "workload", "token_file": file}}));
    passes(&hub).await;
    std::fs::write(&file, "second.of.platform\n").unwrap();
    rig.world().token = None;
    passes(&hub).await;
    let said: Vec<[String; 3]> = rig
        .world()
        .asked
        .iter()
        .map(|(text, _)| ["grant_type", "assertion", "client_id"].map(|name| parameter(text, name)))
        .collect();
    let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned();
    let one = |token: &str| [grant.clone(), token.to_owned(), "job".to_owned()];
    assert_eq!(said, [one("first.of.platform"), one("second.of.platform")]);
    hub.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_over_is_not_sent() {
    let Some(rig) = rig() else { return };
    rig.world().holds = 0;
    let hub = rig.hub(&json!({"client_id": "me", "client_secret": "s", "login": {}}));
    passes(&hub).await;
    let before = rig.world().asked.len();
    passes(&hub).await;
    assert!(rig.world().asked.len() > before);
    hub.end().await;
}

/// An assertion may hold once only: a refused login is not sent again, nor in another way, and what the server says of it is
/// data for the model.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_login_is_said_and_not_tried_in_other_ways() {
    for error in ["invalid_grant", "invalid_scope", "unauthorized_client", "invalid_client"] {
        let Some(rig) = rig() else { return };
        rig.world().refuses = Some(error);
        let hub = rig.hub(&json!({"login": {"kind": "workload", "token": "t.o.k"}}));
        let failure = fails(&hub).await;
        assert!(
            failure.why.contains(&format!("refuses the login: {error}: ask the operator")),
            "{failure:?}"
        );
        assert!(!failure.login, "a page would not help");
        assert_eq!(rig.world().asked.len(), 1, "{error}");
        assert_eq!(hub.find("remote").unwrap().view().state, McpState::Failed);
        let said = failure.for_model("remote");
        let (before, _) = said.split_once("[untrusted text ").unwrap();
        assert!(!before.contains("operator"), "{said}");
        hub.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_sent_to_another_login_server_or_over_a_bare_line() {
    let Some(rig) = rig() else { return };
    let secret =
        json!({"client_id": "me", "client_secret": "s", "login": {"issuer": "https://login.example"}});
    let pinned = rig.hub(&secret);
    let why = fails(&pinned).await.why;
    assert!(why.contains("its login is for https://login.example alone: nothing was sent"), "{why}");
    let mut own = secret.clone();
    own["login"]["issuer"] = json!(format!("{}/", rig.server.url()));
    let right = rig.hub(&own);
    passes(&right).await;
    // The name alone is not enough: the metadata must be those of the named server.
    rig.world().login = "/.well-known/other";
    for (id, issuer) in [("me3", Some(OTHER)), ("me4", None)] {
        let settings = json!({"client_id": id, "client_secret": "s", "login": {"issuer": issuer}});
        let other = rig.hub(&settings);
        let why = fails(&other).await.why;
        assert!(why.contains("does not describe itself at its own address: nothing was sent"), "{why}");
        other.end().await;
    }
    rig.world().login = "";
    rig.world().token_endpoint = "http://login.example/token".into();
    let bare = rig.hub(&json!({"client_id": "me2", "client_secret": "s", "login": {}}));
    let why = fails(&bare).await.why;
    assert!(why.contains("no https address: nothing was sent"), "{why}");
    assert_eq!(rig.world().asked.len(), 1);
    for hub in [pinned, right, bare] {
        hub.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_rights_are_asked_for_where_the_settings_leave_them_open() {
    let Some(rig) = rig() else { return };
    rig.world().wants = Some("write");
    let hub = rig.hub(&json!({"client_id": "me", "client_secret": "s", "login": {}}));
    passes(&hub).await;
    let rights: Vec<String> =
        rig.world().asked.iter().map(|(text, _)| parameter(text, "scope").replace('+', " ")).collect();
    assert_eq!(rights, ["read", "read write"]);
    let narrow = rig.hub(&json!({"client_id": "me", "client_secret": "s", "login": {"scopes": ["read"]}}));
    let failure = fails(&narrow).await;
    assert!(failure.why.contains("(write): add them to scopes in [mcp.remote.login]"), "{failure:?}");
    assert_eq!(rig.world().asked.len(), 3);
    for hub in [hub, narrow] {
        hub.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_companys_id_token_becomes_a_token_of_the_server() {
    let Some(rig) = rig() else { return };
    let company = json!({"issuer": format!("{}/company", rig.server.url()), "client_id": "tiller", "client_secret": "c"});
    let settings = json!({"client_id": "me", "client_secret": "s",
        "login": {"kind": "enterprise", "token": "id.to.ken", "company": company}});
    let hub = rig.hub(&settings);
    rig.world().refuses = Some("company");
    let why = fails(&hub).await.why;
    assert!(why.contains("log in there again"), "{why}");
    rig.world().refuses = None;
    rig.world().allowed = "another";
    hub.find("remote").unwrap().reset().await;
    let why = fails(&hub).await.why;
    assert!(why.contains("the answer of the company's login cannot be used"), "{why}");
    assert!(rig.world().asked.is_empty(), "what was allowed to another client is not shown to the server");
    rig.world().allowed = "me";
    hub.find("remote").unwrap().reset().await;
    passes(&hub).await;
    {
        let world = rig.world();
        let text = world.company.last().unwrap();
        assert_eq!(parameter(text, "subject_token"), "id.to.ken");
        assert_eq!(parameter(text, "audience"), rig.server.url());
        assert_eq!(parameter(text, "resource"), format!("{}/mcp", rig.server.url()));
        let (text, header) = &world.asked[0];
        assert_eq!(parameter(text, "grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
        assert_eq!(*header, format!("Basic {}", STANDARD.encode("me:s")));
    }
    let kept = kept(rig.folder.path());
    assert!(kept.contains("token-1") && !kept.contains("id.to.ken"), "{kept}");
    hub.end().await;
}

/// A login server for programs has no page for persons, and a slash behind the address in the settings is no other server.
#[tokio::test(flavor = "multi_thread")]
async fn login_servers_without_a_page_for_persons_give_tokens() {
    let Some(rig) = rig() else { return };
    rig.world().pages = false;
    let base = rig.server.url();
    let company = json!({"issuer": format!("{base}/company/"), "client_id": "tiller", "client_secret": "c"});
    let login = json!({"kind": "enterprise", "token": "id.to.ken", "company": company});
    for settings in [
        json!({"client_id": "me", "client_secret": "s", "login": {}}),
        json!({"client_id": "me1", "client_secret": "s", "login": {"issuer": format!("{base}/")}}),
        json!({"client_id": "me", "client_secret": "s", "login": login}),
    ] {
        let hub = rig.hub(&settings);
        passes(&hub).await;
        hub.end().await;
    }
    // One that calls itself otherwise gets nothing.
    let before = rig.world().asked.len();
    rig.world().login = "/.well-known/other";
    let hub = rig.hub(&json!({"client_id": "me2", "client_secret": "s", "login": {}}));
    fails(&hub).await;
    assert_eq!(rig.world().asked.len(), before);
    hub.end().await;
}

/// A login that is made anew and fails leaves the token of before in use.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_renewal_loses_no_token() {
    let Some(rig) = rig() else { return };
    let settings = json!({"client_id": "me", "client_secret": "s", "login": {}});
    let hub = rig.hub(&settings);
    passes(&hub).await;
    let remote = hub.find("remote").unwrap();
    rig.world().refuses = Some("access_denied");
    assert!(remote.log_in(&|_| ()).await.is_err());
    hub.end().await;
    let hub = rig.hub(&settings);
    passes(&hub).await;
    assert!(kept(rig.folder.path()).contains("token-1"));
    rig.world().refuses = None;
    hub.find("remote").unwrap().log_in(&|_| ()).await.unwrap();
    assert!(!kept(rig.folder.path()).contains("token-1"), "another one takes its place");
    passes(&hub).await;
    hub.end().await;
}

/// A server of the revision of March 2025 that is its own login server below `/oauth`, with metadata at the root.
fn of_march(request: &Recorded, issuer: &Value, known: bool, given: &Mutex<Vec<String>>) -> Reply {
    let base = format!("http://{}", request.header("host").unwrap_or_default());
    let here = |value: &Value| match value.as_str().unwrap() {
        path if path.starts_with('/') => format!("{base}{path}"),
        whole => whole.to_owned(),
    };
    match request.path.split('?').next().unwrap_or_default() {
        "/.well-known/oauth-protected-resource" if known => Reply::status(500),
        "/.well-known/oauth-authorization-server" => Reply::status(200).json(&json!({
            "issuer": here(issuer), "authorization_endpoint": format!("{base}/oauth/authorize"),
            "token_endpoint": format!("{base}/oauth/token"), "registration_endpoint": format!("{base}/oauth/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]
        })),
        "/oauth/register" => {
            lock(given).push("client".into());
            let asked = request.json();
            Reply::status(201).json(&json!({"client_id": "client-1", "redirect_uris": asked["redirect_uris"]}))
        }
        "/oauth/token" => {
            lock(given).push("token".into());
            Reply::status(200).json(&json!({"access_token": "t", "token_type": "Bearer", "expires_in": 3600}))
        }
        "/mcp" if request.header("authorization") != Some("Bearer t") => {
            Reply::status(401).header("www-authenticate", "Bearer")
        }
        "/mcp" if request.method == "POST" => speak(&request.json(), false, ""),
        _ => Reply::status(404),
    }
}

/// The metadata may name the server itself by a path where all is of the one host, and nothing else: the library alone refuses
/// both.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_march_2025_may_name_itself_by_a_path_and_no_other_server() {
    if proxied() {
        return;
    }
    for (issuer, known, works) in [
        (json!("/oauth"), false, true),
        (json!("https://attacker.example.com"), false, false),
        (json!("http://127.0.0.1:1/oauth"), false, false),
        // It may be a newer server, whose description is not there at the moment.
        (json!("/oauth"), true, false),
    ] {
        let given = Arc::new(Mutex::new(Vec::new()));
        let (shared, named) = (Arc::clone(&given), issuer.clone());
        let server = ScriptServer::with(move |request, _| of_march(request, &named, known, &shared));
        let folder = tempfile::tempdir().unwrap();
        let hub = hub_with(folder.path(), remote_settings(&server));
        let remote = hub.find("remote").unwrap();
        assert!(remote.check().await.unwrap_err().login);
        let logged_in = remote.log_in(&browse).await;
        assert_eq!(logged_in.is_ok(), works, "{issuer} {known}: {logged_in:?}");
        match works {
            true => {
                passes(&hub).await;
                // A new process reads the metadata again.
                let other = hub_with(folder.path(), remote_settings(&server));
                passes(&other).await;
                other.end().await;
            }
            false => assert!(lock(&given).is_empty(), "{issuer}: {:?}", lock(&given)),
        }
        hub.end().await;
    }
}

fn remote_settings(server: &ScriptServer) -> McpServer {
    McpServer { url: Some(format!("{}/mcp", server.url())), ..McpServer::default() }
}
