//! The metadata of a server's login. The library finds them as the revisions since 2025-06-18 define; here they are compared with
//! their issuer, and found for servers of the revision before.

use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata};
use serde_json::Value;

use super::parameter;
use crate::read::words::line;

/// Time limit of a request.
const ANSWER: std::time::Duration = std::time::Duration::from_secs(30);
/// Maximum number of requests for one answer.
const REDIRECTS: usize = 5;
/// Maximum bytes of an answer.
const BYTES: usize = 256 << 10;

/// The metadata of a server's login, and whether it publishes them: else they are the addresses that a server of revision
/// 2025-03-26 has without a word.
///
/// # Errors
/// When they cannot be read, or must not be used.
pub(super) async fn metadata(
    manager: &AuthorizationManager,
    url: &str,
    challenge: Option<&str>,
) -> Result<(AuthorizationMetadata, bool), AuthError> {
    match manager.resolve_metadata_from_challenge(challenge).await {
        Ok(found) if !found.source.is_discovered() => Ok((found.metadata, false)),
        Ok(found) => Ok((of_their_issuer(url, found.metadata).await?, true)),
        Err(error @ AuthError::AuthorizationServerMismatch { .. }) => {
            let named = challenge.is_some_and(|challenge| challenge.contains("resource_metadata"));
            let own = if named { None } else { of_one_host(url).await };
            own.map(|metadata| (metadata, true)).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// The metadata of a server of revision 2025-03-26, which is its own login server and may name itself by a path (`/oauth`) while
/// its metadata stand at the root. The newer rule, that the name leads to the metadata, keeps one login server from speaking
/// for another one; here all is of the one host that the person named: the issuer and each address are its own, and it
/// describes itself as no protected resource of another server. `None`: something of this does not hold.
async fn of_one_host(url: &str) -> Option<AuthorizationMetadata> {
    let url = Url::parse(url).ok()?;
    let client = tiller_http::client(&url, ANSWER).ok()?;
    let own = format!("/.well-known/oauth-protected-resource{}", url.path().trim_end_matches('/'));
    for newer in [own.as_str(), "/.well-known/oauth-protected-resource"] {
        // Only a clear no is one.
        if client.get(at(&url, newer)).timeout(ANSWER).send().await.ok()?.status().as_u16() != 404 {
            return None;
        }
    }
    let response =
        client.get(at(&url, "/.well-known/oauth-authorization-server")).timeout(ANSWER).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let bytes = body(response).await.ok()??;
    let metadata: AuthorizationMetadata = serde_json::from_slice(&bytes).ok()?;
    is_of_one_host(&url, &metadata).then_some(metadata)
}

/// The metadata as their issuer publishes them, where not all is of the server itself. The library does not compare the issuer
/// with the place of metadata at an address such as `https://other.example/.well-known/x`: another server could use its name, and
/// get what is for it.
async fn of_their_issuer(
    url: &str,
    metadata: AuthorizationMetadata,
) -> Result<AuthorizationMetadata, AuthError> {
    let server = Url::parse(url).ok();
    if server.as_ref().is_some_and(|server| is_of_one_host(server, &metadata)) {
        return Ok(metadata);
    }
    let issuer = metadata.issuer.unwrap_or_default();
    // The server chose this name: it is no way to services of this machine or network that have no certificate.
    let here = server.is_some_and(|server| tiller_http::is_loopback(&server));
    let found = match is_private_way(&issuer, here) {
        true => of_issuer(&issuer).await,
        false => None,
    };
    found.ok_or_else(|| {
        AuthError::MetadataError(format!(
            "the login server {} does not describe itself at its own address: nothing was sent",
            line(&issuer, 200)
        ))
    })
}

/// The metadata for a login without a person: as [`metadata`], and those of a login server that has no page for persons, which
/// the library does not read. Such a one is the server's own, or `issuer`, the one of the settings: the library's rules about
/// addresses that a stranger names do not hold here.
///
/// # Errors
/// As [`metadata`].
pub(super) async fn for_programs(
    manager: &AuthorizationManager,
    url: &str,
    challenge: Option<&str>,
    issuer: Option<&str>,
) -> Result<(AuthorizationMetadata, bool), AuthError> {
    let found = metadata(manager, url, challenge).await;
    if matches!(found, Ok((_, true))) {
        return found;
    }
    let Some(named) = named_issuer(url, challenge).await else { return found };
    let own = |one: &str| Url::parse(one).ok().map(|url| url.origin());
    if own(&named) != own(url) && !issuer.is_some_and(|issuer| is_named(&named, issuer)) {
        return found;
    }
    of_company(&named, is_same).await.map_or(found, |metadata| Ok((metadata, true)))
}

/// The login server that the server names in its description (RFC 9728). `None`: it names none that may be asked.
async fn named_issuer(url: &str, challenge: Option<&str>) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let client = tiller_http::client(&url, ANSWER).ok()?;
    let advertised = challenge.and_then(|challenge| parameter(challenge, "resource_metadata"));
    let advertised = advertised.and_then(|place| Url::parse(&place).ok());
    let own = format!("/.well-known/oauth-protected-resource{}", url.path().trim_end_matches('/'));
    let places = [own.as_str(), "/.well-known/oauth-protected-resource"].map(|path| at(&url, path));
    for place in advertised.into_iter().chain(places).filter(|place| place.origin() == url.origin()) {
        let response = get(&client, place).await?;
        if !response.status().is_success() {
            continue;
        }
        let description: Value = serde_json::from_slice(&body(response).await.ok()??).ok()?;
        let resource = Url::parse(description["resource"].as_str()?).ok()?;
        if resource.origin() != url.origin() || !url.path().starts_with(resource.path()) {
            return None;
        }
        let issuer = description["authorization_servers"].as_array()?.first()?.as_str()?;
        let here = tiller_http::is_loopback(&url);
        return is_private_way(issuer, here).then(|| issuer.to_owned());
    }
    None
}

/// True for an address whose messages cannot be read on their way: https, or this machine where `here` allows it.
pub(super) fn is_private_way(address: &str, here: bool) -> bool {
    Url::parse(address).is_ok_and(|url| {
        url.scheme() == "https" || (here && url.scheme() == "http" && tiller_http::is_loopback(&url))
    })
}

/// The metadata of a login server that programs use. It need not have a page for persons; its addresses may be private ones. `same`
/// compares the name that it gives itself with `issuer`.
pub(super) async fn of_company(issuer: &str, same: fn(&str, &str) -> bool) -> Option<AuthorizationMetadata> {
    let mut published = published(issuer, same).await?;
    if published.get("authorization_endpoint").is_none() {
        // The library's form needs one. No person is sent there.
        published["authorization_endpoint"] = published["token_endpoint"].clone();
    }
    serde_json::from_value(published).ok()
}

/// The metadata that the login server `issuer` publishes about itself.
async fn of_issuer(issuer: &str) -> Option<AuthorizationMetadata> {
    serde_json::from_value(published(issuer, is_same).await?).ok()
}

/// The description that the login server `issuer` publishes about itself.
async fn published(issuer: &str, same: fn(&str, &str) -> bool) -> Option<Value> {
    let url = Url::parse(issuer).ok()?;
    let client = tiller_http::client(&url, ANSWER).ok()?;
    let path = url.path().trim_end_matches('/');
    for place in [
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
        "/.well-known/oauth-authorization-server".to_owned(),
    ] {
        let response = get(&client, at(&url, &place)).await?;
        if !response.status().is_success() {
            continue;
        }
        let bytes = body(response).await.ok()??;
        if let Ok(found) = serde_json::from_slice::<Value>(&bytes)
            && found["issuer"].as_str().is_some_and(|named| same(named, issuer))
            && found["token_endpoint"].is_string()
        {
            return Some(found);
        }
    }
    None
}

/// The answer at an address, behind redirects within its server. `None`: there is none.
async fn get(client: &reqwest::Client, mut url: Url) -> Option<reqwest::Response> {
    for _ in 0..REDIRECTS {
        let response = client.get(url.clone()).timeout(ANSWER).send().await.ok()?;
        let to = response.headers().get(reqwest::header::LOCATION);
        let to = to.and_then(|to| url.join(to.to_str().ok()?).ok());
        match to.filter(|to| response.status().is_redirection() && to.origin() == url.origin()) {
            Some(to) => url = to,
            None => return Some(response),
        }
    }
    None
}

/// The address of another path at the same server.
fn at(url: &Url, path: &str) -> Url {
    let mut at = url.clone();
    at.set_query(None);
    at.set_fragment(None);
    at.set_path(path);
    at
}

/// The body of an answer; `None`: it has more than [`BYTES`].
pub(super) async fn body(response: reqwest::Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let (body, more) = tiller_http::read(response, BYTES).await?;
    Ok(Some(body).filter(|_| !more))
}

/// Issuers are compared letter by letter, but for a slash behind a host.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let plain = |issuer: &str| {
        let bare = issuer.strip_suffix('/').unwrap_or(issuer);
        let host = bare.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
        if host { bare.to_owned() } else { issuer.to_owned() }
    };
    !one.is_empty() && plain(one) == plain(other)
}

/// True if `found` is the login server that the user wrote as `one`: a slash at its end is no other server.
pub(super) fn is_named(found: &str, one: &str) -> bool {
    let plain = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
    !one.is_empty() && plain(found) == plain(one)
}

/// True if the issuer and each address are of the server's own origin.
fn is_of_one_host(url: &Url, metadata: &AuthorizationMetadata) -> bool {
    let mut all = vec![metadata.authorization_endpoint.as_str(), metadata.token_endpoint.as_str()];
    all.extend(metadata.registration_endpoint.as_deref());
    let Some(issuer) = metadata.issuer.as_deref() else { return false };
    all.push(issuer);
    all.iter().all(|at| Url::parse(at).is_ok_and(|at| at.origin() == url.origin() && at.origin().is_tuple()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn issuers_are_compared_letter_by_letter() {
        for (one, other, same) in [
            ("https://a.example", "https://a.example", true),
            ("https://a.example/", "https://a.example", true),
            ("https://a.example/x", "https://a.example/x/", false),
            ("https://a.example", "https://A.example", false),
            ("https://a.example", "https://a.example.evil", false),
            ("", "", false),
        ] {
            assert_eq!(is_same(one, other), same, "{one} {other}");
        }
        // The one that the user wrote may end with a slash.
        assert!(is_named("https://a.example/x", "https://a.example/x/"));
        assert!(is_named("https://a.example/x/", "https://a.example/x"));
        for other in ["https://a.example/y", "https://a.example/x//", "https://A.example/x", ""] {
            assert!(!is_named("https://a.example/x", other), "{other}");
        }
    }

    #[test]
    fn only_metadata_whose_every_address_is_of_the_server_itself_may_name_it_by_a_path() {
        let url = Url::parse("https://a.example/mcp").unwrap();
        let ask = |change: serde_json::Value| {
            let mut whole = json!({
                "issuer": "https://a.example/oauth", "authorization_endpoint": "https://a.example/oauth/authorize",
                "token_endpoint": "https://a.example/oauth/token", "registration_endpoint": "https://a.example/oauth/register"
            });
            for (key, value) in change.as_object().unwrap() {
                whole[key] = value.clone();
            }
            is_of_one_host(&url, &serde_json::from_value(whole).unwrap())
        };
        assert!(ask(json!({})));
        assert!(ask(json!({"registration_endpoint": null})));
        for (key, value) in [
            ("issuer", json!("https://attacker.example.com")),
            ("issuer", json!("http://a.example/oauth")),
            ("issuer", json!("https://a.example:8443/oauth")),
            ("issuer", json!("https://a.example.evil/oauth")),
            ("issuer", json!("a.example")),
            ("issuer", json!(null)),
            ("authorization_endpoint", json!("https://b.example/authorize")),
            ("token_endpoint", json!("https://b.example/token")),
            ("token_endpoint", json!("javascript:1")),
            ("registration_endpoint", json!("https://b.example/register")),
        ] {
            assert!(!ask(json!({key: value})), "{key}: {value}");
        }
    }
}
