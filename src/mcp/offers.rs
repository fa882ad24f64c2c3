//! What a server offers besides tools: its resources (its skills among them) and prompts, as it listed them last. They are
//! kept, so that they can be chosen before the server runs. They need no pin: the person chooses each by hand, and sees what
//! is sent.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::read::names;
use crate::read::parts::{LeftOut, short as cited, some, text};
use crate::read::result::clean;
use crate::read::words::of_request;
use rmcp::model::Skill;
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_protocol::lock;
use tiller_protocol::mcp::{McpArgumentView, McpPromptView, McpResourceView};
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

use crate::known::{KeptFile, KnownFile, first_line};
use crate::{session, skills};

/// Time limit of one list.
const LIST: Duration = Duration::from_secs(30);
/// Pause between two readings: a server may say without end that its lists changed.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum bytes of a resource's address.
const URI: usize = 1000;
/// Maximum number of arguments of a prompt.
const ARGUMENTS: usize = 20;

/// The lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Lists {
    /// The hash of the settings that they were read with.
    hash: String,
    resources: Vec<McpResourceView>,
    prompts: Vec<McpPromptView>,
    /// Its skills: each is offered as the resource that it is.
    skills: Vec<Skill>,
}

/// The lists of one server, and the file that keeps them.
pub(crate) struct Offers {
    server: String,
    hash: String,
    file: KeptFile,
    lists: Mutex<Lists>,
    /// The parts that were left out of the lists as they were read last, in sentences without a full stop.
    left: Mutex<Vec<String>>,
    /// How often they were read by this process.
    readings: watch::Sender<u32>,
}

impl Offers {
    /// As they were kept.
    pub(crate) fn new(server: &str, hash: &str, known: &KnownFile) -> Arc<Self> {
        let file = known.beside("lists");
        let mut lists: Lists = file.read();
        if lists.hash != hash {
            lists = Lists::default();
        }
        // The file could have been written by anything.
        lists.resources.retain(|resource| is_uri(&resource.uri));
        lists.prompts.retain(|prompt| crate::is_name(&prompt.name));
        lists.skills.retain(|skill| is_uri(&skill.uri));
        lists.resources.iter_mut().for_each(|resource| resource.server = server.to_owned());
        lists.prompts.iter_mut().for_each(|prompt| prompt.server = server.to_owned());
        Arc::new(Self {
            server: server.into(),
            hash: hash.into(),
            file,
            lists: Mutex::new(lists),
            left: Mutex::default(),
            readings: watch::Sender::new(0),
        })
    }

    /// The resources as they are known, with the skills among them: a skill has the description that its file is compared with,
    /// not one of the list of resources.
    pub(crate) fn resources(&self) -> Vec<McpResourceView> {
        let lists = lock(&self.lists);
        let named: BTreeSet<&str> = lists.skills.iter().map(|skill| skill.uri.as_str()).collect();
        let plain = lists.resources.iter().filter(|resource| !named.contains(resource.uri.as_str()));
        let mut all: Vec<McpResourceView> = plain.cloned().collect();
        all.extend(lists.skills.iter().map(|skill| skills::view(&self.server, skill)));
        all
    }

    /// The prompts as they are known.
    pub(crate) fn prompts(&self) -> Vec<McpPromptView> {
        lock(&self.lists).prompts.clone()
    }

    /// The skills as they are known, once they have been read.
    pub(crate) async fn first_skills(&self) -> Vec<Skill> {
        self.first_reading().await;
        lock(&self.lists).skills.clone()
    }

    /// The parts that were left out of them.
    pub(crate) fn left_out(&self) -> Vec<String> {
        lock(&self.left).clone()
    }

    /// Forgets them.
    pub(crate) fn forget(&self) {
        self.file.remove();
        *lock(&self.lists) = Lists::default();
    }

    /// Reads them now, and again each time that `changed` says so, until the connection is dropped. A list that cannot be
    /// read stays as it was. `can`: whether the server has prompts, resources, and skills.
    pub(crate) async fn follow(
        self: Arc<Self>,
        peer: Peer<RoleClient>,
        can: [bool; 3],
        mut changed: Receiver<()>,
    ) {
        loop {
            self.read(&peer, can).await;
            self.readings.send_modify(|n| *n = n.saturating_add(1));
            tokio::time::sleep(PAUSE).await;
            if changed.recv().await.is_none() {
                return;
            }
        }
    }

    /// Waits until they have been read once, at most for two times [`LIST`].
    pub(crate) async fn first_reading(&self) {
        let mut readings = self.readings.subscribe();
        // Without an answer they stay as they were known.
        let _ = tokio::time::timeout(LIST * 2, readings.wait_for(|n| *n > 0)).await;
    }

    /// The prompts as the server lists them now; those that are known where it does not.
    pub(crate) async fn prompts_now(&self, peer: &Peer<RoleClient>) -> Vec<McpPromptView> {
        match tokio::time::timeout(LIST, session::prompts(peer)).await {
            Ok(Ok((all, _))) => self.named_prompts(&all, &mut LeftOut::default()),
            _ => self.prompts(),
        }
    }

    async fn read(&self, peer: &Peer<RoleClient>, [prompts, resources, skills]: [bool; 3]) {
        let mut new = lock(&self.lists).clone();
        // A list that the server ended in the middle of says nothing.
        let mut read = false;
        let mut left = LeftOut::default();
        if !prompts {
            new.prompts.clear();
        } else {
            match answered(session::prompts(peer)).await {
                Ok((all, notes)) => {
                    new.prompts = self.named_prompts(&all, &mut left);
                    notes.into_iter().for_each(|note| left.push(note));
                    read = true;
                }
                Err(why) => left.push(format!("its prompts are those of an earlier reading: {why}")),
            }
        }
        if !resources {
            new.resources.clear();
        } else {
            match answered(session::resources(peer)).await {
                Ok((all, notes)) => {
                    new.resources = self.named_resources(&all, &mut left);
                    notes.into_iter().for_each(|note| left.push(note));
                    read = true;
                }
                Err(why) => left.push(format!("its resources are those of an earlier reading: {why}")),
            }
        }
        if !skills {
            new.skills.clear();
        } else {
            match answered(session::skills(peer)).await {
                Ok((all, notes)) => {
                    new.skills = skills::read(&all, &mut left);
                    notes.into_iter().for_each(|note| left.push(note));
                    read = true;
                }
                Err(why) => left.push(format!("its skills are those of an earlier reading: {why}")),
            }
        }
        *lock(&self.left) = left.sentences();
        if read {
            new.hash.clone_from(&self.hash);
        }
        new.prompts.sort_by(|a, b| a.name.cmp(&b.name));
        new.prompts.dedup_by(|a, b| a.name == b.name);
        if *lock(&self.lists) == new {
            return;
        }
        *lock(&self.lists) = new.clone();
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || file.write(&new)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(server = self.server, error, "the lists of an MCP server could not be kept");
        }
    }

    /// The resources that can be named.
    fn named_resources(&self, all: &[Value], left: &mut LeftOut) -> Vec<McpResourceView> {
        let read = |(at, resource)| {
            let view = self.resource(resource);
            if view.is_none() {
                let uri = some(resource, "uri").map_or_else(|| "without a uri".into(), cited);
                left.push(format!(
                    "resource {} of {} was left out: its address cannot be typed ({uri})",
                    at + 1,
                    all.len()
                ));
            }
            view
        };
        all.iter().enumerate().filter_map(read).collect()
    }

    /// `None`: its address cannot be typed, so that it cannot be named.
    fn resource(&self, resource: &Value) -> Option<McpResourceView> {
        let uri = text(resource, "uri").ok().filter(|uri| is_uri(uri))?;
        let summary = some(resource, "description").or(some(resource, "mimeType")).unwrap_or_default();
        let name = some(resource, "title").or(some(resource, "name")).unwrap_or_default();
        Some(McpResourceView {
            server: self.server.clone(),
            name: short(name),
            summary: line(summary),
            size: resource.get("size").and_then(Value::as_u64),
            uri: uri.to_owned(),
        })
    }

    /// The prompts that have a name. An odd name gets a safe one, which can be that of a command.
    fn named_prompts(&self, all: &[Value], left: &mut LeftOut) -> Vec<McpPromptView> {
        let named = || all.iter().filter_map(|prompt| some(prompt, "name"));
        let safe = names::safe(named());
        let mut seen = BTreeSet::new();
        let read = |(at, prompt): (usize, &Value)| {
            let named = some(prompt, "name").and_then(|own| Some((own, safe.get(own)?.clone())));
            let Some((own, name)) = named.filter(|(_, name)| seen.insert(name.clone())) else {
                left.push(format!(
                    "prompt {} of {} was left out: it has no name of its own",
                    at + 1,
                    all.len()
                ));
                return None;
            };
            let summary = some(prompt, "description").or(some(prompt, "title")).unwrap_or_default();
            Some(McpPromptView {
                server: self.server.clone(),
                summary: line(summary),
                arguments: arguments(prompt, own, left),
                own: if name == own { String::new() } else { own.to_owned() },
                name,
            })
        };
        all.iter().enumerate().filter_map(read).collect()
    }
}

/// The answer to a request for a list, or why there is none.
async fn answered<T>(list: impl Future<Output = Result<T, ServiceError>>) -> Result<T, String> {
    match tokio::time::timeout(LIST, list).await {
        Ok(answer) => answer.map_err(|e| of_request(&e)),
        Err(_) => Err(format!("no answer for {} s", LIST.as_secs())),
    }
}

/// The arguments of a prompt, under names that can be typed.
fn arguments(prompt: &Value, of: &str, left: &mut LeftOut) -> Vec<McpArgumentView> {
    let all = prompt.get("arguments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if all.len() > ARGUMENTS {
        let more = all.len() - ARGUMENTS;
        left.push(format!(
            "{more} arguments of the prompt {} were left out: it may have {ARGUMENTS}",
            cited(of)
        ));
    }
    let safe = names::safe(all.iter().filter_map(|argument| some(argument, "name")));
    let read = |argument: &Value| {
        let own = some(argument, "name")?;
        let name = safe.get(own)?.clone();
        Some(McpArgumentView {
            required: argument.get("required").and_then(Value::as_bool) == Some(true),
            summary: line(some(argument, "description").unwrap_or_default()),
            own: if name == own { String::new() } else { own.to_owned() },
            name,
        })
    };
    all.iter().filter_map(read).take(ARGUMENTS).collect()
}

/// The first line of a description, without what could act on a terminal.
pub(crate) fn line(text: &str) -> String {
    first_line(&clean(text.as_bytes()))
}

/// A name, without what could act on a terminal.
pub(crate) fn short(text: &str) -> String {
    clean(text.as_bytes()).chars().take(120).collect::<String>().replace('\n', " ").trim().to_owned()
}

/// True if an address can be a word of a message: without blanks, and without characters that hide or reorder text.
pub(crate) fn is_uri(uri: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() || c.is_alphanumeric();
    !uri.is_empty() && uri.len() < URI && uri.chars().all(plain)
}
