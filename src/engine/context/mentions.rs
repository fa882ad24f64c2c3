//! Expands a message when it is sent: pasted text is inserted, files are read, images follow. The result is stored in
//! the entry, so that later requests repeat it byte for byte.

use std::fmt::Write;
use std::path::Path;

use base64::Engine as _;
use tiller_fs::beneath;
use tiller_protocol::mask::has_mask;
use tiller_protocol::{Attachment, Message, Notice, NoticeKind, Part, names};
use tiller_tool::files::{ReadableText, masked_part, readable};
use tiller_tool::{MASKED, Workspace};

/// Bytes of text taken of one file.
pub(crate) const FILE: u64 = 100 << 10;
/// Bytes of one file that are read at most (line ranges may be far down).
const SCAN: u64 = 32 << 20;
/// Names listed of a folder.
const NAMES: usize = 300;

/// Reads every attachment, and every file that the text names. Blocks: not for the engine's own loop.
///
/// # Errors
/// When a file cannot be attached as asked; nothing is sent then.
pub fn freeze(message: &Message, workspace: &Workspace) -> Result<Vec<Part>, Notice> {
    attach(message, typed(message, workspace), workspace)
}

/// As [`freeze`], for a message with text of others: no file that it names is read.
///
/// # Errors
/// As [`freeze`].
pub fn freeze_unnamed(message: &Message, workspace: &Workspace) -> Result<Vec<Part>, Notice> {
    let mut message = message.clone();
    message.attachments.retain(|a| !matches!(a, Attachment::File { .. }));
    attach(&message, Vec::new(), workspace)
}

/// Names of files, with the lines that are meant.
type NamedFiles = Vec<(String, Option<(u32, u32)>)>;

fn attach(message: &Message, named: NamedFiles, workspace: &Workspace) -> Result<Vec<Part>, Notice> {
    let mut text = message.text.clone();
    let mut after = String::new();
    let mut images = Vec::new();
    for a in &message.attachments {
        match a {
            Attachment::Paste { label, text: pasted } => {
                if text.contains(label.as_str()) {
                    text = text.replacen(label.as_str(), pasted, 1);
                } else {
                    let _ = write!(after, "\n\n{pasted}");
                }
            }
            Attachment::Image { media_type, data, .. } => {
                images.push(Part::Image { media_type: media_type.clone(), data: data.as_ref().to_owned() });
            }
            Attachment::File { path, lines, .. } => match read(path, *lines, workspace)? {
                Content::Text(t) => {
                    let _ = write!(after, "\n\n{t}");
                }
                Content::Image(image) => images.push(image),
            },
        }
    }
    for (path, lines) in named {
        match read(&path, lines, workspace)? {
            Content::Text(t) => {
                let _ = write!(after, "\n\n{t}");
            }
            Content::Image(image) => images.push(image),
        }
    }
    text.push_str(&after);
    // Like the note below what a tool reads.
    if has_mask(&after) {
        text.push_str(&format!("\n\n{MASKED}"));
    }
    let mut parts = vec![Part::Text { text }];
    parts.extend(images);
    Ok(parts)
}

/// The names behind an `@` in a text, without brackets, quotes and punctuation around them.
pub fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| {
        let word = word.trim_start_matches(['(', '[', '{', '"', '\'']);
        let word = word.trim_end_matches([',', ';', '!', '?', ')', ']', '}', '"', '\'', '.', ':']);
        word.strip_prefix('@').filter(|name| !name.is_empty())
    })
}

/// `@path` or `@path:10-40` typed by hand that name an existing file. Others are plain text.
fn typed(message: &Message, workspace: &Workspace) -> NamedFiles {
    let known = |name: &str| message.attachments.iter().any(|a| a.label().strip_prefix('@') == Some(name));
    let mut found = NamedFiles::new();
    for name in mentioned(&message.text) {
        let Some(this) = there(name, workspace) else { continue };
        if !known(name) && !found.contains(&this) {
            found.push(this);
        }
    }
    found
}

/// A path inside the workspace or in the session's own `/tmp`, with the lines behind it.
fn there(name: &str, workspace: &Workspace) -> Option<(String, Option<(u32, u32)>)> {
    let inside = |path: &str| {
        let plain = |c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir);
        let path = names::path(path);
        let below = path.strip_prefix(&workspace.root).unwrap_or(&path);
        let beneath = below.components().all(plain) && workspace.root.join(below).exists();
        beneath || workspace.in_session_tmp(&path).is_some()
    };
    if inside(name) {
        return Some((name.to_owned(), None));
    }
    let (path, lines) = name.rsplit_once(':')?;
    let (from, to) = lines.split_once('-').unwrap_or((lines, lines));
    let (from, to) = (from.parse::<u32>().ok()?, to.parse::<u32>().ok()?);
    inside(path).then(|| (path.to_owned(), Some((from, to.max(from)))))
}

enum Content {
    Text(String),
    Image(Part),
}

fn refuse(path: &str, why: impl std::fmt::Display) -> Notice {
    Notice::new(NoticeKind::User, format!("@{path} cannot be attached: {why}"))
        .hint("remove or correct the mention, and send again")
}

fn read(path: &str, lines: Option<(u32, u32)>, workspace: &Workspace) -> Result<Content, Notice> {
    let judged = workspace.readable(&workspace.root.join(names::path(path))).map_err(|e| refuse(path, e))?;
    let meta = std::fs::symlink_metadata(&judged).map_err(|e| refuse(path, e))?;
    if meta.is_dir() {
        return folder(path, &judged).map(Content::Text).map_err(|e| refuse(path, e));
    }
    let bytes = beneath::read(&judged, SCAN).map_err(|e| refuse(path, e))?;
    if is_image(&bytes) {
        // A vendor that rejects the image would reject every later request of the session, too.
        let Some((media_type, ..)) = tiller_tool::image_info(&bytes) else {
            let why = "the image is damaged or too large: models take 3.75 MB and 8,000 pixels a side";
            return Err(refuse(path, why));
        };
        let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
        return Ok(Content::Image(Part::Image { media_type: media_type.into(), data }));
    }
    let cut = meta.len() > SCAN;
    let file = readable(&bytes, cut).map_err(|why| refuse(path, why))?;
    match lines {
        None => Ok(Content::Text(whole(path, &file, cut.then_some(meta.len()), workspace))),
        Some((from, to)) => range(path, &file, from, to, workspace).map(Content::Text),
    }
}

fn is_image(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0x89, b'P', b'N', b'G', ..]
            | [0xff, 0xd8, 0xff, ..]
            | [b'G', b'I', b'F', b'8', ..]
            | [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..]
    )
}

/// Says how the file is stored, where it is not plain UTF-8.
fn encoding(file: &ReadableText) -> String {
    if file.encoding.is_empty() { String::new() } else { format!(" encoding=\"{}\"", file.encoding) }
}

/// `size`: bytes of a file that was not read to its end.
fn whole(path: &str, file: &ReadableText, size: Option<u64>, workspace: &Workspace) -> String {
    let text = &file.text;
    let end = text.floor_char_boundary(usize::try_from(FILE).unwrap_or(usize::MAX));
    let size = size.unwrap_or(text.len() as u64);
    let mark = if (end as u64) < size {
        format!("\n[... cut: the first {end} of {size} bytes; read_file shows the rest ...]")
    } else {
        String::new()
    };
    format!(
        "<file path=\"{path}\"{}>\n{}{mark}\n</file>",
        encoding(file),
        masked_part(path, text, 0..end, workspace).trim_end_matches('\n')
    )
}

fn range(
    path: &str,
    file: &ReadableText,
    from: u32,
    to: u32,
    workspace: &Workspace,
) -> Result<String, Notice> {
    let (text, encoding) = (&file.text, encoding(file));
    let (first, last) = (from.max(1) as usize, to as usize);
    let lines: Vec<&str> =
        text.split_inclusive('\n').skip(first - 1).take((last + 1).saturating_sub(first)).collect();
    if lines.is_empty() {
        return Err(refuse(path, format_args!("it has {} lines, not {from}-{to}", text.lines().count())));
    }
    let start: usize = text.split_inclusive('\n').take(first - 1).map(str::len).sum();
    let end = start + lines.iter().map(|l| l.len()).sum::<usize>();
    let most = text.floor_char_boundary(start + usize::try_from(FILE).unwrap_or(usize::MAX));
    let body = masked_part(path, text, start..end.min(most), workspace);
    let mark = if most < end { "\n[... cut ...]" } else { "" };
    let body = body.strip_suffix('\n').unwrap_or(&body);
    let body = body.strip_suffix('\r').unwrap_or(body);
    let last = first + lines.len() - 1;
    Ok(format!("<file path=\"{path}\" lines=\"{first}-{last}\"{encoding}>\n{body}{mark}\n</file>"))
}

fn folder(path: &str, judged: &Path) -> std::io::Result<String> {
    let entries = beneath::entries(&beneath::folder(judged)?, NAMES * 10)?;
    let shown = |(name, is_folder): (std::ffi::OsString, bool)| {
        let slash = if is_folder { "/" } else { "" };
        format!("{}{slash}", names::written(Path::new(&name)))
    };
    let mut names: Vec<String> = entries.into_iter().map(shown).collect();
    names.sort();
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let mark = if more > 0 { format!("\n[... and {more} more ...]") } else { String::new() };
    Ok(format!("<folder path=\"{path}\">\n{}{mark}\n</folder>", names.join("\n")))
}

#[cfg(test)]
#[path = "mentions_tests.rs"]
mod tests;
