//! Logins at a server: with a browser, or without a person.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tiller_config::{McpLogin, McpLoginKind, McpServer, McpTransport};

/// The client that a server's operator made for the user.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginClient {
    pub id: String,
    /// Never shown.
    pub secret: Option<String>,
}

impl fmt::Debug for LoginClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginClient").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A login without a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub kind: GrantKind,
    /// The only issuer that gets the secrets; `None`: the one that the server names.
    pub issuer: Option<String>,
    /// Empty: those that the server says it wants.
    pub scopes: Vec<String>,
}

/// The credential that is shown for a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantKind {
    /// The client's own secret, or a key that it signs with.
    Client(Proof),
    /// A token of the platform.
    Workload(Secret),
    /// An id token of the user, which the company's login exchanges.
    Enterprise { token: Secret, issuer: String, company: LoginClient },
}

/// How a client shows that it is itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The secret of the [`LoginClient`].
    Secret,
    /// A private key, and the name that the login server has for it.
    Key(Secret, Option<String>),
}

/// A secret, which is read when it is needed. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    Text(String),
    /// It may be renewed there.
    File(PathBuf),
}

/// Maximum bytes of a file with a secret.
const FILE: u64 = 64 << 10;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Secret"),
            Self::File(path) => f.debug_tuple("Secret").field(path).finish(),
        }
    }
}

impl Secret {
    /// Reads it; without blanks around it. It may read a file.
    ///
    /// # Errors
    /// When it is empty, or its file cannot be read; a sentence without a full stop.
    pub(crate) fn read(&self, what: &str) -> Result<String, String> {
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::File(path) => {
                use std::io::Read;
                let why = |e: std::io::Error| {
                    format!("the file {} with {what} cannot be read: {e}", path.display())
                };
                let mut text = String::new();
                std::fs::File::open(path)
                    .and_then(|file| file.take(FILE).read_to_string(&mut text))
                    .map_err(why)?;
                text
            }
        };
        match (text.trim(), self) {
            ("", Self::File(path)) => Err(format!("the file {} with {what} is empty", path.display())),
            ("", Self::Text(_)) => Err(format!("{what} is empty")),
            (text, _) => Ok(text.to_owned()),
        }
    }

    /// A mark of the identity that a token shows: its file, or its issuer and subject; a token that names none is its own mark.
    pub(crate) fn identity(&self) -> String {
        let text = match self {
            Self::File(path) => return path.display().to_string(),
            Self::Text(text) => text.trim(),
        };
        let claims = text.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let claims = claims.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
        match claims.filter(|claims| claims.get("sub").is_some()) {
            Some(claims) => serde_json::json!([claims["iss"], claims["sub"]]).to_string(),
            None => text.to_owned(),
        }
    }
}

/// One of both ways to name a secret. `Err`: both, in words.
fn secret(
    (text, file): (Option<String>, Option<PathBuf>),
    (name, what): (&str, &str),
) -> Result<Option<Secret>, String> {
    match (text, file) {
        (Some(_), Some(_)) => Err(format!("its login has both {name} and {name}_file")),
        (Some(text), None) if text.trim().is_empty() => Err(format!("{what} of its login is empty")),
        (Some(text), None) => Ok(Some(Secret::Text(text))),
        (None, Some(file)) if !file.is_absolute() => Err(format!(
            "the {name}_file of its login, '{}', must be an absolute path or begin with ~/",
            file.display().to_string().escape_default()
        )),
        (None, file) => Ok(file.map(Secret::File)),
    }
}

/// Reads the login of a server at an address. `text` replaces variables; `path` also `~/`.
///
/// # Errors
/// When a part is missing, or is of another kind of login; a sentence without a full stop.
pub(super) fn grant(
    server: &McpServer,
    client: Option<&LoginClient>,
    text: &dyn Fn(&str) -> Result<String, String>,
    path: &dyn Fn(&str) -> PathBuf,
) -> Result<Option<Grant>, String> {
    let Some(login) = &server.login else { return Ok(None) };
    if server.transport == Some(McpTransport::Sse) {
        return Err("its transport is sse, which has no login".into());
    }
    if server.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        return Err("it has both a login and an Authorization header".into());
    }
    let texts = |one: &Option<String>| one.as_deref().map(text).transpose();
    let key = secret((texts(&login.key)?, login.key_file.as_deref().map(path)), ("key", "the key"))?;
    let token =
        secret((texts(&login.token)?, login.token_file.as_deref().map(path)), ("token", "the token"))?;
    let McpLogin { kind, issuer, scopes, key_id, company, .. } = login;
    let only = |kind: &str, name: &str| Err(format!("its login has {name}, which only the kind {kind} uses"));
    let kind = match kind {
        McpLoginKind::Client if token.is_some() => return only("workload or enterprise", "a token"),
        McpLoginKind::Client | McpLoginKind::Workload if company.is_some() => {
            return only("enterprise", "a company");
        }
        McpLoginKind::Workload | McpLoginKind::Enterprise if key.is_some() => return only("client", "a key"),
        McpLoginKind::Client => match (client, key) {
            (None, _) => return Err("its login needs a client_id".into()),
            (Some(LoginClient { secret: Some(_), .. }), Some(_)) => {
                return Err("its login has both a client_secret and a key".into());
            }
            (Some(LoginClient { secret: None, .. }), None) => {
                return Err("its login needs a client_secret, a key or a key_file".into());
            }
            (Some(_), None) => GrantKind::Client(Proof::Secret),
            (Some(_), Some(key)) => GrantKind::Client(Proof::Key(key, key_id.clone())),
        },
        McpLoginKind::Workload => {
            GrantKind::Workload(token.ok_or("its login needs a token or a token_file of the platform")?)
        }
        McpLoginKind::Enterprise => {
            let token = token.ok_or("its login needs a token or a token_file of your company's login")?;
            let company =
                company.as_ref().ok_or("its login needs a company with an issuer and a client_id")?;
            if client.is_none() {
                return Err("its login needs a client_id, that of the server's own login".into());
            }
            let (issuer, id) = (text(&company.issuer)?, text(&company.client_id)?);
            is_issuer(&issuer)?;
            if id.trim().is_empty() {
                return Err("the company of its login needs a client_id".into());
            }
            let secret = texts(&company.client_secret)?;
            GrantKind::Enterprise { token, issuer, company: LoginClient { id, secret } }
        }
    };
    let issuer = texts(issuer)?;
    issuer.as_deref().map(is_issuer).transpose()?;
    let url = reqwest::Url::parse(&texts(&server.url)?.unwrap_or_default());
    if issuer.is_none() && url.is_ok_and(|url| url.scheme() == "http" && !tiller_http::is_loopback(&url)) {
        return Err("its login needs an issuer, since its address is no https address: the answer could name another login server"
            .into());
    }
    if let Some(wrong) =
        scopes.iter().find(|scope| scope.is_empty() || !scope.chars().all(|c| c.is_ascii_graphic()))
    {
        return Err(format!(
            "its login asks for '{}', which cannot be the name of a right",
            wrong.escape_default()
        ));
    }
    Ok(Some(Grant { kind, issuer, scopes: scopes.clone() }))
}

/// Fails for what is no address of a login server that secrets may be sent to.
fn is_issuer(issuer: &str) -> Result<(), String> {
    match reqwest::Url::parse(issuer) {
        Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && tiller_http::is_loopback(&url)) => {
            Ok(())
        }
        _ => Err(format!("the issuer '{}' of its login is no https address", issuer.escape_default())),
    }
}

impl Grant {
    /// The values that are kept out of transcripts and logs. Those in files are not read.
    pub(super) fn secrets(&self) -> Vec<String> {
        let (secret, other) = match &self.kind {
            GrantKind::Client(Proof::Secret) => (None, None),
            GrantKind::Client(Proof::Key(secret, _)) | GrantKind::Workload(secret) => (Some(secret), None),
            GrantKind::Enterprise { token, company, .. } => (Some(token), company.secret.clone()),
        };
        let text = secret.and_then(|secret| match secret {
            Secret::Text(text) => Some(text.clone()),
            Secret::File(_) => None,
        });
        text.into_iter().chain(other).collect()
    }
}

/// The texts of a login that may name variables.
pub(super) fn texts(login: &McpLogin) -> impl Iterator<Item = &String> {
    let company = login.company.iter();
    let company = company.flat_map(|c| [Some(&c.issuer), Some(&c.client_id), c.client_secret.as_ref()]);
    let own = [&login.issuer, &login.key, &login.token].into_iter().map(Option::as_ref);
    own.chain(company).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::{Origin, ServerSettings, Transport, variables};

    fn lookup(name: &str) -> Option<String> {
        match name {
            "SET" => Some("the-value".into()),
            "HOME" => Some("/home/me".into()),
            _ => None,
        }
    }

    fn read_as(origin: Origin, more: Value) -> Result<ServerSettings, String> {
        let mut server = json!({"url": "https://a.example/mcp"});
        for (key, value) in more.as_object().unwrap() {
            server[key] = value.clone();
        }
        ServerSettings::new("a", origin, &serde_json::from_value(server).unwrap(), &lookup)
    }

    fn read(more: Value) -> Result<ServerSettings, String> {
        read_as(Origin::User, more)
    }

    fn grant(more: Value) -> Grant {
        let Transport::Http { grant: Some(grant), .. } = read(more).unwrap().transport else {
            panic!("no login")
        };
        grant
    }

    #[test]
    fn each_kind_of_login_has_its_parts_and_no_others() {
        let company = json!({"issuer": "https://idp.example", "client_id": "me"});
        let client = grant(json!({"client_id": "c", "client_secret": "${SET}", "login": {}}));
        assert_eq!(client.kind, GrantKind::Client(Proof::Secret));
        let key = grant(json!({"client_id": "c", "login": {"key_file": "~/k.pem", "key_id": "1"}}));
        let file = Secret::File("/home/me/k.pem".into());
        assert_eq!(key.kind, GrantKind::Client(Proof::Key(file, Some("1".into()))));
        let job = grant(json!({"login": {"kind": "workload", "token": "${SET}", "scopes": ["a", "b"]}}));
        assert_eq!(job.kind, GrantKind::Workload(Secret::Text("the-value".into())));
        assert_eq!(job.scopes, ["a", "b"]);
        let login = json!({"kind": "enterprise", "token_file": "/t", "company": company});
        assert!(matches!(
            grant(json!({"client_id": "c", "login": login})).kind,
            GrantKind::Enterprise { .. }
        ));
        for (wrong, why) in [
            (json!({"login": {}}), "needs a client_id"),
            (json!({"client_id": "c", "login": {}}), "needs a client_secret, a key or a key_file"),
            (
                json!({"client_id": "c", "client_secret": "s", "login": {"key": "k"}}),
                "both a client_secret and a key",
            ),
            (json!({"client_id": "c", "login": {"key": "k", "key_file": "f"}}), "both key and key_file"),
            (json!({"client_id": "c", "login": {"key": " "}}), "the key of its login is empty"),
            (json!({"client_id": "c", "login": {"key_file": "k.pem"}}), "must be an absolute path"),
            (
                json!({"client_id": "c", "client_secret": "s", "login": {"token": "t"}}),
                "workload or enterprise",
            ),
            (
                json!({"client_id": "c", "client_secret": "s", "login": {"company": company}}),
                "only the kind enterprise",
            ),
            (json!({"login": {"kind": "workload"}}), "needs a token or a token_file"),
            (json!({"login": {"kind": "workload", "token": "t", "key": "k"}}), "only the kind client"),
            (json!({"login": {"kind": "workload", "token": "${NOT}"}}), "NOT"),
            (json!({"login": {"kind": "enterprise", "token": "t"}}), "needs a company"),
            (
                json!({"login": {"kind": "enterprise", "token": "t", "company": company}}),
                "server's own login",
            ),
            (
                json!({"login": {"kind": "workload", "token": "t", "issuer": "http://x.example"}}),
                "no https address",
            ),
            (json!({"login": {"kind": "workload", "token": "t", "scopes": ["a b"]}}), "name of a right"),
            (json!({"login": {"kind": "workload", "token": "t"}, "transport": "sse"}), "has no login"),
            (
                json!({"login": {"kind": "workload", "token": "t"}, "headers": {"authorization": "x"}}),
                "both a login",
            ),
        ] {
            let error = read(wrong.clone()).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let program = json!({"command": "x", "login": {"kind": "workload", "token": "t"}});
        let error =
            ServerSettings::new("a", Origin::User, &serde_json::from_value(program).unwrap(), &lookup);
        assert!(error.unwrap_err().contains("only a server with a url"));
    }

    #[test]
    fn a_bare_line_does_not_choose_the_server_that_gets_the_secrets() {
        let at = |url: &str, issuer: Option<&str>| {
            read(json!({"url": url, "login": {"kind": "workload", "token": "t", "issuer": issuer}}))
        };
        assert!(at("http://a.example/mcp", None).unwrap_err().contains("needs an issuer"));
        assert!(at("http://a.example/mcp", Some("https://login.example")).is_ok());
        assert!(at("http://127.0.0.1:1/mcp", None).is_ok() && at("https://a.example/mcp", None).is_ok());
    }

    #[test]
    fn an_identity_is_that_of_a_token_and_not_of_its_time() {
        let token = |subject: &str, end: u64| {
            let claims = json!({"iss": "https://idp.example", "sub": subject, "exp": end}).to_string();
            Secret::Text(format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))).identity()
        };
        assert_eq!(token("ada", 1), token("ada", 2));
        assert_ne!(token("ada", 1), token("bob", 1));
        let plain = |text: &str| Secret::Text(text.into()).identity();
        assert_ne!(plain("a.e30.b"), plain("c.e30.b"));
        assert_eq!(plain(" x\n"), "x");
    }

    /// A login sends secrets of this machine to an address: only the person's own settings may name both.
    #[test]
    fn only_the_persons_own_settings_have_a_login_without_a_person() {
        let login = || json!({"login": {"kind": "workload", "token_file": "/home/me/.ssh/id"}});
        for origin in [Origin::Project, Origin::Plugin, Origin::Client, Origin::Demo, Origin::Argument] {
            let error = read_as(origin, login()).unwrap_err();
            assert!(error.contains("config.toml"), "{origin:?}: {error}");
        }
        assert!(read_as(Origin::User, login()).is_ok());
    }

    #[test]
    fn secrets_of_a_login_are_known_and_never_shown_and_count_for_what_was_agreed_to() {
        let company =
            json!({"issuer": "https://idp.example", "client_id": "me", "client_secret": "of-company"});
        let login = json!({"kind": "enterprise", "token": "${SET}", "company": company});
        let settings =
            read(json!({"client_id": "c", "client_secret": "own-secret", "login": login})).unwrap();
        assert_eq!(settings.secrets(), ["own-secret", "the-value", "of-company"]);
        let shown = format!("{settings:?}");
        for secret in settings.secrets() {
            assert!(!shown.contains(&secret), "{shown}");
        }
        let server = json!({"url": "https://a.example/${U}", "client_id": "c",
            "login": {"kind": "enterprise", "token": "${T}", "company": {"issuer": "${I}", "client_id": "${C}", "client_secret": "${S}"}}});
        assert_eq!(variables(&serde_json::from_value(server).unwrap()), ["C", "I", "S", "T", "U"]);
        let hash = |more: Value| read(more).unwrap().hash;
        let with =
            |scope: &str| hash(json!({"login": {"kind": "workload", "token": "t", "scopes": [scope]}}));
        assert_ne!(with("a"), hash(json!({})));
        assert_ne!(with("a"), with("b"));
    }

    #[test]
    fn a_file_with_a_secret_is_read_each_time_and_its_faults_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let secret = Secret::File(path.clone());
        assert!(secret.read("the token").unwrap_err().contains("cannot be read"));
        std::fs::write(&path, "one\n").unwrap();
        assert_eq!(secret.read("the token").unwrap(), "one");
        std::fs::write(&path, " two ").unwrap();
        assert_eq!(secret.read("the token").unwrap(), "two");
        std::fs::write(&path, "\n").unwrap();
        assert!(secret.read("the token").unwrap_err().ends_with("is empty"));
    }
}
