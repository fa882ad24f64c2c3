//! `tiller mcp`: lists, adds, removes, tests and calls MCP servers; `serve` is one itself.

mod serve;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tiller_config::{ConfigError, McpServer, set_value};
use tiller_mcp::{Failure, Hub, NoResult, Origin, Server, ServerSettings, is_server_name};
use tiller_protocol::mcp::{McpPromptView, McpResourceView, McpServerView};
use tiller_protocol::{Notice, NoticeKind, Part};
use tiller_text::clean;
use tiller_tool::mcp::McpServers;

use crate::app::Setup;
use crate::app::definitions::mcp;
use crate::app::extensions::plugins;
use crate::commands::args::{Mcp, McpAdd, McpLimits};
use crate::commands::{Exit, fail, json_line, say};

/// Resources, and prompts, that `test` lists.
const LISTED: usize = 40;

pub(super) fn run(setup: &Setup, what: &Mcp) -> Result<Exit, Notice> {
    match what {
        Mcp::List { json } => list(setup, *json),
        Mcp::Add(add) => self::add(setup, add),
        Mcp::Remove { name } => remove(setup, name),
        Mcp::Serve { all } => serve::run(setup, *all),
        Mcp::Test { server, command, approve, json, limits } => {
            let (hub, server) = find(setup, &named(server, *command), limits)?;
            done(&hub, test(&server, *approve, *json))
        }
        Mcp::Login { name } => {
            let (hub, server) = find(setup, &named(name, false), &McpLimits::default())?;
            let logging_in = async {
                let show = |page: &str| {
                    // Standard output may be closed; the login then ends by its time limit.
                    let _ = say(&format!(
                        "Open this page in a browser of this machine, and log in:\n{}\n",
                        clean::plain(page)
                    ));
                };
                server.log_in(&show).await.map_err(|why| {
                    Notice::new(
                        NoticeKind::Network,
                        format!("the MCP server {name}: there is no login: {}", clean::plain(&why)),
                    )
                })?;
                test(&server, false, false).await
            };
            done(&hub, logging_in)
        }
        Mcp::Read { server, uri, command, limits } => {
            let (hub, server) = find(setup, &named(server, *command), limits)?;
            let reading = async {
                let read = hub.read(server.name(), uri).await;
                say(&printed(&read.map_err(|failure| unusable(server.name(), &failure))?))
            };
            done(&hub, reading)
        }
        Mcp::Call { server, tool, command, arguments, accept_defaults, limits } => {
            let arguments = match serde_json::from_str(arguments) {
                Ok(Value::Object(arguments)) => arguments,
                _ => {
                    return Err(Notice::new(
                        NoticeKind::User,
                        "the arguments must be a JSON object, such as '{\"a\": 1}'",
                    ));
                }
            };
            let (hub, server) = find(setup, &named(server, *command), limits)?;
            if *accept_defaults {
                hub.accept_defaults();
            }
            let calling = async {
                let result = hub
                    .call(server.name(), tool, arguments, None)
                    .await
                    .map_err(|why| refused(server.name(), tool, why))?;
                say(&printed(&result.parts))?;
                for note in &result.notes {
                    fail(&Notice::new(NoticeKind::Info, clean::plain(note)));
                }
                Ok(if result.failed { Exit::Model } else { Exit::Done })
            };
            done(&hub, calling)
        }
    }
}

/// Parts as they are printed: no picture is.
fn printed(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text { text: more } => text.push_str(&clean::plain_lines(more)),
            Part::Image { media_type, data } => {
                text.push_str(&format!("[{media_type}, {} bytes of base64]", data.len()))
            }
        }
        text.push('\n');
    }
    text
}

/// Runs the work, then ends the servers.
fn done(hub: &Arc<Hub>, work: impl Future<Output = Result<Exit, Notice>>) -> Result<Exit, Notice> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime =
        runtime.map_err(|e| Notice::new(NoticeKind::Internal, format!("no thread could be started: {e}")))?;
    runtime.block_on(async {
        // Ctrl-C ends the servers, too: dropping them does.
        let result = tokio::select! {
            result = work => result,
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        };
        hub.end().await;
        result
    })
}

fn list(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let views = all(setup)?.map_or_else(Vec::new, |hub| hub.views());
    if json {
        return say(&views.iter().map(json_line).collect::<String>());
    }
    if views.is_empty() {
        return say("No MCP servers. `tiller mcp add NAME -- COMMAND` adds one.\n");
    }
    let widest = views.iter().map(|view| view.name.len()).max().unwrap_or_default();
    let row = |view: &McpServerView| {
        let tools = view.tools.as_ref().map_or_else(|| "-".to_owned(), |tools| tools.len().to_string());
        let tokens = if view.tools.is_some() { thousands(view.tokens) } else { "-".into() };
        format!(
            "{:widest$}  {:12}  {:9}  {tools:>5}  {tokens:>7}  {}\n",
            view.name,
            view.state.word(),
            view.transport,
            clean::plain(&view.command)
        )
    };
    let head = format!(
        "{:widest$}  {:12}  {:9}  {:>5}  {:>7}  {}\n",
        "Name", "State", "Transport", "Tools", "Tokens", "Command"
    );
    say(&(head + &views.iter().map(row).collect::<String>()))
}

/// All servers, those of a trusted folder and of plugins included. Says what is wrong in the settings.
fn all(setup: &Setup) -> Result<Option<Arc<Hub>>, Notice> {
    for notice in setup.services.mcp.notices() {
        fail(&notice);
    }
    let store = setup.open_store()?;
    if setup.trust(&store).may_load() {
        for notice in setup.services.mcp.trust(&setup.folder_config) {
            fail(&notice);
        }
    } else if setup.folder_config.bytes(".mcp.json").is_some() {
        fail(
            &Notice::new(
                NoticeKind::Info,
                "This folder's .mcp.json is not read, because you have not trusted the folder",
            )
            .hint("`tiller trust` shows it and asks"),
        );
    }
    let used = plugins::used(setup, &store);
    let (servers, wrong) = plugins::servers(setup, &used);
    for notice in wrong {
        fail(&notice);
    }
    if servers.is_empty() {
        return Ok(setup.services.mcp.hub.clone());
    }
    let hub = setup.services.mcp.hub.clone().unwrap_or_else(|| mcp::hub(setup, Vec::new()));
    hub.add(servers);
    Ok(Some(hub))
}

/// The meaning of an argument of the command line.
enum Named<'a> {
    /// A server that is configured.
    Name(&'a str),
    Url(&'a str),
    /// A command line that the user wants to run.
    Command(&'a str),
}

fn named(text: &str, command: bool) -> Named<'_> {
    match command {
        true => Named::Command(text),
        false if text.starts_with("http://") || text.starts_with("https://") => Named::Url(text),
        false => Named::Name(text),
    }
}

/// Says that no server of this name is configured, and which are.
fn no_server(text: &str, hub: Option<&Arc<Hub>>) -> Notice {
    let names: Vec<String> =
        hub.map(|hub| hub.servers()).unwrap_or_default().iter().map(|s| s.name().to_owned()).collect();
    let near = tiller_protocol::nearest::nearest(text, names.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    let configured = match names.is_empty() {
        true => "None is configured: `tiller mcp add NAME -- COMMAND` adds one.".to_owned(),
        false => format!("Configured: {}.", names.join(", ")),
    };
    Notice::new(NoticeKind::User, format!("there is no MCP server '{}'{near}", clean::plain(text)))
        .hint(format!("{configured} With --command, SERVER is a command line that is run."))
}

/// The server that an argument means. Only a command line that is called one is run.
fn find(setup: &Setup, named: &Named<'_>, limits: &McpLimits) -> Result<(Arc<Hub>, Arc<Server>), Notice> {
    let wrong = |why: String| Notice::new(NoticeKind::User, why);
    let (Named::Name(text) | Named::Url(text) | Named::Command(text)) = *named;
    if matches!(named, Named::Name(_)) {
        let hub = all(setup)?;
        let server = hub.as_ref().and_then(|hub| hub.find(text));
        return server
            .and_then(|server| Some((hub.clone()?, server)))
            .ok_or_else(|| no_server(text, hub.as_ref()));
    }
    let mut server = if matches!(named, Named::Url(_)) {
        McpServer { url: Some(text.into()), ..McpServer::default() }
    } else {
        let words = shlex::split(text).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| wrong(format!("'{text}' is not a command line")))?;
        McpServer { command: Some(words[0].clone()), args: words[1..].to_vec(), ..McpServer::default() }
    };
    let mut name = name_of(text);
    // What is kept of a server of the settings stays.
    while setup.config.config.mcp.contains_key(&name)
        || setup.services.mcp.hub.as_ref().is_some_and(|h| h.find(&name).is_some())
    {
        name.push_str("-x");
    }
    server.network.clone_from(&limits.network);
    server.unconfined = limits.unconfined;
    let settings =
        ServerSettings::new(&name, Origin::Argument, &server, &|name| (setup.env)(name)).map_err(wrong)?;
    let hub = mcp::hub(setup, vec![settings]);
    let server = hub.find(&name).ok_or_else(|| wrong("the server could not be added".into()))?;
    // What an earlier server of that name had is not this one's.
    server.forget();
    Ok((hub, server))
}

/// A name for a server without one: its host, or the last word of its command line that is no option, without folder and
/// version.
fn name_of(text: &str) -> String {
    let words = || text.split_whitespace().filter(|word| !word.starts_with('-'));
    let word = match text.split_once("://") {
        Some((_, rest)) => rest.split(['/', ':', '?']).next(),
        None => words().nth(1).or_else(|| words().next()),
    };
    let word = word.unwrap_or_default().trim_end_matches('/');
    let word = word.rsplit('/').next().unwrap_or(word);
    let word = word.split('@').find(|part| !part.is_empty()).unwrap_or(word);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let name: String = word.chars().map(plain).take(40).collect();
    let name = name.trim_matches('-');
    if is_server_name(name) { name.to_owned() } else { "server".into() }
}

fn add(setup: &Setup, add: &McpAdd) -> Result<Exit, Notice> {
    let wrong = |why: String| Notice::new(NoticeKind::User, why);
    if !is_server_name(&add.name) {
        return Err(wrong("the name must have letters, digits, - and _ only, at most 64".into()));
    }
    if setup.config.config.mcp.contains_key(&add.name) {
        return Err(wrong(format!("there is an MCP server {} already", add.name))
            .hint(format!("`tiller mcp remove {}` removes it", add.name)));
    }
    let map = |pairs: &[(String, String)]| -> Value {
        pairs.iter().map(|(k, v)| (k.clone(), json!(v))).collect::<serde_json::Map<_, _>>().into()
    };
    let mut entries: Vec<(&str, Value)> = Vec::new();
    match add.command.as_slice() {
        [url] if url.starts_with("http://") || url.starts_with("https://") => {
            entries.push(("url", json!(url)));
            if !add.header.is_empty() {
                entries.push(("headers", map(&add.header)));
            }
            if let Some(id) = &add.client_id {
                entries.push(("client_id", json!(id)));
            }
            if let Some(variable) = &add.client_secret_env {
                entries.push(("client_secret", json!(format!("${{{variable}}}"))));
            }
            entries.extend(add.login.table().map(|table| ("login", table)));
            let server = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
            complete(&add.name, server.collect()).map_err(wrong)?;
        }
        [_, ..] if add.client_id.is_some() || add.login.kind.is_some() => {
            let option = if add.client_id.is_some() { "--client-id" } else { "--login" };
            return Err(wrong(format!("{option} is for a server with an address"))
                .hint("give a program what it needs with --env"));
        }
        [program, args @ ..] => {
            entries.push(("command", json!(program)));
            if !args.is_empty() {
                entries.push(("args", json!(args)));
            }
            if !add.env.is_empty() {
                entries.push(("env", map(&add.env)));
            }
        }
        [] => return Err(wrong("there is no command".into())),
    }
    if !add.limits.network.is_empty() {
        entries.push(("network", json!(add.limits.network)));
    }
    if add.limits.unconfined {
        entries.push(("unconfined", json!(true)));
    }
    let file = setup.places.config.join(tiller_config::FILE);
    for (key, value) in entries {
        let key = format!("mcp.{}.{key}", add.name);
        set_value(&file, &key, &value, &setup.formats.kinds()).map_err(|e| failed(&e))?;
    }
    say(&format!("Added {}. `tiller mcp test {}` starts it and lists its tools.\n", add.name, add.name))
}

/// Fails where a part of a login is missing, or is of another kind of login. Variables need not be set yet.
fn complete(name: &str, server: serde_json::Map<String, Value>) -> Result<(), String> {
    let server: McpServer = serde_json::from_value(server.into()).map_err(|e| e.to_string())?;
    // Some value that an address may have, too; files may be named from the home folder.
    let any = |name: &str| Some(if name == "HOME" { "/home" } else { "https://variable.invalid" }.to_owned());
    ServerSettings::new(name, Origin::User, &server, &any).map(|_| ())
}

fn remove(setup: &Setup, name: &str) -> Result<Exit, Notice> {
    if !setup.config.config.mcp.contains_key(name) {
        return Err(Notice::new(
            NoticeKind::User,
            format!("config.toml has no MCP server '{}'", clean::plain(name)),
        )
        .hint("`tiller mcp list` shows where each is configured"));
    }
    let file = setup.places.config.join(tiller_config::FILE);
    set_value(&file, &format!("mcp.{name}"), &Value::Null, &setup.formats.kinds()).map_err(|e| failed(&e))?;
    if let Some(server) = setup.services.mcp.hub.as_ref().and_then(|hub| hub.find(name)) {
        server.forget();
    }
    say(&format!("Removed {name}.\n"))
}

fn failed(error: &ConfigError) -> Notice {
    Notice::new(NoticeKind::Config, format!("config.toml was not changed: {error}"))
}

/// Keeps the approval of a server as it is now, after what changed since the last one was shown. Returns what changed.
fn approve_now(server: &Server, json: bool) -> Result<Vec<String>, Notice> {
    let seen = server.differences();
    let shown = !seen.lines.is_empty() && !json;
    if shown {
        let mut text = format!("{} has changed since you approved it:\n", server.name());
        for line in &seen.lines {
            text.push_str(&format!("  {}\n", clean::plain(line)));
        }
        say(&text)?;
    }
    server
        .approve(&seen)
        .map_err(|e| Notice::new(NoticeKind::User, format!("the approval could not be kept: {e}")))?;
    if shown {
        say("It is approved as it is now.\n")?;
    }
    Ok(seen.lines)
}

/// A server for programs.
#[derive(serde::Serialize)]
struct Tested<'a> {
    #[serde(flatten)]
    view: &'a McpServerView,
    /// The schema of the arguments of each tool that can be called.
    schemas: serde_json::Map<String, Value>,
}

async fn test(server: &Server, approve: bool, json: bool) -> Result<Exit, Notice> {
    let mut changed = Vec::new();
    if approve {
        changed.extend(approve_now(server, json)?);
    }
    let began = Instant::now();
    let tried = server.check().await;
    if approve && tried.is_ok() && !server.differences().lines.is_empty() {
        changed.extend(approve_now(server, json)?);
    }
    let (resources, prompts) = if tried.is_ok() { server.listed().await } else { Default::default() };
    let mut view = server.view();
    if json {
        changed.append(&mut view.notes);
        view.notes = changed;
        let tools = server.tools().unwrap_or_default();
        let schemas = tools.into_iter().map(|tool| (tool.name, tool.schema)).collect();
        say(&json_line(&Tested { view: &view, schemas }))?;
    }
    if let Err(failure) = tried {
        return Err(unusable(server.name(), &failure));
    }
    if json {
        return Ok(Exit::Done);
    }
    let tools = view.tools.as_deref().unwrap_or_default();
    let widest = tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default().min(50);
    let mut text = format!(
        "{}: {}, protocol {}, ready in {:.1} s\n{}, about {} tokens when all are read\n",
        view.name,
        view.transport,
        view.revision,
        began.elapsed().as_secs_f64(),
        if tools.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", tools.len()) },
        thousands(view.tokens)
    );
    for tool in tools {
        let own = if tool.own.is_empty() { String::new() } else { format!("{}: ", tool.own) };
        text.push_str(&format!(
            "  {:widest$}  {:>6}  {}{}\n",
            tool.name,
            thousands(tool.tokens),
            clean::plain(&own),
            clean::plain(&tool.summary)
        ));
    }
    if !view.error.is_empty() {
        text.push_str(&format!(
            "{}; `tiller mcp test {} --approve` shows and approves\n",
            clean::plain(&view.error),
            view.name
        ));
    }
    for note in &view.notes {
        text.push_str(&format!("  {}\n", clean::plain(note)));
    }
    for (what, rows) in [("Resources", resource_rows(&resources)), ("Prompts", prompt_rows(&prompts))] {
        if !rows.is_empty() {
            text.push_str(&format!("{what}: {}\n", rows.len()));
        }
        for (name, about) in rows.iter().take(LISTED) {
            text.push_str(&format!("  {}  {}\n", clean::plain(name), clean::plain(about)));
        }
        if rows.len() > LISTED {
            text.push_str(&format!("  and {} more\n", rows.len() - LISTED));
        }
    }
    say(&text)
}

/// How each resource is named in a message, and what it is.
fn resource_rows(resources: &[McpResourceView]) -> Vec<(String, &str)> {
    resources.iter().map(|it| (format!("@{}:{}", it.server, it.uri), it.name.as_str())).collect()
}

/// How each prompt is called, and what it does.
fn prompt_rows(prompts: &[McpPromptView]) -> Vec<(String, &str)> {
    prompts.iter().map(|it| (it.usage(), it.summary.as_str())).collect()
}

fn refused(server: &str, tool: &str, why: NoResult) -> Notice {
    let why = match why {
        NoResult::NoServer(_) => "there is no such server".to_owned(),
        NoResult::NoTool(Some(near)) => format!("it has no tool '{tool}'; did you mean '{near}'?"),
        NoResult::NoTool(None) => format!("it has no tool '{tool}'"),
        NoResult::Unusable(failure) => return unusable(server, &failure),
        NoResult::HeldBack(failure) => format!("{} is held back: {}", clean::plain(tool), failure.why),
        NoResult::MainAgentOnly => "only the main agent of a session may call this tool".to_owned(),
        NoResult::Failed(error) => error.to_string(),
    };
    Notice::new(NoticeKind::Network, format!("the MCP server {server}: {why}"))
}

/// Why a server cannot be used, and the end of what it printed.
fn unusable(server: &str, failure: &Failure) -> Notice {
    let mut notice =
        Notice::new(NoticeKind::Network, format!("the MCP server {server} cannot be used: {}", failure.why));
    if !failure.tail.is_empty() {
        notice = notice.hint(format!("its standard error ends with:\n{}", failure.last_lines()));
    }
    notice
}

/// A number with commas.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_server_without_a_name_is_named_by_its_program_or_host() {
        for (text, name) in [
            ("npx -y @modelcontextprotocol/server-everything", "server-everything"),
            ("npx -y @scope/tool@1.2.3 --port 7", "tool"),
            ("uvx mcp-server-time", "mcp-server-time"),
            ("python3 /opt/servers/notes.py", "notes-py"),
            ("/usr/bin/notes", "notes"),
            ("https://mcp.example.org/sse?key=1", "mcp-example-org"),
            ("...", "server"),
            ("", "server"),
        ] {
            assert_eq!(name_of(text), name, "{text}");
        }
    }
}
