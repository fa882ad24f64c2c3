//! What `@` names besides files and definitions: `@diff`, the changes of the last turn, `@session/ID`, the conversation of
//! another session of this project, and `@server:uri`, a resource of an MCP server. A file of that name has priority.

use std::path::Path;
use std::sync::Arc;
use tiller_protocol::view::MentionKind;

use tiller_protocol::view::Mention;
use tiller_protocol::{Attachment, Entry, Message, Notice, NoticeKind, Part};
use tiller_store::{Filter, Store};

use crate::context::compaction::compact;
use crate::core::Core;
use crate::files::turn::diffs::TurnSource;
use crate::prompts::msg::{DiffText, NamedText, Texts};

/// The names after the `@`.
const DIFF: &str = "diff";
const SESSION: &str = "session/";
/// Letters of `session/` after which sessions are offered, and how many are offered.
const LETTERS: usize = 2;
const OFFERED: u32 = 10;
/// Letters of an id that identify a session: its time to the millisecond.
const ID: usize = 13;
/// Characters that are attached of a difference or a conversation.
const MOST: usize = 100_000;
const SAID: usize = 40_000;
/// Characters of a preview.
const PREVIEW: usize = 600;

/// Searches for them; reads the store, so it may block.
pub(crate) type MentionSearch = Box<dyn FnOnce() -> Vec<Mention> + Send>;

fn named(path: &str, root: &Path, servers: &[String]) -> Option<NamedText> {
    let what = match path.strip_prefix(SESSION) {
        Some(id) if id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') => {
            NamedText::Session(id.to_owned())
        }
        None if path == DIFF => NamedText::Diff,
        _ => {
            let (server, uri) = resource(path, servers)?;
            NamedText::Resource { server: server.to_owned(), uri: uri.to_owned() }
        }
    };
    (!root.join(path).exists()).then_some(what)
}

/// The server and the address in `server:uri`.
pub(crate) fn resource<'a>(name: &'a str, servers: &[String]) -> Option<(&'a str, &'a str)> {
    let (server, uri) = name.split_once(':')?;
    (!uri.is_empty() && servers.iter().any(|known| known == server)).then_some((server, uri))
}

/// Takes such names out of a message: from its attachments and its text. `servers`: the names of MCP servers.
pub(crate) fn take(message: &mut Message, root: &Path, servers: &[String]) -> Vec<NamedText> {
    let mut all = Vec::new();
    let mut add = |what: NamedText| {
        if !all.contains(&what) {
            all.push(what);
        }
    };
    let mut chosen = Vec::new();
    message.attachments.retain(|a| match a {
        Attachment::File { path, .. } => match named(path, root, servers) {
            Some(what) => {
                add(what);
                chosen.push(path.clone());
                false
            }
            None => true,
        },
        _ => true,
    });
    for word in message.text.split_whitespace().filter_map(|w| w.strip_prefix('@')) {
        let bare = word.trim_end_matches([',', ';', '!', '?', ')', '.', ':']);
        // The end of an address that was chosen from the list may look like the end of a sentence.
        if !chosen.iter().any(|name| word.starts_with(name.as_str()))
            && let Some(what) = named(bare, root, servers)
        {
            add(what);
        }
    }
    all
}

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str("\n[... cut ...]");
    }
    text
}

fn tokens(bytes: usize) -> Option<u64> {
    Some(crate::context::tokens::of_bytes(bytes as u64))
}

/// The conversation of a session from its last compaction on. Blocks.
fn said(store: &Store, id: &str) -> Result<String, String> {
    let id = store.sessions().find(id).map_err(|e| e.to_string())?;
    let head = store.sessions().get(id).map_err(|e| e.to_string())?.head;
    let path = store.paths().context(id, &head).map_err(|e| e.to_string())?;
    let entries: Vec<Arc<Entry>> =
        path.compaction.into_iter().chain(path.kept).chain(path.after).map(Arc::new).collect();
    Ok(compact::transcript(&entries, None, SAID))
}

/// Adds their texts to the message. Blocks.
///
/// # Errors
/// When one cannot be read; nothing is sent then.
pub(crate) fn attach(parts: &mut [Part], texts: &Texts, store: &Store) -> Result<(), Notice> {
    for (what, text) in texts {
        let (name, text) = match what {
            NamedText::Diff => {
                let text = text.as_ref().and_then(|read| read());
                (DIFF.to_owned(), text.ok_or_else(|| "no turn has changed any files".into()))
            }
            NamedText::Session(id) => (format!("{SESSION}{id}"), said(store, id)),
            // Read by the server, which `prompts::servers` asks.
            NamedText::Resource { .. } => continue,
        };
        let text = text.map_err(|why: String| {
            Notice::new(NoticeKind::User, format!("@{name} cannot be attached: {why}"))
                .hint("remove or correct the mention, and send again")
        })?;
        if let Some(Part::Text { text: all }) = parts.first_mut() {
            all.push_str(&format!("\n\n<attached name=\"{name}\">\n{}\n</attached>", text.trim_end()));
        }
    }
    Ok(())
}

/// The differences of the last turn that changed files, without secrets and without those of files that may not be read.
fn last_diff(core: &Core) -> DiffText {
    let (source, workspace) = (TurnSource::of(core), Arc::clone(&core.services.workspace));
    let redact = Arc::clone(&core.services.redaction.redact);
    Arc::new(move || {
        let files = source.clone().diffs(None)?.files;
        let free = |path: &str| workspace.unreadable(&workspace.root.join(path)).is_none();
        let text: String = files.iter().filter(|f| free(&f.path)).map(|f| f.diff.as_str()).collect();
        Some(cut(redact(&text), MOST))
    })
}

/// What is read away from the engine's task.
pub(crate) fn texts(core: &Core, named: Vec<NamedText>) -> Texts {
    named
        .into_iter()
        .map(|n| if n == NamedText::Diff { (n, Some(last_diff(core))) } else { (n, None) })
        .collect()
}

/// What the list offers for these letters; `None`: nothing.
pub(crate) fn offers(core: &Core, text: &str) -> Option<MentionSearch> {
    let text = text.to_lowercase();
    if text.len() >= LETTERS && DIFF.starts_with(&text) {
        let diff = last_diff(core);
        let mention = |diff: String| Mention {
            kind: MentionKind::Described("what the last turn changed".into()),
            name: DIFF.into(),
            size: Some(diff.len() as u64),
            tokens: tokens(diff.len()),
            preview: cut(diff, PREVIEW),
        };
        return Some(Box::new(move || diff().map(mention).into_iter().collect()));
    }
    let begun = text.len() >= LETTERS && SESSION.starts_with(&text);
    let rest = text.strip_prefix(SESSION);
    if !begun && rest.is_none() {
        return None;
    }
    let (store, words, own) =
        (core.services.store.clone(), rest.unwrap_or_default().to_owned(), core.session.id);
    let project = tiller_protocol::names::written(&core.services.workspace.root);
    Some(Box::new(move || {
        let filter = Filter { project: Some(project), text: words, limit: OFFERED, ..Filter::default() };
        let rows = store.sessions().list(&filter).unwrap_or_default();
        let row = |s: tiller_protocol::SessionSummary| Mention {
            kind: MentionKind::Described(format!("session \"{}\"", s.title)),
            name: format!("{SESSION}{}", s.id.to_string().chars().take(ID).collect::<String>()),
            size: None,
            tokens: None,
            preview: s.preview,
        };
        rows.into_iter().filter(|s| s.id != own).map(row).collect()
    }))
}
