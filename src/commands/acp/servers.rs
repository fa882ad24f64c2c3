//! MCP servers that a client brings for a session: it starts and ends with them. The person configured them in the client, so
//! that their start asks nothing; their programs run in the sandbox, and each call follows the permission rules.

use serde::Deserialize;
use serde_json::Value;
use tiller_config::{McpServer, McpTransport};
use tiller_mcp::{Origin, ServerSettings, is_server_name};
use tiller_rpc::Error;

/// Maximum number of servers of a session.
const MOST: usize = 50;
/// Bytes of all of them, as JSON.
const LARGEST: usize = 1 << 20;

/// A name with its value: of a variable, or of a header.
#[derive(Deserialize)]
struct Pair {
    name: String,
    value: String,
}

/// How a server is reached.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Stdio,
    Http,
    Sse,
}

/// A server as the protocol has it. Without a `type` it is a program.
#[derive(Deserialize)]
struct Brought {
    name: String,
    #[serde(default, rename = "type")]
    kind: Kind,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Pair>,
    url: Option<String>,
    #[serde(default)]
    headers: Vec<Pair>,
}

/// The servers of a request.
///
/// # Errors
/// When one of them cannot be read. No value of a variable or header is repeated.
pub(super) fn read(values: &[Value]) -> Result<Vec<ServerSettings>, Error> {
    if values.len() > MOST || values.iter().map(|value| value.to_string().len()).sum::<usize>() > LARGEST {
        return Err(Error::invalid_params(format!("mcpServers: {MOST} servers at most, and 1 MB")));
    }
    let mut servers: Vec<ServerSettings> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let wrong = |why: &str| Error::invalid_params(format!("mcpServers[{at}]: {why}"));
        // The error of the parser may quote a value.
        let brought =
            Brought::deserialize(value).map_err(|_| wrong("it is not a server of this protocol"))?;
        let name = free_name(&brought.name, &servers);
        let server = settings(brought).map_err(wrong)?;
        let server = ServerSettings::new(&name, Origin::Client, &server, &|_| None);
        servers.push(server.map_err(|why| wrong(&why))?);
    }
    Ok(servers)
}

fn settings(brought: Brought) -> Result<McpServer, &'static str> {
    let pairs = |pairs: Vec<Pair>| pairs.into_iter().map(|pair| (pair.name, pair.value)).collect();
    let transport = match brought.kind {
        Kind::Stdio => None,
        Kind::Http => Some(McpTransport::Http),
        Kind::Sse => Some(McpTransport::Sse),
    };
    Ok(match transport {
        None => McpServer {
            command: Some(brought.command.ok_or("it has no command")?),
            args: brought.args,
            env: pairs(brought.env),
            ..McpServer::default()
        },
        Some(_) => McpServer {
            url: Some(brought.url.ok_or("it has no url")?),
            headers: pairs(brought.headers),
            transport,
            ..McpServer::default()
        },
    })
}

/// A name that rules can hold, which no other server of the session has.
fn free_name(name: &str, others: &[ServerSettings]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let plain: String = name.chars().map(plain).take(40).collect();
    let plain = plain.trim_matches('-').to_owned();
    // Names with single underscores stay as they are.
    let base = match () {
        () if is_server_name(name) && name.len() <= 40 => name.to_owned(),
        () if is_server_name(&plain) => plain,
        () => "server".into(),
    };
    let free = |name: &String| !others.iter().any(|other| other.name == *name);
    let numbered = (2..).map(|n| format!("{base}-{n}"));
    std::iter::once(base.clone()).chain(numbered).find(free).unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_of_each_kind_are_read_and_mistakes_name_no_value() {
        let servers = read(&[
            json!({"name": "My Server!", "command": "/bin/x", "args": ["${HOME}"],
                "env": [{"name": "TOKEN", "value": "secret-of-the-token"}, {"name": "MODE", "value": "fast"}]}),
            json!({"type": "http", "name": "my_http", "url": "https://a.example/mcp",
                "headers": [{"name": "Authorization", "value": "Bearer abcdefghij"}]}),
            json!({"type": "sse", "name": "My Server?", "url": "http://127.0.0.1:1/sse", "headers": []}),
        ])
        .unwrap();
        let seen: Vec<String> =
            servers.iter().map(|s| format!("{} {} {}", s.name, s.transport_word(), s.words())).collect();
        assert_eq!(
            seen,
            [
                "My-Server stdio /bin/x '${HOME}'",
                "my_http http https://a.example/mcp",
                "My-Server-2 sse http://127.0.0.1:1/sse"
            ]
        );
        assert!(servers.iter().all(|s| !s.unconfined && s.network.is_empty() && s.origin == Origin::Client));
        let secrets: Vec<String> = servers.iter().flat_map(ServerSettings::secrets).collect();
        assert_eq!(secrets, ["secret-of-the-token", "abcdefghij", "Bearer abcdefghij"]);
        for wrong in [
            json!("sesame"),
            json!({"name": "a"}),
            json!({"name": "a", "type": "pipe", "command": "sesame"}),
            json!({"name": "a", "type": "http", "command": "sesame"}),
            json!({"name": "a", "type": "http", "url": "file:///sesame"}),
            json!({"name": "a", "command": "x", "env": {"A": "sesame"}}),
            json!({"name": "a", "command": "x", "env": [{"name": "sesame"}]}),
        ] {
            let error = read(&[json!({"name": "b", "command": "x"}), wrong]).unwrap_err();
            let text = format!("{error:?}");
            assert!(text.contains("mcpServers[1]") && !text.contains("sesame"), "{text}");
        }
        assert!(read(&vec![json!({"name": "b", "command": "x"}); 51]).is_err());
        assert!(read(&[json!({"name": "b", "command": "x".repeat(2 << 20)})]).is_err());
    }
}
