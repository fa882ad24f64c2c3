//! OAuth for servers at an address: tokens in a file that parallel sessions share, and the logins.
//!
//! | file | its job |
//! | --- | --- |
//! | here | the login of a person with a browser; its tokens are refreshed by the SDK |
//! | `grant` | logins without a person |
//! | `sign` | private keys that sign for a client |
//! | `discover` | what a server says about its login |

mod discover;
mod grant;
mod sign;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::read::words::of_login;
use crate::settings::LoginClient;
use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialRefreshGuard,
    CredentialStore, OAuthClientConfig, StoredCredentials,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) use grant::Tokens;

/// Time in which a person has to log in.
const LOGIN: Duration = Duration::from_secs(300);
/// Time in which a browser has to send its request.
const REQUEST: Duration = Duration::from_secs(10);
/// Maximum bytes of that request.
const HEAD: usize = 16 << 10;
/// Maximum number of rights of a login.
const RIGHTS: usize = 100;
/// Where the browser is sent back to.
const PATH: &str = "/callback";

/// The tokens for one address, 0600. A lock beside it is held while they are refreshed, so that two sessions do not use up
/// one refresh token.
#[derive(Clone, Debug)]
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// In `folder`, for the server at `url`.
    pub(crate) fn new(folder: &Path, url: &str) -> Self {
        Self(folder.join(format!("token-{}.json", &blake3::hash(url.as_bytes()).to_hex()[..16])))
    }

    /// True if there are tokens.
    pub(crate) fn exists(&self) -> bool {
        self.0.is_file()
    }

    fn lock(&self) -> std::io::Result<File> {
        use std::os::unix::fs::OpenOptionsExt;
        if let Some(folder) = self.0.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let lock = options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.0.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }
}

fn failed(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for TokenFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match std::fs::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(failed),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials).map_err(failed)?;
        tiller_config::write_private(&self.0, &text).map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match std::fs::remove_file(&self.0) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(failed(e)),
            _ => Ok(()),
        }
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let file = self.clone();
        let lock = tokio::task::spawn_blocking(move || file.lock()).await.map_err(failed)?.map_err(failed)?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}

/// What adds tokens to requests, and refreshes them; `None`: the person has not logged in, or with another client id.
///
/// # Errors
/// When the server's login cannot be found out, in words.
pub(crate) async fn manager(
    folder: &Path,
    url: &str,
    client: Option<&LoginClient>,
) -> Result<Option<AuthorizationManager>, String> {
    let words = |e: AuthError| of_login(&e);
    let tokens = TokenFile::new(folder, url);
    if !tokens.exists() {
        return Ok(None);
    }
    let mut manager = AuthorizationManager::new(url).await.map_err(words)?;
    manager.set_credential_store(tokens);
    manager.set_metadata(discover::metadata(&manager, url, None).await.map_err(words)?.0);
    let found = manager.initialize_from_store().await.map_err(words)?;
    if let Some(client) = client.filter(|_| found) {
        let stored = TokenFile::new(folder, url).load().await.map_err(words)?;
        if stored.is_none_or(|stored| stored.client_id != client.id) {
            return Ok(None);
        }
        // A refresh needs the secret, which is not stored with the tokens; it redirects nowhere.
        let mut config = OAuthClientConfig::new(&client.id, url);
        config.client_secret = client.secret.clone();
        manager.configure_client(config).map_err(words)?;
    }
    Ok(found.then_some(manager))
}

/// The rights that a login has to ask for, where the server refused a call for want of some: those of the login so far, and
/// those that it wants now. Empty: the server did not say that it wants more.
pub(crate) async fn rights(
    folder: &Path,
    url: &str,
    before: &[String],
    challenge: Option<&str>,
) -> Vec<String> {
    let wanted = challenge.map(wanted_rights).unwrap_or_default();
    if wanted.is_empty() {
        return wanted;
    }
    let stored = TokenFile::new(folder, url).load().await.ok().flatten();
    let mut all = stored.map(|stored| stored.granted_scopes).unwrap_or_default();
    all.extend(before.iter().cloned().chain(wanted));
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|scope| !scope.is_empty() && seen.insert(scope.clone()));
    all.truncate(RIGHTS);
    all
}

/// The rights that a challenge wants beyond those of the login; empty where it says no such thing.
pub(crate) fn wanted_rights(challenge: &str) -> Vec<String> {
    if parameter(challenge, "error").as_deref() != Some("insufficient_scope") {
        return Vec::new();
    }
    let scope = parameter(challenge, "scope").unwrap_or_default();
    let plain = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    scope
        .split_ascii_whitespace()
        .filter(|s| s.len() < 200 && s.chars().all(plain))
        .take(RIGHTS)
        .map(str::to_owned)
        .collect()
}

/// A parameter of a challenge (RFC 9110), in quotes or not.
pub(crate) fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some((before, after)) = rest.split_once('=') {
        let key = before.trim_end().rsplit([' ', ',', '\t']).next().unwrap_or_default();
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_at(after.find([',', ' ']).unwrap_or(after.len())),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = left;
    }
    None
}

/// Lets the person log in. `challenge`: what the server answered, when it said what it wants; `rights`: what to ask for, where
/// that is known. `show` gets the address of the page. `client`: `None` where Tiller registers itself. A port of this machine listens until the browser has come back, or [`LOGIN`] is over.
///
/// # Errors
/// Why there are no tokens; a sentence without a full stop.
pub(crate) async fn log_in(
    folder: &Path,
    (url, client): (&str, Option<&LoginClient>),
    (challenge, rights): (Option<&str>, &[String]),
    show: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), String> {
    tiller_http::install_crypto();
    let words = |e: AuthError| of_login(&e);
    let listener =
        TcpListener::bind("127.0.0.1:0").await.map_err(|e| format!("no port could be opened: {e}"))?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let redirect = format!("http://127.0.0.1:{port}{PATH}");
    let mut manager = AuthorizationManager::new(url).await.map_err(words)?;
    manager.set_credential_store(TokenFile::new(folder, url));
    let mut request =
        AuthorizationRequest::new(redirect).with_client_name("Tiller").with_initial_scope_selection();
    if let Some(challenge) = challenge {
        request = request.with_challenge(challenge);
    }
    if !rights.is_empty() {
        request = request.with_scopes(rights);
    }
    // The address of a document about the client is an id, too.
    if let Some(client) = client {
        request.client_id = Some(client.id.clone());
        request.client_secret = client.secret.clone();
    }
    let (metadata, _) = discover::metadata(&manager, url, challenge).await.map_err(words)?;
    manager.set_metadata(metadata);
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, e)| words(e))?;
    let page = session.get_authorization_url();
    if !(page.starts_with("https://")
        || page.starts_with("http://127.0.0.1")
        || page.starts_with("http://localhost"))
    {
        return Err("the server's page for the login is not an https address".into());
    }
    show(page);
    let back = tokio::time::timeout(LOGIN, come_back(&listener)).await;
    let back = back.map_err(|_| format!("there was no login within {} minutes", LOGIN.as_secs() / 60))??;
    session.handle_callback_url(&format!("http://127.0.0.1:{port}{back}")).await.map_err(words)?;
    Ok(())
}

/// Waits for the browser; returns the path that it asked for.
async fn come_back(listener: &TcpListener) -> Result<String, String> {
    loop {
        let (mut stream, _) = listener.accept().await.map_err(|e| e.to_string())?;
        let Ok(Some(path)) = tokio::time::timeout(REQUEST, path_of(&mut stream)).await else { continue };
        let ours = path.split('?').next() == Some(PATH);
        let (status, text) = if ours {
            ("200 OK", "Tiller has got it. You can close this page.")
        } else {
            ("404 Not Found", "There is nothing here.")
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        // The browser may have gone.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        if ours {
            return Ok(path);
        }
    }
}

/// The path of a request; `None`: it is none.
async fn path_of(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = stream.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        head.extend_from_slice(&chunk[..n]);
        if head.len() > HEAD {
            return None;
        }
    }
    let line = String::from_utf8_lossy(&head).lines().next()?.to_owned();
    let path = line.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod grant_tests;
#[cfg(test)]
mod login_tests;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn more_rights_are_asked_for_together_with_those_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let url = "https://a.example/mcp";
        let more = |scope: &str| {
            format!("Bearer realm=\"x, scope=no\", error=\"insufficient_scope\", scope=\"{scope}\"")
        };
        let ask = async |before: &[&str], challenge: &str| {
            let before: Vec<String> = before.iter().map(|s| (*s).to_owned()).collect();
            rights(folder.path(), url, &before, Some(challenge)).await.join(" ")
        };
        assert_eq!(ask(&[], &more("write")).await, "write");
        let granted = vec!["read".to_owned(), "list".into()];
        let stored = StoredCredentials::new("id".into(), None, granted, None);
        TokenFile::new(folder.path(), url).save(stored).await.unwrap();
        assert_eq!(ask(&[], &more("write admin")).await, "read list write admin");
        assert_eq!(ask(&["draw", "read"], &more("write list")).await, "read list draw write");
        assert_eq!(ask(&[], "Bearer error=insufficient_scope, scope=write").await, "read list write");
        // No such word: the SDK chooses.
        for other in [
            "",
            "Bearer",
            "Bearer scope=\"write\"",
            "Bearer error=\"invalid_token\", scope=\"write\"",
            "=\"",
            "a=\"b",
        ] {
            assert_eq!(ask(&["draw"], other).await, "", "{other}");
        }
        let hostile = more(&"a\u{1b}[2J \u{202e} ok ".repeat(1000));
        assert_eq!(ask(&[], &hostile).await, "read list ok");
    }

    #[tokio::test]
    async fn tokens_are_private_and_one_session_refreshes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path(), "https://a.example/mcp");
        assert!(file.load().await.unwrap().is_none() && !file.exists());
        file.save(StoredCredentials::new("id".into(), None, vec![], None)).await.unwrap();
        assert_eq!(file.load().await.unwrap().unwrap().client_id, "id");
        assert_eq!(std::fs::metadata(&file.0).unwrap().permissions().mode() & 0o777, 0o600);
        let first = file.acquire_refresh_guard().await.unwrap();
        let other = file.clone();
        let second = tokio::spawn(async move { other.acquire_refresh_guard().await.map(|_| ()) });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!second.is_finished(), "another session waits");
        drop(first);
        second.await.unwrap().unwrap();
        file.clear().await.unwrap();
        assert!(!file.exists());
    }
}
