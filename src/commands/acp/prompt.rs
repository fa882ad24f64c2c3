//! Converts the client's prompt to a message. A prompt that cannot be sent completely is refused.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Attachment, Message};

use tiller_rpc::Error;

/// Maximum bytes of an image.
const IMAGE: usize = 8 << 20;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
    },
    ResourceLink {
        uri: String,
        name: String,
    },
    Resource {
        resource: Resource,
    },
}

#[derive(Debug, Deserialize)]
struct Resource {
    uri: String,
    text: Option<String>,
    blob: Option<String>,
}

/// Converts the blocks of a prompt. `root`: the session's folder.
pub(super) fn message(root: &Path, blocks: Vec<Value>) -> Result<Message, Error> {
    let mut message = Message::default();
    for block in blocks {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        match serde_json::from_value(block) {
            Ok(block) => add(&mut message, root, block)?,
            Err(_) if kind == "audio" => return Err(Error::invalid_params("a prompt cannot contain audio")),
            Err(e) => return Err(Error::invalid_params(format!("a part of the prompt cannot be read: {e}"))),
        }
    }
    if message.text.trim().is_empty() && message.attachments.is_empty() {
        return Err(Error::invalid_params("the prompt is empty"));
    }
    Ok(message)
}

fn add(message: &mut Message, root: &Path, block: Block) -> Result<(), Error> {
    match block {
        Block::Text { text } => message.text.push_str(&text),
        Block::Image { data } => image(message, data)?,
        Block::ResourceLink { uri, name } => link(message, root, &uri, &name),
        Block::Resource { resource: Resource { uri, text: Some(text), .. } } => {
            let shown = shown(root, &uri);
            // Its text follows its label.
            let pasted = format!("\n<resource uri=\"{}\">\n{text}\n</resource>\n", plain(&uri));
            attach(message, "resource", &shown, |label| Attachment::Paste { label, text: pasted.into() });
        }
        Block::Resource { resource: Resource { uri, blob: Some(blob), .. } } => {
            image(message, blob).map_err(|_| {
                Error::invalid_params(format!(
                    "{} is neither text nor an image that models accept",
                    plain(&uri)
                ))
            })?;
        }
        Block::Resource { .. } => return Err(Error::invalid_params("a resource must have text or a blob")),
    }
    Ok(())
}

/// Adds an attachment with a label that occurs only once in the text.
fn attach(message: &mut Message, what: &str, about: &str, make: impl FnOnce(String) -> Attachment) {
    let mut n = message.attachments.len() + 1;
    let mut label = format!("[{what} {n}: {about}]");
    while message.text.contains(&label) {
        n += 1;
        label = format!("[{what} {n}: {about}]");
    }
    message.text.push_str(&label);
    message.attachments.push(make(label));
}

fn image(message: &mut Message, data: String) -> Result<(), Error> {
    let bytes = STANDARD
        .decode(data.as_bytes())
        .map_err(|_| Error::invalid_params("the image data is not base64"))?;
    if bytes.len() > IMAGE {
        return Err(Error::invalid_params("an image can be at most 8 MB"));
    }
    let (media_type, width, height) = tiller_tool::image_info(&bytes)
        .ok_or_else(|| Error::invalid_params("an image must be PNG, JPEG, GIF or WebP"))?;
    attach(message, "image", &format!("{width}x{height}"), |label| Attachment::Image {
        label,
        media_type: media_type.into(),
        data: data.into(),
        width,
        height,
    });
    Ok(())
}

/// A file of the folder is read when the message is sent; anything else is only named.
fn link(message: &mut Message, root: &Path, uri: &str, name: &str) {
    let Some((path, lines)) = file(uri) else {
        message.text.push_str(&format!("[{}]({})", plain(name), plain(uri)));
        return;
    };
    let Some(inside) = Path::new(&path).strip_prefix(root).ok().and_then(Path::to_str) else {
        message.text.push_str(&plain(&path));
        return;
    };
    let inside = if inside.is_empty() { "." } else { inside };
    let label = match lines {
        Some((a, b)) => format!("@{inside}:{a}-{b}"),
        None => format!("@{inside}"),
    };
    message.text.push_str(&label);
    message.attachments.push(Attachment::File { label, path: inside.to_owned(), lines });
}

/// The name of a resource in its label.
fn shown(root: &Path, uri: &str) -> String {
    let path = file(uri).map(|(p, _)| p);
    let inside = path.as_deref().and_then(|p| Path::new(p).strip_prefix(root).ok()?.to_str());
    plain(inside.or(path.as_deref()).unwrap_or(uri))
}

/// The path and the lines (`#L3`, `#L3-9`, `#L3:9`) of a `file:` URI. `None` also for one with `..`, which may lead out of the
/// folder that it begins with.
fn file(uri: &str) -> Option<(String, Option<(u32, u32)>)> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let (path, fragment) = rest.split_once('#').map_or((rest, None), |(p, f)| (p, Some(f)));
    let path = decoded(path)?;
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return None;
    }
    let lines = fragment.and_then(|f| {
        let f = f.strip_prefix('L')?;
        let (a, b) = f.split_once(['-', ':']).unwrap_or((f, f));
        let (a, b): (u32, u32) = (a.parse().ok()?, b.trim_start_matches('L').parse().ok()?);
        (a >= 1 && a <= b).then_some((a, b))
    });
    Some((path, lines))
}

/// Decodes percent encoding (`%41` is `A`). `None`: the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let pair = [bytes.next()?, bytes.next()?];
            let hex = std::str::from_utf8(&pair).ok().filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))?;
            out.push(u8::from_str_radix(hex, 16).ok()?);
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).ok().filter(|t| !t.contains('\0'))
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !"[]<>\"".contains(*c)).take(300).collect()
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
