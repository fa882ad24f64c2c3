//! What the agent knows of each file. An edit of a file that is not as the agent knows it is refused, and
//! the agent is shown what is new; after that it knows, and may try again.

use std::path::Path;
use std::sync::Arc;
use tiller_protocol::lock;

use crate::cx::SeenFile;
use crate::files::change::diff;
use crate::files::content::encoding::{Encoding, NotText, Text, hide_strays};
use crate::files::path::{Place, tell};
use crate::text::visible;
use crate::{ToolCx, ToolError, Workspace};

/// Largest content that is kept to show differences, and the sum of all kept ones.
const KEEP_ONE: usize = 256 * 1024;
const KEEP_ALL: usize = 32 << 20;
/// Bytes that a refusal shows.
const SHOWN: usize = 6_000;

/// Remembers that the agent knows `bytes` to be the content of `path` (absolute, links resolved). The caller
/// has shown it the whole file, for instance as an attachment.
pub fn note(workspace: &Workspace, path: &Path, bytes: &[u8]) {
    let text = (bytes.len() <= KEEP_ONE).then(|| decode(workspace, path, bytes).ok()).flatten();
    if let Some(Encoding::Legacy(encoding)) = text.as_ref().map(|t| t.encoding) {
        lock(&workspace.encodings).insert(path.to_owned(), encoding);
    }
    let text = text.map(|t| Arc::from(t.text));
    let hash = *blake3::hash(bytes).as_bytes();
    let mut seen = lock(&workspace.seen);
    if text.is_some() {
        let kept: usize = seen.values().filter_map(|s| s.text.as_ref().map(|t| t.len())).sum();
        if kept > KEEP_ALL {
            seen.values_mut().for_each(|s| s.text = None);
        }
    }
    seen.insert(path.to_owned(), SeenFile { hash, text });
}

/// The text of a file, in the legacy encoding in which the agent knows it.
pub(crate) fn decode(workspace: &Workspace, path: &Path, bytes: &[u8]) -> Result<Text, NotText> {
    let known = lock(&workspace.encodings).get(path).copied();
    Text::decode_as(bytes, known)
}

/// Forgets a file that is gone.
pub(crate) fn forget(cx: &ToolCx, path: &Path) {
    lock(&cx.workspace.encodings).remove(path);
    lock(&cx.workspace.seen).remove(path);
}

/// Refuses when the agent does not know `bytes` to be the content of `path`.
pub(crate) fn check(cx: &ToolCx, path: &Path, name: &str, bytes: &[u8]) -> Result<(), ToolError> {
    let hash = *blake3::hash(bytes).as_bytes();
    let known = lock(&cx.workspace.seen).get(path).cloned();
    if known.as_ref().is_some_and(|k| k.hash == hash) {
        return Ok(());
    }
    // What may not be read is not shown by a refusal either, and not written over unseen.
    if let Some(rule) = cx.workspace.unreadable(path) {
        return tell(format!(
            "{name} exists, and the rule {rule} forbids reading it, so it is not written over; nothing was changed."
        ));
    }
    note(&cx.workspace, path, bytes);
    let now = decode(&cx.workspace, path, bytes).ok().map(|t| hide_strays(&t.text));
    let why = match (known, now) {
        (None, Some(now)) => format!(
            "{name} exists, and you have not read it; nothing was changed. Its content:\n{}\nIf the change still \
             fits, send it again.",
            head(&now)
        ),
        (Some(SeenFile { text: Some(before), .. }), Some(now)) => format!(
            "{name} was changed by someone else since you last read it; nothing was changed. Changes:\n{}\n\
             If your change still fits, send it again with the text as it is now.",
            diff::brief(name, &hide_strays(&before), &now, SHOWN)
        ),
        (Some(_), _) => {
            format!(
                "{name} was changed by someone else since you last read it; nothing was changed. Read it again."
            )
        }
        (None, None) => {
            format!(
                "{name} exists, was not read before, and is not text; nothing was changed. Send it again if this is \
                 intended."
            )
        }
    };
    Err(ToolError::Tell(why))
}

/// For an agent that may not see the content of files (`show` is false): refuses, without quoting any, when the agent
/// does not know the present content of one of `places`. With `show`, [`check`] gives a better message.
pub(crate) fn known_first(cx: &ToolCx, places: &[Place], show: bool) -> Result<(), ToolError> {
    for place in places.iter().filter(|p| !show && p.exists) {
        let bytes = crate::files::change::current(place, cx)?.bytes;
        let hash = *blake3::hash(&bytes).as_bytes();
        let known = lock(&cx.workspace.seen).get(&place.path).map(|s| s.hash);
        let why = match known {
            Some(known) if known == hash => continue,
            // Too large for read_file to have held it: only the run itself can make it known.
            None if bytes.len() as u64 > crate::files::read::HELD => continue,
            Some(_) => "was changed by someone else since you last read it",
            None => "exists, and you have not read it",
        };
        return tell(format!("{} {why}; nothing was changed. Read it with read_file first.", place.name));
    }
    Ok(())
}

fn head(text: &str) -> String {
    let text = visible(text);
    if text.len() <= SHOWN {
        return text.into_owned();
    }
    let end = text.floor_char_boundary(SHOWN);
    format!("{}\n[... and more: read it with read_file ...]", &text[..end])
}
