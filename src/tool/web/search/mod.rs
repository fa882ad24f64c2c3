//! `web_search`: pages for a question, from the search engine that the settings name.
//!
//! | file | engine |
//! | --- | --- |
//! | `brave.rs` | the API of Brave Search, by a key |
//! | `tavily.rs` | the API of Tavily, by a key |
//! | `searxng.rs` | a SearXNG server of the person's |
//! | `keyless.rs` | a page for people of DuckDuckGo: best effort |
//!
//! An engine makes one request and reads one answer; everything else is here. An answer is untrusted text: titles and
//! snippets are plain text of one line when they leave this file, and addresses are `http` or `https`.

mod brave;
mod keyless;
mod searxng;
mod tavily;

use std::fmt;

use async_trait::async_trait;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};

use super::client::{Reply, Sent};
use crate::foreign::framed;
use crate::text::clean;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Results without a wish, and at most.
const USUAL: usize = 8;
const MOST: usize = 20;
/// Characters of a query: Brave takes no more.
const QUERY: usize = 400;
/// Characters of each part of a result.
const TITLE: usize = 160;
const SNIPPET: usize = 400;
const ADDRESS: usize = 600;

/// A key that is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SearchKey(String);

impl SearchKey {
    /// Blanks around a key are dropped.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for SearchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchKey(..)")
    }
}

/// Which engine searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchChoice {
    /// The first for which there is a setting: SearXNG, Brave, Tavily; else the keyless one.
    #[default]
    Auto,
    Brave,
    Tavily,
    Searxng,
    Keyless,
}

/// An engine with a key: where it is, and what it is paid with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedEngine {
    /// Address of its API.
    pub address: String,
    /// Name of the variable with the key.
    pub variable: String,
    /// `None`: the variable is not set.
    pub key: Option<SearchKey>,
}

/// What the settings say of searches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    pub choice: SearchChoice,
    pub brave: KeyedEngine,
    pub tavily: KeyedEngine,
    /// Address of a SearXNG server.
    pub searxng: Option<String>,
    /// Address of the page that is read without a key.
    pub keyless: String,
}

impl Default for SearchSettings {
    fn default() -> Self {
        let keyed = |address: &str, variable: &str| KeyedEngine {
            address: address.into(),
            variable: variable.into(),
            key: None,
        };
        Self {
            choice: SearchChoice::Auto,
            brave: keyed(brave::ADDRESS, "BRAVE_API_KEY"),
            tavily: keyed(tavily::ADDRESS, "TAVILY_API_KEY"),
            searxng: None,
            keyless: keyless::ADDRESS.into(),
        }
    }
}

impl SearchSettings {
    /// The engine that searches now.
    ///
    /// # Errors
    /// The settings that it lacks, in words.
    fn engine(&self) -> Result<Box<dyn Engine>, String> {
        let keyed = |engine: &KeyedEngine, name: &str| {
            let missing =
                || format!("there is no key for {name}: {} is not set. {}", engine.variable, self.help());
            Ok::<_, String>((engine.address.clone(), engine.key.clone().ok_or_else(missing)?))
        };
        let brave = || {
            keyed(&self.brave, "Brave Search")
                .map(|(address, key)| Box::new(brave::Brave { address, key }) as Box<dyn Engine>)
        };
        let tavily = || {
            keyed(&self.tavily, "Tavily")
                .map(|(address, key)| Box::new(tavily::Tavily { address, key }) as Box<dyn Engine>)
        };
        let searxng = || match &self.searxng {
            Some(address) => Ok(Box::new(searxng::Searxng { address: address.clone() }) as Box<dyn Engine>),
            None => Err(format!("there is no address of a SearXNG server. {}", self.help())),
        };
        let keyless = || Box::new(keyless::Keyless { address: self.keyless.clone() }) as Box<dyn Engine>;
        match self.choice {
            SearchChoice::Brave => brave(),
            SearchChoice::Tavily => tavily(),
            SearchChoice::Searxng => searxng(),
            SearchChoice::Keyless => Ok(keyless()),
            SearchChoice::Auto => {
                Ok(searxng().or_else(|_| brave()).or_else(|_| tavily()).unwrap_or_else(|_| keyless()))
            }
        }
    }

    /// What makes searches reliable.
    fn help(&self) -> String {
        format!(
            "To search reliably the user can set {} or {}, or searxng_url under [web] in config.toml",
            self.brave.variable, self.tavily.variable
        )
    }
}

/// One search engine.
trait Engine: Send + Sync {
    /// For people and models.
    fn name(&self) -> &'static str;

    /// The request for at most `count` results.
    ///
    /// # Errors
    /// When its address is none.
    fn request(&self, query: &str, count: usize) -> Result<Sent, String>;

    /// The results of an answer with a status of success.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn read(&self, body: &str) -> Result<Vec<Hit>, String>;

    /// What another status means, where this engine means something special by it.
    fn refusal(&self, status: u16) -> Option<&'static str>;
}

/// One result, as the engine wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Hit {
    #[serde(deserialize_with = "text_or_nothing")]
    title: String,
    #[serde(deserialize_with = "text_or_nothing")]
    url: String,
    /// May contain HTML.
    #[serde(alias = "description", alias = "content", deserialize_with = "text_or_nothing")]
    snippet: String,
}

/// A text, or nothing where the engine has something else, as `null`.
fn text_or_nothing<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Value::deserialize(from)?.as_str().unwrap_or_default().to_owned())
}

/// The list of results at a place of a JSON answer.
fn hits(body: &str, place: &str) -> Result<Vec<Hit>, String> {
    let answer: Value = serde_json::from_str(body).map_err(|_| "its answer is no JSON".to_owned())?;
    let list = answer.pointer(place).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(list.iter().filter_map(|hit| Hit::deserialize(hit).ok()).collect())
}

/// An address with a path that is added to, and a query.
fn address(base: &str, path: &str, query: &[(&str, &str)]) -> Result<Url, String> {
    let text = format!("{}{path}", base.trim_end_matches('/'));
    let mut url = Url::parse(&text).map_err(|e| format!("{text} is not a URL: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{text} is not the address of a web server"));
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

/// The tool.
pub struct WebSearch;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    query: String,
    /// 8 by default, at most 20
    #[serde(default)]
    count: Option<usize>,
}

const INFO: ToolInfo = ToolInfo {
    name: "web_search",
    set: ToolSet::Web,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Network,
    rule: RuleArgument::Text,
    aliases: &["websearch", "google", "internet_search"],
    verb: ToolVerb::Search,
    target: |args| format!("\"{}\" on the web", schema::text(args, "query")),
};

impl Args {
    fn query(&self) -> Result<String, ToolError> {
        let query = one_line(&self.query, usize::MAX);
        match query.chars().count() {
            0 => Err(ToolError::Tell("the query is empty".into())),
            n if n > QUERY => Err(ToolError::Tell(format!("the query has {n} characters; at most {QUERY}"))),
            _ => Ok(query),
        }
    }
}

#[async_trait]
impl Tool for WebSearch {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("../search.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        let query = args.query()?;
        let engine = cx.limits.search.engine().map_err(ToolError::Tell)?;
        let sent = engine.request(&query, USUAL).map_err(ToolError::Tell)?;
        // What leaves this machine is the query: rules are compared with it.
        let host = sent.url.host_str().unwrap_or_default().to_owned();
        Ok(vec![Access::Net { url: query, host, local: false }])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let query = args.query()?;
        let count = args.count.unwrap_or(USUAL).clamp(1, MOST);
        let settings = &cx.limits.search;
        let engine = settings.engine().map_err(ToolError::Tell)?;
        let sent = engine.request(&query, count).map_err(ToolError::Tell)?;
        let asked = cx.state.web.ask(&sent, &cx.limits);
        let reply = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Interrupted(String::new())),
            done = asked => done.map_err(|why| ToolError::Tell(format!("{}: {why}", engine.name())))?,
            () = tokio::time::sleep(cx.limits.fetch_time) => {
                let limit = cx.limits.fetch_time.as_secs();
                return Err(ToolError::TimedOut(format!("no complete answer of {} within {limit} s", engine.name())));
            }
        };
        let found = read(&*engine, &reply).map_err(|why| {
            // A key that works needs no advice on other keys.
            let help = if reply.status == 429 || engine.refusal(0).is_some() {
                settings.help()
            } else {
                String::new()
            };
            ToolError::Tell(
                format!("{}: {why}. {help}", engine.name()).trim_end_matches([' ', '.']).to_owned(),
            )
        })?;
        Ok(show(&*engine, found, count))
    }
}

/// The results of an answer.
fn read(engine: &dyn Engine, reply: &Reply) -> Result<Vec<Hit>, String> {
    let status = reply.status;
    if let Some(why) = engine.refusal(status) {
        return Err(format!("{why} (HTTP {status})"));
    }
    match status {
        200..=299 if reply.capped => Err("its answer is too long".into()),
        200..=299 => engine.read(&String::from_utf8_lossy(&reply.body)),
        401 | 403 => Err(format!("it refused the key (HTTP {status})")),
        429 => Err("it takes no more searches now (HTTP 429)".into()),
        300..=399 => Err(format!(
            "it answered with a redirect (HTTP {status}): its address in the settings may be wrong"
        )),
        _ => Err(format!("it answered with HTTP {status}")),
    }
}

fn show(engine: &dyn Engine, found: Vec<Hit>, count: usize) -> ToolOutput {
    let mut text = String::new();
    let mut shown = 0;
    for hit in found {
        let address = Url::parse(hit.url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(address) = address.map(String::from).filter(|url| url.len() <= ADDRESS) else { continue };
        if shown == count {
            break;
        }
        shown += 1;
        let title = one_line(&plain(&hit.title), TITLE);
        let title = if title.is_empty() { "(no title)".to_owned() } else { title };
        text.push_str(&format!("{shown}. {title}\n   {address}\n"));
        let snippet = one_line(&plain(&hit.snippet), SNIPPET);
        if !snippet.is_empty() {
            text.push_str(&format!("   {snippet}\n"));
        }
    }
    if shown == 0 {
        text = "(no results)\n".into();
    }
    let results = if shown == 1 { "1 result".to_owned() } else { format!("{shown} results") };
    let words = format!("{results}, {}", engine.name());
    ToolOutput::text(framed(engine.name(), &text, "")).show(Display::Measure { text: words })
}

/// Text without tags and with characters for their names.
fn plain(html: &str) -> String {
    if !html.contains(['<', '&']) {
        return html.to_owned();
    }
    // Bounded first: the parser is slow on what is deep.
    let html: String = html.chars().take(8 * SNIPPET).collect();
    super::html::inline(&html)
}

/// One line of at most `most` characters, without control characters.
fn one_line(text: &str, most: usize) -> String {
    let text = clean(text.as_bytes());
    let line = crate::text::one_line(&text);
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", line[..at].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests;
