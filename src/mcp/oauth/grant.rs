//! Logins without a person: a client's own secret or key, a token of the platform, an id token of a company's login. The token
//! that each gives is kept, and another one is asked for when it is over or the server refuses it.

use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::enterprise::{
    EmaAuthorizationServer, EmaClientAuthentication, EmaError, EmaExchangeRequest, EmaExchangeStage,
};
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, CredentialStore as _, OAuthClientConfig,
    default_oauth_http_client,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::discover::{is_named, is_private_way};
use super::sign::Key;
use super::{RIGHTS, TokenFile, discover, wanted_rights};
use crate::read::words::{line, of_http, of_login};
use crate::settings::{Grant, GrantKind, LoginClient, Proof};

/// Time limits of a connection to a login server, and of its answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);
/// A token is renewed this many seconds before its end, or at half of its life.
const BEFORE: u64 = 30;

/// The tokens of one server with such a login. Sessions share them.
#[derive(Debug)]
pub(crate) struct Tokens {
    file: TokenFile,
    url: String,
    client: Option<LoginClient>,
    grant: Grant,
}

/// A token as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    token: String,
    /// Seconds since 1970 from which it is renewed; `None`: it is used until it is refused.
    until: Option<u64>,
    /// The rights that it was asked for.
    #[serde(default)]
    scopes: Vec<String>,
}

impl Tokens {
    /// Those of the server at `url`, in `folder`. Another client, identity, issuer or choice of rights has others.
    pub(crate) fn new(folder: &Path, url: &str, client: Option<&LoginClient>, grant: &Grant) -> Self {
        let (kind, identity) = match &grant.kind {
            GrantKind::Client(_) => ("client", None),
            GrantKind::Workload(token) => ("workload", Some(token.identity())),
            GrantKind::Enterprise { token, issuer, .. } => (issuer.as_str(), Some(token.identity())),
        };
        let id = client.map(|client| &client.id);
        let mark = serde_json::json!([url, kind, id, identity, grant.issuer, grant.scopes]).to_string();
        Self {
            file: TokenFile::new(folder, &mark),
            url: url.to_owned(),
            client: client.cloned(),
            grant: grant.clone(),
        }
    }

    /// A token. `refused`: one that the server does not take, with what it said.
    ///
    /// # Errors
    /// Why there is none; a sentence without a full stop.
    pub(crate) async fn token(&self, refused: Option<(&str, &str)>) -> Result<String, String> {
        // Held until it is kept: parallel sessions ask once.
        let _guard = self.file.acquire_refresh_guard().await.map_err(|e| of_login(&e))?;
        let kept = std::fs::read(&self.file.0).ok();
        let kept: Option<Kept> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(kept) = &kept
            && kept.until.is_none_or(|until| now() < until)
            && refused.is_none_or(|(token, _)| token != kept.token)
        {
            return Ok(kept.token.clone());
        }
        let before = kept.map(|kept| kept.scopes).unwrap_or_default();
        self.replace(refused.map(|(_, challenge)| challenge), &before).await
    }

    /// Gets another token, and keeps it in place of the one before, which stays where there is no other.
    async fn replace(&self, challenge: Option<&str>, before: &[String]) -> Result<String, String> {
        let kept = self.ask(challenge, before).await?;
        let text = serde_json::to_string(&kept).map_err(|e| e.to_string())?;
        tiller_config::write_private(&self.file.0, &text)
            .map_err(|e| format!("the token could not be kept: {e}"))?;
        Ok(kept.token)
    }

    /// Gets another token, with no rights but those that the server demands now.
    ///
    /// # Errors
    /// As [`Self::token`]; the token of before is kept.
    pub(crate) async fn renew(&self) -> Result<(), String> {
        let _guard = self.file.acquire_refresh_guard().await.map_err(|e| of_login(&e))?;
        self.replace(None, &[]).await.map(|_| ())
    }

    /// Removes the token.
    pub(crate) fn forget(&self) {
        // There may be none.
        let _ = std::fs::remove_file(&self.file.0);
    }

    /// True if a token with more rights may be asked for where the server refuses a call for want of some.
    pub(crate) fn may_widen(&self) -> bool {
        self.grant.scopes.is_empty()
    }

    async fn ask(&self, challenge: Option<&str>, before: &[String]) -> Result<Kept, String> {
        tiller_http::install_crypto();
        // The login server of the settings may be one of the user's own network.
        let manager = match self.grant.issuer {
            Some(_) => AuthorizationManager::new_allowing_private_addresses(&self.url).await,
            None => AuthorizationManager::new(&self.url).await,
        };
        let mut manager = manager.map_err(|e| of_login(&e))?;
        let (metadata, published) =
            discover::for_programs(&manager, &self.url, challenge, self.grant.issuer.as_deref())
                .await
                .map_err(|e| of_login(&e))?;
        if !published {
            return Err(
                "the server does not say which login server gives its tokens: its operator has to publish it"
                    .into(),
            );
        }
        let issuer = metadata.issuer.clone().unwrap_or_default();
        if let Some(only) = self.grant.issuer.as_deref().filter(|only| !is_named(&issuer, only)) {
            return Err(format!(
                "the server wants tokens of {}, and its login is for {} alone: nothing was sent",
                line(&issuer, 200),
                line(only, 200)
            ));
        }
        self.may_have_secrets(&issuer)?;
        let endpoint = self.may_have_secrets(&metadata.token_endpoint)?;
        manager.set_metadata(metadata.clone());
        let scopes = self.scopes(&manager, challenge, before).await;
        let resource = resource(manager, &metadata, &self.url).await;
        let made = match &self.grant.kind {
            GrantKind::Enterprise { token, issuer, company } => {
                let token = token.read("the token of your company's login")?;
                let company = company_server(issuer, company).await?;
                self.exchange(company, &metadata, (&token, &resource), scopes.clone()).await?
            }
            own => {
                let mut form = self.form(own, &issuer, &metadata)?;
                form.extend(Some(("resource", resource)));
                form.extend((!scopes.is_empty()).then(|| ("scope", scopes.join(" "))));
                self.post(endpoint, form, &metadata).await?
            }
        };
        Ok(Kept { scopes, ..made })
    }

    /// The parameters by which the login is made, without those of its rights.
    fn form(
        &self,
        kind: &GrantKind,
        issuer: &str,
        metadata: &AuthorizationMetadata,
    ) -> Result<Vec<(&'static str, String)>, String> {
        match (kind, &self.client) {
            (GrantKind::Client(Proof::Key(key, name)), Some(client)) => {
                let key = Key::read(&key.read("the key")?)?;
                let listed = list(metadata, "token_endpoint_auth_signing_alg_values_supported");
                if !listed.is_empty() && !listed.contains(&key.algorithm()) {
                    return Err(format!(
                        "the login server takes no signature of the key's kind, {}; it takes {}",
                        key.algorithm(),
                        line(&listed.join(", "), 200)
                    ));
                }
                let assertion = key.assertion((&client.id, name.as_deref()), issuer, now())?;
                Ok(vec![
                    ("grant_type", "client_credentials".to_owned()),
                    (
                        "client_assertion_type",
                        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer".to_owned(),
                    ),
                    ("client_assertion", assertion),
                ])
            }
            (GrantKind::Workload(token), _) => Ok(vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()),
                ("assertion", token.read("the token of the platform")?),
            ]),
            _ => Ok(vec![("grant_type", "client_credentials".to_owned())]),
        }
    }

    /// The rights to ask for: those of the settings, else those that the server says it wants, with those of `before` where it
    /// wants more.
    async fn scopes(
        &self,
        manager: &AuthorizationManager,
        challenge: Option<&str>,
        before: &[String],
    ) -> Vec<String> {
        if !self.may_widen() {
            return self.grant.scopes.clone();
        }
        let wanted = challenge.map(wanted_rights).unwrap_or_default();
        let before: &[String] = if wanted.is_empty() { &[] } else { before };
        let mut scopes: Vec<String> = Vec::new();
        for scope in before.iter().cloned().chain(manager.select_initial_scopes(&[]).await).chain(wanted) {
            // A refresh token is of no use here.
            if scope != "offline_access" && !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes.truncate(RIGHTS);
        scopes
    }

    /// An address that gets secrets: https, or this machine where the server is on it.
    fn may_have_secrets(&self, endpoint: &str) -> Result<Url, String> {
        let here = Url::parse(&self.url).is_ok_and(|url| tiller_http::is_loopback(&url));
        match Url::parse(endpoint) {
            Ok(url) if is_private_way(endpoint, here) => Ok(url),
            _ => Err(format!(
                "the login server's address {} is no https address: nothing was sent",
                line(endpoint, 200)
            )),
        }
    }

    /// Sends the login, with the client's secret where it has one, and reads the token. It is not sent a second time: what an
    /// assertion says may hold once only.
    async fn post(
        &self,
        endpoint: Url,
        mut form: Vec<(&'static str, String)>,
        metadata: &AuthorizationMetadata,
    ) -> Result<Kept, String> {
        let client = tiller_http::client(&endpoint, CONNECT)?;
        let mut request = client.post(endpoint.clone()).timeout(ANSWER).header("accept", "application/json");
        match &self.client {
            Some(LoginClient { id, secret: Some(secret) }) if is_basic(metadata) => {
                request = request.basic_auth(encoded(id), Some(encoded(secret)));
            }
            Some(LoginClient { id, secret }) => {
                // A signed assertion names the client itself.
                if !form.iter().any(|(name, _)| *name == "client_assertion") {
                    form.push(("client_id", id.clone()));
                }
                form.extend(secret.clone().map(|secret| ("client_secret", secret)));
            }
            None => {}
        }
        let body: Vec<String> =
            form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let request =
            request.header("content-type", "application/x-www-form-urlencoded").body(body.join("&"));
        let host = line(endpoint.host_str().unwrap_or_default(), 200);
        let failed =
            |e: reqwest::Error| format!("the login server {host} cannot be reached: {}", of_http(&e));
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let Some(answer) = discover::body(response).await.map_err(failed)? else {
            return Err(format!("the answer of the login server {host} is too long"));
        };
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if !status.is_success() {
            let said = ["error", "error_description"].iter().filter_map(|name| answer.get(*name)?.as_str());
            let said: Vec<String> = said.map(|text| line(text, 200)).collect();
            let said = if said.is_empty() { format!("HTTP {}", status.as_u16()) } else { said.join(": ") };
            return Err(format!("the login server {host} refuses the login: {said}"));
        }
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let plain = |token: &&str| !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
        match (text("access_token").filter(plain), text("token_type")) {
            (Some(token), Some(kind)) if kind.eq_ignore_ascii_case("bearer") => {
                let seconds = answer.get("expires_in").and_then(Value::as_u64);
                Ok(Kept { token: token.to_owned(), until: until(seconds), scopes: Vec::new() })
            }
            (Some(_), kind) => Err(format!(
                "the login server {host} gave a token of a kind that is not known: {}",
                line(kind.unwrap_or("none is named"), 60)
            )),
            (None, _) => Err(format!("the login server {host} gave no token")),
        }
    }

    /// Exchanges an id token of the company's login for a token of the server.
    async fn exchange(
        &self,
        company: EmaAuthorizationServer,
        metadata: &AuthorizationMetadata,
        (token, resource): (&str, &str),
        scopes: Vec<String>,
    ) -> Result<Kept, String> {
        let Some(client) = &self.client else { return Err("its login needs a client_id".into()) };
        let server = authorization_server(metadata, client);
        let http = default_oauth_http_client().map_err(|e| of_login(&e))?;
        let exchange =
            EmaExchangeRequest::new_with_id_token(company, server, resource, token).with_scopes(scopes);
        let made = exchange.exchange(&http, &http).await.map_err(|e| of_exchange(&e))?;
        Ok(Kept {
            token: made.access_token.secret().clone(),
            until: until(made.expires_in.map(|time| time.as_secs())),
            scopes: Vec::new(),
        })
    }
}

/// The company's login, as it describes itself.
async fn company_server(issuer: &str, client: &LoginClient) -> Result<EmaAuthorizationServer, String> {
    let of_company = |why: String| format!("the company's login {}: {why}", line(issuer, 200));
    let metadata = discover::of_company(issuer, is_named).await;
    let metadata = metadata.ok_or_else(|| {
        of_company("it does not describe itself at its own address: nothing was sent".into())
    })?;
    let here = Url::parse(issuer).is_ok_and(|url| tiller_http::is_loopback(&url));
    if !is_private_way(&metadata.token_endpoint, here) {
        return Err(of_company(format!(
            "its address {} is no https address: nothing was sent",
            line(&metadata.token_endpoint, 200)
        )));
    }
    Ok(authorization_server(&metadata, client))
}

/// A login server and the client there, which shows its secret as the server wants it.
fn authorization_server(metadata: &AuthorizationMetadata, client: &LoginClient) -> EmaAuthorizationServer {
    let server = EmaAuthorizationServer::new(
        metadata.issuer.clone().unwrap_or_default(),
        &metadata.token_endpoint,
        &client.id,
    );
    let Some(secret) = &client.secret else { return server };
    let secret = oauth2::ClientSecret::new(secret.clone());
    server.with_client_authentication(match is_basic(metadata) {
        true => EmaClientAuthentication::ClientSecretBasic(secret),
        false => EmaClientAuthentication::ClientSecretPost(secret),
    })
}

/// Why an exchange gave no token, and what to do.
fn of_exchange(error: &EmaError) -> String {
    let who = |stage: &EmaExchangeStage| match stage {
        EmaExchangeStage::IdentityProvider => "the company's login",
        _ => "the server's login",
    };
    match error {
        EmaError::InvalidGrant(EmaExchangeStage::IdentityProvider)
        | EmaError::InsufficientUserAuthentication(EmaExchangeStage::IdentityProvider) => {
            "the company's login takes the token no more: log in there again, and put the new id token into the settings' \
             variable or file"
                .into()
        }
        EmaError::InvalidGrant(stage) | EmaError::InsufficientUserAuthentication(stage) => {
            format!("{} refuses what the company's login allowed: your administrator has to allow this server", who(stage))
        }
        EmaError::OAuthRejected { stage, status, code } => {
            format!("{} refuses the login: {code} (HTTP {status})", who(stage))
        }
        EmaError::RequestFailed(stage) => format!("{} cannot be reached", who(stage)),
        EmaError::InvalidResponse { stage, message } => {
            format!("the answer of {} cannot be used: {}", who(stage), line(message, 200))
        }
        other => line(&other.to_string(), 200),
    }
}

/// The resource that a token is asked for: the server's name for itself, letter by letter, where it has one.
async fn resource(mut manager: AuthorizationManager, metadata: &AuthorizationMetadata, url: &str) -> String {
    // The library tells it in the address of its page for a login only, which a server for programs may not have.
    let mut metadata = metadata.clone();
    metadata.response_types_supported = None;
    metadata.code_challenge_methods_supported = Some(vec!["S256".into()]);
    manager.set_metadata(metadata);
    if manager.configure_client(OAuthClientConfig::new("tiller", url)).is_ok()
        && let Ok(page) = manager.get_authorization_url(&[]).await
        && let Ok(page) = Url::parse(&page)
        && let Some((_, resource)) = page.query_pairs().find(|(name, _)| name == "resource")
    {
        return resource.into_owned();
    }
    url.to_owned()
}

/// Returns true if a secret is sent as a header: where the server takes it so alone, or names no way (RFC 8414).
fn is_basic(metadata: &AuthorizationMetadata) -> bool {
    let ways = list(metadata, "token_endpoint_auth_methods_supported");
    ways.is_empty() || (ways.contains(&"client_secret_basic") && !ways.contains(&"client_secret_post"))
}

/// A list of names of the metadata.
fn list<'a>(metadata: &'a AuthorizationMetadata, name: &str) -> Vec<&'a str> {
    let all = metadata.additional_fields.get(name).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A value of a form.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

pub(super) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// When a token of this many seconds is renewed.
fn until(seconds: Option<u64>) -> Option<u64> {
    seconds.map(|seconds| now().saturating_add(seconds).saturating_sub(BEFORE.min(seconds / 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_to_https_or_stay_on_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let grant = Grant { kind: GrantKind::Client(Proof::Secret), issuer: None, scopes: Vec::new() };
        let may = |url: &str, endpoint: &str| {
            Tokens::new(folder.path(), url, None, &grant).may_have_secrets(endpoint).is_ok()
        };
        assert!(may("https://a.example/mcp", "https://b.example/token"));
        assert!(may("http://127.0.0.1:1/mcp", "http://localhost:2/token"));
        for endpoint in ["http://b.example/token", "http://127.0.0.1/token", "ftp://b.example/", "x", ""] {
            assert!(!may("https://a.example/mcp", endpoint), "{endpoint}");
        }
        assert!(!may("http://127.0.0.1:1/mcp", "http://b.example/token"));
    }

    #[test]
    fn a_value_of_a_form_keeps_its_letters() {
        assert_eq!(encoded("a b&c=d/ü+1"), "a%20b%26c%3Dd%2F%C3%BC%2B1");
        assert_eq!(until(None), None);
        let at = until(Some(10)).unwrap();
        assert!((now() + 4..=now() + 5).contains(&at), "half of a short life is kept");
    }
}
