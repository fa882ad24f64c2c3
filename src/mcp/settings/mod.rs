//! Servers of the settings, with variables replaced.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tiller_config::{McpServer, McpTransport};

mod login;
mod project;

pub(crate) use login::{Grant, GrantKind, LoginClient, Proof};
pub use project::project_servers;

/// Default time limit of a start.
const START: Duration = Duration::from_secs(30);
/// Default time limit of a call without progress.
const CALL: Duration = Duration::from_secs(60);
/// Maximum number of servers of a project's file.
const MOST: usize = 50;

/// Where a server comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The person's config.toml.
    User,
    /// The project's `.mcp.json`: it asks before its first use.
    Project,
    /// The command line of `tiller mcp`.
    Argument,
    /// `tiller demo`.
    Demo,
    /// A plugin that the person agreed to.
    Plugin,
    /// The client of `tiller acp`, for one of its sessions.
    Client,
}

impl Origin {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "config.toml",
            Self::Project => ".mcp.json",
            Self::Argument => "command line",
            Self::Demo => "demo",
            Self::Plugin => "plugin",
            Self::Client => "client",
        }
    }
}

/// Looks before each start whether what a server was agreed to with still holds. It may read files.
#[derive(Clone)]
pub struct StartCheck(pub Arc<dyn Fn() -> Result<Started, String> + Send + Sync>);

/// Looks once the program has started whether what it runs stayed as it was.
pub type Started = Box<dyn FnOnce() -> Result<(), String> + Send>;

impl fmt::Debug for StartCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartCheck")
    }
}

impl PartialEq for StartCheck {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started here.
    Stdio { command: String, args: Vec<String>, env: Vec<(String, String)>, folder: Option<PathBuf> },
    /// An address. `kind`: `None` where it is found out.
    /// `client`: `None` where Tiller registers itself for a login.
    Http {
        url: String,
        headers: Vec<(String, String)>,
        kind: Option<McpTransport>,
        client: Option<LoginClient>,
        /// `None`: a person logs in, where the server wants it.
        grant: Option<Grant>,
    },
}

/// One server, ready to be reached.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    pub name: String,
    pub origin: Origin,
    pub transport: Transport,
    pub disabled: bool,
    pub start: Duration,
    pub call: Duration,
    /// Domains that its program may connect to.
    pub network: Vec<String>,
    /// Folders outside the workspace that its program may write.
    pub writable: Vec<PathBuf>,
    /// Its program runs outside the sandbox.
    pub unconfined: bool,
    /// Names of tools that change the server's state for all agents, in addition to the known ones; a `*` at the end
    /// stands for any end.
    pub shared_state: Vec<String>,
    /// `None`: nothing is checked.
    pub check: Option<StartCheck>,
    /// BLAKE3 of what decides what is started or connected to, as it is written, in hex.
    pub hash: String,
}

/// Whether a server may have this name: it is a part of rules and of the names of tools.
pub fn is_server_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(plain) && !name.contains("__")
}

impl ServerSettings {
    /// Reads one server. `lookup` finds the variables that it may name.
    ///
    /// # Errors
    /// When it names no program and no address, or a variable that is not set; a sentence without a full stop.
    pub fn new(
        name: &str,
        origin: Origin,
        server: &McpServer,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        if !is_server_name(name) {
            return Err(format!(
                "'{}' cannot be the name of an MCP server: use letters, digits, - and _, at most 64",
                name.escape_default()
            ));
        }
        // A client of `tiller acp` sends values, not names of variables.
        let text = |text: &str| match origin {
            Origin::Client => Ok(text.to_owned()),
            _ => expand(text, lookup),
        };
        let pairs = |map: &BTreeMap<String, String>| -> Result<Vec<(String, String)>, String> {
            map.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
        };
        let transport = match (&server.command, &server.url) {
            (Some(_), Some(_)) => return Err("it has both a command and a url".into()),
            (Some(_), None) if server.client_id.is_some() => {
                return Err("it has a client_id, which only a server with a url can use".into());
            }
            (Some(_), None) if server.login.is_some() => {
                return Err("it has a login, which only a server with a url can use".into());
            }
            (None, None) => return Err("it has neither a command nor a url".into()),
            (Some(command), None) => Transport::Stdio {
                command: text(command)?,
                args: server.args.iter().map(|arg| text(arg)).collect::<Result<_, _>>()?,
                env: pairs(&server.env)?,
                folder: server.folder.as_deref().map(text).transpose()?.map(PathBuf::from),
            },
            (None, Some(url)) => {
                let url = text(url)?;
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return Err("its url must begin with https:// or http://".into());
                }
                let secret = server.client_secret.as_deref().map(text).transpose()?;
                let client = match (server.client_id.as_deref().map(text).transpose()?, secret) {
                    (Some(id), _) if id.trim().is_empty() => return Err("its client_id is empty".into()),
                    (Some(id), secret) => Some(LoginClient { id, secret }),
                    (None, Some(_)) => return Err("it has a client_secret and no client_id".into()),
                    (None, None) => None,
                };
                if server.login.is_some() && origin != Origin::User {
                    return Err("its login works only from your config.toml: it would send secrets of this machine to \
                                the address"
                        .into());
                }
                let grant = login::grant(server, client.as_ref(), &text, &|path| home(path, lookup))?;
                let headers = pairs(&server.headers)?;
                Transport::Http { url, headers, kind: server.transport, client, grant }
            }
        };
        let seconds =
            |n: Option<u64>, default| n.map_or(default, |n| Duration::from_secs(n.clamp(1, 86_400)));
        Ok(Self {
            name: name.to_owned(),
            origin,
            transport,
            disabled: server.disabled,
            start: seconds(server.start_timeout, START),
            call: seconds(server.timeout, CALL),
            network: server.network.clone(),
            writable: server.writable.iter().map(|folder| home(folder, lookup)).collect(),
            unconfined: server.unconfined,
            shared_state: server.shared_state.clone(),
            check: None,
            hash: hash(server),
        })
    }

    /// The command line or the address, as it is shown to a person. Not cleaned for a terminal.
    pub fn words(&self) -> String {
        match &self.transport {
            Transport::Stdio { command, args, .. } => {
                let words = std::iter::once(command).chain(args);
                words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            Transport::Http { url, .. } => url.clone(),
        }
    }

    /// The names of the variables or headers that it is given; never their values.
    pub fn given(&self) -> Vec<&str> {
        match &self.transport {
            Transport::Stdio { env: pairs, .. } | Transport::Http { headers: pairs, .. } => {
                pairs.iter().map(|(name, _)| name.as_str()).collect()
            }
        }
    }

    /// Values that are kept out of transcripts and logs: those of variables and headers whose names say so, and the
    /// secret of a login. Of a client of `tiller acp` every header counts, since its server is not the user's own.
    pub fn secrets(&self) -> Vec<String> {
        match &self.transport {
            Transport::Http { headers, client, grant, .. } => {
                let all = self.origin == Origin::Client;
                let secret = headers.iter().filter(|(name, _)| all || names_secret(name));
                let mut found: Vec<String> = Vec::new();
                for (_, value) in secret {
                    // `Bearer TOKEN`: the token alone is one, too.
                    found.extend(value.rsplit_once(' ').map(|(_, token)| token.to_owned()));
                    found.push(value.clone());
                }
                found.extend(client.as_ref().and_then(|client| client.secret.clone()));
                found.extend(grant.iter().flat_map(Grant::secrets));
                found
            }
            Transport::Stdio { env, .. } => {
                env.iter().filter(|(name, _)| names_secret(name)).map(|(_, value)| value.clone()).collect()
            }
        }
    }

    /// `stdio`, `http` or `sse`.
    pub fn transport_word(&self) -> &'static str {
        match &self.transport {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { kind: Some(McpTransport::Sse), .. } => "sse",
            Transport::Http { .. } => "http",
        }
    }
}

/// Whether a variable or header of this name holds a secret. Others (a mode, a path) would garble ordinary text.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASS", "PWD", "AUTH", "CREDENTIAL", "COOKIE", "PAT"]
        .iter()
        .any(|word| if *word == "PAT" { name.ends_with("_PAT") } else { name.contains(word) })
}

/// A folder, which may begin with `~/`.
fn home(folder: &str, lookup: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    match (folder.strip_prefix("~/"), lookup("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(folder),
    }
}

/// A word of a command line, in quotes where it needs them to be read.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,%~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// What decides what runs, as text. Times and switches do not count.
fn hash(server: &McpServer) -> String {
    let mut counted = serde_json::json!([
        server.command,
        server.args,
        server.env,
        server.folder,
        server.url,
        server.headers,
        server.transport
    ]);
    // Added later: without it, the hash is the one that was agreed to before.
    if let (Some(id), Some(list)) = (&server.client_id, counted.as_array_mut()) {
        list.push(serde_json::json!([id, server.client_secret]));
    }
    if let (Some(login), Some(list)) = (&server.login, counted.as_array_mut()) {
        list.push(serde_json::json!(login));
    }
    blake3::hash(counted.to_string().as_bytes()).to_hex().to_string()
}

/// The names of the variables that a server is given from the environment, in order.
pub fn variables(server: &McpServer) -> Vec<String> {
    let single = [&server.command, &server.folder, &server.url, &server.client_id, &server.client_secret];
    let texts = single.into_iter().flatten().chain(&server.args);
    let texts = texts.chain(server.env.values()).chain(server.headers.values());
    let texts = texts.chain(server.login.iter().flat_map(login::texts));
    let named = |text: &String| -> Vec<String> {
        let pieces = text.split("${").skip(1).filter_map(|piece| piece.split_once('}'));
        pieces.map(|(inner, _)| inner.split(":-").next().unwrap_or_default().to_owned()).collect()
    };
    let names: std::collections::BTreeSet<String> = texts.flat_map(named).collect();
    names.into_iter().collect()
}

/// Replaces `${NAME}` and `${NAME:-default}`.
fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else { break };
        out.push_str(&rest[..at]);
        let inner = &rest[at + 2..at + end];
        let (name, default) =
            inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        match lookup(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => {
                return Err(format!(
                    "the variable {} is not set, or may not be used here",
                    name.escape_default()
                ));
            }
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        (name == "SET").then(|| "value".into())
    }

    #[test]
    fn secrets_are_the_values_whose_names_say_so_and_a_login_client_is_whole() {
        let read = |json: serde_json::Value| {
            let server: McpServer = serde_json::from_value(json).unwrap();
            ServerSettings::new("a", Origin::User, &server, &lookup)
        };
        let url = "https://a.example/mcp";
        let remote = read(serde_json::json!({"url": url, "client_id": "me", "client_secret": "${SET}",
            "headers": {"Authorization": "Bearer abcdefgh", "X-Workspace": "project"}}))
        .unwrap();
        assert_eq!(remote.secrets(), ["abcdefgh", "Bearer abcdefgh", "value"]);
        assert!(!format!("{remote:?}").contains("\"value\""), "{remote:?}");
        let program =
            read(serde_json::json!({"command": "x", "env": {"API_KEY": "secret", "MODE": "fast"}})).unwrap();
        assert_eq!(program.secrets(), ["secret"]);
        for (wrong, why) in [
            (serde_json::json!({"url": url, "client_secret": "x"}), "no client_id"),
            (serde_json::json!({"url": url, "client_id": " "}), "is empty"),
            (serde_json::json!({"url": url, "client_id": "me", "client_secret": "${NOT}"}), "NOT"),
            (serde_json::json!({"command": "x", "client_id": "me"}), "only a server with a url"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        // What was agreed to before the client id existed is still agreed to.
        let hash = |json: serde_json::Value| read(json).unwrap().hash;
        let plain = hash(serde_json::json!({"url": url}));
        let old = serde_json::json!([null, [], {}, null, url, {}, null]).to_string();
        assert_eq!(plain, blake3::hash(old.as_bytes()).to_hex().to_string());
        assert_ne!(plain, hash(serde_json::json!({"url": url, "client_id": "me"})));
    }

    #[test]
    fn variables_are_replaced_and_a_missing_one_is_named() {
        for (text, want) in [
            ("a", "a"),
            ("${SET}", "value"),
            ("x${SET}y${SET}", "xvalueyvalue"),
            ("${NOT:-other}", "other"),
            ("${SET:-other}", "value"),
            ("${open", "${open"),
            ("$SET", "$SET"),
        ] {
            assert_eq!(expand(text, &lookup).as_deref(), Ok(want), "{text}");
        }
        let why = expand("${MY_KEY}", &lookup).unwrap_err();
        assert!(why.contains("MY_KEY"), "{why}");
        let server = McpServer {
            url: Some("${URL}/x".into()),
            args: vec!["${A:-b}${URL}".into(), "$C".into(), "${D".into()],
            headers: BTreeMap::from([("H".into(), "Bearer ${TOKEN}".into())]),
            ..McpServer::default()
        };
        assert_eq!(variables(&server), ["A", "TOKEN", "URL"]);
    }

    #[test]
    fn the_hash_changes_with_what_runs_and_with_nothing_else() {
        let of = |change: &dyn Fn(&mut McpServer)| {
            let mut server = McpServer { command: Some("x".into()), ..McpServer::default() };
            change(&mut server);
            ServerSettings::new("s", Origin::User, &server, &lookup).unwrap().hash
        };
        let same = of(&|_| {});
        assert_eq!(same, of(&|s| s.timeout = Some(5)));
        assert_ne!(same, of(&|s| s.args = vec!["a".into()]));
        assert_ne!(same, of(&|s| drop(s.env.insert("A".into(), "1".into()))));
        assert_ne!(same, of(&|s| s.command = Some("y".into())));
    }
}
