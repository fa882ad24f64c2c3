//! Servers of the settings, with variables replaced.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tiller_config::{McpServer, McpTransport};

use crate::read::parts::kind;
use crate::read::words::line;

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
    },
}

/// What a server's operator gave the user to log in with.
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
                Transport::Http { url, headers: pairs(&server.headers)?, kind: server.transport, client }
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
            Transport::Http { headers, client, .. } => {
                let all = self.origin == Origin::Client;
                let secret = headers.iter().filter(|(name, _)| all || names_secret(name));
                let mut found: Vec<String> = Vec::new();
                for (_, value) in secret {
                    // `Bearer TOKEN`: the token alone is one, too.
                    found.extend(value.rsplit_once(' ').map(|(_, token)| token.to_owned()));
                    found.push(value.clone());
                }
                found.extend(client.as_ref().and_then(|client| client.secret.clone()));
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
    blake3::hash(counted.to_string().as_bytes()).to_hex().to_string()
}

/// The names of the variables that a server is given from the environment, in order.
pub fn variables(server: &McpServer) -> Vec<String> {
    let single = [&server.command, &server.folder, &server.url, &server.client_id, &server.client_secret];
    let texts = single.into_iter().flatten().chain(&server.args);
    let texts = texts.chain(server.env.values()).chain(server.headers.values());
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

/// One server of it. Members that others use are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ProjectServer {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    disabled: bool,
}

/// The servers of a project's `.mcp.json`, and what is wrong in it. A server of a repository can neither leave the sandbox
/// nor name domains; `lookup` must find variables without secrets only.
pub fn project_servers(
    bytes: &[u8],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> (Vec<ServerSettings>, Vec<String>) {
    let mut file: serde_json::Value = match json_of(bytes) {
        Ok(file) => file,
        Err(e) => {
            return (Vec::new(), vec![format!(".mcp.json, line {}: {}", e.line(), not_json(bytes, &e))]);
        }
    };
    let (mut servers, mut problems) = (Vec::new(), Vec::new());
    let named =
        ["mcpServers", "servers"].iter().find_map(|key| file.get_mut(*key).map(serde_json::Value::take));
    let named = match named {
        Some(serde_json::Value::Object(named)) => named,
        Some(_) => {
            return (servers, vec![".mcp.json: its mcpServers is no object, { \"NAME\": { ... } }".into()]);
        }
        None if file.is_object() => return (servers, problems),
        None => return (servers, vec![".mcp.json: it is no object with mcpServers in it".into()]),
    };
    if named.len() > MOST {
        problems
            .push(format!(".mcp.json: it names {} servers, and only the first {MOST} are used", named.len()));
    }
    for (name, server) in named.into_iter().take(MOST) {
        let read = match server.is_object() {
            true => serde_json::from_value(server).map_err(|why| why.to_string()),
            // A list would be read as the members in their order, which a check of the folder's trust does not see.
            false => Err(format!("it is {}, and no object", kind(&server))),
        };
        let server: ProjectServer = match read {
            Ok(server) => server,
            Err(why) => {
                problems.push(format!(
                    ".mcp.json, server '{}': {}",
                    line(&name, 64),
                    line(&format!("it cannot be read: {why}"), 200)
                ));
                continue;
            }
        };
        let server = McpServer {
            transport: match server.kind.as_deref() {
                Some("sse") => Some(McpTransport::Sse),
                Some("http" | "streamable-http" | "streamable_http") => Some(McpTransport::Http),
                _ => None,
            },
            command: server.command.filter(|_| server.url.is_none()),
            args: server.args,
            env: server.env,
            folder: server.cwd,
            url: server.url,
            headers: server.headers,
            disabled: server.disabled,
            ..McpServer::default()
        };
        match ServerSettings::new(&name, Origin::Project, &server, lookup) {
            Ok(settings) => servers.push(settings),
            Err(why) => problems.push(format!(".mcp.json, server '{}': {why}", line(&name, 64))),
        }
    }
    (servers, problems)
}

/// JSON of a file that others write; some editors begin it with a mark of its encoding.
fn json_of(bytes: &[u8]) -> serde_json::Result<serde_json::Value> {
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

/// Why a file is no JSON.
fn not_json(bytes: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(bytes);
    let at = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = text.lines().take(error.line().saturating_sub(1)).filter(|l| !l.trim().is_empty()).last();
    let is_comment = |line: &str| ["//", "/*", "#"].iter().any(|mark| line.trim_start().starts_with(mark));
    let comma = |line: &str| line.trim_end().ends_with(',');
    let closes = at.trim_start().starts_with(['}', ']']);
    match () {
        () if is_comment(at) => "it has a comment, which JSON does not; take it out".into(),
        () if at.contains(" //") || at.contains(" /*") => {
            "it has a comment, which JSON does not; take it out".into()
        }
        () if closes && before.is_some_and(comma) => {
            "the line before ends with a comma, which JSON does not have before a closing bracket".into()
        }
        () if at.contains(",}") || at.contains(",]") || at.contains(", }") || at.contains(", ]") => {
            "a comma stands before a closing bracket, which JSON does not have".into()
        }
        () if std::str::from_utf8(bytes).is_err() => "it is not in UTF-8".into(),
        () => line(&format!("it is no JSON: {error}"), 200),
    }
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
    fn a_project_names_programs_and_addresses_and_nothing_that_loosens_the_sandbox() {
        let file = br#"{"mcpServers": {
            "a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "${SET}"}, "unconfined": true, "network": ["*"]},
            "b": {"type": "sse", "url": "https://x.example/sse", "headers": {"H": "1"}},
            "c": {"command": "x", "args": ["${SECRET_KEY}"]},
            "d": {},
            "e__f": {"command": "x"},
            "g": {"url": "file:///etc"}
        }}"#;
        let (servers, problems) = project_servers(file, &lookup);
        let words: Vec<String> =
            servers.iter().map(|s| format!("{} {}: {}", s.transport_word(), s.name, s.words())).collect();
        assert_eq!(words, ["stdio a: npx -y x", "sse b: https://x.example/sse"]);
        assert!(servers.iter().all(|s| !s.unconfined && s.network.is_empty() && s.origin == Origin::Project));
        assert_eq!(servers[0].given(), ["K"]);
        assert_eq!(problems.len(), 4, "{problems:?}");
        let (none, problems) = project_servers(b"{\n]", &lookup);
        assert!(none.is_empty() && problems[0].contains("line 2"), "{problems:?}");
    }

    /// Files as editors and people write them: each fault is said with its line, or costs the one server that has it.
    #[test]
    fn a_file_of_others_is_read_as_far_as_it_can_be() {
        const GOOD: &str = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
        for file in [
            GOOD.to_owned(),
            format!("\u{feff}{GOOD}"),
            format!("\r\n{GOOD}\r\n"),
            GOOD.replace("mcpServers", "servers"),
        ] {
            let (servers, problems) = project_servers(file.as_bytes(), &lookup);
            assert!(servers.len() == 1 && problems.is_empty(), "{file:?}: {problems:?}");
        }
        for (file, number, why) in [
            ("{\n// mine\n\"mcpServers\": {}}", 2, "a comment"),
            ("{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"} // mine\n}}", 2, "a comment"),
            ("{\"mcpServers\": {\n/* mine */}}", 2, "a comment"),
            ("{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n}}", 3, "comma"),
            ("{\"mcpServers\": {\n\n \"a\": {\"args\": [\"x\", ]}}}", 3, "comma"),
            ("\u{feff}{\n\n// a\n}", 3, "a comment"),
            ("{\n\"a\" 1}", 2, "no JSON"),
            ("", 1, "no JSON"),
        ] {
            let (servers, problems) = project_servers(file.as_bytes(), &lookup);
            assert!(servers.is_empty() && problems.len() == 1, "{file:?}: {problems:?}");
            let begin = format!(".mcp.json, line {number}: ");
            assert!(problems[0].starts_with(&begin) || file.is_empty(), "{file:?}: {problems:?}");
            assert!(problems[0].contains(why), "{file:?}: {problems:?}");
        }
        for odd in [
            "7",
            "null",
            "\"x\"",
            "{\"command\": 7}",
            "{\"args\": \"x\"}",
            "{\"command\":\"x\",\"env\":{\"A\":1}}",
            "[\"python3\", [\"x.py\"]]",
        ] {
            let file = format!(
                "{{\"mcpServers\": {{\"a\": {{\"command\": \"x\"}}, \"odd\": {odd}, \"z\": {{\"command\": \"y\"}}}}}}"
            );
            let (servers, problems) = project_servers(file.as_bytes(), &lookup);
            assert!(servers.len() == 2 && problems.len() == 1, "{odd}: {problems:?}");
            assert!(problems[0].contains("server 'odd'") && !problems[0].contains("::"), "{problems:?}");
        }
        for none in ["[]", "7", "{\"mcpServers\": []}"] {
            assert_eq!(project_servers(none.as_bytes(), &lookup).1.len(), 1, "{none}");
        }
        let many: Vec<String> = (0..60).map(|n| format!("\"s{n}\": {{\"command\": \"x\"}}")).collect();
        let (servers, problems) =
            project_servers(format!("{{\"mcpServers\": {{{}}}}}", many.join(",")).as_bytes(), &lookup);
        assert!(servers.len() == MOST && problems[0].contains("60 servers"), "{problems:?}");
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
