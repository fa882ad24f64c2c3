//! The servers of a project's `.mcp.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use tiller_config::{McpServer, McpTransport};

use super::{MOST, Origin, ServerSettings};
use crate::read::parts::kind;
use crate::read::words::line;

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
    /// Not used: the person's own settings alone may name secrets.
    login: Option<serde::de::IgnoredAny>,
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
        let has_login = server.login.is_some();
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
            Ok(settings) => {
                // Its name is a plain one here, so that it can stand in a command line.
                if has_login {
                    problems.push(format!(
                        ".mcp.json, server '{0}': its login is not used, since it would send secrets of this machine to an address \
                         of the project; where you want that, put the server into config.toml: `tiller mcp add {0} --login KIND URL`",
                        settings.name
                    ));
                }
                servers.push(settings);
            }
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
    fn a_project_names_programs_and_addresses_and_nothing_that_loosens_the_sandbox() {
        let file = br#"{"mcpServers": {
            "a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "${SET}"}, "unconfined": true, "network": ["*"]},
            "b": {"type": "sse", "url": "https://x.example/sse", "headers": {"H": "1"}},
            "c": {"command": "x", "args": ["${SECRET_KEY}"]},
            "d": {},
            "e__f": {"command": "x"},
            "g": {"url": "file:///etc"},
            "h": {"url": "https://h.example/mcp", "login": {"kind": "workload", "token_file": "/etc/passwd"}}
        }}"#;
        let (servers, problems) = project_servers(file, &lookup);
        let words: Vec<String> =
            servers.iter().map(|s| format!("{} {}: {}", s.transport_word(), s.name, s.words())).collect();
        assert_eq!(
            words,
            ["stdio a: npx -y x", "sse b: https://x.example/sse", "http h: https://h.example/mcp"]
        );
        assert!(matches!(&servers[2].transport, crate::Transport::Http { grant: None, .. }));
        assert!(servers.iter().all(|s| !s.unconfined && s.network.is_empty() && s.origin == Origin::Project));
        assert_eq!(servers[0].given(), ["K"]);
        assert_eq!(problems.len(), 5, "{problems:?}");
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
}
