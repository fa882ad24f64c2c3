//! The report of a call to the model on the page.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use reqwest::Url;
use tiller_protocol::lock;
use tiller_protocol::tool::Display;

use super::lease::Lease;
use super::snapshot::{PageText, collect, difference, within};
use super::{BrowserSettings, download};
use crate::foreign::{framed, framed_again};
use crate::{ToolCx, ToolError, ToolOutput};

/// Bytes of a token, as an estimate.
const TOKEN: usize = 4;

/// How much of the page a report holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The changes since the last report; the whole page when it is another one.
    Changes,
    /// The whole page.
    Whole,
}

/// Waits until the page has dealt with what was done, and tells of it.
pub(super) async fn report(
    lease: &mut Lease,
    cx: &ToolCx,
    settings: &BrowserSettings,
    done: &str,
    extent: Extent,
) -> Result<ToolOutput, ToolError> {
    let (now, mut notes) = look(lease).await?;
    download::tell(lease, cx, false, &mut notes).await;
    notes.extend(lease.listed(extent == Extent::Whole).await);
    let page = lease.page().map_err(ToolError::Tell)?;
    let status = lock(&page.shared.state).status.filter(|s| *s >= 400);
    let before = page.last.replace(now.clone());
    let changed = before.filter(|_| extent == Extent::Changes).and_then(|before| difference(&before, &now));
    let budget = settings.snapshot_tokens * TOKEN;
    let mut text = String::new();
    for note in &notes {
        text.push_str(&format!("[{note}]\n"));
    }
    if let Some(status) = status {
        text.push_str(&format!("[HTTP {status}]\n"));
    }
    let kept = keep(cx, &now);
    let named = std::mem::replace(&mut lease.named, (now.url.clone(), now.title.clone()));
    let (same_url, same_title) = (named.0 == now.url, named.1 == now.title);
    let title = now.title.replace('"', "'");
    let pointer = || match &kept {
        Ok(path) => format!("the whole page: {}", path.display()),
        Err(error) => format!("the whole page could not be kept: {error}"),
    };
    match changed {
        Some(lines) if lines.is_empty() => text.push_str("(no change on the page)\n"),
        Some(lines) => {
            let (lines, out) = within(&lines, budget);
            let of = if same_title { String::new() } else { format!(" of \"{title}\"") };
            text.push_str(&format!("Changed lines{of}:\n"));
            text.push_str(&lines.join("\n"));
            text.push('\n');
            if out > 0 {
                text.push_str(&format!("[{out} more changed lines; {}]\n", pointer()));
            }
        }
        None => {
            let (lines, out) = within(&now.shown, budget);
            if !same_title {
                text.push_str(&format!("Page \"{title}\"\n"));
            }
            text.push_str(&lines.join("\n"));
            text.push_str(if lines.is_empty() { "(empty)\n" } else { "\n" });
            if out > 0 || lines != now.shown {
                text.push_str(&format!("[{out} of {} lines left out; {}]\n", now.shown.len(), pointer()));
            }
        }
    }
    let url = Url::parse(&now.url).or_else(|_| Url::parse("about:blank"));
    let url = url.map_err(|e| ToolError::Tell(e.to_string()))?;
    let head = if done.is_empty() { String::new() } else { format!("{done}\n") };
    let measure = Display::Measure { text: format!("{} lines", now.shown.len()) };
    let text = if same_url { framed_again(&text) } else { framed(&url, &text, "") };
    Ok(ToolOutput::text(format!("{head}{text}")).show(measure))
}

/// Waits until the pages have dealt with what was done. Returns the one that the agent sees now, and what happened.
async fn look(lease: &mut Lease) -> Result<(PageText, Vec<String>), ToolError> {
    loop {
        lease.settle().await.map_err(ToolError::Tell)?;
        let collected = collect(lease.page().map_err(ToolError::Tell)?).await;
        match collected {
            Ok(now) => return Ok((now, lease.take_notes())),
            // It closed itself meanwhile, and is one tab less.
            Err(_) if lease.is_gone() => {}
            Err(error) => return Err(ToolError::Tell(error.to_string())),
        }
    }
}

/// Writes the whole page to the agent's file (0600) in the session's folder, in place of the last one.
fn keep(cx: &ToolCx, page: &PageText) -> std::io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(&cx.folders.spill)?;
    let name = blake3::hash(cx.agent.0.as_bytes()).to_hex();
    let path = cx.folders.spill.join(format!("page-{}.txt", &name[..12]));
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    // At once: a page may have ten thousand lines.
    let head = format!("{} \"{}\"\n", page.url, page.title);
    file.write_all((head + &page.shown.join("\n") + "\n").as_bytes())?;
    drop(file);
    std::fs::rename(&new, &path)?;
    Ok(path)
}
